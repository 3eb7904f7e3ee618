"""What a training row must satisfy: one tuple of named predicates, all run on every candidate.

A test says what is wrong, or nothing; the sentence and the way out of each name are in schemas.reasons.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from msgspec import UNSET

from builders.candidate import FAULTS, Candidate, Subject, is_malformed, is_text
from builders.comparability import CONDITIONS, Condition
from builders.discover import NO_EVIDENCE
from builders.effects import effect_of, takes_back, wrong_value_kept
from builders.invention import find_invention
from builders.leakage import leaked_word, past_of, texts_of
from builders.loadable import first_unloadable
from curation.diagnosis.arguments import arguments_of
from curation.diagnosis.derivation import MAX_COMPARED, is_too_large
from curation.diagnosis.evidence import ERRORS
from curation.fork_plan import corrected_decisions, refuse_wrong_fork
from schemas.digests import action_digest
from schemas.levels import MAX_PLACEBO, is_at_least
from schemas.selection import KINDS, Difference, Kind
from schemas.trajectory import Message


class Wrong(NamedTuple):
    """Why a check fails: the field it is about and the two values that do not agree, or the one that is wrong."""

    field: str
    left: Any = None
    right: Any = None


class Check(NamedTuple):
    """A predicate on candidates of some kinds; its test gives what is wrong, or None."""

    name: str
    kinds: tuple[Kind, ...]
    test: Callable[[Candidate], Wrong | None]


def failures(candidate: Candidate) -> tuple[Difference, ...]:
    """Every check that the candidate fails, in the order of the checks."""
    return tuple(
        Difference(check.name, wrong.field, _shown(wrong.left), _shown(wrong.right))
        for check in _OF_KIND[candidate.kind]
        if (wrong := check.test(candidate)) is not None
    )


def _parent_revised(candidate: Candidate) -> Wrong | None:
    return Wrong("parent", candidate.chosen.id) if candidate.facts.revised else None


def _test_split(candidate: Candidate) -> Wrong | None:
    for facts in (candidate.facts, candidate.other):
        if facts is not None and facts.test is not None:
            return Wrong("split", facts.test, facts.twin if facts.test == "text" else None)
    return None


def _hidden_answer(candidate: Candidate) -> Wrong | None:
    correction = candidate.chosen.correction
    seen = correction is not None and "hidden_answer" in correction.reads
    return Wrong("correction.reads", "hidden_answer") if seen else None


def _history_incomplete(candidate: Candidate) -> Wrong | None:
    gap = candidate.chosen.first_gap
    return Wrong("message", gap) if gap <= candidate.target.message else None


def _contradicted_record(candidate: Candidate) -> Wrong | None:
    for subject in (candidate.chosen, candidate.rejected):
        if subject is not None and subject.contradiction is not None:
            return Wrong(f"call {subject.contradiction.call}", subject.contradiction.detail)
    return None


def _unconfirmed_prompt(candidate: Candidate) -> Wrong | None:
    message, call = candidate.chosen.first_unconfirmed
    return Wrong(f"call {call}") if message < candidate.target.message else None


def _malformed_prompt(candidate: Candidate) -> Wrong | None:
    message = candidate.chosen.first_malformed
    if message < candidate.target.message:
        return Wrong("message", message)
    return Wrong("request") if candidate.chosen.first_request > candidate.target.message else None


def _not_text(candidate: Candidate) -> Wrong | None:
    if candidate.chosen.first_not_text <= candidate.target.message:
        return Wrong("message", candidate.chosen.first_not_text)
    wrong = candidate.wrong_message if candidate.kind == "preference" else None
    return None if wrong is None or is_text(wrong) else Wrong("rejected message", candidate.wrong)


def _malformed_target(candidate: Candidate) -> Wrong | None:
    sides = [candidate.message]
    if candidate.kind == "preference" and candidate.wrong_message is not None:
        sides.append(candidate.wrong_message)
    found = (call for message in sides if is_malformed(message) for call in message.tool_calls)
    return next((Wrong(f"call {call.uid}", call.arguments_text) for call in found), None)


def _target_not_executed(candidate: Candidate) -> Wrong | None:
    if not candidate.message.tool_calls:
        return Wrong("message", candidate.target.message, "no call")
    results = {
        call.uid: candidate.chosen.execution_result(candidate.target.message, call)
        for call in candidate.message.tool_calls
    }
    return next(
        (Wrong(f"call {uid}", result or "not checked") for uid, result in results.items() if result != "passed"), None
    )


def _target_fails(candidate: Candidate) -> Wrong | None:
    """A correction is a whole: none of its calls may fail, also where only the first is trained."""
    decisions = corrected_decisions(candidate.chosen.trajectory) or [candidate.target.message]
    failures = (_answered_with(candidate.chosen, message, ERRORS | FAULTS) for message in decisions)
    return next(filter(None, failures), None)


def _failed_layer(candidate: Candidate) -> Wrong | None:
    failed = [layer for layer, result in candidate.layers().items() if result == "failed"]
    return Wrong("layer", ", ".join(failed)) if failed else None


def _level_below_wanted(candidate: Candidate) -> Wrong | None:
    level = candidate.level()
    return None if is_at_least(level, candidate.wanted) else Wrong("level", level, candidate.wanted)


def _repeated_call(candidate: Candidate) -> Wrong | None:
    again, before = candidate.chosen.repetitions.get(candidate.target.message, (None, None))
    return None if again is None else Wrong("call", again, before)


def _finding_on_target(candidate: Candidate) -> Wrong | None:
    found = candidate.chosen.findings.get(candidate.target.message)
    return Wrong("label", found[0].label) if found else None


def _error_in_prompt(candidate: Candidate) -> Wrong | None:
    first = candidate.chosen.first_error
    return Wrong("message", first) if first < candidate.target.message else None


def _wrong_fork(candidate: Candidate) -> Wrong | None:
    fork = candidate.chosen.trajectory.fork
    if fork is None:
        return None
    wanted = "recovery" if candidate.kind == "recovery" else "clean"
    if fork.kind != wanted:
        return Wrong("fork.kind", fork.kind, wanted)
    if candidate.rejected is None or fork.parent != candidate.rejected.id:
        return None
    refusal = refuse_wrong_fork(
        candidate.chosen.trajectory, candidate.chosen.verifications, candidate.rejected.verifications
    )
    return None if refusal is None else Wrong("state", refusal.detail)


def _too_large_to_check(candidate: Candidate) -> Wrong | None:
    past = past_of(candidate)
    messages = (*candidate.prompt, *(() if past is None else texts_of(past)))
    found = (call for call in candidate.message.tool_calls if is_too_large(arguments_of(call), messages))
    return next((Wrong(f"call {call.uid}", "values times characters", MAX_COMPARED) for call in found), None)


def _not_derivable(candidate: Candidate) -> Wrong | None:
    if _too_large_to_check(candidate):
        return None
    correction = candidate.chosen.correction
    if correction is not None and correction.author.kind == "human":
        return None
    path = find_invention(candidate)
    return None if path is None else Wrong(path, candidate.message.tool_calls[0].arguments_text)


def _placebo_too_high(candidate: Candidate) -> Wrong | None:
    if not candidate.is_correction or _not_derivable(candidate) is None:
        return None
    for item in (*candidate.chosen.checked_by(candidate.target.message, "step"), *candidate.chosen.task_checks()):
        if item.result == "passed" and item.placebo is not None and item.placebo > MAX_PLACEBO:
            return Wrong(f"{item.layer}.placebo", item.placebo, MAX_PLACEBO)
    return None


def _feedback_leaked(candidate: Candidate) -> Wrong | None:
    word = None if _too_large_to_check(candidate) else leaked_word(candidate)
    return None if word is None else Wrong("completion", word)


def _environment_fault(candidate: Candidate) -> Wrong | None:
    if any(finding.label == "environment" for finding in candidate.wrong_findings):
        return Wrong("label", "environment")
    if candidate.rejected is None or candidate.wrong is None:
        return None
    if any(execution.reason == "environment_fault" for execution in candidate.rejected.executions(candidate.wrong)):
        return Wrong("reason", "environment_fault")
    return _answered_with(candidate.rejected, candidate.wrong, FAULTS)


def _no_error_before(candidate: Candidate) -> Wrong | None:
    if candidate.rejected is None or candidate.wrong is None:
        return Wrong("message", candidate.target.message)
    errs = _answered_with(candidate.rejected, candidate.wrong, ERRORS) is not None
    return None if errs or _speaks_against(candidate) else Wrong("message", candidate.wrong)


def _not_after_answer(candidate: Candidate) -> Wrong | None:
    wrong = candidate.wrong_message
    between = candidate.prompt[(candidate.wrong or 0) + 1 :]
    answered = bool(between) and all(message.role == "tool" for message in between)
    return None if wrong is not None and wrong.tool_calls and answered else Wrong("message", candidate.target.message)


def _same_action(candidate: Candidate) -> Wrong | None:
    wrong = candidate.wrong_message
    if wrong is not None and _acts_alike(wrong, candidate.message):
        return Wrong("action", wrong.tool_calls[0].name)
    kept = wrong_value_kept(candidate)
    return None if kept is None else Wrong(*kept)


def _format_unanswered(candidate: Candidate) -> Wrong | None:
    """After a format error a recovery is a row only where the environment, and no harness, answered the call."""
    wrong = candidate.wrong_message
    if wrong is None or candidate.rejected is None or candidate.wrong is None:
        return None
    if not is_malformed(wrong) and all(finding.label != "format" for finding in candidate.wrong_findings):
        return None
    confirmed = bool(wrong.tool_calls) and all(
        candidate.rejected.execution_result(candidate.wrong, call) == "passed" for call in wrong.tool_calls
    )
    return None if confirmed else Wrong("message", candidate.wrong)


def _effect_not_undone(candidate: Candidate) -> Wrong | None:
    """For recoveries of the log; a recovery fork is only stored where its whole execution left nothing behind.

    Nothing is left where the decision takes the mistake's effect back, or where the task's check accepts the end.
    """
    if candidate.is_correction or candidate.rejected is None or candidate.wrong is None:
        return None
    if any(item.result == "passed" and candidate.supports(item) for item in candidate.chosen.task_checks()):
        return None
    run = effect_of(candidate)
    return None if run is None or takes_back(candidate) else Wrong("state", run.state_before, run.state_after)


def _number_not_loadable(candidate: Candidate) -> Wrong | None:
    messages = [*candidate.prompt, candidate.message]
    if candidate.kind == "preference" and candidate.wrong_message is not None:
        messages.append(candidate.wrong_message)
    texts = [
        bytes(call.arguments) for message in messages for call in message.tool_calls if call.arguments is not UNSET
    ]
    found = (number for text in (*texts, (candidate.tools or "").encode()) if (number := first_unloadable(text)))
    return next((Wrong("number", number) for number in found), None)


def _unknown_tools(candidate: Candidate) -> Wrong | None:
    return None if candidate.tools is not None else Wrong("tools")


def _no_evidence_at_decision(candidate: Candidate) -> Wrong | None:
    return None if _speaks_against(candidate) else Wrong("message", candidate.wrong)


def _corrector_saw_more(candidate: Candidate) -> Wrong | None:
    correction = candidate.chosen.correction
    more = () if correction is None else tuple(read for read in correction.reads if read not in ("request", "schema"))
    return Wrong("correction.reads", ", ".join(more)) if more else None


def _equivalent_actions(candidate: Candidate) -> Wrong | None:
    wrong = candidate.wrong_message
    if wrong is None or candidate.rejected is None or candidate.wrong is None:
        return None
    if _acts_alike(wrong, candidate.message):
        return Wrong("action", action_digest(wrong))
    left = [(run.answer, run.state_after) for run in candidate.rejected.executions(candidate.wrong)]
    right = [(run.answer, run.state_after) for run in candidate.chosen.executions(candidate.target.message)]
    known = bool(left) and all(None not in run for run in left)
    return Wrong("answer and state", left[0][0], right[0][0]) if known and left == right else None


def _forward_only(candidate: Candidate) -> Wrong | None:
    for subject in (candidate.chosen, candidate.rejected):
        fork = None if subject is None else subject.trajectory.fork
        if fork is not None and fork.restore.kind == "none":
            return Wrong("fork.restore", fork.restore.kind)
    return None


def _partial_context(candidate: Candidate) -> Wrong | None:
    return Wrong("context", candidate.target.context) if candidate.target.partial else None


def _unknown(condition: Condition) -> Callable[[Candidate], Wrong | None]:
    def test(candidate: Candidate) -> Wrong | None:
        sides = condition(candidate)
        return Wrong(condition.__name__, *sides) if sides.unknown else None

    return test


def _differs(condition: Condition) -> Callable[[Candidate], Wrong | None]:
    def test(candidate: Candidate) -> Wrong | None:
        sides = condition(candidate)
        return Wrong(condition.__name__, *sides) if sides.differ else None

    return test


_ONE: tuple[Kind, ...] = ("first_action", "recovery")
_FIRST: tuple[Kind, ...] = ("first_action", "preference")
_REPAIR: tuple[Kind, ...] = ("recovery",)
_PAIR: tuple[Kind, ...] = ("preference",)

CHECKS: tuple[Check, ...] = (
    Check("contradicted_record", KINDS, _contradicted_record),
    Check("parent_revised", KINDS, _parent_revised),
    Check("test_split", KINDS, _test_split),
    Check("hidden_answer", KINDS, _hidden_answer),
    Check("environment_fault", ("recovery", "preference"), _environment_fault),
    Check("finding_on_target", KINDS, _finding_on_target),
    Check("error_in_prompt", ("first_action",), _error_in_prompt),
    Check("no_error_before", _REPAIR, _no_error_before),
    Check("not_after_answer", _REPAIR, _not_after_answer),
    Check("same_action", _REPAIR, _same_action),
    Check("format_unanswered", _REPAIR, _format_unanswered),
    Check("effect_not_undone", _REPAIR, _effect_not_undone),
    Check("no_evidence_at_decision", _PAIR, _no_evidence_at_decision),
    Check("corrector_saw_more", _PAIR, _corrector_saw_more),
    Check("equivalent_actions", _PAIR, _equivalent_actions),
    Check("forward_only", _PAIR, _forward_only),
    Check("partial_context", _PAIR, _partial_context),
    Check("wrong_fork", KINDS, _wrong_fork),
    Check("too_large_to_check", KINDS, _too_large_to_check),
    Check("not_derivable", KINDS, _not_derivable),
    Check("placebo_too_high", KINDS, _placebo_too_high),
    Check("feedback_leaked", _FIRST, _feedback_leaked),
    Check("target_not_executed", KINDS, _target_not_executed),
    Check("target_fails", KINDS, _target_fails),
    Check("failed_layer", KINDS, _failed_layer),
    Check("level_below_wanted", KINDS, _level_below_wanted),
    Check("repeated_call", KINDS, _repeated_call),
    Check("unconfirmed_prompt", KINDS, _unconfirmed_prompt),
    Check("history_incomplete", KINDS, _history_incomplete),
    Check("malformed_prompt", KINDS, _malformed_prompt),
    Check("not_text", KINDS, _not_text),
    Check("malformed_target", KINDS, _malformed_target),
    Check("number_not_loadable", KINDS, _number_not_loadable),
    Check("unknown:tools", _ONE, _unknown_tools),
    *(Check(f"unknown:{name}", _PAIR, _unknown(condition)) for name, condition in CONDITIONS.items()),
    *(Check(f"differs:{name}", _PAIR, _differs(condition)) for name, condition in CONDITIONS.items()),
)

_OF_KIND: dict[Kind, tuple[Check, ...]] = {kind: tuple(c for c in CHECKS if kind in c.kinds) for kind in KINDS}


def _speaks_against(candidate: Candidate) -> bool:
    if any(finding.label not in NO_EVIDENCE for finding in candidate.wrong_findings):
        return True
    if candidate.rejected is None or candidate.wrong is None:
        return False
    return candidate.rejected.has_failed_layer(candidate.wrong)


def _answered_with(subject: Subject, message: int, statuses: frozenset[str]) -> Wrong | None:
    found = (run.status for run in subject.executions(message) if run.status in statuses)
    return next((Wrong("status", status) for status in found), None)


def _acts_alike(left: Message, right: Message) -> bool:
    return action_digest(left) == action_digest(right)


_MAX_SHOWN = 200


def _shown(value: Any) -> str | None:
    if value is None:
        return None
    text = value if isinstance(value, str) else str(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 1]}…"
