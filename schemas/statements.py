"""What somebody says about a record: append-only rows beside it, each with its author and what that author read."""

from typing import Any, Literal

from schemas.trajectory import Author, Reads, Record

Label = Literal[
    "format",
    "tool_choice",
    "argument",
    "environment",
    "result_interpretation",
    "constraint",
    "budget_stop",
    "omission",
    "user_corrected",
    "undetermined",
]
Layer = Literal["syntax", "semantics", "execution", "step", "task"]
Result = Literal["passed", "failed", "partial", "unknown", "not_applicable"]
Match = Literal["equal_bytes", "equal_normalised", "equal_semantic", "different", "unverifiable", "not_run"]
Outcome = Literal["success", "failure", "partial", "unknown"]
Stop = Literal[
    "completed",
    "user_stop",
    "transfer",
    "max_steps",
    "timeout",
    "context_length",
    "output_length",
    "provider_error",
    "parse_error",
    "tool_error",
    "cancelled",
    "unknown",
]
EvidenceKind = Literal["request", "call", "observation", "absence", "state", "schema", "parser", "claim", "budget"]

Value = str | int | float | bool | None


class Evidence(Record, frozen=True):
    """A pointer into the record: a message, a call, a JSON pointer in its arguments or a span of its text."""

    kind: EvidenceKind
    message: int | None = None
    call: str | None = None
    path: str | None = None
    start: int | None = None
    end: int | None = None
    value: str | None = None
    note: str | None = None


class Annotation(Record, frozen=True):
    """A fact about a trajectory: ``strata.*``, ``split``, ``group``, ``stop``, ``budget.*``, ``attempt.*``, ..."""

    trajectory: str
    field: str
    value: Value
    author: Author
    reads: tuple[Reads, ...] = ()
    supersedes: tuple[str, ...] = ()


class Finding(Record, frozen=True):
    """What went wrong at a decision, with pointers to its evidence. ``detail`` is the label's sub-kind."""

    trajectory: str
    message: int
    label: Label
    author: Author
    detail: str = ""
    call: str | None = None
    evidence: tuple[Evidence, ...] = ()
    reads: tuple[Reads, ...] = ()
    supersedes: tuple[str, ...] = ()


class Execution(Record, frozen=True):
    """What executing a call gave. ``answer`` is the SHA-256 of the raw answer; states are logical digests.

    ``match`` compares a logged answer with the executed one; a new call has none, it has ``runs`` and ``agreed``.
    ``informative``: the wrong call, executed in the same state, is answered differently or leaves another state.
    """

    environment: str
    code_digest: str = ""
    match: Match | None = None
    reason: str | None = None
    rules: tuple[str, ...] = ()
    status: str | None = None
    answer: str | None = None
    state_before: str | None = None
    state_after: str | None = None
    runs: int = 0
    agreed: int = 0
    informative: bool | None = None


class Power(Record, frozen=True):
    """Of the wrong calls that were executed in place of a right one of a tool, how many a check passes too."""

    check: str
    tool: str
    wrong: int
    passed: int


class Verification(Record, frozen=True):
    """What was checked, at which layer, with which result.

    The subject is a call, a decision (``message``), or the whole trajectory (neither; the task layer). ``placebo`` is
    the measured share of wrong calls that the same check passes, absent where it was not measured; ``power`` is what
    one measurement at this call counted.
    """

    trajectory: str
    layer: Layer
    result: Result
    author: Author
    message: int | None = None
    call: str | None = None
    detail: str = ""
    execution: Execution | None = None
    score: float | int | None = None
    placebo: float | None = None
    power: Power | None = None
    evidence: tuple[Evidence, ...] = ()
    reads: tuple[Reads, ...] = ()
    supersedes: tuple[str, ...] = ()


Statement = Annotation | Finding | Verification


def slot(statement: Statement) -> tuple[Any, ...]:
    """What a statement is about and who makes it: what stands in a slot is superseded as a whole.

    All findings of one author about one trajectory share a slot, so that a rule can also take a finding back. All
    environments share theirs: what a later one executed takes the place of what an earlier one did. So do all side
    files, whichever verifier they name, and all logs, in whoever's name they speak.
    """
    kind = statement.author.kind
    author = (kind, "" if kind in ("environment", "side_file", "log") else statement.author.name)
    match statement:
        case Annotation():
            return ("annotation", statement.trajectory, statement.field, *author)
        case Finding():
            return ("finding", statement.trajectory, *author)
        case Verification():
            return ("verification", statement.trajectory, statement.message, statement.call, statement.layer, *author)
