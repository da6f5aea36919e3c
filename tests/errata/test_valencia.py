"""Valencia, Aviles and Mauledoux, *J. Eng. Applied Sci.* 12, 2017: rows E-1 to E-25."""

from functools import cache

import numpy as np
import pytest

import axode as ax
from axode.gallery import build
from tests.errata.systems import FAILS, SLOPE, G, conforms, error, holds, judge, slope

# the arm -----------------------------------------------------------------------------------------

LINKS = np.array([0.3, 0.25, 0.15])
MASSES = np.array([1.2, 0.9, 0.5, 0.3])  # three links at their middles, the gripper at the tip
BASE_MASS, BASE_RADIUS = 2.0, 0.08
# rows: the four masses; how much of each link lies before them
REACH = np.array([[0.5, 0, 0], [1, 0.5, 0], [1, 1, 0.5], [1, 1, 1]]) * LINKS


@cache
def arm(damping: float = 0.0) -> ax.Model:
    """World y is up; the base, a solid disk, yaws about y, the links pitch about z."""
    mechanism = ax.Mechanism("arm", gravity=(0, -G, 0))
    disk = ax.Inertia.cylinder(BASE_MASS, BASE_RADIUS, 0.05, "y")
    base = mechanism.add_body("base", mass=BASE_MASS, inertia=disk)
    mechanism.add_joint("theta1", ax.Revolute("y"), parent=mechanism.ground, child=base)
    parent, at = base, (0.0, 0.0, 0.0)
    for k, (mass, length) in enumerate(zip(MASSES, LINKS, strict=False), start=2):
        link = mechanism.add_body(
            f"link{k}", mass=mass, com=(length / 2, 0, 0), inertia=ax.Inertia.point()
        )
        mechanism.add_joint(f"theta{k}", ax.Revolute("z"), parent=parent, child=link, at=at)
        parent, at = link, (length, 0.0, 0.0)
    gripper = mechanism.add_body("gripper", mass=MASSES[3], inertia=ax.Inertia.point())
    mechanism.add_joint("tip", ax.Fixed(), parent=parent, child=gripper, at=at)
    for k in range(1, 5):
        mechanism.add_motor(f"theta{k}", f"theta{k}")
        mechanism.add_damper(f"theta{k}", f"theta{k}", coefficient=damping)
    return mechanism.derive().compile("interpreter")


class Posture:
    """The source's x_k, y_k and their rates at a state."""

    def __init__(self, theta: tuple[float, ...], rates: tuple[float, ...]) -> None:
        self.q, self.nu = np.array(theta), np.array(rates)
        self.model = arm()
        angles, turning = np.cumsum(self.q[1:]), np.cumsum(self.nu[1:])
        self.c, self.s = np.cos(angles), np.sin(angles)
        self.turning = turning
        self.x, self.y = REACH @ self.c, REACH @ self.s
        self.x_dot, self.y_dot = -REACH @ (self.s * turning), REACH @ (self.c * turning)
        self.base = BASE_MASS * BASE_RADIUS**2 / 2

    def energy(self, about_base: np.ndarray, y_dot: np.ndarray | None = None) -> float:
        """Kinetic energy, with I_k = m_k x_k^2 multiplying the squares of `about_base`."""
        y_dot = self.y_dot if y_dot is None else y_dot
        moving = MASSES @ (self.x_dot**2 + y_dot**2) / 2
        turning = (MASSES * self.x**2) @ about_base**2 / 2
        return moving + turning + self.base * self.nu[0] ** 2 / 2


@pytest.fixture(
    params=[
        ((0.3, 0.5, -0.7, 0.4), (0.8, -0.5, 1.2, -0.9)),
        ((-1.0, -1.2, 0.9, 0.3), (0.5, 1.0, -1.5, 2.0)),
    ],
    ids=["one", "another"],
)
def posture(request: pytest.FixtureRequest) -> Posture:
    return Posture(*request.param)


def test_E1_the_masses_turn_about_the_base(posture: Posture):
    """I_k = m_k x_k^2 belongs to theta_1_dot; 7, 13, 19, 25 print the pitch rates."""
    pitch = posture.nu[[1, 2, 3, 3]]
    judge(
        posture.model.energy(posture.q, posture.nu)[0],
        printed=posture.energy(pitch),
        correct=posture.energy(np.full(4, posture.nu[0])),
    )


