"""How reading grows with a log: the CPU of four times the log over that of the log, made so that a square would show.

    python benchmarks/growth.py [--spans N] [--calls N] [--json]

Linear is 4. ``spans`` of each format repeat a growing history, so that a log of N spans is one of N * N messages: the
larger has twice the spans. ``calls`` are N calls of one message, answered in the order in which they were made, in the
other order, and without ids. ``tool_spans`` execute N such calls. ``events`` are N events of one span, and of one
session.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from curation.importers.formats import detect

Json = dict[str, Any]
_ASK = {"role": "user", "content": "How many of each are left in hall seven?"}


class Case(NamedTuple):
    """A log as its lines, of a size, and how much larger the larger one is."""

    lines: Callable[[int], Iterator[Any]]
    times: int = 4


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--spans", type=int, default=400)
    options.add_argument("--calls", type=int, default=12_500)
    options.add_argument("--json", action="store_true")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measured = {}
        for name, case in CASES.items():
            size = given.spans if case.times == 2 else given.calls
            small, large = (
                _read(Path(folder) / f"{name}.jsonl", case.lines(size * times)) for times in (1, case.times)
            )
            measured[name] = round(large / small, 2)
    if given.json:
        print(json.dumps(measured, indent=2))
    else:
        for name, value in measured.items():
            print(f"{name:32}{value:>8}")


def _read(path: Path, lines: Iterator[Any]) -> float:
    """Seconds of CPU that reading a log takes, of which every item is an attempt. Raises SystemExit for another."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    importer = detect(path)[0]
    started = time.process_time()
    refused = [item for item in importer.read(path) if not hasattr(item, "trajectory")]
    taken = time.process_time() - started
    if refused:
        raise SystemExit(f"{path.name}: {refused[0]}")
    return taken


def _histories(spans: int) -> Iterator[tuple[list[Json], Json]]:
    """Chat messages as each of so many calls of a model is given them, and its answer."""
    messages: list[Json] = [_ASK]
    for number in range(spans):
        answer = {"role": "assistant", "content": f"I look for A{number}.", "tool_calls": [_call(number)]}
        yield messages, answer
        messages = [*messages, answer, _answer(number)]


def _call(number: int, **more: Any) -> Json:
    function = {"name": "get_stock", "arguments": json.dumps({"sku": f"A{number}"})}
    return {"id": f"c{number}", "type": "function", "function": function, **more}


def _answer(number: int) -> Json:
    return {"role": "tool", "tool_call_id": f"c{number}", "content": json.dumps({"sku": f"A{number}", "stock": number})}


def _span(number: int, **attributes: Any) -> Json:
    context = {"traceId": "t", "spanId": f"s{number}"}
    return {"name": "chat", "spanContext": context, "attributes": attributes, "startTime": [1_700_000_000, number]}


def _otel_spans(spans: int) -> Iterator[Json]:
    for number, (messages, answer) in enumerate(_histories(spans)):
        told = {"gen_ai.input.messages": json.dumps(messages), "gen_ai.output.messages": json.dumps([answer])}
        yield _span(number, **{"gen_ai.operation.name": "chat", **told})


def _openinference_spans(spans: int) -> Iterator[Json]:
    for number, (messages, answer) in enumerate(_histories(spans)):
        told = {"openinference.span.kind": "LLM"}
        for name, said in (("llm.input_messages", messages), ("llm.output_messages", [answer])):
            told |= {key: text for place, one in enumerate(said) for key, text in _flat(f"{name}.{place}.message", one)}
        yield _span(number, **told)


def _flat(prefix: str, message: Json) -> Iterator[tuple[str, str]]:
    for key in ("role", "content", "tool_call_id"):
        if key in message:
            yield f"{prefix}.{key}", message[key]
    for place, call in enumerate(message.get("tool_calls", ())):
        told = {"id": call["id"], **{f"function.{key}": text for key, text in call["function"].items()}}
        yield from ((f"{prefix}.tool_calls.{place}.tool_call.{key}", text) for key, text in told.items())


def _langsmith_runs(spans: int) -> Iterator[Json]:
    for number, (messages, answer) in enumerate(_histories(spans)):
        named = {"id": f"r{number}", "trace_id": "t", "run_type": "llm", "dotted_order": f"{number:08}"}
        yield {**named, "inputs": {"messages": messages}, "outputs": {"choices": [{"message": answer}]}}


def _calls(order: Callable[[int], range], *, named: bool = True) -> Callable[[int], Iterator[Json]]:
    """One message of many calls, answered in an order."""

    def lines(calls: int) -> Iterator[Json]:
        more = {} if named else {"id": None}
        asked = {"role": "assistant", "content": None, "tool_calls": [_call(one, **more) for one in range(calls)]}
        answers = [_answer(one) if named else _answer(one) | {"tool_call_id": None} for one in order(calls)]
        yield {"messages": [_ASK, asked, *answers]}

    return lines


def _tool_spans(calls: int) -> Iterator[Json]:
    asked = {"role": "assistant", "content": None, "tool_calls": [_call(one) for one in range(calls)]}
    told = {"gen_ai.input.messages": json.dumps([_ASK]), "gen_ai.output.messages": json.dumps([asked])}
    yield _span(0, **{"gen_ai.operation.name": "chat", **told})
    for number in reversed(range(calls)):
        told = {"gen_ai.tool.call.id": f"c{number}", "gen_ai.tool.call.result": str(number)}
        yield _span(number + 1, **{"gen_ai.operation.name": "execute_tool", **told})


def _span_events(events: int) -> Iterator[Json]:
    """A span whose messages are told by events that stand apart from it."""
    yield _span(0, **{"gen_ai.operation.name": "chat"})
    for number in range(events):
        said = {"role": "user", "content": f"A{number}?"}
        yield {
            "traceId": "t",
            "spanId": "s0",
            "timeUnixNano": str(1_700_000_000 * 10**9 + number),
            "eventName": "gen_ai.user.message",
            "attributes": {},
            "body": said,
        }


def _session_events(events: int) -> Iterator[Any]:
    yield ["client.beta.sessions.create", {"id": "s1", "agent": {"name": "clerk"}}]
    for number in range(events // 4):
        said = {"type": "user.message", "content": f"How many A{number}?"}
        yield ["client.beta.sessions.events.send", ["s1", {"events": [said]}]]
        for told in (
            said if number % 2 else {"type": "span.model_request_start"},
            {"type": "agent.message", "content": f"There are {number}."},
            {"type": "span.model_request_end", "model_usage": {"input_tokens": 1}},
        ):
            yield ["client.beta.sessions.events.stream", told]


CASES = {
    "otel_spans": Case(_otel_spans, 2),
    "openinference_spans": Case(_openinference_spans, 2),
    "langsmith_runs": Case(_langsmith_runs, 2),
    "calls_answered": Case(_calls(range)),
    "calls_answered_backwards": Case(_calls(lambda calls: range(calls - 1, -1, -1))),
    "calls_without_ids": Case(_calls(range, named=False)),
    "tool_spans": Case(_tool_spans),
    "span_events": Case(_span_events),
    "session_events": Case(_session_events),
}

if __name__ == "__main__":
    main()
