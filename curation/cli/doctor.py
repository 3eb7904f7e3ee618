"""``curate doctor``: what a store knows of its attempts, and what it lacks."""

from curation.cli.options import JsonOption, StoreOption


def doctor(store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Show what is known of the attempts and what is missing, how many that keeps from each use, and what helps.

    For FILE, `curate annotate --template FILE` writes an empty side file with a line for each attempt that lacks
    something.
    """
    from curation.cli.options import open_store
    from curation.cli.output import finish
    from curation.doctor import examine

    finish(examine(open_store(store)), as_json=as_json)
