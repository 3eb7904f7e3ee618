"""What a worker and its child process say to each other: length-prefixed JSON over a socket, typed at both ends."""

import socket
import time
from typing import Literal, TypeVar

import msgspec

from environments.blobs import MAX_IMAGE
from environments.catalogue import UnknownEnvironmentError
from environments.protocol import (
    CallResult,
    CheckResult,
    ControlError,
    Controls,
    EnvironmentFailure,
    SnapshotError,
    StartError,
)
from schemas.objects import Snapshot, ToolSpec
from schemas.trajectory import Message, Record, Task, ToolCall

MAX_FRAME = 2 * MAX_IMAGE  # an image is sent as base64
_PREFIX = 4


class Begin(Record, frozen=True, tag=True):
    """Load an environment; always the first request."""

    name: str
    controls: Controls


class Open(Record, frozen=True, tag=True):
    """Open a world at a snapshot with its image and base, or else at a task."""

    session: int
    task: Task = Task()
    snapshot: Snapshot | None = None
    image: bytes = b""
    base: bytes = b""


class Execute(Record, frozen=True, tag=True):
    """Execute one call, made at a time where the log tells it."""

    session: int
    call: ToolCall
    at: str | None = None


class Ask(Record, frozen=True, tag=True):
    """Say something of a world, or close it."""

    session: int
    what: Literal["tools", "state", "settled", "snapshot", "close"]


class Fetch(Record, frozen=True, tag=True):
    """Give bytes that a world has put into its blobs."""

    session: int
    name: str


class Grade(Record, frozen=True, tag=True):
    """Run a task's check."""

    session: int
    task: Task
    messages: tuple[Message, ...] = ()


class Done(Record, frozen=True, tag=True):
    """Nothing more to say than a digest, where one was asked for."""

    digest: str = ""


class Tools(Record, frozen=True, tag=True):
    """The tools of a world."""

    tools: tuple[ToolSpec, ...]


class Executed(Record, frozen=True, tag=True):
    """What a call gave."""

    result: CallResult


class Taken(Record, frozen=True, tag=True):
    """A snapshot and its image."""

    snapshot: Snapshot
    image: bytes


class Fetched(Record, frozen=True, tag=True):
    """The bytes."""

    data: bytes


class Graded(Record, frozen=True, tag=True):
    """What the check said."""

    result: CheckResult


class Failed(Record, frozen=True, tag=True):
    """An error of the environment (one of ERRORS), or any other exception ("")."""

    error: str
    detail: str


Request = Begin | Open | Execute | Ask | Fetch | Grade
Reply = Done | Tools | Executed | Taken | Fetched | Graded | Failed

ERRORS: dict[str, type[EnvironmentFailure]] = {
    error.__name__: error
    for error in (ControlError, SnapshotError, StartError, UnknownEnvironmentError, EnvironmentFailure)
}

REQUESTS: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)
REPLIES: msgspec.json.Decoder[Reply] = msgspec.json.Decoder(Reply)

M = TypeVar("M")


class BrokenLineError(Exception):
    """The other end is gone, or says what cannot be read."""


def failed(error: BaseException) -> Failed:
    """An exception as a reply, in one bounded line."""
    known = next((base.__name__ for base in type(error).__mro__ if base.__name__ in ERRORS), "")
    return Failed(known, (str(error) if known else f"{type(error).__name__}: {error}")[:500])


def send(line: socket.socket, message: Request | Reply, until: float | None = None) -> None:
    """Send one message by a monotonic deadline. Raises TimeoutError, BrokenLineError."""
    body = msgspec.json.encode(message)
    if len(body) > MAX_FRAME:
        raise BrokenLineError(f"a message of {len(body)} bytes, over the limit of {MAX_FRAME}")
    line.settimeout(_left(until))
    try:
        line.sendall(len(body).to_bytes(_PREFIX, "big") + body)
    except TimeoutError:
        raise
    except OSError as error:
        raise BrokenLineError(f"the process is gone ({error.strerror})") from None


def receive(line: socket.socket, form: msgspec.json.Decoder[M], until: float | None = None) -> M:
    """The next message, by a monotonic deadline. Raises TimeoutError, BrokenLineError."""
    length = int.from_bytes(_read(line, _PREFIX, until), "big")
    if length > MAX_FRAME:
        raise BrokenLineError(f"a message of {length} bytes, over the limit of {MAX_FRAME}")
    try:
        return form.decode(_read(line, length, until))
    except msgspec.MsgspecError as error:
        raise BrokenLineError(f"an unreadable message ({error})") from None


def _read(line: socket.socket, length: int, until: float | None) -> bytearray:
    body = bytearray()
    while len(body) < length:
        line.settimeout(_left(until))
        try:
            part = line.recv(min(length - len(body), 2**20))
        except TimeoutError:
            raise
        except OSError as error:
            raise BrokenLineError(f"the process is gone ({error.strerror})") from None
        if not part:
            raise BrokenLineError("the process is gone")
        body += part
    return body


def _left(until: float | None) -> float | None:
    if until is None:
        return None
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
