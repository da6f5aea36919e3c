"""`make bench`: is it right, and then how large and how fast.

    python -m benchmarks.run [--repeat 5] [--native] [--save]

Every mechanism is first compared with a peer at random states; a disagreement stops the run. Then
come the tables. See benchmarks/README.md for what the numbers mean.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import axode as ax
from axode.codegen.tape import Tape
from axode.symbolic.functions import function_graph
from benchmarks import mechanisms
from benchmarks.conditions import conditions
from benchmarks.correctness import check_rolling, check_with_kane, check_with_pinocchio
from benchmarks.peers.kane_disk import kane_disk

RESULTS = Path(__file__).parent / "results"
WIDTH = 160  # of the tables, where the output is not a terminal


@dataclass(frozen=True)
class Subject:
    """A mechanism to measure and how its correctness is shown."""

    label: str
    build: Callable[[], ax.Mechanism]
    check: Callable[[ax.Mechanism, ax.Model], float]
    independent: Sequence[str] | None = None


@dataclass(frozen=True)
class Times:
    """Seconds of repeated runs."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return float(np.median(self.seconds))

    def __str__(self) -> str:
        low, high = min(self.seconds), max(self.seconds)
        return f"{1e3 * self.median:.1f} ({1e3 * low:.1f}..{1e3 * high:.1f})"


@dataclass(frozen=True)
class Measured:
    """What one mechanism costs before any of it is compiled."""

    label: str
    speeds: int
    mobility: int
    error: float  # against its peer
    derive: Times
    build_inverse: Times
    build_direct: Times
    inverse_operations: int
    direct_operations: int


def subjects() -> list[Subject]:
    """All mechanisms, in the order of the table."""
    twist = mechanisms.platform_twist()
    found = [Subject("7-dof arm", mechanisms.arm, check_with_pinocchio)]
    found += [Subject(f"{n}-link chain", lambda n=n: mechanisms.chain(n), check_with_pinocchio)
              for n in (20, 32, 64)]  # fmt: skip
    found += [Subject("6-UPS, leg rates", mechanisms.platform, check_with_pinocchio)]
    found += [Subject(f"{n}-UPS, platform twist", lambda n=n: mechanisms.platform(n),
                      check_with_pinocchio, twist) for n in range(3, 13)]  # fmt: skip
    found += [
        Subject("two-wheel balancer", mechanisms.balancer, check_rolling),
        Subject("caster robot", mechanisms.caster_robot, check_rolling),
        Subject("rolling disk", mechanisms.rolling_disk, check_with_kane),
    ]
    return found


