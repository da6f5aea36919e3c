"""Planned motions: end values, derivatives, limits, symmetry, and what a model makes of them."""

import itertools

import numpy as np
import pytest

import axode as ax
from axode.errors import InvalidArgument, UnknownName
from axode.model.model_parts import facts_of
from tests.textbook.test_caster_robot import caster_robot

TURNED = (0.3, -0.2, 1.1)
PLACES = [
    {"a": 0.0, "b": 0.3, "tool": ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))},
    {"a": 1.0, "b": 0.2, "tool": ((0.5, 0.0, 0.1), (0.0, np.pi / 2, 0.0))},
    {"a": 1.5, "b": -0.7, "tool": ((0.5, 0.4, 0.1), (2.9, 0.4, 0.0))},
    {"a": 0.3, "b": 0.1, "tool": ((0.2, 0.4, 0.3), TURNED)},
]
SPEED = {"a": 1.0, "b": 0.8, "tool": (0.5, 2.0)}
ACCELERATION = {"a": 3.0, "b": 5.0, "tool": (2.0, 8.0)}
JERK = {"a": 30.0, "b": 50.0, "tool": (20.0, 80.0)}


def moved(start: float, end: float, **limits: float) -> ax.motions.PlannedMotion:
    return ax.motions.trapezoidal({"a": start}, {"a": end}, **limits)


def all_motions() -> dict[str, ax.motions.PlannedMotion]:
    first, last = PLACES[0], PLACES[-1]
    both = {"speed": SPEED, "acceleration": ACCELERATION}
    return {
        "minimum jerk": ax.motions.minimum_jerk(first, last, 2.0),
        "smoothest within limits": ax.motions.minimum_jerk(first, last, **both, jerk=JERK),
        "trapezoid": ax.motions.trapezoidal(first, last, **both),
        "triangle": ax.motions.trapezoidal(first, last, acceleration=ACCELERATION),
        "seven pieces": ax.motions.trapezoidal(first, last, **both, jerk=JERK),
        "jerk alone": ax.motions.trapezoidal(first, last, jerk=JERK),
        "spline in given times": ax.motions.through(PLACES, times=[0.0, 1.0, 1.7, 3.0]),
        "spline": ax.motions.through(PLACES, **both),
        "spline with a stop": ax.motions.through(PLACES, **both, stops=[-2]),
    }


MOTIONS = all_motions()


# laws --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MOTIONS)
def test_ends_and_rest(name):
    motion = MOTIONS[name]
    y, rate, _ = motion.values([-1.0, 0.0, motion.duration, motion.duration + 1.0])
    ends = motion.waypoints.values[[0, 0, -1, -1]]
    np.testing.assert_allclose(y, ends, atol=1e-14)
    np.testing.assert_allclose(rate, 0.0, atol=1e-13)


@pytest.mark.parametrize("name", MOTIONS)
def test_derivatives_are_those_of_differences(name):
    motion, h = MOTIONS[name], 1e-5 * MOTIONS[name].duration
    times = np.linspace(0.0, motion.duration, 203)[1:-1]
    near = np.abs(times[:, np.newaxis] - motion.times).min(axis=1)
    times = times[near > 2 * h]
    y, rate, second = motion.values(times)
    before, after = motion.values(times - h), motion.values(times + h)
    np.testing.assert_allclose((after[0] - before[0]) / (2 * h), rate, atol=1e-7)
    np.testing.assert_allclose((after[1] - before[1]) / (2 * h), second, atol=1e-5)
    tool = slice(motion.names.index("tool.qw"), motion.names.index("tool.qz") + 1)
    np.testing.assert_allclose(np.linalg.norm(y[:, tool], axis=1), 1.0, atol=1e-14)


