"""Wheels that come to lie flat: no point of the rim is the lowest, and the contact is singular."""

import math

import numpy as np
import pytest

import axode as ax
from axode.problems.steps.compiled import rollout_program

UPRIGHT = math.pi / 2  # [rad] of lean from there to lying flat
KEPT = 1e-9  # relative, of the energy up to the stop
NEAR = 1e-5  # [rad] from flat at which adaptive steps stop


@pytest.fixture(scope="module")
def disk() -> ax.Model:
    return ax.gallery.build("rolling_disk").derive().compile()


@pytest.mark.parametrize(("options", "near"), [({}, NEAR), ({"method": "rk4", "step": 1e-3}, 0.01)])
def test_a_disk_that_falls_over_stops_flat(disk: ax.Model, options: dict, near: float):
    with pytest.raises(ax.SingularConfiguration, match="'rim' lies flat") as caught:
        ax.simulate(disk, 3.0, start={"base.roll": 0.2}, **options)
    run = caught.value.trajectory
    assert run is not None and run.time[-1] == pytest.approx(caught.value.time)
    assert abs(run.final["base.roll"] - UPRIGHT) < near and run.energy_error < KEPT
    # a rod that falls about the contact: energy alone says how long it takes
    m, R, A, g = 2.0, 0.3, 0.045, 9.81
    lean = np.linspace(0.2, UPRIGHT, 200001)[1:]
    rate = np.sqrt(2 * m * g * R * (math.cos(0.2) - np.cos(lean)) / (A + m * R**2))
    root = np.sqrt(lean - 0.2)  # the integrand is singular where it starts from rest
    fall = np.trapezoid(2 * root / rate, root)
    assert caught.value.time == pytest.approx(fall, abs=2e-3)


def test_a_disk_that_starts_flat_is_refused(disk: ax.Model):
    for near_flat in (0.0, 1e-9, -1e-12):
        with pytest.raises(ax.SingularConfiguration, match="'rim' lies flat") as caught:
            ax.simulate(disk, 1.0, start={"base.roll": UPRIGHT + near_flat})
        assert caught.value.time == 0.0


def test_batches_and_sweeps_say_which_runs_fell(disk: ax.Model):
    rolls = [0.2, 0.0, UPRIGHT]
    run = ax.simulate(disk, 1.0, start={"base.roll": rolls})
    assert [s.startswith("failed: singular") for s in run.statuses] == [True, False, True]
    assert "'rim' lies flat" in run.statuses[0] and run.ended[0] < 0.6
    swept = ax.sweep(disk, 1.0, start={"base.roll": rolls})
    assert swept.finished.tolist() == [False, True, False]


@pytest.mark.parametrize("spin", [1e-2, 1e-4])
def test_a_disk_that_passes_near_flat_goes_on(disk: ax.Model, spin: float):
    """With the least spin its contact runs round the rim in time, and the energy tells."""
    run = ax.simulate(disk, 2.0, start={"base.roll": 0.2, "base.wz": spin})
    assert run.status == "finished" and run.energy_error < KEPT
    assert np.abs(run["base.roll"]).max() > 1.5


def test_motions_through_flat_are_refused(disk: ax.Model):
    """Also where no sample is flat, and only the way from one to the next is."""
    with pytest.raises(ax.SingularConfiguration, match=r"t = 3\.136 s.*'rim' lies flat"):
        ax.inverse_dynamics(
            disk, {"base.roll": "0.5 * t", "base.yaw": 0, "rim.contact.x": 0}, times=4.0
        )
    with pytest.raises(ax.SingularConfiguration, match="'rim' lies flat"):
        ax.linearize(disk, {"base.roll": UPRIGHT})


def test_wheels_that_stay_upright_are_not_watched():
    """Neither those of a planar base nor four on a body that floats."""
    for name in ("differential_drive", "mecanum_platform", "caster_robot", "snakeboard"):
        assert ax.gallery.build(name).derive().system.leaning == ()
    car = ax.Mechanism("car")
    body = car.add_body("body", mass=10.0, com=(0, 0, 0.1), inertia=(1, 1, 1))
    car.add_joint("base", ax.Floating(), parent=car.ground, child=body)
    for k, (x, y) in enumerate([(1, 1), (1, -1), (-1, 1), (-1, -1)]):
        car.add_wheel(f"w{k}", ax.Omni(0.1), on=body, at=(0.3 * x, 0.2 * y, 0), mass=0.5)
    assert car.derive().system.leaning == ()


def test_a_wheel_on_a_moving_plane_is_watched():
    """What counts is the axis against the plane it rolls on, wherever that tilts to."""
    bot = ax.Mechanism("table")
    table = bot.add_body("table", mass=5.0, inertia=(1, 1, 1))
    bot.add_joint("tilt", ax.Revolute("x"), parent=bot.ground, child=table)
    disk = bot.add_body("disk", mass=1.0, inertia=(0.1, 0.2, 0.1))
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child=disk)
    bot.add_contact("rim", ax.Mecanum(0.3), body=disk, axis="y", ground=ax.Plane(on=table))
    bot.set_home({"base.z": 0.3})
    equations = bot.derive()
    assert [contact.name for contact in equations.system.leaning] == ["rim"]
    model = equations.compile("interpreter")
    for tilt, lean in ((0.3, 0.0), (-0.4, 0.5), (0.7, 0.7 - UPRIGHT)):
        q = ax.assemble(model, {"tilt": tilt, "base.roll": lean}, fix=["tilt"]).q
        pair = model.evaluate("pivots", {"q": q})[-2:]
        assert np.linalg.norm(pair) == pytest.approx(abs(math.cos(tilt - lean)), abs=1e-9)


def test_exported_steps_watch_it_too(disk: ax.Model):
    for method in ("rk4", "dopri5"):
        program = rollout_program(disk, method, None)
        assert "flat" in program.state and "near" in program.state
