"""Whether a logged answer is the real answer of its call: the recorded text against the executed one.

The first match that holds is given, with the rules it needed. Only the three equal ones count as a pass; what cannot
be compared stays unknown, with a reason of schemas.reasons.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from curation.errors import UsageError
from environments.protocol import CallResult, EnvSpec, fault_of
from schemas.canonical import UnreadableError, encode, parse
from schemas.statements import Evidence, Match, Result
from schemas.trajectory import Message, text_of

EQUAL: Final[frozenset[Match]] = frozenset(("equal_bytes", "equal_normalised", "equal_semantic"))
MAX_DIFFERENCES = 16
MAX_SHOWN = 80

_CLOCK = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?")
_ABSENT: Any = object()


def _mask_clock(text: str) -> str:
    return _CLOCK.sub("<clock>", text)


RULES: dict[str, Callable[[str], str]] = {"outer_whitespace@1": str.strip, "clock@1": _mask_clock}


class Verdict(NamedTuple):
    """How a logged answer compares with the executed one; ``evidence`` names each field that differs."""

    match: Match
    reason: str | None = None
    rules: tuple[str, ...] = ()
    detail: str = ""
    evidence: tuple[Evidence, ...] = ()

    @property
    def result(self) -> Result:
        """The result of the execution layer: equal passes, different fails, everything else is unknown."""
        if self.match in EQUAL:
            return "passed"
        return "failed" if self.match == "different" else "unknown"


def match_message(message: Message, executed: CallResult, spec: EnvSpec) -> Verdict:
    """The verdict on a tool message; where something changed it before the model saw it, its raw text counts."""
    if message.raw is not None:
        verdict = match(message.raw, executed, spec)
        return verdict._replace(detail=_joined("compared before it was changed for the model", verdict.detail))
    if isinstance(message.content, tuple) and any(part.text is None for part in message.content):
        return Verdict("unverifiable", "not_text")
    logged = text_of(message.content)
    if not logged and message.error is not None:
        logged = message.error.message
    return match(logged, executed, spec)


def match(logged: str, executed: CallResult, spec: EnvSpec) -> Verdict:
    """The verdict on a logged answer.

    An answer that has the shape of a declared fault says nothing about its call, whatever the execution gave. Raises
    UsageError where the environment declares a normalisation rule that does not exist.
    """
    recorded, given = _value(logged), _value(executed.raw)
    if fault_of(spec, recorded) is not None:
        return Verdict("unverifiable", "environment_fault")
    if executed.status in ("timeout", "environment_fault"):
        return Verdict("unverifiable", "fault_in_replay", detail=executed.detail or executed.status)
    if executed.status == "refused":
        return Verdict("not_run", "refused", detail=executed.detail)
    if executed.truncated:
        return Verdict("unverifiable", "truncated")
    if logged == executed.raw:
        return Verdict("equal_bytes")
    rules = _rules_that_settle(logged, executed.raw, spec)
    if rules:
        return Verdict("equal_normalised", rules=rules)
    if recorded is not _ABSENT and given is not _ABSENT and encode(recorded) == encode(given):
        return Verdict("equal_semantic")
    differences = _differences(recorded, given, logged, executed.raw)
    paths = ", ".join(evidence.path or "the whole answer" for evidence in differences)
    return Verdict("different", detail=f"the answer differs at {paths}", evidence=differences)


def _rules_that_settle(logged: str, given: str, spec: EnvSpec) -> tuple[str, ...]:
    used: list[str] = []
    for name in spec.rules:
        if name not in RULES:
            raise UsageError(f"environment {spec.name!r} declares the rule {name!r}; known: {', '.join(sorted(RULES))}")
        before = (logged, given)
        logged, given = RULES[name](logged), RULES[name](given)
        if (logged, given) != before:
            used.append(name)
        if logged == given:
            return tuple(used)
    return ()


def _value(text: str) -> Any:
    try:
        return parse(text.encode())[0]
    except UnreadableError:
        return _ABSENT


def _differences(recorded: Any, given: Any, logged: str, executed: str) -> tuple[Evidence, ...]:
    if not (isinstance(recorded, dict) and isinstance(given, dict)):
        return (Evidence("observation", path="", value=_shown(logged), note=f"executed: {_shown(executed)}"),)
    found: list[Evidence] = []
    for path, left, right in _walk("", recorded, given):
        if len(found) == MAX_DIFFERENCES:
            break
        found.append(Evidence("observation", path=path, value=_text(left), note=f"executed: {_text(right)}"))
    return tuple(found)


def _walk(path: str, left: Any, right: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(left, dict) and isinstance(right, dict):
        for key in sorted(left.keys() | right.keys()):
            pointer = f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
            yield from _walk(pointer, left.get(key, _ABSENT), right.get(key, _ABSENT))
    elif left is _ABSENT or right is _ABSENT or encode(left) != encode(right):
        yield path, left, right


def _text(value: Any) -> str:
    return "(absent)" if value is _ABSENT else _shown(encode(value).decode())


def _shown(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 1]}…"


def _joined(*pieces: str) -> str:
    return "; ".join(piece for piece in pieces if piece)
