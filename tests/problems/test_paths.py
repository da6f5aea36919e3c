"""Paths, and robots that drive them: geometry, admissibility, and the tables of the literature.

The caster robot is that of Saha and Angeles, "Dynamics of nonholonomic mechanical systems using a
natural orthogonal complement", *J. Applied Mechanics* 58, 1991, section 6, which drives a circle
and two parallel lines joined by a smooth curve; the numbers come from closed forms.
"""

import numpy as np
import pytest

import axode as ax
import random_mechanisms as rm
from axode.motions import paths
from axode.motions.planned_motion import SAMPLES
from tests.textbook.test_caster_robot import A, B, D, caster_robot

PATHS = {
    "straight": paths.straight(3.0, 2.0),
    "backwards": paths.straight(-3.0, 2.0),
    "steady": paths.straight(3.0, speed=1.5, start="moving"),
    "circle": paths.circle(2.0, speed=1.0),
    "right turn": paths.circle(-2.0, 4.0, turns=0.5, start="smooth"),
    "parallel lines": paths.parallel_lines(1.0, 2.0, 8.0),
    "lane change": paths.parallel_lines(-0.5, 1.5, speed=0.8, lead=0.4, start="moving"),
    "ellipse": paths.along("2 * cos(t)", "sin(t)", 3.0),
    "placed": paths.circle(1.0, 3.0).placed(0.4, -0.2, 1.0),
}


@pytest.fixture(scope="module")
def robot() -> ax.Model:
    """The caster robot without friction; it drives along its y."""
    mechanism = caster_robot()
    mechanism.dampers.clear()
    return mechanism.derive().compile()


# geometry ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PATHS)
def test_derivatives_and_heading(name):
    path, h = PATHS[name], 1e-4
    times = np.linspace(0.01, path.duration - 0.01, 301)
    here = path.pose(times)
    slope = (path.pose(times + h) - path.pose(times - h)) / (2 * h)
    size = np.abs(here).max() + 10
    np.testing.assert_allclose(slope[:, 0], here[:, 1], atol=1e-6 * size)
    np.testing.assert_allclose(slope[:, 1], here[:, 2], atol=1e-5 * size)
    across = here[0, 1] * np.sin(here[2, 0]) - here[1, 1] * np.cos(here[2, 0])
    assert np.abs(across).max() < 1e-12
    assert np.abs(here[:2, 1]).max() > 0.1


def test_circle_closes_and_keeps_its_speed():
    pose = PATHS["circle"](np.linspace(0, 4 * np.pi, 50))
    np.testing.assert_allclose(np.hypot(pose["x"], pose["y"] - 2.0), 2.0)
    np.testing.assert_allclose(np.hypot(pose["x_rate"], pose["y_rate"]), 1.0)
    np.testing.assert_allclose(pose["heading_rate"], 0.5)
    assert abs(PATHS["circle"].duration - 4 * np.pi) < 1e-12


def test_parallel_lines():
    """Straight, then to the side by the distance, then straight; the length is that of the way."""
    path = paths.parallel_lines(1.0, 2.0, speed=0.5, lead=0.7, start="moving")
    times = np.linspace(0, path.duration, 20001)
    pose = path(times)
    assert (pose["y"][pose["x"] <= 0.7] == 0).all()
    np.testing.assert_allclose(pose["y"][pose["x"] >= 2.7], 1.0)
    np.testing.assert_allclose(np.hypot(pose["x_rate"], pose["y_rate"]), 0.5, rtol=1e-12)
    way = np.hypot(np.diff(pose["x"]), np.diff(pose["y"])).sum()
    assert abs(way - 0.5 * path.duration) < 1e-6
    np.testing.assert_allclose([pose["x"][-1], pose["y"][-1]], [3.4, 1.0], atol=1e-12)
    # the second derivative of the heading has no jump: its steps shrink with those of time
    coarse = np.abs(np.diff(pose["heading_acceleration"][::10])).max()
    fine = np.abs(np.diff(pose["heading_acceleration"])).max()
    assert fine < coarse / 8 and coarse > 1e-3


