"""Yesiloglu, Temeltas and Kaynak, two-wheeled cart with pseudo joints: rows D-1 to D-14."""

from functools import cache

import numpy as np

import axode as ax
from tests.errata.systems import (
    FAILS,
    SLOPE,
    G,
    Pendulum,
    conforms,
    error,
    holds,
    judge,
    pendulum_model,
    slope,
    twist_map,
)
from tests.textbook.closed_forms import skew

# two arms in a vertical plane, holding one load; in the reference posture all angles are zero -----

ARMS = {
    "a": np.array([[-0.5, 0.0], [-0.7, 0.4], [-0.3, 0.7], [-0.1, 0.6]]),  # three joints and the tip
    "b": np.array([[0.5, 0.1], [0.6, 0.5], [0.35, 0.75], [0.15, 0.65]]),
}
LOAD = np.array([0.03, 0.68])  # its mass centre
LOAD_MASS, LOAD_INERTIA = 1.5, 0.04
JOINTS = tuple(f"{arm}{k}" for arm in ARMS for k in range(3))


def flat(point: np.ndarray) -> tuple[float, float, float]:
    return (float(point[0]), float(point[1]), 0.0)


@cache
def arms(closed: bool, load: float = 0.0) -> ax.Model:
    """Two arms on a turntable; their tips welded to a load, or free."""
    mechanism = ax.Mechanism("arms", gravity=(0, -G, 0))
    table = mechanism.add_body("table", mass=4.0, inertia=(1.0, 1.0, 0.8))
    mechanism.add_joint("table", ax.Revolute("z"), parent=mechanism.ground, child=table)
    for arm, points in ARMS.items():
        parent, before = table, np.zeros(2)
        for k in range(3):
            middle = (points[k + 1] - points[k]) / 2
            mass = 0.8 - 0.2 * k
            body = mechanism.add_body(
                f"{arm}{k}", mass=mass, com=flat(middle), inertia=(0.01, 0.01, 0.02 - 0.005 * k)
            )
            mechanism.add_joint(
                f"{arm}{k}",
                ax.Revolute("z"),
                parent=parent,
                child=body,
                at=flat(points[k] - before),
            )
            mechanism.add_motor(f"{arm}{k}", f"{arm}{k}")
            parent, before = body, points[k]
    if closed:
        moments = (load / 50, load / 50, LOAD_INERTIA * load / LOAD_MASS)
        inertia = moments if load else ax.Inertia.point()
        held = mechanism.add_body("load", mass=load, inertia=inertia)
        mechanism.add_joint(
            "grip_a", ax.Fixed(), parent="a2", child=held, at=flat(LOAD - ARMS["a"][2])
        )
        mechanism.add_loop(
            "grip_b", ax.Fixed(), parent="b2", child=held, at=flat(LOAD - ARMS["b"][2])
        )
    free = ["table", "a0", "a1", "a2"] if closed else None
    return mechanism.derive(independent=free).compile("interpreter")


def planar(twist: np.ndarray, arm: np.ndarray) -> np.ndarray:
    """Angular velocity and velocity in the plane, at a point `arm` away."""
    omega, (x, y) = twist[2], twist[3:5]
    return np.array([omega, x - omega * arm[1], y + omega * arm[0]])


class Tips:
    """Tip twists, grasp and annihilator of the free arms at a configuration."""

    def __init__(self, q: np.ndarray) -> None:
        self.model, self.q = arms(closed=False), q
        frames = dict(zip(self.model.bodies, self.model.poses(q), strict=True))
        self.at, self.offset = {}, {}
        for arm, points in ARMS.items():
            pose = frames[f"{arm}2"]
            self.at[arm] = (pose @ [*flat(points[3] - points[2]), 1.0])[:2]
            centre = (pose @ [*flat((points[3] - points[2]) / 2), 1.0])[:2]
            self.offset[arm] = self.at[arm] - centre
        self.load = (frames["a2"] @ [*flat(LOAD - ARMS["a"][2]), 1.0])[:2]

    def twists(self, rates: np.ndarray) -> np.ndarray:
        """V_t: both tips."""
        found = self.model.twists(self.q, rates)
        pick = self.model.bodies.index
        return np.concatenate([planar(found[pick(f"{a}2")], self.offset[a]) for a in ARMS])

    @property
    def jacobian(self) -> np.ndarray:
        """For unit rates of the table and of the six joints."""
        return np.array([self.twists(unit) for unit in np.eye(7)]).T

    @property
    def annihilator(self) -> np.ndarray:
        """A~ = [phi_ct of arm a, minus that of arm b]."""
        return np.hstack([shift(self.load - self.at["a"]), -shift(self.load - self.at["b"])])

    @property
    def grasp(self) -> np.ndarray:
        """A of equation 19: V_t = A V_c."""
        return np.vstack([shift(self.at[arm] - self.load) for arm in ARMS])


