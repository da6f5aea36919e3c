"""Inverse kinematics: forward after inverse, limits, loops, targets out of reach, batches."""

from functools import cache

import numpy as np
import pytest
from scipy.optimize import least_squares

import axode as ax
from variants import further

LIMITS = {f"q{k}": (-1.5, 1.5) for k in range(1, 8)}


@cache
def robot(name, **options):
    return ax.gallery.build(name, **options).derive(self_check=False).compile()


@cache
def six_axes():
    """An arm with a wrist that is nearly spherical, its numbers rounded."""
    bot = ax.Mechanism("six_axes")
    turns = (0.0, 1.5708, 0.0, 1.5708, -1.5708, 1.5708)
    places = (
        (0, 0, 0.45),
        (0.15, 0, 0),
        (0.6, 0, 0),
        (0.12, -0.62, 0),
        (0, 0.001, 0),
        (0, -0.115, 0),
    )
    parent = bot.ground
    for k, (turn, at) in enumerate(zip(turns, places, strict=True), start=1):
        body = bot.add_body(f"link{k}", mass=1.0, inertia=(0.1, 0.1, 0.1))
        joint = {"parent": parent, "child": body, "at": at, "rotation": (turn, 0, 0)}
        bot.add_joint(f"j{k}", ax.Revolute("z"), **joint)
        parent = body
    bot.set_home({f"j{k}": v for k, v in enumerate((0.1, 0.9, -0.4, 0.3, 0.7, 0.2), 1)})
    return bot.derive(self_check=False).compile()


def poses(model, q, body):
    return model.poses(q)[..., model.bodies.index(body), :, :]


def rows_and_slopes(model, q, body, T):
    """Errors of a pose and their derivatives, written down anew: positions, then orientation."""
    k = model.bodies.index(body)
    P, J = model.poses(q)[..., k, :3, :], model.jacobian("poses", "q", q)[..., k, :3, :, :]
    scale = np.array([1 / np.sqrt(2)] * 3 + [1.0])
    r = ((P - T[..., :3, :]) * scale).reshape(*q.shape[:-1], 12)
    return r, (J * scale[:, np.newaxis]).reshape(*q.shape[:-1], 12, q.shape[-1])


@pytest.mark.parametrize(
    ("model", "body"), [(lambda: robot("seven_axis_arm"), "link7"), (six_axes, "link6")]
)
def test_forward_after_inverse(model, body):
    model = model()
    q = np.random.default_rng(0).uniform(-2, 2, size=(300, len(model.coordinates)))
    T = poses(model, q, body)
    found = ax.inverse_kinematics(model, {body: T}, attempts=30, nearest=False)
    assert found.reached.all()
    assert np.abs(poses(model, found.q, body) - T).max() < 1e-8
    assert (found.attempts >= 1).all() and (found.iterations > 0).all()


@pytest.mark.slow
def test_position_and_rotation_make_a_pose():
    """As in motions and in `Kinematics.inverse`; a list or an array is a batch of positions."""
    model, place, turn = robot("seven_axis_arm"), (0.4, 0.1, 0.5), (3.0, 0.1, 0.2)
    pair = ax.inverse_kinematics(model, {"link7": (place, turn)})
    target = ax.Target(position=place, rotation=turn)
    assert pair.reached
    assert np.array_equal(pair.q, ax.inverse_kinematics(model, {"link7": target}).q)
    batch = ax.inverse_kinematics(model, {"link7": ([place, place], turn)})
    assert batch.q.shape == (2, 7) and batch.reached.all()
    two = ax.inverse_kinematics(model, {"link7": [place, place]})
    assert two.q.shape == (2, 7) and "link7.rotation" not in two.errors


def test_near_and_at_singular_postures():
    """Stretched arms, exactly and nearly: steps converge more slowly, and still do."""
    model = robot("seven_axis_arm")
    q = np.zeros((6, 7))
    q[:, 1], q[:, 0] = 0.7, 0.3
    q[:, 3] = [0.0, 1e-8, 1e-6, 1e-4, 1e-3, 1e-2]
    found = ax.inverse_kinematics(model, {"link7": poses(model, q, "link7")}, tolerance=1e-8)
    assert found.reached.all()
    assert found.errors["link7.position"].max() < 3e-8


