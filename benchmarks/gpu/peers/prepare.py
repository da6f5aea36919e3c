"""Write all that `measure.py` needs on a machine with a GPU and no network, into a folder.

    python -m benchmarks.gpu.peers.prepare out/peers

`data` holds tapes, MJCF and what the CPU found; `mujoco-0`, `warp-0`, ... hold the peers' wheels in
parts. Needs a network and MuJoCo; `--data` writes the data alone, without a network.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

import axode as ax
from benchmarks import mechanisms
from benchmarks.gpu.peers.parts import pack
from benchmarks.gpu.peers.pendulum import starts
from benchmarks.gpu.peers.wheels import MUJOCO, WARP, fetch
from benchmarks.mechanisms import TRACK, WHEEL
from benchmarks.peers.mujoco_pendulum import CYLINDER, document

SAMPLES = 4096
STEP, STEPS = 1e-3, 1000
START = {"pitch": 0.3, "base.surge": 0.5, "base.yaw_rate": 0.5}  # of the first run
LIMIT = 45 * 2**20  # bytes in a part

# A sphere touches the ground below the wheel's centre, as the ideal wheel does, and in one point.
# No conaffinity: wheels touch the ground and not each other.
WHEELS = {
    "spheres": f'type="sphere" size="{WHEEL["radius"]}" conaffinity="0"',
    "cylinders": f'{CYLINDER} conaffinity="0"',
}
# Newton's method needs one iteration here, and few steps along its line: less is faster.
OPTIONS = {
    "euler": 'integrator="Euler" iterations="1" ls_iterations="4"',
    "rk4": 'integrator="RK4" iterations="1" ls_iterations="4"',
    "default": 'integrator="Euler"',
}


def prepare_map(folder: Path, name: str, equations: ax.Equations) -> None:
    """Direct dynamics at random states."""
    model = equations.compile(parameters="fixed")
    model.save(folder / f"{name}.axm", ["forward_dynamics"])
    rng = np.random.default_rng(0)
    samples = np.array(equations.system.samples)
    q = samples[rng.integers(len(samples), size=SAMPLES)]
    nu = rng.normal(size=(SAMPLES, len(model.independent)))
    u = rng.normal(size=(SAMPLES, len(model.inputs)))
    np.savez(
        folder / f"{name}.npz",
        q=q,
        nu=nu,
        u=u,
        expected=model.forward_dynamics(q, nu, u),
        operations=model.operations("forward_dynamics"),
    )


def prepare_pendulum(folder: Path) -> None:
    """A second of runs from random starts: for JAX as a tape, for MuJoCo as MJCF."""
    model = mechanisms.wheeled_pendulum().derive().compile(parameters="fixed")
    model.save(folder / "pendulum.axm", ["state_rate"])
    state, rng = ax.assemble(model, START), np.random.default_rng(0)
    q, nu = (np.tile(x, (SAMPLES, 1)) for x in (state.q, state.nu))
    q[1:, model.coordinates.index("pitch")] = rng.uniform(-0.5, 0.5, SAMPLES - 1)
    nu[1:] += rng.uniform(-0.5, 0.5, nu[1:].shape)
    run = ax.simulate(
        model,
        STEP * STEPS,
        start=(q, nu),
        method="rk4",
        step=STEP,
        save_every=STEP * STEPS,
        progress=False,
    )
    end = {
        key: np.stack([run[name][..., -1] for name in names], axis=-1)
        for key, names in (("q", model.coordinates), ("nu", model.independent))
    }
    qpos, qvel = starts(q, nu, WHEEL["radius"], TRACK)
    np.savez(
        folder / "pendulum.npz",
        q=q,
        nu=nu,
        qpos=qpos,
        qvel=qvel,
        expected_q=end["q"],
        expected_nu=end["nu"],
        h=STEP,
        steps=STEPS,
        radius=WHEEL["radius"],
        track=TRACK,
        operations=model.operations("state_rate"),
    )
    for wheels, geometry in WHEELS.items():
        for name, options in OPTIONS.items():
            path = folder / f"pendulum-{wheels}-{name}.xml"
            path.write_text(document(STEP, geometry, options))


def prepare_wheels(folder: Path) -> None:
    """The peers themselves, in parts."""
    with tempfile.TemporaryDirectory() as scratch:
        for name, wheels in (("mujoco", MUJOCO), ("warp", WARP)):
            fetch(wheels, Path(scratch) / name)
            for part in pack(Path(scratch) / name, name, folder, LIMIT):
                size = sum(path.stat().st_size for path in part.iterdir())
                print(f"{part}: {size / 2**20:.1f} MiB", flush=True)


def main() -> None:
    """Prepare everything."""
    given = [word for word in sys.argv[1:] if not word.startswith("--")]
    folder = Path(given[0] if given else "out/peers")
    data = folder / "data"
    shutil.rmtree(data if "--data" in sys.argv else folder, ignore_errors=True)
    data.mkdir(parents=True)
    prepare_map(data, "arm", mechanisms.arm().derive())
    platform = mechanisms.platform(6).derive(independent=mechanisms.platform_twist())
    prepare_map(data, "platform", platform)
    prepare_pendulum(data)
    if "--data" not in sys.argv:
        prepare_wheels(folder)
    print(f"all is in {folder}")


if __name__ == "__main__":
    main()
