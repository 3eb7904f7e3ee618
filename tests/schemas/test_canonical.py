from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas import canonical
from schemas.canonical import MAX_DEPTH, UnreadableError, encode, parse
from schemas.trajectory import (
    Answers,
    Attempt,
    Conditions,
    Message,
    Role,
    Task,
    ToolCall,
    Trajectory,
    decode,
    trajectory_id,
)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
ROLES: tuple[Role, ...] = get_args(Role)
TEXT = st.none() | st.text(max_size=5)


@st.composite
def trajectories(draw: st.DrawFn) -> Trajectory:
    def message(index: int) -> Message:
        calls = tuple(
            ToolCall(f"{index}.{position}", draw(st.text(max_size=3)), "{}", draw(TEXT), canonical.raw(draw(VALUES)))
            for position in range(draw(st.integers(0, 2)))
        )
        role = draw(st.sampled_from(ROLES))
        answers = draw(st.none() | st.just(Answers("0.0", "position")))
        return Message(role, draw(TEXT), draw(TEXT), calls, answers, extra=draw(st.just(msgspec.UNSET) | extras))

    extras = VALUES.map(canonical.raw)
    return Trajectory(
        tuple(message(index) for index in range(draw(st.integers(0, 3)))),
        task=Task(draw(TEXT), draw(TEXT), parameters=draw(st.just(msgspec.UNSET) | extras)),
        attempt=draw(st.none() | st.builds(Attempt, TEXT, st.none() | st.integers())),
        conditions=Conditions(model=draw(TEXT), seed=draw(st.none() | st.integers(0, 9))),
        stop_text=draw(TEXT),
    )


@given(VALUES)
def test_canonical_bytes_are_a_fixed_point(value: Any) -> None:
    data = encode(value)
    again, replaced = parse(data)
    assert (encode(again), replaced) == (data, 0)
    assert again == value


@given(trajectories())
def test_the_bytes_of_a_record_are_a_fixed_point(trajectory: Trajectory) -> None:
    data = encode(trajectory)
    assert encode(parse(data)[0]) == data
    assert encode(decode(data)) == data
    assert decode(data) == trajectory


@given(trajectories(), trajectories())
def test_another_content_is_another_id(left: Trajectory, right: Trajectory) -> None:
    assert (trajectory_id(left) == trajectory_id(right)) == (encode(left) == encode(right))
    assert (left == right) == (encode(left) == encode(right))


@given(trajectories(), st.text(min_size=1, max_size=3))
def test_any_change_of_a_field_changes_the_id(trajectory: Trajectory, text: str) -> None:
    change = msgspec.structs.replace
    message = Message("user", text)
    changed = [
        change(trajectory, messages=(*trajectory.messages, message)),
        change(trajectory, stop_text=(trajectory.stop_text or "") + text),
        change(trajectory, attempt=Attempt(text, -1)),
        change(trajectory, task=change(trajectory.task, id=(trajectory.task.id or "") + text)),
        change(trajectory, conditions=change(trajectory.conditions, notes=text)),
        *(
            change(
                trajectory,
                messages=(
                    *trajectory.messages[:index],
                    change(old, actor=text),
                    *trajectory.messages[index + 1 :],
                ),
            )
            for index, old in enumerate(trajectory.messages)
        ),
    ]
    assert trajectory_id(trajectory) not in {trajectory_id(one) for one in changed}


