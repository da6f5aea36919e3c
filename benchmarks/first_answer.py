"""What a user waits for: a whole program in a new process, with an empty cache and once more.

    python -m benchmarks.first_answer           # all programs, as JSON with --json FILE
    python -m benchmarks.first_answer balancer  # one of them

Seconds of processor time of the process and of those that it starts, on one core. Python's own
compiled modules are there, as an installation leaves them.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from benchmarks.conditions import conditions

ROOT = Path(__file__).parent.parent
KINDS = ("cold", "second")  # with an empty cache, with the cache that this left behind

BALANCER = """
import axode as ax
bot = ax.Mechanism("balancer")
pole = bot.add_body("pole", mass=8.0, com=(0, 0, 0.4), inertia=(0.5, 0.4, 0.15))
bot.add_joint("base", ax.Floating(), parent=bot.ground, child=pole)
for side, y in (("left", 0.2), ("right", -0.2)):
    bot.add_wheel(side, ax.Rolling(radius=0.1), on=pole, at=(0, y, 0), mass=0.5, motor=True)

def balance(s):
    forward = 60 * s["pitch"] + 15 * s["pitch_rate"] + 15 * (s["surge"] - 0.6)
    return {"left.torque": forward, "right.torque": forward}

model = bot.derive().compile()
run = ax.simulate(model, 5.0, start={"pitch": 0.2}, input=balance)
print(run.final["surge"], run.energy_error)
"""
GALLERY = """
import axode as ax
import axode.gallery
model = axode.gallery.build("{name}").derive().compile()
run = ax.simulate(model, 0.5)
print(run.energy_error)
"""
LAW = """
import axode as ax
import axode.gallery
model = axode.gallery.build("{name}").derive().compile()
motor, angle = model.inputs[0], model.coordinates[0]

def hold(s):
    return {{motor: -2.0 * s[angle] - 0.5 * s["{measure}"]}}

run = ax.simulate(model, 0.5, input=hold)
print(run.energy_error)
"""
FILE = """
import axode as ax
model = ax.load({path!r}).derive().compile()
run = ax.simulate(model, 0.5)
print(run.energy_error)
"""
MODEL = """
import axode as ax
model = ax.load_model({path!r})
run = ax.simulate(model, 0.5)
print(run.energy_error)
"""


def programs() -> dict[str, str]:
    """Return the programs by name; a robot in a URDF file only where one is installed."""
    found = {
        "six_legged_platform": GALLERY.format(name="six_legged_platform"),
        "delta_robot": GALLERY.format(name="delta_robot"),
        "balancer": BALANCER,
        "six_legged_platform, law": LAW.format(name="six_legged_platform", measure="roll"),
    }
    try:
        files = distribution("example-robot-data").files or []
    except PackageNotFoundError:
        files = []
    for file in files:
        if file.name == "ur5_robot.urdf":
            found["ur5.urdf"] = FILE.format(path=str(file.locate().resolve()))
    return found


def seconds(program: str, cache: str, modules: str) -> float:
    """Return the processor seconds of a program in a new process.

    Args:
        program: Its source.
        cache: Folder of Axode's cache, or "off".
        modules: Folder of Python's compiled modules.
    """
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = os.environ | dict.fromkeys(names, "1")
    environment |= {"AXODE_CACHE": cache, "PYTHONPYCACHEPREFIX": modules}
    for name in ("PYTHONDONTWRITEBYTECODE", "AXODE_MODEL_CACHE"):
        environment.pop(name, None)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-P", "-c", program],
        cwd=ROOT,
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(program: str, repeat: int, modules: str) -> dict[str, float]:
    """Return the least seconds of a program, cold and in a second process."""
    found: dict[str, float] = {}
    for _ in range(repeat):
        with tempfile.TemporaryDirectory() as folder:
            for kind in KINDS:
                found[kind] = min(seconds(program, folder, modules), found.get(kind, 1e9))
    return found


def measure_files(names: Sequence[str], repeat: int, modules: str) -> dict[str, dict[str, float]]:
    """Return the same of gallery mechanisms that were saved as model files before."""
    found = {}
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / f"{name}.axm")
            save = f"model.save({path!r})"
            seconds(GALLERY.format(name=name).split("run =")[0] + save, "off", modules)
            found[f"{name}.axm"] = measure(MODEL.format(path=path), repeat, modules)
    return found


def main() -> None:
    """Measure, print a table, and write the seconds to a file if one is named."""
    known = programs()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="*", help=f"of {', '.join(known)}")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", help="file to write the seconds to")
    given = parser.parse_args()
    chosen = given.programs or [*known]
    with tempfile.TemporaryDirectory() as modules:
        found = {name: measure(known[name], given.repeat, modules) for name in chosen}
        if not given.programs:
            found |= measure_files(("six_legged_platform",), given.repeat, modules)
    for name, times in found.items():
        print(f"{name:26}", *(f"{kind} {times[kind]:6.2f} s" for kind in KINDS))
    if given.json:
        data = {"conditions": conditions(), "programs": found}
        Path(given.json).write_text(json.dumps(data, indent=1) + "\n")


if __name__ == "__main__":
    main()
