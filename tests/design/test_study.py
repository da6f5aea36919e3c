"""Designs over poses against kinematics by hand; optima against closed forms and brute force."""

import json

import numpy as np
import pytest

import axode as ax
from axode.cli import run
from tests.design.designed_robots import POSE, RADII, arm, hexapod, leg_vectors

LENGTH = 0.25
XY = ("vx", "vy")


def map_by_hand(pose, radii):
    """J of (L w, v) for unit speeds of the legs, from differences of the legs' lengths."""
    h, rows = 1e-6, []
    for k in range(6):
        lengths = []
        for sign in (1, -1):
            vectors, arms = leg_vectors(pose, radii)
            if k < 3:  # turn about a world axis through the platform's origin
                vectors = vectors + sign * h / LENGTH * np.cross(np.eye(3)[k], arms)
            else:
                vectors = vectors + sign * h * np.eye(3)[k - 3]
            lengths.append(np.linalg.norm(vectors, axis=-1))
        rows.append((lengths[0] - lengths[1]) / (2 * h))
    return np.linalg.inv(np.transpose(rows))


def test_a_platform_is_as_dexterous_as_its_legs_lengths_say():
    """Singular values of a Jacobian by differences of a closed form, per design and pose."""
    rng = np.random.default_rng(5)
    poses = rng.uniform([-0.1, -0.1, 0.6, -0.2, -0.2, -0.2], [0.1, 0.1, 0.8, 0.2, 0.2, 0.2], (3, 6))
    radii = {n: v * rng.uniform(0.8, 1.2, 4) for n, v in RADII.items()}
    variables = {name: (0.1, 1.5) for name in RADII}
    study = ax.design.Study(
        hexapod(),
        variables,
        dict(zip(POSE, poses.T, strict=True)),
        limits={"l*": (0.5, 1.0)},
        springs=2.0,
        length=LENGTH,
    )
    found = study.evaluate(radii)
    assert found.condition.shape == (4, 3)
    for d in range(4):
        design = {name: values[d] for name, values in radii.items()}
        for p, pose in enumerate(poses):
            s = np.linalg.svd(map_by_hand(pose, design), compute_uv=False)
            assert found.dexterity[d, p] == pytest.approx(s[-1] / s[0], rel=1e-6)
            assert found.force[d, p] == pytest.approx(s[0], rel=1e-6)
            assert found.stiffness[d, p] == pytest.approx(2.0 / s[0] ** 2, rel=1e-6)
            assert found.manipulability[d, p] == pytest.approx(np.prod(s), rel=1e-6)
            lengths = np.linalg.norm(leg_vectors(pose, design)[0], axis=-1)
            assert [found.signals[f"l{k}"][d, p] for k in range(6)] == pytest.approx(lengths)
            inside = bool(((lengths > 0.5) & (lengths < 1.0)).all())
            assert found.within[d, p] == inside
    assert found[[2]].force == pytest.approx(found.force[[2]])
    assert len(study.evaluate()) == 1


def test_the_isotropic_arm_is_found():
    """Links a and a / sqrt 2 at an angle of 135 degrees turn a circle into a circle."""
    study = ax.design.Study(arm(), {"b": (0.2, 1.5)}, {"two": np.radians(135)}, components=XY)
    best = study.optimize("dexterity", samples=8, starts=2)
    assert best.parameters["b"] == pytest.approx(1 / np.sqrt(2), rel=1e-4)
    assert best.cost == pytest.approx(-1.0, abs=1e-6)
    assert best.start_cost == pytest.approx(-float(best.start.dexterity[0, 0]))
    assert best.at_bounds == () and "0.7071" in repr(best)
    made = ax.Kinematics(best.mechanism, "tool")
    assert made.model.parameters["b"] == best.parameters["b"]
    assert made.dexterity({"two": np.radians(135)}, components=XY).condition == pytest.approx(1.0)


