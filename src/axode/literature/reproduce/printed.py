"""The sources' equations, written apart from the library's, to be compared with.

Nothing of Axode is computed with them. Each docstring states what is in the source and what does
not: equations as printed (`quasimoro`, `delta_array`), the printed ones with their errata corrected
or left in (`caster`, `rolling_disk`), the same model written in another way (`five_axes`), the
print beside it (`five_axes_base`, `five_axes_cramer`), and models that the source only asks for
(`casters`, `mecanum`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline

from axode.numerics.rank import least_squares
from axode.numerics.tolerances import ON_TIME

Array = npt.NDArray[np.float64]
RTOL, ATOL = 1e-10, 1e-12
LOST = 1e3  # [rad/s]: what turns faster is not followed any longer

CASTER_ERRATA = ("A-7", "A-8", "A-9")  # that its equations of motion have

# The robot with a caster: one set of numbers for the examples of both its sources.
CASTER = {
    "a": 0.12,
    "b": 0.18,
    "d": 0.06,
    "l": 0.5,
    "r": 0.1,
    "I": 0.006,
    "H": 0.0032,
    "mw": 1.2,
    "mc": 0.6,
    "mb": 0.4,
    "Ib": 0.0008,
    "mp": 15.0,
    "Ip": 0.55,
}


def integrate(
    rates: Callable[[float, Array], Array],
    start: npt.ArrayLike,
    times: Array,
    kinks: Sequence[float] = (),
) -> Array:
    """States at some times, (states, times), by SciPy's integrator, restarted at every kink."""
    x = np.asarray(start, dtype=float)
    found = [x[:, np.newaxis]]
    for begin, end in pairwise([times[0], *kinks, times[-1]]):
        asked = times[(times > begin + ON_TIME) & (times <= end + ON_TIME)]
        before = np.nextafter(end, begin)  # what jumps at the end is not seen yet
        run = solve_ivp(
            lambda t, x, before=before: rates(min(t, before), x),
            (begin, end),
            x,
            method="DOP853",
            t_eval=asked.clip(begin, end),
            rtol=RTOL,
            atol=ATOL,
        )
        found.append(run.y)
        x = run.y[:, -1]
    return np.concatenate(found, axis=1)


# Staicu 2011 -------------------------------------------------------------------------------------


def quasimoro(p: Mapping[str, float], theta3: float, rates: Array) -> tuple[Array, Array]:
    """Equations (23) to (29): inertia A and the rest b, A theta_dd + b = (M1, M2, M1 + M2).

    A33 is J2, as printed; it ought to be J3, which the source does not give (erratum C-1).
    """
    A, b = quasimoro_terms(p, np.cos(theta3), np.sin(theta3), rates)
    return np.array(A), np.array(b)


def quasimoro_terms(p: Any, c: Any, s: Any, rates: Any) -> tuple[list[list[Any]], list[Any]]:
    """A and b of `quasimoro` for the cosine and sine of theta_3, of numbers or of symbols."""
    w1, w2, w3 = rates
    m, M, r, d, rho, J1, J2 = (p[name] for name in ("m", "M", "r", "d", "rho", "J1", "J2"))
    yaw = J1 * c**2 + J2 * s**2
    A11 = 0.5 * m * r**2 * (3 + rho**2) + rho**2 * yaw + 0.25 * M * r**2
    A12 = -0.5 * m * r**2 * rho**2 - rho**2 * yaw + 0.25 * M * r**2
    A13 = 0.5 * M * r * d * c
    A14, A15 = M * r * d * rho**2 * s, 2 * rho**2 * (J1 - J2) * s * c
    A19, A34 = -0.5 * M * r * d * s, -2 * (J1 - J2) * rho**2 * s * c
    A = [[A11, A12, A13], [A12, A11, A13], [A13, A13, J2]]
    b = [
        A14 * w1 * w2 + A15 * (w2 - w1) * w3 - A14 * w2**2 + A19 * w3**2,
        A14 * w1 * w2 + A15 * (w1 - w2) * w3 - A14 * w1**2 + A19 * w3**2,
        A34 * w1 * w2 - A34 / 2 * (w1**2 + w2**2) + M * p["g"] * d * s,
    ]
    return A, b


