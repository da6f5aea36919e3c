"""MCAP logs, read by the packages mcap and mcap-ros2-support: every field is that of the run."""

from __future__ import annotations

import os
import re
import sys
import xml.etree.ElementTree as ElementTree
from collections import defaultdict

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import axode as ax
from axode import errors
from axode.cli.trajectories import save_columns
from axode.show.logs import mcap_log
from logged_runs import balancer_run

mcap_ros2 = pytest.importorskip("mcap_ros2", reason="pip install mcap-ros2-support")
from mcap.reader import NonSeekingReader, make_reader  # noqa: E402
from mcap_ros2._dynamic import serialize_dynamic  # noqa: E402
from mcap_ros2.decoder import DecoderFactory  # noqa: E402

ROUNDING = 1e-12  # of rotations that go through quaternions


def read(path):
    """Messages by topic in the order of time, and the channels; checksums are checked."""
    messages, channels = defaultdict(list), {}
    with open(path, "rb") as file:
        reader = make_reader(file, validate_crcs=True, decoder_factories=[DecoderFactory()])
        for schema, channel, message, decoded in reader.iter_decoded_messages():
            messages[channel.topic].append((message, decoded))
            channels[channel.topic] = (schema, channel)
        summary = reader.get_summary()
    return messages, channels, summary


def numbers(messages, *fields):
    """Values of nested fields in all messages of a topic."""

    def value(decoded, names):
        for name in names:
            decoded = getattr(decoded, name)
        return decoded

    found = [[value(m, field.split(".")) for field in fields] for _, m in messages]
    return np.array(found, dtype=float)


XYZ = ("x", "y", "z")
TOPIC = re.compile(r"(/[A-Za-z_][A-Za-z0-9_]*)+")


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    path = tmp_path_factory.mktemp("logs") / "run.mcap"
    assert balancer_run().to_mcap(path, forces=True) == path
    return read(path)


@pytest.mark.slow
def test_joint_states(log):
    run = balancer_run()
    messages = [m for _, m in log[0]["/joint_states"]]
    joints = ["left", "right", "shoulder"]
    assert all(list(m.name) == joints for m in messages) and len(messages) == len(run)
    for field, columns in (
        ("position", [run[name] for name in joints]),
        ("velocity", [run[f"{name}.rate"] for name in joints]),
        ("effort", [9.0 * run["left.torque"], 9.0 * run["right.torque"], 0 * run.time]),
    ):
        found = np.array([getattr(m, field) for m in messages])
        np.testing.assert_allclose(found, np.stack(columns, axis=-1), rtol=1e-15, atol=1e-15)


def test_the_description_names_the_bodies_once(log):
    ((message, text),) = log[0]["/robot_description"]
    assert message.log_time == 0
    robot = ElementTree.fromstring(text.data)
    assert set(balancer_run().model.bodies) <= {link.get("name") for link in robot.iter("link")}


def test_links_of_the_description_have_the_frames_of_the_transforms(tmp_path):
    length = ax.Parameter("length", 0.5)
    robot = ax.Mechanism("shifted")
    com = {"cart": (0.1, 0.2, 0.3), "arm": (0.3, 0.0, 0.1), "hand": (0.0, 0.0, 0.2)}
    for name in com:
        robot.add_body(name, mass=1.0, com=com[name], inertia=(1, 1, 1))
    robot.add_joint("base", ax.Planar((0, 0.6, 0.8)), parent="ground", child="cart")
    placed = {"child_at": (length, 0, 0), "child_rotation": (0.3, 0.2, 0.1)}
    robot.add_joint("pin", ax.Revolute("y"), parent="cart", child="arm", **placed)
    robot.add_joint("hinge", ax.Revolute("x"), parent="arm", child="hand", at=(0, length, 0))
    model = robot.derive(self_check=False).compile("interpreter")
    start = {"base.x": 0.2, "base.yaw": 0.4, "pin": 0.5, "hinge": -0.3}
    ax.simulate(model, 0.01, start=start, parameters={"length": 0.7}).to_mcap(tmp_path / "r.mcap")
    (_, text), *_ = read(tmp_path / "r.mcap")[0]["/robot_description"]
    (tmp_path / "r.urdf").write_text(text.data)
    again = ax.load(tmp_path / "r.urdf")
    there = again.derive(self_check=False).compile("interpreter")
    ours = model.poses([start.get(n, 0.0) for n in model.coordinates], parameters={"length": 0.7})
    theirs = there.poses([start.get(n, 0.0) for n in there.coordinates])
    for body, found in zip(model.bodies, ours, strict=True):
        np.testing.assert_allclose(theirs[there.bodies.index(body)], found, atol=1e-12)


