"""Values of a target that nobody gave: names, numbers and dates that follow from nothing in the prompt."""

from builders.candidate import Candidate, offered_tools
from curation.diagnosis.arguments import arguments_of, leaves
from curation.diagnosis.derivation import is_prose, underivable


def find_invention(candidate: Candidate) -> str | None:
    """The JSON pointer of a value of a new call that follows from nothing in the prompt."""
    wrong = candidate.wrong_message
    before = () if wrong is None else wrong.tool_calls
    old = {(call.name, call.arguments_text) for call in before}
    schemas = offered_tools(candidate.tools)
    for call in candidate.message.tool_calls:
        if (call.name, call.arguments_text) in old:
            continue
        replaced = next((item for item in before if item.uid == call.uid or item.name == call.name), None)
        besides = None if replaced is None else arguments_of(replaced)
        arguments = arguments_of(call)
        values = dict(leaves(arguments))
        for path in underivable(arguments, candidate.prompt, schemas.get(call.name), besides):
            # What a policy itself composed is its own; a name, number or date that nobody gave it is invented.
            if candidate.chosen.correction is not None or not is_prose(values.get(path)):
                return path or "arguments"
    return None
