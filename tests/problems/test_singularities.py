"""Singularities: what the literature knows of robots, near them and whatever describes them."""

import math
import warnings

import numpy as np
import pytest

import axode as ax
import random_mechanisms
from axode.mechanism.values.expressions import numeric
from problems import parallel_robots
from variants import further

KINDS = ("serial", "parallel", "mobility", "passive")
ZERO = 1e-12  # of margins in closed form; states are closed to the last digits
NEAR = 1e-5
ORDER = 30.0  # a margin of this order: within this factor


def rows_match(found, expected, *, size=1e-9):
    """Check rows up to their sign."""
    sign = np.sign((found * expected).sum(axis=-1, keepdims=True))
    np.testing.assert_allclose(found * sign, expected, atol=size)


@pytest.fixture(scope="module")
def hexapod():
    return parallel_robots.hexapod()


LEVEL = {"c_M.x": 0.0, "c_M.y": 0.0, "c_M.z": 1.1, "roll": 0.0, "pitch": 0.0}


def legs_of(robot, state):
    """Unit vectors and platform points of the legs of the flight simulator."""
    from axode.gallery.six_legged_platform import BETA, PI
    from axode.numerics.rotations import from_angles

    at = ax.assemble(robot.model, state)
    R = from_angles(np.array([at["roll"], at["pitch"], at["yaw"]]))
    centre = np.array([at[f"c_M.{axis}"] for axis in "xyz"])
    base = np.array([[math.cos(b), math.sin(b), 0.0] for b in BETA])
    arm = np.array([[0.5 * math.cos(p), 0.5 * math.sin(p), -0.05] for p in PI]) @ R.T
    leg = centre + arm - base
    return leg / np.linalg.norm(leg, axis=1)[:, np.newaxis], arm


# Jacobians ----------------------------------------------------------------------------------------


def test_gough_stewart_jacobians_are_the_legs_lines(hexapod):
    state = {**LEVEL, "c_M.x": 0.1, "roll": 0.2, "pitch": -0.1, "yaw": 0.3}
    found = hexapod.jacobians(state)
    s, arm = legs_of(hexapod, state)
    expected = np.concatenate([np.cross(arm, s), s], axis=1)
    rows_match(found.direct, expected)
    np.testing.assert_allclose(found.inverse, np.eye(6), atol=1e-9)
    assert found.constraint.shape == (0, 6)
    assert found.components == ("wx", "wy", "wz", "vx", "vy", "vz")
    np.testing.assert_allclose(found.direct @ found.forward, found.inverse, atol=1e-9)
    assert "direct 6 x 6" in repr(found)


def test_twist_at_another_point(hexapod):
    state = {**LEVEL, "yaw": 0.3}
    point = np.array([0.1, -0.2, 0.3])
    whole, moved = hexapod.jacobians(state), hexapod.jacobians(state, at=point)
    offset = ax.assemble(hexapod.model, state)
    R = hexapod.model.poses(offset.q)[hexapod.model.bodies.index("platform"), :3, :3]
    w = whole.forward[:3]
    expected = whole.forward[3:] + np.cross(w, R @ point, axisa=0, axisc=0)
    np.testing.assert_allclose(moved.forward[3:], expected, atol=1e-9)


def test_planar_rrr_jacobians():
    """C. Gosselin, J. Angeles, 1990, equations of the planar three-degree-of-freedom robot."""
    made = parallel_robots.concurrent((0.1, 0.05))
    pose = (0.02, 0.05, -0.1)
    along, arm = made.directions(pose)
    r = made.points(pose) - np.array(pose[:2])
    expected = np.column_stack([r[:, 0] * along[:, 1] - r[:, 1] * along[:, 0], along])
    lever = arm[:, 0] * along[:, 1] - arm[:, 1] * along[:, 0]
    for components in (None, ("wz", "vx", "vy")):
        found = made.robot.jacobians(made.state(pose), components=components)
        places = [found.components.index(name) for name in ("wz", "vx", "vy")]
        np.testing.assert_allclose(np.diag(found.inverse), np.abs(lever), atol=1e-9)
        np.testing.assert_allclose(
            found.direct[:, places], expected * np.sign(lever)[:, np.newaxis], atol=1e-9
        )
    assert made.robot.jacobians(made.state(pose)).constraint.shape == (3, 6)


