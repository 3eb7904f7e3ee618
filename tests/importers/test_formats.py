import json
import re
from collections import Counter
from pathlib import Path

import pytest

from curation.errors import UsageError
from curation.importers import formats
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


def test_every_real_log_is_of_one_format_and_nothing_else_is(logs: Path) -> None:
    known, refused = {}, []
    for path in sorted(file for file in logs.rglob("*") if file.is_file()):
        try:
            known[path.relative_to(logs).as_posix()] = formats.detect(path)[0].name
        except UsageError as error:
            refused.append(str(error))
    assert all("not a log of a known format" in words for words in refused)
    assert Counter((name.partition("/")[0], found) for name, found in known.items()) == {
        ("agentdojo", "agentdojo"): 130,
        ("claude-code", "claude-code"): 4,
        ("codex", "codex-exec"): 6,
        ("inspect_ai", "inspect"): 21,
        ("langsmith", "langsmith"): 11,
        ("mini-swe-agent", "mini-swe-agent"): 2,
        ("openhands", "openhands"): 6,
        ("openinference", "openinference"): 2,
        ("openinference", "otel-genai"): 13,
        ("swe-agent", "swe-agent"): 13,
        ("tau-bench", "tau-bench"): 1,
        ("tau2-bench", "tau2"): 4,
    }
