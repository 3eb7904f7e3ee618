"""One line in, one selection a decision out, with the row where it is kept. Pure: it maps over a pool as it is."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pyarrow as pa

from builders import first_action, preference, recovery
from builders.candidate import Candidate, Facts, Subject, Target
from builders.checks import failures
from curation.masking import Mask
from schemas.canonical import encode
from schemas.rows import Wanted
from schemas.selection import Kind, Selection

RESULT = pa.schema([("selection", pa.string()), ("sample", pa.string()), ("row", pa.string())])
"""A result: the selection as JSON, and where it is kept the row's name and its JSON."""

_RENDER: dict[Kind, Callable[[Candidate, Mask], tuple[str, bytes]]] = {
    "first_action": first_action.render,
    "recovery": recovery.render,
    "preference": preference.render,
}
_SHOWN = ("chosen_record", "rejected_record", "tools", "facts", "other_facts")
_FACTS = msgspec.json.Decoder(Facts)
_TARGETS = msgspec.json.Decoder(list[Target])


def judge(batch: pa.RecordBatch, kind: Kind, build: str, wanted: Wanted, mask: Mask) -> pa.RecordBatch:
    """The results of a batch of lines of ``builders.discover``, in their order. Raises StoreError for altered bytes.

    Candidates are judged as they are stored; ``mask`` is laid over the rows that are made of them.
    """
    lines = batch.to_pylist()
    near = mask.within(dict.fromkeys(line[column] for line in lines for column in _SHOWN))
    found = [result for line in lines for result in _judge(line, kind, build, wanted, near)]
    return pa.RecordBatch.from_pylist(found, schema=RESULT)


def _judge(line: dict[str, Any], kind: Kind, build: str, wanted: Wanted, mask: Mask) -> Iterator[dict[str, str | None]]:
    if line["why"] is not None:
        failed = (f"no_candidate:{line['why']}",)
        selection = Selection(build, kind, line["attempt"], line["root"], failed=failed)
        yield {"selection": encode(selection).decode(), "sample": None, "row": None}
        return
    for candidate in _candidates(line, kind, wanted):
        detail = failures(candidate)
        sample, row = (None, None) if detail else _RENDER[kind](candidate, mask)
        own = candidate.target.message if candidate.kind == "first_action" else candidate.wrong
        selection = Selection(
            build,
            kind,
            line["attempt"],
            line["root"],
            message=own if line["message"] is None else line["message"],
            child=candidate.chosen.id if candidate.is_correction else None,
            kept=not detail,
            sample=sample,
            failed=tuple(difference.check for difference in detail),
            detail=detail,
            partner=candidate.chosen.id if kind == "preference" else None,
        )
        yield {"selection": encode(selection).decode(), "sample": sample, "row": row.decode() if row else None}


def _candidates(line: dict[str, Any], kind: Kind, wanted: Wanted) -> Iterator[Candidate]:
    facts = Facts(revised=True) if line["facts"] is None else _FACTS.decode(line["facts"])
    other = None if line["other_facts"] is None else _FACTS.decode(line["other_facts"])
    chosen = _subject(line, "chosen")
    rejected = None if line["rejected"] is None else _subject(line, "rejected")
    ancestors = tuple(_ancestors(line, chosen, rejected))
    for target in _TARGETS.decode(line["targets"]):
        source = rejected or (None if target.wrong is None else chosen)
        yield Candidate(kind, facts, chosen, target, source, target.wrong, other, line["tools"], wanted, ancestors)


def _ancestors(line: dict[str, Any], chosen: Subject, rejected: Subject | None) -> Iterator[Subject]:
    """The parent of a fork, its parent, and so on; the line has those that are not the rejected side."""
    records: dict[str, str] = msgspec.json.decode(line["ancestors"] or "{}")
    at = chosen
    while (fork := at.trajectory.fork) is not None:
        if rejected is not None and fork.parent == rejected.id:
            at = rejected
        elif fork.parent in records:
            at = Subject(fork.parent, records[fork.parent], None, None)
        else:
            return
        yield at


def _subject(line: dict[str, Any], side: str) -> Subject:
    return Subject(line[side], line[f"{side}_record"], line[f"{side}_findings"], line[f"{side}_checks"])