@pytest.mark.soak
def test_delta_jacobians_in_a_batch():
    robot = ax.Kinematics(ax.gallery.build("delta_robot"), "platform")
    x = np.array([0.0, 0.05, -0.04])
    state = {"tool.x": x, "tool.y": 0.5 * x, "tool.z": -0.6 + 0.0 * x}
    found = robot.jacobians(state, components=("vx", "vy", "vz"))
    at = [ax.assemble(robot.model, {n: v[k] for n, v in state.items()}) for k in range(3)]
    for k in range(3):
        for leg, turn in enumerate(2 * np.pi / 3 * np.arange(3)):
            out = np.array([math.cos(turn), math.sin(turn), 0.0])
            theta = at[k][f"theta{leg + 1}"]
            tool = np.array([at[k][f"tool.{axis}"] for axis in "xyz"])
            elbow = (0.2 + 0.25 * math.cos(theta)) * out - [0, 0, 0.25 * math.sin(theta)]
            rod = tool + 0.06 * out - elbow
            rod /= np.linalg.norm(rod)
            tip = -0.25 * (math.sin(theta) * out + [0, 0, math.cos(theta)])
            sign = np.sign(rod @ tip)
            np.testing.assert_allclose(found.direct[k, leg], sign * rod, atol=1e-8)
            assert found.inverse[k, leg, leg] == pytest.approx(abs(rod @ tip), abs=1e-8)


def test_agile_eye_jacobians():
    """Rows (w x v) . omega = (u x w) . v theta', with right angles everywhere: identities."""
    robot = parallel_robots.agile_eye()
    found = robot.jacobians(components=("wx", "wy", "wz"))
    np.testing.assert_allclose(np.abs(found.direct), np.eye(3), atol=1e-12)
    np.testing.assert_allclose(np.abs(found.inverse), np.eye(3), atol=1e-12)
    assert robot.dexterity(components=("wx", "wy", "wz")).condition == pytest.approx(1.0)
    assert robot.jacobians().constraint.shape == (3, 6)  # it turns about a point


@pytest.mark.soak
def test_serial_arm_jacobian_is_that_of_its_measures():
    robot = ax.Kinematics(ax.gallery.build("seven_axis_arm"))
    q = robot.model.home + 0.1
    found = robot.jacobians(q)
    np.testing.assert_allclose(found.direct, np.eye(6), atol=1e-12)
    np.testing.assert_allclose(found.inverse, found.forward, atol=1e-12)
    speed = np.linspace(-1.0, 1.0, 7)
    body = robot.model.bodies.index(robot.output)
    w = robot.model.twists(q, speed)[body, :3]
    np.testing.assert_allclose(found.forward[:3] @ speed, w, atol=1e-12)


def check_jacobians(mechanism, output, *, singular=False):
    """Check A t = B theta' and C t = 0 for a feasible velocity of a model."""
    driven = None if mechanism.drives else [mechanism.connections[0].coordinates[0]]
    robot = ax.Kinematics(mechanism, output, driven)
    model = robot.model
    q = np.array(model.equations.system.samples[0])
    nu = np.random.default_rng(0).normal(size=len(model.independent))
    body = mechanism.bodies[model.bodies.index(robot.output)]
    com = [numeric(x) for x in body.com]
    found = robot.jacobians(q, at=com)
    twist = model.twists(q, nu)[model.bodies.index(robot.output)]
    speeds = dict(zip(model.speed_names, model.joint_speeds(q, nu), strict=True))
    theta = np.array([speeds[name] for name in found.driven])
    np.testing.assert_allclose(found.direct @ twist, found.inverse @ theta, atol=1e-10)
    np.testing.assert_allclose(found.constraint @ twist, 0.0, atol=1e-10)
    margins = robot.singularities(q, at=com).margins
    assert all(margins[kind] > (-1.0 if singular else 1e-6) for kind in KINDS)


