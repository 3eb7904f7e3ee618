"""Calls that take an earlier write back, by the environment's declaration or by the states around them."""

from typing import Any

from curation.diagnosis.arguments import arguments_of, read_json
from curation.diagnosis.evidence import Reading
from environments.protocol import EnvSpec
from schemas.canonical import encode
from schemas.trajectory import ToolCall


def declared_undo(write: ToolCall, answer: str, spec: EnvSpec) -> tuple[str, dict[str, Any]] | None:
    """Tool and arguments of the call that takes a write back, or None where none that fits is declared."""
    undo = spec.undo.get(write.name)
    if undo is None:
        return None
    sources = {"arguments": arguments_of(write), "answer": read_json(answer)}
    found: dict[str, Any] = {}
    for name, (source, field) in undo.arguments.items():
        value = sources[source]
        if not isinstance(value, dict) or field not in value:
            return None
        found[name] = value[field]
    return undo.tool, found


def takes_back(reading: Reading, write: ToolCall, later: ToolCall) -> bool:
    """Whether a later call takes a write back, as is declared or as the states show."""
    answer, spec = reading.answers.get(write.uid), reading.case.spec
    undo = None if answer is None or spec is None else declared_undo(write, answer.text, spec)
    declared = undo is not None and later.name == undo[0] and encode(arguments_of(later)) == encode(undo[1])
    return declared or restores(reading, write, later)


def restores(reading: Reading, write: ToolCall, later: ToolCall) -> bool:
    """Whether the state after a later call is the very one before a write that changed it."""
    before, after = reading.executions.get(write.uid), reading.executions.get(later.uid)
    if before is None or after is None or before.state_before is None or before.state_before == before.state_after:
        return False
    return before.state_before == after.state_after
