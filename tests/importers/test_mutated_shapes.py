"""Records of which some values were taken out, doubled or became something else: an attempt or a refusal, no crash."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.importers import formats
from curation.importers.beside import pack
from curation.importers.face import Slice
from schemas.canonical import encode
from tests.importers import atif_runs, test_harbor, test_mini_swe_agent, test_openhands, test_swe_agent
from tests.importers.reading import assert_whole

mini, hands, swe = test_mini_swe_agent, test_openhands, test_swe_agent
RESPONSES = {
    "object": "response",
    "output": [
        {"type": "reasoning", "summary": [{"text": "x"}]},
        {"type": "message", "content": [{"text": "y"}]},
        {"type": "function_call", "call_id": "c", "name": "bash", "arguments": "{}"},
    ],
    "extra": {"actions": [{"command": "ls"}]},
}
BARE = [
    mini.SYSTEM,
    mini.REQUEST,
    {"role": "assistant", "content": "```bash\nls\n```"},
    {"role": "user", "content": "a"},
]
STEP = {"step_name": "one", "verifier_result": {"rewards": {"a": 1, "b": 0}}}
RECORDS: dict[str, list[Any]] = {
    "atif": [atif_runs.FULL],
    "harbor": [test_harbor.trial({"reward": 1.0}, "AgentTimeoutError"), test_harbor.trial(step_results=[STEP])],
    "mini-swe-agent": [
        mini.run(mini.ask("ls"), mini.answer("a"), mini.leave()),
        mini.run(RESPONSES, mini.leave()),
        BARE,
    ],
    "openhands": [
        hands.run(hands.act(1, "run", hands.LOOK, "c1", command="ls"), hands.observe(2, "a", 1, "c1"), hands.FINISH),
        [hands.ask(), hands.act(1, "run", command="ls"), hands.observe(2, "a", 1)],
    ],
    "swe-agent": [
        swe.run(
            [swe.LOOK, swe.SUBMIT],
            [swe.turn(swe.LOOK, tool_calls=[{"function": {"name": "f", "arguments": "{}"}}]), swe.told(swe.LOOK)],
            replay_config={"agent": {"model": {"name": "m"}, "history_processors": [{"type": "x", "n": 1}]}},
        )
    ],
}
CONTEXTS = {
    "harbor": pack({"lock.json": b'{"task":{"digest":"d"}}', "agent/trajectory.json": encode(atif_runs.FULL)}),
    "atif": b"",
}
OTHERS: list[Any] = [
    None,
    True,
    -1,
    2**70,
    1.5,
    "",
    "x",
    [],
    {},
    [1],
    {"a": 1},
    ["x"],
    {"role": "assistant"},
    "{}",
    [[]],
    [{}],
]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return found + [place for key, item in inside for place in places(item, (*path, key))]


@st.composite
def changed(draw: st.DrawFn, name: str) -> Any:
    record = copy.deepcopy(draw(st.sampled_from(RECORDS[name])))
    for _ in range(draw(st.integers(1, 3))):
        *path, last = draw(st.sampled_from(places(record)))
        inner = record
        for key in path:
            inner = inner[key]
        match draw(st.sampled_from(["drop", "double", "change", "change"])):
            case "drop":
                del inner[last]
            case "double" if isinstance(inner, list):
                inner.insert(0, copy.deepcopy(inner[last]))
            case _:
                inner[last] = copy.deepcopy(draw(st.sampled_from(OTHERS)))
        if not places(record):
            break
    return record


@pytest.mark.parametrize("name", RECORDS)
def test_a_changed_record_is_read_or_refused(name: str) -> None:
    importer = formats.find(name)

    @settings(max_examples=200)
    @given(record=changed(name))
    def read(record: Any) -> None:
        data = json.dumps(record).encode()
        importer.sniff(data)
        items = list(importer.items(Slice(data, 1, 0, CONTEXTS.get(name, b"name"))))
        assert items
        assert len({item.part for item in items}) == len(items)
        for item in items:
            assert_whole(item)

    read()
