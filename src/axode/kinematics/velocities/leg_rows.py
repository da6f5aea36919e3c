r"""Constraint rows of a robot with its output body cut out, so that every leg is separate.

The output body is carried by one leg of the spanning tree, and rows of the other legs reach the
ground through that one. Here a twin, free in space, takes over everything that is attached to the
output body except the joint that carries it, and is welded to it by six rows. A row then contains
the output's twist t and the speeds of one leg,

.. math:: A_t\, t + A_\theta\, \dot\theta + A_p\, v_p = 0,

whichever leg the tree runs through: nothing that follows depends on the order of the legs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.mechanism.elements.bodies import GROUND, Body, Inertia
from axode.mechanism.elements.joints import Fixed, Floating
from axode.mechanism.elements.parts import Connection
from axode.mechanism.mechanism import Mechanism
from axode.model.conditions import Conditions
from axode.model.function_source import Entry, shaped_tape, tape_entry
from axode.model.model import Model
from axode.model.model_parts import facts_of
from axode.numerics.rotations import to_quaternions

Array = npt.NDArray[np.float64]
TWIST = 6
FEW = 2000  # states that are evaluated before code would have been compiled
SMALL = 1e-9  # of the mechanism's extent: a shorter length does not reflect the robot's size


@dataclass(frozen=True)
class LegPart:
    """Rows that have speeds in common, and these speeds.

    Attributes:
        rows: Their numbers.
        driven: Columns of driven speeds, in the order of all driven speeds.
        passive: Columns of the other speeds.
    """

    rows: tuple[int, ...]
    driven: tuple[int, ...]
    passive: tuple[int, ...]


class LegRows:
    """Rows of a model on the twist of its output body and the speeds of separate legs.

    Args:
        model: What moves; it must have its equations.
        output: Name of the output body.
        driven: Names of driven speeds; prescribed ones are added.

    Attributes:
        driven: Names of all driven speeds.
        units: Their units.
        legs: What belongs together.
        length: Size of the robot [m]: root mean square distance of the other bodies' frames from
            the output body's, at home.
    """

    def __init__(self, model: Model, output: str, driven: Sequence[str]) -> None:
        from axode.symbolic.constraints.system import build_open_system

        mechanism, twin = cut_out(model.equations.system.mechanism, output)
        self._opened = opened = build_open_system(mechanism)
        self._output = output
        names = opened.tree.speed_names
        prescribed = {
            name: j
            for row in opened.rows
            if row.kind == "prescribed"
            for j, name in enumerate(names)
            if j in row.entries
        }
        self.driven = tuple(dict.fromkeys([*driven, *prescribed]))
        self._rows = [row for row in opened.rows if row.kind != "prescribed"]
        self._twin = [j for j, name in enumerate(names) if name in twin.speeds]
        self._own = [j for j in range(len(names)) if j not in self._twin]
        units = dict(zip(model.speed_names, facts_of(model).speed_units, strict=True))
        self.speeds = tuple(names[j] for j in self._own)
        self.speed_units = tuple(units[name] for name in self.speeds)
        self.units = tuple(units[name] for name in self.driven)
        self.legs = tuple(self._legs())
        order = opened.tree.coordinate_names
        self._coordinates = [order.index(name) for name in model.coordinates]
        self._free = [order.index(name) for name in twin.coordinates]
        known = list(model.parameters)
        self._parameters = [known.index(name) for name in opened.parameter_names]
        self._entry: Entry | None = None
        self.length = _size(model, output)

    def _legs(self) -> list[LegPart]:
        """Rows grouped by the speeds that they have in common."""
        group = {j: j for j in self._own}

        def root(j: int) -> int:
            while group[j] != j:
                j = group[j]
            return j

        own = [sorted(set(row.entries) - set(self._twin)) for row in self._rows]
        for speeds in own:
            for j in speeds[1:]:
                group[root(j)] = root(speeds[0])
        parts: list[LegPart] = []
        for leader in dict.fromkeys(root(j) for j in self._own):
            members = [k for k, j in enumerate(self._own) if root(j) == leader]
            rows = tuple(r for r, s in enumerate(own) if s and root(s[0]) == leader)
            if rows:
                driven = [k for k in map(self.speeds.index, self.driven) if k in members]
                passive = [k for k in members if k not in driven]
                parts.append(LegPart(rows, tuple(driven), tuple(passive)))
        held = tuple(r for r, speeds in enumerate(own) if not speeds)
        return [*parts, LegPart(held, (), ())] if held else parts

    @cached_property
    def row_units(self) -> tuple[str, ...]:
        """Units of the rows: "m" or "rad"."""
        return tuple(row.unit for row in self._rows)

    def evaluate(self, model: Model, q: Array, conditions: Conditions) -> tuple[Array, Array]:
        """Evaluate all rows, (..., rows, 6 + speeds), and the output's poses, (..., 4, 4).

        The first six columns belong to the output's angular velocity and the velocity of its
        frame's origin, in world axes.
        """
        batch = q.shape[:-1]
        flat = np.ascontiguousarray(q.reshape(-1, q.shape[-1]))
        spread = conditions.spread(batch)
        pose = self._poses(model, flat, spread)
        R = pose[:, :3, :3]
        size = len(self._opened.tree.coordinate_names)
        everything = np.empty((len(flat), size))
        everything[:, self._coordinates] = flat
        everything[:, self._free] = np.concatenate([to_quaternions(R), pose[:, :3, 3]], axis=1)
        A = self._matrix(everything, spread, model)
        t = A[..., self._twin].reshape(*A.shape[:2], 2, 3) @ np.swapaxes(R, 1, 2)[:, np.newaxis]
        own = np.concatenate([t.reshape(*A.shape[:2], TWIST), A[..., self._own]], axis=-1)
        return own.reshape(*batch, *own.shape[1:]), pose.reshape(*batch, 4, 4)

    def _poses(self, model: Model, q: Array, conditions: Conditions) -> Array:
        """Pose of the output body at every state."""
        from axode.problems.other_models import interpret_few_states

        place = model.bodies.index(self._output)
        model = interpret_few_states(model, len(q))
        return np.asarray(model.poses(q, **conditions.options)[..., place, :, :])

    def _matrix(self, q: Array, conditions: Conditions, model: Model) -> Array:
        tree = self._opened.tree
        p = np.broadcast_to(
            model.parameter_vector(conditions.p)[..., self._parameters],
            (len(q), len(self._parameters)),
        )
        t = np.broadcast_to(conditions.t, (len(q),))[:, np.newaxis]
        shape = (len(self._rows), tree.v.shape[0])
        if not len(q):  # CasADi takes no columns for missing arguments
            return np.zeros((0, *shape))
        if len(q) <= FEW and self._entry is None:
            flat = np.array(self._function(q.T, t.T, p.T).full())
            return np.ascontiguousarray(flat.T).reshape(len(q), *shape)
        if self._entry is None:
            sizes = {"q": q.shape[1], "t": 1, "p": p.shape[1]}
            self._entry = tape_entry(shaped_tape(self._function, sizes, "leg_rows", shape))
        arrays = {"q": q, "t": np.ascontiguousarray(t), "p": np.ascontiguousarray(p)}
        return np.asarray(self._entry.call(*(arrays[name] for name in self._entry.arguments)))

    @cached_property
    def _function(self) -> Any:
        import casadi as ca

        from axode.symbolic.tree.rows import matrix_of

        tree = self._opened.tree
        A = ca.densify(matrix_of(self._rows, tree.v.shape[0]))
        symbols = [tree.q, tree.t, tree.parameters]
        return ca.Function("leg_rows", symbols, [ca.vec(A.T)], ["q", "t", "p"], ["leg_rows"])


def cut_out(mechanism: Mechanism, output: str) -> tuple[Mechanism, Connection]:
    """Give what is attached to a body to a twin of it that is free in space.

    Returns:
        The mechanism, without forces and measures, and the joint of the twin.
    """
    names = {body.name for body in mechanism.bodies}
    twin = f"{output} (twin)"
    while twin in names:
        twin += "'"

    def moved(name: str) -> str:
        return twin if name == output else name

    own = next(c for c in mechanism.connections if c.child == output)
    free = Connection(twin, Floating(), GROUND.name, twin)
    bodies = [*mechanism.bodies, Body(twin, 0.0, (0.0, 0.0, 0.0), Inertia.point())]
    weld = Connection(f"{twin} weld", Fixed(), output, twin)
    cut = Mechanism(
        mechanism.name,
        mechanism.gravity,
        bodies,
        [c if c is own else replace(c, parent=moved(c.parent)) for c in mechanism.connections],
        [replace(c, parent=moved(c.parent), child=moved(c.child)) for c in mechanism.loops],
        [
            replace(c, body=moved(c.body), plane=replace(c.plane, on=moved(c.plane.on)))
            for c in mechanism.contacts
        ],
        couplings=mechanism.couplings,
        prescribed=mechanism.prescribed,
    )
    cut.connections.append(free)
    cut.loops.append(weld)
    return cut, free


def _size(model: Model, output: str) -> float:
    """Root mean square distance of bodies' frames from the output body's at home [m]."""
    from axode.problems.other_models import interpret_few_states

    extent = model.equations.system.assembly.extent
    origins = interpret_few_states(model, 1).poses(model.home)[:, :3, 3]
    place = model.bodies.index(output)
    distance = np.linalg.norm(np.delete(origins, place, axis=0) - origins[place], axis=-1)
    if not distance.size:
        distance = np.linalg.norm(origins, axis=-1)
    size = float(np.sqrt(np.mean(distance**2))) if distance.size else 0.0
    return size if size > SMALL * extent else float(extent)
