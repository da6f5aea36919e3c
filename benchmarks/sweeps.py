"""Section `sweeps`: whole calls of studies of a wheeled pendulum, against the time of their steps.

    python -m benchmarks.sweeps [--out results.json] [--scale 1] [--repeat 3]

measures the section alone, in less than four minutes; `--scale 0.01` tries it on small studies.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import axode as ax
from axode.codegen.targets.cpu import cpu_count
from axode.codegen.targets.cpu_rollout import BoundRollout
from benchmarks.conditions import conditions, load
from benchmarks.peers import pendulum_study as peers
from benchmarks.targets import Target, targets_table
from benchmarks.timing import QUIET, Contestant, Times, in_turn, timed

STEP, STEPS = 1e-3, 1000
DURATION = STEP * STEPS  # [s]
LEAN, SURGE, YAW_RATE = 0.4, 0.5, 1.0  # half ranges of what is drawn: rad, m/s, rad/s
START = {
    "pitch": ax.Uniform(-LEAN, LEAN),
    "base.surge": ax.Uniform(-SURGE, SURGE),
    "base.yaw_rate": ax.Uniform(-YAW_RATE, YAW_RATE),
}
COLUMNS = ("pitch", "left.rate")  # asked of trajectories
TOLERANCE = 1e-8  # of solve_ivp
AGREEMENT = 1e-6  # of end states with solve_ivp's, relative to the largest
SOFT_AGREEMENT = 0.03  # [rad], of MuJoCo's pitch after half a second on soft contacts
SEED = 1
MEGABYTE = 1e6

AXODE = "Axode, whole call of sweep"
COMPILED, NUMPY = (f"solve_ivp DOP853, joblib, {words}" for words in peers.KINDS.values())
MUJOCO, MUJOCO_FAST = "MuJoCo rollout, RK4", "MuJoCo rollout, spheres and Euler"
THREADS, PROCESSES, DASK = "threads of this process", "processes", "Dask"


@dataclass(frozen=True)
class Sizes:
    """Numbers of runs."""

    sweep: int = 100_000
    memory: int = 1_000_000
    simulate: int = 1000
    scipy: int = 300
    mujoco: int = 300
    workers: int = 200_000

    @classmethod
    def scaled(cls, scale: float) -> Sizes:
        """All of them times a number, with a few left of each."""
        whole = cls()
        return cls(**{name: max(20, round(scale * n)) for name, n in vars(whole).items()})


def study(model: ax.Model, runs: int, **options: Any) -> ax.Sweep:
    """Draw leans, speeds and turning rates, and keep where each run ends."""
    outputs = {name: ("last", name) for name in (*model.coordinates, *model.independent)}
    outputs["fastest"] = ("largest", "pitch.rate")
    given: dict[str, Any] = {"step": STEP, "seed": SEED, "progress": False, "outputs": outputs}
    return ax.sweep(model, DURATION, start=START, samples=runs, **(given | options))


def sweeps(console: Console, repeat: int, sizes: Sizes = Sizes()) -> dict[str, Any]:  # noqa: B008
    """Measure everything and show it; raises AssertionError where a result is wrong."""
    model = peers.model()
    found: dict[str, Any] = {"sizes": vars(sizes), "steps": STEPS, "cores": cpu_count()}
    found["whole"] = _whole_calls(model, sizes, repeat)
    found["memory"] = {str(runs): _memory(runs) for runs in (sizes.sweep, sizes.memory)}
    found["checks"], found["contest"] = _contest(model, sizes, repeat)
    found["workers"] = _workers(model, sizes, max(1, repeat // 2))
    targets = _targets(found, sizes)
    found["targets"] = [target.data() for target in targets]
    console.print(_contest_table(found["contest"]))
    console.print(f"end states: {found['checks']}")
    console.print(f"peak memory [MB]: {found['memory']}")
    console.print(_workers_table(found["workers"]))
    console.print(targets_table(targets))
    return found


# whole calls -------------------------------------------------------------------------------------


@contextmanager
def kernel_seconds() -> Iterator[list[float]]:
    """Collect the seconds that compiled steps take in calls inside a `with`."""
    spent: list[float] = []
    original = BoundRollout.__call__

    def measured(self: BoundRollout, *arguments: Any, **options: Any) -> None:
        began = time.perf_counter()
        original(self, *arguments, **options)
        spent.append(time.perf_counter() - began)

    BoundRollout.__call__ = measured  # type: ignore[method-assign]
    try:
        yield spent
    finally:
        BoundRollout.__call__ = original  # type: ignore[method-assign]


def _whole_calls(model: ax.Model, sizes: Sizes, repeat: int) -> dict[str, dict[str, list[float]]]:
    """Seconds of whole calls, and of the compiled steps inside the same calls."""

    def swept() -> None:
        study(model, sizes.sweep)

    rng = np.random.default_rng(SEED)
    start = {"pitch": rng.uniform(-LEAN, LEAN, sizes.simulate)}

    def simulated() -> None:
        run = ax.simulate(model, DURATION, start=start, method="rk4", step=STEP, progress=False)
        for name in COLUMNS:
            assert np.isfinite(run[name]).all()

    found = {}
    for name, call in (("sweep", swept), ("simulate", simulated)):
        call()  # compiled
        whole, kernel = [], []
        for _ in range(repeat):
            with kernel_seconds() as spent:
                whole.append(timed(call)[0])
            kernel.append(sum(spent))
        found[name] = {"whole": whole, "kernel": kernel}
    return found


def _memory(runs: int) -> dict[str, float]:
    """Peak memory of a process that sweeps so many runs into a store."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "benchmarks.sweeps", "--store", folder, str(runs)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _sweep_into(folder: str, runs: int) -> None:
    """Sweep into a store, and print the peak memory of this process as JSON."""
    before = _peak_megabytes()
    seconds, made = timed(lambda: study(peers.model(), runs, store=Path(folder) / "study"))
    assert made.statuses == {"finished": runs}, made.statuses
    peak = _peak_megabytes()
    print(json.dumps({"peak_mb": peak, "before_mb": before, "seconds": seconds}))


