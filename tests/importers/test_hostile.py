"""Torn, mutated and oversized input: every line read is one item, and nothing is raised."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from curation.importers import openai_chat, tau_bench
from curation.importers.face import Importer, Item, Parsed, Rejected
from schemas.canonical import encode
from schemas.reasons import QUARANTINE, WARNINGS
from schemas.trajectory import decode
from tests.eight import lines
from tests.importers.reading import accepted, answer, ask, call, chat, read_chats, refuse_chat

RUN = {"task_id": 1, "trial": 0, "reward": 0.0, "info": {}, "traj": [ask(call('{"sku": "A17"}')), answer("Ünknown")]}
FILES = {
    openai_chat.IMPORTER.name: (openai_chat.IMPORTER, lines()),
    tau_bench.IMPORTER.name: (tau_bench.IMPORTER, json.dumps([RUN] * 3, ensure_ascii=False).encode()),
}


def read(folder: Path, importer: Importer, data: bytes, limit: int = 1 << 20) -> list[Item]:
    path = folder / "log"
    path.write_bytes(data)
    return list(importer.read(path, limit))


@st.composite
def mutations(draw: st.DrawFn) -> tuple[Importer, bytes]:
    importer, data = FILES[draw(st.sampled_from(sorted(FILES)))]
    mutated = bytearray(data)
    for _ in range(draw(st.integers(1, 3))):
        at, to = sorted((draw(st.integers(0, len(mutated))), draw(st.integers(0, len(mutated)))))
        match draw(st.sampled_from(["cut", "repeat", "swap", "write"])):
            case "cut":
                del mutated[at:to]
            case "repeat":
                mutated[to:to] = mutated[at:to]
            case "swap" if at < to < len(mutated):
                mutated[at], mutated[to] = mutated[to], mutated[at]
            case _:
                mutated[at : at + 1] = draw(
                    st.sampled_from([b'"', b"\\", b"\n", b"]", b"\xff", b"\x00", b"1e999", b"NaN"])
                )
    return importer, bytes(mutated)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(mutated=mutations())
def test_every_line_of_a_mutated_file_is_one_item(tmp_path: Path, mutated: tuple[Importer, bytes]) -> None:
    importer, data = mutated
    items = read(tmp_path, importer, data)
    if importer is openai_chat.IMPORTER:
        assert len(items) == sum(bool(line.strip(b" \t\r\n\x0b\x0c")) for line in data.split(b"\n"))
    for item in items:
        assert data[item.offset :].startswith(item.raw)
        match item:
            case Parsed():
                assert decode(encode(item.trajectory)) == item.trajectory
                assert set(item.warnings) <= set(WARNINGS)
            case Rejected():
                assert item.code in QUARANTINE
    assert len({(item.place, item.offset) for item in items}) == len(items)


def test_torn_and_trailing_lines_are_placed(tmp_path: Path) -> None:
    whole = json.dumps(chat(id="r1")).encode()
    torn, junk = whole[:-9], b'{"a":2}TRAILER'
    first, second, third, fourth = read_chats(tmp_path, whole, torn, whole, junk)
    assert accepted(first).trajectory == accepted(third).trajectory
    assert second == Rejected("truncated", second.detail, torn, 2, len(whole) + 1)  # type: ignore[union-attr]
    assert fourth == Rejected("trailing_text", fourth.detail, junk, 4, 2 * len(whole) + len(torn) + 3)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b'{"messages":[],"id":"a","id":"b"}', "duplicate_key"),
        (b'{"messages":[],"note":{"sku":"A18","s\\u006bu":"A17"}}', "duplicate_key"),
        (b'{"messages":[],"score":NaN}', "not_json"),
        (b'{"messages":[],"score":Infinity}', "not_json"),
        (b'{"messages":[],"score":1e400}', "number_out_of_range"),
        (b'{"messages":[],"score":' + b"9" * 400 + b".0}", "number_out_of_range"),
        (b'{"messages":[],"score":' + b"9" * 5000 + b"}", "number_out_of_range"),
        (b'{"messages":[],"id":"\xff"}', "bad_utf8"),
        (b"[" * 200_000, "too_deep"),
        (b'{"messages":' + b"[" * 200_000 + b"]" * 200_000 + b"}", "too_deep"),
    ],
)
def test_what_two_parsers_would_read_differently_is_quarantined(tmp_path: Path, line: bytes, code: str) -> None:
    assert refuse_chat(tmp_path, line).code == code


def test_a_lone_surrogate_is_replaced_counted_and_kept_in_the_raw_line(tmp_path: Path) -> None:
    line = rb'{"messages":[{"role":"user","content":"\ud83d \ude00 \ud83d\ude00"}]}'
    (item,) = read_chats(tmp_path, line)
    parsed = accepted(item)
    assert parsed.trajectory.messages[0].content == "\ufffd \ufffd \U0001f600"
    assert (parsed.replaced, parsed.warnings, parsed.raw) == (2, ("surrogates_replaced",), line)


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_record_over_the_limit_is_refused_unread_and_the_others_are_read(tmp_path: Path, name: str) -> None:
    importer, data = FILES[name]
    whole = read(tmp_path, importer, data)
    limit = max(len(item.raw) for item in whole) + 2
    items = read(tmp_path, importer, data.replace(b"A17", b"A" * limit, 1), limit)
    assert [(item.code, item.raw) for item in items if isinstance(item, Rejected)] == [("too_large", b"")]
    assert [item.place for item in items] == [item.place for item in whole]


def test_text_that_a_terminal_or_a_page_would_act_on_is_kept_as_data(tmp_path: Path) -> None:
    for text in ("\x1b[2K\rALL VERIFIED", "</script><b onclick=x>", "a\x00b", "=1+1"):
        (item,) = read_chats(tmp_path, chat(ask(call("{}")), answer(text)))
        assert accepted(item).trajectory.messages[2].content == text


@pytest.mark.parametrize("call_id", [None, "", "same"])
def test_linking_takes_time_in_proportion_to_the_calls(tmp_path: Path, call_id: str | None) -> None:
    def seconds(count: int) -> float:
        made: list[Any] = [call("{}", call_id=call_id) for _ in range(count)]
        record = chat(ask(*made), *[answer("x", call_id) for _ in range(count)])
        started = time.perf_counter()
        (item,) = read_chats(tmp_path, record)
        assert accepted(item).warnings in ((), ("repeated_call_id",))
        return time.perf_counter() - started

    seconds(100)
    assert seconds(30_000) < 60 * max(seconds(3_000), 0.01)
