"""Why a decision gives no row: every code of a check with its sentence and the way out."""

from schemas.reasons import Reason

REFUSALS: dict[str, Reason] = {
    "contradicted_record": Reason(
        "An answer in the record is not the real answer of its call.", "None: the record cannot be trusted."
    ),
    "parent_revised": Reason("A better reading of the same attempt is stored.", "Fork the revised record."),
    "test_split": Reason(
        "Somebody says that the attempt, its task, its group or another task of the same text is in a held-out split.",
        "None: if it is wrong, whoever said so gives the split anew; or name the splits with --hold-out.",
    ),
    "hidden_answer": Reason("Whoever proposed the correction had read the hidden answer.", "Propose it without."),
    "environment_fault": Reason(
        "The environment failed at the wrong decision, not the model.", "None: start another attempt."
    ),
    "finding_on_target": Reason("A finding says that the decision itself is wrong.", "Repair it: curate repair."),
    "error_in_prompt": Reason(
        "A finding or an error stands before the decision, so this is no first action.",
        "Build recovery rows, or fork the earlier decision.",
    ),
    "no_error_before": Reason("Nothing says that the decision before was wrong.", "Diagnose or replay it."),
    "not_after_answer": Reason(
        "Something else than the environment's answer stands between the wrong call and the decision.",
        "Build a recovery fork: curate repair.",
    ),
    "same_action": Reason("The decision repeats the wrong one.", "None: it recovers nothing."),
    "format_unanswered": Reason(
        "The decision follows a malformed call that no environment answered.", "Build first-action rows."
    ),
    "effect_not_undone": Reason(
        "The mistake changed the state and nothing confirms that its effect is gone.",
        "Propose the calls that take it back, then the right one.",
    ),
    "no_evidence_at_decision": Reason(
        "Only the outcomes differ; nothing speaks against this decision.", "Diagnose it, or annotate a finding."
    ),
    "corrector_saw_more": Reason(
        "Whoever proposed the correction had read more than the prompt, so the two sides are not comparable.",
        "Build recovery rows, or propose it from the request alone.",
    ),
    "equivalent_actions": Reason(
        "Both sides do the same, or get the same answer and the same state.", "None: neither is better."
    ),
    "forward_only": Reason(
        "The fork was executed in the state that was there, not in one brought back, so it is compared with nothing.",
        "Build recovery rows.",
    ),
    "partial_context": Reason(
        "Something before the decision is hidden, so that no other context equals it.", "Log the whole history."
    ),
    "wrong_fork": Reason("The answer was executed in a state that does not belong to this kind of row.", "Fork again."),
    "too_large_to_check": Reason(
        "The decision's call has more values, and the prompt more text, than can be compared in bounded time.",
        "Split the call or the record: values times characters may be 20 million.",
    ),
    "not_derivable": Reason(
        "A name, number or date of the target (of a correction, any value) follows from nothing in the prompt.",
        "A person may propose it.",
    ),
    "placebo_too_high": Reason(
        "More than one in five wrong calls pass the check that supports the correction.", "Use a sharper check."
    ),
    "feedback_leaked": Reason(
        "The row holds words that were first seen after its branch point.", "Propose a correction without them."
    ),
    "target_not_executed": Reason(
        "Nothing confirms that the answer of the decision's call is its real one.", "Replay: curate replay."
    ),
    "target_fails": Reason("The decision's own call is answered by an error.", "None: it is no example to follow."),
    "failed_layer": Reason("A check of the decision failed.", "Repair it: curate repair."),
    "level_below_wanted": Reason(
        "The decision is not confirmed up to the level that the build asks for.",
        "Diagnose and replay its attempt, or build with a lower --level.",
    ),
    "repeated_call": Reason(
        "The same call was answered before without error, and nothing has changed since.",
        "None: the prompt holds the answer.",
    ),
    "unconfirmed_prompt": Reason(
        "An answer in the prompt is not confirmed by execution.", "Replay in the environment of the log."
    ),
    "history_incomplete": Reason(
        "A part of the history before the decision is not in the log.", "Import the complete log."
    ),
    "malformed_prompt": Reason(
        "No user or system message stands before the decision, or a call before it has arguments that are no JSON "
        "object or is not answered directly after its message: no row can show that as it was.",
        "None: fork the attempt before it.",
    ),
    "not_text": Reason(
        "A message of the row holds a part that is no text (an image, a file), which the row would lose.",
        "None: fork the attempt before it, or log what it says as text.",
    ),
    "malformed_target": Reason("The arguments of the decision's call are no JSON object.", "Repair it: curate repair."),
    "number_not_loadable": Reason(
        "A number would be changed or refused by the loader of the rows.", "Log it as a string."
    ),
    "unknown": Reason("A condition is not known on both sides.", "Give it in a side file."),
    "differs": Reason("The two sides were not tried under the same conditions.", "Compare attempts of equal ones."),
    "no_candidate:no_call": Reason("The attempt holds no call.", "None needed."),
    "no_candidate:not_replayed": Reason("Nothing of the attempt was executed again.", "Replay: curate replay."),
    "no_candidate:nothing_went_wrong": Reason("No decision of the attempt is known to be wrong.", "None needed."),
    "no_candidate:no_recovery": Reason(
        "No call follows the wrong one and no recovery was executed.", "Repair it: curate repair."
    ),
    "no_candidate:no_partner": Reason(
        "No other decision was taken in the same context.", "Repair it, or record more attempts of the task."
    ),
}
