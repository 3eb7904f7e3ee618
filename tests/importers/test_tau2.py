import json
from collections import Counter
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from curation.errors import UsageError
from curation.importers.face import Fact, Item, Parsed, Rejected
from curation.importers.formats import detect
from curation.importers.tau2 import GOLD_RULE, IMPORTER, STOP_RULE, UNKNOWN_RULE
from curation.importers.tau2_messages import USER
from curation.ingest import IngestOptions, find_sources, ingest
from schemas.canonical import encode, raw
from schemas.digests import decisions_of
from schemas.objects import read_tools
from schemas.reasons import QUARANTINE
from schemas.trajectory import Answers, Attempt, Budget, MessageError, Part, Usage
from tests.importers.reading import accepted, calls
from tests.ingest.logs import new_store

INFO: dict[str, Any] = {
    "git_commit": "abc123",
    "num_trials": 4,
    "max_steps": 100,
    "max_errors": 10,
    "user_info": {"implementation": "user_simulator", "llm": "u", "global_simulation_guidelines": "the script"},
    "agent_info": {"implementation": "llm_agent", "llm": "small", "llm_args": {"temperature": 0.0, "api_key": "sk-1"}},
    "environment_info": {
        "domain_name": "mock",
        "policy": "Be kind.",
        "tool_defs": {"get_stock": {"name": "get_stock", "doc": "Look it up.", "params": {"type": "object"}}},
    },
    "seed": 300,
}
STATE = {"initialization_data": None, "initialization_actions": [{"env_type": "user", "func_name": "f"}]}
TASK: dict[str, Any] = {
    "id": "t1",
    "user_scenario": {"instructions": "the script"},
    "initial_state": STATE,
    "evaluation_criteria": {"actions": [{"name": "book", "arguments": {"sku": "GOLD"}}], "communicate_info": ["GOLD"]},
}


def call(
    name: str = "get_stock", call_id: Any = "c1", requestor: str = "assistant", **arguments: Any
) -> dict[str, Any]:
    return {"id": call_id, "name": name, "arguments": arguments, "requestor": requestor}


def say(role: str, content: Any = None, *made: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, "tool_calls": list(made) or None} | more


def answer(content: Any, call_id: str = "c1", **more: Any) -> dict[str, Any]:
    return {"role": "tool", "id": call_id, "content": content, "requestor": "assistant", "error": False} | more


