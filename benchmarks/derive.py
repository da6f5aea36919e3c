"""Section `derive`: from a description to expression graphs, and how large these are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from rich.console import Console
from rich.table import Table

import axode as ax
from axode.codegen.tape.tape import Tape
from axode.symbolic.functions import function_graph
from benchmarks import mechanisms
from benchmarks.correctness import check_rolling, check_with_kane, check_with_pinocchio
from benchmarks.peers.kane_disk import kane_disk
from benchmarks.timing import Times, in_turn, timed, turns


@dataclass(frozen=True)
class Derived:
    """A mechanism to measure and how its correctness is shown."""

    label: str
    build: Callable[[], ax.Mechanism]
    check: Callable[[ax.Mechanism, ax.Model], float]
    independent: Sequence[str] | None = None


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


def subjects() -> list[Derived]:
    """All mechanisms, in the order of the table."""
    twist = mechanisms.platform_twist()
    found = [Derived("7-dof arm", mechanisms.arm, check_with_pinocchio)]
    found += [
        Derived(f"{n}-link chain", lambda n=n: mechanisms.chain(n), check_with_pinocchio)
        for n in (20, 32, 64)
    ]
    found += [Derived("6-UPS, leg rates", mechanisms.platform, check_with_pinocchio)]
    found += [
        Derived(
            f"{n}-UPS, platform twist",
            lambda n=n: mechanisms.platform(n),
            check_with_pinocchio,
            twist,
        )
        for n in range(3, 13)
    ]
    found += [
        Derived("two-wheel balancer", mechanisms.balancer, check_rolling),
        Derived("caster robot", mechanisms.caster_robot, check_rolling),
        Derived("rolling disk", mechanisms.rolling_disk, check_with_kane),
    ]
    return found


def operations(equations: ax.Equations, name: str) -> int:
    """Scalar operations of one function, repeated sub-expressions counted once."""
    return Tape.from_casadi(function_graph(equations, name, fixed=True).function).n_operations


def measure(subject: Derived, repeat: int) -> Measured:
    """Check one mechanism, then derive it several times, afresh for each function."""
    mechanism = subject.build()
    equations = mechanism.derive(independent=subject.independent)
    error = subject.check(mechanism, equations.compile("interpreter"))

    def turn() -> dict[str, list[float]]:
        seconds: dict[str, list[float]] = {"derive": []}
        for name in ("inverse_dynamics", "forward_dynamics"):
            spent, fresh = timed(lambda: mechanism.derive(independent=subject.independent))
            seconds["derive"].append(spent)
            spent, _ = timed(lambda n=name, e=fresh: function_graph(e, n, fixed=True))
            seconds[name] = [spent]
        return seconds

    times = turns(turn, repeat)
    return Measured(
        subject.label,
        len(equations.speeds),
        len(equations.independent),
        error,
        times["derive"],
        times["inverse_dynamics"],
        times["forward_dynamics"],
        operations(equations, "inverse_dynamics"),
        operations(equations, "forward_dynamics"),
    )


def against_kane(repeat: int) -> tuple[Times, Times]:
    """From description to a function of numbers, Axode and SymPy in turn."""

    def ours() -> object:
        equations = mechanisms.rolling_disk().derive()
        return function_graph(equations, "forward_dynamics", fixed=True)

    def theirs() -> object:
        return kane_disk(2.0, 0.3, 0.045, 0.09, 9.81)

    times = in_turn({"ours": lambda: timed(ours)[0], "theirs": lambda: timed(theirs)[0]}, repeat)
    return times["ours"], times["theirs"]


def table(measured: Sequence[Measured]) -> Table:
    """What was measured, one row a mechanism."""
    shown = Table(title="Derivation: median (least..most) milliseconds, and operations")
    shown.add_column("mechanism", no_wrap=True)
    for name in (
        "speeds",
        "free",
        "error",
        "derive",
        "inverse",
        "direct",
        "ops inverse",
        "ops direct",
    ):
        shown.add_column(name, justify="right", no_wrap=True)
    for m in measured:
        inverse = str(m.inverse_operations) if m.inverse_operations else "-"
        shown.add_row(
            m.label,
            str(m.speeds),
            str(m.mobility),
            f"{m.error:.0e}",
            str(m.derive),
            str(m.build_inverse),
            str(m.build_direct),
            inverse,
            str(m.direct_operations),
        )
    return shown


def derive(console: Console, repeat: int) -> dict[str, object]:
    """Measure everything and show it; raises AssertionError where a peer disagrees."""
    measured = []
    for subject in subjects():
        console.print(f"  {subject.label} ...", style="dim")
        measured.append(measure(subject, repeat))
    console.print(table(measured))
    ours, theirs = against_kane(repeat)
    ratio = theirs.median / ours.median
    console.print(
        f"Rolling disk, from description to a function of numbers: Axode {ours} ms, "
        f"SymPy's Kane {theirs} ms, ratio {ratio:.0f}"
    )
    return {
        "derivation": [asdict(m) for m in measured],
        "rolling_disk": {
            "axode": ours.seconds,
            "sympy_kane": theirs.seconds,
            "ratio_of_medians": ratio,
        },
    }
