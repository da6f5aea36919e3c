"""The study of `sweeps` as others do it: SciPy's solve_ivp under joblib, and MuJoCo's rollout.

Workers of joblib import this module and make what they need once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from scipy.integrate import solve_ivp

import axode as ax
from benchmarks.mechanisms import WHEEL, wheeled_pendulum

Array = np.ndarray
Rate = Callable[[float, Array], Array]
SPHERES = f'type="sphere" size="{WHEEL["radius"]}" conaffinity="0"'
FASTEST = 'integrator="Euler" iterations="1" ls_iterations="4"'  # that still rolls
KINDS = {"compiled": "compiled dynamics of Axode", "numpy": "NumPy code by SymPy's lambdify"}


@cache
def model() -> ax.Model:
    return wheeled_pendulum().derive().compile(parameters="fixed")


@cache
def compiled_rate() -> Rate:
    """The compiled dynamics, called once per evaluation."""
    own = model()
    n, m = len(own.coordinates), len(own.independent)
    u = np.zeros(len(own.inputs))

    def rate(_: float, x: Array) -> Array:
        return own.evaluate("state_rate", {"q": x[:n], "nu": x[n:], "u": u})[: n + m]

    return rate


@cache
def numpy_rate() -> Rate:
    """The equations of motion from SymPy as NumPy code, and a solve with the inertia matrix."""
    import sympy

    s = wheeled_pendulum().derive().to_sympy()
    n = len(s.q)
    force = s.tau + s.gamma + s.delta - s.bias
    parts = sympy.lambdify((s.q, s.nu, s.u), [s.I, force, s.Theta], "numpy", cse=True)
    u = np.zeros(len(s.u))

    def rate(_: float, x: Array) -> Array:
        inertia, forces, speed_map = parts(x[:n], x[n:], u)
        v = speed_map @ x[n:]  # surge and sway along the axle's own axes, then rates
        c, s = np.cos(x[2]), np.sin(x[2])
        q_dot = np.array([c * v[0] - s * v[1], s * v[0] + c * v[1], *v[2:]])
        return np.concatenate([q_dot, np.linalg.solve(inertia, forces)[:, 0]])

    return rate


def solve(kind: str, starts: Array, duration: float, tolerance: float) -> Array:
    """End states of some runs, one after the other."""
    rate = compiled_rate() if kind == "compiled" else numpy_rate()
    own = np.zeros(starts.shape)
    own[...] = starts  # arrays from a pickle have a dtype of their own, which slows calls down
    ends = [
        solve_ivp(rate, (0, duration), x, method="DOP853", rtol=tolerance, atol=tolerance).y[:, -1]
        for x in own
    ]
    return np.array(ends)


def solve_parallel(
    parallel: object, kind: str, starts: Array, duration: float, tolerance: float, parts: int
) -> Array:
    """The same on the workers of joblib, as many parts as there are to be shared."""
    from joblib import delayed

    work = [
        delayed(solve)(kind, part, duration, tolerance) for part in np.array_split(starts, parts)
    ]
    return np.concatenate(parallel(work))  # type: ignore[operator]


class MujocoStudy:
    """Runs of the pendulum by MuJoCo's rollout, on as many threads as asked for."""

    def __init__(self, starts: Array, step: float, threads: int, *, fastest: bool) -> None:
        import mujoco
        from mujoco import rollout

        from benchmarks.peers.mujoco_pendulum import document, start

        text = document(step, SPHERES, FASTEST) if fastest else document(step)
        self._model = mujoco.MjModel.from_xml_string(text)
        self._data = [mujoco.MjData(self._model) for _ in range(threads)]
        full = mujoco.mjtState.mjSTATE_FULLPHYSICS
        self._states = np.empty((len(starts), mujoco.mj_stateSize(self._model, full)))
        for state, (pitch, surge, yaw_rate) in zip(self._states, starts, strict=True):
            start(self._model, self._data[0], pitch, yaw_rate, surge)
            mujoco.mj_getState(self._model, self._data[0], state, full)
        self._rollout = rollout.Rollout(nthread=threads)

    def run(self, steps: int) -> Array:
        """States of all runs after the last step."""
        states, _ = self._rollout.rollout(self._model, self._data, self._states, nstep=steps)
        return states[:, -1]

    def pitches(self, states: Array) -> Array:
        """Leans of the pole."""
        import mujoco

        from benchmarks.peers.mujoco_pendulum import pitch_of

        found = []
        for state in states:
            mujoco.mj_setState(
                self._model, self._data[0], state, mujoco.mjtState.mjSTATE_FULLPHYSICS
            )
            mujoco.mj_kinematics(self._model, self._data[0])
            found.append(pitch_of(self._data[0]))
        return np.array(found)
