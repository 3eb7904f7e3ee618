"""ATIF documents for tests."""

from typing import Any

PICTURE = {"type": "image", "source": {"media_type": "image/png", "path": "images/1.png"}}
TOOL = {"type": "function", "function": {"name": "get_stock", "parameters": {"type": "object"}}}


def call(sku: str, name: str = "c1") -> dict[str, Any]:
    return {"tool_call_id": name, "function_name": "get_stock", "arguments": {"sku": sku}}


def result(content: Any, name: str | None = "c1", **more: Any) -> dict[str, Any]:
    found = {"content": content, **more}
    return found if name is None else {"source_call_id": name, **found}


def say(source: str, message: Any, **more: Any) -> dict[str, Any]:
    """A step; its number is given by the document."""
    return {"source": source, "message": message, **more}


def act(*calls: dict[str, Any], results: list[Any] | None = None, message: Any = "", **more: Any) -> dict[str, Any]:
    """A step of the agent with calls and what came back."""
    observation = {} if results is None else {"observation": {"results": results}}
    return say("agent", message, tool_calls=list(calls), **observation, **more)


def document(*steps: dict[str, Any], version: str = "1.8", **more: Any) -> dict[str, Any]:
    return {
        "schema_version": f"ATIF-v{version}",
        "session_id": "s1",
        "agent": {"name": "small-agent", "version": "1.2", "model_name": "vendor/m", "tool_definitions": [TOOL]},
        "steps": [{"step_id": number, **step} for number, step in enumerate(steps, 1)],
        **more,
    }


FULL = document(
    say("system", "You count stock."),
    say("user", [{"type": "text", "text": "How many A17 are left?"}, PICTURE]),
    act(
        call("A18"),
        call("A17", "c2"),
        results=[
            result("2", "c2", extra={"score": 1}),
            result(None, "c1", subagent_trajectory_ref=[{"trajectory_id": "sub"}]),
        ],
        message="I look.",
        timestamp="2025-10-16T14:30:00+00:00",
        model_name="vendor/other",
        reasoning_effort="high",
        reasoning_content="Two places.",
        metrics={"prompt_tokens": 5, "completion_tokens": 7, "cost_usd": 0.25, "extra": {"reasoning_tokens": 3}},
        llm_call_count=1,
        extra={"trace": "t1"},
    ),
    say("system", "compacting", observation={"results": [result("disk is full", None)]}),
    say("agent", "Two.", llm_call_count=2),
    trajectory_id="doc-1",
    notes="made by hand",
    final_metrics={
        "total_prompt_tokens": 5,
        "total_completion_tokens": 7,
        "total_cost_usd": 0.25,
        "total_cached_tokens": 0,
        "total_steps": 5,
    },
    extra={"batch": 7},
    subagent_trajectories=[
        {
            **document(say("user", "Count."), say("agent", "Nine.")),
            "session_id": "s1",
            "trajectory_id": "sub",
        }
    ],
)
"""A document with something in nearly every place that ATIF has."""