@pytest.mark.parametrize("name", MOTIONS)
def test_pieces_meet(name):
    """Position and speed are continuous, accelerations too but for the trapezoid and triangle."""
    motion = MOTIONS[name]
    knots = motion.curve.knots if name.startswith("spline") else motion.times
    inner, h = knots[1:-1], 1e-9
    left, right = motion.values(inner - h), motion.values(inner + h)
    np.testing.assert_allclose(left[:2], right[:2], atol=1e-7)
    if name not in ("trapezoid", "triangle"):
        ends = motion.values([0.0, motion.duration])[2]
        np.testing.assert_allclose(left[2], right[2], atol=1e-5)
        np.testing.assert_allclose(ends, 0.0, atol=1e-10)


@pytest.mark.parametrize("name", [name for name in MOTIONS if MOTIONS[name].limits])
def test_limits_are_kept_and_one_is_reached(name):
    margins = MOTIONS[name].margins
    if not margins:
        return
    assert min(margins.values()) > -1e-9
    if name != "smoothest within limits":  # there it may be the jerk
        assert min(margins.values()) < 1e-4


def test_every_interval_of_a_spline_comes_near_a_limit():
    motion = MOTIONS["spline"]
    knots = motion.curve.knots
    for first, last in itertools.pairwise(knots):
        v, a = motion.waypoints.magnitudes(motion.values(np.linspace(first, last, 400)))
        used = max((v / motion.limits["speed"]).max(), (a / motion.limits["acceleration"]).max())
        assert used > 0.9


def test_a_stop_stops_and_nothing_else_does():
    through, stopping = MOTIONS["spline"], MOTIONS["spline with a stop"]
    speeds = [m.waypoints.magnitudes(m.values(m.curve.knots))[0] for m in (through, stopping)]
    assert speeds[1][2].max() < 1e-12 and speeds[1][1].max() > 0.1
    assert (speeds[0][1:-1].max(axis=1) > 0.1).all()
    assert stopping.duration > through.duration
    np.testing.assert_allclose(stopping.values(stopping.curve.knots[2:3])[2], 0.0, atol=1e-10)


@pytest.mark.parametrize("name", ["minimum jerk", "trapezoid", "seven pieces", "jerk alone"])
def test_the_way_back_is_the_way_there_in_reverse(name):
    there = MOTIONS[name]
    first, last = PLACES[0], PLACES[-1]
    again = {
        "minimum jerk": lambda: ax.motions.minimum_jerk(last, first, 2.0),
        "trapezoid": lambda: ax.motions.trapezoidal(
            last, first, speed=SPEED, acceleration=ACCELERATION
        ),
        "seven pieces": lambda: ax.motions.trapezoidal(
            last, first, speed=SPEED, acceleration=ACCELERATION, jerk=JERK
        ),
        "jerk alone": lambda: ax.motions.trapezoidal(last, first, jerk=JERK),
    }[name]()
    times = np.linspace(0.01, there.duration - 0.01, 50)
    forward, back = there.values(times), again.values(there.duration - times)
    for channel in there.waypoints.channels:
        if channel.is_pose:  # a quaternion and its negative are one rotation
            k = slice(channel.first + 3, channel.first + 7)
            back[..., k] *= np.sign((forward[0, :1, k] * back[0, :1, k]).sum())
    np.testing.assert_allclose(forward[0], back[0], atol=1e-12)
    np.testing.assert_allclose(forward[1], -back[1], atol=1e-11)
    np.testing.assert_allclose(forward[2], back[2], atol=1e-9)


