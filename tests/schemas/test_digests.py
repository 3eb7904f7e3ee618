import hashlib
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from schemas.canonical import encode, raw
from schemas.digests import Decision, action_digest, attempt_id, decisions_of, task_key
from schemas.trajectory import (
    Answers,
    Attempt,
    Author,
    Correction,
    Fork,
    Message,
    MessageError,
    Part,
    Restore,
    Task,
    ToolCall,
    Trajectory,
    decode,
)

TOOLS = ("get_stock", "book")


def make_call(uid: str, sku: str = "A17", name: str = "get_stock") -> ToolCall:
    return ToolCall(uid, name, f'{{"sku": "{sku}"}}', f"id-{uid}", raw({"sku": sku}))


def reply(uid: str | None, text: str, **more: Any) -> Message:
    return Message("tool", text, answers=None if uid is None else Answers(uid, "id"), **more)


REQUEST = Message("user", "How many A17 and B17 are left?")
BOTH = Message("assistant", "Let me look.", "Two look-ups.", (make_call("1.0"), make_call("1.1", "B17")))
RUN = Trajectory((REQUEST, BOTH, reply("1.0", "2"), reply("1.1", "5"), Message("assistant", "2 and 5.")))


def last(*messages: Message) -> Decision:
    return decisions_of(Trajectory(messages))[-1]


def with_message(index: int, **changes: Any) -> Decision:
    messages = list(RUN.messages)
    messages[index] = replace(messages[index], **changes)
    return last(*messages)


def test_every_assistant_message_is_a_decision() -> None:
    first, second = decisions_of(RUN)
    assert (first.message, first.tools, second.message, second.tools) == (1, ("get_stock",), 4, ())
    assert first.context == first.information
    assert second.context != second.information


def test_parallel_answers_are_seen_in_the_order_of_their_calls() -> None:
    request, both, one, two, end = RUN.messages
    assert last(request, both, two, one, end) == last(*RUN.messages)
    assert last(request, both, reply("1.0", "5"), reply("1.1", "2"), end).context != last(*RUN.messages).context


@pytest.mark.parametrize("changes", [{"content": "Wait."}, {"reasoning": "Hm."}, {"content": None, "reasoning": None}])
def test_words_around_a_call_are_context_but_no_information(changes: dict[str, Any]) -> None:
    changed, plain = with_message(1, **changes), with_message(1)
    assert changed.context != plain.context
    assert changed.information == plain.information


def test_words_without_a_call_are_information() -> None:
    asked = [REQUEST, Message("assistant", "Which city?"), Message("user", "Hangzhou"), Message("assistant", "2")]
    other = [REQUEST, Message("assistant", "Which shop?"), Message("user", "Hangzhou"), Message("assistant", "2")]
    assert last(*asked).information != last(*other).information


@pytest.mark.parametrize(
    ("index", "changes"),
    [
        (0, {"content": "How many A17 and B17 are left? "}),
        (0, {"role": "system"}),
        (1, {"tool_calls": (make_call("1.0", "A18"), make_call("1.1", "B17"))}),
        (1, {"tool_calls": (make_call("1.0", name="book"), make_call("1.1", "B17"))}),
        (1, {"tool_calls": (make_call("1.1", "B17"), make_call("1.0"))}),
        (2, {"content": "3"}),
        (2, {"answers": None}),
        (2, {"error": MessageError("timeout")}),
    ],
)
def test_what_was_asked_done_or_answered_is_information(index: int, changes: dict[str, Any]) -> None:
    changed, plain = with_message(index, **changes), with_message(index)
    assert changed.context != plain.context
    assert changed.information != plain.information


@pytest.mark.parametrize(
    ("index", "changes"),
    [
        (0, {"actor": "simulator"}),
        (0, {"extra": raw({"weight": 0})}),
        (1, {"tool_calls": (replace(make_call("1.0"), id="other"), replace(make_call("1.1", "B17"), id=None))}),
        (1, {"tool_calls": (replace(make_call("1.0"), arguments_text='{"sku":"A17"}'), make_call("1.1", "B17"))}),
        (2, {"raw": "2 (before the filter)"}),
        (2, {"answers": Answers("1.0", "position")}),
    ],
)
def test_what_no_model_sees_is_in_no_digest(index: int, changes: dict[str, Any]) -> None:
    assert with_message(index, **changes) == with_message(index)


def test_a_single_text_part_is_the_plain_string_and_a_blob_is_its_digest() -> None:
    plain = with_message(0)
    assert with_message(0, content=(Part("text", REQUEST.content),)) == plain  # type: ignore[arg-type]
    blobs = [with_message(0, content=(Part("image", sha256=digit * 64),)).context for digit in "ab"]
    assert len({plain.context, *blobs}) == 3


def test_null_text_is_empty_text() -> None:
    assert with_message(1, content=None).context == with_message(1, content="").context


@pytest.mark.parametrize("hidden", ["reasoning", "compaction"])
def test_what_follows_something_hidden_is_partial(hidden: str) -> None:
    first, second = decisions_of(replace(RUN, messages=(REQUEST, replace(BOTH, hidden=hidden), *RUN.messages[2:])))
    assert (first.partial, second.partial) == (True, True)
    assert not with_message(1).partial


@pytest.mark.parametrize("hidden", ["reasoning", "compaction"])
@pytest.mark.parametrize("index", range(len(RUN.messages)))
def test_what_is_hidden_before_any_message_or_answer_makes_all_that_follows_partial(index: int, hidden: str) -> None:
    messages = [replace(message, hidden=hidden if at == index else None) for at, message in enumerate(RUN.messages)]
    changed = decisions_of(replace(RUN, messages=tuple(messages)))
    assert [decision.partial for decision in changed] == [decision.message >= index for decision in changed]


