"""Recording a store's answers on a cassette, an environment that gives them back."""

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from curation.errors import UsageError
from curation.jobs.cases import attempt_ids
from curation.store import Store
from environments.cassette import MAX_BYTES, Cassette, lines_of
from environments.protocol import EnvironmentFailure
from schemas.canonical import encode


class CassetteResult(msgspec.Struct):
    """What was recorded, and the name of the ``environment`` that gives it back.

    Of the ``calls`` of the ``trajectories``, ``recorded`` stand on the tape: each run up to its first call without a
    text answer. ``lines`` are the answers, equal ones in one state once; calls that were answered in several ways in
    one state, ``ambiguous``, are refused there.
    """

    environment: str
    trajectories: int
    calls: int
    recorded: int
    lines: int
    ambiguous: int
    bytes: int


def record_cassette(store: Store, path: Path, identities: Sequence[str] | None = None) -> CassetteResult:
    """Write what the calls of trajectories, by default of all attempts, were answered to a cassette.

    Raises UsageError for a folder that is not there; for a file that is there and is no cassette, which stays as it is;
    where there is no answer to record; and where the answers are more than a cassette may hold.
    """
    if not path.parent.is_dir():
        raise UsageError(f"{str(path)!r}: there is no folder {str(path.parent)!r}; make it, or name a file elsewhere")
    _refuse_other(path)
    identities = attempt_ids(store) if identities is None else list(dict.fromkeys(identities))
    calls, recorded, size = 0, 0, 0
    tape: dict[bytes, None] = {}
    for identity, trajectory in store.trajectories(identities):
        calls += sum(len(message.tool_calls) for message in trajectory.messages)
        for line in map(encode, lines_of(trajectory)):
            recorded += 1
            size += 0 if line in tape else len(line) + 1
            tape[line] = None
        if size > MAX_BYTES:
            raise UsageError(f"{path}: over {MAX_BYTES} bytes with {identity}; name fewer trajectories by their ids")
    if not tape:
        raise UsageError(f"no call of {len(identities)} trajectories has an answer to record: name others by their ids")
    _write(path, tape)
    held = Cassette(path).lines.values()
    return CassetteResult(
        environment=f"cassette:{path}",
        trajectories=len(identities),
        calls=calls,
        recorded=recorded,
        lines=len(tape),
        ambiguous=sum(len(answers) > 1 for answers in held),
        bytes=size,
    )


def _refuse_other(path: Path) -> None:
    if not path.exists():
        return
    try:
        Cassette(path)
    except EnvironmentFailure as error:
        raise UsageError(f"{path} exists, is no cassette, and stays as it is: name another file ({error})") from error


def _write(path: Path, lines: Iterable[bytes]) -> None:
    """All of the file or none of it: what is interrupted leaves the one before."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".cassette-") as folder:
        made = Path(folder, path.name)
        with made.open("wb") as file:
            file.writelines(line + b"\n" for line in lines)
        made.replace(path)
