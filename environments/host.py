"""The child process of a worker: it loads one environment and serves its sessions until the line is cut.

Run by environments.worker as ``python -P -m environments.host`` with its end of the line as standard input. Nothing
that a world prints can reach the line.
"""

import os
import resource
import socket
from contextlib import suppress

from environments.blobs import MemoryBlobs
from environments.catalogue import find
from environments.protocol import Controls, Environment, Session
from environments.session import bounded
from environments.wire import (
    REQUESTS,
    Ask,
    Begin,
    BrokenLineError,
    Done,
    Execute,
    Executed,
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

MEMORY_BYTES = 2 * 2**30
FILE_BYTES = 64 * 2**20
CPU_SPARE_S = 30


class Host:
    """One environment and its open worlds, each with blobs of its own."""

    def __init__(self, environment: Environment, controls: Controls) -> None:
        self._environment = environment
        self._controls = controls
        self._worlds: dict[int, tuple[Session, MemoryBlobs]] = {}

    def reply(self, request: Request) -> Reply:
        """The answer to a request; an exception of the world is an answer too."""
        try:
            return self._serve(request)
        except Exception as error:
            return failed(error)

    def _serve(self, request: Request) -> Reply:
        match request:
            case Open(number, task, snapshot, image):
                blobs = MemoryBlobs()
                blobs.put(image)
                world = self._environment.open(snapshot or task, self._controls, blobs)
                self._worlds[number] = world, blobs
                return Done(world.state_digest())
            case Execute(number, call, at):
                (result,) = self._worlds[number][0].call((call,), at)
                return Executed(bounded(result, self._controls.max_output))
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
                self._worlds.pop(number)[0].close()
        return Done()


def serve(line: socket.socket) -> None:
    """Answer requests until the line is cut."""
    begin = receive(line, REQUESTS)
    if not isinstance(begin, Begin):
        raise BrokenLineError(f"the first request is {type(begin).__name__}, not Begin")
    limit(begin.controls.timeout_s)
    try:
        host = Host(find(begin.name), begin.controls)
    except Exception as error:  # a module that is imported may raise anything
        send(line, failed(error))
        return
    send(line, Done())
    while True:
        request = receive(line, REQUESTS)
        limit(begin.controls.timeout_s)
        send(line, host.reply(request))


def limit(seconds: float) -> None:
    """Bound memory, files, and the processor time of the next request, so that an orphan ends by itself."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    allowance = int(used.ru_utime + used.ru_stime + seconds) + CPU_SPARE_S
    for kind, most in (
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_FSIZE, FILE_BYTES),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, allowance),
    ):
        _, hard = resource.getrlimit(kind)
        resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def main() -> None:
    """Take the line from standard input and serve it."""
    line = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    with suppress(BrokenLineError):  # the parent is gone or has closed the line: an ordinary end
        serve(line)


if __name__ == "__main__":
    main()
