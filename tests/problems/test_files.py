"""Models from files run without CasADi and without their mechanism."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import axode as ax
from tests.problems import machines

SCRIPT = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "casadi":
            raise ImportError("casadi is blocked")

sys.meta_path.insert(0, Blocked())
import numpy as np
import axode as ax

model = ax.load_model(sys.argv[1])
speed = {"crank.rate": 5.0}
inputs = {
    "constant": {"crank.torque": 0.2},
    "formula": {"crank.torque": "0.2*cos(3*t)"},
    "samples": ax.Sampled({"crank.torque": [0.1, 0.2, -0.3]}, 0.1),
    "callback": ax.Callback(lambda t, s: [0.2 if s["crank"] < 2 else -0.2]),
}
for name, given in inputs.items():
    for options in ({}, {"method": "rk4", "step": 1e-3}):
        run = ax.simulate(model, 0.3, start=speed, input=given, **options)
        assert run.status == "finished" and run.energy_error < 1e-6, name
        print(name, repr(float(run.final["crank"])))
batch = ax.simulate(model, 0.3, start={"crank.rate": [5.0, 6.0, 7.0]})
print("batch", repr(float(batch.final["crank"][2])))
assert "casadi" not in sys.modules
"""


@pytest.mark.slow
def test_simulation_without_casadi(tmp_path: Path):
    """In a process where CasADi cannot be imported: the same numbers as here."""
    model = machines.four_bar()
    path = tmp_path / "four_bar.axm"
    model.save(path)
    done = subprocess.run(
        [sys.executable, "-P", "-c", SCRIPT, str(path)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    found = [line.split() for line in done.stdout.splitlines()]
    assert len(found) == 9
    speed = {"crank.rate": 5.0}
    exact = {
        "constant": ax.simulate(model, 0.3, start=speed, input={"crank.torque": 0.2}),
        "formula": ax.simulate(model, 0.3, start=speed, input={"crank.torque": "0.2*cos(3*t)"}),
        "batch": ax.simulate(model, 0.3, start={"crank.rate": 7.0}),
    }
    for name, value in found:
        if name in exact:
            assert float(value) == pytest.approx(exact[name].final["crank"], abs=1e-7)


def test_functions_of_the_state_are_traced_without_the_mechanism(tmp_path: Path):
    """Inputs and events of a model from a file, with signals by name and NumPy's functions."""
    path = tmp_path / "four_bar.axm"
    machines.four_bar().save(path)
    feedback = lambda s: {"crank.torque": -0.3 * np.sin(s["crank"]) - 0.1 * s.nu[0]}  # noqa: E731
    options = {"start": {"crank.rate": 5.0}, "input": feedback}
    options |= {"events": [ax.Event("turned", lambda s: s["crank"] - 1.3, stop=True)]}
    here, there = (
        ax.simulate(model, 1.0, **options) for model in (machines.four_bar(), ax.load_model(path))
    )
    assert there.status == "stopped by event 'turned'"
    np.testing.assert_allclose(there.values, here.values, rtol=1e-9, atol=1e-9)


def test_what_needs_the_mechanism(tmp_path: Path):
    """Points of bodies are not in files; a dead point cannot be passed by other speeds."""
    path = tmp_path / "four_bar.axm"
    machines.four_bar("rocker").save(path)
    model = ax.load_model(path)
    with pytest.raises(ax.NotApplicable, match=r"'crank' needs the mechanism"):
        ax.simulate(model, 1.0, input=lambda s: [s.position("crank")[0]])
    with pytest.raises(
        ax.SingularConfiguration, match=r"independent speeds rocker\.rate"
    ) as caught:
        ax.simulate(model, 5.0, start={"crank.rate": 20.0}, rtol=1e-10, atol=1e-12)
    run = caught.value.trajectory
    assert isinstance(run, ax.Trajectory) and abs(run.final["rocker.rate"]) < 0.1
    assert np.isfinite(run.values).all()


def test_warning_of_singular_runs_needs_no_casadi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What chooses other rows is made of CasADi, and is of no use for a model from a file."""
    path = tmp_path / "four_bar.axm"
    machines.four_bar("rocker").save(path)
    model = ax.load_model(path)
    monkeypatch.setitem(sys.modules, "axode.symbolic.constraints.row_choice", None)
    with pytest.warns(ax.RunsFailedWarning, match="2 of 2 runs failed"):
        run = ax.simulate(model, 0.5, start={"crank.rate": [20.0, 10.0]})
    assert (run.lengths > 1).all()