@given(VALUES, st.randoms(use_true_random=False))
def test_the_order_of_keys_and_white_space_say_nothing(value: Any, random: Any) -> None:
    def shuffle(one: Any) -> Any:
        match one:
            case dict():
                keys = random.sample(sorted(one), len(one))
                return {key: shuffle(one[key]) for key in keys}
            case list():
                return [shuffle(item) for item in one]
            case _:
                return one

    spaced = msgspec.json.format(msgspec.json.encode(shuffle(value)), indent=3)
    assert encode(parse(spaced)[0]) == encode(value)


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ('{"sku":"A17","qty":1}', b'{"qty":1,"sku":"A17"}'),
        ('{ "qty" : 1.0 , "sku":"A17" }', b'{"qty":1.0,"sku":"A17"}'),
        ("1E2", b"100.0"),
        ("0.1e-6", b"1e-7"),
        ("9007199254740993", b"9007199254740993"),
        ("18446744073709551617", b"18446744073709551617"),
        ("-0.0", b"-0.0"),
        ('"\\u00e9"', '"\u00e9"'.encode()),
        ('"e\\u0301"', '"e\u0301"'.encode()),
        ('"\\/"', b'"/"'),
    ],
)
def test_one_rule_for_numbers_keys_and_strings(text: str, data: bytes) -> None:
    assert encode(parse(text.encode())[0]) == data


@given(st.dictionaries(st.text(max_size=3), st.integers(0, 3), max_size=6))
def test_keys_are_sorted_by_their_bytes(value: dict[str, int]) -> None:
    assert list(parse(encode(value))[0]) == sorted(value, key=lambda key: key.encode())


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b'{"sku":"A18","sku":"A17"}', "duplicate_key"),
        (b'[{"a":{"b":1,"\\u0062":2}}]', "duplicate_key"),
        (b"[NaN]", "not_json"),
        (b"-Infinity", "not_json"),
        (b"1e400", "number_out_of_range"),
        (b"1" * 299 + b"e99", "number_out_of_range"),
        (b"[-1E+999]", "number_out_of_range"),
        (b'{"a":' + b"1" * 310 + b".5}", "number_out_of_range"),
        (b"1" * 5000, "number_out_of_range"),
        (b"[" * (MAX_DEPTH + 2) + b"]" * (MAX_DEPTH + 2), "too_deep"),
        (b'"\xed\xa0\x80"', "bad_utf8"),
        (b'"\xff"', "bad_utf8"),
        (b"{} {}", "trailing_text"),
        (b'{"a":1', "truncated"),
        (b"", "truncated"),
        (b"{'a':1}", "not_json"),
    ],
)
def test_what_has_no_one_reading_is_refused_with_a_code(data: bytes, code: str) -> None:
    with pytest.raises(UnreadableError) as caught:
        parse(data)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e308", 1e308),
        ("-1.7976931348623157e+308", -1.7976931348623157e308),
        ("1e-400", 0.0),
        ("1" * 400, int("1" * 400)),
        ('"1e400"', "1e400"),
        ('"' + "1" * 400 + '"', "1" * 400),
    ],
)
def test_a_large_number_that_can_be_read_is_read(text: str, value: Any) -> None:
    assert parse(text.encode()) == (value, 0)


@pytest.mark.parametrize(
    ("data", "text", "count"),
    [
        (rb'"\ud800"', "\ufffd", 1),
        (rb'"\udc00\ud800"', "\ufffd\ufffd", 2),
        (rb'"\ud83d\ude00"', "\U0001f600", 0),
        (rb'"\ud83d\ud83d\ude00"', "\ufffd\U0001f600", 1),
        (rb'"\\ud800"', r"\ud800", 0),
        (rb'"\\\ud800"', "\\\ufffd", 1),
    ],
)
def test_lone_surrogates_are_replaced_and_counted(data: bytes, text: str, count: int) -> None:
    assert parse(data) == (text, count)


@given(st.binary(max_size=40) | st.text(alphabet='{}[]",:\\u0d8e1+-. ', max_size=40).map(str.encode))
def test_bytes_are_read_or_refused_and_nothing_else(data: bytes) -> None:
    try:
        value, _ = parse(data)
    except UnreadableError:
        return
    assert parse(encode(value))[0] == value


def test_nesting_up_to_the_limit_is_read() -> None:
    data = b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1)
    assert encode(parse(data)[0]) == data


def test_an_absent_field_is_absent_in_the_bytes() -> None:
    assert encode(Trajectory(())) == b'{"messages":[]}'
    assert encode(Message("user", "x")) == b'{"content":"x","role":"user"}'
