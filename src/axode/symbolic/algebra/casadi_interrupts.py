"""Raise Ctrl-C outside of CasADi.

CasADi calls methods of Python from C++, to convert arguments, and ignores what they raise. Ctrl-C
at such an instant is lost, or becomes an error about the argument. NumPy does the same where it
compares arrays with members of an enumeration.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, wraps
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from axode.errors import naming_packages

F = TypeVar("F", bound=Callable[..., Any])
RESEND_AFTER = 2e-3  # [s] after which a press is sent again
CALLED_BY_LIBRARIES = ("casadi", "enum")  # modules of functions whose errors are ignored


def is_usual(handler: Any) -> bool:
    """Return whether a handler of Ctrl-C is Python's own.

    That of asyncio cancels the main task, which acts only when the task waits again.
    """
    function = getattr(handler, "func", handler)  # of a partial
    of_asyncio = getattr(function, "__module__", None) == "asyncio.runners"
    return of_asyncio or handler is signal.default_int_handler


class CasadiInterrupt:
    """Handler of Ctrl-C that raises `KeyboardInterrupt`, but not inside of CasADi's functions.

    A press that comes there is sent again a little later, until Python is back in other functions.

    Attributes:
        pressed: Whether there was a press.
    """

    def __init__(self) -> None:
        self.pressed = False
        self._again = threading.Timer(0.0, signal.raise_signal)

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Raise, or have the press sent again."""
        self.pressed = True
        if not _is_called_by_casadi(frame):
            raise KeyboardInterrupt
        self._again = threading.Timer(RESEND_AFTER, signal.raise_signal, [signal.SIGINT])
        self._again.daemon = True
        self._again.start()

    def end(self) -> None:
        """Raise a press, in case that what it raised was ignored."""
        self._again.cancel()
        if self.pressed:
            raise KeyboardInterrupt


@contextmanager
def raise_outside_casadi() -> Iterator[None]:
    """Raise Ctrl-C outside of CasADi, inside a `with`.

    Outside the main thread, or where the program handles SIGINT itself, it does nothing.
    """
    before: Any = signal.getsignal(signal.SIGINT)
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or not is_usual(before):
        yield
        return
    handler = CasadiInterrupt()
    signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        handler.end()


def stoppable(function: F) -> F:
    """Let Ctrl-C stop a function that calls CasADi."""

    @wraps(function)
    def stopped(*arguments: Any, **options: Any) -> Any:
        with naming_packages(), raise_outside_casadi():
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


def _is_called_by_casadi(frame: FrameType | None) -> bool:
    """Return whether a library that ignores errors is between a frame and the function of Axode."""
    while frame is not None:
        package = str(frame.f_globals.get("__name__")).partition(".")[0]
        if package in (*CALLED_BY_LIBRARIES, "axode"):
            return package != "axode"
        frame = frame.f_back
    return False
