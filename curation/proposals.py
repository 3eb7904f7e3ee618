"""Corrections: what a rule can justify from the record, and what people hand in as a file of JSON lines."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Raw

from curation.diagnosis.argument import right_value
from curation.diagnosis.arguments import arguments_of, leaves, swap
from curation.diagnosis.derivation import derive
from curation.diagnosis.evidence import Case, Reading, read_case
from curation.diagnosis.quantities import is_loose
from curation.diagnosis.recovery import holds_named, recoveries
from curation.errors import UsageError
from schemas.canonical import UnreadableError, parse, raw
from schemas.named_file import read_named
from schemas.statements import Finding
from schemas.trajectory import Author, Reads, ToolCall

SWAP = Author("rule", "swap-value", "1")
RECOVERED = Author("rule", "recovered-in-log", "1")

Name = Annotated[str, msgspec.Meta(min_length=1)]


class ProposedCall(NamedTuple):
    """A call to be executed: its tool, and its arguments as canonical bytes of a JSON object."""

    name: str
    arguments: Raw


class Proposal(NamedTuple):
    """What should have been called at a decision.

    ``call`` is the uid of the wrong call that ``calls`` stand for, None for the whole message. Several calls are taken
    in order: what takes an effect back first, the right call last. ``reads`` is what the author had read.
    """

    trajectory: str
    message: int
    call: str | None
    calls: tuple[ProposedCall, ...]
    author: Author
    reads: tuple[Reads, ...]


class _Call(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: Name
    arguments: dict[str, Any]


class ProposalLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line of a proposals file.

    The trajectory is named by its id or by the record's own ``key``. ``author`` is a person's name, or an Author for
    anybody else. Without ``reads`` an author is taken to have read the whole log, the error included.
    """

    message: Annotated[int, msgspec.Meta(ge=0)]
    calls: Annotated[tuple[_Call, ...], msgspec.Meta(min_length=1)]
    author: Name | Author
    trajectory: Name | None = None
    key: Name | None = None
    call: str | None = None
    reads: tuple[Reads, ...] = ("request", "schema", "observation")

    def proposal(self, trajectory_id: str) -> Proposal:
        """The proposal for the trajectory that this line names."""
        author = self.author if isinstance(self.author, Author) else Author("human", self.author)
        calls = tuple(ProposedCall(call.name, raw(call.arguments)) for call in self.calls)
        return Proposal(trajectory_id, self.message, self.call, calls, author, self.reads)


def propose(case: Case, finding: Finding) -> Proposal | None:
    """The correction that a rule can justify for a finding, or None.

    First the one value of the request in the place of the wrong one, read from what stood before the call. Else the
    model's own later call, if every value of it already followed from what stood before the wrong one; that rule has
    read what the environment answered. No value makes a call right whose tool is not offered.
    """
    reading = read_case(case)
    wrong = next((call for _, call in reading.calls if call.uid == finding.call), None)
    if wrong is None or (reading.tools is not None and wrong.name not in reading.tools):
        return None
    return _swap(reading, finding, wrong) or _recovered(reading, finding, wrong)


def read_proposals(path: Path) -> tuple[ProposalLine, ...]:
    """The proposals of a file of JSON lines. Raises UsageError with file and line for the first that is none."""
    try:
        data = read_named(path)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; give a readable file of JSON lines") from None
    return tuple(_lines(path, data))


def read_calls(trajectory: str, message: int, calls: Sequence[str], author: str) -> Proposal:
    """A person's proposal from calls written as JSON. Raises UsageError for text that is no call."""
    found = []
    for text in calls:
        try:
            found.append(msgspec.convert(parse(text.encode())[0], _Call))
        except (UnreadableError, msgspec.ValidationError) as error:
            raise UsageError(f'{text!r} is no call ({error}); write {{"name": ..., "arguments": {{...}}}}') from None
    return ProposalLine(message=message, calls=tuple(found), author=author).proposal(trajectory)


def _swap(reading: Reading, finding: Finding, wrong: ToolCall) -> Proposal | None:
    places = [item.path for item in finding.evidence if item.kind == "call" and item.call == wrong.uid and item.path]
    if finding.label != "argument" or not places:
        return None
    changes: dict[str, Any] = {}
    for path in places:
        right = right_value(reading, finding.message, wrong, path)
        if right is None:
            return None
        changes[path] = right.value
    reads: tuple[Reads, ...] = ("request", "schema")
    if "observation" in finding.reads:
        reads = (*reads, "observation")
    return _proposal(reading, finding, wrong, swap(arguments_of(wrong), changes), SWAP, reads)


def _recovered(reading: Reading, finding: Finding, wrong: ToolCall) -> Proposal | None:
    recovery = next((item for item in recoveries(reading, (finding,)) if item.call == wrong.uid), None)
    if recovery is None:
        return None
    right = next(call for _, call in reading.calls if call.uid == recovery.recovered_call)
    arguments = arguments_of(right)
    if finding.detail == "schema_violation" and not holds_named(wrong, arguments):
        return None
    seen, parameters = reading.messages[: finding.message], reading.parameters(right.name)
    found = [derive(value, seen, parameters, path) for path, value in leaves(arguments)]
    if any(item is None or any(is_loose(place.value or "") for place in item.evidence) for item in found):
        return None
    return _proposal(reading, finding, wrong, arguments, RECOVERED, ("request", "schema", "observation"))


def _proposal(
    reading: Reading, finding: Finding, wrong: ToolCall, arguments: Any, author: Author, reads: tuple[Reads, ...]
) -> Proposal:
    calls = (ProposedCall(wrong.name, raw(arguments)),)
    return Proposal(reading.case.trajectory_id, finding.message, wrong.uid, calls, author, reads)


def _lines(path: Path, data: bytes) -> Iterator[ProposalLine]:
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        try:
            found = msgspec.convert(parse(line)[0], ProposalLine)
        except UnreadableError as error:
            raise UsageError(f"{path}:{number}: {error}; write one JSON object a line") from None
        except msgspec.ValidationError as error:
            raise UsageError(f"{path}:{number}: {error}") from None
        if (found.trajectory is None) == (found.key is None):
            raise UsageError(f"{path}:{number}: name the trajectory by either 'trajectory' or 'key'")
        yield found
