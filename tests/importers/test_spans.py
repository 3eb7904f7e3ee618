"""OpenTelemetry and OpenInference spans: what is repeated is read once, what is no attempt says so."""

import json
from pathlib import Path
from typing import Any

import pytest

from curation.errors import UsageError
from curation.importers import formats, openinference, otel_genai
from curation.importers.face import Importer, Item, Parsed, Rejected
from curation.losses import Losses
from schemas.digests import decisions_of
from tests.importers.reading import accepted, calls
from tests.ingest.logs import import_file, new_store

ASK = {"role": "user", "parts": [{"type": "text", "content": "How many A17?"}]}
TOOL = {"type": "function", "name": "get_stock", "parameters": {"type": "object"}}


def call(identity: str, sku: str) -> dict[str, Any]:
    part = {"type": "tool_call", "id": identity, "name": "get_stock", "arguments": {"sku": sku}}
    return {"role": "assistant", "parts": [part], "finish_reason": "tool_call"}


def got(identity: str, said: Any) -> dict[str, Any]:
    return {"role": "tool", "parts": [{"type": "tool_call_response", "id": identity, "response": said}]}


def done(text: str = "Two.") -> dict[str, Any]:
    return {"role": "assistant", "parts": [{"type": "text", "content": text}], "finish_reason": "stop"}


def chat(number: int, asked: list[Any], said: Any, trace: str = "t1", **more: Any) -> dict[str, Any]:
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "m",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.response.id": f"{trace}-{number}",
        "gen_ai.response.finish_reasons": [said["finish_reason"]],
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 2,
        "gen_ai.system_instructions": json.dumps([{"type": "text", "content": "Be brief."}]),
        "gen_ai.input.messages": json.dumps(asked),
        "gen_ai.output.messages": json.dumps([said]),
        "gen_ai.tool.definitions": json.dumps([TOOL]),
        **more,
    }
    return span(number, "chat m", attributes, trace)


def span(number: int, name: str, attributes: dict[str, Any], trace: str = "t1", **more: Any) -> dict[str, Any]:
    context = {"traceId": trace, "spanId": f"{trace}-{number}"}
    return {
        "name": name,
        "spanContext": context,
        "attributes": attributes,
        "startTime": [1_700_000_000, number],
        **more,
    }


def tool(number: int, identity: str, result: Any, **more: Any) -> dict[str, Any]:
    told = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.id": identity, "gen_ai.tool.name": "get_stock"}
    return span(number, "execute_tool get_stock", {**told, "gen_ai.tool.call.result": result}, **more)


TRACE = [
    chat(1, [ASK], call("c1", "A18")),
    tool(2, "c1", "unknown_sku", status={"code": 2, "message": "unknown_sku"}),
    chat(3, [ASK, call("c1", "A18"), got("c1", "unknown_sku")], call("c2", "A17")),
    tool(4, "c2", {"stock": 2}),
    chat(5, [ASK, call("c1", "A18"), got("c1", "unknown_sku"), call("c2", "A17"), got("c2", {"stock": 2})], done()),
    span(0, "invoke_agent", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "clerk"}),
]


def read(folder: Path, data: bytes, importer: Importer = otel_genai.IMPORTER) -> list[Item]:
    path = folder / "spans"
    path.write_bytes(data)
    assert formats.detect(path)[0] is importer
    return list(importer.read(path))


def lines(spans: list[Any]) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in spans)


def roles(parsed: Parsed) -> str:
    return "".join(message.role[0] for message in parsed.trajectory.messages)


def typed(value: Any) -> dict[str, Any]:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case list():
            return {"arrayValue": {"values": [typed(each) for each in value]}}
        case dict():
            return {"kvlistValue": {"values": pairs(value)}}
    return {"stringValue": value}


