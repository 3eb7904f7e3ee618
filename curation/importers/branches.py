"""A branch that a log records: the run that an attempt left, and the first message that is not that run's.

It stands beside the record as the annotation ``branched_from``, in one form whatever the format:
``{"attempt":INDEX,"message":INDEX,"run":NAME}``, each where it is known. ``run`` and ``attempt`` are those of the
attempt that was left, as the store names it.
"""

import msgspec

from curation.importers.face import Fact
from schemas import canonical

FIELD = "branched_from"


class Branch(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a run was left by: the run's name, its index where it has one, and the first message that is not its."""

    run: str
    attempt: int | None = None
    message: int | None = None


def branched_from(run: str, message: int | None = None, attempt: int | None = None) -> Fact:
    """That the log records the attempt as a branch of another."""
    return Fact(FIELD, canonical.encode(Branch(run, attempt, message)).decode())


def read_branch(value: object) -> Branch | None:
    """The branch of an annotation's value; None where that says none, as a hostile log's may."""
    try:
        return msgspec.json.decode(value, type=Branch) if isinstance(value, str) else None
    except msgspec.MsgspecError:
        return None
