"""How well located deviations agree with known ones; steps are integers and are compared as integers."""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple


class Score(NamedTuple):
    """Of ``known`` deviations: how many were located ``exact``, how many off by one, how many not at all.

    ``off_by`` counts the located ones by the signed distance, predicted minus known.
    """

    known: int
    exact: int
    within_one: int
    abstained: int
    off_by: dict[int, int]


def score(known: Mapping[str, int], predicted: Mapping[str, int | None]) -> Score:
    """Predicted against known message indices, by trajectory; what is not predicted is an abstention, never a hit.

    Raises TypeError for a step that is no integer: compared as text, "10" would contain "1".
    """
    for steps in (known, predicted):
        for identity, step in steps.items():
            if step is not None and type(step) is not int:
                raise TypeError(f"the step of {identity!r} is {step!r}; steps are integers")
    off = Counter(found - step for identity, step in known.items() if (found := predicted.get(identity)) is not None)
    near = sum(count for distance, count in off.items() if abs(distance) <= 1)
    return Score(len(known), off[0], near, len(known) - off.total(), dict(sorted(off.items())))