def test_smooth_starts_and_stops_at_rest():
    pose = PATHS["parallel lines"](np.array([0.0, 8.0]))
    for name in ("x", "y", "heading"):
        assert np.abs([pose[f"{name}_rate"], pose[f"{name}_acceleration"]]).max() < 1e-12


# tables ------------------------------------------------------------------------------------------


def test_steady_circle(robot):
    """Mass centre on a circle of 2 m at 0.4 rad/s; the caster stands where
    -(a + b) omega sin psi + v_j cos psi = d omega, and torques are purely Coriolis."""
    turn = 0.4
    v = turn * np.sqrt(2.0**2 - A**2)
    psi = 1.391916782460646
    assert abs(-(A + B) * turn * np.sin(psi) + v * np.cos(psi) - D * turn) < 1e-12
    path = paths.circle(v / turn, speed=v, turns=0.3)
    run = paths.follow(robot, path, forward="y", start={"caster_bracket": psi}, save_every=0.1)
    table = {
        "wheel1.rate": 8.985587016619379,
        "wheel2.rate": 6.985587016619379,
        "caster_bracket": psi,
        "caster.rate": 8.071678883602841,
        "wheel1.torque": -0.10394553480729635,
        "wheel2.torque": 0.13370553480729633,
    }
    for name, value in table.items():
        np.testing.assert_allclose(run[name], value, rtol=1e-8)
    assert run["path.residual"].max() < 1e-12


def test_the_caster_finds_its_place(robot):
    """Started elsewhere it swings into the same angle, being trailed."""
    v = 0.4 * np.sqrt(2.0**2 - A**2)
    path = paths.circle(v / 0.4, speed=v, turns=0.3)
    run = paths.follow(robot, path, forward="y", start={"caster_bracket": 0.9})
    assert run["caster_bracket"][0] == 0.9
    assert abs(run["caster_bracket"][-1] - 1.391916782460646) < 1e-6


def test_two_lines_joined_by_a_quintic(robot):
    y = "0.6 * (10 * (t / 3)**3 - 15 * (t / 3)**4 + 6 * (t / 3)**5)"
    run = paths.follow(
        robot,
        paths.along("0.8 * t", y, 3.0),
        forward="y",
        start={"caster_bracket": np.pi / 2},
        save_every=0.1,
    )
    table = {
        0.5: (
            1.383160980432397,
            9.216969156150467,
            6.949612660265956,
            -0.022428518607593692,
            0.16783479177690708,
        ),
        1.5: (
            1.5518755449518822,
            8.835298523536146,
            8.835298523536146,
            -0.137392824177118,
            0.13743654227795243,
        ),
        2.4: (
            1.7672163731610644,
            6.988785564218072,
            9.303457498049317,
            0.0873795759786922,
            -0.19087251334971944,
        ),
    }
    names = ("caster_bracket", "wheel1.rate", "wheel2.rate", "wheel1.torque", "wheel2.torque")
    for t, row in table.items():
        k = round(t / 0.1)
        np.testing.assert_allclose([run[name][k] for name in names], row, rtol=1e-7, atol=1e-9)


def test_driving_the_torques_follows_the_path(robot):
    path, h = paths.straight(1.0, 2.0), 0.002
    start = {"caster_bracket": np.pi / 2}
    run = paths.follow(robot, path, forward="y", start=start, save_every=h)
    forces = {name: run[name] for name in robot.inputs}
    driven = ax.simulate(
        robot,
        2.0,
        start={**start, "base.yaw": -np.pi / 2},
        save_every=h,
        method="rk4",
        step=h / 2,
        input=ax.Sampled(forces, period=h, between="linear"),
    )
    # straight lines between samples of an acceleration a(t) are h^2 / 12 a'' too much on average
    more = h**2 / 12 * (path(driven.time)["x_acceleration"] - 60 / 2**3 * driven.time)
    np.testing.assert_allclose(driven["base.x"] - run["path.x"], more, atol=1e-8)
    assert np.abs(more).max() > 1e-6


