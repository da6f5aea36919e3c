"""MJX, MuJoCo in JAX: steps of a batch of wheeled pendulums, float32.

    python run_mjx.py DATA

A loop carries coordinates, speeds and the solver's warm start, and nothing else of MuJoCo's data:
less memory is moved than where all of it is carried.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3]))
sys.path.append(os.environ.get("PEERS_SITE", ""))

# As MJX's manual advises for speed, and against the GPU's shortened float32 products.
os.environ.setdefault("XLA_FLAGS", "--xla_gpu_triton_gemm_any=true")
os.environ.setdefault("JAX_DEFAULT_MATMUL_PRECISION", "highest")

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from mujoco import mjx

from benchmarks.gpu.peers.pendulum import LOOKS, rolling
from benchmarks.gpu.peers.reporting import patience, seconds_a_call, tell, tiled, timed

ON_GPU = jax.default_backend() == "gpu"
SAMPLES = 2**12 if ON_GPU else 2**6
# Which model at which batches, the most telling first; the first batch is checked, too.
PLAN = {
    "spheres-euler": (SAMPLES, 2**19, 2**17, 2**15, 2**10),
    "spheres-default": (2**17,),
    "cylinders-euler": (SAMPLES, 2**17),
    "spheres-rk4": (SAMPLES, 2**17),
}


class Batch:
    """A batch of worlds of one model, `stride` steps per call."""

    def __init__(self, path: Path, data: dict[str, np.ndarray], count: int, stride: int) -> None:
        self.data, self.count, self.stride = data, count, stride
        model = mujoco.MjModel.from_xml_path(str(path))
        there = mjx.put_model(model, impl="jax")
        blank = mjx.make_data(model, impl="jax")

        def step(state: Any) -> Any:
            qpos, qvel, warm = state
            after = mjx.step(there, blank.replace(qpos=qpos, qvel=qvel, qacc_warmstart=warm))
            return after.qpos, after.qvel, after.qacc_warmstart

        def steps(state: Any) -> Any:
            return jax.lax.fori_loop(0, stride, lambda _, x: jax.vmap(step)(x), state)

        self.reset()
        self._lowered = jax.jit(steps).lower(self._state)

    def reset(self) -> None:
        """Back to the start."""
        rows = [self.data["qpos"], self.data["qvel"], np.zeros_like(self.data["qvel"])]
        self._state = tuple(jnp.asarray(tiled(x, self.count), jnp.float32) for x in rows)

    def compile(self) -> None:
        """The slow part; it lets other threads run."""
        self.compile_seconds = timed(self._compile)

    def _compile(self) -> None:
        self._call = self._lowered.compile()

    def repeat(self, calls: int) -> None:
        """Go on without waiting in between, and wait for the last call."""
        for _ in range(calls):
            self._state = self._call(self._state)
        jax.block_until_ready(self._state)

    def advance(self, steps: int) -> None:
        """So many steps, a multiple of the stride."""
        self.repeat(steps // self.stride)

    def state(self) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates and speeds."""
        return np.asarray(self._state[0], float), np.asarray(self._state[1], float)


def main() -> None:
    """Lower all, compile all at once, then check and time one after the other."""
    folder = Path(sys.argv[1])
    data = dict(np.load(folder / "pendulum.npz"))
    stride = int(data["steps"]) // LOOKS
    tell(
        about=f"MJX with MuJoCo {mujoco.__version__}, JAX {jax.__version__} on "
        f"{jax.devices()[0].device_kind}"
    )
    pool = ThreadPoolExecutor(os.cpu_count())
    waiting: list[tuple[str, Batch, Future[None]]] = []
    for name, counts in PLAN.items():
        for count in counts if ON_GPU else counts[:1]:
            batch = Batch(folder / f"pendulum-{name}.xml", data, count, stride)
            waiting.append((name, batch, pool.submit(batch.compile)))
    wait([future for *_, future in waiting], timeout=patience())
    for name, batch, compiled in waiting:
        about = {"peer": "MJX", "what": name, "precision": "float32", "batch": batch.count}
        try:
            compiled.result(timeout=0)
            tell(**about, **measured(batch))
        except Exception as error:
            tell(**about, failed=f"{type(error).__name__}: {str(error)[:200]}")
    os._exit(0)  # not waiting for what still compiles


def measured(batch: Batch) -> dict[str, float]:
    """The check, where the batch is the stored one, then the time of the same second of motion."""
    found = {}
    if batch.count == SAMPLES:
        found = rolling(batch.advance, batch.state, batch.data)
        batch.reset()
    seconds = seconds_a_call(batch.repeat) / batch.stride
    batch.reset()
    return {"rate": batch.count / seconds, "compile_s": batch.compile_seconds, **found}


if __name__ == "__main__":
    main()
