r"""Rates of the state of a body that pitches on an axle, by a level frame and a hinge (F).

Two wheels on one axle leave a floating base a plane and one turn about the axle. With n constant in
the ground, h in the base, b = R^T n at home and Q_0 the rotation at zero angles,

.. math:: R = R_n(\psi)\, Q_0\, R_h(\theta), \qquad Q_0 b = n, \quad Q_0 h = e,
          \\ \cos\theta = b \cdot R^T n, \quad \sin\theta = -(h \times b) \cdot R^T n,
          \\ \cos\psi = e \cdot R h, \quad \sin\psi = (n \times e) \cdot R h.       \tag{F39}

The same robot, described by a planar joint and a hinge, has wheels whose rows are numbers. Speeds
are eliminated there; coordinates and independent speeds stay those of the floating base, its speeds
being quasi-velocities of that system. It serves where it gives the same numbers and costs less.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import casadi as ca
import numpy as np

from axode.mechanism.elements.joints import Planar, Revolute
from axode.mechanism.elements.parts import Connection
from axode.mechanism.topology import tree_order
from axode.mechanism.values.expressions import numeric
from axode.mechanism.values.geometry import rotation_matrix
from axode.numerics.rank import least_squares, null_space, singular_vectors
from axode.numerics.tolerances import FAINT, RANK, ROUNDING
from axode.symbolic.algebra.spatial import (
    SX,
    Rotation,
    Turn,
    align,
    cross,
    placement,
    quaternion_matrix,
)
from axode.symbolic.constraints.level import snapped, wider_report
from axode.symbolic.constraints.redundant_rows import analyse, choose_speeds
from axode.symbolic.constraints.system import System, all_rows
from axode.symbolic.formulations.recursive import RecursiveFormulation
from axode.symbolic.tree.generalized_forces import applied_forces
from axode.symbolic.tree.kinematics import Tree, build_tree
from axode.symbolic.tree.rows import DEFINITION, Row, matrix_of

Array = np.ndarray
ACROSS = 0.05  # smallest singular value from which directions span a plane


@dataclass(frozen=True)
class Axle:
    """How a floating base turns: about n of the ground and about h through c, both of its frame."""

    connection: Connection
    first: int  # of its coordinates
    n: Array
    h: Array
    b: Array  # n in the base at zero pitch
    c: Array
    e: Array  # h in the ground at zero yaw

    @property
    def start(self) -> Array:
        """Rotation Q_0."""
        inner = np.column_stack([self.h, self.b, np.cross(self.h, self.b)])
        outer = np.column_stack([self.e, self.n, np.cross(self.e, self.n)])
        return snapped(outer @ inner.T)


def find_axle(system: System) -> Axle | None:
    """Find how the only floating base of a robot on the ground pitches; None if it does not."""
    tree, mechanism = system.tree, system.mechanism
    free = [c for c in tree_order(mechanism) if c.joint.is_free and c.joint.has_quaternion]
    others = [mechanism.loops, mechanism.struts, mechanism.couplings, mechanism.prescribed]
    if len(free) != 1 or any(others) or mechanism.quasi_velocities or system.level:
        return None
    base, grounds = free[0], {contact.plane.on for contact in mechanism.ideal_contacts}
    acted_on = [spring.coordinate for spring in mechanism.springs]
    acted_on += [damper.coordinate for damper in mechanism.dampers]
    acted_on += [drive.coordinate for drive in mechanism.drives]
    own = {base.name, *base.coordinates, *base.speeds}
    if base.parent != "ground" or grounds != {"ground"} or own & set(acted_on):
        return None
    residuals = [row.residual for row in system.rows if row.residual is not None]
    entries = ca.veccat(matrix_of(list(system.rows), tree.v.shape[0]), *residuals)
    if ca.depends_on(entries, tree.parameters) or numeric(base.armature) != 0.0:
        return None
    first, speed = (
        names.index(own_names[0])
        for names, own_names in (
            (tree.coordinate_names, base.coordinates),
            (tree.speed_names, base.speeds),
        )
    )
    holding = [r for r, row in enumerate(system.rows) if row.residual is not None]
    closed = [*system.samples, system.home]
    R = [_rotation(q[first : first + 4]) for q in closed]
    across = []  # of all angular velocities, in the base
    for q in system.samples:
        A = system.all_rows_function(q, 0.0, system.defaults).full()[holding]
        motions = null_space(A, RANK)[speed : speed + 3]
        U, s, _ = singular_vectors(motions)
        if len(s) < 2 or s[1] < ACROSS * s[0] or s[2:].max(initial=0.0) > ROUNDING * s[0]:
            return None
        across.append(U[:, 2])
    h = _across(across)
    n = _across([turn @ x for turn, x in zip(R, across, strict=False)])
    if h is None or n is None or max(abs(n @ turn @ h) for turn in R) > ROUNDING:
        return None
    # the point of the axle's direction that stays at one height
    heights = np.array([[*(turn.T @ n), -1.0] for turn in R])
    places = np.array([-(n @ q[first + 4 : first + 7]) for q in closed])
    c = least_squares(heights, places, ROUNDING)
    if np.abs(heights @ c - places).max() > ROUNDING:
        return None
    e = h if abs(h @ n) < ROUNDING else snapped(R[-1] @ h)
    return Axle(base, first, n, h, snapped(R[-1].T @ n), snapped(c[:3]), e)


def _across(vectors: Sequence[Array]) -> Array | None:
    """Direction across vectors that span a plane."""
    U, s, _ = singular_vectors(np.column_stack(vectors))
    if s[1] < ACROSS * s[0] or s[2] > ROUNDING * s[0]:
        return None
    found = U[:, 2] * np.sign(U[np.argmax(np.abs(U[:, 2])), 2])
    return snapped(found / np.linalg.norm(found))


def _rotation(q: Array) -> Array:
    R: Array = ca.DM(quaternion_matrix(*map(SX, q.tolist()))).full()
    return R


def level_system(system: System, axle: Axle) -> System | None:
    """System of the robot on a level frame and a hinge, on the same independent speeds.

    None if other rows or fewer motions are found there.
    """
    tree = _level_tree(system, axle)
    rows = all_rows(tree, system.defaults)
    function = ca.Function("A", [tree.q], [ca.densify(matrix_of(rows, tree.v.shape[0]))])
    closed = [*system.samples, system.home]
    *matrices, at_home = (function(q).full() for q in closed)
    report = analyse(rows, matrices, units=None)
    report = replace(report, home_matrix=(at_home[list(report.kept)],))
    if not report.null_bases or report.null_bases[0].shape[1] != len(system.independent):
        return None
    names = [system.tree.speed_names[j] for j in system.independent]
    twist = ca.jacobian(base_speeds(tree, axle), tree.v)
    floating = [name for name in names if name in axle.connection.speeds]
    D = ca.sparsify(twist[[axle.connection.speeds.index(name) for name in floating], :])
    size = tree.v.shape[0]
    base = tuple(choose_speeds(report, list(range(size))))
    definitions = []
    for i, name in enumerate(floating):
        entries = {j: -D[i, j] for j in range(size) if D.has_nz(i, j)}
        bias = -ca.jtimes(D[i, :] @ tree.v, tree.q, tree.q_dot)
        row = Row(name, name, DEFINITION, "rad", entries | {size + i: SX(1)}, bias)
        definitions.append(row)
    wider = replace(
        tree,
        v=ca.vertcat(tree.v, *map(SX.sym, floating)),
        speed_names=(*tree.speed_names, *floating),
        N=ca.horzcat(tree.N, SX.zeros(tree.N.shape[0], len(floating))),
    )
    if floating:
        weights = ca.Function("D", [tree.q], [ca.densify(D)])
        units = ["rad/s"] * len(floating)
        report = wider_report(report, [weights(q).full() for q in closed], units, len(rows))
    independent = tuple(wider.speed_names.index(name) for name in names)
    made = replace(
        system,
        mechanism=tree.mechanism,
        tree=wider,
        rows=(*rows, *definitions),
        report=report,
        forces=applied_forces(wider),
        independent=independent,
        base=base,
    )
    made.__dict__["nu"], made.__dict__["u"] = system.nu, system.u
    return made


def _level_tree(system: System, axle: Axle) -> Tree:
    """Tree with a planar joint and a hinge, in the coordinates of the floating base.  (F39)"""
    outer, base = system.tree, axle.connection
    mechanism = system.mechanism.copy()
    names = {body.name for body in mechanism.bodies} | {c.name for c in mechanism.connections}
    frame = next(f"level {k}" for k in range(len(names) + 1) if f"level {k}" not in names)
    hinge = next(f"pitch {k}" for k in range(len(names) + 1) if f"pitch {k}" not in names)
    level = mechanism.add_body(frame, mass=0.0, inertia=(0.0, 0.0, 0.0))
    in_child, turned = (
        np.array([[numeric(x) for x in row] for row in rotation_matrix(given)])
        for given in (base.child_rotation, base.rotation)
    )
    at = np.array([numeric(x) for x in base.child_at])
    mechanism.connections = [c for c in mechanism.connections if c is not base]
    mechanism.add_joint(
        frame, Planar(axle.n), parent="ground", child=level, at=base.at, rotation=turned
    )
    mechanism.add_joint(
        hinge,
        Revolute(axle.e),
        parent=level,
        child=base.child,
        child_at=at + in_child @ axle.c,
        child_rotation=in_child @ axle.start.T,
    )
    tree = build_tree(mechanism, outer.values, outer.t, outer.parameters)
    q = ca.vertsplit(outer.q[axle.first : axle.first + 7])
    R = quaternion_matrix(*q[:4])
    up, along = R.T @ SX(axle.n.tolist()), R @ SX(axle.h.tolist())
    about = {  # cosines and sines
        f"{frame}.yaw": (_sum(axle.e, along), _sum(np.cross(axle.n, axle.e), along)),
        hinge: (_sum(axle.b, up), -_sum(np.cross(axle.h, axle.b), up)),
    }
    places = {name: outer.q[k] for k, name in enumerate(outer.coordinate_names)}
    links = []
    for link in tree.links:
        *turns, last = link.rotation.turns or (Turn("matrix", SX.eye(3)),)
        turning = [k for k in range(tree.q.shape[0]) if ca.depends_on(last.matrix, tree.q[k])]
        if turning and tree.coordinate_names[turning[0]] in about:
            c, s = about[tree.coordinate_names[turning[0]]]
            still = ca.substitute(last.matrix, tree.q, SX.zeros(tree.q.shape))
            turn = ca.vertcat(ca.horzcat(c, -s, 0), ca.horzcat(s, c, 0), SX([[0, 0, 1]]))
            last = Turn("z", turn @ still)
        known = [places.get(name, SX(0)) for name in tree.coordinate_names]
        matrix, p = ca.substitute([last.matrix, link.p], [tree.q], [ca.vertcat(*known)])
        rotation = Rotation.of(*turns, Turn(last.axis, matrix))
        links.append(replace(link, rotation=rotation, p=p))
    named = {name: k for k, name in enumerate(tree.speed_names)}
    level_tree = replace(
        tree,
        links=tuple(links),
        q=outer.q,
        coordinate_names=outer.coordinate_names,
        N=SX.zeros(outer.q.shape[0], tree.v.shape[0]),
        quaternions=outer.quaternions,
        _poses={},
    )
    N = level_tree.N
    for k, name in enumerate(outer.speed_names):  # of joints that both have
        if name in named:
            N[:, named[name]] = outer.N[:, k]
    yaw, pitch = named[f"{frame}.yaw_rate"], named[f"{hinge}.rate"]
    (w, *x), n, h = q[:4], SX(axle.n.tolist()), SX(axle.h.tolist())
    v = ca.vertcat(*x)
    N[axle.first : axle.first + 4, yaw] = ca.vertcat(-ca.dot(n, v), w * n + cross(n, v)) / 2
    N[axle.first : axle.first + 4, pitch] = ca.vertcat(-ca.dot(h, v), w * h + cross(v, h)) / 2
    (cosine, sine), A = about[f"{frame}.yaw"], align(n)
    heading = A @ ca.vertcat(ca.horzcat(cosine, -sine), ca.horzcat(sine, cosine), SX(1, 2))
    rates = SX.zeros(3, tree.v.shape[0])
    rates[:, [named[f"{frame}.surge"], named[f"{frame}.sway"]]] = heading
    if axle.c.any():
        turned_by = ca.jacobian(base_speeds(level_tree, axle)[:3], tree.v)
        rates += R @ ca.skew(SX(axle.c.tolist())) @ turned_by
    N[axle.first + 4 : axle.first + 7, :] = rates
    return level_tree


def base_speeds(tree: Tree, axle: Axle) -> SX:
    """Speeds of the floating base as expressions of the level tree's."""
    base = axle.connection
    pose = tree.body_pose[base.child] @ placement(base.child_at, base.child_rotation, tree.values)
    w, u = (x[tree.body_link[base.child]] for x in tree.velocities(tree.v))
    return ca.vertcat(pose.R.T @ w, pose.R.T @ (u + cross(w, pose.p)))


