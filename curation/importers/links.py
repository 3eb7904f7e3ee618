"""Which call a tool message answers: by id, by order where ids are absent or repeated, by name last."""

from collections import deque
from collections.abc import Iterable

from schemas.trajectory import MatchedBy, ToolCall


class Links:
    """The calls of one run that wait for an answer, in the order in which they were made."""

    def __init__(self) -> None:
        self.repeated = False
        self._ids: set[str] = set()
        self._unique: dict[str, ToolCall] = {}
        self._answered: set[str] = set()
        self._unsorted: list[Iterable[ToolCall]] = []
        self._piles: dict[tuple[str, str], list[deque[ToolCall]]] = {}

    def open(self, calls: tuple[ToolCall, ...]) -> None:
        """The calls of the next assistant message."""
        for call in calls:
            if not call.id:
                continue
            if call.id in self._ids:
                self.repeated = True
                self._unique.pop(call.id, None)
            else:
                self._ids.add(call.id)
                self._unique[call.id] = call
        self._unsorted.append(calls)

    def answer(self, call_id: str | None, name: str | None) -> tuple[ToolCall, MatchedBy] | None:
        """The call that a tool message with this id and name answers, and how it was found; None for an orphan.

        A call is answered once. Where order decides, the latest message with a waiting call comes first, and in it the
        first such call.
        """
        unique = self._unique.get(call_id) if call_id else None
        found: tuple[ToolCall, MatchedBy] | None
        found = self._by_order(call_id, name) if unique is None else (unique, "id")
        if found is not None:
            call, _ = found
            self._answered.add(call.uid)
            self._unique.pop(call.id or "", None)
        return found

    def _by_order(self, call_id: str | None, name: str | None) -> tuple[ToolCall, MatchedBy] | None:
        self._sort()
        if call_id and call_id in self._ids:
            call = self._first("id", call_id)
            return None if call is None else (call, "position")
        if not call_id:
            call = self._first("any", "")
            if call is None:
                return None
            if not name or call.name == name:
                return call, "position"
        call = self._first("name", name) if name else None
        return None if call is None else (call, "name")

    def _sort(self) -> None:
        for calls in self._unsorted:
            piles: dict[tuple[str, str], deque[ToolCall]] = {}
            for call in calls:
                for key in (("any", ""), ("name", call.name), ("id", call.id or "")):
                    piles.setdefault(key, deque()).append(call)
            for key, pile in piles.items():
                self._piles.setdefault(key, []).append(pile)
        self._unsorted.clear()

    def _first(self, kind: str, value: str) -> ToolCall | None:
        pile = self._piles.get((kind, value), [])
        while pile:
            waiting = pile[-1]
            while waiting and waiting[0].uid in self._answered:
                waiting.popleft()
            if waiting:
                return waiting[0]
            pile.pop()
        return None
