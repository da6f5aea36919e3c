r"""Constraints on the twists of all bodies, as Saha and Angeles write them.

With t the twists of p bodies, angular velocity first, velocity of the mass centre second, in world
axes, every joint and every contact gives rows of A t = 0. A revolute about e between bodies i and
j, rho pointing from the joint to each mass centre, gives six rows of rank five (their equation 22):

.. math:: e \times (\omega_j - \omega_i) = 0, \qquad
          (\dot c_j + \rho_j \times \omega_j) - (\dot c_i + \rho_i \times \omega_i) = 0;

a wheel j that rolls on a body i at Q gives three (their equation 24, its second block corrected):

.. math:: (\dot c_j + (c_j - Q) \times \omega_j) - (\dot c_i + (c_i - Q) \times \omega_i) = 0.

A gear, belt, rack or any other coupling gives one row: the rates of its joints are linear in the
relative twists of the bodies that each joins, theirs about a revolute's axis e being

.. math:: e \cdot (\omega_j - \omega_i),

that of a prismatic joint e . (c_j_dot + rho_j x omega_j - c_i_dot - rho_i x omega_i). Where the
axes of two gears are on the ground, the row is about a pair; where they are on a carrier, it is
about two pairs that share it.

The bodies' twists for unit independent speeds, T, satisfy A T = 0 (their equation 13); the ground
has no columns. A planar joint that carries a vehicle on the ground has no rows of its own where its
wheels keep all that the joint keeps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np
import numpy.typing as npt

from axode.errors import UnknownName
from axode.mechanism.elements.bodies import GROUND
from axode.mechanism.elements.parts import Connection
from axode.mechanism.elements.wheels import Contact
from axode.numerics.rank import least_norm
from axode.numerics.tolerances import RANK
from axode.symbolic.algebra.spatial import SX, cross, skew, symbolic_vector
from axode.symbolic.constraints.loops import Closure
from axode.symbolic.constraints.redundant_rows import rank_of
from axode.symbolic.tree.rows import Row, coupling_rows, link_twist
from axode.symbolic.wheels.contacts import contact_geometry

if TYPE_CHECKING:
    from axode.symbolic.equations import Equations


@dataclass(frozen=True)
class TwistRows:
    """Rows on the relative velocity of body j seen from body i, at one point.

    Attributes:
        name: Name of the joint or contact.
        i, j: Names of the bodies; rows are about j minus i.
        point: Where velocities are taken, in the world.
        angular, linear: What multiplies the relative angular velocity, and the relative velocity
            of the two bodies' points there: (rows, 3) each.
        of_contact: Whether they are a wheel's.
        more: Further pairs of bodies that the same rows are about: a coupling's other joints.
    """

    name: str
    i: str
    j: str
    point: SX
    angular: SX
    linear: SX
    of_contact: bool = False
    more: tuple[TwistRows, ...] = ()


class TwistConstraints:
    """The matrix A of a mechanism on the twists of its bodies.

    Args:
        equations: Equations of the mechanism.
    """

    def __init__(self, equations: Equations) -> None:
        self.equations = equations
        self._tree = equations.system.tree
        mechanism = equations.system.mechanism
        self.bodies = tuple(body.name for body in mechanism.bodies)
        self._centres = {
            body.name: self._tree.body_world_pose(body.name).point(
                symbolic_vector(body.com, self._tree.values)
            )
            for body in mechanism.bodies
        }
        self.blocks = self._needed()

    @property
    def A(self) -> SX:
        """All rows: as many as joints, contacts and couplings give, six columns per body."""
        return self._stack(self.blocks)

    @property
    def rows(self) -> tuple[str, ...]:
        """Joint, contact or coupling that each row belongs to."""
        return tuple(block.name for block in self.blocks for _ in range(block.linear.shape[0]))

    @property
    def row_names(self) -> tuple[str, ...]:
        """Names of all rows: those of a joint or contact with several are numbered from 1."""
        names: list[str] = []
        for block in self.blocks:
            size = block.linear.shape[0]
            names += [f"{block.name}.{k + 1}" for k in range(size)] if size > 1 else [block.name]
        return tuple(names)

    def of(self, name: str) -> dict[str, SX]:
        """What a joint, contact or coupling multiplies each body's twist by, A_i by body.

        The sum of A_i t_i over these bodies vanishes; the ground has no twist.

        Raises:
            UnknownName: listing the joints, contacts and couplings that have rows.
        """
        blocks = tuple(block for block in self.blocks if block.name == name)
        if not blocks:
            known = dict.fromkeys(block.name for block in self.blocks)
            raise UnknownName(self.equations.name, "joint, contact or coupling", name, known)
        A = self._stack(blocks)
        columns = {body: A[:, 6 * k : 6 * k + 6] for k, body in enumerate(self.bodies)}
        return {body: own for body, own in columns.items() if not own.is_zero()}

    def _stack(self, blocks: tuple[TwistRows, ...]) -> SX:
        rows = [self.matrix(block) for block in blocks]
        return ca.densify(ca.vertcat(SX(0, 6 * len(self.bodies)), *rows))

    def at(self, q: npt.ArrayLike, t: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        """A and T as numbers, at a configuration and the parameters' defaults."""
        e = self.equations
        function = ca.Function("twists", [e.q, e.t, e.p], [self.A, e.twist_map])
        found = function(np.asarray(q, dtype=float), t, e.system.defaults)
        return np.array(found[0]), np.array(found[1])

    def rank(self, q: npt.ArrayLike) -> int:
        """Independent rows at a configuration."""
        return rank_of(self.at(q)[0])

    # rows -----------------------------------------------------------------------------------------

    def _needed(self) -> tuple[TwistRows, ...]:
        """Rows of all joints and contacts, without planar ones that wheels make needless."""
        mechanism = self.equations.system.mechanism
        joints = [c for c in (*mechanism.connections, *mechanism.loops) if not c.joint.is_free]
        contacts = [self._contact(contact) for contact in mechanism.ideal_contacts]
        couplings = [self._coupling(row) for row in coupling_rows(self._tree)]
        all_rows = (*(self._joint(c) for c in joints), *contacts, *couplings)
        carrying = {
            c.name for c in joints if c.joint.carries_base and GROUND.name in (c.parent, c.child)
        }
        fewer = tuple(rows for rows in all_rows if rows.name not in carrying)
        if not contacts or not carrying:
            return all_rows
        e = self.equations
        both = [self._stack(all_rows), self._stack(fewer)]
        found = ca.Function("ranks", [e.q, e.t, e.p], both)(
            e.system.samples[0], 0.0, e.system.defaults
        )
        ranks = [rank_of(np.array(A)) for A in found]
        return fewer if ranks[0] == ranks[1] else all_rows

    def _joint(self, c: Connection) -> TwistRows:
        """No turning but about the free axes, no sliding but along the free directions."""
        closure = Closure(self._tree, c)
        free = closure.joint.free_directions(closure)
        turning = _annihilator([e for e, _ in free if not e.is_zero()])
        sliding = _annihilator([s for e, s in free if e.is_zero()])
        advance = sum((s @ e.T for e, s in free), SX(3, 3))  # of a screw, per angle
        angular = ca.vertcat(turning, -sliding @ advance)
        linear = ca.vertcat(SX(turning.shape[0], 3), sliding)
        return TwistRows(c.name, c.parent, c.child, closure.world_point, angular, linear)

    def _contact(self, contact: Contact) -> TwistRows:
        """Three rows for a wheel that does not slip at all, fewer for the others."""
        point, directions = contact_geometry(self._tree, contact).in_world()
        rows = ("touch", *contact.wheel.rolling_rows)
        linear = ca.vertcat(*(directions[row].T for row in rows))
        if len(rows) == 3:
            linear = SX.eye(3)
        angular = SX(linear.shape[0], 3)
        return TwistRows(contact.name, contact.plane.on, contact.body, point, angular, linear, True)

    def _coupling(self, row: Row) -> TwistRows:
        """One row: coefficients times the rates of joints, as the twists of their bodies show."""
        pairs = []
        for c in self.equations.system.mechanism.connections:
            places = [self._tree.speed_names.index(speed) for speed in c.speeds]
            if row.entries.keys() & set(places):
                weights = ca.horzcat(*(row.entries.get(j, SX(0)) for j in places))
                pairs.append(self._rates(row.owner.removesuffix(".coupling"), c, places, weights))
        return replace(pairs[0], more=tuple(pairs[1:]))

    def _rates(self, name: str, c: Connection, places: list[int], weights: SX) -> TwistRows:
        """Weights times a joint's speeds, each from the relative twist of the two bodies.

        Turning speeds follow from the angular velocity alone, sliding ones from the velocity that
        turning does not explain.
        """
        tree = self._tree
        link = tree.body_link[c.child]
        unit = link_twist(tree, link, tree.body_link[c.parent])[:, places]
        turning = [k for k in range(len(places)) if not unit[:3, k].is_zero()]
        sliding = [k for k in range(len(places)) if k not in turning]
        w, carried, v = unit[:3, turning], unit[3:, turning], unit[3:, sliding]
        turn, slide = _left_inverse(w), _left_inverse(v)
        linear = weights[:, sliding] @ slide
        angular = weights[:, turning] @ turn - linear @ carried @ turn
        pose = tree.pose(link)
        return TwistRows(name, c.parent, c.child, pose.p, angular @ pose.R.T, linear @ pose.R.T)

    def matrix(self, rows: TwistRows) -> SX:
        """A block of A: the velocity of a body's point is c_dot + (c - Q) x omega."""
        A = sum(map(self.matrix, rows.more), SX(rows.linear.shape[0], 6 * len(self.bodies)))
        for name, sign in ((rows.i, -1.0), (rows.j, 1.0)):
            if name == GROUND.name:
                continue
            k = 6 * self.bodies.index(name)
            arm = skew(self._centres[name] - rows.point)
            A[:, k : k + 3] += sign * (rows.angular + rows.linear @ arm)
            A[:, k + 3 : k + 6] += sign * rows.linear
        return A


