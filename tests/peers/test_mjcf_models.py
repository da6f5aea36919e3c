"""Models read from MJCF against MuJoCo's own computation of them."""

import warnings
from pathlib import Path

import mujoco
import numpy as np
import pytest

import axode as ax
from axode.mechanism.elements.joints import Fixed
from tests.mechanism.mjcf_models import LOOPS, TENDONS, TREES
from tests.peers.trees import quaternion_matrix, relative_error

TOLERANCE = 1e-9
FREE = int(mujoco.mjtJoint.mjJNT_FREE)


class Pair:
    """A model in both libraries, with maps between their vectors by the names of joints."""

    def __init__(self, mechanism: ax.Mechanism, model: mujoco.MjModel) -> None:
        self.mechanism, self.model = mechanism, model
        self.model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
        self.model.opt.jacobian = int(mujoco.mjtJacobian.mjJAC_DENSE)
        self.data = mujoco.MjData(self.model)
        # MuJoCo's joints in the order of the file, which is ours; massless slides come after
        moving = [c for c in self.mechanism.connections if not isinstance(c.joint, Fixed)]
        self.pairs = list(zip(range(self.model.njnt), moving, strict=False))
        self.speeds = [s for c in moving for s in c.speeds]

    def put_random(self, rng: np.random.Generator) -> tuple[dict, dict]:
        """Set a random state of MuJoCo; our coordinates and speeds by name."""
        model, data = self.model, self.data
        data.qpos[:] = model.qpos0 + rng.uniform(-1, 1, model.nq)
        mujoco.mj_normalizeQuat(model, data.qpos)
        data.qvel[:] = rng.uniform(-2, 2, model.nv)
        mujoco.mj_forward(model, data)
        q: dict[str, float] = {}
        v: dict[str, float] = {}
        for number, connection in self.pairs:
            start, dof = model.jnt_qposadr[number], model.jnt_dofadr[number]
            x = data.qpos[start : start + len(connection.coordinates)]
            w = data.qvel[dof : dof + connection.joint.dof]
            if model.jnt_type[number] == FREE:
                R = quaternion_matrix(x[3:])
                x, w = np.concatenate([x[3:], x[:3]]), np.concatenate([w[3:], R.T @ w[:3]])
            q |= dict(zip(connection.coordinates, x, strict=True))
            v |= dict(zip(connection.speeds, w, strict=True))
        return q, v

    def put(self, q: dict, v: dict) -> None:
        """Set a state of MuJoCo given in our coordinates and speeds by name."""
        for number, connection in self.pairs:
            start, dof = self.model.jnt_qposadr[number], self.model.jnt_dofadr[number]
            x = np.array([q[name] for name in connection.coordinates])
            w = np.array([v[name] for name in connection.speeds])
            if self.model.jnt_type[number] == FREE:
                R = quaternion_matrix(x[:4])
                x, w = np.concatenate([x[4:], x[:4]]), np.concatenate([R @ w[3:], w[:3]])
            self.data.qpos[start : start + len(x)] = x
            self.data.qvel[dof : dof + len(w)] = w
        mujoco.mj_forward(self.model, self.data)

    def mass_matrix(self) -> np.ndarray:
        """MuJoCo's, for its own speeds."""
        M = np.zeros((self.model.nv, self.model.nv))
        mujoco.mj_fullM(self.model, self.data, M)
        return M

    def speed_map(self, v: dict) -> tuple[np.ndarray, np.ndarray]:
        """N and N_dot v of MuJoCo's speeds N v."""
        n = self.model.nv
        N, N_dot_v = np.eye(n), np.zeros(n)
        for number, connection in self.pairs:
            if self.model.jnt_type[number] == FREE:
                at, dof = self.model.jnt_qposadr[number], self.model.jnt_dofadr[number]
                R = quaternion_matrix(self.data.qpos[at + 3 : at + 7])
                w = np.array([v[name] for name in connection.speeds])
                first, last = slice(dof, dof + 3), slice(dof + 3, dof + 6)
                N[first, first] = N[last, last] = 0.0
                N[first, last], N[last, first] = R, np.eye(3)
                N_dot_v[first] = R @ np.cross(w[:3], w[3:])
        return N, N_dot_v


