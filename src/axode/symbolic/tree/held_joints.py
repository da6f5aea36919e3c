r"""Motors that hold their joints while everything else gives way (D).

Inputs that come nearest to a motion leave an acceleration error that no motor feels,
:math:`G^T a = 0`: they are what holds the driven joints still against the required force r,
while the other speeds yield to it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import casadi as ca

from axode.symbolic.algebra.linear import Factor
from axode.symbolic.algebra.spatial import SX, RigidInertia, cross, skew, symmetric
from axode.symbolic.tree.frames import ROOT
from axode.symbolic.tree.kinematics import Link, Tree
from axode.symbolic.tree.recursions import carried_inward, momentum


@dataclass
class _Carried:
    """What a link feels of everything outward of it, in its own axes.

    A rigid inertia of the links that held joints carry, and an articulated one, with its wrench, of
    those beyond joints that give way; None as long as there are none of these.
    """

    rigid: RigidInertia
    blocks: tuple[SX, SX, SX] | None = None
    wrench: tuple[SX, SX] | None = None


@dataclass(frozen=True)
class _Joint:
    """Momenta of a link for unit speeds of its joint, and the part of the joint that gives way."""

    N_S: SX
    F_S: SX
    held: SX  # S^T p^A: the force that the wrench exerts on the joint
    free: list[int]  # which of its speeds give way
    factor: Factor | None
    u: SX


def holding_forces(
    tree: Tree, inertias: list[RigidInertia], armature: SX, forces: SX, held: Collection[int]
) -> SX:
    r"""Forces that keep the held speeds at rest while the forces move all others.

    .. math:: a_h = 0, \qquad (\tilde I a)_f = r_f, \qquad h = r_h - (\tilde I a)_h,  \tag{D20}

    by articulated bodies on which held joints are rigid: cost linear in the links.

    Returns:
        A column of all speeds, h in the held ones and zero in the others.
    """
    carried = [_Carried(inertia) for inertia in inertias]
    joints: list[_Joint] = []
    for i in reversed(range(len(tree.links))):
        link, own = tree.links[i], carried[i]
        joint = _joint(link, own, armature, forces, held)
        joints.append(joint)
        if link.parent != ROOT:
            _pass_on(link, own, joint, carried[link.parent])
    return _reactions(tree, joints[::-1], forces)


def _joint(link: Link, own: _Carried, armature: SX, forces: SX, held: Collection[int]) -> _Joint:
    N_S, F_S = momentum(own.rigid, link)
    if own.blocks is not None:
        I, H, M = own.blocks
        N_S += I @ link.S_w + H @ link.S_v
        F_S += H.T @ link.S_w + M @ link.S_v
    felt = SX.zeros(link.k)
    if own.wrench is not None:
        felt = link.S_w.T @ own.wrench[0] + link.S_v.T @ own.wrench[1]
    free = [c for c, j in enumerate(link.speeds) if j not in held]
    if not free:
        return _Joint(N_S, F_S, felt, free, None, SX.zeros(0))
    S_w, S_v = link.S_w[:, free], link.S_v[:, free]
    speeds = [link.speeds[c] for c in free]
    D = symmetric(S_w.T @ N_S[:, free] + S_v.T @ F_S[:, free]) + ca.diag(armature[speeds])
    return _Joint(N_S, F_S, felt, free, Factor.of(D), forces[speeds] - felt[free])


def _pass_on(link: Link, own: _Carried, joint: _Joint, parent: _Carried) -> None:
    """Add what a link feels to what its parent feels; (D5) where the joint gives way."""
    if joint.factor is None:
        parent.rigid = parent.rigid + own.rigid.moved(link.rotation, link.p)
        if own.blocks is None or own.wrench is None:
            return
        blocks, wrench = own.blocks, own.wrench
    else:
        N_S, F_S = joint.N_S[:, joint.free], joint.F_S[:, joint.free]
        h = skew(own.rigid.moment)
        I, H, M = own.blocks or (SX(3, 3), SX(3, 3), SX(3, 3))
        I, H, M = I + own.rigid.tensor, H + h, M + own.rigid.mass * SX.eye(3)
        G_N, G_F, y = (joint.factor.solve(x) for x in (N_S.T, F_S.T, joint.u))
        blocks = (symmetric(I - N_S @ G_N), H - N_S @ G_F, symmetric(M - F_S @ G_F))
        n, f = own.wrench or (SX.zeros(3), SX.zeros(3))
        wrench = (n + N_S @ y, f + F_S @ y)
    felt = carried_inward(link, blocks, wrench)
    known = (*(parent.blocks or (SX.zeros(3, 3),) * 3), *(parent.wrench or (SX.zeros(3),) * 2))
    I, H, M, n, f = (x + part for x, part in zip(known, felt, strict=True))
    parent.blocks, parent.wrench = (I, H, M), (n, f)


def _reactions(tree: Tree, joints: list[_Joint], forces: SX) -> SX:
    """Accelerations outward, and at every held joint the force it transmits.  (D20)"""
    w_dot: list[SX] = []
    a: list[SX] = []
    holding = SX.zeros(tree.v.shape[0])
    for link, joint in zip(tree.links, joints, strict=True):
        if link.parent == ROOT:
            w_in, a_in = SX.zeros(3), SX.zeros(3)
        else:
            outer = w_dot[link.parent]
            w_in = link.rotation.inward(outer)
            a_in = link.rotation.inward(a[link.parent] + cross(outer, link.p))
        yielding = SX.zeros(link.k)
        if joint.factor is not None:
            N_S, F_S = joint.N_S[:, joint.free], joint.F_S[:, joint.free]
            yielding[joint.free] = joint.factor.solve(joint.u - N_S.T @ w_in - F_S.T @ a_in)
        w_dot.append(w_in + link.S_w @ yielding)
        a.append(a_in + link.S_v @ yielding)
        transmitted = joint.N_S.T @ w_dot[-1] + joint.F_S.T @ a[-1] + joint.held
        for c, j in enumerate(link.speeds):
            if c not in joint.free:
                holding[j] = forces[j] - transmitted[c]  # (D20)
    return holding
