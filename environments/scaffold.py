"""The start of a world of one's own: a module that works, to be changed line by line."""

from importlib.util import find_spec
from keyword import iskeyword
from pathlib import Path

from environments.catalogue import FAMILIES
from environments.protocol import EnvironmentFailure

TEMPLATE = '''"""The world {name}: ``curate environment check {name}:world`` says if it is sound."""

from collections.abc import Sequence
from typing import Any

from environments.protocol import Fault, Undo
from environments.python_state import PythonWorld
from schemas.trajectory import Message, Task

State = dict[str, int]  # anything that JSON restores, dataclasses and models too


def start(a17: int = 2, b17: int = 4) -> State:
    """The state that a task starts in, from the task's parameters."""
    return {{"A17": a17, "B17": b17}}


# Tools. A model reads their docstrings, and their type hints as a JSON Schema.
def get_stock(state: State, sku: str) -> dict[str, Any]:
    """How many of an item there are."""
    return {{"sku": sku, "stock": state[sku]}}


def book(state: State, sku: str, qty: int) -> dict[str, Any]:
    """Take items out of stock."""
    if not 0 < qty <= state[sku]:
        raise ValueError(f"{{qty}} of {{state[sku]}}")
    state[sku] -= qty
    return {{"sku": sku, "stock": state[sku]}}


def give_back(state: State, sku: str, qty: int) -> dict[str, Any]:
    """Put items back into stock."""
    if qty <= 0:
        raise ValueError(f"{{qty}} is nothing to give back")
    state[sku] += qty
    return {{"sku": sku, "stock": state[sku]}}


def is_done(state: State, task: Task, messages: Sequence[Message]) -> bool:
    """Whether a task is done: here, one A17 is booked and nothing else."""
    return state == {{"A17": 1, "B17": 4}}


world = PythonWorld(
    "{name}",
    start,
    reads=[get_stock],  # these change nothing
    writes=[book, give_back],  # these change the state and nothing beyond it
    errors=(KeyError, ValueError),  # answers to the model; others are our own faults
    faults=(Fault("error", "unavailable", "service"),),  # what our own faults look like
    undo={{
        "book": Undo(
            "give_back", {{"sku": ("arguments", "sku"), "qty": ("arguments", "qty")}}
        )
    }},
    check=is_done,
    examples=[  # calls to try
        ("get_stock", {{"sku": "A17"}}),
        ("book", {{"sku": "A17", "qty": 1}}),
        ("give_back", {{"sku": "B17", "qty": 1}}),
    ],
)
'''


class ScaffoldError(EnvironmentFailure):
    """A name or place that no scaffold can be written to."""


def write_scaffold(name: str, folder: Path) -> Path:
    """Write the world ``NAME.py`` into a folder and say where it is.

    Raises ScaffoldError for a name that Python cannot import or that leads elsewhere, and for a file that is there.
    """
    if not name.isidentifier() or iskeyword(name) or not name.isascii() or name.startswith("_"):
        raise ScaffoldError(f"{name!r} is no name of a module: use letters, digits and _, a letter first")
    path = folder / f"{name}.py"
    if path.exists() or path.is_symlink():
        raise ScaffoldError(f"{str(path)!r} exists and stays as it is: give another name, or another folder with --out")
    if name in FAMILIES:
        raise ScaffoldError(f"{name!r} is a family of worlds, which {name}:world would lead to: give another name")
    if find_spec(name) is not None:
        raise ScaffoldError(f"{name!r} is a module that Python finds first: give the world another name")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(TEMPLATE.format(name=name))
    except OSError as error:
        raise ScaffoldError(f"{str(path)!r} cannot be written ({error.strerror}); give a folder with --out") from None
    return path