# admissibility -----------------------------------------------------------------------------------


def test_a_path_across_the_wheels_is_refused(robot):
    """Forward along x, the axle: all of the speed is left over, and said to be."""
    path = paths.circle(2.0, speed=1.5, turns=0.1)
    left = paths.admissible(robot, path, forward="x", save_every=0.1)
    np.testing.assert_allclose(left, 1.5, rtol=1e-9)
    with pytest.raises(
        ax.InvalidArgument, match=r"circle.*(do not allow).*t = 0 s.*1\.5(.|\n)*forw"
    ):
        paths.follow(robot, path, forward="x")
    assert paths.admissible(robot, path, forward="y", save_every=0.1).max() < 1e-12


def test_a_point_off_the_axle_needs_its_own_heading(robot):
    """The mass centre, at a behind the axle, moves at an angle to the robot: v_i = a omega."""
    turn, radius = 0.4, 2.0
    path = paths.circle(radius, speed=turn * radius, turns=0.2)
    with pytest.raises(ax.InvalidArgument, match="do not allow"):
        paths.follow(robot, path, forward="y", point="platform")
    # its velocity points outward of the robot's heading by asin(a / radius)
    aside = np.arcsin(A / radius)
    wrong, right = (path.looking(lambda t, x=x: turn * t + x) for x in (-aside, aside))
    left = paths.admissible(robot, wrong, forward="y", point="platform", save_every=0.2)
    assert left.max() > 0.01
    run = paths.follow(
        robot,
        right,
        forward="y",
        point="platform",
        save_every=0.2,
        start={"caster_bracket": 1.391916782460646},
    )
    np.testing.assert_allclose(run["wheel1.rate"], 8.985587016619379, rtol=1e-8)


def test_points_by_name():
    mechanism = caster_robot()
    mechanism.measure("hitch", "position", body="platform", at=(0.0, -0.3, 0.0))
    model = mechanism.derive().compile()
    run = paths.follow(
        model,
        paths.straight(0.5, 1.0),
        forward="y",
        point="hitch",
        save_every=0.25,
        start={"caster_bracket": np.pi / 2},
    )
    np.testing.assert_allclose(run["hitch.x"], run["path.x"], atol=1e-12)
    np.testing.assert_allclose(run["base.x"], run["path.x"] + 0.3, atol=1e-9)
    with pytest.raises(ax.UnknownName, match=r"point 'hitsch'.*\n.*hitch"):
        paths.follow(model, paths.straight(0.5, 1.0), point="hitsch")


@pytest.fixture(scope="module")
def mecanum() -> ax.Model:
    return rm.mecanum_base().derive().compile()


def test_omnidirectional_robot_looks_where_it_likes(mecanum):
    """A circle with the heading held still: wheel rates are those of a pure translation."""
    path = paths.circle(1.0, speed=0.5, turns=0.25).looking(0.3)
    run = paths.follow(mecanum, path, save_every=0.1)
    np.testing.assert_allclose(run["base.yaw"], 0.3, atol=1e-12)
    np.testing.assert_allclose(run["base.x"], run["path.x"], atol=1e-10)
    assert np.abs(run["base.yaw_rate"]).max() < 1e-12
    np.testing.assert_allclose(np.hypot(run["base.surge"], run["base.sway"]), 0.5, rtol=1e-12)
    turning = paths.follow(mecanum, paths.circle(1.0, speed=0.5, turns=0.25), save_every=0.1)
    np.testing.assert_allclose(turning["base.yaw_rate"], 0.5, rtol=1e-12)


