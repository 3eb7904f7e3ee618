"""The call of a model that a span tells of: by the conventions of OpenTelemetry, of OpenInference, or of the AI SDK."""

from collections.abc import Mapping
from typing import Any

from curation.importers.model_calls import ModelCall
from curation.importers.span_histories import Histories
from curation.importers.span_messages import chat_messages, loaded, written
from curation.importers.spans import Span, nest
from curation.importers.token_counts import usage_details
from curation.importers.traces import ToolRun

_CHATS = frozenset(("chat", "text_completion", "generate_content", "completion"))
_OUTER = frozenset(("ai.generateText", "ai.streamText", "ai.generateObject", "ai.streamObject"))
_INNER = (".doGenerate", ".doStream")
_SESSIONS = (
    "gen_ai.conversation.id",
    "session.id",
    "langfuse.session.id",
    "traceloop.association.properties.session_id",
)
_SAMPLING = ("temperature", "top_p", "top_k", "max_tokens", "frequency_penalty", "presence_penalty", "stop_sequences")
_OLD_ROLES = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
_DETAILS = "gen_ai.client.inference.operation.details"


def is_openinference(span: Span) -> bool:
    """Whether a span follows the conventions of OpenInference."""
    return any(key.startswith(("openinference.", "llm.")) for key in span.attributes)


def kind_of(span: Span) -> str:
    """What a span tells of: ``chat``, ``tool``, or the log's own word for anything else."""
    told = span.attributes
    if (kind := told.get("openinference.span.kind")) is not None:
        return {"LLM": "chat", "TOOL": "tool"}.get(str(kind), str(kind).lower())
    operation = str(told.get("ai.operationId") or "")
    if operation:
        inner = operation.endswith(_INNER) and not operation.startswith("ai.embed")
        return "chat" if inner or operation in _OUTER else "tool" if operation == "ai.toolCall" else operation
    name = told.get("gen_ai.operation.name")
    if name is not None:
        return "chat" if str(name) in _CHATS else "tool" if name == "execute_tool" else str(name)
    if any(event in _OLD_ROLES or event in (_DETAILS, "gen_ai.choice") for event, _ in span.events):
        return "chat"
    known = any(key.startswith(("gen_ai.prompt", "gen_ai.completion", "llm.input_messages")) for key in told)
    return "chat" if known else str(told.get("traceloop.span.kind") or span.name or "span")


def is_outer(span: Span) -> bool:
    """Whether a span of the AI SDK is the operation around the calls of a model, and no call itself."""
    return span.attributes.get("ai.operationId") in _OUTER


def names_of(span: Span) -> list[str]:
    """The names that tie a span to others: of its conversation, its trace, and the response it tells of."""
    session, response = session_of(span), _response_id(span.attributes)
    named = (("session", session), ("trace", span.trace), ("response", response))
    return [f"{kind}:{name}" for kind, name in named if name]


def session_of(span: Span) -> str | None:
    """The conversation that a span says it is a part of."""
    return _text(span.attributes, *_SESSIONS)


def read_call(span: Span, histories: Histories) -> ModelCall:
    """The call that a span of kind ``chat`` tells of; ``histories`` are those of its trace as far as they were read."""
    told = _with_details(span)
    asked, answers = _openinference(told, histories) if is_openinference(span) else _gen_ai(told, span, histories)
    failed = span.error or _text(told, "error.type")
    return ModelCall(
        messages=asked,
        answers=answers,
        id=_response_id(told),
        model=_text(told, "gen_ai.response.model", "gen_ai.request.model", "llm.model_name", "ai.model.id"),
        sampling=_sampling(told),
        seed=next((told[key] for key in ("gen_ai.request.seed", "seed") if type(told.get(key)) is int), None),
        tools=_tools(told),
        prompt_tokens=_number(
            told,
            "gen_ai.usage.input_tokens",
            "gen_ai.usage.prompt_tokens",
            "llm.token_count.prompt",
            "ai.usage.promptTokens",
            "ai.usage.inputTokens",
        ),
        completion_tokens=_number(
            told,
            "gen_ai.usage.output_tokens",
            "gen_ai.usage.completion_tokens",
            "llm.token_count.completion",
            "ai.usage.completionTokens",
            "ai.usage.outputTokens",
        ),
        usage_details={name: count for start in _COUNTS for name, count in usage_details(told, start).items()},
        cost=next(
            (told[key] for key in ("llm.cost.total", "gen_ai.usage.cost") if type(told.get(key)) in (int, float)), None
        ),
        finishes=_finishes(told, span),
        error=None if answers else failed,
        status=_number(told, "http.response.status_code", "http.status_code"),
        time=span.time,
        reasoned=_reasoned(told, answers),
    )


