"""What ``--help`` says: every argument and option in words, in a terminal's width, and only what is there."""

from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from curation.cli.main import app
from curation.importers.formats import IMPORTERS
from curation.store.tables import TABLES


def verbs(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, inner in getattr(command, "commands", {}).items():
        yield from verbs(inner, (*path, name))
    if path:
        yield path, command


VERBS = dict(verbs(typer.main.get_command(app)))


def printed(*arguments: str, width: int = 80) -> str:
    done = CliRunner().invoke(app, [*arguments, "--help"], env={"COLUMNS": str(width)})
    assert done.exit_code == 0
    return done.output


@pytest.mark.parametrize("path", VERBS, ids=" ".join)
def test_every_verb_argument_and_option_is_told_in_words(path: tuple[str, ...]) -> None:
    command = VERBS[path]
    text = printed(*path)
    assert command.help
    assert [parameter.name for parameter in command.params if not (parameter.help or "").endswith((".", "]"))] == []
    assert all(option in text for parameter in command.params for option in parameter.opts if option.startswith("-"))
    assert max(map(len, text.splitlines())) <= 80
    assert "[[" not in text
    assert "......" not in text


def test_what_is_listed_is_what_there_is() -> None:
    said = printed("sql")
    assert [table for table in TABLES if table not in said] == []
    assert "`curate formats`" in " ".join(printed("import").split())
    listed = CliRunner().invoke(app, ["formats"]).output
    assert [name for name in IMPORTERS if name not in listed] == []
