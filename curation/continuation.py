"""A fork that goes on: after the corrected call a policy decides, and the fork's worlds answer, until something stops.

A person's turn comes from a script or a policy of its own, or ends the fork; no recorded reply is ever put after a
message that was not sent. Whatever stops it, the fork itself stays as it is.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from curation.allowance import Allowance, Spent, allowance_of
from curation.arrival import NoWayError, arrive
from curation.diagnosis.evidence import Case
from curation.fork import Forked, executed
from curation.policies.policy import Policy, Response, message_of, model_of, title
from curation.replay import author_of
from curation.runs import answer_turns
from curation.worlds import World
from environments.protocol import Blobs, CallResult, CheckResult, EnvSpec, Session, SnapshotError, StartError
from schemas.objects import ToolSpec
from schemas.statements import Annotation, Stop, Verification
from schemas.trajectory import Author, Message, Trajectory, trajectory_id

CONTINUATION = Author("rule", "continuation", "1")

_ANSWERED = frozenset(("ok", "tool_error", "schema_error", "unknown_tool"))
_ENDED: dict[str, Stop] = {
    "final": "completed",
    "silent": "completed",
    "user_ended": "user_stop",
    "budget": "max_steps",
    "budget_unknown": "max_steps",
}
"""The endings after which the world is known and the task is checked; of all others the stop is unknown."""


class Players(NamedTuple):
    """Who goes on: what makes the policy, and what makes whoever speaks for the user, if anybody does.

    Each continuation makes its own, as a script is used up.
    """

    policy: Callable[[], Policy]
    user: Callable[[], Policy] | None = None


class Ending(NamedTuple):
    """Why a continuation ended: a code of schemas.reasons.CONTINUATION, and the value and place it is about."""

    code: str
    detail: str = ""


class Continued(NamedTuple):
    """What came of going on: the continued fork, None where not one turn was added, its ending, and its limits.

    ``decisions`` are the turns of the policy that are in it; ``checked`` is what the task's check says in the end.
    """

    fork: Forked | None
    ending: Ending
    allowance: Allowance
    decisions: int = 0
    checked: CheckResult | None = None

    @property
    def statements(self) -> tuple[Annotation, ...]:
        """How the continued fork ended, as facts about it."""
        if self.fork is None:
            return ()
        ended = ": ".join(filter(None, self.ending))
        return (
            Annotation(self.fork.id, "continuation", ended, CONTINUATION),
            Annotation(self.fork.id, "stop", _ENDED.get(self.ending.code, "unknown"), CONTINUATION),
        )


class _Worlds(NamedTuple):
    """The fork's worlds, each in a process of its own, all in the same state."""

    sessions: tuple[Session, ...]
    spec: EnvSpec

    def answer(self, message: Message) -> tuple[CallResult, ...] | Ending:
        """What the calls of a message are answered, if all worlds answer alike and go on."""
        outside = next((call.name for call in message.tool_calls if self.spec.effects.get(call.name) == "external"), "")
        if outside:
            return Ending("not_answered", f"{outside} reaches outside of the environment")
        answers = [session.call(message.tool_calls) for session in self.sessions]
        for call, result in zip(message.tool_calls, answers[0], strict=True):
            if result.status in ("timeout", "environment_fault"):
                return Ending("environment_fault", f"call {call.uid}: {result.status}")
            if result.status not in _ANSWERED or result.truncated:
                return Ending("not_answered", f"call {call.uid}: {'cut' if result.truncated else result.status}")
        if any(answer != answers[0] for answer in answers):
            return Ending("disagreement", f"call {message.tool_calls[0].uid}")
        return answers[0]

    def check(self, trajectory: Trajectory, messages: Sequence[Message]) -> CheckResult | None:
        """What the task's check says in all of them, None where they do not agree; they are closed right after it."""
        found = {session.check(trajectory.task, messages) for session in self.sessions}
        return found.pop() if len(found) == 1 else None


def continue_fork(case: Case, forked: Forked, players: Players, worlds: Sequence[World], blobs: Blobs) -> Continued:
    """Go on from the end of a verified fork of a case, in two worlds, inside what the parent's budget leaves.

    The policy is shown the tools that the parent's model was offered or, where they are unknown, the environment's.
    """
    allowance = allowance_of(case, forked.trajectory)
    if forked.way.kind == "none":
        return Continued(None, Ending("forward_only", worlds[0].spec.name), allowance)
    try:
        with ExitStack() as stack:
            ways = (arrive(forked.way, world, blobs) for world in worlds[:2])
            sessions = tuple(stack.enter_context(way).session for way in ways)
            if any(tuple(_again(session, forked)) != forked.results for session in sessions):
                return Continued(None, Ending("disagreement", "the fork's own calls"), allowance)
            together = _Worlds(sessions, worlds[0].spec)
            return _go_on(forked, players, together, allowance, case.tools or sessions[0].tools())
    except NoWayError as error:
        return Continued(None, Ending("environment_fault", str(error)), allowance)
    except (StartError, SnapshotError) as error:
        return Continued(None, Ending("environment_fault", str(error)), allowance)


