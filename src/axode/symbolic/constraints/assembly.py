"""Configurations that close every loop and touch the ground, found by Newton's method.

Rank is meaningful only where the mechanism can be: rows and speeds are analysed at random closed
configurations. Where no configuration closes them, or closing moves home far, the rows that
disagree are named with a remedy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import casadi as ca
import numpy as np

from axode.errors import LoopNotClosed, RequestNotMetWarning, warn_of_description
from axode.mechanism.elements.joints import JOINTS
from axode.mechanism.elements.parts import Connection
from axode.mechanism.topology import coupled_by, tree_order
from axode.numerics.newton import find_roots, residual_size, truncated_step, unit_length
from axode.numerics.rank import has_singular_values_between, rank, singular_vectors
from axode.numerics.tolerances import (
    CLOSED,
    MATRIX_ROUNDING,
    NEARLY_SINGULAR,
    ONE_ROUNDING,
    ROUNDING,
)
from axode.symbolic.algebra.spatial import SX
from axode.symbolic.tree.kinematics import Tree
from axode.symbolic.tree.rows import Row, column_of

DAMPING = NEARLY_SINGULAR**2  # of the mean squared row length
CORRECTIONS = 4  # each takes away all but DAMPING of the error, in rows far from dependent


class LeastNorm:
    r"""Solves with matrices of one pattern.

    .. math:: \begin{bmatrix} 1 & J^T \\ J & -\epsilon 1 \end{bmatrix}
              \begin{bmatrix} x \\ \lambda \end{bmatrix} = \begin{bmatrix} 0 \\ r \end{bmatrix}

    is factorized without pivoting whatever the rank of J, for the small term keeps rows that depend
    on each other from giving infinite results; corrections undo its effect. Legs that meet in one
    platform stay apart in it, where :math:`J J^T` and everything orthogonal fill up.
    """

    def __init__(self, pattern: ca.Sparsity) -> None:
        self._pattern = pattern
        self._entries = tuple(np.array(places) for places in pattern.get_triplet())
        self._rows, self._columns = pattern.shape
        ones = self._matrix(ca.DM(pattern, 1.0), 1.0)
        self._solver = ca.Linsol("least_norm", "ldl", ones.sparsity())

    def solve(self, J: np.ndarray, r: np.ndarray, damping: float = 0.0) -> np.ndarray:
        """Find the shortest x with J x = r, or nearly so where the rows contradict each other.

        Args:
            J: Matrix of the pattern.
            r: Right-hand side.
            damping: Part of the mean squared row length that corrections do not undo.
        """
        sparse = ca.DM(self._pattern, J[self._entries])
        size = max(float(ca.sumsqr(sparse)) / max(self._rows, 1), 1e-300)
        matrix = self._matrix(sparse, max(DAMPING, damping) * size)
        self._solver.sfact(matrix)
        self._solver.nfact(matrix)
        wanted = right = ca.vertcat(ca.DM.zeros(self._columns), ca.DM(r))
        undamped = self._matrix(sparse, damping * size)
        x = ca.DM.zeros(right.shape)
        for _ in range(1 + CORRECTIONS):
            x += self._solver.solve(matrix, right)
            right = wanted - undamped @ x
        solution: np.ndarray = np.array(x).ravel()[: self._columns]
        return solution

    def _matrix(self, J: ca.DM, damping: float) -> ca.DM:
        upper = ca.horzcat(ca.DM.eye(self._columns), J.T)
        return ca.vertcat(upper, ca.horzcat(J, -damping * ca.DM.eye(self._rows)))


NEGLIGIBLE_STEP = 3e-5  # [rad or of the length]: where rows are closed as nearly as they allow
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
    function: ca.Function = field(repr=False)  # of q, t and p: residuals, unit quaternions too
    entries: ca.Function = field(repr=False)  # of their derivative by q, where it is not zero
    pattern: ca.Sparsity = field(repr=False)  # of the derivative
    tolerance: float = 0.0
    _rounded: list[bool] = field(default_factory=list, repr=False, compare=False)  # was seen to be

    @classmethod
    def of(
        cls, tree: Tree, rows: list[Row], parameters: np.ndarray, tolerance: float = 0.0
    ) -> Assembly:
        """Make an assembly from all rows of a mechanism; those without a residual do not matter."""
        holonomic = tuple(row for row in rows if row.residual is not None)
        residual = column_of([row.residual for row in holonomic if row.residual is not None])
        unit = [ca.sumsqr(ca.vertcat(*[tree.q[i] for i in four])) - 1 for four in tree.quaternions]
        everything = ca.vertcat(residual, *unit)
        known = [tree.q, tree.t, tree.parameters]
        function = ca.Function("residual", known, [everything])
        J = ca.jacobian(everything, tree.q)
        entries = ca.Function("entries", known, [J.nz[:]])
        return cls(tree, holonomic, parameters, function, entries, J.sparsity(), tolerance)

    def residual(self, q: np.ndarray, t: float = 0.0) -> np.ndarray:
        """Residuals of the holonomic rows [m or rad]."""
        values: np.ndarray = np.array(self.function(q, t, self.parameters)).ravel()
        return values[: len(self.rows)]

    def jacobian(self, q: np.ndarray, t: float = 0.0) -> np.ndarray:
        """Derivative of all residuals by the coordinates, unit quaternions last."""
        J = np.zeros(self.pattern.shape)
        J[self._places_of_entries] = self.entries(q, t, self.parameters).full().ravel()
        return J

    def relative_residual(self, q: np.ndarray) -> np.ndarray:
        """Residuals of the holonomic rows in radians and in parts of the mechanism's extent."""
        return np.asarray(self.residual(q) / self._extents_of_rows[: len(self.rows)])

    @cached_property
    def named_home(self) -> np.ndarray:
        """The configuration named by the mechanism's home, zero elsewhere, quaternions unit."""
        q = np.zeros(self.tree.q.shape[0])
        for four in self.tree.quaternions:
            q[four[0]] = 1.0
        for name, value in self.tree.mechanism.home_coordinates.items():
            q[self.tree.coordinate_names.index(name)] = value
        return self.normalize(self._follow_couplings(q))

    def _follow_couplings(self, q: np.ndarray) -> np.ndarray:
        """Set coupled coordinates that home does not name from those that lead them.

        The first term of a coupling follows the others, unless home names it; what is left open,
        in a ring of couplings, is Newton's.
        """
        rows = [k for k, row in enumerate(self.rows) if row.kind == "coupling"]
        if not rows:
            return q
        q = q.copy()
        couplings = {f"{c.name}.coupling": c for c in self.tree.mechanism.couplings}
        for _ in rows:  # as often as one coupling may wait for another
            before, J = q.copy(), self.jacobian(q)
            offset = J[rows] @ q - self.residual(q)[rows]
            for k, row in enumerate(rows):
                names = [
                    coupled_by(self.tree.mechanism, joint)[0]
                    for joint in couplings[self.rows[row].name].joints
                ]
                free = [n for n in names if n not in self.tree.mechanism.home_coordinates]
                places = map(self.tree.coordinate_names.index, map(str, free))
                j = next((j for j in places if J[row, j]), None)  # a cam may dwell
                if j is not None:
                    q[j] += (offset[k] - J[row] @ q) / J[row, j]
            if np.array_equal(before, q):
                break
        return q

    def normalize(self, q: np.ndarray) -> np.ndarray:
        """Return the coordinates with unit quaternions."""
        q = np.array(q, dtype=float)
        for four in map(list, self.tree.quaternions):
            length = np.linalg.norm(q[four])
            q[four] = q[four] / length if length > 0 else [1.0, 0.0, 0.0, 0.0]
        return q

    def close(
        self, q: np.ndarray, t: float = 0.0, tolerance: float | None = None
    ) -> tuple[np.ndarray, float]:
        """Find the nearest closed configuration by Newton's method, and its residual.

        Args:
            q: Where to begin.
            t: Time [s].
            tolerance: Instead of the assembly's own.
        """
        cut = self.tolerance if tolerance is None else tolerance
        begin = self.normalize(q)
        if not self.function.size1_out(0):  # an open chain
            return begin, 0.0
        if self.function.size1_out(0) <= DENSE:
            return self._search(begin, t, cut)
        if not (cut and self._rounded):
            found, error = self._search(begin, t, None)
            if self.is_exact(error) or not cut:
                return found, error
        # sparse solves damp rows that nearly follow, and drift along them: leave these out
        nearly, left = self._search(begin, t, cut)
        if self.is_closed(nearly, left, t):
            self._rounded.append(True)
        elif not self._rounded and error < left:
            return found, error
        return nearly, left

    def _search(self, q: np.ndarray, t: float, cut: float | None) -> tuple[np.ndarray, float]:
        found, error = find_roots(
            lambda x, _: self.function(x[0], t, self.parameters).full().T,
            lambda x, _: self.jacobian(x[0], t)[np.newaxis],
            q[np.newaxis],
            rows=self.row_lengths,
            columns=self.coordinate_lengths,
            step=lambda J, r, damping: self._step(J, r, damping, cut),
            retract=lambda x: self.normalize(x[0])[np.newaxis],
        )
        return found[0], float(error[0])

    def uncertain(self, q: np.ndarray, tolerance: float = 0.0) -> list[np.ndarray]:
        """Displacements by which a closed configuration may be off: its last step, and rounding.

        Args:
            q: The configuration, at any time.
            tolerance: Rows that nearly follow by no more than this close nothing.
        """
        along, rounding = self._last_step(q, max(MATRIX_ROUNDING, NEARLY * tolerance))
        return [along, along + rounding] if rounding.any() else []

    def _polish(self, q: np.ndarray, t: float) -> np.ndarray:
        """Close rows that nearly follow from others too, which Newton's method leaves open."""
        left = self._open(q)
        while left.any():
            step = self._last_step(q, MATRIX_ROUNDING)[0]
            longest = np.abs(step / self.coordinate_lengths).max().clip(DRIVEN)
            trial, _ = self.close(q - step * (DRIVEN / longest), t)
            there = self._open(trial)
            if not np.linalg.norm(there) < 0.5 * np.linalg.norm(left):
                break
            q, left = trial, there
        return q

    def _open(self, q: np.ndarray) -> np.ndarray:
        """Residuals of all but prescribed rows, which can be had at any time, of their units."""
        r = np.array(self.function(q, 0.0, self.parameters)).ravel() / self.row_lengths
        r[[k for k, row in enumerate(self.rows) if row.kind == "prescribed"]] = 0.0
        return np.asarray(r)

    def _last_step(self, q: np.ndarray, least: float) -> tuple[np.ndarray, np.ndarray]:
        """Find the shortest step that closes all rows but weaker ones, and its rounding."""
        changes = np.zeros((2, q.size))
        r = self._open(q)
        if r.size:
            J = self.jacobian(q) * self.coordinate_lengths / self.row_lengths[:, np.newaxis]
            touched = np.flatnonzero(J.any(axis=0))
            U, s, Vt = singular_vectors(J[:, touched], full=False)
            held = s > least * s.max(initial=1.0)
            both = np.array([(U.T @ r)[held], np.full(held.sum(), ONE_ROUNDING)]) / s[held]
            changes[:, touched] = both @ Vt[held]
        along, rounding = self.coordinate_lengths * changes
        return along, rounding

    def error(self, residual: np.ndarray) -> float:
        """Largest of the holonomic rows' residuals [rad, or of the mechanism's length]."""
        units = self.row_lengths[: len(self.rows)]
        return float(residual_size(residual / units, units))

    def is_exact(self, error: float) -> bool:
        """Return whether a residual is nothing but rounding."""
        return error <= CLOSED

    def is_closed(self, q: np.ndarray, error: float, t: float = 0.0) -> bool:
        """Return whether all is closed, exactly or as nearly as the rows allow."""
        if self.is_exact(error) or not self.tolerance or not np.isfinite(error):
            return self.is_exact(error)
        r = np.array(self.function(q, t, self.parameters)).ravel()
        if np.abs(r / self._extents_of_rows).max() > self.tolerance:
            return False
        J = self.jacobian(q, t)
        J = J * self.coordinate_lengths / self.row_lengths[:, np.newaxis]
        r = r / self.row_lengths
        step = self._step(J[np.newaxis], r[np.newaxis], np.zeros(1), self.tolerance)
        return bool(np.abs(step).max(initial=0.0) < NEGLIGIBLE_STEP)

    def _step(
        self, J: np.ndarray, r: np.ndarray, damping: np.ndarray, cut: float | None
    ) -> np.ndarray:
        """Find the shortest step that closes if all is linear; rank may be short (redundant rows).

        Args:
            J, r, damping: Jacobian, residual and damping of one run, from `find_roots`.
            cut: Singular values of rows that nearly follow from others, of the largest; None for a
                sparse solve, which does not know them.
        """
        if cut is None:
            return self._sparse.solve(J[0], r[0], float(damping[0]))[np.newaxis]
        if cut:
            rows = self.row_lengths / self._extents_of_rows
            columns = self._extents_of_columns / self.coordinate_lengths
            relative = J * columns * rows[:, np.newaxis]
            least = NEARLY * cut
            if has_singular_values_between(relative, ROUNDING, least):  # some rows nearly follow
                return np.asarray(columns * truncated_step(relative, r * rows, damping, least))
        return truncated_step(J, r, damping)

    def scaled_jacobian(self, q: np.ndarray) -> np.ndarray:
        """Derivative of the holonomic rows by the coordinates: radians and parts of the extent."""
        J = self.jacobian(q)[: len(self.rows)]
        rows = self._extents_of_rows[: len(self.rows), np.newaxis]
        return np.asarray(J * self._extents_of_columns / rows)

    @cached_property
    def _sparse(self) -> LeastNorm:
        return LeastNorm(self.pattern)

    @cached_property
    def _places_of_entries(self) -> tuple[np.ndarray, ...]:
        return tuple(np.array(places, dtype=int) for places in self.pattern.get_triplet())

    def find_home(self) -> np.ndarray:
        """Find the closed configuration next to the one that home names.

        Raises:
            LoopNotClosed: naming the rows that stay open.
        """
        q, error = self.close(self.named_home)
        if self.is_closed(q, error):
            return q
        # the zero configuration is often singular (all links in line): try beside it
        for tolerance in dict.fromkeys((self.tolerance, 0.0)):
            generator = np.random.default_rng(1)
            spreads = [self.coordinate_lengths * spread for spread in SPREADS for _ in range(4)]
            aside = [spread * generator.normal(size=q.size) for spread in spreads]
            starts = [self.named_home, *(self.named_home + change for change in aside)]
            tries = [self.close(start, tolerance=tolerance) for start in starts]
            # rotations by half a turn have no residual
            q, error = min([(q, error), *tries], key=lambda pair: (np.isnan(pair[1]), pair[1]))
            if self.is_exact(error):
                return q
            loosely = [found for found, open_by in tries if self.is_closed(found, open_by)]
            if loosely:
                return min(loosely, key=self.distance)
        raise not_closed(self, q)

    def distance(self, q: np.ndarray) -> float:
        """Distance of a configuration from the one that home names [rad, or of the length]."""
        return float(np.linalg.norm((q - self.named_home) / self.coordinate_lengths))

    def samples(
        self, home: np.ndarray, count: int, seed: int = 0, *, polish: bool = False
    ) -> list[np.ndarray]:
        """Draw random closed configurations on home's branch.

        Args:
            home: A closed configuration.
            count: How many to draw.
            seed: Seed of the random numbers.
            polish: Whether to close rows that nearly follow from others as well as the others.
        """
        generator = np.random.default_rng(seed)
        found: list[np.ndarray] = []
        for spread in SPREADS:
            for _ in range(3 * count):
                if len(found) == count:
                    return found
                change = generator.normal(0, spread, home.size) * self.coordinate_lengths
                q = self._walk(home, change)
                if q is not None:
                    q, t = self._drive(q, generator) if self.depends_on_time else (q, 0.0)
                    found.append(self._polish(q, t) if polish else q)
        return found or [home]

    @cached_property
    def depends_on_time(self) -> bool:
        """Return whether closing depends on the time."""
        residuals = [row.residual for row in self.rows if row.residual is not None]
        return any(ca.depends_on(residual, self.tree.t) for residual in residuals)

    @cached_property
    def extent(self) -> float:
        """Length [m] to which errors of position are compared: the mechanism's, or its levers'."""
        linear = np.array([row.unit == "m" for row in self.rows], dtype=bool)
        angular = np.array([unit != "m" for unit in self._units], dtype=bool)
        home = self.named_home
        J = self.jacobian(home)[: len(self.rows)]
        levers = np.abs(J[np.ix_(linear, angular)]).max(initial=0.0)
        length = max(float(levers), float(np.ptp(self._places(home), axis=0).max(initial=0.0)))
        return length if ROUNDING < length < np.inf else 1.0

    @cached_property
    def length(self) -> float:
        """Unit of length [m] in which the mechanism is measured."""
        return unit_length(self.extent)

    @cached_property
    def row_lengths(self) -> np.ndarray:
        """One unit of each residual: a radian, or the mechanism's length."""
        return self._of_rows(self.length)

    @cached_property
    def coordinate_lengths(self) -> np.ndarray:
        """One unit of each coordinate: a radian, or the mechanism's length."""
        return self._of_columns(self.length)

    @cached_property
    def _extents_of_rows(self) -> np.ndarray:
        return self._of_rows(self.extent)

    @cached_property
    def _extents_of_columns(self) -> np.ndarray:
        return self._of_columns(self.extent)

    def _of_rows(self, length: float) -> np.ndarray:
        own = [length if row.unit == "m" else 1.0 for row in self.rows]
        return np.array(own + [1.0] * len(self.tree.quaternions))

    def _of_columns(self, length: float) -> np.ndarray:
        return np.array([length if unit == "m" else 1.0 for unit in self._units])

    @cached_property
    def _units(self) -> list[str]:
        return [u for c in tree_order(self.tree.mechanism) for u in c.joint.coordinate_units]

    def _places(self, q: np.ndarray) -> np.ndarray:
        """Positions of the bodies' frames: bodies x 3."""
        tree = self.tree
        places = [tree.body_world_pose(body.name).p.T for body in tree.mechanism.bodies]
        function = ca.Function("places", [tree.q, tree.parameters], [ca.vertcat(*places)])
        return np.array(function(q, self.parameters)).reshape(-1, 3)

    def _drive(self, q: np.ndarray, generator: np.random.Generator) -> tuple[np.ndarray, float]:
        """Follow the prescribed motions from a sample, because t = 0 is often special.

        A vehicle whose steering starts straight would seem to have rows that follow from others.
        """
        pace = generator.uniform(0.5, 1.0)
        for later in LATER:
            moved = self._follow_clock(q, pace * later)
            if moved is not None and np.abs(moved - q).max(initial=0.0) > CLOSED:
                return moved, pace * later
        return q, 0.0

    def _follow_clock(self, q: np.ndarray, until: float) -> np.ndarray | None:
        for t in np.linspace(0.0, until, WALK + 1)[1:]:
            closed, error = self.close(q, float(t))
            moved = np.abs(closed - q) / self.coordinate_lengths
            if moved.max(initial=0.0) > DRIVEN or not self.is_closed(closed, error, float(t)):
                return None
            q = closed
        return q

    def _walk(self, q: np.ndarray, change: np.ndarray) -> np.ndarray | None:
        """Walk from a closed configuration in some direction, closed again after every short step.

        One long step often closes on another branch: elbow down, or a vehicle upside down, where
        other rows and speeds depend on each other than about home.
        """
        step = change / WALK
        for _ in range(WALK):
            closed, error = self.close(q + step)
            far = np.linalg.norm(closed - q) > JUMP * np.linalg.norm(step)
            if far or not self.is_closed(closed, error):
                return None
            q = closed
        return q


