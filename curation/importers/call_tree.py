"""Which model calls are one run: each carries its history, and one that goes on from an answer continues its run.

Histories are paths of digests in one tree, so that a call costs the few messages that are its own, however long its
history. Where two calls go on from one answer, the first continues the run and the other is a branch of it. Calls that
begin without a known answer are runs of their own, unless they name the session of another.
"""

from collections import defaultdict
from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple

from curation.importers.call_runs import Calls, Runs
from curation.importers.digest_trie import SIZE, DigestTrie, Names

_COPIED = 256  # messages of a history that goes on under another first message


class CallPath(NamedTuple):
    """A call in digests: its first message where that is set anew in each call, the messages of its request, and for
    each alternative answer the messages of it, none where the request failed. ``previous`` is the id of the call whose
    context it goes on from where the request holds only what is new. ``cut``: the answer ends before its end.
    ``spoken`` is how many messages of the request there are up to the last that the model wrote.
    """

    request: Sequence[bytes]
    answers: Sequence[Sequence[bytes]] = ()
    head: bytes | None = None
    id: str | None = None
    session: str | None = None
    previous: str | None = None
    cut: bool = False
    spoken: int = 0


class CallTree:
    """Calls as they are added, and the runs that they make."""

    def __init__(self) -> None:
        self._calls = Calls()
        self._trie = DigestTrie()
        self._ids = Names()  # of calls, and those calls
        self._pending: dict[str, list[tuple[int, CallPath]]] = defaultdict(list)
        self._heads: dict[bytes | None, int] = {None: 0}
        self._sessions: dict[str | None, int] = {None: 0}
        self._alone = Names()  # sessions, and the first call of each

    def add(self, path: CallPath) -> None:
        """The next call."""
        position = self._calls.add(len(path.answers), cut=path.cut)
        known = self._ids.find(path.previous) if path.previous else None
        if path.previous and (known is None or not self._calls.placed[known]):
            self._pending[path.previous].append((position, path))
            if path.id:
                self._ids.add(path.id, position)
            return
        self._place(position, path, known, gap=False)

    def find(self, identity: str) -> int | None:
        """Which call was the first of this id."""
        return self._ids.find(identity)

    def runs(self) -> Runs:
        """All runs, those that are no branches first; every call is a part of at least one. None is added after it."""
        for position, path in sorted(pair for waiting in self._pending.values() for pair in waiting):
            if not self._calls.placed[position]:
                self._place(position, path, None, gap=True)
        self._pending.clear()
        self._ids, self._alone = Names(), Names()  # only what is added asks for them
        return Runs(self._calls, self._trie)

    def _place(self, position: int, path: CallPath, previous: int | None, *, gap: bool) -> None:
        """Put a call where it belongs, and then what waits for it."""
        calls = self._calls
        ready = [(position, path, previous, gap)]
        while ready:
            position, path, previous, gap = ready.pop()
            head = self._heads.setdefault(path.head, len(self._heads))
            calls.placed[position], calls.gaps[position], calls.heads[position] = 1, gap, head
            if previous is not None:
                calls.previous[position] = previous + 1
                calls.moved[position] = calls.heads[previous] != head
            start = self._session(path.session, position)
            calls.spoken[position] = path.spoken
            calls.sessions[position] = self._sessions.get(path.session, 0)
            calls.requests[position] = request = self._trie.walk(self._start(path, previous, start), path.request)
            for answer, messages in zip(calls.answers(position), path.answers, strict=True):
                calls.ends[answer] = self._trie.walk(request, messages)
            if path.id:
                self._ids.add(path.id, position)
                waiting = self._pending.pop(path.id, ())
                ready += [(each, one, position, False) for each, one in waiting if not calls.placed[each]]

    def _start(self, path: CallPath, previous: int | None, start: int) -> int:
        """The node that a request goes on from: the end of the call before it, below its own first message."""
        trie, head = self._trie, () if path.head is None else (path.head,)
        if previous is None:
            return trie.walk(start, head)
        last, before = self._calls.last(previous), self._calls.heads[previous]
        if before == self._heads[path.head]:
            return last
        shared = trie.depths[last] - bool(before)
        if shared > _COPIED:  # as one step: a history of which each call changes the beginning is not copied for each
            step = blake2b(b"moved\0%d\0%b" % (last, path.head or b""), digest_size=SIZE).digest()
            return trie.child(0, step, shared + len(head))
        own = []
        while trie.depths[last]:
            own.append(trie.step(last))
            last = trie.parents[last]
        own.reverse()
        return trie.walk(trie.walk(last, head), own[before != 0 :])

    def _session(self, session: str | None, position: int) -> int:
        """The node before the first message: calls of two sessions share no history.

        A session that one call alone names ties nothing together: some gateways give each request a name of its own.
        Such a call is found among those without a session, until a second one names it.
        """
        if session is None:
            return 0
        if session not in self._sessions:
            first = self._alone.find(session)
            if first is None:
                self._alone.add(session, position)
                return 0
            self._sessions[session] = len(self._sessions)
            self._move(first, session)
        return self._root(session)

    def _root(self, session: str) -> int:
        digest = blake2b(b"session\0" + session.encode("utf-8", "replace"), digest_size=SIZE).digest()
        return self._trie.child(0, digest, 0)

    def _move(self, position: int, session: str) -> None:
        """Put a call that was found among those without a session below that which it names."""
        calls = self._calls
        calls.sessions[position] = self._sessions[session]
        if calls.previous[position]:
            return
        root = self._root(session)
        calls.requests[position] = self._trie.walk(root, self._path(calls.requests[position]))
        for answer in calls.answers(position):
            calls.ends[answer] = self._trie.walk(root, self._path(calls.ends[answer]))

    def _path(self, node: int) -> list[bytes]:
        path = []
        while self._trie.depths[node]:
            path.append(self._trie.step(node))
            node = self._trie.parents[node]
        return path[::-1]
