r"""Paths of roots from one member of a family to another, as a program of tapes.

Along :math:`p(s) = p_1 + s\,(p_0 - p_1)` a root of :math:`p_0`, at s = 1, moves to one of
:math:`p_1`, at s = 0. Every run is one path. A step predicts by the series of the root in s, of
which one elimination gives all terms, and corrects by Newton's method.
`track` follows many paths at once, on the CPU or on a GPU.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.codegen.tape.formulas import Formula, Vector, formula_tape
from axode.codegen.tape.program import Evaluate, Program, ReadRow, While
from axode.codegen.targets.cpu_rollout import Rollout
from axode.kinematics.polynomials.polynomial_family import (
    Complex,
    ComplexArray,
    PolynomialFamily,
    Series,
    evaluate_rational,
    pairs,
    parts,
)
from axode.numerics.tolerances import MATRIX_ROUNDING, NEAR_END, PART_OF_TOLERANCE, TOO_NEAR

SETTINGS = ("tolerance", "radius", "max_steps")  # in the order of the buffer
ORDER = 3  # last power of s in the series of a root
CONTRACTION = 0.02  # of the second correction to the first
LARGEST_ERROR = 10.0  # of a prediction, in units of the tolerance
SHRINK, GROW = 0.4, 1.6  # of a step after a refusal, and at most after a success
LARGEST_FACTOR = 4.0
AT_INFINITY = 1e8  # size of a root
NEARLY_INFINITE = 1e3  # size of a root where the end cannot be reached
POLISHING = 3  # Newton steps at the end
FIRST_POLISH, REGULAR = 1e-3, 1e-8  # largest relative size of any of them, and of the last one
Array = npt.NDArray[np.float64]
PLACES = ("cpu", "cuda")  # where paths can be tracked
MAX_TRACKERS = 32  # compiled trackers that are kept, those that were used last
PATHS_PER_PART = 1 << 13  # between which Ctrl-C is answered
_TRACKERS: OrderedDict[tuple[str, str], Any] = OrderedDict()
_LOCK = threading.Lock()


@dataclass(frozen=True)
class EliminatedMatrix:
    """A square matrix after elimination with exchanges of rows.

    Attributes:
        upper: Rows of the upper triangle, each from its diagonal on.
        inverses: Reciprocals of the diagonal.
        exchanges: By column, for each lower row whether it was exchanged with the pivot's.
        factors: By column, multiples of the pivot's row that were taken from the lower ones.
    """

    upper: list[list[Complex]]
    inverses: list[Complex]
    exchanges: list[list[Formula]]
    factors: list[list[Complex]]

    def solve(self, right: Sequence[Complex]) -> list[Complex]:
        """Solve for one right side."""
        x = list(right)
        n = len(x)
        for k in range(n):
            for i, flag in enumerate(self.exchanges[k], k + 1):
                x[k], x[i] = x[i].then(flag, x[k]), x[k].then(flag, x[i])
            for i, factor in enumerate(self.factors[k], k + 1):
                x[i] = x[i] - factor * x[k]
        for k in reversed(range(n)):
            for j, value in enumerate(self.upper[k][1:], k + 1):
                x[k] = x[k] - value * x[j]
            x[k] = x[k] * self.inverses[k]
        return x


def eliminate(matrix: Sequence[Sequence[Complex]]) -> EliminatedMatrix:
    """Eliminate a square matrix; the pivot of each column is its largest number."""
    rows = [list(row) for row in matrix]
    n = len(rows)
    made = EliminatedMatrix([], [], [], [])
    for k in range(n):
        size, flags = rows[k][0].square(), []
        for i in range(k + 1, n):
            other = rows[i][0].square()
            flag = other > size
            size = flag.then(other, size)
            flags.append(flag)
            upper = [b.then(flag, a) for a, b in zip(rows[k], rows[i], strict=True)]
            rows[i] = [a.then(flag, b) for a, b in zip(rows[k], rows[i], strict=True)]
            rows[k] = upper
        pivot = rows[k][0]
        scale = 1.0 / size
        inverse = Complex(pivot.re * scale, -(pivot.im * scale))
        factors = []
        for i in range(k + 1, n):
            factor = rows[i][0] * inverse
            factors.append(factor)
            rows[i] = [b - factor * a for a, b in zip(rows[k][1:], rows[i][1:], strict=True)]
        made.upper.append(rows[k])
        made.inverses.append(inverse)
        made.exchanges.append(flags)
        made.factors.append(factors)
    return made


class PathStatus(IntEnum):
    """How a path ended."""

    RUNNING = 0
    FINISHED = 1  # at a regular root
    AT_INFINITY = 2  # the root grows beyond bounds
    SINGULAR = 3  # the end is a root of higher multiplicity, or on a continuum of roots
    STUCK = 4  # the step became too small on the way
    TOO_LONG = 5  # more steps than allowed
    JUMPED = 6  # at a regular root where another path ends too


def tracking_program(family: PolynomialFamily) -> Program:
    """Make the program that tracks paths of a family.

    Complex numbers lie in buffers as NumPy lays them out. State: `x`, the root; `s`, from one to
    zero; `factor`, of the step's length, to start with one; `steps`; `ending`, a `PathStatus`;
    `error`, the size of the last Newton step against the root. Given: `start`, parameters at s = 1,
    `which`, the row of the table `targets` with the parameters at s = 0, and `settings`.
    """
    n, m = family.unknowns, family.parameters
    sizes = {"x": 2 * n, "s": 1, "factor": 1, "steps": 1, "ending": 1}
    given = {"start": 2 * m, "target": 2 * m, "settings": len(SETTINGS)}
    tracker = _Tracker(family)
    step = formula_tape("track_step", sizes | given, tracker.step)
    begin = formula_tape(
        "track_begin",
        {"ending": 1},
        lambda ending: {"active": [_goes_on(ending[0])], "turns": [ending[0].like(POLISHING)]},
    )
    polish = formula_tape(
        "track_polish", {"x": 2 * n, "ending": 1, "turns": 1, "target": 2 * m}, tracker.polish
    )
    polishing = ("x", "ending", "turns", "target", "x", "ending", "error", "turns")
    operations = (
        ReadRow("targets", "which", "target"),
        Evaluate(begin, ("ending", "active", "turns")),
        While("active", (Evaluate(step, (*sizes, *given, *sizes, "active")),)),
        While("turns", (Evaluate(polish, polishing),)),
    )
    return Program(
        "tracking",
        sizes | {"error": 1},
        {"start": 2 * m, "which": 1, "settings": len(SETTINGS)},
        {"targets": 2 * m},
        operations,
    )


class _Tracker:
    """The formulas of a family's tracker."""

    def __init__(self, family: PolynomialFamily) -> None:
        self.family = family
        self.residual, self.jacobian = family.residual_tape, family.jacobian_tape

    def step(self, x: Vector, s: Vector, **v: Vector) -> dict[str, Vector]:
        """Make one step, and keep it where the corrections are small and contract."""
        settings = dict(zip(SETTINGS, v["settings"], strict=True))
        at, here, factor = pairs(x), s[0], v["factor"][0]
        start, target = pairs(v["start"]), pairs(v["target"])
        speed = [a - b for a, b in zip(start, target, strict=True)]
        terms = self._series(at, _on_segment(target, speed, here), speed)
        weights = _weights(at)
        h = _choose_step(terms, weights, factor, settings).least(here)
        there = here - h
        guess = _extrapolate(terms, -h)
        parameters = _on_segment(target, speed, there)
        matrix = self._eliminated(guess, parameters)
        end, lengths = guess, []
        for _ in range(2):
            change = matrix.solve(self._residual_at(end, parameters))
            end = [a - b for a, b in zip(end, change, strict=True)]
            lengths.append(_norm(change, weights))
        first, second = lengths
        # comparisons with NaN are false, so that such a step is refused
        small = first <= LARGEST_ERROR * settings["tolerance"]
        contracts = (second <= CONTRACTION * first) | (
            second <= PART_OF_TOLERANCE * settings["tolerance"]
        )
        good = small & contracts  # (H6)
        return _outcome(
            (at, here, factor, v["steps"][0], v["ending"][0]),
            (end, there, good, first, h),
            settings,
        )

    def polish(self, x: Vector, ending: Vector, turns: Vector, target: Vector) -> dict[str, Vector]:
        """Make a Newton step at the end of a path that has arrived there."""
        at, parameters = pairs(x), pairs(target)
        change = self._eliminated(at, parameters).solve(self._residual_at(at, parameters))
        arrived = ending[0].equals(float(PathStatus.FINISHED))
        error = _norm(change, _weights(at))
        good = error <= (turns[0] > 1.5).then(FIRST_POLISH, REGULAR)
        end = [(a - b).then(arrived & good, a) for a, b in zip(at, change, strict=True)]
        return {
            "x": parts(end),
            "ending": [(arrived & ~good).then(float(PathStatus.SINGULAR), ending[0])],
            "error": [error],
            "turns": [turns[0] - 1.0],
        }

    def _residual_at(self, x: Sequence[Complex], p: Sequence[Complex]) -> list[Complex]:
        return evaluate_rational(self.residual, (x, p), x[0].real)

    def _eliminated(self, x: Sequence[Complex], p: Sequence[Complex]) -> EliminatedMatrix:
        n, found = len(x), evaluate_rational(self.jacobian, (x, p), x[0].real)
        return eliminate([found[k : k + n] for k in range(0, n * n, n)])

    def _series(
        self, x: Sequence[Complex], p: Sequence[Complex], speed: Sequence[Complex]
    ) -> list[list[Complex]]:
        """Terms of the root as a series in s, the root itself first.

        The residual's term k is linear in the root's, with the Jacobian as its matrix; the rest of
        it comes from earlier terms.
        """
        matrix, zero = self._eliminated(x, p), x[0].real(0.0)
        terms = [list(x)]
        for k in range(1, ORDER + 1):
            unknowns = [Series((*known, zero)) for known in zip(*terms, strict=True)]
            moved = [Series((a, b, *(zero,) * (k - 1))) for a, b in zip(p, speed, strict=True)]
            made = evaluate_rational(self.residual, (unknowns, moved), unknowns[0].real)
            terms.append([-c for c in matrix.solve([r.terms[k] for r in made])])  # (H3)
        return terms


