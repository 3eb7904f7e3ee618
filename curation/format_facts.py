"""Which facts of an attempt each format tells, and who has to tell the others.

``python -m curation.format_facts > docs/formats.md`` writes the page.
"""

import sys

import msgspec

from curation.importers.formats import FILLS, IMPORTERS
from schemas.statements import Stop

RECORDED, SIDE_FILE, UNKNOWN, _RULE = "recorded", "side file", "unknown", "rule "

ROWS = {
    "task": "which task was tried: `namespace`, `task`, `variant`",
    "tools": "the tools that were offered: `tools`",
    "budget": "the limits of the run: `budget`",
    "start_state": "what the world held at the start: `parameters`, `environment`",
    "attempt": "which try it is: `run`, `attempt`",
    "outcome": "whether the task was solved: `outcome`, `score`",
    "stop": "why the run ended: `stop`",
    "model": "the model's name; no side file tells it",
    "usage": "tokens and cost; no side file tells it",
    "reasoning": "what the model thought; no side file tells it",
    "branch": "which run of the same log it left, and at which message: `branched_from`; no side file tells it",
}
"""The facts, each with its meaning and the keys of a side file that tell it."""

STOPS: dict[Stop, str] = {
    "completed": "the model, or its agent, said that it was done",
    "user_stop": "the user ended the conversation, or broke in",
    "transfer": "the conversation was handed over to somebody else",
    "max_steps": "a limit of steps, calls or cost was reached",
    "timeout": "a limit of time was reached",
    "context_length": "the history no longer fitted into the model's context window",
    "output_length": "the last answer was cut at the limit of tokens for one answer (`length`, `max_tokens`, "
    "`max_output_tokens`)",
    "provider_error": "the model's provider, or the way to it, failed",
    "parse_error": "the agent could not read what the model wrote",
    "tool_error": "a tool, or the world of the tools, broke",
    "cancelled": "the run, or its last request, was called off, but not by its user",
    "unknown": "the log does not say it, or in a word that stands for several of these",
}
"""The words for why a run ended."""


class FormatFacts(msgspec.Struct):
    """A format: the facts its logs can tell, those a named rule of its importer tells (FACT: RULE), and the others."""

    recorded: tuple[str, ...]
    rules: tuple[str, ...]
    side_file: tuple[str, ...]
    unknown: tuple[str, ...]


class FormatsResult(msgspec.Struct):
    """Every format that can be read. ``facts`` says what each fact is, and the keys of a side file that tell it."""

    formats: dict[str, FormatFacts]
    facts: dict[str, str]


def format_facts() -> FormatsResult:
    """What each format tells, as its importer declares."""
    return FormatsResult({name: _facts(name) for name in IMPORTERS}, ROWS)


def page() -> str:
    """The same in Markdown."""
    lines = [
        "# Formats",
        "",
        "What a log of each format can tell of an attempt. `recorded`: it is read, where the log at hand holds it. The",
        "name of a rule: the importer infers it, and says so. `side file`: no such log holds it; tell it with",
        "`curate import --manifest FILE`, or later with `curate annotate FILE`. `unknown`: nothing tells it.",
        "In openai-chat the keys of a side file may stand in the lines themselves, and what `curate export` adds to",
        "ATIF is read back.",
        "",
        "A log speaks for itself alone. What `curate export` writes names who said it: in ATIF `by`, `name` and",
        "`version` of each of `extra.curation.facts`, in a chat `curation.said_by`; what of a record a chat has no",
        "place for (hidden reasoning, copied messages, the agent) stands beside them. When it is read again, a rule's",
        "fact is the rule's, and what a person, an environment or a side file said is the word of the log (author",
        "`log`, named `claims human NAME`), so that it ranks as a log does; the import counts such records",
        "(`claimed_authors`). Checks of decisions (`extra.curation.verifications`), findings and lineage are for other",
        "readers and verify nothing here (`claims_not_read`): replay again.",
        "",
        f"| format | {' | '.join(ROWS)} |",
        "|---" * (len(ROWS) + 1) + "|",
        *(f"| {name} | {' | '.join(_cell(FILLS[name][fact]) for fact in ROWS)} |" for name in IMPORTERS),
        "",
        "| fact | what it is, and the keys of a side file that tell it |",
        "|---|---|",
        *(f"| {fact} | {meaning} |" for fact, meaning in ROWS.items()),
        "",
        "Why a run ended is one of these words; what the log itself says stands beside it (`stop_text`).",
        "",
        "| stop | what it means |",
        "|---|---|",
        *(f"| `{stop}` | {meaning} |" for stop, meaning in STOPS.items()),
    ]
    return "\n".join([*lines, ""])


def _facts(name: str) -> FormatFacts:
    fills = FILLS[name]
    recorded, side_file, unknown = (
        tuple(fact for fact in ROWS if fills[fact] == source) for source in (RECORDED, SIDE_FILE, UNKNOWN)
    )
    rules = tuple(f"{fact}: {fills[fact].removeprefix(_RULE)}" for fact in ROWS if fills[fact].startswith(_RULE))
    return FormatFacts(recorded, rules, side_file, unknown)


def _cell(source: str) -> str:
    return f"`{source.removeprefix(_RULE)}`" if source.startswith(_RULE) else source


if __name__ == "__main__":
    sys.stdout.write(page())
