import json
from pathlib import Path
from typing import Any

import pytest

from curation.importers import call_logs
from curation.importers.face import Parsed, Rejected
from schemas.digests import decisions_of
from tests.importers.reading import accepted, answer, ask, call, write
from tests.ingest.logs import import_file, new_store

USER = {"role": "user", "content": "How many A17 are left?"}
SAID = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "There a"}]}
CUT = {"reason": "max_output_tokens"}
TOOLS = [{"type": "function", "function": {"name": "get_stock", "parameters": {"type": "object"}}}]


def line(history: list[Any], reply: Any, number: int = 0, **more: Any) -> dict[str, Any]:
    response = {
        "id": f"r{number}",
        "created": 1_700_000_000 + number,
        "model": "m-1",
        "choices": [{"index": 0, "message": reply, "finish_reason": "tool_calls" if "tool_calls" in reply else "stop"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 2},
    }
    request = {"model": "m", "messages": history, "tools": TOOLS, "temperature": 0}
    return {"request": request, "response": response, **more}


def run_lines(skus: str, first: int, **more: Any) -> list[dict[str, Any]]:
    """A run that looks up one thing a call, the history growing by two messages a line, then says so."""
    history: list[Any] = [USER]
    lines = []
    for number, sku in enumerate(skus, first):
        reply = ask(call(json.dumps({"sku": sku}), call_id=f"c{number}"))
        lines.append(line(list(history), reply, number, **more))
        history += [reply, answer(f"{sku}: 2", f"c{number}")]
    lines.append(line(history, {"role": "assistant", "content": "Done."}, first + len(skus), **more))
    return lines


def edited(entry: dict[str, Any], at: int, number: int) -> dict[str, Any]:
    """The same request with another message in its middle."""
    history = list(entry["request"]["messages"])
    history[at] = {**history[at], "content": "another answer"}
    return line(history, {"role": "assistant", "content": "Oh."}, number)


def read(folder: Path, lines: list[Any]) -> list[Parsed]:
    return [accepted(item) for item in call_logs.IMPORTER.read(write(folder / "calls.jsonl", lines))]


def facts(parsed: Parsed) -> dict[str, Any]:
    return {fact.field: fact.value for fact in parsed.facts}


def roles(parsed: Parsed) -> str:
    return "".join(message.role[0] for message in parsed.trajectory.messages)


def eight_lines(**more: Any) -> list[dict[str, Any]]:
    five = run_lines("ABCD", 0, **more)
    return [*five, *run_lines("X", 10, **({} if not more else {"session_id": "other"})), edited(five[3], 2, 20) | more]


@pytest.mark.parametrize("session", [None, "s1"])
def test_call_lines_are_runs_and_branches(tmp_path: Path, session: str | None) -> None:
    """Five lines of one run, two of another with the same first message, one with an edited history."""
    lines = eight_lines(**({} if session is None else {"session_id": session}))
    assert [len(each["request"]["messages"]) for each in lines[:5]] == [1, 3, 5, 7, 9]
    first, second, branch = read(tmp_path, lines)
    assert [roles(each) for each in (first, second, branch)] == ["uatatatata", "uata", "uatatata"]
    name = session or "r0"
    assert [(each.trajectory.attempt.run, each.trajectory.attempt.index) for each in (first, second, branch)] == [  # type: ignore[union-attr]
        (name, None),
        ("other" if session else "r10", None),
        (name, 1),
    ]
    assert [facts(each).get("branched_from") for each in (first, second, branch)] == [
        None,
        None,
        json.dumps({"message": 2, "run": name}, separators=(",", ":")),
    ]
    assert branch.trajectory.messages[:2] == first.trajectory.messages[:2]
    assert [each.trajectory.usage.prompt_tokens for each in (first, second, branch)] == [50, 20, 10]  # type: ignore[union-attr]


def test_each_decision_keeps_the_context_that_it_had(tmp_path: Path) -> None:
    lines = eight_lines()
    items = read(tmp_path, lines)
    alone = {
        decision.context
        for each in lines
        for parsed in read(tmp_path, [each])
        for decision in decisions_of(parsed.trajectory)[-1:]
    }
    assert {decision.context for parsed in items for decision in decisions_of(parsed.trajectory)} == alone
    assert [message.copied for message in items[2].trajectory.messages] == [index in (3, 5) for index in range(8)]


def test_lines_in_another_order_and_beside_others_are_the_same_runs(tmp_path: Path) -> None:
    lines = eight_lines()
    straight = {parsed.key: parsed.trajectory for parsed in read(tmp_path, lines)}
    mixed = {parsed.key: parsed.trajectory for parsed in read(tmp_path, [lines[5], *lines[:5], *lines[6:]])}
    assert straight == mixed
    turned = {roles(parsed) for parsed in read(tmp_path, lines[::-1])}
    assert turned == {roles(parsed) for parsed in read(tmp_path, lines)}


def test_every_line_comes_back_from_the_store(tmp_path: Path) -> None:
    lines = [json.dumps(each).encode() for each in eight_lines()]
    store = new_store(tmp_path)
    result = import_file(store, write(tmp_path / "calls.jsonl", [*lines, b'{"torn":', lines[0]]))
    assert (result.read, result.accepted, result.duplicates, result.quarantined) == (5, 3, 1, 1)
    assert list(result.formats) == ["model-calls"]
    raws = store.sql("SELECT bytes FROM objects WHERE kind = 'raw'")["bytes"].to_pylist()
    kept = [part for each in raws for part in each.split(b"\n")]
    assert sorted(kept) == sorted([*lines, b'{"torn":'])
    again = import_file(store, write(tmp_path / "renamed.jsonl", [*lines, b'{"torn":']))
    assert (again.accepted, again.duplicates, again.quarantined) == (0, 3, 1)


def test_a_line_that_is_no_call_is_refused_by_itself(tmp_path: Path) -> None:
    embedding = {"request": {"input": "x", "model": "e"}, "response": {"object": "list", "data": [], "usage": {}}}
    path = write(tmp_path / "calls.jsonl", [*run_lines("A", 0), {"note": 1}, embedding, b'{"a":1}x'])
    items = list(call_logs.IMPORTER.read(path))
    refused = [(item.code, item.place) for item in items if isinstance(item, Rejected)]
    assert refused == [("not_a_record", 3), ("not_a_record", 4), ("trailing_text", 5)]
    assert len(items) == 4


@pytest.mark.parametrize(
    ("failed", "stop", "text"),
    [
        ({"response": {"error": {"code": 429, "message": "slow down"}}}, "provider_error", '{"code":429'),
        ({"response": {"status_code": 503, "body": {}}}, "provider_error", "HTTP 503"),
        ({"response": None, "error": "connection reset"}, "provider_error", "connection reset"),
        ({"response": None, "status_code": 400, "error": "context_length_exceeded"}, "context_length", "context_"),
        ({"response": None, "status_code": 400, "error": "bad tool"}, "unknown", "bad tool"),
    ],
)
def test_a_failed_request_is_how_a_run_stopped_or_a_retry(
    tmp_path: Path, failed: dict[str, Any], stop: str, text: str
) -> None:
    lines = run_lines("A", 0)
    broken = {**lines[1], **failed}
    (ended,) = read(tmp_path, [lines[0], broken, broken | {"again": 1}])
    assert (roles(ended), facts(ended)["stop"]) == ("uat", stop)
    assert ended.trajectory.stop_text is not None
    assert ended.trajectory.stop_text.startswith(text)
    assert "outcome" not in facts(ended)
    (retried,) = read(tmp_path, [lines[0], broken, lines[1]])
    assert (roles(retried), facts(retried)["stop"], retried.trajectory.stop_text) == ("uata", "completed", "stop")
    assert json.loads(bytes(retried.trajectory.extra)) == {"failed_requests": 1}  # type: ignore[arg-type]


def test_a_failed_request_says_nothing_of_the_model(tmp_path: Path) -> None:
    """A request names an alias, and only an answer what ran; of models that really differ none is the run's."""
    lines = run_lines("A", 0)
    refused = {"request": {**lines[1]["request"], "temperature": 1}, "status_code": 429, "response": {"error": "slow"}}
    (ended,) = read(tmp_path, [lines[0], refused])
    conditions = ended.trajectory.conditions
    assert (conditions.model, bytes(conditions.sampling), ended.warnings) == ("m-1", b'{"temperature":0}', ())  # type: ignore[arg-type]
    (never,) = read(tmp_path, [refused])
    assert never.trajectory.conditions.model == "m"
    lines[1]["response"]["model"] = "m-2"
    (mixed,) = read(tmp_path, lines)
    assert (mixed.trajectory.conditions.model, mixed.warnings) == (None, ("models_differ",))
    assert json.loads(bytes(mixed.trajectory.extra)) == {"models": ["m-1", "m-2"]}  # type: ignore[arg-type]


def test_equal_runs_of_one_request_stay_apart(tmp_path: Path) -> None:
    """A model without chance gives equal answers; their ids tell the calls apart."""
    items = read(tmp_path, [*run_lines("A", 0), *run_lines("A", 10), *run_lines("A", 20)[:1]])
    assert [(roles(item), item.key) for item in items] == [("uata", "r0"), ("uata", "r10"), ("ua", "r20")]
    assert all("branched_from" not in facts(item) for item in items)


def test_one_call_logged_twice_is_counted_once(tmp_path: Path) -> None:
    lines = run_lines("A", 0)
    item, again = read(tmp_path, [lines[0], lines[0] | {"logged": "again"}, lines[1], lines[1]])
    assert (again.trajectory, again.place) == (item.trajectory, 2)
    assert item.trajectory.usage is not None
    assert item.trajectory.usage.completion_tokens == 4
    assert item.warnings == ("repeated_lines",)


def test_alternative_answers_are_branches(tmp_path: Path) -> None:
    lines = run_lines("A", 0)
    lines[0]["response"]["choices"].append(
        {"message": {"role": "assistant", "content": "No."}, "finish_reason": "stop"}
    )
    path = write(tmp_path / "calls.jsonl", lines)
    first, other = read(tmp_path, lines)
    assert (roles(first), roles(other), other.trajectory.messages[-1].content) == ("uata", "ua", "No.")
    assert facts(other)["branched_from"] == '{"message":1,"run":"r0"}'
    assert import_file(new_store(tmp_path), path).accepted == 2


def test_each_alternative_answer_has_its_own_end(tmp_path: Path) -> None:
    entry = line([USER], {"role": "assistant", "content": "Two."})
    lost = {"finish_reason": "stop"}  # a choice without a message is no answer
    cut = {"message": {"role": "assistant", "content": "There a"}, "finish_reason": "length"}
    entry["response"]["choices"] = [lost, *entry["response"]["choices"], cut]
    first, other = read(tmp_path, [entry])
    assert [(each.trajectory.messages[-1].content, facts(each)["stop"]) for each in (first, other)] == [
        ("Two.", "completed"),
        ("There a", "output_length"),
    ]
    assert [each.trajectory.stop_text for each in (first, other)] == ["stop", "length"]


def test_a_call_that_is_cut_at_the_limit_of_an_answer_is_no_full_context(tmp_path: Path) -> None:
    entry = run_lines("A", 0)[0]
    entry["response"]["choices"][0]["finish_reason"] = "length"
    (cut,) = read(tmp_path, [entry])
    assert (roles(cut), facts(cut)["stop"]) == ("ua", "output_length")
    (text,) = read(tmp_path, [response(1, [SAID], "?", status="incomplete", incomplete_details=CUT)])
    assert (facts(text)["stop"], text.trajectory.stop_text) == ("output_length", "max_output_tokens")


def test_hidden_reasoning_makes_what_follows_partial(tmp_path: Path) -> None:
    lines = run_lines("AB", 0)
    lines[1]["response"]["usage"]["completion_tokens_details"] = {"reasoning_tokens": 7}
    (item,) = read(tmp_path, lines)
    assert [decision.partial for decision in decisions_of(item.trajectory)] == [False, True, True]
    lines[1]["response"]["choices"][0]["message"]["reasoning_content"] = "Look at B."
    (shown,) = read(tmp_path, lines)
    assert not any(decision.partial for decision in decisions_of(shown.trajectory))


def response(number: int, output: list[Any], new: Any, previous: str | None = None, **more: Any) -> dict[str, Any]:
    request = {"model": "m", "input": new, "instructions": "Be brief.", "previous_response_id": previous}
    made = {"id": f"resp_{number}", "object": "response", "status": "completed", "output": output, **more}
    return {"request": request, "response": made}


def called(number: int, sku: str) -> dict[str, Any]:
    arguments = json.dumps({"sku": sku})
    return {"type": "function_call", "call_id": f"c{number}", "name": "get_stock", "arguments": arguments}


def said(text: str) -> dict[str, Any]:
    return {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": text, "annotations": []}],
    }


def got(number: int) -> list[dict[str, Any]]:
    return [{"type": "function_call_output", "call_id": f"c{number}", "output": "2"}]


def test_responses_are_joined_by_the_response_before(tmp_path: Path) -> None:
    secret = {"type": "reasoning", "encrypted_content": "xyz", "summary": [{"type": "summary_text", "text": "Look."}]}
    lines = [
        response(1, [called(1, "A"), called(2, "B")], "How many?"),
        response(2, [secret, called(3, "C")], [*got(2), *got(1)], "resp_1"),
        response(3, [said("Done.")], got(3), "resp_2"),
        response(4, [said("Other.")], [{"role": "user", "content": "No, B!"}], "resp_1"),
    ]
    for order in (lines, lines[::-1]):
        branch, trunk = sorted(read(tmp_path, order), key=lambda parsed: len(parsed.trajectory.messages))
        assert (roles(trunk), roles(branch)) == ("suattata", "suaua")
        answered = [each.answers.uid for each in trunk.trajectory.messages if each.answers is not None]
        assert answered == ["2.1", "2.0", "5.0"]
        assert [decision.partial for decision in decisions_of(trunk.trajectory)] == [False, True, True]
        assert trunk.trajectory.messages[5].reasoning == "Look."
    trunk, branch = read(tmp_path, lines)
    assert facts(branch)["branched_from"] == '{"message":3,"run":"resp_1"}'


def test_a_response_whose_beginning_is_not_logged_says_so(tmp_path: Path) -> None:
    (item,) = read(tmp_path, [response(2, [said("Done.")], got(1), "resp_gone")])
    assert item.trajectory.messages[0].hidden == "compaction"
    assert all(decision.partial for decision in decisions_of(item.trajectory))


def test_a_conversation_kept_by_the_provider_is_one_run(tmp_path: Path) -> None:
    lines = [response(1, [called(1, "A")], "How many?"), response(2, [said("Two.")], got(1))]
    for each in lines:
        each["request"]["conversation"] = {"id": "conv_1"}
    (item,) = read(tmp_path, lines)
    assert (roles(item), item.key) == ("suata", "conv_1")


def test_new_instructions_are_another_context(tmp_path: Path) -> None:
    lines = [response(1, [called(1, "A")], "How many?"), response(2, [said("Two.")], got(1), "resp_1")]
    lines[1]["request"]["instructions"] = "Be long."
    first, second = read(tmp_path, lines)
    assert (roles(first), roles(second)) == ("sua", "suata")
    assert [each.trajectory.messages[0].content for each in (first, second)] == ["Be brief.", "Be long."]


def test_sessions_that_each_name_one_call_tie_nothing_apart(tmp_path: Path) -> None:
    """Some gateways give every request a session of its own; what continues what is then told by the histories."""
    lines = [each | {"session_id": f"s{number}"} for number, each in enumerate(run_lines("ABC", 0))]
    for order in (lines, lines[::-1]):
        (item,) = read(tmp_path, order)
        assert roles(item) == "uatatata"


def test_a_run_over_the_limit_keeps_the_line_that_ends_it(tmp_path: Path) -> None:
    lines = run_lines("ABCDEFGH", 0)
    path = write(tmp_path / "calls.jsonl", lines)
    limit = len(json.dumps(lines[-1])) + 10
    (item,) = call_logs.IMPORTER.read(path, limit)
    parsed = accepted(item)
    assert (len(parsed.trajectory.messages), parsed.trajectory.usage) == (18, None)
    assert "calls_left_out" in parsed.warnings
    assert parsed.raw.decode() == json.dumps(lines[-1])


def test_no_outcome_is_read_out_of_a_log_of_calls(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    import_file(store, write(tmp_path / "calls.jsonl", eight_lines()))
    assert store.sql("SELECT count(*) AS n FROM verifications")["n"].to_pylist() == [0]
