r"""Rows: what loops, contacts, prescribed motions and couplings ask of the joint speeds (C).

Each row is a unit wrench that acts between two links: what it does power on must vanish. Carried
inward along both paths, as the recursion carries forces, a wrench (n, f) at a link gives the row's
entries

.. math:: A_{rj} = S_{w,j}^T n_j + S_{v,j}^T f_j,                                 \tag{C1}

with opposite signs on the two sides; what lies before the paths meet cancels and is never formed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import casadi as ca
import numpy as np
import numpy.typing as npt

from axode.errors import Fault, MechanismError
from axode.mechanism.elements.forces import Prescribed
from axode.mechanism.elements.joints import Coupling
from axode.mechanism.topology import coordinate_of, coupled_by
from axode.mechanism.values.expressions import Coordinate
from axode.numerics.tolerances import JUMP_WIDTH
from axode.symbolic.algebra.formula_symbols import right_continuous
from axode.symbolic.algebra.spatial import ROOT, SX, cross, symbolic_scalar
from axode.symbolic.tree.kinematics import Motion, Tree

DEFINITION = "definition"  # kind of the rows that define quasi-velocities


@dataclass(frozen=True)
class LinkPoint:
    """A point of a link that rows refer to.

    Attributes:
        link: The link.
        point: Place in its frame.
        meet: Ancestor against which the point moves.
        velocity: x, y and z of its velocity in the link's axes, by speed after the ancestor.
    """

    link: int
    point: SX
    meet: int
    velocity: tuple[dict[int, SX], ...]

    def matrix(self, size: int) -> SX:
        """Velocity for unit speeds: 3 x speeds, structurally sparse."""
        J = SX(3, size)
        for i, entries in enumerate(self.velocity):
            for speed, value in entries.items():
                J[i, speed] = value
        return J


@dataclass(frozen=True)
class Row:
    """One constraint on the speeds: A v = b, with a residual if it is holonomic.

    `bias` is what differentiating the row adds to A v_dot: A v_dot + bias = 0, all of it, the
    motion of the contact point and explicit time included.
    """

    name: str  # "tip.x", "left.lateral"
    owner: str  # the joint, contact or coordinate that it belongs to: "tip", "left"
    kind: str  # "loop", "touch", "rolling", "prescribed", "coupling" or DEFINITION
    unit: str  # of its residual or of its force's direction: "m" or "rad"
    entries: dict[int, SX]  # of A, by speed
    bias: SX
    rate: SX = field(default_factory=lambda: SX(0))  # b
    residual: SX | None = None
    sine: SX | None = None  # of the angle that is its residual
    nearby: SX | None = None  # its residual where bases that contacts keep from tilting do not
    port: LinkPoint | None = None  # where the far side is held, if that is a point
    own: LinkPoint | None = None  # the near side's point, which is the same
    sides: tuple[LinkPoint, ...] = ()  # points of a loop whose velocities its entries are sums of
    direction: SX | None = None  # in which it is held there, in the near link's axes
    side: Side | None = None  # its wrench along the near side's path

    @property
    def holonomic(self) -> bool:
        """Return whether it comes from a position."""
        return self.residual is not None

    @property
    def places(self) -> bool:
        """Return whether displacements obey it: those of a quasi-velocity obey its definition."""
        return self.holonomic or self.kind == DEFINITION

    @property
    def drift(self) -> SX:
        """Its residual next to where it vanishes: the sine of an angle is shorter."""
        if self.kind == DEFINITION:
            return SX(0)  # no place of its own
        shorter = self.sine if self.nearby is None else self.nearby
        found = self.residual if shorter is None else shorter
        assert found is not None
        return found

    @property
    def on_joints(self) -> bool:
        """Return whether it is about joint speeds themselves, not about two links that meet."""
        return self.kind in ("prescribed", "coupling", DEFINITION)


@dataclass(frozen=True)
class UnitWrench:
    """A direction in which two links may not move apart, in the first link's frame."""

    n: SX
    f: SX


@dataclass(frozen=True)
class Side:
    """A row's unit wrench as the links of one path feel it, each in its own frame.

    Attributes:
        meet: Ancestor against which they move; it feels the last wrench.
        felt: Links from the outermost inwards, with the wrench on each.
    """

    meet: int
    felt: tuple[tuple[int, UnitWrench], ...]