def quasimoro_locked(p: Mapping[str, float]) -> Array:
    """Inertia of the wheels while the body is locked, (M1, M2) for unit accelerations: (36)."""
    M, m, r, rho = p["M"], p["m"], p["r"], p["rho"]
    apart = np.array([[1.0, -1.0], [-1.0, 1.0]])
    wheels = m * r**2 / 2 * (3 * np.eye(2) + rho**2 * apart)
    return M * r**2 / 4 * np.ones((2, 2)) + wheels + p["J1"] * rho**2 * apart


def quasimoro_driven(
    p: Mapping[str, float],
    torques: Callable[[float], tuple[float, float]],
    times: Array,
    kink: float,
) -> Array:
    """theta_1, theta_2, theta_3 and their rates under torques, from rest."""

    def rates(t: float, x: Array) -> Array:
        A, b = quasimoro(p, x[2], x[3:])
        M1, M2 = torques(t)
        return np.concatenate([x[3:], np.linalg.solve(A, np.array([M1, M2, M1 + M2]) - b)])

    return integrate(rates, np.zeros(6), times, (kink,))


def quasimoro_held(
    p: Mapping[str, float],
    M1: Callable[[float], float],
    times: Array,
    kink: float,
    *,
    release: bool = False,
) -> tuple[Array, Array]:
    """Integrate with wheel 2 held, until the kink or for ever; return the torque that holds it."""

    def solve(t: float, x: Array) -> Array:
        """theta_1_dd, theta_3_dd and M2, for which theta_2_dd = 0."""
        A, b = quasimoro(p, x[2], x[3:])
        unknown = np.column_stack([A[:, 0], A[:, 2], [0.0, -1.0, -1.0]])
        found: Array = np.linalg.solve(unknown, np.array([M1(t), 0.0, M1(t)]) - b)
        return found

    def rates(t: float, x: Array) -> Array:
        if release and t >= kink:
            A, b = quasimoro(p, x[2], x[3:])
            return np.array([*x[3:], *np.linalg.solve(A, -b)])
        first, third, _ = solve(t, x)
        return np.array([*x[3:], first, 0.0, third])

    states = integrate(rates, np.zeros(6), times, (kink,))
    return states, np.array([solve(t, x)[2] for t, x in zip(times, states.T, strict=True)])


# Valencia, Aviles and Mauledoux 2017 -------------------------------------------------------------


def six_wheels(
    p: Mapping[str, float], right: float, left: float, times: Array, *, misprint: bool = False
) -> Array:
    """Forward speed and turning rate from rest under constant torques: equations (66) and (67).

    With the wheels' inertia I1 of (55), their friction, and (67) as erratum E-15 corrects it, or
    with the sum of the torques in it, as printed.
    """
    r, l = p["r"], p["l"]
    turning = right + left if misprint else right - left
    found = []
    for mass, force, drag in (
        (p["m"] * r**2 + 2 * p["I1"], r * (right + left), p["bR"] + p["bL"]),
        (p["I"] * r**2 + 2 * p["I1"] * l**2, l * r * turning, l**2 * (p["bR"] + p["bL"])),
    ):
        found.append(force / drag * -np.expm1(-drag / mass * times))
    return np.array(found)


def six_wheels_as_printed(
    p: Mapping[str, float], both: float, times: Array, heading: float
) -> Array:
    """v, w and theta from rest by (66) and (67) as they stand there, and theta_dot = w.

    Args:
        p: Data of the platform.
        both: The sum of the torques, which is all that the two equations depend on.
        times: From zero.
        heading: At the start.
    """
    speed = both / (p["m"] * p["r"]) * times
    turning = p["l"] * both / (p["I"] * p["r"]) * times
    return np.array([speed, turning, heading + turning * times / 2])


