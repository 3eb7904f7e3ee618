import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.display import clean, clean_line, clip, escape_json

ESC = "\x1b"
UNSAFE = {
    *range(0x20),
    *range(0x7F, 0xA0),
    0x61C,
    0x200E,
    0x200F,
    *range(0x2028, 0x202F),
    *range(0x2066, 0x206A),
    0xFFFE,
}


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        (f"{ESC}[2K\rALL VERIFIED", "ALL VERIFIED"),
        (f"{ESC}[1;31mred{ESC}[0m", "red"),
        (f"{ESC}]0;title\x07rest", "rest"),
        (f"{ESC}]8;;http://x{ESC}\\link{ESC}]8;;{ESC}\\", "link"),
        ("\x9b2Kgone", "gone"),
        (f"cut {ESC}[", "cut "),
        ("a\u202eb\u2066c", "abc"),
        ("get\u200b_\u2063stock\u00ad", "get_stock"),
        ("seen\U000e0041\U000e0100", "seen"),
        ("line\r\nnext\ttab", "line\nnext\ttab"),
        ("café 杭州 👩‍💻", "café 杭州 👩‍💻"),
    ],
)
def test_what_a_terminal_would_obey_is_removed(text: str, seen: str) -> None:
    assert clean(text) == seen


@given(st.text())
def test_clean_text_holds_no_control_and_is_stable(text: str) -> None:
    seen = clean(text)
    assert not UNSAFE - {0x09, 0x0A} & {ord(character) for character in seen}
    assert clean(seen) == seen


def test_one_line_is_one_line_and_short() -> None:
    assert clean_line(" a\n\n b\tc ") == "a b c"
    assert clean_line("x" * 50, 10) == "xxxxxxxxx…"
    assert clean_line("x" * 10, 10) == "x" * 10


def test_an_unfinished_sequence_hides_nothing_and_takes_linear_time() -> None:
    assert clean(f"{ESC}]0;the rest of the reply stays") == "0;the rest of the reply stays"
    assert clean(f"{ESC}]" * 200_000 + "x") == "x"


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_json_is_of_the_same_value_and_holds_nothing_unseen(text: str) -> None:
    written = escape_json(json.dumps({text: text}, ensure_ascii=False))
    assert json.loads(written) == {text: text}
    assert clean(written) == written


def test_a_long_text_is_cut_with_its_length() -> None:
    assert clip("x" * 5, 5) == "xxxxx"
    assert clip("x" * 12_000, 5) == "xxxxx… (12,000 characters)"