@pytest.mark.parametrize(
    ("name", "output"),
    [
        ("cooperating_arms", "link11"),
        further("caster_robot", "platform"),
        further("planar_3rrr", "platform"),
        further("snakeboard", "wheelset_f"),
        further("platform_3rps", "platform"),
        further("mobile_manipulator", "gripper"),
        further("mecanum_platform", "wheel4"),
        further("six_legged_platform", "VI5"),
        further("delta_robot", "rod3b"),
        further("two_caster_robot", "caster2"),
        further("tricycle", "body"),
    ],
)
def test_jacobians_hold_for_feasible_velocities(name, output):
    check_jacobians(ax.gallery.build(name), output)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(6))
def test_jacobians_of_random_mechanisms(seed):
    rng = np.random.default_rng(seed)
    for make in (random_mechanisms.random_loop, random_mechanisms.random_vehicle):
        mechanism = make(rng, acted_on=False)
        joints = [c.coordinates[0] for c in mechanism.connections if c.joint.speeds_are_rates]
        if joints and not mechanism.prescribed:
            mechanism.drives.clear()
            mechanism.add_motor("driving", str(rng.choice(joints)))
            check_jacobians(mechanism, mechanism.bodies[-1].name, singular=True)


def test_driven_coordinates_need_speeds():
    sleigh = ax.Kinematics(ax.gallery.build("chaplygin_sleigh"), "body", driven=["x"])
    with pytest.raises(ax.errors.InvalidArgument, match="has no speed of its own, as coordinates"):
        sleigh.jacobians()


def test_wheels_are_legs():
    robot = ax.Kinematics(ax.gallery.build("differential_drive"), "body")
    found = robot.jacobians(components=("wz", "vx", "vy"))
    b, r = 0.2, 0.08
    np.testing.assert_allclose(np.abs(found.direct), [[b, 1, 0], [b, 1, 0]], atol=1e-12)
    np.testing.assert_allclose(found.inverse, r * np.eye(2), atol=1e-12)
    np.testing.assert_allclose(np.abs(found.constraint), [[0, 0, 1]], atol=1e-12)


# type 2 -------------------------------------------------------------------------------------------


def test_fichters_singularity(hexapod):
    """E. F. Fichter, "A Stewart platform-based manipulator", 1986: yaw of +-90 degrees."""
    yaw = np.array([math.pi / 2, -math.pi / 2, math.pi / 2 - NEAR, 0.4])
    found = hexapod.singularities({**LEVEL, "yaw": yaw})
    assert (found.margins.parallel[:2] < ZERO).all()
    assert NEAR / ORDER < found.margins.parallel[2] < NEAR * ORDER
    assert found.margins.parallel[3] > 0.1
    assert found.type.tolist() == [2, 2, 0, 0]
    assert found.is_singular.tolist() == [True, True, False, False]
    (one,) = found[0].found
    assert one.kind == "parallel"
    np.testing.assert_allclose(np.abs(one.motion.direction), [0, 0, 1], atol=1e-9)
    np.testing.assert_allclose(one.motion.point[:2], 0.0, atol=1e-9)
    assert "locked, 'platform' turns about the line" in one.text
    assert "2 of 4 states" in str(found)
    assert "regular" in str(found[3])
    # the locked legs allow that motion to first order
    A = hexapod.jacobians({**LEVEL, "yaw": math.pi / 2}).direct
    np.testing.assert_allclose(A @ one.motion.twist, 0.0, atol=1e-9)


