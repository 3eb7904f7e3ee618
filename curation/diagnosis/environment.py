"""``environment``: the world or the provider failed, not the model. By declarations and marks, never by wording."""

from collections.abc import Iterator

from curation.diagnosis.evidence import Reading, shown
from schemas.statements import Evidence, Finding
from schemas.trajectory import MessageError

_KINDS = {
    "429": "rate_limit",
    "rate_limit_error": "rate_limit",
    "408": "timeout",
    "504": "timeout",
    "500": "service",
    "502": "service",
    "503": "service",
    "529": "service",
    "401": "authentication",
    "403": "authentication",
    "404": "not_found",
}


def find(reading: Reading) -> Iterator[Finding]:
    """Declared faults, errors that the log lays to the environment or the provider, a stop by the provider, and a
    time-out of a run in which the model was never heard.
    """
    marked = False
    deciding = {call.uid: index for index, call in reading.calls}
    for index, message in enumerate(reading.messages):
        uid = None if message.answers is None else message.answers.uid
        at = deciding.get(uid or "", index)
        if message.error is not None and message.error.origin in ("provider", "environment"):
            marked = marked or message.error.origin == "provider"
            evidence = Evidence("observation", index, uid, value=shown(message.error.message), note=message.error.kind)
            yield reading.finding("environment", at, _kind(message.error), (evidence,), ("observation",), uid)
        elif uid is not None and reading.answers[uid].message == index:
            yield from _declared(reading, uid, at)
    if reading.case.stop == "provider_error" and not marked:
        last = max(len(reading.messages) - 1, 0)
        evidence = Evidence("absence", last, value=reading.case.stop, note="how the run stopped")
        yield reading.finding("environment", last, "provider_error", (evidence,))
    if reading.case.stop == "timeout" and not any(message.role == "assistant" for message in reading.messages):
        yield reading.finding("environment", reading.last_decision, "nothing_happened", _idle(reading))


def _idle(reading: Reading) -> tuple[Evidence, ...]:
    """That the model did nothing, and how long that took against the time there was."""
    case, last = reading.case, reading.last_decision
    budget = case.budget or case.trajectory.conditions.budget
    found = Evidence("absence", last, value="no decision", note="how the run stopped: timeout")
    if budget is None or budget.seconds is None or case.elapsed is None:
        return (found,)
    return found, Evidence("budget", last, path="/seconds", value=f"{budget.seconds:g}", note=f"{case.elapsed:g}")


def _declared(reading: Reading, uid: str, at: int) -> Iterator[Finding]:
    fault, answer = reading.fault(uid), reading.answers[uid]
    if fault is not None:
        evidence = Evidence("observation", answer.message, uid, path=f"/{fault.field}", value=fault.value)
        yield reading.finding("environment", at, fault.kind, (evidence,), ("observation",), uid)
    elif (execution := reading.executions.get(uid)) is not None and execution.reason == "environment_fault":
        evidence = Evidence("observation", answer.message, uid, value=shown(answer.text), note=execution.environment)
        yield reading.finding("environment", at, "fault", (evidence,), ("observation",), uid)


def _kind(error: MessageError) -> str:
    kind = error.kind or error.origin or ""
    return _KINDS.get(kind.casefold(), kind)
