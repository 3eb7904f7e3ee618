"""Secrets that an import found: said beside the record by kind, digest and place, never by their value."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import msgspec

from curation.importers.face import Fact
from curation.secrets import RULE, SHOWN_DIGITS, find, may_hold
from curation.store import Store

FIELD = "secrets"
_SECRETS = 100
_PLACES = 20
_LISTED = 10


class Exposed(msgspec.Struct, frozen=True):
    """A secret of a record: its kind, the first digits of its digest, how often it stands there, and the first places.

    Places are JSON pointers into the record.
    """

    kind: str
    digest: str
    times: int
    places: tuple[str, ...]


class SecretLine(msgspec.Struct):
    """A secret in a record that was read: the file and its line or item (from 1), and where in the record first."""

    file: str
    place: int
    kind: str
    digest: str
    times: int
    at: str


class Exposures(msgspec.Struct):
    """Secrets of a kind, each counted once however often it stands in the records, and the first ten of them."""

    kinds: dict[str, int]
    lines: list[SecretLine]


_EXPOSED = msgspec.json.Decoder(list[Exposed])


def exposing(record: str) -> tuple[Fact, ...]:
    """What a record's canonical text exposes, as a fact beside it; none where it exposes nothing."""
    if not may_hold(record):
        return ()
    places: dict[tuple[str, str], list[str]] = defaultdict(list)
    for secret in find(msgspec.json.decode(record)):
        places[secret.kind, secret.digest[:SHOWN_DIGITS]].append(secret.place)
    if not places:
        return ()
    found = [
        Exposed(kind, name, len(held), tuple(dict.fromkeys(held))[:_PLACES]) for (kind, name), held in places.items()
    ]
    return (Fact(FIELD, msgspec.json.encode(found[:_SECRETS]).decode(), "rule", RULE),)


def read_exposures(store: Store, sightings: Sequence[str]) -> Exposures:
    """The secrets in the records of these sightings, as the store has them."""
    rows: list[dict[str, Any]] = store.sql(
        """SELECT name AS file, place, value FROM sightings JOIN annotations USING (trajectory)
           WHERE sightings.id IN (SELECT unnest(?)) AND field = ? AND author_name = ?
           ORDER BY file, place, annotations.id""",
        [list(sightings), FIELD, RULE.partition("@")[0]],
    ).to_pylist()
    kinds: dict[str, set[str]] = defaultdict(set)
    lines: list[SecretLine] = []
    for row in rows:
        for item in _EXPOSED.decode(row["value"]):
            kinds[item.kind].add(item.digest)
            if len(lines) < _LISTED:
                at = item.places[0] if item.places else ""
                lines.append(SecretLine(row["file"], row["place"], item.kind, item.digest, item.times, at))
    return Exposures({kind: len(found) for kind, found in sorted(kinds.items())}, lines)
