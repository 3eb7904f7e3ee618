"""``curate``: mounts the verbs and turns our errors into one line and an exit code."""

import io
import sys
from contextlib import redirect_stderr
from typing import Annotated, Any, TextIO, cast

import typer

from curation.cli import (
    annotate,
    build,
    diagnose,
    diff,
    doctor,
    environment,
    export,
    forget,
    fork,
    formats,
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

_LONGEST = 2_000  # characters of a refusal


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"curate {version('curation')}")
        raise typer.Exit


app = typer.Typer(
    name="curate",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback()
def curate(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Turn the failures in agent logs into training data that can be trusted."""


app.command("init")(init.init)
app.command("formats")(formats.formats)
app.command("import")(importing.import_)
app.command("annotate")(annotate.annotate)
app.command("doctor")(doctor.doctor)
app.command("show")(show.show)
app.command("diff")(diff.diff)
app.command("diagnose")(diagnose.diagnose)
app.command("replay")(replay.replay)
app.command("fork")(fork.fork)
app.command("repair")(repair.repair)
app.command("build")(build.build)
app.command("export")(export.export)
app.add_typer(report.app, name="report")
app.add_typer(environment.app, name="environment")
app.command("forget")(forget.forget)
app.command("sql")(sql.sql)
app.command("fsck")(fsck.fsck)


def main() -> None:
    """Run the command line; exit code 0 done, 1 something was found wrong, 2 misuse or refused, 130 interrupted."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        with redirect_stderr(cast("TextIO", _Cleaned(sys.stderr))):
            app()
    except CurationError as error:
        _refuse(error)
    except SystemExit as end:
        if end.code == 130:
            text = "curate: interrupted; what was not committed is not there, run the same command again"
            print(text, file=sys.stderr)
        raise
    except Exception as error:
        from environments.protocol import EnvironmentFailure

        if not isinstance(error, EnvironmentFailure | OSError | UnicodeError):
            raise
        _refuse(error)


class _Cleaned:
    """A stream to which only text passes that no terminal obeys, and no secret: what is misused is quoted, a hostile
    file name too.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        from curation.masking import masked
        from schemas.display import clean

        self._stream.write(masked(clean(text)))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _refuse(error: Exception) -> None:
    from curation.masking import masked
    from schemas.display import clean_line

    said = masked(clean_line(str(error)))
    if len(said) > _LONGEST:  # the way out stands at the end
        said = f"{said[: _LONGEST // 2]} … {said[-_LONGEST // 2 :]}"
    print(f"curate: {said}", file=sys.stderr)
    sys.exit(2)
