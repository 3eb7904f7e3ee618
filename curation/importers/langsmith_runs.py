"""Run trees of LangSmith: runs in any nesting, with what later updates say of them, and LangChain's messages."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from curation.clocks import iso_time
from curation.importers.model_calls import ModelCall
from curation.importers.span_histories import Histories
from curation.importers.span_messages import chat_messages, loaded, written
from curation.importers.token_counts import first_number, prompt_tokens, usage_details
from curation.importers.traces import ToolRun
from schemas.canonical import encode

_ROLES = {"human": "user", "ai": "assistant", "aimessagechunk": "assistant", "system": "system", "tool": "tool"}
_ROLES |= {"function": "function", "chat": "user", "developer": "system"}
_NOTHING: tuple[Any, ...] = (None, {}, [])
_THREADS = ("thread_id", "session_id", "conversation_id")
_SAMPLING = ("temperature", "top_p", "max_tokens", "max_completion_tokens", "stop", "tool_choice", "response_format")


def read_runs(value: Any) -> Iterator[dict[str, Any]]:
    """The runs of a file's value: of an upload, of a list, or one, each with its children. Raises nothing."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, list):
            pending += reversed(item)
        elif isinstance(item, dict):
            inner = [item[key] for key in ("post", "patch") if isinstance(item.get(key), list)]
            if inner:
                pending += reversed(inner)
            elif is_run(item):
                yield item
                pending.append(item.get("child_runs"))


def is_run(value: Any) -> bool:
    """Whether a value is a run, or an update of one."""
    return isinstance(value, dict) and not {"dotted_order", "run_type"}.isdisjoint(value) and "trace_id" in value


def names_of(run: Mapping[str, Any]) -> list[str]:
    """The names that tie a run to others: of its conversation and its trace."""
    thread = thread_of(run)
    return [*([f"thread:{thread}"] if thread else []), f"trace:{run.get('trace_id')}"]


def merge(runs: Sequence[Mapping[str, Any]]) -> tuple[list[dict[str, Any]], int]:
    """Runs in their order, each with what its updates say, and how many stand there again.

    An update may have no id, but a place in the tree. What says something else under an id that is known is a run of
    its own, and so is an update whose place several runs share.
    """
    by_id: dict[str, list[dict[str, Any]]] = defaultdict(list)
    by_place: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    merged: list[dict[str, Any]] = []
    repeated = 0
    for run in sorted(runs, key=lambda run: not run.get("id")):
        place = str(run.get("trace_id")), str(run.get("dotted_order"))
        known = by_id[str(run["id"])][-1:] if run.get("id") else by_place[place]
        if len(known) != 1 or not _agree(known[0], run):
            merged.append(dict(run))
            by_place[place].append(merged[-1])
            if run.get("id"):
                by_id[str(run["id"])].append(merged[-1])
            continue
        repeated += run == known[0]
        known[0].update((name, value) for name, value in run.items() if value not in _NOTHING or name not in known[0])
    return sorted(merged, key=lambda run: str(run.get("dotted_order") or "")), repeated


