"""Calls and starts as tests of worlds write them."""

import json
from typing import Any

from schemas.canonical import raw
from schemas.trajectory import Task, ToolCall


def call(tool: str, /, **arguments: Any) -> ToolCall:
    return ToolCall("1.0", tool, json.dumps(arguments), arguments=raw(arguments))


def unparsable(tool: str, text: str) -> ToolCall:
    return ToolCall("1.0", tool, text, parse_error="not JSON")


def task(**parameters: Any) -> Task:
    return Task(id="t", parameters=raw(parameters))
