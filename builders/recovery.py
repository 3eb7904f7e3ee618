"""The recovery row: a prompt that ends with the wrong call and its real answer, and the call that puts it right."""

from builders.candidate import Candidate
from builders.first_action import render_completion
from curation.masking import Mask


def render(candidate: Candidate, mask: Mask) -> tuple[str, bytes]:
    """The sample id of the row and its JSON."""
    return render_completion(candidate, mask, reasoning=True)