def five_axes(
    p: Mapping[str, float],
    torque: Callable[[float], float],
    start: npt.ArrayLike,
    times: Array,
    kinks: Sequence[float],
    *,
    misprint: bool = False,
) -> Array:
    """theta_1 to theta_4 and their rates, the same torque on all axes: equation (35).

    Not as it stands there: written with the links' slopes f, from which M, V and G of (32) to (34)
    follow by adding up, and free of errata. Or, as far as it is printed, as it stands there: the
    base by (37), (38), (42) and (45), the others by (46) to (48). NaN once a rate is beyond LOST.
    """
    masses = np.array([p["m1"], p["m2"], p["m3"], p["mc"]])
    # rows: the four masses, how much of each link lies before them
    reach = np.array([[0.5, 0, 0], [1, 0.5, 0], [1, 1, 0.5], [1, 1, 1]])
    reach = reach * [p["l1"], p["l2"], p["l3"]]
    shared = reach.T @ (masses[:, np.newaxis] * reach)
    slopes = np.tril(np.ones((3, 3)))  # f = slopes (theta_2, theta_3, theta_4)
    friction = np.array([p["b1"], p["b2"], p["b3"], p["b4"]])

    def rates(t: float, x: Array) -> Array:
        f, f_dot, yaw = slopes @ x[1:4], slopes @ x[5:], x[4]
        out, out_dot = reach @ np.cos(f), -reach @ (np.sin(f) * f_dot)  # of the masses, from axis 1
        between = f[:, np.newaxis] - f
        M = slopes.T @ (shared * np.cos(between)) @ slopes
        V = (shared * np.sin(between)) @ f_dot**2 + yaw**2 * (reach.T @ (masses * out)) * np.sin(f)
        G = p["g"] * (masses @ reach) * np.cos(f)
        given = torque(t) - friction * x[4:]
        first = (given[0] - 2 * yaw * masses @ (out * out_dot)) / (p["Ib"] + masses @ out**2)
        Z = given[1:] - slopes.T @ (V + G)
        others = np.linalg.solve(M, Z)
        if misprint:
            A, Q = _base_as_printed(p, x[:4], x[4:])
            first, others[:2] = (given[0] - Q) / A, five_axes_cramer(M, Z)
        return np.array([*x[4:], first, *others]) * (np.abs(x[4:]).max() < LOST)

    found = integrate(rates, start, times, kinks)
    lost = np.maximum.accumulate(np.abs(found[4:]).max(axis=0) >= LOST)
    return np.where(lost, np.nan, found)


def five_axes_base(p: Mapping[str, float], theta: Array, rates: Array, first: Array) -> Array:
    """Torque of the base for an acceleration of its own by (37), (38) and (42), as printed.

    Args:
        p: Data of the arm.
        theta, rates: theta_1 to theta_4 and their rates, (4, samples).
        first: Acceleration of theta_1.
    """
    A, Q = _base_as_printed(p, theta, rates)
    found: Array = A * first + Q + p["b1"] * rates[0]
    return found


def _base_as_printed(p: Mapping[str, float], theta: Array, rates: Array) -> tuple[Array, Array]:
    """A of (38) and Q of (42)."""
    l1, l2, l3 = (p[name] for name in ("l1", "l2", "l3"))
    m1, m2, m3, w_c = (p[name] for name in ("m1", "m2", "m3", "mc"))
    (c2, c23, c234), (s2, s23, s234) = (f(np.cumsum(theta[1:], axis=0)) for f in (np.cos, np.sin))
    w2, w23, w234 = np.cumsum(rates[1:], axis=0)
    half, whole = l2 * c23 + l1 * c2 + l3 * c234 / 2, l2 * c23 + l1 * c2 + l3 * c234
    A = m3 * half**2 + w_c * whole**2 + 2 * p["Ib"] + m1 * l1**2 * c2**2 / 4
    A = A + m2 * (l2 * c2 + 2 * l1 * c2) ** 2 / 4
    Q = -m2 * rates[0] * (2 * l1 * w2 * s2 + l2 * s23 * w23) * (l2 * c23 + 2 * l1 * c2) / 2
    Q = Q - 2 * m3 * rates[0] * (l1 * w2 * c2 + l3 * s234 * w234 / 2 + l2 * s23 * w23) * half
    Q = Q - 2 * rates[0] * w_c * (l1 * w2 * s2 + l3 * s234 * w234 + l2 * s23 * w23) * whole
    return A, Q - (l1**2 * m1 * rates[0] + w2 * c2 * s2)


