"""Recoveries that a log already holds: a wrong call, and the model's own right one after it."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from curation.diagnosis.arguments import arguments_of, leaves
from curation.diagnosis.derivation import MAX_READ, is_prose
from curation.diagnosis.evidence import Reading, confirmed
from curation.diagnosis.reversal import takes_back
from curation.diagnosis.tokens import find_folded
from schemas.canonical import encode
from schemas.statements import Finding
from schemas.trajectory import ToolCall

_CORRECTABLE = frozenset(("argument", "format"))


class Recovery(NamedTuple):
    """A wrong call and the one that put it right: their messages and their uids."""

    message: int
    call: str
    recovered_message: int
    recovered_call: str


def recoveries(reading: Reading, findings: Sequence[Finding]) -> tuple[Recovery, ...]:
    """For each wrong call the next decision with the same tool and other arguments that was executed without an error.

    A call is wrong by a finding, or because its execution confirms its error. One that takes the wrong call's effect
    back is not the right one yet, and one that names what a malformed call did not hold is another action. Both answers
    must be confirmed by execution, and no user may have spoken in between: then the model had nothing but the
    environment's answer.
    """
    wrong = {finding.call for finding in findings if finding.label in _CORRECTABLE and finding.call is not None}
    return tuple(_recoveries(reading, wrong))


def holds_named(malformed: ToolCall, arguments: Any) -> bool:
    """Whether the text of a call holds every name, number and date of some arguments, each as a word of its own."""
    text = malformed.arguments_text
    return len(text) <= MAX_READ and all(
        find_folded(text, value if isinstance(value, str) else encode(value).decode()) is not None
        for _, value in leaves(arguments)
        if not (value is None or isinstance(value, bool) or is_prose(value))
    )


def _recoveries(reading: Reading, wrong: set[str]) -> Iterator[Recovery]:
    for index, call in reading.calls:
        if call.uid in wrong or (confirmed(reading.executions.get(call.uid)) and reading.ending(call.uid) == "failed"):
            for later, other in reading.calls:
                if later > index and _corrects(reading, call, other) and other.uid not in wrong:
                    if not any(message.role == "user" for message in reading.messages[index:later]):
                        yield Recovery(index, call.uid, later, other.uid)
                    break


def _corrects(reading: Reading, call: ToolCall, other: ToolCall) -> bool:
    execution, arguments = reading.executions.get(other.uid), arguments_of(other)
    if other.name != call.name or arguments is None or encode(arguments) == encode(arguments_of(call)):
        return False
    if takes_back(reading, call, other) or (arguments_of(call) is None and not holds_named(call, arguments)):
        return False
    return confirmed(execution) and execution is not None and execution.status in (None, "ok")