def yaw_inertia(p: Posture, base: float, second: float) -> float:
    """A of equation 38: theta_1's own inertia."""
    third, gripper = p.x[2], p.x[3]
    return (
        base
        + MASSES[0] * (LINKS[0] * p.c[0]) ** 2 / 4
        + MASSES[1] * second**2 / 4
        + MASSES[2] * third**2
        + MASSES[3] * gripper**2
    )


def test_E2_a_solid_disk_has_half_of_m_r_squared(posture: Posture):
    second = LINKS[1] * posture.c[1] + 2 * LINKS[0] * posture.c[0]
    judge(
        posture.model.mass_matrix(posture.q)[0, 0],
        printed=yaw_inertia(posture, BASE_MASS * BASE_RADIUS**2, second),
        correct=yaw_inertia(posture, posture.base, second),
    )


def test_E2_equation_33_has_the_same_error(posture: Posture):
    """Torque of the base's axis without gravity and friction, at an acceleration of its own."""
    acceleration = np.array([1.5, 0.0, 0.0, 0.0])
    weight = posture.model.potential_force(posture.q)
    needed = posture.model.inverse_dynamics(posture.q, posture.nu, acceleration) + weight
    second = LINKS[1] * posture.c[1] + 2 * LINKS[0] * posture.c[0]
    rest = convective(posture, False, "correct")
    judge(
        needed[0],
        printed=1.5 * yaw_inertia(posture, BASE_MASS * BASE_RADIUS**2, second) + rest,
        correct=1.5 * yaw_inertia(posture, posture.base, second) + rest,
    )


def test_E3_the_second_link_has_its_own_height(posture: Posture):
    mixed = posture.y_dot.copy()
    mixed[1] = posture.y_dot[0]
    around = np.full(4, posture.nu[0])
    judge(
        posture.model.energy(posture.q, posture.nu)[0],
        printed=posture.energy(around, mixed),
        correct=posture.energy(around),
    )


def test_E3_w_c_is_the_grippers_mass(posture: Posture):
    """Equation 30 multiplies it by g: a weight would be multiplied twice."""
    height = lambda last: G * (MASSES[:3] @ posture.y[:3] + last * posture.y[3])  # noqa: E731
    reference = posture.model.energy(np.zeros(4), np.zeros(4))[1]
    judge(
        posture.model.energy(posture.q, posture.nu)[1] - reference,
        printed=height(MASSES[3] * G),
        correct=height(MASSES[3]),
    )


def test_E4_equation_38_lost_an_angle(posture: Posture):
    printed = LINKS[1] * posture.c[0] + 2 * LINKS[0] * posture.c[0]
    correct = LINKS[1] * posture.c[1] + 2 * LINKS[0] * posture.c[0]
    judge(
        posture.model.mass_matrix(posture.q)[0, 0],
        printed=yaw_inertia(posture, posture.base, printed),
        correct=yaw_inertia(posture, posture.base, correct),
    )


def convective(p: Posture, slip: bool, last: str) -> float:
    """Q of equation 42."""
    yaw, second = p.nu[0], p.nu[1]
    (l1, l2, l3), (c, s) = LINKS, (p.c, p.s)
    term2 = (2 * l1 * second * s[0] + l2 * s[1] * p.turning[1]) * (l2 * c[1] + 2 * l1 * c[0])
    head = l1 * second * (c[0] if slip else s[0])
    head += l3 * s[2] * p.turning[2] / 2 + l2 * s[1] * p.turning[1]
    tail = l1 * second * s[0] + l3 * s[2] * p.turning[2] + l2 * s[1] * p.turning[1]
    total = -MASSES[1] * yaw * term2 / 2 - 2 * MASSES[2] * yaw * head * p.x[2]
    total -= 2 * yaw * MASSES[3] * tail * p.x[3]
    if last == "printed":
        return total - (l1**2 * MASSES[0] * yaw + second * c[0] * s[0])
    return total - l1**2 * MASSES[0] * yaw * second * c[0] * s[0] / 2


def test_E5_equation_42_has_two_slips(posture: Posture):
    truth = posture.model.bias(posture.q, posture.nu)[0]
    judge(
        truth,
        printed=convective(posture, True, "printed"),
        correct=convective(posture, False, "correct"),
    )
    for slip, last in ((True, "correct"), (False, "printed")):  # either one alone is wrong
        assert error(convective(posture, slip, last), truth) > FAILS