def pairs(attributes: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": typed(value)} for key, value in attributes.items()]


def otlp(spans: list[Any]) -> dict[str, Any]:
    made = [
        {
            **each["spanContext"],
            "name": each["name"],
            "attributes": pairs(each["attributes"]),
            "startTimeUnixNano": str(each["startTime"][0] * 10**9 + each["startTime"][1]),
            "status": each.get("status", {}),
        }
        for each in spans
    ]
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": made}]}]}


@pytest.mark.parametrize(
    "data",
    [
        json.dumps(TRACE).encode(),
        json.dumps(TRACE, indent=2).encode(),
        lines(TRACE),
        lines(TRACE[::-1]),
        json.dumps(otlp(TRACE)).encode(),
        json.dumps(otlp(TRACE), indent=1).encode(),
        lines([otlp(TRACE[:3]), otlp(TRACE[3:])]),
        json.dumps({"spans": TRACE}).encode(),
    ],
)
def test_a_trace_is_one_attempt_however_it_is_written(tmp_path: Path, data: bytes) -> None:
    (item,) = read(tmp_path, data)
    parsed = accepted(item)
    trajectory = parsed.trajectory
    assert roles(parsed) == "suatata"
    assert [(each.id, each.arguments_text) for each in calls(trajectory)] == [
        ("c1", '{"sku":"A18"}'),
        ("c2", '{"sku":"A17"}'),
    ]
    assert [each.answers.by for each in trajectory.messages if each.answers] == ["id", "id"]
    assert trajectory.messages[3].error is not None
    assert trajectory.messages[3].error.message == "unknown_sku"
    assert trajectory.messages[5].content == '{"stock":2}'
    assert trajectory.usage is not None
    assert (trajectory.usage.prompt_tokens, trajectory.usage.completion_tokens) == (30, 6)
    assert (trajectory.conditions.agent, trajectory.conditions.model) == ("clerk", "m")
    assert len(decisions_of(trajectory)) == 3
    assert {fact.field: fact.value for fact in parsed.facts}["stop"] == "completed"
    assert [held.kind for held in parsed.objects] == ["tools"]


@pytest.mark.parametrize("depth", [1, 9, 60])
def test_spans_are_found_at_any_depth(tmp_path: Path, depth: int) -> None:
    held: Any = otlp(TRACE)
    for _ in range(depth):
        held = {"data": [held]}
    (found,) = map(accepted, read(tmp_path, json.dumps(held).encode()))
    (plain,) = map(accepted, read(tmp_path, json.dumps(otlp(TRACE)).encode()))
    assert found.trajectory == plain.trajectory


def test_answers_that_no_later_call_repeats_come_from_the_spans_of_tools(tmp_path: Path) -> None:
    (item,) = read(tmp_path, lines(TRACE[:2]))
    parsed = accepted(item)
    assert (roles(parsed), parsed.trajectory.messages[-1].content) == ("suat", "unknown_sku")
    assert parsed.trajectory.messages[-1].error is not None


def test_the_traces_of_one_conversation_are_one_attempt(tmp_path: Path) -> None:
    turn = {"gen_ai.conversation.id": "conv"}
    again = {"role": "user", "parts": [{"type": "text", "content": "Sure?"}]}
    spans = [chat(1, [ASK], done(), "t1", **turn), chat(2, [ASK, done(), again], done("Yes."), "t2", **turn)]
    (item,) = read(tmp_path, lines(spans))
    assert (roles(accepted(item)), accepted(item).key) == ("suaua", "conv")


def test_the_agents_of_one_trace_are_attempts_of_their_own(tmp_path: Path) -> None:
    other = {"role": "user", "parts": [{"type": "text", "content": "Sum up."}]}
    items = read(tmp_path, lines([*TRACE, chat(9, [other], done("2"))]))
    assert [(roles(accepted(item)), item.part) for item in items] == [("suatata", "t1"), ("sua", "t1#1")]


def test_two_traces_are_two_attempts_and_one_without_calls_of_a_model_is_refused(tmp_path: Path) -> None:
    embedding = span(1, "embeddings", {"gen_ai.operation.name": "embeddings"}, "t3")
    data = lines([*TRACE, chat(1, [ASK], done(), "t2"), embedding])
    first, second, refused = read(tmp_path, data)
    assert (accepted(first).part, accepted(second).part) == ("t1", "t2")
    assert isinstance(refused, Rejected)
    assert (refused.code, refused.detail) == ("not_a_record", "t3: no call of a chat model (spans: embeddings)")
    result = import_file(new_store(tmp_path), tmp_path / "spans")
    assert (result.accepted, result.quarantined) == (2, 1)


def test_a_call_that_the_provider_failed_is_a_stop_and_no_failure(tmp_path: Path) -> None:
    failed = span(7, "chat m", {"gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps([ASK])})
    failed |= {"status": {"code": 2, "message": "429 Too Many Requests"}}
    (item,) = read(tmp_path, lines([failed]))
    parsed = accepted(item)
    assert (roles(parsed), parsed.trajectory.stop_text) == ("u", "429 Too Many Requests")
    assert {fact.field: fact.value for fact in parsed.facts} == {"stop": "provider_error"}


EVENTS = [
    ("gen_ai.system.message", {"content": "Be brief."}),
    ("gen_ai.user.message", {"content": "How many A17?"}),
    (
        "gen_ai.assistant.message",
        {
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "get_stock", "arguments": '{"sku": "A17"}'}}
            ]
        },
    ),
    ("gen_ai.tool.message", {"id": "c1", "content": "2"}),
    ("gen_ai.choice", {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Two."}}),
]


@pytest.mark.parametrize("form", ["on the span", "as records", "details"])
def test_both_forms_of_events_are_read(tmp_path: Path, form: str) -> None:
    told = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    if form == "on the span":
        data = [span(1, "chat m", told, events=[{"name": name, "attributes": body} for name, body in EVENTS])]
    elif form == "details":
        structured = {
            "gen_ai.input.messages": [ASK, call("c1", "A17"), got("c1", "2")],
            "gen_ai.output.messages": [done()],
            "gen_ai.system_instructions": [{"type": "text", "content": "Be brief."}],
        }
        event = {"name": "gen_ai.client.inference.operation.details", "attributes": structured}
        data = [span(1, "chat m", told, events=[event])]
    else:
        records = [
            {
                "traceId": "t1",
                "spanId": "t1-1",
                "timeUnixNano": str(number),
                "eventName": name,
                "attributes": [],
                "body": typed(body),
            }
            for number, (name, body) in enumerate(EVENTS)
        ]
        data = [otlp([span(1, "chat m", told)]), {"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}]
    (item,) = read(tmp_path, lines(data))
    parsed = accepted(item)
    assert roles(parsed) == "suata"
    (made,) = calls(parsed.trajectory)
    assert made.id == "c1"
    assert parsed.trajectory.messages[-1].content == "Two."


def test_flattened_prompts_of_older_tracers_are_read(tmp_path: Path) -> None:
    told = {
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": "How many A17?",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.tool_calls.0.id": "c1",
        "gen_ai.completion.0.tool_calls.0.name": "get_stock",
        "gen_ai.completion.0.tool_calls.0.arguments": '{"sku": "A17"}',
        "gen_ai.usage.prompt_tokens": 5,
    }
    (item,) = read(tmp_path, lines([span(1, "openai.chat", told)]))
    (made,) = calls(accepted(item).trajectory)
    assert (made.name, made.arguments_text) == ("get_stock", '{"sku": "A17"}')


def message(index: int, **told: Any) -> dict[str, Any]:
    return {f"llm.input_messages.{index}.message.{key}": value for key, value in told.items()}


def test_openinference_keys_keep_the_text_of_arguments(tmp_path: Path) -> None:
    told = {
        "openinference.span.kind": "LLM",
        "session.id": "s1",
        "llm.model_name": "m",
        **message(0, role="user", content="How many A17?"),
        "llm.output_messages.0.message.role": "assistant",
        "llm.tools.0.tool.json_schema": json.dumps({"type": "function", "function": {"name": "get_stock"}}),
        "llm.token_count.prompt": 4,
    }
    for position in range(12):
        key = f"llm.output_messages.0.message.tool_calls.{position}.tool_call"
        told |= {f"{key}.id": f"c{position}", f"{key}.function.name": "get_stock"}
        told |= {f"{key}.function.arguments": f'{{ "sku": "A{position}"'}
    (item,) = read(tmp_path, lines([span(1, "ChatCompletion", told)]), openinference.IMPORTER)
    trajectory = accepted(item).trajectory
    assert [each.id for each in calls(trajectory)] == [f"c{position}" for position in range(12)]
    assert calls(trajectory)[0].arguments_text == '{ "sku": "A0"'
    assert calls(trajectory)[0].parse_error is not None
    assert trajectory.attempt is not None
    assert trajectory.attempt.run == "s1"


@pytest.mark.parametrize("turn", [1, -1])
def test_what_flattened_keys_say_below_a_plain_value_is_kept_and_counted(tmp_path: Path, turn: int) -> None:
    made = "llm.output_messages.0.message.tool_calls.0.tool_call"
    told = {
        **message(0, role="user", content="How many A17?"),
        "llm.input_messages.0.message.content.language": "en",
        "llm.input_messages.1": "a note",
        **message(1, role="user", content="Hurry."),
        "llm.output_messages.0.message.role": "assistant",
        f"{made}.function.name": "get_stock",
        f"{made}.function.name.first": "get",
    }
    told = {"openinference.span.kind": "LLM", **dict(list(told.items())[::turn])}
    (item,) = read(tmp_path, lines([span(1, "ChatCompletion", told)]), openinference.IMPORTER)
    first, second, last = accepted(item).trajectory.messages
    assert [first.content, second.content, last.tool_calls[0].name] == ["How many A17?", "Hurry.", "get_stock"]
    extras = [json.loads(bytes(each.extra)) for each in (first, second, last)]  # type: ignore[arg-type]
    named = {"arguments_form": "absent", "name.first": "get"}
    assert extras == [{"content.language": "en"}, {"": "a note"}, {"tool_calls": {"0": named}}]
    losses = Losses()
    losses.count(item)
    assert losses.extra == {"messages.content.language": 1, "messages.": 1, "messages.tool_calls": 1}


REAL = "openinference/js/packages/openinference-"


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("genai/test/__fixtures__/openinference_client_span_input_output_only.json", ["uata 97 52"]),
        ("genai/test/__fixtures__/openinference_client_span_tool_calls.json", ["uata 97 52"]),
        ("genai/test/__fixtures__/otel_genai_client_span_tool_calls.json", ["uata 97 52"]),
        ("genai/test/__fixtures__/otel_genai_deprecated_client_span_tool_calls.json", ["uata 97 52"]),
        ("genai/test/__fixtures__/otel_genai_tool_execution_span.json", ["spans: tool"]),
        ("vercel/test/__fixtures__/v6-spans/ai-embed-doEmbed.json", ["spans: ai.embed.doEmbed"]),
        ("vercel/test/__fixtures__/v6-spans/ai-embed.json", ["spans: ai.embed"]),
        ("vercel/test/__fixtures__/v6-spans/ai-generateObject-doGenerate.json", ["ua 63 156"]),
        ("vercel/test/__fixtures__/v6-spans/ai-generateObject.json", ["ua 63 156"]),
        ("vercel/test/__fixtures__/v6-spans/ai-generateText-doGenerate.json", ["ua 14 20", "suaua 50 9"]),
        ("vercel/test/__fixtures__/v6-spans/ai-generateText.json", ["ua 14 20", "suaua 50 9"]),
        ("vercel/test/__fixtures__/v6-spans/ai-streamText-doStream.json", ["ua 15 112"]),
        ("vercel/test/__fixtures__/v6-spans/ai-streamText.json", ["ua 15 112"]),
        *(
            (
                f"vercel/test/__fixtures__/v6-spans/{name}.json",
                ["ua 14 20", "suaua 50 9", "ua 63 156", "ua 15 112", "spans: ai.embed.doEmbed", "spans: ai.embed"],
            )
            for name in ("all-spans", "spans-by-operation")
        ),
    ],
)
def test_real_spans(logs: Path, name: str, found: list[str]) -> None:
    """What each fixture holds: the messages and the tokens that its own spans name, each response counted once."""
    path = logs / (REAL + name)
    importer, _ = formats.detect(path)
    shown = []
    for item in importer.read(path):
        if isinstance(item, Rejected):
            shown.append(item.detail.partition("(")[2].rstrip(")"))
        else:
            assert item.trajectory.usage is not None
            tokens = item.trajectory.usage
            shown.append(f"{roles(item)} {tokens.prompt_tokens} {tokens.completion_tokens}")
    assert shown == found


def test_schemas_and_summaries_are_no_logs(logs: Path) -> None:
    schemas = sorted((logs / "otel-genai").rglob("*.json"))
    assert len(schemas) == 5
    for path in schemas:
        with pytest.raises(UsageError, match="it is a JSON Schema: it says what a log looks like and holds none"):
            formats.detect(path)
    with pytest.raises(UsageError, match="not a log of a known format"):
        formats.detect(logs / (REAL + "vercel/test/__fixtures__/v6-spans/capture-results.json"))


@pytest.mark.parametrize("cut", range(40, 2_000, 97))
def test_torn_spans_are_refused_and_never_raise(tmp_path: Path, cut: int) -> None:
    data = lines(TRACE)
    path = tmp_path / "torn"
    path.write_bytes(data[:cut] + b"\n" + data[cut + 31 :])
    for importer in (otel_genai.IMPORTER, openinference.IMPORTER):
        assert all(isinstance(item, Parsed) or item.code for item in importer.read(path))


@pytest.mark.parametrize("reasons", [["stop", "filtered"], None])
def test_each_alternative_answer_has_its_own_end(tmp_path: Path, reasons: list[str] | None) -> None:
    said = [done(), {**done("Th"), "finish_reason": "filtered"}]
    more: dict[str, Any] = {"gen_ai.response.finish_reasons": reasons, "gen_ai.output.messages": json.dumps(said)}
    items = read(tmp_path, lines([chat(1, [ASK], done(), **more)]))
    assert [accepted(item).trajectory.stop_text for item in items] == ["stop", "filtered"]


@pytest.mark.parametrize("time", [10**400, -(10**400), [10**400, 0], [0, -(10**400)], str(10**400), "soon", None])
def test_a_time_that_is_none_orders_nothing_and_keeps_nothing_out(tmp_path: Path, time: Any) -> None:
    asked = [{"role": "user", "parts": [{"type": "text", "content": "Stock?"}]}]
    told = [chat(1, asked, done(), startTime=time), chat(2, asked, done(), "t2")]
    assert [accepted(item).trajectory.messages[-1].content for item in read(tmp_path, lines(told))] == ["Two.", "Two."]


def test_counts_beside_the_totals_are_kept_by_the_name_in_the_log(tmp_path: Path) -> None:
    counts = {"gen_ai.usage.cache_read.input_tokens": 8, "gen_ai.usage.total_tokens": 12}
    (item,) = read(tmp_path, lines([chat(1, [ASK], done(), **counts)]))  # type: ignore[arg-type]
    trajectory = accepted(item).trajectory
    assert (trajectory.usage and trajectory.usage.prompt_tokens) == 10
    assert json.loads(bytes(trajectory.extra)) == {"usage_details": {"gen_ai.usage.cache_read.input_tokens": 8}}  # type: ignore[arg-type]


def test_a_call_whose_content_was_not_recorded_is_said_to_be_missing(tmp_path: Path) -> None:
    bare = chat(2, [ASK], done())
    for key in [key for key in bare["attributes"] if "messages" in key or "instructions" in key]:
        del bare["attributes"][key]
    whole, partly = chat(1, [ASK], done(), "t0"), chat(1, [ASK], done())
    items = [accepted(item) for item in read(tmp_path, lines([whole, partly, bare]))]
    assert [item.warnings for item in items] == [(), ("content_not_captured",)]