def _again(session: Session, forked: Forked) -> Iterator[CallResult]:
    for message in forked.trajectory.messages[forked.way.point :]:
        if message.tool_calls:
            yield from session.call(message.tool_calls, forked.way.time)


def _go_on(
    forked: Forked, players: Players, worlds: _Worlds, allowance: Allowance, tools: tuple[ToolSpec, ...]
) -> Continued:
    policy = players.policy()
    user = None if players.user is None else players.user()
    messages, spent = list(forked.trajectory.messages), Spent()
    made: list[Verification] = []
    ending: Ending | None = None
    while ending is None:
        ending = _over(allowance, spent)
        if ending is not None:
            break
        said = _respond(policy, messages, tools)
        if isinstance(said, Ending):
            ending = said
            break
        response, message = said
        spent = spent.after(response.usage, len(message.tool_calls))
        ending = _over(allowance, spent, beyond=True)
        if ending is not None:
            break
        if message.tool_calls:
            results = worlds.answer(message)
            if isinstance(results, Ending):
                ending = results
                break
            for call, result in zip(message.tool_calls, results, strict=True):
                runs = len(worlds.sessions)
                made.append(executed("", len(messages), call, result, worlds.spec, runs, runs))
            messages.extend(answer_turns([message], results))
        elif response.content:
            messages.append(message)
            ending = Ending("final") if user is None else _over(allowance, spent) or _user_turn(user, messages)
        else:
            ending = Ending("silent")
    trajectory = _record(forked, policy, messages, spent)
    if trajectory is None:
        return Continued(None, ending, allowance)
    checked = worlds.check(trajectory, messages) if ending.code in _ENDED else None
    fork = forked._replace(
        id=trajectory_id(trajectory),
        trajectory=trajectory,
        verifications=(*forked.verifications, *made, *_checked(checked, worlds.spec)),
    )
    about = tuple(replace(item, trajectory=fork.id) for item in fork.verifications)
    added = sum(message.role == "assistant" for message in messages[len(forked.trajectory.messages) :])
    return Continued(fork._replace(verifications=about), ending, allowance, added, checked)


def _over(allowance: Allowance, spent: Spent, *, beyond: bool = False) -> Ending | None:
    limit = allowance.reached(spent, beyond=beyond)
    if limit is None:
        return None
    return Ending("budget_unknown" if limit == "decisions" else "budget", f"{limit}: {allowance.detail}")


def _respond(
    policy: Policy, messages: Sequence[Message], tools: tuple[ToolSpec, ...]
) -> tuple[Response, Message] | Ending:
    """The policy's turn, on messages as a model sees them: neither raw answers nor what the log held beside them."""
    try:
        response = policy.respond(tuple(replace(item, raw=None, extra=UNSET) for item in messages), tools)
        return response, message_of(response, len(messages), title(policy))
    except (Exception, SystemExit, GeneratorExit) as error:  # the user's code may raise anything, and leave by it
        return Ending("policy_error", f"{title(policy)}: {type(error).__name__}: {error}")


def _user_turn(user: Policy, messages: list[Message]) -> Ending | None:
    said = _respond(user, messages, ())
    if isinstance(said, Ending):
        return said
    response, _ = said
    if not response.content:
        return Ending("user_ended")
    messages.append(Message("user", response.content, actor=title(user)))
    return None


def _record(forked: Forked, policy: Policy, messages: list[Message], spent: Spent) -> Trajectory | None:
    before = forked.trajectory
    if before.fork is None or len(messages) == len(before.messages):
        return None
    return replace(
        before,
        messages=tuple(messages),
        conditions=replace(before.conditions, model=model_of(policy)),
        usage=spent.usage,
        fork=replace(before.fork, continued_by=title(policy)),
    )


def _checked(checked: CheckResult | None, spec: EnvSpec) -> Iterator[Verification]:
    """The task layer of the whole fork: every decision from its branch point on is confirmed."""
    if checked is not None and checked.result not in ("unknown", "not_applicable"):
        yield Verification("", "task", checked.result, author_of(spec), detail=checked.detail, reads=checked.reads)
