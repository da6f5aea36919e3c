"""What motions ask of motors, against closed forms; limits, batches, files."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import axode as ax
from tests.problems.carts import cart

I, J, N, ETA = 0.2, 3e-5, 40.0, 0.7  # flywheel, rotor, gear, its efficiency
TURN, T = 1.5, 2.0  # angle and time of the motion
NO_LIMITS = {"rotor_inertia": J, "gear": N, "efficiency": ETA}
ROUNDING = 1e-10


def flywheel(**motor: object) -> ax.Mechanism:
    wheel = ax.Mechanism("flywheel")
    disk = wheel.add_body("disk", mass=1.0, inertia=(I, I, I))
    wheel.add_joint("turn", ax.Revolute("z"), parent=wheel.ground, child=disk)
    wheel.add_motor("spin", "turn", **motor)
    return wheel


def turned(model: ax.Model, **options: object) -> ax.Trajectory:
    """From rest to rest by a cubic, whose acceleration is a straight line."""
    path = f"{TURN} * (3 * (t / {T})**2 - 2 * (t / {T})**3)"
    return ax.inverse_dynamics(model, {"turn": path}, times=T, **options)


def winch(**motor: object) -> ax.Mechanism:
    """A load of 5 kg that a drum of 0.1 m lifts."""
    lift = ax.Mechanism("winch")
    load = lift.add_body("load", mass=5.0, inertia=ax.Inertia.point())
    lift.add_joint("lift", ax.Prismatic("z"), parent=lift.ground, child=load)
    lift.add_motor("drum", "lift", gear=N / 0.1, **motor)
    return lift


def test_the_mean_square_of_a_rest_to_rest_turn_is_that_of_its_closed_form():
    """Torque falls from J n a + I a / (n eta) to 0, then to -(J n a + I a eta / n)."""
    duty = turned(flywheel(**NO_LIMITS).derive().compile()).motors["spin"]
    a = 6 * TURN / T**2
    up, down = J * N * a + I * a / (N * ETA), J * N * a + I * a * ETA / N
    assert duty.rms_torque == pytest.approx(np.sqrt((up**2 + down**2) / 6), rel=ROUNDING)
    assert duty.peak_torque == pytest.approx(up, rel=ROUNDING)
    assert duty.torque[-1] == pytest.approx(-down, rel=ROUNDING)
    assert duty.peak_speed == pytest.approx(1.5 * TURN / T * N, rel=1e-9)


@pytest.mark.parametrize("way", [1, -1])
def test_a_gear_loses_power_in_both_directions(way):
    """A load takes more torque to lift than an ideal gear, and holds less back when it sinks."""
    model = winch(efficiency=ETA).derive().compile()
    run = ax.inverse_dynamics(model, {"lift": f"{way} * 0.3 * t"}, times=2.0)
    duty, ideal = run.motors["drum"], 5.0 * 9.81 * 0.1 / N
    assert model.parameters == {} and run["drum.force"] == pytest.approx(ideal, rel=1e-3)
    held = run["drum.force"][0]
    assert duty.torque == pytest.approx(held / ETA if way > 0 else held * ETA, rel=ROUNDING)
    assert (duty.gear_loss > 0).all()
    given, taken = (held / ETA, 0.0) if way > 0 else (0.0, held * ETA)
    travel = 0.6 * N / 0.1
    assert duty.energy == pytest.approx(given * travel, rel=ROUNDING, abs=1e-12)
    assert duty.recovered == pytest.approx(taken * travel, rel=ROUNDING, abs=1e-12)


def test_energy_from_the_supply_is_heat_losses_and_motion():
    """What the supply gives is what windings and gears lose and what the run's balance has."""
    winding = {"torque_constant": 0.05, "resistance": 0.4, "inductance": 0.0008}
    model = flywheel(**NO_LIMITS, **winding).derive().compile()
    run = turned(model, save_every=T / 4000)
    duty = run.motors["spin"]
    field = 0.0008 * duty.current * np.gradient(duty.current, run.time)
    needed = duty.heat + duty.gear_loss + run["spin.power"] + field
    assert duty.electric_power == pytest.approx(needed, rel=1e-9, abs=1e-9)
    mechanical = np.trapezoid(duty.power - duty.gear_loss, run.time)
    assert mechanical == pytest.approx(run["supplied"][-1], abs=1e-7)
    kinetic = (I + J * N**2) * run["turn.rate"] ** 2 / 2  # the rotor's with it
    assert run["kinetic"] == pytest.approx(kinetic, rel=1e-12, abs=1e-15)
    assert duty.supply[1:-1] == pytest.approx(
        0.4 * duty.current[1:-1] + 0.05 * duty.speed[1:-1]
        + 0.0008 * np.gradient(duty.current, run.time)[1:-1], rel=1e-12,
    )  # fmt: skip


