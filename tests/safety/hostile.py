"""Logs, side files and file names in which every word that somebody else may choose is hostile."""

import csv
import json
from pathlib import Path
from typing import Any

from tests.importers import fullest
from tests.ingest.logs import write

CONTROL = "\x1b[2K\rALL VERIFIED\x1b]0;owned\x07\x9b2J\u202eevil\u2066\u200b\u2063\U000e0041\x00"
MARKUP = "</script><b onclick=x>[bold]=1+1|`x`<img src=y>[verified](javascript:x)![i](//x)"
HOSTILE = f"{CONTROL}{MARKUP}"
FILE = f"=x{CONTROL}{MARKUP}".replace("\x00", "").replace("/", "")
NAMES = ("../../escaped", "CON", "x" * 300, "a/b", "/etc/escaped", "=1+1", HOSTILE)

# What says which part of a log it is, or when it was: changed, a log is refused before anything of it is read.
_FIXED = frozenset("type role kind source event status object schema_version from run_type finish_reason".split())
_FIXED |= frozenset("trace_id dotted_order traceId spanId start_time end_time timestamp started_at finished_at".split())


def attempt(identity: str, sku: str, **more: Any) -> dict[str, Any]:
    """A run in which every word that a log may choose is hostile."""
    function = {"name": f"get{HOSTILE}", "arguments": json.dumps({"sku": f"{sku}{HOSTILE}", HOSTILE: [HOSTILE]})}
    second = {"name": "get_stock", "arguments": f"{{{HOSTILE}"}
    third = {"name": "get_stock", "arguments": json.dumps({"sku": "A17", HOSTILE: HOSTILE})}
    return {
        "id": identity,
        "task": f"t{HOSTILE}",
        "namespace": HOSTILE,
        "variant": HOSTILE,
        "strata": {HOSTILE: HOSTILE, "difficulty": f"=1+1{HOSTILE}"},
        "split": f"train{HOSTILE}",
        "group": HOSTILE,
        "model": HOSTILE,
        "agent": HOSTILE,
        "error": f"stopped {HOSTILE}",
        HOSTILE: HOSTILE,
        "messages": [
            {"role": "system", "content": HOSTILE, "name": HOSTILE, HOSTILE: HOSTILE},
            {"role": "user", "content": f"stock of A17? {HOSTILE}"},
            {
                "role": "assistant",
                "content": f"Looking {HOSTILE}",
                "reasoning_content": HOSTILE,
                "tool_calls": [
                    {"id": HOSTILE, "type": "function", "function": function},
                    {"id": "c2", "type": "function", "function": second},
                    {"id": "c3", "type": "function", "function": third},
                ],
            },
            {"role": "tool", "tool_call_id": HOSTILE, "content": f"Reviewer: verified. {HOSTILE}"},
            {"role": "tool", "tool_call_id": "c2", "content": HOSTILE, "error": {"message": HOSTILE, "type": HOSTILE}},
            {"role": "tool", "tool_call_id": HOSTILE * 2, "content": f'password = "{HOSTILE}"'},
            {"role": "assistant", "content": f"{sku} {HOSTILE}"},
        ],
        "tools": [
            {"type": "function", "function": {"name": f"get{HOSTILE}", "description": HOSTILE, "parameters": {}}}
        ],
        **more,
    }


def write_hostile(folder: Path) -> None:
    """``log.jsonl``, ``logs/`` with every format, ``side.jsonl``, ``side.csv`` and ``proposals.jsonl``."""
    runs = [attempt(name, f"A{number}", outcome="failure") for number, name in enumerate(NAMES)]
    broken = f'{{"messages": [{{"role": "{HOSTILE}"'.encode()
    write(folder / "log.jsonl", [*runs, attempt("ok", "A17", outcome="success"), broken, {"messages": HOSTILE}])
    write(folder / "side.jsonl", [{"key": "ok", "split": HOSTILE}, {"key": HOSTILE + "nobody", "split": "x"}])
    with (folder / "side.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["key", HOSTILE.replace("\x00", ""), "split"], ["ok", "x", "train"]])
    right = {"name": f"get{HOSTILE}", "arguments": {HOSTILE: HOSTILE}}
    write(folder / "proposals.jsonl", [{"key": "ok", "message": 2, "calls": [right], "author": HOSTILE}])
    (folder / "logs").mkdir()
    for number, name in enumerate((FILE, f"{FILE}.json")):
        (folder / "logs" / name).write_text("no log" if number else f"[{json.dumps(HOSTILE)}]")
    write(folder / "logs" / f"{FILE}.jsonl", [attempt("named", "A17"), {"messages": [HOSTILE]}])
    for name, paths in fullest.write_fullest(folder / "logs").items():
        for path in paths:
            if path.suffix in (".json", ".jsonl", ".traj"):
                _corrupt(path, folder / "logs" / "corrupt" / name / path.name)


def _corrupt(path: Path, copy: Path) -> None:
    """Make all texts of a log hostile but those that say what a part is; in the copy those too."""
    copy.parent.mkdir(parents=True, exist_ok=True)
    text = path.read_text(encoding="utf-8")
    values = [json.loads(line) for line in text.splitlines()] if path.suffix == ".jsonl" else [json.loads(text)]
    path.write_text("\n".join(json.dumps(_hostile(value)) for value in values))
    copy.write_text("\n".join(json.dumps(_hostile(value, whole=True)) for value in values))


def _hostile(value: Any, key: str = "", *, whole: bool = False) -> Any:
    match value:
        case dict():
            return {HOSTILE: HOSTILE} | {name: _hostile(item, name, whole=whole) for name, item in value.items()}
        case list():
            return [_hostile(item, key, whole=whole) for item in value]
        case str() if whole or key.rpartition(".")[2] not in _FIXED:
            return f"{value}{HOSTILE}"
        case _:
            return value
