"""What a selection-bias report says in words: how its numbers are made, and what they do not show."""

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from reports.intervals import METHODS
from reports.strata import Row, Stratification

RuleFrom = Literal["default", "keep", "build"]


class Note(msgspec.Struct, frozen=True):
    """A remark every view prints: what it is about, and one short paragraph of plain text."""

    about: str
    text: str


class Facts(msgspec.Struct, frozen=True):
    """What the notes depend on: where the rule comes from, the counts, and attempts that a reader must know of."""

    rule_from: RuleFrom
    overall: Row
    strata: Sequence[Stratification]
    undecided: int
    unnamed: int
    kept_without_success: int


def notes_on(facts: Facts) -> tuple[Note, ...]:
    """The remarks on a report, in reading order."""
    notes = {
        "Not shown": (
            "This report counts which attempts are kept. It shows how soundly the rows of a training set were chosen, "
            "not that a model learns from them; that is a separate experiment with its own held-out tasks."
        ),
        "Unit": _unit(facts),
        "Rule": _rule(facts),
        "Unknown and faults": (
            "Unknown attempts have no verdict; they are not failures. Faults are attempts that met a failure of the "
            "environment or the provider. An attempt can be both. Retention counts all of them as not kept unless the "
            "rule keeps them; the rate over known verdicts leaves both groups out. Read the two side by side: neither "
            "alone is the success rate."
        ),
        "Intervals": _intervals(facts),
        "Missing data": (
            "Attempts that a rule on the outcome leaves out are missing not at random (MNAR; Rubin, Biometrika 63, "
            "1976): whether an attempt is missing depends on the very outcome that is missing with it. Task and "
            "stratum can explain which tasks are thinned out; they cannot explain which attempts of a task are. So "
            "inside a stratum, too, the kept attempts are no random sample of its attempts. A build adds reasons of "
            "its own, such as calls that could not be confirmed."
        ),
        "Positivity": _positivity(facts),
        "Weights": (
            "The weight of a stratum is its attempts per kept attempt. It brings the kept attempts back to the mix of "
            "all attempts and costs precision (effective number of kept attempts, after Kish). It repeats what was "
            "kept: no weight creates a demonstration that was never obtained, and removing duplicates does not mend "
            "the mix either."
        ),
        "Total variation": (
            "Half the sum of the absolute differences between the shares before and after; 0 is the same mix, 1 is a "
            "wholly different one. It grows with the number of strata even where the stratum has nothing to do with "
            "keeping, so it does not rank one way of dividing against another."
        ),
    }
    return tuple(Note(about, text) for about, text in notes.items() if text)


def count(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun: ``1 attempt``, ``2,000 attempts``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def _unit(facts: Facts) -> str:
    text = (
        f"The unit is the attempt, one try of a task: {count(facts.overall.attempts, 'attempt')} of "
        f"{count(facts.overall.tasks, 'task')}. Forks made by repair are no attempts; what a build keeps of a fork "
        "counts on the attempt it was forked from."
    )
    if facts.unnamed:
        text += f" {count(facts.unnamed, 'attempt')} without a task id count as one task each."
    return text


def _rule(facts: Facts) -> str:
    sources = {
        "default": "No rule was given, so the default holds: an attempt is kept if its outcome is a success.",
        "keep": "The rule was given by the user, as SQL over the view attempts.",
        "build": "An attempt is kept if the build keeps at least one of its decisions.",
    }
    text = sources[facts.rule_from]
    if facts.undecided:
        text += (
            f" For {count(facts.undecided, 'attempt')} the rule has no answer (NULL, for want of a value); they are "
            "counted as not kept."
        )
    if facts.kept_without_success:
        text += (
            f" {count(facts.kept_without_success, 'attempt')} of the kept are no clean success: another outcome, or a "
            "fault on the way."
        )
    return text


def _intervals(facts: Facts) -> str:
    rows: Iterable[Row] = (facts.overall, *(row for table in facts.strata for row in table.rows))
    used = {rate.interval for row in rows for rate in (row, row.verdicts)}
    texts = " ".join(text for method, text in METHODS.items() if method in used)
    return f"All intervals are 95 % intervals. {texts}" if texts else ""


def _positivity(facts: Facts) -> str:
    empty = [(table.by, table.never_kept) for table in facts.strata if table.never_kept]
    if not facts.overall.attempts or not facts.strata:
        return ""
    if not empty:
        return "Every stratum of every table has at least one kept attempt, so a weight exists for each."
    listed = ", ".join(f"{count(number, 'stratum', 'strata')} of {by}" for by, number in empty)
    return (
        f"Nothing is kept in {listed}. These stay in the tables; their weight is undefined, as no weight can create "
        "examples. Statements about all attempts cannot be made from the kept ones."
    )
