"""Laws compiled into C and FMUs, with what they remember: the same motion as in Python."""

import ctypes
import shutil
import subprocess
from functools import cache

import numpy as np
import pytest

import axode as ax
from tests.targets.fmu_driver import Unit

STEP, STEPS = 1e-3, 300
EQUAL = 1e-10  # other compilers contract other products
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


def expected():
    given = {"input": law(), "start": START, "method": "rk4", "step": STEP}
    return ax.simulate(machine(), STEP * STEPS, **given)


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_c_steps_under_a_law(tmp_path):
    folder = tmp_path / "balancer"
    machine().export(folder, input=law())
    library = tmp_path / "balancer.so"
    sources = [str(file) for file in (folder / "src").glob("*.c")]
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-O2", "-shared", "-fPIC"]
    subprocess.run(
        ["cc", *flags, f"-I{folder / 'include'}", *sources, "-lm", "-o", library], check=True
    )
    step = ctypes.CDLL(str(library)).balancer_step
    real = ctypes.POINTER(ctypes.c_double)
    step.argtypes = [real, real, ctypes.c_double, real, ctypes.c_double]
    begun = ax.Scenario(machine(), 1.0, input=law(), start=START).starts
    p = machine().parameter_vector()
    q, nu, p = (np.ascontiguousarray(x) for x in (begun.q[0], begun.nu[0], p))
    for k in range(STEPS):
        q_, nu_, p_ = (x.ctypes.data_as(real) for x in (q, nu, p))
        assert step(q_, nu_, k * STEP, p_, STEP) == 0
    run = expected()
    np.testing.assert_allclose(q, run.final.q, atol=EQUAL)
    np.testing.assert_allclose(nu[:3], run.final.nu, atol=EQUAL)
    memory = [run.final[name] for name in ("pi.integral", "lag.filtered")]
    np.testing.assert_allclose(nu[3:], memory, atol=EQUAL)
    assert "pi.integral" in (folder / "include" / "balancer.h").read_text()


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
@pytest.mark.parametrize("version", ["2.0", "3.0"])
def test_fmus_move_under_a_law(tmp_path, version):
    fmpy = pytest.importorskip("fmpy")
    path = tmp_path / "balancer.fmu"
    machine().export(path, input=law(), start=START, fmi=version)
    found = fmpy.simulate_fmu(
        str(path),
        stop_time=STEP * STEPS,
        output_interval=0.01,
        output=[*SEEN, "M1"],
        fmi_type="CoSimulation",
    )
    run = expected()
    for name in (*SEEN, "M1"):
        assert found[name][-1] == pytest.approx(run.final[name], abs=EQUAL), name


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_an_fmu_under_a_law_has_no_inputs(tmp_path):
    path = tmp_path / "balancer.fmu"
    machine().export(path, input={"M1": "0.1 * sin(t)"}, start={"theta3": 0.1})
    unit = Unit(path)
    kinds = {v.get("causality") for v in unit.variables.values()}
    assert "input" not in kinds and {"M1", "M2"} < {*unit.variables}


def test_what_files_cannot_hold_is_refused_by_name(tmp_path):
    with pytest.raises(ax.InvalidArgument, match=r"block 'pi' takes samples every 0\.01 s"):
        machine().export(tmp_path / "x.fmu", input=law(0.01))
    for given in ({"M1": 0.1}, ax.Callback(lambda t, s: [0.0, 0.0])):
        with pytest.raises(ax.InvalidArgument, match="a law is compiled into the file"):
            machine().export(tmp_path / "x.c", input=given)
    assert not list(tmp_path.iterdir())
