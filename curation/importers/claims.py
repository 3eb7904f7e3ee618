"""Who a log says said something. A log speaks for itself alone: what it claims in the name of a person, an environment
or a side file is its own word, and the claim is kept in the author's name.

A rule stays the rule's: it ranks below every log.
"""

import msgspec

from schemas.trajectory import Author, AuthorKind

PREFIX = "claims "


class Claim(msgspec.Struct, frozen=True, omit_defaults=True):
    """An author as an exported file names it."""

    by: AuthorKind = "log"
    name: str = ""
    version: str = ""


def claim_of(author: Author) -> Claim:
    """The author as an export names it; what a log claimed before is claimed again, not in the log's name."""
    kind, _, name = author.name.removeprefix(PREFIX).partition(" ")
    if author.kind == "log" and author.name.startswith(PREFIX):
        try:
            return msgspec.convert({"by": kind, "name": name, "version": author.version}, Claim)
        except msgspec.ValidationError:
            pass  # a name that no import gave
    return Claim(author.kind, author.name, author.version)


def speaker(claim: Claim) -> tuple[AuthorKind, str]:
    """Who says it when it is read from a log, and the name and version of that author as ``NAME@VERSION``."""
    if claim.by == "rule" and claim.name:
        return "rule", f"{claim.name}@{claim.version}"
    if claim == Claim():
        return "log", ""
    named = " ".join(filter(None, (claim.by, claim.name)))
    return "log", f"{PREFIX}{named}@{claim.version}"
