r"""Constraints on the twists of all bodies, as Saha and Angeles write them.

With t the twists of p bodies, angular velocity first, velocity of the mass centre second, in world
axes, every joint and every contact gives rows of A t = 0. A revolute about e between bodies i and
j, rho pointing from the joint to each mass centre, gives six rows of rank five (their equation 22):

.. math:: e \times (\omega_j - \omega_i) = 0, \qquad
          (\dot c_j + \rho_j \times \omega_j) - (\dot c_i + \rho_i \times \omega_i) = 0;

a wheel j that rolls on a body i at Q gives three (their equation 24, its second block corrected):

.. math:: (\dot c_j + (c_j - Q) \times \omega_j) - (\dot c_i + (c_i - Q) \times \omega_i) = 0.

The bodies' twists for unit independent speeds, T, satisfy A T = 0 (their equation 13); the ground
has no columns. A planar joint that carries a vehicle on the ground has no rows of its own where its
wheels keep all that the joint keeps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np
import numpy.typing as npt

from axode.errors import NotApplicable
from axode.mechanism.elements.bodies import GROUND
from axode.mechanism.elements.parts import Connection
from axode.mechanism.elements.wheels import Contact
from axode.symbolic.algebra.spatial import SX, cross, skew
from axode.symbolic.constraints.loops import Closure
from axode.symbolic.constraints.redundant_rows import rank_of
from axode.symbolic.tree.frames import symbolic_vector
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
    """

    name: str
    i: str
    j: str
    point: SX
    angular: SX
    linear: SX


class TwistConstraints:
    """The matrix A of a mechanism on the twists of its bodies.

    Args:
        equations: Equations of the mechanism.

    Raises:
        NotApplicable: for couplings.
    """

    def __init__(self, equations: Equations) -> None:
        self.equations = equations
        self._tree = equations.system.tree
        mechanism = equations.system.mechanism
        for coupling in mechanism.couplings:
            raise NotApplicable(
                f"coupling '{coupling.name}' relates joints, not the twists of two bodies: its row "
                "is in equations.A"
            )
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
        """All rows: as many as the joints and contacts give, six columns per body."""
        return self._stack(self.blocks)

    @property
    def rows(self) -> tuple[str, ...]:
        """Joint or contact that each row belongs to."""
        return tuple(block.name for block in self.blocks for _ in range(block.linear.shape[0]))

    def _stack(self, blocks: tuple[TwistRows, ...]) -> SX:
        rows = [self._matrix(block) for block in blocks]
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
        contacts = [self._contact(contact) for contact in mechanism.contacts]
        all_rows = (*(self._joint(c) for c in joints), *contacts)
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
        return TwistRows(contact.name, contact.plane.on, contact.body, point, angular, linear)

    def _matrix(self, rows: TwistRows) -> SX:
        """A block of A: the velocity of a body's point is c_dot + (c - Q) x omega."""
        A = SX(rows.linear.shape[0], 6 * len(self.bodies))
        for name, sign in ((rows.i, -1.0), (rows.j, 1.0)):
            if name == GROUND.name:
                continue
            k = 6 * self.bodies.index(name)
            arm = skew(self._centres[name] - rows.point)
            A[:, k : k + 3] += sign * (rows.angular + rows.linear @ arm)
            A[:, k + 3 : k + 6] += sign * rows.linear
        return A


def _annihilator(directions: list[SX]) -> SX:
    """Rows that vanish on some directions, and on their combinations only."""
    if len(directions) == 1:
        return skew(directions[0])  # three rows of rank two
    if len(directions) == 2:
        return cross(*directions).T
    return SX(0, 3) if directions else SX.eye(3)
