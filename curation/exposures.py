"""Secrets that an import found: said beside the record by kind, digest and place, never by their value."""

from collections import defaultdict

import msgspec

from curation.importers.face import Fact
from curation.secrets import RULE, SHOWN_DIGITS, find, may_hold

FIELD = "secrets"
_PLACED = 100  # secrets of a record that are named with their places
_PLACES = 20


class Exposed(msgspec.Struct, frozen=True):
    """A secret of a record: its kind, the first digits of its digest, how often it stands there, and the first places.

    Places are JSON pointers into the record; only the first secrets of a record have them.
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
        Exposed(kind, name, len(held), tuple(dict.fromkeys(held))[: _PLACES if number < _PLACED else 0])
        for number, ((kind, name), held) in enumerate(places.items())
    ]
    return (Fact(FIELD, msgspec.json.encode(found).decode(), "rule", RULE),)


def read_exposed(fact: Fact) -> list[Exposed]:
    """The secrets that a fact beside a record is about; none where it is about something else."""
    return _EXPOSED.decode(fact.value) if fact.rule == RULE and isinstance(fact.value, str) else []
