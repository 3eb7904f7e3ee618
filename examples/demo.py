"""The worked example: from agent logs to training rows and a report on what the selection did. ``./run.sh demo``.

Runs the commands that a user would type, one after another, into ``out/demo`` (or the folder given), and prints each
with the gist of its result; a command typed by hand shows all of it.
"""

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

LOGS = Path(__file__).parent / "logs"
WORLDS = ("inventory", "booking")
WIDTH = 88
SUCCESSES, ROWS = "selection-bias.html", "rows-bias.html"
OURS = {"store", "rows", SUCCESSES, ROWS}  # what an earlier demo may have left in its folder

Result = dict[str, Any]


class Demo:
    """A fresh folder with a store in it, and the command line run on that store."""

    def __init__(self, out: Path) -> None:
        self.out = out
        foreign = sorted({path.name for path in out.glob("*")} - OURS)
        if foreign:
            sys.exit(f"demo: {_name(out)} holds {foreign[0]!r}, which no demo wrote; name a new folder")
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)

    def curate(self, *words: str | Path) -> Result:
        """Print a command, run it, and return its result. Exit code 1 is fine: it found something wrong."""
        command = ["curate", *map(_name, words), "--store", _name(self.out / "store")]
        print(f"\n$ {_wrap(command)}", flush=True)
        program = Path(sys.executable).with_name("curate")
        done = subprocess.run([program, *command[1:], "--json"], capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1) or not done.stdout:
            sys.exit(f"{done.stderr}demo: this command ended with exit code {done.returncode}")
        result: Result = json.loads(done.stdout)
        return result


def main(out: Path) -> None:
    """The whole way, once."""
    demo = Demo(out)
    _title("300 attempts at 100 tasks, by scripted agents that really ran in two small worlds")
    demo.curate("init")
    read = demo.curate("import", *(LOGS / f"{world}.jsonl" for world in WORLDS), "--manifest", LOGS / "side.jsonl")
    _show(
        f"{read['read']} read = {read['accepted']} accepted + {read['duplicates']} duplicates"
        f" + {read['quarantined']} quarantined; {read['tasks']} tasks"
    )

    _title("Are the logged answers the real ones? Every call is executed again")
    replays = [_replay(demo, world) for world in WORLDS]

    _title("What went wrong first, and what is the evidence?")
    diagnosis = demo.curate("diagnose")
    unclear = diagnosis["labels"].pop("undetermined", 0)
    _show(f"{diagnosis['with_finding']} attempts with a finding; {_counts(diagnosis['labels'])}")
    _show(f"{unclear} attempts failed and nothing in the record shows where: undetermined, not guessed")
    _show(f"how they stopped, which is not why: {_counts(diagnosis['stops'])}")

    _title("Corrections that a rule can justify, really executed, twice each")
    repairs = [_repair(demo, world) for world in WORLDS]

    _title("Training rows; what is refused has a reason")
    build = demo.curate("build", "--out", out / "rows")
    for kind, result in build["kinds"].items():
        _show(f"{kind}: {result['rows']} rows from {result['kept']} of {result['candidates']} decisions")
        _show(f"  refused: {_counts(result['refused'])}")

    _title("Keep successes only: what does that do to the tasks?")
    _report(demo, SUCCESSES)
    _title("And the rows that were built?")
    _report(demo, ROWS, "--build", out / "rows")

    _title("Is everything in the store what its name says?")
    checked = demo.curate("fsck")
    _show(f"{checked['checked']} rows read again, {len(checked['bad'])} bad")

    _funnel(demo, read, replays, diagnosis, repairs, build)


def _replay(demo: Demo, world: str) -> Result:
    result = demo.curate("replay", "--environment", world)
    _show(
        f"{result['calls']} calls: {_real(result)} answers confirmed, {result['different']} different,"
        f" {result['unverifiable']} unverifiable, {result['not_run']} not run"
    )
    if result["outcomes_agree"] + result["outcomes_differ"]:
        _show(
            f"the world's own check agrees with {result['outcomes_agree']} logged outcomes, differs from"
            f" {result['outcomes_differ']}"
        )
    return result


def _repair(demo: Demo, world: str) -> Result:
    result = demo.curate("repair", "--environment", world)
    _show(
        f"{result['failures']} wrong decisions: {result['proposed']} corrections proposed,"
        f" {result['executed']} forks executed, {result['verified']} verified"
    )
    _show(f"no fork because: {_counts(result['refused'])}")
    return result


