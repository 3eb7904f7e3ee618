"""Training rows: the columns a trainer reads, and flat provenance columns beside them.

Messages are plain JSON objects with ``content`` always a string and ``arguments`` always an object; call ids are
positional (``call_1``, ...). Names follow what trainers accept; RESERVED names would change what they do.
"""

from typing import Any, Literal

import msgspec

from schemas.canonical import digest, encode

RESERVED = frozenset(
    """
    labels input_ids attention_mask position_ids image images text conversations messages label margin weight
    completion_mask assistant_masks seq_lengths prompt_ids chosen_ids rejected_ids ref_chosen_logps
    ref_rejected_logps chat_template_kwargs completions prompts completion_ids trainer_state log_extra log_metric
    environments environment
    """.split()
)

Wanted = Literal["execution", "step", "task"]
"""The levels that a build may ask for."""

HELD_OUT = ("test", "validation", "valid", "val", "dev", "eval", "heldout", "held-out", "held_out")
"""The splits that give no rows unless a build is told otherwise."""


class Provenance(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a row comes from and how much of it is confirmed; scalars only, absent values are null.

    ``informative``: the corrected call was answered otherwise, or left another state, than the wrong one in its place.
    ``outcome`` is what is known of how the attempt ended that holds the trained decision; a fork has no end.
    """

    sample_id: str
    kind: str
    task: str | None
    strata_json: str
    trajectory_id: str
    message: int
    parent_trajectory_id: str | None
    branch_point: int | None
    fork_kind: str | None
    env_name: str | None
    env_snapshot: str | None
    level: str
    placebo_rate: float | None
    informative: bool | None
    evidence: str
    correction_source: str | None
    error_labels_json: str
    attempt_index: int | None
    n_attempts: int
    outcome: str | None
    context_digest: str
    tools_sha256: str | None


class CompletionRow(Provenance, frozen=True, kw_only=True):
    """A first-action or recovery row: the completion is exactly one assistant message."""

    prompt: list[dict[str, Any]]
    completion: list[dict[str, Any]]
    tools: list[Any]


class PreferenceRow(Provenance, frozen=True, kw_only=True):
    """A preference row: chosen and rejected are exactly one assistant message each, after the same prompt."""

    prompt: list[dict[str, Any]]
    chosen: list[dict[str, Any]]
    rejected: list[dict[str, Any]]
    tools: list[Any]
    rejected_trajectory_id: str
    rejected_message: int
    pair_grade: str


Row = CompletionRow | PreferenceRow

TRAINING_COLUMNS: dict[str, tuple[str, ...]] = {
    "first_action": ("prompt", "completion", "tools"),
    "recovery": ("prompt", "completion", "tools"),
    "preference": ("prompt", "chosen", "rejected", "tools"),
}


def sample_id(kind: str, training: dict[str, Any]) -> str:
    """The name of a row: SHA-256 of its kind and its training columns, in whatever order their keys are shown."""
    return digest(encode(msgspec.json.decode(encode([kind, training]))))