def side_entries(tree: Tree, link: int, meet: int, wrench: UnitWrench) -> dict[int, SX]:
    """Entries of a row for a unit wrench on a link, for the speeds after an ancestor.  (C1)"""
    return _entries_of(tree, _inward(tree, link, meet, [wrench])[0])


def _inward(tree: Tree, link: int, meet: int, wrenches: Sequence[UnitWrench]) -> list[Side]:
    """Carry wrenches on one link inward together."""
    count = len(wrenches)
    felt = [[(link, wrench)] for wrench in wrenches]
    columns = [wrench.n for wrench in wrenches] + [wrench.f for wrench in wrenches]
    while link != meet:
        own = tree.links[link]
        columns = ca.horzsplit(own.rotation.outward(ca.horzcat(*columns)))
        link = own.parent
        for k in range(count):
            columns[k] = columns[k] + cross(own.p, columns[count + k])
            felt[k].append((link, UnitWrench(columns[k], columns[count + k])))
    return [Side(meet, tuple(one)) for one in felt]


def _entries_of(tree: Tree, side: Side) -> dict[int, SX]:
    entries: dict[int, SX] = {}
    for link, felt in side.felt[:-1]:
        own = tree.links[link]
        _record(entries, own.speeds, own.power(felt.n, felt.f), 1)
    return entries


def port_at(tree: Tree, link: int, meet: int, point: SX) -> LinkPoint:
    """Velocity of a link's point, for the speeds after an ancestor."""
    axes = [SX(e) for e in ([1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0])]
    wrenches = [UnitWrench(cross(point, e), e) for e in axes]
    velocity = tuple(_entries_of(tree, side) for side in _inward(tree, link, meet, wrenches))
    return LinkPoint(link, point, meet, velocity)


def link_twist(tree: Tree, link: int, meet: int) -> SX:
    """Angular velocity and velocity of a link's origin, in its axes, for unit speeds: 6 x speeds.

    Args:
        tree: The tree.
        link: The link.
        meet: Ancestor against which it moves.
    """
    G = SX(6, tree.v.shape[0])
    units = ca.horzsplit(SX(ca.DM.eye(6).full()))
    wrenches = [UnitWrench(unit[:3], unit[3:]) for unit in units]
    for i, side in enumerate(_inward(tree, link, meet, wrenches)):
        for speed, value in _entries_of(tree, side).items():
            G[i, speed] = value
    return G


def point_row_entries(own: dict[int, SX], port: LinkPoint, direction: SX) -> dict[int, SX]:
    """A row whose far side is held at a port: own side minus direction times port velocity."""
    entries = dict(own)
    for i, velocity in enumerate(port.velocity):
        for speed, value in velocity.items():
            entries[speed] = entries.get(speed, SX(0)) - direction[i] * value
    return entries


def row_entries(
    tree: Tree, first: int, second: int, wrenches: Sequence[UnitWrench]
) -> list[tuple[dict[int, SX], Side]]:
    """Rows of A for unit wrenches on `first` and their opposites on `second`, with first sides.

    (C1)
    """
    meet = tree.common_ancestor(first, second)
    outward, found = tree.path_between(meet, second), []
    for side in _inward(tree, first, meet, wrenches):
        entries, (_, met) = _entries_of(tree, side), side.felt[-1]
        n, f = met.n, met.f
        for link in outward:
            own = tree.links[link]
            n = own.rotation.inward(n - cross(own.p, f))
            f = own.rotation.inward(f)
            _record(entries, own.speeds, own.power(n, f), -1)
        found.append((entries, side))
    return found


def _record(entries: dict[int, SX], speeds: range, values: list[SX], sign: int) -> None:
    for speed, value in zip(speeds, values, strict=True):
        if not value.is_zero():
            entries[speed] = value if sign > 0 else -value


