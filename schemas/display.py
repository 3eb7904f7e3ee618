"""Text of a log as a person may safely see it, in a terminal, a page or a table.

Logs are hostile: an escape sequence can erase what was printed before it, a carriage return can write over a line, a
bidirectional control can turn the order of a line around. The store keeps all of it; every human view passes its text
through here. What a view's own syntax gives meaning to (HTML, Markdown, Rich markup) is escaped by that view.
"""

import json
import re

# ECMA-48: a control sequence (CSI), and a string (OSC, DCS, SOS, PM, APC) up to its terminator.
_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*+[ -/]*+[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*+(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*+[0-~]"
)
# Controls but tab and line feed, bidirectional controls, what is never seen (of no width, fillers, tag characters,
# selectors that hide text; not the joiners that scripts and emoji need), and what no XML document may hold.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\ud800-\udfff\U000e0000-\U000e0fff]"
)
_SPACE = re.compile(r"[\t\n ]+")


def clean(text: str) -> str:
    """The text without terminal sequences, control characters and bidirectional controls; tabs and line feeds stay."""
    return _UNSAFE.sub("", _SEQUENCE.sub("", text))


def clean_line(text: str, limit: int | None = None) -> str:
    """The same on one line, runs of white space as one space, cut to ``limit`` characters with an ellipsis."""
    line = _SPACE.sub(" ", clean(text)).strip()
    return line if limit is None or len(line) <= limit else f"{line[: limit - 1]}…"


def clip(text: str, limit: int) -> str:
    """The text, or its first ``limit`` characters and how many there are."""
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text):,} characters)"


def escape_json(text: str) -> str:
    """JSON of the same value, in which what ``clean`` would take away stands as an escape."""
    return _UNSAFE.sub(lambda found: json.dumps(found[0])[1:-1], text)
