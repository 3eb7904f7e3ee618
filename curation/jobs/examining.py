"""Examining an environment, also on what a store holds of it."""

from curation.errors import UsageError
from curation.jobs.cases import places
from curation.rules import STATIC, VOLATILE
from curation.store import Store
from environments.conformance import Conformance, examine
from environments.protocol import Controls
from environments.trials import Trial
from schemas.trajectory import Trajectory

MOST_RUNS = 5
MOST_CALLS = 40


def examine_environment(
    environment: str, store: Store | None = None, controls: Controls | None = None, *, named: bool = True
) -> Conformance:
    """Examine an environment; with a store, also on starts and calls of a few attempts recorded in it.

    ``named``: the store was asked for, so one without such an attempt is refused. Raises UnknownEnvironmentError,
    ControlError, StartError, UsageError.
    """
    trials = () if store is None else _recorded(store, environment, named)
    return examine(environment, controls, trials, (*STATIC, *VOLATILE))


def _recorded(store: Store, environment: str, named: bool) -> tuple[Trial, ...]:
    try:
        found = places(store, environment)
    except UsageError:
        if named:
            raise
        return ()
    identities = found.get(environment, [])
    spread = identities[:: max(1, len(identities) // MOST_RUNS)][:MOST_RUNS]
    return tuple(_trial(trajectory) for _, trajectory in store.trajectories(spread))


def _trial(trajectory: Trajectory) -> Trial:
    calls = [call for message in trajectory.messages for call in message.tool_calls]
    return Trial(trajectory.task, tuple(calls[:MOST_CALLS]), trajectory.messages)
