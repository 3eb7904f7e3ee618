"""A side file over attempts that are in the store already: statements beside records, which stay as they are.

What a line does not mention stays as it was; what it says takes the place of what a side file said before, whatever
file or table that was and whichever verifier it named.
"""

import msgspec

from curation.attempt_index import OWN_ID, AttemptIndex, name_of
from curation.errors import UsageError
from curation.gate import statement_of
from curation.importers.attempt_keys import facts_of
from curation.importers.face import Fact
from curation.importers.side_columns import SideLines
from curation.importers.side_rows import Form
from curation.overruled import count_overruled
from curation.store import Batch, Store
from curation.store.supersede import superseding
from curation.store.tables import STATEMENTS
from schemas.statements import Annotation, Verification

_NAMED = 10
_STATEMENTS = 50_000  # compared with those of the store at once


class UnmatchedLine(msgspec.Struct):
    """A line that no attempt is known for, as it names it."""

    line: int
    about: str


class UnmentionedAttempt(msgspec.Struct):
    """An attempt that no line is about."""

    attempt: str
    run: str | None
    task: str | None


class AnnotateResult(msgspec.Struct):
    """What a side file said; ``unmatched_lines`` and ``unmentioned`` name the first of those that are counted.

    ``statements`` is what was not said before, ``written`` how many rows that became: none in a dry run. ``overruled``
    is how much of what the file says does not hold, because an author who outranks a side file says otherwise.
    """

    form: Form
    lines: int
    matched: int
    unmatched: int
    unmatched_lines: list[UnmatchedLine]
    attempts_without_line: int
    unmentioned: list[UnmentionedAttempt]
    statements: int
    written: int
    overruled: int


def annotate(
    store: Store, lines: SideLines, by: str = OWN_ID, *, verifier: str = "", dry_run: bool = False
) -> AnnotateResult:
    """Say of the store's attempts what a side file says, and commit it, but for a dry run.

    A line's ``key`` is what ``by`` says (see AttemptIndex); ``file`` and ``line`` are where a record was read. Keys of
    ``IDENTITY`` in a line tell apart what these leave open. Outcomes are said by ``verifier`` (NAME@VERSION). Raises
    UsageError, with the line's place, for one that is about several attempts, that says the same attempt is another
    one, or that is about the attempt of another line; nothing is written then.
    """
    index = AttemptIndex(store, by)
    about: dict[str, int] = {}
    unmatched: list[UnmatchedLine] = []
    count = missed = 0
    with store.batch() as batch:
        said = _Statements(store, None if dry_run else batch)
        for number, line in lines:
            count += 1
            try:
                attempt = index.find(line)
            except UsageError as error:
                raise UsageError(f"{lines.place(number)}: {error}") from None
            if attempt is None:
                missed += 1
                if missed <= _NAMED:
                    unmatched.append(UnmatchedLine(number, name_of(line)))
                continue
            if (first := about.setdefault(attempt.record, number)) != number:
                raise UsageError(f"{lines.place(number)}: line {first} is about the same attempt, {attempt.attempt}")
            facts, objects = facts_of(line, "side_file")
            if not dry_run:
                for item in objects:
                    batch.add_object(item)
            said.extend([statement_of(attempt.record, _said_by(fact, verifier)) for fact in facts])
        said.settle()
        written = {} if dry_run else store.write(batch)
    silent = [attempt for record, attempt in index.attempts.items() if record not in about]
    return AnnotateResult(
        form=lines.form,
        lines=count,
        matched=len(about),
        unmatched=missed,
        unmatched_lines=unmatched,
        attempts_without_line=len(silent),
        unmentioned=[
            UnmentionedAttempt(attempt.attempt, attempt.identity["run"], attempt.identity["task"])
            for attempt in silent[:_NAMED]
        ],
        statements=said.news,
        written=sum(written.get(table, 0) for table in STATEMENTS),
        overruled=said.overruled,
    )


class _Statements:
    """Statements on their way into a batch, if there is one; those that hold already are left out."""

    def __init__(self, store: Store, batch: Batch | None) -> None:
        self._store, self._batch = store, batch
        self._pending: list[Annotation | Verification] = []
        self.news = self.overruled = 0

    def extend(self, statements: list[Annotation | Verification]) -> None:
        """Add all that is said of one attempt."""
        self._pending.extend(statements)
        if len(self._pending) >= _STATEMENTS:
            self.settle()

    def settle(self) -> None:
        """Compare what is pending with what the store holds."""
        news = superseding(self._store, self._pending)
        self.news += len(news)
        withdrawn = {earlier for statement in news for earlier in statement.supersedes}
        self.overruled += count_overruled(self._store, self._pending, withdrawn)
        self._pending = []
        if self._batch is not None:
            for statement in news:
                self._batch.add_statement(statement)


def _said_by(fact: Fact, verifier: str) -> Fact:
    return fact._replace(rule=verifier) if fact.field == "outcome" else fact
