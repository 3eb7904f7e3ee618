"""The formats that can be read. A new one is one module beside this and one line here."""

from codecs import getincrementaldecoder
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from curation.errors import UsageError
from curation.importers import (
    agentdojo,
    atif,
    call_logs,
    claude_code,
    codex,
    codex_exec,
    harbor,
    hf_rows,
    inspect_eval,
    langsmith,
    mini_swe_agent,
    openai_chat,
    openhands,
    openinference,
    otel_genai,
    sharegpt,
    swe_agent,
    tau2,
    tau_bench,
)
from curation.importers.face import Importer
from curation.importers.heads import head_value, head_values
from curation.importers.lines import BOM
from schemas import canonical

HEAD_BYTES = 1 << 18
_COMPRESSED = (b"\x1f\x8b", b"PK\x03\x04", b"BZh", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd")  # gzip, zip, bzip2, xz, zstd
_OTHER_UNICODE = (b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff")

_MODULES = (
    agentdojo,
    atif,
    claude_code,
    codex,
    codex_exec,
    harbor,
    hf_rows,
    inspect_eval,
    langsmith,
    mini_swe_agent,
    call_logs,
    openai_chat,
    openhands,
    openinference,
    otel_genai,
    sharegpt,
    swe_agent,
    tau2,
    tau_bench,
)
IMPORTERS: dict[str, Importer] = {module.IMPORTER.name: module.IMPORTER for module in _MODULES} | {
    sharegpt.USER_ANSWERS.name: sharegpt.USER_ANSWERS
}
FILLS: dict[str, Mapping[str, str]] = {module.IMPORTER.name: module.FILLS for module in _MODULES} | {
    sharegpt.USER_ANSWERS.name: sharegpt.FILLS
}
"""By format, where each fact about an attempt comes from: ``recorded`` in the log, ``rule NAME@VERSION`` of the
importer, ``side file`` where no such log holds it, ``unknown`` where no side file can tell it either."""


def find(name: str) -> Importer:
    """The importer of a format. Raises UsageError that names the formats there are."""
    if name not in IMPORTERS:
        raise UsageError(f"unknown format {name!r}; known: {', '.join(IMPORTERS)}; or leave --format out")
    return IMPORTERS[name]


def detect(path: Path) -> tuple[Importer, str]:
    """The importer whose format a file is of, by what it holds, and what that is; its name is not looked at.

    Raises UsageError where no format fits or several do; OSError where the file cannot be read.
    """
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    fitting = [(importer, why) for importer in IMPORTERS.values() if (why := importer.sniff(head))]
    if len(fitting) > 1:
        fitting = [pair for pair in fitting if pair[0].name != openai_chat.IMPORTER.name]  # plain chats have no marks
    match fitting:
        case [found]:
            return found
        case []:
            known = ", ".join(IMPORTERS)
            raise UsageError(f"{path}: not a log of a known format ({known}); {_way_out(head)}")
        case _:
            names = ", ".join(importer.name for importer, _ in fitting)
            raise UsageError(f"{path}: could be any of {names}; name the format with --format")


def _way_out(head: bytes) -> str:
    if head.startswith(_COMPRESSED):
        return "it is compressed: decompress it first"
    if {"$defs", "$schema"} & _keys(head_value(head)):
        return "it is a JSON Schema: it says what a log looks like and holds none"
    if tau2.holds_tasks(head):
        return "it holds tau2 tasks, no runs: import the results of a run"
    if b'"model_patch"' in head and b'"instance_id"' in head:
        return "it holds predictions, no runs: import the runs that they were made in"
    text = head.removeprefix(BOM).strip()
    if not text:
        return "it is empty" if not head else "it holds nothing but white space"
    if head.startswith(_OTHER_UNICODE):
        return "it is UTF-16 or UTF-32: write it as UTF-8 first"
    if text[:1] not in (b"[", b"{"):
        return f"it {'begins like no JSON' if _is_text(head) else 'is not UTF-8'}; name it with --format"
    if fault := _fault(text, cut=len(head) == HEAD_BYTES):
        return f"it begins like JSON that cannot be read: {fault}; mend it, or name the format with --format"
    first = head_value(head)
    if words := _laid_out(next(iter(head_values(head)), None) if first is None else first):
        return words
    return "it is JSON: write chats as one object a line, each with its `messages`, or name the format with --format"


def _laid_out(value: Any) -> str:
    """What to do with calls or chats that no format reads as they are laid out; "" where there are none."""
    match value:
        case {"custom_id": _, "response": {"body": _}} if "request" not in value:
            return (
                "it is a batch output: responses whose requests are in the batch's input file; join both by custom_id, "
                'one {"request": BODY, "response": BODY} a line'
            )
        case dict() if openai_chat.is_chat(value):
            return "it is a chat over several lines: write it as one object a line, as `jq -c . FILE` does"
        case [first, *_] if openai_chat.is_chat(first):
            return "it is a list of chats: write them as one object a line, as `jq -c '.[]' FILE` does"
    return ""


def _fault(text: bytes, *, cut: bool) -> str:
    """Why the JSON door would refuse what a file begins with, be it one value or lines; "" where it would not."""
    try:
        canonical.parse(text)
    except canonical.UnreadableError as error:
        line, end, _ = text.partition(b"\n")
        if error.code == "trailing_text" and end and not (first := _fault(line, cut=False)).startswith("truncated"):
            return first
        return "" if cut and error.code == "truncated" else str(error)
    return ""


def _is_text(head: bytes) -> bool:
    """Whether bytes that may end in the middle of a letter are UTF-8."""
    try:
        getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True


def _keys(value: Any) -> set[str]:
    return set(value) if isinstance(value, dict) else set()