def test_the_worst_of_several_poses_is_what_counts():
    """At two elbow angles the best arm trades one pose against the other: a minimax by hand."""
    angles = np.radians([110.0, 150.0])
    study = ax.design.Study(arm(), {"b": (0.3, 1.2)}, {"two": angles}, components=XY)
    best = study.optimize("dexterity", samples=8, starts=2)
    b = np.linspace(0.3, 1.2, 90001)[:, np.newaxis]
    det, squares = b * np.sin(angles), 1 + 2 * b * np.cos(angles) + 2 * b**2
    ratio = np.sqrt((squares - np.sqrt(squares**2 - 4 * det**2)) / 2) / np.sqrt(
        (squares + np.sqrt(squares**2 - 4 * det**2)) / 2
    )
    worst = ratio.min(axis=1)
    assert -best.cost == pytest.approx(worst.max(), rel=1e-6)
    assert best.parameters["b"] == pytest.approx(float(b[worst.argmax(), 0]), abs=1e-4)


@pytest.mark.slow
def test_no_neighbour_of_the_best_platform_is_better():
    grid = np.meshgrid([-0.1, 0.1], [-0.1, 0.1], [0.65, 0.75], [-0.15, 0.15], indexing="ij")
    poses = dict(zip(("free.x", "free.y", "free.z", "roll"), grid, strict=True))
    variables = {
        "base_radius": (0.3, 0.9),
        "platform_radius": (0.15, 0.4),
        "base_gap": (0.05, 1.0),
        "platform_gap": (0.05, 1.0),
    }
    limits = {"l*": (0.55, 1.0)}
    study = ax.design.Study(hexapod(), variables, poses, limits=limits, length=LENGTH)
    best = study.optimize("dexterity", samples=64, starts=2)
    assert best.found.within.all() and -best.cost > 1.5 * best.start.dexterity.min()
    made = ax.Kinematics(best.mechanism)  # stands where the described one stands, closed
    home = made.model.poses(made.model.home)[made.model.bodies.index("platform")]
    assert home == pytest.approx(hexapod().home_poses["platform"], abs=1e-9)
    rng = np.random.default_rng(0)
    low, high = np.array(list(variables.values())).T
    x = np.array(list(best.parameters.values()))
    for size in (1e-3, 1e-2, 0.1):
        near = np.clip(x + size * (high - low) * rng.normal(size=(300, 4)), low, high)
        found = study.evaluate(near)
        allowed = found.within.all(axis=1)
        assert allowed.sum() > 5
        assert found.dexterity[allowed].min(axis=1).max() <= -best.cost * (1 + 1e-5)


def test_a_planar_robot_is_as_stiff_as_it_is_in_its_plane():
    """Directions that the hinges hold rigidly are not the softest ones."""
    robot = ax.Kinematics(ax.gallery.build("planar_3rrr"))
    variables = {"l1": (0.2, 0.5)}
    whole = ax.design.Study(robot, variables, springs=30.0, length=0.2).evaluate()
    plane = ax.design.Study(
        robot, variables, springs=30.0, components=("wz", "vx", "vy"), length=0.2
    ).evaluate()
    assert whole.stiffness == pytest.approx(plane.stiffness)
    assert whole.stiffness == pytest.approx(30.0 / whole.force**2)


def test_constraints_and_limits_hold_at_the_optimum():
    """Without the constraint, b is 1/sqrt 2; it is held away from there by a function of mine."""
    study = ax.design.Study(arm(), {"b": (0.2, 1.5)}, {"two": np.radians(135)}, components=XY)
    best = study.optimize(
        lambda found: found.condition[:, 0],
        constraints=[lambda found: found.parameters["b"] - 0.9],
        samples=8,
        starts=2,
    )
    assert best.parameters["b"] == pytest.approx(0.9, abs=1e-5)
    margins = {"serial": 0.2}
    found = ax.design.Study(
        arm(), {"b": (0.2, 1.5)}, {"two": [0.1, 1.5]}, margins=margins
    ).evaluate()
    margin = arm().singularities({"two": np.array([0.1, 1.5])}).margins.serial
    assert found.room[0, :, 0] == pytest.approx(margin - 0.2)


