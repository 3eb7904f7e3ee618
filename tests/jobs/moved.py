"""The booking world after a field of its answers was renamed, to be loaded by module:attribute."""

from environments.booking import TOOLS, Booking, BookingSession
from environments.protocol import Blobs, Controls
from environments.tools import Answer
from schemas.objects import Snapshot
from schemas.trajectory import Task, ToolCall


class MovedSession(BookingSession):
    def answer(self, call: ToolCall) -> Answer:
        status, text = super().answer(call)
        return Answer(status, text.replace('"city"', '"town"'))


class Moved(Booking):
    def __init__(self) -> None:
        super().__init__()
        self.spec = self.spec._replace(id="moved")

    def open(self, start: Task | Snapshot, controls: Controls, blobs: Blobs) -> MovedSession:
        return MovedSession(self.spec, TOOLS, super().open(start, controls, blobs).state, controls, blobs)


moved = Moved()