def test_closed_forms_of_durations():
    assert moved(0.0, 2.0, acceleration=4.0).duration == pytest.approx(2 * np.sqrt(2 / 4))
    assert moved(0.0, 2.0, speed=1.0, acceleration=4.0).duration == pytest.approx(2 + 1 / 4)
    seven = moved(0.0, 2.0, speed=1.0, acceleration=4.0, jerk=40.0)
    assert seven.duration == pytest.approx(2 + 1 / 4 + 4 / 40)  # distance/V + V/A + A/J
    assert seven.times.size == 8
    assert moved(0.0, 2.0, jerk=8.0).duration == pytest.approx(4 * np.cbrt(2 / 16))
    short = moved(0.0, 0.5, speed=10.0, acceleration=1.0, jerk=5.0)  # speed is not reached
    assert short.times.size == 7
    peak = short.values(short.duration / 2)[1].max()
    assert peak * (peak / 1.0 + 1.0 / 5.0) == pytest.approx(0.5)
    smooth = ax.motions.minimum_jerk({"a": 0.0}, {"a": 2.0}, speed=1.0)
    assert smooth.duration == pytest.approx(2 * 15 / 8)
    assert smooth.values(smooth.duration / 2)[1].max() == pytest.approx(1.0)


@pytest.mark.parametrize("jerk", [1e9, 1e6])
def test_a_large_limit_of_the_jerk_is_almost_none(jerk):
    limits = {"speed": 1.0, "acceleration": 4.0}
    assert moved(0.0, 2.0, **limits, jerk=jerk).duration == pytest.approx(
        moved(0.0, 2.0, **limits).duration + 4.0 / jerk, rel=1e-12
    )


@pytest.mark.parametrize("distance", [1e-12, 1e-6, 1e6])
@pytest.mark.parametrize("jerk", [None, 7.0])
def test_very_short_and_very_long_ways(distance, jerk):
    limits = {"speed": 1.3, "acceleration": 2.0} | ({} if jerk is None else {"jerk": jerk})
    motion = moved(0.5, 0.5 + distance, **limits)
    times = np.union1d(np.linspace(0, motion.duration, 1001), motion.times)
    _, rate, second = motion.values(times)
    assert np.abs(rate).max() <= 1.3 * (1 + 1e-9) and np.abs(second).max() <= 2.0 * (1 + 1e-9)
    assert motion.values(motion.duration)[0].item() == pytest.approx(0.5 + distance, rel=1e-15)


def test_speed_where_phases_of_seven_just_vanish():
    """Durations are continuous where the speed, or the acceleration, is just reached."""
    for speed, acceleration in ((0.5, 1.0), (1.0, 2.0), (np.cbrt(0.25), 5.0)):
        near = [
            moved(0.0, 1.0, speed=s, acceleration=a, jerk=2.0).duration
            for s in speed * np.array([1 - 1e-9, 1, 1 + 1e-9])
            for a in acceleration * np.array([1 - 1e-9, 1, 1 + 1e-9])
        ]
        assert np.ptp(near) < 1e-7


def test_infinity_means_no_limit():
    two = {"speed": {"a": np.inf, "b": 1.0}, "acceleration": {"a": 2.0, "b": np.inf}}
    motion = ax.motions.trapezoidal({"a": 0.0, "b": 0.0}, {"a": 1.0, "b": 1.0}, **two)
    assert motion.margins == {"b, speed": 0.0, "a, acceleration": 0.0}


def test_repeated_waypoints_count_once():
    spot = [{"a": x, "b": y} for x, y in ((0, 0), (1, 0.5), (2, 0))]
    near = {"a": 1 + 1e-9, "b": 0.5}
    limits = {"speed": 1.0, "acceleration": 2.0}
    once = ax.motions.through(spot, **limits)
    twice = ax.motions.through([*spot[:2], near, *spot[1:]], **limits, stops=[3])
    assert once.duration == pytest.approx(
        ax.motions.through([*spot[:2], near, *spot[1:]], **limits).duration
    )
    assert twice.duration == pytest.approx(
        ax.motions.through(spot, **limits, stops=[1]).duration, rel=1e-3
    )


# rotations ---------------------------------------------------------------------------------------


