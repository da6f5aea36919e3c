"""Reverse derivatives of runs by others: MJX on soft contacts, JAX on Axode's own tape.

    python run_gradients.py DATA mjx|jax

The cost is half the squared length of the last state. It is differentiated by the start, through
all steps of a scan that keeps states and computes the rest again. The rate counts steps of the run,
each of them computed, computed again and walked back.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3]))
sys.path.insert(0, str(Path(__file__).parents[3] / "src"))
sys.path.append(os.environ.get("PEERS_SITE", ""))

os.environ.setdefault("XLA_FLAGS", "--xla_gpu_triton_gemm_any=true")
os.environ.setdefault("JAX_DEFAULT_MATMUL_PRECISION", "highest")

import jax
import jax.numpy as jnp
import numpy as np

from axode.model.model_parts import function_tape
from benchmarks.gpu.peers.reporting import seconds_a_call, tell, tiled, timed

ON_GPU = jax.default_backend() == "gpu"
BATCHES = (2**12, 2**15, 2**17) if ON_GPU else (2**6,)
STEPS = 100  # of a run; compiling takes the same time for more
OFFSET = 1e-5  # of a start, for differences
AGREEMENT = 1e-6  # of a derivative with differences in float64
Step = Callable[[Any], Any]


def cost_of(step: Step) -> Callable[[Any], Any]:
    """Sum over a batch of half the squared last states."""

    def cost(start: Any) -> Any:
        again = jax.checkpoint(jax.vmap(step))
        last, _ = jax.lax.scan(lambda x, _: (again(x), None), start, None, length=STEPS)
        return 0.5 * sum(jnp.sum(part * part) for part in jax.tree.leaves(last))

    return cost


def mjx_step(folder: Path) -> tuple[Step, Callable[[int], Any]]:
    """One step of MJX's fastest setting that rolls, and its starts."""
    import mujoco
    from mujoco import mjx

    model = mujoco.MjModel.from_xml_path(str(folder / "pendulum-spheres-euler.xml"))
    there, blank = mjx.put_model(model, impl="jax"), mjx.make_data(model, impl="jax")
    data = np.load(folder / "pendulum.npz")

    def step(state: Any) -> Any:
        after = mjx.step(there, blank.replace(qpos=state[0], qvel=state[1]))
        return after.qpos, after.qvel

    def starts(count: int) -> Any:
        return tuple(jnp.asarray(tiled(data[n], count), jnp.float32) for n in ("qpos", "qvel"))

    return step, starts


def tape_step(folder: Path) -> tuple[Step, Callable[[int], Any]]:
    """One Runge-Kutta step of Axode's tape in JAX, float64, and its starts."""
    import axode as ax
    from benchmarks.gpu.peers.jax_tape import on_vectors, rk4

    tape = function_tape(ax.load_model(folder / "pendulum.axm"), "state_rate")
    data, vectors = np.load(folder / "pendulum.npz"), on_vectors(tape)
    n_q, n_nu, n_u = data["q"].shape[1], data["nu"].shape[1], tape.inputs[2].size

    def rate(x: Any) -> Any:
        return vectors(x[:n_q], x[n_q:], (0.0,) * n_u)[: n_q + n_nu]

    start = np.concatenate([data["q"], data["nu"]], axis=1)
    return rk4(rate, float(data["h"])), lambda count: jnp.asarray(tiled(start, count))


def check(cost: Callable[[Any], Any], start: Any) -> float:
    """Relative difference of the derivative along a direction from central differences."""
    rng = np.random.default_rng(0)
    along = jax.tree.map(lambda x: jnp.asarray(rng.normal(size=x.shape), x.dtype), start)
    _, slope = jax.jvp(cost, (start,), (along,))
    gradient = jax.grad(cost)(start)
    found = sum(
        jnp.vdot(a, b) for a, b in zip(*map(jax.tree.leaves, (gradient, along)), strict=True)
    )

    def moved(sign: float) -> Any:
        return cost(jax.tree.map(lambda x, d: x + sign * OFFSET * d, start, along))

    differences = (moved(1.0) - moved(-1.0)) / (2 * OFFSET)
    assert np.isfinite(float(found)), "the gradient is not finite"
    return float(abs(found - differences) / abs(slope))


def rows(name: str, folder: Path) -> Iterator[dict[str, Any]]:
    """One row per batch."""
    step, starts = (mjx_step if name == "mjx" else tape_step)(folder)
    cost = cost_of(step)
    error = check(cost, starts(BATCHES[0]))
    for count in BATCHES:
        start, call = starts(count), jax.jit(jax.value_and_grad(cost))
        seconds_to_compile = timed(lambda: jax.block_until_ready(call(start)))  # noqa: B023

        def repeat(calls: int, call: Any = call, start: Any = start) -> None:
            for _ in range(calls):
                found = call(start)
            jax.block_until_ready(found)

        yield {
            "batch": count,
            "rate": count * STEPS / seconds_a_call(repeat),
            "against differences": error,
            "compile_s": seconds_to_compile,
        }


def main() -> None:
    """Measure one peer."""
    folder, name = Path(sys.argv[1]), sys.argv[2]
    precision = "float32" if name == "mjx" else "float64"
    jax.config.update("jax_enable_x64", name == "jax")
    tell(about=f"JAX {jax.__version__} on {jax.devices()[0].device_kind}")
    about = {"peer": name.upper(), "what": "gradient of a run", "precision": precision}
    try:
        for row in rows(name, folder):
            tell(**about, **row)
            if name == "jax":
                assert row["against differences"] < AGREEMENT, row
    except Exception as error:
        tell(**about, batch=0, failed=f"{type(error).__name__}: {str(error)[:300]}")


if __name__ == "__main__":
    main()