def _on_segment(target: Sequence[Complex], speed: Sequence[Complex], s: Formula) -> list[Complex]:
    return [a + b.scaled(s) for a, b in zip(target, speed, strict=True)]  # (H2)


def _weights(x: Sequence[Complex]) -> list[Formula]:
    """Weights of squares of unknowns: relative to each, or to all of them if it is small.

    Other unknowns that are large do not count, since some go through infinity.
    """
    squares = [a.square() for a in x]
    floor = (reduce(add, squares) / float(len(x))).least(1.0).most(1e-200)
    return [1.0 / (floor + a) for a in squares]


def _norm(vector: Sequence[Complex], weights: Sequence[Formula]) -> Formula:
    return reduce(add, (a.square() * b for a, b in zip(vector, weights, strict=True))).sqrt()


def _choose_step(
    terms: Sequence[Sequence[Complex]],
    weights: Sequence[Formula],
    factor: Formula,
    settings: dict[str, Formula],
) -> Formula:
    """Choose a step at which the first omitted term has the size of the tolerance.

    That term, and how far away the nearest singularity is, follow from the last two.
    """
    before, last = (_norm(term, weights).most(1e-200) for term in terms[-2:])
    omitted = last * last / before
    length = (settings["tolerance"] / omitted).sqrt().sqrt()  # (H5)
    return (factor * length).least(settings["radius"] * before / last)


