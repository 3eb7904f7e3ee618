"""The keys of schemas.side_file: which attempt a record is, and what is said of it beside the record."""

from typing import Any, TypeVar

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from curation.importers.face import Fact, RefusedError
from schemas.canonical import raw
from schemas.objects import Object, tools_object
from schemas.side_file import SideFacts
from schemas.statements import Result
from schemas.trajectory import Attempt, AuthorKind, Task, Trajectory

# ``tools`` of a record is its tool list: recorded, not said beside it.
INLINE_KEYS = frozenset(SideFacts.__struct_fields__) - {"tools"}
_NOTHING = SideFacts()

Keys = TypeVar("Keys", bound=SideFacts)

_RESULTS: dict[Any, Result] = {
    True: "passed",
    False: "failed",
    "success": "passed",
    "failure": "failed",
    "partial": "partial",
    "unknown": "unknown",
}


class _Verdict(msgspec.Struct):
    success: bool | None
    score: float | None = None


def inline_keys(record: dict[str, Any]) -> SideFacts:
    """The side-file keys that stand in a record itself; raises like ``convert_keys``."""
    if INLINE_KEYS.isdisjoint(record):
        return _NOTHING
    return convert_keys({key: value for key, value in record.items() if key in INLINE_KEYS}, SideFacts)


def convert_keys(keys: dict[str, Any], shape: type[Keys]) -> Keys:
    """Side-file keys as ``shape`` has them; null is absent. Raises RefusedError ``bad_side_keys`` with the path."""
    try:
        side = msgspec.convert({key: value for key, value in keys.items() if value is not None}, shape)
        if isinstance(side.outcome, dict):
            msgspec.convert(side.outcome, _Verdict)
    except msgspec.ValidationError as error:
        raise RefusedError("bad_side_keys", str(error)) from None
    return side


def identify(trajectory: Trajectory, side: SideFacts) -> Trajectory:
    """The trajectory as the attempt that the keys say it is; what they leave open stays as it was."""
    task, attempt = trajectory.task, trajectory.attempt or Attempt()
    return replace(
        trajectory,
        task=Task(
            namespace=task.namespace if side.namespace is None else side.namespace,
            id=task.id if side.task is None else str(side.task),
            variant=task.variant if side.variant is None else side.variant,
            parameters=task.parameters if side.parameters is UNSET else raw(side.parameters),
        ),
        attempt=_attempt(
            attempt.run if side.run is None else str(side.run),
            attempt.index if side.attempt is None else side.attempt,
        ),
    )


def name_run(trajectory: Trajectory, name: str) -> Trajectory:
    """The trajectory as part of a run that the user names: ``name``, or ``name/run`` where the log names one too."""
    attempt = trajectory.attempt or Attempt()
    run = name if attempt.run is None else f"{name}/{attempt.run}"
    return replace(trajectory, attempt=Attempt(run, attempt.index))


def facts_of(side: SideFacts, by: AuthorKind) -> tuple[tuple[Fact, ...], tuple[Object, ...]]:
    """What the keys say beside the record, each said by ``by``, and the objects that they name."""
    if side == _NOTHING:
        return (), ()
    objects = () if side.tools is None else (tools_object(side.tools),)
    budget = {} if side.budget is None else msgspec.structs.asdict(side.budget)
    fields = {
        **{f"strata.{name}": value for name, value in side.strata.items()},
        "split": side.split,
        "group": side.group,
        "environment": side.environment,
        "stop": side.stop,
        "attempt.allocation": side.allocation,
        "tools": objects[0].id if objects else None,
        **{f"budget.{name}": value for name, value in budget.items()},
    }
    facts = tuple(Fact(field, value, by) for field, value in fields.items() if value is not None)
    return _outcome(side, by) + facts, objects


def _attempt(run: str | None, index: int | None) -> Attempt | None:
    return None if run is None and index is None else Attempt(run, index)


def _outcome(side: SideFacts, by: AuthorKind) -> tuple[Fact, ...]:
    verdict, score = side.outcome, side.score
    if isinstance(verdict, dict):
        score = verdict.get("score") if score is None else score
        verdict = verdict["success"]
    if verdict is None and score is None:
        return ()
    return (Fact("outcome", "unknown" if verdict is None else _RESULTS[verdict], by, score=score),)
