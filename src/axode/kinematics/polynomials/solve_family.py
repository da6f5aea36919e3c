"""All roots of members of a polynomial family."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument, UnknownName
from axode.kinematics.polynomials.distinct_roots import first_of_each
from axode.kinematics.polynomials.path_tracker import PathStatus
from axode.kinematics.polynomials.polynomial_family import ComplexArray, PolynomialFamily
from axode.kinematics.polynomials.start_sets import StartSet, start_set
from axode.kinematics.polynomials.tracked_paths import (
    PLACES,
    USUAL,
    TrackedPaths,
    TrackingSettings,
    track,
)

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Statuses = npt.NDArray[np.intp]
CHUNK = 1 << 18  # paths that are tracked at a time
SAME_ENDS = 2  # attempts in a row with equally many roots after which these are believed
LOST = (PathStatus.STUCK, PathStatus.TOO_LONG, PathStatus.JUMPED)


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
        mask: Mask = self.status == PathStatus.FINISHED
        return mask

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
    return solver.result()


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
            self._keep(rows, self._ends(rows, start, self.settings.tighter(number)))

    def _ends(
        self, rows: npt.NDArray[np.intp], start: StartSet, settings: TrackingSettings
    ) -> TrackedPaths:
        count = len(rows)
        return track(
            self.family,
            np.tile(start.roots, (count, 1)),
            start.parameters,
            self.parameters[rows],
            np.repeat(np.arange(count), self.paths),
            settings,
            threads=self.threads,
            target=self.target,
        )

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

    def result(self) -> FamilyRoots:
        """Return what was found."""
        return FamilyRoots(
            self.roots, self.status, self.error, self.attempts, self.lost, self.steps
        )
