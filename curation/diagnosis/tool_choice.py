"""``tool_choice``: a call of a tool that the model was not offered."""

from collections.abc import Iterator

from curation.diagnosis.evidence import Reading
from schemas.statements import Evidence, Finding


def find(reading: Reading) -> Iterator[Finding]:
    """Calls of undeclared tools; none where the tools are not known."""
    if reading.tools is None:
        return
    for index, call in reading.calls:
        if call.name not in reading.tools:
            digest = reading.case.trajectory.conditions.tools
            absent = Evidence("absence", value=digest, note=f"offered: {', '.join(sorted(reading.tools)[:20])}")
            evidence = (Evidence("call", index, call.uid, value=call.name), absent)
            yield reading.finding("tool_choice", index, "unknown_tool", evidence, ("schema",), call.uid)