def _left_inverse(directions: SX) -> SX:
    """Coefficients of a vector along some directions, of which it is a combination."""
    if not directions.shape[1]:
        return SX(0, 3)
    return ca.solve(ca.densify(directions.T @ directions), ca.densify(directions.T))


def _annihilator(directions: list[SX]) -> SX:
    """Rows that vanish on some directions, and on their combinations only."""
    if len(directions) == 1:
        return skew(directions[0])  # three rows of rank two
    if len(directions) == 2:
        return cross(*directions).T
    return SX(0, 3) if directions else SX.eye(3)


Array = npt.NDArray[np.float64]
PLACES = 3  # at which combinations are compared: those that change are not written out


@dataclass(frozen=True)
class TwistRedundancy:
    """How many rows there are on twists, how many are independent, and what the others follow from.

    Attributes:
        rows: All of them: six of a revolute joint, three of a wheel that rolls.
        columns: Six for each body.
        own: Sum of the ranks of the joints, contacts and couplings taken one at a time.
        rank: How many are independent.
        redundant: What follows, as `wheel2.lateral = wheel1.lateral`: the velocity of one wheel's
            lowest point, joints holding, is that combination of others'.
    """

    rows: int
    columns: int
    own: int
    rank: int
    redundant: tuple[str, ...]

    def entries(self) -> list[tuple[str, str]]:
        """What it says, by label."""
        return [
            ("twist rows", f"{self.rows} on {self.columns} components"),
            ("by themselves", f"{self.own} independent, one coupling at a time"),
            ("twist rank", f"{self.rank}: mobility {self.columns - self.rank}"),
            *(("redundant", line) for line in self.redundant),
        ]