def timed(work: Callable[[], object]) -> tuple[float, object]:
    """Seconds that a call takes, and what it returns."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def operations(equations: ax.Equations, name: str) -> int:
    """Scalar operations of one function, repeated sub-expressions counted once."""
    return Tape.from_casadi(function_graph(equations, name, fixed=True).function).n_operations


def measure(subject: Subject, repeat: int) -> Measured:
    """Check one mechanism, then derive it several times, afresh for each function."""
    mechanism = subject.build()
    equations = mechanism.derive(independent=subject.independent)
    error = subject.check(mechanism, equations.compile("interpreter"))
    seconds: dict[str, list[float]] = {"derive": [], "inverse_dynamics": [], "forward_dynamics": []}
    for _ in range(repeat):
        for name in ("inverse_dynamics", "forward_dynamics"):
            spent, fresh = timed(lambda: mechanism.derive(independent=subject.independent))
            seconds["derive"].append(spent)
            spent, _ = timed(lambda n=name, e=fresh: function_graph(e, n, fixed=True))
            seconds[name].append(spent)
    times = {name: Times(tuple(values)) for name, values in seconds.items()}
    return Measured(
        subject.label, len(equations.speeds), len(equations.independent), error, times["derive"],
        times["inverse_dynamics"], times["forward_dynamics"],
        operations(equations, "inverse_dynamics"), operations(equations, "forward_dynamics"),
    )  # fmt: skip


def against_kane(repeat: int) -> tuple[Times, Times]:
    """From description to a function of numbers, Axode and SymPy in turn."""

    def ours() -> object:
        equations = mechanisms.rolling_disk().derive()
        return function_graph(equations, "forward_dynamics", fixed=True)

    def theirs() -> object:
        return kane_disk(2.0, 0.3, 0.045, 0.09, 9.81)

    pairs = [(timed(ours)[0], timed(theirs)[0]) for _ in range(repeat)]
    return Times(tuple(a for a, _ in pairs)), Times(tuple(b for _, b in pairs))


def table(measured: Sequence[Measured]) -> Table:
    """What was measured, one row a mechanism."""
    shown = Table(title="Derivation: median (least..most) milliseconds, and operations")
    shown.add_column("mechanism", no_wrap=True)
    for name in ("speeds", "free", "error", "derive", "inverse", "direct", "ops inverse",
                 "ops direct"):  # fmt: skip
        shown.add_column(name, justify="right", no_wrap=True)
    for m in measured:
        inverse = str(m.inverse_operations) if m.inverse_operations else "-"
        shown.add_row(m.label, str(m.speeds), str(m.mobility), f"{m.error:.0e}", str(m.derive),
                      str(m.build_inverse), str(m.build_direct), inverse,
                      str(m.direct_operations))  # fmt: skip
    return shown


def native(console: Console) -> dict[str, object]:
    """Pinocchio's own times from C++, or a word on why there are none."""
    from benchmarks.peers.pinocchio_model import pinocchio_peer
    from benchmarks.peers.pinocchio_native.build import Skipped, native_subjects, native_times

    found: dict[str, object] = {}
    shown = Table(title="Pinocchio from C++: nanoseconds a call")
    for column in ("mechanism", "algorithm", "median", "least..most"):
        shown.add_column(column, justify="left" if column == "mechanism" else "right")
    for label, mechanism, states in native_subjects():
        try:
            times = native_times(pinocchio_peer(mechanism), states)
        except Skipped as reason:
            console.print(f"Pinocchio from C++: skipped, {reason}")
            return {"skipped": str(reason)}
        for name, entry in times.items():
            low, high = min(entry.nanoseconds), max(entry.nanoseconds)
            shown.add_row(label, name, f"{entry.median:.0f}", f"{low:.0f}..{high:.0f}")
            found[f"{label}, {name}"] = list(entry.nanoseconds)
    console.print(shown)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run everything; the exit status is 1 where a peer disagrees."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.add_argument("--repeat", type=int, default=5, help="runs of each measurement")
    parser.add_argument("--native", action="store_true",
                        help="also build and time a C++ loop around Pinocchio")  # fmt: skip
    parser.add_argument("--save", action="store_true", help=f"write a JSON file to {RESULTS.name}/")
    options = parser.parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    where = conditions()
    console.print("\n".join(f"{name}: {value}" for name, value in where.items()))
    measured = []
    for subject in subjects():
        console.print(f"  {subject.label} ...", style="dim")
        try:
            measured.append(measure(subject, options.repeat))
        except AssertionError as fault:
            console.print(f"[bold red]{subject.label} disagrees with its peer:[/] {fault}")
            return 1
    console.print(table(measured))
    ours, theirs = against_kane(options.repeat)
    ratio = theirs.median / ours.median
    console.print(f"Rolling disk, from description to a function of numbers: Axode {ours} ms, "
                  f"SymPy's Kane {theirs} ms, ratio {ratio:.0f}")  # fmt: skip
    timings = native(console) if options.native else {"skipped": "not asked for"}
    if not options.native:
        console.print("Pinocchio from C++: not measured; ask with --native")
    if options.save:
        content = {"conditions": where, "derivation": [asdict(m) for m in measured],
                   "rolling_disk": {"axode": ours.seconds, "sympy_kane": theirs.seconds,
                                    "ratio_of_medians": ratio},
                   "pinocchio_native": timings}  # fmt: skip
        path = RESULTS / f"{where['date'][:10]}-derive.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(content, indent=1) + "\n")
        console.print(f"saved as {path.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
