"""What can be checked of a call without executing it: that it parses, and that its tool and schema take it."""

from collections.abc import Iterator

from curation.diagnosis.arguments import arguments_of
from curation.diagnosis.evidence import Reading, shown
from curation.diagnosis.format import call_as_text, unparsed
from schemas.statements import Evidence, Layer, Result, Verification
from schemas.tool_schema import check_arguments
from schemas.trajectory import Author, Reads, ToolCall

SYNTAX = Author("rule", "syntax", "1")
SEMANTICS = Author("rule", "semantics", "1")


def check_layers(reading: Reading) -> Iterator[Verification]:
    """One statement of syntax a call, one of semantics a call that parses; what cannot be checked is unknown."""
    for index, call in reading.calls:
        yield _syntax(reading, index, call)
        if arguments_of(call) is not None:
            yield _semantics(reading, index, call)
    for index, message in enumerate(reading.messages):
        if message.role == "assistant" and (tool := call_as_text(reading, index)) is not None:
            detail = f"a call of {tool} written as text"
            yield Verification(
                reading.case.trajectory_id, "syntax", "failed", SYNTAX, index, detail=detail, reads=("schema",)
            )


def _syntax(reading: Reading, index: int, call: ToolCall) -> Verification:
    if arguments_of(call) is not None:
        return _statement(reading, "syntax", "passed", index, call)
    written = Evidence("parser", index, call.uid, value=shown(call.arguments_text), note=call.parse_error)
    result: Result = "failed" if unparsed(reading.messages[index], call) else "unknown"
    return _statement(reading, "syntax", result, index, call, call.parse_error or "text", (written,))


def _semantics(reading: Reading, index: int, call: ToolCall) -> Verification:
    if reading.tools is None:
        return _statement(reading, "semantics", "unknown", index, call, "tools_unknown")
    parameters = reading.parameters(call.name)
    if parameters is None:
        return _statement(reading, "semantics", "failed", index, call, "unknown_tool")
    check = check_arguments(parameters, arguments_of(call))
    if check.unchecked is not None:
        return _statement(reading, "semantics", "unknown", index, call, f"{check.unchecked}:{check.detail}")
    evidence = tuple(
        Evidence("schema", index, call.uid, path=problem.path, value=problem.rule, note=problem.message)
        for problem in check.problems
    )
    result: Result = "failed" if evidence else "passed"
    return _statement(reading, "semantics", result, index, call, "schema_violation" if evidence else "", evidence)


def _statement(
    reading: Reading,
    layer: Layer,
    result: Result,
    index: int,
    call: ToolCall,
    detail: str = "",
    evidence: tuple[Evidence, ...] = (),
) -> Verification:
    author = SYNTAX if layer == "syntax" else SEMANTICS
    reads: tuple[Reads, ...] = () if layer == "syntax" else ("schema",)
    return Verification(
        reading.case.trajectory_id, layer, result, author, index, call.uid, detail, evidence=evidence, reads=reads
    )
