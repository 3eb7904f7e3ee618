"""What a build judges: a decision that could be trained, with all that is known of it, decoded from one line.

A line is self-contained, so that judging needs no store; one line may hold several decisions of one trajectory.
"""

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import msgspec

from curation.diagnosis.evidence import ERRORS
from curation.store.tables import check_name
from schemas.levels import MAX_PLACEBO, Level, level_of
from schemas.rows import Wanted
from schemas.selection import Kind
from schemas.statements import Execution, Finding, Layer, Outcome, Result, Verification
from schemas.tool_schema import check_arguments
from schemas.trajectory import Correction, Message, ToolCall, decode

FAULTS = frozenset(("timeout", "environment_fault"))

_FINDINGS = msgspec.json.Decoder(list[Finding])
_VERIFICATIONS = msgspec.json.Decoder(list[Verification])


class Facts(msgspec.Struct, frozen=True):
    """What holds about an attempt.

    ``test``: it, its task, its group or the text of its task (then ``twin`` has the other task and the text's digest)
    has a member in a held-out split.
    """

    namespace: str | None = None
    task: str | None = None
    index: int | None = None
    attempts: int = 0
    outcome: Outcome | None = None
    test: str | None = None
    twin: str | None = None
    revised: bool = False
    tools: str | None = None
    budget: dict[str, str] = {}
    notes: str | None = None
    informed_by: str | None = None
    strata: dict[str, str] = {}


class Target(msgspec.Struct, frozen=True):
    """A decision to judge: its message, the wrong decision it answers for, and its digests."""

    message: int
    wrong: int | None = None
    context: str = ""
    partial: bool = False


