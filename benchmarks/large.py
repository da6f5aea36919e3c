"""Section `large`: every function of large robots, from nothing to its first result.

    python -m benchmarks.large [--robots floating snake] [--sizes 30 50] [--without coriolis]

prints the same as JSON, for a comparison with another version. Seconds are processor time of one
process with an empty cache, so that other programs disturb little; `build` is the symbolic graph
and its tape on fresh equations, `compile` the machine code for single samples.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from typing import TypeVar
from unittest import mock

from rich.console import Console
from rich.table import Table

import axode as ax
from axode.codegen.targets.cpu import CompiledFunction
from axode.model.function_source import graph_tape
from axode.symbolic.functions import RECIPES, function_graph
from benchmarks.robots import ROBOTS

SIZES = (7, 30, 50, 75, 107)
# Every kind at two sizes, the plain floating robot at all of them.
COMPARED = (50, 107)
SHORTEST = 0.3  # [s] of a row of the table that is printed; the rest is in the file

T = TypeVar("T")


def large(console: Console) -> dict[str, object]:
    """Measure everything and show it."""
    found = []
    for kind in ROBOTS:
        for size in SIZES if kind == "floating" else COMPARED:
            console.print(f"  {kind}, {size} speeds ...", style="dim")
            found.append(measure(kind, size))
            console.print(_table(found[-1]))
    return {"robots": found}


def measure(kind: str, size: int, without: Sequence[str] = ()) -> dict[str, object]:
    """Seconds and operations of everything one robot can do."""
    mechanism = ROBOTS[kind](size)
    with mock.patch.dict("os.environ", AXODE_CACHE="off"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        calls: dict[str, float] = {}
        calls["derive"], equations = _spent(mechanism.derive)
        calls["print"], _ = _spent(lambda: str(equations))
        calls["compile"], model = _spent(equations.compile)
        zero = [0.0] * len(equations.independent)
        firsts: dict[str, Callable[[], object]] = {
            "inverse_dynamics": lambda: model.inverse_dynamics(model.home, zero, zero),
            "simulate": lambda: ax.simulate(model, 0.01),
        }
        for name, call in firsts.items():
            if name not in without:
                calls[f"first {name}"], _ = _spent(call)
        names = [name for name in RECIPES if name not in without]
        functions = {name: _function(mechanism, name) for name in names}
    return {
        "robot": kind,
        "size": size,
        "speeds": len(equations.speeds),
        "actuation": equations.actuation,
        "calls": calls,
        "functions": functions,
    }


def _function(mechanism: ax.Mechanism, name: str) -> dict[str, float]:
    equations = mechanism.derive()
    build, tape = _spent(lambda: graph_tape(function_graph(equations, name, fixed=False)))
    code, _ = _spent(lambda: CompiledFunction(tape).prepare(batch=False))
    return {"build": build, "compile": code, "operations": tape.n_operations}


def _spent(do: Callable[[], T]) -> tuple[float, T]:
    """Processor seconds of a call, and what it gives."""
    start = time.process_time()
    result = do()
    return round(time.process_time() - start, 3), result


def _table(found: dict) -> Table:
    shown = Table(
        title=f"{found['robot']}, {found['size']} independent speeds, {found['actuation']}: seconds"
    )
    shown.add_column("what", no_wrap=True)
    for column in ("build", "compile", "operations"):
        shown.add_column(column, justify="right", no_wrap=True)
    for name, seconds in found["calls"].items():
        shown.add_row(name, f"{seconds:.2f}", "", "")
    for name, f in found["functions"].items():
        if f["build"] + f["compile"] > SHORTEST:
            shown.add_row(name, f"{f['build']:.2f}", f"{f['compile']:.2f}", str(f["operations"]))
    return shown


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the measurements of some robots as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large", description=__doc__)
    parser.add_argument("--robots", nargs="*", default=["floating"], choices=list(ROBOTS))
    parser.add_argument("--sizes", nargs="*", type=int, default=list(SIZES))
    parser.add_argument("--without", nargs="*", default=[], help="functions to leave out")
    options = parser.parse_args(arguments)
    os.environ["AXODE_CACHE"] = "off"
    found = [measure(r, s, options.without) for r in options.robots for s in options.sizes]
    json.dump({"robots": found}, sys.stdout, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
