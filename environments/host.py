"""The child process of a worker: it loads one environment and serves its sessions until the line is cut.

Run by environments.worker as ``python -P -m environments.host`` with its end of the line as standard input. Nothing
that a world prints can reach the line.
"""

import locale
import os
import resource
import signal
import socket
from contextlib import suppress
from datetime import UTC, datetime
from math import ceil
from pathlib import Path

from msgspec.structs import replace

from environments.blobs import MemoryBlobs
from environments.catalogue import find
from environments.chance import Chance
from environments.clock import Clock, zone_of
from environments.process_tree import adopt_orphans, end_children
from environments.protocol import ControlError, Controls, Environment, Session
from environments.session import bounded
from environments.wire import (
    REQUESTS,
    Ask,
    Begin,
    BrokenLineError,
    Done,
    Execute,
    Executed,
    Fetch,
    Fetched,
    Grade,
    Graded,
    Open,
    Reply,
    Request,
    Taken,
    Tools,
    failed,
    receive,
    send,
)

_LOADING_BYTES = 8 * 2**30  # of address space, for imports: what they reserve is no measure of what they use
_SEASONS = (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 7, 1, tzinfo=UTC))


class Host:
    """One environment and its open worlds, each with blobs, a clock and random numbers of its own."""

    def __init__(self, environment: Environment, controls: Controls) -> None:
        self._environment = environment
        self._controls = controls
        self._worlds: dict[int, tuple[Session, MemoryBlobs]] = {}
        self._clocks: dict[int, Clock] = {}
        self._chance = Chance(controls.seed)

    def reply(self, request: Request) -> Reply:
        """The answer to a request; an exception of the world is an answer too."""
        try:
            return self._serve(request)
        except (Exception, SystemExit) as error:
            return failed(error)

    def _serve(self, request: Request) -> Reply:
        if isinstance(request, Begin):
            raise BrokenLineError("a second Begin")
        number = request.session
        if isinstance(request, Open):
            self._clocks[number] = Clock(self._controls.clock, self._controls.time_zone)
        clock = self._clocks[number]
        given = clock.read(request.at if isinstance(request, Execute) else None)
        self._chance.turn_to(number)
        with clock.standing():
            reply = self._answer(request)
        if isinstance(reply, Executed) and given is not None:
            return Executed(replace(reply.result, clock=given.isoformat()))
        return reply

    def _answer(self, request: Request) -> Reply:
        match request:
            case Open(number, task, snapshot, image, base):
                blobs = MemoryBlobs()
                blobs.put(image)
                blobs.put(base)
                world = self._environment.open(snapshot or task, self._controls, blobs)
                self._worlds[number] = world, blobs
                return Done(world.state_digest())
            case Execute(number, call, at):
                (result,) = self._worlds[number][0].call((call,), at)
                return Executed(bounded(result, self._controls.max_output))
            case Fetch(number, name):
                return Fetched(self._worlds[number][1].get(name))
            case Grade(number, task, messages):
                return Graded(self._worlds[number][0].check(task, messages))
            case Ask(number, "tools"):
                return Tools(self._worlds[number][0].tools())
            case Ask(number, "state"):
                return Done(self._worlds[number][0].state_digest())
            case Ask(number, "settled"):
                return Done(self._worlds[number][0].settled_digest())
            case Ask(number, "snapshot"):
                world, blobs = self._worlds[number]
                snapshot = world.snapshot()
                return Taken(snapshot, blobs.get(snapshot.blob))
            case Ask(number, "close"):
                session, _ = self._worlds.pop(number)
                self._clocks.pop(number)
                self._chance.forget(number)
                session.close()
        return Done()


def serve(line: socket.socket) -> None:
    """Answer requests until the line is cut."""
    begin = receive(line, REQUESTS)
    if not isinstance(begin, Begin):
        raise BrokenLineError(f"the first request is {type(begin).__name__}, not Begin")
    controls = begin.controls
    try:
        host = Host(load(begin.name, controls), controls)
        enter(controls)
    except Exception as error:  # a module that is imported may raise anything
        send(line, failed(error))
        return
    send(line, Done())
    process = os.getpid()
    while True:
        request = receive(line, REQUESTS)
        limit_cpu(controls)
        reply = host.reply(request)
        if os.getpid() != process:  # a child that a tool has forked and let return: the line is not its own
            os._exit(0)
        send(line, reply)


def load(name: str, controls: Controls) -> Environment:
    """The environment, loaded in the user's folder at the time of the first world. Raises UnknownEnvironmentError."""
    _limit(resource.RLIMIT_AS, controls.memory_bytes + _LOADING_BYTES)
    _limit(resource.RLIMIT_FSIZE, controls.file_bytes)
    _limit(resource.RLIMIT_CORE, 0)
    limit_cpu(controls)
    with Clock(controls.clock, controls.time_zone).standing():
        return find(name)


def enter(controls: Controls) -> None:
    """Take the locale, the working folder, and the limit of memory. Raises ControlError.

    The time zone is taken when a process starts; one that the C library has no file of would silently be UTC.
    """
    zone = zone_of(controls.time_zone)
    if any(time.astimezone().utcoffset() != time.astimezone(zone).utcoffset() for time in _SEASONS):
        raise ControlError(f"control time_zone={controls.time_zone!r}: the system lacks it; install its tzdata package")
    try:
        locale.setlocale(locale.LC_ALL, controls.locale)
    except locale.Error:
        if controls.locale != Controls().locale:
            raise ControlError(
                f"control locale={controls.locale!r}: this machine does not have it; `locale -a` lists what it has"
            ) from None
    os.chdir(str(controls.folder))
    _limit(resource.RLIMIT_AS, _address_space() + controls.memory_bytes)


def limit_cpu(controls: Controls) -> None:
    """Bound the processor time of the next request, so that an orphan ends by itself."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _limit(resource.RLIMIT_CPU, ceil(used.ru_utime + used.ru_stime + controls.timeout_s) + controls.cpu_s)


def _limit(kind: int, most: int) -> None:
    _, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _address_space() -> int:
    """The size of this process in bytes; 0 where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except OSError:
        return 0


def main() -> None:
    """Take the line from standard input and serve it; in the end, end what the worlds left running."""
    line = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    adopt_orphans()
    with suppress(BrokenLineError):  # the parent is gone or has closed the line: an ordinary end
        serve(line)
    end_children(os.getpid())
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
