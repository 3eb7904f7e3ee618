"""A store filled by hand: attempts and forks of a stock desk, with what is said of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from builders.build import BuildResult, build
from curation.store import Store
from schemas.canonical import digest
from schemas.digests import attempt_id
from schemas.objects import tools_object
from schemas.selection import Kind
from schemas.statements import Annotation, Execution, Finding, Label, Match, Result, Statement, Verification
from schemas.trajectory import (
    Attempt,
    Author,
    Budget,
    Conditions,
    Correction,
    Fork,
    ForkKind,
    Reads,
    Restore,
    Task,
    Trajectory,
    answers_of,
    text_of,
)
from tests.eight import TOOLS
from tests.records import Call, record

ENVIRONMENT = Author("environment", "inventory@1")
RULE = Author("rule", "test", "1")
PERSON = Author("human", "Ada")
SIDE_FILE = Author("side_file", "side.jsonl")

Turn = str | Call | list[Call] | dict[str, Any]


class Desk:
    """Adds records to a store of its own and builds from it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = Store.create(str(folder / "store"))
        self.out = folder / "out"
        self.records: dict[str, Trajectory] = {}
        self._batch = self.store.batch()

    def attempt(
        self,
        *turns: Any,
        run: str = "a",
        task: str | None = "stock",
        tools: list[Any] | None = TOOLS,
        budget: Budget | None = Budget(steps=8),  # noqa: B008 - a frozen record
        confirm: bool = True,
        outcome: Result | None = None,
        **conditions: Any,
    ) -> str:
        """An attempt, by default with every answer confirmed; an answer with an error in it is a failed call's."""
        held = None if tools is None else tools_object(tools)
        made = replace(
            record(*turns),
            task=Task("desk", task),
            attempt=Attempt(run, 0),
            conditions=Conditions(tools=held.id if held else None, budget=budget, **conditions),
        )
        if held:
            self._batch.add_object(held)
        identity = self.add(made)
        if confirm:
            self.confirm(identity)
        if outcome:
            self.say(Verification(identity, "task", outcome, Author("log")))
        return identity

    def fork(
        self,
        parent: str,
        kind: ForkKind,
        point: int,
        call: Call,
        answer: dict[str, Any],
        *,
        by: Author = RULE,
        reads: tuple[Reads, ...] = ("request", "schema"),
        text: str = "",
        **executed: Any,
    ) -> str:
        """A fork of one corrected call, confirmed in the state ``s``."""
        before = self.records[parent]
        turns = record("", *[""] * (point - 1), call, answer).messages[point:]
        made = replace(
            before,
            messages=(*before.messages[:point], replace(turns[0], content=text), *turns[1:]),
            attempt=None,
            fork=Fork(parent, point, kind, Correction(by, reads), Restore("snapshot", "inventory@1", "0" * 64)),
        )
        identity = self.add(made)
        self.confirm(identity, **executed)
        return identity

    def confirm(self, trajectory: str, only: Sequence[str] | None = None, **changed: Any) -> None:
        """Say of every call, or of ``only`` some, what executing it gave."""
        made = self.records[trajectory]
        answers = answers_of(made)
        for index, message in enumerate(made.messages):
            for call in message.tool_calls:
                if call.uid in answers and (only is None or call.uid in only):
                    self.execute(
                        trajectory, index, call.uid, text_of(made.messages[answers[call.uid]].content), **changed
                    )

    def execute(
        self,
        trajectory: str,
        message: int,
        call: str,
        answer: str,
        *,
        result: Result = "passed",
        match: Match | None = "equal_bytes",
        reason: str | None = None,
        status: str | None = None,
        state: tuple[str | None, str | None] = ("s", "s"),
        environment: str = "inventory@1",
    ) -> None:
        """Say what executing one call gave."""
        execution = Execution(
            environment,
            "c0de",
            match=match,
            reason=reason,
            status=status or ("tool_error" if "error" in answer else "ok"),
            answer=digest(answer.encode()),
            state_before=state[0],
            state_after=state[1],
        )
        author = replace(ENVIRONMENT, name=environment)
        self.say(
            Verification(trajectory, "execution", result, author, message, call, execution=execution, reads=("state",))
        )

    def add(self, made: Trajectory) -> str:
        """Add a record as it is."""
        identity = self._batch.add_trajectory(made, attempt_id(made, ""))
        self.records[identity] = made
        return identity

    def say(self, *statements: Statement) -> None:
        """Add statements."""
        for statement in statements:
            self._batch.add_statement(statement)

    def find(self, trajectory: str, message: int = 1, label: Label = "argument") -> None:
        """A finding of a rule at a decision."""
        self.say(Finding(trajectory, message, label, RULE, call=f"{message}.0"))

    def annotate(self, trajectory: str, field: str, value: Any) -> None:
        """A fact out of a side file."""
        self.say(Annotation(trajectory, field, value, SIDE_FILE))

    def flush(self) -> None:
        """Write all that was added."""
        self.store.write(self._batch)
        self._batch = self.store.batch()

    def build(self, *kinds: Kind, **options: Any) -> BuildResult:
        """Build into the folder ``out``, from all that was added."""
        self.flush()
        return build(self.store, kinds, self.out, **options)

    def lines(self, kind: Kind, trajectory: str | None = None) -> list[dict[str, Any]]:
        """The selections of a kind, of one attempt or of all."""
        found: list[dict[str, Any]] = self.store.sql(
            "SELECT * FROM selections WHERE kind = ? AND trajectory = coalesce(?, trajectory) ORDER BY id",
            [kind, trajectory],
        ).to_pylist()
        return found

    def rows(self, kind: Kind) -> list[bytes]:
        """The written rows of a kind."""
        return [line for file in self.out.glob(f"{kind}/*.jsonl") for line in file.read_bytes().splitlines()]
