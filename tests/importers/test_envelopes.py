"""Proxies, gateways and tracers put the same request and response under names of their own."""

import json
from pathlib import Path
from typing import Any

import pytest

from curation.importers import call_logs, formats
from tests.importers.provider_streams import as_text, chat_chunks
from tests.importers.reading import accepted, write
from tests.importers.test_call_logs import TOOLS, facts, read, roles, run_lines


@pytest.mark.parametrize(
    "wrap",
    [
        lambda each: {"request_body": json.dumps(each["request"]), "response_body": json.dumps(each["response"])},
        lambda each: {"input": each["request"]["messages"], "output": each["response"]["choices"][0]["message"]},
        lambda each: {"input": each["request"], "output": each["response"]},
        lambda each: {**each["request"], "response": each["response"], "metadata": {"session_id": "s"}},
        lambda each: {
            "request": {"method": "POST", "body": each["request"]},
            "response": {"status": 200, "body": each["response"]},
        },
    ],
)
def test_proxies_wrap_calls_in_their_own_ways(tmp_path: Path, wrap: Any) -> None:
    lines = [wrap(each) for each in run_lines("A", 0)]
    (item,) = read(tmp_path, lines)
    assert roles(item) == "uata"
    data = (tmp_path / "calls.jsonl").read_bytes()
    assert call_logs.sniff(data)
    (tmp_path / "list.json").write_text(json.dumps(lines, indent=1))
    (listed,) = call_logs.IMPORTER.read(tmp_path / "list.json")
    assert accepted(listed).trajectory == item.trajectory
    assert call_logs.sniff((tmp_path / "list.json").read_bytes())


@pytest.mark.parametrize("layers", [1, 7, 40])
def test_a_body_is_found_in_however_many_wrappings(tmp_path: Path, layers: int) -> None:
    lines = run_lines("A", 0)
    straight = read(tmp_path, lines)
    for each in lines:
        for name in ("request", "response"):
            for layer in range(layers):
                each[name] = {"body": json.dumps(each[name]) if layer % 10 == 1 else each[name]}
    assert [parsed.trajectory for parsed in read(tmp_path, lines)] == [parsed.trajectory for parsed in straight]


def sent(entry: dict[str, Any]) -> str:
    """The response of a line as the text of the stream that it was."""
    choice = entry["response"]["choices"][0]
    return as_text(chat_chunks(choice["message"], choice["finish_reason"], entry["response"]["id"]))


def spend_row(entry: dict[str, Any]) -> dict[str, Any]:
    asked, answer = entry["request"], entry["response"]
    told = {"call_type": "acompletion", "request_id": answer["id"], "spend": 0.1, "startTime": "2026-01-01T00:00:00Z"}
    return {**told, "session_id": answer["id"], "messages": {}, "response": answer, "proxy_server_request": asked}


def payload(entry: dict[str, Any]) -> dict[str, Any]:
    asked, answer = entry["request"], entry["response"]
    parameters = {key: value for key, value in asked.items() if key not in ("messages", "model")}
    told = {"call_type": "acompletion", "trace_id": answer["id"], "status": "success", "response_cost": 0.1}
    return {
        **told,
        "startTime": 1.7e9,
        "messages": asked["messages"],
        "response": answer,
        "model_parameters": parameters,
    }


def generation(entry: dict[str, Any]) -> dict[str, Any]:
    asked, answer = entry["request"], entry["response"]
    told = {"type": "GENERATION", "traceId": answer["id"], "startTime": "2026-01-01T00:00:00Z", "totalCost": 0.1}
    given = {"messages": asked["messages"], "tools": asked["tools"]}
    usage = {"input": 10, "output": 2}
    return {**told, "id": "g", "input": given, "output": answer["choices"][0]["message"], "usageDetails": usage}


def browsed(entry: dict[str, Any]) -> dict[str, Any]:
    asked = {"method": "POST", "postData": {"mimeType": "application/json", "text": json.dumps(entry["request"])}}
    answer = {"status": 200, "content": {"mimeType": "application/json", "text": json.dumps(entry["response"])}}
    return {"startedDateTime": "2026-01-01T00:00:00Z", "time": 12, "request": asked, "response": answer}


def property_row(entry: dict[str, Any]) -> dict[str, Any]:
    told = {"request_properties": {"Helicone-Session-Id": "s"}, "response_status": 200, "cost": 0.1}
    times = {"request_created_at": "2026-01-01T00:00:00Z"}
    return {**told, **times, "request_body": entry["request"], "response_body": entry["response"]}


