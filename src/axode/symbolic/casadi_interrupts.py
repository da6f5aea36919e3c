"""Raise Ctrl-C outside of CasADi.

CasADi calls methods of Python from C++, to convert arguments, and ignores what they raise. Ctrl-C
at such an instant is lost, or becomes an error about the argument. NumPy does the same where it
compares arrays with members of an enumeration.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, wraps
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])
CALLED_BY_LIBRARIES = ("casadi", "enum")  # modules of functions whose errors are ignored


class CasadiInterrupt:
    """Handler of Ctrl-C that raises `KeyboardInterrupt`, but not inside of CasADi's functions.

    A press that comes there is raised in the function that called CasADi, as soon as Python is back
    in it.

    Attributes:
        waiting: Whether there was a press that has not been raised yet.
    """

    def __init__(self) -> None:
        self.waiting = False
        self._tracer = sys.gettrace()  # of a debugger

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Raise, or have it raised soon."""
        caller = _caller_of_casadi(frame)
        if caller is None:
            raise KeyboardInterrupt
        self.waiting = True
        caller.f_trace = self._raise
        sys.settrace(lambda *event: None)  # Python then calls what the frame has

    def _raise(self, frame: FrameType, event: str, argument: Any) -> None:
        frame.f_trace = None
        self.end()
        raise KeyboardInterrupt

    def end(self) -> None:
        """Forget a press that waits, and let the debugger have its way."""
        if self.waiting:
            self.waiting = False
            sys.settrace(self._tracer)


@contextmanager
def raise_outside_casadi() -> Iterator[None]:
    """Raise Ctrl-C outside of CasADi, inside a `with`.

    Outside the main thread, or where the program handles SIGINT itself, it does nothing.
    """
    before: Any = signal.getsignal(signal.SIGINT)
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or before is not signal.default_int_handler:
        yield
        return
    handler = CasadiInterrupt()
    signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if handler.waiting:
            handler.end()
            raise KeyboardInterrupt


def stoppable(function: F) -> F:
    """Let Ctrl-C stop a function that calls CasADi."""

    @wraps(function)
    def stopped(*arguments: Any, **options: Any) -> Any:
        with raise_outside_casadi():
            return function(*arguments, **options)

    return cast(F, stopped)


if TYPE_CHECKING:
    derived_property = cached_property
else:

    class derived_property(cached_property):  # noqa: N801 - used as `property` is
        """A property that is derived when it is first asked for, which Ctrl-C can stop."""

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            """Return the value, which is kept."""
            with raise_outside_casadi():
                return super().__get__(instance, owner)


def _caller_of_casadi(frame: FrameType | None) -> FrameType | None:
    """Return the function that called CasADi, None if what runs was not called by CasADi."""
    inside = False
    while frame is not None:
        package = str(frame.f_globals.get("__name__")).partition(".")[0]
        if package == "axode":
            return frame if inside else None
        inside = inside or package in CALLED_BY_LIBRARIES
        frame = frame.f_back
    return None
