"""What a held-out split holds out beside its attempts: their tasks, their groups, and tasks of the same text.

The text of a task is what system and user say before the first call, with the parameters of the start state; case and
spacing do not count. Two tasks that share it are one task under two ids. Groups are named by the user, as for tasks out
of one template. All that hangs together so, over any number of steps, is held out as a whole.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from curation.store import Store
from curation.store.tables import check_name
from schemas.canonical import digest, encode

MAX_NAMED = 20
"""How many texts a build names; all are counted."""

_ROWS = 1024
_SHOWN = 12  # digits of a text's digest


class SameText(msgspec.Struct, frozen=True):
    """A text that stands under several tasks: its digest, their ids, and the splits they are said to be in."""

    text: str
    tasks: tuple[str, ...]
    splits: tuple[str, ...]


class BothSides(msgspec.Struct, frozen=True):
    """What is held out because a part of it is: counts, and the first texts by name.

    ``same_text`` counts the texts under several tasks of which one is held out. ``in_both`` counts groups and texts of
    which another part is said to be in a split that is not held out: that split was not made by group, or by text.
    """

    groups: int
    groups_held_out: int
    same_text: int
    in_both: int
    named: tuple[SameText, ...]


class Twin(msgspec.Struct, frozen=True):
    """An attempt that hangs together with a held-out split over more than one task or group, or over a text.

    ``task`` is the held-out task that has this text, with the text's digest; empty where no text is on the way.
    """

    root: str
    task: str


class HeldOut(NamedTuple):
    """The splits that are held out, as the store writes them; what else hangs on them; and how far that goes."""

    splits: tuple[str, ...]
    twins: tuple[Twin, ...] = ()
    sides: BothSides | None = None


class _Piece(msgspec.Struct):
    text: str | None = None
    sha256: str | None = None


class _Said(msgspec.Struct):
    role: str
    content: str | list[_Piece] | None = None
    tool_calls: list[msgspec.Raw] = []


class _Asked(msgspec.Struct):
    messages: list[_Said]


class _Attempt(NamedTuple):
    root: str
    task: str
    name: str
    group: str | None
    splits: tuple[str, ...]
    held: bool
    text: str | None


# Every split that is said of an attempt, not only the one that holds: a disputed test attempt is no training data.
SPLITS = """
    SELECT trajectory, value FROM annotations
    WHERE field = 'split' AND value IS NOT NULL AND author_kind IN ('human', 'side_file', 'log')
        AND id NOT IN (SELECT unnest(supersedes) FROM annotations WHERE field = 'split')
    UNION ALL SELECT trajectory_id, split FROM attempts WHERE erased AND split IS NOT NULL
"""

_DECODER = msgspec.json.Decoder(_Asked)


def fold_split(name: str) -> str:
    """The name of a split, for comparison."""
    return name.strip().casefold()


def text_digest(record: str | bytes, parameters: str | None = None) -> str | None:
    """The digest of the text of a task as a record's bytes hold it; None where no user says anything before a call."""
    texts = list(_opening(_DECODER.decode(record).messages))
    if not any(role == "user" and text for role, text in texts):
        return None
    return digest(encode([texts, parameters]))


