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
    """Whether a later call takes the effect of a write back: as is declared, or to the very state before the write."""
    done, after = reading.executions.get(write.uid), reading.executions.get(later.uid)
    if done is None or done.state_before is None or done.state_before == done.state_after:
        return False
    if after is not None and after.state_after == done.state_before:
        return True
    answer, spec, arguments = reading.answers.get(write.uid), reading.case.spec, arguments_of(later)
    undo = None if answer is None or spec is None else declared_undo(write, answer.text, spec)
    return undo is not None and later.name == undo[0] and encode(arguments) == encode(undo[1])
