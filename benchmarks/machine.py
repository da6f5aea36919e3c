"""Section `machine`: compiled dynamics against other libraries, sample for sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table

import axode as ax
from axode.codegen.host import host
from axode.codegen.targets.cpu import CompiledFunction
from benchmarks import mechanisms
from benchmarks.contestants import (
    IN_CACHE,
    SCALAR,
    SIMD,
    Entrants,
    Subject,
    add_axode,
    add_casadi,
    add_mujoco,
    add_pinocchio,
    single_call,
)
from benchmarks.correctness import check_batch, check_with_kane, check_with_pinocchio
from benchmarks.peers.kane_disk import kane_disk
from benchmarks.startup import startup_times
from benchmarks.states import random_states
from benchmarks.targets import Target, targets_table
from benchmarks.timing import Times, in_turn, repeated

LARGE = 2**17  # samples: far beyond the caches
THREADS_REPEAT = 3  # times as many turns for the threads: they suffer most from other work


@dataclass(frozen=True)
class Case:
    """A mechanism of this section."""

    label: str
    key: str  # its builder in `mechanisms`
    independent: Callable[[], Sequence[str]] | None = None

    def build(self) -> ax.Mechanism:
        return getattr(mechanisms, self.key)()


CASES = (
    Case("7-dof arm", "arm"),
    Case("30-dof tree", "tree"),
    Case("6-UPS, platform twist", "platform", mechanisms.platform_twist),
    Case("6-UPS, leg rates", "platform"),
)
FUNCTIONS = {"inverse": "inverse_dynamics", "direct": "forward_dynamics"}


def machine(console: Console, repeat: int, native: bool) -> dict[str, object]:
    """Measure everything and show it; raises AssertionError where a peer disagrees."""
    results = []
    for case in CASES:
        mechanism = case.build()
        equations = mechanism.derive(independent=case.independent() if case.independent else None)
        model = equations.compile(parameters="fixed")
        states = random_states(mechanism, model, IN_CACHE)
        check_with_pinocchio(mechanism, model)
        check_batch(model, states)
        for word, function in FUNCTIONS.items():
            console.print(f"  {case.label}, {word} dynamics ...", style="dim")
            subject = Subject(mechanism, equations, function, states)
            found = {"mechanism": case.label, "function": word} | _measure(subject, repeat, native)
            results.append(found)
            console.print(_contest_table(found))
    console.print(_code_table(results))
    disk = _disk(repeat)
    console.print(_disk_line(disk))
    console.print("  new processes ...", style="dim")
    startup = {
        label: startup_times(key, "forward_dynamics", max(3, repeat // 2))
        for label, key in (("6-UPS direct", "platform"), ("arm direct", "arm"))
    }
    console.print(_startup_table(startup))
    targets = _targets(results, startup)
    console.print(targets_table(targets))
    return {
        "cases": results,
        "rolling_disk": disk,
        "startup": startup,
        "targets": [target.data() for target in targets],
    }


def _measure(subject: Subject, repeat: int, native: bool) -> dict[str, object]:
    entrants = Entrants()
    add_axode(entrants, subject)
    add_pinocchio(entrants, subject, native)
    add_mujoco(entrants, subject)
    add_casadi(entrants, subject)
    call = single_call(subject)
    times = in_turn(entrants.contestants | {"call": call}, repeat)
    single = times.pop("call")
    widths = sorted({1, 2, 4, 8} & set(range(host().lanes + 1)))
    compiled = {
        n: CompiledFunction(subject.tape, lanes=n).prepare(single=n == 1, batch=n > 1)
        for n in widths
    }
    return {
        "operations": subject.tape.n_operations,
        "operations_by_kind": subject.tape.operations,
        "code_bytes": {n: f.code_bytes[n] for n, f in compiled.items()},
        "seconds": {name: list(t.seconds) for name, t in times.items()},
        "errors": entrants.errors,
        "remarks": entrants.remarks,
        "skipped": entrants.skipped,
        "single_call": list(single.seconds),
        "large": _large(subject, repeat),
    }


def _large(subject: Subject, repeat: int) -> dict[str, list[float]]:
    """Seconds a sample of a batch beyond the caches, with one thread and two."""
    copies = LARGE // len(subject.states)
    arrays = [np.tile(argument, (copies, 1)) for argument in subject.arguments]
    count = len(arrays[0])
    function = CompiledFunction(subject.tape).prepare()
    out = np.empty((count, *subject.tape.outputs[0].shape))
    contestants = {
        str(n): repeated(lambda n=n: function(*arrays, out=out, threads=n), count) for n in (1, 2)
    }
    times = in_turn(contestants, THREADS_REPEAT * repeat)
    subject.check(out[: len(subject.states)])
    return {name: list(t.seconds) for name, t in times.items()}


def _disk(repeat: int) -> dict[str, object]:
    """The rolling disk: SymPy's Kane made a function by lambdify, called from Python as ours is."""
    mechanism = mechanisms.rolling_disk()
    model = mechanism.derive().compile(parameters="fixed")
    error = check_with_kane(mechanism, model)
    evaluate = kane_disk(2.0, 0.3, 0.045, 0.09, 9.81)
    lean, u, none = (0.1, 0.3, 0.2), np.array([0.4, 6.0, -0.8]), (0.0, 0.0, 0.0)
    q = np.array([np.cos(0.15), np.sin(0.15), 0, 0, 0, 0, 0.3 * np.cos(0.3)])
    no_input = np.zeros(len(model.inputs))

    def sympy_call() -> None:
        M, forcing, _, _ = evaluate(lean, u, none)
        np.linalg.solve(M, forcing)

    contestants = {
        "SymPy's Kane, lambdify, a call": repeated(sympy_call),
        "Axode, a call": repeated(lambda: model.forward_dynamics(q, u, no_input)),
        "Axode, a sample of a batch": repeated(_batch(model, q, u, no_input), IN_CACHE),
    }
    times = in_turn(contestants, repeat)
    return {"error": error, "seconds": {name: list(t.seconds) for name, t in times.items()}}


