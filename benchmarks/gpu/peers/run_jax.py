"""JAX on Axode's own tapes: what its user gets from the same equations.

    python run_jax.py DATA pendulum|arm|platform

Two layouts: `vmap`, a function of vectors mapped over rows of a batch, as it is usually written;
and `columns`, every coordinate an array of its own, which spares the compiler the strides.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3]))
sys.path.insert(0, str(Path(__file__).parents[3] / "src"))

import jax
import jax.numpy as jnp
import numpy as np

import axode as ax
from axode.model.model_parts import function_tape
from benchmarks.gpu.peers.jax_tape import on_numbers, on_vectors, rk4
from benchmarks.gpu.peers.reporting import patience, seconds_a_call, tell, tiled, timed

AGREEMENT = {"float64": 1e-8, "float32": 1e-2}  # relative to the largest number
ON_GPU = jax.default_backend() == "gpu"
SMALL = 2**12 if ON_GPU else 2**6  # of the stored samples: for the check
MAPS, ROLLOUTS = ((2**20,), (2**16, 2**19)) if ON_GPU else ((), ())
COMPILERS = os.cpu_count() or 1


class Task:
    """One function at one precision, layout and batch: lowered, compiled, called.

    `function` takes the arguments as one tuple; a call counts as `times` evaluations or steps.
    """

    def __init__(
        self, layout: str, precision: str, batch: int, times: int, function: Any, arrays: Any
    ) -> None:
        self.layout, self.precision, self.batch, self.times = layout, precision, batch, times
        self.arguments = tuple(
            tuple(jnp.asarray(column) for column in tiled(a, batch).astype(precision).T)
            if layout == "columns"
            else jnp.asarray(tiled(a, batch).astype(precision))
            for a in arrays
        )
        self._lowered = jax.jit(function).lower(self.arguments)

    def compile(self) -> None:
        """The slow part; it lets other threads run."""
        self.compile_seconds = timed(self._compile)

    def _compile(self) -> None:
        self._call = self._lowered.compile()

    def found(self) -> np.ndarray:
        """The result as rows."""
        result = self._call(self.arguments)
        return np.stack(result, axis=1) if self.layout == "columns" else np.asarray(result)

    def advance(self, calls: int) -> None:
        """Call it so often, without waiting in between, and wait for the last."""
        for _ in range(calls):
            result = self._call(self.arguments)
        jax.block_until_ready(result)


def maps(data: Path, name: str) -> tuple[list[Task], np.ndarray]:
    """Direct dynamics."""
    tape = function_tape(ax.load_model(data / f"{name}.axm"), "forward_dynamics")
    stored = np.load(data / f"{name}.npz")
    functions = {"vmap": jax.vmap(on_vectors(tape)), "columns": on_numbers(tape)}
    given = [stored[argument] for argument in ("q", "nu", "u")]

    def of_one_tuple(function: Callable[..., Any]) -> Callable[[Any], Any]:
        return lambda arguments: function(*arguments)

    tasks = [
        Task(layout, precision, batch, 1, of_one_tuple(function), given)
        for batch in (SMALL, *MAPS)
        for precision in AGREEMENT
        for layout, function in functions.items()
    ]
    return tasks, stored["expected"]


def rollouts(data: Path, name: str) -> tuple[list[Task], np.ndarray]:
    """Steps of RK4; unlike Axode's own, nothing else is integrated or watched."""
    tape = function_tape(ax.load_model(data / f"{name}.axm"), "state_rate")
    stored = np.load(data / f"{name}.npz")
    n_q, n_nu, n_u = stored["q"].shape[1], stored["nu"].shape[1], tape.inputs[2].size
    n, numbers, vectors = n_q + n_nu, on_numbers(tape), on_vectors(tape)

    def rate_of_columns(x: Any) -> Any:
        return numbers(x[:n_q], x[n_q:], (0.0,) * n_u)[:n]

    def rate_of_vector(x: Any) -> Any:
        return vectors(x[:n_q], x[n_q:], (0.0,) * n_u)[:n]

    h = float(stored["h"])
    steps = {"vmap": jax.vmap(rk4(rate_of_vector, h)), "columns": rk4(rate_of_columns, h)}

    times = int(stored["steps"])

    def rollout(step: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda arguments: jax.lax.fori_loop(0, times, lambda _, x: step(x), arguments[0])

    start = np.concatenate([stored["q"], stored["nu"]], axis=1)
    tasks = [
        Task(layout, precision, batch, times, rollout(step), [start])
        for batch in (SMALL, *ROLLOUTS)
        for precision in AGREEMENT
        for layout, step in steps.items()
    ]
    expected = np.concatenate([stored["expected_q"], stored["expected_nu"]], axis=1)
    return tasks, expected


def main() -> None:
    """Compile all at once, then check and time those that are done, one after the other."""
    data, name = Path(sys.argv[1]), sys.argv[2]
    jax.config.update("jax_enable_x64", True)
    tell(about=f"JAX {jax.__version__} on {jax.devices()[0].device_kind}")
    tasks, expected = (rollouts if name == "pendulum" else maps)(data, name)
    pool = ThreadPoolExecutor(COMPILERS)
    compiling = [pool.submit(task.compile) for task in tasks]
    wait(compiling, timeout=patience())
    for task, compiled in zip(tasks, compiling, strict=True):
        about = {
            "peer": f"JAX {task.layout}",
            "what": name,
            "precision": task.precision,
            "batch": task.batch,
        }
        try:
            compiled.result(timeout=0)
            tell(**about, **measured(task, expected))
        except Exception as error:
            tell(**about, failed=f"{type(error).__name__}: {str(error)[:200]}")
    os._exit(0)  # not waiting for what still compiles


def measured(task: Task, expected: np.ndarray) -> dict[str, float]:
    """The check, then the time."""
    wanted = tiled(expected, task.batch)
    error = float(np.abs(task.found() - wanted).max() / np.abs(wanted).max())
    assert error < AGREEMENT[task.precision], f"error {error}"
    seconds = seconds_a_call(task.advance)
    return {
        "rate": task.batch * task.times / seconds,
        "error": error,
        "compile_s": task.compile_seconds,
    }


if __name__ == "__main__":
    main()