def five_axes_cramer(M: Array, Z: Array) -> Array:
    """Accelerations of theta_2 and theta_3 by (46) and (47), as printed.

    Args:
        M: Inertia of theta_2 to theta_4, (..., 3, 3); the source's letters F to P.
        Z: Z_2 to Z_4, (..., 3).
    """
    (F, G, H), (J, K, L), (N, O, P) = np.moveaxis(M, (-2, -1), (0, 1))
    Z2, Z3, Z4 = np.moveaxis(Z, -1, 0)
    second = G * L * Z4 - H * K * Z4 - H * O * Z3 + H * O * Z3 + K * P * Z2 - L * O * Z2
    third = F * L * Z4 - H * J * Z4 - F * P * Z3 + H * N * Z3 + J * P * Z2 - L * N * Z2
    size = F * K * P - G * J * P + G * L * N - H * K * N - F * L * O + H * J * O
    return np.array([second, third]) / size


# Saha and Angeles 1991 ---------------------------------------------------------------------------


def rolling_disk(
    p: Mapping[str, float], lean: float, omega: npt.ArrayLike, times: Array, *, misprint: bool
) -> Array:
    """Axis n of the disk, omega and the place of its centre, (9, times): equations (32) to (35).

    With the motion of the contact point that errata B-1 and B-2 add, or as printed.
    """
    m, gravity = p["m"], np.array([0.0, 0.0, -p["g"]])

    def rates(t: float, x: Array) -> Array:
        n, w = x[:3], x[3:6]
        n_dot = np.cross(w, n)
        own = p["A"] * np.eye(3) + (p["C"] - p["A"]) * np.outer(n, n)
        arm, arm_dot = _to_contact(p["R"], n, n_dot)  # q - c
        I = own + m * (arm @ arm * np.eye(3) - np.outer(arm, arm))
        drift = -np.cross(arm, w) if misprint else arm_dot
        convective = -np.cross(w, own @ w) + m * drift * (arm @ w)
        w_dot = np.linalg.solve(I, convective + m * np.cross(-arm, gravity))
        return np.array([*n_dot, *w_dot, *np.cross(w, -arm)])

    axis = [0.0, np.cos(lean), np.sin(lean)]
    start = [*axis, *np.asarray(omega, dtype=float), 0.0, 0.0, p["R"] * np.cos(lean)]
    return integrate(rates, start, times)


def disk_energy(p: Mapping[str, float], states: Array) -> Array:
    """Kinetic and potential energy of states of `rolling_disk`."""
    found = []
    for x in states.T:
        n, w = x[:3], x[3:6]
        velocity = np.cross(w, -_to_contact(p["R"], n, np.cross(w, n))[0])
        spin = p["A"] * w @ w + (p["C"] - p["A"]) * (w @ n) ** 2
        found.append((spin + p["m"] * velocity @ velocity) / 2 + p["m"] * p["g"] * x[8])
    return np.array(found)


def _to_contact(radius: float, n: Array, n_dot: Array) -> tuple[Array, Array]:
    """Vector from the centre of the disk to the contact, and its rate."""
    up = np.array([0.0, 0.0, 1.0])
    u = up - n[2] * n
    length = np.sqrt(u @ u)
    u_dot = -n_dot[2] * n - n[2] * n_dot
    return -radius * u / length, -radius * (u_dot / length - u * (u @ u_dot) / length**3)


# Angeles, section 12.5.1 -------------------------------------------------------------------------


def caster(
    p: Mapping[str, float], psi: float, rates: Array, misprints: Collection[str] = ()
) -> tuple[Array, Array, Array]:
    """Inertia I, Coriolis matrix C and Theta of the robot with a caster.

    Theta is found from the rolling conditions; the book prints it in section 10.5, which is not
    among the documents.

    Args:
        p: Data of the robot.
        psi: Angle of the caster [rad].
        rates: Rates of the driven wheels [rad/s].
        misprints: Errata that are left as they are, of `CASTER_ERRATA`: the platform's term that
            the book leaves out (A-7), the bars that its bracket lacks (A-8), and the index of the
            multiplied vector (A-9).
    """
    I, C, Theta = casters(p, [psi], [0.0], rates, misprints)
    return I, C, Theta[0]


