"""Section `loading`: robots of example-robot-data from their URDF files, with every check, against
Pinocchio's reader; and the same robots from TOML files."""

from __future__ import annotations

import importlib.metadata
import tempfile
import time
import warnings
from pathlib import Path

from rich.console import Console
from rich.table import Table

import axode as ax
from axode.mechanism.topology import tree_order
from axode.mechanism.values.expressions import numeric
from benchmarks.timing import in_turn, repeated

ROBOTS = {
    "UR5": "ur_description/urdf/ur5_robot.urdf",
    "Panda": "panda_description/urdf/panda.urdf",
    "ANYmal": "anymal_b_simple_description/robots/anymal.urdf",
    "Talos": "talos_data/robots/talos_full_v2.urdf",
}
SAME_MASS = 1e-9  # relative, of all that moves


def loading(console: Console, repeat: int) -> dict[str, object]:
    """Print and return the CPU time of reading each robot [s]."""
    import pinocchio

    found: dict[str, object] = {}
    table = Table(title="one robot from its file: median (least..most), CPU time [ms]")
    for column in ("robot", "links", "Axode, URDF", "Axode, TOML", "Pinocchio, URDF"):
        table.add_column(column, justify="left" if column == "robot" else "right")
    for name, file in ROBOTS.items():
        path = _folder() / file
        with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
            warnings.simplefilter("ignore")  # of the files' deviations
            robot = ax.load(path)
            _compare(name, robot, pinocchio.buildModelFromUrdf(str(path)))
            written = Path(folder) / "robot.toml"
            robot.save(written)
            contestants = {
                "urdf": repeated(lambda p=path: ax.load(p), clock=time.process_time),
                "toml": repeated(lambda p=written: ax.load(p), clock=time.process_time),
                "pinocchio": repeated(
                    lambda p=str(path): pinocchio.buildModelFromUrdf(p), clock=time.process_time
                ),
            }
            times = in_turn(contestants, repeat)
        shown = [times[kind].text(digits=2) for kind in contestants]
        table.add_row(name, str(len(robot.bodies)), *shown)
        found[name] = {
            "links": len(robot.bodies),
            **{kind: list(times[kind].seconds) for kind in contestants},
        }
    console.print(table)
    return {"robots": found}


def _compare(name: str, robot: ax.Mechanism, theirs: object) -> None:
    """Compare the mass of all bodies that move, and the number of speeds."""
    moving = {robot.ground.name: False}
    for joint in tree_order(robot):
        moving[joint.child] = moving[joint.parent] or bool(joint.speeds)
    ours = sum(numeric(body.mass) for body in robot.bodies if moving[body.name])
    mass = sum(inertia.mass for inertia in list(theirs.inertias)[1:])
    assert abs(ours - mass) <= SAME_MASS * mass, f"{name}: {ours} kg move, {mass} in Pinocchio"
    speeds = sum(len(joint.speeds) for joint in robot.connections)
    assert speeds == theirs.nv, f"{name}: {speeds} speeds, {theirs.nv} in Pinocchio"


def _folder() -> Path:
    """Folder of the robots of example-robot-data."""
    files = importlib.metadata.files("example-robot-data") or []
    found = [file for file in files if file.match("robots/panda_description/urdf/panda.urdf")]
    return Path(found[0].locate()).parents[2]
