"""Which model calls are one run: each carries its history, and one that goes on from an answer continues its run.

Histories are chains of digests in one tree, so that a call costs the few messages that are its own, however long its
history. Where two calls go on from one answer, the first continues the run and the other is a branch of it. Calls that
begin without a known answer are runs of their own, unless they name the session of another.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import NamedTuple

_SIZE = 16


class CallPath(NamedTuple):
    """A call in digests: its first message where that is set anew in each call, the messages of its request, and for
    each alternative answer the messages of it, none where the request failed. ``previous`` is the id of the call whose
    context it goes on from where the request holds only what is new.
    """

    request: Sequence[bytes]
    answers: Sequence[Sequence[bytes]] = ()
    head: bytes | None = None
    id: str | None = None
    session: str | None = None
    previous: str | None = None


class Branch(NamedTuple):
    """Where a run leaves another: the position of that run, and the first message that is not its."""

    run: int
    message: int


class Run(NamedTuple):
    """A path of calls, by their positions in the order in which they were added.

    ``calls`` are its own, ``before`` those that a branch shares with others, ``failed`` the requests without an answer
    that were tried again or ended it. The last of ``calls`` (or, for an alternative answer, of ``before``) holds its
    history and, at ``choice``, its last answer. ``answered`` are the indexes of its messages that ``calls`` begin.
    ``root`` is the run that it is a branch of in the end, ``number`` counts the branches of that from 1, 0 is the root.
    ``gap``: what it goes on from was never added.
    """

    calls: tuple[int, ...]
    before: tuple[int, ...]
    failed: tuple[int, ...]
    answered: tuple[int, ...]
    choice: int
    root: int
    number: int
    branch: Branch | None
    gap: bool

    @property
    def decided(self) -> int:
        """The index of the first message that its own calls answered with; all before it was given to them."""
        return self.answered[0] if self.answered else 0


class _Call:
    __slots__ = ("ends", "gap", "head", "moved", "previous", "request", "session")

    def __init__(self, path: CallPath, previous: int | None, *, gap: bool) -> None:
        self.session, self.head = path.session, path.head
        self.previous, self.gap = previous, gap
        self.request, self.moved = 0, False
        self.ends: tuple[int, ...] = ()


class CallTree:
    """Calls as they are added, and the runs that they make."""

    def __init__(self) -> None:
        self._calls: list[_Call | None] = []
        self._ids: dict[str, int] = {}
        self._pending: dict[str, list[tuple[int, CallPath]]] = defaultdict(list)
        self._nodes: dict[bytes, int] = {b"": 0}
        self._keys = [b""]
        self._own: dict[int, bytes] = {}  # of nodes below a first message that is set anew in each call
        self._parents, self._depths = array("L", [0]), array("L", [0])

    def add(self, path: CallPath) -> None:
        """The next call."""
        position = len(self._calls)
        self._calls.append(None)
        known = self._ids.get(path.previous) if path.previous else None
        if path.previous and (known is None or self._calls[known] is None):
            self._pending[path.previous].append((position, path))
            if path.id:
                self._ids.setdefault(path.id, position)
            return
        self._place(position, path, known, gap=False)

    def knows(self, identity: str | None) -> bool:
        """Whether a call of this id was added."""
        return identity is not None and identity in self._ids

    def runs(self) -> list[Run]:
        """All runs, those that are no branches first; every call is a part of at least one."""
        for position, path in sorted(pair for waiting in self._pending.values() for pair in waiting):
            if self._calls[position] is None:
                self._place(position, path, None, gap=True)
        return _Runs([call for call in self._calls if call is not None], self._parents, self._depths).all()

    def _place(self, position: int, path: CallPath, previous: int | None, *, gap: bool) -> None:
        """Put a call where it belongs, and then what waits for it."""
        ready = [(position, path, previous, gap)]
        while ready:
            position, path, previous, gap = ready.pop()
            call = _Call(path, previous, gap=gap)
            self._calls[position] = call
            before = None if previous is None else self._calls[previous]
            call.moved = before is not None and before.head != path.head
            keep = path.head is not None or path.previous is not None
            call.request = self._walk(self._start(path, before), path.request, keep=keep)
            call.ends = tuple(self._walk(call.request, answer, keep=keep) for answer in path.answers)
            if path.id:
                self._ids.setdefault(path.id, position)
                ready += [(waiting, one, position, False) for waiting, one in self._pending.pop(path.id, ())]

    def _start(self, path: CallPath, before: _Call | None) -> int:
        head = () if path.head is None else (path.head,)
        if before is None:
            return self._walk(self._session(path.session), head, keep=True)
        last = before.ends[0] if before.ends else before.request
        if before.head == path.head:
            return last
        own = []
        while self._depths[last]:
            own.append(self._own.get(last, b""))
            last = self._parents[last]
        own.reverse()
        return self._walk(self._walk(last, head, keep=True), own[before.head is not None :], keep=True)

    def _session(self, session: str | None) -> int:
        """The node before the first message: calls of two sessions share no history."""
        return 0 if session is None else self._node(0, b"session\0" + session.encode("utf-8", "replace"), 0)

    def _walk(self, node: int, digests: Iterable[bytes], *, keep: bool) -> int:
        for own in digests:
            node = self._node(node, own, self._depths[node] + 1)
            if keep:
                self._own[node] = own
        return node

    def _node(self, parent: int, own: bytes, depth: int) -> int:
        key = blake2b(self._keys[parent] + own, digest_size=_SIZE).digest()
        node = self._nodes.setdefault(key, len(self._keys))
        if node == len(self._keys):
            self._keys.append(key)
            self._parents.append(parent)
            self._depths.append(depth)
        return node


class _Runs:
    """The runs of all calls: who continues whom is decided by the answers that histories go on from."""

    def __init__(self, calls: list[_Call], parents: "array[int]", depths: "array[int]") -> None:
        self.calls, self.parents, self.depths = calls, parents, depths
        self.ended: dict[int, list[tuple[int, int]]] = defaultdict(list)  # node to the answers that end there
        for position, call in enumerate(calls):
            for choice, end in enumerate(call.ends):
                self.ended[end].append((position, choice))
        self.inner = bytearray(len(parents))
        for node in range(1, len(parents)):
            self.inner[parents[node]] = 1
        self.next: dict[tuple[int, int], int] = {}
        self.before: dict[int, tuple[int, int]] = {}  # a call to the answer that it goes on from
        self.branches: set[int] = set()
        self.retried: list[int] = []
        self.owners: dict[int, int] = {}
        self.found: list[Run] = []

    def all(self) -> list[Run]:
        starts = self._link()
        trunks: dict[str, int] = {}
        for position in starts:
            session = self.calls[position].session
            first = trunks.setdefault(session, position) if session is not None else position
            if first != position:
                self.branches.add(position)
        counts: dict[int, int] = defaultdict(int)
        run_of: dict[int, int] = {}
        for position in sorted(starts, key=lambda start: (start in self.branches, start)):
            before = (
                self.before[position][0] if position in self.before else trunks.get(self.calls[position].session or "")
            )
            self._follow(position, run_of, counts, None if before is None else run_of.get(before))
        self._alternatives(run_of, counts)
        return self._with_failed()

    def _link(self) -> list[int]:
        """Give every call its predecessor; the calls that begin a run, branches included."""
        nearest = array("L", bytes(array("L").itemsize * len(self.parents)))
        for node in range(1, len(self.parents)):
            nearest[node] = node if node in self.ended else nearest[self.parents[node]]
        children: dict[int, list[int]] = defaultdict(list)
        starts: list[int] = []
        tried: set[int] = set()
        for position, call in enumerate(self.calls):
            if not call.ends and (self.inner[call.request] or call.request in tried):
                self.retried.append(position)
                continue
            if not call.ends:
                tried.add(call.request)
            if call.previous is not None and self.calls[call.previous].ends:
                self._continue(position, (call.previous, 0), starts)
            elif nearest[call.request]:
                children[nearest[call.request]].append(position)
            else:
                starts.append(position)
        for node, waiting in children.items():
            answers = self.ended[node]
            for order, position in enumerate(waiting):
                self._continue(position, answers[min(order, len(answers) - 1)], starts)
        return sorted(starts)

    def _continue(self, position: int, answer: tuple[int, int], starts: list[int]) -> None:
        self.before[position] = answer
        if self.calls[position].moved or self.next.setdefault(answer, position) != position:
            self.branches.add(position)
            starts.append(position)

    def _follow(self, start: int, run_of: dict[int, int], counts: dict[int, int], trunk: int | None) -> None:
        """The run that begins with a call: the calls that continue it, one after another."""
        calls = [start]
        while (onward := self._onward(calls[-1])) is not None:
            calls.append(self.next[calls[-1], onward])
        last = self.calls[calls[-1]]
        run_of.update((position, len(self.found)) for position in calls)
        end = last.ends[0] if last.ends else last.request
        self._keep(tuple(calls), self._ancestors(start), end, 0, counts, trunk if start in self.branches else None)

    def _onward(self, position: int) -> int | None:
        """Which of a call's answers its run goes on from; None where it ends with the first."""
        return next((each for each in range(len(self.calls[position].ends)) if (position, each) in self.next), None)

    def _alternatives(self, run_of: dict[int, int], counts: dict[int, int]) -> None:
        """Answers beside the one that a run goes on with, or ends with, and that nothing goes on from."""
        for position, call in enumerate(self.calls):
            if len(call.ends) < 2 or position not in run_of:
                continue
            taken = self._onward(position) or 0
            for choice, end in enumerate(call.ends):
                if choice != taken and (position, choice) not in self.next:
                    before = (*self._ancestors(position), position)
                    self._keep((), before, end, choice, counts, run_of[position])

    def _ancestors(self, position: int) -> tuple[int, ...]:
        found = []
        while position in self.before:
            position = self.before[position][0]
            found.append(position)
        return tuple(reversed(found))

    def _keep(
        self,
        calls: tuple[int, ...],
        before: tuple[int, ...],
        end: int,
        choice: int,
        counts: dict[int, int],
        trunk: int | None,
    ) -> None:
        run, node = len(self.found), end
        while node not in self.owners and self.depths[node]:
            self.owners[node] = run
            node = self.parents[node]
        first = calls[0] if calls else before[-1]
        branch, root, number = None, run, 0
        if not calls or first in self.branches:
            parent = self.owners.get(node, trunk)
            parent = trunk if parent is None or parent == run else parent
            if parent is not None:
                branch = Branch(parent, min(self.depths[node], self.depths[self.calls[first].request]))
                root = self.found[parent].root
                counts[root] += 1
                number = counts[root]
        answered = tuple(self.depths[self.calls[position].request] for position in calls)
        gap = any(self.calls[position].gap for position in (*before, *calls))
        self.found.append(Run(calls, before, (), answered, choice, root, number, branch, gap))

    def _with_failed(self) -> list[Run]:
        failed: dict[int, list[int]] = defaultdict(list)
        for position in self.retried:
            failed[self._owner_below(self.calls[position].request)].append(position)
        for run, made in enumerate(self.found):
            failed[run] += [position for position in made.calls if not self.calls[position].ends]
        return [made._replace(failed=tuple(sorted(failed[run]))) for run, made in enumerate(self.found)]

    def _owner_below(self, node: int) -> int:
        """The run that a failed request is a part of: whose history holds its last message, else the first that is."""
        while node not in self.owners and self.depths[node]:
            node = self.parents[node]
        return self.owners.get(node, 0)
