"""Exported C on small processors: instructions, stack, code, and what single precision costs.

    python -m benchmarks.embedded [--out results.json]

Needs arm-none-eabi-gcc with newlib, qemu-system-arm, aarch64-linux-gnu-gcc and qemu-aarch64. Every
project passes its self-test on this machine, on aarch64 and on a Cortex-M4F, in double and in
single precision. Instructions are counted by the emulator (`cortex_m/count.h`), they are not
cycles; a double is computed in software there.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import re
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import axode as ax
from axode.codegen.tape.rounding_bounds import rounding_bounds
from axode.exports.c_project import STATES, measure_rounding
from axode.exports.sample_states import sample_arguments
from axode.model.model_parts import function_tape
from benchmarks import mechanisms
from benchmarks.conditions import conditions
from benchmarks.cortex_m.board import ARM, costs, run_on_aarch64, run_on_board

FUNCTIONS = ["forward_dynamics", "inverse_dynamics"]
PRECISIONS = {"float64": ctypes.c_double, "float32": ctypes.c_float}
STEP, MOMENTS = 1e-3, (0.3, 1.0)  # [s] of the motion in both precisions, and when it is compared


def _platform() -> ax.Model:
    mechanism = mechanisms.platform()
    equations = mechanism.derive(independent=mechanisms.platform_twist())
    return equations.compile(parameters="fixed")


def _gallery(name: str) -> Callable[[], ax.Model]:
    return lambda: ax.gallery.build(name).derive().compile(parameters="fixed")


CASES: dict[str, Callable[[], ax.Model]] = {
    **{name: _gallery(name) for name in ("unicycle", "four_bar", "wheeled_pendulum")},
    "six_ups": _platform,
    "six_legged_platform": _gallery("six_legged_platform"),
}
ROUNDED = (
    *("unicycle", "caster_robot", "wheeled_pendulum", "rolling_disk", "snakeboard", "ballbot"),
    *("four_bar", "five_bar", "planar_3rrr", "delta_robot", "platform_3rps", "five_axis_arm"),
    *("seven_axis_arm", "mobile_manipulator", "flight_simulator", "six_legged_platform"),
)


def measure_project(model: ax.Model, name: str, precision: str, place: Path) -> dict[str, Any]:
    """Export a project, run its self-test everywhere, and count what it takes on the board."""
    folder = place / name
    model.export(f"{folder}/", FUNCTIONS, precision=precision)
    test = folder / "tests" / "self_test.c"
    largest = {
        "here": _largest(_run_here(folder)),
        "aarch64": _largest(run_on_aarch64(folder)),
        "cortex_m4f": _largest(run_on_board(folder, [test], "self_test")),
    }
    found = costs(folder, model, FUNCTIONS, precision)
    operations = {f: model.operations(f) for f in FUNCTIONS}
    return {
        "mechanism": name,
        "precision": precision,
        "operations": operations,
        "costs": {function: asdict(cost) for function, cost in found.items()},
        "largest_error_of_bound": largest,
    }


def _run_here(folder: Path) -> str:
    sources = [*(folder / "src").glob("*.c"), folder / "tests" / "self_test.c"]
    command = ["cc", "-std=c99", "-O2", f"-I{folder / 'include'}", *sources]
    subprocess.run([*command, "-o", folder / "here", "-lm"], check=True)
    return subprocess.run([folder / "here"], capture_output=True, text=True, check=True).stdout


def _largest(output: str) -> float:
    """Largest error of a self-test as a part of what it accepts."""
    return max(int(part) for part in re.findall(r"largest error (\d+) %", output)) / 100


def measure_motion(model: ax.Model, name: str, place: Path) -> list[float]:
    """Largest differences of a free motion in single precision, by the largest entry."""
    found = {}
    for precision, number in PRECISIONS.items():
        folder = place / precision / name
        library = folder / "steps.so"
        command = ["cc", "-std=c99", "-O1", "-shared", "-fPIC", f"-I{folder / 'include'}"]
        source = folder / "src" / f"{name}_step.c"
        subprocess.run([*command, source, "-o", library, "-lm"], check=True)
        step = getattr(ctypes.CDLL(str(library)), f"{name}_step")
        q, nu = np.array(model.home, number), np.full(len(model.independent), 0.1, number)
        u = np.zeros(max(1, len(model.inputs)), number)
        passed = [ctypes.c_void_p(array.ctypes.data) for array in (q, nu, u)]
        states = []
        for _ in range(round(MOMENTS[-1] / STEP)):
            if step(*passed, number(STEP)):
                raise RuntimeError(f"a step of {name} fails in {precision}")
            states.append(np.concatenate([q, nu]).astype(float))
        found[precision] = [states[round(moment / STEP) - 1] for moment in MOMENTS]
    pairs = zip(found["float64"], found["float32"], strict=True)
    return [float(np.abs(b - a).max() / np.abs(a).max()) for a, b in pairs]


def measure_errors(name: str) -> list[dict[str, Any]]:
    """Bounds and errors of single precision of a mechanism of the gallery."""
    model = _gallery(name)()
    given = sample_arguments(model, STATES)
    rows = []
    for function in FUNCTIONS:
        tape = function_tape(model, function)
        if not tape.results.size:
            continue
        samples = rounding_bounds(tape, [given[port.name] for port in tape.inputs], "float32")
        rounding = asdict(measure_rounding(tape, samples, "float32"))
        rows.append({"mechanism": name, "function": function, **rounding})
    return rows


def show(console: Console, found: Mapping[str, Any]) -> None:
    """Print two tables."""
    table = Table("mechanism", "precision", "function", "instructions", "stack", "code", title="")
    for row in found["projects"]:
        for function, cost in row["costs"].items():
            numbers = [str(cost[k]) for k in ("instructions", "stack", "code")]
            table.add_row(row["mechanism"], row["precision"], function, *numbers)
    console.print(table)
    table = Table("mechanism", "function", "found", "99 %", "bound", "99 %", title="float32")
    for row in found["errors"]:
        keys = ("error", "usual_error", "bound", "usual_bound")
        table.add_row(row["mechanism"], row["function"], *(f"{row[k]:.1e}" for k in keys))
    console.print(table)
    for name, values in found["motions"].items():
        console.print(name, *(f"{v:.1e} after {t} s" for v, t in zip(values, MOMENTS, strict=True)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="file for the numbers, .json")
    given = parser.parse_args()
    projects, motions = [], {}
    for name, build in CASES.items():
        model = build()
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            for precision in PRECISIONS:
                projects.append(measure_project(model, name, precision, place / precision))
            motions[name] = measure_motion(model, name, place)
    version = subprocess.run([ARM, "--version"], capture_output=True, text=True, check=True).stdout
    found = {
        "conditions": conditions() | {"compiler": version.splitlines()[0]},
        "projects": projects,
        "motions": motions,
        "errors": [row for name in ROUNDED for row in measure_errors(name)],
    }
    show(Console(width=110), found)
    if given.out:
        given.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