@dataclass(frozen=True)
class _CouplingRows:
    """Rows of one joint or coupling, or one row of a contact with its direction's name."""

    name: str
    rows: Array
    contact: bool


def twist_redundancy(e: Equations) -> TwistRedundancy:
    """Count the rows on twists, and find combinations, at configurations that close all loops.

    The six rows of a revolute joint have rank five, the three of a rolling wheel rank three. A
    whole mechanism may have fewer independent rows than its couplings taken one at a time: two
    wheels on one rigid axle both exclude sliding along it, which is one row too many.
    """
    constraints = e.twist_constraints
    contacts = {contact.name: contact for contact in e.system.mechanism.ideal_contacts}
    blocks = sorted(constraints.blocks, key=lambda block: block.of_contact)
    names: list[tuple[str, bool]] = []
    parts: list[ca.SX] = []
    for block in blocks:
        A = constraints.matrix(block)
        if not block.of_contact:
            names, parts = [*names, (block.name, False)], [*parts, A]
            continue
        contact = contacts[block.name]
        _, directions = contact_geometry(e.system.tree, contact).in_world()
        for k, name in enumerate(("touch", *contact.wheel.rolling_rows)):
            row = directions[name].T @ A if A.shape[0] == 3 else A[k, :]
            names, parts = [*names, (f"{block.name}.{name}", True)], [*parts, row]
    function = ca.Function("rows", [e.q, e.t, e.p], parts)
    found = []
    for q in e.system.samples[:PLACES]:
        values = [np.array(x) for x in function.call([q, 0.0, e.system.defaults])]
        found.append(
            [_CouplingRows(name, x, touch) for (name, touch), x in zip(names, values, strict=True)]
        )
    stack = np.vstack([group.rows for group in found[0]])
    return TwistRedundancy(
        len(stack), stack.shape[1], _own(found[0]), rank_of(stack), tuple(_redundant(found))
    )