def test_margin_is_linear_near_a_singularity(hexapod):
    angles = math.pi / 2 - np.array([1e-6, 1e-5, 1e-4])
    margins = hexapod.singularities({**LEVEL, "yaw": angles}).margins.parallel
    np.testing.assert_allclose(margins / (math.pi / 2 - angles), margins[1] / 1e-5, rtol=1e-3)


@pytest.mark.soak
def test_similar_hexagons_are_singular_everywhere():
    """O. Ma, J. Angeles, "Architecture singularities of platform manipulators", 1991."""
    angles = np.radians((10, 110, 130, 230, 250, 350))
    shaky = ax.gallery.build("flight_simulator", beta=tuple(angles), pi=tuple(angles))
    robot = ax.Kinematics(shaky, "platform")
    q = np.array(robot.model.equations.system.samples)
    assert (robot.singularities(q).margins.parallel < 1e-9).all()


@pytest.mark.soak
def test_nearly_similar_hexagons_are_nearly_singular():
    angles = np.radians((10, 110, 130, 230, 250, 350))
    nearly = angles + NEAR * np.array([1, -2, 3, -1, 2, 1])
    robot = ax.Kinematics(
        ax.gallery.build("flight_simulator", beta=tuple(angles), pi=tuple(nearly)), "platform"
    )
    q = np.array(robot.model.equations.system.samples)
    margins = robot.singularities(q).margins.parallel
    assert (margins < NEAR * ORDER).all()
    assert (margins > 1e-10).any()


@pytest.mark.soak
def test_hunts_singularity():
    """K. H. Hunt, 1983: legs that meet in pairs on the platform, turned by 90 degrees."""
    pairs = np.radians([60, 60, 180, 180, 300, 300])
    base = np.radians([0, 120, 120, 240, 240, 360])
    octahedral = ax.gallery.build("flight_simulator", beta=tuple(base), pi=tuple(pairs))
    robot = ax.Kinematics(octahedral, "platform")
    yaw = np.array([math.pi / 2, math.pi / 2 - NEAR, 0.3])
    margins = robot.singularities({**LEVEL, "yaw": yaw}).margins.parallel
    assert margins[0] < ZERO
    assert NEAR / ORDER < margins[1] < NEAR * ORDER
    assert margins[2] > 0.05


def test_links_of_3rrr_that_meet_or_are_parallel():
    meet = (0.1, 0.05)
    for made, text in (
        (parallel_robots.concurrent(meet), "turns about the line through (0.1, 0.05, 0)"),
        (parallel_robots.concurrent(None), "moves along (0.8, -0.6, 0)"),
    ):
        states = np.array([made.state((0, 0, e)) for e in (0.0, NEAR, 0.1)])
        found = made.robot.singularities(states)
        assert found.margins.parallel[0] < ZERO
        assert NEAR / ORDER < found.margins.parallel[1] < NEAR * ORDER
        assert found.type.tolist() == [2, 0, 0]
        assert text in found[0].found[0].text


# type 1 -------------------------------------------------------------------------------------------


def stretched_pose(made, bend):
    """Pose with the first leg nearly in line, the others well bent."""
    l1, l2 = parallel_robots.CRANK, parallel_robots.LINK
    reach = math.sqrt(l1**2 + l2**2 + 2 * l1 * l2 * math.cos(bend))
    for angle in np.linspace(0, 2 * np.pi, 40):
        spot = made.base[0] + reach * np.array([math.cos(angle), math.sin(angle)])
        pose = (*(spot - made.platform[0]), 0.0)
        far = np.linalg.norm(made.points(pose) - made.base, axis=1)
        if (far[1:] > 0.3).all() and (far[1:] < 0.7).all():
            return pose
    raise AssertionError("no such pose")


