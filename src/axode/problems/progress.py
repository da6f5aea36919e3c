"""A progress bar for work that takes longer than a second, and Ctrl-C during it."""

from __future__ import annotations

import signal
import sys
import threading
import time
from types import FrameType
from typing import Any

from axode.codegen.targets.jit import CHECKS
from axode.symbolic.algebra.casadi_interrupts import CasadiInterrupt, is_usual

PATIENCE = 1.0  # [s] before a bar appears


class Progress:
    """Shows how much of the work is done and how long the rest takes.

    Args:
        label: What is being done.
        wanted: True shows it in any case, False never, None on a terminal only.
    """

    def __init__(self, label: str, wanted: bool | None = None) -> None:
        self._label = label
        self._wanted = sys.stderr.isatty() if wanted is None else wanted
        self._started = time.perf_counter()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        return self

    def update(self, share: float, label: str | None = None) -> None:
        """Show the share of the work that is done, 0 to 1, and what is being done now."""
        if not self._wanted or time.perf_counter() - self._started < PATIENCE:
            return
        if self._bar is None:
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.percentage:>3.0f} %"),
                TimeRemainingColumn(),
            )
            # on one terminal lines go above the bar; a file gets them as they are
            shared = sys.stdout.isatty()
            console = Console(stderr=True)
            self._bar = Bar(*columns, console=console, transient=True, redirect_stdout=shared)
            self._bar.start()
            self._task = self._bar.add_task(self._label, total=1.0)
        known = {} if label is None else {"description": label}
        self._bar.update(self._task, completed=min(share, 1.0), **known)

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()


# Ctrl-C -------------------------------------------------------------------------------------------


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
