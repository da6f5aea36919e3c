"""All roots of members of a polynomial family.

Paths start from all roots of a generic member. These are found by monodromy: along a closed way of
parameters the roots change places, so that one of them leads to others, until further ways find
nothing new.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from axode.disk.object_cache import ObjectCache, cache_directory
from axode.errors import InvalidArgument, NotApplicable, UnknownName
from axode.kinematics.polynomials.path_tracker import (
    PLACES,
    USUAL,
    PathStatus,
    TrackedPaths,
    TrackingSettings,
    track,
)
from axode.kinematics.polynomials.polynomial_family import ComplexArray, PolynomialFamily
from axode.numerics.tolerances import SAME_ROOT

NEIGHBOURS = 3  # roots next to each other in order that are compared
VERSION = 2  # of start sets on disk
SEEDS = 4  # members from which roots are brought to the start, at the begin and at the end
QUIET_LOOPS = 6  # loops in a row that must find nothing new
MAX_LOOPS = 200
MAX_ROOTS = 20_000
MOVES = 10  # generic members to which a start set may be moved, in turn
CAREFUL = TrackingSettings(tolerance=1e-4)
_MEMORY: dict[str, list[StartSet]] = {}
Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Statuses = npt.NDArray[np.intp]
CHUNK = 1 << 18  # paths that are tracked at a time
SAME_ENDS = 2  # attempts in a row with equally many roots after which these are believed
LOST = (PathStatus.STUCK, PathStatus.TOO_LONG, PathStatus.JUMPED)


def first_of_each(
    roots: ComplexArray, usable: npt.NDArray[np.bool_] | None = None
) -> npt.NDArray[np.bool_]:
    """Mark usable roots of each system that no earlier usable one equals.

    Roots are put in order by a random combination of their unknowns, and compared with their
    neighbours there.

    Args:
        roots: Roots of all systems, (systems, roots, unknowns).
        usable: Which of them count; all unless given.
    """
    systems, count, n = roots.shape
    usable = np.ones((systems, count), dtype=bool) if usable is None else usable
    weights = np.random.default_rng(0).normal(size=n) + 1j * np.random.default_rng(1).normal(size=n)
    with np.errstate(all="ignore"):
        keys = np.where(usable, (roots @ weights).real, np.inf)
    order = np.argsort(keys, axis=1, kind="stable")
    rows = np.arange(systems)[:, np.newaxis]
    ordered, alive = roots[rows, order], usable[rows, order]
    first = alive.copy()
    for k in range(1, min(NEIGHBOURS, count - 1) + 1):
        with np.errstate(all="ignore"):
            apart = np.abs(ordered[:, k:] - ordered[:, :-k]).max(axis=2)
            size = 1.0 + np.abs(ordered[:, k:]).max(axis=2)
        same = (apart <= SAME_ROOT * size) & alive[:, k:] & alive[:, :-k]
        first[:, k:] &= ~same
    made = np.zeros_like(first)
    made[rows, order] = first
    return made


@dataclass(frozen=True)
class StartSet:
    """Roots of one generic member.

    Attributes:
        roots: All that were found, (roots, unknowns).
        parameters: The member's parameters.
    """

    roots: ComplexArray
    parameters: ComplexArray


def start_set(family: PolynomialFamily, number: int = 0, *, threads: int | None = None) -> StartSet:
    """Return the start set of a family, from memory, from disk, or by monodromy.

    Args:
        family: The polynomials.
        number: Which one: others are at other generic parameters.
        threads: How many threads share the paths.
    """
    known = _MEMORY.setdefault(family.digest, [])
    while len(known) <= number:
        known.append(_load_or_make(family, known, threads))
    return known[number]


def remember_start_sets(family: PolynomialFamily, sets: Sequence[StartSet]) -> None:
    """Use start sets that were made elsewhere, as long as this process lives."""
    _MEMORY[family.digest] = list(sets)


def _load_or_make(family: PolynomialFamily, known: list[StartSet], threads: int | None) -> StartSet:
    number, cache = len(known), ObjectCache(cache_directory())
    key = hashlib.sha256(f"start set {VERSION} {number} {family.digest}".encode()).hexdigest()
    stored = cache.read(key)
    made = None if stored is None else _unpack(stored, family)
    if made is None or (known and len(made.roots) != len(known[0].roots)):
        made = (
            _moved(family, known[0], number, threads)
            if known
            else monodromy(family, threads=threads)
        )
        cache.write(key, _pack(made))
    return made


def monodromy(family: PolynomialFamily, *, seed: int = 0, threads: int | None = None) -> StartSet:
    """Find the roots of a generic member.

    Ends when several loops in a row find nothing new and neither do roots of other members that
    are brought here. That all roots are found then is very likely, and not proved.

    Args:
        family: The polynomials.
        seed: Seed of all random numbers.
        threads: How many threads share the paths.

    Raises:
        NotApplicable: if no path can be tracked, or if there is no end of new roots.
    """
    rng = np.random.default_rng(seed)
    first, base = family.seed(rng)
    scale = np.maximum(np.abs(base), 1e-3)

    def elsewhere() -> ComplexArray:
        turned = np.exp(2j * np.pi * rng.random(len(base))) * rng.uniform(0.5, 1.5, len(base))
        return np.asarray(scale * turned)

    roots = _brought(family, first[np.newaxis], base, rng, threads)
    quiet = 0
    for _ in range(MAX_LOOPS):
        ends, at = roots, base
        for there in (elsewhere(), elsewhere(), base):
            ends, at = _follow(family, ends, at, there, threads), there
        if not len(ends):
            break
        more = distinct(np.concatenate([roots, ends]))
        quiet = quiet + 1 if len(more) == len(roots) else 0
        roots = more
        if quiet >= QUIET_LOOPS:
            roots = _brought(family, roots, base, rng, threads)
            if len(roots) == len(more):
                return StartSet(roots, base)
            quiet = 0
        if len(roots) > MAX_ROOTS:
            break
    raise NotApplicable(
        f"family '{family.key}': its roots cannot be distinguished or followed from member to "
        f"member, {len(roots)} found so far. Check that its generic members have finitely many "
        "regular roots, and that the seed returns one of them."
    )


def _follow(
    family: PolynomialFamily,
    roots: ComplexArray,
    start: ComplexArray,
    target: ComplexArray,
    threads: int | None,
) -> ComplexArray:
    """Return where roots of one member or of several arrive at another; lost ones are left out."""
    which = np.zeros(len(roots), dtype=np.intp)
    made = track(family, roots, start, target[np.newaxis], which, CAREFUL, threads=threads)
    return made.x[made.finished]


def _brought(
    family: PolynomialFamily,
    roots: ComplexArray,
    base: ComplexArray,
    rng: np.random.Generator,
    threads: int | None,
) -> ComplexArray:
    """Add the roots of other members, moved to one, in case loops do not connect all roots."""
    seeds = [family.seed(rng) for _ in range(SEEDS)]
    x, p = np.stack([x for x, _ in seeds]), np.stack([p for _, p in seeds])
    return distinct(np.concatenate([roots, _follow(family, x, p, base, threads)]))


def _moved(family: PolynomialFamily, known: StartSet, number: int, threads: int | None) -> StartSet:
    """Move a start set to other generic parameters."""
    count = len(known.roots)
    for attempt in range(MOVES):
        there = family.seed(np.random.default_rng((number, attempt)))[1]
        ends = _follow(family, known.roots, known.parameters, there, threads)
        if len(ends) == count == len(distinct(ends)):
            return StartSet(ends, there)
    raise NotApplicable(
        f"family '{family.key}': its {count} roots cannot be followed to other generic members. "
        "Check that the seed returns generic members."
    )


def distinct(roots: ComplexArray) -> ComplexArray:
    """Return the roots of one member, each once."""
    return roots[first_of_each(roots[np.newaxis])[0]]


def _pack(made: StartSet) -> bytes:
    table = np.concatenate([made.parameters, made.roots.ravel()])
    return table.astype("<c16").tobytes()


def _unpack(data: bytes, family: PolynomialFamily) -> StartSet | None:
    """Read a start set, if it is one of the family."""
    n, m = family.unknowns, family.parameters
    count, rest = divmod(len(data) - 16 * m, 16 * n)
    if rest or not 1 <= count <= MAX_ROOTS:
        return None
    table = np.frombuffer(data, dtype="<c16").astype(np.complex128)
    if not np.isfinite(table).all():
        return None
    return StartSet(table[m:].reshape(-1, n), table[:m])


@dataclass(frozen=True)
class FamilyRoots:
    """Roots of some members of a family.

    Attributes:
        roots: One end of a path each, (targets, paths, unknowns).
        status: A `PathStatus` of each, (targets, paths).
        error: Size of the last Newton step of each, relative to its root.
        attempts: How often the paths of each target were tracked, (targets,).
        lost: Paths of each target that were lost or jumped in the attempts that were not kept.
        steps: Steps of all attempts together.
    """

    roots: ComplexArray
    status: npt.NDArray[np.intp]
    error: Array
    attempts: npt.NDArray[np.intp]
    lost: npt.NDArray[np.intp]
    steps: int

    @cached_property
    def finished(self) -> Mask:
        """Ends that are regular roots, each once: (targets, paths)."""
        return np.asarray(self.status == PathStatus.FINISHED)

    @property
    def count(self) -> npt.NDArray[np.intp]:
        """Number of regular roots of each target."""
        return self.finished.sum(axis=1)

    @property
    def complete(self) -> Mask:
        """Targets of which every path ended at a root, at infinity or at a singular root."""
        return ~np.asarray(np.isin(self.status, LOST).any(axis=1))

    def of(self, target: int) -> ComplexArray:
        """Return the regular roots of one target, (roots, unknowns)."""
        return self.roots[target][self.finished[target]]

    def statistics(self) -> dict[str, int]:
        """Count paths by how they ended, and what it took."""
        counts = {
            status.name.lower().replace("_", " "): int((self.status == status).sum())
            for status in PathStatus
            if status
        }
        return {
            "targets": len(self.status),
            "paths": self.status.size,
            **counts,
            "targets tracked again": int((self.attempts > 1).sum()),
            "paths lost on the way": int(self.lost.sum()),
            "steps": self.steps,
        }


def solve_family(
    family: PolynomialFamily,
    targets: npt.ArrayLike,
    *,
    threads: int | None = None,
    target: str = "cpu",
    attempts: int = 5,
    settings: TrackingSettings = USUAL,
) -> FamilyRoots:
    """Find all roots of members of a family.

    The roots of a generic member, found once and kept on disk, are followed along straight lines of
    parameters to each target. Targets whose paths get lost or end at the same root are tracked
    again, with smaller steps and from another generic member.

    Args:
        family: The polynomials.
        targets: Parameters, (targets, parameters), or (parameters,) for one target.
        threads: How many threads share the paths; all unless given.
        target: "cpu" or "cuda": where paths are tracked.
        attempts: How often the paths of a target may be tracked.
        settings: How paths are tracked in the first attempt.

    Raises:
        InvalidArgument: if the targets do not fit the family.
        UnknownName: if paths can be tracked at no such place.
        NotApplicable: if the roots of a generic member cannot be found.
    """
    parameters = np.atleast_2d(np.asarray(targets, dtype=np.complex128))
    if parameters.ndim != 2 or parameters.shape[1] != family.parameters:
        raise InvalidArgument(
            f"targets of family '{family.key}' have shape {np.shape(targets)}, expected "
            f"(targets, {family.parameters})."
        )
    if not np.isfinite(parameters).all():
        bad = np.flatnonzero(~np.isfinite(parameters).all(axis=1))
        raise InvalidArgument(
            f"targets of family '{family.key}' are not finite: number {bad[0]} and "
            f"{len(bad) - 1} others."
        )
    if target not in PLACES:
        raise UnknownName("axode", "target", target, PLACES)
    solver = _Solver(family, parameters, settings, threads, target)
    solver.attempt(np.arange(len(parameters)), 0)
    for number in range(1, attempts):
        again = solver.doubtful()
        if not again.size:
            break
        solver.attempt(again, number)
    own = solver.roots, solver.status, solver.error, solver.attempts, solver.lost, solver.steps
    return FamilyRoots(*own)


class _Solver:
    """What is known of every target so far."""

    def __init__(
        self,
        family: PolynomialFamily,
        parameters: ComplexArray,
        settings: TrackingSettings,
        threads: int | None,
        target: str,
    ) -> None:
        self.family, self.parameters, self.settings = family, parameters, settings
        self.threads, self.target = threads, target
        count, paths = len(parameters), len(start_set(family, threads=threads).roots)
        self.paths = paths
        self.roots = np.zeros((count, paths, family.unknowns), dtype=np.complex128)
        self.status = np.zeros((count, paths), dtype=np.intp)
        self.error = np.zeros((count, paths))
        self.attempts = np.zeros(count, dtype=np.intp)
        self.lost = np.zeros(count, dtype=np.intp)
        self.agreed = np.zeros(count, dtype=np.intp)  # attempts in a row with the same count
        self.steps = 0

    def attempt(self, chosen: npt.NDArray[np.intp], number: int) -> None:
        """Track the paths of some targets, and keep what is better than before."""
        start = start_set(self.family, number, threads=self.threads)
        size = max(1, CHUNK // self.paths)
        for first in range(0, len(chosen), size):
            rows = chosen[first : first + size]
            made = track(
                self.family,
                np.tile(start.roots, (len(rows), 1)),
                start.parameters,
                self.parameters[rows],
                np.repeat(np.arange(len(rows)), self.paths),
                self.settings.tighter(number),
                threads=self.threads,
                target=self.target,
            )
            self._keep(rows, made)

    def _keep(self, rows: npt.NDArray[np.intp], made: TrackedPaths) -> None:
        shape = (len(rows), self.paths)
        roots = made.x.reshape(*shape, made.x.shape[-1])
        status, error = made.status.reshape(shape).copy(), made.error.reshape(shape)
        finished = status == PathStatus.FINISHED
        once = first_of_each(roots, finished)
        status[finished & ~once] = PathStatus.JUMPED
        self.lost[rows] += np.isin(status, LOST).sum(axis=1)
        self.steps += int(made.steps.sum())
        if self.attempts[rows[:1]].any():  # then all of them were tracked before
            roots, status, error = self._unite(rows, roots, status, error)
        self.roots[rows], self.status[rows], self.error[rows] = roots, status, error
        self.attempts[rows] += 1

    def _unite(
        self, rows: npt.NDArray[np.intp], roots: ComplexArray, status: Statuses, error: Array
    ) -> tuple[ComplexArray, Statuses, Array]:
        """Add the roots of earlier attempts to those of another one, each once.

        Attempts start elsewhere, so that they hardly ever miss the same root by chance.
        """
        every = np.concatenate([self.roots[rows], roots], axis=1)
        statuses = np.concatenate([self.status[rows], status], axis=1)
        errors = np.concatenate([self.error[rows], error], axis=1)
        finished = statuses == PathStatus.FINISHED
        first = first_of_each(every, finished)
        before, now = (part.sum(axis=1) for part in np.split(finished, 2, axis=1))
        same = (first.sum(axis=1) == before) & (before == now)
        self.agreed[rows] = np.where(same, self.agreed[rows] + 1, 0)
        ended_otherwise = ~finished
        ended_otherwise[:, : self.paths] = False  # of the last attempt
        order = np.argsort(
            np.where(first, 0, np.where(ended_otherwise, 1, 2)), axis=1, kind="stable"
        )
        chosen = order[:, : self.paths]
        which = np.arange(len(rows))[:, np.newaxis]
        return every[which, chosen], statuses[which, chosen], errors[which, chosen]

    def doubtful(self) -> npt.NDArray[np.intp]:
        """Targets with lost paths, or fewer roots than others that no attempt has confirmed."""
        lost = np.isin(self.status, LOST).any(axis=1)
        ended_otherwise = (self.status != PathStatus.FINISHED).any(axis=1)
        return np.flatnonzero(lost | (ended_otherwise & (self.agreed < SAME_ENDS - 1)))