def numbers(expressions: list[SX], tree: Tree, name: str = "f") -> ca.Function:
    """Make expressions of q, v, t and the parameters a function for CasADi's own evaluator."""
    return ca.Function(name, [tree.q, tree.v, tree.t, tree.parameters], expressions)


NEARLY = 5.0  # times a tolerance: rows whose singular values are smaller are not solved for
MOVED = 0.1  # [rad or of the size] by which a named coordinate of home may move without a warning
MOVED_FAR = 0.5  # likewise, where the loops close next to the configuration named
DEPENDENT = 3e-2  # of the largest singular value: smaller ones are rows that nearly follow
NAMED = 6  # rows that a message names


def not_closed(assembly: Assembly, q: np.ndarray) -> LoopNotClosed:
    """Make the error that names everything that stays open, and the remedies.

    Args:
        assembly: What does not close.
        q: Where it is least open; next to home it is looked for again, surplus rows left open.
    """
    nearest, _ = assembly.close(assembly.named_home, tolerance=DEPENDENT / NEARLY)
    if np.abs(assembly.relative_residual(nearest)).max() < DEPENDENT:
        q = nearest
    residual = assembly.residual(q)
    worst = int(np.argmax(np.abs(residual)))
    row = assembly.rows[worst]
    configuration = dict(zip(assembly.tree.coordinate_names, map(float, q), strict=True))
    if row.kind == "touch":
        side = "above" if residual[worst] > 0 else "below"
        remedy = (
            f"The wheel's lowest point stays {side} the ground: put its centre one radius "
            "above it, or let the base move up and down."
        )
    elif row.kind == "coupling" and np.isnan(residual[worst]):
        remedy = "Its function has no value there: set_home where it has one."
    elif row.kind == "coupling":
        remedy = (
            "The offsets of the couplings, or those and the loops, contradict each other: give "
            "them offsets that one configuration satisfies, or leave this coupling out."
        )
    else:
        remedy = _remedy(assembly, q, residual)
    return LoopNotClosed(row.name, abs(float(residual[worst])), row.unit, configuration, remedy)


