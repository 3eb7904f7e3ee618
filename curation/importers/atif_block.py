"""What ATIF has no place for, in the ``extra`` of a trajectory, step, call or result: written and read back here.

A block holds the fields of ours that reading the rest alone would give otherwise; null stands for a field's default.
It is a log like any other: nothing in it speaks for a person or an environment, or names a call that is not there.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, get_args

import msgspec

from curation.importers.aside import Aside
from curation.importers.branches import FIELD as BRANCHED_FROM
from curation.importers.calls import CallShape, FunctionShape, read_call
from curation.importers.claims import Claim, speaker
from curation.importers.face import Fact, RefusedError
from schemas import canonical
from schemas.objects import make_object
from schemas.statements import Result, Value
from schemas.trajectory import AuthorKind, Message, Record, ToolCall, Trajectory

BLOCK = "curation"

MESSAGE_FIELDS = frozenset(("content", "reasoning", "answers", "error", "raw", "actor", "hidden", "copied", "extra"))
TRAJECTORY_FIELDS = frozenset(("task", "attempt", "conditions", "stop_text", "usage", "extra"))
_RESULTS = frozenset(get_args(Result))
_FACTS = frozenset(("split", "group", "environment", "stop", "tools", "notes", "clocks", "continuation", BRANCHED_FROM))
_GROUPS = frozenset(("strata", "budget", "attempt", "reward"))

Kind = TypeVar("Kind", bound=Record)


class Said(msgspec.Struct, omit_defaults=True):
    """A fact beside a record, and who is said to have said it (see Claim)."""

    field: str
    value: Value = None
    by: AuthorKind | None = None
    name: str = ""
    version: str = ""
    score: float | int | None = None

    @property
    def claim(self) -> Claim:
        """Who is said to have said it."""
        return Claim(self.by or "log", self.name, self.version)


class Lineage(msgspec.Struct, omit_defaults=True):
    """Where a fork leaves its parent; ``run`` and ``attempt`` are the root attempt's, where it has them."""

    parent: str
    branch_point: int
    kind: str
    run: str | None = None
    attempt: int | None = None


class Block(msgspec.Struct, omit_defaults=True):
    """The block of a whole trajectory. ``verifications`` are for readers elsewhere: they are not read back."""

    record: str | None = None
    fields: dict[str, Any] = {}
    lineage: Lineage | None = None
    facts: list[Said] = []
    verifications: list[dict[str, Any]] = []
    blobs: dict[str, Any] = {}


def difference(native: Record, wanted: Record, fields: frozenset[str]) -> dict[str, Any]:
    """The fields in which a record is not what was wanted, as wanted; null for a default."""
    left, right = _plain(native), _plain(wanted)
    return {name: right.get(name) for name in sorted(fields) if left.get(name) != right.get(name)}


def restore_message(message: Message, block: Mapping[str, Any] | None, before: Sequence[Message]) -> Message:
    """The message with what its block says. Raises RefusedError where that is of no message's shape."""
    if not block:
        return message
    restored = restore(message, block, MESSAGE_FIELDS)
    if restored.answers is not None and restored.answers != message.answers:
        uids = {call.uid for earlier in before for call in earlier.tool_calls}
        if restored.answers.uid not in uids:
            raise RefusedError("not_a_record", f"extra.{BLOCK}.answers names no call before it")
    return restored


def restore_call(call: ToolCall, block: Mapping[str, Any] | None, aside: Aside) -> ToolCall:
    """The call as the model wrote it, where ATIF could not hold that."""
    if not block:
        return call
    text, name = block.get("arguments_text", call.arguments_text), block.get("id", call.id)
    if not isinstance(text, str) or not isinstance(name, str | None):
        raise RefusedError("not_a_record", f"extra.{BLOCK} of a call needs arguments_text as text and an id or null")
    logged = {"function": {"name": call.name, "arguments": text}}
    return read_call(logged, CallShape(FunctionShape(call.name, text), name), call.uid, aside)[0]


def restore(record: Kind, values: Mapping[str, Any], allowed: frozenset[str]) -> Kind:
    """The record with some fields set; raises RefusedError where a value is of another shape."""
    plain = _plain(record)
    for name in allowed & values.keys():
        if values[name] is None:
            plain.pop(name, None)
        else:
            plain[name] = values[name]
    try:
        return msgspec.json.decode(canonical.encode(plain), type=type(record))
    except msgspec.ValidationError as error:
        raise RefusedError("not_a_record", f"extra.{BLOCK}: {error}") from None


def restore_trajectory(trajectory: Trajectory, block: Block, aside: Aside) -> Trajectory:
    """The trajectory with what its block says, and the blobs that its messages refer to told aside."""
    aside.objects.extend(make_object("blob", canonical.encode(value)) for value in block.blobs.values())
    return restore(trajectory, block.fields, TRAJECTORY_FIELDS)


def facts_of_block(block: Block, aside: Aside) -> tuple[Fact, ...]:
    """What was said beside the record, as the log's own word; a rule's stays the rule's.

    No check of a decision is read, and no fact that this project alone decides; warnings say so.
    """
    facts = []
    for said in block.facts:
        by, rule = speaker(said.claim)
        if said.field == "outcome" and said.value in _RESULTS:
            facts.append(Fact("outcome", said.value, by, rule, said.score))
        elif said.field in _FACTS or said.field.partition(".")[0] in _GROUPS:
            facts.append(Fact(said.field, said.value, by, rule))
        else:
            aside.warnings.append("claims_not_read")
        if by == "log" and rule:
            aside.warnings.append("claimed_authors")
    if block.verifications:
        aside.warnings.append("claims_not_read")
    return tuple(facts)


def _plain(record: Record) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(record))
    return plain
