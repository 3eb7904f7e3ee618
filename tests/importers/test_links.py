from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from curation.importers.face import Parsed
from tests.importers.reading import answer, ask, call, calls, chat, read_chat


def pairs(parsed: Parsed) -> list[tuple[str, str] | None]:
    """Uid and way of matching of each tool message; None for an orphan."""
    return [
        None if message.answers is None else (message.answers.uid, message.answers.by)
        for message in parsed.trajectory.messages
        if message.role == "tool"
    ]


def link(folder: Path, *messages: Any) -> tuple[list[tuple[str, str] | None], tuple[str, ...]]:
    parsed = read_chat(folder, chat(*messages))
    return pairs(parsed), parsed.warnings


def test_parallel_calls_answered_out_of_order_pair_by_id(tmp_path: Path) -> None:
    made = ask(call("{}", call_id="a"), call("{}", call_id="b"))
    assert link(tmp_path, made, answer("2", "b"), answer("1", "a")) == ([("1.1", "id"), ("1.0", "id")], ())


def test_calls_without_ids_pair_by_order(tmp_path: Path) -> None:
    for nothing in (None, ""):
        made = ask(call("{}", call_id=nothing), call("{}", call_id=nothing))
        found, warnings = link(tmp_path, made, answer("1", nothing), answer("2", nothing))
        assert (found, warnings) == ([("1.0", "position"), ("1.1", "position")], ())


def test_a_repeated_id_pairs_with_the_latest_call_of_it(tmp_path: Path) -> None:
    found, warnings = link(
        tmp_path,
        ask(call("{}")),
        answer("1"),
        ask(call("{}")),
        answer("2"),
        ask(call("{}")),
        ask(call("{}")),
        answer("4"),
    )
    assert found == [("1.0", "id"), ("3.0", "position"), ("6.0", "position")]
    assert warnings == ("repeated_call_id",)


def test_one_id_twice_in_a_message_pairs_by_order(tmp_path: Path) -> None:
    found, warnings = link(tmp_path, ask(call("{}"), call("{}")), answer("1"), answer("2"))
    assert found == [("1.0", "position"), ("1.1", "position")]
    assert warnings == ("repeated_call_id",)


def test_without_ids_a_name_that_does_not_fit_the_order_decides(tmp_path: Path) -> None:
    made = ask(call("{}", call_id=None, name="get_stock"), call("{}", call_id=None, name="book"))
    found, _ = link(tmp_path, made, answer("1", None, name="book"), answer("2", None, name="get_stock"))
    assert found == [("1.1", "name"), ("1.0", "position")]


def test_an_id_of_no_call_pairs_by_name_last(tmp_path: Path) -> None:
    made = ask(call("{}", call_id="a", name="get_stock"), call("{}", call_id="b", name="book"))
    found, _ = link(tmp_path, made, answer("1", "zzz", name="book"), answer("2", "a"))
    assert found == [("1.1", "name"), ("1.0", "id")]


def test_an_orphan_stays_as_an_orphan_with_its_id(tmp_path: Path) -> None:
    parsed = read_chat(tmp_path, chat(answer("before any call", "c1"), ask(call("{}")), answer("2"), answer("again")))
    assert pairs(parsed) == [None, ("2.0", "id"), None]
    assert parsed.warnings == ("orphan_answer",)
    orphans = [message for message in parsed.trajectory.messages if message.role == "tool" and message.answers is None]
    assert [message.content for message in orphans] == ["before any call", "again"]
    assert all(b'"tool_call_id":"c1"' in bytes(message.extra) for message in orphans if message.extra)


def test_a_call_without_answer_waits_for_a_late_one(tmp_path: Path) -> None:
    found, _ = link(
        tmp_path, ask(call("{}", call_id="a")), ask(call("{}", call_id="b")), answer("2", "b"), answer("1", "a")
    )
    assert found == [("2.0", "id"), ("1.0", "id")]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    ids=st.lists(st.sampled_from([None, "", "a", "b"]), max_size=6),
    answers=st.lists(
        st.tuples(st.sampled_from([None, "", "a", "b", "z"]), st.sampled_from([None, "f", "g"])), max_size=8
    ),
)
def test_no_call_is_answered_twice_and_no_answer_precedes_its_call(
    tmp_path: Path, ids: list[str | None], answers: list[tuple[str | None, str | None]]
) -> None:
    made = [ask(call("{}", call_id=one, name="f" if index % 2 else "g")) for index, one in enumerate(ids)]
    replies = [answer("x", one, name=name) for one, name in answers]
    woven = [message for both in zip(made, replies, strict=False) for message in both]
    rest = made[len(replies) :] + replies[len(made) :]
    parsed = read_chat(tmp_path, chat(*woven, *rest))
    answered = [pair[0] for pair in pairs(parsed) if pair is not None]
    assert len(answered) == len(set(answered))
    known = {one.uid for one in calls(parsed.trajectory)}
    assert known.issuperset(answered)
    for index, message in enumerate(parsed.trajectory.messages):
        if message.answers is not None:
            assert int(message.answers.uid.partition(".")[0]) < index