def test_a_winding_bounds_torque_by_speed():
    """The line from k V / R at rest to V / k, cut at the limit; braking has more."""
    duty = turned(
        flywheel(limit=0.5, torque_constant=0.1, resistance=2.0, voltage=24.0).derive().compile()
    ).motors["spin"]
    low, high = duty.ratings.range_at(np.array([0.0, 200.0, 240.0, 300.0, -200.0]))
    assert high == pytest.approx([0.5, 0.2, 0.0, -0.3, 0.5])
    assert low == pytest.approx([-0.5, -0.5, -0.5, -0.5, -0.2])


LIMITED = {
    "limit": ({"limit": 0.01}, "times its limit of 0.01 N m"),
    "continuous": ({"continuous": 0.005}, "root mean square"),
    "no_load_speed": ({"no_load_speed": 10.0}, "no-load speed of 10 rad/s"),
    "range": ({"limit": 1.0, "no_load_speed": 45.5}, "that it has at this speed"),
}


@pytest.mark.parametrize("what", LIMITED)
def test_limits_are_reported_with_motor_time_and_remedy(what):
    numbers, words = LIMITED[what]
    if what == "range":
        numbers = {**numbers, "limit": 0.025}
    model = flywheel(**NO_LIMITS, **numbers).derive().compile()
    with pytest.warns(ax.MotorLimitWarning, match=words) as caught:
        run = turned(model)
    text = str(caught[0].message)
    assert "motor 'spin'" in text and "Remedy: move more slowly" in text
    assert what in [excess.what for excess in run.motors.excesses] and not run.motors.ok
    if what != "continuous":
        assert "at t = " in text
    assert text.split("\n")[0].split(": ", 1)[1] in repr(run.motors)


def test_motors_that_can_do_it_are_not_mentioned():
    able = {"limit": 1.0, "continuous": 0.5, "no_load_speed": 500.0}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = turned(flywheel(**NO_LIMITS, **able).derive().compile())
    assert run.motors.ok and run.motors["spin"].share.max() < 1


def test_follow_and_feasible_report_motors():
    robot = cart((0.15, 0.03, 0.2))
    robot.drives[:] = [replace(drive, motor=ax.Motor(limit=0.01)) for drive in robot.drives]
    model = robot.derive().compile()
    fast = ax.paths.along("0.1 * t + t**2", "0", 2.0)
    with pytest.warns(ax.MotorLimitWarning, match="limit of 0.01 N m"):
        run = ax.paths.follow(model, fast)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = ax.feasible(model, run, friction=5.0)
    assert found.slips_at is None and found.tips_at is None
    assert not found.ok and found.overloaded[0].startswith("motor 'left' takes")
    assert "motors:   motor 'left'" in repr(found)


def test_simulate_reports_what_it_does_not_keep():
    """Inputs are cut to the limit; heat and speed are reported."""
    model = flywheel(limit=0.02, continuous=0.01, **NO_LIMITS | {"efficiency": 1.0})
    with pytest.warns(ax.MotorLimitWarning, match="0.02 N m root mean square") as caught:
        run = ax.simulate(model.derive().compile(), 1.0, input={"spin.torque": 0.5})
    assert len(caught) == 1 and run["spin.torque"] == pytest.approx(0.02)
    assert run.motors["spin"].saturated == 1.0