def _batch(model: ax.Model, *sample: np.ndarray) -> Callable[[], object]:
    arrays = [np.tile(x, (IN_CACHE, 1)) for x in sample]
    out = np.empty((IN_CACHE, len(model.independent)))
    return lambda: model.forward_dynamics(*arrays, out=out, threads=1)


# tables -------------------------------------------------------------------------------------------


def times_of(found: dict, name: str) -> Times | None:
    """The times of a contestant, if it took part."""
    seconds = found["seconds"].get(name)
    return Times(tuple(seconds)) if seconds else None


def rival(found: dict) -> str | None:
    """Pinocchio's fastest: of its algorithms, from C++ or from Python less the calls."""
    names = [n for n in found["seconds"] if n.startswith("Pinocchio")]
    return min(names, key=lambda n: times_of(found, n).median, default=None)


def _contest_table(found: dict) -> Table:
    shown = Table(
        title=f"{found['mechanism']}, {found['function']} dynamics, "
        f"{found['operations']} operations"
    )
    shown.add_column("who", no_wrap=True)
    for column in ("ns per sample", "least..most", "to scalar", "to SIMD", "error"):
        shown.add_column(column, justify="right", no_wrap=True)
    shown.add_column("remark")
    scalar, simd = times_of(found, SCALAR), times_of(found, SIMD)
    for name in found["seconds"]:
        t = times_of(found, name)
        error = found["errors"].get(name)
        shown.add_row(
            name,
            f"{1e9 * t.median:.1f}",
            f"{1e9 * t.least:.1f}..{1e9 * t.most:.1f}",
            f"{t.median / scalar.median:.2f}",
            f"{t.median / simd.median:.2f}",
            "-" if error is None else f"{error:.0e}",
            found["remarks"].get(name, ""),
        )
    for name, reason in found["skipped"].items():
        shown.add_row(name, "-", "", "", "", "", f"skipped: {reason}", style="dim")
    return shown


