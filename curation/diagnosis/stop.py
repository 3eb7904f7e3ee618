"""``budget_stop``: the run ended at a cap that is known, and the record shows that it was reached."""

from collections.abc import Iterator

from curation.diagnosis.evidence import Reading
from schemas.statements import Evidence, Finding


def find(reading: Reading) -> Iterator[Finding]:
    """At the last decision. None for a time-out: the record holds no clock that shows that the cap was reached."""
    match reading.case.stop:
        case "max_steps":
            for name, cap, count in _caps(reading):
                if cap is not None and count >= cap:
                    evidence = Evidence(
                        "budget", reading.last_decision, path=f"/{name}", value=str(cap), note=f"{count}"
                    )
                    yield reading.finding("budget_stop", reading.last_decision, name, (evidence,))
                    return
        case "context_length" | "output_length" as stop:
            evidence = Evidence("budget", reading.last_decision, value=stop, note="how the run stopped")
            yield reading.finding("budget_stop", reading.last_decision, stop.removesuffix("_length"), (evidence,))


def _caps(reading: Reading) -> Iterator[tuple[str, int | None, int]]:
    budget = reading.case.budget or reading.case.trajectory.conditions.budget
    if budget is not None:
        yield "steps", budget.steps, sum(message.role == "assistant" for message in reading.messages)
        yield "calls", budget.calls, len(reading.calls)
