"""`axode bench`: how fast a model is on this machine."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axode.cli import INTERRUPTED, interruption
from axode.cli.model_sources import Built
from axode.cli.options import Result, Source, Texts, words
from axode.cli.output import show_table
from axode.errors import AxodeError, UnknownName
from axode.model.model_parts import function_tape

if TYPE_CHECKING:
    from axode.model.model import Model

USUAL = ("forward_dynamics", "inverse_dynamics", "mass_matrix", "energy")
LEAST = 5e-3  # [s] that a sample of the clock lasts
SIMULATED = {"one run": 1, "1024 runs": 1024}
RUN, FEWEST, MOST = 0.1, 20, 20_000  # seconds of a simulation, about; limits of its steps
STEP = 1e-5  # [s], so short that nothing falls over


def bench(
    *,
    source: Source = "wheeled_pendulum",
    option: Texts = None,
    functions: Texts = None,
    repeat: Annotated[int, typer.Option(min=3, max=1000)] = 15,
    batch: Annotated[int, typer.Option(min=8, max=1000000)] = 4096,
    result: Result,
) -> None:
    """Time the functions and the simulation of a model: median, fastest and slowest.

    axode bench

    axode bench seven_axis_arm --functions forward_dynamics --repeat 31

    Options:
        functions NAME,NAME: Functions to time; the usual ones by default.
        repeat COUNT: Number of repetitions of every timing.
        batch COUNT: Number of samples in a batch.
    """
    model = Built(source, option).model("fixed")
    asked = words(functions) or tuple(
        n for n in USUAL if n in model.functions and (n != "inverse_dynamics" or model.inputs)
    )
    for name in asked:
        if name not in model.functions:
            raise UnknownName(f"model '{model.name}'", "function", name, model.functions)
    rows: list[dict[str, Any]] = []
    steps: dict[str, Any] = {}
    with interruption.stop_early() as stop:
        for name in asked:
            rows.append(_function(model, name, batch, repeat))
        steps = _steps(model, repeat)
    data = {
        "model": model.name,
        "machine": _machine(),
        "batch": batch,
        "repeat": repeat,
        "functions": rows,
        "steps_per_second": steps,
    }
    result.deliver(data, lambda: _show(data))
    if stop.interrupted:
        typer.echo("interrupted; what was timed is kept", err=True)
        raise typer.Exit(INTERRUPTED)


# times -------------------------------------------------------------------------------------------


def time_repeatedly(work: Callable[[], Any], repeat: int, count: int = 1) -> dict[str, float]:
    """Return the median, smallest and largest time of one of `count` repetitions [s]."""
    work()  # compiles, and warms the caches
    started = time.perf_counter()
    work()
    once = max(time.perf_counter() - started, 1e-9)
    loops = max(1, math.ceil(LEAST / once))
    samples = []
    for _ in range(repeat):
        started = time.perf_counter()
        for _ in range(loops):
            work()
        samples.append((time.perf_counter() - started) / (loops * count))
    return {"median": statistics.median(samples), "min": min(samples), "max": max(samples)}


def _function(model: Model, name: str, batch: int, repeat: int) -> dict[str, Any]:
    """Time one function [s per sample]: called from Python, and in three kinds of batches."""
    import numpy as np

    from axode.codegen.targets.cpu import CompiledFunction, cpu_count

    tape = function_tape(model, name)
    rng = np.random.default_rng(0)
    arrays = [_samples(model, port.name, port.size, batch, rng) for port in tape.inputs]
    single = [np.ascontiguousarray(array[0]) for array in arrays]
    function, scalar = CompiledFunction(tape), CompiledFunction(tape, lanes=1)
    small = np.empty(tape.outputs[0].shape)
    large = np.empty((batch, *tape.outputs[0].shape))
    return {
        "function": name,
        "operations": tape.n_operations,
        "call": time_repeatedly(lambda: function(*single, out=small), repeat),
        "scalar": time_repeatedly(lambda: scalar(*arrays, out=large, threads=1), repeat, batch),
        "vector": time_repeatedly(lambda: function(*arrays, out=large, threads=1), repeat, batch),
        "threads": time_repeatedly(
            lambda: function(*arrays, out=large, threads=cpu_count()), repeat, batch
        ),
    }


def _samples(model: Model, name: str, size: int, batch: int, rng: Any) -> Any:
    """Return home configurations with random speeds and forces: the code has no branches."""
    import numpy as np

    if name == "q":
        return np.tile(model.home, (batch, 1))
    if name == "weights":
        return np.ones((batch, size))
    return rng.normal(size=(batch, size))


def _steps(model: Model, repeat: int) -> dict[str, Any]:
    """Time rk4 [steps per second], one run on one core, many on all, or give the reason why not."""
    found: dict[str, Any] = {}
    for word, runs in SIMULATED.items():
        try:
            first = time_repeatedly(_simulation(model, runs, FEWEST), 1, runs * FEWEST)["median"]
            steps = min(max(round(RUN / (runs * first)), FEWEST), MOST)
            times = time_repeatedly(
                _simulation(model, runs, steps), max(3, repeat // 3), runs * steps
            )
        except AxodeError as error:
            found[word] = {"refused": str(error).splitlines()[0]}
            continue
        found[word] = {
            "median": 1 / times["median"],
            "min": 1 / times["max"],
            "max": 1 / times["min"],
            "steps": steps,
        }
    return found


def _simulation(model: Model, runs: int, steps: int) -> Callable[[], Any]:
    import numpy as np

    from axode.problems.simulate.simulate import simulate

    q = np.tile(model.home, (runs, 1)) if runs > 1 else model.home
    nu = np.zeros((*q.shape[:-1], len(model.independent)))
    duration = steps * STEP
    return lambda: simulate(
        model, duration, start=(q, nu), method="rk4", step=STEP, save_every=duration, progress=False
    )


# words -------------------------------------------------------------------------------------------


def _machine() -> dict[str, Any]:
    from axode.cli.doctor import processor
    from axode.codegen.host import host
    from axode.codegen.targets.cpu import cpu_count

    return {"processor": processor(), "lanes": host().lanes, "threads": cpu_count()}


def _show(data: dict[str, Any]) -> None:

    machine = data["machine"]
    kinds = {
        "call": "a call from Python",
        "scalar": "a sample, scalar code",
        "vector": f"a sample, {machine['lanes']} lanes",
        "threads": f"a sample, {machine['threads']} threads",
    }
    rows = [
        (row["function"] if kind == "call" else "", what, *_seconds(row[kind]))
        for row in data["functions"]
        for kind, what in kinds.items()
    ]
    counts = ", ".join(f"{row['function']} {row['operations']}" for row in data["functions"])
    show_table(
        ("function", "time of", ">median", ">min", ">max", "unit"),
        rows,
        title=f"{data['model']} on {machine['processor']}, batches of {data['batch']}",
        note=f"operations: {counts}",
    )
    if not data["steps_per_second"]:
        return
    print()
    rows = [(word, *_rate(found)) for word, found in data["steps_per_second"].items()]
    show_table(("rk4, with starting and recording", ">median", ">min", ">max", "unit"), rows)


def _seconds(times: dict[str, float]) -> tuple[str, ...]:
    scale, unit = next(
        (s, u)
        for s, u in ((1e9, "ns"), (1e6, "us"), (1e3, "ms"), (1.0, "s"))
        if times["median"] * s < 1000 or u == "s"
    )
    return (*(f"{times[word] * scale:.4g}" for word in ("median", "min", "max")), unit)


def _rate(found: dict[str, Any]) -> tuple[str, ...]:
    if "refused" in found:
        return "-", "-", "-", str(found["refused"])
    return (*(f"{found[word]:.3g}" for word in ("median", "min", "max")), "steps/s")
