"""A world that answers one of three processes otherwise: what a rate limit or an unordered set does to a real one."""

from environments.inventory import TOOLS, Inventory, Stock
from environments.protocol import Blobs, Controls
from environments.session import ToolSession
from environments.tools import Answer, conclude
from schemas.objects import Snapshot
from schemas.trajectory import Task, ToolCall


class FlakySession(ToolSession[Stock]):
    def answer(self, call: ToolCall) -> Answer:
        if self.controls.hash_seed % 3 == 1:
            return conclude({"error": "timeout"}, self.spec)
        return super().answer(call)


class Unordered(ToolSession[Stock]):
    def answer(self, call: ToolCall) -> Answer:
        status, text = super().answer(call)
        return Answer(status, text if '"error"' in text else f"{text} {hash(text)}")


class Flaky(Inventory):
    session: type[ToolSession[Stock]] = FlakySession

    def open(self, start: Task | Snapshot, controls: Controls, blobs: Blobs) -> ToolSession[Stock]:
        return self.session(self.spec, TOOLS, super().open(start, controls, blobs).state, controls, blobs)


class Hashed(Flaky):
    session = Unordered