def rotation_at(motion, t):
    w, x, y, z = motion.values(t)[0][0, -4:]
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def test_a_body_turns_about_one_axis():
    """Half of the time is half of the angle, about the axis of the whole."""
    axis, angle = np.array([2.0, -1.0, 2.0]) / 3, 2.5
    end = [np.cos(angle / 2), *np.sin(angle / 2) * axis]
    motion = ax.motions.minimum_jerk(
        {"tool": ((0, 0, 0), np.eye(3))}, {"tool": ((0, 0, 0), end)}, 1.0
    )
    half = motion.values(0.5)[0][0, 3:]
    np.testing.assert_allclose(half, [np.cos(angle / 4), *np.sin(angle / 4) * axis], atol=1e-15)
    speed = motion.waypoints.magnitudes(motion.values(0.5))[0][0, 1]
    assert speed == pytest.approx(15 / 8 * angle)


def test_splines_turn_with_the_frame():
    """A rotation before all waypoints is one before the motion, one after them one after it."""
    from scipy.spatial.transform import Rotation

    left, right = Rotation.from_rotvec([0.3, 2.0, -0.4]), Rotation.from_rotvec([1.0, 0.2, 0.9])
    turns = [Rotation.from_euler("ZYX", place["tool"][1][::-1]) for place in PLACES]
    times = [0.0, 1.0, 1.7, 3.0]
    plain, turned = (
        ax.motions.through([{"tool": ((0, 0, 0), turn)} for turn in these], times=times)
        for these in (turns, [left * turn * right for turn in turns])
    )
    for t in (0.4, 1.3, 2.2):
        expected = left.as_matrix() @ rotation_at(plain, t) @ right.as_matrix()
        np.testing.assert_allclose(rotation_at(turned, t), expected, atol=1e-14)


def test_rotations_nearly_half_a_turn_apart():
    for angle in (np.pi - 1e-6, 3.0):
        places = [{"tool": ((0, 0, 0), (0, 0, k * angle))} for k in range(3)]
        motion = ax.motions.through(places, times=[0.0, 1.0, 2.0])
        y, rate, _ = motion.values(np.linspace(0, 2, 401))
        assert np.isfinite(rate).all()
        assert motion.waypoints.magnitudes(np.array([y, rate, rate]))[0].max() < 4 * angle
    with pytest.raises(InvalidArgument, match="makes half a turn from start to end"):
        ax.motions.minimum_jerk(places[0], {"tool": ((0, 0, 0), (0, 0, np.pi))}, 1.0)


# models ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def five_bar() -> ax.Model:
    return ax.gallery.build("five_bar").derive().compile()


@pytest.mark.slow
def test_inverse_of_joint_motions(five_bar):
    start = {"theta1": 2.0, "theta2": np.pi - 2.0}
    motion = ax.motions.minimum_jerk(start, {"theta1": 1.6, "theta2": 1.2}, 0.5, model=five_bar)
    assert motion.units == ("rad", "rad")
    run = ax.inverse_dynamics(five_bar, motion)
    assert run.time[-1] == 0.5 and len(run) == 501
    np.testing.assert_allclose(run["theta1_dot"], motion(run.time)["theta1_rate"], atol=1e-12)
    formula = "2.0 - 0.4 * (10 * (2*t)**3 - 15 * (2*t)**4 + 6 * (2*t)**5)"
    other = formula.replace("2.0 - 0.4", f"{np.pi - 2.0} - {np.pi - 3.2}")
    same = ax.inverse_dynamics(five_bar, {"theta1": formula, "theta2": other}, times=0.5)
    np.testing.assert_allclose(run["tau1"], same["tau1"], atol=1e-9)
    driven = ax.simulate(five_bar, 0.5, start=run.at(0.0), input=run)
    assert driven.final["theta1"] == pytest.approx(1.6, abs=1e-4)


