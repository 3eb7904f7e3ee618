"""What builds decided, and the training row that came of it, down to the lines of the log."""

import re
from typing import Any, NamedTuple

import msgspec

from curation.errors import NotFoundError
from curation.masking import masked, masked_record
from curation.store import Store
from schemas.display import clean_line
from schemas.objects import read_tools
from schemas.refusals import REFUSALS
from schemas.trajectory import Message, Trajectory, text_of

_VALUE = 160
_ID = re.compile(r"\b[0-9a-f]{64}\b")
_TEXT = 2_000


class Place(msgspec.Struct):
    """Where something was read: file, line or index, first byte, and the stored raw bytes."""

    file: str
    place: int
    offset: int
    raw: str


class Line(msgspec.Struct):
    """One message, shortened for a person."""

    message: int
    role: str
    text: str
    calls: str


class DecisionLine(msgspec.Struct):
    """What a build decided: kept, or ``failed``, every check by its code, and ``why``, what that means here."""

    build: str
    kind: str
    message: int | None
    kept: bool
    sample: str | None
    failed: str
    why: str
    child: str | None
    partner: str | None


class Decided(NamedTuple):
    """The decisions of each kind's newest build, or of one build, and the other builds that decided, newest first."""

    lines: list[DecisionLine]
    other_builds: list[str]


class RowView(msgspec.Struct):
    """A training row: what is trained after which prompt, every decision behind it, down to the log lines.

    ``trained`` is the completion or the chosen side; ``rejected`` is there in a pair alone. The messages are those of
    the record that the row was made of, long ones cut; ``tools`` are names.
    """

    sample: str
    kind: str
    prompt: list[Line]
    trained: list[Line]
    rejected: list[Line]
    tools: list[str]
    behind: list[DecisionLine]
    other_builds: list[str]
    chain: list[str]
    read_from: list[Place]


def decided(store: Store, where: str, params: list[str], build: str | None) -> Decided:
    """What builds decided of the selections that hold ``where``. Raises NotFoundError where ``build`` has none."""
    rows = store.sql(
        f"""SELECT record, build, kind, message, kept, sample, failed, child, partner
            FROM selections WHERE {where} ORDER BY kind, message, child, partner, id""",
        params,
    ).to_pylist()
    kinds: dict[str, set[str]] = {}
    for row in rows:
        kinds.setdefault(row["build"], set()).add(row["kind"])
    order = [name for name in _newest_first(store) if name in kinds]
    if build is not None and build not in kinds:
        raise NotFoundError(f"build {build!r} decided nothing here; the ones that did: {', '.join(order) or 'none'}")
    shown = {
        kind: build or next(name for name in order if kind in kinds[name]) for row in rows if (kind := row["kind"])
    }
    return Decided(
        [_line_of(row) for row in rows if row["build"] == shown[row["kind"]]],
        [name for name in order if name not in shown.values()],
    )


def view_row(store: Store, sample: str, build: str | None, *, as_stored: bool = False) -> RowView:
    """A row by its name; secrets in its messages are masked, unless they are to be ``as_stored``.

    Raises NotFoundError where the build has not kept it.
    """
    behind, others = decided(store, "sample = ? AND kept", [sample], build)
    origins = store.sql(
        """SELECT DISTINCT kind, attempt, trajectory, message, coalesce(child, partner, trajectory) AS chosen
           FROM selections WHERE sample = ? AND kept AND trajectory IN (SELECT id FROM trajectories)
             AND coalesce(child, partner, trajectory) IN (SELECT id FROM trajectories) ORDER BY ALL""",
        [sample],
    ).to_pylist()
    if not origins:
        raise NotFoundError(f"all that row {sample!r} was made of was erased; build the rows again")
    chain, places = [f"row {sample}"], []
    for trajectory, chosen, attempt in dict.fromkeys(
        (row["trajectory"], row["chosen"], row["attempt"]) for row in origins
    ):
        fork = store.trajectory(chosen).fork
        if fork is not None:
            chain.append(
                f"{fork.kind} fork {chosen}, branched from {fork.parent} at message {fork.branch_point}, "
                f"corrected by {fork.correction.author.kind} {fork.correction.author.name}".rstrip()
            )
        chain.append(f"attempt {attempt}, record {trajectory}")
        found = places_of(store, trajectory)
        chain.extend(f"read from {place.file}, line or item {place.place}, raw bytes {place.raw}" for place in found)
        places.extend(found)
    first = origins[0]
    stored = store.trajectory(first["chosen"])
    record = stored if as_stored else masked_record(stored)
    target = _target(record, first["kind"], first["message"])
    return RowView(
        sample=sample,
        kind=first["kind"],
        prompt=message_lines(record, 0, target, _TEXT),
        trained=message_lines(record, target, target + 1, _TEXT),
        rejected=_rejected(store, first, stored, as_stored) if first["kind"] == "preference" else [],
        tools=_tools(store, first["attempt"]),
        behind=behind,
        other_builds=others,
        chain=chain,
        read_from=places,
    )


