"""Every object of the theory at a state, by maximal coordinates: nothing of the derivation."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

import axode as ax
from axode.oracle.body_laws import Oracle, joint_forces
from tests.textbook.closed_forms import skew

Array = np.ndarray
AXES = ("wx", "wy", "wz", "vx", "vy", "vz")
STEP = 1e-4  # of differences along the motion
VALUE = ("value",)


class Theory:
    """Objects by name, as (rows, columns, numbers).

    Args:
        mechanism: What is described.
        speeds: Names of the independent speeds.
        kept: Names of the constraint rows that are not redundant.
        q, nu, u: The state and the inputs.
    """

    def __init__(
        self,
        mechanism: ax.Mechanism,
        speeds: tuple[str, ...],
        kept: tuple[str, ...],
        q: Array,
        nu: Array,
        u: Array,
    ) -> None:
        self.kept = kept
        self.oracle, self.q, self.nu, self.u = Oracle(mechanism), q, nu, u
        self.bodies = [body.name for body in mechanism.bodies]
        self.speeds, self.independent = tuple(self.oracle.speeds), speeds
        self.chosen = [self.speeds.index(name) for name in speeds]

    # kinematics ---------------------------------------------------------------------------------

    def u_map(self, q: Array) -> Array:
        """U: twists at mass centres for unit joint speeds."""
        J, (R, _) = self.oracle.jacobian(q), self.oracle.poses(q)
        U = J.copy()
        for k in range(len(self.bodies)):
            arm = R[k] @ self.oracle.centre[k + 1]
            U[6 * k + 3 : 6 * k + 6] -= skew(arm) @ J[6 * k : 6 * k + 3]
        return U

    def constraints(self, q: Array) -> tuple[tuple[str, ...], Array]:
        rows = self.oracle.rows(q, np.zeros(len(self.speeds)))
        return rows.names, rows.A

    def theta(self, q: Array) -> Array:
        """All joint speeds for unit independent ones, from the constraints alone."""
        _, A = self.constraints(q)
        rest = [j for j in range(len(self.speeds)) if j not in self.chosen]
        Theta = np.zeros((len(self.speeds), len(self.chosen)))
        Theta[self.chosen] = np.eye(len(self.chosen))
        if rest:
            Theta[rest] = -np.linalg.lstsq(A[:, rest], A[:, self.chosen], rcond=None)[0]
        return Theta

    def along(self, function: Callable[[Array], Array]) -> Array:
        """Rate of a function of q along the motion."""
        rates = self.oracle.rates(self.q, self.v)

        def slope(h: float) -> Array:
            return (function(self.q + h * rates) - function(self.q - h * rates)) / (2 * h)

        return (4 * slope(STEP) - slope(2 * STEP)) / 3

    @cached_property
    def v(self) -> Array:
        return self.theta(self.q) @ self.nu

    @cached_property
    def Theta(self) -> Array:
        return self.theta(self.q)

    @cached_property
    def Theta_dot(self) -> Array:
        return self.along(self.theta)

    @cached_property
    def T(self) -> Array:
        return self.u_map(self.q) @ self.Theta

    @cached_property
    def T_dot(self) -> Array:
        return self.along(lambda q: self.u_map(q) @ self.theta(q))

    @cached_property
    def v_dot(self) -> Array:
        """Newton and Euler for all bodies at once."""
        return self.oracle.solve(self.q, self.v, self.u).v_dot

    # dynamics -----------------------------------------------------------------------------------

    @cached_property
    def mass(self) -> tuple[Array, Array]:
        """M and W."""
        size, (R, _) = 6 * len(self.bodies), self.oracle.poses(self.q)
        M, W, t = np.zeros((size, size)), np.zeros((size, size)), self.T @ self.nu
        for k in range(len(self.bodies)):
            turning, moving = slice(6 * k, 6 * k + 3), slice(6 * k + 3, 6 * k + 6)
            M[turning, turning] = R[k] @ self.oracle.tensor[k + 1] @ R[k].T
            M[moving, moving] = self.oracle.mass[k + 1] * np.eye(3)
            W[turning, turning] = skew(t[turning])
        return M, W

    @cached_property
    def rest(self) -> Array:
        """What joints need without moving: minus gravity and springs."""
        zero = np.zeros(len(self.speeds))
        return self.oracle.inverse(self.q, zero, zero).value

    @cached_property
    def dissipation(self) -> Array:
        zero = np.zeros(len(self.speeds))
        return joint_forces(self.oracle, self.q, self.v) - joint_forces(self.oracle, self.q, zero)

    @cached_property
    def inputs(self) -> Array:
        return self.oracle.inputs(self.q).value @ self.u

    def coriolis(self, X: Array, X_dot: Array) -> Array:
        M, W = self.mass
        return X.T @ (M @ X_dot + W @ M @ X)

    @cached_property
    def bias(self) -> Array:
        """Joint forces of the motion less those at rest, on the independent speeds."""
        needed = self.oracle.inverse(self.q, self.v, self.Theta_dot @ self.nu).value
        return self.Theta.T @ (needed - self.rest + self.dissipation)

    @cached_property
    def multipliers(self) -> tuple[tuple[str, ...], Array]:
        """What the rows that are kept give besides the inputs."""
        names, A = self.constraints(self.q)
        A = A[[names.index(name) for name in self.kept]]
        needed = self.oracle.inverse(self.q, self.v, self.v_dot).value - self.inputs
        return self.kept, np.linalg.lstsq(A.T, needed, rcond=None)[0]

    @cached_property
    def energy(self) -> Array:
        t, (R, p) = self.T @ self.nu, self.oracle.poses(self.q)
        height = sum(
            m * -self.oracle.gravity @ (p[k] + R[k] @ self.oracle.centre[k + 1])
            for k, m in enumerate(self.oracle.mass[1:])
        )
        return np.array([t @ self.mass[0] @ t / 2, height])

    # by name ------------------------------------------------------------------------------------

    def part(self, name: str) -> tuple[tuple[str, ...], tuple[str, ...], Array]:
        """Names of rows and columns, and the numbers."""
        bodies = tuple(f"{body}.{axis}" for body, axis in product(self.bodies, AXES))
        nu, v = self.independent, self.speeds
        U, Theta = self.u_map(self.q), self.Theta
        q_dot = self.oracle.rates(self.q, self.v)
        R, p = self.oracle.poses(self.q)
        places = tuple(f"{body}.{axis}" for body, axis in product(self.bodies, "xyz"))
        found: dict[str, Callable[[], tuple[Any, Any, Any]]] = {
            "q_dot": lambda: (tuple(self.oracle.coordinates), VALUE, q_dot),
            "v": lambda: (v, VALUE, self.v),
            "v_dot": lambda: (v, VALUE, self.v_dot),
            "nu_dot": lambda: (nu, VALUE, self.v_dot[self.chosen]),
            "U": lambda: (bodies, v, U),
            "T": lambda: (bodies, nu, self.T),
            "T_dot": lambda: (bodies, nu, self.T_dot),
            "twists": lambda: (self.bodies, AXES, (self.T @ self.nu).reshape(-1, 6)),
            "poses": lambda: (
                places,
                ("ex", "ey", "ez", "origin"),
                np.concatenate([R, p[..., np.newaxis]], axis=-1).reshape(-1, 4),
            ),
            "M": lambda: (bodies, bodies, self.mass[0]),
            "W": lambda: (bodies, bodies, self.mass[1]),
            "A": lambda: (self.constraints(self.q)[0], v, self.constraints(self.q)[1]),
            "Theta": lambda: (v, nu, Theta),
            "Theta_dot": lambda: (v, nu, self.Theta_dot),
            "I": lambda: (nu, nu, Theta.T @ self.oracle.mass_matrix(self.q) @ Theta),
            "C": lambda: (nu, nu, self.coriolis(self.T, self.T_dot)),
            "bias": lambda: (nu, VALUE, self.bias),
            "tau": lambda: (nu, VALUE, Theta.T @ self.inputs),
            "gamma": lambda: (nu, VALUE, -Theta.T @ self.rest),
            "delta": lambda: (nu, VALUE, Theta.T @ self.dissipation),
            "I_tree": lambda: (v, v, self.oracle.mass_matrix(self.q)),
            "C_tree": lambda: (v, v, self.coriolis(U, self.along(self.u_map))),
            "tau_tree": lambda: (v, VALUE, self.inputs),
            "gamma_tree": lambda: (v, VALUE, -self.rest),
            "delta_tree": lambda: (v, VALUE, self.dissipation),
            "lambda": lambda: (self.multipliers[0], VALUE, self.multipliers[1]),
            "energy": lambda: (("kinetic", "potential"), VALUE, self.energy),
            "powers": lambda: (
                tuple(drive.name for drive in self.oracle.mechanism.drives),
                VALUE,
                self.u[: self.oracle.motors.shape[1]] * (self.oracle.motors.T @ self.v),
            ),
        }
        rows, columns, values = found[name]()
        return tuple(rows), tuple(columns), np.asarray(values).reshape(len(rows), len(columns))


class SixLegs(Theory):
    """And what belongs to a platform on legs of six revolutes, of the joints I1 to VI6."""

    LEGS = ("I", "II", "III", "IV", "V", "VI")

    @cached_property
    def leg_axes(self) -> list[list[tuple[Array, Array]]]:
        """Axis and a point of each of the six hinges of every leg."""
        return [self._axes(self.q, leg) for leg in self.LEGS]

    def _axes(self, q: Array, leg: str) -> list[tuple[Array, Array]]:
        R, p = self.oracle.poses(q)
        links = [self.bodies.index(f"{leg}{k}") for k in range(1, 6)]
        found = [
            (R[link][:, "xyz".index(axis)], p[link])
            for link, axis in zip(links, "zyxyy", strict=True)
        ]
        return [*found, (R[links[4]][:, 0], p[links[4]])]

    def centre(self, q: Array) -> Array:
        return self.oracle.poses(q)[1][self.bodies.index("platform")]

    def jacobians(self, q: Array) -> Array:
        """J_J, six by six for each leg."""
        C = self.centre(q)
        return np.array(
            [
                np.array([[*e, *np.cross(e, C - o)] for e, o in self._axes(q, leg)]).T
                for leg in self.LEGS
            ]
        )

    def maps(self, q: Array) -> Array:
        """L_J = J_J^-1 T_M."""
        return np.linalg.solve(self.jacobians(q), self.platform_map(q))

    def platform_map(self, q: Array) -> Array:
        at = 6 * self.bodies.index("platform")
        return (self.u_map(q) @ self.theta(q))[at : at + 6]

    def leg_twists(self, q: Array, leg: str) -> Array:
        """Twists of the five links of a leg for unit rates of its hinges."""
        R, p = self.oracle.poses(q)
        rows, axes = [], self._axes(q, leg)
        for link in range(5):
            k = self.bodies.index(f"{leg}{link + 1}")
            centre = p[k] + R[k] @ self.oracle.centre[k + 1]
            columns = [[*e, *np.cross(e, centre - o)] for e, o in axes[: link + 1]]
            rows.append(np.array([*columns, *[[0.0] * 6] * (5 - link)]).T)
        return np.concatenate(rows)

    def leg_dynamics(self, leg: str) -> tuple[Array, Array]:
        """I_J and C_J."""
        first = 6 * self.bodies.index(f"{leg}1")
        M, W = (matrix[first : first + 30, first : first + 30] for matrix in self.mass)
        X = self.leg_twists(self.q, leg)
        X_dot = self.along(lambda q: self.leg_twists(q, leg))
        return X.T @ M @ X, X.T @ (M @ X_dot + W @ M @ X)

    @cached_property
    def dynamics_of_legs(self) -> list[tuple[Array, Array]]:
        return [self.leg_dynamics(leg) for leg in self.LEGS]

    def wrenches(self) -> Array:
        """Of the legs on the platform: what their hinges have to give for the motion."""
        rows = []
        t_dot = self.along(self.platform_map) @ self.nu
        t_dot = t_dot + self.platform_map(self.q) @ self.v_dot[self.chosen]
        for n, leg in enumerate(self.LEGS):
            J, L = self.jacobians(self.q)[n], self.maps(self.q)[n]
            rates = L @ self.nu
            J_dot = self.along(lambda q, n=n: self.jacobians(q)[n])
            accelerations = np.linalg.solve(J, t_dot - J_dot @ rates)
            I, C = self.dynamics_of_legs[n]
            first = self.bodies.index(f"{leg}1")
            masses = self.oracle.mass[first + 1 : first + 6]
            weights = np.concatenate([[0, 0, 0, *(m * self.oracle.gravity)] for m in masses])
            motor = np.eye(6)[3] * self.u[n]
            left = motor + self.leg_twists(self.q, leg).T @ weights - I @ accelerations - C @ rates
            rows.append(np.linalg.solve(J.T, left))
        return np.array(rows)

    def part(self, name: str) -> tuple[tuple[str, ...], tuple[str, ...], Array]:
        legs = tuple(f"leg {n}.{k}" for n, k in product(range(1, 7), range(1, 7)))
        nu, six = self.independent, tuple("123456")
        at = 6 * self.bodies.index("platform")
        whole = slice(at, at + 6)
        T_M = self.platform_map(self.q)
        found: dict[str, Callable[[], tuple[Any, Any, Any]]] = {
            "t_M": lambda: (AXES, VALUE, T_M @ self.nu),
            "T_M": lambda: (AXES, nu, T_M),
            "T_M_dot": lambda: (AXES, nu, self.along(self.platform_map)),
            "M_M": lambda: (AXES, AXES, self.mass[0][whole, whole]),
            "W_M": lambda: (AXES, AXES, self.mass[1][whole, whole]),
            "N": lambda: (nu, nu, self.coriolis(self.T, self.T_dot)),
            "Lambda": lambda: (nu, nu, self.Theta.T @ self.oracle.inputs(self.q).value[:, :6]),
            "J_J": lambda: (legs, six, np.concatenate(self.jacobians(self.q))),
            "K_J": lambda: (legs, six, np.concatenate(np.linalg.inv(self.jacobians(self.q)))),
            "L_J": lambda: (legs, nu, np.concatenate(self.maps(self.q))),
            "L_J_dot": lambda: (legs, nu, np.concatenate(self.along(self.maps))),
            "I_J": lambda: (legs, six, np.concatenate([I for I, _ in self.dynamics_of_legs])),
            "C_J": lambda: (legs, six, np.concatenate([C for _, C in self.dynamics_of_legs])),
            "w_J": lambda: ([f"leg {n}" for n in range(1, 7)], AXES, self.wrenches()),
            "Z": lambda: (nu, nu, np.diag([self.zeta(n) for n in range(6)])),
            "Y": lambda: (nu, AXES, np.array([self.row(n) for n in range(6)])),
        }
        if name not in found:
            return super().part(name)
        rows, columns, values = found[name]()
        return tuple(rows), tuple(columns), np.asarray(values).reshape(len(rows), len(columns))

    def _crossed(self, n: int) -> tuple[Array, Array, Array, Array]:
        """u_J, e4 x s4, and r1: (12.34)."""
        axes, C = self.leg_axes[n], self.centre(self.q)
        r1, r4, r5 = (C - axes[k][1] for k in (0, 3, 4))
        s4, s5 = r4 - r1, r5 - r1
        u = np.cross(np.cross(axes[4][0], s5), np.cross(axes[5][0], s5))
        return u, np.cross(axes[3][0], s4), r1, s5

    def zeta(self, n: int) -> float:
        u, arm, *_ = self._crossed(n)
        return float(u @ arm)

    def row(self, n: int) -> Array:
        u, _, r1, _ = self._crossed(n)
        return np.array([*-np.cross(r1, u), *u])