def _extrapolate(terms: Sequence[Sequence[Complex]], by: Formula) -> list[Complex]:
    """Continue series by quotients, numerators of degree two over denominators of degree one.

    A nearby pole or branch point is in the denominator. Where that vanishes the sum is taken.
    """
    made = []
    for a, b, c, d in zip(*terms, strict=True):
        below = c - d.scaled(by)
        squared = c.square()
        usable = below.square() > 0.1 * squared
        whole = c.scaled(by * by)
        quotient = whole * c / Complex(usable.then(below.re, 1.0), usable.then(below.im, 0.0))
        last = quotient.then(usable, whole + d.scaled(by * by * by))
        made.append(a + b.scaled(by) + last)  # (H4)
    return made


def _outcome(
    before: tuple[list[Complex], Formula, Formula, Formula, Formula],
    after: tuple[list[Complex], Formula, Formula, Formula, Formula],
    settings: dict[str, Formula],
) -> dict[str, Vector]:
    """Keep what a step made, or not; a path that has ended keeps everything."""
    at, here, factor, steps, ending = before
    end, there, good, error, h = after
    active = _goes_on(ending)
    kept = active & good
    x = [b.then(kept, a) for a, b in zip(at, end, strict=True)]
    s = kept.then(there, here)
    change = (settings["tolerance"] / error.most(1e-30)).sqrt().sqrt()
    grown = (factor * change.most(SHRINK).least(GROW)).least(LARGEST_FACTOR)
    factor = active.then(good.then(grown, factor * SHRINK), factor)
    steps = active.then(steps + 1.0, steps)
    large = reduce(Formula.most, (a.square() for a in x)).sqrt()
    stuck = h < MATRIX_ROUNDING
    near = s < NEAR_END
    lost = (near & (large > NEARLY_INFINITE)).then(
        float(PathStatus.AT_INFINITY),
        near.then(float(PathStatus.SINGULAR), float(PathStatus.STUCK)),
    )
    ended = s.equals(0.0).then(
        float(PathStatus.FINISHED),
        (near & (large > AT_INFINITY)).then(
            float(PathStatus.AT_INFINITY),
            ((s < TOO_NEAR) | stuck).then(
                lost, (steps >= settings["max_steps"]).then(float(PathStatus.TOO_LONG), 0.0)
            ),
        ),
    )
    ending = active.then(ended, ending)
    return {
        "x": parts(x),
        "s": [s],
        "factor": [factor],
        "steps": [steps],
        "ending": [ending],
        "active": [_goes_on(ending)],
    }


