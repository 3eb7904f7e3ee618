import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from curation.errors import UsageError
from curation.importers import formats
from curation.importers.face import Parsed, Rejected
from curation.ingest import IngestOptions, find_sources, ingest
from tests.importers.reading import ask, call, chat
from tests.ingest.logs import new_store

ANSWER = {
    "id": "c",
    "object": "chat.completion",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Two."}}],
}
BATCH = (
    json.dumps(
        {"id": "b1", "custom_id": "r1", "response": {"status_code": 200, "body": ANSWER}, "error": None}
    ).encode()
    + b"\n"
)


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
    ("data", "reason"),
    [
        (b"", "it is empty"),
        (b"\xef\xbb\xbf \r\n\n", "it holds nothing but white space"),
        (b"\x00\xff", "it is not UTF-8; name it with --format"),
        (json.dumps(chat()).encode("utf-16"), "it is UTF-16 or UTF-32: write it as UTF-8 first"),
        (b"hello", "it begins like no JSON; name it with --format"),
        (b"[]", "it is JSON: write chats as .* with --format"),
        (b"{}\n{}\n", "it is JSON: write chats as .* with --format"),
        (b'{"messages":["x"]}', "it is JSON: write chats as .* with --format"),
        (json.dumps(chat(), indent=2).encode(), r"a chat over several lines: .* as `jq -c \. FILE` does$"),
        (json.dumps([chat(), chat()]).encode(), r"a list of chats: .* as `jq -c '\.\[\]' FILE` does$"),
        (json.dumps([chat()], indent=2).encode(), r"a list of chats: .* as `jq -c '\.\[\]' FILE` does$"),
        (BATCH, "requests are in the batch's input file; join both by custom_id"),
        (BATCH + BATCH, "requests are in the batch's input file; join both by custom_id"),
        (b'[{"task_id":1}]', "it is JSON: write chats as .* with --format"),
        (b'{"a":"' + b"x" * formats.HEAD_BYTES, "it is JSON: write chats as .* with --format"),
        (b"[" * 100_000, "cannot be read: too_deep: .* limit is 200 levels; mend it"),
        (b'{"n":' + b"9" * 5000 + b"}\n{}\n", "cannot be read: number_out_of_range: .*; mend it"),
        (b'{"n":"\xe9"}', "cannot be read: bad_utf8: .*; mend it"),
        (b'{"n":1} x', "cannot be read: trailing_text: .*; mend it"),
        (b'{"n":1', "cannot be read: truncated: .*; mend it"),
        (b'{"n":"\\ud800"}', "it is JSON: write chats as .* with --format"),
    ],
)
def test_what_no_format_knows_is_refused_with_the_formats_there_are_and_the_reason(
    tmp_path: Path, data: bytes, reason: str
) -> None:
    known = re.escape(", ".join(formats.IMPORTERS))
    with pytest.raises(UsageError, match=rf"a\.log: not a log of a known format \({known}\); .*{reason}"):
        detected(tmp_path, data)


@pytest.mark.parametrize("chats", [[chat(id="a")], [chat(id="a"), chat(id="b")]])
def test_the_way_out_for_chats_laid_out_otherwise_works(tmp_path: Path, chats: list[object]) -> None:
    single = len(chats) == 1
    path = tmp_path / "laid.json"
    path.write_text(json.dumps(chats[0] if single else chats, indent=2))
    with pytest.raises(UsageError) as refusal:
        formats.detect(path)
    program = re.findall(r"jq -c '?([^' ]+)'? FILE", str(refusal.value))
    assert program == ["." if single else ".[]"]
    path.write_text("".join(json.dumps(each) + "\n" for each in chats))
    assert [item.key for item in formats.detect(path)[0].read(path) if isinstance(item, Parsed)] == ["a", "b"][
        : len(chats)
    ]


def test_a_batch_output_joined_with_its_input_is_read(tmp_path: Path) -> None:
    joined = {"custom_id": "r1", "request": {"model": "m", **chat()}, "response": ANSWER}
    path = tmp_path / "joined.jsonl"
    path.write_text(json.dumps(joined) + "\n")
    (item,) = formats.detect(path)[0].read(path)
    assert isinstance(item, Parsed)
    assert [message.role for message in item.trajectory.messages] == ["user", "assistant"]


def test_a_folder_of_hidden_logs_alone_names_what_was_passed_over(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    (logs / ".agent").mkdir(parents=True)
    (logs / ".agent" / "a.jsonl").write_text(json.dumps(chat()) + "\n")
    (logs / "LICENSE").write_text("free")
    with pytest.raises(UsageError, match=re.escape(f"name {(logs / '.agent').as_posix()!r} to import it")):
        find_sources([logs], "auto")
    assert len(find_sources([logs / ".agent"], "auto").files) == 1
    (logs / ".agent").rename(tmp_path / ".agent")
    with pytest.raises(UsageError, match="in this folder; name one, with --format"):
        find_sources([logs], "auto")


FAULTS = [
    (b"[" * 500 + b"]" * 500, "too_deep"),
    (b'{"a":' * 300 + b"1" + b"}" * 300, "too_deep"),
    (b"9" * 5000, "number_out_of_range"),
    (b'"a\xffb"', "bad_utf8"),
    (b'"a\tb"', "not_json"),
    (b'"C:\\dir"', "not_json"),
    (b'"a\\ud800b"', ""),
]


@pytest.mark.parametrize(("value", "code"), FAULTS)
@pytest.mark.parametrize(
    ("log", "name"),
    [
        (b'{"more": %b, "messages": [{"role": "user", "content": "x"}]}', "openai-chat"),
        (b'{"schema_version": "ATIF-v1.5",\n "more": %b,\n "steps": []}', "atif"),
        (b'[{"more": [%b],\n "task_id": 1, "reward": 1.0,\n "traj": []}]', "tau-bench"),
        (b'{"type": "summary", "more": {"a": %b}, "summary": "x", "leafUuid": "u"}\n', "claude-code"),
        (b'{"trace_id": "t", "id": "r", "run_type": "llm", "dotted_order": "x",\n"more": %b}', "langsmith"),
    ],
)
def test_a_first_record_that_cannot_be_read_is_of_its_format_and_refused_with_its_code(
    tmp_path: Path, log: bytes, name: str, value: bytes, code: str
) -> None:
    data = log.replace(b"%b", value)
    assert detected(tmp_path, data) == name
    items = list(formats.find(name).read(tmp_path / "a.log"))
    assert items
    codes = {item.code for item in items if isinstance(item, Rejected)}
    assert code in codes or not code
    assert not code or not any(isinstance(item, Parsed) for item in items)


@pytest.mark.parametrize(("value", "code"), FAULTS)
def test_a_line_that_cannot_be_read_is_counted_wherever_it_stands_in_a_folder(
    tmp_path: Path, value: bytes, code: str
) -> None:
    good, bad = json.dumps(chat()).encode(), b'{"id": "b", "more": %b, "messages": [{"role": "user", "content": "x"}]}'
    bad = bad.replace(b"%b", value)
    logs = tmp_path / "logs"
    logs.mkdir()
    for name, parts in {"alone": [bad], "first": [bad, good], "last": [good, bad]}.items():
        (logs / name).write_bytes(b"\n".join(parts) + b"\n")
    result = ingest(new_store(tmp_path), find_sources([logs], "auto"), IngestOptions())
    assert not result.passed_over
    assert result.read == 5
    assert (result.quarantined, result.reasons) == ((3, {code: 3}) if code else (0, {}))


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
