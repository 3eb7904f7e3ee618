"""What comes up beside the messages while one record is read."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from curation.clocks import CLOCKS, MAX_TIMES, write_clocks
from curation.importers.face import Fact
from schemas.objects import Object
from schemas.trajectory import Message


@dataclass(slots=True)
class Aside:
    """Warnings (codes of schemas.reasons.WARNINGS), objects that the messages refer to, replaced surrogates, and the
    times that the log gives, each from its message on.
    """

    warnings: list[str] = field(default_factory=list)
    objects: list[Object] = field(default_factory=list)
    replaced: int = 0
    times: dict[int, str] = field(default_factory=dict)

    def codes(self) -> tuple[str, ...]:
        """Each warning once, in the order in which they came up."""
        if self.replaced:
            self.warnings.append("surrogates_replaced")
        if len(self.times) > MAX_TIMES:
            self.warnings.append("clocks_cut")
        return tuple(dict.fromkeys(self.warnings))

    def clocks(self, messages: Sequence[Message]) -> tuple[Fact, ...]:
        """The times as a fact; nothing where there are none, or no call to be made at them."""
        if not self.times or not any(message.tool_calls for message in messages):
            return ()
        return (Fact(CLOCKS, write_clocks(self.times)),)
