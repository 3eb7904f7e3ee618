"""Whether a logged answer is the real answer of its call: the recorded text against the executed one.

The first match that holds is given, with the rules it needed. Only the three equal ones count as a pass; what cannot
be compared stays unknown, with a reason of schemas.reasons.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import UNSET

from curation.comparators import agreeing
from curation.movement import Settled, settle
from curation.rules import STATIC, declared, places
from environments.protocol import CallResult, EnvSpec, fault_of
from schemas.canonical import UnreadableError, encode, parse
from schemas.statements import Evidence, Match, Result
from schemas.trajectory import Message, text_of

EQUAL: Final[frozenset[Match]] = frozenset(("equal_bytes", "equal_normalised", "equal_semantic"))
MAX_DIFFERENCES = 16
MAX_SHOWN = 80

_ABSENT: Any = object()


class Verdict(NamedTuple):
    """How a logged answer compares with the executed one; ``evidence`` names each field that differs or moves."""

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


def match_message(message: Message, executed: CallResult, spec: EnvSpec, others: Iterable[CallResult] = ()) -> Verdict:
    """The verdict on a tool message (``others`` as in ``match``).

    Where something changed the answer before the model saw it, the verdict is about the raw text, and its detail says
    how the shown one compares. A shown text alone that a mediator changed cannot be compared, unless the environment
    has the same mediator; one that the log marks as cut (``truncated``) cannot either.
    """
    logged = answer_text(message)
    if logged is None:
        return Verdict("unverifiable", "not_text")
    if message.raw is not None:
        return _with_shown(match(logged, executed, spec, others), message, executed)
    if message.actor is None and not _marked_as_cut(message):
        return match(logged, executed, spec, others)
    verdict = match(logged, executed, spec)
    if verdict.match != "different":
        return verdict
    if message.actor is None:
        return Verdict("unverifiable", "truncated", detail="the log marks the answer as cut")
    if executed.mediator == message.actor and executed.shown == logged:
        return Verdict("equal_bytes", detail=f"as {message.actor!r} showed it")
    return Verdict("unverifiable", "mediated", detail=f"the log holds what {message.actor!r} made of the answer")


def answer_text(message: Message) -> str | None:
    """The text of a tool message that counts as the answer: the raw one, else what was shown, else the error that the
    log keeps apart. None where a part is no text.
    """
    if message.raw is not None:
        return message.raw
    if isinstance(message.content, tuple) and any(part.text is None for part in message.content):
        return None
    shown = text_of(message.content)
    return message.error.message if not shown and message.error is not None else shown


def match(logged: str, executed: CallResult, spec: EnvSpec, others: Iterable[CallResult] = ()) -> Verdict:
    """The verdict on a logged answer.

    ``others`` are answers to the same call after the same calls, in other processes with another hash seed, clock and
    folder; they are taken only where the answers differ. An answer that has the shape of a declared fault says nothing
    about its call, whatever the execution gave. Raises UsageError where the environment declares a rule that does not
    exist.
    """
    static, volatile = declared(spec)
    excuse = _excuse(logged, executed, spec)
    if excuse is not None:
        return excuse
    if logged == executed.raw:
        return Verdict("equal_bytes")
    used, left, right = _normalised(logged, executed.raw, static)
    if left == right:
        return Verdict("equal_normalised", rules=used)
    comparator = agreeing(left, right, spec)
    if comparator is not None:
        return Verdict("equal_semantic", rules=(*used, comparator))
    answers = (_normalised(other.raw, "", static)[1] for other in others if _answered(other))
    settled = settle(left, right, answers, volatile, spec)
    if settled.outcome == "equal":
        return _forgiven(settled, logged, used)
    if settled.outcome != "different":
        return Verdict("unverifiable", settled.outcome, detail=settled.detail)
    where, differences = _differences(logged, executed.raw)
    return Verdict("different", detail=_joined(f"the answer differs at {where}", settled.detail), evidence=differences)


def _excuse(logged: str, executed: CallResult, spec: EnvSpec) -> Verdict | None:
    """Why the two answers cannot be compared, if so."""
    refused = Verdict("not_run", "refused", detail=executed.detail) if executed.status == "refused" else None
    if spec.recorded_only:
        return refused or Verdict("unverifiable", "recorded_only")
    if fault_of(spec, _value(logged)) is not None:
        return Verdict("unverifiable", "environment_fault")
    if executed.status in ("timeout", "environment_fault"):
        return Verdict("unverifiable", "fault_in_replay", detail=executed.detail or executed.status)
    if executed.truncated:
        return Verdict("unverifiable", "truncated", detail="the executed answer is cut")
    return refused


def _normalised(left: str, right: str, static: Sequence[str]) -> tuple[tuple[str, ...], str, str]:
    """The rules that were needed or tried until both texts are equal, and the texts after them."""
    used: list[str] = []
    for name in static:
        after = STATIC[name](left), STATIC[name](right)
        if after != (left, right):
            used.append(name)
        left, right = after
        if left == right:
            break
    return tuple(used), left, right


def _answered(other: CallResult) -> bool:
    return other.status not in ("timeout", "environment_fault", "refused") and not other.truncated


def _forgiven(settled: Settled, logged: str, used: tuple[str, ...]) -> Verdict:
    """The verdict where declared rules forgive what moves; each place is evidence."""
    found: list[Evidence] = []
    for rule, ordinals in settled.moves.items():
        for number, place in enumerate(places(rule, logged)):
            if number in ordinals and len(found) < MAX_DIFFERENCES:
                written = _shown(logged[place.start : place.end])
                note = f"{rule}: place {number + 1} moves between executions"
                found.append(Evidence("observation", start=place.start, end=place.end, value=written, note=note))
    rules = (*used, *settled.rules)
    if settled.comparator is not None:
        return Verdict("equal_semantic", rules=(*rules, settled.comparator), evidence=tuple(found))
    return Verdict("equal_normalised", rules=rules, evidence=tuple(found))


def _with_shown(verdict: Verdict, message: Message, executed: CallResult) -> Verdict:
    """The verdict on the raw text, and beside it how the text compares that the model was shown."""
    by = f" by {message.actor!r}" if message.actor else ""
    detail = f"raw answer: {verdict.match}; shown text{by}: "
    seen = text_of(message.content)
    if executed.shown is None or (message.actor and message.actor != executed.mediator):
        return verdict._replace(detail=_joined(f"{detail}not comparable, no such mediator here", verdict.detail))
    if executed.shown == seen:
        return verdict._replace(detail=_joined(f"{detail}equal_bytes", verdict.detail))
    differs = Evidence("observation", value=_shown(seen), note=f"shown text; executed: {_shown(executed.shown)}")
    return verdict._replace(detail=_joined(f"{detail}different", verdict.detail), evidence=(*verdict.evidence, differs))


def _marked_as_cut(message: Message) -> bool:
    if message.extra is UNSET:
        return False
    extra = msgspec.json.decode(message.extra)
    return isinstance(extra, dict) and extra.get("truncated") is True


def _differences(logged: str, executed: str) -> tuple[str, tuple[Evidence, ...]]:
    """Where two answers differ, in words and as evidence: fields of two objects, else the lines of a text."""
    recorded, given = _value(logged), _value(executed)
    if not (isinstance(recorded, dict) and isinstance(given, dict)):
        return _differing_lines(logged, executed)
    found = tuple(
        Evidence("observation", path=path, value=_text(left), note=f"executed: {_text(right)}")
        for path, left, right in islice(_walk("", recorded, given), MAX_DIFFERENCES)
    )
    return ", ".join(evidence.path or "" for evidence in found), found


def _differing_lines(logged: str, executed: str) -> tuple[str, tuple[Evidence, ...]]:
    left, right = logged.splitlines(keepends=True), executed.splitlines(keepends=True)
    first = _common(left, right)
    last = _common(left[first:][::-1], right[first:][::-1])
    start, end = len("".join(left[:first])), len(logged) - len("".join(left[len(left) - last :]))
    value, given = logged[start:end], "".join(right[first : len(right) - last])
    where = "the whole answer" if first == last == 0 else f"line {first + 1}"
    note = f"executed: {_shown(given)}"
    return where, (Evidence("observation", path="", start=start, end=end, value=_shown(value), note=note),)


def _common(left: Sequence[str], right: Sequence[str]) -> int:
    """How many items at their head are the same."""
    return next(
        (number for number, pair in enumerate(zip(left, right, strict=False)) if pair[0] != pair[1]),
        min(len(left), len(right)),
    )


def _value(text: str) -> Any:
    try:
        return parse(text.encode())[0]
    except UnreadableError:
        return _ABSENT


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
