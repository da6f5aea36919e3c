"""`make bench`: is it right, and then how large and how fast.

    python -m benchmarks.run [derive] [machine] [derivatives] [from_python] [growth] [large]
                             [loading] [simulate] [stiff] [sweeps] [workspace]
                             [--repeat 7] [--native] [--save]

All sections unless some are named. Every mechanism is first compared with a peer at random states;
a disagreement stops the run. Then come the tables. See benchmarks/README.md for what the numbers
mean.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.conditions import conditions, load
from benchmarks.timing import QUIET

RESULTS = Path(__file__).parent / "results"
WIDTH = 160  # of the tables, where the output is not a terminal
SECTIONS = (
    "derive",
    "machine",
    "derivatives",
    "from_python",
    "growth",
    "large",
    "loading",
    "simulate",
    "stiff",
    "sweeps",
    "workspace",
)


def section(name: str, options: argparse.Namespace) -> Callable[[Console], dict[str, object]]:
    """What a section does; imported when it is wanted, as peers may be missing."""
    if name == "derive":
        from benchmarks.derive import derive

        return lambda console: derive(console, options.repeat)
    if name == "machine":
        from benchmarks.machine import machine

        return lambda console: machine(console, options.repeat, options.native)
    if name == "derivatives":
        from benchmarks.derivatives import derivatives

        return lambda console: derivatives(console, options.repeat, options.native)
    if name == "from_python":
        from benchmarks.from_python import from_python

        return lambda console: from_python(console, options.repeat)
    if name == "growth":
        from benchmarks.growth import growth

        return lambda console: growth(console, options.repeat, options.native)
    if name == "large":
        from benchmarks.large import large

        return large
    if name == "loading":
        from benchmarks.loading import loading

        return lambda console: loading(console, options.repeat)
    if name == "stiff":
        from benchmarks.stiff import stiff

        return lambda console: stiff(console, options.repeat)
    if name == "sweeps":
        from benchmarks.sweeps import sweeps

        return lambda console: sweeps(console, max(1, options.repeat // 2))
    if name == "workspace":
        from benchmarks.workspace import workspace

        return lambda console: workspace(console, options.repeat)
    from benchmarks.simulation import simulation

    return lambda console: simulation(console, options.repeat)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the sections; the exit status is 1 where a peer disagrees."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.run",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "sections", nargs="*", metavar="section", help=f"{', '.join(SECTIONS)}; all unless given"
    )
    parser.add_argument("--repeat", type=int, default=7, help="turns of each measurement")
    parser.add_argument(
        "--native", action="store_true", help="also build and time a C++ loop around Pinocchio"
    )
    parser.add_argument(
        "--patience",
        type=float,
        default=0.0,
        help="seconds to spend on turns that others disturbed",
    )
    parser.add_argument("--save", action="store_true", help=f"write JSON files to {RESULTS.name}/")
    options = parser.parse_args(arguments)
    for name in options.sections:
        if name not in SECTIONS:
            parser.error(f"no section '{name}' (choose from {', '.join(SECTIONS)})")
    if options.repeat < 1:
        parser.error(f"--repeat must be at least 1, got {options.repeat}")
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    for name in options.sections or SECTIONS:
        where = conditions()
        QUIET.reset(options.patience)
        console.rule(name)
        console.print("\n".join(f"{key}: {value}" for key, value in where.items()))
        try:
            found = section(name, options)(console)
        except AssertionError as fault:
            console.print(f"[bold red]{name}: a result is wrong:[/] {fault}")
            return 1
        where |= {"load after": load(), "quiet": str(QUIET)}
        console.print(f"load before {where['load before']}, after {where['load after']}; {QUIET}")
        if options.save:
            path = RESULTS / f"{where['date'][:10]}-{name}.json"
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps({"conditions": where, **found}, indent=1) + "\n")
            console.print(f"saved as {path.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
