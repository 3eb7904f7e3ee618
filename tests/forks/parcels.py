"""A world with nothing but its state in it: where parcels go. Taking a change back leaves no trail."""

from typing import Any

from environments.json_state import JsonState
from environments.protocol import Blobs, Controls, EnvSpec, Undo
from environments.session import ToolSession, restore
from environments.sources import code_digest
from environments.tools import Tool, Toolbox
from schemas.objects import Snapshot
from schemas.trajectory import Task

Cities = dict[str, str]
Parcels = JsonState[Cities]


def send(parcels: Parcels, order: str, city: str) -> dict[str, Any]:
    """Change where an order goes."""
    if order not in parcels.value:
        return {"error": "unknown_order", "order": order}
    before, parcels.value[order] = parcels.value[order], city
    return {"order": order, "city": city, "before": before}


def find(parcels: Parcels, order: str, part: str = "all") -> dict[str, Any]:
    """Look up where an order goes."""
    return {"order": order, "city": parcels.value[order]} if order in parcels.value else {"error": "unknown_order"}


def arguments(*names: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": "string"} for name in names}, "required": list(names)}


TOOLS = Toolbox(
    Tool("send", "Change where an order goes", arguments("order", "city"), "write", send),
    Tool("find", "Look up an order", arguments("order") | {"additionalProperties": True}, "read", find),
)
UNDO = Undo("send", {"order": ("arguments", "order"), "city": ("answer", "before")})


class Depot:
    spec = EnvSpec("parcels", "1", code_digest(__name__), "pure", TOOLS.effects, errors=("error",), undo={"send": UNDO})

    def open(self, start: Task | Snapshot, controls: Controls, blobs: Blobs) -> ToolSession[Parcels]:
        parcels = Parcels({"O-1003": "Berlin", "O-1004": "Kiel"})
        if isinstance(start, Snapshot):
            parcels = restore(start, self.spec, blobs, Parcels.form, lambda image: Parcels.restore(image, Cities))
        return ToolSession(self.spec, TOOLS, parcels, controls, blobs)


class Undeclared(Depot):
    spec = Depot.spec._replace(undo={})
