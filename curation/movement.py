"""What moves in an answer when the same calls are executed in other circumstances, and whether that explains why the
logged answer is another one.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Literal, NamedTuple

from curation.comparators import agreeing
from curation.rules import forgive, forgive_all, moved
from environments.protocol import EnvSpec

WITNESSES = 2  # answers of other processes without which nothing is known to move
MAX_NAMED = 4

_SEPARATORS = re.compile(r"""([\s,;:'"{}\[\]()<>=]+)""")


class Settled(NamedTuple):
    """How a logged answer and an executed one compare once what moves is left out.

    ``moves`` are the places that the declared rules forgive, by rule. ``volatile_only``: they differ only where the
    answer moves and no rule says so. ``unwitnessed``: a rule would settle it, but nothing could be seen to move.
    """

    outcome: Literal["equal", "volatile_only", "unwitnessed", "different"]
    rules: tuple[str, ...] = ()
    comparator: str | None = None
    moves: Mapping[str, frozenset[int]] = {}
    detail: str = ""


def settle(logged: str, executed: str, answers: Iterable[str], rules: Sequence[str], spec: EnvSpec) -> Settled:
    """Compare two answers that differ, with the help of the same call's answers in other processes.

    At least two are taken where there are as many, more only while a declared rule might still settle it: the order of
    a small set need not move at once.
    """
    hopeful = _would_settle(logged, executed, rules, spec)
    seen = [executed]
    for answer in answers:
        seen.append(answer)
        if len(seen) <= WITNESSES:
            continue
        settled = _by_rules(logged, executed, seen, rules, spec)
        if settled is not None:
            return settled
        if not hopeful:
            break
    return _by_movement(logged, seen, rules, " and ".join(rules) if hopeful else "")


def _would_settle(logged: str, executed: str, rules: Sequence[str], spec: EnvSpec) -> bool:
    for rule in rules:
        logged, executed = forgive(rule, logged), forgive(rule, executed)
    return bool(rules) and (logged == executed or agreeing(logged, executed, spec) is not None)


def _by_rules(logged: str, executed: str, seen: Sequence[str], rules: Sequence[str], spec: EnvSpec) -> Settled | None:
    moves: dict[str, frozenset[int]] = {}
    for rule in rules:
        places = moved(rule, [forgive_all(text, moves) for text in seen])
        if not places:
            continue
        moves[rule] = places
        left, right = forgive_all(logged, moves), forgive_all(executed, moves)
        comparator = None if left == right else agreeing(left, right, spec)
        if left == right or comparator is not None:
            return Settled("equal", tuple(moves), comparator, moves)
    return None


def _by_movement(logged: str, seen: Sequence[str], rules: Sequence[str], hoped: str) -> Settled:
    unseen = f"declared, but not seen to move: {hoped}" if hoped else ""
    if len(seen) <= WITNESSES:
        missing = f"{hoped} not used: the calls gave no {WITNESSES} answers in other processes"
        return Settled("unwitnessed", detail=missing) if hoped else Settled("different")
    moves: dict[str, frozenset[int]] = {}
    for rule in rules:
        moves[rule] = moved(rule, [forgive_all(text, moves) for text in seen])
    written = [_SEPARATORS.split(forgive_all(text, moves)) for text in seen]
    words = _SEPARATORS.split(forgive_all(logged, moves))
    if len({len(words) for words in written}) > 1:
        if not _begins_alike(words, written) or not _begins_alike(words[::-1], [one[::-1] for one in written]):
            return Settled("different", detail=unseen)
        return Settled("volatile_only", detail="the whole answer moves between executions and no rule says so")
    moving = {number for number, words in enumerate(zip(*written, strict=True)) if len(set(words)) > 1}
    differing = [number for number, pair in enumerate(zip(words, written[0], strict=False)) if pair[0] != pair[1]]
    if len(words) != len(written[0]) or not moving.issuperset(differing):
        return Settled("different", detail=unseen)
    named = ", ".join(f"{words[number]!r:.60} (word {number // 2 + 1})" for number in differing[:MAX_NAMED])
    return Settled("volatile_only", detail=f"moves between executions and no rule says so: {named}")


def _begins_alike(words: Sequence[str], written: Sequence[Sequence[str]]) -> bool:
    """Whether the words begin as all of the others do."""
    head = list(takewhile(lambda same: len(set(same)) == 1, zip(*written, strict=False)))
    return list(words[: len(head)]) == [same[0] for same in head]
