"""Every check refuses for its own reason, on records and statements out of a real store."""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from builders.checks import CHECKS
from schemas.canonical import raw
from schemas.refusals import REFUSALS
from schemas.selection import Kind, Selection
from schemas.statements import Annotation, Verification
from schemas.trajectory import Answers, Author, Budget, Message, Part, Restore
from tests.builders.desk import ENVIRONMENT, PERSON, RULE, Desk
from tests.eight import TOOLS
from tests.records import A17, A18, BAD, OK, REQUEST, Call, call

Case = Callable[[Desk], Any]
CASES: dict[tuple[str, Kind], Case] = {}
SKU_IN_CITY: Call = ("get_stock", {"sku": "A17", "city": "Hangzhou"})
B17: Call = ("get_stock", {"sku": "B17"})
BROKEN: Call = ("get_stock", '{"sku": A17')
TIMEOUT = {"error": "timeout"}


def case(check: str, kind: Kind) -> Callable[[Case], Case]:
    def add(test: Case) -> Case:
        CASES[check, kind] = test
        return test

    return add


def failed(desk: Desk) -> str:
    """An attempt whose first call is wrong, by a finding."""
    attempt = desk.attempt(REQUEST, A18, BAD, "Sorry.")
    desk.find(attempt)
    return attempt


def clean(desk: Desk, **how: Any) -> str:
    """A clean fork of it with the right call."""
    return desk.fork(failed(desk), "clean", 1, A17, OK, **how)


@case("contradicted_record", "first_action")
def _(desk: Desk) -> None:
    attempt = desk.attempt(REQUEST, A17, OK, A17, BAD, confirm=False)
    desk.confirm(attempt, only=["1.0"])
    desk.execute(attempt, 3, "3.0", "other", result="failed", match="different")


@case("parent_revised", "first_action")
def _(desk: Desk) -> None:
    read_badly = failed(desk)
    desk.fork(read_badly, "clean", 1, A17, OK)
    better = desk.add(replace(desk.records[read_badly], stop_text="read better"))
    desk.say(Annotation(better, "revises", read_badly, PERSON))


@case("test_split", "first_action")
def _(desk: Desk) -> None:
    desk.annotate(desk.attempt(REQUEST, A17, OK), "split", "Test")


@case("hidden_answer", "first_action")
def _(desk: Desk) -> None:
    clean(desk, by=PERSON, reads=("request", "hidden_answer"))


@case("environment_fault", "recovery")
def _(desk: Desk) -> None:
    attempt = desk.attempt(REQUEST, A17, TIMEOUT, SKU_IN_CITY, OK, confirm=False)
    desk.execute(attempt, 1, "1.0", "", result="unknown", match="unverifiable", reason="environment_fault")
    desk.confirm(attempt, only=["3.0"])


@case("environment_fault", "preference")
def _(desk: Desk) -> None:
    attempt = desk.attempt(REQUEST, A18, TIMEOUT, "Sorry.", confirm=False)
    desk.execute(attempt, 1, "1.0", "", result="unknown", match="unverifiable", reason="environment_fault")
    desk.attempt(REQUEST, A17, OK, run="b")


@case("finding_on_target", "first_action")
def _(desk: Desk) -> None:
    failed(desk)


@case("error_in_prompt", "first_action")
def _(desk: Desk) -> None:
    desk.attempt(REQUEST, A18, BAD, A17, OK)


@case("no_error_before", "recovery")
def _(desk: Desk) -> None:
    desk.fork(desk.attempt(REQUEST, A17, OK), "recovery", 3, SKU_IN_CITY, OK)


@case("not_after_answer", "recovery")
def _(desk: Desk) -> None:
    desk.find(desk.attempt(REQUEST, A18, BAD, Message("user", "I said A17."), A17, OK))


@case("same_action", "recovery")
def _(desk: Desk) -> None:
    desk.attempt(REQUEST, A18, BAD, A18, BAD)


@case("format_unanswered", "recovery")
def _(desk: Desk) -> None:
    attempt = desk.attempt(REQUEST, BROKEN, {"harness": "not JSON"}, A17, OK, confirm=False)
    desk.find(attempt, label="format")
    desk.confirm(attempt, only=["3.0"])


