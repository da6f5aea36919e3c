"""Duties of motors in runs with contacts: accelerations contain friction and contact forces."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

import axode as ax
from axode.motors.duty import differences
from tests.problems.contact_robots import rover, sphere

GEAR, ETA, ROTOR, FRICTION, I = 20.0, 0.8, 1e-3, 0.3, 0.2
WAYS = {"events": {"contacts": "events"}, "steps": {"contacts": "steps", "step": 1e-3}}
EXACT = 1e-9


def rubbing() -> ax.Model:
    """A flywheel on a joint that rubs."""
    wheel = ax.Mechanism("flywheel")
    disk = wheel.add_body("disk", mass=1.0, inertia=(I, I, I))
    joint = ax.Revolute("z")
    wheel.add_joint("turn", joint, parent=wheel.ground, child=disk, friction=FRICTION)
    wheel.add_motor("spin", "turn", gear=GEAR, efficiency=ETA, rotor_inertia=ROTOR)
    return wheel.derive().compile()


def turned(way: str, torque: float, **options: object) -> ax.Trajectory:
    return ax.simulate(
        rubbing(), 2.0, input={"spin.torque": torque}, save_every=0.01, **WAYS[way], **options
    )


@pytest.mark.parametrize("way", WAYS)
def test_at_constant_speed_all_torque_passes_the_gear(way):
    """The rotor does not accelerate: friction over gear and efficiency, and what the gear loses."""
    run = turned(way, FRICTION / GEAR, start={"turn.rate": 1.0})
    duty = run.motors["spin"]
    assert duty.torque == pytest.approx(FRICTION / GEAR / ETA, rel=EXACT)
    assert duty.lost == pytest.approx(FRICTION * (1 / ETA - 1) * 2.0, rel=EXACT)


@pytest.mark.parametrize("way", WAYS)
def test_sizing_accelerates_the_rotor_as_the_run_did(way):
    run = turned(way, FRICTION / GEAR, start={"turn.rate": 1.0})
    needed = FRICTION / GEAR / ETA
    motor = {"gear": GEAR, "efficiency": ETA, "rotor_inertia": ROTOR}
    choices = run.motors.size(
        {
            "weak": ax.Motor(limit=0.99 * needed, **motor),
            "able": ax.Motor(limit=1.01 * needed, **motor),
        }
    )
    assert [choice.ok for choice in choices.choices] == [False, True]


@pytest.mark.parametrize("way", WAYS)
def test_what_speeds_up_under_friction_speeds_its_rotor_up(way):
    """From rest, beyond friction: (gear tau - friction) / (I + J gear^2) at the joint."""
    tau = 0.05
    a = GEAR * (GEAR * tau - FRICTION) / (I + ROTOR * GEAR**2)
    duty = turned(way, tau).motors["spin"]
    expected = ROTOR * a + (tau - ROTOR * a) / ETA
    assert duty.torque[1:] == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("way", WAYS)
def test_what_is_held_by_friction_loses_nothing(way):
    tau = 0.5 * FRICTION / GEAR
    duty = turned(way, tau).motors["spin"]
    assert duty.torque == pytest.approx(tau, rel=EXACT) and duty.lost == 0.0


@pytest.mark.parametrize("way", WAYS)
def test_parts_and_copies_of_a_run_ask_the_same_of_motors(way):
    run = turned(way, FRICTION / GEAR, start={"turn.rate": 1.0})
    halves = ax.Trajectory.concatenate(run.between(0.0, 1.0), run.between(1.0, 2.0))
    for other in (run.between(0.5, 1.5), pickle.loads(pickle.dumps(run)), halves):
        assert other.motors["spin"].torque == pytest.approx(FRICTION / GEAR / ETA, rel=EXACT)


@pytest.mark.parametrize("way", [pytest.param("events", marks=pytest.mark.slow), "steps"])
def test_a_rover_that_sticks_asks_of_motors_what_an_ideal_one_does(way):
    machine = rover(friction=0.9)
    motor = ax.Motor(gear=GEAR, efficiency=ETA, rotor_inertia=1e-4)
    machine.drives[:] = [replace(drive, motor=motor) for drive in machine.drives]
    model = machine.derive().compile()
    given = {f"{name}.torque": 0.02 for name in ("fl", "fr", "rl", "rr")}
    run = ax.simulate(model, 1.0, input=given, save_every=0.01, **WAYS[way])
    ideal = ax.simulate(model, 1.0, input=given, save_every=0.01, contacts="ideal")
    for name in ("fl", "rr"):
        duty, same = run.motors[name], ideal.motors[name]
        assert duty.torque[1:] == pytest.approx(same.torque[1:], rel=1e-6)
        assert duty.lost == pytest.approx(same.lost, rel=1e-6)
        assert same.lost > 0.1


@pytest.mark.parametrize("way", WAYS)
def test_where_slip_ends_the_rotor_brakes_until_then_and_is_held_after(way):
    """Friction alone brakes the rotor through its gear, and the motor makes up for what is lost."""
    run = turned(way, 0.0, start={"turn.rate": 0.6})
    moved = I + ROTOR * GEAR**2
    stop, braking = moved * 0.6 / FRICTION, GEAR * ROTOR * FRICTION / moved
    duty = run.motors["spin"]
    expected = np.where(run.time < stop, braking * (1 / ETA - 1), 0.0)
    clear = np.abs(run.time - stop) > 0.011
    assert duty.torque[clear] == pytest.approx(expected[clear], abs=1e-9)


def test_parts_of_event_runs_have_the_forces_of_their_modes():
    run = ax.simulate(sphere().derive().compile(), 0.5, start={"vx": 1.0}, save_every=0.01)
    force = run.final["sole.normal"], run.between(0.1, 0.3)["sole.longitudinal"]
    whole = run["sole.normal"][-1], run["sole.longitudinal"][10:31]
    assert force[0] == whole[0] and np.array_equal(force[1], whole[1])


def test_batches_of_steps_have_the_accelerations_of_each_run():
    torques = np.array([FRICTION / GEAR, 0.05])
    run = turned("steps", torques, start={"turn.rate": 1.0})
    a = GEAR * (GEAR * torques - FRICTION) / (I + ROTOR * GEAR**2)
    expected = ROTOR * a + (torques - ROTOR * a) / ETA
    assert run.motors["spin"].torque == pytest.approx(
        np.broadcast_to(expected[:, np.newaxis], (2, len(run))), rel=1e-8
    )


def test_one_sample_of_steps_is_refused_by_name():
    run = turned("steps", 0.05)
    with pytest.raises(ax.NotApplicable, match="save_every"):
        _ = run.between(0.0, 0.0).motors


def test_differences_are_of_second_order_and_stay_on_one_side_of_a_change():
    """Exact for parabolas, halves^2 for others; jumps and corners do not spread."""
    errors = []
    for count in (101, 201):
        t = np.linspace(0.0, 2.0, count)
        errors.append(
            np.abs(differences(t, np.sin(3 * t)[:, None])[:, 0] - 3 * np.cos(3 * t)).max()
        )
    assert errors[0] / errors[1] > 3.5
    t = np.concatenate([np.linspace(0.0, 1.0, 21), np.linspace(1.1, 2.0, 7)])
    assert differences(t, (t**2)[:, None])[:, 0] == pytest.approx(2 * t, abs=1e-12)
    jump = np.where(t < 0.999, t, 5.0 - 2.0 * t)
    found = differences(t, jump[:, None])[:, 0]
    assert found == pytest.approx(np.where(t < 0.999, 1.0, -2.0), abs=1e-9)
    corner = np.abs(t - 1.0)
    found = differences(t, corner[:, None])[:, 0]
    assert np.abs(found) == pytest.approx(1.0, abs=1e-9)
    ended = np.where(t > 1.5, np.nan, t)
    found = differences(t, ended[:, None])[:, 0]
    assert found[t <= 1.5] == pytest.approx(1.0) and np.isnan(found[t > 1.5]).all()
