r"""Configurations that close every loop and touch the ground, found by Newton's method.

Rank can only be judged where the mechanism can be; random feasible configurations are what the
analysis of rows and speeds stands on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from axode.mechanism.topology import coupled_by, tree_order
from axode.symbolic.algebra.least_norm import LeastNorm
from axode.symbolic.algebra.spatial import SX
from axode.symbolic.constraints.open_loops import NEARLY, not_closed
from axode.symbolic.constraints.rows import Row, column_of
from axode.symbolic.tree.kinematics import Tree

CLOSED = 1e-10  # [m or rad]: a residual below this is closed, in machines of metres
STEPS = 60
STILL = 1e-9  # [rad or of the size]: a shorter step ends the search
FUTILE = 1e-3  # part of a step: if no longer one helps, none does
TIGHT = 1e-9  # of the largest singular value: smaller ones are zero, whatever the tolerance
ROUNDED = 1e-12  # the same of rows that contradict others: these are not solved for either
TINY = 1e-12  # [m]: what rounding leaves of levers that vanish
ROUNDING = 2e-16  # [m]: what additions of lengths below a metre leave
SMALL = 0.1  # [m]: a smaller mechanism is not measured in metres
DENSE = 40  # rows up to which dense least squares are as fast as sparse ones
WALK = 8  # steps from home to a sample
JUMP = 2.0  # a step that closing makes longer than this leaves the branch
SPREADS = (0.5, 0.25, 0.1, 0.03, 0.005)  # of random starts about home, tried in turn
LATER = (3.0, 1.1, 0.37, 0.12, 0.04, 0.01)  # [s]: instants to which samples are driven, if they can
DRIVEN = 0.5  # how far one step of the clock may take a sample


@dataclass(frozen=True)
class Assembly:
    """Position residuals of a mechanism and their derivative, ready for numbers.

    Rows that follow from others may contradict them by as much as `tolerance`, in radians and in
    parts of the mechanism's extent: then closed means closed as nearly as the rows allow.
    """

    tree: Tree
    rows: tuple[Row, ...]  # the holonomic ones
    parameters: np.ndarray
    function: ca.Function = field(repr=False)
    tolerance: float = 0.0
    _rounded: list[bool] = field(default_factory=list, repr=False, compare=False)  # was seen to be

    @classmethod
    def of(
        cls, tree: Tree, rows: list[Row], parameters: np.ndarray, tolerance: float = 0.0
    ) -> Assembly:
        """From all rows of a mechanism; those without a residual do not matter here."""
        holonomic = tuple(row for row in rows if row.residual is not None)
        residual = column_of([row.residual for row in holonomic if row.residual is not None])
        unit = [ca.sumsqr(ca.vertcat(*[tree.q[i] for i in four])) - 1 for four in tree.quaternions]
        everything = ca.vertcat(residual, *unit)
        function = ca.Function(
            "residual",
            [tree.q, tree.t, tree.parameters],
            [everything, ca.jacobian(everything, tree.q)],
        )
        return cls(tree, holonomic, parameters, function, tolerance)

    def residual(self, q: np.ndarray, t: float = 0.0) -> np.ndarray:
        """Of the holonomic rows alone."""
        values: np.ndarray = np.array(self.function(q, t, self.parameters)[0]).ravel()
        return values[: len(self.rows)]

    def relative_residual(self, q: np.ndarray) -> np.ndarray:
        """The same in radians and in parts of the mechanism's extent."""
        return np.asarray(self.residual(q) / self._row_lengths[: len(self.rows)])

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
                names = [
                    coupled_by(self.tree.mechanism, joint)[0]
                    for joint, _ in couplings[self.rows[row].name].terms
                ]
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

    def close(
        self, q: np.ndarray, t: float = 0.0, tolerance: float | None = None
    ) -> tuple[np.ndarray, float]:
        """Nearest closed configuration by damped minimum-norm Newton steps, and its residual.

        Args:
            q: Where to begin.
            t: Time [s].
            tolerance: Instead of the assembly's own.
        """
        cut = self.tolerance if tolerance is None else tolerance
        begin = self.normalised(q)
        if self.function.size1_out(0) <= DENSE:
            return self._search(begin, t, cut)
        if not (cut and self._rounded):
            found, error = self._search(begin, t, None)
            if self.exact(error) or not cut:
                return found, error
        # sparse solves damp rows that nearly follow, and drift along them: leave these out
        nearly, left = self._search(begin, t, cut)
        if self.reached(nearly, left, t):
            self._rounded.append(True)
        elif not self._rounded and error < left:
            return found, error
        return nearly, left

    def _search(self, q: np.ndarray, t: float, cut: float | None) -> tuple[np.ndarray, float]:
        best, best_error = q, np.inf
        last = False
        for _ in range(STEPS):
            r, J = self.function(q, t, self.parameters)
            error = self._error(r)
            if not np.isfinite(error):
                break
            if error < best_error:
                best, best_error = q, error
            if last or error < CLOSED * 1e-3 * self.size:
                break
            step = self._step(r, J, cut)
            # the step itself still counts: Newton's last one is worth many digits
            last = bool(cut) and np.abs(step / self.coordinate_lengths).max(initial=0.0) < STILL
            length = self._length(q, step, np.array(r), t)
            if cut and length < FUTILE:  # what is left, surplus rows leave open
                break
            q = q - length * step
        return self.normalised(best), best_error

    def _error(self, r: Any) -> float:
        """Largest residual [rad, and m or parts of a small mechanism's extent]."""
        rows = np.abs(np.array(r).ravel())
        if self.extent < SMALL:  # where levers are small, radii of wheels need not be
            rows = (rows - ROUNDING).clip(0.0) / self._row_lengths
        return float(rows.max(initial=0.0))

    def exact(self, error: float) -> bool:
        """Whether a residual is nothing but rounding."""
        return error <= CLOSED * self.size

    def reached(self, q: np.ndarray, error: float, t: float = 0.0) -> bool:
        """Whether a search ended where all is closed, exactly or as nearly as the rows allow."""
        if self.exact(error) or not self.tolerance or not np.isfinite(error):
            return self.exact(error)
        r, J = self.function(q, t, self.parameters)
        if np.abs(np.array(r).ravel() / self._row_lengths).max() > self.tolerance:
            return False
        step = self._step(r, J, self.tolerance) / self.coordinate_lengths
        return bool(np.abs(step).max(initial=0.0) < np.sqrt(STILL))

    def _step(self, r: ca.DM, J: ca.DM, cut: float | None) -> np.ndarray:
        """The shortest step that closes if all is linear; rank may be short (redundant rows)."""
        if cut is None:
            step = self._sparse.solve(J @ ca.diag(ca.DM(self.coordinate_lengths)), r)
            return np.asarray(self.coordinate_lengths * step)
        if cut:
            U, s, Vt = np.linalg.svd(self._scaled(J), full_matrices=False)
            solid = s > NEARLY * cut * s.max(initial=0.0)
            if solid.sum() < (s > ROUNDED * s.max(initial=0.0)).sum():  # some rows nearly follow
                right = np.array(r).ravel() / self._row_lengths
                step = Vt[solid].T @ ((U[:, solid].T @ right) / s[solid])
                return np.asarray(self._units_of_columns * step)
        dense = np.array(J) * self.coordinate_lengths
        step = np.linalg.lstsq(dense, np.array(r).ravel(), rcond=TIGHT)[0]
        return np.asarray(self.coordinate_lengths * step)

    def _scaled(self, J: ca.DM) -> np.ndarray:
        scaled: np.ndarray = np.array(J) * self._units_of_columns / self._row_lengths[:, np.newaxis]
        return scaled

    def scaled_jacobian(self, q: np.ndarray) -> np.ndarray:
        """Derivative of the holonomic rows by the coordinates: radians and parts of the extent."""
        return self._scaled(self.function(q, 0.0, self.parameters)[1])[: len(self.rows)]

    @cached_property
    def _sparse(self) -> LeastNorm:
        return LeastNorm(self.function.sparsity_out(1))

    def _length(self, q: np.ndarray, step: np.ndarray, r: np.ndarray, t: float) -> float:
        """Halve a step until it improves; a long one never helps on a circle."""
        longest = float(np.abs(step / self.coordinate_lengths).max(initial=0.0))
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
            LoopNotClosed: naming the rows that stay open.
        """
        q, error = self.close(self.home())
        if self.reached(q, error):
            return q
        # the zero configuration is often singular (all links in line): try beside it
        for tolerance in dict.fromkeys((self.tolerance, 0.0)):
            generator = np.random.default_rng(1)
            spreads = [self.coordinate_lengths * spread for spread in SPREADS for _ in range(4)]
            aside = [spread * generator.normal(size=q.size) for spread in spreads]
            starts = [self.home(), *(self.home() + way for way in aside)]
            tries = [self.close(start, tolerance=tolerance) for start in starts]
            q, error = min([(q, error), *tries], key=lambda pair: pair[1])
            if self.exact(error):
                return q
            loosely = [found for found, open_by in tries if self.reached(found, open_by)]
            if loosely:
                return min(loosely, key=self.distance)
        raise not_closed(self, q)

    def distance(self, q: np.ndarray) -> float:
        """How far a configuration is from home: radians, or parts of the mechanism's size."""
        return float(np.linalg.norm((q - self.home()) / self.coordinate_lengths))

    def samples(self, home: np.ndarray, count: int, seed: int = 0) -> list[np.ndarray]:
        """Random closed configurations on home's branch."""
        generator = np.random.default_rng(seed)
        found: list[np.ndarray] = []
        for spread in SPREADS:
            for _ in range(3 * count):
                if len(found) == count:
                    return found
                way = generator.normal(0, spread, home.size) * self.coordinate_lengths
                q = self._walked(home, way)
                if q is not None:
                    found.append(self._driven(q, generator) if self.timed else q)
        return found or [home]

    @cached_property
    def timed(self) -> bool:
        """Whether closing depends on the time."""
        residuals = [row.residual for row in self.rows if row.residual is not None]
        return any(ca.depends_on(residual, self.tree.t) for residual in residuals)

    @cached_property
    def size(self) -> float:
        """How large the mechanism is about home [m], one at least."""
        home = self.home()
        linear = np.array([row.unit == "m" for row in self.rows], dtype=bool)
        gap = np.abs(self.residual(home)).max(initial=0.0, where=linear)
        return max(1.0, float(np.ptp(self._places(home), axis=0).max(initial=0.0)), float(gap))

    @cached_property
    def extent(self) -> float:
        """Length [m] to which errors of position are compared: the mechanism's, or its levers'."""
        linear = np.array([row.unit == "m" for row in self.rows], dtype=bool)
        angular = np.array([unit != "m" for unit in self._units], dtype=bool)
        home = self.home()
        J = np.array(self.function(home, 0.0, self.parameters)[1])[: len(self.rows)]
        levers = np.abs(J[np.ix_(linear, angular)]).max(initial=0.0)
        length = max(float(levers), float(np.ptp(self._places(home), axis=0).max(initial=0.0)))
        return length if TINY < length < np.inf else 1.0

    @cached_property
    def _row_lengths(self) -> np.ndarray:
        """What counts as one unit of each residual: a radian, or the mechanism's extent."""
        own = [self.extent if row.unit == "m" else 1.0 for row in self.rows]
        return np.array(own + [1.0] * len(self.tree.quaternions))

    @cached_property
    def _units_of_columns(self) -> np.ndarray:
        return np.array([self.extent if unit == "m" else 1.0 for unit in self._units])

    @cached_property
    def _units(self) -> list[str]:
        return [u for c in tree_order(self.tree.mechanism) for u in c.joint.coordinate_units]

    @cached_property
    def coordinate_lengths(self) -> np.ndarray:
        """What counts as one unit of each coordinate: a radian, or the mechanism's size."""
        return np.array([self.size if unit == "m" else 1.0 for unit in self._units])

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
            way = np.abs(closed - q) / self.coordinate_lengths
            if way.max(initial=0.0) > DRIVEN or not self.reached(closed, error, float(t)):
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
            if far or not self.reached(closed, error):
                return None
            q = closed
        return q


def numbers(expressions: list[SX], tree: Tree, name: str = "f") -> ca.Function:
    """Expressions of q, v, t and the parameters as a function for CasADi's own evaluator."""
    return ca.Function(name, [tree.q, tree.v, tree.t, tree.parameters], expressions)