def proxied(entry: dict[str, Any]) -> dict[str, Any]:
    answer = {"statusCode": 200, "bodyText": "", "streamingChunks": sent(entry).splitlines(keepends=True)}
    return {"timestamp": "2026-01-01T00:00:00Z", "endpoint": "/v1", "body": entry["request"], "response": answer}


def tapped(entry: dict[str, Any]) -> dict[str, Any]:
    choice = entry["response"]["choices"][0]
    chunks = chat_chunks(choice["message"], choice["finish_reason"], entry["response"]["id"])
    events = [{"event": "message", "data": each} for each in chunks]
    asked = {"method": "POST", "path": "/v1", "headers": {"x-session-id": "s"}, "body": entry["request"]}
    answer = {"status": 200, "body": None, "sse_events": events}
    return {"timestamp": "2026-01-01T00:00:00Z", "request": asked, "response": answer}


def invoked(entry: dict[str, Any]) -> dict[str, Any]:
    asked = {"inputContentType": "application/json", "inputBodyJson": entry["request"], "inputTokenCount": 10}
    answer = {"outputContentType": "application/json", "outputBodyJson": entry["response"], "outputTokenCount": 2}
    told = {"schemaType": "ModelInvocationLog", "timestamp": "2026-01-01T00:00:00Z", "requestId": "q", "modelId": "m"}
    return {**told, "input": asked, "output": answer}


def stored(entry: dict[str, Any]) -> dict[str, Any]:
    return {"object": "chat.completion", **entry["response"], "messages": entry["request"]["messages"], "tools": TOOLS}


@pytest.mark.parametrize(
    "wrap", [spend_row, payload, generation, browsed, property_row, proxied, tapped, invoked, stored]
)
def test_what_gateways_and_tracers_keep_is_read_alike(tmp_path: Path, wrap: Any) -> None:
    lines = [wrap(each) for each in run_lines("AB", 0)]
    path = write(tmp_path / "calls.jsonl", lines)
    assert formats.detect(path)[0].name == "model-calls"
    (item,) = read(tmp_path, lines)
    (plain,) = read(tmp_path, run_lines("AB", 0))
    assert item.trajectory.messages == plain.trajectory.messages
    assert item.trajectory.conditions.tools == plain.trajectory.conditions.tools
    assert facts(item)["stop"] in ("completed", "unknown")
    assert item.trajectory.usage is not None
    assert (item.trajectory.usage.prompt_tokens, item.trajectory.usage.completion_tokens) == (30, 6)
    assert "clocks" in facts(item)


def test_a_first_line_that_is_longer_than_what_is_looked_at_is_known_by_its_request(tmp_path: Path) -> None:
    lines = run_lines("AB", 0)
    for each in lines:
        each["request"]["messages"] = [
            {"role": "system", "content": "x" * formats.HEAD_BYTES},
            *each["request"]["messages"],
        ]
    path = write(tmp_path / "calls.jsonl", lines)
    assert formats.detect(path)[0].name == "model-calls"
    assert not call_logs.sniff(b'{"messages": [{"role": "user", "content": "' + b"x" * 100)


def test_text_of_a_proxy_is_no_answer_of_a_model(tmp_path: Path) -> None:
    first, second = run_lines("A", 0)
    for broken in (
        {"response": {"status": 502, "body": "<html>Bad Gateway</html>"}},
        {"response": "<html>Bad Gateway</html>", "status_code": 502},
        {"response": {"status": 200, "headers": {}, "body": "event: mess"}},
    ):
        (item,) = read(tmp_path, [first, {**second, **broken}])
        assert (roles(item), facts(item)["stop"]) == (
            "uat",
            "provider_error" if "mess" not in str(broken) else "unknown",
        )
        assert item.trajectory.stop_text


@pytest.mark.parametrize(
    ("failed", "text"),
    [
        ({"call_type": "acompletion", "status": "failure", "error_str": "Timeout", "response": None}, "Timeout"),
        ({"call_type": "acompletion", "response": {}, "error_information": {"error_code": "429"}}, "HTTP 429"),
        ({"call_type": "acompletion", "response": "", "error_str": "RateLimitError"}, "RateLimitError"),
    ],
)
def test_a_failure_that_a_gateway_logs_ends_a_run_with_its_cause(
    tmp_path: Path, failed: dict[str, Any], text: str
) -> None:
    first, second = (payload(each) for each in run_lines("A", 0))
    (item,) = read(tmp_path, [first, {**second, **failed}])
    assert (roles(item), facts(item)["stop"], item.trajectory.stop_text) == ("uat", "provider_error", text)
    assert "outcome" not in facts(item)
