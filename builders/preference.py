"""The preference row: one prompt, the decision that is better confirmed, and the one with evidence against it."""

from typing import Any

from builders.candidate import Candidate
from builders.render import Ids, provenance, render_messages, render_target, render_tools
from curation.masking import Mask
from schemas.canonical import encode
from schemas.rows import PreferenceRow, sample_id


def render(candidate: Candidate, mask: Mask) -> tuple[str, bytes]:
    """The sample id of the row and its JSON. Neither side carries reasoning: only the action is preferred."""
    assert candidate.rejected is not None  # noqa: S101
    assert candidate.wrong is not None  # noqa: S101
    ids = Ids()
    prompt = render_messages(candidate.prompt, ids)
    wrong = candidate.rejected.messages[candidate.wrong]
    training: dict[str, Any] = {
        "prompt": prompt,
        "chosen": render_target(candidate, ids.branch(), reasoning=False),
        "rejected": render_messages([wrong], ids.branch(), reasoning=False),
        "tools": render_tools(candidate.tools),
    }
    training = mask.apply(training)
    identity = sample_id("preference", training)
    facts = provenance(candidate, "preference", identity, mask)
    row = PreferenceRow(
        **training,
        **{name: getattr(facts, name) for name in facts.__struct_fields__},
        rejected_trajectory_id=candidate.rejected.id,
        rejected_message=candidate.wrong,
        pair_grade=_grade(candidate),
    )
    return identity, encode(row)


def _grade(candidate: Candidate) -> str:
    """How near the two sides are: a fork of the rejected one, a fork of another attempt, or another attempt."""
    fork = candidate.chosen.trajectory.fork
    if fork is None:
        return "attempts"
    return "own_fork" if candidate.rejected and fork.parent == candidate.rejected.id else "other_fork"
