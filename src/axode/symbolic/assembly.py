r"""Configurations that close every loop and touch the ground, found by Newton's method.

Rank can only be judged where the mechanism can be; random feasible configurations are what the
analysis of rows and speeds stands on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import casadi as ca
import numpy as np

from axode.errors import LoopNotClosed
from axode.mechanism.topology import coupled_by, tree_order
from axode.symbolic.constraints import Row, column_of
from axode.symbolic.kinematics import Tree
from axode.symbolic.least_norm import LeastNorm
from axode.symbolic.spatial import SX

CLOSED = 1e-10  # [m or rad]: a residual below this is closed, in machines of metres
STEPS = 60
DENSE = 40  # rows up to which dense least squares are as fast as sparse ones
WALK = 8  # steps from home to a sample
JUMP = 2.0  # a step that closing makes longer than this leaves the branch
SPREADS = (0.5, 0.25, 0.1, 0.03, 0.005)  # of random starts about home, tried in turn
LATER = (3.0, 1.1, 0.37, 0.12, 0.04, 0.01)  # [s]: instants to which samples are driven, if they can
DRIVEN = 0.5  # how far one step of the clock may take a sample


@dataclass(frozen=True)
class Assembly:
    """Position residuals of a mechanism and their derivative, ready for numbers."""

    tree: Tree
    rows: tuple[Row, ...]  # the holonomic ones
    parameters: np.ndarray
    function: ca.Function = field(repr=False)

    @classmethod
    def of(cls, tree: Tree, rows: list[Row], parameters: np.ndarray) -> Assembly:
        """From all rows of a mechanism; those without a residual do not matter here."""
        holonomic = tuple(row for row in rows if row.residual is not None)
        residual = column_of([row.residual for row in holonomic if row.residual is not None])
        unit = [ca.sumsqr(ca.vertcat(*[tree.q[i] for i in four])) - 1 for four in tree.quaternions]
        everything = ca.vertcat(residual, *unit)
        function = ca.Function(
            "residual", [tree.q, tree.t, tree.parameters],
            [everything, ca.jacobian(everything, tree.q)],
        )  # fmt: skip
        return cls(tree, holonomic, parameters, function)

    def residual(self, q: np.ndarray, t: float = 0.0) -> np.ndarray:
        """Of the holonomic rows alone."""
        values: np.ndarray = np.array(self.function(q, t, self.parameters)[0]).ravel()
        return values[: len(self.rows)]

    def home(self) -> np.ndarray:
        """The configuration named by the mechanism's home, zero elsewhere, quaternions unit."""
        q = np.zeros(self.tree.q.shape[0])
        for four in self.tree.quaternions:
            q[four[0]] = 1.0
        for name, value in self.tree.mechanism.home_coordinates.items():
            q[self.tree.coordinate_names.index(name)] = value
        return self.normalised(self._coupled(q))

    def _coupled(self, q: np.ndarray) -> np.ndarray:
        """Coupled coordinates that home does not name, from those that lead them.

        The first term of a coupling follows the others, unless home names it; what is left open,
        in a ring of couplings, is Newton's.
        """
        rows = [k for k, row in enumerate(self.rows) if row.kind == "coupling"]
        if not rows:
            return q
        r, J = (np.array(x) for x in self.function(q, 0.0, self.parameters))
        q, offset = q.copy(), J[rows] @ q - r.ravel()[rows]  # linear in q
        couplings = {f"{c.name}.coupling": c for c in self.tree.mechanism.couplings}
        for _ in rows:  # as often as one coupling may wait for another
            before = q.copy()
            for k, row in enumerate(rows):
                names = [coupled_by(self.tree.mechanism, joint)[0]
                         for joint, _ in couplings[self.rows[row].name].terms]  # fmt: skip
                free = [n for n in names if n not in self.tree.mechanism.home_coordinates]
                if free:
                    j = self.tree.coordinate_names.index(str(free[0]))
                    q[j] += (offset[k] - J[row] @ q) / J[row, j]
            if np.array_equal(before, q):
                break
        return q

    def normalised(self, q: np.ndarray) -> np.ndarray:
        """With unit quaternions."""
        q = np.array(q, dtype=float)
        for four in map(list, self.tree.quaternions):
            length = np.linalg.norm(q[four])
            q[four] = q[four] / length if length > 0 else [1.0, 0.0, 0.0, 0.0]
        return q

    def close(self, q: np.ndarray, t: float = 0.0) -> tuple[np.ndarray, float]:
        """Nearest closed configuration by damped minimum-norm Newton steps, and its residual."""
        q = self.normalised(q)
        best, best_error = q, np.inf
        for _ in range(STEPS):
            r, J = self.function(q, t, self.parameters)
            error = float(np.abs(np.array(r)).max(initial=0.0))
            if not np.isfinite(error):
                break
            if error < best_error:
                best, best_error = q, error
            if error < CLOSED * 1e-3 * self._size:
                break
            step = self._step(r, J)
            q = q - self._length(q, step, np.array(r), t) * step
        return self.normalised(best), best_error

    def _step(self, r: ca.DM, J: ca.DM) -> np.ndarray:
        """The shortest step that closes if all is linear; rank may be short (redundant rows)."""
        if r.shape[0] > DENSE:
            step = self._sparse.solve(J @ ca.diag(ca.DM(self._lengths)), r)
        else:
            dense = np.array(J) * self._lengths
            step = np.linalg.lstsq(dense, np.array(r).ravel(), rcond=1e-9)[0]
        return np.asarray(self._lengths * step)

    @cached_property
    def _sparse(self) -> LeastNorm:
        return LeastNorm(self.function.sparsity_out(1))

    def _length(self, q: np.ndarray, step: np.ndarray, r: np.ndarray, t: float) -> float:
        """Halve a step until it improves; a long one never helps on a circle."""
        longest = float(np.abs(step / self._lengths).max(initial=0.0))
        length = min(1.0, 1.0 / max(longest, 1e-300))
        size = float(np.linalg.norm(r))
        for _ in range(12):
            trial = np.array(self.function(q - length * step, t, self.parameters)[0])
            if np.linalg.norm(trial) < size:
                return length
            length /= 2
        return length

    def closed_home(self) -> np.ndarray:
        """The closed configuration next to home.

        Raises:
            LoopNotClosed: naming the row that stays open.
        """
        q, error = self.close(self.home())
        if error > CLOSED * self._size:
            # the zero configuration is often singular (all links in line): try beside it
            generator = np.random.default_rng(1)
            tries = [self.close(self.home() + generator.normal(0, spread, q.size) * self._lengths)
                     for spread in SPREADS for _ in range(4)]  # fmt: skip
            q, error = min([(q, error), *tries], key=lambda pair: pair[1])
        if error > CLOSED * self._size:
            raise self._open(q)
        return q

    def _open(self, q: np.ndarray) -> LoopNotClosed:
        residual = self.residual(q)
        worst = int(np.argmax(np.abs(residual)))
        row = self.rows[worst]
        configuration = dict(zip(self.tree.coordinate_names, map(float, q), strict=True))
        remedy = (
            "No configuration near home closes it: check the lengths, or name a configuration near "
            "a closed one with mechanism.home(...)."
        )
        if row.kind == "touch":
            side = "above" if residual[worst] > 0 else "below"
            remedy = (
                f"The wheel's lowest point stays {side} the ground: put its centre one radius "
                "above it, or let the base move up and down."
            )
        if row.kind == "coupling":
            remedy = (
                "The offsets of the couplings, or those and the loops, contradict each other: give "
                "them offsets that one configuration has, or leave this coupling out."
            )
        return LoopNotClosed(row.name, abs(float(residual[worst])), row.unit, configuration, remedy)

    def samples(self, home: np.ndarray, count: int, seed: int = 0) -> list[np.ndarray]:
        """Random closed configurations on home's branch."""
        generator = np.random.default_rng(seed)
        found: list[np.ndarray] = []
        for spread in SPREADS:
            for _ in range(3 * count):
                if len(found) == count:
                    return found
                way = generator.normal(0, spread, home.size) * self._lengths
                q = self._walked(home, way)
                if q is not None:
                    found.append(self._driven(q, generator) if self._timed else q)
        return found or [home]

    @cached_property
    def _timed(self) -> bool:
        """Whether closing depends on the time."""
        residuals = [row.residual for row in self.rows if row.residual is not None]
        return any(ca.depends_on(residual, self.tree.t) for residual in residuals)

    @cached_property
    def _size(self) -> float:
        """How large the mechanism is about home [m], one at least."""
        home = self.home()
        linear = np.array([row.unit == "m" for row in self.rows], dtype=bool)
        gap = np.abs(self.residual(home)).max(initial=0.0, where=linear)
        return max(1.0, float(np.ptp(self._places(home), axis=0).max(initial=0.0)), float(gap))

    @cached_property
    def _lengths(self) -> np.ndarray:
        """What counts as one unit of each coordinate: a radian, or the mechanism's size."""
        units = [u for c in tree_order(self.tree.mechanism) for u in c.joint.coordinate_units]
        return np.array([self._size if unit == "m" else 1.0 for unit in units])

    def _places(self, q: np.ndarray) -> np.ndarray:
        """Where the bodies' frames are: bodies x 3."""
        tree = self.tree
        places = [tree.body_world_pose(body.name).p.T for body in tree.mechanism.bodies]
        function = ca.Function("places", [tree.q, tree.parameters], [ca.vertcat(*places)])
        return np.array(function(q, self.parameters)).reshape(-1, 3)

    def _driven(self, q: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        """A sample taken along by prescribed motions, for the instant zero is often special.

        A vehicle whose steering starts straight would seem to have rows that follow from others.
        """
        pace = generator.uniform(0.5, 1.0)
        for later in LATER:
            moved = self._followed(q, pace * later)
            if moved is not None and np.abs(moved - q).max(initial=0.0) > CLOSED:
                return moved
        return q

    def _followed(self, q: np.ndarray, until: float) -> np.ndarray | None:
        for t in np.linspace(0.0, until, WALK + 1)[1:]:
            closed, error = self.close(q, float(t))
            way = np.abs(closed - q) / self._lengths
            if error > CLOSED * self._size or way.max(initial=0.0) > DRIVEN:
                return None
            q = closed
        return q

    def _walked(self, q: np.ndarray, way: np.ndarray) -> np.ndarray | None:
        """Where a way leads from a closed configuration, closed again after every short step.

        One long step often closes on another branch: elbow down, or a vehicle upside down, where
        other rows and speeds depend on each other than about home.
        """
        step = way / WALK
        for _ in range(WALK):
            closed, error = self.close(q + step)
            far = np.linalg.norm(closed - q) > JUMP * np.linalg.norm(step)
            if error > CLOSED * self._size or far:
                return None
            q = closed
        return q


def numbers(expressions: list[SX], tree: Tree, name: str = "f") -> ca.Function:
    """Expressions of q, v, t and the parameters as a function for CasADi's own evaluator."""
    return ca.Function(name, [tree.q, tree.v, tree.t, tree.parameters], expressions)
