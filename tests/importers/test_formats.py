import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from curation.errors import UsageError
from curation.importers import formats
from curation.importers.face import Parsed, Rejected
from tests.importers.reading import ask, call, chat


def detected(folder: Path, data: bytes) -> str:
    path = folder / "a.log"
    path.write_bytes(data)
    return formats.detect(path)[0].name


@pytest.mark.parametrize(
    "data",
    [
        json.dumps(chat()).encode(),
        b"\xef\xbb\xbf\r\n" + json.dumps(chat()).encode(),
        b'{"torn":\n' + json.dumps(chat()).encode() + b"\n",
        json.dumps(chat(ask(call("x" * 2 * formats.HEAD_BYTES)))).encode(),
        b'{"messages": []}',
    ],
)
def test_chats_are_known_by_what_they_hold(tmp_path: Path, data: bytes) -> None:
    assert detected(tmp_path, data) == "openai-chat"


@pytest.mark.parametrize("filler", ["x", "x" * 2 * formats.HEAD_BYTES])
def test_tau_bench_is_known_by_what_it_holds(tmp_path: Path, filler: str) -> None:
    runs = [{"task_id": 1, "info": {"task": {"instruction": filler}}, "reward": 1.0, "traj": []}]
    assert detected(tmp_path, json.dumps(runs, indent=1).encode()) == "tau-bench"


@pytest.mark.parametrize("indent", [None, 4])
def test_agentdojo_is_known_by_what_it_holds_however_it_is_laid_out(tmp_path: Path, indent: int | None) -> None:
    run = {"suite_name": "slack", "pipeline_name": "p", "user_task_id": "user_task_0", **chat()}
    assert detected(tmp_path, json.dumps(run, indent=indent).encode()) == "agentdojo"
    assert detected(tmp_path, json.dumps(run | {"injections": {"a": "x" * formats.HEAD_BYTES}}).encode()) == "agentdojo"


@pytest.mark.parametrize(
    "data", [b"", b"\x00\xff", b"hello", b"[]", b"{}", b'{"messages":["x"]}', b"[" * 100_000, b'[{"task_id":1}]']
)
def test_what_no_format_knows_is_refused_with_the_formats_there_are(tmp_path: Path, data: bytes) -> None:
    known = re.escape(", ".join(formats.IMPORTERS))
    with pytest.raises(UsageError, match=rf"a\.log: not a log of a known format \({known}\).*--format"):
        detected(tmp_path, data)


def test_a_format_is_found_by_name() -> None:
    assert [formats.find(name).name for name in formats.IMPORTERS] == list(formats.IMPORTERS)
    with pytest.raises(UsageError, match=f"unknown format 'csv'; known: {', '.join(formats.IMPORTERS)}"):
        formats.find("csv")


def test_every_real_log_is_imported_or_refused_for_a_right_reason(
    logs: Path, record_property: Callable[[str, object], None]
) -> None:
    """Of every file by format: files, attempts and what is quarantined, with the code and how often."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    refused: Counter[str] = Counter()
    for path in sorted(file for file in logs.rglob("*") if file.is_file()):
        folder = path.relative_to(logs).parts[0]
        try:
            importer, why = formats.detect(path)
        except UsageError as error:
            refused[kind_of(path, str(error))] += 1
            continue
        assert why
        row = counts[f"{folder}: {importer.name}"]
        row["files"] += 1
        for item in importer.read(path):
            row["accepted" if isinstance(item, Parsed) else right_reason(path, item)] += 1
    found = {name: dict(row) for name, row in counts.items()}
    rows = [f"{name:32} {', '.join(f'{what} {n}' for what, n in row.items())}" for name, row in found.items()]
    record_property("table", "\n".join([*rows, *(f"{'no log: ' + what:32} files {n}" for what, n in refused.items())]))
    assert found == {
        "agentdojo: agentdojo": {"files": 130, "accepted": 130},
        "claude-code: claude-code": {"files": 4, "accepted": 5, "no line of a session": 6},
        "codex: codex-exec": {"files": 6, "accepted": 6},
        "inspect_ai: inspect": {"files": 21, "accepted": 45, "no samples": 1},
        "langsmith: langsmith": {"files": 11, "accepted": 11},
        "mini-swe-agent: mini-swe-agent": {"files": 2, "accepted": 2},
        "openhands: openhands": {"files": 6, "accepted": 9},
        "openinference: openinference": {"files": 2, "accepted": 2},
        "openinference: otel-genai": {"files": 13, "accepted": 18, "no call of a chat model": 7},
        "swe-agent: swe-agent": {"files": 13, "accepted": 13},
        "tau-bench: tau-bench": {"files": 1, "accepted": 100},
        "tau2-bench: tau2": {"files": 4, "accepted": 6},
    }
    assert refused == {
        "licence or provenance": 19,
        "settings": 2,
        "predictions": 3,
        "JSON Schema": 5,
        "tasks": 2,
        "expected result of a test": 11,
    }


def right_reason(path: Path, item: Rejected) -> str:
    """Why an item of a real log is quarantined, where what it holds bears that out."""
    assert item.code == "not_a_record"
    if path.name == "edge_cases.jsonl":
        assert not any(is_line_of_session(line) for line in item.raw.splitlines())
        return "no line of a session"
    if "no samples" in item.detail:
        assert not json.loads(path.read_bytes()).get("samples")
        return "no samples"
    assert "no call of a chat model" in item.detail
    return "no call of a chat model"


def is_line_of_session(line: bytes) -> bool:
    try:
        value = json.loads(line)
    except ValueError:
        return False
    message = value.get("message") if isinstance(value, dict) and "type" in value else None
    return isinstance(message, dict) and "content" in message


def kind_of(path: Path, refusal: str) -> str:
    """What a file of the real logs is that holds no log; the refusal says so of one that could be taken for it."""
    assert "not a log of a known format" in refusal
    if path.suffix in (".txt", ".md", "") and path.stem in ("PROVENANCE", "LICENSE"):
        return "licence or provenance"
    if path.suffix == ".yaml":
        return "settings"
    for words, kind in (("predictions", "predictions"), ("JSON Schema", "JSON Schema"), ("tau2 tasks", "tasks")):
        if words in refusal:
            return kind
    assert path.parent.name == "test_skeleton" or path.name == "capture-results.json", path
    assert "it is JSON" in refusal
    return "expected result of a test"
