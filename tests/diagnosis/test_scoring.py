"""A predicted step is right, off by some steps, or not given: never right because of how it is written."""

from typing import Any

import pytest

from curation.diagnosis.scoring import Score, score


def test_ten_is_not_one() -> None:
    assert score({"a": 1}, {"a": 10}) == Score(1, 0, 0, 0, {9: 1})


def test_hits_near_misses_and_abstentions_are_told_apart() -> None:
    known = {"a": 3, "b": 3, "c": 3, "d": 3, "e": 3}
    assert score(known, {"a": 3, "b": 2, "c": 5, "d": None}) == Score(5, 1, 2, 2, {-1: 1, 0: 1, 2: 1})


@pytest.mark.parametrize("step", ["1", 1.0, True])
def test_a_step_that_is_no_integer_is_refused(step: Any) -> None:
    with pytest.raises(TypeError, match="steps are integers"):
        score({"a": 1}, {"a": step})