def _remedy(assembly: Assembly, q: np.ndarray, residual: np.ndarray) -> str:
    """Suggest lengths to check, or where rows contradict each other, a joint that has fewer."""
    plain = (
        "No configuration near home closes it: check the lengths, or name a configuration near "
        "a closed one with mechanism.set_home(...)."
    )
    relative = np.abs(assembly.relative_residual(q))
    if not np.isfinite(relative).all():
        return plain
    turned = [text for loop in assembly.tree.mechanism.loops for text in _turned(assembly, loop, q)]
    if turned:
        return "\n  ".join([*turned, plain])
    surplus = len(assembly.rows) - _rank(assembly.scaled_jacobian(q))
    if not surplus or relative.max() > DEPENDENT:
        return plain
    seen = [k for k in np.argsort(-relative) if relative[k] > 0.1 * relative.max()][:NAMED]
    rows = [assembly.rows[k] for k in sorted(seen)]
    listed = ", ".join(
        f"{row.name} by {abs(residual[k]):.2g} {row.unit}"
        for k, row in zip(sorted(seen), rows, strict=True)
    )
    need = 2 * float(relative.max())
    many = f"{surplus} constraints" if surplus > 1 else "one constraint"
    lines = [
        f"The loops have {many} more than can be satisfied, and they disagree: {listed}.",
        *_fewer_rows(assembly, rows, q),
    ]
    if need > assembly.tolerance:
        lines.append(
            f"  If the numbers are rounded, allow for it: mechanism.loop_tolerance = {need:.1g} "
            f"(it is {assembly.tolerance:g})."
        )
    return "\n".join(lines)