@case("effect_not_undone", "recovery")
def _(desk: Desk) -> None:
    attempt = desk.attempt(REQUEST, A18, {"booked": "A18"}, A17, OK, confirm=False)
    desk.find(attempt)
    desk.confirm(attempt, only=["1.0"], state=("s", "t"))
    desk.confirm(attempt, only=["3.0"], state=("t", "t"))


@case("no_evidence_at_decision", "preference")
def _(desk: Desk) -> None:
    desk.attempt(REQUEST, B17, {"sku": "B17"}, outcome="failed")
    desk.attempt(REQUEST, A17, OK, run="b", outcome="passed")


@case("corrector_saw_more", "preference")
def _(desk: Desk) -> None:
    clean(desk, reads=("request", "observation"))


@case("equivalent_actions", "preference")
def _(desk: Desk) -> None:
    attempt = desk.attempt(REQUEST, SKU_IN_CITY, OK)
    desk.find(attempt)
    desk.fork(attempt, "clean", 1, A17, OK)


@case("forward_only", "preference")
def _(desk: Desk) -> None:
    made = desk.records[clean(desk)]
    assert made.fork is not None
    forward = replace(made, fork=replace(made.fork, restore=Restore("none", "inventory@1")))
    desk.confirm(desk.add(forward))


@case("partial_context", "preference")
def _(desk: Desk) -> None:
    hidden = Message("assistant", "Looking.", hidden="reasoning")
    attempt = desk.attempt(REQUEST, hidden, A18, BAD)
    desk.find(attempt, 2)
    desk.fork(attempt, "clean", 2, A17, OK)


@case("wrong_fork", "first_action")
def _(desk: Desk) -> None:
    clean(desk, state=("elsewhere", "elsewhere"))


@case("not_derivable", "first_action")
def _(desk: Desk) -> None:
    desk.fork(failed(desk), "clean", 1, B17, {"sku": "B17"})


@case("placebo_too_high", "first_action")
def _(desk: Desk) -> None:
    fork = desk.fork(failed(desk), "clean", 1, B17, {"sku": "B17"})
    desk.say(Verification(fork, "step", "passed", ENVIRONMENT, 1, placebo=0.5, reads=("state",)))


@case("feedback_leaked", "first_action")
def _(desk: Desk) -> None:
    clean(desk, by=PERSON, text="That was unknown_sku, so once more.")


@case("target_not_executed", "first_action")
def _(desk: Desk) -> None:
    attempt = desk.attempt(REQUEST, A17, OK, confirm=False)
    desk.execute(attempt, 1, "1.0", "", result="unknown", match="not_run", reason="state_unknown")


@case("target_fails", "first_action")
def _(desk: Desk) -> None:
    desk.attempt(REQUEST, A18, BAD)


@case("failed_layer", "first_action")
def _(desk: Desk) -> None:
    attempt = desk.attempt(REQUEST, A17, OK)
    desk.say(Verification(attempt, "semantics", "failed", RULE, 1, "1.0"))


@case("level_below_wanted", "preference")
def _(desk: Desk) -> None:
    fork = clean(desk)
    desk.say(Verification(fork, "semantics", "unknown", RULE, 1, "1.0"))


@case("level_below_wanted", "first_action")
def _(desk: Desk) -> None:
    attempt = desk.attempt(REQUEST, A17, OK)
    desk.say(Verification(attempt, "semantics", "unknown", RULE, 1, "1.0"))


@case("level_below_wanted", "recovery")
def _(desk: Desk) -> None:
    attempt = desk.attempt(REQUEST, A18, BAD, A17, OK)
    desk.say(Verification(attempt, "semantics", "unknown", RULE, 3, "3.0"))


@case("repeated_call", "first_action")
def _(desk: Desk) -> None:
    desk.attempt(REQUEST, A17, OK, A17, OK)


@case("repeated_call", "recovery")
def _(desk: Desk) -> None:
    desk.attempt(REQUEST, A17, OK, A18, BAD, A17, OK)


@case("repeated_call", "preference")
def _(desk: Desk) -> None:
    wrong = desk.attempt(REQUEST, A17, OK, A18, BAD)
    desk.find(wrong, 3)
    desk.attempt(REQUEST, A17, OK, A17, OK, run="b")


@case("unconfirmed_prompt", "first_action")
def _(desk: Desk) -> None:
    attempt = desk.attempt(REQUEST, A17, OK, SKU_IN_CITY, OK, confirm=False)
    desk.confirm(attempt, only=["3.0"])


