"""Section `growth`: what direct dynamics costs against size, for chains and platforms."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from unittest import mock

from rich.console import Console
from rich.table import Table

import axode as ax
from axode.codegen.targets.cpu import CompiledFunction
from axode.model.function_source import graph_tape
from axode.symbolic.functions import function_graph
from benchmarks import mechanisms
from benchmarks.contestants import SCALAR, SIMD, Entrants, Subject, add_axode, add_pinocchio
from benchmarks.correctness import check_with_pinocchio
from benchmarks.machine import rival, times_of
from benchmarks.states import random_states
from benchmarks.timing import Times, in_turn, timed, turns

CHAINS = (2, 4, 8, 16, 32, 64)
PLATFORMS = tuple(range(3, 13))
STATES = 1024


@dataclass(frozen=True)
class Family:
    """Mechanisms of one kind, by size."""

    name: str
    build: Callable[[int], ax.Mechanism]
    sizes: Sequence[int]
    independent: Sequence[str] | None = None


FAMILIES = (
    Family("chain", mechanisms.chain, CHAINS),
    Family("platform", mechanisms.platform, PLATFORMS, mechanisms.platform_twist()),
)


def growth(console: Console, repeat: int, native: bool) -> dict[str, object]:
    """Measure everything and show it; raises AssertionError where a peer disagrees."""
    found: dict[str, object] = {}
    for family in FAMILIES:
        rows = []
        for size in family.sizes:
            console.print(f"  {family.name} of {size} ...", style="dim")
            rows.append(_measure(family, size, repeat, native))
        found[family.name] = rows
        console.print(_table(family, rows))
    return found


def _measure(family: Family, size: int, repeat: int, native: bool) -> dict[str, object]:
    mechanism = family.build(size)

    def turn() -> dict[str, list[float]]:
        spent, equations = timed(lambda: mechanism.derive(independent=family.independent))
        more, graph = timed(lambda: function_graph(equations, "forward_dynamics", fixed=True))
        tape = graph_tape(graph)
        return {
            "derive": [spent + more],
            "compile_scalar": [_compile_seconds(tape, 1)],
            "compile_simd": [_compile_seconds(tape, None)],
        }

    built = turns(turn, min(repeat, 3))
    equations = mechanism.derive(independent=family.independent)
    model = equations.compile(parameters="fixed")
    error = check_with_pinocchio(mechanism, model)
    states = random_states(mechanism, model, STATES)
    subject = Subject(mechanism, equations, "forward_dynamics", states)
    entrants = Entrants()
    add_axode(entrants, subject, all_lanes=False)
    add_pinocchio(entrants, subject, native)
    times = in_turn(entrants.contestants, repeat)
    return {
        "size": size,
        "operations": subject.tape.n_operations,
        "error": error,
        **{name: list(t.seconds) for name, t in built.items()},
        "seconds": {name: list(t.seconds) for name, t in times.items()},
        "remarks": entrants.remarks,
        "skipped": entrants.skipped,
    }


def _compile_seconds(tape: object, lanes: int | None) -> float:
    """Compiled afresh, into a cache that is thrown away."""
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict("os.environ", AXODE_CACHE=folder):
        function = CompiledFunction(tape, lanes=lanes)
        return timed(lambda: function.prepare(single=lanes == 1, batch=lanes != 1))[0]


def _table(family: Family, rows: Sequence[dict]) -> Table:
    shown = Table(
        title=f"Direct dynamics of a {family.name} against its size: median (least..most)"
    )
    for column in (
        "size",
        "ops",
        "derive ms",
        "compile scalar ms",
        "compile SIMD ms",
        "scalar ns",
        "SIMD ns",
        "Pinocchio ns",
        "to scalar",
        "to SIMD",
    ):
        shown.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        scalar, simd = times_of(row, SCALAR), times_of(row, SIMD)
        name = rival(row)
        peer = times_of(row, name)
        steps = [
            f"{1e3 * Times(tuple(row[key])).median:.0f}"
            for key in ("derive", "compile_scalar", "compile_simd")
        ]
        shown.add_row(
            str(row["size"]),
            str(row["operations"]),
            *steps,
            scalar.text("ns"),
            simd.text("ns"),
            f"{1e9 * peer.median:.0f}",
            f"{peer.median / scalar.median:.1f}",
            f"{peer.median / simd.median:.1f}",
        )
    names = ", ".join(dict.fromkeys(filter(None, map(rival, rows))))
    shown.caption = f"Pinocchio: the fastest of what was measured ({names})"
    return shown