def _turned(assembly: Assembly, loop: Connection, q: np.ndarray) -> Iterator[str]:
    """Name a loop whose two frames are turned against each other by more than a right angle."""
    residual = assembly.residual(q)
    names = [f"{loop.name}.{name}" for name in ("rx", "ry", "rz")]
    own = [r for r, row in enumerate(assembly.rows) if row.name in names]
    angle = float(np.linalg.norm(residual[own]))
    if angle > math.pi / 2:
        what = "frames are turned against each other" if len(own) == 3 else "axes point apart"
        yield (
            f"The two {what} by {math.degrees(angle):.4g} degrees: check rotation and "
            f"child_rotation of '{loop.name}'."
        )


def _rank(J: np.ndarray) -> int:
    """Count the rows, in units of their own, that do not nearly follow from others."""
    return int(rank(J, DEPENDENT))


def _fewer_rows(assembly: Assembly, disagreeing: list[Row], q: np.ndarray) -> list[str]:
    """Suggest joints that hold the same with fewer rows, without some that disagree."""
    J = assembly.scaled_jacobian(q)
    lines: list[str] = []
    for loop in assembly.tree.mechanism.loops:
        own = {row.name.rpartition(".")[2] for row in disagreeing if row.owner == loop.name}
        held, found = set(loop.joint.closure_names), []
        for kind in JOINTS.values():
            left = held - set(kind.closure_names)
            if not (kind.closure_names and set(kind.closure_names) < held and left & own):
                continue
            rest = [
                k
                for k, row in enumerate(assembly.rows)
                if row.name not in {f"{loop.name}.{n}" for n in left}
            ]
            if _rank(J[rest]) == _rank(J):  # what it leaves out, other rows hold
                found.append((len(left & own), kind.__name__, sorted(left)))
        if found:
            found.sort(key=lambda item: -item[0])
            options = " or ".join(
                f"{name} ({len(left)} fewer: {', '.join(left)})" for _, name, left in found[:3]
            )
            lines.append(
                f"  Close '{loop.name}' with a joint of fewer rows than "
                f"{type(loop.joint).__name__}: {options}."
            )
    return lines or ["  Give a joint of the loop more freedom, as Cylindrical has over Revolute."]


