"""Rovers that slide, beside MuJoCo: steps per second of one core, and creep on a slope.

    python -m benchmarks.contacts [--repeat 5] [--save]

The same four-wheeled rover, rigid and on struts, in steps of 1 ms: Axode's steps through contacts
in a batch on one thread, and `mj_step` with its default solver. Times are those of the processor.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import mujoco
import numpy as np
from rich.console import Console
from rich.table import Table

import axode as ax
from benchmarks.conditions import conditions

RESULTS = Path(__file__).parent / "results"
STEP, SECONDS, RUNS = 1e-3, 1.0, 512
SLOPE, FRICTION, G = 0.2, 0.8, 9.81
PLACES = ((0.25, 0.2), (0.25, -0.2), (-0.25, 0.2), (-0.25, -0.2))
STIFFNESS, DAMPING, BRAKE = 4000.0, 300.0, 30.0


def rover(sprung: bool, slope: float = 0.0, brake: float = 0.0) -> ax.Model:
    """A rover on four wheels; x leads down the slope."""
    m = ax.Mechanism("rover", gravity=(G * np.sin(slope), 0.0, -G * np.cos(slope)))
    base = m.add_body("base", mass=20.0, inertia=(0.5, 0.9, 1.1))
    m.add_joint("base", ax.Floating(), parent=m.ground, child=base)
    for k, (x, y) in enumerate(PLACES):
        on, at = base, (x, y, 0.0)
        if sprung:
            on, at = m.add_body(f"hub{k}", mass=0.5, inertia=(1e-3, 1e-3, 1e-3)), (0.0, 0.0, 0.0)
            strut = f"strut{k}"
            m.add_joint(strut, ax.Prismatic("z"), parent=base, child=on, at=(x, y, 0.0))
            m.add_spring(f"spring{k}", strut, stiffness=STIFFNESS)
            m.add_damper(f"damper{k}", strut, coefficient=DAMPING)
        m.add_wheel(f"wheel{k}", ax.Rolling(0.1, friction=FRICTION), on=on, at=at, mass=1.2)
        if brake:
            m.change_joint(f"wheel{k}", friction=brake)
    m.set_home({"base.z": 0.1})
    return m.derive().compile()


def document(sprung: bool, slope: float = 0.0, *, parked: bool = False) -> str:
    """The same for MuJoCo, on cylinders; wheels of a parked one do not turn at all."""
    wheels = ""
    for x, y in PLACES:
        turn = "" if parked else '<joint type="hinge" axis="0 1 0"/>'
        shape = (
            f'<geom type="cylinder" size="0.1 0.01" zaxis="0 1 0" friction="{FRICTION} 0 0"/>'
            '<inertial pos="0 0 0" mass="1.2" diaginertia="0.003 0.006 0.003"/>'
        )
        wheel = f'<body pos="{{0}}">{turn}{shape}</body>'
        if not sprung:
            wheels += wheel.format(f"{x} {y} 0")
            continue
        wheels += (
            f'<body pos="{x} {y} 0"><joint type="slide" axis="0 0 1" stiffness="{STIFFNESS}" '
            f'damping="{DAMPING}"/><inertial pos="0 0 0" mass="0.5" '
            f'diaginertia="0.001 0.001 0.001"/>{wheel.format("0 0 0")}</body>'
        )
    gravity = f"{G * np.sin(slope)} 0 {-G * np.cos(slope)}"
    return (
        f'<mujoco><option timestep="{STEP}" gravity="{gravity}" cone="elliptic" '
        'integrator="implicitfast"/><worldbody>'
        f'<geom type="plane" size="50 50 1" friction="{FRICTION} 0 0"/>'
        '<body pos="0 0 0.1"><freejoint/>'
        '<inertial pos="0 0 0" mass="20" diaginertia="0.5 0.9 1.1"/>'
        f"{wheels}</body></worldbody></mujoco>"
    )


def cpu(run: Callable[[], object], repeat: int) -> float:
    """Median seconds of the processor."""
    run()
    times = []
    for _ in range(repeat):
        began = time.process_time()
        run()
        times.append(time.process_time() - began)
    return statistics.median(times)


def speeds(sprung: bool, repeat: int) -> dict[str, float]:
    """Steps per second of both, from the same random speeds."""
    rng, steps = np.random.default_rng(0), round(SECONDS / STEP)
    vx, vy, wz = rng.normal(size=(3, RUNS))
    model = rover(sprung)
    start = {"base.vx": vx, "base.vy": vy, "base.wz": wz}

    def ours() -> ax.Trajectory:
        options = {"step": STEP, "save_every": SECONDS, "threads": 1}
        return ax.simulate(model, SECONDS, start=start, **options)

    finished = sum(status == "finished" for status in ours().statuses)
    theirs = mujoco.MjModel.from_xml_string(document(sprung))
    data = mujoco.MjData(theirs)

    def peer() -> None:
        for k in range(4):
            mujoco.mj_resetData(theirs, data)
            data.qvel[:2], data.qvel[5] = (vx[k], vy[k]), wz[k]
            mujoco.mj_step(theirs, data, steps)

    axode, other = RUNS * steps / cpu(ours, repeat), 4 * steps / cpu(peer, repeat)
    return {"axode": axode, "mujoco": other, "ratio": axode / other, "finished": finished / RUNS}


def creep(sprung: bool) -> dict[str, float]:
    """How far a parked rover moves in ten seconds on a slope, once it has settled [m]."""
    model = rover(sprung, SLOPE, BRAKE)
    run = ax.simulate(model, 20.0, step=STEP, save_every=10.0)
    theirs = mujoco.MjModel.from_xml_string(document(sprung, SLOPE, parked=True))
    data = mujoco.MjData(theirs)
    steps = round(10.0 / STEP)
    mujoco.mj_step(theirs, data, steps)
    before = float(data.qpos[0])
    mujoco.mj_step(theirs, data, steps)
    x = run["base.x"]
    return {"axode_creep": float(x[-1] - x[1]), "mujoco_creep": float(data.qpos[0]) - before}


def main() -> None:
    """Measure, show and save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--save", action="store_true", help="to benchmarks/results")
    options = parser.parse_args()
    record: dict[str, object] = {"conditions": conditions(), "step": STEP, "runs": RUNS}
    columns = ("axode", "mujoco", "ratio", "finished", "axode_creep", "mujoco_creep")
    shown = Table("rover", *columns, title="steps per second and core at 1 ms; creep in 10 s [m]")
    for name, sprung in (("rigid", False), ("on struts", True)):
        row = speeds(sprung, options.repeat) | creep(sprung)
        record[name] = row
        shown.add_row(name, *(f"{row[c]:.3g}" for c in columns))
    Console(width=140).print(shown)
    if options.save:
        date = str(record["conditions"]["date"])[:10]  # type: ignore[index]
        path = RESULTS / f"{date}-contacts.json"
        path.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