def letters(p: Posture) -> tuple[np.ndarray, dict[str, float]]:
    """The source's letters for the entries of the inertia matrix, and Z."""
    names = "ABCDEFGHIJKLMNOP"
    found = dict(zip(names, p.model.mass_matrix(p.q).ravel(), strict=True))
    torque = np.array([2.0, -1.0, 0.5, 0.8])
    Z = torque - p.model.bias(p.q, p.nu) + p.model.potential_force(p.q)
    found |= dict(zip(("Z1", "Z2", "Z3", "Z4"), Z, strict=True))
    return p.model.forward_dynamics(p.q, p.nu, torque), found


def ratio(numerator: str, values: dict[str, float]) -> float:
    denominator = "F*K*P-G*J*P+G*L*N-H*K*N-F*L*O+H*J*O"
    return eval(numerator, {}, values) / eval(denominator, {}, values)


def test_E6_cramers_rule_for_theta_2(posture: Posture):
    truth, values = letters(posture)
    judge(
        truth[1],
        printed=ratio("G*L*Z4-H*K*Z4-H*O*Z3+H*O*Z3+K*P*Z2-L*O*Z2", values),
        correct=ratio("G*L*Z4-H*K*Z4-G*P*Z3+H*O*Z3+K*P*Z2-L*O*Z2", values),
    )


def test_E7_cramers_rule_for_theta_3(posture: Posture):
    truth, values = letters(posture)
    numerator = "F*L*Z4-H*J*Z4-F*P*Z3+H*N*Z3+J*P*Z2-L*N*Z2"
    judge(truth[2], printed=ratio(numerator, values), correct=-ratio(numerator, values))


def test_45_and_48_are_right(posture: Posture):
    truth, values = letters(posture)
    holds(truth[0], values["Z1"] / values["A"])
    holds(truth[3], ratio("F*K*Z4-G*J*Z4+G*N*Z3-F*O*Z3-K*N*Z2+J*O*Z2", values))


def test_E8_equation_36_has_accelerations(posture: Posture):
    model, q, nu = posture.model, posture.q, posture.nu
    wanted = np.array([1.0, -2.0, 0.5, 3.0])
    rest, M = model.bias(q, nu) - model.potential_force(q), model.mass_matrix(q)
    judge(model.inverse_dynamics(q, nu, wanted), printed=M @ nu + rest, correct=M @ wanted + rest)


def test_E19_a_torque_has_the_unit_N_m():
    """A unit of length that is ten times shorter makes torques a hundred times larger."""
    q, nu, nu_dot = np.full(2, 0.4), np.array([0.5, -1.0]), np.array([2.0, 1.0])
    metres, decimetres = (two_links(length).inverse_dynamics(q, nu, nu_dot) for length in (1, 10))
    judge(decimetres, printed=metres, correct=100 * metres)


def two_links(length: float) -> ax.Model:
    """Two links, with every length in a unit of its own; gravity is one too."""
    mechanism = ax.Mechanism("links", gravity=(0, -G * length, 0))
    parent, at = mechanism.ground, (0.0, 0.0, 0.0)
    for k in range(2):
        middle = (0.15 * length, 0, 0)
        link = mechanism.add_body(f"link{k}", mass=1.0, com=middle, inertia=ax.Inertia.point())
        mechanism.add_joint(f"joint{k}", ax.Revolute("z"), parent=parent, child=link, at=at)
        mechanism.add_motor(f"joint{k}", f"joint{k}")
        parent, at = link, (0.3 * length, 0.0, 0.0)
    return mechanism.derive().compile("interpreter")


def test_E20_the_first_link_has_weight(posture: Posture):
    reference = posture.model.energy(np.zeros(4), np.zeros(4))[1]
    heights = G * MASSES * posture.y
    judge(
        posture.model.energy(posture.q, posture.nu)[1] - reference,
        printed=heights[1:].sum(),
        correct=heights.sum(),
    )


def test_E21_the_distance_from_the_axis_not_the_length(posture: Posture):
    truth = posture.model.energy(posture.q, posture.nu)[0]
    around = np.full(4, posture.nu[0])
    lengths = np.append(LINKS, LINKS[2])
    wrong = (MASSES * (lengths**2 - posture.x**2)).sum() * posture.nu[0] ** 2 / 2
    judge(truth, printed=posture.energy(around) + wrong, correct=posture.energy(around))


