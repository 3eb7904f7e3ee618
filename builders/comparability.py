"""Whether the two sides of a pair answered under the same conditions: what can be compared, and how it differs.

The start state needs no condition of its own: its parameters are part of the task, and only sides of one task meet.
"""

from collections.abc import Callable
from typing import NamedTuple

from builders.candidate import Candidate, Facts, Subject
from curation.fork_plan import state_at
from schemas.canonical import encode


class Sides(NamedTuple):
    """A condition on the rejected and on the chosen side; None where it is unknown."""

    rejected: str | None
    chosen: str | None

    @property
    def unknown(self) -> bool:
        """Whether one of them is unknown."""
        return self.rejected is None or self.chosen is None

    @property
    def differ(self) -> bool:
        """Whether both are known and not equal."""
        return not self.unknown and self.rejected != self.chosen


Condition = Callable[[Candidate], Sides]


def tools(candidate: Candidate) -> Sides:
    """The digest of the tool list."""
    return _of_facts(candidate, lambda facts, _: facts.tools)


def budget(candidate: Candidate) -> Sides:
    """The limits that are known of a run. A fork of the rejected side's own attempt was given no other ones."""
    if candidate.other is None:
        return Sides("", "")
    return _of_facts(candidate, _budget)


def environment(candidate: Candidate) -> Sides:
    """The environment with its version and code that confirmed the decision's answers."""
    return _of_decisions(candidate, _environment)


def state(candidate: Candidate) -> Sides:
    """The logical digest of the world right before the decision."""
    return _of_decisions(candidate, lambda subject, message: state_at(subject.verifications, message))


def notes(candidate: Candidate) -> Sides:
    """The memory notes in context; what was shown of them is in the messages, so that two unknown ones are equal."""
    return _known_or_equal(
        _of_facts(candidate, lambda facts, subject: subject.trajectory.conditions.notes or facts.notes)
    )


def feedback(candidate: Candidate) -> Sides:
    """What the attempt was told of earlier ones; as with notes."""
    return _known_or_equal(_of_facts(candidate, lambda facts, _: facts.informed_by))


CONDITIONS: dict[str, Condition] = {
    "tools": tools,
    "budget": budget,
    "environment": environment,
    "state": state,
    "notes": notes,
    "feedback": feedback,
}


def _of_facts(candidate: Candidate, value: Callable[[Facts, Subject], str | None]) -> Sides:
    rejected = candidate.rejected or candidate.chosen
    return Sides(value(candidate.facts, rejected), value(candidate.other or candidate.facts, candidate.chosen))


def _of_decisions(candidate: Candidate, value: Callable[[Subject, int], str | None]) -> Sides:
    rejected = candidate.rejected or candidate.chosen
    wrong = candidate.target.message if candidate.wrong is None else candidate.wrong
    return Sides(value(rejected, wrong), value(candidate.chosen, candidate.target.message))


def _budget(facts: Facts, subject: Subject) -> str | None:
    recorded = subject.trajectory.conditions.budget
    limits = dict(facts.budget)
    if recorded is not None:
        limits |= {
            name: encode(value).decode()
            for name in recorded.__struct_fields__
            if (value := getattr(recorded, name)) is not None
        }
    return encode(limits).decode() if limits else None


def _environment(subject: Subject, message: int) -> str | None:
    names = {
        f"{execution.environment} {execution.code_digest[:12]}".strip() for execution in subject.executions(message)
    }
    return ", ".join(sorted(names)) or None


def _known_or_equal(sides: Sides) -> Sides:
    return Sides("", "") if sides == (None, None) else sides
