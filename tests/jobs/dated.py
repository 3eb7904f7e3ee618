"""A world of notes, each with the day on which it was written; its task takes notes on two days."""

from collections.abc import Sequence
from datetime import datetime

from environments.python_state import PythonWorld
from schemas.trajectory import Message, Task

DAYS = ["2024-06-01", "2024-06-02"]
Notes = dict[str, list[str]]


def start() -> Notes:
    return {"days": [], "texts": []}


def note(state: Notes, text: str) -> str:
    """Write a note."""
    state["days"].append(str(datetime.now().date()))
    state["texts"].append(text)
    return state["days"][-1]


def is_done(state: Notes, task: Task, messages: Sequence[Message]) -> bool:
    return state["days"] == DAYS


world = PythonWorld("dated", start, writes=[note], check=is_done)
