"""Environments by name: the short names of ours, and ``module:attribute`` for any other."""

import importlib
from typing import Any, cast

from environments.protocol import Environment, EnvironmentFailure, EnvSpec

KNOWN = {
    "booking": "environments.booking:Booking",
    "inventory": "environments.inventory:Inventory",
}


class UnknownEnvironmentError(EnvironmentFailure):
    """A name that leads to no environment."""


def find(name: str) -> Environment:
    """The environment of a short name, or of ``module:attribute``: an instance, or what makes one without arguments.

    Raises UnknownEnvironmentError, which says what the name resolved to and what there is.
    """
    path = KNOWN.get(name, name)
    module_name, colon, attribute = path.partition(":")
    if not (module_name and colon and attribute):
        raise _unknown(name, path, "is no module:attribute")
    try:
        found: Any = getattr(importlib.import_module(module_name), attribute)
        if callable(found) and (isinstance(found, type) or not hasattr(found, "open")):
            found = found()
    except (Exception, SystemExit) as error:
        raise _unknown(name, path, f"cannot be loaded ({type(error).__name__}: {error})") from error
    if not (isinstance(getattr(found, "spec", None), EnvSpec) and callable(getattr(found, "open", None))):
        raise _unknown(name, path, f"gives a {type(found).__name__} without the spec and open of an environment")
    return cast("Environment", found)


def _unknown(name: str, path: str, why: str) -> UnknownEnvironmentError:
    resolved = "" if path == name else f" (resolved to {path!r})"
    known = ", ".join(sorted(KNOWN))
    return UnknownEnvironmentError(
        f"unknown environment {name!r}{resolved}: it {why}; known: {known}; or give module:attribute"
    )
