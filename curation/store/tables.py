"""The eight tables: their columns, and how a record or statement becomes a row.

Every row has an ``id`` that is the SHA-256 of what it holds (``record``, or ``bytes`` for objects), so that verifying
is hashing. The other columns repeat what queries need.
"""

from collections.abc import Sequence
from itertools import accumulate, chain
from typing import Any

import pyarrow as pa
from msgspec import UNSET
from msgspec.structs import astuple

from curation.errors import StoreError
from schemas.canonical import digest, encode
from schemas.digests import Decision, decisions_of, task_key
from schemas.objects import Object, Sighting
from schemas.selection import Selection
from schemas.statements import Annotation, Finding, Statement, Value, Verification, slot
from schemas.tombstones import ErasedAttempt, Tombstone
from schemas.trajectory import SCHEMA_VERSION, Trajectory

_TEXT = pa.string()
_DECISION = pa.struct(
    [
        ("message", pa.int32()),
        ("context", _TEXT),
        ("information", _TEXT),
        ("action", _TEXT),
        ("tools", pa.list_(_TEXT)),
        ("error_seen", pa.bool_()),
        ("partial", pa.bool_()),
    ]
)
_STATEMENT = [
    ("id", _TEXT),
    ("record", _TEXT),
    ("slot", _TEXT),
    ("trajectory", _TEXT),
    ("author_kind", _TEXT),
    ("author_name", _TEXT),
    ("author_version", _TEXT),
    ("supersedes", pa.list_(_TEXT)),
]

TABLES: dict[str, pa.Schema] = {
    "tombstones": pa.schema(
        [
            ("id", _TEXT),
            ("record", _TEXT),
            ("erased", _TEXT),
            ("kind", _TEXT),
            ("author_name", _TEXT),
            ("reason", _TEXT),
            ("lifted", pa.bool_()),
            ("supersedes", pa.list_(_TEXT)),
            ("attempt_id", _TEXT),
            ("task_key", _TEXT),
            ("namespace", _TEXT),
            ("task", _TEXT),
            ("variant", _TEXT),
            ("attempt", pa.int64()),
            ("model", _TEXT),
            ("agent", _TEXT),
            ("environment", _TEXT),
            ("tools", _TEXT),
            ("messages", pa.int32()),
            ("calls", pa.int32()),
            ("outcome", _TEXT),
            ("outcome_by", _TEXT),
            ("score", pa.float64()),
            ("stop", _TEXT),
            ("split", _TEXT),
            ("group", _TEXT),
            ("fault", pa.bool_()),
            ("strata", pa.list_(pa.struct([("k", _TEXT), ("v", _TEXT)]))),
            ("attempt_kind", _TEXT),
            ("allocation", _TEXT),
        ]
    ),
    "objects": pa.schema([("id", _TEXT), ("kind", _TEXT), ("bytes", pa.binary())]),
    "sightings": pa.schema(
        [
            ("id", _TEXT),
            ("record", _TEXT),
            ("file", _TEXT),
            ("name", _TEXT),
            ("place", pa.int64()),
            ("offset", pa.int64()),
            ("raw", _TEXT),
            ("importer", _TEXT),
            ("trajectory", _TEXT),
            ("code", _TEXT),
            ("detail", _TEXT),
            ("warnings", pa.list_(_TEXT)),
            ("part", _TEXT),
        ]
    ),
    "annotations": pa.schema([*_STATEMENT, ("field", _TEXT), ("value", _TEXT)]),
    "findings": pa.schema([*_STATEMENT, ("message", pa.int32()), ("label", _TEXT), ("detail", _TEXT), ("call", _TEXT)]),
    "verifications": pa.schema(
        [
            *_STATEMENT,
            ("message", pa.int32()),
            ("call", _TEXT),
            ("layer", _TEXT),
            ("result", _TEXT),
            ("match", _TEXT),
            ("reason", _TEXT),
            ("status", _TEXT),
            ("score", pa.float64()),
        ]
    ),
    "trajectories": pa.schema(
        [
            ("id", _TEXT),
            ("record", _TEXT),
            ("schema_version", pa.int32()),
            ("attempt_id", _TEXT),
            ("namespace", _TEXT),
            ("task", _TEXT),
            ("variant", _TEXT),
            ("task_key", _TEXT),
            ("parameters", _TEXT),
            ("run", _TEXT),
            ("attempt", pa.int64()),
            ("model", _TEXT),
            ("agent", _TEXT),
            ("seed", _TEXT),
            ("tools", _TEXT),
            ("environment", _TEXT),
            ("budget", _TEXT),
            ("parent", _TEXT),
            ("branch_point", pa.int32()),
            ("fork_kind", _TEXT),
            ("messages", pa.int32()),
            ("calls", pa.int32()),
            ("decisions", pa.list_(_DECISION)),
        ]
    ),
    "selections": pa.schema(
        [
            ("id", _TEXT),
            ("record", _TEXT),
            ("build", _TEXT),
            ("kind", _TEXT),
            ("attempt", _TEXT),
            ("trajectory", _TEXT),
            ("message", pa.int32()),
            ("child", _TEXT),
            ("kept", pa.bool_()),
            ("sample", _TEXT),
            ("failed", pa.list_(_TEXT)),
            ("partner", _TEXT),
        ]
    ),
}
"""Schemas by table, in the order of commits: what is erased, what is referred to, ``trajectories``: the import."""

STATEMENTS: dict[str, type[Annotation | Finding | Verification]] = {
    "annotations": Annotation,
    "findings": Finding,
    "verifications": Verification,
}
"""What is written in a table of statements."""

