"""The first-action row: what was seen before any error, and the right call."""

from typing import Any

from builders.candidate import Candidate
from builders.render import Ids, provenance, render_messages, render_target, render_tools
from curation.masking import Mask
from schemas.canonical import encode
from schemas.rows import sample_id


def render(candidate: Candidate, mask: Mask) -> tuple[str, bytes]:
    """The sample id of the row and its JSON. A corrected decision carries no reasoning."""
    return render_completion(candidate, mask, reasoning=not candidate.is_correction)


def render_completion(candidate: Candidate, mask: Mask, *, reasoning: bool) -> tuple[str, bytes]:
    """A row whose completion is the target alone; its name is that of the masked columns."""
    ids = Ids()
    training: dict[str, Any] = {
        "prompt": render_messages(candidate.prompt, ids),
        "completion": render_target(candidate, ids, reasoning=reasoning),
        "tools": render_tools(candidate.tools),
    }
    training = mask.apply(training)
    identity = sample_id(candidate.kind, training)
    facts = provenance(candidate, candidate.kind, identity, mask)
    return identity, encode({**training, **{name: getattr(facts, name) for name in facts.__struct_fields__}})