def test_a_floating_base_follows_too():
    """The same cart on a planar and on a floating base: the same rates and torques."""
    from tests.problems.carts import cart

    path = paths.parallel_lines(0.4, 1.0, 4.0).placed(1.0, 2.0, 2.5)
    runs = [
        paths.follow(cart(base=base).derive().compile(), path, save_every=0.1)
        for base in ("planar", "floating")
    ]
    for name in ("left.rate", "right.rate", "left.torque", "right.torque"):
        np.testing.assert_allclose(runs[0][name], runs[1][name], atol=1e-8)
    assert np.ptp(runs[0]["left.torque"]) > 0.1
    np.testing.assert_allclose(runs[1]["base.x"], runs[1]["path.x"], atol=1e-9)


@pytest.mark.slow
def test_what_the_path_leaves_open_is_asked_for():
    """A balancer's pitch is not told by a path; given besides, it is followed."""
    model = rm.balancer().derive().compile()
    path = paths.straight(1.0, 2.0)
    with pytest.raises(ax.InvalidArgument, match="undetermined"):
        paths.follow(model, path)
    with pytest.warns(ax.UnderactuatedMotionWarning):
        run = paths.follow(model, path, others={"pitch": "0.1 * sin(t)"}, save_every=0.1)
    np.testing.assert_allclose(run["base.pitch"], 0.1 * np.sin(run.time), atol=1e-10)
    np.testing.assert_allclose(run["base.x"], run["path.x"], atol=1e-10)


@pytest.mark.slow
def test_a_path_tells_how_to_steer():
    """A tricycle: the tangent of the steering angle is length times curvature, also at rest."""
    model = ax.gallery.build("tricycle", L=0.7).derive().compile()
    sine = paths.along("t", "sin(t)", 1.5).placed(1.0, -2.0, 2.5)
    run = paths.follow(model, sine, save_every=0.05)
    t = run.time
    np.testing.assert_allclose(
        np.tan(run["delta"]), -0.7 * np.sin(t) / (1 + np.cos(t) ** 2) ** 1.5, atol=1e-11
    )
    told = {"delta": "atan(-0.7 * sin(t) / (1 + cos(t)**2)**1.5)"}
    same = paths.follow(model, sine, others=told, save_every=0.05)
    for name in ("delta_dot", "phi_L", "tau_steer", "tau_drive"):
        np.testing.assert_allclose(run[name], same[name], atol=1e-7)
    assert np.ptp(run["tau_steer"]) > 1e-3
    from_rest = paths.follow(model, paths.circle(-2.0, 4.0, turns=0.1, start="smooth"))
    np.testing.assert_allclose(np.tan(from_rest["delta"]), -0.35, atol=1e-9)
    with pytest.raises(ax.InvalidArgument, match="do not allow it"):
        paths.follow(model, paths.circle(2.0, 4.0).looking(0.0))


def bend(t):
    """From a line into an arc of 2 m, at t = 1 s."""
    arc = paths.circle(2.0, speed=1.0).pose(np.maximum(t - 1.0, 0.0))
    zero = np.zeros_like(t)
    line = np.array([[t - 1.0, zero + 1.0, zero], [zero, zero, zero], [zero, zero, zero]])
    return np.where(t < 1.0, line, arc)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tricycle", r"curvature jumps at t = (0.999|1).*'delta'.* by 0.464 rad"),
        ("differential_drive", r"curvature .*jumps at t = (0.99|1).* by 0.5 rad/s"),
    ],
)
def test_curvature_does_not_jump(name, message):
    """Neither a fork nor two wheels follow at once; both are told the remedy."""
    model = ax.gallery.build(name).derive().compile()
    with pytest.raises(ax.InvalidArgument, match=message + r"(.|\n)*parallel_lines"):
        paths.follow(model, paths.Path(3.0, bend, "bend"), save_every=0.5)


