"""The record: one attempt as the log holds it, or one fork as we executed it.

Its bytes hold only what was recorded: nothing inferred or counted, no path, clock or duration, no outcome.
Everything else that is known about it is a statement beside it.
"""

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from schemas.canonical import digest, encode

SCHEMA_VERSION = 1

Json = msgspec.Raw | UnsetType  # canonical bytes of arbitrary JSON; UNSET where there is none

Role = Literal["system", "user", "assistant", "tool"]
Origin = Literal["tool", "environment", "provider", "harness", "model"]
MatchedBy = Literal["id", "position", "name"]
ForkKind = Literal["clean", "recovery"]
RestoreKind = Literal["snapshot", "replayed_prefix", "compensation", "none"]
AuthorKind = Literal["log", "side_file", "environment", "rule", "human", "model", "sibling", "self_report"]
Reads = Literal["request", "schema", "observation", "state", "hidden_answer", "judge"]


class Record(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """Base of everything that is stored: frozen, unknown fields refused, absent optional fields absent."""


class Author(Record, frozen=True):
    """Who says something: a kind, a name inside it, and that author's version."""

    kind: AuthorKind
    name: str = ""
    version: str = ""


class Task(Record, frozen=True):
    """Which task was tried. ``parameters`` open its start state; absent means the world's default."""

    namespace: str | None = None
    id: str | None = None
    variant: str | None = None
    parameters: Json = UNSET


class Attempt(Record, frozen=True):
    """Which try of the task this is, as the log or its side file names it."""

    run: str | None = None
    index: int | None = None


class Budget(Record, frozen=True):
    """Limits the run was given; absent is unknown, never unlimited."""

    steps: int | None = None
    calls: int | None = None
    tokens: int | None = None
    seconds: float | int | None = None
    cost: float | int | None = None
    retries: int | None = None


class Conditions(Record, frozen=True):
    """What the log itself records of the circumstances. ``tools`` is the digest of a stored tool list."""

    tools: str | None = None
    budget: Budget | None = None
    model: str | None = None
    sampling: Json = UNSET
    seed: int | None = None
    agent: str | None = None
    environment: str | None = None
    notes: str | None = None


class Part(Record, frozen=True):
    """One piece of a message that is not plain text alone; what is not text is a stored blob, by digest."""

    type: str
    text: str | None = None
    sha256: str | None = None


class ToolCall(Record, frozen=True):
    """A call as the model wrote it.

    ``uid`` is ours (``message.position``). ``id`` is the log's and may be absent, empty or repeated.
    ``arguments`` is absent where ``arguments_text`` does not parse to an object; then ``parse_error`` says why.
    """

    uid: str
    name: str
    arguments_text: str
    id: str | None = None
    arguments: Json = UNSET
    parse_error: str | None = None


class Answers(Record, frozen=True):
    """Which call a tool message answers, and how that was found."""

    uid: str
    by: MatchedBy


class MessageError(Record, frozen=True):
    """An error that the log itself marks as one, never read out of the wording of a result."""

    message: str = ""
    kind: str | None = None
    origin: Origin | None = None


class Message(Record, frozen=True):
    """One message in the log's sequence.

    ``raw`` is what the tool returned where something changed it before the model saw it. ``hidden`` says that
    reasoning or compacted history before this message is not in the log. ``copied``: it stands in a history that was
    given, such as an edited one, and nobody took the decision there. ``extra`` is what we do not model.
    """

    role: Role
    content: str | tuple[Part, ...] | None = None
    reasoning: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    answers: Answers | None = None
    error: MessageError | None = None
    raw: str | None = None
    actor: str | None = None
    hidden: Literal["reasoning", "compaction"] | None = None
    copied: bool = False
    extra: Json = UNSET


class Usage(Record, frozen=True):
    """What the log says was spent."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost: float | int | None = None


class Correction(Record, frozen=True):
    """Who proposed the corrected call, and what they had read."""

    author: Author
    reads: tuple[Reads, ...] = ()


class Restore(Record, frozen=True):
    """How the world at the branch point was obtained; ``snapshot`` is the digest of a stored snapshot."""

    kind: RestoreKind
    environment: str = ""
    snapshot: str | None = None
    replayed: int = 0


class Fork(Record, frozen=True):
    """Where a trajectory leaves its parent: ``branch_point`` is the index of the first message that is its own."""

    parent: str
    branch_point: int
    kind: ForkKind
    correction: Correction
    restore: Restore
    continued_by: str | None = None


class Trajectory(Record, frozen=True):
    """An attempt of a task, or a fork of one. A fork holds the whole path and has no ``attempt``."""

    messages: tuple[Message, ...]
    task: Task = Task()
    attempt: Attempt | None = None
    conditions: Conditions = Conditions()
    stop_text: str | None = None
    usage: Usage | None = None
    fork: Fork | None = None
    extra: Json = UNSET


_DECODER = msgspec.json.Decoder(Trajectory)


def decode(record: bytes | str) -> Trajectory:
    """The trajectory of canonical bytes. Raises msgspec.ValidationError where they are none."""
    return _DECODER.decode(record)


def trajectory_id(trajectory: Trajectory) -> str:
    """The name of a trajectory: SHA-256 of its canonical bytes."""
    return digest(encode(trajectory))


def call_uid(message: int, position: int) -> str:
    """Our name of a call: the index of its message and its position there."""
    return f"{message}.{position}"


def answers_of(trajectory: Trajectory) -> dict[str, int]:
    """Call uid to the index of the first message that answers it."""
    found: dict[str, int] = {}
    for index, message in enumerate(trajectory.messages):
        if message.answers is not None:
            found.setdefault(message.answers.uid, index)
    return found


def text_of(content: str | tuple[Part, ...] | None) -> str:
    """The plain text of a message's content; parts that are no text are left out."""
    if isinstance(content, tuple):
        return "".join(part.text or "" for part in content)
    return content or ""
