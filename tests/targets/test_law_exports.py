"""Laws compiled into C and FMUs, with what they remember: the same motion as in Python."""

import ctypes
import json
import shutil
import subprocess
import xml.etree.ElementTree as ET
import zipfile
from functools import cache

import numpy as np
import pytest

import axode as ax
from axode.cli import run as run_cli
from tests.targets.fmu_driver import Unit

STEP, STEPS = 1e-3, 300
EQUAL = 1e-10  # other compilers contract other products
CLOSE = 1e-9  # steps of other lengths
START = {"theta3": 0.1, "pi.integral": 0.05}
SEEN = ("theta1", "theta3", "theta3_dot", "pi.integral", "lag.filtered")


@cache
def machine():
    return ax.gallery.build("wheeled_pendulum").derive().compile()


def law(period=None):
    def push(s, pi, lag):
        torque = lag(pi(1.0 - s["theta1_dot"])) + 0.01 * np.sin(s.t)
        return {"M1": torque, "M2": torque}

    blocks = {"pi": ax.blocks.PI(0.2, 0.5, limit=0.3, period=period), "lag": ax.blocks.LowPass(0.1)}
    return ax.Law(push, **blocks)


def digital():
    """A law that takes samples with two periods, neither a multiple of the step, and none."""

    def push(s, sensor, pi, bus, lag):
        torque = lag(bus(pi(1.0 - sensor(s["theta1_dot"])))) + 0.01 * np.sin(s.t)
        return {"M1": torque, "M2": torque}

    return ax.Law(
        push,
        sensor=ax.blocks.LowPass(0.02, period=0.0037),
        pi=ax.blocks.PI(0.2, 0.5, limit=0.3, period=0.0125),
        bus=ax.blocks.Delay(0.025, 0.0125),
        lag=ax.blocks.LowPass(0.1),
    )


LAWS = {"continuous": law, "samples": digital}


def expected(made, **start):
    given = {"input": made, "start": START | start, "method": "rk4", "step": STEP}
    return ax.simulate(machine(), STEP * STEPS, **given)


def compiled(model, made, folder):
    """Export a model under a law as a project, and load its code."""
    model.export(folder, input=made)
    library = folder.with_suffix(".so")
    sources = [str(file) for file in (folder / "src").glob("*.c")]
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-O2", "-shared", "-fPIC"]
    subprocess.run(
        ["cc", *flags, f"-I{folder / 'include'}", *sources, "-lm", "-o", library], check=True
    )
    return ctypes.CDLL(str(library))


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
@pytest.mark.parametrize("kind", [pytest.param("continuous", marks=pytest.mark.slow), "samples"])
def test_c_steps_under_a_law(tmp_path, kind):
    folder, made = tmp_path / "balancer", LAWS[kind]()
    code = compiled(machine(), made, folder)
    real, number = ctypes.POINTER(ctypes.c_double), ctypes.c_double
    code.balancer_step.argtypes = [real, real, number, real, number]
    names = [state.name for state in made.memory]
    state = ax.assemble(machine(), {"theta3": START["theta3"]})
    p = machine().parameter_vector()
    memory = [START.get(m.name, m.start) for m in made.memory]
    q, nu, p = (np.ascontiguousarray(x) for x in (state.q, [*state.nu, *memory], p))
    q_, nu_, p_ = (x.ctypes.data_as(real) for x in (q, nu, p))
    if made.periods:
        code.balancer_sample.argtypes = [real, real, number, real]
        assert code.balancer_sample(q_, nu_, 0.0, p_) == 0
        # a start that is named stays, which is the affair of who calls the function
        nu[3 + names.index("pi.integral")] = START["pi.integral"]
    t, end = 0.0, STEP * STEPS
    while t < end - 1e-9:  # steps that do not end at samples
        h = min(STEP if kind == "continuous" else 1.1e-3, end - t)
        assert code.balancer_step(q_, nu_, t, p_, h) == 0
        t += h
    run = expected(made)
    found = [*q, *nu]
    for name, value in zip(
        (*machine().coordinates, *machine().independent, *names), found, strict=True
    ):
        assert value == pytest.approx(
            run.final[name], abs=EQUAL if kind == "continuous" else CLOSE
        ), name
    assert "pi.integral" in (folder / "include" / "balancer.h").read_text()
    assert "inputs" not in (folder / "README.md").read_text()  # the law gives them


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
@pytest.mark.parametrize("step", [1e-3, 7e-3, 1.0])
def test_samples_and_switches_of_prescribed_motions_divide_steps(tmp_path, step):
    """One at 0.1 s is both. A step of 1 s is made of pieces up to 0.05 s long."""
    bot = ax.Mechanism("two")
    cart = bot.add_body("cart", mass=1.0, inertia=(1, 1, 1))
    load = bot.add_body("load", mass=2.0, inertia=(1, 1, 1))
    bot.add_joint("rail", ax.Prismatic("x"), parent=bot.ground, child=cart)
    bot.add_joint("slide", ax.Prismatic("x"), parent=cart, child=load)
    bot.add_motor("push", "slide")
    bot.prescribe("rail", "0.1 * max(0, t - 0.1) + 0.3 * max(0, t - 0.333)")
    model = bot.derive().compile()
    made = ax.Law(
        lambda s, pi: {"push": pi(0.5 - s["slide"]) - s["slide.rate"]},
        pi=ax.blocks.PI(2.0, 1.0, period=0.05),
    )
    code = compiled(model, made, tmp_path / "two")
    real, number = ctypes.POINTER(ctypes.c_double), ctypes.c_double
    code.two_step.argtypes = [real, real, number, number]
    code.two_sample.argtypes = [real, real, number]
    state = ax.assemble(model, {})
    q, nu = np.array(state.q), np.array([*state.nu, 0.0, 0.0])
    q_, nu_ = (x.ctypes.data_as(real) for x in (q, nu))
    assert code.two_sample(q_, nu_, 0.0) == 0
    t = 0.0
    while t < 1.0 - 1e-12:
        h = min(step, 1.0 - t)
        assert code.two_step(q_, nu_, t, h) == 0
        t += h
    run = ax.simulate(model, 1.0, input=made, rtol=1e-11, atol=1e-12)
    expected = [*run.final.q, *run.final.nu, run.final["pi.integral"], run.final["pi.output"]]
    np.testing.assert_allclose([*q, *nu], expected, atol=1e-8)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize("version", ["2.0", "3.0"])
