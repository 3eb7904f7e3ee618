"""What was erased stays out: records that come back in a log are refused, and their bytes are not stored again."""

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple, get_args

from curation.prepared import Entry, Prepared
from curation.store import Batch, Store
from curation.store.clearing import CODE, STANDING
from schemas.objects import Object
from schemas.tombstones import ErasedKind, Tombstone
from schemas.trajectory import Author

DIGEST = re.compile("[0-9a-f]{64}")
_KINDS: dict[str, ErasedKind] = {kind: kind for kind in get_args(ErasedKind)}


class _Standing(NamedTuple):
    """A tombstone that stands: its id, and what it names."""

    id: str
    erased: str
    kind: str


def barred_forks(store: Store) -> frozenset[str]:
    """The forks that were erased by their own names: they are not made again, whatever proposes them."""
    if store.is_empty("tombstones"):
        return frozenset()
    rows = store.sql(
        f"""SELECT erased FROM tombstones WHERE kind = 'fork' AND {STANDING}
            AND json_extract(record, '$.of') IS NULL"""
    )
    return frozenset(rows["erased"].to_pylist())


class Erasures:
    """The tombstones of a store, before which every record that is read must pass.

    With ``readmit`` what they name may come back: they are lifted in the batch that brings it.
    """

    def __init__(self, store: Store, batch: Batch, *, readmit: bool) -> None:
        self._batch, self._readmit = batch, readmit
        self._by_name: dict[str, list[_Standing]] = defaultdict(list)
        if store.is_empty("tombstones"):
            return
        rows = store.sql(f"SELECT id, erased, kind, attempt_id FROM tombstones WHERE {STANDING}")
        for identity, erased, kind, attempt in zip(*(column.to_pylist() for column in rows.columns), strict=True):
            for name in (erased, attempt):
                if name is not None:
                    self._by_name[name].append(_Standing(identity, erased, kind))

    def screen(self, prepared: Prepared) -> tuple[Prepared, frozenset[str]]:
        """A chunk in which what is erased is refused, and the digests of raw records that must not be stored.

        A record is erased where its bytes, its trajectory or its attempt are.
        """
        if not self._by_name:
            return prepared, frozenset()
        if self._readmit:
            self._lift(name for entry in prepared.entries for name in (entry.raw, entry.id, entry.attempt))
            self._lift(item.id for item in prepared.objects)
            return prepared, frozenset()
        entries = tuple(self._judged(entry) for entry in prepared.entries)
        refused = {entry.raw for entry in entries if entry.code == CODE}
        if not refused:
            return prepared, frozenset()
        withheld = refused - {entry.raw for entry in entries if entry.code is None}
        objects = self._needed(prepared, entries)
        return prepared._replace(entries=entries, objects=objects), frozenset(withheld)

    def _judged(self, entry: Entry) -> Entry:
        if self._by_name.keys().isdisjoint((entry.raw, entry.id, entry.attempt)):
            return entry
        return entry._replace(code=CODE, detail="", warnings=())

    def _needed(self, prepared: Prepared, entries: Iterable[Entry]) -> tuple[Object, ...]:
        """The objects that records which are not refused refer to, or facts about them."""
        records, needed = prepared.rows["record"], set[str]()
        for entry in entries:
            if entry.code is None:
                needed.update(DIGEST.findall(records[entry.row].as_py()))
                needed.update(fact.value for fact in entry.facts if isinstance(fact.value, str))
        return tuple(item for item in prepared.objects if item.id in needed)

    def _lift(self, names: Iterable[str]) -> None:
        author = Author("human", "import --readmit")
        for name in set(names) & self._by_name.keys():
            for stone in self._by_name[name]:
                lift = Tombstone(stone.erased, _KINDS[stone.kind], author, lifted=True, supersedes=(stone.id,))
                self._batch.add_tombstone(lift)
