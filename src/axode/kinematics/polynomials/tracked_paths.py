"""Tracking many paths of a family at once, on the CPU or on a GPU."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.codegen.targets.cpu_rollout import Rollout
from axode.kinematics.polynomials.path_tracker import PathStatus, tracking_program
from axode.kinematics.polynomials.polynomial_family import ComplexArray, PolynomialFamily

Array = npt.NDArray[np.float64]
PLACES = ("cpu", "cuda")  # where paths can be tracked
MAX_TRACKERS = 32  # compiled trackers that are kept, those that were used last
PATHS_PER_PART = 1 << 13  # between which Ctrl-C is answered
_TRACKERS: OrderedDict[tuple[str, str], Any] = OrderedDict()
_LOCK = threading.Lock()


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
    made: Array = np.ascontiguousarray(values, dtype=np.complex128).view(np.float64)
    return made
