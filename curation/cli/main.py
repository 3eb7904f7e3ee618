"""``curate``: mounts the verbs and turns our errors into one line and an exit code."""

import sys

import click
import typer

from curation.cli import (
    annotate,
    build,
    diagnose,
    fork,
    fsck,
    importing,
    init,
    repair,
    replay,
    report,
    show,
    sql,
)
from curation.errors import CurationError

app = typer.Typer(
    name="curate",
    help="Turn the failures in agent logs into training data that can be trusted.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("init")(init.init)
app.command("import")(importing.import_)
app.command("annotate")(annotate.annotate)
app.command("show")(show.show)
app.command("diagnose")(diagnose.diagnose)
app.command("replay")(replay.replay)
app.command("fork")(fork.fork)
app.command("repair")(repair.repair)
app.command("build")(build.build)
app.add_typer(report.app, name="report")
app.command("sql")(sql.sql)
app.command("fsck")(fsck.fsck)


def main() -> None:
    """Run the command line; exit code 0 done, 1 something was found wrong, 2 misuse or refused."""
    try:
        code = app(standalone_mode=False)
    except CurationError as error:
        print(f"curate: {error}", file=sys.stderr)
        sys.exit(2)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except Exception as error:
        from environments.protocol import EnvironmentFailure

        if not isinstance(error, EnvironmentFailure):
            raise
        print(f"curate: {error}", file=sys.stderr)
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        print("curate: interrupted; what was not committed is not there, run the same command again", file=sys.stderr)
        sys.exit(130)
    sys.exit(code if isinstance(code, int) else 0)
