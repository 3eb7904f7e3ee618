"""Lines of a log of calls that name the same call, and calls that name nothing of their own: all read, or counted."""

import json
from pathlib import Path
from typing import Any

import pytest

from curation.importers import call_logs
from curation.importers.face import Parsed
from curation.tally import IngestResult
from schemas.digests import decisions_of
from tests.importers.reading import ask, call, write
from tests.importers.test_call_logs import USER, called, facts, got, line, read, response, roles, run_lines, said
from tests.ingest.logs import import_file, new_store

Line = dict[str, Any]


def named(lines: list[Line], name: str | None) -> list[Line]:
    """The same calls, of which all responses have one id, or none has."""
    for each in lines:
        each["response"].pop("id")
        if name is not None:
            each["response"]["id"] = name
    return lines


def brought(folder: Path, lines: list[Line]) -> IngestResult:
    result = import_file(new_store(folder), write(folder / "calls.jsonl", lines))
    assert result.accepted + result.duplicates + result.quarantined == result.read
    return result


@pytest.mark.parametrize("name", ["chatcmpl-mock", None])
def test_sessions_whose_responses_have_one_id_or_none_are_all_read(tmp_path: Path, name: str | None) -> None:
    lines = [each for number in range(40) for each in named(run_lines("AB", 0, session_id=f"s{number}"), name)]
    result = brought(tmp_path, lines)
    assert (result.read, result.accepted, result.warnings) == (40, 40, {})
    assert {roles(item) for item in read(tmp_path, lines)} == {"uatata"}


@pytest.mark.parametrize("name", ["chatcmpl-mock", None])
def test_without_sessions_what_was_asked_tells_calls_of_one_id_apart(tmp_path: Path, name: str | None) -> None:
    lines = named([each for skus in ("AB", "C", "XYZ") for each in run_lines(skus, 0)], name)
    result = brought(tmp_path, lines)
    assert (result.read, result.accepted, result.quarantined) == (3, 3, 0)
    assert sorted(map(roles, read(tmp_path, lines))) == ["uata", "uatata", "uatatata"]
    assert brought(tmp_path / "more", lines + named(run_lines("Q", 0), name)).accepted == 4


def test_every_time_that_a_run_was_logged_again_is_counted(tmp_path: Path) -> None:
    whole = run_lines("ABC", 0)
    for lines, again in ((whole, 0), (whole * 2, 1), (whole * 4, 3), ([*whole, whole[0]], 1), ([*whole, whole[-1]], 1)):
        folder = tmp_path / str(len(lines)) / json.dumps(lines[-1]["response"]["id"])
        folder.mkdir(parents=True)
        result = brought(folder, lines)
        assert (result.read, result.accepted, result.duplicates) == (1 + again, 1, again)
        assert bool(result.warnings.get("repeated_lines")) == bool(again)
    single = run_lines("", 0)
    assert brought(tmp_path, single * 5).duplicates == 4


def test_an_answer_of_its_own_is_another_call_though_its_id_and_its_request_are_not(tmp_path: Path) -> None:
    lines = run_lines("", 0)
    lines.append(line([USER], {"role": "assistant", "content": "Other."}, 0))
    items = read(tmp_path, lines)
    assert {item.trajectory.messages[-1].content for item in items} == {"Done.", "Other."}
    assert brought(tmp_path, lines).accepted == 2


def linked(session: str | None) -> list[Line]:
    """Three responses of one id that go on from one another."""
    lines = [
        response(0, [called(1, "A")], "How many?"),
        response(0, [called(2, "B")], got(1), "resp_0"),
        response(0, [said("Done.")], got(2), "resp_0"),
    ]
    return [each if session is None else each | {"session_id": session} for each in lines]


def test_in_a_session_one_id_means_the_call_before(tmp_path: Path) -> None:
    woven = [each for row in zip(linked("a"), linked("b"), strict=True) for each in row]
    items = read(tmp_path, woven)
    assert [(item.key, roles(item)) for item in items] == [("a", "suatata"), ("b", "suatata")]
    assert not any(decision.partial for item in items for decision in decisions_of(item.trajectory))


def test_without_a_session_nobody_knows_what_one_id_means(tmp_path: Path) -> None:
    items = read(tmp_path, linked(None))
    assert sorted(map(roles, items)) == ["sta", "suata"]
    (cut,) = [item for item in items if roles(item) == "sta"]
    assert all(decision.partial for decision in decisions_of(cut.trajectory))


def test_many_answers_to_one_request_are_all_read_from_one_slice(tmp_path: Path) -> None:
    """So many that reading the line again for each of them would not end."""
    lines = run_lines("A", 0)
    choices = lines[0]["response"]["choices"]
    choices += [{"message": {"role": "assistant", "content": f"answer {number}"}} for number in range(4_000)]
    path = write(tmp_path / "calls.jsonl", lines)
    assert len(list(call_logs.slices(path))) == 2
    first, *others = read(tmp_path, lines)
    assert roles(first) == "uata"
    assert [item.trajectory.messages[-1].content for item in others] == [f"answer {number}" for number in range(4_000)]
    assert len({(item.key, item.part) for item in others}) == 4_000


def test_of_many_answers_each_may_be_gone_on_from(tmp_path: Path) -> None:
    choices = [ask(call("{}", call_id=f"c{number}")) for number in range(2_000)]
    lines = [line([USER], choices[0], 0)]
    lines[0]["response"]["choices"] = [{"message": each} for each in choices]
    for number, each in enumerate(choices):
        history = [USER, each, {"role": "tool", "tool_call_id": f"c{number}", "content": "2"}]
        lines.append(line(history, {"role": "assistant", "content": f"Done {number}."}, number + 1))
    items = read(tmp_path, lines)
    assert {roles(item) for item in items} == {"uata"}
    assert len({item.trajectory.messages[-1].content for item in items}) == len(items) == 2_000


def chained(length: int, instructions: str) -> list[Line]:
    """Responses that go on from one another, each under instructions of its own where they have a place for it."""
    lines = []
    for number in range(length):
        new = got(number) if number else "How many?"
        made = response(number, [called(number + 1, "A")], new, f"resp_{number - 1}" if number else None)
        made["request"]["instructions"] = instructions.format(number)
        lines.append(made)
    return lines


def length_of(parsed: Parsed) -> int:
    return len(parsed.trajectory.messages)


def test_a_history_that_goes_on_under_other_instructions_is_whole(tmp_path: Path) -> None:
    items = read(tmp_path, chained(60, "It is {} o'clock."))
    assert [length_of(item) for item in items] == [2 * number + 3 for number in range(60)]
    assert not any("history_left_out" in item.warnings for item in items)
    assert [item.trajectory.messages[0].content for item in items][-1] == "It is 59 o'clock."


def test_what_many_runs_share_is_read_again_only_so_often(tmp_path: Path) -> None:
    """So many that reading all of it for each of them would not end; what is left out is said, and no context is whole
    without it."""
    items = read(tmp_path, chained(1_000, "It is {} o'clock."))
    assert len(items) == 1_000
    short = [item for item in items if "history_left_out" in item.warnings]
    assert 0 < len(short) < 1_000
    assert {roles(item) for item in short} == {"sta"}
    assert all(decision.partial for item in short for decision in decisions_of(item.trajectory))
    assert all(json.loads(facts(item)["branched_from"])["message"] == 0 for item in short)
    whole = [item for item in items if item not in short]
    assert [length_of(item) for item in whole] == [2 * number + 3 for number in range(len(whole))]
    (one,) = read(tmp_path, chained(1_000, "The same."))
    assert length_of(one) == 2_001
