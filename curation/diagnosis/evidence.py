"""What a diagnosis reads: one trajectory with what is known beside it, and look-ups over both."""

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from msgspec import Raw

from curation.clocks import NO_CLOCKS, Clocks
from curation.diagnosis.arguments import arguments_of, leaves, read_json
from curation.diagnosis.tokens import squeeze
from environments.protocol import EnvSpec, Fault, fault_of
from schemas.objects import ToolSpec
from schemas.statements import Evidence, Execution, Finding, Label, Outcome, Verification
from schemas.trajectory import Author, Budget, Message, MessageError, Reads, ToolCall, Trajectory, answers_of, text_of

AUTHOR = Author("rule", "diagnosis", "1")
MAX_SHOWN = 200  # characters of a text that evidence quotes

Ending = Literal["ok", "failed", "fault", "unanswered", "contradicted"]
ERRORS = frozenset(("tool_error", "schema_error", "unknown_tool"))  # statuses of a call that failed


class Case(NamedTuple):
    """One trajectory with all that a diagnosis may use.

    ``tools`` are the tools the model was offered, None where that is unknown. ``verifications`` are the effective
    ones. ``stop`` is a value of schemas.statements.Stop. ``budget`` is what is known of the limits beside the record.
    ``spec`` is the environment that the trajectory is known to come from, ``clocks`` says when its calls were made, and
    ``elapsed`` how many seconds the run took.
    """

    trajectory_id: str
    trajectory: Trajectory
    tools: tuple[ToolSpec, ...] | None = None
    stop: str | None = None
    outcome: Outcome = "unknown"
    verifications: tuple[Verification, ...] = ()
    spec: EnvSpec | None = None
    budget: Budget | None = None
    clocks: Clocks = NO_CLOCKS
    elapsed: float | None = None


class Diagnosis(NamedTuple):
    """What was found, in the order of the decisions, and what was checked at the layers syntax and semantics."""

    findings: tuple[Finding, ...]
    verifications: tuple[Verification, ...]


class Answer(NamedTuple):
    """The message that answers a call: its index, text, the JSON value of the text, and the error it is marked as."""

    message: int
    text: str
    value: Any
    error: MessageError | None


class Reading(NamedTuple):
    """A case with its calls, answers and executions looked up; calls are named by their uid."""

    case: Case
    calls: tuple[tuple[int, ToolCall], ...]
    answers: dict[str, Answer]
    executions: dict[str, Execution]
    tools: dict[str, ToolSpec] | None
    first_uses: dict[tuple[str, Any], int]
    squeezed_texts: dict[int, str]

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages of the trajectory."""
        return self.case.trajectory.messages

    @property
    def last_decision(self) -> int:
        """The index of the last assistant message; of the last message at all where there is none."""
        decisions = (index for index, message in enumerate(self.messages) if message.role == "assistant")
        return max(decisions, default=max(len(self.messages) - 1, 0))

    def used(self, tool: str, value: Any, message: int) -> bool:
        """Whether a call of a tool up to a message holds a value."""
        return self.first_uses.get((tool, value), message + 1) <= message

    def length(self, before: int, *roles: str) -> int:
        """How many characters the messages of some roles hold before a message."""
        return sum(len(text_of(message.content)) for message in self.messages[:before] if message.role in roles)

    def squeezed(self, message: int) -> str:
        """The letters and digits of a message's text, folded; made once."""
        if message not in self.squeezed_texts:
            self.squeezed_texts[message] = squeeze(text_of(self.messages[message].content))
        return self.squeezed_texts[message]

    def parameters(self, tool: str) -> Raw | None:
        """The schema of a tool's arguments, None where it is not known."""
        spec = (self.tools or {}).get(tool)
        return None if spec is None else spec.parameters

    def fault(self, uid: str) -> Fault | None:
        """The fault, declared by the environment, that the recorded answer of a call has the shape of."""
        answer, spec = self.answers.get(uid), self.case.spec
        return None if answer is None or spec is None else fault_of(spec, answer.value)

    def ending(self, uid: str) -> Ending:
        """How a call ended, by marks of the log, declarations and executions; never by the wording of its answer."""
        answer, execution = self.answers.get(uid), self.executions.get(uid)
        if execution is not None and execution.match == "different":
            return "contradicted"
        if answer is None:
            return "unanswered"
        origin = None if answer.error is None else answer.error.origin
        if self.fault(uid) or origin in ("provider", "environment", "harness"):
            return "fault"
        if execution is not None and execution.reason == "environment_fault":
            return "fault"
        return "failed" if answer.error is not None or self.failure(uid) is not None else "ok"

    def failure(self, uid: str) -> Evidence | None:
        """What confirms that a call failed in the environment: its declared error, the log's mark, an execution."""
        answer, execution, spec = self.answers.get(uid), self.executions.get(uid), self.case.spec
        if answer is None or self.fault(uid) or (execution is not None and execution.match == "different"):
            return None
        if answer.error is not None and answer.error.origin == "tool":
            return Evidence("observation", answer.message, uid, value=shown(answer.error.message), note="marked")
        if spec is not None and isinstance(answer.value, dict):
            for field in spec.errors:
                if answer.value.get(field):
                    value = shown(str(answer.value[field]))
                    return Evidence("observation", answer.message, uid, path=f"/{field}", value=value, note="declared")
        if confirmed(execution) and execution is not None and execution.status in ERRORS:
            return Evidence("observation", answer.message, uid, value=execution.status, note="executed")
        return None

    def finding(
        self,
        label: Label,
        message: int,
        detail: str,
        evidence: tuple[Evidence, ...],
        reads: tuple[Reads, ...] = (),
        call: str | None = None,
    ) -> Finding:
        """A finding about this trajectory by the rules of this package."""
        return Finding(self.case.trajectory_id, message, label, AUTHOR, detail, call, evidence, reads)


def read_case(case: Case) -> Reading:
    """Look up what the rules need."""
    messages = case.trajectory.messages
    answers = {uid: _answer(index, messages[index]) for uid, index in answers_of(case.trajectory).items()}
    executions = {
        statement.call: statement.execution
        for statement in case.verifications
        if statement.layer == "execution" and statement.call is not None and statement.execution is not None
    }
    tools = None if case.tools is None else {tool.name: tool for tool in reversed(case.tools)}
    calls = tuple(_calls(case.trajectory))
    return Reading(case, calls, answers, executions, tools, _first_uses(calls), {})


def confirmed(execution: Execution | None) -> bool:
    """Whether an execution found the recorded answer to be the call's real one."""
    return execution is not None and (execution.match or "").startswith("equal_")


def shown(text: str) -> str:
    """The text as evidence quotes it: cut where it is long."""
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 1]}…"


def _calls(trajectory: Trajectory) -> Iterator[tuple[int, ToolCall]]:
    for index, message in enumerate(trajectory.messages):
        for call in message.tool_calls:
            yield index, call


def _first_uses(calls: tuple[tuple[int, ToolCall], ...]) -> dict[tuple[str, Any], int]:
    found: dict[tuple[str, Any], int] = {}
    for index, call in calls:
        for _, value in leaves(arguments_of(call)):
            if isinstance(value, str | int | float):
                found.setdefault((call.name, value), index)
    return found


def _answer(index: int, message: Message) -> Answer:
    text = message.raw if message.raw is not None else text_of(message.content)
    return Answer(index, text, read_json(text), message.error)