def test_inverse_of_a_planar_pose(five_bar):
    """The pose of a link takes as many signals as it has numbers, and they agree."""
    k = facts_of(five_bar).bodies.index("crank1")
    start, end = (
        {"crank1": five_bar.poses(q)[k], "theta2": theta2}
        for q, theta2 in (
            (five_bar.home, np.pi - 2.0),
            (ax.assemble(five_bar, {"theta1": 1.7, "theta2": 1.3}).q, 1.3),
        )
    )
    run = ax.inverse_dynamics(five_bar, ax.motions.trapezoidal(
        start, end, acceleration={"crank1": (np.inf, 5.0), "theta2": 5.0}
    ), times=np.linspace(0, 0.1, 5))  # fmt: skip
    np.testing.assert_allclose(run["theta1"], 2.0 - 2.5 * run.time**2, atol=1e-9)


def test_splines_within_torques(five_bar):
    places = [{"theta1": x, "theta2": y} for x, y in ((2.0, 1.1), (1.7, 1.4), (1.8, 0.9))]
    limits = {"speed": 20.0, "acceleration": 300.0, "model": five_bar}
    free = ax.motions.through(places, **limits)
    slow = ax.motions.through(places, **limits, torque={"tau1": 0.5, "tau2": 1.0})
    assert slow.duration > 1.5 * free.duration
    run = ax.inverse_dynamics(five_bar, slow)
    used = max(np.abs(run["tau1"]).max() / 0.5, np.abs(run["tau2"]).max() / 1.0)
    assert 1 - 1e-3 < used < 1 + 1e-3
    same = ax.motions.through(places, **limits, torque=1e3)
    assert same.duration == free.duration


def test_splines_that_motors_cannot_hold():
    heavy = ax.gallery.build("five_axis_arm").derive().compile()
    names = [f"theta{k}" for k in range(1, 6)]
    places = [dict.fromkeys(names, 0.3), dict.fromkeys(names, 0.6)]
    with pytest.raises(InvalidArgument, match=r"standing still takes .* more than its lim"):
        ax.motions.through(places, acceleration=1.0, torque=0.01, model=heavy)


def test_formulas_are_the_motion():
    from axode.errors import NotApplicable

    start, end = {"a": 0.2, "b": 1.0}, {"a": 1.0, "b": 0.5}
    limits = {"speed": 1.0, "acceleration": 3.0}
    motions = [
        ax.motions.minimum_jerk(start, end, 2.0),
        ax.motions.trapezoidal(start, end, **limits, jerk=20.0),
        ax.motions.through([start, {"a": 2.0, "b": 0.0}, end], **limits),
    ]
    for motion in motions:
        for t in (-0.5, 0.0, 0.37, 0.61 * motion.duration, motion.duration, motion.duration + 1):
            formulas = motion.formulas(t)
            for name, column in motion(t).items():
                assert formulas[name] == pytest.approx(column.item(), abs=1e-12)
    with pytest.raises(NotApplicable, match="is no formula of time"):
        MOTIONS["minimum jerk"].formulas(0.5)


def test_feedback_along_a_motion():
    """A law that is traced once: reference, its acceleration, and feedback."""
    bot = ax.Mechanism("cart", gravity=(0, 0, 0))
    body = bot.add_body("body", mass=2.0, inertia=ax.Inertia.point())
    bot.add_joint("x", ax.Prismatic("x"), parent=bot.ground, child=body)
    bot.add_motor("motor", "x", input="f")
    motion = ax.motions.trapezoidal({"x": 0.0}, {"x": 1.0}, speed=1.0, acceleration=4.0)

    def law(s):
        wanted = motion.formulas(s.t)
        error, rate = wanted["x"] - s["x"], wanted["x_rate"] - s["x.rate"]
        return {"f": 2.0 * (wanted["x_acceleration"] + 100.0 * error + 20.0 * rate)}

    run = ax.simulate(bot.derive().compile(), motion.duration, start={"x": 0.1}, input=law)
    error = run["x"] - motion(run.time)["x"]
    np.testing.assert_allclose(error, 0.1 * (1 + 10 * run.time) * np.exp(-10 * run.time), atol=1e-6)


