"""tau-bench's domains, on a small package of our own with the interface of the real one."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from environments.blobs import MemoryBlobs
from environments.catalogue import UnknownEnvironmentError, find, members
from environments.protocol import Controls, StartError
from environments.tau_bench import Domain, DomainSession
from schemas.trajectory import Message, Task, ToolCall
from tests.environments.calls import call, task, unparsable

TOOLS = """
import json


class GetUserDetails:
    @staticmethod
    def invoke(data, user_id):
        if user_id in data["users"]:
            return json.dumps(data["users"][user_id])
        return "Error: user not found"

    @staticmethod
    def get_info():
        schema = {"type": "object", "properties": {"user_id": {"type": "string"}}, "required": ["user_id"]}
        return {"type": "function", "function": {"name": "get_user_details", "description": "A user.",
                                                 "parameters": schema}}


class SendCertificate:
    @staticmethod
    def invoke(data, user_id, amount):
        certificates = data["users"][user_id]["certificates"]
        certificates[f"c{len(certificates)}"] = amount
        return f"Certificate added to user {user_id} with amount {amount}."

    @staticmethod
    def get_info():
        schema = {"type": "object", "properties": {"user_id": {"type": "string"}, "amount": {"type": "number"}}}
        return {"type": "function", "function": {"name": "send_certificate", "description": "A certificate.",
                                                 "parameters": schema}}


class TransferToHumanAgents:
    @staticmethod
    def invoke(data, summary):
        data["users"].clear()
        return "Transfer successful"

    @staticmethod
    def get_info():
        return {"type": "function", "function": {"name": "transfer_to_human_agents", "description": "To a person.",
                                                 "parameters": {"type": "object", "properties": {}}}}


ALL_TOOLS = [GetUserDetails, SendCertificate, TransferToHumanAgents]
"""
TASKS = """
from types import SimpleNamespace as Task, SimpleNamespace as Action

SEND = Action(name="send_certificate", kwargs={"user_id": "u1", "amount": 50})
TRANSFER = Action(name="transfer_to_human_agents", kwargs={"summary": "s"})
TASKS = [
    Task(actions=[SEND, TRANSFER], outputs=[]),
    Task(actions=[], outputs=["1786", "Tuesday"]),
]
"""
DATA = """
def load_data():
    return {"users": {"u2": {"certificates": {}}, "u1": {"certificates": {"c0": 5}}}}
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("packages")
    domain = folder / "tau_bench" / "envs" / "airline"
    for name, text in {
        "../../__init__.py": "",
        "../../types.py": "",
        "../__init__.py": "",
        "../base.py": "",
        "../tool.py": "",
        "__init__.py": "",
        "tools/__init__.py": TOOLS,
        "data/__init__.py": DATA,
        "tasks_test.py": TASKS,
    }.items():
        path = domain / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))


@pytest.fixture
def airline(package: Path) -> Domain:
    found = find("tau_bench:airline")
    assert isinstance(found, Domain)
    return found


def opened(world: Domain, start: Task | None = None) -> DomainSession:
    return world.open(start or Task(), Controls(), MemoryBlobs())


SEND = call("send_certificate", user_id="u1", amount=50)


@pytest.mark.parametrize(
    ("one", "status", "answer"),
    [
        (call("get_user_details", user_id="u1"), "ok", '{"certificates": {"c0": 5}}'),
        (call("get_user_details", user_id="u3"), "tool_error", "Error: user not found"),
        (call("send_certificate", user_id="u3", amount=1), "tool_error", "Error: 'u3'"),
        (SEND, "ok", "Certificate added to user u1 with amount 50."),
        (call("book"), "unknown_tool", "Unknown action book"),
        (unparsable("send_certificate", "{"), "refused", ""),
    ],
)
def test_an_action_is_answered_as_the_package_answers_it(
    airline: Domain, one: ToolCall, status: str, answer: str
) -> None:
    with opened(airline) as world:
        (result,) = world.call([one])
    assert (result.status, result.raw) == (status, answer)
    assert (result.state_before != result.state_after) is (one is SEND)


def test_arguments_that_a_tool_does_not_take_are_its_error(airline: Domain) -> None:
    with opened(airline) as world:
        (result,) = world.call([call("get_user_details", name="u1")])
    assert result.status == "tool_error"
    assert result.raw.startswith("Error: ")
    assert "unexpected keyword argument 'name'" in result.raw


def test_effects_are_declared_and_what_is_not_known_writes(airline: Domain) -> None:
    assert airline.spec.effects == {
        "get_user_details": "read",
        "send_certificate": "write",
        "transfer_to_human_agents": "read",
    }


def test_the_data_of_a_run_are_graded_in_a_fork_against_the_task_s_own_actions(airline: Domain) -> None:
    blobs, told = MemoryBlobs(), [Message("assistant", "Done.")]
    with airline.open(Task(id="0"), Controls(), blobs) as world:
        assert world.check(Task(id="0"), told).result == "failed"
        world.call([SEND])
        with airline.open(world.snapshot(), Controls(), blobs) as fork:
            assert fork.check(Task(id="0"), told).result == "passed"
            assert fork.state_digest() == world.state_digest()
        world.call([SEND])
        assert world.check(Task(id="0"), told).result == "failed"
        assert world.check(Task()).result == "unknown"


@pytest.mark.parametrize(
    ("messages", "result"),
    [
        ([Message("assistant", "It is $1,786."), Message("assistant", "On TUESDAY.")], "passed"),
        ([Message("assistant", "It is $1,786.")], "failed"),
        ([Message("assistant", "1786 Tuesday", tool_calls=(SEND,)), Message("assistant", "No.")], "failed"),
        ([Message("user", "1786 Tuesday?")], "unknown"),
    ],
)
def test_what_the_user_had_to_be_told_is_looked_for_in_what_was_said(
    airline: Domain, messages: list[Message], result: str
) -> None:
    with opened(airline) as world:
        checked = world.check(Task(id="1"), messages)
    assert checked.result == result
    assert "1786" not in checked.detail


@pytest.mark.parametrize("start", [*(Task(id=name) for name in ("2", "-1", "x", "01", "9" * 5000)), task(seed=1)])
def test_what_opens_no_state_is_a_start_error(airline: Domain, start: Task) -> None:
    with pytest.raises(StartError):
        opened(airline, start)


def test_the_version_follows_the_files(airline: Domain) -> None:
    assert airline.spec.code_digest.startswith(airline.spec.version)
    name = airline.spec.name
    assert members("tau_bench:airline") == (name,)
    assert find(name).spec.name == name
    with pytest.raises(UnknownEnvironmentError, match=f"in version {airline.spec.version}, not '0.1'"):
        find("tau_bench:airline@0.1")
    with pytest.raises(UnknownEnvironmentError, match="no domain 'train'; there are airline, retail"):
        find("tau_bench:train")


def test_without_the_package_it_is_said_how_to_get_it(tmp_path: Path) -> None:
    script = "from environments.catalogue import find; find('tau_bench:airline')"
    root = Path(__file__).parents[2]
    ended = subprocess.run(
        [sys.executable, "-P", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "no package tau_bench is on the module search path" in ended.stderr
    assert "PYTHONPATH" in ended.stderr