class Subject:
    """A trajectory with the statements that hold about it; what its decisions share is computed once.

    Raises StoreError where its bytes are not those its id names.
    """

    def __init__(self, identity: str, record: str, findings: str | None, verifications: str | None) -> None:
        check_name("trajectory", identity, record.encode())
        self.id = identity
        self.trajectory = decode(record)
        self.findings: dict[int, list[Finding]] = defaultdict(list)
        self._checks: dict[tuple[int | None, Layer], list[Verification]] = defaultdict(list)
        for finding in _FINDINGS.decode(findings or "[]"):
            self.findings[finding.message].append(finding)
        for item in _VERIFICATIONS.decode(verifications or "[]"):
            self._checks[item.message, item.layer].append(item)

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages of the trajectory."""
        return self.trajectory.messages

    @property
    def correction(self) -> Correction | None:
        """Who corrected it; None for an attempt."""
        return None if self.trajectory.fork is None else self.trajectory.fork.correction

    @cached_property
    def verifications(self) -> tuple[Verification, ...]:
        """All verifications, in no order."""
        return tuple(item for items in self._checks.values() for item in items)

    @cached_property
    def contradiction(self) -> Verification | None:
        """An execution that gave another answer than the record holds."""
        found = (item for item in self.verifications if item.execution and item.execution.match == "different")
        return next(found, None)

    @cached_property
    def first_unconfirmed(self) -> tuple[int, str]:
        """The first message with a call whose answer is not confirmed, and that call; past the end where all are."""
        for index, message in enumerate(self.messages):
            for call in message.tool_calls:
                if self.execution_result(index, call) != "passed":
                    return index, call.uid
        return len(self.messages), ""

    @cached_property
    def first_error(self) -> int:
        """The first message with a finding, an error of the log, or a call that was answered by an error."""
        for index, message in enumerate(self.messages):
            failed = any(item.status in ERRORS | FAULTS for item in self.executions(index))
            if message.error is not None or index in self.findings or failed:
                return index
        return len(self.messages)

    @cached_property
    def first_gap(self) -> int:
        """The first message before which history is missing, or that answers a call the log does not hold."""
        for index, message in enumerate(self.messages):
            if message.hidden == "compaction" or (message.role == "tool" and message.answers is None):
                return index
        return len(self.messages)

    @cached_property
    def first_malformed(self) -> int:
        """The first message with a call whose arguments are no JSON object or that is not answered directly after it.

        The tool messages that follow a message answer its calls, each once and in any order, and nothing else.
        """
        first, answered = len(self.messages), list[str]()
        for index, message in reversed(list(enumerate(self.messages))):
            if message.role == "tool":
                answered.append("" if message.answers is None else message.answers.uid)
                continue
            if is_malformed(message) or sorted(answered) != sorted(call.uid for call in message.tool_calls):
                first = index
            answered = []
        return first

    @cached_property
    def first_request(self) -> int:
        """The first message of a user or a system; past the end where there is none."""
        found = (index for index, message in enumerate(self.messages) if message.role in ("user", "system"))
        return next(found, len(self.messages))

    @cached_property
    def first_not_text(self) -> int:
        """The first message with a part that is no text."""
        found = (index for index, message in enumerate(self.messages) if not is_text(message))
        return next(found, len(self.messages))

    @cached_property
    def repetitions(self) -> dict[int, tuple[str, str]]:
        """Message to a call in it and the same call before: answered without error, and nothing has changed since.

        Nothing has changed where all states are equal, or where one is unknown and no other call lies between.
        """
        runs = {item.call: item.execution for item in self.verifications if item.layer == "execution"}
        made: dict[str, tuple[int, ToolCall]] = {}
        latest: dict[tuple[str, bytes], tuple[int, str, str | None]] = {}
        unchanged: dict[tuple[str, bytes, str], str] = {}
        found: dict[int, tuple[str, str]] = {}
        for index, message in enumerate(self.messages):
            if message.answers is not None and message.error is None and message.answers.uid in made:
                number, call = made[message.answers.uid]
                run = runs.get(call.uid)
                if run is not None and run.status == "ok":
                    latest[_action(call)] = number, call.uid, run.state_after
                    unchanged[*_action(call), run.state_after or ""] = call.uid
            for call in message.tool_calls:
                run, action = runs.get(call.uid), _action(call)
                before, after = (run.state_before, run.state_after) if run is not None else (None, None)
                number, earlier, state = latest.get(action, (-1, "", None))
                if before is not None is not after and state is not None:
                    same = unchanged.get((*action, before)) if before == after else None
                else:
                    same = earlier if number >= 0 and number == len(made) - 1 else None
                if same is not None:
                    found.setdefault(index, (call.uid, same))
                made[call.uid] = len(made), call
        return found

    def executions(self, message: int) -> Iterator[Execution]:
        """What executing the calls of a decision gave, in the order of the calls."""
        found = self._checks.get((message, "execution"), ())
        for item in sorted(found, key=lambda item: (len(item.call or ""), item.call or "")):
            if item.execution is not None:
                yield item.execution

    def execution_result(self, message: int, call: ToolCall) -> Result | None:
        """Whether the answer of a call is its real one; None where that was not checked."""
        return next(
            (item.result for item in self._checks.get((message, "execution"), ()) if item.call == call.uid), None
        )

    def checked_by(self, message: int, layer: Layer) -> Iterator[Verification]:
        """The verifications of a decision at a layer."""
        yield from self._checks.get((message, layer), ())

    def has_failed_layer(self, message: int) -> bool:
        """Whether a check of a decision or of one of its calls failed."""
        return any(item.result == "failed" and item.message == message for item in self.verifications)

    def task_checks(self) -> Iterator[Verification]:
        """The verifications of the whole task."""
        yield from self._checks.get((None, "task"), ())


class Candidate(NamedTuple):
    """A decision that could be trained.

    ``chosen`` holds it at ``target``. ``wrong`` is the decision that it answers for, in ``rejected``: the parent of a
    fork, the same trajectory for a recovery in the log, the rejected side of a pair. ``other`` are the facts of the
    chosen side where that is another attempt. ``ancestors`` are the parent of a fork, its parent, and so on to the
    attempt. ``tools`` is the tool list as logged, as JSON text; ``wanted`` the level
    that the build asks for.
    """

    kind: Kind
    facts: Facts
    chosen: Subject
    target: Target
    rejected: Subject | None = None
    wrong: int | None = None
    other: Facts | None = None
    tools: str | None = None
    wanted: Wanted = "execution"
    ancestors: tuple[Subject, ...] = ()

    @property
    def message(self) -> Message:
        """The message that would be trained."""
        return self.chosen.messages[self.target.message]

    @property
    def prompt(self) -> tuple[Message, ...]:
        """The messages before it."""
        return self.chosen.messages[: self.target.message]

    @property
    def wrong_message(self) -> Message | None:
        """The message of the wrong decision."""
        return None if self.rejected is None or self.wrong is None else self.rejected.messages[self.wrong]

    @property
    def wrong_findings(self) -> list[Finding]:
        """The findings at the wrong decision."""
        return [] if self.rejected is None or self.wrong is None else self.rejected.findings.get(self.wrong, [])

    @property
    def is_correction(self) -> bool:
        """Whether the decision is a fork's: proposed by somebody and executed by us."""
        return self.chosen.correction is not None

    def layers(self) -> dict[Layer, Result]:
        """The result per layer at the target. Syntax and semantics are computed where nobody checked them."""
        found: dict[Layer, Result] = {}
        for layer in ("syntax", "semantics", "execution", "step"):
            by_call = {item.call: item.result for item in self.chosen.checked_by(self.target.message, layer)}
            if by_call and (result := self._joined(by_call, layer)) is not None:
                found[layer] = result
        found.setdefault("syntax", "failed" if is_malformed(self.message) else "passed")
        if "semantics" not in found and (result := self._semantics()) is not None:
            found["semantics"] = result
        return found

    def level(self) -> Level:
        """How much of the target is confirmed; step and task count only by a check that supports it."""
        layers = self.layers()
        if not any(self.supports(item) for item in self.chosen.checked_by(self.target.message, "step")):
            layers.pop("step", None)
        task = next((item.result for item in self.chosen.task_checks() if self.supports(item)), None)
        if task is not None:
            layers["task"] = task
        return level_of(layers, path_confirmed=task is not None and self._path_confirmed())

    def supports(self, check: Verification) -> bool:
        """Whether a check says something of the target.

        It comes from an environment or a human, read something that the proposer had not, and few wrong calls pass it.
        """
        read = () if self.chosen.correction is None else self.chosen.correction.reads
        independent = self.chosen.correction is None or bool(set(check.reads) - set(read))
        low = check.placebo is None or check.placebo <= MAX_PLACEBO
        return check.author.kind in ("environment", "human") and independent and low

    def _joined(self, by_call: dict[str | None, Result], layer: Layer) -> Result | None:
        """One result for a decision: of the decision as such, or of all its calls together."""
        results = set(by_call.values())
        if "failed" in results:
            return "failed"
        covered = layer == "step" or None in by_call or all(call.uid in by_call for call in self.message.tool_calls)
        if not covered:
            return None
        return "passed" if results <= {"passed", "not_applicable"} else "unknown"

    def _semantics(self) -> Result | None:
        offered = offered_tools(self.tools)
        if not offered or is_malformed(self.message):
            return None
        results = [_satisfies(call, offered) for call in self.message.tool_calls]
        return "failed" if "failed" in results else None if None in results else "passed"

    def _path_confirmed(self) -> bool:
        fork = self.chosen.trajectory.fork
        start = 0 if fork is None else fork.branch_point
        own = range(start, len(self.chosen.messages))
        executed = all(
            self.chosen.execution_result(index, call) == "passed"
            for index in own
            for call in self.chosen.messages[index].tool_calls
        )
        return executed and not any(
            item.result == "failed" for index in own for item in self.chosen.checked_by(index, "step")
        )


