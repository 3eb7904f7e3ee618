"""Every command of the README and of the page on environments is run, in order, in one folder; what it prints and how
it ends is as stated there.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = (ROOT / "README.md", ROOT / "docs" / "environments.md")
README, *_ = TEXTS = [page.read_text(encoding="utf-8") for page in PAGES]
EXIT_CODE = "echo $?"


class Step(NamedTuple):
    command: str
    output: str


def blocks(language: str, *texts: str) -> list[str]:
    fenced = re.compile(rf"^```{language}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    return [block for text in texts for block in fenced.findall(text)]


def steps(block: str) -> list[Step]:
    """Commands after ``$ ``, with their lines after ``> ``, and what follows them."""
    found = re.findall(r"^\$ (.*\n(?:>(?: .*)?\n)*)((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
    return [Step(re.sub(r"^> ?", "", command, flags=re.MULTILINE).strip("\n"), output) for command, output in found]


def same(expected: str, printed: str) -> bool:
    """Whether a text was printed; ``...`` stands for anything, and spaces at the end of a line do not count."""
    wanted, got = ("\n".join(map(str.rstrip, text.splitlines())).strip("\n") for text in (expected, printed))
    return re.fullmatch(".*".join(map(re.escape, wanted.split("..."))), got, re.DOTALL) is not None


def test_the_pages_are_true(tmp_path: Path) -> None:
    logs = [f"logs/{name}.jsonl" for name in ("booking", "inventory", "side")]
    for name in ("eight.jsonl", "my_world.py", *logs):
        target = tmp_path / "examples" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / "examples" / name).read_bytes())
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    todo = [step for block in blocks("console", *TEXTS) for step in steps(block)]
    status = 0
    for step, following in zip(todo, [*todo[1:], Step("", "")], strict=True):
        done = subprocess.run(
            ["sh", "-c", f"(exit {status})\n{step.command}"],
            cwd=tmp_path,
            env={"PATH": path, "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
        )
        status = done.returncode
        assert same(step.output, done.stdout), f"$ {step.command}\n{done.stdout}"
        assert status == 0 or following.command == EXIT_CODE, f"$ {step.command}\nexit code {status}\n{done.stdout}"
    assert len(todo) > 20


def test_set_up_commands_are_jobs_of_run_sh() -> None:
    listed = [line.split("#")[0].split() for block in blocks("sh", README) for line in block.splitlines()]
    usage = subprocess.run(["sh", ROOT / "run.sh"], capture_output=True, text=True).stdout
    assert listed
    assert [words for words in listed if words[0] != "./run.sh" or f"./run.sh {words[1]} " not in usage] == []


def test_code_is_quoted_from_the_examples() -> None:
    example = (ROOT / "examples" / "my_world.py").read_text(encoding="utf-8")
    assert [block for block in blocks("python", README) if block not in example] == []
    assert blocks("python", README)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_is_linked_is_there(page: Path) -> None:
    links = re.findall(r"\]\((?!\w+://)([^)#]*)#?([^)]*)\)", page.read_text(encoding="utf-8"))
    assert links
    for target, heading in links:
        linked = page.parent / target if target else page
        assert linked.exists(), target
        assert not heading or heading in headings(linked), f"{target}#{heading}"


def headings(page: Path) -> list[str]:
    """The names under which the headings of a page are linked."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return [re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles]


@pytest.mark.parametrize(
    ("expected", "printed", "holds"),
    [
        ("a  1\n...\n", "a  1   \nb  2\n", True),
        ("a  1\n", "a  2\n", False),
        ("...\nb\n...\n", "a\nb\nc\n", True),
        ("...\nb\n...\n", "a\nc\n", False),
    ],
)
def test_output_is_compared(expected: str, printed: str, holds: bool) -> None:
    assert same(expected, printed) is holds
