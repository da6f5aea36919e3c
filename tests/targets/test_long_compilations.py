"""Compilations in other threads, other processes, and of code that takes long."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest

from axode.codegen.lowering import batch_loop as kernel
from axode.codegen.tape.tape import Tape
from axode.codegen.targets import compiler_process as emitter
from axode.codegen.targets import jit
from axode.codegen.targets.compiler_process import LongCompilation, compile_apart
from axode.codegen.targets.cpu import CompiledFunction
from axode.problems.interrupt import Interrupt
from axode.problems.sweep.worker_processes import WorkerProcesses
from tests.targets import functions

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AXODE_CACHE", str(tmp_path / "cache"))


def arm() -> Tape:
    return Tape.from_casadi(functions.spatial_arm(3))


def test_another_process_compiles_the_same_code(monkeypatch):
    tape = arm()
    ir = kernel.module(tape, 1)
    assert compile_apart("arm", ir, 2) == jit.compile_here("apart", ir, 2)
    monkeypatch.setattr(jit, "LONG", 0)
    monkeypatch.setattr(jit, "compile_here", lambda *_: pytest.fail("compiled in this process"))
    values = [np.full(3, x) for x in (0.1, 0.2, 0.3)]
    np.testing.assert_allclose(CompiledFunction(tape)(*values), tape.evaluate(*values)[0], 1e-12)


def test_code_longer_than_a_pipe_arrives_whole(monkeypatch):
    """However slowly the other process begins to read it; it waited for the rest for ever."""
    monkeypatch.setattr(emitter, "POLL", 1e-3)
    ir = kernel.module(arm(), 1) + 20_000 * "; more than a pipe holds\n"
    assert compile_apart("arm", ir, 2) == jit.compile_here("apart", ir, 2)


def test_processes_run_nothing_from_the_working_folder(monkeypatch, tmp_path):
    """`python -c` imports from the working folder first: any file there ran, named as a library."""
    planted = f"open({str(tmp_path / 'ran')!r}, 'a').write(__name__)\nraise SystemExit(1)\n"
    for name in ("llvmlite", "numpy", "signal", "subprocess", "axode", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text(planted)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")  # as in a notebook
    ir = kernel.module(arm(), 1)
    assert compile_apart("arm", ir, 2) == jit.compile_here("apart", ir, 2)
    with WorkerProcesses(1) as pool:
        assert pool.submit(os.getcwd).result() == str(tmp_path)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("program", ["raise SystemExit(1)", "pass", "import os; os.abort()"])
def test_what_fails_apart_is_compiled_here(monkeypatch, program):
    monkeypatch.setattr(emitter, "_PROGRAM", program)
    monkeypatch.setattr(jit, "LONG", 0)
    compiled = CompiledFunction(arm())
    assert np.isfinite(compiled(*(np.full(3, x) for x in (0.1, 0.2, 0.3)))).all()


@pytest.fixture
def endless(monkeypatch):
    """A compilation that does not end by itself, and Ctrl-C soon after it began."""
    started: list[subprocess.Popen] = []
    real = subprocess.Popen

    def start(*arguments, **options):
        started.append(real(*arguments, **options))
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        return started[0]

    monkeypatch.setattr(emitter, "_PROGRAM", "import time; time.sleep(3600)")
    monkeypatch.setattr(emitter, "PATIENCE", 0.1)
    monkeypatch.setattr(jit, "LONG", 0)
    monkeypatch.setattr(subprocess, "Popen", start)
    return started


@pytest.mark.parametrize("held_back", [False, True])
def test_ctrl_c_ends_a_compilation_at_once(monkeypatch, endless, held_back):
    """It waited for LLVM, half a minute for five thousand sines; also while a run holds it back."""
    guard = Interrupt() if held_back else contextlib.nullcontext()
    with (
        pytest.raises(KeyboardInterrupt),
        pytest.warns(LongCompilation, match="Ctrl-C stops it"),
        guard,
    ):
        CompiledFunction(arm()).prepare(batch=False)
    assert endless[0].returncode == -signal.SIGKILL
    monkeypatch.undo()
    CompiledFunction(arm()).prepare(batch=False)  # and the next one is not waited for


FORK = """
import os, sys, threading, time
import numpy as np
from axode.codegen.targets import jit
from axode.codegen.targets.cpu import CompiledFunction
from axode.codegen.tape.tape import Tape
from tests.targets import functions

compiled = CompiledFunction(Tape.from_casadi(functions.spatial_arm(3)))
values = [np.full(3, x) for x in (0.1, 0.2, 0.3)]
real, begun = jit._compile, threading.Event()

def slowly(*arguments):
    begun.set()
    time.sleep(0.5)
    return real(*arguments)

jit._compile = slowly
thread = threading.Thread(target=compiled, args=values)
thread.start()
begun.wait()
child = os.fork()
if child == 0:
    jit._compile = real
    other = CompiledFunction(Tape.from_casadi(functions.planar_chain(2)))
    other.prepare(batch=False)
    os._exit(0 if np.isfinite(compiled(*values)).all() else 1)
thread.join()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_child_forked_during_a_compilation_can_compile():
    """It inherited a lock that a thread held which it did not have."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(FORK)],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
    )
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
