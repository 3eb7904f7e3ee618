"""How far a fork may go on: what its parent's budget leaves after the messages that the fork holds.

What is not known is never taken for unlimited: then a fork may take as many further decisions as its parent took.
"""

from collections.abc import Sequence
from typing import NamedTuple, overload

from curation.diagnosis.evidence import Case
from schemas.trajectory import Message, Trajectory, Usage

Number = float | int

MAX_DECISIONS = 500  # of one continuation, whatever the budget


class Spent(NamedTuple):
    """What a policy has used since the corrected call. ``metered``: it said of every turn what that cost."""

    decisions: int = 0
    calls: int = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost: Number | None = None
    metered: bool = True

    @property
    def tokens(self) -> int:
        """All tokens that are known."""
        return (self.prompt_tokens or 0) + (self.completion_tokens or 0)

    @property
    def usage(self) -> Usage | None:
        """What it cost, None where nothing is known of it."""
        usage = Usage(self.prompt_tokens, self.completion_tokens, self.cost)
        return None if usage == Usage() else usage

    def after(self, usage: Usage | None, calls: int) -> "Spent":
        """The same after one more decision."""
        used = usage or Usage()
        return Spent(
            self.decisions + 1,
            self.calls + calls,
            _sum(self.prompt_tokens, used.prompt_tokens),
            _sum(self.completion_tokens, used.completion_tokens),
            _sum(self.cost, used.cost),
            self.metered and usage is not None,
        )


class Allowance(NamedTuple):
    """What is left of each limit, None where it is not known.

    ``decisions`` bounds a continuation that is ``bounded``: whose steps, or what it spent, cannot be held against a
    limit. ``detail`` says to a person where the numbers come from.
    """

    steps: int | None
    calls: int | None
    tokens: int | None
    cost: Number | None
    decisions: int
    bounded: bool
    detail: str

    def reached(self, spent: Spent, *, beyond: bool = False) -> str | None:
        """The first limit that leaves nothing more, or that is gone ``beyond``."""
        bounded = self.bounded or (not spent.metered and (self.tokens is not None or self.cost is not None))
        limits: tuple[tuple[str, Number | None, Number], ...] = (
            ("steps", self.steps, spent.decisions),
            ("calls", self.calls, spent.calls),
            ("tokens", self.tokens, spent.tokens),
            ("cost", self.cost, spent.cost or 0),
            ("decisions", self.decisions if bounded else MAX_DECISIONS, spent.decisions),
        )
        for name, limit, used in limits:
            spare = beyond or name == "calls"  # with all calls made, a last text may still come
            if limit is not None and (used > limit if spare else used >= limit):
                return name
        return None


def allowance_of(case: Case, fork: Trajectory) -> Allowance:
    """What the budget of a case leaves to a fork of it.

    The log does not say what each message cost, so that all the parent spent counts as spent before the branch point.
    """
    parent, usage = case.trajectory, case.trajectory.usage or Usage()
    told = {name: _limit(case, name) for name in ("steps", "calls", "tokens", "cost")}
    taken = _decisions(parent.messages)
    tokens = _sum(usage.prompt_tokens, usage.completion_tokens)
    used: dict[str, Number | None] = {
        "steps": _decisions(fork.messages),
        "calls": sum(len(message.tool_calls) for message in fork.messages),
        "tokens": tokens,
        "cost": usage.cost,
    }
    left = {name: None if limit is None else max(limit - (used[name] or 0), 0) for name, limit in told.items()}
    unknown = [name for name, limit in told.items() if limit is not None and used[name] is None]
    words = [f"{left[name]} of {limit} {name} left" for name, limit in told.items() if limit is not None]
    words.extend(f"what the parent used of its {name} is unknown" for name in unknown)
    bounded = told["steps"] is None or bool(unknown)
    if bounded:
        words.append(f"no more is known of it: at most {taken} decisions, as many as the parent took")
    return Allowance(
        steps=None if left["steps"] is None else int(left["steps"]),
        calls=None if left["calls"] is None else int(left["calls"]),
        tokens=None if left["tokens"] is None else int(left["tokens"]),
        cost=left["cost"],
        decisions=min(taken, MAX_DECISIONS),
        bounded=bounded,
        detail=", ".join(words),
    )


def _limit(case: Case, name: str) -> Number | None:
    """A limit by what is known beside the record, else by the record."""
    for budget in (case.budget, case.trajectory.conditions.budget):
        limit: Number | None = None if budget is None else getattr(budget, name)
        if limit is not None:
            return limit
    return None


def _decisions(messages: Sequence[Message]) -> int:
    return sum(message.role == "assistant" for message in messages)


@overload
def _sum(left: int | None, right: int | None) -> int | None: ...
@overload
def _sum(left: Number | None, right: Number | None) -> Number | None: ...
def _sum(left: Number | None, right: Number | None) -> Number | None:
    """The sum of what is known, None where nothing is."""
    return right if left is None else left if right is None else left + right
