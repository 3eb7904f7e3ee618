"""What stands in the place of erased bytes: their name, who erased them and why, and what counting still needs."""

from typing import Literal

from schemas.statements import Outcome
from schemas.trajectory import Author, Record

ErasedKind = Literal["trajectory", "fork", "tools", "snapshot", "raw", "blob"]


class ErasedAttempt(Record, frozen=True):
    """What is still known of an attempt: what it counts under, as the view ``attempts`` told when it was erased.

    The name of its run and its seed are gone; ``task``, ``variant`` and ``group`` stay only where an attempt that stays
    has the same. ``task_key`` is a digest. No word of its messages is here.
    """

    attempt_id: str
    task_key: str | None = None
    namespace: str | None = None
    task: str | None = None
    variant: str | None = None
    attempt: int | None = None
    model: str | None = None
    agent: str | None = None
    environment: str | None = None
    tools: str | None = None
    messages: int = 0
    calls: int = 0
    outcome: Outcome = "unknown"
    outcome_by: str | None = None
    score: float | int | None = None
    stop: str | None = None
    split: str | None = None
    group: str | None = None
    fault: bool = False
    strata: tuple[tuple[str, str], ...] = ()
    attempt_kind: str | None = None
    allocation: str | None = None


class Tombstone(Record, frozen=True):
    """That the bytes of a digest were erased, or, where ``lifted``, that they may come back.

    ``attempt`` is there for the live record of an attempt. ``of`` are the records that a fork went with, after
    which it may be made again; one that was named itself has none. A tombstone that a later one ``supersedes`` stands
    no more.
    """

    erased: str
    kind: ErasedKind
    author: Author
    reason: str = ""
    attempt: ErasedAttempt | None = None
    of: tuple[str, ...] = ()
    lifted: bool = False
    supersedes: tuple[str, ...] = ()
