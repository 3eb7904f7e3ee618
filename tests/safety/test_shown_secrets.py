"""What a person is shown of a store holds no secret that tells itself; who asks for what is stored gets it."""

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from curation.cli.main import main
from curation.masking import masked, masked_start
from curation.secrets import Secret
from tests.eight import say
from tests.ingest.logs import write

KEY = "ghp_" + "4f9a1c7be0d25386aa17c4f2b98e60d3Ab12"
SHOWN = Secret("github_token", KEY).shown


def line(run: str, **more: Any) -> dict[str, Any]:
    return {"id": run, "run": run, "messages": [{"role": "user", "content": "hi"}, say("No.")], **more}


def curate(*arguments: str, code: int = 0) -> str:
    """All that a command prints, with the exit code it must have."""
    out, found = io.StringIO(), 0
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(out):
        patch.setattr("sys.argv", ["curate", *arguments])
        try:
            main()
        except SystemExit as end:
            found = int(end.code or 0)
    assert found == code, out.getvalue()
    return out.getvalue()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    curate("init")
    long = "x" * 140 + f" {KEY} is it"
    lines = [
        line(KEY, strata={"s": KEY}, task_id=KEY),
        line("b", messages=[{"role": "user", "content": long}, say("No.")]),
        line("c", stop=KEY),
    ]
    write(tmp_path / "log.jsonl", lines)
    return tmp_path


def test_every_verb_prints_the_placeholder_and_the_two_that_are_asked_for_what_is_stored_the_key(folder: Path) -> None:
    read = curate("import", "log.jsonl", "--json", code=1)
    (why,) = [item["detail"] for item in json.loads(read)["quarantine"]]
    assert SHOWN in why
    ids = json.loads(curate("sql", "SELECT trajectory_id AS id FROM attempts ORDER BY run", "--json"))["rows"]
    names = [row["id"] for row in ids]
    said = [read, curate("import", "log.jsonl", code=1), curate("show"), curate("doctor"), curate("fsck")]
    for form in ([], ["--json"]):
        said += [curate("show", *form), curate("diff", *names, *form), curate("report", "selection-bias", *form)]
        said += [curate("show", name, *form) for name in names]
    for ending in (".html", ".md", ".json"):
        curate("report", "selection-bias", "--by", "s", "--out", f"r{ending}")
        said.append((folder / f"r{ending}").read_text(encoding="utf-8"))
    assert not [text for text in said if KEY[:12] in text]
    assert sum("secret:github" in text for text in said) >= len(said) - 4, "all but doctor and fsck tell of it"
    stored = "SELECT run FROM attempts"
    assert KEY in curate("show", "--raw", "--json")
    assert KEY in curate("sql", stored, "--json")
    assert KEY not in curate("sql", "SELECT detail FROM sightings", "--json"), "a refusal is stored without it"


def test_a_refused_command_quotes_the_placeholder(folder: Path) -> None:
    curate("import", "log.jsonl", code=1)
    write(folder / "side.jsonl", [{"key": "b", "stop": KEY}])
    for command in (["annotate", "side.jsonl"], ["show", KEY + "0"], ["annotate", f"{KEY}.jsonl"]):
        words = curate(*command, code=2)
        assert KEY not in words
        assert "<secret:" in words


def test_a_cut_never_leaves_the_start_of_a_secret() -> None:
    text = "y" * 20 + f" {KEY} z"
    assert [masked_start(text, at) for at in (10, 30)] == ["y" * 10, ("y" * 20 + f" {SHOWN}")[:30]]


def test_what_holds_no_secret_stays_the_same_object() -> None:
    value = {"a": ["token of thanks", ("b", 1)], "key": None}
    assert masked(value) is value
    assert json.dumps(masked({"a": ("b", [KEY])})) == json.dumps({"a": ("b", [SHOWN])})


def test_a_name_that_is_no_text_is_shown() -> None:
    assert masked({"file": "\udcff", "api_key": KEY}) == {"file": "?", "api_key": SHOWN}
