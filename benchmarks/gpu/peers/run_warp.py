"""MuJoCo Warp: steps of a batch of wheeled pendulums, float32, replayed as a CUDA graph.

python run_warp.py DATA
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))
sys.path.append(os.environ.get("PEERS_SITE", ""))

import mujoco
import mujoco_warp as mjw
import numpy as np
import warp as wp

from benchmarks.gpu.peers.pendulum import rolling
from benchmarks.gpu.peers.reporting import seconds_a_call, tell, tiled, timed

ON_GPU = wp.get_device().is_cuda
SAMPLES = 2**12 if ON_GPU else 2**6
# Which model at which batches, the most telling first; the first batch is checked, too.
PLAN = {
    "spheres-euler": (SAMPLES, 2**19, 2**18, 2**17, 2**16, 2**14, 2**10),
    "spheres-default": (SAMPLES, 2**18),
    "spheres-rk4": (SAMPLES, 2**18),
    "cylinders-euler": (SAMPLES, 2**18),
}
# As small as they can be: each contact has four rows.
CONTACTS = {"spheres": 2, "cylinders": 8}
ROWS = 4


class Batch:
    """A batch of worlds of one model; on a GPU a step is a graph, launched again and again."""

    def __init__(self, path: Path, data: dict[str, np.ndarray], count: int, contacts: int) -> None:
        self.stored, self.count = data, count
        model = mujoco.MjModel.from_xml_path(str(path))
        self.model = mjw.put_model(model)
        # A loop inside the graph pays only where the solver may need more than one iteration.
        self.model.opt.graph_conditional = model.opt.iterations > 1
        self.data = mjw.make_data(model, count, nconmax=contacts, njmax=ROWS * contacts)
        self.reset()
        self.compile_seconds = timed(self._step_and_wait)
        self.graph = None
        if ON_GPU:
            with wp.ScopedCapture() as capture:
                mjw.step(self.model, self.data)
            self.graph = capture.graph
        self.reset()

    def reset(self) -> None:
        """Back to the start."""
        for to, rows in ((self.data.qpos, "qpos"), (self.data.qvel, "qvel")):
            wp.copy(to, wp.array(tiled(self.stored[rows], self.count), dtype=wp.float32))
        self.data.qacc_warmstart.zero_()
        wp.synchronize()

    def _step_and_wait(self) -> None:
        mjw.step(self.model, self.data)
        wp.synchronize()

    def advance(self, steps: int) -> None:
        """So many steps, and wait for the last."""
        for _ in range(steps):
            if self.graph is None:
                mjw.step(self.model, self.data)
            else:
                wp.capture_launch(self.graph)
        wp.synchronize()

    def state(self) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates and speeds."""
        return self.data.qpos.numpy().astype(float), self.data.qvel.numpy().astype(float)


def main() -> None:
    """One model and batch after the other."""
    folder = Path(sys.argv[1])
    data = dict(np.load(folder / "pendulum.npz"))
    tell(
        about=f"MuJoCo Warp {mjw.__version__} with MuJoCo {mujoco.__version__}, "
        f"Warp {wp.config.version} on {wp.get_device().name}"
    )
    for name, counts in PLAN.items():
        for count in counts if ON_GPU else counts[:1]:
            about = {"peer": "MuJoCo Warp", "what": name, "precision": "float32", "batch": count}
            path, contacts = folder / f"pendulum-{name}.xml", CONTACTS[name.split("-")[0]]
            try:
                tell(**about, **measured(Batch(path, data, count, contacts)))
            except Exception as error:
                tell(**about, failed=f"{type(error).__name__}: {str(error)[:200]}")


def measured(batch: Batch) -> dict[str, float]:
    """The check, where the batch is the stored one, then the time from the same start."""
    found = {}
    if batch.count == SAMPLES:
        found = rolling(batch.advance, batch.state, batch.stored)
        batch.reset()
    seconds = seconds_a_call(batch.advance)
    return {"rate": batch.count / seconds, "first_step_s": batch.compile_seconds, **found}


if __name__ == "__main__":
    main()
