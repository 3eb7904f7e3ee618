"""``curate formats``: what a log of each format can tell."""

from curation.cli.options import JsonOption


def formats(as_json: JsonOption = False) -> None:
    """Show, by format, which facts its logs record, which a rule infers, and which only a side file can tell."""
    from curation.cli.output import finish
    from curation.format_facts import format_facts

    finish(format_facts(), as_json=as_json)