def cheaper_bias(tree: Tree, entries: dict[int, SX], closed_form: SX) -> SX:
    """A row's bias by its closed form, or by differentiating its entries where that is shorter.

    Entries that are numbers, as those of an upright wheel on its own base are, cost nothing then.
    """
    moving = {j: x for j, x in entries.items() if not x.is_constant()}
    row = sum((x * tree.v[j] for j, x in moving.items()), SX(0))
    if not moving:
        return SX(0)
    automatic = ca.jtimes(row, tree.q, tree.q_dot)
    return min((closed_form, automatic), key=ca.n_nodes)


@dataclass(frozen=True)
class LinkState:
    """Velocity and acceleration of a link as another link's axes show them."""

    w: SX
    w_dot: SX
    velocity: SX  # of the point asked about, moving with the link
    acceleration: SX


def state_at(
    tree: Tree, motion: Motion, u: list[SX], link: int, point: SX, shown_in: int
) -> LinkState:
    """State of the material point of a link at a place given in the link's own frame."""
    if link == ROOT:
        zero = SX.zeros(3)
        return LinkState(zero, zero, zero, zero)
    velocity = u[link] + cross(motion.w[link], point)
    acceleration = motion.a[link] + motion.U[link] @ point
    if link == shown_in:
        return LinkState(motion.w[link], motion.w_dot[link], velocity, acceleration)
    carried = (
        tree.carry(x, link, shown_in)
        for x in (motion.w[link], motion.w_dot[link], velocity, acceleration)
    )
    return LinkState(*carried)


def prescribed_rows(tree: Tree) -> Iterator[Row]:
    r"""Rows of coordinates that follow a function of time: q_k = f(t).

    .. math:: e_k^T N v = \dot f, \qquad e_k^T N \dot v + e_k^T \dot N v - \ddot f = 0  \tag{C8}
    """
    for prescribed in tree.mechanism.prescribed:
        yield _prescribed_row(tree, prescribed)


def _prescribed_row(tree: Tree, prescribed: Prescribed) -> Row:
    k = tree.coordinate_names.index(prescribed.coordinate)
    motion = right_continuous(symbolic_scalar(prescribed.motion, tree.values), tree.t)
    rate = ca.jacobian(motion, tree.t)
    N_k = tree.N[k, :]
    bias = ca.jtimes(N_k @ tree.v, tree.q, tree.q_dot) - ca.jacobian(rate, tree.t)  # (C8)
    entries = {j: N_k[j] for j in range(N_k.shape[1]) if not N_k[j].is_zero()}
    unit = unit_of(tree, prescribed.coordinate)
    return Row(
        f"{prescribed.coordinate}.prescribed",
        prescribed.coordinate,
        "prescribed",
        unit,
        entries,
        bias,
        rate,
        tree.q[k] - motion,
    )


def coupling_rows(tree: Tree) -> Iterator[Row]:
    r"""Rows of couplings: gears, belts, differentials, cams and whatever else relates joints.

    .. math:: \sum_k c_k q_k = o, \qquad \sum_k c_k e_k^T N v = 0, \qquad
              \sum_k c_k (e_k^T N \dot v + e_k^T \dot N v) = 0                     \tag{C10}

    A term that names a speed puts that speed for :math:`e_k^T N v`, and no position is left. With
    a function of coordinates, :math:`\sum_k c_k q_k = o + f(q)`, the coefficients are those of
    its slopes, too, and its bend is felt:

    .. math:: (c - \nabla f)^T N v = 0, \qquad
              (c - \nabla f)^T (N \dot v + \dot N v)
              = \dot q^T \frac{\partial^2 f}{\partial q^2} \dot q                   \tag{C13}
    """
    for coupling in tree.mechanism.couplings:
        yield _coupling_row(tree, coupling)


