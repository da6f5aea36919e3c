"""`axode design`: values of a description's parameters that serve a task best."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from axode.cli.model_sources import Robot
from axode.cli.options import AsJson, Texts, ranges, words
from axode.cli.output import check_writable, print_json

if TYPE_CHECKING:
    from axode.design.study import Study


@dataclass(frozen=True)
class Task:
    """What a robot is designed for."""

    poses: Texts = None
    limits: Texts = None
    margins: Texts = None
    components: Texts = None
    length: float | None = None

    def study(self, robot: Robot, vary: Texts) -> Study:
        """Set up the choice of parameters."""
        from axode.design.study import Study

        made = robot.kinematics()
        axes: dict[str, Any] = ranges("--poses", self.poses, (1, 3))
        grid = np.meshgrid(*axes.values(), indexing="ij")
        return Study(
            made,
            ranges("--vary", vary, (2,)),
            dict(zip(axes, grid, strict=True)),
            limits=ranges("--limits", self.limits, (2,)),
            margins=ranges("--margins", self.margins, (1,)),
            components=words(self.components) or None,
            length=self.length,
        )


@dataclass(frozen=True)
class Sampling:
    """How many designs are looked at."""

    starts: int = 6
    samples: int = 64
    seed: int = 0


def design(
    *,
    robot: Robot,
    vary: Texts = None,
    task: Task,
    cost: str = "dexterity",
    sampling: Sampling,
    out: Path | None = None,
    as_json: AsJson = False,
) -> None:
    """Find the geometry of a robot that serves the poses of a task best.

    axode design planar_3rrr --vary l1=0.2:0.5 --poses x=-0.05:0.05:3

    axode design planar_3rrr --vary l1=0.2:0.5,l2=0.2:0.5 --out best.toml

    Options:
        vary NAME=LOW:HIGH: Parameters to choose, and their bounds.
        poses NAME=LOW:HIGH:COUNT: Poses of the task, all combinations, NAME=VALUE for one value;
            home by default.
        limits NAME=LOW:HIGH: Limits of coordinates and measures at all poses; 'l_*' stands for all
            names that begin so.
        margins NAME=VALUE: Smallest margins from singularities: serial, parallel, mobility or
            passive.
        cost dexterity|force|stiffness|workspace: What is made best: the smallest dexterity or
            stiffness, the largest force of the motors under a unit load, the part of the poses that
            is reached.
        components NAME,NAME: Velocities of the output that count: wx, wy, wz, vx, vy, vz.
        length METRES: Length by which turning compares with moving; the robot's size by default.
        starts COUNT: How many designs are followed downhill.
        samples COUNT: How many designs are drawn from the bounds.
        seed NUMBER: Seed of the draws.
        out FILE: File for the description with the values that were found (.toml).
    """
    check_writable(out, (".toml",))
    if not vary:
        raise typer.BadParameter("give at least one, NAME=LOW:HIGH", param_hint="--vary")
    best = task.study(robot, vary).optimize(cost, **vars(sampling))  # type: ignore[arg-type]
    if out is not None:
        best.mechanism.save(out)
    if as_json:
        print_json(best.to_dict())
    else:
        print(best)
