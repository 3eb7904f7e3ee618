"""Every closed enum of refusals in one table each: code, one sentence, and the way out.

Documentation and ``show`` are generated from here; no other place words a refusal.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Reason(NamedTuple):
    """What a code means, and what a user can do about it."""

    sentence: str
    way_out: str


QUARANTINE: dict[str, Reason] = {
    "not_json": Reason("The line is not JSON.", "Mend the line in the log and import again."),
    "truncated": Reason("The line ends in the middle of a value.", "Import the complete file again."),
    "trailing_text": Reason("Text follows the value on the line.", "One JSON value a line."),
    "duplicate_key": Reason("An object holds the same key twice, so parsers disagree.", "Write each key once."),
    "too_deep": Reason("Values are nested more than 200 deep.", "Flatten the value or leave it out of the log."),
    "bad_utf8": Reason("The bytes are not UTF-8.", "Write the log as UTF-8."),
    "number_out_of_range": Reason("A number is too large to be read exactly.", "Write it as a string."),
    "too_large": Reason("The item is over the size limit.", "Split the record, or raise --max-record-bytes."),
    "unsafe_archive": Reason(
        "An archive, or a member of it, is damaged, over a limit, or leads outside.",
        "Write the archive again, with plain members.",
    ),
    "erased": Reason(
        "What the item holds was erased on request (`curate forget`), so that its bytes are not stored again.",
        "None needed; if it is to come back: curate import --readmit.",
    ),
    "not_a_record": Reason("The item is not of this format's shape.", "Name the right --format, or mend the item."),
    "unknown_role": Reason("A message has a role this format does not define.", "Map the role before importing."),
    "no_call": Reason(
        "A message is a call by its role, but its text holds none.", "Write calls as JSON with a name and arguments."
    ),
    "bad_side_keys": Reason("The keys that say which attempt this is are of a wrong type.", "Mend the inline keys."),
    "repeated_id": Reason(
        "Two entries of a session have one id and say different things.", "Mend the log: an id stands for one entry."
    ),
    "parent_cycle": Reason(
        "The line's predecessors lead back to it; without it the others are read as fragments.", "Mend the log."
    ),
    "importer_fault": Reason(
        "The importer failed on the item, which is a mistake of ours; it was left out, and the others were read.",
        "Tell us the words of the error, with the item if it may be shown.",
    ),
    "attempt_taken": Reason(
        "The store holds other bytes for the same attempt.",
        "Import with --run NAME if this is another try, or with --revise if it is the same try read better.",
    ),
    "raw_known": Reason(
        "The store holds the same log line as another record.",
        "Import with --run NAME if this is another try, or with --revise if it is the same try read better.",
    ),
}

WARNINGS: dict[str, Reason] = {
    "double_encoded": Reason("Arguments are JSON text inside JSON text; kept as written.", "Decode them in the log."),
    "orphan_answer": Reason("A tool message answers no call.", "Check the log's call ids."),
    "repeated_call_id": Reason("A call id stands for several calls; answers were paired by order.", "None needed."),
    "gold_suffix": Reason(
        "After the end of the run the log goes on with the hidden answer's own calls.", "Cut them off in the log."
    ),
    "calls_left_out": Reason(
        "The calls of the run are over the size limit together; only the one that ends it was read, without usage.",
        "Raise --max-record-bytes.",
    ),
    "content_not_captured": Reason(
        "The trace holds calls of the model of which neither question nor answer was recorded; they are in no run.",
        "Record the content of messages (the tracer has a setting for it), then import again.",
    ),
    "calls_in_text": Reason(
        "Texts of the model hold calls as a chat template writes them (`<tool_call>`); they stay text, not calls.",
        "Write them as tool_calls, or as messages of the role function_call, in the log.",
    ),
    "claimed_authors": Reason(
        "The log gives facts in the name of a person, an environment or a side file; they are its own word.",
        "Say them beside the log: curate annotate.",
    ),
    "claims_not_read": Reason(
        "The log tells of checks, or of facts that are only found by looking at the record; they are not read.",
        "Find them again: curate replay, curate diagnose.",
    ),
    "clocks_cut": Reason(
        "The log gives a time to more messages with calls than are kept; the last one kept holds for the rest.",
        "None needed: later calls are replayed at that time.",
    ),
    "continuation_missing": Reason(
        "The trajectory goes on in a file that was not read: none of that name stands beside it, it is too large, it "
        "was read before, or 100 were read already.",
        "Put the file beside it under the name that it gives, and import again.",
    ),
    "dangling_parent": Reason(
        "A line names a predecessor that is not in the file, so the history before it is unknown.",
        "Import the complete session.",
    ),
    "history_left_out": Reason(
        "The run goes on from calls that so many runs of its log share that they were not read again for it; its "
        "record begins with its own calls.",
        "Import the session from a file of its own.",
    ),
    "parents_unknown": Reason(
        "No line of the session names the one before it; its messages are in the order of the lines.", "None needed."
    ),
    "repeated_lines": Reason(
        "Lines, calls, runs or spans stand in the log more than once; they were read once.", "None needed."
    ),
    "repeated_event_id": Reason("An event id stands for several events; all of them were read.", "None needed."),
    "replayed_calls": Reason(
        "After a compaction the log says again what calls were made before it; they were read once.", "None needed."
    ),
    "unread_lines": Reason(
        "Lines in the middle of a session could not be read, so the history after them is incomplete.",
        "Import the complete file again.",
    ),
    "lossy_stream": Reason(
        "The stream tells of commands and words, but not of the request, the tools and what exactly the model wrote.",
        "Import the rollout file of the same session instead.",
    ),
    "models_differ": Reason(
        "Answers of one run are of different models, so that the record names none.",
        "None needed: `curate show` lists them.",
    ),
    "nulls_left_out": Reason(
        "Nulls in the arguments of calls were left out: a columnar file fills in the keys of all other calls.",
        "Write arguments as text, so that a columnar file keeps them as they are.",
    ),
    "surrogates_replaced": Reason("Lone surrogate escapes became U+FFFD.", "The raw line is kept."),
}

NOT_CARRIED: dict[str, Reason] = {
    "about_message": Reason(
        "A person's or a side file's finding, or check of a message or call, is about the old record.",
        "Say it again of the revised record.",
    ),
    "executed": Reason(
        "An environment executed the calls of the old record.", "Execute those of the revised one: curate replay."
    ),
}

UNVERIFIABLE: dict[str, Reason] = {
    "environment_fault": Reason(
        "The logged answer is a failure of the environment itself.", "None: it says nothing about the call."
    ),
    "fault_in_replay": Reason("Executing the call again failed or took too long.", "Replay again."),
    "truncated": Reason(
        "The log marks its answer as cut, or the executed one is longer than is kept.",
        "Log whole answers; raise the output limit of the environment.",
    ),
    "volatile_only": Reason(
        "The answers differ only where the answer moves from execution to execution and no declared rule says so.",
        "Hold it fixed with a control, or declare a rule for it in the environment.",
    ),
    "unwitnessed": Reason(
        "The answers differ only where a declared rule lets them move, and no other process gave answers to see it.",
        "Replay again, where the start state opens more than once.",
    ),
    "order_unknown": Reason(
        "The log answers the calls of one message in another order than it makes them, and what they do depends on it.",
        "Log answers in the order of their calls.",
    ),
    "mediated": Reason(
        "The log holds only what something made of the answer before the model saw it.",
        "Log the tool's raw answer beside the text that was shown.",
    ),
    "recorded_only": Reason(
        "The environment gives recorded answers back, so that equal answers say nothing.",
        "Replay in an environment that executes calls.",
    ),
    "no_recorded_answer": Reason("The log holds no answer to the call.", "Log every tool result."),
    "not_text": Reason("The logged answer holds parts that are no text.", "Log the tool's raw text."),
}

DIFFERENT: dict[str, Reason] = {
    "recorded_alike": Reason(
        "Other attempts were told the same in place of the environment's answer: it may not be what it was.",
        "Replay in the version that the runs were recorded in.",
    ),
}

NOT_RUN: dict[str, Reason] = {
    "not_executable": Reason("The call does not parse, and the environment answers no such calls.", "None needed."),
    "state_unknown": Reason(
        "An earlier time-out, fault or unanswered write leaves the state unknown.", "None: start another attempt."
    ),
    "external_effect": Reason("The tool reaches outside of the environment.", "Declare a world that stands in for it."),
    "refused": Reason("The environment refused to execute the call.", "See the detail of the verification."),
    "start_unavailable": Reason(
        "The environment cannot open the start state of the task.", "Give the task's parameters in a side file."
    ),
}

VERSIONS: dict[str, Reason] = {
    "one_task": Reason("The run tried one task only, so none is left to confirm a choice.", "Import more of the run."),
    "nothing_agrees": Reason(
        "In no version is any answer or outcome as logged.",
        "Name the environment with the side-file key 'environment'.",
    ),
}

REPAIR: dict[str, Reason] = {
    "no_proposal": Reason("Nothing in the record says what the right call is.", "Give one with --proposals FILE."),
    "no_call": Reason("The deviation is no call whose answer an environment gave.", "None: there is nothing to swap."),
    "same_call": Reason("The proposed call is the wrong call itself.", "Propose another call."),
    "parent_revised": Reason("A better reading of the same attempt is stored.", "Repair the revised record."),
    "erased": Reason("This very fork was erased by its name (`curate forget`).", "None: it is not made again."),
    "contradicted_record": Reason(
        "An answer in the record is not the real answer of its call.", "None: the record cannot be trusted."
    ),
    "not_replayed": Reason(
        "The wrong call, or one before it, was never executed again, so nothing says that its answer is the real one.",
        "Replay: curate replay.",
    ),
    "environment_fault": Reason("The environment failed at this call, not the model.", "None: start another attempt."),
    "unconfirmed_prefix": Reason(
        "A call before the branch point is not confirmed by execution.", "Replay in the environment of the log."
    ),
    "effects_since_checkpoint": Reason(
        "Writes were made and no state from before or after them can be opened.",
        "Give a snapshot, or the parameters that open the start state.",
    ),
    "no_checkpoint": Reason("No state at or before the branch point can be opened.", "Give a snapshot."),
    "not_derivable": Reason(
        "A value of the proposed call follows from nothing that was seen before it.", "A person may propose it."
    ),
    "not_answered_here": Reason(
        "The call is malformed and its answer came from the harness, not from the environment.",
        "Use the clean fork alone.",
    ),
    "no_answer": Reason("The log holds no answer to the wrong call.", "Use the clean fork alone."),
    "recovered_in_log": Reason("The log itself holds the recovery.", "None needed: the row comes from the log."),
    "answer_truncated": Reason("The new answer is longer than is kept.", "Raise the output limit of the environment."),
    "invalid_call": Reason("The environment does not take the proposed call.", "Propose a call of its tools."),
    "effect_not_undone": Reason(
        "The recovery reaches neither a state that the task's check accepts nor the one of the clean fork, or there is "
        "no clean fork to compare it with.",
        "Propose the calls that take the mistake's effect back and change nothing else, then the right one.",
    ),
    "wrong_fork": Reason(
        "The answer was executed in a state that does not belong to this kind of fork.", "Fork again."
    ),
    "recorded_only": Reason(
        "The environment gives recorded answers back and can execute nothing new.", "Fork in a world that executes."
    ),
    "forward_only": Reason(
        "The environment cannot get back to the state before the wrong call.", "None: only its recovery is executed."
    ),
    "compensated_unequal": Reason(
        "The calls that take the wrong call back do not lead to the state before it, or none are declared.",
        "Mend the environment's undo, or give it snapshots or a start that can be opened again.",
    ),
    "external_effect": Reason(
        "A call of the fork reaches outside of the environment.", "Declare a world that stands in for it."
    ),
    "flaky": Reason("The new call was answered differently in another process.", "Make the environment repeatable."),
}

CONTINUATION: dict[str, Reason] = {
    "final": Reason("The policy ended with a text and nobody speaks for the user.", "Name one with --user."),
    "silent": Reason("The policy said nothing more.", "None needed."),
    "erased": Reason("This very fork was erased by its name (`curate forget`).", "None: it is not made again."),
    "user_ended": Reason("Whoever speaks for the user said nothing more.", "None needed."),
    "budget": Reason("A limit of the parent's budget is reached.", "None: a fork gets no larger one."),
    "budget_unknown": Reason(
        "The parent's budget is not known, and the fork went on for as many decisions as the parent took.",
        "Give the budget in a side file.",
    ),
    "disagreement": Reason(
        "The worlds did not answer a call of the policy alike; it is not in the fork.",
        "Make the environment repeatable.",
    ),
    "environment_fault": Reason(
        "The environment failed at a call of the policy, or a world did not get to the fork.", "Fork again."
    ),
    "not_answered": Reason(
        "A call of the policy has no answer here: it reaches outside, does not parse, or its answer is cut.",
        "Let the policy make calls of the environment's tools.",
    ),
    "forward_only": Reason(
        "The world cannot be set back, so that a second one would do again what the first one did.", "None."
    ),
    "policy_error": Reason("The policy raised an error.", "Mend the policy."),
}

UNCHECKED: dict[str, Reason] = {
    "broken_schema": Reason("The tool's schema is no valid JSON Schema.", "Mend the tool list of the log."),
    "reference": Reason("The tool's schema refers to something outside of itself.", "Write the definition into it."),
    "endless": Reason("The tool's schema refers to itself without end.", "Mend the tool list of the log."),
    "too_large": Reason("The schema or the arguments are too large to be checked.", "None: the call stays unchecked."),
    "slow_pattern": Reason(
        "A pattern of the schema could run for too long.", "Write it shorter and without repeated groups."
    ),
}

NOT_KNOWN_RIGHT: dict[str, Reason] = {
    "not_replayed": Reason("No call of the attempt was executed in this environment.", "Replay: curate replay."),
    "not_confirmed": Reason(
        "An answer of the attempt is not confirmed, so its final state is not known.", "Look at it: curate show."
    ),
    "no_verdict": Reason(
        "No check of the environment says whether the task is done.", "Give the world a check of its tasks."
    ),
    "version_inferred": Reason(
        "The environment's version was chosen so that outcomes agree: its check verifies nothing here.",
        "Name the version in the log or a side file.",
    ),
    "not_passed": Reason("The attempt fails its task by the environment's own check.", "None needed."),
    "finding": Reason("A decision of the attempt was found to be wrong.", "None needed."),
}

UNPROBED: dict[str, Reason] = {
    "no_other_value": Reason(
        "No argument of the call has another value that its tool takes, anywhere in the attempts of the world.",
        "Import more attempts.",
    ),
    "over_limit": Reason("The call is not among those asked for.", "Raise --limit."),
    "not_reproduced": Reason(
        "Executed again, the run does not pass its own check, so that check says nothing here.",
        "Replay: curate replay.",
    ),
    "not_answered": Reason(
        "The environment gave no answer to the wrong call: a time-out or a fault.", "None: it says nothing of a check."
    ),
}


def sentence_of(table: Mapping[str, Reason], code: str) -> str:
    """What a code of a table says and the way out, or nothing; ``code:field`` is looked up as ``code`` too."""
    reason = table.get(code) or table.get(code.partition(":")[0])
    return "" if reason is None else f"{reason.sentence} {reason.way_out}"
