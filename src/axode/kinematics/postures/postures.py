"""Postures: all real solutions of a kinematic problem, as states of the mechanism."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument
from axode.model.conditions import Conditions
from axode.model.model import Model
from axode.model.model_parts import facts_of
from axode.model.state import State
from axode.numerics.rotations import to_angles
from axode.stages import call_stage

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class SolutionCounts:
    """What became of all solutions of every target, (targets,) each.

    Attributes:
        paths: Solutions of a general robot of the same structure, over the complex numbers.
        finite: Regular solutions that this one has, complex ones included.
        singular: Solutions that coincide with others, or belong to a continuum of solutions.
        infinite: Solutions that have gone to infinity.
        lost: Solutions that were not followed to their end; there should be none.
        unreachable: Real solutions for the output that the joints of a leg cannot take.
    """

    paths: int
    finite: Indices
    singular: Indices
    infinite: Indices
    lost: Indices
    unreachable: Indices

    def times(self, factor: int) -> SolutionCounts:
        """Count every solution as many times as the joints can take it."""
        numbers = (self.finite, self.singular, self.infinite, self.lost, self.unreachable)
        return SolutionCounts(self.paths * factor, *(factor * count for count in numbers))

    def at(self, target: int) -> SolutionCounts:
        """Select the counts of one target."""
        one = slice(target, target + 1)
        return SolutionCounts(
            self.paths,
            self.finite[one],
            self.singular[one],
            self.infinite[one],
            self.lost[one],
            self.unreachable[one],
        )


@dataclass(frozen=True, eq=False)
class Postures:
    """All real postures of a robot, for one set of given values or for a batch of them.

    A label such as "+2" names an assembly mode: the sign of the determinant of the direct Jacobian,
    which changes only where the robot is singular, and a number by the distance from home. Postures
    are in the order of targets, signs and numbers. `postures[k]` is a `State`, which `assemble` and
    `simulate` take as a start.

    Attributes:
        model: Model of the robot.
        output: Name of the output body.
        given: What was given, by name, (targets,) or (targets, 4, 4) each.
        shape: Shape of the batch; () for one target.
        q: Coordinates, (postures, size), in the order of `model.coordinates`.
        poses: Poses of the output body, homogeneous matrices: (postures, 4, 4).
        residual: Largest residual of loops, or of the given pose [m or rad], (postures,).
        certified: Whether a proof by interval arithmetic found exactly one solution there.
        determinant: Sign of the direct Jacobian's determinant, (postures,).
        labels: Names of the assembly modes.
        target: Which target each belongs to, counted along the flat batch.
        counts: What became of the solutions that are not real.
        conditions: Parameters, one set or one per target.
    """

    model: Model
    output: str
    given: Mapping[str, Array]
    shape: tuple[int, ...]
    q: Array
    poses: Array
    residual: Array
    certified: Mask
    determinant: Array
    labels: tuple[str, ...]
    target: Indices
    counts: SolutionCounts
    conditions: Conditions

    def __len__(self) -> int:
        return len(self.q)

    def __getitem__(self, posture: int | str) -> State:
        """Return the state of a posture at rest, by number or label."""
        if isinstance(posture, str):
            if posture not in self.labels:
                raise InvalidArgument(
                    f"no posture has the label '{posture}'; there are {', '.join(self.labels)}"
                )
            posture = self.labels.index(posture)
        q, conditions = self.q[posture], self.conditions.at(self.target[posture])
        nu = np.zeros(len(self.model.independent))
        return State(q.copy(), nu, float(self.residual[posture]), self.model, conditions)

    def __iter__(self) -> Iterator[State]:
        return (self[k] for k in range(len(self)))

    @property
    def number(self) -> Any:
        """Number of real postures: of one target, or of each."""
        counted = np.bincount(self.target, minlength=len(self.counts.finite)).reshape(self.shape)
        return counted if self.shape else int(counted)

    @property
    def states(self) -> State:
        """All postures as one batch of states at rest."""
        nu = np.zeros((len(self), len(self.model.independent)))
        worst = float(self.residual.max(initial=0.0))
        return State(self.q, nu, worst, self.model, self.conditions.at(self.target))

    @cached_property
    def nearest(self) -> Any:
        """Number of the posture nearest to home: of one target, or of each; -1 if there is none."""
        first = np.full(len(self.counts.finite), -1)
        ones = [k for k, label in enumerate(self.labels) if label[1:] == "1"]
        distance = home_distance(self.model, self.output, self.poses, self.q)
        for k in sorted(ones, key=lambda k: -distance[k]):
            first[self.target[k]] = k
        return first.reshape(self.shape) if self.shape else int(first[0])

    def of(self, *target: int) -> Postures:
        """Select the postures of one target of a batch, by its place."""
        flat = int(np.ravel_multi_index(target, self.shape)) if self.shape else 0
        rows = np.flatnonzero(self.target == flat)
        return Postures(
            self.model,
            self.output,
            {name: values[flat : flat + 1] for name, values in self.given.items()},
            (),
            self.q[rows],
            self.poses[rows],
            self.residual[rows],
            self.certified[rows],
            self.determinant[rows],
            tuple(self.labels[row] for row in rows),
            np.zeros(len(rows), dtype=np.intp),
            self.counts.at(flat),
            self.conditions.at(flat),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers by name, as lists; `target` counts along the flat batch."""
        counts = self.counts
        columns, rows = self._table()
        return {
            "solutions": counts.paths,
            "finite": counts.finite.tolist(),
            "singular": counts.singular.tolist(),
            "infinite": counts.infinite.tolist(),
            "lost": counts.lost.tolist(),
            "unreachable": counts.unreachable.tolist(),
            "postures": [
                {
                    "target": int(self.target[k]),
                    "mode": label,
                    **dict(zip(columns, rows[k].tolist(), strict=True)),
                    "residual": float(self.residual[k]),
                    "certified": bool(self.certified[k]),
                    "q": dict(zip(self.model.coordinates, self.q[k].tolist(), strict=True)),
                }
                for k, label in enumerate(self.labels)
            ],
        }

    def plot(self, *, size: str = "screen", save: str | PathLike[str] | None = None) -> Any:
        """Figure with a picture of every posture of one target, seen by one camera.

        Args:
            size: "screen", or for print "column" (3.5 in wide) or "page" (7.16 in).
            save: A file to write as well, .png, .svg or .pdf.

        Returns:
            The `matplotlib.figure.Figure`, which a notebook shows.

        Raises:
            InvalidArgument: for a batch, of which `of` selects a target, and if there is none.
            FileError: if the file cannot be written.
            NotApplicable: if matplotlib, from the extra `plot`, is not installed.
        """
        return call_stage("plot_postures", self, size=size, save=save)

    def to_pandas(self) -> Any:
        """Return a table with a row per posture (needs the `pandas` extra)."""
        import pandas as pd

        columns = {"target": self.target, "mode": self.labels}
        columns |= {f"{self.output}.{axis}": self.poses[:, k, 3] for k, axis in enumerate("xyz")}
        columns |= dict(zip(self.model.coordinates, self.q.T, strict=True))
        columns |= {"residual": self.residual, "certified": self.certified}
        return pd.DataFrame(columns)

    def __repr__(self) -> str:
        if self.shape:
            number = self.number
            least, most = (number.min(), number.max()) if number.size else (0, 0)
            each = f"{least} to {most}" if least < most else f"{most}"
            return (
                f"Postures of '{self.model.name}': {len(self)} real postures of {number.size} "
                f"targets, {each} per target"
            )
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        """Lines that show the postures of one target."""
        counts = self.counts
        plural = "posture" if len(self) == 1 else "postures"
        yield (
            f"'{self.model.name}': {len(self)} real {plural}, {int(counts.finite[0])} over the "
            f"complex numbers (of {counts.paths} in general)"
        )
        others = {
            "singular": counts.singular,
            "at infinity": counts.infinite,
            "lost": counts.lost,
            "out of reach of a leg": counts.unreachable,
        }
        listed = [f"{int(count[0])} {what}" for what, count in others.items() if count[0]]
        if listed:
            yield f"  {', '.join(listed)}"
        if not len(self):
            return
        columns, rows = self._table()
        yield "  mode " + " ".join(f"{name:>10}" for name in columns)
        for k, (label, row) in enumerate(zip(self.labels, rows, strict=True)):
            marks = ["nearest home"] if k == self.nearest else []
            marks += [] if self.certified[k] or not self.certified.any() else ["not certified"]
            end = f"   {', '.join(marks)}" if marks else ""
            yield f"  {label:>4} " + " ".join(f"{value:z10.5f}" for value in row) + end

    def _table(self) -> tuple[list[str], Array]:
        """Return the columns of a table: the output's pose, or all coordinates if it is given."""
        if "pose" in self.given:
            return list(self.model.coordinates), self.q
        angles = to_angles(self.poses[:, :3, :3])
        return ["x", "y", "z", "roll", "pitch", "yaw"], np.hstack([self.poses[:, :3, 3], angles])


def home_distance(model: Model, output: str, poses: Array, q: Array) -> Array:
    """Distance of postures from home: of the output body, and a little of all coordinates."""
    home = model.poses(model.home)[model.bodies.index(output)]
    shift = np.linalg.norm(poses[:, :3, 3] - home[:3, 3], axis=1) / facts_of(model).length
    cosine = (np.einsum("nij,ij->n", poses[:, :3, :3], home[:3, :3]) - 1) / 2
    turn = np.arccos(np.clip(cosine, -1.0, 1.0))
    rest = np.linalg.norm(q - model.home, axis=1)
    return np.asarray(np.hypot(shift, turn) + 1e-6 * rest)


def label_modes(
    determinant: Array, distance: Array, target: Indices
) -> tuple[Indices, tuple[str, ...]]:
    """Order postures by target, sign and distance, and name their modes."""
    order = np.lexsort((distance, -np.sign(determinant), target))
    labels: list[str] = []
    counted: dict[tuple[int, bool], int] = {}
    for k in order:
        key = int(target[k]), bool(determinant[k] < 0)
        counted[key] = counted.get(key, 0) + 1
        labels.append(f"{'-' if key[1] else '+'}{counted[key]}")
    return order, tuple(labels)
