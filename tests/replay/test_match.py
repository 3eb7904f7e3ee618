import msgspec
import pytest

from curation.errors import UsageError
from curation.match import match, match_message
from curation.rules import MAX_TEXT
from environments.catalogue import find
from environments.protocol import CallResult
from schemas.canonical import raw
from schemas.trajectory import Message, MessageError, Part

SPEC = find("inventory").spec
URL = "https://errors.pydantic.dev/"


def given(text: str) -> CallResult:
    return CallResult("ok", text, "before", "after")


@pytest.mark.parametrize(
    ("logged", "executed", "rules", "expected", "used"),
    [
        ('{"stock":2}', '{"stock":2}', (), "equal_bytes", ()),
        ('{"stock":2}\n', '{"stock":2}', ("outer_whitespace@1",), "equal_normalised", ("outer_whitespace@1",)),
        (f"see {URL}2.12.1/v/x", f"see {URL}2.9/v/x", ("pydantic_url@1",), "equal_normalised", ("pydantic_url@1",)),
        (f"see {URL}2.12/v/missing", f"see {URL}2.9/v/extra", ("pydantic_url@1",), "different", ()),
        ("2024-05-15 15:00:01", "2026-01-01T00:00Z", (), "different", ()),
        ("2024-05-15 15:00:01", "2026-01-01T00:00Z", ("clock@1",), "different", ()),
        ('{"a": 1, "b": [2]}', '{"b":[2],"a":1}', (), "equal_semantic", ("json@1",)),
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
    assert verdict.detail == "raw answer: equal_bytes; shown text by 'guard': not comparable, no such mediator here"


@pytest.mark.parametrize(
    ("raw", "shown", "expected"),
    [
        ("secret 7", "[removed]", ("equal_bytes", "raw answer: equal_bytes; shown text by 'guard': equal_bytes")),
        ("secret 7", "secret 7", ("equal_bytes", "raw answer: equal_bytes; shown text by 'guard': different")),
        ("secret 8", "[removed]", ("different", "raw answer: different; shown text by 'guard': equal_bytes")),
    ],
)
def test_raw_and_shown_text_are_compared_apart_where_the_environment_has_the_mediator(
    raw: str, shown: str, expected: tuple[str, str]
) -> None:
    executed = CallResult("ok", "secret 7", "before", "after", shown="[removed]", mediator="guard")
    verdict = match_message(Message("tool", shown, raw=raw, actor="guard"), executed, SPEC)
    assert verdict.match == expected[0]
    assert verdict.detail.startswith(expected[1])


def test_a_shown_text_alone_is_compared_only_where_nothing_changed_it_or_the_same_mediator_did() -> None:
    def verdict(content: str, executed: CallResult) -> tuple[str, str | None]:
        found = match_message(Message("tool", content, actor="guard"), executed, SPEC)
        return found.match, found.reason

    plain = given("secret 7")
    mediated = CallResult("ok", "secret 7", "before", "after", shown="[removed]", mediator="guard")
    elsewhere = CallResult("ok", "secret 7", "before", "after", shown="[removed]", mediator="censor")
    assert verdict("secret 7", plain) == ("equal_bytes", None)
    assert verdict("[removed]", plain) == ("unverifiable", "mediated")
    assert verdict("[removed]", mediated) == ("equal_bytes", None)
    assert verdict("[removed]", elsewhere) == ("unverifiable", "mediated")


def test_only_a_mark_of_the_log_says_that_an_answer_was_cut() -> None:
    cut = Message("tool", "one two [truncated]", extra=raw({"truncated": True}))
    assert match_message(cut, given("one two three"), SPEC).reason == "truncated"
    wording = msgspec.structs.replace(cut, extra=raw({"truncated": "yes"}))
    assert match_message(wording, given("one two three"), SPEC).match == "different"
    whole = msgspec.structs.replace(cut, content="one two three")
    assert match_message(whole, given("one two three"), SPEC).match == "equal_bytes"


def test_recorded_answers_confirm_nothing() -> None:
    tape = SPEC._replace(recorded_only=True)
    assert match("2", given("2"), tape).reason == "recorded_only"
    assert match("2", CallResult("refused", ""), tape).match == "not_run"


@pytest.mark.parametrize(
    ("logged", "executed", "pointers", "expected"),
    [
        ('{"tags":["b","a"]}', '{"tags":["a","b"]}', ("/tags",), "equal_semantic"),
        ('{"tags":["b","a"]}', '{"tags":["a","b"]}', (), "different"),
        ('{"tags":["a","a","b"]}', '{"tags":["a","b"]}', ("/tags",), "different"),
        ('{"tags":["b","a"],"log":[1,2]}', '{"tags":["a","b"],"log":[2,1]}', ("/tags",), "different"),
        ('[{"id":2},{"id":1}]', '[{"id":1},{"id":2}]', ("",), "equal_semantic"),
        ('[{"id":2,"to":["x","y"]}]', '[{"id":2,"to":["y","x"]}]', ("/*/to",), "equal_semantic"),
        ('{"a/b":[2,1]}', '{"a/b":[1,2]}', ("/a~1b",), "equal_semantic"),
    ],
)
def test_arrays_are_sets_only_where_the_environment_says_so(
    logged: str, executed: str, pointers: tuple[str, ...], expected: str
) -> None:
    verdict = match(logged, given(executed), SPEC._replace(unordered=pointers))
    assert verdict.match == expected
    assert verdict.rules == (("unordered@1",) if expected == "equal_semantic" else ())


OLD = "2024-01-01 00:00"
NOW = tuple(f"{year}-01-02 03:04:05" for year in (2026, 2031, 2043))


@pytest.mark.parametrize(
    ("logged", "answers", "expected", "used"),
    [
        ("sent 2024-05-15 15:00:01.5", [f"sent {now}" for now in NOW], "equal_normalised", ("clock@1",)),
        ("sent 2024-05-15 15:00", ["sent 2026-01-01 00:00"] * 3, "different", ()),
        ("sent 2024-05-15T15:00:01", [f"sent {now}" for now in NOW], "different", ()),
        ("sent 0000-00-00", [f"sent {now}" for now in NOW], "different", ()),
        (f"{OLD}, 2025-01-01 00:00:00", [f"{OLD}, {now}" for now in NOW], "equal_normalised", ("clock@1",)),
        (f"{OLD}:01, 2025-01-01 00:00:00", [f"{OLD}, {now}" for now in NOW], "different", ()),
        ("2024-05-15 15:00:01", [f"{OLD} and {now}" for now in NOW], "different", ()),
        ("8 at 2024-05-15 15:00:00", [f"7 at {now}" for now in NOW], "different", ()),
        (f"[{OLD}:01, b]", ["[2024-01-01 00:00:00, b]", "[b, 2024-01-01 00:00:00]"] * 2, "different", ()),
        ("[[c, d], [a, b]]", ["[[a, b], [c, d]]", "[[b, a], [c, d]]", "[[a, b], [d, c]]"], "different", ()),
        ("[a, a, b]", ["[a, b, b]", "[b, a, b]", "[b, b, a]"], "different", ()),
        ("to:\n- b\n- a", ["to:\n- a\n- b"] * 3 + ["to:\n- b\n- a"], "equal_normalised", ("set_order@1",)),
        ("to:\n- b\n- a", ["to:\n- a\n- b"] * 6, "different", ()),
        ("to:\n- b\n- c", ["to:\n- a\n- b", "to:\n- b\n- a", "to:\n- a\n- b"], "different", ()),
        ("['b', 'a, c']", ["['a, c', 'b']", "['b', 'a, c']", "['a, c', 'b']"], "equal_normalised", ("set_order@1",)),
        ("[1, 2] [4, 3]", ["[1, 2] [3, 4]", "[2, 1] [3, 4]", "[1, 2] [3, 4]"], "different", ()),
        ("[b, a]", ["[a, b]", "[c, d]", "[a, b]"], "unverifiable", ()),
        ("at 2024-05-15 15:00:00", [f"at {NOW[0]}", f"at {NOW[1]}, {OLD}", f"at {NOW[2]}"], "unverifiable", ()),
        ("- [a, b]\n- [d, c]", ["- [a, b]\n- [c, d]", "- [c, d]\n- [a, b]"] * 2, "different", ()),
        ("- [b, a]\n- c", ["- [a, b]\n- c", "- [b, a]\n- c", "- [b, a]\n- c"], "unverifiable", ()),
        ("ticket 81c", ["ticket 90a", "ticket b17", "ticket 33f"], "unverifiable", ()),
        ("ticket 81c for Eve", ["ticket 90a for Ann", "ticket b17 for Ann", "ticket 33f for Ann"], "different", ()),
        ("anything", ["one two", "three", "four five six"], "unverifiable", ()),
        ("till: b", ["desk: a", "desk: a c", "desk: b c d"], "different", ()),
        ("desk: b at 8", ["desk: a at 7", "desk: a c at 7", "desk: d b c at 7"], "different", ()),
        ("desk: b at 7", ["desk: a at 7", "desk: a c at 7", "desk: d b c at 7"], "unverifiable", ()),
    ],
)  # fmt: skip
def test_what_is_forgiven_is_what_moved(logged: str, answers: list[str], expected: str, used: tuple[str, ...]) -> None:
    executed, *others = (given(answer) for answer in answers)
    verdict = match(logged, executed, SPEC._replace(rules=("clock@1", "set_order@1")), others)
    assert (verdict.match, verdict.rules) == (expected, used)
    assert verdict.reason == ("volatile_only" if expected == "unverifiable" else None)


def test_the_verdict_names_the_places_that_moved_and_rules_that_nothing_moved_for() -> None:
    spec = SPEC._replace(rules=("clock@1",))
    logged = "made 2024-05-15 15:00, sent 2024-05-16 09:30:00"
    moving = [given(f"made 2024-05-15 15:00, sent {now}") for now in NOW]
    (place,) = match(logged, moving[0], spec, moving[1:]).evidence
    assert logged[place.start : place.end] == place.value == "2024-05-16 09:30:00"
    assert place.note == "clock@1: place 2 moves between executions"
    still = match(logged, moving[0], spec, moving[:1] * 2)
    assert "declared, but not seen to move: clock@1" in still.detail
    alone = match(logged, moving[0], spec, moving[1:2])
    assert (alone.match, alone.reason) == ("unverifiable", "unwitnessed")
    assert "clock@1 not used" in alone.detail


def test_an_answer_that_another_process_did_not_give_shows_no_movement() -> None:
    logged, now, later = (f"sent 202{year}-05-15 15:00:00" for year in (4, 6, 7))
    lost = [CallResult("timeout", later), CallResult("ok", later, "s", "s", truncated=True)]
    verdict = match(logged, given(now), SPEC._replace(rules=("clock@1",)), [given(later), *lost])
    assert (verdict.match, verdict.reason) == ("unverifiable", "unwitnessed")


def test_in_a_very_long_answer_nothing_is_forgiven() -> None:
    filler = "x" * MAX_TEXT
    logged, *answers = (f"sent 20{year}-05-15 15:00:00 {filler}" for year in (24, 26, 31, 43))
    executed, *others = (given(answer) for answer in answers)
    assert match(logged, executed, SPEC._replace(rules=("clock@1",)), others).match == "unverifiable"


def test_answers_of_other_processes_are_taken_only_where_they_can_settle_something() -> None:
    spec = SPEC._replace(rules=("clock@1", "set_order@1"))

    def taken(logged: str, executed: str) -> int:
        others = iter([given(executed)] * 6)
        match(logged, given(executed), spec, others)
        return 6 - len(list(others))

    assert taken("two", "two") == 0
    assert taken('{"a": 1}', '{"a":1}') == 0
    assert taken("two", "three") == 2
    assert taken("- b\n- a", "- a\n- b") == 6


def test_an_error_that_the_log_keeps_apart_is_the_answer() -> None:
    message = Message("tool", "", error=MessageError("unknown sku A18"))
    assert match_message(message, CallResult("tool_error", "unknown sku A18", "s", "s"), SPEC).match == "equal_bytes"


def test_parts_that_are_no_text_cannot_be_compared() -> None:
    message = Message("tool", (Part("text", "2"), Part("image", sha256="0" * 64)))
    assert match_message(message, given("2"), SPEC).reason == "not_text"


def test_an_undefined_rule_is_refused_by_name() -> None:
    with pytest.raises(
        UsageError, match=r"'rounding@1'; known: clock@1, outer_whitespace@1, pydantic_url@1, set_order@1"
    ):
        match("1.0", given("1.01"), SPEC._replace(rules=("rounding@1",)))
