"""Every closed enum of refusals in one table each: code, one sentence, and the way out.

Documentation and ``show`` are generated from here; no other place words a refusal.
"""

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
    "not_a_record": Reason("The item is not of this format's shape.", "Name the right --format, or mend the item."),
    "unknown_role": Reason("A message has a role this format does not define.", "Map the role before importing."),
    "bad_side_keys": Reason("The keys that say which attempt this is are of a wrong type.", "Mend the inline keys."),
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
    "surrogates_replaced": Reason("Lone surrogate escapes became U+FFFD.", "The raw line is kept."),
}
