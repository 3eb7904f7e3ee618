"""``curate replay``: are the logged answers the real ones?"""

from curation.cli.options import EnvironmentOption, JsonOption, StoreOption


def replay(environment: EnvironmentOption, store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Execute the logged calls again and compare every answer with the logged one.

    Takes the attempts that were recorded in this environment or in none that is known. Exit code 1 where an answer is
    different.
    """
    from curation.cli.options import open_store
    from curation.cli.output import finish
    from curation.jobs.replaying import replay_attempts

    result = replay_attempts(open_store(store), environment)
    finish(result, as_json=as_json, wrong=result.different > 0)
