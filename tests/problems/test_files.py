"""Models from files run without CasADi and without their mechanism."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import axode as ax
from axode.model import model_file
from axode.model.model_file import FileDescription
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


def test_a_dead_point_is_passed_by_other_speeds(tmp_path: Path):
    """The file holds the description; the run has the bits of the model that was saved."""
    path, again = tmp_path / "four_bar.axm", tmp_path / "again.axm"
    described = machines.four_bar("rocker")
    described.save(path)
    ax.load_model(path).save(again)
    fast = {"start": {"crank.rate": 20.0}}
    expected = ax.simulate(described, 1.0, **fast)
    assert expected.info["switches"] >= 1
    for place in (path, again):
        run = ax.simulate(ax.load_model(place), 1.0, **fast)
        np.testing.assert_array_equal(run.values, expected.values)
    many = {"start": {"crank.rate": [20.0, 15.0]}}
    swept, own = (ax.simulate(m, 1.0, **many) for m in (ax.load_model(path), described))
    np.testing.assert_array_equal(swept.values, own.values)


def changed(path: Path, change) -> ax.Model:
    """A model from a file whose description is changed, with the checksum right."""
    data = path.read_bytes()
    start = len(model_file.MAGIC) + 8
    size = int.from_bytes(data[start - 4 : start], "little")
    header = json.loads(data[start : start + size])
    change(header)
    text = json.dumps(header).encode()
    body = data[: start - 4] + len(text).to_bytes(4, "little") + text + data[start + size : -32]
    return model_file.decode_model(body + hashlib.sha256(body).digest())


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("document", [], "is no table"),
        ("rows", {}, "rows"),
        ("names", ["a"], "unknown rows"),
        ("units", [1.0], "more or fewer sizes"),
        ("matrices", [[[1.0]]], "other sizes"),
        ("samples", [[0.0]], "configurations of other sizes"),
        ("own", {"rows": [0, 1], "independent": [0], "base": [0]}, "other names"),
    ],
)
def test_descriptions_that_contradict_the_model_are_refused(tmp_path: Path, key, value, message):
    path = tmp_path / "four_bar.axm"
    machines.four_bar("rocker").save(path)

    def change(header):
        place = header["mechanism"]
        (place if key in place else place["rows"])[key] = value

    with pytest.raises(ax.FileError, match=message):
        changed(path, change)


def test_a_description_of_another_mechanism_is_refused_when_it_is_needed(tmp_path: Path):
    path = tmp_path / "four_bar.axm"
    machines.four_bar("rocker").save(path)
    model = changed(path, lambda header: header["mechanism"]["document"]["joint"].popitem())
    assert np.isfinite(model.mass_matrix(model.home)).all()
    with pytest.raises((ax.FileError, ax.MechanismError)):
        ax.simulate(model, 1.0, start={"crank.rate": 20.0})


def test_files_of_the_version_before_are_read(tmp_path: Path):
    path = tmp_path / "four_bar.axm"
    machines.four_bar("rocker").save(path)
    data = path.read_bytes()
    start = len(model_file.MAGIC)
    body = data[:start] + (2).to_bytes(4, "little") + data[start + 4 : -32]
    model = model_file.decode_model(body + hashlib.sha256(body).digest())
    assert np.isfinite(model.mass_matrix(model.home)).all()


def test_what_needs_the_mechanism(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Points of bodies are not in files; other speeds need CasADi."""
    path = tmp_path / "four_bar.axm"
    machines.four_bar("rocker").save(path)
    monkeypatch.setattr(FileDescription, "is_usable", False)
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
    monkeypatch.setattr(FileDescription, "is_usable", False)
    monkeypatch.setitem(sys.modules, "axode.symbolic.constraints.row_choice", None)
    with pytest.warns(ax.RunsFailedWarning, match="2 of 2 runs failed"):
        run = ax.simulate(model, 0.5, start={"crank.rate": [20.0, 10.0]})
    assert (run.lengths > 1).all()
