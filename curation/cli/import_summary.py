"""What a person is told of an import: the same counts as in JSON, what comes in thousands by kind with the first names.

Whatever is left out here stands in the JSON.
"""

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import msgspec

from schemas.reasons import QUARANTINE

if TYPE_CHECKING:
    from curation.losses import Losses
    from curation.tally import IngestResult, Quarantined

_NAMED = 3
_REASONS = 8
_FORMATS = re.compile(r"(?<=not a log of a known format) \([^)]*\)")
_PART = "read as a part of "
_LABELS = {
    "extra": "keys kept as extra",
    "links": "answers, by link to a call",
    "ids": "calls without an id of their own",
    "arguments": "arguments that are no object",
    "references": "parts kept by reference",
    "hidden": "hidden before a message",
    "truncated": "truncated",
    "records": "records with a warning",
}


class Loss(msgspec.Struct):
    """A kind of loss, how much of it there is, and the most frequent of it."""

    loss: str
    count: int
    of: dict[str, int]


class PassedOver(msgspec.Struct):
    """Why files were passed over, how many, and the first of them."""

    why: str
    files: int
    first: str


def summary(result: "IngestResult") -> dict[str, Any]:
    """An import's result as ``finish`` shows it, without empty lists, and without what only a revision has."""
    shown = msgspec.structs.asdict(result)
    shown["passed_over"] = _passed_over(result.passed_over)
    shown["quarantine"] = [_with_words(item) for item in result.quarantine]
    shown["losses"] = _losses(result.losses)
    for name in ("carried", "not_carried"):
        if not shown[name]:
            del shown[name]
    return {name: value for name, value in shown.items() if value not in ([], ())}


def _with_words(item: "Quarantined") -> "Quarantined":
    """A quarantined record with words: where nothing in it refused it, the way out."""
    return item if item.detail is not None else msgspec.structs.replace(item, detail=QUARANTINE[item.code].way_out)


def _losses(losses: "Losses") -> list[Loss]:
    first = losses.summary()
    return [
        Loss(label, sum(counts.values()), getattr(first, name))
        for name, label in _LABELS.items()
        if (counts := getattr(losses, name))
    ]


def _passed_over(files: Mapping[str, str]) -> list[PassedOver]:
    """Files by reason, the most frequent first."""
    named: dict[str, list[str]] = {}
    for name, why in files.items():
        reason = f"{_PART}another log" if why.startswith(_PART) else _FORMATS.sub("", why)
        named.setdefault(reason, []).append(name)
    order = sorted(named.items(), key=lambda item: (-len(item[1]), item[0]))
    found = [PassedOver(why, len(names), _first(names)) for why, names in order[:_REASONS]]
    if rest := [name for _, names in order[_REASONS:] for name in names]:
        found.append(PassedOver(f"{len(order) - _REASONS} other reasons", len(rest), _first(rest)))
    return found


def _first(names: list[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join((*map(_short, names[:_NAMED]), *((f"{more} more",) if more > 0 else ())))


def _short(name: str) -> str:
    """The end of a path, by which it is known beside others."""
    return "/".join(PurePath(name).parts[-2:])
