"""What every test may ask for."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

from tests.eight import lines

settings.register_profile("house", deadline=None)  # how long an example takes is the machine's matter
settings.load_profile("house")

SHARED = Path(__file__).parents[2] / "shared"


def beside(name: str) -> Path:
    """A path in the folder of shared data beside this project: skips where it is absent, fails there under CI."""
    path = SHARED / name
    if not path.exists():
        reason = f"no shared/{name} beside the project's folder"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return path


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show the tables that tests record, whoever ran them."""
    for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed"):
        for name, text in report.user_properties:
            if name == "table" and report.when == "call":
                terminalreporter.section(report.nodeid.rpartition("::")[2])
                terminalreporter.write_line(str(text))


@pytest.fixture(scope="session")
def logs() -> Path:
    """The folder of real logs."""
    return beside("logs")


@pytest.fixture(scope="session")
def shared_eight() -> Path:
    """The file that ``tests.eight`` is a copy of."""
    return beside("eight.jsonl")


@pytest.fixture
def eight(tmp_path: Path) -> Path:
    """The eight records as a log file."""
    path = tmp_path / "eight.jsonl"
    path.write_bytes(lines())
    return path