@case("history_incomplete", "first_action")
def _(desk: Desk) -> None:
    compacted = Message("assistant", "", tool_calls=(call(1, 0, *A17),), hidden="compaction")
    attempt = desk.attempt(REQUEST, compacted, confirm=False)
    desk.execute(attempt, 1, "1.0", "{}")


@case("malformed_prompt", "first_action")
def _(desk: Desk) -> None:
    desk.attempt(REQUEST, BROKEN, {"harness": "not JSON"}, A17, OK)


@case("too_large_to_check", "first_action")
def _(desk: Desk) -> None:
    listed = {"skus": [f"A{number}" for number in range(300)]}
    desk.attempt(REQUEST + " and" * 20_000, ("get_stock", listed), OK)


@case("not_text", "first_action")
def _(desk: Desk) -> None:
    desk.attempt(Message("user", (Part("text", REQUEST), Part("image_url", sha256="0" * 64))), A17, OK)


@case("malformed_target", "first_action")
def _(desk: Desk) -> None:
    desk.attempt(REQUEST, BROKEN, {"harness": "not JSON"})


@case("number_not_loadable", "first_action")
def _(desk: Desk) -> None:
    desk.attempt(REQUEST, ("get_stock", {"sku": "A17", "at": 30.12345678912}), OK)


@case("unknown:tools", "recovery")
def _(desk: Desk) -> None:
    desk.find(desk.attempt(REQUEST, A18, BAD, A17, OK, tools=None))


@pytest.mark.parametrize(("check", "kind"), CASES)
def test_a_check_refuses_for_its_reason(check: str, kind: Kind, desk: Desk) -> None:
    CASES[check, kind](desk)
    desk.build(kind)
    refused = [line for line in desk.lines(kind) if check in line["failed"]]
    assert refused
    assert not any(line["kept"] or line["sample"] for line in refused)
    told = [msgspec.json.decode(line["record"], type=Selection) for line in refused]
    assert all([difference.check for difference in line.detail] == list(line.failed) for line in told)


@pytest.mark.parametrize("kind", ["first_action", "recovery", "preference"])
def test_what_no_check_refuses_is_kept(kind: Kind, desk: Desk) -> None:
    """The same shapes without the flaw: otherwise the cases above could refuse everything."""
    attempt = desk.attempt(REQUEST, A18, BAD, A17, OK)
    desk.find(attempt)
    desk.fork(attempt, "clean", 1, A17, OK)
    result = desk.build(kind).kinds[kind]
    assert result.kept == result.rows == 1


def test_every_check_has_a_case_and_a_way_out() -> None:
    names = {check.name for check in CHECKS}
    compared = {f"{how}:{field}" for how in ("unknown", "differs") for field in CONDITIONS}
    assert names == {check for check, _ in CASES} | compared
    assert all(name in REFUSALS or name.partition(":")[0] in REFUSALS for name in names)


Side = dict[str, Any]
MORE_TOOLS = [*TOOLS, {"type": "function", "function": {"name": "list_skus"}}]
# Per condition the rejected and the chosen side: first where it is unknown, then where it differs.
CONDITIONS: dict[str, tuple[tuple[Side, Side], tuple[Side, Side]]] = {
    "tools": (({"tools": None}, {}), ({}, {"tools": MORE_TOOLS})),
    "budget": (({"budget": None}, {"budget": None}), ({"budget": Budget(steps=8)}, {"budget": Budget(steps=20)})),
    "environment": (({"environment": None}, {}), ({}, {"environment": "inventory@2"})),
    "state": (({"state": (None, None)}, {}), ({}, {"state": ("t", "t")})),
    "notes": (({"notes": "0" * 64}, {}), ({"notes": "0" * 64}, {"notes": "1" * 64})),
    "feedback": (({}, {"informed_by": "c"}), ({"informed_by": "b"}, {"informed_by": "c"})),
}


