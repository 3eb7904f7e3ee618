"""Whatever is done to a store, in whatever order: records stay, counts add up."""

import json
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from builders.build import build
from curation.annotate import annotate
from curation.errors import UsageError
from curation.jobs.diagnosing import diagnose_attempts
from curation.jobs.repairing import repair_attempts
from curation.jobs.replaying import replay_attempts
from curation.store import Store
from curation.store.fsck import check
from schemas.canonical import digest
from schemas.statements import Annotation, Verification
from schemas.trajectory import Author
from tests.ingest.logs import attempts, import_lines, new_store, records, run, said, write
from tests.store.stores import fork_of

RUNS = st.sampled_from(["a", "b", None])
SKUS = st.sampled_from(["A17", "A18"])
OUTCOMES = st.sampled_from([None, True, False, "partial", "unknown"])


class Life(RuleBasedStateMachine):
    """A store under every public call that writes."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name)
        self.store = new_store(self.path)
        self.known: dict[str, str] = {}
        self.forks: dict[str, str] = {}
        self.tries = 0

    @rule(
        lines=st.lists(st.tuples(RUNS, SKUS, OUTCOMES), min_size=1, max_size=3),
        junk=st.booleans(),
        revise=st.booleans(),
        again=st.booleans(),
        number=st.booleans(),
    )
    def read(
        self, lines: list[tuple[str | None, str, object]], junk: bool, revise: bool, again: bool, number: bool
    ) -> None:
        """Import lines, one way or another."""
        logged = [run(name, sku, outcome=outcome) for name, sku, outcome in lines]
        before = len(attempts(self.store))
        # A revision that would take a record from another line is refused, and nothing is written.
        with suppress(UsageError):
            result = import_lines(
                self.store,
                self.path,
                [*logged, b"{", b""] if junk else logged,
                revise=revise,
                run_name="again" if again else None,
                number=number,
            )
            assert result.read == len(lines) + junk
            before += result.accepted
        assert len(attempts(self.store)) <= before

    @rule(name=st.sampled_from(["a", "b", "x"]), outcome=OUTCOMES, level=st.integers(0, 2))
    def annotate(self, name: str, outcome: object, level: int) -> None:
        """Say something of a run in a side file."""
        side = write(self.path / "side.jsonl", [{"key": name, "outcome": outcome, "strata": {"level": level}}])
        before = len(attempts(self.store))
        runs = [row["run"] for row in attempts(self.store)]
        if {name, f"again/{name}"}.issubset(runs):
            with pytest.raises(UsageError, match="2 attempts"):
                annotate(self.store, said(side))
        else:
            result = annotate(self.store, said(side))
            assert result.matched + result.unmatched == result.lines == 1
        assert len(attempts(self.store)) == before

    @rule(
        result=st.sampled_from(["passed", "failed", "unknown"]), kind=st.sampled_from(["human", "environment", "rule"])
    )
    def state(self, result: str, kind: str) -> None:
        """Let somebody say something of every record, and fork it."""
        before = len(attempts(self.store))
        with self.store.batch() as batch:
            for record in self.known:
                author = Author(kind, "someone")  # type: ignore[arg-type]
                batch.add_statement(Verification(record, "task", result, author))  # type: ignore[arg-type]
                batch.add_statement(Annotation(record, "group", result, author))
                batch.add_trajectory(fork_of(record))
            self.store.write(batch)
        assert len(attempts(self.store)) == before

    @precondition(lambda self: self.known)
    @rule(verb=st.sampled_from(["replay", "diagnose", "repair", "build"]))
    def work(self, verb: str) -> None:
        """Do what is done with attempts that are there; only a repair adds records, and only forks."""
        before, tries = records(self.store), attempts(self.store)
        match verb:
            case "replay":
                replay_attempts(self.store, "inventory")
            case "diagnose":
                diagnose_attempts(self.store)
            case "repair":
                diagnose_attempts(self.store)
                repair_attempts(self.store, "inventory")
            case "build":
                build(self.store, None, self.path / "rows")
        added = {identity: record for identity, record in records(self.store).items() if identity not in before}
        assert not added or verb == "repair"
        assert all('"fork"' in record for record in added.values())
        assert [row["attempt_id"] for row in attempts(self.store)] == [row["attempt_id"] for row in tries]

    @invariant()
    def stored_records_stay(self) -> None:
        """Every record that was ever stored is there, with the bytes that its id names."""
        now = records(self.store)
        assert self.known.items() | self.forks.items() <= now.items()
        assert all(digest(record.encode()) == identity for identity, record in now.items())
        self.known = {identity: record for identity, record in now.items() if '"fork"' not in record}
        self.forks = {identity: record for identity, record in now.items() if identity not in self.known}

    @invariant()
    def attempts_never_vanish(self) -> None:
        """One live record an attempt, and denominators that never fall."""
        live = [row["attempt_id"] for row in attempts(self.store)]
        assert len(live) == len(set(live)) >= self.tries
        self.tries = len(live)

    def teardown(self) -> None:
        """The store is sound, and gone."""
        assert check(self.store.uri).problems == []
        self.folder.cleanup()


def test_no_sequence_of_calls_changes_a_record_or_loses_an_attempt() -> None:
    run_state_machine_as_test(
        Life,
        settings=settings(
            max_examples=6, stateful_step_count=6, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )


@st.composite
def broken(draw: st.DrawFn) -> bytes:
    """A log line that was cut, doubled, filled or changed somewhere."""
    line = json.dumps(run(draw(st.sampled_from("abc")), outcome=draw(st.sampled_from([None, True, False])))).encode()
    at = draw(st.integers(0, len(line) - 1))
    match draw(st.sampled_from(["whole", "cut", "junk", "byte", "doubled"])):
        case "cut":
            return line[:at]
        case "junk":
            return line + draw(st.binary(max_size=5)).replace(b"\n", b"")
        case "byte":
            changed = bytearray(line)
            changed[at] = draw(st.sampled_from([0, 9, 34, 48, 92, 125, 255]))
            return bytes(changed)
        case "doubled":
            return line[:at] + line
        case _:
            return line


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(lines=st.lists(broken(), min_size=1, max_size=12))
def test_whatever_a_log_holds_every_line_is_accepted_known_or_quarantined(lines: list[bytes]) -> None:
    whole = json.dumps(run("first")).encode()
    with tempfile.TemporaryDirectory() as folder:
        store = new_store(Path(folder))
        result = import_lines(store, Path(folder), [whole, *lines])
        assert result.read == 1 + sum(1 for line in lines if line.strip())
        sightings = store.sql("SELECT trajectory, code FROM sightings").to_pylist()
        assert len(sightings) == result.read
        assert all((row["trajectory"] is None) != (row["code"] is None) for row in sightings)
        assert len(attempts(store)) == result.accepted == len(records(store))
        assert check(store.uri).problems == []
        assert import_lines(Store.open(store.uri), Path(folder), [whole, *lines]).accepted == 0