def test_times(log):
    run = balancer_run()
    wanted = np.rint(run.time * 1e9).astype(int)
    for topic, messages in log[0].items():
        if topic == "/robot_description":
            continue
        assert [m.log_time for m, _ in messages] == wanted.tolist(), topic
        assert [m.publish_time for m, _ in messages] == wanted.tolist(), topic
        assert [m.sequence for m, _ in messages] == list(range(len(run))), topic
    stamps = [m.header.stamp for _, m in log[0]["/odom"]]
    assert [10**9 * s.sec + s.nanosec for s in stamps] == wanted.tolist()


def test_poses_of_all_bodies(log):
    run = balancer_run()
    q = np.stack([run[name] for name in run.model.coordinates], axis=-1)
    poses = run.model.poses(q, parameters=run.parameters)
    messages = [m for _, m in log[0]["/tf"]]
    frames = [*run.model.bodies, "left.contact", "right.contact"]
    assert all([t.child_frame_id for t in m.transforms] == frames for m in messages)
    assert {t.header.frame_id for m in messages for t in m.transforms} == {"world"}
    for k, body in enumerate(run.model.bodies):
        moved = [m.transforms[k].transform for m in messages]
        at = np.array([[getattr(t.translation, c) for c in XYZ] for t in moved])
        turned = np.array([[getattr(t.rotation, c) for c in (*XYZ, "w")] for t in moved])
        assert np.array_equal(at, poses[:, k, :3, 3]), body
        matrices = Rotation.from_quat(turned).as_matrix()
        np.testing.assert_allclose(matrices, poses[:, k, :3, :3], atol=ROUNDING)
        assert (np.sum(turned[1:] * turned[:-1], axis=-1) > 0).all()  # signs do not jump


def test_odometry_is_in_axes_of_the_body(log):
    run, messages = balancer_run(), log[0]["/odom"]
    assert {m.child_frame_id for _, m in messages} == {"pole"}
    linear = numbers(messages, *(f"twist.twist.linear.{c}" for c in XYZ))
    angular = numbers(messages, *(f"twist.twist.angular.{c}" for c in XYZ))
    position = numbers(messages, *(f"pose.pose.position.{c}" for c in XYZ))
    for found, names in ((linear, "vx vy vz"), (angular, "wx wy wz"), (position, "x y z")):
        columns = [run[f"base.{name}"] for name in names.split()]
        np.testing.assert_allclose(found, np.stack(columns, axis=-1), atol=1e-12)
    assert not any(m.twist.covariance[k] for _, m in messages for k in range(36))


def test_contact_forces_in_frames_at_the_contacts(log):
    run = balancer_run()
    for k, side in enumerate(("left", "right")):
        messages = log[0][f"/contact_forces/{side}"]
        assert {m.header.frame_id for _, m in messages} == {f"{side}.contact"}
        found = numbers(messages, *(f"wrench.force.{c}" for c in XYZ))
        parts = [run[f"{side}.{part}"] for part in ("longitudinal", "lateral", "normal")]
        assert np.array_equal(found, np.stack(parts, axis=-1), equal_nan=True)
        assert not numbers(messages, *(f"wrench.torque.{c}" for c in XYZ)).any()
        place = [m.transforms[4 + k].transform.translation for _, m in log[0]["/tf"]]
        point = np.array([[p.x, p.y, p.z] for p in place])
        measured = [run[f"{side}.contact.{c}"] for c in XYZ]
        np.testing.assert_allclose(point, np.stack(measured, axis=-1), atol=ROUNDING)