def casters(
    p: Mapping[str, float],
    psi: Sequence[float],
    offsets: Sequence[float],
    rates: Array,
    misprints: Collection[str] = (),
) -> tuple[Array, Array, Array]:
    """I, C and one Theta for each of several casters, whose terms add up (Exercise 12.5).

    Args:
        p: Data of the robot.
        psi: Angles of the casters [rad].
        offsets: Lateral offsets of their pivots [m].
        rates: Rates of the driven wheels [rad/s].
        misprints: As in `caster`.
    """
    l, r = p["l"], p["r"]
    lam, omega = p["a"] / l, r / l * (rates[0] - rates[1])
    apart = np.array([[1.0, -1.0], [-1.0, 1.0]])
    I = (p["I"] + p["mw"] * r**2) * np.eye(2) + (r / l) ** 2 * (2 * p["H"] + p["Ip"]) * apart
    I = I + p["mp"] * r**2 * (np.full((2, 2), 0.25) + lam**2 * apart)
    C = np.zeros((2, 2))
    if "A-7" not in misprints:
        C = C + p["mp"] * r**2 * lam * omega * np.array([[0.0, -1.0], [1.0, 0.0]])
    found = []
    for angle, offset in zip(psi, offsets, strict=True):
        more_I, more_C, Theta = _one_caster(p, angle, offset / l, rates, misprints)
        I, C = I + more_I, C + more_C
        found.append(Theta)
    return I, C, np.array(found)


def _one_caster(
    p: Mapping[str, float], psi: float, xi: float, rates: Array, misprints: Collection[str]
) -> tuple[Array, Array, Array]:
    """What a caster's wheel and bracket add to I and C, and its Theta; pivot at xi tracks."""
    d, l, r = p["d"], p["l"], p["r"]
    alpha, delta, rho = (p["a"] + p["b"]) / l, d / l, r / d
    c, s = np.cos(psi), np.sin(psi)
    side = np.array([0.5 + xi, 0.5 - xi])  # share of each wheel in the pivot's forward velocity
    back = alpha * np.array([1.0, -1.0])
    t1, bar = back * c + side * s, rho * (side * c - back * s)
    t2 = bar + rho * delta * np.array([-1.0, 1.0])
    psi_dot, turning = t2 @ rates, bar @ rates
    t1_dot, t2_dot = psi_dot * (side * c - back * s), -psi_dot * rho * (back * c + side * s)
    disk, bracket = p["mc"] * r**2 / 4, p["mb"] * d**2 / 4
    I = disk * (6 * np.outer(t1, t1) + np.outer(bar, bar)) + p["Ib"] * np.outer(bar, bar)
    I = I + bracket * (np.outer(bar, bar) + 4 * rho**2 * np.outer(t1, t1))
    mixed = np.array([t1_dot[1], t2_dot[1]]) if "A-9" in misprints else t2_dot
    C = disk * (6 * np.outer(t1, t1_dot) + np.outer(bar, mixed))
    C = C + p["Ib"] * np.outer(t2 if "A-8" in misprints else bar, t2_dot)
    C = C + 2 * bracket * np.outer(bar, t2_dot / 2 + rho * turning * t1)
    C = C - 4 * bracket * rho * np.outer(t1, turning * bar / 2 - rho * t1_dot)
    return I, C, np.array([t1, t2])


