"""Exported steps end where formulas of time switch, and speeds jump there with prescribed rates."""

import ctypes

import numpy as np
import pytest

import axode as ax
from axode.codegen.targets.wasm import WasmModule
from axode.problems.steps.compiled import rollout_program
from tests.problems import machines
from tests.targets.fmu_driver import Unit
from tests.targets.host_kernels import HostKernel
from tests.targets.test_c import needs_cc
from tests.targets.test_c_project import library, pointer
from tests.targets.wasm_machine import Machine

STEP, END = 5e-3, 0.9  # [s], and no step ends where something switches
AWAY = 0.6013  # [s] when the cart is farthest from its way
MOTION = f"where(t < 0.3004 * m, 0, t - 0.3004 * m) + max(0, 0.001 - abs(t - {AWAY}))"
NAMES = ("x", "pin", "pin.rate")
LAWS = {
    "pulse": "where(t > 0.5003 and t < 0.5023, 300, 0)",
    "parabola": "where((t - 0.5003) * (t - 0.5023) < 0, 300, 0)",
    "peak": "where(sin(2 * pi * t) > 0.99999, 300, 0)",
    "stairs": "floor(1000 * t)",
}
VERSIONS = ("2.0", "3.0")
CLOSE = 1e-7  # error of the steps between switches


def cart(motion=MOTION):
    """A pendulum on a cart that sets off at once, and leaves its way for two milliseconds."""
    bot = ax.Mechanism("cart", gravity=(0, 0, -9.81))
    box = bot.add_body("box", mass=1.0, inertia=(0.1, 0.1, 0.1))
    mass = ax.Parameter("m", 1.0)
    rod = bot.add_body("rod", mass=mass, com=(0, 0, -1.0), inertia=(0.1, 0.1, 0.1))
    bot.add_joint("x", ax.Prismatic("x"), parent=bot.ground, child=box)
    bot.add_joint("pin", ax.Revolute("y"), parent=box, child=rod)
    bot.prescribe("x", motion)
    return bot.derive().compile()


def expected(model, m, **options):
    run = ax.simulate(model, END, parameters={"m": m}, rtol=1e-12, atol=1e-12, **options)
    assert len(run.info["impulses"]) == 4
    return [run.final[name] for name in NAMES]


@pytest.fixture(scope="module")
def model():
    return cart()


@needs_cc
@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_steps_in_c_end_where_prescribed_motions_switch(model, precision, tmp_path):
    model.export(tmp_path / "cart", precision=precision)
    made, single = library(tmp_path / "cart", "cart"), precision == "float32"
    kind, number = (np.float32, ctypes.c_float) if single else (np.float64, ctypes.c_double)
    for m, h in ((1.0, STEP), (1.3, STEP), (1.0, 4 * STEP)):
        q, nu, p, u = (np.array(a, kind) for a in ([0, 0], [0], [m], [0]))
        for k in range(round(END / h)):
            arrays = [pointer(a) for a in (q, nu, u)]
            assert made.cart_step(*arrays, number(k * h), pointer(p), number(h)) == 0
        off = np.abs(np.array([*q, *nu]) - expected(model, m)).max()
        assert off < (1e-4 if single else CLOSE * (h / STEP) ** 4)


@needs_cc
def test_audited_steps_in_c_count_the_work_of_impulses(model, tmp_path):
    class Audit(ctypes.Structure):
        _fields_ = [(n, ctypes.c_double) for n in ("due", "energy_error", "smallest_pivot")]
        _fields_ += [("begun", ctypes.c_int)]

    model.export(tmp_path / "cart")
    step, audit = library(tmp_path / "cart", "cart").cart_audited_step, Audit()
    q, nu, p, u, h = np.zeros(2), np.zeros(1), np.ones(1), np.zeros(1), ctypes.c_double(STEP)
    for k in range(180):
        arrays = [pointer(a) for a in (q, nu, u)]
        time = ctypes.c_double(k * STEP)
        assert step(*arrays, time, pointer(p), h, ctypes.byref(audit)) == 0
    assert abs(audit.energy_error) < CLOSE


@needs_cc
@pytest.mark.parametrize("version", VERSIONS)
def test_units_step_to_where_prescribed_motions_switch(model, version, tmp_path):
    model.export(tmp_path / "cart.fmu", fmi=version, step=STEP)
    for m in (1.0, 1.3):
        unit = Unit(tmp_path / "cart.fmu")
        assert unit.start(m=m) == 0
        for k in range(30):  # of six internal steps each
            assert unit.step(0.03 * k, 0.03) == 0
        assert unit.get(*NAMES) == pytest.approx(expected(model, m), abs=CLOSE)
        assert abs(unit.get("energy_error")[0]) < CLOSE