def pair(desk: Desk, rejected: Side, chosen: Side) -> list[dict[str, Any]]:
    """Two attempts of one task, one wrong and one right, under conditions of their own; the pair's selections."""
    for run, given, turns in (("a", dict(rejected), (A18, BAD)), ("b", dict(chosen), (A17, OK))):
        executed = {name: given.pop(name) for name in ("environment", "state") if name in given}
        informed = given.pop("informed_by", None)
        attempt = desk.attempt(REQUEST, *turns, run=run, confirm=False, **given)
        if executed.get("environment", "") is not None:
            desk.confirm(attempt, **executed)
        if run == "a":
            desk.find(attempt)
        if informed:
            desk.annotate(attempt, "attempt.informed_by", informed)
    desk.build("preference")
    return [line for line in desk.lines("preference") if line["partner"]]


def test_attempts_under_the_same_conditions_are_a_pair_whatever_their_sampling(desk: Desk) -> None:
    lines = pair(desk, {"sampling": raw({"temperature": 0})}, {"sampling": raw({"temperature": 1})})
    assert [line["kept"] for line in lines] == [True]
    assert len(desk.rows("preference")) == 1


@pytest.mark.parametrize("field", CONDITIONS)
def test_a_condition_that_is_unknown_is_named(field: str, desk: Desk) -> None:
    (line,) = pair(desk, *CONDITIONS[field][0])
    assert f"unknown:{field}" in line["failed"]
    assert f"differs:{field}" not in line["failed"]


@pytest.mark.parametrize("field", CONDITIONS)
def test_a_condition_that_differs_is_named_with_both_values(field: str, desk: Desk) -> None:
    (line,) = pair(desk, *CONDITIONS[field][1])
    assert line["failed"] == [f"differs:{field}"]
    (difference,) = msgspec.json.decode(line["record"], type=Selection).detail
    assert None not in (difference.left, difference.right)
    assert difference.left != difference.right


@pytest.mark.parametrize("field", ["task", "group"])
def test_a_member_in_the_test_split_holds_all_its_kin_out(field: str, desk: Desk) -> None:
    kin = desk.attempt(REQUEST, A17, OK, task="stock")
    tested = desk.attempt(REQUEST, A17, OK, run="b", task="stock" if field == "task" else "other")
    desk.annotate(tested, "split", "test")
    if field == "group":
        desk.annotate(kin, "group", "shelf 7")
        desk.annotate(tested, "group", "shelf 7")
    assert desk.build("first_action").kinds["first_action"].refused == {"test_split": 2}


IMAGE = (Part("text", "Look."), Part("image_url", sha256="0" * 64))
PICTURED = Message("assistant", IMAGE, tool_calls=(call(1, 0, *A17),))


def test_a_target_and_a_rejected_side_that_are_no_text_alone_are_refused(desk: Desk) -> None:
    attempt = desk.attempt(REQUEST, PICTURED, Message("tool", json.dumps(OK), answers=Answers("1.0", "id")))
    desk.find(attempt)
    desk.fork(attempt, "clean", 1, SKU_IN_CITY, OK)
    result = desk.build("first_action", "preference")
    assert result.kinds["first_action"].failed["not_text"] == 1
    (line,) = desk.lines("preference")
    (detail,) = msgspec.json.decode(line["record"], type=Selection).detail
    assert (detail.check, detail.field, detail.left) == ("not_text", "rejected message", "1")


def test_parts_that_are_all_text_are_joined_in_a_row(desk: Desk) -> None:
    desk.attempt(Message("user", (Part("text", "stock of "), Part("text", "A17"))), A17, OK)
    desk.build("first_action")
    (row,) = map(json.loads, desk.rows("first_action"))
    assert row["prompt"] == [{"role": "user", "content": "stock of A17"}]


@pytest.mark.parametrize("late", [False, True])
def test_a_call_of_the_prompt_is_answered_directly_after_it(late: bool, desk: Desk) -> None:
    """As a recovery of the log that came while the first call was still open; an answer of both in turn is well."""
    first, second = call(1, 0, *A18), call(2 if late else 3, 0, *A17)
    answers = [
        Message("tool", json.dumps(said), answers=Answers(made.uid, "id"))
        for made, said in ((first, BAD), (second, OK))
    ]
    calls = [Message("assistant", "", tool_calls=(made,)) for made in (first, second)]
    third = Message("assistant", "", tool_calls=(call(5, 0, *SKU_IN_CITY),))
    fifth = Message("tool", json.dumps(OK), answers=Answers("5.0", "id"))
    turns = [*calls, *answers] if late else [calls[0], answers[0], calls[1], answers[1]]
    attempt = desk.attempt(REQUEST, *turns, third, fifth)
    desk.build("first_action")
    refused = {line["message"]: line["failed"] for line in desk.lines("first_action", attempt)}
    assert ("malformed_prompt" in refused[5]) == late
    assert "malformed_prompt" not in refused[1]


