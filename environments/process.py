"""The child process of a worker as its parent sees it: asked with a deadline, and killed when it does not answer."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace

from environments.process_tree import end_tree
from environments.protocol import ControlError, Controls, EnvironmentFailure, SnapshotError, Status
from environments.wire import ERRORS, REPLIES, Begin, BrokenLineError, Done, Failed, Reply, Request, receive, send

R = TypeVar("R", bound=Reply)


class LostWorldError(SnapshotError):
    """A world that is gone, so that its state is unknown; ``status`` is what a call that met this ends with."""

    def __init__(self, detail: str, status: Status) -> None:
        super().__init__(detail)
        self.status = status


class Process:
    """The child process, and the line to it. ``ended`` says why it is no more."""

    def __init__(self, name: str, controls: Controls, patience_s: float) -> None:
        self.ended = ""
        self.timeout_s = controls.timeout_s
        self.patience_s = patience_s
        self._own_folder = None if controls.folder is not None else tempfile.mkdtemp(prefix="world-")
        folder = Path(controls.folder or self._own_folder or "").absolute()
        if not folder.is_dir():
            raise ControlError(f"control folder={controls.folder!r}: no such folder here; make it, or give another")
        self._line, theirs = socket.socketpair()
        with theirs:
            self._child = subprocess.Popen(
                [sys.executable, "-P", "-m", "environments.host"],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={
                    "PYTHONPATH": os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path),
                    "PYTHONHASHSEED": str(controls.hash_seed),
                    "TZ": controls.time_zone,
                    "LC_ALL": controls.locale,
                    "TMPDIR": str(folder),
                },
                start_new_session=True,
            )
        try:
            self.ask(Begin(name, replace(controls, folder=str(folder))), Done, patience_s)
        except EnvironmentFailure:
            self.end("the environment could not be loaded")
            raise

    def ask(self, request: Request, kind: type[R], seconds: float) -> R:
        """The reply to a request within so many seconds; a process that gives none is ended.

        Raises LostWorldError, or what the environment itself raised.
        """
        if self.ended:
            raise LostWorldError(self.ended, "refused")
        until = time.monotonic() + seconds
        try:
            send(self._line, request, until)
            reply = receive(self._line, REPLIES, until)
        except TimeoutError:
            self.end(f"no reply to {type(request).__name__} within {seconds:g} s; its process was killed")
            raise LostWorldError(self.ended, "timeout") from None
        except BrokenLineError as error:
            self.end(f"no reply to {type(request).__name__}: {error}")
            raise LostWorldError(self.ended, "environment_fault") from None
        except BaseException:
            self.end("interrupted while it worked")  # a late reply would be taken for the next one
            raise
        if isinstance(reply, kind):
            return reply
        if isinstance(reply, Failed) and reply.error in ERRORS:
            raise ERRORS[reply.error](reply.detail)
        if isinstance(reply, Failed):
            raise LostWorldError(reply.detail, "environment_fault")
        self.end(f"{type(reply).__name__} is no reply to {type(request).__name__}")
        raise LostWorldError(self.ended, "environment_fault")

    def end(self, why: str) -> None:
        """Kill the process and all that it started, and remove its folder where it was made for it."""
        if not self.ended:
            self.ended = why
            self._line.close()
            end_tree(self._child.pid)
            self._child.wait()
            if self._own_folder is not None:
                shutil.rmtree(self._own_folder, ignore_errors=True)
