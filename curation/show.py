"""What the store knows about one id, as a struct: an attempt with all that hangs on it, a row down to the log line."""

from typing import Any

import msgspec

from curation.importers.branches import FIELD, read_branch
from curation.masking import masked_record, masked_start
from curation.overruled import OverruledLine, overruled_lines
from curation.selections import DecisionLine, Line, Place, RowView, decided, message_lines, places_of, view_row
from curation.store import Store
from curation.store.lookup import Named, resolve_trajectory
from curation.store.tables import check_name
from schemas.canonical import encode
from schemas.reasons import REPAIR, sentence_of
from schemas.trajectory import Attempt, Trajectory

_LINE = 160
_FACT = 500
_PREVIEW = 2_000
_LOOKED = 20_000  # characters of a text that is cut, so that a secret is whole where it is masked


class FindingLine(msgspec.Struct):
    """What went wrong, where, and by whose word."""

    message: int
    label: str
    detail: str
    evidence: str
    author: str


class CallLine(msgspec.Struct):
    """One check of a call, a decision or the whole trajectory."""

    message: int | None
    call: str | None
    layer: str
    result: str
    match: str | None
    informative: bool | None
    why: str
    author: str


class BranchLine(msgspec.Struct):
    """Another run of the same log that this one left, or that left this one, at the first message that they do not
    share; ``id`` is its record, where the store holds exactly one of that name.
    """

    run: str | None
    attempt: int | None
    message: int | None
    id: str | None


class ForkLine(msgspec.Struct):
    """A fork of this trajectory."""

    id: str
    kind: str
    branch_point: int


class TrajectoryView(msgspec.Struct):
    """A trajectory with all that is said about it."""

    id: str
    attempt: str | None
    task: str | None
    run: str | None
    outcome: str | None
    stop: str | None
    stop_text: str | None
    revised_by: str | None
    fork_of: str | None
    branch_point: int | None
    fork_kind: str | None
    corrected_by: str | None
    restored_by: str | None
    continued_by: str | None
    facts: dict[str, str]
    overruled: list[OverruledLine]
    branched_from: BranchLine | None
    branches: list[BranchLine]
    messages: list[Line]
    findings: list[FindingLine]
    checks: list[CallLine]
    forks: list[ForkLine]
    repairs: dict[str, str]
    selections: list[DecisionLine]
    other_builds: list[str]
    read_from: list[Place]


class BytesView(msgspec.Struct):
    """An object, or a single statement, as stored."""

    id: str
    kind: str
    bytes: int
    content: str


class AttemptLine(msgspec.Struct):
    """One attempt in the list."""

    attempt: str
    task: str | None
    run: str | None
    index: int | None
    outcome: str
    stop: str | None
    findings: str
    forks: int
    rows: str
    erased: bool | None


class AttemptList(msgspec.Struct):
    """The store's attempts, the first ``shown`` of ``attempts``."""

    attempts: int
    shown: int
    list: list[AttemptLine]


View = TrajectoryView | RowView | BytesView


def show(store: Store, named: Named, build: str | None = None, *, as_stored: bool = False) -> View:
    """What the store knows about a resolved id; of a torn store, the bytes.

    Decisions are those of ``build``, or without one, of each kind's newest. Texts that are cut here have their secrets
    masked before, unless they are to be ``as_stored``. Raises NotFoundError or StoreError.
    """
    if any(store.torn.values()):
        return _bytes_alone(store, named, as_stored)
    match named.kind:
        case "trajectory" | "attempt":
            return _trajectory(store, resolve_trajectory(store, named.id), build, as_stored)
        case "row":
            return view_row(store, named.id, build, as_stored=as_stored)
        case "object":
            kind = store.sql("SELECT kind FROM objects WHERE id = ?", [named.id])["kind"][0].as_py()
            data = store.object(named.id)
            return BytesView(named.id, kind, len(data), _preview(data, as_stored))
        case "build":
            counts = store.sql(
                """SELECT kind, count(*) AS decisions, count(*) FILTER (kept) AS kept
                   FROM selections WHERE build = ? GROUP BY kind ORDER BY kind""",
                [named.id],
            )
            text = msgspec.json.encode(counts.to_pylist()).decode()
            return BytesView(named.id, "build", len(text), text)
        case "erased":
            rows = store.sql(
                """SELECT id, record FROM tombstones WHERE erased = $1 OR attempt_id = $1
                   ORDER BY id IN (SELECT unnest(supersedes) FROM tombstones), attempt_id IS NULL, id LIMIT 1""",
                [named.id],
            )
            record = rows["record"][0].as_py()
            return BytesView(rows["id"][0].as_py(), "tombstone", len(record.encode()), record)
        case kind:
            record = store.sql(f"SELECT record FROM {kind}s WHERE id = ?", [named.id])["record"][0].as_py()
            check_name(kind, named.id, record.encode())
            return BytesView(named.id, kind, len(record.encode()), _preview(record.encode(), as_stored))