@pytest.mark.parametrize("how", ["CoSimulation", "ModelExchange"])
def test_fmus_move_under_a_law(tmp_path, version, kind, how):
    """At every sample of the output, those at the start and at samples of the law too."""
    fmpy = pytest.importorskip("fmpy")
    validation = pytest.importorskip("fmpy.validation")
    path, made = tmp_path / "balancer.fmu", LAWS[kind]()
    machine().export(path, input=made, start=START, fmi=version)
    assert not validation.validate_fmu(str(path))
    seen = [*SEEN, "M1", *(["pi.output", "bus.past1"] if made.periods else [])]
    options = {"relative_tolerance": 1e-10} if how == "ModelExchange" else {}
    changed = {"pi.integral": -0.02}
    for start in ({}, changed):
        found = fmpy.simulate_fmu(
            str(path),
            stop_time=STEP * STEPS,
            output_interval=0.0125,
            output=seen,
            fmi_type=how,
            start_values=start,
            **options,
        )
        run = expected(made, **start)
        close = EQUAL if how == "CoSimulation" else 1e-6
        for name in seen:
            assert found[name][0] == pytest.approx(run[name][0], abs=EQUAL), name
            assert found[name][-1] == pytest.approx(run.final[name], abs=close), name


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_an_fmu_under_a_law_has_no_inputs_and_says_that_gains_are_fixed(tmp_path):
    path = tmp_path / "balancer.fmu"
    machine().export(path, input={"M1": "0.1 * sin(t)"}, start={"theta3": 0.1})
    _require_law(path)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_a_law_is_compiled_in_from_the_command_line(tmp_path, capsys):
    path = tmp_path / "balancer.fmu"
    line = ["export", "wheeled_pendulum", "--to", str(path), "--input", "M1=0.1*sin(t)"]
    assert run_cli([*line, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["arrays"]["u"] == []
    _require_law(path)


def _require_law(path):
    unit = Unit(path)
    kinds = {v.get("causality") for v in unit.variables.values()}
    assert "input" not in kinds and {"M1", "M2"} < {*unit.variables}
    with zipfile.ZipFile(path) as archive:
        root = ET.fromstring(archive.read("modelDescription.xml"))
        page = archive.read("documentation/index.html").decode()
    assert "gains of the law are numbers" in root.attrib["description"]
    assert "gains of the law are numbers" in page


def test_what_files_cannot_hold_is_refused_by_name(tmp_path):
    for given in ({"M1": 0.1}, ax.Callback(lambda t, s: [0.0, 0.0])):
        with pytest.raises(ax.InvalidArgument, match="a law is compiled into the file"):
            machine().export(tmp_path / "x.c", input=given)
    assert not list(tmp_path.iterdir())
