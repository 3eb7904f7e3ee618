"""Which lines of a log of calls are one run hangs neither on their order nor on what runs at the same time."""

import json
import tracemalloc
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.importers import call_logs
from curation.importers.call_tree import CallPath, CallTree
from curation.importers.face import Parsed
from schemas.digests import decisions_of
from tests.importers.reading import accepted, answer, ask, call, write

Line = dict[str, Any]
SYSTEM = {"role": "system", "content": "You keep the stock."}


def line(name: str, history: list[Any], reply: Any, session: str | None) -> Line:
    choices = [] if reply is None else [{"index": 0, "message": reply, "finish_reason": "stop"}]
    response = {"id": name, "model": "m", "choices": choices, "usage": {"prompt_tokens": 10, "completion_tokens": 1}}
    made: Line = {"request": {"model": "m", "messages": history}, "response": response}
    if reply is None:
        made["response"] = {"error": {"code": 429, "message": f"slow down, {name}"}}
    return made if session is None else made | {"session_id": session}


def talk(name: str, task: str, steps: int, session: str | None = None, before: list[Any] | None = None) -> list[Line]:
    """The lines of a run: its requests grow by a call and its answer, the first is tried in vain once."""
    history = [SYSTEM, {"role": "user", "content": task}] if before is None else before
    lines = [line(f"{name}-failed", history, None, session)]
    for number in range(steps):
        call_id = f"{name}-c{number}"
        reply = ask(call(json.dumps({"task": task, "n": number}), call_id=call_id))
        lines.append(line(f"{name}-{number}", history, reply, session))
        history = [*history, reply, answer(f"{number}", call_id)]
    return [*lines, line(f"{name}-end", history, {"role": "assistant", "content": f"Done with {task}."}, session)]


def edited(name: str, lines: list[Line], session: str | None = None) -> list[Line]:
    """How a run goes on whose history was edited in its middle."""
    history = list(lines[-1]["request"]["messages"])
    history[3] = {**history[3], "content": "edited"}
    return talk(name, "the rest", 1, session, history)


def compacted(name: str, session: str | None = None) -> list[Line]:
    """How a run goes on of which only a summary is left."""
    return talk(name, "the rest", 2, session, [SYSTEM, {"role": "user", "content": f"So far in {name}: nothing."}])


def log(session: str | None) -> list[list[Line]]:
    """Runs at the same time: two tasks, a sub-agent that shares the system prompt alone, an edit, a compaction."""
    first, second = talk("a", "task A", 3, session), talk("b", "task B", 2, None if session is None else "other")
    return [first, second, talk("sub", "part of A", 1, session), edited("e", first, session), compacted("z", session)]


def read(folder: Path, lines: list[Line]) -> list[Parsed]:
    return [accepted(item) for item in call_logs.IMPORTER.read(write(folder / "calls.jsonl", lines))]


def decided(parsed: Parsed) -> set[tuple[str, str]]:
    return {(decision.context, decision.action) for decision in decisions_of(parsed.trajectory)}


def texts(parsed: Parsed) -> tuple[str, ...]:
    return tuple(
        [
            json.dumps([str(each.content), *(call.arguments_text for call in each.tool_calls)])
            for each in parsed.trajectory.messages
        ]
    )


def failed(parsed: Parsed) -> int:
    found = parsed.trajectory.extra
    return json.loads(bytes(found))["failed_requests"] if found else 0


def facts(parsed: Parsed) -> dict[str, Any]:
    return {fact.field: fact.value for fact in parsed.facts}


@pytest.mark.parametrize("session", [None, "s"])
@pytest.mark.parametrize("seed", range(6))
def test_the_order_of_lines_changes_no_run_and_no_decision(tmp_path: Path, seed: int, session: str | None) -> None:
    runs = log(session)
    lines = [each for run in runs for each in run]
    asked = {pair for each in lines if each["response"].get("choices") for pair in _last(tmp_path, each)}
    straight = read(tmp_path, lines)
    assert Counter(map(len, map(texts, straight))) == Counter([9, 7, 5, 11, 7])
    Random(seed).shuffle(lines)
    mixed = read(tmp_path, lines)
    assert sorted(map(texts, mixed)) == sorted(map(texts, straight))
    assert set().union(*map(decided, mixed)) == asked
    spent = [parsed.trajectory.usage for parsed in mixed]
    assert sum(each.completion_tokens or 0 for each in spent if each is not None) == len(asked)
    assert sum(map(failed, mixed)) == len(runs)


def _last(folder: Path, entry: Line) -> set[tuple[str, str]]:
    (alone,) = read(folder, [entry])
    decision = decisions_of(alone.trajectory)[-1]
    return {(decision.context, decision.action)}


def test_runs_at_the_same_time_are_read_as_if_they_came_one_after_another(tmp_path: Path) -> None:
    runs = log(None)
    straight = read(tmp_path, [each for run in runs for each in run])
    waiting = [list(run) for run in runs]
    woven = []
    while any(waiting):
        woven += [run.pop(0) for run in waiting if run]
    mixed = {parsed.key: (texts(parsed), failed(parsed)) for parsed in read(tmp_path, woven)}
    assert mixed == {parsed.key: (texts(parsed), failed(parsed)) for parsed in straight}


def test_in_a_session_what_shares_only_a_beginning_is_a_branch_there(tmp_path: Path) -> None:
    first, second, *branches = read(tmp_path, [each for run in log("s") for each in run])
    assert [facts(each).get("branched_from") for each in (first, second)] == [None, None]
    left = [json.loads(facts(each)["branched_from"]) for each in branches]
    assert left == [{"message": 1, "run": "s"}, {"message": 3, "run": "s"}, {"message": 1, "run": "s"}]
    assert [each.trajectory.attempt.index for each in branches] == [1, 2, 3]  # type: ignore[union-attr]
    assert [sum(message.copied for message in each.trajectory.messages) for each in branches] == [0, 2, 0]


