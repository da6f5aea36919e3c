"""Ctrl-C ends a command soon, whatever it is doing.

Python raises `KeyboardInterrupt` between two lines of the main thread. That is late while a library
computes, and it is lost where a library or a destructor handles all exceptions. A second thread
therefore notices the signal too, and ends the process if it is still there after a while.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

from axode.cli import INTERRUPTED

GRACE = 0.6  # [s] to exit on its own after Ctrl-C
STOPPING = 2.0  # [s] for runs to reach a consistent state, so that results can be kept
POLL = 0.05  # [s]
YIELD = 1e-3  # [s] in which the other thread learns of a signal that this one knows of


class _Watch:
    """When Ctrl-C was pressed, and how long the command has left.

    Attributes:
        allowance: Time to exit on its own after Ctrl-C [s].
        pressed_at: When Ctrl-C was pressed, on the monotonic clock; None if it was not.
        code: Exit code of a command that did not exit on its own.
        receiver, sender: Ends of a pipe into which the signal is written.
    """

    def __init__(self) -> None:
        self.allowance = GRACE
        self.code = INTERRUPTED
        self.pressed_at: float | None = None
        self.receiver, self.sender = socket.socketpair()
        self.sender.setblocking(False)

    def run(self) -> None:
        """Wait for Ctrl-C, then for the end of the allowance; a second press grants no more."""
        while True:
            self.receiver.settimeout(None if self.pressed_at is None else POLL)
            with contextlib.suppress(TimeoutError):
                if signal.SIGINT in self.receiver.recv(64):
                    if self.pressed_at is not None:
                        self.allowance = GRACE
                    self.pressed_at = time.monotonic()
            if self.pressed_at is not None and self.used_up:
                _end(self.code)

    @property
    def used_up(self) -> bool:
        """Return whether the command should have ended by now."""
        return time.monotonic() - (self.pressed_at or math.inf) > self.allowance


_watch: _Watch | None = None


def listen() -> None:
    """Handle Ctrl-C from now on, unless the parent process has it ignored."""
    global _watch

    if _watch is not None or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    if threading.current_thread() is not threading.main_thread():
        return
    _watch = _Watch()
    signal.set_wakeup_fd(_watch.sender.fileno(), warn_on_full_buffer=False)
    sys.unraisablehook = _unraisable
    threading.Thread(target=_watch.run, name="axode Ctrl-C", daemon=True).start()


def pressed() -> bool:
    """Return whether Ctrl-C was pressed in this command."""
    if _watch is None:
        return False
    if _watch.pressed_at is None:
        time.sleep(YIELD)
    return _watch.pressed_at is not None


@contextlib.contextmanager
def keep_results() -> Iterator[None]:
    """Give the body of a `with` more time to end after Ctrl-C, since it has results to keep."""
    _allow(STOPPING)
    try:
        yield
    finally:
        if not pressed():
            _allow(GRACE)


@contextlib.contextmanager
def close_on_interrupt() -> Iterator[None]:
    """Let Ctrl-C be the way to end the body of a `with`, which is no failure."""
    if _watch is None:
        yield
        return
    _watch.code = 0
    try:
        yield
        _watch.pressed_at = None
    finally:
        _watch.code = INTERRUPTED


@dataclass
class Stop:
    """Outcome of work that Ctrl-C may stop: `interrupted` if it did, and a further `message`."""

    interrupted: bool = False
    message: str = ""


@contextlib.contextmanager
def stop_early() -> Iterator[Stop]:
    """End the body of a `with` at Ctrl-C, and continue after it with what it has made.

    Whatever is raised after Ctrl-C comes from it: CasADi makes other errors of it.
    """
    stop = Stop()
    try:
        yield stop
    except (KeyboardInterrupt, Exception) as error:
        if not isinstance(error, KeyboardInterrupt) and not pressed():
            raise
        stop.interrupted = True
        stop.message = str(error) if isinstance(error, KeyboardInterrupt) else ""
        write_results()


def write_results() -> None:
    """Let an interrupted command write its results, however long that takes."""
    _allow(math.inf)


def leave_at_once() -> None:
    """End at once if Ctrl-C is pressed from now on: there is nothing left to keep."""
    if _watch is not None:
        signal.signal(signal.SIGINT, _at_once)


def _allow(seconds: float) -> None:
    if _watch is not None:
        _watch.allowance = seconds


def _at_once(number: int, frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)


def _end(code: int) -> None:
    """End the process although it is still busy; a bar may have hidden the cursor."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        shown = "\r\x1b[K\x1b[?25h" if os.isatty(2) else ""
        os.write(2, (shown + ("interrupted\n" if code else "")).encode())
    os._exit(code)


def _unraisable(what: Any) -> None:
    """Print nothing about Ctrl-C in a destructor, where Python cannot raise it."""
    if not issubclass(what.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(what)