def test_an_error_is_seen_only_after_it() -> None:
    failed = replace(RUN.messages[2], error=MessageError("timeout"))
    first, second = decisions_of(replace(RUN, messages=(REQUEST, BOTH, failed, *RUN.messages[3:])))
    assert (first.error_seen, second.error_seen) == (False, True)


def test_an_action_is_its_calls_or_its_text() -> None:
    call = make_call("1.0")
    spoken, silent = Message("assistant", "Now.", None, (call,)), Message("assistant", None, "Hm.", (call,))
    assert action_digest(spoken) == action_digest(silent)
    assert action_digest(spoken) != action_digest(Message("assistant", "Now."))
    malformed = ToolCall("1.0", "get_stock", '{"sku": "A17"', parse_error="truncated")
    assert action_digest(Message("assistant", None, None, (malformed,))) != action_digest(spoken)


def test_an_action_is_the_calls_of_the_published_shape() -> None:
    message = Message("assistant", None, None, (make_call("1.0"),))
    shape = b'[["get_stock",{"sku":"A17"}]]'
    assert action_digest(message) == hashlib.sha256(shape).hexdigest()


@dataclass
class Chain:
    """The chain of schemas.digests, made again from its published description."""

    value: bytes = hashlib.sha256(b"context/1").digest()

    def add(self, visible: Any) -> None:
        self.value = hashlib.sha256(self.value + hashlib.sha256(encode(visible)).digest()).digest()


def test_context_and_information_follow_from_their_description() -> None:
    calls = [["get_stock", {"sku": "A17"}], ["get_stock", {"sku": "B17"}]]
    context, information = Chain(), Chain()
    for chain, text, reasoning in ((context, "Let me look.", "Two look-ups."), (information, "", "")):
        chain.add(["user", REQUEST.content])
        chain.add(["assistant", text, reasoning, calls])
        chain.add(["tool", 0, "2", ""])
        chain.add(["tool", 1, "5", ""])
    decision = decisions_of(RUN)[-1]
    assert (decision.context, decision.information) == (context.value.hex(), information.value.hex())


@st.composite
def runs(draw: st.DrawFn) -> Trajectory:
    messages = [Message("user", draw(st.text(max_size=4)))]
    for _ in range(draw(st.integers(0, 3))):
        index = len(messages)
        calls = tuple(
            make_call(f"{index}.{position}", draw(st.sampled_from(["A17", "A18"])), draw(st.sampled_from(TOOLS)))
            for position in range(draw(st.integers(0, 3)))
        )
        messages.append(Message("assistant", draw(st.none() | st.text(max_size=4)), None, calls))
        answers = [reply(call.uid, draw(st.text(max_size=3))) for call in calls]
        messages.extend(draw(st.permutations(answers)))
    return Trajectory((*messages, Message("assistant", "Done.")))


@given(runs())
def test_digests_are_computed_again_from_stored_bytes(trajectory: Trajectory) -> None:
    assert decisions_of(decode(encode(trajectory))) == decisions_of(trajectory)


@given(runs(), st.integers(1, 4))
def test_a_digest_depends_on_nothing_after_its_decision(trajectory: Trajectory, more: int) -> None:
    longer = replace(trajectory, messages=(*trajectory.messages, *[Message("user", "More.")] * more))
    assert decisions_of(longer) == decisions_of(trajectory)


@given(runs(), runs())
def test_equal_contexts_carry_equal_information(left: Trajectory, right: Trajectory) -> None:
    known: dict[str, str] = {}
    for decision in decisions_of(left) + decisions_of(right):
        assert known.setdefault(decision.context, decision.information) == decision.information


def test_a_task_is_named_by_its_namespace_variant_and_parameters() -> None:
    tasks = [
        Task("shop", "1"),
        Task("fair", "1"),
        Task("shop", "1", "hard"),
        Task("shop", "1", parameters=raw({"n": 1})),
        Task("shop", "1", parameters=raw({"n": 1.0})),
    ]
    assert len({task_key(task) for task in tasks}) == len(tasks)
    assert task_key(Task("shop")) is None


def test_an_attempt_is_its_task_run_and_index_whatever_happened_in_it() -> None:
    task, attempt = Task("shop", "1"), Attempt("night", 2)
    one = replace(RUN, task=task, attempt=attempt)
    other = Trajectory((REQUEST,), task=task, attempt=attempt)
    assert attempt_id(one, "raw a") == attempt_id(other, "raw b")
    others = [Attempt("night", 3), Attempt("day", 2), Attempt("night"), Attempt(index=2)]
    assert len({attempt_id(replace(one, attempt=other), "raw") for other in [attempt, *others]}) == 5


def test_without_a_run_an_attempt_is_its_line_and_a_fork_is_none() -> None:
    assert attempt_id(RUN, "raw a") == attempt_id(replace(RUN, stop_text="x"), "raw a")
    assert attempt_id(RUN, "raw a") != attempt_id(RUN, "raw b")
    fork = Fork("0" * 64, 1, "clean", Correction(Author("rule")), Restore("snapshot"))
    assert attempt_id(replace(RUN, fork=fork), "raw a") is None


def test_arguments_are_compared_as_canonical_values() -> None:
    spaced = msgspec.Raw(encode(msgspec.json.decode(b'{ "sku" : "A17" }')))
    call = replace(make_call("1.0"), arguments=spaced)
    assert action_digest(Message("assistant", None, None, (call,))) == action_digest(
        Message("assistant", None, None, (make_call("1.0"),))
    )
