"""GPU kernels without a GPU: they assemble, and give the same numbers when run on the CPU."""

from __future__ import annotations

import ctypes
import json
import shutil
import subprocess
from functools import cache

import numpy as np
import pytest

import axode as ax
from axode.codegen import jit, ptx
from axode.codegen.llvm import CompiledFunction
from axode.codegen.program import ENTRY
from axode.codegen.rollout import Rollout
from axode.problems.batch import dynamics_of
from axode.problems.inputs import plan_input
from axode.problems.integrators import METHODS
from axode.runtime import cuda
from random_mechanisms import MECHANISMS

NAMES = ("arm", "platform", "balancer", "four_bar", "mecanum_base", "caster_robot")
PTXAS = shutil.which("ptxas")
RUNS = 5
ROUNDING = 1e-9  # relative: the optimiser may regroup sums, and steps pile the difference up


@cache
def model(name):
    return MECHANISMS[name]().derive().compile(parameters="fixed")


def program(name, method="rk4"):
    m = model(name)
    return METHODS[method](dynamics_of(m, plan_input(m, None), ()))


def assert_assembles(text, capability, tmp_path):
    """A real assembler takes it where one is installed; its structure is right in any case."""
    assert text.count(".visible .entry") == 1
    assert f".target sm_{capability.replace('.', '')}" in text
    assert "call" not in [line.split()[0] for line in text.splitlines() if line.startswith("\t")]
    if PTXAS:
        source = tmp_path / "kernel.ptx"
        source.write_text(text)
        arch = f"-arch=sm_{capability.replace('.', '')}"
        subprocess.run([PTXAS, arch, source, "-o", tmp_path / "kernel.cubin"], check=True)


@pytest.mark.parametrize("name", NAMES)
def test_kernels_of_direct_dynamics_assemble(name, tmp_path):
    made = ptx.kernel(ptx.map_program(model(name).tape("forward_dynamics")), "9.0")
    assert_assembles(made.ptx, "9.0", tmp_path)
    assert ".local" not in made.ptx  # everything became registers


@pytest.mark.parametrize("method", ["rk4", "dopri5"])
@pytest.mark.parametrize("name", ["caster_robot", "four_bar"])
def test_kernels_of_whole_runs_assemble_and_stay_in_registers(name, method, tmp_path):
    made = ptx.kernel(program(name, method), "8.0")
    assert_assembles(made.ptx, "8.0", tmp_path)
    assert ".local" not in made.ptx


@pytest.mark.parametrize("capability", ["7.5", "12.0"])
def test_old_and_new_generations(capability, tmp_path):
    tape = model("caster_robot").tape("forward_dynamics")
    assert f"sm_{capability.replace('.', '')}" in ptx.kernel(ptx.map_program(tape), capability).ptx


class OnTheCpu:
    """The kernel of a program, one call a thread."""

    def __init__(self, what):
        self.program = what
        ir = ptx.host_module(what)
        self.native = jit.load("thread", f"host thread {what.digest}", ENTRY, lambda: ir)
        kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
        self.run = kind(self.native.address)

    def __call__(self, buffers, tables, budget=2**62):
        items = []
        for name in self.program.external:
            a = buffers[name]
            strides = a.strides if a.ndim == 2 else (0, *a.strides)
            items += [a.ctypes.data, *strides]
        for name in self.program.tables:
            a = tables[name]
            strides = a.strides if a.ndim == 3 else (0, *a.strides)
            items += [a.ctypes.data, *strides, a.shape[-2]]
        table = np.array([*items, budget], dtype=np.int64)
        for thread in range(RUNS + 3):  # threads beyond the runs do nothing
            self.run(table.ctypes.data, RUNS, thread)


def laid_out(array, order):
    """Runs next to each other ("F") or one after the other ("C")."""
    return np.array(array, order=order) if array.ndim > 1 else array.copy()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("name", NAMES)