def shift(arm: np.ndarray) -> np.ndarray:
    """Takes a twist in the plane to a point `arm` away."""
    return np.array([[1, 0, 0], [-arm[1], 1, 0], [arm[0], 0, 1]])


class Problem:
    """Closed arms in the reference posture, with rates and torques; T = M acc + C + ... ."""

    def __init__(self, speeds: tuple[float, ...], load: float = 0.0, table: bool = False) -> None:
        self.closed, self.tree = arms(True, load), arms(False)
        self.q = np.zeros(7)
        self.torque = np.array([2.0, -1.0, 0.5, -1.5, 0.8, 1.2])
        nu = np.array(speeds)
        self.rates = self._all(self.closed.joint_speeds(self.q, nu))
        nu_dot = self.closed.forward_dynamics(self.q, nu, self.torque)
        if not table:
            nu_dot = held_table(self.closed, self.q, nu, self.torque)
        self.truth = self._all(self.closed.accelerations(self.q, nu, nu_dot))
        tips = self.tips = Tips(self.q)
        self.A, self.J, self.J_b = tips.annihilator, tips.jacobian[:, 1:], tips.jacobian[:, :1]
        M = self.tree.mass_matrix(self.q)
        self.M, self.L = M[1:, 1:], M[1:, :1]
        self.C = (self.tree.bias(self.q, self.rates) - self.tree.potential_force(self.q))[1:]
        self.bias = slope(
            lambda q, rates: Tips(q).annihilator @ Tips(q).twists(rates),
            self.tree,
            self.q,
            self.rates,
        )

    def _all(self, values: np.ndarray) -> np.ndarray:
        known = dict(zip(self.closed.speed_names, values, strict=True))
        return np.array([known[f"{name}.rate"] for name in ("table", *JOINTS)])

    def constrained(self, closure_bias: np.ndarray) -> np.ndarray:
        """Joint accelerations with the tips' forces from the closure."""
        inverse = np.linalg.inv(self.M)
        free = inverse @ (self.torque - self.C)
        AJ = self.A @ self.J
        force = np.linalg.solve(AJ @ inverse @ AJ.T, AJ @ free + closure_bias)
        return free - inverse @ AJ.T @ force


