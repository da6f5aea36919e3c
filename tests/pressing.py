"""Press Ctrl-C while a command runs, from outside and in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import axode

# The point says that Python itself has started.
PROGRAM = "import sys; print('.', flush=True); {}; from axode.cli import main; main()"


@dataclass(frozen=True)
class Ending:
    """How a command ended after Ctrl-C: its exit code, what it printed, and when [s]."""

    code: int
    printed: str
    warned: str
    seconds: float
    pressed: bool

    @property
    def clean(self) -> bool:
        """Whether it ended as interrupted commands do, or before Ctrl-C was pressed."""
        if not self.pressed or self.code == -signal.SIGINT:  # while Python itself was ending
            return "Traceback" not in self.warned
        last = self.warned.splitlines()[-1:]
        quiet = "Traceback" not in self.warned and "Exception ignored" not in self.warned
        return quiet and self.code == 130 and bool(last) and last[0].startswith("interrupted")


def press(
    command: list[str], after: float, folder: Path, *, before: str = "", wait_for: str = ""
) -> Ending:
    """Run a command and press Ctrl-C.

    Args:
        command: Verb and arguments.
        after: When to press: so long after Python started, or after `wait_for` was printed [s].
        folder: Where it runs.
        before: Code to run first.
        wait_for: Beginning of a line after which the time counts.
    """
    source = str(Path(axode.__file__).parents[1])
    listens = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # also if the tests do not
    with subprocess.Popen(
        [sys.executable, "-P", "-c", PROGRAM.format(before or "pass"), *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": source},
        preexec_fn=listens,
    ) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == ".\n"
            while wait_for and not process.stdout.readline().startswith(wait_for):
                assert process.poll() is None, process.stderr.read() if process.stderr else ""
            time.sleep(after)
            alive = process.poll() is None
            started = time.perf_counter()
            process.send_signal(signal.SIGINT)
            printed, warned = process.communicate(timeout=60)
        finally:
            process.kill()
    return Ending(process.returncode, printed, warned, time.perf_counter() - started, alive)
