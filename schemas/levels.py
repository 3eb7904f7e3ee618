"""How much of a decision is confirmed: the highest passed layer whose prerequisites hold."""

from collections.abc import Mapping
from typing import Literal, get_args

from schemas.statements import Layer, Result

Level = Literal["none", "syntax", "semantics", "execution", "step", "task"]

LEVELS: tuple[Level, ...] = get_args(Level)
MAX_PLACEBO = 0.2
"""A check that more wrong calls than this share pass too supports no correction."""

_HOLDS: frozenset[Result] = frozenset(("passed", "not_applicable"))


def level_of(layers: Mapping[Layer, Result], *, path_confirmed: bool = False) -> Level:
    """The level of a decision from its effective result per layer; an absent layer is not checked.

    Semantics rests on syntax, execution on semantics, step on execution. The task layer counts where the caller has
    found every decision from the branch point on executed and no step failed (``path_confirmed``). Step and task
    results must come from an environment or a human: the caller leaves out those of any other author.
    """
    reached: Level = "none"
    for layer in ("syntax", "semantics", "execution", "step"):
        result = layers.get(layer)
        if result not in _HOLDS:
            break
        if result == "passed":
            reached = layer
    confirmed = path_confirmed and is_at_least(reached, "execution") and layers.get("step") != "failed"
    return "task" if confirmed and layers.get("task") == "passed" else reached


def is_at_least(level: Level, wanted: Level) -> bool:
    """Whether a level reaches another."""
    return LEVELS.index(level) >= LEVELS.index(wanted)