def test_stretched_leg():
    """A leg of the 3-RRR in line: its motor moves while the platform stands."""
    made = parallel_robots.concurrent((0.1, 0.05))
    q = np.array([made.state(stretched_pose(made, bend)) for bend in (0.0, NEAR)])
    q[:, made.robot.model.coordinates.index("beta0")] = (0.0, NEAR)
    found = made.robot.singularities(q, tolerance=1e-7)
    assert found.margins.serial[0] < 1e-8
    assert NEAR / ORDER < found.margins.serial[1] < NEAR * ORDER
    assert (found.margins.parallel > 0.01).all()
    assert found.type.tolist() == [1, 0]
    (one,) = found[0].found
    assert one.text.startswith("theta0.rate can move while 'platform' stands")
    inverse = made.robot.jacobians(q[0]).inverse
    assert abs(inverse[0, 0]) < 1e-8
    assert (np.abs(np.diag(inverse)[1:]) > 0.05).all()


def test_dead_points_of_a_four_bar():
    """Crank and coupler in line: the rocker reverses. Coupler and rocker: the crank is locked."""
    mechanism = ax.gallery.build("four_bar")
    model = mechanism.derive().compile()
    robot = ax.Kinematics(mechanism, "rocker")
    a1, a2, a3, a4 = 0.4, 0.1, 0.35, 0.3
    angles = []
    for span in (a3 + a2, a3 - a2):  # from the crank's hinge to the coupler's end
        angle = math.acos((a1**2 + span**2 - a4**2) / (2 * a1 * span))
        folded = span < a3
        theta1 = angle + (math.pi if folded else 0.0)
        end = span * np.array([math.cos(angle), math.sin(angle)])
        rocker = math.atan2(-end[1], a1 - end[0])
        angles.append([theta1, -math.pi if folded else 0.0, rocker - angle])
    found = robot.singularities(np.array(angles), components=("wz",))
    assert (found.margins.serial < 1e-9).all()
    assert found.type.tolist() == [1, 1]
    backwards = ax.Kinematics(mechanism, "crank", driven=["theta3"])
    assert model.coordinates == backwards.model.coordinates
    # the crank as output and the rocker's hinge to the coupler driven: never both
    margins = backwards.singularities(np.array(angles), components=("wz",)).margins
    assert (margins.serial > 1e-3).all()


def test_five_bar_stretched_and_in_line():
    """Type 1: crank and link in line. Type 2: both links in line, the tip moves across them."""
    robot = parallel_robots.five_bar()  # cranks of 0.2 m, links of 0.3 m, motors 0.24 m apart
    # both links along x, tip in the middle: cranks end at (-0.3, y) and (0.3, y)
    lean = math.acos((0.3 - 0.12) / 0.2)
    theta = (math.pi - lean, lean)
    q = dict(zip(robot.model.coordinates, robot.model.home, strict=True))
    q |= {"theta1": theta[0], "phi1": -theta[0], "theta2": theta[1], "phi2": math.pi - theta[1]}
    line = np.array([q[name] for name in robot.model.coordinates])
    found = robot.singularities(line, components=("vx", "vy"))
    assert int(found.type) == 2
    assert found.margins.parallel < 1e-9
    (one,) = found.found
    np.testing.assert_allclose(np.abs(one.motion.twist[3]), 0.0, atol=1e-9)
    # the left crank and link in line
    tip = np.array([-0.12, 0.0]) + 0.5 * np.array([math.cos(1.2), math.sin(1.2)])
    d = tip - [0.12, 0.0]
    far = math.hypot(*d)
    base = math.atan2(d[1], d[0]) - math.acos((far**2 + 0.2**2 - 0.3**2) / (2 * far * 0.2))
    bend = math.pi - math.acos((0.2**2 + 0.3**2 - far**2) / (2 * 0.2 * 0.3))
    q |= {"theta1": 1.2, "phi1": 0.0, "theta2": base, "phi2": bend}
    stretched = np.array([q[name] for name in robot.model.coordinates])
    found = robot.singularities(stretched, components=("vx", "vy"))
    assert int(found.type) == 1
    assert "theta1_dot can move while 'tool' stands" in found.found[0].text