def _agree(run: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two records can be of one run: what both say of its inputs and outputs is the same."""
    said = ((run.get(key), other.get(key)) for key in ("run_type", "inputs", "outputs"))
    return all(one in _NOTHING or two in _NOTHING or one == two for one, two in said)


def thread_of(run: Mapping[str, Any]) -> str | None:
    """The conversation that a run says it is a part of."""
    metadata = _metadata(run)
    return next((str(metadata[key]) for key in _THREADS if isinstance(metadata.get(key), str | int)), None)


def read_call(run: Mapping[str, Any], histories: Histories) -> ModelCall:
    """The call of a run of type ``llm``; ``histories`` are those of its trace as far as they were read."""
    inputs, outputs = _object(run, "inputs"), _object(run, "outputs")
    settings = _settings(run) | inputs
    answers, finishes = _answers(outputs)
    usage = _usage(outputs)
    reasoning = _inner(usage, ("output_token_details", "completion_tokens_details"), ("reasoning", "reasoning_tokens"))
    error = run.get("error")
    model = (
        outputs.get("model")
        or settings.get("model")
        or settings.get("model_name")
        or _metadata(run).get("ls_model_name")
    )
    tools = settings.get("tools")
    return ModelCall(
        messages=_messages(inputs, histories),
        answers=answers,
        id=outputs["id"] if isinstance(outputs.get("id"), str) else None,
        model=model if isinstance(model, str) else None,
        sampling={key: settings[key] for key in _SAMPLING if settings.get(key) is not None},
        seed=settings["seed"] if type(settings.get("seed")) is int else None,
        tools=tools if isinstance(tools, list) else None,
        prompt_tokens=prompt_tokens(usage),
        completion_tokens=first_number(usage, "output_tokens", "completion_tokens"),
        usage_details=usage_details(usage),
        cost=next((usage[key] for key in ("total_cost", "cost") if type(usage.get(key)) in (int, float)), None),
        finishes=finishes,
        error=None if answers or not error else written(error),
        time=iso_time(run.get("start_time")),
        reasoned=bool(reasoning) and not any(said.get("reasoning_content") for answer in answers for said in answer),
    )


def read_tool(run: Mapping[str, Any]) -> ToolRun:
    """The execution of a run of type ``tool``."""
    output = _object(run, "outputs").get("output", run.get("outputs"))
    said = chat_message(output) if isinstance(output, dict) and _is_message(output) else {"content": output}
    given = (said.get("tool_call_id"), _object(run, "extra").get("tool_call_id"), _object(run, "inputs").get("id"))
    identity = next((name for name in given if isinstance(name, str)), None)
    name, error = run.get("name"), run.get("error")
    content = said.get("content")
    return ToolRun(
        identity,
        name if isinstance(name, str) else None,
        content if isinstance(content, str) or content is None else encode(content).decode(),
        written(error) if error else None,
    )


def chat_message(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message of LangChain, serialised in one of its ways, or of the OpenAI chat shape, as the latter."""
    told = message.get("kwargs", message.get("data", message))
    told = told if isinstance(told, dict) else {}
    if "role" in told and "type" not in told and "kwargs" not in message:
        return next(chat_messages(told), {"role": None})
    identity = message.get("id")
    kind = str(identity[-1]) if isinstance(identity, list) and identity else ""
    kind = kind.removesuffix("Chunk").removesuffix("Message") or str(told.get("type") or message.get("type"))
    made = next(chat_messages({"role": _ROLES.get(kind.lower(), kind.lower()), "content": told.get("content")}))
    more = told.get("additional_kwargs")
    more = more if isinstance(more, dict) else {}
    if made["role"] == "assistant" and (calls := _calls(told, more)):
        made["tool_calls"] = calls
    if isinstance(more.get("function_call"), dict):
        made["function_call"] = more["function_call"]
    for source, key in (("reasoning_content", "reasoning_content"), ("refusal", "refusal")):
        if isinstance(more.get(source), str):
            made[key] = more[source]
    for key in ("tool_call_id", "name"):
        if isinstance(told.get(key), str) and (key == "tool_call_id" or made["role"] in ("tool", "function")):
            made[key] = told[key]
    if told.get("status") == "error":
        made["is_error"] = True
    return made


def _calls(told: Mapping[str, Any], more: Mapping[str, Any]) -> list[Any]:
    """The calls as the provider gave them, where the log holds that; else as LangChain read them, broken ones too."""
    if isinstance(more.get("tool_calls"), list) and more["tool_calls"]:
        return list(more["tool_calls"])
    made = []
    for call in [*_objects(told.get("tool_calls")), *_objects(told.get("invalid_tool_calls"))]:
        function = {"name": call.get("name") or "", "arguments": call.get("args", "")}
        made.append({"id": call.get("id"), "type": "function", "function": function})
    return made


def _messages(inputs: Mapping[str, Any], histories: Histories) -> list[dict[str, Any]]:
    messages = inputs.get("messages", inputs.get("input"))
    while isinstance(messages, list) and len(messages) == 1 and isinstance(messages[0], list):
        messages = messages[0]
    if isinstance(messages, list):
        return [histories.make(message, chat_message) for message in messages if isinstance(message, dict)]
    prompts = inputs.get("prompts", messages)
    texts = prompts if isinstance(prompts, list) else [prompts]
    return [{"role": "user", "content": text} for text in texts if isinstance(text, str)]


def _answers(outputs: Mapping[str, Any]) -> tuple[list[list[dict[str, Any]]], list[str | None]]:
    """The alternative answers of a run, and why each ended."""
    found: list[dict[str, Any]] = []
    ended: list[Any] = []
    if isinstance(outputs.get("choices"), list):
        choices = [choice for choice in _objects(outputs["choices"]) if isinstance(choice.get("message"), dict)]
        found = [chat_message({"role": "assistant", **choice["message"]}) for choice in choices]
        ended = [choice.get("finish_reason") for choice in choices]
    elif isinstance(outputs.get("generations"), list):
        for generation in _objects(_flat(outputs["generations"])):
            message = generation.get("message")
            text = {"role": "assistant", "content": written(generation.get("text"))}
            found.append(chat_message(message) if isinstance(message, dict) else text)
            ended.append(_inner(generation, ("generation_info",), ("finish_reason", "stop_reason")))
    elif isinstance(outputs.get("message"), dict):
        found = [chat_message(outputs["message"])]
    elif _is_message(outputs):
        found = [chat_message(outputs)]
    return [[message] for message in found], [each if isinstance(each, str) else None for each in ended]


def _is_message(value: Mapping[str, Any]) -> bool:
    return (
        "role" in value
        or "kwargs" in value
        or (str(value.get("type")) in _ROLES and ("content" in value or "data" in value))
    )


def _usage(outputs: Mapping[str, Any]) -> Mapping[str, Any]:
    for place in (outputs, _object(outputs, "llm_output"), _object(_object(outputs, "message"), "kwargs")):
        for key in ("usage_metadata", "usage", "token_usage"):
            if isinstance(place.get(key), dict):
                return dict(place[key])
    for generation in _objects(_flat(outputs.get("generations"))):
        message = _object(generation, "message")
        told = message.get("kwargs", message)
        if isinstance(told, dict) and isinstance(told.get("usage_metadata"), dict):
            return dict(told["usage_metadata"])
    return {}


def _flat(value: Any) -> Any:
    return value[0] if isinstance(value, list) and value and isinstance(value[0], list) else value


def _settings(run: Mapping[str, Any]) -> dict[str, Any]:
    extra = _object(run, "extra")
    return {**_object(_metadata(run), "ls_invocation_params"), **_object(extra, "invocation_params")}


def _metadata(run: Mapping[str, Any]) -> dict[str, Any]:
    return _object(_object(run, "extra"), "metadata")


def _object(place: Mapping[str, Any], key: str) -> dict[str, Any]:
    found = loaded(place.get(key))
    return found if isinstance(found, dict) else {}


def _objects(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _inner(place: Mapping[str, Any], outer: tuple[str, ...], keys: tuple[str, ...]) -> Any:
    return next(
        (inner[key] for name in outer for inner in [_object(place, name)] for key in keys if inner.get(key)), None
    )