def _report(demo: Demo, name: str, *words: str | Path) -> None:
    strata = ("--by", "difficulty", "--by", "domain", "--by", "language")
    report = demo.curate("report", "selection-bias", *words, *strata, "--out", demo.out / name)
    _show(
        f"kept {report['kept']} of {report['total']} attempts;"
        f" {report['tasks_vanished']} of {report['tasks']} tasks vanish"
    )
    _show(f"{'':12}{'tasks':>7}{'attempts':>10}{'kept':>6}   {'retention':26}share before and after")
    for row in report["strata"][0]["rows"]:
        interval = f"{row['retention']:.1%} [{row['low']:.1%}, {row['high']:.1%}]"
        shares = f"{row['share_before']:.1%} -> {row['share_after']:.1%}"
        _show(f"{row['value']:12}{row['tasks']:>7}{row['attempts']:>10}{row['kept']:>6}   {interval:26}{shares}")


def _funnel(
    demo: Demo, read: Result, replays: list[Result], diagnosis: Result, repairs: list[Result], build: Result
) -> None:
    _title("From attempts to rows")
    lines = [
        ("attempts in the logs", read["accepted"]),
        ("calls in them", _sum(replays, "calls")),
        ("  with an answer that replay confirms", sum(map(_real, replays))),
        ("attempts with a confirmed finding", diagnosis["with_finding"]),
        ("wrong decisions", _sum(repairs, "failures")),
        ("  with a correction that a rule can justify", _sum(repairs, "proposed")),
        ("forks executed: without the mistake, and after it", _sum(repairs, "executed")),
        ("  verified: the same answer and state in two processes", _sum(repairs, "verified")),
    ]
    for kind, result in build["kinds"].items():
        lines.append((f"rows: {kind}", result["rows"]))
        levels = _levels(demo.out / "rows", result["files"])
        lines.extend((f"  confirmed up to the layer {level}", count) for level, count in sorted(levels.items()))
    for label, count in lines:
        _show(f"{label:56}{count:>5}")
    print()
    for kind, result in build["kinds"].items():
        for file in result["files"]:
            _show(f"{kind:14}{_name(demo.out / 'rows' / file)}")
    for name in (SUCCESSES, ROWS):
        _show(f"{'report':14}{_name(demo.out / name)}")
    print(
        "\nThis shows that the rows are soundly built from what really happened: every answer in them\n"
        "is real. Executed is not the same as right; a call at the layer execution is only not known\n"
        "to be wrong. Whether a model learns from them is another experiment, and nothing here says\n"
        "that it does."
    )


def _levels(folder: Path, files: Iterable[str]) -> Counter[str]:
    """How many rows are confirmed up to which layer."""
    return Counter(
        json.loads(line)["level"] for file in files for line in (folder / file).read_text("utf-8").splitlines()
    )


def _real(replay: Result) -> int:
    return int(replay["equal_bytes"] + replay["equal_normalised"] + replay["equal_semantic"])


def _sum(results: Iterable[Result], key: str) -> int:
    return sum(result[key] for result in results)


def _counts(counts: dict[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name} {count}" for name, count in ordered) or "none"


def _title(text: str) -> None:
    print(f"\n{text}\n{'-' * len(text)}")


def _show(text: str) -> None:
    """One line of a result, folded at commas where it is too long."""
    for number, line in enumerate(_fold(text.split(", "), ", ", WIDTH - 8)):
        print(f"  {line}" if number == 0 else f"      {line}")


def _wrap(words: list[str]) -> str:
    pieces: list[str] = []
    for word in words:
        if pieces and pieces[-1].startswith("--") and " " not in pieces[-1]:
            pieces[-1] += f" {word}"
        else:
            pieces.append(word)
    return " \\\n      ".join(_fold(pieces, " ", WIDTH - 10))


def _fold(pieces: list[str], joint: str, width: int) -> list[str]:
    lines = [pieces[0]]
    for piece in pieces[1:]:
        if len(lines[-1]) + len(joint) + len(piece) <= width:
            lines[-1] += joint + piece
        else:
            lines[-1] += joint.rstrip()
            lines.append(piece)
    return lines


def _name(word: str | Path) -> str:
    """A path as it is typed in this folder."""
    if isinstance(word, str):
        return word
    near = os.path.relpath(word)
    return str(word) if near.startswith("..") else near


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("out", "demo"))