def test_E22_the_friction_of_35_is_in_36_too(posture: Posture):
    """The last column of 36 has letters of other columns; 37 has the friction."""
    damped = arm(damping=0.4)
    q, nu, wanted = posture.q, posture.nu, np.array([1.0, -2.0, 0.5, 3.0])
    inertial = damped.mass_matrix(q) @ wanted + damped.bias(q, nu)
    without = inertial - damped.potential_force(q)
    judge(
        damped.inverse_dynamics(q, nu, wanted),
        printed=without - damped.potential_force(q) * [0, 1, 1, 1],  # V, W, X a second time
        correct=without + 0.4 * nu,
    )


def test_E23_equation_33_lost_a_sine_and_an_angle(posture: Posture):
    """Its last term lacks s_2, and the gripper's third link turns by theta_2 + theta_3 alone."""
    truth = posture.model.bias(posture.q, posture.nu)[0]
    p, (l1, _, l3) = posture, LINKS
    yaw, second = p.nu[:2]
    right = convective(posture, False, "correct")
    sine = -(l1**2) * MASSES[0] * yaw * second * p.c[0] / 2 * (1 - p.s[0])
    lost = l3 * (p.s[1] * p.turning[1] - p.s[2] * p.turning[2])
    angle = -2 * yaw * MASSES[3] * lost * p.x[3]
    judge(truth, printed=right + sine, correct=right)
    judge(truth, printed=right + angle, correct=right)


def test_E24_bounded_is_not_correct():
    """Pulses on the arm with the inertia of E-2: as bounded as with the right one."""
    right, wrong = (
        pushed(build("five_axis_arm", Ib=base, **dict.fromkeys(("b1", "b2", "b3", "b4"), 1.0)))
        for base in (0.02, 0.04)
    )
    assert max(np.abs(right).max(), np.abs(wrong).max()) < 2 * np.pi
    assert error(wrong, right) > FAILS


def pushed(mechanism: ax.Mechanism) -> np.ndarray:
    """Angles from hanging, pushed by 2 N m for 1 s and pulled for another."""
    model = mechanism.derive().compile("interpreter")
    motors = [f"tau{k}" for k in range(1, 5)]
    run = ax.simulate(model, 1.0, start={"theta2": -np.pi / 2}, input=dict.fromkeys(motors, 2.0))
    run += ax.simulate(model, 1.0, start=run, input=dict.fromkeys(motors, -2.0), t0=1.0)
    return np.array([run[f"theta{k}"] for k in range(1, 5)])


# the platform -------------------------------------------------------------------------------------

RADIUS, HALF = 0.11, 0.24  # of a wheel; half the track
BODY, WHEEL = (21.0, 0.8112), (0.5, 0.01, 0.006)  # mass and yaw; mass, spin and yaw
PLACES = (0.2, 0.0, -0.2)  # of the three wheels of a side
MASS = BODY[0] + 6 * WHEEL[0]
YAW = BODY[1] + sum(2 * (WHEEL[0] * (HALF**2 + x**2) + WHEEL[2]) for x in PLACES)


@cache
def platform(spin: float = WHEEL[1]) -> ax.Model:
    """Six driven wheels; one keeps the platform from sliding sideways, as the source has it."""
    mechanism = ax.Mechanism("platform")
    body = mechanism.add_body("body", mass=BODY[0], inertia=(0.5, 0.6, BODY[1]))
    mechanism.add_joint("base", ax.Planar(), parent=mechanism.ground, child=body, at=(0, 0, RADIUS))
    for side, y in (("right", -HALF), ("left", HALF)):
        for k, x in enumerate(PLACES):
            lateral = "rigid" if (side, k) == ("right", 1) else "free"
            inertia = ax.Inertia.axial(spin, WHEEL[2], "y", ideal=True)
            mechanism.add_wheel(
                f"{side}{k}",
                ax.Rolling(radius=RADIUS, lateral=lateral),
                on=body,
                at=(x, y, 0),
                mass=WHEEL[0],
                inertia=inertia,
                motor=True,
            )
    return mechanism.derive(independent=["right1", "left1"]).compile("interpreter")


