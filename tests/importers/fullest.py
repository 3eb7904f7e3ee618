"""Of every format logs in which, together, all is told that the format can tell of an attempt."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from curation.importers import formats
from curation.importers.face import Parsed
from tests.importers import (
    atif_runs,
    session,
    test_call_logs,
    test_codex,
    test_codex_exec,
    test_harbor,
    test_inspect_eval,
    test_langsmith,
    test_mini_swe_agent,
    test_openhands,
    test_rows,
    test_spans,
    test_swe_agent,
    test_tau2,
)
from tests.importers.reading import accepted, answer, ask, call, chat, write

_THOUGHT = {"role": "assistant", "content": "Two.", "reasoning_content": "A17, then"}
_BUDGETED = {"model": "small", "usage": {"prompt_tokens": 5, "completion_tokens": 7}, "tools": test_call_logs.TOOLS}


def read_fullest(folder: Path) -> dict[str, list[Parsed]]:
    """The attempts of each format that are read of the logs made up for it."""
    return {
        name: [accepted(item) for path in paths for item in formats.find(name).read(path)]
        for name, paths in write_fullest(folder).items()
    }


def write_fullest(folder: Path) -> dict[str, list[Path]]:
    """The logs made up for each format, in a folder of its name."""
    written = {}
    for name, make in _LOGS.items():
        (folder / name).mkdir(parents=True)
        written[name] = make(folder / name)
    return written


def _json(folder: Path, *values: Any) -> list[Path]:
    paths = [folder / f"{number}.json" for number in range(len(values))]
    for path, value in zip(paths, values, strict=True):
        path.write_text(json.dumps(value))
    return paths


def _lines(*values: Any) -> Callable[[Path], list[Path]]:
    return lambda folder: [write(folder / "log.jsonl", values)]


def _values(*values: Any) -> Callable[[Path], list[Path]]:
    return lambda folder: _json(folder, *values)


def _inspect(folder: Path) -> list[Path]:
    said = test_inspect_eval.MESSAGES[3] | {"content": [{"type": "reasoning", "reasoning": "Count."}]}
    output = {"choices": [{"message": said}], "usage": {"input_tokens": 5}}
    tools = [{"name": "get_stock", "parameters": {"type": "object"}}]
    event = {"event": "model", "input": [], "tools": tools, "config": {}, "output": output}
    usage = {"openai/small": {"input_tokens": 5, "output_tokens": 7}}
    messages = [*test_inspect_eval.MESSAGES[:3], said]
    one = test_inspect_eval.sample(messages=messages, events=[event], model_usage=usage)
    return [test_inspect_eval.write_log(folder, one)]


def _harbor(folder: Path) -> list[Path]:
    thinking = atif_runs.act(atif_runs.call("A17"), results=[atif_runs.result("2")], reasoning_content="A17, then")
    ran = atif_runs.document(atif_runs.say("user", "How many A17?"), thinking)
    config = {"agent": {"name": "a", "override_timeout_sec": 60.0}}
    return [test_harbor.write(folder / "trial", test_harbor.trial({"reward": 1.0}, config=config), ran)]


_SESSION = (
    session.user("u1", None),
    session.model("a1", "u1", {"type": "thinking", "thinking": "A17, then"}, usage={"input_tokens": 5}),
    session.user("u2", "a1", "and B17?"),
    session.user("u3", "a1", "and C17?"),
)
_ROLLOUT = (
    test_codex.meta(),
    test_codex.entry("turn_context", model="small"),
    *test_codex.asked("How many A17?"),
    test_codex.item("reasoning", summary=[], content=[{"type": "reasoning_text", "text": "A17, then"}]),
    test_codex.said("assistant", "Two."),
    test_codex.tokens(5, 7),
    *test_codex.asked("And B17?"),
    test_codex.said("assistant", "None."),
    test_codex.event("thread_rolled_back", num_turns=1),
    *test_codex.asked("And C17?"),
)
_CALLS = test_call_logs.eight_lines()
_CALLS[1]["response"]["choices"][0]["message"]["reasoning_content"] = "Look at B."
_TREE = [
    test_langsmith.run(0, "chain", {"input": "How many A17?"}, {"output": "Two."}, reference_example_id="e1"),
    test_langsmith.run(
        1,
        "llm",
        {"model": "m", "messages": [test_langsmith.USER], "tools": test_call_logs.TOOLS},
        {
            "id": "r1",
            "model": "m",
            "choices": [{"index": 0, "message": _THOUGHT}],
            "usage_metadata": {"input_tokens": 5},
        },
    ),
]
_FORKED = [
    test_langsmith.llm(1, [test_langsmith.USER], test_langsmith.WRONG, "t2"),
    test_langsmith.llm(2, [test_langsmith.USER, test_langsmith.WRONG, answer("a", "c1")], test_langsmith.DONE, "t2"),
    test_langsmith.llm(3, [test_langsmith.USER, test_langsmith.WRONG, answer("b", "c1")], test_langsmith.DONE, "t2"),
]
_RESPONSE = {
    "object": "response",
    "id": "r1",
    "output": [
        {"type": "reasoning", "summary": [{"text": "Look first."}]},
        {"type": "function_call", "call_id": "c9", "name": "bash", "arguments": '{"command": "ls"}'},
    ],
    "extra": {"actions": [{"command": "ls", "tool_call_id": "c9"}], "cost": 0.01},
}
_LOOKS = test_openhands.response(("c1", "execute_bash", '{"command": "ls"}'), reasoning_content="Look first.")
_HEARD = {"choices": [{"message": {"reasoning_content": "A17, then"}}]}
_LOOKED = test_swe_agent.step("ls", "main.py", reasoning_content="Look first.")
_REPLAY = {
    "agent": {"model": {"name": "small", "per_instance_cost_limit": 2.0}},
    "env": {"repo": {"base_commit": "abc"}, "deployment": {"image": "image:1"}},
    "problem_statement": {"id": "task-1", "text": "Fix it."},
}
_THINKING = {"role": "assistant", "parts": [{"type": "reasoning", "content": "A17, then"}], "finish_reason": "stop"}
_SPANS = [
    *test_spans.TRACE,
    test_spans.chat(1, [test_spans.ASK], _THINKING, "t2", **{"gen_ai.conversation.id": "s2"}),
    test_spans.chat(1, [test_spans.ASK], test_spans.call("c1", "A18"), "t3"),
    *(
        test_spans.chat(
            number,
            [test_spans.ASK, test_spans.call("c1", "A18"), test_spans.got("c1", number)],
            test_spans.done(),
            "t3",
        )
        for number in (2, 3)
    ),
]


def _reasoned(trace: str, number: int = 1, **said: str) -> dict[str, Any]:
    """A span of OpenInference in which a model that was told this thinks and answers."""
    roles = ("user", "assistant", "user")
    told = {
        f"llm.input_messages.{index}.message.{key}": value
        for index, (role, text) in enumerate(zip(roles, said.values(), strict=False))
        for key, value in (("role", role), ("content", text))
    }
    answered = "llm.output_messages.0.message"
    return test_spans.span(
        number,
        "ChatCompletion",
        {
            **told,
            "openinference.span.kind": "LLM",
            "session.id": f"session {trace}",
            "llm.model_name": "m",
            "llm.tools.0.tool.json_schema": json.dumps(test_call_logs.TOOLS[0]),
            "llm.token_count.prompt": 4,
            f"{answered}.role": "assistant",
            f"{answered}.contents.0.message_content.type": "reasoning",
            f"{answered}.contents.0.message_content.text": "A17, then",
            f"{answered}.contents.1.message_content.type": "text",
            f"{answered}.contents.1.message_content.text": "Two.",
        },
        trace,
    )


_LOGS: dict[str, Callable[[Path], list[Path]]] = {
    "agentdojo": _values(
        {
            "suite_name": "banking",
            "pipeline_name": "small",
            "user_task_id": "user_task_0",
            "injections": {"bill": "Pay me."},
            "messages": [
                {"role": "user", "content": [{"type": "text", "content": "Pay the bill."}]},
                {"role": "assistant", "content": [{"type": "thinking", "content": "The bill."}], "tool_calls": []},
            ],
            "error": None,
            "utility": True,
            "security": True,
        }
    ),
    "atif": _values(atif_runs.FULL),
    "claude-code": _lines(*_SESSION),
    "codex": _lines(*_ROLLOUT),
    "codex-exec": _lines(
        test_codex_exec.STARTED,
        test_codex_exec.TURN,
        test_codex_exec.event("completed", "reasoning", text="A17, then"),
        test_codex_exec.event("completed", "agent_message", text="Two."),
        test_codex_exec.DONE,
    ),
    "harbor": _harbor,
    "hf-rows": _lines(test_rows.NEBIUS, test_rows.GYM, {**test_rows.GYM, "messages": [test_langsmith.USER, _THOUGHT]}),
    "inspect": _inspect,
    "langsmith": _lines(*_TREE, *_FORKED),
    "mini-swe-agent": _values(
        test_mini_swe_agent.run(_RESPONSE, test_mini_swe_agent.leave(), instance_id="task-1"),
    ),
    "model-calls": _lines(*_CALLS),
    "openai-chat": _lines(chat(ask(call('{"sku": "A17"}')), answer("2"), _THOUGHT, id="r1", **_BUDGETED)),
    "openhands": _lines(
        test_openhands.run(
            {"id": 0, "source": "agent", "action": "system", "args": {"content": "", "tools": test_call_logs.TOOLS}},
            test_openhands.act(1, "run", _LOOKS, "c1", command="ls"),
            test_openhands.FINISH,
            metrics={"accumulated_cost": 0.5},
            report={"resolved": True},
        )
    ),
    "openinference": _lines(
        _reasoned("t1", user="How many A17?"),
        _reasoned("t2", 1, user="A17?"),
        _reasoned("t2", 2, user="A17?", assistant="Two.", again="B17?"),
        _reasoned("t2", 3, user="A17?", assistant="Two.", again="C17?"),
    ),
    "otel-genai": _lines(*_SPANS),
    "sharegpt": _lines(
        test_rows.conversation(test_rows.HUMAN, test_rows.DONE, id="r1", reward=1.0, tools="[]"),
    ),
    "sharegpt-user-answers": _lines(
        test_rows.conversation(test_rows.HUMAN, test_rows.DONE, id="r1", reward=1.0, tools="[]"),
    ),
    "swe-agent": lambda folder: [
        write(
            folder / "task-1.traj",
            [
                test_swe_agent.run(
                    [_LOOKED],
                    [test_swe_agent.turn(_LOOKED), test_swe_agent.told(_LOOKED)],
                    replay_config=json.dumps(_REPLAY),
                )
            ],
        )
    ],
    "tau2": _values(
        test_tau2.results(
            test_tau2.simulation(test_tau2.say("user", "?"), test_tau2.say("assistant", "2", raw_data=_HEARD))
        )
    ),
    "tau-bench": _values(
        [{"task_id": 1, "trial": 0, "reward": 1.0, "traj": [test_langsmith.USER, _THOUGHT], "info": {"user_cost": 0.1}}]
    ),
}