def test_velocity_does_not_jump(mecanum):
    def corner(t):
        out, zero = np.minimum(t, 1.0), np.zeros_like(t)
        return np.array(
            [[out, 1.0 * (t < 1.0), zero], [t - out, 1.0 * (t >= 1.0), zero], [zero, zero, zero]]
        )

    with pytest.raises(ax.InvalidArgument, match=r"velocity jumps at t = (0.99|1).* by -1 m/s"):
        paths.follow(mecanum, paths.Path(2.5, corner, "corner"), save_every=0.5)


@pytest.mark.parametrize("name", ["differential_drive", "tricycle"])
def test_sharp_turns_are_no_jumps(name):
    """A hundredth of the duration to turn in is steep, and smooth."""
    path = paths.along("t", "0.3 * sqrt((t - 2)**2 + 0.02**2)", 4.0)
    assert np.abs(path(np.linspace(0, 4, 999))["heading_rate"]).max() > 10
    run = paths.follow(ax.gallery.build(name).derive().compile(), path, save_every=0.1)
    assert run["path.residual"].max() < 1e-9


@pytest.mark.slow
def test_samples_of_steering_are_taken_as_exactly_as_splines_are():
    model = ax.gallery.build("tricycle", L=0.7).derive().compile()
    path = paths.parallel_lines(1.0, 2.0, speed=0.5, start="moving")
    pose = path(np.linspace(0.0, path.duration, SAMPLES + 1))
    told = {"delta": np.arctan(0.7 * pose["heading_rate"] / 0.5)}
    given, found = (paths.follow(model, path, others=x, save_every=0.1) for x in (told, {}))
    np.testing.assert_allclose(given["phi_L"], found["phi_L"], atol=1e-4)
    np.testing.assert_allclose(given["tau_drive"], found["tau_drive"], atol=1e-3)
    with pytest.raises(ax.InvalidArgument, match=r"samples of delta(.|\n)*leave out what steers"):
        paths.follow(model, path, others={"delta": 1.1 * told["delta"]})


def test_steering_waits_while_the_path_stops():
    """Out and back on the same arc, at rest midway: the fork stays where it is."""
    arc = paths.circle(2.0, 2.0, turns=0.2, start="smooth")

    def pose(t):
        there, back = arc.pose(np.minimum(t, 2.0)), arc.pose(np.clip(4.0 - t, 0.0, 2.0))
        back[:, 1] *= -1
        return np.where(t < 2.0, there, back)

    model = ax.gallery.build("tricycle", L=0.7).derive().compile()
    run = paths.follow(model, paths.Path(4.0, pose, "shuttle"), save_every=0.1)
    np.testing.assert_allclose(np.tan(run["delta"]), 0.35, atol=1e-9)
    np.testing.assert_allclose(run["phi_L"][-1], run["phi_L"][0], atol=1e-9)
    assert np.ptp(run["phi_L"]) > 1


def test_two_steered_wheels_let_the_heading_be_chosen():
    bot = ax.Mechanism("bisteerable")
    bot.add_body("body", mass=50, inertia=(2, 2, 3))
    bot.add_joint("base", ax.Planar(), parent="ground", child="body", at=(0, 0, 0.1))
    for name, x in (("front", 0.5), ("rear", -0.4)):
        bot.add_body(f"{name}_fork", mass=2, inertia=(0.02, 0.02, 0.02))
        bot.add_joint(
            f"{name}_steer", ax.Revolute("z"), parent="body", child=f"{name}_fork", at=(x, 0, 0)
        )
        bot.add_motor(f"{name}_steer", f"{name}_steer")
        bot.add_wheel(name, ax.Rolling(0.1), on=f"{name}_fork", mass=1, motor=True)
    path = paths.along("t", "0.3 * sin(t)", 1.0).looking("0.2 * t")
    run = paths.follow(bot.derive().compile(), path, save_every=0.1)
    t = run.time
    np.testing.assert_allclose(run["base.yaw"], 0.2 * t, atol=1e-10)
    for name, x in (("front", 0.5), ("rear", -0.4)):  # along the velocity of its own axle
        east = 1 - 0.2 * x * np.sin(0.2 * t)
        north = 0.3 * np.cos(t) + 0.2 * x * np.cos(0.2 * t)
        np.testing.assert_allclose(
            run[f"{name}_steer"], np.arctan2(north, east) - 0.2 * t, atol=1e-10
        )


