"""Policies by name: ``scripted:FILE.json``, or ``module:attribute`` of the user's own."""

import importlib
from pathlib import Path
from typing import Any, cast

from curation.errors import UsageError
from curation.policies.policy import Policy
from curation.policies.scripted import from_file

_SCRIPTED = "scripted:"


def find_policy(name: str) -> Policy:
    """The policy of a name: an instance, or what makes one without arguments.

    Raises UsageError, which says what is missing.
    """
    if name.startswith(_SCRIPTED):
        return from_file(Path(name.removeprefix(_SCRIPTED)))
    module_name, colon, attribute = name.partition(":")
    if not (module_name and colon and attribute):
        raise _unknown(name, "is no module:attribute")
    try:
        found: Any = getattr(importlib.import_module(module_name), attribute)
        if isinstance(found, type) or (callable(found) and not hasattr(found, "respond")):
            found = found()
    except (Exception, SystemExit) as error:
        raise _unknown(name, f"cannot be loaded ({type(error).__name__}: {error})") from error
    texts = [getattr(found, field, None) for field in ("name", "version")]
    if not (all(isinstance(text, str) and text for text in texts) and callable(getattr(found, "respond", None))):
        raise _unknown(name, f"gives a {type(found).__name__} without the name, version and respond of a policy")
    return cast("Policy", found)


def _unknown(name: str, why: str) -> UsageError:
    return UsageError(f"no policy {name!r}: it {why}; give scripted:FILE.json or module:attr")
