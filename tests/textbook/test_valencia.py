"""A mobile manipulator's arm and its platform, each by itself.

Valencia, Aviles and Mauledoux, "Dynamics of a mobile manipulator of 8 degrees of freedom for
inspection tasks", 2017. Arm: equations (31) to (48) with the inertia of the point masses about the
vertical on theta_1 (as equation (32) has it). Platform: equations (50) to (67) with the signs of
the differential drive put right and the wheels' spin inertia kept.
"""

import numpy as np
import pytest

import axode as ax
from tests.textbook.closed_forms import TABLE_TOLERANCE, assert_close

G = 9.81

# the arm -----------------------------------------------------------------------------------------

L1, L2, L3 = 0.3, 0.25, 0.15
M1, M2, M3, MC = 1.2, 0.9, 0.5, 0.3  # links at their middles, gripper at the tip
IB = 0.0064
FRICTION = (0.1, 0.2, 0.15, 0.05)


@pytest.fixture(scope="module")
def arm() -> ax.Model:
    """World y is up; the base yaws about y, the links pitch about z."""
    mechanism = ax.Mechanism("arm", gravity=(0, -G, 0))
    base = mechanism.add_body("base", mass=1.0, inertia=(IB, IB, IB))
    mechanism.add_joint("theta1", ax.Revolute("y"), parent=mechanism.ground, child=base)
    parent, at = base, (0.0, 0.0, 0.0)
    for k, (mass, length) in enumerate(((M1, L1), (M2, L2), (M3, L3)), start=2):
        link = mechanism.add_body(
            f"link{k}", mass=mass, com=(length / 2, 0, 0), inertia=ax.Inertia.point()
        )
        mechanism.add_joint(f"theta{k}", ax.Revolute("z"), parent=parent, child=link, at=at)
        parent, at = link, (length, 0.0, 0.0)
    gripper = mechanism.add_body("gripper", mass=MC, inertia=ax.Inertia.point())
    mechanism.add_joint("tip", ax.Fixed(), parent=parent, child=gripper, at=at)
    for k, friction in enumerate(FRICTION, start=1):
        mechanism.add_motor(f"theta{k}", f"theta{k}")
        mechanism.add_damper(f"friction{k}", f"theta{k}", coefficient=friction)
    return mechanism.derive().compile("interpreter")


class ArmForm:
    """M, V and G of the arm at a state."""

    def __init__(self, theta: np.ndarray, rates: np.ndarray) -> None:
        _, t2, t3, t4 = theta
        self.f = np.cumsum([t2, t3, t4])
        self.rates = rates
        self.c, self.s = np.cos(self.f), np.sin(self.f)
        self.c3, self.c4, self.c34 = np.cos(t3), np.cos(t4), np.cos(t3 + t4)
        ends = np.array([L1, L2, L3])
        # rows: the four masses, how much of each link lies before them
        self.reach = np.array([[0.5, 0, 0], [1, 0.5, 0], [1, 1, 0.5], [1, 1, 1]]) * ends
        self.m = np.array([M1, M2, M3, MC])

    @property
    def M(self) -> np.ndarray:
        l1, l2, l3 = L1**2, L2**2, L3**2
        p12, p13, p23 = L1 * L2 * self.c3, L1 * L3 * self.c34, L2 * L3 * self.c4
        M = np.zeros((4, 4))
        M[0, 0] = IB + self.m @ (self.reach @ self.c) ** 2
        M[1, 1] = M1 * l1 / 4 + M2 * (l1 + l2 / 4 + p12)
        M[1, 1] += M3 * (l1 + l2 + l3 / 4 + 2 * p12 + p13 + p23)
        M[1, 1] += MC * (l1 + l2 + l3 + 2 * p12 + 2 * p13 + 2 * p23)
        M[1, 2] = M2 * (l2 / 4 + p12 / 2) + M3 * (l2 + l3 / 4 + p12 + p13 / 2 + p23)
        M[1, 2] += MC * (l2 + l3 + p12 + p13 + 2 * p23)
        M[1, 3] = M3 * (l3 / 4 + p13 / 2 + p23 / 2) + MC * (l3 + p13 + p23)
        M[2, 2] = M2 * l2 / 4 + M3 * (l2 + l3 / 4 + p23) + MC * (l2 + l3 + 2 * p23)
        M[2, 3] = M3 * (l3 / 4 + p23 / 2) + MC * (l3 + p23)
        M[3, 3] = M3 * l3 / 4 + MC * l3
        return np.triu(M) + np.triu(M, 1).T

    @property
    def V(self) -> np.ndarray:
        yaw, f_dot = self.rates[0], np.cumsum(self.rates[1:])
        x, y = self.reach @ self.c, self.reach @ self.s
        x_dot = -self.reach @ (self.s * f_dot)
        a12 = (M2 / 2 + M3 + MC) * L1 * L2
        a13, a23 = (M3 / 2 + MC) * L1 * L3, (M3 / 2 + MC) * L2 * L3
        s12, s13, s23 = (np.sin(self.f[i] - self.f[j]) for i, j in ((0, 1), (0, 2), (1, 2)))
        h1 = a12 * s12 * f_dot[1] ** 2 + a13 * s13 * f_dot[2] ** 2
        h2 = -a12 * s12 * f_dot[0] ** 2 + a23 * s23 * f_dot[2] ** 2
        h3 = -a13 * s13 * f_dot[0] ** 2 - a23 * s23 * f_dot[1] ** 2
        lift = [y, y - L1 * self.s[0], y - L1 * self.s[0] - L2 * self.s[1]]
        swing = [yaw**2 * (self.m * x * arm)[k:].sum() for k, arm in enumerate(lift)]
        return np.array(
            [
                2 * yaw * (self.m * x * x_dot).sum(),
                h1 + h2 + h3 + swing[0],
                h2 + h3 + swing[1],
                h3 + swing[2],
            ]
        )

    @property
    def gravity(self) -> np.ndarray:
        terms = G * (self.m @ self.reach) * self.c
        return np.array([0.0, terms.sum(), terms[1:].sum(), terms[2]])


