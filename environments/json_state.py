"""State that is one JSON value."""

from typing import Any, Generic, TypeVar

import msgspec

from environments.protocol import SnapshotError
from schemas.canonical import FORM, digest, encode

T = TypeVar("T")


class JsonState(Generic[T]):
    """A value made of structs, dicts, lists and scalars.

    The digest is over its canonical bytes, whose keys are sorted; the image keeps keys in the order they have, because
    what a world answers may follow it.
    """

    form = FORM

    def __init__(self, value: T) -> None:
        self.value = value

    @classmethod
    def restore(cls, image: bytes, kind: type[T]) -> "JsonState[T]":
        """The value of an image, checked against its type. Raises SnapshotError where it is none."""
        try:
            return cls(msgspec.json.decode(image, type=kind))
        except (msgspec.MsgspecError, RecursionError) as error:
            raise SnapshotError(f"the image is no {FORM} state of this world: {error}") from None

    def plain(self) -> Any:
        """The value as an encoder takes it."""
        return self.value

    def digest(self) -> str:
        """SHA-256 of the canonical bytes, the form's name in front."""
        return f"{FORM}:{digest(encode(self.plain()))}"

    def settled(self) -> str:
        """The same: a value keeps no trail."""
        return self.digest()

    def image(self) -> bytes:
        """The value as JSON."""
        return msgspec.json.encode(self.plain())

    def close(self) -> None:
        """Nothing is held."""
