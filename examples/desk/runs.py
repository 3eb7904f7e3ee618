"""Running a policy in a world, and writing down what happened as an OpenAI chat log line.

Every answer in a log is what the environment gave to the call before it. Nothing else puts an answer there.
"""

import re
from collections.abc import Iterator
from random import Random
from typing import Any, Literal, NamedTuple

import msgspec

from environments.blobs import MemoryBlobs
from environments.catalogue import find
from environments.protocol import Controls, Session
from examples.desk.jobs import Job
from examples.desk.policies import Break, Call, Policy, Say, careful, choose
from schemas.canonical import UnreadableError, parse, raw
from schemas.statements import Outcome, Stop
from schemas.trajectory import ToolCall, call_uid

ATTEMPTS = 3  # of every job, planned before the first one ran
STEPS = {"easy": 6, "hard": 8}  # messages that the agent may write
PATIENCE = 3  # messages that are neither a call nor an answer

_SYSTEM = {
    "inventory": "You work at the stock desk. Look items up with the tools, then answer one line per item.",
    "booking": "You work at the booking desk. Do what the customer asks with the tools, then say what was done.",
}
_CLAIM = re.compile(r"booked|reserved|预订", re.IGNORECASE)

Message = dict[str, Any]


class Run(NamedTuple):
    """What one attempt left: its messages, the tools it was offered, how it ended, and what it was worth."""

    messages: list[Message]
    tools: list[dict[str, Any]]
    stop: Stop
    error: Any
    outcome: Outcome


def attempts(job: Job) -> Iterator[Run]:
    """All planned attempts of a job; none is added and none left out, whatever comes of them."""
    for attempt in range(1, ATTEMPTS + 1):
        rng = Random(f"{job.world} {job.name} attempt {attempt}")
        yield run(job, choose(job, rng)(job, rng))


def run(job: Job, policy: Policy) -> Run:
    """One attempt, in a world of its own."""
    blobs = MemoryBlobs()
    with _open(job, blobs) as session:
        messages = [_message("system", _SYSTEM[job.world]), _message("user", job.request)]
        stop, error = _converse(job, policy, session, messages)
        return Run(messages, _tools(session), stop, error, _grade(job, session, blobs, messages, stop))


def _converse(job: Job, policy: Policy, session: Session, messages: list[Message]) -> tuple[Stop, Any]:
    turn, unread = next(policy), 0
    for _ in range(STEPS[job.difficulty]):
        answer: dict[str, Any] = {}
        match turn:
            case Break(message, kind):
                return "provider_error", {"message": message, "type": kind}
            case Say(text, final):
                messages.append(_message("assistant", text))
                unread += 1
                if final:
                    return "completed", None
                if unread == PATIENCE:
                    return "parse_error", f"{PATIENCE} messages without a call or an answer"
            case Call():
                executed = _execute(turn, session, messages)
                if executed is None:
                    return "parse_error", "the arguments of the call are not JSON"
                answer = executed
        turn = policy.send(answer)
    return "max_steps", f"stopped after {STEPS[job.difficulty]} steps"


def _execute(turn: Call, session: Session, messages: list[Message]) -> dict[str, Any] | None:
    """The environment's answer, None where it does not answer calls of that kind."""
    call = tool_call(call_uid(len(messages), 0), turn.tool, turn.arguments)
    identity = f"call_{len(messages)}"
    function = {"name": call.name, "arguments": call.arguments_text}
    calls = [{"id": identity, "type": "function", "function": function}]
    messages.append({**_message("assistant", turn.text), "tool_calls": calls})
    [result] = session.call([call])
    if result.status == "refused":
        return None
    messages.append({"role": "tool", "tool_call_id": identity, "content": result.raw})
    answer: dict[str, Any] = msgspec.json.decode(result.raw)
    return answer


def tool_call(uid: str, name: str, arguments: str) -> ToolCall:
    """A call as environments take it; arguments that are no JSON stay text alone."""
    try:
        return ToolCall(uid, name, arguments, arguments=raw(parse(arguments.encode())[0]))
    except UnreadableError as error:
        return ToolCall(uid, name, arguments, parse_error=error.code)


def _grade(job: Job, session: Session, blobs: MemoryBlobs, messages: list[Message], stop: Stop) -> Outcome:
    """The booking world grades itself; an answer about stock is compared with what a careful clerk would say."""
    if stop == "provider_error":
        return "unknown"
    if job.world == "booking":
        with find(job.world).open(session.snapshot(), Controls(), blobs) as fork:
            return "success" if fork.check(job.task).result == "passed" else "failure"
    said = str(messages[-1]["content"])
    right = set(_final(job).splitlines()) == set(said.splitlines())
    return "success" if right and not _CLAIM.search(said) else "failure"


def _final(job: Job) -> str:
    with _open(job, MemoryBlobs()) as session:
        messages: list[Message] = []
        _converse(job, careful(job, Random(0)), session, messages)
        return str(messages[-1]["content"])


def _open(job: Job, blobs: MemoryBlobs) -> Session:
    return find(job.world).open(job.task, Controls(), blobs)


def _tools(session: Session) -> list[dict[str, Any]]:
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": msgspec.json.decode(tool.parameters),
            },
        }
        for tool in session.tools()
    ]


def _message(role: Literal["system", "user", "assistant"], text: str) -> Message:
    return {"role": role, "content": text}
