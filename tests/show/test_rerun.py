"""Recordings of Rerun, read back without its viewer."""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest

import axode as ax
from axode import errors
from axode.cli.trajectories import save_columns
from axode.mechanism.scene.scene import touch_axes
from axode.results.columns import Origin
from axode.show.motion import RunPoses
from axode.show.render.meshes import meshes
from logged_runs import balancer_run


@pytest.fixture(scope="module", autouse=True)
def rerun():
    return pytest.importorskip("rerun", reason="`make test-all` installs it")


SINGLE = 1e-6  # rounding of positions in single precision, times their size


def read(path):
    """Columns by entity: values over time, and those that do not change."""
    from rerun.chunk import RrdReader

    moving, fixed = {}, {}
    for chunk in RrdReader(str(path)).stream():
        batch = chunk.to_record_batch()
        named = dict(zip(batch.schema.names, batch.columns, strict=True))
        there = moving if "time" in named else fixed
        there.setdefault(str(chunk.entity_path), {}).update(named)
    return moving, fixed


def values(column, shape):
    """Numbers of a column of lists, one row per sample."""
    flat = column.flatten()
    while hasattr(flat, "flatten") and flat.type.num_fields:
        flat = flat.flatten()
    return np.asarray(flat).reshape(len(column), *shape)


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    path = tmp_path_factory.mktemp("logs") / "run.rrd"
    assert balancer_run().to_rerun(path) == path
    return read(path)


def test_poses_over_time(recording):
    run, (moving, _) = balancer_run(), recording
    _, poses = RunPoses(run).all_poses(len(run))
    for k, body in enumerate(run.model.bodies):
        found = moving["/world/bodies/" + body.replace(" ", r"\ ")]
        at = values(found["Transform3D:translation"], (3,))
        np.testing.assert_allclose(at, poses[:, k, :3, 3], atol=SINGLE)
        x, y, z, w = values(found["Transform3D:quaternion"], (4,)).T
        np.testing.assert_allclose(1 - 2 * (y * y + z * z), poses[:, k, 0, 0], atol=SINGLE)
        np.testing.assert_allclose(2 * (x * y + z * w), poses[:, k, 1, 0], atol=SINGLE)
        times = np.asarray(found["time"].cast("int64"))
        assert np.array_equal(times, np.rint(1e9 * run.time))


def test_solids_are_there_once(recording):
    _, fixed = recording
    for k, mesh in enumerate(meshes(balancer_run().model.scene)):
        found = fixed[f"/world/bodies/{mesh.body.replace(' ', chr(92) + ' ')}/mesh{k}"]
        vertices = values(found["Mesh3D:vertex_positions"], (-1, 3))[0]
        np.testing.assert_allclose(vertices, mesh.vertices, atol=SINGLE)
        triangles = values(found["Mesh3D:triangle_indices"], (-1, 3))[0]
        assert np.array_equal(triangles, mesh.triangles)


def test_columns_have_their_names_and_units(recording):
    run, (moving, fixed) = balancer_run(), recording
    for name in run.names:
        entity = "/signals/" + name.replace(".", "/")
        found = values(moving[entity]["Scalars:scalars"], ())
        assert np.array_equal(found, run[name], equal_nan=True), name
        label = fixed[entity]["SeriesLines:names"].to_pylist()[0][0]
        assert label == (f"{name} [{run.unit(name)}]" if run.unit(name) else name)


def test_contact_forces_are_arrows(recording):
    run, (moving, _) = balancer_run(), recording
    _, poses = RunPoses(run).all_poses(len(run))
    axes = touch_axes(run.model.scene, poses)
    arrows = values(moving["/world/contact_forces"]["Arrows3D:vectors"], (2, 3, 3))
    starts = values(moving["/world/contact_forces"]["Arrows3D:origins"], (2, 3, 3))
    for k, side in enumerate(("left", "right")):
        point = np.stack([run[f"{side}.contact.{c}"] for c in "xyz"], axis=-1)
        np.testing.assert_allclose(starts[:, k, 0], point, atol=SINGLE)
        length = np.sum(arrows[:, k, 2] * axes[:, k, 2], axis=-1)
        known = run[f"{side}.normal"]
        ratio = length[1:] / known[1:]
        assert np.ptp(ratio) < 1e-5 * ratio[0]  # in proportion to the forces
        assert not arrows[:, k, 1].any()  # two wheels of one axle: lateral forces are unknown