def read_tool(span: Span) -> ToolRun:
    """The execution that a span of kind ``tool`` tells of."""
    told = span.attributes
    output = next(
        (
            told[key]
            for key in ("gen_ai.tool.call.result", "output.value", "ai.toolCall.result", "output")
            if key in told
        ),
        None,
    )
    return ToolRun(
        _text(told, "gen_ai.tool.call.id", "tool_call.id", "tool.call.id", "ai.toolCall.id"),
        _text(told, "gen_ai.tool.name", "tool.name", "ai.toolCall.name"),
        written(output),
        span.error,
    )


def _openinference(
    told: Mapping[str, Any], histories: Histories
) -> tuple[list[dict[str, Any]], list[list[dict[str, Any]]]]:
    messages = histories.read_flattened(told, "llm.input_messages")
    answers = [[message] for message in histories.read_flattened(told, "llm.output_messages")]
    given = told.get("input.value")
    return messages or histories.read(given) or _user(given), answers or _answer(told.get("output.value"))


def _gen_ai(
    told: Mapping[str, Any], span: Span, histories: Histories
) -> tuple[list[dict[str, Any]], list[list[dict[str, Any]]]]:
    system = loaded(told.get("gen_ai.system_instructions"))
    messages = list(chat_messages({"role": "system", "parts": system})) if isinstance(system, list) else []
    asked = next((found for key in _ASKED if (found := histories.read(told.get(key)))), None)
    if asked is None:
        asked = histories.read_flattened(told, "gen_ai.prompt")
    answers = _outputs(told.get("gen_ai.output.messages"))
    answers = answers or [[message] for message in histories.read_flattened(told, "gen_ai.completion")]
    if not asked and not answers:
        asked, answers = _old_events(span)
    answers = answers or _sdk_answer(told) or _answer(told.get("gen_ai.completion")) or _answer(told.get("output"))
    return [*messages, *asked], answers


_COUNTS = ("gen_ai.usage.", "llm.token_count.", "ai.usage.")
_ASKED = ("gen_ai.input.messages", "gen_ai.prompt", "ai.prompt.messages", "ai.prompt", "input")


def _with_details(span: Span) -> Mapping[str, Any]:
    """The attributes, and those of the event that holds messages where they are not on the span."""
    told = dict(span.attributes)
    for name, attributes in span.events:
        if name in (_DETAILS, "gen_ai.content.prompt", "gen_ai.content.completion"):
            told |= {key: value for key, value in attributes.items() if key not in told}
    return told


def _old_events(span: Span) -> tuple[list[dict[str, Any]], list[list[dict[str, Any]]]]:
    """Messages of the event form that came before 1.37: one event each, and one for each choice."""
    asked, answers = [], []
    for name, told in span.events:
        body = nest(told, "message") if name == "gen_ai.choice" and "message" not in told else told.get("message")
        said = loaded(body) if name == "gen_ai.choice" else told
        said = said if isinstance(said, dict) else {}
        message = {"role": _OLD_ROLES.get(name, "assistant"), "content": loaded_parts(said.get("content"))}
        calls = loaded(said.get("tool_calls"))
        if isinstance(calls, list) and calls:
            message["tool_calls"] = calls
        if isinstance(said.get("id"), str) and name == "gen_ai.tool.message":
            message["tool_call_id"] = said["id"]
        if name in _OLD_ROLES:
            asked.append(message)
        elif name == "gen_ai.choice":
            answers.append([message])
    return asked, answers


def loaded_parts(content: Any) -> Any:
    """Content that is parts, or text; any other value as its text."""
    return content if isinstance(content, list) else written(content)


def _outputs(value: Any) -> list[list[dict[str, Any]]]:
    value = loaded(value)
    return [list(chat_messages(entry)) for entry in _objects(value)]


def _answer(value: Any) -> list[list[dict[str, Any]]]:
    """The answer of a span that holds only what its tracer was given: a response, a text, or JSON of one."""
    value = loaded(value)
    match value:
        case {"choices": [*choices]}:
            found = [choice["message"] for choice in _objects(choices) if isinstance(choice.get("message"), dict)]
            return [list(chat_messages(message)) for message in found]
        case {"role": "assistant"}:
            return [list(chat_messages(value))]
        case {"text": str(text)} | str(text) if text:
            return [[{"role": "assistant", "content": text}]]
        case [{"role": _}, *_]:
            return [list(chat_messages(entry)) for entry in _objects(value)]
    return []


