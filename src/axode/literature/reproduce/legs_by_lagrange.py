"""Forces of platforms on six legs by Lagrange's equations of the platform's pose.

Elbows and slides are closed forms of the pose, and so is the place of every link; nothing is shared
with the kinematics of the library: no joint angles, no loops, no twists of a tree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import casadi as ca
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Legs = Callable[["Energies", Mapping[str, float], Any, Any, Any], Any]


class Energies:
    """Kinetic and potential energy that add up body by body, of a pose x and its rate."""

    def __init__(self, x: Any, x_dot: Any, g: float) -> None:
        self.x, self.x_dot, self.g = x, x_dot, g
        self.kinetic, self.potential = ca.SX(0), ca.SX(0)

    def rate(self, value: Any) -> Any:
        """Rate of a vector that depends on the pose."""
        return ca.jtimes(value, self.x, self.x_dot)

    def add(self, mass: float, at: Any, frame: Any, moments: Any) -> None:
        """A body: its mass centre, three axes fixed in it, its moments about these."""
        velocity = self.rate(at)
        omega = sum((ca.cross(axis, self.rate(axis)) for axis in frame), start=ca.SX.zeros(3)) / 2
        turning = sum(J * ca.dot(omega, axis) ** 2 for J, axis in zip(moments, frame, strict=True))
        self.kinetic += (mass * ca.dot(velocity, velocity) + turning) / 2
        self.potential += mass * self.g * at[2]


def _unit(vector: Any) -> Any:
    return vector / ca.norm_2(vector)


def hinged_leg(energies: Energies, p: Mapping[str, float], base: Any, top: Any, e6: Any) -> Any:
    """Links of a leg of six revolutes; the angle of its elbow by the cosine rule."""
    span = top - base
    reach = ca.norm_2(span)
    e4 = _unit(ca.cross(span, e6))
    ahead = (p["L1"] ** 2 - p["L2"] ** 2 + reach**2) / (2 * reach)
    aside = ca.sqrt(p["L1"] ** 2 - ahead**2) * ca.cross(e4, span / reach)
    elbow = base + ahead * span / reach + aside
    e1, e3, along = ca.DM([0, 0, 1]), (elbow - base) / p["L1"], (top - elbow) / p["L2"]
    e2 = _unit(ca.cross(e1, e3))

    def frame(first: Any, second: Any) -> tuple[Any, Any, Any]:
        return first, second, ca.cross(first, second)

    energies.add(p["m1"], base, frame(e1, e2), 3 * [p["j1"]])
    energies.add(p["m2"], base, frame(e2, e3), 3 * [p["j2"]])
    energies.add(p["m3"], (base + elbow) / 2, frame(e3, e4), [p["Jx3"], p["Jt3"], p["Jt3"]])
    energies.add(p["m4"], (elbow + top) / 2, frame(along, e4), [p["Jx4"], p["Jt4"], p["Jt4"]])
    energies.add(p["m5"], top, frame(e4, e6), 3 * [p["j5"]])
    bend = ca.acos((p["L1"] ** 2 + p["L2"] ** 2 - reach**2) / (2 * p["L1"] * p["L2"]))
    return bend - ca.pi  # how far the upper link is turned from the lower one, about e4


def sliding_leg(energies: Energies, p: Mapping[str, float], base: Any, top: Any, _: Any) -> Any:
    """Cylinder and piston of a leg on a cross at the base, about x first; its length."""
    length = ca.norm_2(top - base)
    u = (top - base) / length
    second = _unit(ca.cross(u, ca.DM([1, 0, 0])))
    frame = (u, second, ca.cross(u, second))
    energies.add(p["m1"], base + p["L1"] / 2 * u, frame, [p["Jx1"], p["Jt1"], p["Jt1"]])
    energies.add(p["m2"], top - p["L2"] / 2 * u, frame, [p["Jx2"], p["Jt2"], p["Jt2"]])
    return length


def forces(
    leg: Legs,
    p: Mapping[str, float],
    angles: tuple[tuple[float, ...], tuple[float, ...]],
    motion: tuple[Array, Array, Array],
) -> Array:
    """Forces of the six motors along a motion, (6, samples).

    Args:
        leg: Adds the bodies of one leg and returns its driven coordinate.
        p: Data of the robot, g among them.
        angles: Directions of the legs' points on the base and on the platform [rad].
        motion: Place of the mass centre and roll, pitch, yaw, with their first and second
            derivatives, (samples, 6) each.
    """
    x, x_dot, x_ddot = ca.SX.sym("x", 6), ca.SX.sym("v", 6), ca.SX.sym("a", 6)
    energies = Energies(x, x_dot, p["g"])
    (cr, cp, cy), (sr, sp, sy) = (tuple(map(f, ca.vertsplit(x[3:]))) for f in (ca.cos, ca.sin))
    e_x = ca.vertcat(cy * cp, sy * cp, -sp)
    e_y = ca.vertcat(cy * sp * sr - sy * cr, sy * sp * sr + cy * cr, cp * sr)
    axes = (e_x, e_y, ca.cross(e_x, e_y))
    energies.add(p["mM"], x[:3], axes, [p["IMx"], p["IMy"], p["IMz"]])
    driven = []
    for on_base, on_top in zip(*angles, strict=True):
        base = p["Rb"] * ca.DM([np.cos(on_base), np.sin(on_base), 0.0])
        outward = np.cos(on_top) * axes[0] + np.sin(on_top) * axes[1]
        top = x[:3] + p["Rp"] * outward + p["zp"] * axes[2]
        driven.append(leg(energies, p, base, top, outward))
    momentum = ca.gradient(energies.kinetic, x_dot)
    changing = ca.jtimes(momentum, x, x_dot) + ca.jtimes(momentum, x_dot, x_ddot)
    needed = changing - ca.gradient(energies.kinetic, x) + ca.gradient(energies.potential, x)
    jacobian = ca.jacobian(ca.vertcat(*driven), x)
    function = ca.Function("forces", [x, x_dot, x_ddot], [needed, jacobian])
    found = []
    for state in zip(*motion, strict=True):
        Q, J = (value.full() for value in function(*state))
        found.append(np.linalg.solve(J.T, Q)[:, 0])
    return np.array(found).T