def caster_on_path(
    p: Mapping[str, float],
    pose: Callable[[Array], Array],
    psi: float,
    times: Array,
    misprints: Collection[str] = (),
) -> tuple[Array, Array, Array]:
    """Rates of the driven wheels, psi and torques along a path: (36) to (38) of Saha and Angeles.

    The twist of the platform comes from the path alone, rates and accelerations by the source's
    least squares, psi by integration of the rates.

    Args:
        p: Data of the robot.
        pose: x, y of the axle's midpoint and heading over time, each with two derivatives; the
            robot drives along -j, with the caster ahead.
        psi: At the start [rad].
        times: At which the results are wanted [s].
        misprints: As in `caster`.
    """
    a, l, r = p["a"], p["l"], p["r"]

    def joints(t: float) -> tuple[Array, Array]:
        (x, y, heading) = pose(np.array([t]))[..., 0]
        phi, omega = heading[0] + np.pi / 2, heading[1]
        i, j = np.array([np.cos(phi), np.sin(phi)]), np.array([-np.sin(phi), np.cos(phi)])
        c_dot = np.array([x[1], y[1]]) + a * omega * i
        c_ddot = np.array([x[2], y[2]]) + a * heading[2] * i + a * omega**2 * j
        turn, along = r / l * np.array([1.0, -1.0]), a / l * np.array([1.0, -1.0])
        T = np.vstack([turn, r * (np.outer(i, along) + j[:, np.newaxis] / 2)])
        T_dot = np.vstack([0 * turn, r * omega * (np.outer(j, along) - i[:, np.newaxis] / 2)])
        rates = least_squares(T, np.array([omega, *c_dot]))
        change = np.array([heading[2], *c_ddot]) - T_dot @ rates
        return rates, least_squares(T, change)

    def turning(t: float, x: Array) -> Array:
        rates = joints(t)[0]
        return np.array([caster(p, x[0], rates)[2][1] @ rates])

    angles = integrate(turning, [psi], times)[0]
    rates, torques = [], []
    for t, angle in zip(times, angles, strict=True):
        rate, acceleration = joints(t)
        I, C, _ = caster(p, angle, rate, misprints)
        rates.append(rate)
        torques.append(I @ acceleration + C @ rate)
    return np.array(rates).T, angles, np.array(torques).T


def casters_driven(
    p: Mapping[str, float],
    torques: Callable[[float], Array],
    psi: Sequence[float],
    offsets: Sequence[float],
    times: Array,
    misprints: Collection[str] = (),
) -> Array:
    """theta_1_dot, theta_2_dot, every psi, phi, and C of the platform, x and y: from rest at home.

    Args:
        p: Data of the robot.
        torques: Torques of the driven wheels over time [N m].
        psi: Angles of the casters at the start [rad].
        offsets: Lateral offsets of their pivots [m].
        times: At which the results are wanted [s].
        misprints: As in `caster`.
    """
    start = [0.0, 0.0, *psi, 0.0, 0.0, -p["a"]]

    def rates(t: float, x: Array) -> Array:
        theta_dot, phi = x[:2], x[-3]
        I, C, Theta = casters(p, x[2:-3].tolist(), offsets, theta_dot, misprints)
        omega = p["r"] / p["l"] * (theta_dot[0] - theta_dot[1])
        v = p["r"] / 2 * theta_dot.sum()
        along = np.array([np.cos(phi), np.sin(phi)])
        ahead = np.array([-np.sin(phi), np.cos(phi)])
        accelerations = np.linalg.solve(I, torques(t) - C @ theta_dot)
        moving = v * ahead + p["a"] * omega * along
        return np.array([*accelerations, *(Theta[:, 1] @ theta_dot), omega, *moving])

    return integrate(rates, start, times)


# Angeles, section 12.5.2 -------------------------------------------------------------------------


