"""Where a value of a call may have come from: what was said before it, or an earlier deed of the model itself.

Abstains widely: in any spelling, from any request or answer. Two things are told apart. A failed call's answer that
repeats the call's own value is an echo and no source of it. What an earlier call may have changed is known from then
on, since it may be looked at again and be taken back; doing the very same again is neither.
"""

from typing import Any, NamedTuple

from curation.diagnosis.arguments import arguments_of, leaves
from curation.diagnosis.derivation import derive
from curation.diagnosis.evidence import Reading
from curation.diagnosis.reversal import takes_back
from curation.diagnosis.tokens import fold, occurs, squeeze
from schemas.canonical import encode
from schemas.trajectory import ToolCall


class Origins(NamedTuple):
    """A reading with its calls by uid, the first message that gave each value to a call that may have written, and the
    first call that did each action.
    """

    reading: Reading
    calls: dict[str, ToolCall]
    handled: dict[Any, int]
    actions: dict[tuple[str, bytes], ToolCall]

    def names(self, index: int, call: ToolCall, path: str, value: str) -> bool:
        """Whether a name at a place of a call may have come from anything before the call or from its tool."""
        return self.acted_on(index, call, value) or self._said(index, value) or self._described(call, path, value)

    def acted_on(self, index: int, call: ToolCall, value: Any) -> bool:
        """Whether another call before the message may have changed what a value of this call names."""
        first = self.actions[_action(call)]
        again = first is not call and not takes_back(self.reading, first, call)
        return self.handled.get(_key(value), index) < index and not again

    def _said(self, index: int, value: str) -> bool:
        return any(
            message.role in ("system", "user", "tool")
            and occurs(self.reading.squeezed(at), value)
            and not self._echoes(at, value)
            for at, message in enumerate(self.reading.messages[:index])
        )

    def _echoes(self, at: int, value: str) -> bool:
        answered = self.reading.messages[at].answers
        if answered is None or self.reading.ending(answered.uid) not in ("failed", "fault"):
            return False
        call = self.calls.get(answered.uid)
        return call is not None and any(_key(item) == fold(value) for _, item in leaves(arguments_of(call)))

    def _described(self, call: ToolCall, path: str, value: str) -> bool:
        tool = (self.reading.tools or {}).get(call.name)
        if tool is None:
            return False
        found = derive(value, (), tool.parameters, path)
        if found is not None and found.how == "default":
            return True
        return found is None and occurs(squeeze(f"{tool.description} {bytes(tool.parameters).decode()}"), value)


def read_origins(reading: Reading) -> Origins:
    """Look up what the calls of a reading can tell of a value."""
    handled: dict[Any, int] = {}
    for index, call in reading.calls:
        if _may_write(reading, call):
            for _, value in leaves(arguments_of(call)):
                if isinstance(value, str | int | float) and not isinstance(value, bool):
                    handled.setdefault(_key(value), index)
    calls = {call.uid: call for _, call in reading.calls}
    return Origins(reading, calls, handled, {_action(call): call for call in reversed(calls.values())})


def _may_write(reading: Reading, call: ToolCall) -> bool:
    spec = reading.case.spec
    return (spec is None or spec.effects.get(call.name, "write") != "read") and reading.ending(call.uid) != "failed"


def _action(call: ToolCall) -> tuple[str, bytes]:
    return call.name, encode(arguments_of(call))


def _key(value: Any) -> Any:
    return fold(value) if isinstance(value, str) else value