def _action(call: ToolCall) -> tuple[str, bytes]:
    text = call.arguments_text.encode() if call.arguments is msgspec.UNSET else bytes(call.arguments)
    return call.name, text


def is_malformed(message: Message) -> bool:
    """Whether a call of the message has arguments that are no JSON object."""
    return any(call.arguments is msgspec.UNSET or bytes(call.arguments)[:1] != b"{" for call in message.tool_calls)


def is_text(message: Message) -> bool:
    """Whether the content of a message is text alone, so that a row holds all of it."""
    parts = message.content if isinstance(message.content, tuple) else ()
    return all(part.text is not None and part.sha256 is None for part in parts)


@lru_cache(maxsize=256)
def offered_tools(text: str | None) -> dict[str, msgspec.Raw]:
    """The argument schemas of a tool list as logged, by the tools' names."""
    found: dict[str, msgspec.Raw] = {}
    for tool in _tool_list(text):
        described = tool.get("function", tool) if isinstance(tool, dict) else {}
        if isinstance(described, dict) and isinstance(name := described.get("name"), str):
            schema = described.get("parameters", described.get("input_schema", {}))
            found[name] = msgspec.Raw(msgspec.json.encode(schema))
    return found


def _tool_list(text: str | None) -> list[Any]:
    value = None if text is None else msgspec.json.decode(text)
    return value if isinstance(value, list) else []


def _satisfies(call: ToolCall, offered: dict[str, msgspec.Raw]) -> Result | None:
    if call.name not in offered:
        return "failed"
    assert not isinstance(call.arguments, msgspec.UnsetType)  # noqa: S101
    check = check_arguments(offered[call.name], msgspec.json.decode(call.arguments))
    return "failed" if check.problems else "passed" if check.valid else None
