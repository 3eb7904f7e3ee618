"""Logs of calls, spans, runs and rows with values swapped for others: every piece is an item, and nothing is raised."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from curation.importers import call_logs, hf_rows, langsmith, openinference, otel_genai, sharegpt
from curation.importers.face import FAULT, Importer, Parsed
from schemas.canonical import encode
from schemas.reasons import QUARANTINE, WARNINGS
from schemas.trajectory import decode
from tests.importers import test_call_logs as logged
from tests.importers import test_langsmith as runs
from tests.importers import test_message_calls as blocks
from tests.importers import test_rows as rows
from tests.importers import test_spans as spans
from tests.importers.provider_streams import block_events, chat_chunks, response_events

THOUGHT = {"type": "thinking", "thinking": "A first.", "signature": "s"}
STREAMS: list[Any] = [
    {
        "request": {"messages": [logged.USER]},
        "response": chat_chunks(logged.run_lines("A", 0)[0]["response"]["choices"][0]["message"], "stop"),
    },
    {
        "request": {"messages": [logged.USER]},
        "response": block_events(
            blocks.message(
                1, {"type": "text", "text": "Two."}, {"type": "tool_use", "id": "t", "name": "look", "input": "{}"}
            )
        ),
    },
    {
        "request": {"input": "How many?"},
        "response": response_events({"id": "resp_1", "output": [logged.said("Two."), logged.called(1, "A")]}),
    },
]
RESPONSES = [
    logged.response(1, [logged.called(1, "A"), logged.called(2, "B")], "How many?"),
    logged.response(2, [logged.said("Two.")], logged.got(1), "resp_1"),
]
SEEDS: list[tuple[Importer, list[Any]]] = [
    (call_logs.IMPORTER, logged.eight_lines()),
    (call_logs.IMPORTER, RESPONSES),
    (call_logs.IMPORTER, blocks.run_lines((THOUGHT,))),
    (call_logs.IMPORTER, STREAMS),
    (otel_genai.IMPORTER, spans.TRACE),
    (otel_genai.IMPORTER, [spans.otlp(spans.TRACE)]),
    (openinference.IMPORTER, spans.TRACE),
    (langsmith.IMPORTER, runs.TREE),
    (langsmith.IMPORTER, [runs.posted(runs.TREE)]),
    (hf_rows.IMPORTER, [rows.NEBIUS, rows.GYM]),
    (sharegpt.IMPORTER, [rows.conversation(rows.HUMAN, rows.CALL, rows.ANSWER, id="x", tools="[]")]),
]
OTHERS: list[Any] = [None, True, 0, 1e308, "", "\x00", "[]", [], {}, [None], [[]], {"a": None}, [{"role": "user"}]]


@st.composite
def mutated(draw: st.DrawFn) -> tuple[Importer, list[Any]]:
    importer, values = draw(st.sampled_from(SEEDS))
    made = json.loads(json.dumps(values))
    for _ in range(draw(st.integers(1, 4))):
        swap(made, draw)
    return importer, made


def swap(value: Any, draw: Callable[..., Any]) -> None:
    """Put another value, or none, in a place somewhere below."""
    while True:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not keys:
            return
        key = draw(st.sampled_from(keys))
        if isinstance(value[key], dict | list) and value[key] and draw(st.integers(0, 4)):
            value = value[key]
            continue
        if draw(st.booleans()):
            value[key] = copy.deepcopy(draw(st.sampled_from(OTHERS)))
        else:
            del value[key]
        return


@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(made=mutated())
def test_every_piece_is_an_item(tmp_path: Path, made: tuple[Importer, list[Any]]) -> None:
    importer, values = made
    data = b"".join(json.dumps(value).encode() + b"\n" for value in values)
    (tmp_path / "log").write_bytes(data)
    assert isinstance(importer.sniff(data), str)
    seen = set()
    for item in importer.read(tmp_path / "log"):
        assert (item.raw, item.place, item.part) not in seen
        seen.add((item.raw, item.place, item.part))
        if isinstance(item, Parsed):
            assert decode(encode(item.trajectory)) == item.trajectory
            assert set(item.warnings) <= set(WARNINGS)
        else:
            assert item.code in QUARANTINE.keys() - {FAULT}


@pytest.mark.parametrize("module", [hf_rows, langsmith, call_logs, openinference, otel_genai, sharegpt])
def test_what_a_format_fills_is_said_for_every_field(module: Any) -> None:
    fields = "task tools budget start_state attempt outcome stop model usage reasoning branch".split()
    assert sorted(module.FILLS) == sorted(fields)
