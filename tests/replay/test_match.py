import msgspec
import pytest

from curation.errors import UsageError
from curation.match import match, match_message
from environments.catalogue import find
from environments.protocol import CallResult
from schemas.trajectory import Message, MessageError, Part

SPEC = find("inventory").spec
BOTH = ("outer_whitespace@1", "clock@1")


def given(text: str) -> CallResult:
    return CallResult("ok", text, "before", "after")


@pytest.mark.parametrize(
    ("logged", "executed", "rules", "expected", "used"),
    [
        ('{"stock":2}', '{"stock":2}', (), "equal_bytes", ()),
        ('{"stock":2}\n', '{"stock":2}', ("outer_whitespace@1",), "equal_normalised", ("outer_whitespace@1",)),
        ("2024-05-15 15:00", "2026-01-01T00:00Z", BOTH, "equal_normalised", ("clock@1",)),
        ("2024-05-15 15:00:01", "2026-01-01T00:00Z", (), "different", ()),
        ('{"a": 1, "b": [2]}', '{"b":[2],"a":1}', (), "equal_semantic", ()),
        ('{"stock":2}', '{"stock":2.0}', (), "different", ()),
        ('{"stock":2,"stock":2}', '{"stock":2}', (), "different", ()),
        ("two", "2", (), "different", ()),
    ],
)  # fmt: skip
def test_the_first_match_that_holds_is_given(
    logged: str, executed: str, rules: tuple[str, ...], expected: str, used: tuple[str, ...]
) -> None:
    verdict = match(logged, given(executed), SPEC._replace(rules=rules))
    assert (verdict.match, verdict.rules) == (expected, used)
    assert verdict.result == ("failed" if expected == "different" else "passed")


def test_what_differs_is_named_field_by_field() -> None:
    verdict = match('{"error":"unknown_sku","sku":"A18"}', given('{"sku":"A17","stock":2}'), SPEC)
    assert [(item.path, item.value, item.note) for item in verdict.evidence] == [
        ("/error", '"unknown_sku"', "executed: (absent)"),
        ("/sku", '"A18"', 'executed: "A17"'),
        ("/stock", "(absent)", "executed: 2"),
    ]


def test_a_logged_fault_says_nothing_even_where_the_execution_gives_it_too() -> None:
    fault = '{"error":"timeout"}'
    for executed in (given('{"stock":2}'), CallResult("environment_fault", fault, "before", "after")):
        verdict = match(fault, executed, SPEC)
        assert (verdict.match, verdict.reason, verdict.result) == ("unverifiable", "environment_fault", "unknown")


@pytest.mark.parametrize(
    ("executed", "expected"),
    [
        (CallResult("timeout", "", "before"), ("unverifiable", "fault_in_replay")),
        (CallResult("environment_fault", "", "before"), ("unverifiable", "fault_in_replay")),
        (CallResult("ok", "12", "before", "after", truncated=True), ("unverifiable", "truncated")),
        (CallResult("refused", "", detail="closed"), ("not_run", "refused")),
    ],
)
def test_what_cannot_be_compared_is_unknown(executed: CallResult, expected: tuple[str, str]) -> None:
    verdict = match("12", executed, SPEC)
    assert (verdict.match, verdict.reason) == expected
    assert verdict.result == "unknown"


def test_the_raw_answer_counts_where_the_model_saw_another() -> None:
    message = Message("tool", "[removed]", raw='{"stock":2}', actor="guard")
    verdict = match_message(message, given('{"stock":2}'), SPEC)
    assert verdict.match == "equal_bytes"
    assert "before it was changed" in verdict.detail
    seen = msgspec.structs.replace(message, raw=None)
    assert match_message(seen, given('{"stock":2}'), SPEC).match == "different"


def test_an_error_that_the_log_keeps_apart_is_the_answer() -> None:
    message = Message("tool", "", error=MessageError("unknown sku A18"))
    assert match_message(message, CallResult("tool_error", "unknown sku A18", "s", "s"), SPEC).match == "equal_bytes"


def test_parts_that_are_no_text_cannot_be_compared() -> None:
    message = Message("tool", (Part("text", "2"), Part("image", sha256="0" * 64)))
    assert match_message(message, given("2"), SPEC).reason == "not_text"


def test_an_undefined_rule_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match=r"'rounding@1'; known: clock@1, outer_whitespace@1"):
        match("1.0", given("1.01"), SPEC._replace(rules=("rounding@1",)))