def load_both(text: str, folder: Path) -> Pair:
    """Read a text by both libraries."""
    path = folder / "robot.xml"
    path.write_text(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mechanism = ax.load(path)
    return Pair(mechanism, mujoco.MjModel.from_xml_string(text))


@pytest.mark.parametrize("name", TREES)
def test_trees_have_the_inertia_and_forces_of_mujoco(name, tmp_path):
    pair = load_both(TREES[name], tmp_path)
    model = pair.mechanism.derive().compile("interpreter")
    assert list(model.independent) == pair.speeds
    rng = np.random.default_rng(5)
    for _ in range(3):
        q, v = pair.put_random(rng)
        N, N_dot_v = pair.speed_map(v)
        M, data = pair.mass_matrix(), pair.data
        assert relative_error(model.mass_matrix(q), N.T @ M @ N) < TOLERANCE
        wanted = N.T @ (data.qfrc_bias - data.qfrc_passive + M @ N_dot_v)
        found = model.bias(q, v) - model.potential_force(q) - model.dissipative_force(q, v)
        assert relative_error(found, wanted) < TOLERANCE
        data.ctrl[:] = rng.uniform(-1, 1, pair.model.nu)
        mujoco.mj_forward(pair.model, data)
        given = {pair.model.actuator(k).name: data.ctrl[k] for k in range(pair.model.nu)}
        u = [given[motor.name] for motor in pair.mechanism.drives]
        if u:
            assert relative_error(model.input_force(q, u), N.T @ data.qfrc_actuator) < TOLERANCE


@pytest.mark.parametrize("name", [*LOOPS, "tendons"])
def test_loops_have_the_equality_constraints_of_mujoco(name, tmp_path):
    """The same motions are possible, and the forces along them are the same."""
    pair = load_both({**LOOPS, "tendons": TENDONS}[name], tmp_path)
    model = pair.mechanism.derive().compile("interpreter")
    rng = np.random.default_rng(6)
    free, speeds = (
        list(model.independent),
        [s for c in pair.mechanism.connections for s in c.speeds],
    )
    for _ in range(3):
        near = {
            n: x + rng.uniform(-0.05, 0.05)
            for n, x in zip(model.coordinates, model.home, strict=True)
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ax.errors.RequestNotMetWarning)
            state = ax.assemble(model, near)
        q, nu = state.q, rng.uniform(-1, 1, len(free))
        nu_dot = model.forward_dynamics(q, nu, np.zeros(len(model.inputs)))
        n = pair.model.nv  # slides of tendons come after MuJoCo's own joints
        own = [speeds.index(speed) for speed in pair.speeds[:n]]
        v = dict(zip(speeds, model.joint_speeds(q, nu), strict=True))
        pair.put(dict(zip(model.coordinates, q, strict=True)), v)
        N, N_dot_v = pair.speed_map(v)
        motions = N @ model.speed_map(q)[own]
        rows = pair.data.efc_J[: pair.data.ne * n].reshape(-1, n)
        assert np.abs(pair.data.efc_pos[: pair.data.ne]).max(initial=0.0) < TOLERANCE
        assert np.abs(rows @ motions).max(initial=0.0) < TOLERANCE
        assert np.linalg.matrix_rank(rows, 1e-6) + len(free) == n
        M, data = pair.mass_matrix(), pair.data
        v_dot = N @ model.accelerations(q, nu, nu_dot)[own] + N_dot_v
        left = motions.T @ (M @ v_dot + data.qfrc_bias - data.qfrc_passive)
        scale = np.abs(motions.T) @ np.abs(data.qfrc_bias - data.qfrc_passive) + np.abs(M).max()
        assert np.abs(left).max() / scale.max() < TOLERANCE


def test_a_motor_on_a_tendon_acts_as_in_mujoco(tmp_path):
    pair = load_both(TENDONS, tmp_path)
    model = pair.mechanism.derive(independent=["one", "two", "three"]).compile("interpreter")
    pair.data.ctrl[:] = 0.6, 0.2
    q, v = pair.put_random(np.random.default_rng(8))
    q["pull"] = 0.7 * q["one"] - 0.4 * q["two"]
    found = model.forward_dynamics(q, {n: v[n] for n in model.independent}, [0.6, 0.2])
    assert relative_error(found, pair.data.qacc) < TOLERANCE
