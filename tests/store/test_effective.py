"""Which statement holds: rank of authors, conflicts, supersession."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from curation.store import Store
from curation.store.supersede import superseding
from schemas.statements import Annotation, Finding, Result, Statement, Value, Verification
from schemas.trajectory import Author, AuthorKind
from tests.store.stores import attempt, put

OUTCOMES: list[AuthorKind] = ["human", "environment", "log", "side_file", "rule"]
FACTS: list[AuthorKind] = ["human", "side_file", "log", "rule"]
ADVICE: list[AuthorKind] = ["model", "sibling", "self_report"]


def say(store: Store, *statements: Statement) -> list[str]:
    """Write statements so that they hold."""
    news = superseding(store, statements)
    with store.batch() as batch:
        ids = [batch.add_statement(statement) for statement in news]
        store.write(batch)
    return ids


def one(folder: Path) -> tuple[Store, str]:
    """A store with one attempt."""
    store = Store.create(str(folder / "store"))
    return store, put(store, attempt(1))[0]


def outcome(store: Store) -> tuple[str, str | None]:
    """Outcome of the one attempt, and who says so."""
    (row,) = store.sql("SELECT outcome, outcome_by FROM attempts").to_pylist()
    return row["outcome"], row["outcome_by"]


def fact(store: Store, field: str) -> list[str | None]:
    """What holds for a field."""
    values: list[str | None] = store.sql("SELECT value FROM effective_annotations WHERE field = ?", [field])[
        "value"
    ].to_pylist()
    return values


def checked(record: str, result: Result, kind: AuthorKind, name: str = "") -> Verification:
    """A task-layer check."""
    return Verification(record, "task", result, Author(kind, name))


def stated(record: str, value: Value, kind: AuthorKind, name: str = "", field: str = "split") -> Annotation:
    """A fact."""
    return Annotation(record, field, value, Author(kind, name))


@pytest.mark.parametrize(("higher", "lower"), list(pairwise(OUTCOMES)))
def test_outcomes_rank_by_author(tmp_path: Path, higher: AuthorKind, lower: AuthorKind) -> None:
    store, record = one(tmp_path)
    say(store, checked(record, "failed", lower))
    assert outcome(store) == ("failure", lower)
    say(store, checked(record, "passed", higher))
    assert outcome(store) == ("success", higher)
    say(store, checked(record, "partial", lower, "late"))
    assert outcome(store) == ("success", higher)


@pytest.mark.parametrize(("higher", "lower"), list(pairwise(FACTS)))
def test_facts_rank_by_author(tmp_path: Path, higher: AuthorKind, lower: AuthorKind) -> None:
    store, record = one(tmp_path)
    say(store, stated(record, "first", lower))
    say(store, stated(record, "second", higher))
    say(store, stated(record, "third", lower, "late"))
    assert fact(store, "split") == ["second"]


@pytest.mark.parametrize("kind", ADVICE)
def test_a_models_own_word_never_holds(tmp_path: Path, kind: AuthorKind) -> None:
    store, record = one(tmp_path)
    say(store, checked(record, "passed", kind), stated(record, "train", kind))
    say(store, Finding(record, 1, "argument", Author(kind)))
    assert outcome(store) == ("unknown", None)
    assert fact(store, "split") == []
    assert store.sql("SELECT * FROM effective_findings").num_rows == 0


def test_a_conflict_within_one_kind_is_unknown(tmp_path: Path) -> None:
    store, record = one(tmp_path)
    say(store, checked(record, "passed", "human", "one"), stated(record, "train", "human", "one"))
    say(store, checked(record, "failed", "human", "two"), stated(record, "test", "human", "two"))
    say(store, checked(record, "passed", "log"), stated(record, "train", "log"))
    assert outcome(store) == ("unknown", None)
    assert fact(store, "split") == []
    say(store, checked(record, "passed", "human", "two"), stated(record, "train", "human", "two"))
    assert outcome(store) == ("success", "human")
    assert fact(store, "split") == ["train"]


@pytest.mark.parametrize(("higher", "lower"), list(pairwise(OUTCOMES)))
def test_who_does_not_know_hides_nothing_of_what_another_knows(
    tmp_path: Path, higher: AuthorKind, lower: AuthorKind
) -> None:
    store, record = one(tmp_path)
    say(store, checked(record, "unknown", higher))
    assert outcome(store) == ("unknown", higher)
    say(store, checked(record, "partial", lower))
    assert outcome(store) == ("partial", lower)
    say(store, checked(record, "partial", higher))
    assert outcome(store) == ("partial", higher), "a partial result is known"


def test_two_who_know_otherwise_stay_unknown_beside_one_who_does_not_know(tmp_path: Path) -> None:
    store, record = one(tmp_path)
    say(store, *(checked(record, result, "human", result) for result in ("passed", "unknown")))
    assert outcome(store) == ("success", "human")
    say(store, checked(record, "failed", "human", "failed"), checked(record, "passed", "log"))
    assert outcome(store) == ("unknown", None)


def test_an_unknown_stop_hides_none_that_is_known(tmp_path: Path) -> None:
    store, record = one(tmp_path)
    say(store, stated(record, "unknown", "side_file", field="stop"))
    assert fact(store, "stop") == ["unknown"]
    say(store, stated(record, "timeout", "log", field="stop"))
    assert fact(store, "stop") == ["timeout"]


def test_a_later_word_of_the_same_author_supersedes_and_the_first_stays_readable(tmp_path: Path) -> None:
    store, record = one(tmp_path)
    (first,) = say(store, stated(record, "a", "rule", "r"))
    say(store, stated(record, "b", "rule", "r"))
    say(store, stated(record, "a", "rule", "r"))
    assert fact(store, "split") == ["a"]
    assert say(store, stated(record, "a", "rule", "r")) == [], "what holds is not said again"
    values = store.sql("SELECT value FROM annotations WHERE field = 'split'")["value"].to_pylist()
    assert sorted(values) == ["a", "a", "b"]
    assert store.sql("SELECT value FROM annotations WHERE id = ?", [first])["value"].to_pylist() == ["a"]


def test_what_somebody_else_withdrew_holds_when_it_is_said_again(tmp_path: Path) -> None:
    store, record = one(tmp_path)
    passed = checked(record, "passed", "environment", "desk")
    for _ in range(3):
        (said,) = say(store, passed)
        assert outcome(store) == ("success", "environment")
        with store.batch() as batch:
            batch.add_statement(Verification(record, "task", "unknown", Author("rule", "doubt"), supersedes=(said,)))
            store.write(batch)
        assert outcome(store) == ("unknown", "rule")
    assert say(store, checked(record, "failed", "human")) != []
    assert say(store, passed) != [], "it was withdrawn last"
    assert say(store, passed) == []


def test_a_rule_can_take_findings_back(tmp_path: Path) -> None:
    store, record = one(tmp_path)
    author = Author("rule", "diagnosis", "1")
    say(store, Finding(record, 1, "argument", author), Finding(record, 1, "format", author))
    later = Author("rule", "diagnosis", "2")
    say(store, Finding(record, 1, "undetermined", later))
    labels = store.sql("SELECT label FROM effective_findings")["label"].to_pylist()
    assert labels == ["undetermined"]


@pytest.mark.parametrize(
    ("results", "expected"),
    [(["unknown"], "unknown"), (["partial"], "partial"), (["not_applicable"], "unknown"), ([], "unknown")],
)
def test_unknown_is_never_failure(tmp_path: Path, results: Sequence[Result], expected: str) -> None:
    store, record = one(tmp_path)
    say(store, *(checked(record, result, "log") for result in results))
    assert outcome(store)[0] == expected


def test_what_is_said_of_nothing_in_the_store_holds_nowhere(tmp_path: Path) -> None:
    store, _ = one(tmp_path)
    say(store, stated("0" * 64, "train", "human"), checked("0" * 64, "passed", "human"))
    assert fact(store, "split") == []
    assert outcome(store) == ("unknown", None)
    assert store.sql("SELECT count(*) AS n FROM annotations")["n"].to_pylist() == [1]