def mecanum(
    p: Mapping[str, float], wheels: Sequence[Sequence[float]], speeds: Array, torques: Array
) -> tuple[Array, Array, Array]:
    """Accelerations of the platform, rates of the wheels and forces along their rollers.

    Newton's and Euler's equations of platform and wheels about the platform's centre. The roller
    that touches the ground lies along g = cos(alpha) e + sin(alpha) k x e and spins freely, so that
    the wheel holds only the velocity along g. No document prints this: it is derived here.

    Args:
        p: Data of the robot.
        wheels: x, y, direction of the axis e and roller angle alpha of every wheel.
        speeds: omega, v_x and v_y of the platform, in its own axes.
        torques: Torques of the wheels [N m].
    """
    x, y, axis, alpha = np.asarray(wheels, dtype=float).T
    gx, gy = np.cos(alpha + axis), np.sin(alpha + axis)
    reach = p["a"] * np.sin(alpha)
    G = -np.column_stack([gy * x - gx * y, gx, gy]) / reach[:, np.newaxis]  # theta_dot = G u
    total, Sx, Sy = p["mp"] + len(x) * p["mw"], p["mw"] * x.sum(), p["mw"] * y.sum()
    about = p["H"] + len(x) * p["J"] + p["mw"] * (x**2 + y**2).sum()
    M = np.array([[about, -Sy, Sx], [-Sy, total, 0.0], [Sx, 0.0, total]]) + p["I"] * G.T @ G
    omega, vx, vy = speeds
    c = omega * np.array([Sx * vx + Sy * vy, -total * vy - omega * Sx, total * vx - omega * Sy])
    rates = G @ speeds
    accelerations = np.linalg.solve(M, G.T @ (torques - p["c"] * rates) - c)
    forces = (p["I"] * G @ accelerations - torques + p["c"] * rates) / reach
    return accelerations, rates, forces


def mecanum_driven(
    p: Mapping[str, float],
    wheels: Sequence[Sequence[float]],
    torques: Callable[[float], Array],
    times: Array,
) -> tuple[Array, Array]:
    """omega, v_x, v_y, sigma, x and y from rest, and the forces along the rollers."""

    def rates(t: float, state: Array) -> Array:
        omega, vx, vy, sigma = state[:4]
        c, s = np.cos(sigma), np.sin(sigma)
        found = mecanum(p, wheels, state[:3], torques(t))[0]
        return np.array([*found, omega, c * vx - s * vy, s * vx + c * vy])

    states = integrate(rates, np.zeros(6), times)
    forces = [
        mecanum(p, wheels, state[:3], torques(t))[2]
        for t, state in zip(times, states.T, strict=True)
    ]
    return states, np.array(forces).T


def delta_array(
    p: Mapping[str, float], torques: Callable[[float], Array], rates0: npt.ArrayLike, times: Array
) -> Array:
    """theta_1_dot to theta_3_dot, sigma, x and y: (12.78), then (12.61) and (12.62)."""
    a, r, mw, mp = p["a"], p["r"], p["mw"], p["mp"]
    lam = a / (3 * r)
    alpha = p["I"] + lam**2 * (p["H"] + 3 * p["J"] + (15 * mw + 4 * mp) * r**2)
    beta = lam**2 * (p["H"] + 3 * p["J"] - (3 * mw + 2 * mp) * r**2)
    I = (alpha - beta) * np.eye(3) + beta
    turn = np.array([[0.0, -1.0, 1.0], [1.0, 0.0, -1.0], [-1.0, 1.0, 0.0]])
    kappa = 2 * np.sqrt(3) * lam**2 * (3 * mw + mp) * r**2
    directions = 2 * np.pi / 3 * np.arange(3)

    def rates(t: float, x: Array) -> Array:
        theta_dot, sigma = x[:3], x[3]
        omega = -lam * theta_dot.sum()
        force = torques(t) - p["c"] * theta_dot - kappa * omega * turn @ theta_dot
        f = np.array([-np.sin(sigma + directions), np.cos(sigma + directions)])
        return np.array([*np.linalg.solve(I, force), omega, *(-2 * a / 3 * f @ theta_dot)])

    return integrate(rates, [*np.asarray(rates0, dtype=float), 0.0, 0.0, 0.0], times)


def delta_turning(
    p: Mapping[str, float], torques: Callable[[float], Array], omega0: float, times: Array
) -> Array:
    """omega over time: Exercise 12.7, omega_dot = -k omega + f(t), in closed form."""
    a, r = p["a"], p["r"]
    inertia = p["I"] + a**2 / (3 * r**2) * (p["H"] + 3 * p["J"] + 3 * p["mw"] * r**2)
    k = p["c"] / inertia
    push = -a / (3 * r) / inertia * np.array([np.sum(torques(t)) for t in times])
    grown = np.exp(k * times) * push
    return np.exp(-k * times) * (omega0 + CubicSpline(times, grown).antiderivative()(times))
