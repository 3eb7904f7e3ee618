"""ATIF 1.0 to 1.8: ``{schema_version, session_id, agent, steps, final_metrics, extra}``, one trajectory a file.

The format knows no task, outcome or stop; what this project writes beside (``extra.curation``) is read back. Where a
trajectory goes on in another file, that file is read with it: what it repeats is left out, and what stands between the
two is not in the log. An embedded subagent is a run of its own, and stays with the run that it served, too.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from curation.importers.aside import Aside
from curation.importers.atif_block import BLOCK, Block, facts_of_block, restore_trajectory
from curation.importers.atif_steps import StepShape, read_steps
from curation.importers.beside import find_beside, pack, unpack
from curation.importers.branches import branched_from
from curation.importers.extra import kept_known
from curation.importers.face import MAX_RECORD_BYTES, Fact, Importer, Item, Parsed, RefusedError, Slice
from curation.importers.heads import head_value
from curation.importers.json_value import read_value
from schemas import canonical
from schemas.objects import make_object, tools_object
from schemas.trajectory import Attempt, Conditions, Message, Trajectory, Usage

FILLS: Mapping[str, str] = {
    "task": "side file",
    "tools": "recorded",
    "budget": "side file",
    "start_state": "side file",
    "attempt": "recorded",
    "outcome": "side file",
    "stop": "side file",
    "model": "recorded",
    "usage": "recorded",
    "reasoning": "recorded",
    "branch": "unknown",
}

VERSIONS = tuple(f"ATIF-v1.{minor}" for minor in range(9))
MAX_SEGMENTS = 100  # files that one trajectory may go on in
_ROOT = frozenset(("schema_version", "session_id", "trajectory_id", "agent", "steps", "final_metrics", "extra"))
_EMBEDDED = "subagent_trajectories"


class AgentShape(msgspec.Struct):
    """The agent that a trajectory is of."""

    name: str
    version: str
    model_name: str | None = None
    tool_definitions: list[Any] | None = None
    extra: dict[str, Any] | None = None


class MetricsShape(msgspec.Struct):
    """What a whole trajectory spent."""

    total_prompt_tokens: int | None = None
    total_completion_tokens: int | None = None
    total_cost_usd: float | int | None = None


class Document(msgspec.Struct):
    """A trajectory as ATIF has it; other keys are allowed and kept."""

    schema_version: str
    agent: AgentShape
    steps: list[StepShape]
    session_id: str | None = None
    trajectory_id: str | None = None
    final_metrics: MetricsShape | None = None
    continued_trajectory_ref: str | None = None
    subagent_trajectories: list[dict[str, Any]] | None = None
    extra: dict[str, Any] | None = None


class _Pointer(msgspec.Struct):
    continued_trajectory_ref: str | None = None


def sniff(head: bytes) -> str:
    """Whether the head is an object of an ATIF version, or with an agent's version and numbered steps."""
    value = head_value(head)
    if not isinstance(value, dict):
        return ""
    version, agent, steps = value.get("schema_version"), value.get("agent"), value.get("steps")
    if isinstance(version, str) and version.startswith("ATIF-"):
        return f"an object of {version[:20]}"
    numbered = isinstance(steps, list) and steps and isinstance(steps[0], dict) and "step_id" in steps[0]
    fits = numbered and isinstance(agent, dict) and agent.keys() >= {"name", "version"}
    return "an object with an agent and numbered steps" if fits else ""


def claims(path: Path) -> Iterator[Path]:
    """The files that the trajectory goes on in."""
    return iter([found for found, _ in segments(path, MAX_RECORD_BYTES)])


def slices(path: Path, limit: int = MAX_RECORD_BYTES) -> Iterator[Slice]:
    """The trajectory, with the files that it goes on in as context; together they are one record."""
    for piece in read_value(path, limit):
        if piece.data is None:
            yield piece
            continue
        rest = {found.name: data for found, data in segments(path, limit)}
        whole = len(piece.data) + sum(map(len, rest.values())) <= limit
        yield piece._replace(context=pack(rest)) if whole else piece._replace(data=None)


def segments(path: Path, limit: int) -> Iterator[tuple[Path, bytes]]:
    """The continuations of a file with their bytes, each named by the one before it."""
    seen = {path}
    data = path.read_bytes() if path.stat().st_size <= limit else b""
    while len(seen) <= MAX_SEGMENTS:
        try:
            name = msgspec.json.decode(data, type=_Pointer).continued_trajectory_ref
        except (msgspec.MsgspecError, RecursionError):
            return  # what is wrong with it is said where it is read
        found = None if name is None else find_beside(path.parent, name)
        if found is None or found in seen or found.stat().st_size > limit:
            return
        seen.add(found)
        data = found.read_bytes()
        yield found, data


def _build(value: Any, data: bytes, piece: Slice, replaced: int) -> Iterator[Item]:
    rest = unpack(piece.context)
    values = [value, *(canonical.parse(body)[0] for body in rest.values())]
    aside = Aside(replaced=replaced)
    aside.objects.extend(make_object("raw", body) for body in rest.values())
    trajectory, facts = read_documents(values, aside)
    yield _parsed(trajectory, facts, data, piece, aside, None)
    yield from subagents(values, trajectory.attempt.run if trajectory.attempt else None, data, piece)


def subagents(values: list[Any], served: str | None, data: bytes, piece: Slice) -> Iterator[Parsed]:
    """The runs of the subagents that documents hold, named after the run that they ``served``."""
    taken: set[str] = set()
    for number, embedded in enumerate(_embedded(values)):
        inner = Aside()
        trajectory, facts = read_documents([embedded], inner)
        name = str(embedded.get("trajectory_id") or number)
        name = f"{name}#{number}" if name in taken else name
        taken.add(name)
        if served is not None:
            trajectory = replace(trajectory, attempt=Attempt(f"{served}/{name}"))
        yield _parsed(trajectory, facts, data, piece, inner, f"subagent {name}")


