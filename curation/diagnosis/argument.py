"""``argument``: a call whose arguments break the tool's schema, or name a thing that nobody named.

A *name* (letters with digits, or a long number) that stands nowhere before the call, while the users named exactly one
other thing of its kind, is wrong by the prefix alone. Anything else that was not seen is only held against the model
where the environment confirms that the call failed; then the rule says that it read the observation. What the model may
have changed itself is never held against it: looking at it and taking it back are no mistakes.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from curation.diagnosis.arguments import arguments_of, leaves, swap
from curation.diagnosis.dates import read_date
from curation.diagnosis.derivation import MAX_READ, Candidate, candidates, derive
from curation.diagnosis.evidence import Reading, shown
from curation.diagnosis.exclusions import excludes
from curation.diagnosis.mentions import mentions, stands_alone
from curation.diagnosis.origins import Origins, read_origins
from curation.diagnosis.quantities import is_count, read_number
from curation.diagnosis.tokens import fold, is_name
from schemas.statements import Evidence, Finding
from schemas.tool_schema import check_arguments
from schemas.trajectory import ToolCall, text_of

MAX_LOOKED_FOR = 20  # values of one call
MAX_FAILED = 50  # failed calls of one trajectory that are looked into


def find(reading: Reading) -> Iterator[Finding]:
    """Schema violations, then values from nowhere; at most one finding of each a call."""
    origins = read_origins(reading)
    failed = 0
    for index, call in reading.calls:
        arguments = arguments_of(call)
        if arguments is None:
            continue
        yield from _violations(reading, index, call, arguments)
        finding = _unseen_names(origins, index, call, arguments)
        if finding is None and failed < MAX_FAILED and (failure := reading.failure(call.uid)) is not None:
            failed += 1
            finding = _failed(origins, index, call, arguments, failure)
        if finding is not None:
            yield finding


def right_value(reading: Reading, index: int, call: ToolCall, path: str) -> Candidate | None:
    """The one value of the request that belongs at a place of a call instead of the one that stands there.

    Read from the messages before the call and the tool's schema alone. Of several, those that calls of the same tool
    beside it hold already are left out. None where there is none, or not only one.
    """
    arguments = arguments_of(call)
    value = dict(leaves(arguments)).get(path)
    if arguments is None or value is None or reading.length(index, "user") > MAX_READ:
        return None
    found = candidates(value, reading.messages[:index])
    if len(found) > 1:
        beside = (other for at, other in reading.calls if at == index and other.name == call.name)
        taken = {_folded(item) for other in beside for _, item in leaves(arguments_of(other))}
        found = tuple(candidate for candidate in found if _folded(candidate.value) not in taken)
    return found[0] if len(found) == 1 and _fits(reading, index, call, arguments, path, found[0]) else None


def _violations(reading: Reading, index: int, call: ToolCall, arguments: Any) -> Iterator[Finding]:
    parameters = reading.parameters(call.name)
    if parameters is not None and (problems := check_arguments(parameters, arguments).problems):
        evidence = tuple(
            Evidence("schema", index, call.uid, path=problem.path, value=problem.rule, note=problem.message)
            for problem in problems
        )
        yield reading.finding("argument", index, "schema_violation", evidence, ("schema",), call.uid)


def _unseen_names(origins: Origins, index: int, call: ToolCall, arguments: Any) -> Finding | None:
    """The finding that the prefix alone gives."""
    reading = origins.reading
    evidence: list[Evidence] = []
    taken: set[str] = set()
    names = ((path, value) for path, value in leaves(arguments) if isinstance(value, str) and is_name(value))
    for path, value in islice(names, MAX_LOOKED_FOR):
        if origins.names(index, call, path, value):
            continue
        right = right_value(reading, index, call, path)
        if right is None:
            continue
        if fold(right.value) in taken:
            return None
        taken.add(fold(right.value))
        evidence += [right.evidence, Evidence("call", index, call.uid, path=path, value=value)]
    if not evidence:
        return None
    return reading.finding("argument", index, "unseen_value", tuple(evidence), ("request", "schema"), call.uid)


def _failed(origins: Origins, index: int, call: ToolCall, arguments: Any, failure: Evidence) -> Finding | None:
    """The finding that needs the environment to confirm that the call failed; none after more than can be read."""
    reading = origins.reading
    if reading.length(index, "system", "user", "tool") > MAX_READ:
        return None
    prefix, parameters = reading.messages[:index], reading.parameters(call.name)
    typed = [item for item in leaves(arguments) if _typed(item[1]) and not origins.acted_on(index, call, item[1])]
    unseen = [item for item in typed[:MAX_LOOKED_FOR] if derive(item[1], prefix, parameters, item[0]) is None]
    if len(unseen) != 1 or len(typed) > MAX_LOOKED_FOR:
        return None
    path, value = unseen[0]
    if isinstance(value, str) and is_name(value) and origins.names(index, call, path, value):
        return None
    said = Evidence("call", index, call.uid, path=path, value=shown(str(value)))
    right = right_value(reading, index, call, path)
    if right is not None:
        detail, evidence = "unseen_value", (right.evidence, said, failure)
    elif not candidates(value, prefix):
        absent = Evidence("absence", value=shown(str(value)), note=f"in none of the {index} messages before")
        detail, evidence = "not_derivable", (said, absent, failure)
    else:
        return None
    return reading.finding("argument", index, detail, evidence, ("request", "schema", "observation"), call.uid)


def _fits(reading: Reading, index: int, call: ToolCall, arguments: Any, path: str, candidate: Candidate) -> bool:
    """Whether a candidate can stand there: a whole word that was not excluded, not used already, in the schema."""
    value = candidate.value
    if derive(value, reading.messages[:index]) is None or not _plain(reading, path, candidate):
        return False
    if reading.used(call.name, value, index):
        return False
    parameters = reading.parameters(call.name)
    return parameters is None or not check_arguments(parameters, swap(arguments, {path: value})).problems


def _plain(reading: Reading, path: str, candidate: Candidate) -> bool:
    """Whether every place in its message that names a candidate does so in full and asks for it."""
    at, value = candidate.evidence, candidate.value
    if at.message is None or at.start is None or at.end is None:
        return False
    text, places = text_of(reading.messages[at.message].content), [(at.start, at.end)]
    if isinstance(value, str) and is_name(value) and read_date(value) is None:
        bare = value.lstrip("#")
        places = list(mentions(text, bare))
        if any(fold(text[start:end]) != fold(bare) for start, end in places):
            return False
        signed = "#" if value != bare else ""
        places = [(start - len(signed) if text[:start].endswith(signed) else start, end) for start, end in places]
    elif read_number(value) is not None and not is_count(text, *places[0], path.rpartition("/")[2]):
        return False
    return all(stands_alone(text, *place) and not excludes(text, *place) for place in places)


def _folded(value: Any) -> Any:
    return fold(value) if isinstance(value, str) else value


def _typed(value: Any) -> bool:
    """Whether a value is of a kind that can be looked for: a name, a number, a date."""
    if isinstance(value, str):
        return is_name(value) or read_date(value) is not None
    return read_number(value) is not None
