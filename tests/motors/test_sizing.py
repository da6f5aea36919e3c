"""Motors of a catalogue in the place of others, against mechanisms that have them."""

import json
import warnings

import numpy as np
import pytest

import axode as ax
from axode.cli.commands import run as command
from tests.motors.test_duty import NO_LIMITS, flywheel, turned

CATALOGUE = """
[motor.small]
limit = 0.02
continuous = 0.005
rotor_inertia = 1e-6
no_load_speed = 800
gears = [20, 40]

[motor.medium]
limit = 0.2
continuous = 0.08
rotor_inertia = 1e-5
no_load_speed = 500
efficiency = 0.8
gears = [10, 20, 40, 400]

[motor.large]
limit = 2
continuous = 0.8
rotor_inertia = 4e-4
gears = [10]
"""


@pytest.fixture
def catalogue(tmp_path):
    (tmp_path / "motors.toml").write_text(CATALOGUE)
    return tmp_path / "motors.toml"


def test_a_candidate_is_as_a_mechanism_that_has_it(catalogue):
    """Torques are those of the equations derived again with the candidate's rotor and gear."""
    report = turned(flywheel(**NO_LIMITS).derive().compile()).motors
    sized = report.size(catalogue)
    assert [choice.candidate for choice in sized.choices] == ["small", "medium", "large"]
    candidates = {one.name: one.motor for one in ax.motors.catalogue(catalogue)}
    for choice in sized.choices:
        motor = candidates[choice.candidate]
        own = {"gear": choice.gear, "rotor_inertia": motor.rotor_inertia}
        again = turned(flywheel(**own, efficiency=motor.efficiency).derive().compile())
        assert np.abs(choice.duty.torque - again.motors["spin"].torque).max() < 1e-12


def test_the_first_that_fits_is_named_and_reasons_are_given(catalogue):
    report = turned(flywheel(**NO_LIMITS).derive().compile()).motors
    sized = report.size(catalogue, margin=1.2)
    small, medium, large = sized.choices
    assert not small.ok and any(reason.startswith("rms torque at ") for reason in small.reasons)
    assert medium.ok and large.ok and sized.best["spin"] is medium
    others = [
        report.size({"m": ax.Motor(**NUMBERS, gear=gear)}).choices[0].margin
        for gear in (10, 20, 40, 400)
    ]
    assert medium.margin == pytest.approx(max(others))
    assert "first that fits" in repr(sized)
    assert report.size(catalogue, margin=100.0).best == {"spin": None}


NUMBERS = {
    "limit": 0.2,
    "continuous": 0.08,
    "rotor_inertia": 1e-5,
    "no_load_speed": 500,
    "efficiency": 0.8,
}


def test_wrong_catalogues(tmp_path):
    report = turned(flywheel(**NO_LIMITS).derive().compile()).motors
    file = tmp_path / "wrong.toml"
    for text, words in (
        ("[motor.a]\nlimits = 1", "limit"),
        ("[motor.a]\nlimit = 'x'", "expected a number"),
        ("[motor.a]\nlimit = -1", "limit must be > 0"),
        ("[motor.a]\ngears = [0]", "gears must be numbers other than 0"),
        ("[motor.a]\ngear = 5\ngears = [2, 3]", "'a': it has gear and gears"),
        ("a = 1", "tables \\[motor.NAME\\]"),
        ("[motor", "not a TOML file"),
    ):
        file.write_text(text)
        with pytest.raises(ax.AxodeError, match=words):
            report.size(file)
    with pytest.raises(ax.FileError, match="cannot read"):
        report.size(tmp_path / "none.toml")
    with pytest.raises(ax.InvalidArgument, match="margin"):
        report.size({"m": ax.Motor()}, margin=0.5)
    with pytest.raises(ax.UnknownName, match="wheel"):
        report.size({"m": ax.Motor()}, motors=["wheel"])
    with pytest.raises(ax.InvalidArgument, match="parameters"):
        report.size({"m": ax.Motor(limit=ax.Parameter("p", 1.0))})


def test_the_command_line(tmp_path, catalogue, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        flywheel(**NO_LIMITS, limit=0.005).save(tmp_path / "wheel.toml")
        arguments = ["size", str(tmp_path / "wheel.toml"), "--motion", "turn=0.5*t**2"]
        arguments += ["--time", "2", "--catalogue", str(catalogue)]
        assert command([*arguments, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["exceeded"][0]["motor"] == "spin" and data["best"]["spin"] is not None
    assert command([*arguments, "--plot", str(tmp_path / "duty.svg")]) == 0
    printed = capsys.readouterr()
    assert "first that fits" in printed.out and "times its limit of 0.005 N m" in printed.out
    assert printed.err == "" and (tmp_path / "duty.svg").exists()
    assert command(["size", str(tmp_path / "wheel.toml")]) == 2
