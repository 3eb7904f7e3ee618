"""What a wrong decision of the log left behind, and whether the decision after it still holds on to the mistake."""

from builders.candidate import Candidate
from curation.diagnosis.arguments import arguments_of, leaves
from curation.diagnosis.evidence import shown
from schemas.statements import Execution


def effect_of(candidate: Candidate) -> Execution | None:
    """A call of the wrong decision after which the state was another one, whatever its answer says."""
    if candidate.rejected is None or candidate.wrong is None:
        return None
    done = candidate.rejected.executions(candidate.wrong)
    return next((run for run in done if run.state_before != run.state_after), None)


def takes_back(candidate: Candidate) -> bool:
    """Whether the state after the decision is the very one before the wrong decision."""
    if candidate.rejected is None or candidate.wrong is None:
        return False
    before = next((run.state_before for run in candidate.rejected.executions(candidate.wrong)), None)
    after = [run.state_after for run in candidate.chosen.executions(candidate.target.message)]
    return before is not None and after[-1:] == [before]


def wrong_value_kept(candidate: Candidate) -> tuple[str, str] | None:
    """A value that a finding calls wrong and that stands in the same place again, with nothing to be taken back."""
    if candidate.is_correction or candidate.wrong_message is None or effect_of(candidate) is not None:
        return None
    called = {call.uid: call.name for call in candidate.wrong_message.tool_calls}
    pointers = (item for finding in candidate.wrong_findings for item in finding.evidence if item.kind == "call")
    wrong = {(called.get(item.call or ""), item.path, item.value) for item in pointers if item.path}
    for call in candidate.message.tool_calls:
        for path, value in leaves(arguments_of(call)):
            if (call.name, path, shown(str(value))) in wrong:
                return path, shown(str(value))
    return None
