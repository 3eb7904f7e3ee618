"""What a log does not say about its attempts, one JSON object a line; the same keys may stand inline in a record.

``key`` is the record's own id; without one, ``file`` and ``line`` (from 1) point at it. Only namespace, task, variant,
parameters, run and attempt say *which* attempt this is and enter the record; the rest become annotations.
"""

from typing import Annotated, Any, Literal

import msgspec

from schemas.statements import Outcome, Stop, Value
from schemas.trajectory import Budget

Index = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]  # a column of 64 bits

IDENTITY = ("namespace", "task", "variant", "parameters", "run", "attempt")


class SideFacts(msgspec.Struct, frozen=True):
    """What may be said of an attempt. Inline in a record other keys are not ours; in a side file they are refused."""

    namespace: str | None = None
    task: str | int | None = None
    variant: str | None = None
    parameters: Any = msgspec.UNSET
    run: str | int | None = None
    attempt: Index | None = None
    outcome: Outcome | bool | dict[str, Any] | None = None
    score: float | None = None
    strata: dict[str, Value] = {}
    split: str | None = None
    group: str | None = None
    environment: str | None = None
    stop: Stop | None = None
    allocation: Literal["planned", "until_success", "on_failure"] | None = None
    tools: list[Any] | None = None
    budget: Budget | None = None


class SideLine(SideFacts, frozen=True, forbid_unknown_fields=True):
    """One line of a side file."""

    key: str | int | None = None
    file: str | None = None
    line: Annotated[int, msgspec.Meta(ge=1)] | None = None