def _coupling_row(tree: Tree, coupling: Coupling) -> Row:
    found = [coupled_by(tree.mechanism, name) for name, _ in coupling.terms]
    function = coupling_function(tree, coupling)
    residual = -symbolic_scalar(coupling.offset, tree.values) - function
    A = -ca.jacobian(function, tree.q) @ tree.N  # (C13)
    for (coordinate, speed), (_, coefficient) in zip(found, coupling.terms, strict=True):
        c = symbolic_scalar(coefficient, tree.values)
        if coordinate is not None:
            k = tree.coordinate_names.index(coordinate)
            residual += c * tree.q[k]  # (C10)
            A += c * tree.N[k, :]
        elif speed is not None:
            A[tree.speed_names.index(speed)] += c
    A = ca.sparsify(A)
    entries = {j: A[j] for j in range(A.shape[1]) if A.has_nz(0, j)}
    moving = not all(x.is_constant() for x in entries.values())
    bias = ca.jtimes(A @ tree.v, tree.q, tree.q_dot) if moving else SX(0)  # (C10)
    positions = all(coordinate is not None for coordinate, _ in found)
    unit = unit_of(tree, found[0][0] or found[0][1] or "")
    return Row(
        f"{coupling.name}.coupling",
        f"{coupling.name}.coupling",
        "coupling",
        unit,
        entries,
        bias,
        residual=residual if positions else None,
    )


def coupling_function(tree: Tree, coupling: Coupling) -> SX:
    """The function of coordinates that a coupling adds to its offset."""
    coordinates = {
        str(Coordinate(name)): tree.q[tree.coordinate_names.index(coordinate)]
        for name in coupling.arguments
        if (coordinate := coordinate_of(tree.mechanism, name)) is not None
    }
    return symbolic_scalar(coupling.function, {**tree.values, **coordinates})


def unit_of(tree: Tree, name: str) -> str:
    """Unit of a coordinate, or of what a speed is the rate of."""
    for connection in tree.mechanism.connections:
        if name in connection.coordinates:
            return connection.joint.coordinate_units[connection.coordinates.index(name)]
        if name in connection.speeds:
            return connection.joint.speed_units[connection.speeds.index(name)].removesuffix("/s")
    return ""


def matrix_of(rows: list[Row], size: int) -> SX:
    """A, structurally sparse."""
    A = SX(len(rows), size)
    for r, row in enumerate(rows):
        for j, value in row.entries.items():
            A[r, j] = value
    return A


def column_of(values: list[SX]) -> SX:
    """A column, empty if there is nothing."""
    return ca.vertcat(*values) if values else SX.zeros(0, 1)


Array = npt.NDArray[np.float64]
_BENT = "LT LE EQ NE NOT AND OR SIGN FLOOR CEIL FABS FMIN FMAX IF_ELSE_ZERO SQRT ASIN ACOS ATAN2"
BENT = {getattr(ca, f"OP_{name}") for name in [*_BENT.split(), "POW", "CONSTPOW", "HYPOT", "FMOD"]}
TURNS = 4.0 * np.pi  # [rad] of an angle to both sides of home
REACHES = (10.0, 1.0, 0.1, 0.01, 0.001)  # [m] of a slide
CELLS = 4000  # of a line: what jumps there and back within one of them is not seen
LINES = 4  # besides those through home
OFF = 0.3819  # of a cell, by which places avoid round numbers, at which kinks have no slope
SPLIT = 0.5 + 0.1 * OFF
JUMP = 1e-6  # of value or slope: what is left is rounding and curvature
MOST_CELLS = 200_000  # under suspicion at once: more of them bend, and are no jumps
POLE = 1e6  # times the usual size: there is no value near by that a jump could leave


def check_couplings(tree: Tree, defaults: Array) -> None:
    """Require that functions of couplings have no jumps, nor their slopes.

    What switches (`where`, `abs`, `min`, `%` and the like) may join pieces, as the profile of a cam
    with dwells does, if the pieces meet with equal slopes. Values and slopes are compared at many
    places of lines along the coordinates, through home and about it; where they do not change
    evenly, the place is narrowed down until they do, or a jump is found.

    Raises:
        MechanismError: naming the coupling, the place and the jump.
    """
    found = [fault for c in tree.mechanism.couplings for fault in _faults(tree, c, defaults)]
    if found:
        raise MechanismError(f"mechanism '{tree.mechanism.name}'", found)


