"""The runs that calls make: who continues whom is decided by the answers that histories go on from.

All of it lies in arrays by the numbers of calls, of their answers, and of the nodes where their histories end; a run is
made out of them when it is asked for, so that a long file costs a few bytes a call.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from curation.importers.digest_trie import DigestTrie


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


class Calls:
    """Calls as numbers. Of each: the node where its request ends, that where each of its answers does, and where it
    comes from. A number that may be absent is kept as one more, and 0 is none.
    """

    def __init__(self) -> None:
        self.requests = array("I")
        self.spoken = array("I")  # how many messages of its request there are up to the last that the model wrote
        self.firsts = array("I", [0])  # the number of its first answer; one more entry than there are calls
        self.ends = array("I")  # by answer
        self.previous = array("I")
        self.sessions = array("I")
        self.heads = array("I")
        self.placed, self.gaps, self.moved, self.cut = bytearray(), bytearray(), bytearray(), bytearray()

    def __len__(self) -> int:
        return len(self.requests)

    def add(self, answers: int, *, cut: bool) -> int:
        """Room for a call with so many answers; its position."""
        for column in (self.requests, self.spoken, self.previous, self.sessions, self.heads):
            column.append(0)
        for flags in (self.placed, self.gaps, self.moved):
            flags.append(0)
        self.cut.append(cut)
        self.ends.extend([0] * answers)
        self.firsts.append(len(self.ends))
        return len(self) - 1

    def answers(self, position: int) -> range:
        """The numbers of a call's answers."""
        return range(self.firsts[position], self.firsts[position + 1])

    def last(self, position: int) -> int:
        """The node where a call leaves its history: that of its first answer, or of its request where it has none."""
        first = self.firsts[position]
        return self.ends[first] if first < self.firsts[position + 1] else self.requests[position]