def simulation(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    """One run of the task in text."""
    said = messages or (say("user", "How many?"), say("assistant", None, call(sku="A17")), answer("2"))
    return {
        "id": "S1",
        "task_id": "t1",
        "start_time": "2025-01-02T03:04:05",
        "termination_reason": "user_stop",
        "reward_info": {"reward": 1.0, "action_checks": [{"action": {"name": "book", "arguments": {"sku": "GOLD"}}}]},
        "agent_cost": 0.5,
        "user_cost": 0.25,
        "trial": 2,
        "seed": 7,
        "messages": list(said),
    } | more


def results(*simulations: Any, **more: Any) -> dict[str, Any]:
    return {"timestamp": "2025", "info": INFO, "tasks": [TASK], "simulations": list(simulations)} | more


def read(folder: Path, value: Any) -> list[Item]:
    path = folder / "results.json"
    path.write_text(json.dumps(value, indent=2))
    return list(IMPORTER.read(path))


def read_one(folder: Path, one: Any, **more: Any) -> Parsed:
    (item,) = read(folder, results(one, **more))
    return accepted(item)


def facts(parsed: Parsed) -> dict[str, Any]:
    return {fact.field: fact.value for fact in parsed.facts}


@pytest.fixture(scope="module")
def voice(logs: Path) -> Path:
    return next((logs / "tau2-bench").rglob("results.json"))


def test_the_voice_runs_are_read_with_every_tick_in_which_somebody_speaks(voice: Path) -> None:
    items = [accepted(item) for item in IMPORTER.read(voice)]
    assert [parsed.trajectory.task.id for parsed in items] == ["40", "98", "20"]
    for parsed in items:
        spoken: Counter[str] = Counter()
        starts = []
        for message in parsed.trajectory.messages[1:]:
            first, last = json.loads(encode(message.extra))["ticks"]
            spoken[message.role] += last - first + 1
            starts.append(first)
            assert (message.content, message.hidden) == (None, "compaction")
        ticks = json.loads(parsed.raw)["ticks"]
        assert spoken == {
            role: sum(tick[chunk]["contains_speech"] for tick in ticks)
            for role, chunk in (("assistant", "agent_chunk"), ("user", "user_chunk"))
        }
        assert starts == sorted(starts)
        assert all(decision.partial for decision in decisions_of(parsed.trajectory))
        assert parsed.trajectory.messages[0].content is not None
        assert parsed.trajectory.task.variant == "full_duplex/regular"
        assert parsed.trajectory.conditions.tools is None
        assert parsed.trajectory.conditions.budget == Budget(steps=6000, seconds=1200, retries=10)
        assert (facts(parsed)["stop"], facts(parsed).get("outcome")) == ("user_stop", None)


def test_a_simulation_reads_the_same_beside_its_results_and_from_them(voice: Path) -> None:
    inside = {parsed.key: accepted(parsed).trajectory for parsed in IMPORTER.read(voice) if isinstance(parsed, Parsed)}
    for path in sorted((voice.parent / "simulations").iterdir()):
        (item,) = IMPORTER.read(path)
        assert accepted(item).trajectory == inside[path.stem]


def test_the_real_folder_imports_once_and_its_bytes_come_back(logs: Path, voice: Path, tmp_path: Path) -> None:
    sources = find_sources([logs / "tau2-bench"], "auto")
    assert [source.path for source in sources.files] == [voice]
    reasons = {Path(name).name: why for name, why in sources.passed_over.items()}
    assert reasons["tasks.json"].endswith("it holds tau2 tasks, no runs: import the results of a run")
    assert sum(why.startswith("read as a part of") for why in sources.passed_over.values()) == 3
    store = new_store(tmp_path)
    first, second = ingest(store, sources, IngestOptions()), ingest(store, sources, IngestOptions())
    assert (first.read, first.accepted, second.duplicates) == (3, 3, 3)
    kept = {store.object(row["raw"]) for row in store.sql("SELECT raw FROM sightings").to_pylist()}
    assert kept == {path.read_bytes().strip() for path in (voice.parent / "simulations").iterdir()}


def test_task_files_are_no_logs(logs: Path) -> None:
    files = sorted((logs / "tau2-bench").rglob("tasks.json"))
    assert len(files) == 2
    for path in files:
        with pytest.raises(UsageError, match="it holds tau2 tasks, no runs"):
            detect(path)


@pytest.mark.parametrize("indent", [None, 2])
def test_text_runs_are_known_by_what_they_hold(tmp_path: Path, indent: int | None) -> None:
    path = tmp_path / "a.log"
    for value in (results(simulation()), results(simulation()) | {"simulations": []}, simulation()):
        path.write_text(json.dumps(value, indent=indent))
        assert detect(path)[0].name == "tau2"


def test_a_simulation_becomes_an_attempt_of_its_task(tmp_path: Path) -> None:
    parsed = read_one(tmp_path, simulation())
    trajectory = parsed.trajectory
    assert (trajectory.task.namespace, trajectory.task.id, trajectory.task.variant) == ("tau2:mock", "t1", None)
    assert trajectory.task.parameters == raw({"initial_state": STATE})
    assert (trajectory.attempt, parsed.key) == (Attempt("S1", 2), "S1")
    conditions = trajectory.conditions
    assert (conditions.model, conditions.agent, conditions.seed) == ("small", "llm_agent", 7)
    assert conditions.environment == "tau2:mock@abc123"
    assert conditions.budget == Budget(steps=100, retries=10)
    assert conditions.sampling == raw({"temperature": 0.0})
    assert (trajectory.usage, trajectory.extra) == (Usage(cost=0.5), raw({"user_cost": 0.25}))
    (tools,) = parsed.objects
    assert [(tool.name, tool.description) for tool in read_tools(tools.bytes)] == [("get_stock", "Look it up.")]
    assert [message.content for message in trajectory.messages] == ["Be kind.", "How many?", None, "2"]
    assert trajectory.messages[3].answers == Answers("2.0", "id")
    assert parsed.facts == (
        Fact("outcome", "passed", score=1.0),
        Fact("stop", "user_stop", "rule", STOP_RULE),
        Fact("strata.domain", "mock"),
        Fact("strata.gold_actions", "1", "rule", GOLD_RULE, reads=("hidden_answer",)),
    )


def test_answers_scripts_and_keys_stay_out(tmp_path: Path) -> None:
    parsed = read_one(tmp_path, simulation())
    held = encode(parsed.trajectory) + b"".join(item.bytes for item in parsed.objects) + repr(parsed.facts).encode()
    assert not any(word in held for word in (b"GOLD", b"the script", b"sk-1"))


@pytest.mark.parametrize(
    ("more", "stop", "outcome"),
    [
        ({"reward_info": None}, "user_stop", None),
        ({"reward_info": {"reward": 0.0}}, "user_stop", "failed"),
        ({"reward_info": {"reward": 0.5}}, "user_stop", "partial"),
        ({"reward_info": {"reward": 2}}, "user_stop", "unknown"),
        ({"termination_reason": "agent_stop"}, "completed", "passed"),
        ({"termination_reason": "max_steps", "reward_info": {"reward": 0}}, "max_steps", "failed"),
        ({"termination_reason": "too_many_errors"}, "tool_error", "passed"),
        ({"termination_reason": "timeout"}, "timeout", "passed"),
        ({"termination_reason": "infrastructure_error", "reward_info": {"reward": 0}}, "provider_error", "unknown"),
        ({"termination_reason": "context_window_exceeded"}, "context_length", "unknown"),
        ({"termination_reason": "user_error", "reward_info": {"reward": 0}}, "unknown", "unknown"),
        ({"termination_reason": "something_new"}, "unknown", "passed"),
    ],
)
def test_stop_and_outcome_are_independent(tmp_path: Path, more: dict[str, Any], stop: str, outcome: str | None) -> None:
    parsed = read_one(tmp_path, simulation(**more))
    assert (facts(parsed)["stop"], facts(parsed).get("outcome")) == (stop, outcome)
    assert parsed.trajectory.stop_text == more.get("termination_reason", "user_stop")
    rules = {fact.rule for fact in parsed.facts if fact.field == "outcome" and fact.by == "rule"}
    assert rules == ({UNKNOWN_RULE} if more.get("termination_reason", "").endswith(("error", "exceeded")) else set())


def test_the_users_calls_are_the_users_and_no_part_of_what_the_agent_saw(tmp_path: Path) -> None:
    mine, theirs = call("toggle", "c1", requestor="user", on=True), call(sku="A17")
    parsed = read_one(
        tmp_path,
        simulation(
            say("assistant", "Hello."),
            say("user", None, mine),
            answer("on", requestor="user"),
            say("user", "Done."),
            say("assistant", None, theirs),
            answer("2"),
        ),
    )
    messages = parsed.trajectory.messages
    assert [(message.role, message.actor) for message in messages[2:5]] == [
        ("user", USER),
        ("tool", USER),
        ("user", USER),
    ]
    assert (messages[3].answers, messages[6].answers) == (Answers("2.0", "id"), Answers("5.0", "id"))
    assert parsed.warnings == ()  # one id on each side is no repeated one
    assert [decision.partial for decision in decisions_of(parsed.trajectory)] == [False, True]


USED = {"prompt_tokens": 7, "completion_tokens": 1}


def copied(parsed: Parsed) -> list[bool]:
    return [message.copied for message in parsed.trajectory.messages]


def test_what_a_harness_says_first_is_no_decision_of_the_model(tmp_path: Path) -> None:
    greeting, asked = say("assistant", "Hi! How can I help you today?"), say("user", "How many?")
    made = say("assistant", None, call(sku="A17"), usage=USED)
    assert copied(read_one(tmp_path, simulation(greeting, asked, made))) == [False, True, False, False]
    assert copied(read_one(tmp_path, simulation(made, answer("2")))) == [False, False, False]
    unmeasured = read_one(tmp_path, simulation(greeting, asked, say("assistant", "Two.")))
    assert copied(unmeasured) == [False] * 4  # where nothing says who made a message, none is taken from the model


@pytest.mark.parametrize("usage", [None, USED])
def test_the_history_that_a_task_begins_with_is_given(tmp_path: Path, usage: Any) -> None:
    history = [say("user", "How many?"), say("assistant", None, call(sku="A17")), answer("2")]
    task = TASK | {"initial_state": STATE | {"message_history": history}}
    said = [*history, say("user", "And B17?"), say("assistant", "None.", usage=usage)]
    begun = read_one(tmp_path, simulation(*said), tasks=[task])
    assert copied(begun) == [False, True, True, True, False, False]
    assert len(decisions_of(begun.trajectory)) == 1
    other = read_one(tmp_path, simulation(say("user", "Hello."), *said[1:]), tasks=[task])
    assert copied(other)[1] is (usage is not None)


def test_a_commit_that_the_log_does_not_know_names_no_world(tmp_path: Path) -> None:
    parsed = read_one(tmp_path, simulation(), info=INFO | {"git_commit": "unknown"})
    assert parsed.trajectory.conditions.environment is None


def test_several_answers_in_one_message_are_messages_of_their_own(tmp_path: Path) -> None:
    asked = [call("f", "a"), call("g", "b"), call("h", "")]
    several = {"role": "tool", "tool_messages": [answer("B", "b"), answer("A", "a", error=True), answer("H", "")]}
    parsed = read_one(tmp_path, simulation(say("user", "Go."), say("assistant", None, *asked), several))
    linked = [(message.content, message.answers) for message in parsed.trajectory.messages[3:]]
    assert linked == [("B", Answers("2.1", "id")), ("A", Answers("2.0", "id")), ("H", Answers("2.2", "position"))]
    assert [message.error for message in parsed.trajectory.messages[3:]] == [None, MessageError(origin="tool"), None]
    assert [one.id for one in calls(parsed.trajectory)] == ["a", "b", ""]


@pytest.mark.parametrize("whole", [True, False])
def test_arguments_and_reasoning_are_those_of_the_providers_response(tmp_path: Path, whole: bool) -> None:
    made = {"id": "c1", "function": {"name": "get_stock", "arguments": '{ "sku" : "A17" }'}}
    choice = {"message": {"tool_calls": [made], "reasoning_content": "Look first."}}
    asked = say("assistant", None, call(sku="A17"), raw_data={"choices": [choice]} if whole else choice)
    message = read_one(tmp_path, simulation(say("user", "Go."), asked)).trajectory.messages[2]
    assert (message.tool_calls[0].arguments_text, message.reasoning) == ('{ "sku" : "A17" }', "Look first.")
    assert message.extra is UNSET


def test_arguments_without_a_response_are_canonical_and_say_so(tmp_path: Path) -> None:
    message = read_one(tmp_path, simulation()).trajectory.messages[2]
    assert message.tool_calls[0].arguments_text == '{"sku":"A17"}'
    assert message.extra == raw({"tool_calls": {"0": {"arguments_form": "object"}}})


def test_what_the_log_says_is_missing_is_hidden(tmp_path: Path) -> None:
    thought = {"prompt_tokens": 5, "completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 8}}
    parsed = read_one(
        tmp_path,
        simulation(
            say("user", "Go."),
            say("assistant", "One.", usage=thought),
            say("assistant", "Two.", usage={"prompt_tokens": 7, "completion_tokens": 1}, context_truncation={"n": 1}),
        ),
    )
    assert [message.hidden for message in parsed.trajectory.messages[2:]] == ["reasoning", "compaction"]
    assert parsed.trajectory.usage == Usage(12, 10, 0.5)


@pytest.mark.parametrize(
    ("agent", "hidden"), [("llm_agent", None), ("llm_agent_gt", "compaction"), ("llm_agent_solo", "compaction")]
)
def test_an_agent_that_was_told_more_than_the_log_shows_has_a_hidden_prompt(
    tmp_path: Path, agent: str, hidden: str | None
) -> None:
    info = INFO | {"agent_info": {"implementation": agent}}
    assert read_one(tmp_path, simulation(), info=info).trajectory.messages[0].hidden == hidden


def test_sound_is_a_blob(tmp_path: Path) -> None:
    parsed = read_one(tmp_path, simulation(say("user", "QUJD", is_audio=True)), info=INFO | {"environment_info": {}})
    (blob,) = parsed.objects
    assert parsed.trajectory.messages[0].content == (Part("audio", sha256=blob.id),)
    assert json.loads(blob.bytes) == {"type": "audio", "audio": "QUJD"}


def chunk(words: str | None = None, *ids: str, speaks: bool = True, **more: Any) -> dict[str, Any]:
    return {"role": "x", "content": words, "utterance_ids": list(ids) or None, "contains_speech": speaks} | more


def test_ticks_become_what_each_side_says_in_the_order_in_which_it_begins(tmp_path: Path) -> None:
    silent = chunk(speaks=False)
    asked, got = call(sku="A17"), answer("2")
    ticks = [
        {"tick_id": 0, "agent_chunk": chunk("Hel", "u1"), "user_chunk": silent},
        {"tick_id": 1, "agent_chunk": chunk("lo.", "u1"), "user_chunk": chunk("Hi", "v1"), "user_transcript": "high"},
        {"tick_id": 2, "agent_chunk": chunk("So?", "u2"), "user_chunk": chunk(" there", "v1"),
         "user_transcript": " there"},
        {"tick_id": 3, "agent_chunk": chunk(speaks=True), "user_chunk": silent, "agent_tool_calls": [asked],
         "timestamp": "2025-01-02T03:04:05"},
        {"tick_id": 4, "agent_chunk": silent, "user_chunk": chunk("Well?"), "agent_tool_results": [got]},
        {"tick_id": 5, "agent_chunk": chunk(), "user_chunk": chunk("QUJD", is_audio=True)},
    ]  # fmt: skip
    parsed = read_one(tmp_path, simulation(messages=None, ticks=ticks, mode="full_duplex"))
    messages = parsed.trajectory.messages
    assert [(message.role, message.content, message.hidden) for message in messages[1:]] == [
        ("assistant", "Hello. So?", None),
        ("user", "Hi there", None),
        ("assistant", None, None),
        ("tool", "2", None),
        ("user", "Well?", None),
        ("assistant", None, "compaction"),
    ]
    assert messages[4].answers == Answers("3.0", "id")
    assert messages[2].extra == raw({"ticks": [1, 2], "transcript": "high there"})
    assert json.loads(facts(parsed)["clocks"]) == {"3": "2025-01-02T03:04:05"}
    assert parsed.trajectory.task.variant == "full_duplex"


def split(folder: Path, *simulations: dict[str, Any], **more: Any) -> Path:
    """A run with a file for each simulation."""
    (folder / "simulations").mkdir()
    for one in simulations:
        (folder / "simulations" / f"{one['id']}.json").write_text(json.dumps(one, indent=2))
    path = folder / "results.json"
    head = {key: value for key, value in results().items() if key != "simulations"}
    path.write_text(json.dumps(head | more, indent=2))
    return path


def test_both_layouts_give_the_same_records(tmp_path: Path) -> None:
    both = simulation(), simulation(id="S2", trial=3)
    inside = [accepted(item).trajectory for item in read(tmp_path, results(*both))]
    folder = tmp_path / "split"
    folder.mkdir()
    path = split(folder, *both)
    assert [accepted(item).trajectory for item in IMPORTER.read(path)] == inside
    assert sorted(claim.name for claim in IMPORTER.claims(path)) == ["S1.json", "S2.json"]
    assert list(IMPORTER.claims(folder / "simulations" / "S1.json")) == []


def test_a_simulation_of_the_index_without_a_file_is_counted(tmp_path: Path) -> None:
    index = [{"id": "S1", "task_id": "t1", "trial": 2}, {"id": "S2", "task_id": "t1", "trial": 3}]
    first, second = IMPORTER.read(split(tmp_path, simulation(), simulation_index=index))
    assert accepted(first).key == "S1"
    assert isinstance(second, Rejected)
    assert (second.code, second.place, "S2" in second.detail) == ("not_a_record", 2, True)


def test_links_out_of_the_folder_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside.json"
    outside.write_text(json.dumps(simulation(id="S9")))
    path = split(tmp_path, simulation())
    (tmp_path / "simulations" / "S9.json").symlink_to(outside)
    assert [parsed.key for parsed in IMPORTER.read(path) if isinstance(parsed, Parsed)] == ["S1"]


def test_a_simulation_alone_knows_no_conditions(tmp_path: Path) -> None:
    path = tmp_path / "S1.json"
    path.write_text(json.dumps(simulation()))
    (item,) = IMPORTER.read(path)
    trajectory = accepted(item).trajectory
    assert (trajectory.task.namespace, trajectory.conditions.model, trajectory.conditions.tools) == (None, None, None)


@pytest.mark.parametrize("tasks", [[], [TASK, TASK], [{"id": "other"}], None])
def test_a_task_that_the_results_do_not_say_once_has_no_known_start_state(tmp_path: Path, tasks: Any) -> None:
    parsed = read_one(tmp_path, simulation(), tasks=tasks)
    assert parsed.trajectory.task.parameters is UNSET
    assert "strata.gold_actions" not in facts(parsed)


@pytest.mark.parametrize(
    ("value", "codes"),
    [
        (results(), ["not_a_record"]),
        (results(simulation(say("narrator", "x"))), ["unknown_role"]),
        (results(simulation(messages=None)), ["not_a_record"]),
        (results(simulation(trial=-1), simulation()), ["not_a_record"]),
        (results(simulation(), info=INFO | {"max_steps": "many"}), ["not_a_record"]),
        (results(7, None), ["not_a_record", "not_a_record"]),
    ],
)
def test_what_is_of_another_shape_is_refused_one_by_one(tmp_path: Path, value: Any, codes: list[str]) -> None:
    assert [item.code for item in read(tmp_path, value) if isinstance(item, Rejected)] == codes


def test_results_that_were_cut_give_the_simulations_before_the_cut(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(json.dumps(results(simulation(), simulation(id="S2")))[:-40])
    first, second, third = IMPORTER.read(path)
    assert accepted(first).key == "S1"
    assert [item.code for item in (second, third) if isinstance(item, Rejected)] == ["truncated", "truncated"]


def test_a_simulation_over_the_limit_is_refused_unheld(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(json.dumps(results(simulation(say("user", "x" * 9000)), simulation(id="S2"))))
    first, second = IMPORTER.read(path, 4000)
    assert isinstance(first, Rejected)
    assert (first.code, first.raw, accepted(second).key) == ("too_large", b"", "S2")


WRONG: st.SearchStrategy[Any] = st.sampled_from([None, 0, -1, True, "x", [], [[]], {}, [{"role": 3}], [{"name": []}]])
RICH = results(
    simulation(
        say("user", "Go.", call("toggle", requestor="user"), raw_data={"choices": [{"message": {"tool_calls": [{}]}}]}),
        {"role": "tool", "tool_messages": [answer("on", requestor="user")]},
        say("assistant", "x", call(), usage={"prompt_tokens": 1, "completion_tokens_details": {"reasoning_tokens": 1}}),
    ),
    simulation(id="S2", messages=None, ticks=[{"agent_chunk": chunk("a", "u"), "agent_tool_calls": [call()]}] * 2),
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path] * bool(path) + [place for key, one in inner for place in places(one, (*path, key))]


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.lists(st.sampled_from(places(RICH)), min_size=1, max_size=3), value=WRONG)
def test_whatever_the_results_hold_each_simulation_is_read_or_refused(
    tmp_path: Path, at: list[Any], value: Any
) -> None:
    mutated = deepcopy(RICH)
    for *above, last in at:
        inside: Any = mutated
        try:
            for key in above:
                inside = inside[key]
            inside[last] = deepcopy(value)
        except (KeyError, IndexError, TypeError):
            continue
    items = read(tmp_path, mutated)
    assert items
    assert all(isinstance(item, Parsed) or item.code in QUARANTINE for item in items)
