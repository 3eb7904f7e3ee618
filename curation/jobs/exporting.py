"""Writing a store's records as files of another format."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from curation.clocks import CLOCKS, read_clocks
from curation.errors import UsageError
from curation.exporters import atif, openai_chat
from curation.exporters.known import Known
from curation.importers.claims import claim_of
from curation.masking import Mask, masked_in, read_mask
from curation.store import Store
from curation.store.lookup import resolve_trajectory
from schemas.canonical import digest
from schemas.statements import Annotation, Verification
from schemas.trajectory import Attempt, Trajectory

_PREFIX = 12


class ExportResult(msgspec.Struct):
    """What was written: the format, the number of trajectories, the secrets masked in them by kind, and the files.

    ``said_by`` counts the facts and checks beside the records by who says them. Reading the files again takes a rule's
    for the rule's, and all others for the log's own word, with their authors as its claim; checks of decisions are not
    read. ``left_out`` counts what is known beside the records and has no place in the format, by kind.
    """

    format: str
    trajectories: int
    masked: dict[str, int]
    said_by: dict[str, int]
    left_out: dict[str, int]
    files: list[str]


def export_trajectories(
    store: Store, names: Sequence[str], form: str, folder: Path, allowed_secrets: Sequence[str] = ()
) -> ExportResult:
    """Write records into a folder, in files that are named by their own ids or by what is in them.

    ``names`` are ids (perhaps shortened) of trajectories or attempts, or runs. Secrets are masked, but for those of
    which ``allowed_secrets`` has a digest. Raises UsageError for a format that cannot be written, NotFoundError,
    CurationError where a record cannot be written or a package is missing, OSError.
    """
    if form not in _WRITERS:
        raise UsageError(f"cannot write {form!r}; formats: {', '.join(_WRITERS)}")
    identities = list(dict.fromkeys(resolve_trajectory(store, name) for name in names))
    known = [_known(store, identity, trajectory) for identity, trajectory in store.trajectories(identities)]
    folder.mkdir(parents=True, exist_ok=True)
    mask = read_mask(store, allowed_secrets)
    files, masked = [], set[tuple[str, str]]()
    for path, data in _WRITERS[form](known, mask):
        target = folder / path
        target.write_bytes(data)
        files.append(target.as_posix())
        masked |= masked_in(data.decode())
    missing = Counter[str]()
    for item in known:
        missing.update(_LEFT_OUT[form](item))
    authors = [each.author for item in known for each in item.annotations]
    authors += [each.author for item in known for each in item.verifications]
    said_by = Counter(claim_of(author).by for author in authors)
    return ExportResult(
        form,
        len(known),
        masked=dict(sorted(Counter(kind for kind, _ in masked).items())),
        said_by=dict(sorted(said_by.items())),
        left_out=dict(sorted(missing.items())),
        files=files,
    )


def _write_atif(known: Sequence[Known], mask: Mask) -> Iterator[tuple[str, bytes]]:
    """One document a record."""
    for item in known:
        yield (
            f"{item.id}.json",
            msgspec.json.format(msgspec.json.encode(mask.apply(atif.write(item))), indent=2) + b"\n",
        )


def _write_chats(known: Sequence[Known], mask: Mask) -> Iterator[tuple[str, bytes]]:
    """One file with a line a record."""
    data = b"".join(msgspec.json.encode(mask.apply(openai_chat.write(item))) + b"\n" for item in known)
    yield f"openai-chat-{digest(data)[:_PREFIX]}.jsonl", data


_WRITERS: Mapping[str, Callable[[Sequence[Known], Mask], Iterator[tuple[str, bytes]]]] = {
    "atif": _write_atif,
    "openai-chat": _write_chats,
}


_LEFT_OUT: Mapping[str, Callable[[Known], Mapping[str, int]]] = {
    "atif": atif.left_out,
    "openai-chat": openai_chat.left_out,
}


def _known(store: Store, identity: str, trajectory: Trajectory) -> Known:
    annotations = _statements(store, "annotations", Annotation, identity)
    clocks = next((str(item.value) for item in annotations if item.field == CLOCKS), None)
    tools = trajectory.conditions.tools
    listed: list[Any] | None = None if tools is None else msgspec.json.decode(store.object(tools))
    return Known(
        identity,
        trajectory,
        root=_root(store, trajectory),
        tools=listed,
        annotations=annotations,
        verifications=_statements(store, "verifications", Verification, identity),
        clocks=read_clocks(clocks),
        blobs=_blobs(store, trajectory),
        findings=store.sql("SELECT 1 FROM effective_findings WHERE trajectory = ?", [identity]).num_rows,
    )


def _statements(store: Store, table: str, kind: type[Any], identity: str) -> tuple[Any, ...]:
    rows = store.sql(f"SELECT record FROM effective_{table} WHERE trajectory = ? ORDER BY id", [identity])
    return tuple(msgspec.json.decode(record, type=kind) for record in rows["record"].to_pylist())


def _root(store: Store, trajectory: Trajectory) -> Attempt:
    """The attempt at the root of a lineage."""
    while trajectory.fork is not None:
        trajectory = store.trajectory(trajectory.fork.parent)
    return trajectory.attempt or Attempt()


def _blobs(store: Store, trajectory: Trajectory) -> dict[str, bytes]:
    """The bytes that the record's messages and its extra name by digest, as far as the store holds them."""
    names = {
        part.sha256
        for message in trajectory.messages
        if isinstance(message.content, tuple)
        for part in message.content
        if part.sha256 is not None
    } | set(atif.embedded(trajectory))
    rows = store.sql("SELECT id, bytes FROM objects WHERE id IN (SELECT unnest(?))", [sorted(names)])
    return dict(zip(rows["id"].to_pylist(), rows["bytes"].to_pylist(), strict=True))