def test_springs_are_lines_between_their_ends(recording):
    run, (moving, _) = balancer_run(), recording
    _, poses = RunPoses(run).all_poses(len(run))
    lines = values(moving["/world/spring"]["LineStrips3D:strips"], (2, 3))
    pole, arm = poses[:, 0], poses[:, run.model.bodies.index("arm 1")]
    np.testing.assert_allclose(lines[:, 0], (pole @ [0.1, 0, 0.1, 1])[:, :3], atol=SINGLE)
    np.testing.assert_allclose(lines[:, 1], (arm @ [0, 0, -0.3, 1])[:, :3], atol=SINGLE)


def test_rate_and_choice(tmp_path):
    path = balancer_run().to_rerun(tmp_path / "run.rrd", rate=10, signals=["pitch"], forces=False)
    moving, _ = read(path)
    assert {entity for entity in moving if "signals" in entity} == {"/signals/base/pitch"}
    assert len(moving["/signals/base/pitch"]["time"]) == 11
    assert "/world/contact_forces" not in moving


def test_rerun_reads_the_mcap_log_of_the_run(tmp_path):
    """Its decoder of ROS 2 messages, in Rust, shares nothing with the one of the other tests."""
    from rerun.chunk import McapReader

    run = balancer_run()
    run.to_mcap(tmp_path / "run.mcap")
    moving = {}
    for chunk in McapReader(str(tmp_path / "run.mcap")).stream():
        batch = chunk.to_record_batch()
        if "message_log_time" in batch.schema.names:
            named = dict(zip(batch.schema.names, batch.columns, strict=True))
            moving.setdefault(str(chunk.entity_path), {}).update(named)
    joints = ("left", "right", "shoulder")
    for field, ending in (("position", ""), ("velocity", ".rate")):
        found = values(moving[f"/joint_states/{field}"]["Scalars:scalars"], (3,))
        wanted = np.stack([run[joint + ending] for joint in joints], axis=-1)
        np.testing.assert_allclose(found, wanted, rtol=1e-15, atol=1e-15)
    places = values(moving["/tf"]["Transform3D:translation"], (3,))
    at = np.stack([run[f"base.{c}"] for c in "xyz"], axis=-1)
    np.testing.assert_allclose(places.reshape(len(run), -1, 3)[:, 0], at, atol=SINGLE)


def test_a_window_opens_without_a_path(rerun, monkeypatch):
    opened = []
    monkeypatch.setattr(rerun.RecordingStream, "spawn", lambda stream: opened.append(stream))
    assert balancer_run().to_rerun() is None
    assert len(opened) == 1


def test_what_cannot_be_recorded(tmp_path, monkeypatch):
    run = balancer_run()
    with pytest.raises(errors.FileError, match=r"ends in \.rrd"):
        run.to_rerun(tmp_path / "run.rerun")
    if os.path.exists("/dev/full"):
        (tmp_path / "run.rrd").symlink_to("/dev/full")
        with pytest.raises(errors.FileError, match="No space left"):
            run.to_rerun(tmp_path / "run.rrd")
    monkeypatch.setitem(sys.modules, "rerun", None)
    with pytest.raises(errors.NotApplicable, match=r"pip install .*\[rerun\]"):
        run.to_rerun(tmp_path / "run.rrd")


def test_a_mechanism_without_wheels_from_the_command_line(tmp_path):
    model = ax.gallery.build("four_bar").derive().compile("interpreter")
    names = (*model.coordinates, *model.independent)
    run = ax.Trajectory(
        time=np.array([0.0, 0.1]),
        values=np.stack([[*model.home, *np.zeros(len(model.independent))]] * 2),
        names=names,
        units=("",) * len(names),
        kinds=dict.fromkeys(names, "measure") | dict.fromkeys(model.coordinates, "coordinate"),
        origin=Origin(model),
    )
    save_columns(run, tmp_path / "run.rrd")
    moving, fixed = read(tmp_path / "run.rrd")
    bodies = {entity for entity in moving if entity.startswith("/world/bodies/")}
    assert len(bodies) == len(model.bodies)
    assert values(fixed["/world"]["Transform3D:mat3x3"], (9,)).any()  # up is not z here
