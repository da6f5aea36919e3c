r"""Symmetries of the dynamics, in whose axes a steady motion is at rest (D).

A vehicle in a circle, a rolling disk and a spinning top move, and yet nothing about them changes
but their place and how far they have turned. A field X of the states z whose flow maps motions
to motions commutes with the dynamics f,

.. math:: [X, f] = \frac{\partial f}{\partial z} X - \frac{\partial X}{\partial z} f = 0,  \tag{D14}

and a state at which f = X is an equilibrium of f - X: of the same motion, counted in axes that
move along. A field on the coordinates, q' = eta(q), turns the joint speeds with them:

.. math:: N v' = \frac{\partial\eta}{\partial q} N v
          - \frac{\partial (N v)}{\partial q}\eta.                              \tag{D15}
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np
import numpy.typing as npt

from axode.derivatives.small_motions import local_dynamics
from axode.mechanism.elements.bodies import GROUND
from axode.mechanism.mechanism import Connection
from axode.mechanism.topology import tree_order
from axode.mechanism.values.expressions import numeric
from axode.mechanism.values.geometry import rotation_matrix
from axode.numerics.rank import pseudo_inverse
from axode.numerics.tolerances import HALF_DIGITS
from axode.symbolic.algebra.linear import NumericFunction
from axode.symbolic.algebra.spatial import SX
from axode.symbolic.equations import Equations
from axode.symbolic.joints import symbolic_joint
from axode.symbolic.joints.base import SymbolicJoint

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Symmetry:
    """A field on the coordinates that may commute with the dynamics.

    Attributes:
        kind: "shift" of one coordinate, "world" for turning everything about an axis of the
            ground, "spin" for turning one body about an axis of its own.
        words: The motion as text: `base about its own y`.
        eta: Rates of the coordinates.
        coordinates: Places of those that it moves.
    """

    kind: str
    words: str
    eta: SX
    coordinates: tuple[int, ...]


class Symmetries:
    """The fields of one model, and whether they commute with its dynamics at some states."""

    def __init__(self, e: Equations) -> None:
        self.equations = e
        joints, place = {}, 0
        for connection in tree_order(e.system.mechanism):
            joints[connection.name] = (connection, place)
            place += len(connection.coordinates)
        self._joints = list(joints.values())
        self.found = [*self._shifts(), *self._world_turns(), *self._spins()]

    # candidates --------------------------------------------------------------------------------

    def _field(self, kind: str, words: str, parts: dict[int, SX]) -> Symmetry:
        """A field from the rates of some coordinates, by the place of the first of each part."""
        eta = SX.zeros(self.equations.q.shape[0])
        moved: list[int] = []
        for place, part in parts.items():
            eta[place : place + part.shape[0]] = part
            moved += range(place, place + part.shape[0])
        return Symmetry(kind, words, eta, tuple(moved))

    def _shifts(self) -> Iterator[Symmetry]:
        """Shifts of every coordinate that is no part of a quaternion."""
        e = self.equations
        tied = {k for four in e.system.tree.quaternions for k in four}
        for k, name in enumerate(e.coordinates):
            if k not in tied:
                yield self._field("shift", name, {k: SX(1)})

    def _world_turns(self) -> Iterator[Symmetry]:
        """Turns of everything about an axis through the one joint that stands on the ground."""
        roots = [(c, k) for c, k in self._joints if c.parent == GROUND.name]
        if len(roots) != 1:
            return
        ((joint, k),) = roots
        R = _matrix(joint.rotation)
        axes = {
            f"{_direction(world)} of the world": SX((R.T @ world).tolist())
            for world in _world_axes(self.equations)
        }
        own, q = self._symbolic(joint, k)
        for axis, turned in own.turns_in_parent(q, axes):
            yield self._field("world", f"{joint.child} about {axis}", {k: turned})

    def _symbolic(self, joint: Connection, k: int) -> tuple[SymbolicJoint, SX]:
        """A joint in symbols and its coordinates."""
        own = symbolic_joint(joint.joint, self.equations.system.tree.values)
        return own, self.equations.q[k : k + len(joint.coordinates)]

    def _spins(self) -> Iterator[Symmetry]:
        """Spins of each body with a quaternion about axes of its own."""
        mechanism = self.equations.system.mechanism
        for joint, k in self._joints:
            if not joint.joint.has_quaternion:
                continue
            (body,) = (b for b in mechanism.bodies if b.name == joint.child)
            com = np.array([numeric(x) for x in body.com])
            lines = [
                (np.array([numeric(x) for x in c.axis]), np.array([numeric(x) for x in c.at]))
                for c in mechanism.contacts
                if c.body == body.name
            ]
            xx, yy, zz, xy, xz, yz = (numeric(x) for x in body.inertia.entries)
            tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
            lines += [(axis, com) for axis in np.linalg.eigh(tensor)[1].T]
            lines += [(axis, com) for axis in np.eye(3)]
            seen: list[np.ndarray] = []
            for axis, point in lines:
                if any(np.linalg.norm(np.cross(axis, other)) < 1e-9 for other in seen):
                    continue
                field = self._spin(joint, k, axis, point)
                if field is not None:
                    seen.append(axis)
                    yield field

    def _spin(
        self, joint: Connection, k: int, axis: np.ndarray, point: np.ndarray
    ) -> Symmetry | None:
        R = _matrix(joint.child_rotation)
        b = R.T @ axis / np.linalg.norm(axis)
        off = np.cross(b, R.T @ (point - np.array([numeric(x) for x in joint.child_at])))
        own, q = self._symbolic(joint, k)
        part = own.turn_in_child(q, b, off)
        if part is None:
            return None
        return self._field("spin", f"{joint.child} about its own {_direction(axis)}", {k: part})

    # whether they commute ----------------------------------------------------------------------

    def commuting(
        self, states: list[tuple[Array, Array]], u: Array, t: float, p: Array
    ) -> list[int]:
        """Places of the fields that commute with the dynamics at all of some states.  (D14)"""
        good = np.ones(len(self.found), dtype=bool)
        for q, nu in states:
            bracket, size = self._bracket(q, nu, u, t, p)
            good &= np.abs(bracket).max(axis=0) <= HALF_DIGITS * np.maximum(1.0, size.max(axis=0))
        return [k for k, ok in enumerate(good.tolist()) if ok]

    def _bracket(self, q: Array, nu: Array, u: Array, t: float, p: Array) -> tuple[Array, Array]:
        """Brackets of all fields with the dynamics, and the size of their terms.  (D14)

        A field that opens a loop is no symmetry, whatever its bracket.
        """
        moving = local_dynamics(self.equations).at(q, nu, u, t, p)
        X, along, rates_by_z = self._parts(q, nu, u, t, p, moving.nu_dot).values()
        F = np.vstack([rates_by_z, moving.by_z])
        eta, T = X[: q.size], moving.tangents
        opened = np.abs(eta - T @ (pseudo_inverse(T) @ eta)).max(axis=0)
        bracket = np.vstack([F @ X - along, opened])
        size = np.vstack([np.abs(F) @ np.abs(X) + np.abs(along), np.zeros_like(opened)])
        return bracket, size

    @cached_property
    def _parts(self) -> NumericFunction:
        """Fields, their changes along the motion, and the derivative of the coordinates' rates."""
        e = self.equations
        z, X = ca.vertcat(e.q, e.nu), self.fields
        f = ca.vertcat(e.q_dot, e.nu_dot)
        along = ca.horzcat(*[ca.jtimes(X[:, k], z, f) for k in range(X.shape[1])])
        arguments = [e.q, e.nu, e.u, e.t, e.p, e.nu_dot]
        parts = {"fields": X, "along": along, "rates_by_z": ca.jacobian(e.q_dot, z)}
        return NumericFunction("parts", arguments, parts)

    @cached_property
    def fields(self) -> SX:
        """All fields on q and nu, one per column."""
        e = self.equations
        tree = e.system.tree
        q_dot = tree.q_dot
        columns = []
        inverse = _left_inverse(e)
        for symmetry in self.found:
            eta = symmetry.eta
            lifted = inverse @ (ca.jtimes(eta, tree.q, q_dot) - ca.jtimes(q_dot, tree.q, eta))
            W, joints = e.system.W, e.system.W.shape[1]
            turned = ca.jtimes(W @ tree.v[:joints], tree.q, eta)
            lifted[joints:] = W @ lifted[:joints] + turned
            columns.append(ca.vertcat(eta, e.system.chosen(e.system.at_speeds(lifted))))  # (D15)
        return ca.horzcat(SX(e.q.shape[0] + e.nu.shape[0], 0), *columns)

    @cached_property
    def values(self) -> NumericFunction:
        """Evaluate the fields and the dynamics at a state."""
        e = self.equations
        f = ca.vertcat(e.q_dot, e.forward_dynamics)
        return NumericFunction(
            "fields", [e.q, e.nu, e.u, e.t, e.p], {"fields": self.fields, "motion": f}
        )


