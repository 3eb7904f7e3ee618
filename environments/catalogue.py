"""Environments by name: short names of ours, families of worlds that are told apart by what follows the name, and
``module:attribute`` for any other.
"""

import importlib
import re
from collections.abc import Callable
from typing import Any, NamedTuple, cast

from environments.protocol import Environment, EnvironmentFailure, EnvSpec

KNOWN = {
    "booking": "environments.booking:Booking",
    "inventory": "environments.inventory:Inventory",
}


class Family(NamedTuple):
    """Worlds of one kind, found as ``NAME``, ``NAME:WORLD`` or ``NAME:WORLD@VERSION``.

    ``open(rest)`` is the environment of what follows the family's name, ``members(rest)`` the full names of the single
    worlds that it stands for, ``versions()`` the versions there are, oldest first. All raise EnvironmentFailure where
    the rest means nothing, and ImportError where the package behind it is not installed.
    """

    open: Callable[[str], Environment]
    members: Callable[[str], tuple[str, ...]]
    versions: Callable[[], tuple[str, ...]] = tuple


FAMILIES = {
    "agentdojo": "environments.agentdojo:FAMILY",
    "cassette": "environments.cassette:FAMILY",
    "gymnasium": "environments.gymnasium:FAMILY",
    "tau_bench": "environments.tau_bench:FAMILY",
}
_RECORDED = frozenset(
    ("agentdojo", "gymnasium")
)  # families that a log may name: nothing of the name is a path or a module


class UnknownEnvironmentError(EnvironmentFailure):
    """A name that leads to no environment."""


def find(name: str) -> Environment:
    """The environment of a short name, of a family's world, or of ``module:attribute``: an instance, or what makes one
    without arguments.

    Raises UnknownEnvironmentError, which says what the name resolved to and what there is.
    """
    family = _family_of(name)
    if family:
        try:
            return _load(family).open(name[len(family) :])
        except (ImportError, EnvironmentFailure) as error:
            raise _unknown(name, name, f"opens no world of {family!r} ({error})") from error
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


def members(name: str) -> tuple[str, ...]:
    """The full names of the worlds that a name stands for: a family's name may leave open which one and, where it has
    a newest, which version. Raises UnknownEnvironmentError.
    """
    family = _family_of(name)
    if not family:
        return (name,)
    try:
        return _load(family).members(name[len(family) :])
    except (ImportError, EnvironmentFailure) as error:
        raise _unknown(name, name, f"opens no world of {family!r} ({error})") from error


def versions(name: str) -> tuple[str, ...]:
    """The versions in which a family's worlds can be opened, oldest first; none for other names.

    Raises UnknownEnvironmentError.
    """
    family = _family_of(name)
    if not family:
        return ()
    try:
        return _load(family).versions()
    except ImportError as error:
        raise _unknown(name, name, f"opens no world of {family!r} ({error})") from error


def is_ours(name: str) -> bool:
    """Whether a name that a log holds may be followed: it leads to a world of ours and to no other code or file."""
    return name in KNOWN or _family_of(name) in _RECORDED


def _family_of(name: str) -> str:
    head = re.split("[:@]", name, maxsplit=1)[0]
    return head if head in FAMILIES else ""


def _load(family: str) -> Family:
    module_name, _, attribute = FAMILIES[family].partition(":")
    return cast("Family", getattr(importlib.import_module(module_name), attribute))


def _unknown(name: str, path: str, why: str) -> UnknownEnvironmentError:
    resolved = "" if path == name else f" (resolved to {path!r})"
    known = ", ".join(sorted([*KNOWN, *FAMILIES]))
    return UnknownEnvironmentError(
        f"unknown environment {name!r}{resolved}: it {why}; known: {known}; or give module:attribute"
    )
