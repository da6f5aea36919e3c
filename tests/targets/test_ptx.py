"""GPU kernels without a GPU: they assemble, and give the same numbers when run on the CPU."""

from __future__ import annotations

import json
import re
import shutil
from functools import cache

import numpy as np
import pytest

import axode as ax
from axode.codegen.targets import ptx
from axode.codegen.targets.cpu import CompiledFunction
from axode.codegen.targets.cpu_rollout import Rollout
from axode.model.model_parts import function_tape
from axode.problems.inputs.inputs import plan_input
from axode.problems.steps.compiled import StepOptions, dynamics_of, rollout_program
from axode.problems.steps.explicit import fixed_step_program
from axode.problems.steps.tableaus import RK4
from axode.problems.sweep.accumulate import KINDS, Output
from axode.problems.sweep.gathering import gather_outputs
from axode.runtime import cuda
from random_mechanisms import MECHANISMS
from tests.targets.host_kernels import HostKernel, evaluated
from variants import some

NAMES = ("arm", "platform", "balancer", "four_bar", "mecanum_base", "caster_robot")
PTXAS = shutil.which("ptxas")
RUNS = 5
ROUNDING = 1e-9  # relative: the optimizer may regroup sums, and steps pile the difference up
SINGLE = 2e-4  # relative: seven digits, less what solves of badly scaled systems lose
LARGE = {"six_legged_platform", "flight_simulator", "delta_robot"}
# Others of the gallery have the same joints, wheels and loops.
ALIKE = (
    "agile_eye",
    "cooperating_arms",
    "delta_array",
    "dietmaier_platform",
    "differential_drive",
    "gough_stewart",
    "mecanum_platform",
    "mobile_manipulator",
    "planar_3rrr",
    "platform_3rps",
    "seven_axis_arm",
    "six_wheel_platform",
    "two_caster_robot",
    "two_wheeled_cart",
)


@cache
def model(name):
    return MECHANISMS[name]().derive().compile(parameters="fixed")


@cache
def shown(name):
    """A model of the gallery."""
    return ax.gallery.build(name).derive().compile(parameters="fixed")


def program(name, method="rk4"):
    return rollout_program(model(name), method, None)


def assert_assembles(made, entries=1):
    """A real assembler takes it where one is installed; its structure is right in any case."""
    text, capability = made.ptx, made.header["capability"]
    assert text.count(".visible .entry") == entries
    assert f".target sm_{capability.replace('.', '')}" in text
    assert "call" not in [line.split()[0] for line in text.splitlines() if line.startswith("\t")]
    if PTXAS:
        known = made.assemble()
        assert all(kernel["registers"] > 0 for kernel in known.header["kernels"].values())
        assert "bytes spilled" in repr(known)


def test_a_gpu_gets_the_newest_code_that_it_runs():
    """Code for one capability runs on all later ones."""
    for capability in ptx.CAPABILITIES:
        assert ptx.closest_capability(capability) == capability
    between = {"7.9": "7.5", "8.7": "8.6", "9.1": "9.0", "10.3": "10.0", "11.0": "10.0"}
    for own, closest in (between | {"12.1": "12.0", "99.0": ptx.CAPABILITIES[-1]}).items():
        assert ptx.closest_capability(own) == closest
    with pytest.raises(ax.InvalidArgument, match=r"compute capability 7\.0 is older than 7\.5"):
        ptx.closest_capability("7.0")


@pytest.mark.parametrize("name", NAMES)
def test_kernels_of_direct_dynamics_stay_in_registers(name):
    made = ptx.kernel(ptx.map_program(function_tape(model(name), "forward_dynamics")), "9.0")
    assert ".local" not in made.ptx  # no buffer is left in memory


@pytest.mark.parametrize("method", ["rk4", "dopri5"])
@pytest.mark.parametrize("name", ["caster_robot", "four_bar"])
def test_kernels_of_whole_runs_assemble_and_stay_in_registers(name, method):
    made = ptx.kernel(program(name, method), "8.0")
    assert_assembles(made)
    assert ".local" not in made.ptx


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("capability", ptx.CAPABILITIES)
def test_every_generation_of_gpus(capability, precision):
    tape = function_tape(model("caster_robot"), "forward_dynamics")
    programs = {"map": ptx.map_program(tape), "rk4": program("caster_robot")}
    made = ptx.kernels(programs, capability, precision)
    assert_assembles(made, entries=2)
    computed = re.sub(r"(?m)^.*(cvt\.f64\.f32|add\.f64.*\[).*$", "", made.ptx)  # not the mean time
    assert ("f64" in computed) == (precision == "float64")


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_kernels_of_sweeps_assemble(precision):
    m = model("four_bar")
    d = dynamics_of(
        m,
        plan_input(m, {m.inputs[0]: "sin(t)"}),
        (),
        options=StepOptions(single=precision == "float32"),
    )
    outputs = [Output(how, m.coordinates[0]) for how in KINDS] + [Output("largest", "error")]
    gathering = gather_outputs(m, d, outputs, None, "step")
    made = ptx.kernel(fixed_step_program(RK4, d, gathering), "9.0", precision)
    assert_assembles(made)
    assert "out" not in made.header["kernels"]["rk4"]["tables"]  # nothing is stored


