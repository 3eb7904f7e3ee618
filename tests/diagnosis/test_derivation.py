"""How values follow from a prefix, and that parts of longer words never do."""

import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.diagnosis.derivation import candidates, derive, derives, underivable
from curation.diagnosis.tokens import fold, words
from schemas.canonical import encode, raw
from schemas.trajectory import Answers, Message

NAMES = st.text(string.ascii_letters + string.digits, min_size=1, max_size=6)
LETTERS_AND_DIGITS = NAMES.filter(lambda name: any(map(str.isdigit, name)) and any(map(str.isalpha, name)))


def said(*texts: str) -> list[Message]:
    return [Message("user", text) for text in texts]


def how(value: Any, *texts: str) -> str | None:
    found = derive(value, said(*texts))
    return None if found is None else found.how


@pytest.mark.parametrize(
    ("value", "text", "expected"),
    [
        ("A17", "请查询A17在杭州的库存", "verbatim"),
        ("A17", "A17를 찾아 주세요", "verbatim"),
        ("A17", "stock of #A17, please.", "verbatim"),
        ("A17", "A17/A18?", "verbatim"),
        ("#W12", "order #W12", "verbatim"),
        ("credit_card_4421486", '{"id": "credit_card_4421486"}', "verbatim"),
        ("A17", "a17", "spelling"),
        ("A17", "Ａ１７", "spelling"),
        ("New York", "new  york!", "spelling"),
        (1234, "1,234 pieces", "number"),
        ("1234", "1,234 pieces", "number"),
        (2.0, "2", "number"),
        (2, "two of them", "number"),
        (2, "要两个", "number"),
        (0.5, "50% off", "unit"),
        (90000, "90kg", "unit"),
        (1800, "in 30 minutes", "unit"),
        (1800, "30分钟后", "unit"),
        (1999, "$19.99", "unit"),
        ("2024-05-20", "on 5/20/2024", "date"),
        ("2024-05-20", "20/05/2024", "date"),
        ("2024-05-20", "2024年5月20日", "date"),
        ("2024-05-20", "the 20th of May, 2024", "date"),
        ("2024-05-20T00:00:00", "May 20, 2024", "date"),
        (5, "2 adults and 3 children", "arithmetic"),
        (True, "", "constant"),
        (None, "", "constant"),
        ([], "", "constant"),
    ],
)
def test_a_value_follows(value: Any, text: str, expected: str) -> None:
    assert how(value, text) == expected


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("A17", "A170"),
        ("A17", "BA17"),
        ("A17", "A17-B"),
        ("A17", "x_A17"),
        ("A17", "A17@example.com"),
        ("A-17", "A17"),
        ("A 17", "A17"),
        (17, "A17"),
        ("17", "A17"),
        (17, "1.17"),
        (3, "A3 and 13"),
        (2, "2024-05-02"),
        ("1", "1,234"),
        ("2024-05-20", "May 20"),
        ("2024-05-20", "May 21, 2024"),
        ("2024-02-30", "February 30, 2024"),
        ("2024-05-20T10:30:00", "May 20, 2024"),
        (17, "1 2 3 4 5 6 7 8 9 10"),
        ("A17", ""),
    ],
)
def test_a_value_does_not_follow(value: Any, text: str) -> None:
    assert how(value, text) is None


def test_the_year_of_a_date_may_stand_elsewhere() -> None:
    found = derive("2024-05-20", said("It is 2024-05-15 now.", "on May 20th"))
    assert found is not None
    assert [(item.message, item.value) for item in found.evidence] == [(1, "May 20th"), (0, "2024-05-15")]
    assert how("2024-05-20T10:30:00", "On May 20, 2024 at 10:30") == "date"


def test_evidence_points_at_the_words() -> None:
    text = "请查询 A170 和 A17 的库存"
    found = derive("A17", said(text))
    assert found is not None
    (place,) = found.evidence
    assert text[place.start : place.end] == "A17"
    assert place.start == text.rindex("A17")


def test_a_model_is_no_source_of_its_own_values() -> None:
    assert derive("A18", [Message("user", "A17"), Message("assistant", "I will look up A18", "A18 it is")]) is None


def test_strings_are_read_out_of_json() -> None:
    answer = Message("tool", '{"users": [{"name": "Jos\\u00e9 D\\u00edaz 7"}]}', answers=Answers("1.0", "id"))
    found = derive("José Díaz 7", [answer])
    assert found is not None
    assert [(item.kind, item.path) for item in found.evidence] == [("observation", "/users/0/name")]