def test_the_largest_workspace_is_that_of_equal_links():
    """Points at distances r from the shoulder are reached if |a - b| <= r <= a + b."""
    r = np.linspace(0.15, 1.85, 18)
    bot = ax.Mechanism("reach")
    inner = bot.add_body("inner", mass=1.0, inertia=(0.1, 0.1, 0.1))
    tool = bot.add_body("tool", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b = ax.Parameter("b", 0.4)
    bot.add_joint("one", ax.Revolute("z"), parent=bot.ground, child=inner)
    bot.add_joint(
        "two", ax.Revolute("z"), parent=inner, child=tool, at=(1, 0, 0), child_at=(-b, 0, 0)
    )
    for name in ("one", "two"):
        bot.add_motor(f"m_{name}", name)
    bot.set_home({"one": 0.3, "two": 1.2})
    bot.measure("tip", "position", body=tool)
    robot = ax.Kinematics(bot, "tool")
    study = ax.design.Study(robot, {"b": (0.3, 1.6)}, {"tip.x": r, "tip.y": 0.0 * r}, components=XY)
    tried = np.array([0.4, 0.7, 1.0, 1.5])
    found = study.evaluate({"b": tried})
    expected = (np.abs(1 - tried)[:, None] < r) & (r < 1 + tried[:, None])
    assert (found.reached == expected).all()
    assert found.workspace == pytest.approx(expected.mean(axis=1))
    best = study.optimize("workspace", samples=12)
    assert best.cost == -1.0 and best.start.workspace[0] < 0.5
    assert best.found.workspace[0] == 1.0


def test_mistakes_are_named():
    robot = arm()
    with pytest.raises(ax.UnknownName, match="base_radius"):
        ax.design.Study(hexapod(), {"radius": (0.1, 1.0)})
    with pytest.raises(ax.InvalidArgument, match="smallest, largest"):
        ax.design.Study(robot, {"b": (1.0, 0.5)})
    with pytest.raises(ax.InvalidArgument, match="finite"):
        ax.design.Study(robot, {"b": (0.1, np.inf)})
    with pytest.raises(ax.InvalidArgument, match="name the parameters that vary, of a, b"):
        ax.design.Study(robot, {})
    with pytest.raises(ax.UnknownName, match="serial"):
        ax.design.Study(robot, {"b": (0.1, 1.0)}, margins={"type1": 0.1})
    with pytest.raises(ax.UnknownName):
        ax.design.Study(robot, {"b": (0.1, 1.0)}, limits={"leg*": (0.1, 1.0)})
    with pytest.raises(ax.AxodeError, match="theta"):
        ax.design.Study(robot, {"b": (0.1, 1.0)}, {"theta": 0.1})
    study = ax.design.Study(robot, {"b": (0.2, 1.0)}, {"two": [1.0, 2.0]}, components=XY)
    with pytest.raises(ax.UnknownName, match="c"):
        study.evaluate({"c": 1.0})
    with pytest.raises(ax.InvalidArgument, match="finite"):
        study.evaluate({"b": np.nan})
    with pytest.raises(ax.InvalidArgument, match="shape"):
        study.evaluate(np.ones((2, 3)))
    with pytest.raises(ax.UnknownName, match="workspace"):
        study.optimize("stiff")
    with pytest.raises(ax.InvalidArgument, match="cost: expected an array"):
        study.optimize(lambda found: 1.0, samples=4, starts=0)
    narrow = ax.design.Study(robot, {"b": (0.2, 1.0)}, {"two": 1.0}, limits={"two": (2.0, 3.0)})
    with pytest.raises(ax.InvalidArgument, match="keeps all limits"):
        narrow.optimize("dexterity", samples=4, starts=1)


def test_the_command_line_writes_the_optimum(tmp_path, capsys):
    arm().mechanism.save(tmp_path / "arm.toml")
    best = tmp_path / "best.toml"
    line = ["design", str(tmp_path / "arm.toml"), "--output", "tool", "--vary", "b=0.3:1.2"]
    line += ["--poses", "two=2.356194490192345", "--components", "vx,vy", "--samples", "8"]
    assert run([*line, "--starts", "1", "--out", str(best), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["parameters"]["b"] == pytest.approx(1 / np.sqrt(2), rel=1e-3)
    assert f"{found['parameters']['b']:.6g}"[:6] in best.read_text()
    assert run(["design", str(best)]) == 2
    assert run([*line, "--cost", "beauty"]) == 1
    assert "beauty" in capsys.readouterr().err
