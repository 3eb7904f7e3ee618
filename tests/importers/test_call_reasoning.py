"""What a model was given back of its reasoning is the context of what it decided next; what it wrote is its answer."""

import json
from pathlib import Path
from typing import Any

import pytest

from curation.importers.face import Parsed
from schemas.digests import decisions_of
from tests.importers.test_call_logs import read, run_lines

Line = dict[str, Any]


def reasoned(written: list[str | None], given: list[list[str | None]], key: str = "reasoning_content") -> list[Line]:
    """A run whose answers have this reasoning; ``given`` is that of the earlier answers in each request."""
    lines: list[Line] = json.loads(json.dumps(run_lines("ABCD"[: len(written) - 1], 0)))
    for each, own, before in zip(lines, written, given, strict=True):
        if own is not None:
            each["response"]["choices"][0]["message"][key] = own
        answers = [message for message in each["request"]["messages"] if message["role"] == "assistant"]
        for message, text in zip(answers, before, strict=True):
            if text is not None:
                message[key] = text
    return lines


def partial(parsed: Parsed) -> list[bool]:
    return [decision.partial for decision in decisions_of(parsed.trajectory)]


def reasoning(parsed: Parsed) -> list[str | None]:
    return [message.reasoning for message in parsed.trajectory.messages if message.role == "assistant"]


def contexts(parsed: Parsed) -> list[str]:
    return [decision.context for decision in decisions_of(parsed.trajectory)]


@pytest.mark.parametrize("given", [[[], ["one"], ["one", "two"]], [[], [None], [None, None]]])
def test_what_is_always_or_never_given_back_is_the_whole_context(tmp_path: Path, given: list[list[Any]]) -> None:
    lines = reasoned(["one", "two", "three"], given)
    (item,) = read(tmp_path, lines)
    assert partial(item) == [False, False, False]
    assert reasoning(item) == [*given[-1], "three"]
    assert contexts(item) == [contexts(read(tmp_path, [each])[0])[-1] for each in lines]


def test_what_was_given_back_at_first_only_leaves_no_context_whole_that_had_it(tmp_path: Path) -> None:
    """Some clients send reasoning back until the next turn of a user begins."""
    lines = reasoned(["one", "two", "three", "four"], [[], ["one"], ["one", "two"], [None, None, None]])
    (item,) = read(tmp_path, lines)
    assert partial(item) == [False, True, True, True]
    assert reasoning(item) == [None, None, None, "four"]
    extra = json.loads(bytes(item.trajectory.messages[1].extra))  # type: ignore[arg-type]
    assert extra["unsent_reasoning"] == "one"


@pytest.mark.parametrize("own", ["one", None])
@pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
def test_reasoning_that_the_model_did_not_write_is_no_part_of_its_answer(
    tmp_path: Path, own: str | None, key: str
) -> None:
    lines = reasoned([own, "two", "three"], [[], ["else"], ["else", "two"]], key)
    (item,) = read(tmp_path, lines)
    assert reasoning(item) == [own, "two", "three"]
    assert partial(item) == [False, True, True]
    extra = json.loads(bytes(item.trajectory.messages[1].extra))  # type: ignore[arg-type]
    assert extra["sent_reasoning"] == "else"
    alone = contexts(read(tmp_path, lines[:1])[0])
    assert contexts(item)[:1] == alone