def find_held_out(store: Store, names: Sequence[str]) -> HeldOut:
    """What the splits of these names hold out; case and space around a name do not count. Raises StoreError."""
    wanted = set(map(fold_split, names))
    found = store.sql(f"SELECT DISTINCT value FROM ({SPLITS}) ORDER BY value")["value"].to_pylist()
    splits = tuple(split for split in found if fold_split(split) in wanted)
    if not splits:
        return HeldOut(())
    attempts = list(_read(store, splits))
    held = _with_held(attempts)
    by_text: dict[str, list[_Attempt]] = defaultdict(list)
    groups: dict[str, list[_Attempt]] = defaultdict(list)
    for attempt in attempts:
        if attempt.text is not None:
            by_text[attempt.text].append(attempt)
        if attempt.group is not None:
            groups[attempt.group].append(attempt)
    direct = {name for each in attempts if each.held for name in _names(each)}
    shared = {
        text: found
        for text, found in sorted(by_text.items())
        if len({each.task for each in found}) > 1 and found[0].root in held
    }
    named = [_same(text, found) for text, found in shared.items()]
    twins = [
        Twin(each.root, held[each.root])
        for each in attempts
        if each.root in held and not any(name in direct and name[0] != "text" for name in _names(each))
    ]
    apart = [found for found in groups.values() if found[0].root in held]
    sides = BothSides(
        groups=len(groups),
        groups_held_out=len(apart),
        same_text=len(shared),
        in_both=sum(_is_in_both(found, splits) for found in (*shared.values(), *apart)),
        named=tuple(named[:MAX_NAMED]),
    )
    return HeldOut(splits, tuple(twins), sides)


def _read(store: Store, splits: Sequence[str]) -> Iterator[_Attempt]:
    query = f"""
        WITH said AS (
            SELECT trajectory, list(DISTINCT value ORDER BY value) AS splits FROM ({SPLITS}) GROUP BY trajectory
        )
        SELECT a.trajectory_id, a.task_key, concat_ws('/', a.namespace, coalesce(a.task, a.trajectory_id), a.variant),
            a."group", coalesce(s.splits, []), list_has_any(coalesce(s.splits, []), $held), t.record, t.parameters
        FROM attempts a LEFT JOIN said s ON s.trajectory = a.trajectory_id
        LEFT JOIN trajectories t ON t.id = a.trajectory_id
    """
    for batch in store.stream(query, {"held": list(splits)}, _ROWS):
        for root, task, name, group, own, held, record, parameters in zip(
            *(column.to_pylist() for column in batch.columns), strict=True
        ):
            if record is not None:
                check_name("trajectory", root, record.encode())
            text = None if record is None else text_digest(record, parameters)
            yield _Attempt(root, task, name, group, tuple(own), held, text)


def _opening(messages: Iterable[_Said]) -> Iterator[tuple[str, str]]:
    for message in messages:
        if message.tool_calls:
            return
        if message.role in ("system", "user"):
            pieces = message.content if isinstance(message.content, list) else [_Piece(message.content)]
            words = " ".join(piece.text or piece.sha256 or "" for piece in pieces)
            yield message.role, " ".join(words.split()).casefold()


def _with_held(attempts: Sequence[_Attempt]) -> dict[str, str]:
    """The attempts that hang together with one of a held-out split, each with the first text on the way to it.

    The way goes over tasks, groups and texts; where no text lies on it, there is none to name.
    """
    members: dict[tuple[str, str], list[_Attempt]] = defaultdict(list)
    for attempt in attempts:
        for name in _names(attempt):
            members[name].append(attempt)
    pending = [attempt for attempt in attempts if attempt.held]
    found = {attempt.root: "" for attempt in pending}
    while pending:
        attempt = pending.pop()
        for kind, value in _names(attempt):
            for other in members.pop((kind, value), ()):
                if other.root not in found:
                    text = f"{attempt.name}, text {value[:_SHOWN]}" if kind == "text" else ""
                    found[other.root] = found[attempt.root] or text
                    pending.append(other)
    return found


def _names(attempt: _Attempt) -> list[tuple[str, str]]:
    named: Any = (("task", attempt.task), ("group", attempt.group), ("text", attempt.text))
    return [(kind, value) for kind, value in named if value is not None]


def _same(text: str, attempts: Sequence[_Attempt]) -> SameText:
    tasks = dict.fromkeys(attempt.name for attempt in attempts)
    return SameText(text, tuple(sorted(tasks)), tuple(sorted({split for each in attempts for split in each.splits})))


def _is_in_both(attempts: Sequence[_Attempt], splits: Sequence[str]) -> bool:
    said = {split for attempt in attempts for split in attempt.splits}
    return bool(said & set(splits)) and bool(said - set(splits))
