"""Would a replay notice a forged log? Answers of sibling calls are pasted into the records of a store, to be caught."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from curation.jobs.cases import clocks_of, places
from curation.jobs.replaying import PROCESSES, execute
from curation.match import EQUAL, answer_text
from curation.store import Store
from curation.worlds import open_worlds
from environments.protocol import EnvSpec, fault_of
from schemas.canonical import UnreadableError, parse
from schemas.statements import Verification
from schemas.trajectory import ToolCall, Trajectory, answers_of

_CHUNK = 400


class TamperResult(msgspec.Struct):
    """What a replay says of forged answers; ``calls`` are those with an answer in text.

    ``alone``: no call of the same tool has other arguments. ``same_answer``: all that have are answered alike, so that
    nothing could tell them apart. The rest are ``pasted``: ``caught`` as different, ``called_equal``, or unknown to the
    replay, with the counted ``reasons``.
    """

    calls: int
    alone: int
    same_answer: int
    pasted: int
    caught: int
    called_equal: int
    unknown: int
    reasons: dict[str, int]


class _Logged(NamedTuple):
    """A call as logged, and the text of its answer."""

    identity: str
    call: ToolCall
    text: str

    @property
    def asked(self) -> bytes | str:
        """The arguments, in a form that is equal where they are."""
        return self.call.arguments_text if self.call.arguments is msgspec.UNSET else bytes(self.call.arguments)


def tamper(store: Store, environment: str) -> TamperResult:
    """Paste into each record the answers of sibling calls, of the same run where it has one, and replay it.

    A sibling is a call of the same tool with other arguments. The calls stay, so that they are executed in the states
    that they were made in; no declared fault is pasted. The store is left as it is. Raises UnknownEnvironmentError,
    UsageError.
    """
    found: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for name, identities in places(store, environment).items():
        with open_worlds(name, processes=PROCESSES) as worlds:
            for start in range(0, len(identities), _CHUNK):
                records = list(store.trajectories(identities[start : start + _CHUNK]))
                forged = _forge(records, worlds[0].spec, found)
                tampered = [(identity, _pasted(record, forged[identity])) for identity, record in records]
                pasted = [item for item in tampered if forged[item[0]]]
                for replayed in execute(pasted, worlds, clocks_of(store, [identity for identity, _ in pasted])):
                    for check in replayed.verifications:
                        if check.call in forged[check.trajectory]:
                            _judge(check, found, reasons)
    names = ("calls", "alone", "same_answer", "pasted", "caught", "called_equal", "unknown")
    return TamperResult(**{name: found[name] for name in names}, reasons=dict(sorted(reasons.items())))


def _forge(records: Sequence[tuple[str, Trajectory]], spec: EnvSpec, found: Counter[str]) -> dict[str, dict[str, str]]:
    """The answer to paste for each call that has a sibling with another one, by record and call."""
    calls = [logged for identity, record in records for logged in _logged(identity, record)]
    by_tool: dict[str, list[_Logged]] = defaultdict(list)
    by_run: dict[tuple[str, str], list[_Logged]] = defaultdict(list)
    for logged in calls:
        if not _is_fault(logged.text, spec):
            by_tool[logged.call.name].append(logged)
            by_run[logged.identity, logged.call.name].append(logged)
    forged: dict[str, dict[str, str]] = {identity: {} for identity, _ in records}
    for mine in calls:
        near, far = by_run[mine.identity, mine.call.name], by_tool[mine.call.name]
        other = next((one for one in chain(near, far) if one.asked != mine.asked and one.text != mine.text), None)
        if other is not None:
            forged[mine.identity][mine.call.uid] = other.text
        alike = other is None and any(one.asked != mine.asked for one in far)
        found.update(("calls", "pasted" if other is not None else "same_answer" if alike else "alone"))
    return forged


def _logged(identity: str, record: Trajectory) -> Iterator[_Logged]:
    answers = answers_of(record)
    for message in record.messages:
        for call in message.tool_calls:
            text = answer_text(record.messages[answers[call.uid]]) if call.uid in answers else None
            if text is not None:
                yield _Logged(identity, call, text)


def _is_fault(text: str, spec: EnvSpec) -> bool:
    try:
        return fault_of(spec, parse(text.encode())[0]) is not None
    except UnreadableError:
        return False


def _pasted(record: Trajectory, forged: Mapping[str, str]) -> Trajectory:
    """The record with other answers; what a mediator made of the real ones goes."""
    places_of = {at: forged[uid] for uid, at in answers_of(record).items() if uid in forged}
    return replace(
        record,
        messages=tuple(
            replace(message, content=places_of[at], raw=None, error=None, actor=None) if at in places_of else message
            for at, message in enumerate(record.messages)
        ),
    )


def _judge(check: Verification, found: Counter[str], reasons: Counter[str]) -> None:
    if check.execution is None or check.execution.match is None:
        return
    if check.execution.match == "different":
        found["caught"] += 1
    elif check.execution.match in EQUAL:
        found["called_equal"] += 1
    else:
        found["unknown"] += 1
        reasons[check.execution.reason or ""] += 1