def test_the_schema_names_values() -> None:
    schema = raw({"properties": {"cabin": {"enum": ["eco", "first"]}, "limit": {"default": 50}, "deep": {"const": 1}}})
    arguments = {"cabin": "eco", "limit": 50, "deep": 1, "other": 51}
    found = {
        path: derive(value, (), schema, path) for path, value in ((f"/{key}", arguments[key]) for key in arguments)
    }
    assert {path: item and item.how for path, item in found.items()} == {
        "/cabin": "enum",
        "/limit": "default",
        "/deep": "enum",
        "/other": None,
    }
    assert derive(True, (), schema, "/deep") is not None
    assert derive(50.0, (), schema, "/limit") is None


def test_the_values_of_a_call_that_follow_from_nothing() -> None:
    arguments = {"sku": "A17", "qty": 1, "legs": [{"no": "B2"}, {"no": "B3"}]}
    assert underivable(arguments, said("A17 by B2")) == ("/qty", "/legs/1/no")
    assert underivable(arguments, said("A17 by B2"), besides={"sku": "A18", "qty": 1}) == ("/legs/1/no",)
    assert underivable({"qty": 1}, said(""), besides={"qty": True}) == ("/qty",)
    assert derives(arguments, said("one A17 by B2 or B3"))


@pytest.mark.parametrize(
    ("value", "text", "expected"),
    [
        ("A18", "请查询A17在杭州的库存", ["A17"]),
        ("A18", "A17, a17 and B17", ["A17", "B17"]),
        ("A18", "A170 of kind AA1", ["A170"]),
        ("A18", "A17-B", ["A17"]),
        ("A18", "5kg, 2nd, room 12, 12:30", []),
        ("#W12", "#W13", ["#W13"]),
        ("10002", "number 10001 in 2024", ["10001"]),
        ("user_1", "mia", []),
        (3, "2 of A17", [2]),
        ("3", "2 of A17", ["2"]),
        (3, "2.5 kg", []),
        ("2024-05-21", "May 20, 2024", ["2024-05-20"]),
        ("Hangzhou", "A17 in Beijing", []),
    ],
)
def test_candidates_are_of_one_kind(value: Any, text: str, expected: list[Any]) -> None:
    assert [candidate.value for candidate in candidates(value, said(text))] == expected


@given(LETTERS_AND_DIGITS, st.lists(NAMES, max_size=6), st.sampled_from([" ", ", ", "的", "\n", "(", "、"]))
def test_a_name_follows_only_where_it_is_a_word(value: str, others: list[str], between: str) -> None:
    text = between.join(others)
    found = derive(value, said(text))
    assert (found is not None) == (fold(value) in map(fold, others))


@given(LETTERS_AND_DIGITS, NAMES)
def test_a_longer_name_is_no_source(value: str, more: str) -> None:
    for longer in (value + more, more + value, f"{value}-{more}", f"{value}_{more}"):
        if fold(value) not in {fold(word.text) for word in words(longer)}:
            assert derive(value, said(f"about {longer} 在")) is None


@given(st.text(max_size=40), LETTERS_AND_DIGITS, st.text(max_size=40))
def test_what_stands_apart_is_always_found(before: str, value: str, after: str) -> None:
    text = f"{before} {value} {after}"
    found = derive(value, said(text))
    assert found is not None
    (place,) = found.evidence
    assert fold(text[place.start : place.end]) == fold(value)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    ),
    st.text(),
)
def test_no_value_and_no_text_is_too_odd(value: Any, text: str) -> None:
    assert derives(value, said(text)) == (underivable(value, said(text)) == ())
    assert derives(value, said(text), besides=value)


@pytest.mark.parametrize("number", [-5, -0.5, 2**64 - 1, -(2**63), 1.5e300, 5e-324, -0.0])
def test_a_number_derives_as_json_writes_it_but_not_from_a_part_of_another(number: float) -> None:
    written = encode(number).decode()
    found = derive(number, [Message("user", f"set it to {written}.")])
    assert found is not None
    assert found.evidence[0].value == encode(number).decode()
    assert derive(-5, [Message("user", "from 3-5 to x-5 or --5 or -5.5 or -57")]) is None
