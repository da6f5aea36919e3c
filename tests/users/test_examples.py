"""Every example runs as it stands."""

import runpy
from pathlib import Path

import numpy as np
import pytest

import axode as ax

EXAMPLES = Path(__file__).parents[2] / "examples"
SAYS = {
    "ackermann": "car: mobility 0",
    "balance": "asked for 0.6 m/s to the left: 0.6000 m/s, heading 1.5708 rad",
    "bennett": "the closed form says -2.73205",
    "bicycle": "5.0  [-14.078",
    "fit_pendulum": "height   0.398 +- 0.003, true 0.4",
    "push_study": "73% of 500 robots stand after pushes of up to 5 rad/s",
    "slider_crank": "largest difference",
    "tune_balancer": "mean cost from 0.285 to 0.102, worst 0.12",
    "turntable": "circle about (-0.7250, 0) m, radius 1.2250 m",
}


SKIDS = {  # each writes pictures to out/
    "balancer_wall": "strikes the wall at 0.513 s with 0.558 m/s",
    "braking_car": "all locked: 14.33 m, +3 degrees; v^2/(2 mu g): 14.33 m",
    "landing": "knees give way by 0.091 m of 0.180 m",
    "skid_steering": "closed form for these wheels: 0.540039 rad/s",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SKIDS))
def test_a_robot_that_skids_does_what_its_page_says(name, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert SKIDS[name] in printed
    page = (EXAMPLES.parent / "docs" / "guide" / "skidding.md").read_text()
    assert SKIDS[name] in page
    assert (tmp_path / "out" / f"{name}.gif").stat().st_size > 20_000


@pytest.mark.parametrize("name", sorted(SAYS))
def test_an_example_says_what_it_promises(name, capsys):
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert SAYS[name] in capsys.readouterr().out


@pytest.mark.slow
def test_the_demo_leaves_pages_and_pictures(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / "demo.py"), run_name="__main__")
    assert "quasimoro-spin: pass" in capsys.readouterr().out
    made = {path.name for path in (tmp_path / "out").iterdir()}
    assert made == {"reproduce", *(f"wheeled_pendulum.{x}" for x in ("html", "npz", "png"))}


def test_the_car_with_a_differential_drives_and_keeps_its_energy():
    car = ax.load(EXAMPLES / "differential.toml")
    equations = car.derive()
    assert (equations.mobility.mobility, equations.actuation) == (2, "fully actuated")
    run = ax.simulate(equations.compile(), 3.0, input={"engine.torque": 3.0})
    assert np.abs(run["error"]).max() < 1e-9 * run["kinetic"][-1]
    assert run["shaft.rate"] == pytest.approx(
        2.0 * (run["rear_left.rate"] + run["rear_right.rate"])
    )
    assert run["steer_right"] == pytest.approx(run["steer"], abs=1e-12)


def test_the_car_with_a_differential_follows_a_circle():
    """The left front wheel's axle meets the rear axle in the centre; the right wheel follows."""
    model = ax.load(EXAMPLES / "differential.toml").derive().compile()
    bend = ax.paths.follow(model, ax.paths.circle(3.0, speed=0.5, turns=0.25), save_every=0.1)
    assert bend["path.residual"].max() < 1e-9
    assert bend["steer"][-1] == pytest.approx(np.arctan(1.0 / (3.0 - 0.3)))
    assert bend["steer_right"] == pytest.approx(bend["steer"], abs=1e-12)
    assert bend["shaft.rate"][-1] == pytest.approx(4.0 * 0.5 / 0.15)