def _left_inverse(e: Equations) -> SX:
    """Speeds from rates of the coordinates: columns of N are orthogonal, of quaternions halves."""
    N = e.system.tree.N
    q = e.system.home
    values = np.array(ca.DM(ca.Function("N", [e.q], [N])(q)).full())
    lengths = (values**2).sum(axis=0)
    return ca.diag(SX((1 / np.where(lengths > 0, lengths, 1.0)).tolist())) @ N.T


def _matrix(rotation: object) -> np.ndarray:
    return np.array([[numeric(x) for x in row] for row in rotation_matrix(rotation)])  # type: ignore[arg-type]


def _world_axes(e: Equations) -> list[np.ndarray]:
    """The vertical and two axes across it."""
    gravity = np.array([numeric(x) for x in e.system.mechanism.gravity])
    size = float(np.linalg.norm(gravity))
    if not size:
        return list(np.eye(3))
    axes = list(np.eye(3))
    up = -gravity / size
    first = max(axes, key=lambda axis: float(np.linalg.norm(np.cross(up, axis))))
    across = np.cross(up, first)
    across /= np.linalg.norm(across)
    return [up, across, np.cross(up, across)]


def _direction(axis: np.ndarray) -> str:
    """An axis by its letter where it has one."""
    for sign, mark in ((1, ""), (-1, "-")):
        for k, letter in enumerate("xyz"):
            if np.linalg.norm(sign * axis - np.eye(3)[k]) < 1e-9:
                return mark + letter
    return f"({', '.join(f'{x:.3g}' for x in axis)})"
