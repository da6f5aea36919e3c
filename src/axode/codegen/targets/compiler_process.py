"""Compile large modules in a process of their own, which Ctrl-C can end at once.

LLVM cannot be stopped while it compiles. Modules that take it long are handed to a second process,
IR in and object code out; the caller can stop waiting for it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

# Bytes of IR from which a compilation takes most of a second, long against starting a process:
# without optimization, and with it.
LONG_QUICK, LONG = 8_000_000, 1_000_000
PATIENCE = 5.0  # [s] after which a compilation is announced
POLL = 0.2  # [s] between checks for an interrupt
CHECKS: list[Callable[[], None]] = []  # each raises if a Ctrl-C is held back elsewhere
_PROGRAM = "from axode.codegen.targets.compiler_process import serve; serve()"


class LongCompilationWarning(UserWarning):
    """Code that takes long to compile; it is kept in the cache, and Ctrl-C stops it."""


def check_interrupts() -> None:
    """Raise if a Ctrl-C is held back elsewhere."""
    for check in CHECKS:
        check()


def compile_apart(name: str, ir: str, effort: int) -> bytes | None:
    """Compile IR in another process; None where there can be none, or where it fails.

    Args:
        name: Name of the function, for the announcement.
        ir: What to compile.
        effort: How much LLVM may do about it, 0 to 3.
    """
    if not sys.executable:
        return None
    try:
        # through a file: a pipe is no longer written to once `communicate` has timed out
        with (
            tempfile.TemporaryFile() as given,
            start_python(
                _PROGRAM, str(effort), stdin=_filled(given, ir), stderr=subprocess.DEVNULL
            ) as process,
        ):
            try:
                return _receive(process, name, ir)
            except BaseException:  # Ctrl-C above all
                process.kill()
                process.wait()
                raise
    except OSError:
        return None


def start_python(program: str, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    """Start a Python that imports what this one does, but nothing from the working folder.

    Args:
        program: Its source.
        arguments: Its arguments.
        options: Those of `subprocess.Popen`; what it prints comes through a pipe.
    """
    folders = [folder for folder in sys.path if _is_elsewhere(folder)]
    folders.append(str(Path(__file__).parents[3]))  # of this package, wherever it came from
    environment = {**os.environ, **options.pop("env", {})}
    environment.pop("PYTHONPATH", None)  # `sitecustomize` is looked for there before anything runs
    program = f"import sys; sys.path[:] = {folders!r}; {program}"
    command = [sys.executable, "-P", "-c", program, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, **options)


def find_program(name: str) -> str | None:
    """Find a program on the search path, but in no folder that depends on the working folder."""
    if os.path.dirname(name):
        found = shutil.which(name)
        return None if found is None else os.path.abspath(found)
    folders = [folder for folder in os.get_exec_path() if _is_elsewhere(folder)]
    return shutil.which(name, path=os.pathsep.join(folders))


def _is_elsewhere(folder: str) -> bool:
    """Return whether an entry of a search path names one folder, and not the working folder."""
    if not os.path.isabs(folder):
        return False
    try:
        return not os.path.samefile(folder, os.curdir)
    except OSError:  # there is no such folder, or no working folder
        return True


def _filled(file: IO[bytes], ir: str) -> IO[bytes]:
    file.write(ir.encode())
    file.seek(0)
    return file


def _receive(process: subprocess.Popen[bytes], name: str, ir: str) -> bytes | None:
    end = time.monotonic() + PATIENCE
    announced = False
    while True:
        try:
            code, _ = process.communicate(timeout=POLL)
            return code if process.returncode == 0 and code else None
        except subprocess.TimeoutExpired:
            check_interrupts()
        if time.monotonic() > end and not announced:
            announced = True
            warnings.warn(
                f"Compiling '{name}' takes long: it has {len(ir) >> 20} MiB of code. Ctrl-C stops "
                "it; once done, it is kept in the cache.",
                LongCompilationWarning,
                stacklevel=2,
            )


def serve() -> None:
    """Compile what comes in, as the other process; its standard streams are the pipes."""
    import signal

    from axode.codegen.targets import jit

    signal.signal(signal.SIGINT, signal.SIG_DFL)
    ir, effort = sys.stdin.buffer.read().decode(), int(sys.argv[1])
    sys.stdout.buffer.write(jit.compile_here("apart", ir, effort))