def test_targets_out_of_reach_are_approached_as_far_as_can_be():
    model = robot("seven_axis_arm")
    way = np.random.default_rng(1).normal(size=(20, 3))
    way /= np.linalg.norm(way, axis=1, keepdims=True)
    far = (0.0, 0.0, 0.36) + 2.0 * way  # from the shoulder, 0.93 m from the last origin
    found = ax.inverse_kinematics(model, {"link7": far}, attempts=1)
    assert not found.reached.any()
    assert np.abs(found.errors["link7.position"] - (2.0 - 0.93)).max() < 1e-12
    r = poses(model, found.q, "link7")[:, :3, 3] - far
    J = model.jacobian("poses", "q", found.q)[:, 6, :3, 3]
    assert np.abs(np.einsum("nij,ni->nj", J, r)).max() < 1e-9


@pytest.mark.parametrize("count", [12, further(100)])
def test_limits_against_scipy(count):
    """The conditions of Karush, Kuhn and Tucker hold, and no cost is above that of SciPy."""
    model = robot("seven_axis_arm")
    q = np.random.default_rng(2).uniform(-2.5, 2.5, size=(count, 7))
    T = poses(model, q, "link7")
    found = ax.inverse_kinematics(model, {"link7": T}, limits=LIMITS, attempts=20)
    assert (np.abs(found.q) <= 1.5).all()
    r, J = rows_and_slopes(model, found.q, "link7", T)
    g = np.einsum("nij,ni->nj", J, r)
    low, high = found.q <= -1.5, found.q >= 1.5
    assert np.array_equal(found.at_limit, low | high) and found.at_limit.any()
    wrong = np.where(high, np.maximum(g, 0), np.where(low, np.minimum(g, 0), g))
    assert np.abs(wrong).max() < 1e-7
    for k in range(count):
        other = least_squares(
            lambda x, k=k: rows_and_slopes(model, x, "link7", T[k])[0],
            model.home,
            lambda x, k=k: rows_and_slopes(model, x, "link7", T[k])[1],
            bounds=(-1.5, 1.5),
        )
        assert (r[k] @ r[k]) / 2 <= other.cost * (1 + 1e-6) + 1e-14


def test_redundant_freedoms_stay_near_a_posture():
    model = robot("seven_axis_arm")
    rng = np.random.default_rng(3)
    near = rng.uniform(-1, 1, size=(40, 7))
    T = poses(model, near + rng.normal(size=near.shape) * 0.3, "link7")
    weights = np.array([1.0, 4.0, 1.0, 1.0, 1.0, 1.0, 0.5])
    given = {f"q{k + 1}": w for k, w in enumerate(weights)}
    found = ax.inverse_kinematics(model, {"link7": T}, start=near, weights=given)
    some = ax.inverse_kinematics(model, {"link7": T}, start=near, weights=given, nearest=False)
    assert found.reached.all() and some.reached.all()
    far, farther = ((weights * (f.q - near) ** 2).sum(axis=-1) for f in (found, some))
    assert (far <= farther + 1e-12).all() and far.sum() < farther.sum()
    # the weighted way back has no part along the motions that keep the pose
    _, J = rows_and_slopes(model, found.q, "link7", T)
    null = np.linalg.svd(J)[2][:, 6]
    along = np.abs(np.einsum("nj,nj->n", null, weights * (found.q - near)))
    assert np.quantile(along, 0.9) < 1e-5


def test_a_batch_is_what_its_targets_are_alone():
    model = robot("seven_axis_arm")
    T = poses(model, np.random.default_rng(4).uniform(-2, 2, size=(9, 7)), "link7")
    T[3, :3, 3] += 3.0  # out of reach
    options = {"limits": LIMITS, "attempts": 4}
    many = ax.inverse_kinematics(model, {"link7": T}, **options)
    for k in range(len(T)):
        one = ax.inverse_kinematics(model, {"link7": T[k]}, **options)
        assert np.array_equal(one.q, many.q[k]) and one.reached == many.reached[k]


def test_a_model_from_a_file_finds_the_same(tmp_path):
    model = robot("seven_axis_arm")
    model.save(tmp_path / "arm.axm", ["poses", "residual", "measures"])
    T = poses(model, np.full(7, 0.3), "link7")
    own, read = (
        ax.inverse_kinematics(m, {"link7": T}) for m in (model, ax.load_model(tmp_path / "arm.axm"))
    )
    assert own.reached and np.array_equal(own.q, read.q)