def _sdk_answer(told: Mapping[str, Any]) -> list[list[dict[str, Any]]]:
    text = told.get("ai.response.text", told.get("ai.response.object"))
    calls = loaded(told.get("ai.response.toolCalls"))
    if text is None and not calls:
        return []
    parts = [{"type": "text", "text": text}] if isinstance(text, str) and text else []
    if isinstance(told.get("ai.response.reasoning"), str):
        parts.insert(0, {"type": "reasoning", "text": told["ai.response.reasoning"]})
    parts += [{**call, "type": "tool-call"} for call in _objects(calls)]
    return [list(chat_messages({"role": "assistant", "content": parts}))]


def _user(value: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": value}] if isinstance(value, str) and value else []


def _objects(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _tools(told: Mapping[str, Any]) -> list[Any] | None:
    found = loaded(told.get("gen_ai.tool.definitions"))
    if isinstance(found, list):
        return found
    tools = nest(told, "llm.tools") or told.get("ai.prompt.tools")
    if not isinstance(tools, list) or not tools:
        return None
    return [_tool(entry) for entry in tools]


def _tool(entry: Any) -> Any:
    """A tool as the log offers it: its schema may be JSON text, in an object of its own."""
    entry = loaded(entry)
    tool = entry.get("tool", entry) if isinstance(entry, dict) else entry
    if not isinstance(tool, dict):
        return entry
    schema = loaded(tool.get("json_schema"))
    if isinstance(schema, dict) and "parameters" not in tool:
        return schema
    if "inputSchema" in tool:
        kept = {key: tool[key] for key in ("name", "description") if key in tool}
        return {"type": "function", "function": {**kept, "parameters": loaded(tool["inputSchema"])}}
    return tool


def _sampling(told: Mapping[str, Any]) -> dict[str, Any]:
    found = {name: told[f"gen_ai.request.{name}"] for name in _SAMPLING if f"gen_ai.request.{name}" in told}
    given = loaded(told.get("llm.invocation_parameters"))
    if isinstance(given, dict):
        found |= {
            key: value
            for key, value in given.items()
            if key not in ("model", "messages", "tools") and value is not None
        }
    return found


def _finishes(told: Mapping[str, Any], span: Span) -> list[str | None]:
    """Why each of the answers ended, as far as the span says it."""
    found: list[Any] = []
    reasons = loaded(told.get("gen_ai.response.finish_reasons"))
    if isinstance(reasons, list):
        found = reasons
    for key in ("gen_ai.output.messages", "output.value", "gen_ai.completion"):
        if any(isinstance(each, str) for each in found):
            break
        said = loaded(told.get(key))
        said = said["choices"] if isinstance(said, dict) and isinstance(said.get("choices"), list) else said
        entries = said if isinstance(said, list) else [said]
        found = [each.get("finish_reason") if isinstance(each, dict) else None for each in entries]
    if not any(isinstance(each, str) for each in found):
        found = [event.get("finish_reason") for name, event in span.events if name == "gen_ai.choice"]
    if not any(isinstance(each, str) for each in found):
        found = [told.get("ai.response.finishReason", told.get("llm.finish_reason"))]
    return [each if isinstance(each, str) else None for each in found]


def _reasoned(told: Mapping[str, Any], answers: list[list[dict[str, Any]]]) -> bool:
    tokens = _number(
        told,
        "gen_ai.usage.reasoning_tokens",
        "llm.token_count.completion_details.reasoning",
        "ai.usage.reasoningTokens",
    )
    return bool(tokens) and not any(message.get("reasoning_content") for answer in answers for message in answer)


def _response_id(told: Mapping[str, Any]) -> str | None:
    found = _text(told, "gen_ai.response.id", "ai.response.id")
    metadata = loaded(told.get("ai.response.providerMetadata")) if found is None else None
    providers = metadata.values() if isinstance(metadata, dict) else ()
    named = (entry.get("responseId") for entry in providers if isinstance(entry, dict))
    return found or next((name for name in named if isinstance(name, str)), None)


def _number(told: Mapping[str, Any], *keys: str) -> int | None:
    return next((told[key] for key in keys if type(told.get(key)) is int), None)


def _text(told: Mapping[str, Any], *keys: str) -> str | None:
    return next((told[key] for key in keys if isinstance(told.get(key), str) and told[key]), None)
