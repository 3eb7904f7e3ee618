"""A world in one file: the heating of a house. ``--environment examples.my_world:House`` is all it takes to use it."""

from typing import Any

from environments.json_state import JsonState
from environments.protocol import Blobs, Controls, EnvSpec, Undo
from environments.session import ToolSession, restore
from environments.sources import code_digest
from environments.tools import Tool, Toolbox
from schemas.objects import Snapshot
from schemas.trajectory import Task

Degrees = dict[str, int]
Rooms = JsonState[Degrees]


def heat(rooms: Rooms, room: str, degrees: int) -> dict[str, Any]:
    """Set the temperature of a room."""
    if room not in rooms.value:
        return {"error": "unknown_room", "room": room}
    before, rooms.value[room] = rooms.value[room], degrees
    return {"room": room, "degrees": degrees, "before": before}


ARGUMENTS = {
    "type": "object",
    "properties": {"room": {"type": "string"}, "degrees": {"type": "integer", "minimum": 5, "maximum": 30}},
    "required": ["room", "degrees"],
}
TOOLS = Toolbox(Tool("heat", "Set the temperature of a room", ARGUMENTS, "write", heat))
UNDO = Undo("heat", {"room": ("arguments", "room"), "degrees": ("answer", "before")})


class House:
    """What the world declares of itself, and how it opens: at a task's start, or at a snapshot."""

    spec = EnvSpec("house", "1", code_digest(__name__), "pure", TOOLS.effects, errors=("error",), undo={"heat": UNDO})

    def open(self, start: Task | Snapshot, controls: Controls, blobs: Blobs) -> ToolSession[Rooms]:
        """Kitchen and office at 20 degrees, or as a snapshot has them."""
        rooms = Rooms({"kitchen": 20, "office": 20})
        if isinstance(start, Snapshot):
            rooms = restore(start, self.spec, blobs, Rooms.form, lambda image: Rooms.restore(image, Degrees))
        return ToolSession(self.spec, TOOLS, rooms, controls, blobs)