@needs_cc
@pytest.mark.parametrize("version", VERSIONS)
def test_environments_are_stopped_where_prescribed_motions_switch(model, version, tmp_path):
    fmpy = pytest.importorskip("fmpy")
    model.export(tmp_path / "cart.fmu", fmi=version)
    found = fmpy.simulate_fmu(
        str(tmp_path / "cart.fmu"),
        fmi_type="ModelExchange",
        stop_time=END,
        output_interval=0.1,
        relative_tolerance=1e-12,
        start_values={"m": 1.3},
        output=NAMES,
    )
    assert [found[name][-1] for name in NAMES] == pytest.approx(expected(model, 1.3), abs=CLOSE)


@needs_cc
def test_a_position_that_jumps_is_refused_by_exported_steps(tmp_path):
    model = cart("where(t < 0.3004, 0, 0.001 * (m - 1))")  # not by default
    model.export(tmp_path / "unit.fmu", step=STEP)
    model.export(tmp_path / "cart")
    unit = Unit(tmp_path / "unit.fmu")
    assert unit.start(m=1.5) == 0 and unit.step(0.0, 0.3) == 0
    assert unit.step(0.3, 0.1) == 3  # an error
    step = library(tmp_path / "cart", "cart").cart_step
    q, nu, p, u = np.zeros(2), np.zeros(1), np.array([1.5]), np.zeros(1)
    arrays = [pointer(a) for a in (q, nu, u)]
    assert step(*arrays, ctypes.c_double(0.3), pointer(p), ctypes.c_double(STEP)) == 3
    assert not q.any()
    torn = cart("where(t < 0.3004, 0, 0.001)")
    for name in ("unit.fmu", "cart", "cart.wasm", "cart.html"):
        with pytest.raises(ax.InvalidArgument, match=r"prescribe 'x': the motion jumps by 0\.001"):
            (ax.page if name.endswith("html") else ax.Model.export)(torn, tmp_path / name)


# programs ----------------------------------------------------------------------------------------


def ended(program, given, turns=10**6):
    """Run a program in WebAssembly."""
    module = WasmModule()
    module.add_program("run", program, {"q": "q", "nu": "nu", "p": "p"}, {"out": 1, "times": 1})
    machine = Machine(module)
    for key, number in given.items():
        machine[key][:] = number
    machine.call("run", turns)
    assert machine["run.status"][0] == 1
    return [*machine["q"], *machine["nu"]]


@pytest.mark.parametrize("law", LAWS)
def test_no_pulse_is_stepped_over_in_a_page(law):
    slider = machines.slider(limit=1e4)
    program = rollout_program(slider, "rk4", {"rail": LAWS[law]})
    given = {"run.h": 0.1, "run.t_end": 1.0, "run.n_steps": 10, "run.save_steps": 1e9, "p": 1.0}
    found = ended(program, given)
    run = ax.simulate(slider, 1.0, input={"rail": LAWS[law]})
    assert found == pytest.approx([run.final["rail"], run.final["rail.rate"]], rel=1e-9)
    assert abs(run.final["rail"]) > 0.1


@pytest.mark.parametrize("method", ["rk4", "dopri5"])
def test_no_pulse_is_stepped_over_in_an_exported_kernel(method):
    program = rollout_program(machines.slider(limit=1e4), method, {"rail": LAWS["parabola"]})
    numbers = {"h": 0.1, "n_steps": 10, "save_steps": 1e9, "t_end": 1.0, "p": 1.0, "rows": 1}
    numbers |= {"time_direction": 1.0, "longest": 1.0, "rtol": 1e-9, "atol": 1e-9}
    buffers = {name: np.zeros((2, size), order="F") for name, size in program.external.items()}
    for name in buffers.keys() & numbers.keys():
        buffers[name][:] = numbers[name]
    tables = {name: np.ones((2, 1, width)) for name, width in program.tables.items()}
    HostKernel(program)(buffers, tables)
    np.testing.assert_allclose(buffers["nu"], 300 * 0.002, rtol=1e-12)
    np.testing.assert_allclose(buffers["q"], 300 * 0.002 * 0.4987, rtol=1e-12)


def test_prescribed_motions_switch_in_a_page(model):
    program = rollout_program(model, "rk4", None)
    given = {"run.h": STEP, "run.t_end": END, "run.n_steps": 180, "run.save_steps": 1e9, "p": 1.3}
    assert ended(program, given) == pytest.approx(expected(model, 1.3), abs=CLOSE)


# files -------------------------------------------------------------------------------------------


def test_a_model_read_from_a_file_switches_as_the_one_that_was_saved(model, tmp_path):
    model.save(tmp_path / "cart.axm")
    again = ax.load_model(tmp_path / "cart.axm")
    assert expected(again, 1.3) == expected(model, 1.3)
    slim = [name for name in again.functions if name != "momentum_speeds"]
    model.save(tmp_path / "slim.axm", slim)
    for name in ("cart.fmu", "cart", "cart.wasm"):
        with pytest.raises(ax.NotApplicable, match=r"need 'momentum_speeds' there.*\n.*save"):
            ax.load_model(tmp_path / "slim.axm").export(tmp_path / name)
