"""Whatever a log and a corrector write, a first-action row holds nothing first seen after its branch point."""

from hypothesis import example, given
from hypothesis import strategies as st

from builders import first_action
from builders.candidate import Candidate, Facts, Subject, Target
from builders.checks import failures
from curation.diagnosis.derivation import derives
from schemas.canonical import encode, raw
from schemas.statements import Execution, Verification
from schemas.trajectory import (
    Author,
    Correction,
    Fork,
    Message,
    Restore,
    ToolCall,
    Trajectory,
    trajectory_id,
)
from tests.records import record

WORDS = st.text(alphabet="abcxyz019_-", min_size=3, max_size=8)
TOOLS = '[{"type":"function","function":{"name":"get_stock","parameters":{"type":"object"}}}]'


def subject(trajectory: Trajectory) -> Subject:
    """A trajectory whose calls are all confirmed."""
    identity = trajectory_id(trajectory)
    executed = [
        Verification(
            identity,
            "execution",
            "passed",
            Author("environment", "world@1"),
            index,
            call.uid,
            execution=Execution("world@1", status="ok", answer="a", state_before="s", state_after="s"),
        )
        for index, message in enumerate(trajectory.messages)
        for call in message.tool_calls
    ]
    return Subject(identity, encode(trajectory).decode(), None, encode(executed).decode())


# A value that the model wrote itself is no news in the answer, nor is one that the request gives in other words.
@example(request=[], wrong="c1-90", right="c1-90", answer=["c1-90"], said=["c1-90"], reused=True)
@example(request=["c1-90-"], wrong="xyz", right="c1-90", answer=["c1-90"], said=[], reused=False)
@example(request=["c1-90-"], wrong="xyz", right="c1-90", answer=["c1-90"], said=["c1-90"], reused=False)
@example(request=["100", "-90"], wrong="xyz", right="190", answer=["190"], said=[], reused=False)
@given(
    request=st.lists(WORDS, max_size=3),
    wrong=WORDS,
    right=WORDS,
    answer=st.lists(WORDS, max_size=3),
    said=st.lists(WORDS, max_size=3),
    reused=st.booleans(),
)
def test_no_word_of_what_came_later_is_in_a_row(
    request: list[str], wrong: str, right: str, answer: list[str], said: list[str], reused: bool
) -> None:
    parent = record(" ".join(request), ("get_stock", {"sku": wrong}), {"error": " ".join(answer)}, "No.")
    text = " ".join([*said, *(answer if reused else [])])
    swapped = Message(
        "assistant",
        text,
        tool_calls=(ToolCall("1.0", "get_stock", "", arguments=raw({"sku": right})),),
    )
    fork = Trajectory(
        (parent.messages[0], swapped),
        fork=Fork(trajectory_id(parent), 1, "clean", Correction(Author("human", "Ada")), Restore("snapshot")),
    )
    before = subject(parent)
    candidate = Candidate("first_action", Facts(), subject(fork), Target(1, 1), before, 1, tools=TOOLS)
    later = {*answer, wrong} - {*request} - ({wrong} if right == wrong else set())
    known = {right} if derives({"sku": right}, parent.messages[:1]) else set()
    leaked = later & ({*text.split()} | ({right} - known))
    refused = {difference.check for difference in failures(candidate)}
    assert ("feedback_leaked" in refused) == bool(leaked)
    if not refused:
        _, row = first_action.render(candidate)
        assert all(f'"{word}"'.encode() not in row for word in later - known)