def _peak_megabytes() -> float:
    """Most memory that this process has had; that of its parent does not count, as with rusage."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(x.split()[1]) for x in lines if x.startswith("VmHWM")) * 1024 / MEGABYTE


# others ------------------------------------------------------------------------------------------


def _contest(
    model: ax.Model, sizes: Sizes, repeat: int
) -> tuple[dict[str, float], dict[str, list[float]]]:
    """Seconds per run of everyone on the same study, on all cores, after a check of end states."""
    from joblib import Parallel

    count = max(sizes.scipy, sizes.mujoco)
    ours = study(model, count)
    drawn = np.stack([ours.samples[n] for n in START], axis=-1)
    x = np.zeros((count, len(model.coordinates) + len(model.independent)))
    x[:, 3], x[:, 6], x[:, 7] = drawn.T
    names = (*model.coordinates, *model.independent)
    ends = np.stack([ours[name] for name in names], axis=-1)
    cores, parts = cpu_count(), 4 * cpu_count()
    checks: dict[str, float] = {}
    contestants: dict[str, Contestant] = {
        AXODE: lambda: timed(lambda: study(model, sizes.sweep))[0] / sizes.sweep
    }
    with Parallel(n_jobs=cores) as parallel:
        for name, kind in ((COMPILED, "compiled"), (NUMPY, "numpy")):

            def run(kind: str = kind) -> np.ndarray:
                return peers.solve_parallel(
                    parallel, kind, x[: sizes.scipy], DURATION, TOLERANCE, parts
                )

            error = np.abs(run() - ends[: sizes.scipy]).max() / np.abs(ends).max()
            assert error < AGREEMENT, f"{name}: end states differ by {error:.3g}"
            checks[name] = float(error)
            contestants[name] = lambda run=run: timed(run)[0] / sizes.scipy
        for name, fastest in ((MUJOCO, False), (MUJOCO_FAST, True)) if _has("mujoco") else ():
            theirs = peers.MujocoStudy(drawn[: sizes.mujoco], STEP, cores, fastest=fastest)
            checks[name] = _check_mujoco(model, theirs, sizes.mujoco)
            contestants[name] = lambda theirs=theirs: (
                timed(lambda: theirs.run(STEPS))[0] / sizes.mujoco
            )
        times = in_turn(contestants, repeat)
    return checks, {name: list(t.seconds) for name, t in times.items()}


def _has(package: str) -> bool:
    return find_spec(package) is not None


def _check_mujoco(model: ax.Model, theirs: peers.MujocoStudy, runs: int) -> float:
    """Largest difference of pitch after half the time, while contacts are soft but roll."""
    ours = ax.sweep(
        model,
        DURATION / 2,
        start=START,
        samples=runs,
        seed=SEED,
        step=STEP,
        progress=False,
        outputs={"pitch": ("last", "pitch")},
    )
    error = float(np.abs(theirs.pitches(theirs.run(STEPS // 2)) - ours["pitch"]).max())
    assert error < SOFT_AGREEMENT, f"MuJoCo's pitch differs by {error:.3g} rad"
    return error


# workers -----------------------------------------------------------------------------------------


def _workers(model: ax.Model, sizes: Sizes, repeat: int) -> dict[str, dict[str, list[float]]]:
    """Seconds of the same study on one and on two workers of one thread each."""
    found: dict[str, dict[str, list[float]]] = {}
    for name, workers in ((THREADS, nullcontext), (PROCESSES, _processes), (DASK, _dask)):
        found[name] = {}
        for n in (1, 2):
            with workers(n) as executor:
                shared = {"threads": 1, "executor": executor}
                options = {"threads": n} if name == THREADS else shared

                def call(runs: int, options: dict[str, Any] = options) -> object:
                    return study(model, runs, **options)

                found[name][str(n)] = _repeated(call, sizes.workers, repeat)
    return found


def _repeated(call: Callable[[int], object], runs: int, repeat: int) -> list[float]:
    call(runs // 4)  # workers compile
    return [timed(lambda: call(runs))[0] for _ in range(repeat)]


@contextmanager
def _processes(count: int) -> Iterator[Any]:
    import multiprocessing

    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(count, mp_context=spawn) as executor:
        yield executor


@contextmanager
def _dask(count: int) -> Iterator[Any]:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=count, threads_per_worker=1, dashboard_address=None, silence_logs=40
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


# tables ------------------------------------------------------------------------------------------


def _contest_table(contest: dict[str, list[float]]) -> Table:
    shown = Table(title=f"{DURATION:g} s of a wheeled pendulum, many runs, all cores")
    for column in ("who", "runs per second", "us per run", "ratio to Axode"):
        shown.add_column(column, justify="left" if column == "who" else "right")
    ours = Times(tuple(contest[AXODE])).median
    for name, seconds in contest.items():
        t = Times(tuple(seconds))
        shown.add_row(name, f"{1 / t.median:,.0f}", t.text("us"), f"{t.median / ours:,.0f}")
    return shown


def _workers_table(workers: dict[str, dict[str, list[float]]]) -> Table:
    shown = Table(title="The same study on one and two workers")
    for column in ("workers", "one [s]", "two [s]", "gain"):
        shown.add_column(column, justify="left" if column == "workers" else "right")
    for name, seconds in workers.items():
        one, two = (min(seconds[n]) for n in ("1", "2"))
        shown.add_row(name, f"{one:.2f}", f"{two:.2f}", f"{one / two:.2f}")
    return shown


def _targets(found: dict[str, Any], sizes: Sizes) -> list[Target]:
    whole = {
        name: float(np.median(np.divide(seconds["whole"], seconds["kernel"])))
        for name, seconds in found["whole"].items()
    }
    peak = found["memory"][str(sizes.memory)]["peak_mb"]
    return [
        Target(
            f"sweep of {sizes.sweep:,} runs x {STEPS} steps, whole call",
            1.3,
            whole["sweep"],
            at_most=True,
            against="the compiled steps in it",
        ),
        Target(
            f"simulate {sizes.simulate:,} runs x {STEPS} steps, two columns read",
            2.0,
            whole["simulate"],
            at_most=True,
            against="the compiled steps in it",
        ),
        Target(
            f"sweep of {sizes.memory:,} runs into a store, peak memory",
            500.0,
            peak,
            unit="MB",
            at_most=True,
        ),
    ]


def main() -> int:
    """Measure the section alone."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.sweeps",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--scale", type=float, default=1.0, help="of all numbers of runs")
    parser.add_argument("--repeat", type=int, default=3, help="turns of each measurement")
    parser.add_argument("--store", nargs=2, metavar=("FOLDER", "RUNS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.store:
        _sweep_into(options.store[0], int(options.store[1]))
        return 0
    where, console = conditions(), Console()
    QUIET.reset(0.0)
    found = sweeps(console, options.repeat, Sizes.scaled(options.scale))
    where |= {"load after": load(), "quiet": str(QUIET)}
    if options.out:
        options.out.write_text(json.dumps({"conditions": where, **found}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
