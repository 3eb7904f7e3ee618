"""Secrets masked in what leaves the store: the same secret gives the same words, in whatever row or text it stands.

Each value that is known as a secret anywhere in a store is masked wherever it stands, also where nothing tells what it
is, so that a password which one call names is not readable in the request before it. What is stored stays as it is.

What a person is shown of a store, and why a record was refused, is masked by what it holds itself (``masked``).
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from curation.errors import UsageError
from curation.secrets import KINDS, MAX_KEY_CHARACTERS, SHOWN_DIGITS, Secret, find, may_hold
from schemas.trajectory import Trajectory, decode

if TYPE_CHECKING:
    from curation.store import Store

_Shown = TypeVar("_Shown")
_Struct = TypeVar("_Struct", bound=msgspec.Struct)

_ROWS = 2_000
_LONG = 16  # characters from which on a value is not a part of a word by chance
_DIGEST = re.compile(rf"[0-9a-f]{{{SHOWN_DIGITS},64}}")
_SHOWN = re.compile(rf"<secret:({'|'.join(KINDS)}):([0-9a-f]{{{SHOWN_DIGITS}}})>")


class Mask:
    """Masks JSON values. ``known`` are the secrets to be found wherever they stand, by value; ``allowed`` those of
    which a digest, or its first digits, is given stay readable.
    """

    def __init__(self, known: Mapping[str, Secret], allowed: Sequence[str] = ()) -> None:
        self._allowed = tuple(allowed)
        self._known = {value: secret for value, secret in known.items() if not self._allows(secret)}

    def apply(self, value: Any) -> Any:
        """The value with a placeholder for every secret in it; the same object where there is none."""
        return self.apply_all([value])[0]

    def apply_all(self, values: Sequence[Any]) -> list[Any]:
        """Several values that stand together: what is told as a secret in one of them is masked in all."""
        text = msgspec.json.encode(values).decode()
        held = {secret.value: secret for secret in find(msgspec.json.decode(text))} if may_hold(text) else {}
        held = {value: secret for value, secret in held.items() if not self._allows(secret)}
        held |= {value: secret for form, value, secret in self._forms() if form in text}
        if not held:
            return list(values)
        forms = _forms(held.values())
        pattern = re.compile("|".join(_pattern(form) for form in sorted(forms, key=len, reverse=True)))
        return [_masked(value, pattern, forms) for value in values]

    def within(self, texts: Iterable[str | None]) -> "Mask":
        """The same mask for what is made of these JSON texts alone: with the known secrets that stand in them."""
        import polars as pl

        by_form = {form: secret for form, _, secret in self._forms()}
        if not by_form:
            return self
        held = pl.Series("held", list(texts), pl.String)
        found = held.str.extract_many(list(by_form), overlapping=True).explode().drop_nulls().unique()
        return Mask({by_form[form].value: by_form[form] for form in found.to_list()}, self._allowed)

    def _forms(self) -> Iterator[tuple[str, str, Secret]]:
        """How known values stand in JSON text, as strings and in JSON text within strings."""
        for value, secret in self._known.items():
            for form in dict.fromkeys((_escaped(value), _escaped(_escaped(value)))):
                yield form, value, secret

    def _allows(self, secret: Secret) -> bool:
        return bool(self._allowed) and secret.digest.startswith(self._allowed)


def read_mask(store: "Store", allowed: Sequence[str] = ()) -> Mask:
    """A mask that knows the secrets in all records of a store.

    ``allowed`` are digests of secrets, or their first eight digits and more. Raises UsageError for what is none.
    """
    for name in allowed:
        if not _DIGEST.fullmatch(name):
            raise UsageError(
                f"--allow-secret {name!r}: give a secret's digest, or its first {SHOWN_DIGITS} digits and more, as "
                "an import lists them"
            )
    known: dict[str, Secret] = {}
    for batch in store.stream("SELECT record FROM trajectories", {}, _ROWS):
        for record in batch.column("record").to_pylist():
            if may_hold(record):
                known.update((secret.value, secret) for secret in find(msgspec.json.decode(record)))
    return Mask(dict(sorted(known.items())), allowed)


_ALONE = Mask({})


def masked(value: _Shown) -> _Shown:
    """A text, or a JSON value, with the secrets masked that it gives away itself; the same object where it has none."""
    if isinstance(value, str) and not may_hold(value):
        return value
    try:
        return _ALONE.apply(value)  # type: ignore[no-any-return]
    except UnicodeEncodeError:  # a name that is no text, of a file perhaps
        readable = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        return _ALONE.apply(json.loads(readable))  # type: ignore[no-any-return]


def masked_struct(struct: _Struct) -> _Struct:
    """A struct of JSON values with the secrets masked that it gives away itself."""
    plain = msgspec.to_builtins(struct, str_keys=True)
    shown = masked(plain)
    return struct if shown is plain else msgspec.convert(shown, type(struct), str_keys=True)


def masked_record(record: Trajectory) -> Trajectory:
    """A record with the secrets masked that it gives away itself, in whichever of its messages."""
    text = msgspec.json.encode(record).decode()
    if not may_hold(text):
        return record
    plain = msgspec.json.decode(text)
    shown = _ALONE.apply(plain)
    return record if shown is plain else decode(msgspec.json.encode(shown))


def masked_start(text: str, limit: int) -> str:
    """The first characters of a text, none of them of a secret that is cut off there."""
    return masked(text[: limit + MAX_KEY_CHARACTERS])[:limit]


def masked_in(text: str) -> set[tuple[str, str]]:
    """The secrets that are masked in a text: kind and first digits of the digest of each."""
    return set(_SHOWN.findall(text)) if "<secret:" in text else set()


def _masked(value: Any, pattern: re.Pattern[str], forms: Mapping[str, str]) -> Any:
    match value:
        case str():
            return pattern.sub(lambda found: forms[found[0]], value)
        case dict():
            return {
                pattern.sub(lambda found: forms[found[0]], key): _masked(item, pattern, forms)
                for key, item in value.items()
            }
        case list() | tuple():
            return [_masked(item, pattern, forms) for item in value]
        case msgspec.Raw():
            return msgspec.Raw(msgspec.json.encode(_masked(msgspec.json.decode(value), pattern, forms)))
        case _:
            return value


def _forms(secrets: Iterable[Secret]) -> dict[str, str]:
    """What stands in place of a value as it is, and as it stands in JSON text within a text."""
    return {form: secret.shown for secret in secrets for form in (secret.value, _escaped(secret.value))}


def _pattern(form: str) -> str:
    r"""Where a value stands. Of a short one, not within a word, but after an escape such as ``\n`` in JSON text.

    A value never starts within an escape, so that JSON text stays JSON.
    """
    text = re.escape(form)
    if form[:1] in 'nrtbfu"\\/':
        text = rf"(?<!(?<!\\)\\){text}"
    if len(form) < _LONG:
        text = rf"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])){text}(?![A-Za-z0-9])"
    return text


def _escaped(value: str) -> str:
    """A value as it stands in JSON text."""
    return msgspec.json.encode(value).decode()[1:-1]
