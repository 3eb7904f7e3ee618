"""What a check is worth: how many wrong calls, executed in the place of a right one, pass it too.

A wrong call is a right one with one argument swapped for a value that the same tool and argument has elsewhere.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any, Literal, NamedTuple, get_args

from msgspec import Raw
from msgspec.structs import replace

from curation.diagnosis.arguments import arguments_of
from schemas.canonical import encode, raw
from schemas.statements import Power, Verification
from schemas.tool_schema import check_arguments
from schemas.trajectory import Author, Reads, ToolCall

CheckName = Literal["no_error", "match", "step", "task"]
CHECKS: tuple[CheckName, ...] = get_args(CheckName)
"""Executed without an error; answered and changing the state as the right call; where the task's check fails before the
right call and passes directly after it, it passes directly after the wrong one; it passes after the rest of the run."""

MAX_VALUES = 64  # of one argument that are tried on one call
PREFIX = "placebo."  # of the names of the rules that measure

Values = Mapping[tuple[str, str], Mapping[bytes, Any]]
Rates = Mapping[tuple[str, str], Power]


class Probe(NamedTuple):
    """What one wrong call did in the place of a right one, by check; a check that could not be made is absent.

    ``reads`` is what the task's check had read.
    """

    message: int
    right: ToolCall
    wrong: ToolCall
    passed: Mapping[CheckName, bool]
    reads: tuple[Reads, ...] = ()


def values_of(calls: Iterable[ToolCall]) -> Values:
    """Tool and argument to the values that calls hold there, by their canonical bytes."""
    found: dict[tuple[str, str], dict[bytes, Any]] = defaultdict(dict)
    for call in calls:
        for name, value in (arguments_of(call) or {}).items():
            found[call.name, name].setdefault(encode(value), value)
    return found


def wrong_calls(call: ToolCall, values: Values, parameters: Raw | None, number: int, seed: str) -> tuple[ToolCall, ...]:
    """At most ``number`` wrong calls of a right one that satisfy the schema of its tool, in an order that is seeded."""
    arguments = arguments_of(call) or {}
    swaps = sorted(
        (order(seed, name, key), name, value)
        for name, right in arguments.items()
        for key, value in _first(seed, values.get((call.name, name), {}))
        if key != encode(right)
    )
    found: list[ToolCall] = []
    for _, name, value in swaps:
        wrong = arguments | {name: value}
        if len(found) < number and (parameters is None or check_arguments(parameters, wrong).valid):
            text = raw(wrong)
            found.append(replace(call, arguments=text, arguments_text=bytes(text).decode()))
    return tuple(found)


def order(*parts: str | bytes) -> bytes:
    """A number that says where these come in an order which is seeded by them."""
    return sha256(b"\0".join(part if isinstance(part, bytes) else part.encode() for part in parts)).digest()


def statements(trajectory: str, probes: Iterable[Probe], environment: str) -> Iterator[Verification]:
    """What the probes of a trajectory counted, a statement a call and check; none says whether a decision is right.

    Its detail is the ``environment`` in which they were executed, as id and version.
    """
    counts: dict[tuple[int, str, str, CheckName], list[bool]] = defaultdict(list)
    reads: dict[tuple[str, CheckName], tuple[Reads, ...]] = {}
    for probe in probes:
        for check, passed in probe.passed.items():
            counts[probe.message, probe.right.uid, probe.right.name, check].append(passed)
            reads[probe.right.uid, check] = probe.reads if check in ("step", "task") else ("state",)
    for (message, uid, tool, check), counted in counts.items():
        yield Verification(
            trajectory,
            "step",
            "unknown",
            Author("rule", PREFIX + check, "1"),
            message,
            uid,
            environment,
            power=Power(check, tool, len(counted), sum(counted)),
            reads=reads[uid, check],
        )


def pool(powers: Iterable[Power]) -> Rates:
    """The counts of each check and tool together."""
    wrong: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for power in powers:
        counted = wrong[power.check, power.tool]
        counted[0] += power.wrong
        counted[1] += power.passed
    return {(check, tool): Power(check, tool, *counted) for (check, tool), counted in sorted(wrong.items())}


def _first(seed: str, values: Mapping[bytes, Any]) -> Iterable[tuple[bytes, Any]]:
    if len(values) <= MAX_VALUES:
        return values.items()
    return sorted(values.items(), key=lambda item: order(seed, item[0]))[:MAX_VALUES]