def test_samples_have_names_and_units(five_bar, tmp_path):
    motion = ax.motions.minimum_jerk({"theta1": 2.0}, {"theta1": 1.0}, 1.0, model=five_bar)
    table = motion.sampled(0.1)
    assert table.names == ("theta1", "theta1_rate", "theta1_acceleration")
    assert table.units == ("rad", "rad/s", "rad/s^2") and len(table) == 11
    assert "minimum jerk" in repr(motion) and "theta1" in repr(motion)


def test_samples_in_a_file_for_the_command_line(five_bar, tmp_path):
    from axode.cli import run

    motion = ax.motions.minimum_jerk(
        {"theta1": 2.0, "theta2": 1.1}, {"theta1": 1.8, "theta2": 1.2}, 1.0
    )
    file, out = tmp_path / "motion.csv", tmp_path / "torques.npz"
    table = motion.sampled()[motion.names]
    header = ",".join(["time", *table.names])
    np.savetxt(
        file, np.column_stack([table.time, table.values]), delimiter=",", header=header, comments=""
    )
    assert run(["inverse", "five_bar", "--motion", str(file), "--out", str(out)]) == 0
    found = ax.Trajectory.load(out)
    exact = ax.inverse_dynamics(five_bar, motion)
    np.testing.assert_allclose(found["tau1"], exact["tau1"], atol=1e-4)


def test_speeds_and_measures_move_too():
    robot = caster_robot().derive().compile()
    speeds = [name for name in robot.independent]
    motion = ax.motions.minimum_jerk(
        dict.fromkeys(speeds, 0.0), dict.fromkeys(speeds, 1.0), 1.0, model=robot
    )
    run = ax.inverse_dynamics(robot, motion)
    np.testing.assert_allclose(run.final[speeds[0]], 1.0)


# what is wrong -----------------------------------------------------------------------------------


def test_all_faults_at_once(five_bar):
    with pytest.raises(InvalidArgument) as caught:
        ax.motions.through(
            [{"theta1": 0.0, "b": 1.0}, {"theta1": "x", "c": 2.0}, {"theta1": np.inf, "b": 1.0}],
            speed=1.0,
            model=five_bar,
        )
    text = str(caught.value)
    assert "through: the arguments have 5 problems." in text
    assert "waypoint 1, 'theta1': expected a number, or a pose" in text
    assert "waypoint 2, 'theta1': must be finite" in text
    assert "waypoint 1, 'b' is missing" in text
    assert "waypoint 1: 'c' is not given at the others" in text
    assert "has no signal 'b'" in text


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        ({}, "acceleration or jerk: nothing limits a, b, which would move at once"),
        ({"speed": 1.0}, "acceleration or jerk: nothing limits a, b"),
        ({"acceleration": {"a": 1.0}}, "acceleration: no limit for 'b'; float('inf') means none"),
        ({"acceleration": {"a": 1.0, "b": 1, "c": 2}}, "'c' does not move; what moves is a, b"),
        ({"acceleration": -1.0}, "acceleration, 'a': expected a number > 0, got -1.0"),
        ({"acceleration": {"a": "x", "b": 1}}, "acceleration, 'a': expected a number > 0"),
    ],
)
def test_wrong_limits(limits, text):
    with pytest.raises(InvalidArgument, match="problem") as caught:
        ax.motions.trapezoidal({"a": 0.0, "b": 0.0}, {"a": 1.0, "b": 2.0}, **limits)
    assert text in str(caught.value)


