"""From agent logs to verified forks: importers, store, diagnosis, replay, repair and the command line."""

from importlib.util import find_spec
from pathlib import Path

_HOME = Path(__file__).resolve().parent.parent

for _name in ("builders", "environments", "reports", "schemas"):
    _spec = find_spec(_name)
    _origin = None if _spec is None else _spec.origin
    if _origin is not None and Path(_origin).resolve() != _HOME / _name / "__init__.py":
        raise ImportError(
            f"curation comes with its own package {_name!r}, but Python finds {_origin!r} first: "
            "rename that, start Python in another folder, or start it with -P"
        )
