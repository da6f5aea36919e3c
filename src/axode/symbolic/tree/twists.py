"""Twists of links for several motions of the joints at once, and the inertia they add up to (D)."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from axode.symbolic.algebra.frames import ROOT
from axode.symbolic.algebra.spatial import SX, RigidInertia, skew, symmetric
from axode.symbolic.tree.kinematics import Tree
from axode.symbolic.tree.recursions import momentum_of


class Twists:
    """Twists of links for columns of all speeds, each found once, when it is asked for.

    Args:
        tree: The tree.
        x: Speeds x columns. Those of a link's path must be there when its twist is asked for.
    """

    def __init__(self, tree: Tree, x: SX) -> None:
        self._tree, self._x = tree, x
        self._found: dict[tuple[int, int], tuple[SX, SX]] = {}

    def at(self, link: int, meet: int) -> tuple[SX, SX]:
        """Angular velocities and velocities of a link's origin against an ancestor, in its axes."""
        none = SX(3, self._x.shape[1])
        missing = [link]
        while missing[-1] != meet and (missing[-1], meet) not in self._found:
            missing.append(self._tree.links[missing[-1]].parent)
        w, u = self._found.get((missing.pop(), meet), (none, none))
        for i in reversed(missing):
            own = self._tree.links[i]
            v = self._x[own.speeds.start : own.speeds.stop, :]
            u = ca.sparsify(own.rotation.inward(u - skew(own.p) @ w) + own.S_v @ v)
            w = ca.sparsify(own.rotation.inward(w) + own.S_w @ v)
            self._found[i, meet] = w, u
        return w, u


def inertia_of_twists(tree: Tree, inertias: Sequence[RigidInertia], armature: SX, x: SX) -> SX:
    r"""Project the inertia of all speeds link by link.

    .. math:: x^T \tilde I x = \sum_i T_i^T M_i T_i + x^T J_a x, \qquad
              T_i = X_i T_{p(i)} + S_i x_i                                          \tag{D22}

    For few columns this is linear in the links, as :math:`\tilde I` itself is not.

    Args:
        tree: The tree.
        inertias: Inertia of its links.
        armature: Rotor inertia that each speed feels.
        x: Speeds x columns.
    """
    twists = Twists(tree, x)
    total = ca.densify(x.T @ (ca.diag(ca.sparsify(armature)) @ x))
    for i, own in enumerate(inertias):
        w, u = (ca.densify(part) for part in twists.at(i, ROOT))
        n, f = momentum_of(own, w, u)
        total += ca.densify(w.T @ n + u.T @ f)  # (D22)
    return symmetric(total)
