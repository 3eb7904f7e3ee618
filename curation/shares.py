"""A share with its interval of 95 %: Wilson, JASA 22 (1927)."""

from math import sqrt
from statistics import NormalDist
from typing import NamedTuple

Z95 = NormalDist().inv_cdf(0.975)


class Interval(NamedTuple):
    """Lower and upper end of an interval for a share."""

    low: float
    high: float


def wilson(kept: float, attempts: float, z: float = Z95) -> Interval:
    """The score interval of ``kept`` of ``attempts`` (above 0); both may be effective numbers."""
    centre = (kept + z * z / 2) / (attempts + z * z)
    half = z / (attempts + z * z) * sqrt(max(0.0, kept * (attempts - kept) / attempts) + z * z / 4)
    low = 0.0 if kept == 0 else max(0.0, centre - half)
    high = 1.0 if kept == attempts else min(1.0, centre + half)
    return Interval(low, high)