def _code_table(results: Sequence[dict]) -> Table:
    lanes = host().lanes
    shown = Table(
        title=f"Axode's code ({lanes} lanes); nanoseconds a sample of {LARGE} in memory; "
        "a call of the model's method from Python"
    )
    shown.add_column("mechanism", no_wrap=True)
    for column in (
        "function",
        "ops",
        "bytes scalar",
        "bytes SIMD",
        "1 thread",
        "2 threads",
        "gain",
        "call us",
        "of it overhead us",
    ):
        shown.add_column(column, justify="right", no_wrap=True)
    for r in results:
        one, two = (Times(tuple(r["large"][n])) for n in ("1", "2"))
        call, scalar = Times(tuple(r["single_call"])), times_of(r, SCALAR)
        shown.add_row(
            r["mechanism"],
            r["function"],
            str(r["operations"]),
            str(r["code_bytes"][1]),
            str(r["code_bytes"][lanes]),
            one.text("ns"),
            two.text("ns"),
            f"{one.median / two.median:.2f}",
            f"{1e6 * call.median:.2f}",
            f"{1e6 * (call.median - scalar.median):.2f}",
        )
    return shown


def _disk_line(disk: dict) -> str:
    times = {name: Times(tuple(s)) for name, s in disk["seconds"].items()}
    slow = next(iter(times.values()))
    parts = [
        f"{name} {t.text('us', 2)} us, ratio {slow.median / t.median:.1f}"
        for name, t in times.items()
    ]
    return f"Rolling disk, direct dynamics, error {disk['error']:.0e}: " + "; ".join(parts)


def _startup_table(startup: dict) -> Table:
    shown = Table(title="A new process: median (least) milliseconds")
    shown.add_column("what", no_wrap=True)
    stages = list(next(iter(startup.values()))["fresh"])
    for stage in stages:
        shown.add_column(stage.replace("_", " "), justify="right", no_wrap=True)
    for label, kinds in startup.items():
        for kind, times in kinds.items():
            shown.add_row(f"{label}, {kind}", *(_short(times[s]) for s in stages))
    return shown


def _short(seconds: Sequence[float]) -> str:
    times = Times(tuple(seconds))
    return f"{1e3 * times.median:.1f} ({1e3 * times.least:.1f})"


def _targets(results: Sequence[dict], startup: dict) -> list[Target]:
    by = {(r["mechanism"], r["function"]): r for r in results}
    found = []
    wanted = (
        ("7-dof arm", "inverse", 5.0, 18.0),
        ("7-dof arm", "direct", 4.0, 12.0),
        ("6-UPS, platform twist", "direct", 45.0, 150.0),
    )
    for mechanism, function, scalar, batch in wanted:
        r = by[mechanism, function]
        # The peer named first is the fastest; constraintDynamics is what the target was set for.
        peers = [rival(r), *(n for n in r["seconds"] if n.endswith("C++, constraintDynamics"))]
        for peer in dict.fromkeys(p for p in peers if p):
            for name, need in ((SCALAR, scalar), (SIMD, batch)):
                ratio = times_of(r, peer).median / times_of(r, name).median
                found.append(Target(f"{mechanism}, {function}: {name}", need, ratio, against=peer))
    for r in results:
        one, two = (Times(tuple(r["large"][n])).median for n in ("1", "2"))
        found.append(
            Target(
                f"two threads: {r['mechanism']}, {r['function']}",
                1.8,
                one / two,
                against="one thread",
            )
        )
    direct = [r for r in results if r["function"] == "direct"]
    overhead = max(
        Times(tuple(r["single_call"])).median - times_of(r, SCALAR).median for r in direct
    )
    found.append(Target("overhead of a call of forward_dynamics", 3.0, 1e6 * overhead, "us", True))
    fresh, warm = startup["6-UPS direct"]["fresh"], startup["6-UPS direct"]["warm"]
    for label, kind in (("single", "compile_single"), ("batch", "compile_batch")):
        seconds = Times(tuple(fresh[kind])).median
        found.append(Target(f"compile 6-UPS direct, {label}", 1.0, seconds, "s", True))
    both = [a + b for a, b in zip(warm["compile_single"], warm["compile_batch"], strict=True)]
    found.append(
        Target("the same, both from the cache", 20.0, 1e3 * Times(tuple(both)).median, "ms", True)
    )
    imports = fresh["import"] + warm["import"]
    found.append(Target("import axode", 0.4, Times(tuple(imports)).median, "s", True))
    return found
