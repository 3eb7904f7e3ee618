"""What the model wrote as arguments, where a log keeps a provider's response beside what was read out of it."""

from collections.abc import Iterator
from typing import Any


def written_arguments(response: Any) -> Iterator[tuple[str, str]]:
    """Call id and argument text of a chat completion, or of one choice of it; nothing of any other response."""
    choices = response.get("choices") if isinstance(response, dict) else None
    for choice in choices if isinstance(choices, list) else [response]:
        match choice:
            case {"message": {"tool_calls": list(calls)}}:
                for call in calls:
                    match call:
                        case {"id": str(call_id), "function": {"arguments": str(text)}}:
                            yield call_id, text