ARM_STATES = [
    ((0.3, 0.5, -0.7, 0.4), (0.8, -0.5, 1.2, -0.9)),
    ((-1.0, -1.2, 0.9, 0.3), (0.5, 1.0, -1.5, 2.0)),
]


@pytest.mark.parametrize(("theta", "rates"), ARM_STATES)
def test_arm_closed_form(arm: ax.Model, theta: tuple[float, ...], rates: tuple[float, ...]):
    q, nu = np.array(theta), np.array(rates)
    form = ArmForm(q, nu)
    assert_close(arm.mass_matrix(q), form.M)
    assert_close(arm.bias(q, nu), form.V)
    assert_close(arm.potential_force(q), -form.gravity)
    assert_close(arm.dissipative_force(q, nu), -np.array(FRICTION) * nu)
    wanted = np.array([1.0, -2.0, 0.5, 3.0])
    torque = form.M @ wanted + form.V + form.gravity + np.array(FRICTION) * nu
    assert_close(arm.inverse_dynamics(q, nu, wanted), torque)


def test_arm_table(arm: ax.Model):
    """A case computed with Lagrange's equations of the point masses in space."""
    found = arm.forward_dynamics(*ARM_STATES[1], [2.0, 2.0, 2.0, 2.0])
    wanted = [8.169032429910274, 42.88420093640497, -322.40623902411585, 926.7516427894667]
    assert_close(found, wanted, TABLE_TOLERANCE)


# the platform -------------------------------------------------------------------------------------

WHEEL_R, HALF_TRACK = 0.11, 0.24
BODY_MASS, BODY_YAW = 21.0, 0.8112
WHEEL_MASS, WHEEL_SPIN, WHEEL_YAW = 0.5, 0.01, 0.006
WHEEL_X = (0.2, 0.0, -0.2)
MASS = BODY_MASS + 6 * WHEEL_MASS
YAW = BODY_YAW + sum(2 * (WHEEL_MASS * (HALF_TRACK**2 + x**2) + WHEEL_YAW) for x in WHEEL_X)
SPIN = 3 * WHEEL_SPIN
DAMPING = {"right": 0.4, "left": 0.5}  # of a whole side


@pytest.fixture(scope="module")
def platform() -> ax.Equations:
    """Six driven wheels; only one of them may not slide sideways, so that they can turn."""
    mechanism = ax.Mechanism("platform")
    body = mechanism.add_body("body", mass=BODY_MASS, inertia=(0.5, 0.6, BODY_YAW))
    mechanism.add_joint(
        "base", ax.Planar(), parent=mechanism.ground, child=body, at=(0, 0, WHEEL_R)
    )
    for side, y in (("right", -HALF_TRACK), ("left", HALF_TRACK)):
        for k, x in enumerate(WHEEL_X):
            keeps = "rigid" if (side, x) == ("right", 0.0) else "free"
            mechanism.add_wheel(
                f"{side}{k}",
                ax.Rolling(radius=WHEEL_R, lateral=keeps),
                on=body,
                at=(x, y, 0),
                mass=WHEEL_MASS,
                inertia=ax.Inertia.axial(WHEEL_SPIN, WHEEL_YAW, "y"),
                motor=True,
            )
            mechanism.add_damper(f"{side}{k}_damper", f"{side}{k}", coefficient=DAMPING[side] / 3)
    return mechanism.derive(independent=["right1", "left1"])


def test_platform_parameters_are_the_tables():
    assert_close([MASS, YAW, SPIN], [24.0, 1.1, 0.03])


def test_platform_closed_form(platform: ax.Equations):
    model = platform.compile("interpreter")
    assert platform.mobility.mobility == 2
    assert platform.actuation == "redundantly actuated"
    r, half = WHEEL_R, HALF_TRACK
    common, apart = MASS * r**2 / 4, YAW * r**2 / (4 * half**2)
    wanted = np.array(
        [[common + apart + SPIN, common - apart], [common - apart, common + apart + SPIN]]
    )
    q = {"base.yaw": 0.7854}
    assert_close(model.mass_matrix(q), wanted)
    nu = np.array([5.0, -1.0])
    assert_close(model.bias(q, nu), [0.0, 0.0])
    right, left = 10.0, 8.0
    found = model.forward_dynamics(q, nu, [right / 3] * 3 + [left / 3] * 3)
    right, left = right - DAMPING["right"] * nu[0], left - DAMPING["left"] * nu[1]
    v_dot = r * (right + left) / (MASS * r**2 + 2 * SPIN)
    w_dot = half * r * (right - left) / (YAW * r**2 + 2 * SPIN * half**2)
    assert_close(found, [(v_dot + half * w_dot) / r, (v_dot - half * w_dot) / r])
    assert_close([v_dot, w_dot], [5.179794520547945, -0.7873076464272933], TABLE_TOLERANCE)


def test_platform_side_force(platform: ax.Equations):
    """The one wheel that holds gives the centripetal force m v w."""
    model = platform.compile("interpreter")
    forces = model.contact_forces({"base.yaw": 0.7854}, [5.0, -1.0], np.zeros(6))
    assert_close(forces[model.contacts.index("right1"), 1], 7.26)
