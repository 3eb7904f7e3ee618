"""Small logs of every format there is to mutate: the real ones, cut to a size, and made-up ones where there is none."""

import json
import zipfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from curation.errors import UsageError
from curation.importers import formats
from tests.eight import records
from tests.importers import atif_runs, test_call_logs, test_codex, test_harbor, test_message_calls, test_rows
from tests.importers.mutations import Kind, Log

MAX_ITEMS, MAX_TEXT, MAX_BYTES = 8, 300, 24_000
MAX_JSON_TEXT = 1_500  # arguments and results are JSON in a text: cut, they would be none
MAX_LOGS = 24


def read_corpus(logs: Path) -> dict[str, list[Log]]:
    """Logs by format, at least one of each that is registered, in an order that does not change."""
    corpus = defaultdict(list, made_up())
    for path in sorted(file for file in logs.rglob("*") if file.is_file()):
        try:
            name = formats.detect(path)[0].name
        except UsageError:
            continue
        if len(corpus[name]) < MAX_LOGS:
            corpus[name].append(_small(name, path))
    return dict(corpus)


def made_up() -> dict[str, list[Log]]:
    """Logs of the formats of which no real one is at hand."""
    trial = test_harbor.trial({"reward": 1.0}, "AgentTimeoutError")
    steps = test_harbor.trial(step_results=[{"step_name": "one", "verifier_result": {"rewards": {"a": 1, "b": 0}}}])
    lock = {"lock.json": json.dumps({"task": {"digest": test_harbor.DIGEST}}).encode()}
    ran = {"agent/trajectory.json": json.dumps(test_harbor.RAN).encode()}
    rollout = [
        test_codex.meta(originator="codex_exec", base_instructions={"text": "You count."}),
        *test_codex.asked("How many A17?"),
        test_codex.item("reasoning", summary=[{"type": "summary_text", "text": "Counting"}], encrypted_content="gA"),
        test_codex.call("c1"),
        test_codex.output("c1"),
        test_codex.tokens(10, 5),
        test_codex.said("assistant", "Two."),
        test_codex.event("task_complete", last_agent_message="Two."),
    ]
    talk = test_rows.conversation(test_rows.HUMAN, test_rows.CALL, test_rows.ANSWER, test_rows.DONE, id="x", tools="[]")
    rows = [test_rows.NEBIUS, test_rows.GYM]
    answered = [
        test_call_logs.response(1, [test_call_logs.called(1, "A")], "How many?"),
        test_call_logs.response(2, [test_call_logs.said("Two.")], test_call_logs.got(1), "resp_1"),
    ]
    called = [
        test_call_logs.eight_lines(),
        answered,
        test_message_calls.run_lines(),
        [test_message_calls.streamed(line) for line in test_message_calls.run_lines()],
    ]
    return {
        "atif": [_made("atif", [atif_runs.FULL], "value")],
        "codex": [_made("codex", rollout)],
        "harbor": [_made("harbor", [each], "value", beside=lock | ran) for each in (trial, steps)],
        "hf-rows": [_made("hf-rows", rows), _made("hf-rows", rows, "list")],
        "model-calls": [_made("model-calls", lines) for lines in called],
        "openai-chat": [_made("openai-chat", records())],
        "sharegpt": [_made("sharegpt", [talk, talk]), _made("sharegpt", [talk], "list")],
        "sharegpt-user-answers": [_made("sharegpt-user-answers", [talk])],
    }


def columnar(folder: Path) -> list[Log]:
    """Rows in Parquet and Arrow files, of which only the bytes can be changed."""
    files = [write(folder, [test_rows.NEBIUS]) for write in test_rows.WRITERS[:3]]
    return [Log("hf-rows", path.name, "bytes", {path.name: path.read_bytes()}) for path in files]


def _made(name: str, values: list[Any], kind: Kind = "lines", **more: Any) -> Log:
    return Log(name, "made up", kind, {str(number): value for number, value in enumerate(values)}, **more)


def _small(name: str, path: Path) -> Log:
    """A real log with what is long in it cut, in its own layout."""
    if zipfile.is_zipfile(path):
        return _small_archive(name, path)
    data = path.read_bytes()
    try:
        return Log(name, path.as_posix(), "value", {"": _cut(json.loads(data))})
    except ValueError:
        lines = enumerate(data.splitlines())
        return Log(name, path.as_posix(), "lines", _cut({str(number): _value(line) for number, line in lines}))


def _value(line: bytes) -> Any:
    """The value of a line, or a line that holds none as it is."""
    try:
        return json.loads(line)
    except ValueError:
        return line


def _small_archive(name: str, path: Path) -> Log:
    with zipfile.ZipFile(path) as archive:
        try:
            members = {member: archive.read(member) for member in archive.namelist()[:MAX_ITEMS]}
        except NotImplementedError:  # packed in a way that only the importer unpacks
            return Log(name, path.as_posix(), "bytes", {path.name: path.read_bytes()})
    return Log(name, path.as_posix(), "archive", {member: _cut(json.loads(data)) for member, data in members.items()})


def _cut(value: Any) -> Any:
    """What is left within the limits, of every list the beginning and the end."""
    items = MAX_ITEMS
    while len(json.dumps(cut := _cut_to(value, items), default=repr)) > MAX_BYTES and items > 2:
        items -= 1
    return cut


def _cut_to(value: Any, items: int) -> Any:
    match value:
        case dict() if len(value) > 40:
            return {key: _cut_to(value[key], items) for key in list(value)[:40]}
        case dict():
            return {key: _cut_to(inside, items) for key, inside in value.items()}
        case list():
            kept = value if len(value) <= items else [*value[: items - 1], value[-1]]
            return [_cut_to(inside, items) for inside in kept]
        case str():
            return value[: MAX_JSON_TEXT if value[:1] in ("{", "[") else MAX_TEXT]
    return value
