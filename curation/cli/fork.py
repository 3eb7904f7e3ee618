"""``curate fork``: both forks of one decision, with a call that a person gives, and a policy that goes on after it."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from curation.cli.options import ControlOption, EnvironmentOption, JsonOption, StoreOption, importable
from curation.errors import UsageError

if TYPE_CHECKING:
    from curation.continuation import Players
    from curation.policies.policy import Policy

User = Literal["none", "scripted", "policy"]


def fork(
    identity: Annotated[
        str, typer.Argument(metavar="ID", help="The trajectory or attempt, by its id or as a log calls it.")
    ],
    at: Annotated[int, typer.Option(min=0, metavar="MESSAGE", help="The index of the wrong decision's message.")],
    call: Annotated[
        list[str],
        typer.Option(
            metavar="JSON",
            help='The right call: {"name": ..., "arguments": {...}}. What takes the mistake\'s effect back comes '
            "before it, each call with a --call of its own: the clean fork holds only the last call; the recovery "
            "executes all in order, and its row trains the first.",
        ),
    ],
    environment: EnvironmentOption,
    author: Annotated[str, typer.Option(help="Who proposes the call.")] = "command line",
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            callback=lambda name: name and importable(name),
            help="Who goes on after the call, as one more fork: module:attr, or scripted:FILE.json. It gets no more "
            "than the parent's budget leaves.",
        ),
    ] = None,
    user: Annotated[
        User, typer.Option(help="Who takes a person's turn when the policy ends with a text: by default nobody.")
    ] = "none",
    user_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --user scripted: a JSON list of the person's texts.")
    ] = None,
    user_policy: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            callback=lambda name: name and importable(name),
            help="With --user policy: module:attr of a policy that speaks for the person.",
        ),
    ] = None,
    control: ControlOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Execute a corrected call before and after a wrong one.

    Both forks are stored with what was answered. The correction is also its author's word that the decision was wrong:
    a finding. The author is taken to have read the whole log, the error included. Exit code 1 where a fork is refused.

    With --policy each fork goes on in its world, call by call, until a text that nobody answers, the end of the budget,
    or a call that is not answered alike in two processes. What the log's user said later is never used.
    """
    from curation.cli.options import open_store, read_controls
    from curation.cli.output import finish
    from curation.jobs.forking import fork_attempt
    from curation.proposals import read_calls
    from curation.store.lookup import resolve_trajectory

    opened = open_store(store)
    proposal = read_calls(resolve_trajectory(opened, identity), at, call, author)
    players = _players(policy, user, user_file, user_policy)
    result = fork_attempt(opened, environment, proposal, players, read_controls(control))
    finish(result, as_json=as_json, wrong=not all(line.verified for line in result.forks))


def _players(policy: str | None, user: User, user_file: Path | None, user_policy: str | None) -> "Players | None":
    from curation.continuation import Players
    from curation.policies.catalogue import find_policy
    from curation.policies.scripted import from_file

    speaker: Callable[[], Policy] | None = None
    for name, given, wanted in (("--user-file", user_file, "scripted"), ("--user-policy", user_policy, "policy")):
        if (given is not None) != (user == wanted):
            raise UsageError(f"--user {user} with {name} {given}: --user {wanted} and {name} belong together")
    if user_file is not None:
        speaker = partial(from_file, user_file)
    elif user_policy is not None:
        speaker = partial(find_policy, user_policy)
    if policy is None:
        if speaker is not None:
            raise UsageError(f"--user {user} without --policy: nothing goes on that a person could answer")
        return None
    for make in (partial(find_policy, policy), speaker):
        if make is not None:
            make()  # what cannot be had is refused before anything is executed
    return Players(partial(find_policy, policy), speaker)