def test_a_sleigh_glides_straight_without_motors():
    model = ax.gallery.build("chaplygin_sleigh").derive().compile()
    run = paths.follow(model, paths.straight(2.0, speed=1.0, start="moving"), save_every=0.1)
    assert max(np.abs(run[f"{name}.missing"]).max() for name in model.independent) < 1e-12
    with pytest.warns(ax.UnderactuatedMotionWarning):
        paths.follow(model, paths.straight(2.0, 2.0), save_every=0.1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: paths.straight(1.0), "either duration or speed"),
        (lambda: paths.straight(1.0, 2.0, speed=1.0), "either duration or speed"),
        (lambda: paths.straight(0.0, 2.0), "length"),
        (lambda: paths.straight(1.0, 2.0, start="jerky"), "'jerky'"),
        (lambda: paths.circle(0.0, 2.0), "radius"),
        (lambda: paths.parallel_lines(1.0, -2.0, 3.0), "length"),
        (lambda: paths.along("t", "q", 1.0), "path, y: 'q'"),
        (lambda: paths.along("t**2", "0", 1.0)(np.array([0.0, 1.0])), "stands still at t = 0 s"),
    ],
)
def test_paths_that_are_refused(make, message):
    with pytest.raises((ax.InvalidArgument, ax.UnknownName), match=message):
        make()


def test_machines_without_a_base_are_refused():
    with pytest.raises(ax.NotApplicable, match="Planar or Floating"):
        paths.follow(rm.four_bar().derive().compile(), paths.straight(1.0, 1.0))
    with pytest.raises(ax.InvalidArgument, match="expected a Path"):
        paths.follow(rm.caster_robot().derive().compile(), "circle")


def four_wheels(angle):
    """A car whose front wheels steer by the clock, in parallel, or freely."""
    car = ax.Mechanism("car")
    body = car.add_body("body", mass=100.0, inertia=(5, 5, 8))
    car.add_joint("base", ax.Planar(), parent=car.ground, child=body, at=(0, 0, 0.1))
    for side, y in (("left", 0.3), ("right", -0.3)):
        car.add_wheel(f"rear_{side}", ax.Rolling(0.1), on=body, at=(0, y, 0), mass=1.0)
        fork = car.add_body(f"fork_{side}", mass=1.0, inertia=(0.01, 0.01, 0.01))
        car.add_joint(f"steer_{side}", ax.Revolute("z"), parent=body, child=fork, at=(0.8, y, 0))
        car.add_wheel(f"front_{side}", ax.Rolling(0.1), on=fork, mass=1.0)
        car.add_motor(f"drive_{side}", f"rear_{side}")
        if angle is not None:
            car.prescribe(f"steer_{side}", angle)
    return car.derive().compile()


@pytest.mark.parametrize("angle", [lambda t: 0.2 * np.sin(t), lambda t: 0.3 + 0 * t, None])
def test_wheels_that_conflict_are_named_by_their_conflict(angle):
    """Parallel front wheels leave no speed, free ones nothing but to steer; LAPACK has no say."""
    model = four_wheels(angle)
    (conflict,) = model.equations.mobility.conflicts
    for verb in (paths.follow, paths.admissible)[: 2 if angle else 1]:
        with pytest.raises(ax.InvalidArgument) as caught:
            verb(model, paths.circle(5.0, speed=0.5))
        assert conflict in str(caught.value)
