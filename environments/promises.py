"""What every environment promises, each put to the test; what cannot be tried is not tested and says why."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from environments.blobs import MemoryBlobs
from environments.protocol import CallResult, EnvironmentFailure, Session, SnapshotError, StartError
from environments.samples import make_call
from environments.trials import Bench, Run, settled
from environments.worker import Worker
from schemas.canonical import raw
from schemas.objects import ToolSpec
from schemas.trajectory import Task, ToolCall

_NO_TOOL = "no_such_tool"
_MOST_SHOWN = 4

Outcome = Literal["passed", "failed", "not_tested"]


class Verdict(NamedTuple):
    """Whether a promise was kept, and what was seen or why nothing was."""

    result: Outcome
    detail: str


def verdict(test: Callable[[Bench], Verdict], bench: Bench) -> Verdict:
    """What a test finds; one that the environment does not let be carried out has failed."""
    try:
        return test(bench)
    except EnvironmentFailure as error:
        return _failed(f"it could not be carried out: {error}")


def _passed(detail: str) -> Verdict:
    return Verdict("passed", detail)


def _failed(detail: str) -> Verdict:
    return Verdict("failed", detail)


def _not_tested(why: str) -> Verdict:
    return Verdict("not_tested", why)


def _judged(wrong: Sequence[str], right: str) -> Verdict:
    """Failed with the first few of what is wrong, else passed."""
    more = f"; and {len(wrong) - _MOST_SHOWN} more" if len(wrong) > _MOST_SHOWN else ""
    return _failed("; ".join(wrong[:_MOST_SHOWN]) + more) if wrong else _passed(right)


def _declarations(bench: Bench) -> Verdict:
    spec, offered = bench.spec, {tool.name for tool in bench.tried.tools}
    wrong = [
        *(f"tool {name!r} has no effect declared" for name in sorted(offered - spec.effects.keys())),
        *(f"{name!r} has an effect declared and is no tool" for name in sorted(spec.effects.keys() - offered)),
        *(f"undo of {name!r}, which is no write" for name in spec.undo if spec.effects.get(name) != "write"),
        *(f"undo by {undo.tool!r}, which is no tool" for undo in spec.undo.values() if undo.tool not in offered),
        *(f"rule {rule!r} does not exist" for rule in spec.rules if rule not in bench.rules),
    ]
    counts = Counter(spec.effects.values())
    return _judged(
        wrong, ", ".join(f"{counts[effect]} {effect}" for effect in ("read", "write", "external") if counts[effect])
    )


def _faults(bench: Bench) -> Verdict:
    if not bench.spec.faults:
        return _not_tested("none declared: no answer would count as a failure of the environment itself")
    return _passed(", ".join(f"{fault.field}={fault.value}" for fault in bench.spec.faults))


def _starts(bench: Bench) -> Verdict:
    wrong = []
    if _start_of(bench.here, bench.start) != _start_of(bench.there, bench.start):
        wrong.append("two processes start the same task in different states")
    taken = [repr(parameters) for parameters in (7, {"no such parameter": 1}) if _opens(bench, parameters)]
    if taken:
        wrong.append(f"parameters {' and '.join(taken)} open a world; raise StartError for what sets no start state")
    return _judged(wrong, "the same state in two processes; unknown parameters open none")


def _opens(bench: Bench, parameters: object) -> bool:
    try:
        bench.here.open(replace(bench.start, parameters=raw(parameters)), MemoryBlobs()).close()
    except StartError:
        return False
    return True


def _start_of(worker: Worker, task: Task) -> str:
    with worker.open(task, MemoryBlobs()) as session:
        return session.state_digest()


def _answers(bench: Bench) -> Verdict:
    results = [result for run in bench.runs for result in run.results]
    wrong = [*dict.fromkeys(bench.tried.broken)]
    lost = next((f"{result.status} {result.detail}" for result in results if result.state_after is None), None)
    if lost is not None and not any(seen.endswith(lost) for seen in wrong):
        wrong.append(lost)
    if not any(map(_ran, results)) and not wrong:
        return _not_tested("no tool ran: there is none, all reach outside, or no arguments that fit were found")
    return _judged(wrong, f"{len(results)} calls, each answered")


def _ran(result: CallResult) -> bool:
    """Whether a call came as far as its tool."""
    return result.status not in ("schema_error", "unknown_tool", "refused")


def _answered(result: CallResult) -> bool:
    """Whether a tool answered, and left a state that is known."""
    return _ran(result) and result.state_after is not None


def _malformed(bench: Bench) -> Verdict:
    tool = next((tool for tool in bench.tried.tools if bench.spec.effects.get(tool.name) != "external"), None)
    if tool is None:
        return _not_tested("no tool that may be called")
    name, wrong = tool.name, []
    readable = ("schema_error",) if bench.spec.answers_malformed else ("refused",)
    cases: dict[str, tuple[ToolCall, tuple[str, ...]]] = {
        f"an unknown tool: {_NO_TOOL}": (make_call(0, _NO_TOOL, {}), ("unknown_tool",)),
        f"arguments that are no JSON: {name}": (ToolCall("0.0", name, "{", parse_error="cut off"), readable),
    }
    picky = next((tool for tool in bench.tried.tools if _requires(tool)), None)
    if picky is not None:
        cases[f"no arguments: {picky.name}"] = (make_call(0, picky.name, {}), ("schema_error", "tool_error"))
    for title, (call, expected) in cases.items():
        with bench.here.open(bench.start, MemoryBlobs()) as session:
            before = session.settled_digest()
            [result] = session.call((call,))
            if result.status not in expected:
                wrong.append(
                    f"{title} is {result.status}, not {' or '.join(expected)} ({result.detail or result.raw[:80]})"
                )
            elif session.settled_digest() != before:
                wrong.append(f"{title} changes the state")
    return _judged(wrong, "; ".join(cases) + ": answered, nothing changed")


def _requires(tool: ToolSpec) -> bool:
    schema = msgspec.json.decode(tool.parameters)
    return isinstance(schema, dict) and bool(schema.get("required"))


def _reads(bench: Bench) -> Verdict:
    effects, wrong, right = bench.spec.effects, dict[str, str](), set[str]()
    for trial in bench.tried.trials:
        with bench.here.open(trial.task, MemoryBlobs()) as session:
            for call in trial.calls:
                if effects.get(call.name) != "read":
                    session.call((call,))
                    continue
                before = session.settled_digest()
                [result] = session.call((call,))
                if result.state_after is None:
                    break
                if _ran(result):
                    right.add(call.name)
                if session.settled_digest() != before:
                    wrong[call.name] = f"{call.name} {call.arguments_text[:80]} changes the state and is declared read"
    if not right:
        return _not_tested("no read was tried")
    return _judged([*wrong.values()], f"{len(right)} tools change nothing: {', '.join(sorted(right))}")


def _writes(bench: Bench) -> Verdict:
    writes = {name for name, effect in bench.spec.effects.items() if effect == "write"}
    changed = {
        call.name
        for trial, run in zip(bench.tried.trials, bench.runs, strict=True)
        for call, result in zip(trial.calls, run.results, strict=True)
        if result.state_after not in (None, result.state_before)
    }
    if not writes:
        return _passed("none declared")
    seen = f"seen to change the state: {', '.join(sorted(writes & changed)) or 'none'}"
    if writes <= changed:
        return _passed(seen)
    return _not_tested(f"{seen}; not seen to: {', '.join(sorted(writes - changed))}; name calls that do in `examples`")


def _external(bench: Bench) -> Verdict:
    outside = sorted(name for name, effect in bench.spec.effects.items() if effect == "external")
    return _not_tested(f"never executed: {', '.join(outside)}") if outside else _passed("none declared")


def _snapshots(bench: Bench) -> Verdict:
    if bench.spec.restore != "snapshot":
        return _not_tested(f"none: the way back is declared as {bench.spec.restore}")
    wrong: dict[str, None] = {}
    for trial in bench.tried.trials:
        half = len(trial.calls) // 2
        blobs = MemoryBlobs()
        with bench.here.open(trial.task, blobs) as session:
            session.call(trial.calls[:half])
            snapshot = session.snapshot()
            if session.state_digest() != snapshot.digest:
                wrong["a snapshot names another digest than its state has"] = None
            rest, end = session.call(trial.calls[half:]), settled(session)
        for worker in (bench.here, bench.there):
            with worker.open(snapshot, blobs) as fork:
                if fork.state_digest() != snapshot.digest:
                    wrong["a snapshot restores to another digest"] = None
                again = fork.call(trial.calls[half:])
                if settled(fork) != end:
                    wrong["the calls end in another state after it was restored"] = None
            wrong.update(dict.fromkeys(_differences(trial.calls[half:], rest, again, "after it was restored")))
    restored = f"{len(bench.tried.trials)} restored here and in another process; equal digests, equal answers after"
    return _compared(bench, [*wrong], restored)


def _processes(bench: Bench) -> Verdict:
    wrong = _moved(bench, bench.apart, "in another process")
    if wrong and bench.spec.determinism == "external":
        return _not_tested(f"declared external: {'; '.join(wrong[:_MOST_SHOWN])}")
    return _compared(bench, wrong, "equal answers and states with another hash seed, in another folder")


def _times(bench: Bench) -> Verdict:
    wrong = _moved(bench, bench.later, "at another time")
    if wrong and bench.spec.determinism in ("clocked", "external"):
        return _not_tested(f"declared {bench.spec.determinism}: {'; '.join(wrong[:_MOST_SHOWN])}")
    way_out = "; declare determinism as clocked" if wrong else ""
    found = [wrong[0] + way_out, *wrong[1:]] if wrong else []
    return _compared(bench, found, "equal answers and states at another time")


def _compared(bench: Bench, wrong: Sequence[str], right: str) -> Verdict:
    """As judged, but where no tool answered there was nothing to compare."""
    if not wrong and not any(_answered(result) for run in bench.runs for result in run.results):
        return _not_tested("no tool answered")
    return _judged(wrong, right)


def _moved(bench: Bench, others: Sequence[Run], where: str) -> list[str]:
    found: dict[str, None] = {}
    for trial, run, other in zip(bench.tried.trials, bench.runs, others, strict=True):
        found.update(dict.fromkeys(_differences(trial.calls, run.results, other.results, where)))
        if run.settled != other.settled:
            found[f"the calls end in another state {where}"] = None
    return [*found]


def _differences(
    calls: Sequence[ToolCall], one: Sequence[CallResult], other: Sequence[CallResult], where: str
) -> Iterator[str]:
    for call, left, right in zip(calls, one, other, strict=True):
        if (left.status, left.raw) != (right.status, right.raw):
            yield f"{call.name} answers differently {where}"


def _time_out(bench: Bench) -> Verdict:
    call = make_call(0, _NO_TOOL, {})
    wrong = []
    with bench.hurried.open(bench.start, MemoryBlobs()) as session:
        first, second = session.call((call, call))
        if (first.status, first.state_after, second.status) != ("timeout", None, "refused"):
            wrong.append(f"a call without time is {first.status}, the next {second.status}")
        wrong.extend(_snapshot_after(session, "a time-out"))
    return _judged(wrong, "the state is unknown after one, later calls are refused")


def _closing(bench: Bench) -> Verdict:
    wrong = []
    session = bench.environment.open(bench.start, bench.controls, MemoryBlobs())
    try:
        session.close()
        session.close()
        [result] = session.call((make_call(0, _NO_TOOL, {}),))
        if result.status != "refused":
            wrong.append(f"a call after closing is {result.status}, not refused")
        wrong.extend(_snapshot_after(session, "closing"))
    except Exception as error:
        if isinstance(error, EnvironmentFailure):
            raise
        wrong.append(f"closing twice, or a call after it, raises {type(error).__name__}: {error}")
    return _judged(wrong, "may be repeated; calls and snapshots after it are refused")


def _snapshot_after(session: Session, event: str) -> Iterator[str]:
    try:
        session.snapshot()
    except SnapshotError:
        return
    yield f"a snapshot after {event} is no SnapshotError"


def _checks(bench: Bench) -> Verdict:
    if bench.spec.restore != "snapshot":
        return _not_tested("a check runs in a fork, and this environment has no snapshots")
    wrong: dict[str, None] = {}
    said: Counter[str] = Counter()
    for trial in bench.tried.trials:
        blobs = MemoryBlobs()
        with bench.here.open(trial.task, blobs) as session:
            session.call(trial.calls)
            snapshot, before = session.snapshot(), session.state_digest()
            results = []
            for worker in (bench.here, bench.there):
                with worker.open(snapshot, blobs) as fork:
                    results.append(fork.check(trial.task, trial.messages))
            if session.state_digest() != before:
                wrong["a check in a fork changes the state of its parent"] = None
            if results[0].result != results[1].result:
                wrong[f"two checks of one state say {results[0].result} and {results[1].result}"] = None
            said[results[0].result] += 1
    judged = said["passed"] + said["failed"]
    if not wrong and not judged:
        return _not_tested("no task that was tried has a check here")
    return _judged([*wrong], f"{said['passed']} passed and {said['failed']} failed, their parents unchanged")


PROMISES: dict[str, Callable[[Bench], Verdict]] = {
    "declarations": _declarations,
    "faults": _faults,
    "starts": _starts,
    "answers": _answers,
    "malformed calls": _malformed,
    "reads": _reads,
    "writes": _writes,
    "external tools": _external,
    "snapshots": _snapshots,
    "other process": _processes,
    "other time": _times,
    "time-outs": _time_out,
    "closing": _closing,
    "task checks": _checks,
}