class Drive:
    """The platform at a heading, with wheel rates and torques of its sides, right then left."""

    def __init__(
        self,
        theta: float,
        nu: tuple[float, float],
        torque: tuple[float, float],
        spin: float = WHEEL[1],
    ) -> None:
        self.model, self.nu, self.torque = platform(spin), np.array(nu), np.array(torque)
        self.theta, self.I1 = theta, 3 * spin
        self.c, self.s = np.cos(theta), np.sin(theta)
        self.q = np.zeros(len(self.model.coordinates))
        self.q[self.model.coordinates.index("base.yaw")] = theta
        self.nu_dot = self.model.forward_dynamics(self.q, self.nu, np.repeat(self.torque / 3, 3))

    def five(self, q: np.ndarray, nu: np.ndarray) -> np.ndarray:
        """Rates of x, y, theta, phi_R, phi_L from the model."""
        rates = dict(zip(self.model.coordinates, self.model.rates(q, nu), strict=True))
        return np.array([rates[n] for n in ("base.x", "base.y", "base.yaw", "right1", "left1")])

    @property
    def rates(self) -> np.ndarray:
        return self.five(self.q, self.nu)

    @property
    def accelerations(self) -> np.ndarray:
        return slope(self.five, self.model, self.q, self.nu, self.nu_dot)

    @property
    def forward(self) -> float:
        return RADIUS * self.nu.mean()

    def S(self, theta: float | None = None) -> np.ndarray:
        """Five rows; the first three are equation 60."""
        c, s = (self.c, self.s) if theta is None else (np.cos(theta), np.sin(theta))
        r = RADIUS
        return np.array(
            [
                [r * c / 2, r * c / 2],
                [r * s / 2, r * s / 2],
                [r / (2 * HALF), -r / (2 * HALF)],
                [1, 0],
                [0, 1],
            ]
        )


@pytest.fixture(
    params=[(0.7854, (5.0, -1.0), (10.0, 8.0)), (-2.0, (3.0, 4.0), (1.0, -6.0))],
    ids=["one", "another"],
)
def drive(request: pytest.FixtureRequest) -> Drive:
    return Drive(*request.param)


def test_52_and_60_are_right(drive: Drive):
    x, y, *_ = drive.rates
    assert abs(y * drive.c - x * drive.s) < 1e-12
    holds(drive.rates[:3], drive.S()[:3] @ drive.nu)


def test_E9_the_left_wheels_roll_with_the_other_sign(drive: Drive):
    x, y, turning, right, left = drive.rates
    ahead = x * drive.c + y * drive.s
    holds(RADIUS * right, ahead + HALF * turning)
    judge(RADIUS * left, printed=ahead + HALF * turning, correct=ahead - HALF * turning)


def constraints(drive: Drive, arm: float) -> np.ndarray:
    """A of equation 54 with this arm in the third column."""
    c, s, r = drive.c, drive.s, RADIUS
    return np.array([[-s, c, 0, 0, 0], [-c, -s, -arm, r, 0], [-c, -s, arm, 0, r]])


def test_E10_one_is_the_letter_l(drive: Drive):
    size = np.abs(drive.rates).max()
    assert np.abs(constraints(drive, HALF) @ drive.rates).max() < 1e-12 * size
    assert np.abs(constraints(drive, 1.0) @ drive.rates).max() > 1e-2 * size


def test_E10_the_mass_matrix_of_65_ends_in_I():
    """Without spin inertia, as 65 leaves it out; the multiplier keeps it from sliding."""
    light = Drive(0.3, (5.0, -1.0), (10.0, 8.0), spin=0.0)
    turn = np.array([HALF, -HALF]) / RADIUS @ light.torque
    judge(turn, printed=light.accelerations[2], correct=YAW * light.accelerations[2], within=SLOPE)


def test_E11_the_yaw_equation_of_55(drive: Drive):
    """Multipliers from the wheels' lines; the two of the translation hold with them."""
    x, y, turning, right, left = drive.accelerations
    lam_R, lam_L = (drive.torque - drive.I1 * np.array([right, left])) / RADIUS
    lam_c = MASS * (x * drive.s - y * drive.c)
    both = (lam_R + lam_L) * np.array([drive.c, drive.s])
    side = lam_c * np.array([drive.s, -drive.c])
    holds(MASS * np.array([x, y]), both + side, SLOPE)
    judge(
        YAW * turning, printed=-HALF * (lam_R + lam_L), correct=HALF * (lam_R - lam_L), within=SLOPE
    )


def test_E12_three_rows_of_S_do_not_fit_five_columns_of_A(drive: Drive):
    A, S = constraints(drive, HALF), drive.S()
    assert not conforms(A.shape, S[:3].shape)
    assert np.abs(A @ S).max() < 1e-15
    holds(drive.rates, S @ drive.nu)
    three = np.array([[-drive.s, drive.c, 0.0]])  # the other way out
    assert np.abs(three @ S[:3]).max() < 1e-15


