"""Write the example logs: ``python examples/make_logs.py``. The same bytes every time.

``logs/inventory.jsonl`` and ``logs/booking.jsonl`` hold three planned attempts of each of a hundred jobs, really run in
our two worlds. ``logs/side.jsonl`` says what such logs usually do not: strata, split, and some of the outcomes.
``eight.jsonl`` shows eight ways in which the log of one task can read.
"""

from pathlib import Path
from random import Random
from typing import Any

import msgspec

from examples.desk.jobs import Job, jobs
from examples.desk.runs import STEPS, Run, attempts
from tests.eight import lines as eight

HERE = Path(__file__).parent
NO_OUTCOME = 0.04  # share of attempts that nobody graded

Line = dict[str, Any]


def make_logs(folder: Path) -> None:
    """Write the three logs and the eight records below a folder."""
    logs: dict[str, list[Line]] = {"inventory": [], "booking": [], "side": []}
    for job in jobs():
        for attempt, run in enumerate(attempts(job), 1):
            line, beside = _log_line(job, attempt, run), _side_line(job, attempt)
            if run.outcome != "unknown" and Random(f"{line['id']} graded").random() >= NO_OUTCOME:
                place = beside if attempt == 3 else line  # the third round was graded later
                place["outcome"] = run.outcome
            logs[job.world].append(line)
            logs["side"].append(beside)
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    for name, lines in logs.items():
        _write(folder / "logs" / f"{name}.jsonl", lines)
    (folder / "eight.jsonl").write_bytes(eight())


def _log_line(job: Job, attempt: int, run: Run) -> Line:
    line = {
        "id": _key(job, attempt),
        "namespace": job.task.namespace,
        "task": job.name,
        "parameters": job.parameters,
        "run": "first-round",
        "attempt": attempt,
        "environment": job.world,
        "model": "scripted-desk-1",
        "budget": {"steps": STEPS[job.difficulty]},
        "messages": run.messages,
        "tools": run.tools,
        "stop": run.stop,
    }
    return line if run.error is None else line | {"error": run.error}


def _side_line(job: Job, attempt: int) -> Line:
    strata = {"difficulty": job.difficulty, "domain": job.world, "language": job.language}
    return {"key": _key(job, attempt), "strata": strata, "split": job.split}


def _key(job: Job, attempt: int) -> str:
    return f"{job.world}-{job.name}-{attempt}"


def _write(path: Path, lines: list[Line]) -> None:
    path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))


if __name__ == "__main__":
    make_logs(HERE)