def test_stretched_arm():
    arm = ax.Mechanism("arm", gravity=(0, 0, 0))
    parent = arm.ground
    for k in range(2):
        link = arm.add_body(f"link{k}", mass=1.0, inertia=(0.1, 0.1, 0.1))
        at = (0.5 * k, 0, 0)
        arm.add_joint(f"q{k}", ax.Revolute("z"), parent=parent, child=link, at=at)
        arm.add_motor(f"m{k}", f"q{k}")
        parent = link
    robot = ax.Kinematics(arm, "link1")
    bend = np.array([0.0, NEAR, 1.0, math.pi])
    states = np.stack([np.full(4, 0.3), bend], axis=-1)
    found = robot.singularities(states, components=("vx", "vy"), at=(0.4, 0, 0))
    assert found.type.tolist() == [1, 0, 0, 1]
    assert NEAR / ORDER < found.margins.serial[1] < NEAR * ORDER
    turned = found[0].found[0].motion
    np.testing.assert_allclose(turned.direction[:2], [math.cos(0.3), math.sin(0.3)], atol=1e-9)
    assert np.isinf(turned.pitch)
    assert (found.margins.passive > 0.5).all()
    assert "with vx, vy and all driven joints at rest" in found[2].describe("passive").text
    whole = robot.singularities(states[2])
    assert np.isinf(whole.margins.passive)
    assert whole.describe("passive").text.endswith("no singularity of this kind")
    J = robot.jacobians(states, components=("vx", "vy"), at=(0.4, 0, 0))
    det = np.linalg.det(J.forward)
    np.testing.assert_allclose(det, 0.5 * 0.4 * np.sin(bend), atol=1e-12)
    shown = robot.dexterity(states, components=("vx", "vy"), at=(0.4, 0, 0))
    np.testing.assert_allclose(shown.manipulability, np.abs(det), atol=1e-12)
    assert np.isnan(shown.length).all()


# constraint singularities -------------------------------------------------------------------------


def test_constraint_singularity_of_3upu():
    """The couples of the legs become dependent where all legs lie in the plane."""
    robot = parallel_robots.translating_upu()
    heights = (0.0, NEAR, 0.3)
    states = {
        name: np.array([parallel_robots.upu_state(h)[name] for h in heights])
        for name in robot.model.coordinates
    }
    q = np.stack(list(states.values()), axis=-1)
    found = robot.singularities(q)
    assert robot.jacobians(q).constraint.shape == (3, 3, 6)
    assert found.margins.mobility[0] < ZERO
    assert NEAR / ORDER < found.margins.mobility[1] < NEAR * ORDER
    assert found.margins.mobility[2] > 0.1
    kinds = [one.kind for one in found[0].found]
    assert "mobility" in kinds
    text = found[0].describe("mobility").text
    assert text.startswith("the legs' wrenches depend on each other, so that also 'platform'")


# invariance ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{"order": (1, 2, 0)}, {"order": (2, 1, 0)}, {"scale": 1e-3}, {"turn": 0.7}], ids=str
)
def test_margins_do_not_depend_on_units_frames_and_the_order_of_legs(options):
    meet, pose = (0.1, 0.05), (0.02, 0.04, -0.15)
    made, other = parallel_robots.concurrent(meet), parallel_robots.concurrent(meet, **options)
    here = made.robot.singularities(made.state(pose)).margins
    there = other.robot.singularities(other.state(pose)).margins
    for kind in KINDS[:3]:
        assert there[kind] == pytest.approx(float(here[kind]), rel=1e-7), kind
    lengths = [m.robot.dexterity(m.state(pose), length="optimal") for m in (made, other)]
    assert lengths[1].length / options.get("scale", 1.0) == pytest.approx(
        lengths[0].length, rel=1e-6
    )
    assert lengths[1].condition == pytest.approx(lengths[0].condition, rel=1e-9)


def test_margins_of_a_batch_are_those_of_its_states(hexapod):
    yaw = np.linspace(0.0, 1.5, 4)
    batch = hexapod.singularities({**LEVEL, "yaw": yaw})
    for k in range(4):
        one = hexapod.singularities({**LEVEL, "yaw": yaw[k]})
        for kind in KINDS:
            assert batch[k].margins[kind] == pytest.approx(float(one.margins[kind]), abs=1e-12)