def test_without_a_session_only_what_goes_on_from_an_answer_is_a_branch(tmp_path: Path) -> None:
    items = read(tmp_path, [each for run in log(None) for each in run])
    left = {parsed.key: facts(parsed).get("branched_from") for parsed in items}
    assert left == {
        "a-0": None,
        "b-0": None,
        "sub-0": None,
        "z-0": None,
        "a-0#1": '{"message":3,"run":"a-0"}',
    }


@pytest.mark.parametrize("session", [None, "s"])
def test_of_two_answers_to_one_request_the_one_that_was_used_goes_on(tmp_path: Path, session: str | None) -> None:
    lines = talk("a", "task", 2, session)[1:]
    lost = line("lost", lines[1]["request"]["messages"], {"role": "assistant", "content": "Never seen."}, session)
    for order in ([lines[0], lost, *lines[1:]], [*lines, lost], [lost, *lines[::-1]]):
        trunk, branch = read(tmp_path, order)
        assert [len(texts(trunk)), len(texts(branch))] == [7, 5]
        assert [facts(each).get("branched_from") for each in (trunk, branch)] == [
            None,
            json.dumps({"message": 4, "run": session or "a-0"}, separators=(",", ":")),
        ]
        assert branch.trajectory.messages[-1].content == "Never seen."


def test_twins_without_a_session_stay_apart_in_any_order(tmp_path: Path) -> None:
    """The same task tried three times with the same answers, told apart by the ids of the calls alone."""
    lines = [
        line(f"{run}-{at}", each["request"]["messages"], each["response"]["choices"][0]["message"], None)
        for at, each in enumerate(talk("t", "task", 2)[1:])
        for run in "xyz"
    ]
    for seed in range(4):
        Random(seed).shuffle(lines)
        items = read(tmp_path, lines)
        assert [len(texts(parsed)) for parsed in items] == [7, 7, 7]
        assert all("branched_from" not in facts(parsed) for parsed in items)


def test_a_call_echoed_with_more_fields_is_the_same_call_and_keeps_them(tmp_path: Path) -> None:
    lines = talk("a", "task", 1)[1:]
    echo = lines[1]["request"]["messages"][2]
    lines[1]["request"]["messages"][2] = json.loads(json.dumps(echo))
    (told,) = lines[1]["request"]["messages"][2]["tool_calls"]
    told |= {"ui": {"open": True}}
    told["function"]["arguments"] = json.dumps(json.loads(told["function"]["arguments"]), indent=1)
    (item,) = read(tmp_path, lines)
    message = item.trajectory.messages[2]
    (made,) = message.tool_calls
    assert made.arguments_text == echo["tool_calls"][0]["function"]["arguments"]
    assert json.loads(bytes(message.extra)) == {"tool_calls": {"0": {"ui": {"open": True}}}}  # type: ignore[arg-type]
    told["function"]["arguments"] = '{"n":99}'
    changed = read(tmp_path, lines)
    assert [facts(each).get("branched_from") is None for each in changed] == [True, True]


def test_answers_without_a_message_are_gone_on_from_by_none() -> None:
    tree = CallTree()
    step = b"x" * 16
    for number in range(3):
        tree.add(CallPath([step] if number else [], [[], []], id=str(number)))
    assert sorted(run.calls for run in tree.runs() if run.calls) == [(0,), (1,), (2,)]


@settings(max_examples=300)
@given(
    calls=st.lists(
        st.tuples(
            st.lists(st.sampled_from("abc"), max_size=4),
            st.lists(st.lists(st.sampled_from("abc"), max_size=2), max_size=2),
            st.sampled_from([None, "h", "i"]),
            st.sampled_from([None, "s", "t"]),
            st.sampled_from([None, *"01234"]),
            st.booleans(),
        ),
        max_size=9,
    )
)
def test_every_call_is_a_part_of_a_run_whose_root_holds_its_own_calls(calls: list[Any]) -> None:
    tree = CallTree()
    for number, (asked, answers, head, session, previous, cut) in enumerate(calls):
        told = [_steps(answer) for answer in answers]
        first = None if head is None else _steps(head)[0]
        tree.add(CallPath(_steps(asked), told, first, str(number), session, previous, cut, len(asked) // 2))
    runs = tree.runs()
    own = Counter(position for run in runs for position in {*run.calls, *run.failed})
    assert own == Counter(range(len(calls)))
    for number, run in enumerate(runs):
        root = runs[run.root]
        assert root.number == 0
        assert root.branch is None
        assert root.calls
        assert (run.branch is None) == (run.root == number)
        assert run.branch is None or run.branch.run < number
        assert list(run.answered) == sorted(run.answered)
        assert len({*run.before, *run.calls}) == len(run.before) + len(run.calls)


def _steps(names: Any) -> list[bytes]:
    return [str(name).encode() * 16 for name in names]


def long_log(folder: Path, runs: int, turns: int) -> Path:
    made = [talk(f"run-{number}", f"task {number}", turns)[1:] for number in range(runs)]
    return write(folder / f"{runs}.jsonl", [each for row in zip(*made, strict=True) for each in row])


def peak(path: Path) -> int:
    tracemalloc.start()
    try:
        for _ in call_logs.slices(path):
            pass
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_longer_log_takes_little_more_memory(tmp_path: Path) -> None:
    """Bytes by line of what is kept, the same whether histories are short or long."""
    small, large = long_log(tmp_path, 50, 9), long_log(tmp_path, 450, 9)
    assert (peak(large) - peak(small)) / (400 * 10) < 300