def list_attempts(store: Store, limit: int) -> AttemptList:
    """The first attempts by task and run, with counts of what hangs on them."""
    total = store.sql("SELECT count(*) AS n FROM attempts")["n"][0].as_py()
    rows = store.sql(
        """
        SELECT a.attempt_id AS attempt, a.task, a.run, a.attempt AS index, a.outcome, a.stop,
            coalesce((SELECT string_agg(f.label || '@' || f.message, ', ' ORDER BY f.message, f.label)
                FROM effective_findings f WHERE f.trajectory = a.trajectory_id), '') AS findings,
            (SELECT count(*) FROM trajectories t WHERE t.parent = a.trajectory_id) AS forks,
            coalesce((SELECT string_agg(DISTINCT s.kind, ', ' ORDER BY s.kind) FROM selections s
                WHERE s.attempt = a.attempt_id AND s.kept), '') AS rows, nullif(a.erased, false) AS erased
        FROM attempts a ORDER BY a.namespace, a.task, a.run, a.attempt, a.attempt_id LIMIT ?
        """,
        [limit],
    ).to_pylist()
    lines = [AttemptLine(**row) for row in rows]
    return AttemptList(total, len(lines), lines)


def _bytes_alone(store: Store, named: Named, as_stored: bool) -> BytesView:
    if named.kind not in ("trajectory", "object"):
        store.refuse_torn()
    data = store.object(named.id) if named.kind == "object" else encode(store.trajectory(named.id))
    return BytesView(named.id, named.kind, len(data), _preview(data, as_stored))


def _preview(data: bytes, as_stored: bool) -> str:
    return _start(data[: 4 * _LOOKED].decode("utf-8", "replace"), _PREVIEW, as_stored)


def _start(text: str, limit: int, as_stored: bool) -> str:
    return text[:limit] if as_stored else masked_start(text, limit)


def _trajectory(store: Store, identity: str, build: str | None, as_stored: bool) -> TrajectoryView:
    trajectory = store.trajectory(identity)
    if not as_stored:
        trajectory = masked_record(trajectory)
    attempts = store.sql("SELECT * FROM attempts WHERE trajectory_id = ?", [identity]).to_pylist()
    attempt: dict[str, Any] = attempts[0] if attempts else {}
    fork = trajectory.fork
    facts = store.sql(
        f"SELECT field, value[:{_LOOKED}] AS value FROM effective_annotations WHERE trajectory = ? ORDER BY field",
        [identity],
    ).to_pylist()
    for row in facts:
        if row["value"] is not None:
            value = _start(row["value"], _FACT + 1, as_stored)
            row["value"] = value if len(value) <= _FACT else f"{value[: _FACT - 1]}…"
    selections, others = decided(store, "trajectory = ? OR child = ?", [identity, identity], build)
    repairs = {row["field"]: row["value"] for row in facts if row["field"].startswith("repair.")}
    return TrajectoryView(
        id=identity,
        attempt=attempt.get("attempt_id"),
        task=trajectory.task.id,
        run=trajectory.attempt.run if trajectory.attempt else None,
        outcome=attempt.get("outcome"),
        stop=attempt.get("stop"),
        stop_text=trajectory.stop_text,
        revised_by=_revision(store, identity),
        fork_of=fork.parent if fork else None,
        branch_point=fork.branch_point if fork else None,
        fork_kind=fork.kind if fork else None,
        corrected_by=_correction(trajectory),
        restored_by=fork.restore.kind if fork else None,
        continued_by=fork.continued_by if fork else None,
        facts={row["field"]: row["value"] for row in facts if row["field"] not in repairs and row["field"] != FIELD},
        overruled=overruled_lines(store, identity, as_stored=as_stored),
        branched_from=_origin(store, identity),
        branches=_branches(store, identity),
        messages=message_lines(trajectory, 0, len(trajectory.messages), _LINE),
        findings=_findings(store, identity),
        checks=_checks(store, identity),
        forks=[
            ForkLine(**row)
            for row in store.sql(
                """SELECT id, fork_kind AS kind, branch_point FROM trajectories WHERE parent = ?
                   ORDER BY branch_point, kind, id""",
                [identity],
            ).to_pylist()
        ],
        repairs={field: _explained(value) for field, value in repairs.items()},
        selections=selections,
        other_builds=others,
        read_from=places_of(store, identity),
    )