# maps ---------------------------------------------------------------------------------------------


def test_map_of_a_five_bar(tmp_path):
    """One assembly mode, symmetric; type 1 on its edge, type 2 where the links are in line."""
    found = parallel_robots.five_bar().singularity_map(
        ("tip.x", -0.4, 0.4), ("tip.y", 0.02, 0.5), points=33, components=("vx", "vy")
    )
    for kind in ("serial", "parallel"):
        margin = found.margins[kind]
        both = np.isfinite(margin) & np.isfinite(margin[:, ::-1])
        assert both.sum() > 200
        np.testing.assert_allclose(margin[both], margin[:, ::-1][both], atol=1e-8)
    assert np.isnan(found.margins.serial[0, 0])  # out of reach
    signed = found.signed("parallel")
    assert np.nanmin(signed[:, 16]) < 0 < np.nanmax(signed[:, 16])  # links pass each other
    assert "33 x 33 states over tip.x and tip.y" in repr(found)
    figure = found.plot("parallel", save=tmp_path / "map.png")
    assert (tmp_path / "map.png").stat().st_size > 1000
    assert figure.axes[0].get_xlabel() == "tip.x [m]"
    assert found.plot("mobility", size="column") is not None
    with pytest.raises(ax.errors.InvalidArgument, match="kind: expected one of serial"):
        found.plot("odd")


def test_axes_of_maps_are_checked(hexapod):
    with pytest.raises(ax.errors.InvalidArgument, match="x: expected a name and two numbers"):
        hexapod.singularity_map("yaw", ("pitch", 0.0, 1.0))
    with pytest.raises(ax.errors.InvalidArgument, match="the smaller first"):
        hexapod.singularity_map(("yaw", 1.0, 0.0), ("pitch", 0.0, 1.0))
    with pytest.raises(ax.errors.InvalidArgument, match="points: expected 2 to 4000"):
        hexapod.singularity_map(("yaw", 0.0, 1.0), ("pitch", 0.0, 1.0), points=1)


# warnings -----------------------------------------------------------------------------------------


def test_inverse_warns_before_motors_lose_their_hold():
    """The tip comes down to where both links lie in line, at y = 0.0872 m."""

    def motion(lowest):
        return {"tip.x": "0.003 + 0 * t", "tip.y": f"0.3 - {0.3 - lowest} * t"}

    with warnings.catch_warnings():
        warnings.simplefilter("error", ax.NearSingularityWarning)
        run = ax.inverse_dynamics(
            parallel_robots.five_bar().model, motion(0.12), times=1.0, save_every=0.05
        )
        ax.inverse_dynamics(parallel_robots.five_bar().model, run)
    with pytest.warns(ax.NearSingularityWarning, match=r"at t = 1 s \(type 2, 0.0\d+ of the usual"):
        ax.inverse_dynamics(
            parallel_robots.five_bar().model, motion(0.089), times=1.0, save_every=0.05
        )


def test_inverse_warns_before_signals_fail_to_determine_the_motion():
    def motion(reach):
        far = f"(0.35 + {reach - 0.35} * t)"
        return {"tip.x": f"-0.12 + cos(1.2) * {far}", "tip.y": f"sin(1.2) * {far}"}

    with warnings.catch_warnings():
        warnings.simplefilter("error", ax.NearSingularityWarning)
        ax.inverse_dynamics(
            parallel_robots.five_bar().model, motion(0.49), times=1.0, save_every=0.05
        )
    with pytest.warns(ax.NearSingularityWarning, match="type 1.*tip.x, tip.y hardly determine"):
        ax.inverse_dynamics(
            parallel_robots.five_bar().model, motion(0.4999), times=1.0, save_every=0.05
        )