@pytest.mark.parametrize(("opening", "refused"), [(None, 1), ("assistant", 1), ("user", 0), ("system", 0)])
def test_a_prompt_asks_for_something(opening: Any, refused: int, desk: Desk) -> None:
    at = 0 if opening is None else 1
    made = Message("assistant", "", tool_calls=(call(at, 0, *A17),))
    answer = Message("tool", json.dumps(OK), answers=Answers(f"{at}.0", "id"))
    desk.attempt(*([] if opening is None else [Message(opening, REQUEST)]), made, answer)
    assert desk.build("first_action").kinds["first_action"].failed.get("malformed_prompt", 0) == refused


@pytest.mark.parametrize(
    ("author", "source"), [(RULE, "rule:test@1"), (PERSON, "human"), (Author("model", "m", "1"), "model")]
)
def test_who_corrected_a_row_is_told_without_a_name(author: Author, source: str, desk: Desk) -> None:
    clean(desk, by=author)
    desk.build("first_action")
    assert [json.loads(row)["correction_source"] for row in desk.rows("first_action")] == [source]


@pytest.mark.parametrize(("after", "refused"), [("t", 1), ("s", 0)])
def test_what_a_mistake_left_behind_is_read_off_the_states(after: str, refused: int, desk: Desk) -> None:
    """Even of a call that was answered by an error."""
    attempt = desk.attempt(REQUEST, A18, BAD, A17, OK, confirm=False)
    desk.confirm(attempt, only=["1.0"], state=("s", after))
    desk.confirm(attempt, only=["3.0"], state=(after, after))
    assert desk.build("recovery").kinds["recovery"].refused.get("effect_not_undone", 0) == refused


def test_an_executed_but_wrong_value_is_no_correction(desk: Desk) -> None:
    """It executes without an error, and that says nothing for it."""
    attempt = desk.attempt(REQUEST, B17, {"sku": "B17", "stock": 3})
    desk.find(attempt)
    desk.fork(attempt, "clean", 1, ("get_stock", {"sku": "C17"}), {"sku": "C17", "stock": 3})
    assert desk.build("first_action").kinds["first_action"].refused == {"finding_on_target": 1, "not_derivable": 1}


@pytest.mark.parametrize(
    ("arguments", "refused"),
    [
        ({"sku": "B17"}, {"not_derivable": 1}),
        ({"sku": "A17", "qty": 12}, {"not_derivable": 1}),
        ({"sku": "A17", "on": "2026-03-04"}, {"not_derivable": 1}),
        ({"sku": "A17", "note": "please count again"}, {}),
    ],
)
def test_a_policy_may_compose_text_but_no_name_number_or_date(
    arguments: dict[str, Any], refused: dict[str, int], desk: Desk
) -> None:
    desk.attempt(REQUEST, ("get_stock", arguments), OK)
    assert desk.build("first_action").kinds["first_action"].refused == refused


@pytest.mark.parametrize(("placebo", "level"), [(None, "step"), (0.2, "step"), (0.5, "execution")])
def test_a_check_raises_the_level_unless_many_wrong_calls_pass_it(
    placebo: float | None, level: str, desk: Desk
) -> None:
    fork = clean(desk)
    desk.say(Verification(fork, "step", "passed", ENVIRONMENT, 1, placebo=placebo, reads=("state",)))
    desk.build("first_action")
    (row,) = map(json.loads, desk.rows("first_action"))
    assert (row["level"], row["placebo_rate"]) == (level, placebo)


def test_many_attempts_of_one_context_give_no_more_pairs_than_the_cap(desk: Desk) -> None:
    for number in range(30):
        desk.find(desk.attempt(REQUEST, A18, BAD, f"Sorry {number}.", run=f"bad{number}"))
        desk.attempt(REQUEST, A17, OK, f"Two {number}.", run=f"good{number}")
    result = desk.build("preference", partners=3).kinds["preference"]
    assert (result.candidates, result.kept, result.rows) == (90, 90, 1)
