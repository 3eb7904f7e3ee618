"""What an import says was not kept as the log had it."""

import json
from pathlib import Path
from typing import Any

import pytest

from curation.ingest import IngestOptions, find_sources, ingest
from curation.losses import Losses
from curation.tally import IngestResult
from schemas import canonical
from tests.cli.test_store_verbs import curate, result
from tests.importers import atif_runs, session
from tests.importers.reading import answer, ask, call, chat, write
from tests.ingest.logs import new_store


def imported(folder: Path, *records: Any) -> IngestResult:
    sources = find_sources([write(folder / "log.jsonl", records)], "auto")
    return ingest(new_store(folder), sources, IngestOptions())


def losses(folder: Path, *records: Any) -> Losses:
    return imported(folder, *records).losses


GOOD = '{"sku": "A17"}'
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}


def test_a_log_that_is_kept_as_it_is_loses_nothing(tmp_path: Path) -> None:
    assert losses(tmp_path, chat(ask(call(GOOD)), answer("2"))) == Losses(links={"id": 1})


def test_keys_that_are_not_modelled_are_counted_by_records(tmp_path: Path) -> None:
    first = chat(ask(call(GOOD), team="b"), answer("2", team="c", seen=True), batch=7)
    found = losses(tmp_path, first, chat(ask(call(GOOD), team="b"), answer("2")), chat(batch=8, shift=None))
    assert found.extra == {"batch": 2, "messages.seen": 1, "messages.team": 2}


def test_answers_are_counted_by_how_their_call_was_found(tmp_path: Path) -> None:
    made = ask(call(GOOD, call_id=None), call(GOOD, call_id="", name="book"), call(GOOD, call_id="c1"))
    answers = [answer("1", None), answer("2", "zz", name="book"), answer("3", "c1"), answer("4", "zz")]
    found = losses(tmp_path, chat(made, *answers))
    assert found.links == {"id": 1, "name": 1, "none": 1, "position": 1}
    assert found.ids == {"absent": 1, "empty": 1}
    assert found.records == {"orphan_answer": 1}


def test_ids_of_several_calls_are_counted(tmp_path: Path) -> None:
    twice = chat(ask(call(GOOD), call(GOOD)), answer("1"), answer("2"), ask(call(GOOD)), answer("3"))
    found = losses(tmp_path, twice, chat(ask(call(GOOD)), answer("1")))
    assert (found.ids, found.records) == ({"repeated": 2}, {"repeated_call_id": 1})


def test_arguments_that_are_no_object_are_counted_by_why(tmp_path: Path) -> None:
    doubled = json.dumps(GOOD)
    found = losses(tmp_path, chat(ask(call(doubled), call("[]", call_id="c2"), call('{"a', call_id="c3"))))
    assert found.arguments == {"double_encoded": 1, "not_an_object": 1, "truncated": 1}
    assert found.records == {"double_encoded": 1}


def test_parts_that_are_kept_by_reference_are_counted_by_type(tmp_path: Path) -> None:
    parts = [{"type": "text", "text": "see"}, IMAGE, IMAGE, {"type": "input_audio", "data": "x"}]
    assert losses(tmp_path, chat({"role": "user", "content": parts})).references == {"image_url": 2, "input_audio": 1}


def test_what_is_torn_or_cut_is_counted(tmp_path: Path) -> None:
    found = losses(tmp_path, chat(ask(call(GOOD)), answer("2", truncated=True)), b'{"messages": [')
    assert found.truncated == {"answers": 1, "items": 1}


def test_times_that_run_backwards_are_counted(tmp_path: Path) -> None:
    def at(*times: Any) -> Any:
        asked = [ask(call(GOOD, call_id=f"c{number}"), timestamp=time) for number, time in enumerate(times)]
        return chat(*asked, batch=str(times))

    early, late = "2026-01-01T10:00:00+00:00", "2026-01-01T10:30:00+01:00"
    assert losses(tmp_path, at(early, late), at(late, early), at(late)).records == {"clocks_out_of_order": 1}
    other = tmp_path / "other"
    other.mkdir()
    assert losses(other, at(early, "2026-01-01T09:00:00")).records == {}


def test_surrogates_are_counted(tmp_path: Path) -> None:
    torn = b'{"messages": [{"role": "user", "content": "\\ud83d"}]}'
    assert losses(tmp_path, torn, chat()).records == {"surrogates_replaced": 1}


def test_a_predecessor_that_is_not_there_is_counted(tmp_path: Path) -> None:
    found = losses(tmp_path, session.user("u2", "gone"), session.model("a2", "u2", session.text("two")))
    assert found.records == {"dangling_parent": 1}
    assert found.hidden == {"compaction": 1}


def test_text_that_looks_like_a_record_is_not_counted(tmp_path: Path) -> None:
    said = '"extra":{"a":1},"answers":{"by":"position"},"sha256":"00"'
    inside = json.dumps({"extra": {"a": 1}, "answers": {"by": "name"}, "sha256": "00"})
    assert losses(tmp_path, chat(ask(call(inside), content=said), answer(said))) == Losses(links={"id": 1})


def test_what_is_read_again_is_counted_again_and_what_is_not_read_is_not(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    first, second = chat(ask(call(GOOD), team="b")), chat(batch=1)
    for records, extra in (
        ([first], {"messages.team": 1}),
        ([second], {"batch": 1}),
        ([first, second], {"batch": 1, "messages.team": 1}),
    ):
        sources = find_sources([write(tmp_path / "log.jsonl", records)], "auto")
        assert ingest(store, sources, IngestOptions()).losses.extra == extra


def test_losses_add_up_over_the_formats(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps(atif_runs.FULL))
    found = ingest(new_store(tmp_path), find_sources([path], "auto"), IngestOptions()).losses
    assert found.references == {"image": 1}
    assert sum(found.links.values()) == 3


@pytest.mark.parametrize("kinds", [3, 30])
def test_a_person_is_shown_a_dozen_lines_and_a_script_all(tmp_path: Path, kinds: int) -> None:
    assert result(tmp_path, "init") == {"store": ".curation"}
    keys = {f"k{number}": number for number in range(kinds)}
    log = write(tmp_path / "log.jsonl", [chat(ask(call("[]", call_id=None)), answer("1", "zz"), **keys)])
    shown = curate(tmp_path, "import", str(log)).stdout
    section = shown.partition("losses\n")[2].partition("\n\n")[0].splitlines()
    assert 4 <= len(section) <= 12
    assert ("others:" in shown) is (kinds > 8)
    printed = result(tmp_path, "import", str(log))["losses"]
    assert printed["extra"] == dict.fromkeys(keys, 1) | {"messages.tool_call_id": 1}
    assert set(printed) == set(Losses.__struct_fields__)


def test_real_runs_lose_what_their_files_show(tmp_path: Path, logs: Path) -> None:
    """The calls whose id stands for an earlier one too, and the parts of all messages, counted in the file itself."""
    path = logs / "tau-bench" / "gpt-4o-airline-tasks-00-24.json"
    runs, _ = canonical.parse(path.read_bytes())
    ids = [[made["id"] for said in run["traj"] for made in said.get("tool_calls") or ()] for run in runs]
    found = ingest(new_store(tmp_path), find_sources([path], "auto"), IngestOptions()).losses
    assert found.ids == {"repeated": sum(len(one) - len(set(one)) for one in ids)}
    answers = sum(said["role"] == "tool" for run in runs for said in run["traj"])
    assert sum(found.links.values()) == answers
    assert found.records["repeated_call_id"] == sum(len(one) > len(set(one)) for one in ids)
