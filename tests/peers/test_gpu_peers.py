"""What peers on a GPU are measured with, as far as it runs without one."""

import numpy as np
import pytest

from benchmarks.gpu.peers.parts import pack, unpack
from benchmarks.gpu.peers.pendulum import slip, starts

RADIUS, TRACK = 0.1, 0.4


@pytest.fixture
def rolling_states():
    rng = np.random.default_rng(3)
    q = np.zeros((50, 6))
    q[:, 3] = rng.uniform(-1, 1, 50)
    return starts(q, rng.normal(size=(50, 3)), RADIUS, TRACK)


def test_states_handed_to_mujoco_roll_without_slip(rolling_states):
    assert slip(*rolling_states, RADIUS, TRACK).max() < 1e-14


def test_a_wheel_that_turns_too_fast_slips_by_its_rim_speed(rolling_states):
    qpos, qvel = rolling_states
    qvel[:, 7] += 3.0
    assert np.allclose(slip(qpos, qvel, RADIUS, TRACK), 3.0 * RADIUS)


def test_mujoco_moves_the_wheels_as_the_states_say(rolling_states):
    mujoco = pytest.importorskip("mujoco")
    from benchmarks.peers.mujoco_pendulum import mujoco_pendulum
    from benchmarks.peers.mujoco_pendulum import slip as slip_in_mujoco

    model, data = mujoco_pendulum(1e-3)
    qpos, qvel = rolling_states
    qvel += np.random.default_rng(4).normal(size=qvel.shape)
    wanted = slip(qpos, qvel, RADIUS, TRACK)
    for row in range(5):
        data.qpos[:], data.qvel[:] = qpos[row], qvel[row]
        mujoco.mj_forward(model, data)
        assert slip_in_mujoco(model, data) == pytest.approx(wanted[row], rel=1e-9)


def test_a_folder_comes_back_from_its_parts_and_only_from_all_of_them(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.gpu.peers.parts.PIECE", 2**14)
    (tmp_path / "there" / "deep").mkdir(parents=True)
    content = np.random.default_rng(5).bytes(60_000)
    (tmp_path / "there" / "deep" / "file").write_bytes(content)
    parts = pack(tmp_path / "there", "some", tmp_path, limit=40_000)
    assert len(parts) > 1
    assert all(sum(p.stat().st_size for p in part.iterdir()) <= 40_000 for part in parts)
    unpack(parts, tmp_path / "again")
    assert (tmp_path / "again" / "deep" / "file").read_bytes() == content
    with pytest.raises(FileNotFoundError, match="of-"):
        unpack(parts[1:], tmp_path / "not")
