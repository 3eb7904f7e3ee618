"""Where a file may be written: never over a store, a log that was read, or anything that no verb of ours wrote."""

from pathlib import Path

from curation.errors import UsageError
from curation.store import Store

_REPORTS = (b"<!doctype html>", b"# Selection bias", b'{"attempts_without_task"')


def refuse_target(path: Path, store: Store) -> None:
    """Raise UsageError where writing a report to ``path`` would destroy what is no report."""
    target = path.resolve()
    if "://" not in store.uri and target.is_relative_to(Path(store.uri).resolve()):
        raise UsageError(f"--out {str(path)!r} lies inside the store {store.uri!r}; name a place outside of it")
    if not target.exists():
        return
    if not target.is_file():
        raise UsageError(f"--out {str(path)!r} is no file; name a file, or a place where there is none")
    with target.open("rb") as file:
        head = file.read(64)
    if head and not head.lower().startswith(tuple(start.lower() for start in _REPORTS)):
        raise UsageError(
            f"--out {str(path)!r} holds something that is no report; name another file, or remove it first"
        )
