"""Operations of chains on wheels against their length; counts alone, which do not depend on load.

    python -m benchmarks.wheeled [--save]

The mechanisms are those of tests/wheeled_chains.py.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

import axode as ax
from axode.derivatives.derivative_tables import TableName, derivative_graph
from axode.derivatives.step_adjoints import RateAdjoint
from axode.model.function_source import graph_tape
from axode.symbolic.functions import function_graph
from benchmarks.conditions import conditions
from tests import wheeled_chains as chains

RESULTS = Path(__file__).parent / "results"
FUNCTIONS = (
    "forward_dynamics",
    "inverse_dynamics",
    "mass_matrix",
    "joint_speeds",
    "multipliers",
    "energy",
)
FAMILIES: dict[str, tuple[Callable[[int], ax.Mechanism], tuple[int, ...]]] = {
    "trailers": (chains.trailers, (10, 20, 40, 80)),
    "tree of trailers": (chains.tree_of_trailers, (20, 40)),
    "snake": (chains.snake, (20, 40, 60)),
    "snake, axles under hinges, home bent by 0.4": (lambda n: chains.snake(n, lever=0.0), (20, 60)),
    "snake, axles under hinges, home bent by 1.0": (
        lambda n: chains.snake(n, bend=1.0, lever=0.0),
        (20, 60),
    ),
    "snake, wheels on every second link": (lambda n: chains.snake(n, 2), (8, 16, 32)),
    "row of four-bars": (chains.row_of_four_bars, (5, 10, 20)),
}


def measured(mechanism: ax.Mechanism) -> dict[str, float]:
    """Count operations of all functions; seconds of CPU that the derivation takes."""
    begun = time.process_time()
    e = mechanism.derive(self_check=False)
    found: dict[str, float] = {"freedoms": len(e.independent)}
    found["derive_seconds"] = time.process_time() - begun
    for name in FUNCTIONS:
        found[name] = graph_tape(function_graph(e, name, fixed=True)).n_operations
    if len(e.speeds) <= 45:
        table = derivative_graph(e, TableName("forward_dynamics"), fixed=True)
        found["derivatives"] = graph_tape(table).n_operations
        found["adjoint"] = graph_tape(RateAdjoint(e).graph(fixed=True)).n_operations
    return found


def main() -> None:
    """Count, show and save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--save", action="store_true", help="to benchmarks/results")
    options = parser.parse_args()
    console = Console(width=160)
    record: dict[str, object] = {"conditions": conditions()}
    shown = Table("family", "size", "freedoms", "derive s", *FUNCTIONS, "derivatives", "adjoint")
    for family, (build, sizes) in FAMILIES.items():
        rows = []
        for size in sizes:
            row = {"size": size, **measured(build(size))}
            rows.append(row)
            cells = [str(row.get(name, "")) for name in (*FUNCTIONS, "derivatives", "adjoint")]
            first = [family, str(size), str(row["freedoms"]), f"{row['derive_seconds']:.2f}"]
            shown.add_row(*first, *cells)
        record[family] = rows
    console.print(shown)
    if options.save:
        date = str(record["conditions"]["date"])[:10]  # type: ignore[index]
        path = RESULTS / f"{date}-wheeled-chains.json"
        path.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