def _goes_on(ending: Formula) -> Formula:
    return ending.equals(float(PathStatus.RUNNING))


@dataclass(frozen=True)
class TrackingSettings:
    """How paths are tracked.

    Attributes:
        tolerance: Relative error of a predicted root that steps aim at. The smaller, the less
            likely is a jump to another path.
        radius: Part of the way to the nearest singularity, in the complex plane of the path
            parameter, that a step may go.
        max_steps: Most steps of a path.
    """

    tolerance: float = 1e-3
    radius: float = 0.7
    max_steps: int = 3000

    def tighter(self, times: int) -> TrackingSettings:
        """Return settings for another attempt, tighter by a factor of ten each time."""
        return replace(
            self,
            tolerance=self.tolerance * 0.1**times,
            radius=self.radius * 0.8**times,
            max_steps=self.max_steps * 2**times,
        )


USUAL = TrackingSettings()


@dataclass(frozen=True)
class TrackedPaths:
    """Ends of paths.

    Attributes:
        x: Roots, (paths, unknowns).
        status: A `PathStatus` of each.
        steps: Steps of each.
        error: Size of the last Newton step of each, relative to its root.
    """

    x: ComplexArray
    status: npt.NDArray[np.intp]
    steps: npt.NDArray[np.intp]
    error: Array

    @property
    def finished(self) -> npt.NDArray[np.bool_]:
        """Paths that ended at a regular root."""
        return self.status == PathStatus.FINISHED


def tracker_of(family: PolynomialFamily, target: str = "cpu") -> Any:
    """Return the compiled tracker of a family, made when first needed."""
    key = (family.digest, target)
    with _LOCK:
        known = _TRACKERS.get(key)
        if known is None:
            program = tracking_program(family)
            if target == "cpu":
                known = Rollout(program, alike=True)
            else:
                from axode.codegen.targets.gpu_rollout import KernelRollout

                known = KernelRollout(program)
            _TRACKERS[key] = known
            while len(_TRACKERS) > MAX_TRACKERS:
                _TRACKERS.popitem(last=False)
        _TRACKERS.move_to_end(key)
        return known


def track(
    family: PolynomialFamily,
    x: ComplexArray,
    start: ComplexArray,
    targets: ComplexArray,
    which: npt.NDArray[np.intp],
    settings: TrackingSettings = USUAL,
    *,
    threads: int | None = None,
    target: str = "cpu",
) -> TrackedPaths:
    """Track roots along straight lines of parameters.

    Args:
        family: The polynomials.
        x: Roots to start at, (paths, unknowns).
        start: Parameters there, (parameters,) or one row per path.
        targets: Parameters to go to, (targets, parameters).
        which: Number of each path's target.
        settings: How to do it.
        threads: How many threads share the paths.
        target: "cpu" or "cuda".
    """
    if not len(x):
        none = np.zeros(0, dtype=np.intp)
        return TrackedPaths(x, none, none, np.zeros(0))
    rollout = tracker_of(family, target)
    state = rollout.new_state(len(x), {"x": _real(x), "s": 1.0, "factor": 1.0})
    numbers = [settings.tolerance, settings.radius, settings.max_steps]
    places = np.ascontiguousarray(which, dtype=float)[:, np.newaxis]
    given, each = {"settings": np.array(numbers, dtype=float)}, {**state, "which": places}
    (each if start.ndim > 1 else given)["start"] = _real(start)
    tables = {"targets": _real(targets)}
    per_part = PATHS_PER_PART if target == "cpu" else len(x)
    for begin in range(0, len(x), per_part):
        part = slice(begin, begin + per_part)
        own = {name: array[part] for name, array in each.items()}
        rollout({**own, **given}, tables, budget=0, threads=threads)
    found: ComplexArray = state["x"].view(np.complex128)
    status, steps = (state[name][:, 0].astype(np.intp) for name in ("ending", "steps"))
    return TrackedPaths(found, status, steps, state["error"][:, 0])


def _real(values: ComplexArray) -> Array:
    """Real and imaginary parts in turn."""
    return np.asarray(np.ascontiguousarray(values, dtype=np.complex128).view(np.float64))