def _own(groups: list[_CouplingRows]) -> int:
    """Rank of each joint or coupling and of each contact, added up."""
    contacts: dict[str, list[Array]] = {}
    for group in groups:
        if group.contact:
            contacts.setdefault(group.name.rpartition(".")[0], []).append(group.rows)
    joints = [group.rows for group in groups if not group.contact]
    return sum(map(rank_of, [*joints, *map(np.vstack, contacts.values())]))


def _redundant(places: list[list[_CouplingRows]]) -> list[str]:
    """What follows from the rows before it, at the first place; combinations at all of them."""
    lines: list[str] = []
    kept: list[int] = []
    for k, group in enumerate(places[0]):
        before = np.vstack([np.zeros((0, group.rows.shape[1])), *(places[0][i].rows for i in kept)])
        both = np.vstack([before, group.rows])
        new, own = rank_of(both) - rank_of(before), rank_of(group.rows)
        if not group.contact:
            kept.append(k)
            if new < own:
                lines.append(f"{group.name}: {own - new} of {own} follow from the joints before it")
        elif new:
            kept.append(k)
        else:
            lines.append(_combination(places, kept, k))
    return lines


def _combination(places: list[list[_CouplingRows]], kept: list[int], k: int) -> str:
    """A contact's row as a combination of others', joints left out."""
    found = []
    for groups in places:
        rows = np.vstack([groups[i].rows for i in kept])
        weights = least_norm(rows.T, groups[k].rows[0])
        ends = np.cumsum([len(groups[i].rows) for i in kept])
        last = [float(weights[end - 1]) for end in ends]
        found.append(
            {groups[i].name: x for i, x in zip(kept, last, strict=True) if groups[i].contact}
        )
    first, name = found[0], places[0][k].name
    others = [n for n in first if any(abs(one[n]) > RANK for one in found)]
    if not others:
        return f"{name} follows from the joints"
    if any(abs(one[n] - first[n]) > RANK for one in found for n in others):
        return f"{name} follows from {', '.join(others)}"
    terms = [(first[n], n) for n in others]
    text = " ".join(f"{'-' if c < 0 else '+'} {_times(abs(c))}{n}" for c, n in terms)
    return f"{name} = {text.removeprefix('+ ').replace('- ', '-', text.startswith('-'))}"


def _times(size: float) -> str:
    return "" if abs(size - 1.0) < RANK else f"{size:.6g} "