def test_batches_and_parameters():
    gear = ax.Parameter("n", N)
    model = flywheel(gear=gear, rotor_inertia=J, limit=0.02, continuous=0.01).derive().compile()
    ratios = np.array([10.0, 40.0, 80.0])
    with pytest.warns(ax.MotorLimitWarning, match="in 3 of 3 runs"):
        run = ax.simulate(
            model, 1.0, input={"spin.torque": 0.015}, parameters={"n": ratios}, method="rk4"
        )
    duty = run.motors["spin"]
    rates = ratios**2 * 0.015 / (I + J * ratios**2)
    assert duty.peak_speed == pytest.approx(rates, rel=1e-9)
    assert duty.peak_torque.shape == duty.rms_torque.shape == (3,)
    one = run.run(2).motors["spin"]
    assert one.peak_speed == pytest.approx(rates[2], rel=1e-9)


def test_files_keep_motors(tmp_path):
    given = {"limit": 0.02, "continuous": ax.Parameter("tc", 0.01) * 2, "no_load_speed": 300.0}
    given |= {"torque_constant": 0.05, "resistance": 0.4, "inductance": 1e-3, "voltage": 24.0}
    wheel = flywheel(**NO_LIMITS, **given)
    wheel.save(tmp_path / "wheel.toml")
    assert ax.load(tmp_path / "wheel.toml") == wheel
    model = wheel.derive().compile()
    assert model.parameters == {"tc": 0.01}
    model.save(tmp_path / "wheel.axm")
    again = ax.load_model(tmp_path / "wheel.axm")
    run = [
        ax.simulate(m, 1.0, input={"spin.torque": 0.001}, parameters={"tc": 0.001}, t_eval=[0.5])
        for m in (model, again)
    ]
    ours, theirs = (one.motors["spin"] for one in run)
    assert theirs.rms_torque == pytest.approx(ours.rms_torque, rel=1e-9)
    assert theirs.ratings.continuous == ours.ratings.continuous == pytest.approx(0.002)


WRONG = [
    ({"continuous": -1.0}, "continuous: must be > 0, got -1"),
    ({"efficiency": 1.2}, "efficiency: must be > 0 and at most 1, got 1.2"),
    ({"resistance": 1.0}, "resistance: says nothing without torque_constant"),
    ({"no_load_speed": float("nan")}, "no_load_speed: must be > 0, got nan"),
]


@pytest.mark.parametrize(("numbers", "words"), WRONG)
def test_motors_that_there_are_not(numbers, words):
    with pytest.raises(ax.MechanismError, match=words):
        flywheel(**numbers).check()


def test_wrong_uses():
    with pytest.raises(ax.InvalidArgument, match="has no 'torque'"):
        flywheel(torque=1.0)
    with pytest.raises(ax.InvalidArgument, match="not to both"):
        flywheel(motor=ax.Motor(), limit=1.0)
    run = turned(flywheel().derive().compile())
    with pytest.raises(ax.UnknownName, match="spin"):
        run.motors["wheel"]
    bare = ax.gallery.build("rolling_disk").derive().compile()
    with pytest.raises(ax.NotApplicable, match="has no motors"):
        _ = ax.simulate(bare, 0.1).motors


def test_a_run_from_a_file_does_not_know_its_motors(tmp_path):
    turned(flywheel().derive().compile()).save(tmp_path / "run.npz")
    with pytest.raises(ax.InvalidArgument, match=r"ax\.inverse_dynamics"):
        _ = ax.Trajectory.load(tmp_path / "run.npz").motors


def test_the_plot_shows_what_a_motor_can_give(tmp_path):
    able = {"limit": 0.02, "continuous": 0.01, "no_load_speed": 60.0}
    with pytest.warns(ax.MotorLimitWarning):
        run = turned(flywheel(**NO_LIMITS, **able).derive().compile())
    figure = run.motors.plot(save=tmp_path / "motors.png")
    labels = {line.get_label() for line in figure.axes[0].get_lines()}
    assert {"motion", "continuous", "root mean square"} <= labels
    assert figure.axes[0].get_xlabel() == "speed [rad/s]"
    assert (tmp_path / "motors.png").stat().st_size > 1000