def _sum(weights: Array, x: SX) -> SX:
    """Weighted sum of the entries of a column, without those of no weight."""
    return sum((float(a) * x[i] for i, a in enumerate(weights) if a), SX(0))


def shorter_rate(system: System, general: Callable[[], SX]) -> SX | None:
    """Rates of q and nu, the power that is supplied and the power that is dissipated.

    None where no base pitches on an axle, where rates would not be those of the system, and where
    they would not be shorter.

    Args:
        system: What moves.
        general: The same of any mechanism, made when it is needed.
    """
    axle = find_axle(system)
    level = None if axle is None else level_system(system, axle)
    if level is None:
        return None
    v = level.complement.speeds(level.nu)
    supplied = ca.dot(ca.densify(level.forces.B @ level.u), v) if level.u.numel() else SX(0)
    parts = [
        level.tree.q_dot,
        RecursiveFormulation(level).forward_dynamics(),
        -ca.dot(level.forces.dissipative, level.tree.v),
    ]
    q_dot, nu_dot, lost = (level.at_speeds(ca.densify(part)) for part in parts)
    found, wanted = ca.vertcat(q_dot, nu_dot, supplied, lost), general()
    arguments = [system.tree.q, system.nu, system.u, system.tree.t, system.tree.parameters]
    ours, theirs = (ca.Function("rate", arguments, [ca.densify(x)]) for x in (found, wanted))
    if ours.n_instructions() >= theirs.n_instructions():
        return None
    generator = np.random.default_rng(3)
    for q in (system.home, *system.samples):
        nu, u = (generator.normal(size=x.shape[0]) for x in (system.nu, system.u))
        given = q, nu, u, 0.0, system.defaults
        expected = theirs(*given).full()
        off = np.abs(ours(*given).full() - expected).max()
        if not off <= FAINT * max(1.0, np.abs(expected).max()):
            return None
    return found