@pytest.mark.slow
def test_a_mobile_manipulator_leaves_its_wheels_alone():
    model = robot("mobile_manipulator")
    goal = np.array([[2.0, 1.0, 0.5], [-1.0, 3.0, 0.4]])
    target = ax.Target(position=goal, direction=(0, 0, -1), axis=(1, 0, 0))
    found = ax.inverse_kinematics(model, {"gripper": target})
    assert found.reached.all()
    T = poses(model, found.q, "gripper")
    assert np.abs(T[:, :3, 3] - goal).max() < 1e-9
    assert np.abs(T[:, :3, 0] - (0, 0, -1)).max() < 1e-8
    assert np.abs(found["phi_R"]).max() == np.abs(found["phi_L"]).max() == 0.0
    held = ax.inverse_kinematics(
        model, {"gripper": target}, hold=["x_c", "y_c", "theta"], attempts=1
    )
    assert not held.reached.any() and np.abs(held["x_c"]).max() == 0.0


@pytest.mark.slow
def test_closed_loops_stay_closed():
    model = robot("delta_robot")
    rng = np.random.default_rng(5)
    near = np.array([0.0, 0.0, -0.5]) + rng.uniform(-0.1, 0.1, size=(10, 3))
    found = ax.inverse_kinematics(model, {"platform": near})
    assert found.reached.all() and found.residual.max() < 1e-12
    assert np.abs(poses(model, found.q, "platform")[:, :3, 3] - near).max() < 1e-9
    far = ax.inverse_kinematics(model, {"tool": near * (1, 1, 4)}, attempts=1)
    assert not far.reached.any() and far.residual.max() < 1e-10
    assert far.state.residual < 1e-10


@pytest.mark.slow
def test_points_coordinates_and_weights():
    model = robot("seven_axis_arm")
    at = (0.0, 0.05, 0.2)
    goal = {"link7": ax.Target(position=(0.4, 0.1, 0.7), at=at), "q1": 0.25}
    found = ax.inverse_kinematics(model, goal)
    T = poses(model, found.q, "link7")
    assert found.reached and np.allclose(T[:3, :3] @ at + T[:3, 3], (0.4, 0.1, 0.7))
    assert abs(found["q1"] - 0.25) < 1e-9 and "reached" in repr(found)
    assert found.met == {"link7.position": True, "q1": True}
    # two that contradict each other: the heavier is missed by less
    for weight in (1.0, 9.0):
        both = {"link7": ax.Target(position=(0.3, 0.0, 0.6), weight=weight), "link6": (0.3, 0, 1.0)}
        miss = ax.inverse_kinematics(model, both)
        errors = miss.errors["link7.position"], miss.errors["link6.position"]
        assert not miss.reached and abs(errors[1] / errors[0] - weight) < 1e-6 * weight
    assert "not reached" in repr(miss) and not any(miss.met.values())


def test_parameters_in_batches():
    model = robot("seven_axis_arm")
    T = poses(model, np.full(7, 0.3), "link7")
    longer = {"d3": np.array([0.2, 0.25])}
    found = ax.inverse_kinematics(model, {"link7": T}, parameters=longer)
    assert found.reached.all()
    assert np.abs(model.poses(found.q, parameters=longer)[:, 6] - T).max() < 1e-9


def test_every_form_of_an_orientation():
    model = robot("seven_axis_arm")
    R = poses(model, np.array([0.1, 0.5, 0.2, 0.9, -0.3, 0.4, 0.2]), "link7")[:3, :3]
    options = {"nearest": False, "attempts": 3}
    found = ax.inverse_kinematics(model, {"link7": ax.Target(rotation=R)}, **options)
    assert found.reached and found.errors["link7.rotation"] < 1e-9
    flipped = ax.inverse_kinematics(model, {"link7": ax.Target(rotation=(np.pi, 0, 0))}, **options)
    quaternion = ax.inverse_kinematics(
        model, {"link7": ax.Target(rotation=(0, 1, 0, 0))}, **options
    )
    assert flipped.reached and np.abs(flipped.q - quaternion.q).max() < 1e-6


def test_a_body_that_floats():
    bot = ax.Mechanism("drone")
    bot.add_body("hull", mass=1.0, inertia=(0.1, 0.1, 0.2))
    bot.add_joint("base", ax.Floating(), parent="ground", child="hull")
    model = bot.derive(self_check=False).compile()
    goal = ax.Target(position=(1.0, -2.0, 3.0), rotation=(3.0, 0.2, -2.0))
    found = ax.inverse_kinematics(model, {"hull": goal})
    assert found.reached and abs(np.linalg.norm(found.q[:4]) - 1) < 1e-12


