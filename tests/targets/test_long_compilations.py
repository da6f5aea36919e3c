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
from axode.codegen.targets import jit
from axode.codegen.targets import jit as emitter
from axode.codegen.targets.cpu import CompiledFunction
from axode.codegen.targets.jit import LongCompilationWarning, compile_apart, find_program
from axode.problems.progress import Interrupt
from axode.problems.sweep.engines import WorkerProcesses
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


PLANTED = ("llvmlite", "numpy", "signal", "pickle", "axode", "sitecustomize", "usercustomize")


@pytest.mark.parametrize(
    ("entry", "inherited"),
    [("", None), (".", ""), ("{}", ":"), ("{}/../here", "."), ("./", "{}:/nowhere")],
)
def test_processes_run_nothing_from_the_working_folder(monkeypatch, tmp_path, entry, inherited):
    """Of it a script has the full path: `sitecustomize` ran in children, though not in the script.

    `python -c` imports from there first, a notebook by an empty entry, `PYTHONPATH` by any.
    """
    folder = tmp_path / "here"
    folder.mkdir()
    planted = f"open({str(tmp_path / 'ran')!r}, 'a').write(__name__)\nraise SystemExit(1)\n"
    for name in PLANTED:
        (folder / f"{name}.py").write_text(planted)
    (folder / "encodings").mkdir()
    (folder / "encodings" / "__init__.py").write_text(planted)
    (folder / "planted.pth").write_text("import sitecustomize\n")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [entry.format(folder), *sys.path])
    if inherited is not None:
        monkeypatch.setenv("PYTHONPATH", inherited.format(folder))
    ir = kernel.module(arm(), 1)
    assert compile_apart("arm", ir, 2) == jit.compile_here("apart", ir, 2)
    with WorkerProcesses(1) as pool:
        assert pool.submit(os.getcwd).result() == str(folder)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("entry", ["", ".", "bin", "{}"])
def test_programs_are_not_found_in_the_working_folder(monkeypatch, tmp_path, entry):
    for folder in (tmp_path, tmp_path / "bin"):
        folder.mkdir(exist_ok=True)
        (folder / "cc").write_text("#!/bin/sh\n")
        (folder / "cc").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", entry.format(tmp_path) + os.pathsep + "/nowhere")
    assert find_program("cc") is None
    assert find_program("bin/cc") == str(tmp_path / "bin" / "cc")  # that one was named


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
        pytest.warns(LongCompilationWarning, match="Ctrl-C stops it"),
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
        [sys.executable, "-P", "-c", textwrap.dedent(FORK)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"},
    )
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