def test_wrong_places(five_bar):
    cases = [
        (lambda: ax.motions.minimum_jerk({"a": 1}, {"a": 1}, 1.0), "are the same place"),
        (lambda: ax.motions.minimum_jerk({"a": 0}, {"a": 1}), "give either duration or limits"),
        (lambda: ax.motions.minimum_jerk({"a": 0}, {"a": 1}, -1.0), "duration: must be finite"),
        (lambda: ax.motions.minimum_jerk({"a": 0}, {"a": 1}, speed=np.inf), "nothing limits a"),
        (lambda: ax.motions.minimum_jerk({}, {"a": 1}, 1.0), "expected values by name, such as"),
        (
            lambda: ax.motions.through([ax.assemble(five_bar), {"a": 1}], times=[0, 1]),
            "Name what moves: {name: state[name] for name in (...)}",
        ),
        (lambda: ax.motions.through({"a": 1}), "a list of two waypoints or more is needed"),
        (lambda: ax.motions.through([{"a": 1}, {"a": 2}]), "give either times or limits"),
        (
            lambda: ax.motions.through([{"a": 1}, {"a": 2}], speed=1.0, stops=[7]),
            "stops: 7 is none of the waypoints 0 to 1",
        ),
        (
            lambda: ax.motions.through([{"a": 1}, {"a": 2}], speed=1.0),
            "acceleration: no limit for a",
        ),
        (
            lambda: ax.motions.through([{"a": 1}, {"a": 1}], acceleration=1.0),
            "all waypoints are the same place",
        ),
        (
            lambda: ax.motions.through([{"a": 1}, {"a": 2}], acceleration=1.0, torque=1.0),
            "torque: needs a model, and limits of speed and acceleration",
        ),
        (
            lambda: moved(0.0, 1e300, speed=1e-300, acceleration=1.0),
            "speed: 1e-300 is too little for the distance",
        ),
        (
            lambda: ax.motions.through([{"a": 1}, {"a": 2}], times=[0.5, 1.0]),
            "times: one per waypoint is needed, the first zero; got 2 from 0.5 s",
        ),
        (
            lambda: ax.motions.through([{"a": 1}, {"a": 2}], times=[0.0, 0.0]),
            "they have to increase",
        ),
        (
            lambda: ax.motions.through(
                [{"b": ((0, 0, 0), (0, 0, 0))}, {"b": 1.0}], times=[0, 1]
            ),
            "a pose at one waypoint and a number at another",
        ),
        (
            lambda: ax.motions.minimum_jerk(
                {"b": ((0, 0, 0), (1, 1, 0, 0))}, {"b": ((0, 0, 0), (1, 0, 0, 0))}, 1.0
            ),
            "start, 'b': the quaternion w, x, y, z must have length 1",
        ),
        (
            lambda: ax.motions.through(
                [{"b": ((0, 0, 0), (0, 0, 0))}, {"b": ((0, 0, 1), (0, 0, 0))}], acceleration=1.0
            ),
            "give limits by name, a pair (position, rotation) for 'b'",
        ),
        (
            lambda: ax.motions.trapezoidal(
                {"b": ((0, 0, 0), (0, 0, 0))},
                {"b": ((0, 0, 1), (0, 0, 0))},
                acceleration={"b": 1.0},
            ),
            "expected two numbers > 0, for position and rotation, got 1.0",
        ),
    ]  # fmt: skip
    for call, text in cases:
        with pytest.raises(InvalidArgument) as caught:
            call()
        assert text in str(caught.value)


def test_wrong_names(five_bar):
    with pytest.raises(UnknownName, match="has no body 'arm'"):
        ax.inverse_dynamics(
            five_bar,
            ax.motions.minimum_jerk(
                {"arm": ((0, 0, 0), (0, 0, 0))}, {"arm": ((0, 0, 1), (0, 0, 0))}, 1.0
            ),
        )
    with pytest.raises(InvalidArgument, match="has no body 'arm'"):
        ax.motions.minimum_jerk(
            {"arm": np.eye(4)}, {"arm": ((0, 0, 1), (0, 0, 0))}, 1.0, model=five_bar
        )
    short = ax.motions.minimum_jerk(
        {"theta1": 0, "crank1.theta1": 0}, {"theta1": 1, "crank1.theta1": 1}, 1.0
    )
    with pytest.raises((InvalidArgument, UnknownName)):
        ax.inverse_dynamics(five_bar, short)
