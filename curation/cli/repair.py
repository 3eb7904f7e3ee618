"""``curate repair``: forks with the corrected call really executed."""

from pathlib import Path
from typing import Annotated

import typer

from curation.cli.options import ControlOption, EnvironmentOption, JsonOption, StoreOption


def repair(
    environment: EnvironmentOption,
    proposals: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="Corrections by people, in JSONL.")
    ] = None,
    siblings: Annotated[
        bool,
        typer.Option(
            help="Also propose what another attempt did at equal information, where no rule proposes anything."
        ),
    ] = True,
    control: ControlOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fork every confirmed deviation, with the right call executed.

    Each is executed before and after the wrong call, in two processes. Corrections are what a rule can justify from the
    record, else what another attempt of the task did where it knew the same, or what --proposals hands in; a person's
    is also a finding that the decision was wrong. Of several calls the last is the right one and those before take the
    mistake's effect back: the clean fork holds only the last, the recovery executes all in order, and its row trains
    the first. Beside the yield stands what repair would do to calls that are known to be right.
    """
    from curation.cli.options import open_store, read_controls
    from curation.cli.output import finish
    from curation.jobs.repairing import repair_attempts
    from curation.proposals import read_proposals

    handed = read_proposals(proposals) if proposals else ()
    controls = read_controls(control)
    finish(repair_attempts(open_store(store), environment, handed, controls, siblings=siblings), as_json=as_json)