def test_the_same_kernel_on_the_cpu_gives_the_same_numbers(name, order):
    tape = model(name).tape("forward_dynamics")
    rng = np.random.default_rng(3)
    known = {"q": model(name).home + 0.05 * rng.normal(size=(RUNS, len(model(name).coordinates))),
             "nu": rng.normal(size=(RUNS, len(model(name).independent))),
             "u": rng.normal(size=(RUNS, len(model(name).inputs)))}  # fmt: skip
    arrays = [known[port.name] for port in tape.inputs]
    expected = CompiledFunction(tape)(*arrays)
    what = ptx.map_program(tape)
    buffers = {n: laid_out(known[n], order) for n in what.given}
    (result,) = what.state
    buffers[result] = laid_out(np.full(expected.shape, np.nan), order)
    OnTheCpu(what)(buffers, {})
    scale = np.abs(expected).max()
    np.testing.assert_allclose(buffers[result], expected, rtol=ROUNDING, atol=ROUNDING * scale)


def test_a_rollout_on_the_cpu_gives_the_same_numbers():
    what = program("caster_robot")
    m, steps = model("caster_robot"), 40
    rng = np.random.default_rng(4)
    start = {}
    for name, size in what.external.items():
        start[name] = np.zeros((RUNS, size)) if name in what.state else np.zeros(size)
    start["q"] = np.repeat(m.home[np.newaxis], RUNS, axis=0)
    start["nu"] = rng.normal(size=(RUNS, len(m.independent)))
    start |= {"h": np.array([1e-3]), "n_steps": np.array([float(steps)]),
              "save_steps": np.array([10.0]), "t_end": np.array([steps * 1e-3])}  # fmt: skip
    width = what.tables["out"]
    usual = {k: v.copy() for k, v in start.items()}
    saved = {"out": np.zeros((RUNS, 5, width))}
    Rollout(what)(usual, saved, budget=2**62)
    other = {k: laid_out(v, "F") for k, v in start.items()}
    mine = {"out": np.zeros((width, 5, RUNS)).transpose(2, 1, 0)}
    OnTheCpu(what)(other, mine)
    assert not np.allclose(usual["q"], start["q"])
    for name in what.state:
        np.testing.assert_allclose(other[name], usual[name], rtol=ROUNDING, atol=ROUNDING)
    np.testing.assert_allclose(mine["out"], saved["out"], rtol=ROUNDING, atol=ROUNDING)


def test_export_writes_text_and_header(tmp_path):
    made = ptx.kernel(ptx.map_program(model("arm").tape("forward_dynamics")))
    text, header = made.export(tmp_path / "arm.ptx")
    assert text.read_text() == made.ptx
    assert json.loads(header.read_text()) == made.header
    assert made.header["kernels"]["forward_dynamics"]["given"] == {"q": 7, "nu": 7, "u": 7}
    with pytest.raises(ax.InvalidArgument, match=r"\.ptx file"):
        made.export(tmp_path / "arm.txt")


def test_unknown_capability_is_refused():
    tape = model("arm").tape("forward_dynamics")
    with pytest.raises(ax.InvalidArgument, match=r"one of 7\.5, 8\.0"):
        ptx.kernel(ptx.map_program(tape), "3.0")


def test_without_cupy_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "cupy", None)
    with pytest.raises(ax.NotApplicable, match=r"axode\[cuda\]"):
        cuda.cupy()


def test_a_model_on_the_gpu_says_what_is_missing(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "cupy", None)
    m = MECHANISMS["arm"]().derive().compile("cuda")
    with pytest.raises(ax.NotApplicable, match=r"axode\[cuda\]"):
        m.forward_dynamics(np.zeros(7), np.zeros(7), np.zeros(7))


@pytest.mark.gpu
@pytest.mark.parametrize("name", NAMES)
def test_models_on_a_gpu_agree_with_the_cpu(name):
    cuda.cupy()
    fast = MECHANISMS[name]().derive().compile("cuda", parameters="fixed")
    rng = np.random.default_rng(5)
    q = np.repeat(fast.home[np.newaxis], 100, axis=0)
    nu = rng.normal(size=(100, len(fast.independent)))
    expected = model(name).forward_dynamics(q, nu)
    np.testing.assert_allclose(fast.forward_dynamics(q, nu), expected, rtol=1e-9,
                               atol=1e-9 * np.abs(expected).max())  # fmt: skip