@pytest.mark.parametrize("name", some(sorted(set(ax.gallery.NAMES) - LARGE), *ALIKE))
def test_every_mechanism_of_the_gallery_assembles(name):
    tape = function_tape(shown(name), "forward_dynamics")
    made = ptx.kernels(
        {"map": ptx.map_program(tape), "rk4": rollout_program(shown(name), "rk4", None)}, "9.0"
    )
    assert_assembles(made, entries=2)


@pytest.mark.parametrize("name", some(sorted(LARGE), "six_legged_platform"))
def test_large_mechanisms_assemble(name):
    """Their functions; whole runs of them take an assembler many seconds."""
    assert_assembles(
        ptx.kernel(ptx.map_program(function_tape(shown(name), "forward_dynamics")), "9.0")
    )
    thread = ptx.host_module(rollout_program(shown(name), "rk4", None), "float32")
    assert thread.count("define void @rollout") == 1


def states(m, runs=RUNS):
    rng = np.random.default_rng(3)
    return {
        "q": m.home + 0.05 * rng.normal(size=(runs, len(m.coordinates))),
        "nu": rng.normal(size=(runs, len(m.independent))),
        "u": rng.normal(size=(runs, len(m.inputs))),
        "t": np.zeros((runs, 1)),
    }


@pytest.mark.parametrize("name", some(ax.gallery.NAMES, "six_legged_platform", *ALIKE))
def test_kernels_of_the_gallery_on_the_cpu_agree_with_its_models(name):
    tape = function_tape(shown(name), "forward_dynamics")
    arrays = [states(shown(name))[port.name] for port in tape.inputs]
    expected = CompiledFunction(tape)(*arrays)
    got = evaluated(tape, *arrays)
    np.testing.assert_allclose(got, expected, rtol=ROUNDING, atol=ROUNDING * scale(expected))
    single = evaluated(tape, *arrays, precision="float32")
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, atol=SINGLE * scale(expected), rtol=SINGLE)


def scale(array):
    return np.abs(array).max(initial=1e-300)


def laid_out(array, order):
    """Runs next to each other ("F") or one after the other ("C")."""
    return np.array(array, order=order) if array.ndim > 1 else array.copy()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("name", NAMES)
def test_the_same_kernel_on_the_cpu_gives_the_same_numbers(name, order):
    tape = function_tape(model(name), "forward_dynamics")
    known = states(model(name))
    arrays = [known[port.name] for port in tape.inputs]
    expected = CompiledFunction(tape)(*arrays)
    what = ptx.map_program(tape)
    buffers = {n: laid_out(known[n], order) for n in what.given}
    (result,) = what.state
    buffers[result] = laid_out(np.full(expected.shape, np.nan), order)
    HostKernel(what)(buffers, {})
    np.testing.assert_allclose(
        buffers[result], expected, rtol=ROUNDING, atol=ROUNDING * scale(expected)
    )


def test_a_rollout_on_the_cpu_gives_the_same_numbers():
    what = program("caster_robot")
    m, steps = model("caster_robot"), 40
    rng = np.random.default_rng(4)
    start = {}
    for name, size in what.external.items():
        start[name] = np.zeros((RUNS, size)) if name in what.state else np.zeros(size)
    start["q"] = np.repeat(m.home[np.newaxis], RUNS, axis=0)
    start["nu"] = rng.normal(size=(RUNS, len(m.independent)))
    start |= {
        "h": np.array([1e-3]),
        "n_steps": np.array([float(steps)]),
        "save_steps": np.array([10.0]),
        "t_end": np.array([steps * 1e-3]),
    }
    width = what.tables["out"]
    usual = {k: v.copy() for k, v in start.items()}
    saved = {"out": np.zeros((RUNS, 5, width))}
    Rollout(what)(usual, saved, budget=2**62)
    other = {k: laid_out(v, "F") for k, v in start.items()}
    mine = {"out": np.zeros((width, 5, RUNS)).transpose(2, 1, 0)}
    HostKernel(what)(other, mine)
    assert not np.allclose(usual["q"], start["q"])
    for name in what.state:
        np.testing.assert_allclose(other[name], usual[name], rtol=ROUNDING, atol=ROUNDING)
    np.testing.assert_allclose(mine["out"], saved["out"], rtol=ROUNDING, atol=ROUNDING)


def test_export_writes_text_and_header(tmp_path):
    made = ptx.kernel(ptx.map_program(function_tape(model("arm"), "forward_dynamics")))
    text, header = made.export(tmp_path / "arm.ptx")
    assert text.read_text() == made.ptx
    assert json.loads(header.read_text()) == made.header
    assert made.header["kernels"]["forward_dynamics"]["given"] == {"q": 7, "nu": 7, "u": 7}
    with pytest.raises(ax.InvalidArgument, match=r"\.ptx file"):
        made.export(tmp_path / "arm.txt")


def test_unknown_capability_is_refused():
    tape = function_tape(model("arm"), "forward_dynamics")
    with pytest.raises(ax.InvalidArgument, match=r"one of 7\.5, 8\.0"):
        ptx.kernel(ptx.map_program(tape), "3.0")


def test_without_cupy_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "cupy", None)
    with pytest.raises(ax.NotApplicable, match=r"\[cuda\]"):
        cuda.cupy()


def test_a_model_on_the_gpu_says_what_is_missing(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "cupy", None)
    m = MECHANISMS["arm"]().derive().compile("cuda")
    with pytest.raises(ax.NotApplicable, match=r"\[cuda\]"):
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
    np.testing.assert_allclose(
        fast.forward_dynamics(q, nu), expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max()
    )
