"""Denavit-Hartenberg chains against plain products of the matrices of the two conventions."""

import casadi as ca
import numpy as np
import pytest

import axode as ax

ROUNDING = 1e-13  # a product of a few matrices with entries of order one
ROWS = [
    {"a": 0.3, "alpha": np.pi / 2, "d": 0.2, "theta": 0.4},
    {"a": -0.1, "alpha": -0.7, "d": 0.5, "theta": 1.1, "joint": "prismatic"},
    {"a": 0.1, "alpha": np.pi, "d": 0.0, "theta": -2.0},
    {"a": 0.25, "alpha": 0.3, "d": -0.15, "theta": 0.0},
]
SOLID = {"mass": 1.0, "com": (0.1, 0.0, 0.0), "inertia": (1.0, 1.0, 1.0)}
BASES = {
    "at the origin": {},
    "moved": {"at": (1.0, -2.0, 0.5)},
    "turned": {"at": (0.3, 0.0, 1.0), "rotation": (0.3, -0.8, 2.0)},
    "by a quaternion": {"rotation": np.array([0.5, 0.5, -0.5, 0.5])},
    "by a matrix": {"rotation": np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])},
}


def transform(R=None, p=(0.0, 0.0, 0.0)):
    X = np.eye(4)
    X[:3, :3] = np.eye(3) if R is None else R
    X[:3, 3] = p
    return X


def about_x(angle):
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[1, 0, 0], [0, c, -s], [0, s, c]])


def about_y(angle):
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])


def about_z(angle):
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])


def row_matrix(row, q, convention):
    sliding = row.get("joint") == "prismatic"
    theta = row["theta"] + (0.0 if sliding else q)
    d = row["d"] + (q if sliding else 0.0)
    screw_z = transform(about_z(theta)) @ transform(p=(0, 0, d))
    screw_x = transform(about_x(row["alpha"])) @ transform(p=(row["a"], 0, 0))
    return screw_z @ screw_x if convention == "standard" else screw_x @ screw_z


def base_matrix(at=(0.0, 0.0, 0.0), rotation=(0.0, 0.0, 0.0)):
    rotation = np.asarray(rotation)
    if rotation.shape == (3, 3):
        return transform(rotation, at)
    if rotation.shape == (4,):
        w, v = rotation[0], rotation[1:]
        cross = np.cross(np.eye(3), v)
        return transform(np.eye(3) + 2 * w * cross + 2 * cross @ cross, at)
    roll, pitch, yaw = rotation
    return transform(about_z(yaw) @ about_y(pitch) @ about_x(roll), at)


def body_poses(mechanism, q, parameters=()):
    """Pose of every body as a 4 x 4 matrix."""
    equations = mechanism.derive()
    outputs = [e for pose in equations.poses.values() for e in (pose.R, pose.p)]
    values = ca.Function("poses", [equations.q, equations.p], outputs).call(
        [ca.DM(q), ca.DM(list(parameters))]
    )
    return [
        transform(R.full(), p.full().ravel())
        for R, p in zip(values[0::2], values[1::2], strict=True)
    ]


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("convention", ["standard", "modified"])
def test_body_poses_are_products_of_the_rows(convention, base):
    chain = ax.chain_from_dh(ROWS, bodies=[SOLID] * 4, convention=convention, **BASES[base])
    q = np.random.default_rng(3).normal(size=4)
    expected = base_matrix(**BASES[base])
    for row, angle, X in zip(ROWS, q, body_poses(chain, q), strict=True):
        expected = expected @ row_matrix(row, angle, convention)
        np.testing.assert_allclose(X, expected, atol=ROUNDING)


def test_neighbouring_axes_on_one_line_may_point_apart():
    rows = [{"a": 0.0, "alpha": np.pi, "d": 0.2, "theta": -2.0}, ROWS[3]]
    chain = ax.chain_from_dh(rows, bodies=[SOLID] * 2)
    q = (0.3, -0.8)
    expected = row_matrix(rows[0], q[0], "standard") @ row_matrix(rows[1], q[1], "standard")
    np.testing.assert_allclose(body_poses(chain, q)[1], expected, atol=ROUNDING)