def test_other_columns_are_numbers_with_names_and_units(log):
    run = balancer_run()
    found = {
        channel.metadata["signal"]: (topic, channel.metadata["unit"])
        for topic, (_, channel) in log[1].items()
        if topic.startswith("/signals/")
    }
    contacts = {f"{s}.{part}" for s in ("left", "right") for part in mcap_parts()}
    motion = {*run.columns("coordinate"), *run.columns("speed")}
    assert set(found) == set(run.names) - contacts - motion
    for name, (topic, unit) in found.items():
        assert unit == run.unit(name)
        assert topic == "/signals/" + name.replace(".", "/")
        values = numbers(log[0][topic], "data")[:, 0]
        assert np.array_equal(values, run[name], equal_nan=True), name


def mcap_parts():
    return ("longitudinal", "lateral", "normal")


def test_bytes_are_those_of_another_encoder(log):
    """mcap-ros2-support encodes what was decoded to the same bytes, with the same definitions."""
    for topic, messages in log[0].items():
        schema, channel = log[1][topic]
        assert (schema.encoding, channel.message_encoding) == ("ros2msg", "cdr")
        encode = serialize_dynamic(schema.name, schema.data.decode())[schema.name]
        for message, decoded in messages[::10]:
            assert bytes(encode(decoded)) == message.data, topic


def test_summary_and_reading_without_it(log, tmp_path):
    messages, channels, summary = log
    statistics = summary.statistics
    assert statistics.message_count == sum(map(len, messages.values()))
    assert statistics.channel_count == len(channels) == len(messages)
    assert statistics.message_end_time == 10**9
    path = balancer_run().to_mcap(tmp_path / "run.mcap", forces=True, compression="lz4")
    with open(path, "rb") as file:
        reader = NonSeekingReader(file, validate_crcs=True)
        assert sum(1 for _ in reader.iter_messages()) == statistics.message_count


def test_many_chunks(monkeypatch, log, tmp_path):
    monkeypatch.setattr(mcap_log, "CHUNK", 30_000)
    path = balancer_run().to_mcap(tmp_path / "run.mcap", forces=True, compression="none")
    messages, _, summary = read(path)
    assert summary.statistics.chunk_count > 5
    assert {k: [m.data for m, _ in v] for k, v in messages.items()} == {
        k: [m.data for m, _ in v] for k, v in log[0].items()
    }


def test_prefix_rate_epoch_frame_and_signals(tmp_path):
    run = balancer_run()
    path = run.to_mcap(
        tmp_path / "run.mcap",
        prefix="/fleet/robot_1",
        rate=30.0,
        epoch=1_790_000_000.25,
        frame="map",
        signals=["pitch", "left.torque", "base.pitch"],
    )
    messages, _, _ = read(path)
    within = "/fleet/robot_1/"
    signals = ["signals/base/pitch", "signals/left/torque"]
    others = ("joint_states", "odom", "robot_description", *signals)
    assert set(messages) == {"/tf", *(within + name for name in others)}
    times = np.arange(31) / 30
    stamps = [m.log_time for m, _ in messages["/tf"]]
    assert stamps == [1_790_000_000_250_000_000 + round(1e9 * t) for t in times]
    again = run.resample(times)
    values = numbers(messages[f"{within}signals/base/pitch"], "data")[:, 0]
    assert np.array_equal(values, again["pitch"])
    frames = {(t.header.frame_id, t.child_frame_id) for t in messages["/tf"][0][1].transforms}
    assert ("map", "fleet/robot_1/arm 1") in frames
    speeds = numbers(messages[f"{within}odom"], "twist.twist.linear.x")[:, 0]
    np.testing.assert_allclose(speeds, again["base.vx"], atol=1e-12)


def test_a_run_backwards_and_one_from_a_file(tmp_path):
    run = balancer_run()
    back = run.changed(
        time=run.time[::-1],
        values=np.ascontiguousarray(run.values[::-1]),
        events=(),
        lengths=np.array(len(run)),
    )
    messages, _, _ = read(back.to_mcap(tmp_path / "back.mcap"))
    forth, _, _ = read(run.to_mcap(tmp_path / "forth.mcap"))
    assert [m for m, _ in messages["/odom"]] == [m for m, _ in forth["/odom"]]
    run.save(tmp_path / "run.npz")
    loaded = ax.Trajectory.load(tmp_path / "run.npz")
    with pytest.raises(errors.NotApplicable, match=r"pass it as model=\.\.\."):
        loaded.to_mcap(tmp_path / "loaded.mcap")
    known, _, _ = read(loaded.to_mcap(tmp_path / "loaded.mcap", model=run.model))
    assert [m for m, _ in known["/tf"]] == [m for m, _ in forth["/tf"]]
    less = run[[name for name in run.names if name != run.model.independent[0]]]
    with pytest.raises(errors.InvalidArgument, match="needs for the velocities"):
        less.to_mcap(tmp_path / "less.mcap")