def _origin(store: Store, identity: str) -> BranchLine | None:
    """The run that the log says this one left."""
    values = store.sql("SELECT value FROM effective_annotations WHERE trajectory = ? AND field = ?", [identity, FIELD])[
        "value"
    ].to_pylist()
    branch = read_branch(values[0]) if values else None
    if branch is None:
        return None
    found = store.sql(
        """SELECT trajectory_id FROM attempts
           WHERE run = $1 AND attempt IS NOT DISTINCT FROM $2::BIGINT OR trajectory_id = $1""",
        [branch.run, branch.attempt],
    )["trajectory_id"].to_pylist()
    return BranchLine(branch.run, branch.attempt, branch.message, found[0] if len(found) == 1 else None)


def _branches(store: Store, identity: str) -> list[BranchLine]:
    """The runs that the log says left this one."""
    rows = store.sql(
        """SELECT o.trajectory_id AS id, o.run, o.attempt, b.value
           FROM effective_annotations b JOIN attempts o ON o.trajectory_id = b.trajectory
           JOIN attempts a ON a.trajectory_id = $1
           WHERE b.field = $2 AND CASE WHEN json_valid(b.value) THEN b.value ->> '$.run' END = a.run
           ORDER BY o.run, o.attempt, id""",
        [identity, FIELD],
    ).to_pylist()
    own = store.trajectory(identity).attempt or Attempt()
    read = ((row, read_branch(row["value"])) for row in rows)
    return [
        BranchLine(row["run"], row["attempt"], branch.message, row["id"])
        for row, branch in read
        if branch is not None and (branch.run, branch.attempt) == (own.run, own.index)
    ]


def _findings(store: Store, identity: str) -> list[FindingLine]:
    rows = store.sql(
        "SELECT id, record FROM effective_findings WHERE trajectory = ? ORDER BY message, label, id", [identity]
    )
    found = []
    for name, record in zip(rows["id"].to_pylist(), rows["record"].to_pylist(), strict=True):
        check_name("finding", name, record.encode())
        finding = msgspec.json.decode(record)
        evidence = "; ".join(_pointer(item) for item in finding.get("evidence", ()))
        author = finding["author"]
        said_by = f"{author['kind']} {author.get('name', '')}@{author.get('version', '')}".removesuffix("@").rstrip()
        found.append(FindingLine(finding["message"], finding["label"], finding.get("detail", ""), evidence, said_by))
    return found


def _checks(store: Store, identity: str) -> list[CallLine]:
    rows = store.sql(
        """SELECT message, call, layer, result, match, reason, author_kind AS author,
               from_json(record, '{"detail": "VARCHAR"}').detail AS detail,
               from_json(record, '{"execution": {"informative": "BOOLEAN"}}').execution.informative AS informative
           FROM effective_verifications WHERE trajectory = ? ORDER BY message NULLS LAST, call, layer""",
        [identity],
    ).to_pylist()
    return [
        CallLine(
            row["message"],
            row["call"],
            row["layer"],
            row["result"],
            row["match"],
            row["informative"],
            ": ".join(piece for piece in (row["reason"], row["detail"]) if piece),
            row["author"],
        )
        for row in rows
    ]


def _revision(store: Store, identity: str) -> str | None:
    rows = store.sql("SELECT later FROM revised WHERE id = ? ORDER BY later", [identity])["later"].to_pylist()
    return rows[0] if rows else None


def _correction(trajectory: Trajectory) -> str | None:
    if trajectory.fork is None:
        return None
    correction = trajectory.fork.correction
    read = ", ".join(correction.reads) or "nothing stated"
    return f"{correction.author.kind} {correction.author.name} (read: {read})"


def _pointer(item: dict[str, Any]) -> str:
    where = [str(item[key]) for key in ("message", "call", "path") if key in item]
    value = f" = {item['value']!r}" if "value" in item else ""
    note = f" ({item['note']})" if "note" in item else ""
    return f"{item['kind']} {' '.join(where)}{value}{note}"


def _explained(code: str) -> str:
    sentence = sentence_of(REPAIR, code)
    return f"{code}: {sentence}" if sentence else code
