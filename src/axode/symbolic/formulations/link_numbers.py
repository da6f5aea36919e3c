r"""The links of a tree in numbers: what the recursions will be fed with, before any graph of them.

The recursions are the same code for every mechanism; frames, transforms and inertias are not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
import numpy.typing as npt

from axode.oracle.numbers import cross, matvec
from axode.symbolic.algebra.frames import ROOT
from axode.symbolic.algebra.spatial import SX
from axode.symbolic.constraints.system import System

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class LinkNumbers:
    """Numbers of one link at some configurations, these along the first axis."""

    parent: int
    speeds: range
    turns: tuple[Array, ...]
    spins: int  # how many of the turns the recursions use
    p: Array
    S_w: Array
    S_v: Array
    mass: Array
    moment: Array
    tensor: Array

    def rotation(self, *, still: bool) -> Array:
        """Link's components to the parent's, with or without the spin of a balanced wheel."""
        R = np.eye(3)
        for turn in self.turns[: self.spins] if still else self.turns:
            R = R @ turn
        return R


class TreeNumbers:
    """A whole tree at some configurations."""

    def __init__(self, system: System, q: Array, p: Array) -> None:
        tree = system.tree
        expressions: list[SX] = [tree.gravity]
        for link, own in zip(tree.links, system.regrouped, strict=True):
            expressions += [turn.matrix for turn in link.rotation.turns]
            expressions += [link.p, link.S_w, link.S_v, own.mass, own.moment, own.tensor]
        for pose in tree.body_pose.values():
            expressions += [pose.R, pose.p]
        function = ca.Function(
            "links", [tree.q, tree.t, tree.parameters], [ca.densify(ca.veccat(*expressions))]
        )
        columns = [np.array(function(x, 0.0, p)).ravel() for x in q]
        self._numbers, self._next = np.array(columns), 0
        self.size = tree.v.shape[0]
        self.gravity = self._take(3, 1)[..., 0]
        self.links = []
        for link, still in zip(tree.links, system.still_tree.links, strict=True):
            turns = tuple(self._take(3, 3) for _ in link.rotation.turns)
            k = len(link.speeds)
            self.links.append(
                LinkNumbers(
                    link.parent,
                    link.speeds,
                    turns,
                    len(still.rotation.turns),
                    self._take(3, 1)[..., 0],
                    self._take(3, k),
                    self._take(3, k),
                    self._take(1, 1)[..., 0],
                    self._take(3, 1)[..., 0],
                    self._take(3, 3),
                )
            )
        self.bodies = {
            body: (tree.body_link[body], self._take(3, 3), self._take(3, 1)[..., 0])
            for body in tree.body_pose
        }

    def _take(self, rows: int, columns: int) -> Array:
        """The next matrix, which CasADi lists column by column."""
        end = self._next + rows * columns
        block = self._numbers[:, self._next : end].reshape(-1, columns, rows)
        self._next = end
        return np.swapaxes(block, -1, -2)

    def poses(self, names: list[str]) -> tuple[Array, Array]:
        """Axes and origins of bodies: configurations x bodies x 3 x 3, ... x 3."""
        placed: list[tuple[Array, Array]] = []
        for link in self.links:
            R, p = placed[link.parent] if link.parent != ROOT else (np.eye(3), np.zeros(3))
            placed.append((R @ link.rotation(still=False), matvec(R, link.p) + p))
        axes, origins = [], []
        for name in names:
            number, R_body, p_body = self.bodies[name]
            R, p = placed[number] if number != ROOT else (np.eye(3), np.zeros(3))
            axes.append(R @ R_body)
            origins.append(matvec(R, p_body) + p)
        return np.stack(axes, axis=1), np.stack(origins, axis=1)

    def forces(self, v: Array, v_dot: Array) -> Array:
        """Joint forces that a motion needs, by Newton and Euler in the link frames."""
        zero = np.zeros((len(v), 3))
        w, w_dot, a, f, n = ([zero] * len(self.links) for _ in range(5))
        R = [link.rotation(still=True) for link in self.links]
        for i, link in enumerate(self.links):
            k, into = link.parent, np.swapaxes(R[i], -1, -2)
            own, own_dot = (x[:, link.speeds.start : link.speeds.stop] for x in (v, v_dot))
            w_p, w_dot_p, a_p = (zero, zero, -self.gravity) if k == ROOT else (w[k], w_dot[k], a[k])
            w_rel, u_rel, w_in = matvec(link.S_w, own), matvec(link.S_v, own), matvec(into, w_p)
            w[i] = w_in + w_rel
            w_dot[i] = matvec(into, w_dot_p) + cross(w_in, w_rel) + matvec(link.S_w, own_dot)
            lever = cross(w_dot_p, link.p) + cross(w_p, cross(w_p, link.p))
            a[i] = matvec(into, a_p + lever) + cross(2 * w_in + w_rel, u_rel)
            a[i] = a[i] + matvec(link.S_v, own_dot)
            h, tensor = link.moment, link.tensor
            f[i] = link.mass * a[i] + cross(w_dot[i], h) + cross(w[i], cross(w[i], h))
            n[i] = matvec(tensor, w_dot[i]) + cross(w[i], matvec(tensor, w[i])) + cross(h, a[i])
        total = np.zeros((len(v), self.size))
        for i in reversed(range(len(self.links))):
            link, k = self.links[i], self.links[i].parent
            out = matvec(np.swapaxes(link.S_w, -1, -2), n[i])
            out = out + matvec(np.swapaxes(link.S_v, -1, -2), f[i])
            total[:, link.speeds.start : link.speeds.stop] = out
            if k != ROOT:
                f_out = matvec(R[i], f[i])
                f[k] = f[k] + f_out
                n[k] = n[k] + matvec(R[i], n[i]) + cross(link.p, f_out)
        return total