def places_of(store: Store, identity: str) -> list[Place]:
    """Where a record was read."""
    rows = store.sql(
        """SELECT name AS file, place, "offset", raw FROM sightings WHERE trajectory = ? ORDER BY name, place""",
        [identity],
    ).to_pylist()
    return [Place(**row) for row in rows]


def message_lines(trajectory: Trajectory, start: int, stop: int, limit: int) -> list[Line]:
    """The messages from ``start`` up to ``stop``, texts and calls of at most ``limit`` characters."""
    return [_line(index, trajectory.messages[index], limit) for index in range(start, stop)]


def _newest_first(store: Store) -> list[str]:
    """All builds, the one written last first; one whose selections were there already was not written again."""
    table = store.delta("selections")
    actions = table.get_add_actions()
    written = dict(zip(actions["path"].to_pylist(), actions["modification_time"].to_pylist(), strict=True))
    builds = [
        (written[part.path], row["build"])
        for part in table.to_pyarrow_dataset().get_fragments()
        for row in part.head(1, columns=["build"]).to_pylist()  # a build is one batch, and a batch one file
    ]
    return list(dict.fromkeys(build for _, build in sorted(builds, reverse=True)))


def _line_of(row: dict[str, Any]) -> DecisionLine:
    failed = row["failed"] or ()
    details = {item["check"]: item for item in msgspec.json.decode(row["record"]).get("detail", ())}
    return DecisionLine(
        row["build"],
        row["kind"],
        row["message"],
        row["kept"],
        row["sample"],
        ", ".join(failed),
        " ".join(_why(code, details.get(code)) for code in failed),
        row["child"],
        row["partner"],
    )


def _why(code: str, detail: dict[str, Any] | None) -> str:
    """What a check found: the sentence of its code, and the values that do not agree."""
    reason = REFUSALS.get(code) or REFUSALS.get(code.partition(":")[0])
    sentence = "" if reason is None else reason.sentence
    if detail is None:
        return sentence
    sides = [clean_line(masked(str(detail[side])), _VALUE) for side in ("left", "right") if side in detail]
    found = _ID.sub(lambda name: name[0][:12], ": ".join(filter(None, (detail["field"], " / ".join(sides)))))
    return f"{sentence.removesuffix('.')} ({found})."


def _target(record: Trajectory, kind: str, message: int) -> int:
    """The message that is trained: of a fork the corrected one, of a recovery in the log the one after the mistake."""
    if record.fork is not None:
        return record.fork.branch_point
    if kind != "recovery":
        return message
    return next(at for at in range(message + 1, len(record.messages)) if record.messages[at].role == "assistant")


def _rejected(store: Store, origin: dict[str, Any], chosen: Trajectory, as_stored: bool) -> list[Line]:
    """The wrong decision: the one that a fork of this attempt corrects, or the attempt's own."""
    fork = root = chosen.fork
    parent = None
    while root is not None:
        parent, root = root.parent, store.trajectory(root.parent).fork
    name, message = origin["trajectory"], origin["message"]
    if fork is not None and parent == origin["trajectory"]:
        name, message = fork.parent, fork.branch_point
    record = store.trajectory(name)
    return message_lines(record if as_stored else masked_record(record), message, message + 1, _TEXT)


def _tools(store: Store, attempt: str) -> list[str]:
    found = store.sql("SELECT tools FROM attempts WHERE attempt_id = ?", [attempt])["tools"].to_pylist()
    return [tool.name for name in found if name is not None for tool in read_tools(store.object(name))]


def _line(index: int, message: Message, limit: int) -> Line:
    calls = ", ".join(f"{call.name}({call.arguments_text})" for call in message.tool_calls)
    return Line(index, message.role, clean_line(text_of(message.content), limit), clean_line(calls, limit))