def _parsed(
    trajectory: Trajectory, facts: tuple[Fact, ...], data: bytes, piece: Slice, aside: Aside, part: str | None
) -> Parsed:
    attempt = trajectory.attempt
    told = {fact.field for fact in facts}
    embedded = part is not None and "strata.sidechain" not in told  # a file by itself may be a subagent's, too
    return Parsed(
        trajectory,
        data,
        piece.place,
        piece.offset,
        key=None if attempt is None else attempt.run,
        objects=tuple(aside.objects),
        facts=(*facts, *([Fact("strata.sidechain", "yes")] if embedded else ()), *_clocks(aside, trajectory, told)),
        replaced=aside.replaced,
        warnings=aside.codes(),
        part=part,
    )


def _clocks(aside: Aside, trajectory: Trajectory, told: set[str]) -> tuple[Fact, ...]:
    return tuple(fact for fact in aside.clocks(trajectory.messages) if fact.field not in told)


def _embedded(values: list[Any]) -> Iterator[dict[str, Any]]:
    """Every subagent's trajectory, also those in other subagents'."""
    pending = deque(inner for value in values for inner in value.get(_EMBEDDED) or ())
    while pending:
        embedded = pending.popleft()
        yield embedded
        pending.extend(embedded.get(_EMBEDDED) or ())


def read_documents(values: list[Any], aside: Aside) -> tuple[Trajectory, tuple[Fact, ...]]:
    """A trajectory and the facts beside it, out of its document and those that it goes on in. Raises RefusedError."""
    documents = [_convert(value) for value in values]
    first, messages = documents[0], list[Message]()
    for number, (value, document) in enumerate(zip(values, documents, strict=True)):
        start = len(messages)
        kept = [index for index, step in enumerate(document.steps) if not number or not step.is_copied_context]
        read_steps(
            [value["steps"][index] for index in kept],
            [document.steps[index] for index in kept],
            "$.steps",
            messages,
            aside,
        )
        if number and len(messages) > start:
            messages[start] = replace(messages[start], hidden="compaction")
    if documents[-1].continued_trajectory_ref is not None:
        aside.warnings.append("continuation_missing")
    trajectory = _native(values[0], documents, tuple(messages), aside)
    block = _block(first)
    if block is None:
        return trajectory, ()
    facts = facts_of_block(block, aside)
    if block.lineage is not None:
        told = block.lineage
        index = None if told.run is None else told.attempt
        facts = (*facts, branched_from(told.run or told.parent, told.branch_point, index))
    return restore_trajectory(trajectory, block, aside), facts


def _convert(value: Any) -> Document:
    try:
        document = msgspec.convert(value, Document)
    except msgspec.ValidationError as error:
        raise RefusedError("not_a_record", str(error)) from None
    if document.schema_version not in VERSIONS:
        known = f"{VERSIONS[0]} to {VERSIONS[-1]}"
        raise RefusedError("not_a_record", f"$.schema_version is {document.schema_version!r}; known: {known}")
    return document


def _native(
    value: dict[str, Any], documents: list[Document], messages: tuple[Message, ...], aside: Aside
) -> Trajectory:
    """What the document says without our block."""
    first = documents[0]
    agent = first.agent
    tools = None if agent.tool_definitions is None else tools_object(agent.tool_definitions)
    if tools is not None:
        aside.objects.append(tools)
    named = f"{agent.name}@{agent.version}"
    run = first.trajectory_id or first.session_id
    extra = {key: item for key, item in value.items() if key not in _ROOT and item is not None}
    extra["trajectory_id"] = first.trajectory_id
    extra["session_id"] = first.session_id if first.trajectory_id else None
    extra["agent"] = None if named.rpartition("@")[::2] == (agent.name, agent.version) else [agent.name, agent.version]
    extra["agent_extra"] = agent.extra
    extra["extra"] = {key: item for key, item in (first.extra or {}).items() if key != BLOCK} or None
    extra["final_metrics"] = _metrics_left(value) or None
    spent = first.final_metrics
    if len(documents) > 1:  # each says what it spent itself, and nobody what all did
        extra.pop("continued_trajectory_ref", None)
        extra["final_metrics"] = [msgspec.to_builtins(document.final_metrics) for document in documents]
        spent = None
    if _EMBEDDED in extra:
        extra[_EMBEDDED] = [_blob(embedded, aside) for embedded in first.subagent_trajectories or ()] or None
    return Trajectory(
        messages,
        attempt=None if run is None else Attempt(run),
        conditions=Conditions(tools=None if tools is None else tools.id, model=agent.model_name, agent=named),
        usage=None
        if spent is None
        else Usage(spent.total_prompt_tokens, spent.total_completion_tokens, spent.total_cost_usd),
        extra=kept_known(extra),
    )


def _metrics_left(value: dict[str, Any]) -> dict[str, Any]:
    modelled = MetricsShape.__struct_fields__
    given = value.get("final_metrics") or {}
    return {key: item for key, item in given.items() if key not in modelled and item is not None}


def _blob(value: Any, aside: Aside) -> str:
    blob = make_object("blob", canonical.encode(value))
    aside.objects.append(blob)
    return blob.id


def _block(document: Document) -> Block | None:
    if not document.extra or BLOCK not in document.extra:
        return None
    try:
        return msgspec.convert(document.extra[BLOCK], Block)
    except msgspec.ValidationError as error:
        raise RefusedError("not_a_record", f"$.extra.{BLOCK}: {error}") from None


IMPORTER = Importer("atif", "1", sniff, slices, _build, claims=claims)
