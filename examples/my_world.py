"""A world in one file: the heating of a house. ``--environment examples.my_world:house`` is all it takes to use it."""

from environments.protocol import Undo
from environments.python_state import PythonWorld


def temperature(rooms: dict[str, int], room: str) -> dict[str, int]:
    """The temperature of a room."""
    return {"degrees": rooms[room]}


def heat(rooms: dict[str, int], room: str, degrees: int) -> dict[str, int]:
    """Set the temperature of a room."""
    before, rooms[room] = rooms[room], degrees
    return {"degrees": degrees, "before": before}


house = PythonWorld(
    "house",
    {"kitchen": 20, "office": 20},
    reads=[temperature],
    writes=[heat],
    errors=(KeyError,),  # an answer to the model; what else is raised is our own fault
    undo={"heat": Undo("heat", {"room": ("arguments", "room"), "degrees": ("answer", "before")})},
    examples=[("heat", {"room": "office", "degrees": 23})],
)