def warn_of_moved_home(assembly: Assembly, home: np.ndarray) -> None:
    """Warn of named coordinates of home that closing the loops moved far."""
    asked, names = assembly.named_home, assembly.tree.coordinate_names
    quaternions = {k for four in assembly.tree.quaternions for k in four}
    named = {names.index(name) for name in assembly.tree.mechanism.home_coordinates}
    moved = np.abs(home - asked) / assembly.coordinate_lengths
    far = [k for k in sorted(named - quaternions) if moved[k] > MOVED]
    if not far:
        return
    nearest, _ = assembly.close(asked, tolerance=DEPENDENT / NEARLY)
    residual = assembly.residual(nearest)
    worst = int(np.argmax(np.abs(residual)))
    is_open = not assembly.is_exact(assembly.error(residual))
    if is_open and assembly.distance(nearest) < assembly.distance(home):
        row = assembly.rows[worst]
        why = (
            f"Next to the configuration named, {row.name} stays open by {abs(residual[worst]):.2g} "
            f"{row.unit}: check the lengths, or allow for it with mechanism.loop_tolerance "
            f"(it is {assembly.tolerance:g})."
        )
    elif max(moved[far]) > MOVED_FAR:
        why = "The loops are far from closed at the configuration named."
    else:
        return
    listed = ", ".join(f"{names[k]} = {asked[k]:.4g} became {home[k]:.4g}" for k in far)
    warn_of_description(
        f"'{assembly.tree.mechanism.name}': closing the loops moved home: {listed}. {why}",
        RequestNotMetWarning,
    )
