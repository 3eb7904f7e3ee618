"""What is said of a format is so: its logs show what it records, what a rule infers, and that the rest is not there."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from msgspec import UNSET

from curation.errors import UsageError
from curation.format_facts import RECORDED, ROWS, SIDE_FILE, STOPS, UNKNOWN, page
from curation.importers import formats
from curation.importers.face import Parsed
from schemas.statements import Stop
from tests.importers.fullest import read_fullest

ROOT = Path(__file__).resolve().parents[2]
UNTELLABLE = {"model", "usage", "reasoning", "branch"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Parsed]]:
    return read_fullest(tmp_path_factory.mktemp("fullest"))


@pytest.fixture(scope="module")
def real(logs: Path) -> dict[str, list[Parsed]]:
    found: dict[str, list[Parsed]] = defaultdict(list)
    for path in sorted(file for file in logs.rglob("*") if file.is_file()):
        try:
            importer, _ = formats.detect(path)
        except UsageError:
            continue
        found[importer.name] += [item for item in importer.read(path) if isinstance(item, Parsed)]
    return found


def told(parsed: Parsed) -> Iterator[tuple[str, str]]:
    """The facts of an attempt that are known, each with where it comes from."""
    record = parsed.trajectory
    conditions = record.conditions
    held = {
        "task": record.task.id,
        "tools": conditions.tools,
        "budget": conditions.budget,
        "start_state": conditions.environment or (None if record.task.parameters is UNSET else "parameters"),
        "attempt": record.attempt,
        "model": conditions.model,
        "usage": record.usage,
        "reasoning": next((message.reasoning for message in record.messages if message.reasoning), None),
    }
    yield from ((name, RECORDED) for name, value in held.items() if value is not None)
    for fact in parsed.facts:
        name = {"environment": "start_state", "branched_from": "branch"}.get(fact.field, fact.field.partition(".")[0])
        if name in ROWS:
            yield name, f"rule {fact.rule}" if fact.by == "rule" else RECORDED


def check(name: str, attempts: list[Parsed]) -> set[tuple[str, str]]:
    """All that these attempts tell, none of which is said to be told by nobody or by a side file alone."""
    found = {pair for parsed in attempts for pair in told(parsed)}
    assert {fact for fact, _ in found if formats.FILLS[name][fact] in (SIDE_FILE, UNKNOWN)} == set()
    return found


@pytest.mark.parametrize("name", sorted(formats.IMPORTERS))
def test_a_format_tells_what_is_said_of_it(made: dict[str, list[Parsed]], name: str) -> None:
    said = {(fact, source) for fact, source in formats.FILLS[name].items() if source not in (SIDE_FILE, UNKNOWN)}
    assert made[name]
    assert said - check(name, made[name]) == set()


@pytest.mark.parametrize("name", sorted(formats.IMPORTERS))
def test_real_logs_tell_nothing_that_is_said_to_be_missing(real: dict[str, list[Parsed]], name: str) -> None:
    found = check(name, real[name])
    inferred = {(fact, source) for fact, source in formats.FILLS[name].items() if source.startswith("rule ")}
    assert not real[name] or found & inferred or not inferred


def test_every_fact_of_every_format_is_said() -> None:
    assert {name: list(fills) for name, fills in formats.FILLS.items()} == {
        name: list(ROWS) for name in formats.IMPORTERS
    }
    for fills in formats.FILLS.values():
        assert {fact for fact in UNTELLABLE if fills[fact] == SIDE_FILE} == set()
        assert {fact for fact in ROWS if fills[fact] == UNKNOWN} <= UNTELLABLE
        assert {source for source in fills.values() if "@" not in source} <= {RECORDED, SIDE_FILE, UNKNOWN}


def test_every_word_for_an_end_is_explained() -> None:
    assert tuple(STOPS) == get_args(Stop)


def test_the_page_is_what_the_importers_say() -> None:
    stored = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    assert stored == page(), "run: python -m curation.format_facts > docs/formats.md"


def test_the_readme_names_every_format() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [name for name in formats.IMPORTERS if f"`{name}`" not in readme] == []
