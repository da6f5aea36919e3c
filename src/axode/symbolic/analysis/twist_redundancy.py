"""Which constraints on the twists of bodies follow from others, and by which combination.

The six rows of a revolute joint have rank five, the three of a rolling wheel rank three. A whole
mechanism may have fewer independent rows than its couplings taken one at a time: two wheels on one
rigid axle both exclude sliding along it, which is one row too many.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np
import numpy.typing as npt

from axode.numerics.rank import least_norm
from axode.symbolic.constraints.redundant_rows import rank_of
from axode.symbolic.wheels.contacts import contact_geometry

if TYPE_CHECKING:
    from axode.symbolic.equations import Equations

Array = npt.NDArray[np.float64]
FOLLOWS = 1e-9  # of a row's length: less than this of its own is rounding
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
    """Count the rows on twists, and find combinations, at configurations that close all loops."""
    constraints = e.twist_constraints
    contacts = {contact.name: contact for contact in e.system.mechanism.contacts}
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
    others = [n for n in first if any(abs(one[n]) > FOLLOWS for one in found)]
    if not others:
        return f"{name} follows from the joints"
    if any(abs(one[n] - first[n]) > FOLLOWS for one in found for n in others):
        return f"{name} follows from {', '.join(others)}"
    terms = [(first[n], n) for n in others]
    text = " ".join(f"{'-' if c < 0 else '+'} {_times(abs(c))}{n}" for c, n in terms)
    return f"{name} = {text.removeprefix('+ ').replace('- ', '-', text.startswith('-'))}"


def _times(size: float) -> str:
    return "" if abs(size - 1.0) < FOLLOWS else f"{size:.6g} "