def _faults(tree: Tree, coupling: Coupling, defaults: Array) -> Iterator[Fault]:
    f = coupling_function(tree, coupling)
    if not _may_jump(f):
        return
    names = dict.fromkeys(str(coordinate_of(tree.mechanism, name)) for name in coupling.arguments)
    x = ca.vertcat(*(tree.q[tree.coordinate_names.index(name)] for name in names))
    values = ca.Function("values", [x, tree.parameters], [ca.vertcat(f, ca.jacobian(f, x).T)])
    home = np.array([tree.mechanism.home_coordinates.get(name, 0.0) for name in names])
    generator = np.random.default_rng(1)
    for k, name in enumerate(names):
        for reach in (TURNS,) if unit_of(tree, name) == "rad" else REACHES:
            about = generator.uniform(-reach, reach, size=(LINES, home.size))
            for start in home + np.vstack([np.zeros(home.size), about]):
                line = np.repeat(start[:, np.newaxis], CELLS + 1, axis=1)
                line[k] = home[k] + reach * (np.arange(CELLS + 1) * 2 + OFF - CELLS) / CELLS
                jump = _nearest_jump(values, line, k, home[k], defaults)
                if jump is None:
                    continue
                place, step, slope = jump
                what = f"it jumps by {step:.3g}"
                if step <= JUMP:
                    what = f"its slope jumps by {slope:.3g}"
                message = (
                    f"{what} at {name} = {place:.6g}, and no finite force moves a joint like "
                    "that; join the pieces with equal values and slopes"
                )
                yield Fault("coupling", coupling.name, "function", message)
                return


def _nearest_jump(
    values: ca.Function, line: Array, k: int, home: float, defaults: Array
) -> tuple[float, float, float] | None:
    """Place of the jump nearest to home along a line, the jump of value and the largest of slopes.

    Args:
        values: The function's value and slopes, of coordinates and parameters.
        line: Places along it, (coordinates, places).
        k: The coordinate that changes along it.
        home: Where that coordinate is at home.
        defaults: Values of the parameters.
    """
    made = np.array(values(line, defaults))
    usual = np.nan_to_num(np.nanmedian(np.abs(made), axis=1, keepdims=True))
    limit, unit = POLE * np.maximum(1.0, usual), JUMP * np.maximum(1.0, usual)
    begin, end, before, after = line[:, :-1], line[:, 1:], made[:, :-1], made[:, 1:]
    found: list[tuple[float, Array]] = []

    def note(cells: npt.NDArray[np.bool_]) -> None:
        size = np.abs(after - before)
        jumps = np.flatnonzero(cells & (size > unit).any(axis=0))
        found.extend((float(end[k, cell]), size[:, cell]) for cell in jumps)

    while 0 < begin.shape[1] <= MOST_CELLS:
        there = [np.isfinite(v) & (np.abs(v) < limit) for v in (before, after)]
        known = (there[0] & there[1]).all(axis=0)
        done = end[k] - begin[k] <= JUMP_WIDTH * np.maximum(1.0, np.abs(begin[k]))
        middle = begin + SPLIT * (end - begin)
        made = np.array(values(middle, defaults))
        gap = ~np.isfinite(made).all(axis=0)  # as asin(sin(x)) has at its corners: no narrower
        note(known & (done | gap))
        with np.errstate(invalid="ignore", over="ignore"):
            bend = 2 * np.abs(made - before - SPLIT * (after - before))
        on = known & ~done & ~gap & (bend > unit).any(axis=0)
        halves = ((begin, middle), (middle, end)), ((before, made), (made, after))
        (begin, end), (before, after) = (
            [np.hstack([pair[side][:, on] for pair in pairs]) for side in (0, 1)]
            for pairs in halves
        )
    if not found:
        return None
    largest = max((jumps / unit[:, 0]).max() for _, jumps in found)
    clear = [one for one in found if (one[1] / unit[:, 0]).max() > largest / 2]  # not by rounding
    place, jumps = min(clear, key=lambda one: (round(abs(one[0] - home), 6), -one[0]))
    return round(place, 9) + 0.0, float(jumps[0]), float(jumps[1:].max())


def _may_jump(x: SX) -> bool:
    """Return whether any operation of an expression may have a jump or a corner."""
    waiting, seen = [x], set()
    while waiting:
        e = waiting.pop()
        if e.element_hash() in seen:
            continue
        seen.add(e.element_hash())
        operands = [e.dep(i) for i in range(e.n_dep())]
        if operands and e.op() in BENT:
            return True
        waiting += operands
    return False
