"""``curate environment``: worlds of one's own, and what is known of them."""

import typer

from curation.cli import cassette, conformance, power

app = typer.Typer(help="Make, check and measure environments.", no_args_is_help=True)


@app.callback()
def environment() -> None:
    """Make, check and measure environments."""


app.command("new")(conformance.new)
app.command("check")(conformance.check)
app.command("power")(power.power)
app.command("cassette")(cassette.cassette)