def test_simulate_warns_near_a_change_point():
    """A four-bar that is nearly a parallelogram comes near where all links lie in line."""
    mechanism = ax.gallery.build("four_bar", a1=0.4, a2=0.2 + 1e-5, a3=0.4, a4=0.2, g=0.0)
    model = mechanism.derive().compile()
    with pytest.warns(ax.NearSingularityWarning, match="constraints, 0.0.*of the usual margin"):
        ax.simulate(model, 1.5, start={"theta1_dot": 2.0}, save_every=0.05)


# arguments ----------------------------------------------------------------------------------------


def test_arguments_are_checked(hexapod):
    with pytest.raises(ax.errors.UnknownName, match="twist has no component 'x'"):
        hexapod.jacobians(components=["x"])
    with pytest.raises(ax.errors.InvalidArgument, match="components: expected a list of names of"):
        hexapod.singularities(components=[1])
    with pytest.raises(ax.errors.InvalidArgument, match="name each once"):
        hexapod.jacobians(components=["wx", "wx"])
    with pytest.raises(ax.errors.InvalidArgument, match="at: expected three finite numbers"):
        hexapod.jacobians(at=(1.0, 2.0))
    with pytest.raises(ax.errors.InvalidArgument, match="length: must be finite and > 0"):
        hexapod.singularities(length=-1.0)
    with pytest.raises(ax.errors.InvalidArgument, match="tolerance: must be > 0"):
        hexapod.singularities(tolerance=0.0)
    with pytest.raises(ax.errors.InvalidArgument, match="choose one with"):
        _ = hexapod.singularities(np.array([hexapod.model.home] * 2)).found
    with pytest.raises(ax.errors.InvalidArgument, match="kind: expected one of serial"):
        hexapod.singularities().describe("odd")


def steered(base, angles=(np.pi / 2, np.pi / 2)):
    """A body on two wheels that steer, one before the other, turned across at home."""
    bot = ax.Mechanism("swerve")
    body = bot.add_body("body", mass=10.0, inertia=(1, 1, 1), com=(0, 0, 0.1))
    bot.add_joint("base", base, parent=bot.ground, child=body, at=(0, 0, 0.1))
    for k, x in enumerate((0.3, -0.3)):
        fork = bot.add_body(f"fork{k}", mass=0.5, inertia=(0.1, 0.1, 0.1))
        bot.add_joint(f"steer{k}", ax.Revolute("z"), parent=body, child=fork, at=(x, 0, 0))
        bot.add_wheel(f"wheel{k}", ax.Rolling(0.1), on=fork, mass=0.5, motor=True)
    bot.set_home(dict(zip(("steer0", "steer1"), angles, strict=True)))
    return bot.derive().compile()


@pytest.mark.slow
@pytest.mark.parametrize("base", [ax.Planar(), ax.Floating()], ids=["planar", "floating"])
def test_a_start_where_axles_are_in_line_is_named(base):
    """With both axles along one line the wheels hold one velocity twice."""
    model = steered(base)
    rows = r"rows wheel0\.lateral, wheel1\.lateral depend on each other"
    with pytest.raises(ax.errors.SingularConfiguration, match=rows) as raised:
        ax.simulate(model, 1.0)
    assert "start={'steer0': 0.05}" in str(raised.value)
    with pytest.warns(ax.RunsFailedWarning):
        batch = ax.simulate(model, 0.1, start={"steer0": np.pi / 2 + np.array([0.0, 0.05])})
    assert "rows wheel0.lateral, wheel1.lateral" in batch.statuses[0]
    assert batch.statuses[1] == "finished"
    stepper = model.stepper(1e-3)
    assert not stepper.step(np.zeros(len(model.inputs)))
    with pytest.raises(ax.errors.SingularConfiguration, match=rows):
        stepper.check()
    with pytest.raises(ax.errors.SingularConfiguration, match=rows):
        ax.paths.follow(steered(ax.Floating()), ax.paths.circle(2.0, speed=0.5))