Row = dict[str, Any]


def trajectory_row(trajectory: Trajectory, record: bytes, attempt: str | None) -> Row:
    """The row of a trajectory with these canonical bytes."""
    task, conditions, fork = trajectory.task, trajectory.conditions, trajectory.fork
    seed = conditions.seed
    return {
        "id": digest(record),
        "record": record.decode(),
        "schema_version": SCHEMA_VERSION,
        "attempt_id": attempt,
        "namespace": task.namespace,
        "task": task.id,
        "variant": task.variant,
        "task_key": task_key(task),
        "parameters": None if task.parameters is UNSET else bytes(task.parameters).decode(),
        "run": trajectory.attempt.run if trajectory.attempt else None,
        "attempt": trajectory.attempt.index if trajectory.attempt else None,
        "model": conditions.model,
        "agent": conditions.agent,
        "seed": None if seed is None else str(seed),
        "tools": conditions.tools,
        "environment": conditions.environment,
        "budget": None if conditions.budget is None else encode(conditions.budget).decode(),
        "parent": fork.parent if fork else None,
        "branch_point": fork.branch_point if fork else None,
        "fork_kind": fork.kind if fork else None,
        "messages": len(trajectory.messages),
        "calls": sum(len(message.tool_calls) for message in trajectory.messages),
        "decisions": decisions_of(trajectory),
    }


def object_row(item: Object) -> Row:
    """The row of an object."""
    return {"id": item.id, "kind": item.kind, "bytes": item.bytes}


def sighting_row(sighting: Sighting) -> Row:
    """The row of one item read from a file."""
    record = encode(sighting)
    columns = {name: getattr(sighting, name) for name in TABLES["sightings"].names[2:]}
    return {"id": digest(record), "record": record.decode(), **columns}


def statement_table(statement: Statement) -> str:
    """The table a statement belongs to."""
    return next(table for table, kind in STATEMENTS.items() if isinstance(statement, kind))


def statement_row(statement: Statement) -> Row:
    """The row of a statement."""
    record = encode(statement)
    row: Row = {
        "id": digest(record),
        "record": record.decode(),
        "slot": slot_digest(statement),
        "trajectory": statement.trajectory,
        "author_kind": statement.author.kind,
        "author_name": statement.author.name,
        "author_version": statement.author.version,
        "supersedes": list(statement.supersedes),
    }
    match statement:
        case Annotation(field=field, value=value):
            return row | {"field": field, "value": value_text(value)}
        case Finding(message=message, label=label, detail=detail, call=call):
            return row | {"message": message, "label": label, "detail": detail, "call": call}
        case Verification(execution=execution, score=score):
            return row | {
                "message": statement.message,
                "call": statement.call,
                "layer": statement.layer,
                "result": statement.result,
                "match": execution.match if execution else None,
                "reason": execution.reason if execution else None,
                "status": execution.status if execution else None,
                "score": None if score is None else float(score),
            }


def selection_row(selection: Selection) -> Row:
    """The row of a selection."""
    record = encode(selection)
    columns = {name: getattr(selection, name) for name in TABLES["selections"].names[2:]}
    return {"id": digest(record), "record": record.decode(), **columns, "failed": list(selection.failed)}


def tombstone_row(tombstone: Tombstone) -> Row:
    """The row of a tombstone; what an attempt counts under is null where it is of none."""
    record = encode(tombstone)
    held = tombstone.attempt
    facts = {name: None if held is None else getattr(held, name) for name in ErasedAttempt.__struct_fields__}
    strata = [] if held is None else [{"k": name, "v": value} for name, value in held.strata]
    score = None if held is None or held.score is None else float(held.score)
    return {
        "id": digest(record),
        "record": record.decode(),
        "erased": tombstone.erased,
        "kind": tombstone.kind,
        "author_name": tombstone.author.name,
        "reason": tombstone.reason,
        "lifted": tombstone.lifted,
        "supersedes": list(tombstone.supersedes),
        **facts,
        "score": score,
        "strata": strata,
    }


def record_batch(table: str, rows: Sequence[Row]) -> pa.RecordBatch:
    """Rows of a table as columns."""
    schema = TABLES[table]
    columns = [
        _decisions([row[field.name] for row in rows])
        if field.name == "decisions"
        else pa.array([row[field.name] for row in rows], field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _decisions(rows: Sequence[Sequence[Decision]]) -> pa.Array:
    offsets = list(accumulate((len(row) for row in rows), initial=0))
    every = list(chain.from_iterable(rows))
    values = zip(*map(astuple, every), strict=True) if every else [()] * _DECISION.num_fields
    fields = [pa.array(column, field.type) for column, field in zip(values, list(_DECISION), strict=True)]
    return pa.ListArray.from_arrays(offsets, pa.StructArray.from_arrays(fields, fields=list(_DECISION)))


def slot_digest(statement: Statement) -> str:
    """The digest of what a statement is about and who makes it."""
    return digest(encode(slot(statement)))


def value_text(value: Value) -> str | None:
    """An annotation's value as a column: text as it is, everything else as JSON."""
    return value if isinstance(value, str) or value is None else encode(value).decode()


def check_name(kind: str, identity: str, data: bytes) -> None:
    """Raise StoreError where these bytes are not those that the id names."""
    if (actual := digest(data)) != identity:
        raise StoreError(f"{kind} {identity!r}: id_mismatch, its bytes are those of {actual!r}")
