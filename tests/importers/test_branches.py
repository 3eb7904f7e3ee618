"""What a log records of its branches is one form whatever the format, and leads to the run that was left."""

import json
from pathlib import Path
from typing import Any

import pytest

from curation.importers.branches import Branch, branched_from, read_branch
from curation.show import TrajectoryView, show
from curation.store import Store
from curation.store.lookup import resolve
from schemas.canonical import encode
from tests.importers import test_codex as codex
from tests.importers.session import model, result, text, use, user
from tests.importers.test_call_logs import USER, line
from tests.ingest.logs import import_file, new_store, write


def session() -> list[dict[str, Any]]:
    """A Claude Code session: a retried call, a rewound answer."""
    return [
        user("u1", None),
        model("a1", "u1", use("c1", sku="A18")),
        result("r1", "a1", "c1", "unknown_sku"),
        result("r2", "a1", "c1", "timeout"),
        model("a2", "u1", text("two")),
        user("u2", "a2", "and B17?"),
        user("u3", "a2", "and C17?"),
    ]


def calls(session_id: str | None) -> list[dict[str, Any]]:
    """Call lines: a run, a run whose history was edited, and one that leaves that one again."""
    more = {} if session_id is None else {"session_id": session_id}
    spoken = [{"role": "assistant", "content": words} for words in ("Which?", "Two.", "Three.", "Four.", "Five.")]
    said = [{"role": "user", "content": words} for words in ("A17.", "A18.", "And B17?", "And C17?")]
    begun = [USER, spoken[0]]
    edited = [*begun, said[1]]
    return [
        line([USER], spoken[0], 0, **more),
        line([*begun, said[0]], spoken[1], 1, **more),
        line([*begun, said[0], spoken[1], said[2]], spoken[3], 5, **more),
        line(edited, spoken[2], 2, **more),
        line([*edited, spoken[2], said[2]], spoken[3], 3, **more),
        line([*edited, spoken[2], said[3]], spoken[4], 4, **more),
    ]


def rollout() -> list[dict[str, Any]]:
    """A Codex session with a turn that was taken back."""
    return [
        codex.meta(),
        *codex.asked("How many A17?"),
        codex.said("assistant", "Two."),
        *codex.asked("And B17?"),
        codex.said("assistant", "None."),
        codex.event("thread_rolled_back", num_turns=1),
        *codex.asked("And C17?"),
        codex.said("assistant", "Three."),
    ]


def views(store: Store) -> list[TrajectoryView]:
    rows = store.sql("SELECT trajectory_id FROM attempts ORDER BY run, attempt")["trajectory_id"].to_pylist()
    found = [show(store, resolve(store, row)) for row in rows]
    assert all(isinstance(view, TrajectoryView) for view in found)
    return [view for view in found if isinstance(view, TrajectoryView)]


@pytest.mark.parametrize(
    ("lines", "left"),
    [
        (session(), 3),
        (calls("s1"), 2),
        (calls(None), 2),
        (rollout(), 1),
    ],
    ids=["claude-code", "model-calls in a session", "model-calls", "codex"],
)
def test_a_branch_leads_to_the_run_that_it_left_and_back(tmp_path: Path, lines: list[Any], left: int) -> None:
    store = new_store(tmp_path)
    assert not import_file(store, write(tmp_path / "log.jsonl", lines)).quarantined
    shown = {view.id: view for view in views(store)}
    origins = {name: view.branched_from for name, view in shown.items() if view.branched_from is not None}
    assert len(origins) == left
    for name, branch in origins.items():
        assert branch.id in shown
        assert branch.message is not None
        messages, others = (store.trajectory(each).messages for each in (name, branch.id))
        assert [encode(each.content) for each in messages[: branch.message]] == [
            encode(each.content) for each in others[: branch.message]
        ]
        back = [(line.id, line.message) for line in shown[branch.id].branches]
        assert (name, branch.message) in back
        assert "branched_from" not in shown[name].facts
    assert sum(len(view.branches) for view in shown.values()) == left
    values = store.sql("SELECT value FROM annotations WHERE field = 'branched_from'")["value"].to_pylist()
    for value in values:
        assert set(json.loads(value)) <= {"attempt", "message", "run"}
        assert branched_from(*_fields(read_branch(value))).value == value


def _fields(branch: Branch | None) -> tuple[str, int | None, int | None]:
    assert branch is not None
    return branch.run, branch.message, branch.attempt


def test_a_branch_of_a_branch_names_the_attempt_that_it_left(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    import_file(store, write(tmp_path / "log.jsonl", calls("s1")))
    values = store.sql("SELECT value FROM annotations WHERE field = 'branched_from' ORDER BY value")[
        "value"
    ].to_pylist()
    assert values == ['{"attempt":1,"message":4,"run":"s1"}', '{"message":2,"run":"s1"}']


@pytest.mark.parametrize(
    "value", [None, 3, "", "no json", "[]", '{"message": 2}', '{"run": 3}', '{"run": "a", "message": "x"}']
)
def test_what_names_no_run_is_no_branch(value: object) -> None:
    assert read_branch(value) is None


def test_a_branch_of_a_hostile_log_is_shown_as_none(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    facts = [{"field": "branched_from", "value": "{"}]
    document = {
        "schema_version": "ATIF-v1.8",
        "session_id": "a",
        "agent": {"name": "x", "version": "1"},
        "steps": [{"step_id": 1, "source": "user", "message": "stock?"}],
        "extra": {"curation": {"facts": facts}},
    }
    (tmp_path / "a.json").write_text(json.dumps(document))
    assert import_file(store, tmp_path / "a.json").accepted == 1
    (view,) = views(store)
    assert (view.branched_from, view.branches) == (None, [])