def test_columns_whose_topics_would_be_the_same(tmp_path):
    run = balancer_run()
    names = {"tilt angle": 1.0, "tilt_angle": 2.0, "tilt/angle": 3.0, "2nd.größe..x": 4.0}
    more = run.with_columns({name: np.full(len(run), x) for name, x in names.items()})
    path = more.to_mcap(tmp_path / "run.mcap", signals=list(names))
    messages, channels, _ = read(path)
    found = {
        channels[topic][1].metadata["signal"]: (topic, decoded[0][1].data)
        for topic, decoded in messages.items()
        if topic.startswith("/signals/")
    }
    assert {name: value for name, (_, value) in found.items()} == names
    assert all(TOPIC.fullmatch(topic) for topic, _ in found.values())
    assert found["tilt_angle"][0] == "/signals/tilt_angle_2"


def test_one_sample(tmp_path):
    run = balancer_run().between(0.0, 0.0)
    for options in ({}, {"rate": 50.0}):
        messages, _, _ = read(run.to_mcap(tmp_path / "run.mcap", **options))
        assert len(messages["/odom"]) == 1


def test_a_model_from_a_file_knows_no_gears(tmp_path):
    run = balancer_run()
    functions = ["poses", "rates", "twists"]
    run.model.save(tmp_path / "robot.axm", functions)
    path = run.to_mcap(tmp_path / "run.mcap", model=ax.load_model(tmp_path / "robot.axm"))
    joints = read(path)[0]["/joint_states"][-1][1]
    assert list(joints.effort) == [] and joints.position[0] == run.final["left"]


def test_what_cannot_be_logged(tmp_path, monkeypatch):
    run, path = balancer_run(), tmp_path / "run.mcap"
    batch = run.changed(values=run.values[np.newaxis], lengths=np.array([len(run)]), events=())
    for fault, options, made in (
        ("a log holds one run, and the trajectory has 1", {}, batch),
        ("rate: expected samples per second", {"rate": 0.0}, run),
        ("rate: expected samples per second", {"rate": 1e12}, run),
        (r"time stamps of ROS go from 0 to 2\^31 s", {"epoch": -5.0}, run),
        (r"time stamps of ROS go from 0 to 2\^31 s", {"epoch": 2.0**31}, run),
        (r"time stamps of ROS go from 0 to 2\^31 s", {"epoch": float("nan")}, run),
        ("cannot begin the name of a topic", {"prefix": "1st robot"}, run),
        ("'pole' would name two frames", {"frame": "pole"}, run),
    ):
        with pytest.raises(errors.InvalidArgument, match=fault):
            made.to_mcap(path, **options)
    with pytest.raises(errors.UnknownName, match="an MCAP file has no compression 'zip'"):
        run.to_mcap(path, compression="zip")
    with pytest.raises(errors.UnknownName, match="no column 'pith'"):
        run.to_mcap(path, signals=["pith"])
    with pytest.raises(errors.FileError, match=r"ends in \.mcap"):
        run.to_mcap(tmp_path / "run.bag")
    with pytest.raises(errors.FileError, match="cannot write"):
        run.to_mcap(tmp_path / "nowhere" / "run.mcap")
    assert not path.exists()
    if os.path.exists("/dev/full"):
        path.symlink_to("/dev/full")
        with pytest.raises(errors.FileError, match="No space left"):
            run.to_mcap(path)
    monkeypatch.setitem(sys.modules, "mcap.records", None)
    with pytest.raises(errors.NotApplicable, match=r"pip install .*\[mcap\]"):
        run.to_mcap(path)


def test_the_ending_chooses_the_log_on_the_command_line(tmp_path):
    save_columns(balancer_run(), tmp_path / "run.mcap")
    assert {"/tf", "/odom", "/contact_forces/left"} <= set(read(tmp_path / "run.mcap")[0])
