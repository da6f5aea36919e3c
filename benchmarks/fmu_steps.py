"""Steps per second of exported FMUs, measured by a program in C that loads them as tools do.

    python -m benchmarks.fmu_steps [steps]

Needs a C compiler. The steps are as long as the internal step, so that each is one step of the
classical Runge-Kutta method.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import axode as ax

LENGTH = 1e-4  # [s] of a step
CASES = {"wheeled_pendulum": {"theta3": 0.3}, "four_bar": {}, "unicycle": {"w": 1.0}}
PROGRAM = Path(__file__).parents[1] / "tests" / "targets" / "fmu_steps.c"


def count_steps(model: ax.Model, start: object, steps: int, folder: Path) -> tuple[float, float]:
    """Steps per second of a model, and its first state at the end."""
    path = folder / "robot.fmu"
    model.export(path, fmi="2.0", start=start, step=LENGTH)
    with zipfile.ZipFile(path) as archive:
        library = next(name for name in archive.namelist() if name.startswith("binaries/"))
        archive.extract(library, folder)
        text = archive.read("modelDescription.xml").decode()
    guid = re.search(r'guid="([^"]*)"', text)
    assert guid is not None
    program = folder / "fmu_steps"
    subprocess.run(["cc", "-O2", str(PROGRAM), "-o", str(program), "-ldl"], check=True)
    command = [str(program), str(folder / library), guid[1], str(steps), str(LENGTH)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    _, _, rate, value = done.stdout.split()
    return float(rate), float(value)


def main() -> None:
    """Print a line per model."""
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    for name, start in CASES.items():
        model = ax.gallery.build(name).derive().compile()
        with tempfile.TemporaryDirectory() as folder:
            rate, _ = count_steps(model, start, steps, Path(folder))
        print(f"{name:<20}{rate:.3g} doStep per second")


if __name__ == "__main__":
    main()