def held_table(model: ax.Model, q: np.ndarray, nu: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Accelerations when the table is held: its own row says what holds it, the others move."""
    M = model.mass_matrix(q)
    force = (
        model.input_force(q, u)
        + model.potential_force(q)
        + model.dissipative_force(q, nu)
        - model.bias(q, nu)
    )
    return np.array([0.0, *np.linalg.solve(M[1:, 1:], force[1:])])


REST, MOVING, TURNING = (0.0, 0, 0, 0), (0.0, 0.7, -0.5, 0.9), (0.6, 0.7, -0.5, 0.9)


def test_the_grasp_closes():
    """The posture and the rates that the other tests use are admissible."""
    assert np.abs(arms(True).residual(np.zeros(7))).max() < 1e-12
    problem = Problem(TURNING, table=True)
    tips = problem.tips.twists(problem.rates)
    assert np.abs(problem.A @ tips).max() < 1e-12 < np.abs(tips).max()


def test_D1_the_internal_force_needs_the_annihilator():
    """At rest and without a load, where D-2 does not matter."""
    problem = Problem(REST)
    J, inverse = problem.J, np.linalg.inv(problem.M)
    Lambda = J @ inverse @ J.T
    free = inverse @ (problem.torque - problem.C)
    force = np.linalg.solve(Lambda @ Lambda.T, Lambda @ J @ free)
    assert not conforms(J.T.shape, problem.A.T.shape, (len(force), 1))
    printed = free - inverse @ J.T @ force  # the only reading that can be multiplied
    judge(problem.truth[1:], printed=printed, correct=problem.constrained(np.zeros(3)))


def test_D2_moving_arms_have_a_closure_bias():
    problem = Problem(MOVING)
    judge(
        problem.truth[1:],
        printed=problem.constrained(np.zeros(3)),
        correct=problem.constrained(problem.bias),
        within=SLOPE,
    )


def test_D2_a_load_has_inertia():
    problem = Problem(REST, load=LOAD_MASS)
    M_c = np.diag([LOAD_INERTIA, LOAD_MASS, LOAD_MASS])
    A, J = problem.tips.grasp, problem.J
    zero = np.zeros
    system = np.block(
        [[problem.M, J.T, zero((6, 3))], [J, zero((6, 6)), -A], [zero((3, 6)), A.T, -M_c]]
    )
    weight = np.array([0, 0, LOAD_MASS * G])
    solution = np.linalg.solve(system, [*(problem.torque - problem.C), *zero(6), *weight])
    judge(problem.truth[1:], printed=problem.constrained(np.zeros(3)), correct=solution[:6])


def test_D3_two_matrices_share_one_letter():
    """7 and 8 want what annihilates; 19 and 26 want what distributes."""
    problem = Problem(TURNING, table=True)
    A, tips = problem.tips.grasp, problem.tips.twists(problem.rates)
    assert not conforms(A.shape, (len(tips), 1))  # A of 19 in 7
    load = shift(problem.tips.load - problem.tips.at["a"]) @ tips[:3]
    holds(tips, A @ load)
    assert np.abs(problem.A @ A).max() < 1e-12
    # the annihilator in 7: it gives zero, not the load's twist
    judge(np.zeros(3), printed=problem.A @ tips - load, correct=problem.A @ tips)


def arms_of_two_joints() -> tuple[Problem, np.ndarray, np.ndarray]:
    """The Jacobian of arms that lack a joint, and R of equation 11."""
    problem = Problem(REST)
    J = problem.J[:, [0, 1, 3, 4]]
    left, sizes, _ = np.linalg.svd(J)
    return problem, J, left[:, : int((sizes > 1e-10).sum())].T


def test_D4_the_reduced_closure():
    """Arms of two joints: J has fewer columns than tip velocities."""
    problem, J, R = arms_of_two_joints()
    assert R.shape == (4, 6)
    assert not conforms(problem.A.shape, R.shape)
    A_r, J_r = problem.A @ R.T, R @ J
    columns = np.eye(7)[[1, 2, 4, 5]]
    closure = np.array([problem.A @ problem.tips.twists(unit) for unit in columns]).T
    holds(closure, A_r @ J_r)


def test_D11_equation_10_gives_accelerations():
    """D, made without them, takes torques to the accelerations of arms at rest."""
    problem = Problem(REST)
    inverse, AJ = np.linalg.inv(problem.M), problem.A @ problem.J
    B = np.eye(6) - AJ.T @ np.linalg.solve(AJ @ inverse @ AJ.T, AJ @ inverse)
    given = problem.torque - problem.C
    holds(problem.truth[1:], inverse @ B @ given)
    assert error(inverse @ B @ problem.truth[1:], given) > FAILS  # and not the other way round


def test_D12_the_reduced_closure_takes_the_place_of_the_full_one():
    problem, J, R = arms_of_two_joints()
    J_r = R @ J
    assert not conforms(problem.A.shape, J_r.shape)
    assert conforms((problem.A @ R.T).shape, J_r.shape)


# the cart -----------------------------------------------------------------------------------------


def test_D5_three_of_the_carts_speeds_are_independent():
    """Wheel, wheel, and the pitch of the rod."""
    assert len(pendulum_model().independent) == 3 != 2
    T = twist_map(pendulum_model(), Pendulum(0.2, 0.3, (0, 0, 0)).q)
    assert np.linalg.matrix_rank(T) == 3
    cart, real = pivoted_cart(), real_and_pseudo()[0]
    speeds = cart.speed_map(cart.home)
    closure = null_space(speeds.T).T  # rows that the twelve speeds fulfil
    assert np.linalg.matrix_rank(closure[:, real]) == 5 == len(real) - 3


def null_space(matrix: np.ndarray) -> np.ndarray:
    _, sizes, right = np.linalg.svd(matrix)
    return right[int((sizes > 1e-10).sum()) :].T


CART_R, CART_L, CART_WHEEL, CART_ROD = 0.3, 0.6, (0.5, 0.0225, 0.01125), (2.0, 0.08)


@cache
def pivoted_cart() -> ax.Model:
    """Wheels on pivots at the ground, two pseudo joints each, half a rod each, welded."""
    mechanism = ax.Mechanism("pivoted", gravity=(0, 0, 0))
    for side, y in (("l", CART_L / 2), ("r", -CART_L / 2)):
        wheel = mechanism.add_body(
            f"{side}_wheel",
            mass=CART_WHEEL[0],
            com=(0, 0, CART_R),
            inertia=ax.Inertia.axial(*CART_WHEEL[1:], "y"),
        )
        mechanism.add_joint(
            f"{side}_pivot", ax.Spherical(), parent=mechanism.ground, child=wheel, at=(0, y, 0)
        )
        parent, at = wheel, (0, 0, CART_R)
        for name, joint in (("lean", ax.Revolute("x")), ("lift", ax.Prismatic("z"))):
            body = mechanism.add_body(f"{side}_{name}", mass=0.0, inertia=ax.Inertia.point())
            mechanism.add_joint(f"{side}_{name}", joint, parent=parent, child=body, at=at)
            parent, at = body, (0, 0, 0)
        half = mechanism.add_body(
            f"{side}_rod", mass=CART_ROD[0] / 2, com=(0, -y, 0), inertia=[CART_ROD[1] / 2] * 3
        )
        mechanism.add_joint(f"{side}_motor", ax.Revolute("y"), parent=parent, child=half)
        mechanism.add_motor(f"{side}_motor", f"{side}_motor")
    mechanism.add_loop("weld", ax.Fixed(), parent="l_rod", child="r_rod", at=(0, -CART_L, 0))
    return mechanism.derive().compile("interpreter")


@cache
def rolling_cart() -> ax.Model:
    mechanism = ax.Mechanism("cart", gravity=(0, 0, 0))
    rod = mechanism.add_body("rod", mass=CART_ROD[0], inertia=[CART_ROD[1]] * 3)
    mechanism.add_joint("base", ax.Floating(), parent=mechanism.ground, child=rod)
    for side, y in (("l", CART_L / 2), ("r", -CART_L / 2)):
        mechanism.add_wheel(
            side,
            ax.Rolling(radius=CART_R),
            on=rod,
            at=(0, y, 0),
            mass=CART_WHEEL[0],
            motor=True,
            inertia=ax.Inertia.axial(*CART_WHEEL[1:], "y"),
        )
    mechanism.set_home({"base.z": CART_R})
    return mechanism.derive(independent=["l", "r", "base.wy"]).compile("interpreter")


def real_and_pseudo() -> tuple[list[int], list[int]]:
    names = pivoted_cart().speed_names
    pseudo = [i for i, name in enumerate(names) if "lean" in name or "lift" in name]
    return [i for i in range(len(names)) if i not in pseudo], pseudo


def test_D6_the_block_to_invert_is_singular():
    """d4 has rank 3 of 4; its pseudo-inverse gives the rolling cart's accelerations."""
    cart = pivoted_cart()
    real, pseudo = real_and_pseudo()
    assert (len(real), len(pseudo)) == (8, 4)
    Theta = cart.speed_map(cart.home)
    D = Theta @ np.linalg.solve(cart.mass_matrix(cart.home), Theta.T)  # of equation 10
    d4 = D[np.ix_(pseudo, pseudo)]
    assert np.linalg.matrix_rank(d4, tol=1e-9 * np.abs(d4).max()) == 3
    assert np.linalg.cond(d4) > 1e12
    torque = np.zeros(len(Theta))
    left, right = (cart.speed_names.index(f"{side}_motor.rate") for side in "lr")
    torque[left], torque[right] = -0.3, -0.1  # on the rod, hence minus those on the wheels
    inner = D[np.ix_(real, pseudo)] @ np.linalg.pinv(d4, rcond=1e-9) @ D[np.ix_(pseudo, real)]
    found = np.zeros(len(Theta))
    found[real] = (D[np.ix_(real, real)] - inner) @ torque[real]
    rolling = rolling_cart()
    wanted = rolling.forward_dynamics(rolling.home, np.zeros(3), [0.3, 0.1])
    holds(wanted[:2], -found[[left, right]], 1e-9)


def test_D7_the_material_contact_point_accelerates():
    """By -omega x q_dot, q_dot being the velocity of the wheel's centre; print: not at all."""
    k = Pendulum(0.3, 0.4, (3.0, 1.0, -0.8))
    nu_dot = k.model.forward_dynamics(k.q, k.nu, [0.1, 0.05])
    at = k.model.bodies.index("left")
    omega, v = np.split(k.model.twists(k.q, k.nu)[at], 2)
    change = slope(lambda q, nu: k.model.twists(q, nu)[at], k.model, k.q, k.nu, nu_dot)
    s = np.array([0.0, 0.0, -k.r])
    found = change[3:] + np.cross(change[:3], s) + np.cross(omega, np.cross(omega, s))
    judge(found, printed=np.zeros(3), correct=-np.cross(omega, v), within=SLOPE)


# a single arm by spatial operators ----------------------------------------------------------------

CHAIN = ((0.9, (0.1, 0.05, 0.2), "z"), (0.7, (0.25, 0.0, 0.05), "y"), (0.4, (0.1, 0.1, 0.0), "x"))
STEPS = np.array([[0.0, 0.0, 0.3], [0.1, 0.0, 0.35], [0.4, 0.05, 0.0], [0.2, 0.1, 0.1]])
TENSORS = [np.diag([0.02, 0.03, 0.025]), np.diag([0.01, 0.02, 0.015]), np.diag([4e-3, 5e-3, 6e-3])]


@cache
def chain(weight: float = 0.0) -> ax.Model:
    mechanism = ax.Mechanism("chain", gravity=(0, 0, -weight))
    parent = mechanism.ground
    for k, (mass, com, axis) in enumerate(CHAIN):
        body = mechanism.add_body(f"link{k}", mass=mass, com=com, inertia=TENSORS[k])
        mechanism.add_joint(
            f"joint{k}", ax.Revolute(axis), parent=parent, child=body, at=tuple(STEPS[k])
        )
        parent = body
    return mechanism.derive().compile("interpreter")


class Operators:
    """phi, H, M, a, b of the chain at a state, in world axes."""

    def __init__(self, q: np.ndarray, rates: np.ndarray) -> None:
        model = chain()
        poses, twists = model.poses(q), model.twists(q, rates)
        axes = np.eye(3)[["xyz".index(axis) for *_, axis in CHAIN]]
        self.poses, n = poses, 3
        self.phi, self.H, self.M = np.eye(6 * n), np.zeros((6 * n, n)), np.zeros((6 * n, 6 * n))
        self.a, self.b = np.zeros(6 * n), np.zeros(6 * n)
        before = np.zeros(3)
        for k, (mass, com, _) in enumerate(CHAIN):
            R, at, omega = poses[k, :3, :3], slice(6 * k, 6 * k + 6), twists[k, :3]
            arm = R @ np.array(com)
            tensor = R @ TENSORS[k] @ R.T - mass * skew(arm) @ skew(arm)
            self.H[6 * k : 6 * k + 3, k] = R @ axes[k]
            self.M[at, at] = np.block(
                [[tensor, mass * skew(arm)], [-mass * skew(arm), mass * np.eye(3)]]
            )
            for j in range(k):
                step = poses[k, :3, 3] - poses[j, :3, 3]
                self.phi[at, 6 * j : 6 * j + 6] = carry(step)
            step = poses[k, :3, 3] - poses[k - 1, :3, 3] if k else np.zeros(3)
            self.a[at] = [*np.cross(before, omega), *np.cross(before, np.cross(before, step))]
            turning = np.cross(omega, tensor @ omega)
            self.b[at] = [*turning, *(mass * np.cross(omega, np.cross(omega, arm)))]
            before = omega


def carry(step: np.ndarray) -> np.ndarray:
    """Takes a twist to a point `step` away."""
    return np.block([[np.eye(3), np.zeros((3, 3))], [-skew(step), np.eye(3)]])


POSTURE, RATES = np.array([0.4, -0.7, 1.1]), np.array([1.2, -0.8, 1.5])


def test_5_is_right():
    """Inertia and bias of a tree, with b."""
    o, model = Operators(POSTURE, RATES), chain()
    holds(model.mass_matrix(POSTURE), o.H.T @ o.phi.T @ o.M @ o.phi @ o.H)


def test_D8_the_bias_forces_stay():
    o = Operators(POSTURE, RATES)
    first = o.H.T @ o.phi.T @ o.M @ o.phi @ o.a
    judge(chain().bias(POSTURE, RATES), printed=first, correct=first + o.H.T @ o.phi.T @ o.b)


def test_D8_the_force_on_the_load_is_not_known_beforehand():
    """F_c = M_c alpha_c + b_c changes with the torques, so that it is no bias."""
    model = arms(True, LOAD_MASS)
    nu = np.array(MOVING)
    at = model.bodies.index("load")

    def force(torque: np.ndarray) -> np.ndarray:
        nu_dot = model.forward_dynamics(np.zeros(7), nu, torque)
        moved = slope(lambda q, nu: model.twists(q, nu)[at], model, np.zeros(7), nu, nu_dot)
        return np.diag([LOAD_INERTIA, LOAD_MASS, LOAD_MASS]) @ moved[2:5]

    assert error(force(np.ones(6)), force(np.zeros(6))) > 0.01


def test_D9_the_coefficients_of_36():
    """On a table that turns and accelerates, so that every G counts."""
    problem = Problem(TURNING, table=True)
    truth, A, J, L = problem.truth, problem.A, problem.J, problem.L
    inverse, AJ = np.linalg.inv(problem.M), problem.A @ problem.J
    X = np.linalg.inv(AJ @ inverse @ AJ.T)
    base = truth[:1]
    given = problem.torque - problem.M @ truth[1:] - problem.C - L @ base
    force, *_ = np.linalg.lstsq(AJ.T, given, rcond=None)  # what holds the tips together
    assert np.abs(AJ.T @ force - given).max() < 1e-8 * np.abs(given).max()
    # G_b, G_d and the bias of G_e together are X times the closure bias
    printed = -X @ AJ @ inverse @ problem.torque + X @ A @ (J @ inverse @ L - problem.J_b) @ base
    assert problem.C.shape != (A @ problem.J_b)[:, 0].shape  # G_e does not conform, either
    printed = printed + X @ (AJ @ inverse @ problem.C) - X @ problem.bias
    correct = X @ (
        AJ @ inverse @ (problem.torque - problem.C - L @ base)
        + A @ problem.J_b @ base
        + problem.bias
    )
    judge(force, printed=printed, correct=correct, within=1e-7)
    holds(-force, printed, 1e-7)


def test_D10_the_tip_is_not_a_joint():
    """sigma_t ends in phi_tn; phi_{n,n-1} carries the last link's twist by the wrong arm."""
    o, model = Operators(POSTURE, RATES), chain()
    V = o.phi @ o.H @ RATES
    last = o.poses[2]
    tip = last[:3, :3] @ STEPS[3]
    at = model.twists(POSTURE, RATES)[2]
    arm = tip - last[:3, :3] @ np.array(CHAIN[2][1])
    truth = np.array([*at[:3], *(at[3:] + np.cross(at[:3], arm))])
    step = last[:3, 3] - o.poses[1][:3, 3]
    judge(truth, printed=carry(step) @ V[12:], correct=carry(tip) @ V[12:])


def test_D13_weight_is_an_upward_acceleration_of_the_base():
    """What the chain at rest needs to be held up, with g of 22 pointing down."""
    o = Operators(POSTURE, np.zeros(3))
    g = np.tile([0.0, 0, 0, 0, 0, -G], 3)  # phi sigma_b g: a translation is the same everywhere
    torque = o.H.T @ o.phi.T @ o.M @ g
    held = -chain(weight=G).potential_force(POSTURE)
    judge(held, printed=torque, correct=-torque)


def test_D14_the_tip_has_a_bias_of_its_own():
    """a_t, which no line defines: without it the tip turns with its link and has no centripetal
    acceleration against that link's origin."""
    o, model = Operators(POSTURE, RATES), chain()

    def tip(q: np.ndarray, nu: np.ndarray) -> np.ndarray:
        pose, twist = model.poses(q)[2], model.twists(q, nu)[2]
        arm = pose[:3, :3] @ (STEPS[3] - np.array(CHAIN[2][1]))
        return np.array([*twist[:3], *(twist[3:] + np.cross(twist[:3], arm))])

    reach, omega = o.poses[2, :3, :3] @ STEPS[3], model.twists(POSTURE, RATES)[2, :3]
    carried = carry(reach) @ (o.phi @ o.a)[12:]
    a_t = np.array([*np.zeros(3), *np.cross(omega, np.cross(omega, reach))])
    truth = slope(tip, model, POSTURE, RATES)
    judge(truth, printed=carried, correct=carried + a_t, within=SLOPE)