MISTAKES = [
    ({"targets": {}}, "give at least one by name"),
    ({"targets": {"link9": (0, 0, 1)}}, "has no body, coordinate or measure 'link9'"),
    ({"targets": {"link9": ax.Target(position=(0, 0, 1))}}, "has no body 'link9'"),
    ({"targets": {"link7": (0, 1)}}, r"expected a position \(..., 3\), a pose \(..., 4, 4\)"),
    ({"targets": {"link7": (0, 1, np.nan)}}, "must be finite, and its weight > 0"),
    ({"targets": {"link7": ax.Target()}}, "give a position, a rotation or a direction"),
    ({"targets": {"link7": ax.Target(position=(1, 2))}}, r"expected three numbers \(..., 3\)"),
    (
        {"targets": {"link7": ax.Target(position=(1, 2, 3), at=np.zeros((2, 3)))}},
        "one vector for all targets is needed",
    ),
    ({"targets": {"link7": ax.Target(direction=(0, 0, 0))}}, "zero length points nowhere"),
    (
        {"targets": {"link7": ax.Target(position=(0, 0, 1), weight=(1, 2))}},
        "weight: one number is needed",
    ),
    ({"limits": {"q1": (1.0, -1.0)}}, "expected the least and the largest value"),
    ({"weights": {"q1": 0.0}}, "must be finite and > 0"),
    ({"hold": [f"q{k}" for k in range(1, 8)]}, "no coordinate that may move changes any"),
    ({"start": np.zeros((2, 7)), "targets": {"link7": np.zeros((3, 3))}}, "do not fit together"),
    ({"attempts": 0}, "at least one attempt, and a tolerance > 0"),
]


@pytest.mark.parametrize(("given", "text"), MISTAKES)
def test_mistakes(given, text):
    arguments = {"targets": {"link7": (0.3, 0.0, 0.6)}, **given}
    with pytest.raises((ax.InvalidArgument, ax.UnknownName), match=text):
        ax.inverse_kinematics(robot("seven_axis_arm"), **arguments)


def test_mistakes_of_other_robots():
    bot = ax.Mechanism("drone")
    bot.add_body("hull", mass=1.0, inertia=(0.1, 0.1, 0.2))
    bot.add_joint("base", ax.Floating(), parent="ground", child="hull")
    bot.measure("speed", "surge", body="hull")
    model = bot.derive(self_check=False).compile("interpreter")
    with pytest.raises(ax.InvalidArgument, match="parts of a quaternion have no limits"):
        ax.inverse_kinematics(model, {"hull": (0, 0, 1)}, limits={"base.qw": (0, 1)})
    with pytest.raises(ax.InvalidArgument, match="it depends on speeds, and inverse kinematics"):
        ax.inverse_kinematics(model, {"speed": 1.0})


def test_angles_are_within_half_a_turn_of_the_start():
    """Random starts may find a posture several turns away; couplings count turns and keep them."""
    arm = ax.Mechanism("arm")
    last = arm.ground
    for k in range(3):
        link = arm.add_body(f"link{k}", mass=1.0, inertia=(0.1, 0.1, 0.1))
        at = (0.5, 0, 0) if k else (0, 0, 0)
        arm.add_joint(f"joint{k}", ax.Revolute("z"), parent=last, child=link, at=at)
        last = link
    model = arm.derive().compile()
    start = {"joint0": 9.0, "joint1": -7.0, "joint2": 20.0}
    near = np.array([start[name] for name in model.coordinates])
    for target in ((0.3, 0.4, 0.0), (5.0, 0.0, 0.0)):  # within and out of reach
        found = ax.inverse_kinematics(model, {"link2": target}, start=start)
        far = ax.inverse_kinematics(model, {"link2": target}, limits={"joint0": (30.0, 40.0)})
        assert found.reached == (target[0] < 1.0)
        assert (np.abs(found.q - near) <= np.pi + 1e-9).all()
        assert 30.0 <= far["joint0"] <= 40.0
    turned = ax.inverse_kinematics(model, {"joint0": 9.0})
    assert turned["joint0"] == pytest.approx(9.0, abs=1e-9) and turned.reached