class Runs:
    """All runs, those that are no branches first; every call is a part of at least one."""

    def __init__(self, calls: Calls, trie: DigestTrie) -> None:
        self._calls, self._trie = calls, trie
        self._askers = array("I", bytes(4 * len(calls.ends)))  # by answer, the call that gave it
        for position in range(len(calls)):
            for answer in calls.answers(position):
                self._askers[answer] = position
        self._next = array("I", bytes(4 * len(calls)))  # by call, the one that continues its run
        self._taken = array("I", bytes(4 * len(calls)))  # by call, which of its answers that one goes on from
        self._heights = array("I", bytes(4 * len(calls)))  # by call, how many come before it on its path
        self._used = bytearray(len(calls.ends))  # by answer, whether any call goes on from it
        self._before = array("I", bytes(4 * len(calls)))  # by call, the answer that it goes on from
        self._branches = bytearray(len(calls))
        self._firsts, self._choices = array("I"), array("I")  # by run: its first call, or that of its one answer
        self._roots, self._numbers = array("I"), array("I")
        self._trunks, self._leaves = array("I"), array("I")
        self._failed: dict[int, list[int]] = defaultdict(list)
        retried, starts = self._link()
        owners = array("I", bytes(4 * len(trie)))
        self._find(starts, owners)
        for position in retried:
            self._failed[self._owner(calls.requests[position], owners)].append(position)

    def __len__(self) -> int:
        return len(self._firsts)

    def __iter__(self) -> Iterator[Run]:
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, run: int) -> Run:
        return self._run(run, self._ancestors(self._firsts[run]), 0)

    def alone(self, run: int) -> Run:
        """A run without the calls before it that others share; what these said is a gap where its own do not repeat it,
        and its messages are counted from there.
        """
        calls, depths, first = self._calls, self._trie.depths, self._firsts[run]
        if not self.goes_on(run):
            return self._run(run, (), 0)
        previous = calls.previous[first] - 1
        start = depths[calls.last(previous)] - bool(calls.heads[previous])
        return self._run(run, (), start)._replace(gap=True)

    def _run(self, run: int, shared: tuple[int, ...], start: int) -> Run:
        calls, depths = self._calls, self._trie.depths
        first, choice = self._firsts[run], self._choices[run]
        own = () if choice else tuple(self._follow(first))
        before = (*shared, first) if choice else shared
        failed = [position for position in own if not calls.answers(position)]
        leaf = max(self._leaves[run] - start, 0)
        return Run(
            own,
            before,
            tuple(sorted([*self._failed.get(run, ()), *failed])),
            tuple([depths[calls.requests[position]] - start for position in own]),
            choice - 1 if choice else 0,
            self._roots[run],
            self._numbers[run],
            Branch(self._trunks[run] - 1, leaf) if self._trunks[run] else None,
            any(calls.gaps[position] for position in (*before, *own)),
        )

    def goes_on(self, run: int) -> bool:
        """Whether a run goes on from what calls before it said, which its own do not repeat."""
        return all(self._calls.previous[position] for position in self._follow(self._firsts[run]))

    def leaf(self, run: int) -> int:
        """The first message of a branch that is not of the run that it leaves."""
        return self._leaves[run]

    def height(self, run: int) -> int:
        """How many calls come before the first of a run on its path."""
        return self._heights[self._firsts[run]]

    def first(self, run: int) -> int:
        """The call that a run begins with, or that its one answer is of."""
        return self._firsts[run]

    def number(self, run: int) -> int:
        """Which branch of its root a run is, 0 for the root."""
        return self._numbers[run]

    def _link(self) -> tuple[list[int], list[int]]:
        """Give every call its predecessor; the failed requests, and the calls that begin a run, branches included.

        A stream that was cut and that nothing goes on from counts as a failed request, where it was tried again. Of the
        calls that go on from one answer, those come first whose history holds no more answers than it, and of these
        those that others go on from: an edit is a branch, and so is an answer that was asked for twice and not used.
        """
        calls, inner, alive = self._calls, *self._held()
        heads, others = self._answered()
        nearest = array("I", bytes(4 * len(self._trie)))
        for node, parent in enumerate(self._trie.parents):
            nearest[node] = node if heads[node] else nearest[parent]
        followed = bytearray(len(calls) + 1)
        for previous in calls.previous:
            followed[previous] = 1
        retried, starts = list[int](), list[int]()
        later = [array("I") for _ in range(4)]
        tried: set[int] = set()
        for position, request in enumerate(calls.requests):
            ends = calls.ends[calls.firsts[position] : calls.firsts[position + 1]]
            if not any(alive[end] for end in ends) and not (ends and followed[position + 1]):
                if inner[request] or request in tried:
                    retried.append(position)
                    continue
                tried.add(request)
            node, unused = nearest[request], not (followed[position + 1] or any(inner[end] for end in ends))
            if self._asked(position):
                later[unused].append(position)
            elif node:
                later[2 * (calls.spoken[position] > self._trie.depths[node]) + unused].append(position)
            else:
                starts.append(position)
        for position in chain.from_iterable(later):
            if self._asked(position):
                self._continue(position, calls.firsts[calls.previous[position] - 1], starts)
            else:
                self._go_on(position, nearest[calls.requests[position]], heads, others, starts)
        return retried, sorted(starts)

    def _asked(self, position: int) -> bool:
        """Whether a call names the one that it goes on from, and that one has an answer."""
        previous = self._calls.previous[position]
        return bool(previous and self._calls.answers(previous - 1))

    def _go_on(self, position: int, node: int, heads: "array[int]", others: "array[int]", starts: list[int]) -> None:
        """Let a call go on from an answer that ends at a node: each call from the next one there."""
        answer = heads[node] - 1
        heads[node] = others[answer] or heads[node]
        self._continue(position, answer, starts)

    def _held(self) -> tuple[bytearray, bytearray]:
        """By node, whether a history goes on below it, and whether one ends there or goes on: cut answers aside."""
        calls, parents = self._calls, self._trie.parents
        inner, alive = bytearray(len(parents)), bytearray(len(parents))
        for position, request in enumerate(calls.requests):
            alive[request] = 1
            if not calls.cut[position]:
                for answer in calls.answers(position):
                    alive[calls.ends[answer]] = 1
        for node in range(len(parents) - 1, 0, -1):
            if alive[node]:
                inner[parents[node]] = alive[parents[node]] = 1
        return inner, alive

    def _answered(self) -> tuple["array[int]", "array[int]"]:
        """By node, the first answer that ends there; by answer, the next one that ends where it does."""
        heads = array("I", bytes(4 * len(self._trie)))
        others = array("I", bytes(4 * len(self._calls.ends)))
        for answer in range(len(self._calls.ends) - 1, -1, -1):
            end = self._calls.ends[answer]
            if end != self._calls.requests[self._askers[answer]]:  # an answer without a message is none to go on from
                others[answer], heads[end] = heads[end], answer + 1
        return heads, others

    def _continue(self, position: int, answer: int, starts: list[int]) -> None:
        self._before[position], self._used[answer] = answer + 1, 1
        asker = self._askers[answer]
        if self._calls.moved[position] or self._next[asker]:
            self._branches[position] = 1
            starts.append(position)
        else:
            self._next[asker], self._taken[asker] = position + 1, answer

    def _find(self, starts: Sequence[int], owners: "array[int]") -> None:
        """Make the runs of calls that begin one, those that others leave before these, and then those of one answer."""
        calls, sessions, begun = self._calls, dict[int, int](), bytearray(len(self._calls))
        for position in starts:
            begun[position], session = 1, calls.sessions[position]
            if session and not self._before[position] and sessions.setdefault(session, position) != position:
                self._branches[position] = 1
        counts: dict[int, int] = defaultdict(int)
        run_of = array("I", bytes(4 * len(calls)))
        waiting = sorted(starts, key=lambda start: (self._branches[start], start), reverse=True)
        while waiting:
            position = waiting[-1]
            before = self._before[position]
            first = self._askers[before - 1] if before else sessions.get(calls.sessions[position], position)
            if before and not run_of[first]:
                while not begun[first]:
                    first = self._askers[self._before[first] - 1]
                waiting.append(first)
                continue
            waiting.pop()
            if run_of[position]:
                continue
            trunk, last = run_of[first] if self._branches[position] else 0, position
            height = self._heights[self._askers[before - 1]] + 1 if before else 0
            for last in self._follow(position):
                run_of[last], self._heights[last] = len(self) + 1, height
                height += 1
            self._keep(position, 0, calls.last(last), trunk, counts, owners)
        for position in range(len(calls)):
            answers = calls.answers(position)
            if len(answers) > 1 and run_of[position]:
                taken = self._taken[position] if self._next[position] else answers[0]
                for choice, answer in enumerate(answers):
                    if answer != taken and not self._used[answer]:
                        self._keep(position, choice + 1, calls.ends[answer], run_of[position], counts, owners)

    def _follow(self, first: int) -> Iterator[int]:
        """The calls that continue one another from a first one on."""
        yield first
        while following := self._next[first]:
            first = following - 1
            yield first

    def _ancestors(self, position: int) -> tuple[int, ...]:
        found = []
        while before := self._before[position]:
            position = self._askers[before - 1]
            found.append(position)
        return tuple(reversed(found))

    def _keep(
        self, first: int, choice: int, end: int, trunk: int, counts: dict[int, int], owners: "array[int]"
    ) -> None:
        """A run: ``trunk`` is one more than the run that it leaves where no message says so, 0 where it leaves none."""
        depths, node, run = self._trie.depths, end, len(self)
        while not owners[node] and depths[node]:
            owners[node] = run + 1
            node = self._trie.parents[node]
        parent = 0
        if choice or self._branches[first]:
            parent = owners[node] or trunk
            parent = trunk if parent == run + 1 else parent
        root = self._roots[parent - 1] if parent else run
        if parent:
            counts[root] += 1
        self._firsts.append(first)
        self._choices.append(choice)
        self._roots.append(root)
        self._numbers.append(counts[root] if parent else 0)
        self._trunks.append(parent)
        self._leaves.append(min(depths[node], depths[self._calls.requests[first]]))

    def _owner(self, node: int, owners: Sequence[int]) -> int:
        """The run that a failed request is a part of: whose history holds its last message, else the first that is."""
        while not owners[node] and self._trie.depths[node]:
            node = self._trie.parents[node]
        return max(owners[node], 1) - 1