def test_E13_wheel_rates_from_speed_and_turn(drive: Drive):
    motion = np.array([drive.forward, drive.rates[2]])
    judge(
        drive.nu,
        printed=np.full((2, 2), 1 / RADIUS) @ motion,
        correct=np.array([[1, HALF], [1, -HALF]]) / RADIUS @ motion,
    )


def test_E14_the_acceleration_of_64(drive: Drive):
    c, s, v, w = drive.c, drive.s, drive.forward, drive.rates[2]
    v_dot, w_dot = RADIUS * drive.nu_dot.mean(), drive.accelerations[2]
    drift = np.array([-w * s * v, w * c * v, 0.0])
    first = drift + np.array([[s, 0], [c, 0], [0, 0]]) @ [v_dot, w_dot]
    correct = drift + np.array([[c, 0], [s, 0], [0, 1]]) @ [v_dot, w_dot]
    judge(drive.accelerations[:3], printed=first, correct=correct, within=SLOPE)
    second = np.array([-w * v * s + v_dot * c, v_dot * s - w * v * c, w_dot])
    judge(drive.accelerations[:3], printed=second, correct=correct, within=SLOPE)


def test_E15_the_turn_of_67():
    """Wheels without spin inertia, as 66 and 67 leave it out."""
    light = Drive(0.3, (5.0, -1.0), (10.0, 8.0), spin=0.0)
    right, left = light.torque
    holds(RADIUS * light.nu_dot.mean(), (right + left) / (MASS * RADIUS))  # 66
    judge(
        light.accelerations[2],
        printed=HALF * (right + left) / (YAW * RADIUS),
        correct=HALF * (right - left) / (YAW * RADIUS),
        within=SLOPE,
    )


def test_E16_the_accelerations_of_69():
    """As printed, the transpose of S^T M stands where an inverse has to."""
    light = Drive(0.3, (5.0, -1.0), (10.0, 8.0), spin=0.0)
    S, M = light.S()[:3], np.diag([MASS, MASS, YAW])
    B = np.array([[light.c, light.c], [light.s, light.s], [HALF, -HALF]]) / RADIUS
    force = S.T @ B @ light.torque
    S_dot = slope(
        lambda q, _: light.S(q[light.model.coordinates.index("base.yaw")])[:3],
        light.model,
        light.q,
        light.nu,
    )
    nu_dot = np.linalg.solve(S.T @ M @ S, force - S.T @ M @ S_dot @ light.nu)
    judge(
        light.accelerations[:3],
        printed=(S.T @ M).T @ force,
        correct=S_dot @ light.nu + S @ nu_dot,
        within=SLOPE,
    )
    assert (S.T @ M).shape == (2, 3)  # it has no inverse either


def reduced(drive: Drive, mass: float, yaw: float, spin: float) -> np.ndarray:
    S = drive.S()
    return S.T @ np.diag([mass, mass, yaw, spin, spin]) @ S


def test_E17_the_wheels_spin_counts(drive: Drive):
    judge(
        drive.model.mass_matrix(drive.q),
        printed=reduced(drive, MASS, YAW, 0.0),
        correct=reduced(drive, MASS, YAW, drive.I1),
    )


def test_E18_six_wheels_and_their_distances(drive: Drive):
    few = reduced(drive, BODY[0] + 2 * WHEEL[0], BODY[1] + 2 * WHEEL[2], drive.I1)
    wheels = 6 * WHEEL[2] + 6 * WHEEL[0] * HALF**2 + 2 * WHEEL[0] * sum(x**2 for x in PLACES)
    judge(
        drive.model.mass_matrix(drive.q),
        printed=few,
        correct=reduced(drive, BODY[0] + 6 * WHEEL[0], BODY[1] + wheels, drive.I1),
    )


def test_E25_the_platforms_inertia_is_its_own(drive: Drive):
    """I from two moments: it is the same on any radius, so that m_c r^2 / 2 of a path is not it."""
    radii = [abs(drive.forward / drive.rates[2]), 2.0]
    for radius in radii:
        reduced_to = lambda yaw: reduced(drive, MASS, yaw, drive.I1)  # noqa: E731
        judge(
            drive.model.mass_matrix(drive.q),
            printed=reduced_to(BODY[0] * radius**2 / 2 + 2 * WHEEL[2]),
            correct=reduced_to(YAW),
        )
