"""Delay Ctrl-C until the numbers are consistent."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any

from axode.codegen.targets.compiler_process import CHECKS
from axode.symbolic.algebra.casadi_interrupts import CasadiInterrupt, is_usual


class Interrupt:
    """Delays Ctrl-C inside a `with` until `check` is called; a second press acts at once.

    Outside the main thread, or where the program handles SIGINT itself, it does nothing.

    Attributes:
        pressed: Whether Ctrl-C was pressed.
    """

    def __init__(self) -> None:
        self.pressed = False
        self._patient = True
        self._before: Any = None

    def __enter__(self) -> Interrupt:
        before = signal.getsignal(signal.SIGINT)
        usual = is_usual(before) or isinstance(before, CasadiInterrupt)
        if usual and threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._handle)
            CHECKS.append(self.check)  # compilations in between need not be waited for
        return self

    def __exit__(self, *error: object) -> None:
        if self._before is not None:
            CHECKS.remove(self.check)
            signal.signal(signal.SIGINT, self._before)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.pressed or not self._patient:
            raise KeyboardInterrupt
        self.pressed = True

    def check(self) -> None:
        """Raise `KeyboardInterrupt` if Ctrl-C was pressed."""
        if self.pressed:
            raise KeyboardInterrupt

    def unguarded(self, function: Any) -> Any:
        """Wrap a function of the user so that Ctrl-C acts at once inside it."""

        def called(*arguments: Any) -> Any:
            self.check()
            self._patient = False
            try:
                return function(*arguments)
            finally:
                self._patient = True

        return called
