"""``run.sh`` sets up once, with uv or without, and starts over where it was interrupted."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ("sh", "cat", "cksum", "cp", "dirname", "mkdir", "rm", "sed")
# What stands in for uv and python3 notes its words, makes a .venv, and dies where it is told to.
STAND_IN = """#!/bin/sh
echo "$(basename "$0") $*" >> "$LOG"
case "$*" in *"$DIES"*) exit 9 ;; esac
case "$*" in "venv "*|"-m venv "*) mkdir -p .venv/bin; cp "$0" .venv/bin/python ;; esac
"""


class Machine:
    """A copy of the project's set-up files, on a machine that has nothing else but what is named."""

    def __init__(self, folder: Path, *programs: str) -> None:
        self.folder, self.log = folder / "project", folder / "log"
        self.folder.mkdir()
        self.programs = folder / "bin"
        self.programs.mkdir()
        for name in ("run.sh", "requirements.lock", "pyproject.toml"):
            shutil.copy(ROOT / name, self.folder)
        for tool in (*TOOLS, "basename"):
            (self.programs / tool).symlink_to(str(shutil.which(tool)))
        for program in programs:
            (self.programs / program).write_text(STAND_IN)
            (self.programs / program).chmod(0o755)

    def set_up(self, dies: str = "never") -> tuple[int, list[str]]:
        """The exit code of a set-up, and the commands that it ran."""
        self.log.write_text("")
        environment = {"PATH": str(self.programs), "LOG": str(self.log), "DIES": dies}
        done = subprocess.run(["./run.sh", "setup"], cwd=self.folder, env=environment, capture_output=True, check=False)
        return done.returncode, self.log.read_text().splitlines()

    @property
    def ready(self) -> bool:
        """Whether the set-up is marked as finished."""
        return (self.folder / ".venv" / "ready").exists()


@pytest.mark.parametrize(("programs", "steps"), [(("uv", "python3"), "uv"), (("python3",), "python")])
def test_it_sets_up_once_from_the_lock(programs: tuple[str, ...], steps: str, tmp_path: Path) -> None:
    machine = Machine(tmp_path, *programs)
    code, ran = machine.set_up()
    assert (code, machine.ready) == (0, True)
    assert any(line.startswith(steps) and "--require-hashes" in line and "requirements.lock" in line for line in ran)
    assert ("uv" in programs) == any(line.startswith("uv ") for line in ran)
    assert machine.set_up() == (0, [])
    with (machine.folder / "requirements.lock").open("a") as lock:
        lock.write("# changed\n")
    assert machine.set_up() == (0, ran)


@pytest.mark.parametrize("programs", [("uv",), ("python3",)])
@pytest.mark.parametrize("dies", ["--require-hashes", "--editable"])
def test_an_interrupted_set_up_starts_over(programs: tuple[str, ...], dies: str, tmp_path: Path) -> None:
    machine = Machine(tmp_path, *programs)
    code, ran = machine.set_up(dies)
    assert (code != 0, machine.ready) == (True, False)
    assert dies in ran[-1]
    (machine.folder / ".venv" / "half").touch()
    code, again = machine.set_up()
    assert (code, machine.ready) == (0, True)
    assert again[: len(ran)] == ran
    assert not (machine.folder / ".venv" / "half").exists()


def test_without_python_it_says_what_it_needs(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    done = subprocess.run(
        ["./run.sh", "setup"], cwd=machine.folder, env={"PATH": str(machine.programs)}, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "needs Python 3.11 or newer" in done.stderr


def test_what_ci_runs_is_the_test_job() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert script[-1] == "exec ./run.sh test"
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