@pytest.mark.parametrize("convention", ["standard", "modified"])
def test_rows_and_bases_may_hold_formulas(convention):
    a, alpha = ax.Parameter("a", 0.3), ax.Parameter("alpha", 0.9)
    rows = [(a, alpha, a / 2, alpha * 2), (0.1, -alpha, 2 * a, 0.0)]
    base = {"at": (a, 0.0, -a), "rotation": (alpha, 0.0, alpha / 3)}
    chain = ax.chain_from_dh(rows, bodies=[SOLID] * 2, convention=convention, **base)
    q, A, ALPHA = (0.7, -0.2), 0.45, 1.3  # other values than the defaults
    names = list(chain.derive().parameters)
    values = [{"a": A, "alpha": ALPHA}[name] for name in names]
    expected = base_matrix((A, 0.0, -A), (ALPHA, 0.0, ALPHA / 3))
    numbers = [
        dict(zip(("a", "alpha", "d", "theta"), row, strict=True))
        for row in [(A, ALPHA, A / 2, ALPHA * 2), (0.1, -ALPHA, 2 * A, 0.0)]
    ]
    for row, angle, X in zip(numbers, q, body_poses(chain, q, values), strict=True):
        expected = expected @ row_matrix(row, angle, convention)
        np.testing.assert_allclose(X, expected, atol=ROUNDING)


def test_a_chain_may_sit_on_a_moving_body():
    cart = ax.Mechanism("cart")
    base = cart.add_body("base", mass=5.0, inertia=(1.0, 1.0, 1.0))
    cart.add_joint("slide", ax.Prismatic("x"), parent="ground", child=base)
    links = cart.chain_from_dh(
        ROWS[:2],
        bodies=[SOLID] * 2,
        on=base,
        at=(0, 0, 0.3),
        prefix="arm_",
        convention="modified",
        motors=True,
    )
    assert [link.name for link in links] == ["arm_link1", "arm_link2"]
    assert [drive.coordinate for drive in cart.drives] == ["arm_joint1", "arm_joint2"]
    q = np.array([0.8, 0.1, -0.4])
    expected = transform(p=(0.8, 0, 0.3)) @ row_matrix(ROWS[0], q[1], "modified")
    np.testing.assert_allclose(body_poses(cart, q)[1], expected, atol=ROUNDING)


def test_right_angles_leave_exact_zeros():
    chain = ax.chain_from_dh([(0.3, np.pi / 2, 0.2, 0.0)], bodies=[SOLID])
    connection = chain.connections[0]
    assert connection.child_rotation == ((1.0, 0.0, 0.0), (0.0, 0.0, 1.0), (0.0, -1.0, 0.0))
    assert connection.child_at == (-0.3, -0.2, 0.0)
    assert connection.at == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ([(1, 2, 3)], {}, "row 1: expected a, alpha, d, theta, got 3 values"),
        ([{"a": 1, "thta": 2}], {}, "row 1 has no 'thta'. Keys: .*Did you mean 'theta'"),
        ([(0, 0, 0, 0)], {"bodies": None}, "row 1 needs mass and inertia: give them in `bodies`"),
        ([(0, 0, 0, 0)] * 2, {}, "2 rows need 2 bodies, got 1"),
        ([{"joint": "ball"}], {}, "row 1: joint must be 'revolute' or 'prismatic', got 'ball'"),
        ([(0, 0, 0, 0)], {"convention": "craig"}, "convention must be 'standard' or 'modified'"),
        ([(0, "pi", 0, 0)], {}, "row 1, alpha: expected a number or a Parameter, got 'pi'"),
        ([(0, 0, 0, 0)], {"at": 3}, "chain, at: expected three numbers, got 3"),
        ([(0, 0, 0, 0)], {"rotation": (1, 2)}, "chain, rotation: expected roll, pitch, yaw"),
    ],
)
def test_wrong_tables_are_told(rows, options, message):
    with pytest.raises(ax.InvalidArgument, match=message):
        ax.chain_from_dh(rows, **{"bodies": [SOLID], **options})
