"""What a build did with a decision: kept, or every check it failed."""

from typing import Literal

from schemas.trajectory import Record

Kind = Literal["first_action", "recovery", "preference"]
KINDS: tuple[Kind, ...] = ("first_action", "recovery", "preference")


class Difference(Record, frozen=True):
    """Why a check failed: the field and the two values that do not agree, or the one that is wrong."""

    check: str
    field: str
    left: str | None = None
    right: str | None = None


class Selection(Record, frozen=True):
    """One line of a build about one decision of an attempt.

    ``trajectory`` and ``message`` are the attempt's own; ``child`` names the fork whose decision the row would train.
    ``partner`` is the chosen side's trajectory in a pair.
    """

    build: str
    kind: Kind
    attempt: str
    trajectory: str
    message: int | None = None
    child: str | None = None
    kept: bool = False
    sample: str | None = None
    failed: tuple[str, ...] = ()
    detail: tuple[Difference, ...] = ()
    partner: str | None = None
