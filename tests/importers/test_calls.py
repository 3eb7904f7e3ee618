from pathlib import Path
from typing import Any

import msgspec
import pytest

from schemas.digests import action_digest
from schemas.trajectory import Message
from tests.importers.reading import answer, ask, call, calls, chat, read_chat


def ask_for(folder: Path, arguments: Any) -> tuple[Message, tuple[str, ...]]:
    """The assistant's message of a run with one call of these arguments, and the run's warnings."""
    parsed = read_chat(folder, chat(ask(call(arguments)), answer("2")))
    return parsed.trajectory.messages[1], parsed.warnings


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"sku": "A17"', "truncated"),
        ("", "truncated"),
        ("get_stock(A17)", "not_json"),
        ('{"sku": "A17"}}', "trailing_text"),
        ('{"sku": "A18", "sku": "A17"}', "duplicate_key"),
        ('{"qty": 1e400}', "number_out_of_range"),
        ('{"qty": NaN}', "not_json"),
        ("[" * 300, "too_deep"),
        ('["A17"]', "not_an_object"),
        ("17", "not_an_object"),
        ('"A17"', "not_an_object"),
    ],
)
def test_arguments_that_are_no_object_stay_as_written_and_say_why(tmp_path: Path, text: str, why: str) -> None:
    message, warnings = ask_for(tmp_path, text)
    (made,) = message.tool_calls
    assert (made.arguments_text, made.arguments, made.parse_error) == (text, msgspec.UNSET, why)
    assert warnings == ()


def test_text_and_object_are_the_same_canonical_call(tmp_path: Path) -> None:
    as_object, _ = ask_for(tmp_path, {"sku": "A17", "city": "Hangzhou"})
    as_text, _ = ask_for(tmp_path, '{ "city":"Hangzhou",  "sku":"A17" }')
    assert action_digest(as_object) == action_digest(as_text)
    assert as_text.tool_calls[0].arguments_text == '{ "city":"Hangzhou",  "sku":"A17" }'
    assert as_object.tool_calls[0].arguments_text == '{"city":"Hangzhou","sku":"A17"}'


def test_the_source_form_is_remembered(tmp_path: Path) -> None:
    as_object, _ = ask_for(tmp_path, {"sku": "A17"})
    as_text, _ = ask_for(tmp_path, '{"sku":"A17"}')
    assert as_object.extra == msgspec.Raw(b'{"tool_calls":{"0":{"arguments_form":"object"}}}')
    assert as_text.extra is msgspec.UNSET


def test_arguments_encoded_twice_are_not_unwrapped(tmp_path: Path) -> None:
    written = '"{\\"sku\\":\\"A17\\"}"'
    message, warnings = ask_for(tmp_path, written)
    (made,) = message.tool_calls
    assert (made.arguments_text, made.arguments, made.parse_error) == (written, msgspec.UNSET, "double_encoded")
    assert warnings == ("double_encoded",)


def test_empty_arguments_are_an_object(tmp_path: Path) -> None:
    message, _ = ask_for(tmp_path, "{}")
    assert message.tool_calls[0].arguments == msgspec.Raw(b"{}")


def test_text_that_looks_like_a_date_or_a_number_stays_text(tmp_path: Path) -> None:
    message, _ = ask_for(tmp_path, '{"id":"2024-05-15","code":"0017","n":1.0}')
    assert message.tool_calls[0].arguments == msgspec.Raw(b'{"code":"0017","id":"2024-05-15","n":1.0}')


def test_a_lone_surrogate_inside_arguments_is_counted(tmp_path: Path) -> None:
    parsed = read_chat(tmp_path, chat(ask(call('{"sku": "\\ud800"}')), answer("2")))
    (made,) = calls(parsed.trajectory)
    assert made.arguments_text == '{"sku": "\\ud800"}'
    assert made.arguments == msgspec.Raw('{"sku":"\ufffd"}'.encode())
    assert (parsed.replaced, parsed.warnings) == (1, ("surrogates_replaced",))


def test_uids_are_positions_whatever_the_ids_are(tmp_path: Path) -> None:
    made = [call("{}", call_id=call_id) for call_id in (None, "", "x", "x")]
    parsed = read_chat(tmp_path, chat(ask(*made)))
    assert [(one.uid, one.id) for one in calls(parsed.trajectory)] == [
        ("1.0", None),
        ("1.1", ""),
        ("1.2", "x"),
        ("1.3", "x"),
    ]


def test_what_a_call_holds_beyond_name_and_arguments_is_kept(tmp_path: Path) -> None:
    made = call("{}") | {"index": 0, "ui": {"open": True}}
    message = read_chat(tmp_path, chat(ask(made))).trajectory.messages[1]
    assert message.extra == msgspec.Raw(b'{"tool_calls":{"0":{"index":0,"ui":{"open":true}}}}')


def test_a_legacy_function_call_is_a_call(tmp_path: Path) -> None:
    parsed = read_chat(
        tmp_path,
        chat(
            {
                "role": "assistant",
                "content": None,
                "function_call": {"name": "get_stock", "arguments": '{"sku":"A17"}'},
            },
            {"role": "function", "name": "get_stock", "content": "2"},
            functions=[{"name": "get_stock"}],
        ),
    )
    (made,) = calls(parsed.trajectory)
    assert (made.name, made.arguments) == ("get_stock", msgspec.Raw(b'{"sku":"A17"}'))
    reply = parsed.trajectory.messages[2]
    assert reply.role == "tool"
    assert reply.answers is not None
    assert reply.answers.uid == made.uid
    assert [one.bytes for one in parsed.objects] == [b'[{"function":{"name":"get_stock"},"type":"function"}]']
