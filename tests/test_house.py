"""The house keeps its rules: what ruff, mypy and import-linter do not see."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from curation.cli.main import app

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("builders", "curation", "environments", "reports", "schemas")
EDGES = ("curation/cli/", "examples/", "benchmarks/")
HEAVY = ("datasets", "deltalake", "duckdb", "huggingface_hub", "pandas", "polars", "pyarrow", "altair", "vl_convert")

OUTSIDE = {"sys.argv", "os.environ", "os.getenv", "time.time", "time.time_ns", "time.monotonic", "time.perf_counter"}
OUTSIDE |= {"datetime.now", "datetime.utcnow", "datetime.today", "date.today"}
DEADLINES = {("environments/process.py", "time.monotonic"), ("environments/wire.py", "time.monotonic")}
CONTROLS = {("environments/clock.py", "datetime.now")}  # a world may be asked for on the wall clock
UNSAFE = {"eval", "exec", "compile", "os.system", "os.popen"}
UNSAFE_MODULES = {"pickle", "marshal", "shelve", "dill", "cloudpickle"}


def sources(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def place(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def nodes(path: Path) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(path.read_text(encoding="utf-8")))


def dotted(node: ast.AST) -> str:
    """The last two parts of a name: ``datetime.now`` also for ``datetime.datetime.now``."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=ast.Name(id=owner) | ast.Attribute(attr=owner), attr=name):
            return f"{owner}.{name}"
        case _:
            return ""


def names(path: Path) -> set[str]:
    """What a module names or imports, by its last two parts."""
    found = {dotted(node) for node in nodes(path)}
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def imported(path: Path) -> set[str]:
    found: set[str] = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found


def run(*command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(folder)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(
    ("called", "expected"),
    [
        ("import sys; sys.argv", "sys.argv"),
        ("import datetime; datetime.datetime.now()", "datetime.now"),
        ("from os import environ", "os.environ"),
        ("eval('1')", "eval"),
    ],
)
def test_names_are_seen(called: str, expected: str, tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(called)
    assert expected in names(module) & (OUTSIDE | UNSAFE)


def test_a_module_fits_in_400_lines() -> None:
    long = {place(path): lines for path in sources(*PACKAGES, "examples", "benchmarks") if (lines := count(path)) > 400}
    assert long == {}


def count(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def test_every_folder_of_a_package_is_a_package() -> None:
    folders = {path.parent for path in sources(*PACKAGES)}
    assert [place(folder) for folder in sorted(folders) if not (folder / "__init__.py").exists()] == []
    assert [name for name in PACKAGES if not (ROOT / name / "py.typed").exists()] == []


def test_no_name_catches_all() -> None:
    banned = {"utils", "util", "common", "helpers", "helper", "misc", "manager", "core", "base"}
    named = {part for path in sources(*PACKAGES) for part in path.relative_to(ROOT).with_suffix("").parts}
    assert named & banned == set()


def test_only_the_edges_print() -> None:
    printing = {place(path) for path in sources(*PACKAGES) if "print" in names(path)}
    assert {name for name in printing if not name.startswith(EDGES)} == set()


def test_only_the_command_line_reads_arguments_environment_and_clock() -> None:
    reading = {(place(path), name) for path in sources(*PACKAGES) for name in names(path) & OUTSIDE}
    assert {item for item in reading if not item[0].startswith(EDGES)} == DEADLINES | CONTROLS


def test_nothing_runs_text_or_unpickles() -> None:
    code = sources(*PACKAGES, "examples", "benchmarks", "tests")
    assert {place(path): found for path in code if (found := imported(path) & UNSAFE_MODULES)} == {}
    called = {
        (place(path), dotted(node.func))
        for path in code
        for node in nodes(path)
        if isinstance(node, ast.Call) and (dotted(node.func) in UNSAFE or any(k.arg == "shell" for k in node.keywords))
    }
    assert called == set()


def test_no_pattern_repeats_a_group_possessively() -> None:
    broken = re.compile(r"\)(?:[*+?]|\{[\d,]+\})\+|\(\?>")  # matches too little before Python 3.11.5
    found = {
        (place(path), node.value)
        for path in sources(*PACKAGES, "examples", "benchmarks")
        for node in nodes(path)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and broken.search(node.value)
    }
    assert found == set()


def test_the_lock_is_pinned_with_hashes_and_without_addresses() -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert "://" not in lock
    pins = re.findall(r"^([\w.-]+)==.*(?:\\\n +--hash=sha256:[0-9a-f]{64} ?)+", lock, re.MULTILINE)
    assert len(pins) == len(re.findall(r"^\w", lock, re.MULTILINE))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    direct = [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]
    assert {re.split(r"[<>=;[]", name)[0].replace("_", "-") for name in direct} <= set(pins)


def test_no_file_names_a_place_on_a_machine() -> None:
    folders = (*PACKAGES, "tests", "examples", "benchmarks", "docs", ".ci")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]
    files += [path for path in ROOT.iterdir() if path.is_file() and path.name != ".git"]
    places = re.compile(rb"/(?:home|Users|root)/\w|" + re.escape(f"{ROOT}/".encode()))
    named = {place(path) for path in files if "__pycache__" not in path.parts and places.search(path.read_bytes())}
    assert named == set()


def verbs() -> dict[str, Any]:
    """Every verb by the words that call it."""
    found: dict[str, Any] = {}
    for name, command in typer.main.get_group(app).commands.items():
        inner = getattr(command, "commands", None)
        found |= {f"{name} {sub}": item for sub, item in inner.items()} if inner else {name: command}
    return found


@pytest.mark.parametrize("verb", sorted(verbs()))
def test_a_verb_is_explained_and_in_the_readme(verb: str) -> None:
    command = verbs()[verb]
    assert command.help
    silent = [p.name for p in command.params if not getattr(p, "help", None)]
    assert silent == []
    assert f"curate {verb}" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_help_imports_nothing_heavy(tmp_path: Path) -> None:
    program = f"""
import sys
sys.argv = ["curate", "--help"]
from curation.cli.main import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print("heavy:", sorted(set({HEAVY}) & set(sys.modules)))
"""
    done = run(sys.executable, "-c", program, folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("heavy: []\n")


def test_importing_does_nothing(tmp_path: Path) -> None:
    program = f"""
import importlib, pkgutil, threading
for name in {PACKAGES}:
    package = importlib.import_module(name)
    for module in pkgutil.walk_packages(package.__path__, name + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
print(threading.active_count())
"""
    done = run(sys.executable, "-c", program, folder=tmp_path)
    assert (done.stdout, done.stderr) == ("1\n", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["builders", "environments", "reports", "schemas"])
def test_a_foreign_package_under_our_name_is_named(name: str, tmp_path: Path) -> None:
    foreign = tmp_path / f"{name}.py"
    foreign.touch()
    shadowed = run(sys.executable, "-c", "import curation", folder=tmp_path)
    assert shadowed.returncode == 1
    last = shadowed.stderr.splitlines()[-1]
    assert last.startswith(f"ImportError: curation comes with its own package {name!r}, but Python finds")
    assert str(foreign) in last
    assert run(sys.executable, "-P", "-c", "import curation", folder=tmp_path).returncode == 0


def test_run_sh_without_a_job_says_what_it_can_do(tmp_path: Path) -> None:
    done = run("sh", str(ROOT / "run.sh"), folder=tmp_path)
    assert done.returncode == 2
    for job in ("demo", "test", "setup", "lock"):
        assert f"./run.sh {job}" in done.stdout
