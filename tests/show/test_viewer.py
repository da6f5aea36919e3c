"""The viewer without a browser: playing, driving, listening, and leaving nothing behind."""

from __future__ import annotations

import asyncio
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import axode as ax
from axode import errors, gallery
from axode.mechanism.scene.scene import touch_axes, touch_points
from axode.model.model import Model
from axode.model.model_parts import facts_of
from axode.show.driving_axes import STEERING_ANGLE, driving_axes
from axode.show.motion import RunPoses
from axode.show.render.meshes import force_arrows
from axode.show.viewer.drawing import check_trails, trail_points
from axode.show.viewer.drive import Pull, RealTimeRun, pulled_speeds
from axode.show.viewer.driving import KeyCommands
from axode.show.viewer.playing import Playback

viser = pytest.importorskip("viser", reason="pip install axode[view]")

SETTLED = 0.05  # of the wanted speed: what is left of an error after several time constants


@cache
def model(name: str) -> Model:
    return gallery.build(name).derive().compile(target="interpreter")


@cache
def run() -> ax.Trajectory:
    torques = {"tau_R": 0.3, "tau_L": 0.2}
    return ax.simulate(gallery.build("differential_drive").derive().compile(), 2.0, input=torques)


@pytest.fixture
def opened() -> Iterator[list[Any]]:
    """Viewers to close, whatever happens."""
    viewers: list[Any] = []
    yield viewers
    for viewer in viewers:
        viewer.close()


def view(viewers: list[Any], what: Any, **options: Any) -> Any:
    options = {"port": 0, "open_browser": False, "block": False} | options
    viewers.append(ax.view(what, **options))
    return viewers[-1]


# playing -----------------------------------------------------------------------------------------


def test_time_passes_while_it_plays() -> None:
    playback = Playback(1.0, 3.0, loop=False)
    playback.advance(0.5)
    assert playback.time == 1.0
    playback.toggle()
    playback.speed = 2.0
    playback.advance(0.5)
    assert playback.time == 2.0 and playback.playing
    playback.advance(9.0)
    assert playback.time == 3.0 and not playback.playing
    playback.toggle()  # again, from the start
    assert playback.time == 1.0 and playback.playing


def test_a_loop_starts_again_and_a_backward_run_goes_back() -> None:
    playback = Playback(3.0, 1.0, playing=True)
    playback.advance(2.5)
    assert playback.playing and playback.time == pytest.approx(2.5)
    playback.seek(99.0)
    assert playback.time == 1.0
    still = Playback(0.0, 0.0, playing=True)  # a single sample
    still.advance(1.0)
    assert still.time == 0.0 and not still.playing


def test_a_motion_meets_its_samples_and_goes_straight_between() -> None:
    motion = RunPoses(run())
    poses = motion.model.poses(np.ascontiguousarray(motion.q))
    assert motion.poses(float(motion.time[7])) == pytest.approx(poses[7], abs=1e-12)
    middle = motion.coordinates(float(motion.time[7:9].mean()))
    assert middle == pytest.approx(motion.q[7:9].mean(axis=0))
    assert motion.coordinates(-5.0) == pytest.approx(motion.q[0])
    assert motion.coordinates(99.0) == pytest.approx(motion.q[-1])


def test_quaternions_take_the_short_way_and_stay_unit() -> None:
    disk = model("rolling_disk")
    tumbling = ax.simulate(disk, 0.2, start={disk.independent[0]: 2.0}, save_every=0.1)
    four = list(facts_of(disk).quaternions[0])
    motion = RunPoses(tumbling)
    before = motion.coordinates(0.05)
    motion.q = motion.q.copy()
    motion.q[1, four] *= -1.0  # the same rotation
    assert motion.coordinates(0.05) == pytest.approx(before)
    assert np.linalg.norm(before[four]) == pytest.approx(1.0)


def test_a_run_of_a_batch_keeps_its_own_parameters() -> None:
    both = ax.simulate(model("wheeled_pendulum"), 0.1, parameters={"r": [0.2, 0.3]})
    assert both.parameters == {} and both.model is model("wheeled_pendulum")
    assert [both.run(k).parameters["r"] for k in (0, 1)] == [0.2, 0.3]
    heights = [RunPoses(both.run(k)).poses(0.0)[:, 2, 3].max() for k in (0, 1)]
    assert heights[1] > heights[0]


def test_a_trajectory_from_a_file_needs_its_model(tmp_path: Path) -> None:
    run().save(tmp_path / "run.npz")
    loaded = ax.Trajectory.load(tmp_path / "run.npz")
    assert loaded.model is None
    with pytest.raises(errors.NotApplicable, match=r"view\(model=\.\.\.\)"):
        RunPoses(loaded)
    assert RunPoses(loaded, run().model).poses(1.0) == pytest.approx(RunPoses(run()).poses(1.0))
    with pytest.raises(errors.InvalidArgument, match="has no column"):
        RunPoses(loaded, model("four_bar"))


# on the picture ----------------------------------------------------------------------------------


def test_trails_are_mass_centres_and_contacts() -> None:
    car = run().model
    assert car is not None
    scene, poses = car.scene, car.poses(car.home)
    names = check_trails(scene, ["all contacts", scene.bodies[0]])
    assert len(names) == len(scene.touches) + 1
    points = trail_points(scene, names, poses)
    assert all(abs(points[name][2]) < 1e-9 for name in names[:-1])  # on the floor
    centre = poses[0, :3, :3] @ np.array(scene.centres[0]) + poses[0, :3, 3]
    assert points[scene.bodies[0]] == pytest.approx(centre)
    with pytest.raises(errors.UnknownName, match="Points: none"):
        check_trails(scene, ["nowhere"])


def test_arrows_show_known_forces_at_the_contacts() -> None:
    """In the world they add up to what the ground does to the robot."""
    slope = model("pendulum_on_slope")
    scene, poses = slope.scene, slope.poses(slope.home)
    forces = slope.contact_forces(slope.home, np.zeros(len(slope.independent)))
    points, colours = force_arrows(scene, poses, forces, usual=50.0)
    drawn = (np.abs(np.nan_to_num(forces)) > 1.0).sum()
    assert np.isnan(forces).any() and len(points) == len(colours) == drawn
    normal = touch_axes(scene, poses)[0, 2]
    longest = points[np.argmax(np.linalg.norm(points[:, 1] - points[:, 0], axis=1))]
    along = longest[1] - longest[0]
    assert along / np.linalg.norm(along) == pytest.approx(normal)
    twice = force_arrows(scene, poses, forces, usual=100.0)[0]
    assert np.linalg.norm(twice[..., 1, :] - twice[..., 0, :], axis=-1).max() == pytest.approx(
        0.5 * np.linalg.norm(along)
    )
    assert np.linalg.norm(along) > 2 * scene.touches[0].radius * np.nanmax(forces) / 50.0


def test_the_floor_ends_where_it_has_faded(opened: list[Any]) -> None:
    """Also under a chain of many short links, seen from far away; its cells are not too small."""
    chain = ax.Mechanism("chain")
    last: Any = chain.ground
    for k in range(30):
        link = chain.add_body(f"link{k}", mass=0.1, inertia=(1e-5, 1e-5, 1e-5))
        kind = ax.Fixed() if k else ax.Prismatic("x")
        chain.add_joint(f"joint{k}", kind, parent=last, child=link, at=(0.02, 0.0, 0.0))
        last = link
    drawing = view(opened, chain.derive().compile(target="interpreter")).drawing
    extent = np.ptp(drawing.poses[:, 0, 3])
    ((_, grid),) = drawing._floors
    ends = 0.5 * grid.width * (1.0 + grid.fade_distance)
    assert extent > 20 * drawing.scene.size and grid.fade_distance > 20 * extent
    assert ends > grid.fade_distance and extent / 50 < grid.cell_size < extent / 2


# driving -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["differential_drive", "five_bar", "four_bar"])
def test_motors_reach_the_speeds_asked_for(name: str) -> None:
    drive = RealTimeRun(model(name), 1.0)
    drive.running = True
    drive.wanted = 0.2 * drive.motors.most_rates
    for _ in range(30):
        drive.advance(0.02)
    rates = drive.motors.rates(drive.q, drive.nu, drive.options)
    assert drive.message == "" and drive.time == pytest.approx(0.6)
    assert rates == pytest.approx(drive.wanted, rel=SETTLED)


def test_torques_work_as_a_simulation_under_them() -> None:
    car = model("differential_drive")
    drive = RealTimeRun(car, 1.0, mode="torque")
    drive.advance(0.1)
    assert drive.time == 0.0  # it is paused
    drive.running, drive.wanted = True, np.array([0.3, 0.2])
    for _ in range(4):
        drive.advance(0.05)
    reference = ax.simulate(car, 0.2, input={"tau_R": 0.3, "tau_L": 0.2}, method="rk4", step=1e-3)
    assert drive.q == pytest.approx([reference.final[name] for name in car.coordinates])
    drive.reset()
    assert drive.time == 0.0 and drive.q == pytest.approx(car.home) and not drive.wanted.any()


def test_a_failure_stops_the_drive_with_a_word() -> None:
    drive = RealTimeRun(model("four_bar"), 1.0, mode="torque")
    drive.running, drive.wanted = True, np.array([np.nan])
    drive.advance(0.02)
    assert not drive.running and "finite" in drive.message and "\n" not in drive.message
    assert np.isfinite(drive.q).all() and drive.time == 0.0


def test_parameters_change_while_it_stands_closed() -> None:
    bar = model("four_bar")
    drive = RealTimeRun(bar, 1.0)
    name = next(n for n in bar.parameters if n.startswith(("l", "L", "a")))
    value = 1.02 * drive.parameters[name]
    drive.set_parameter(name, value)
    assert drive.parameters[name] == value
    assert bar.residual(drive.q, **drive.options) == pytest.approx(0.0, abs=1e-9)
    with pytest.raises(errors.LoopNotClosed):
        drive.set_parameter(name, 50.0 * value)
    assert drive.parameters[name] == value


def test_wrong_wishes_are_told() -> None:
    with pytest.raises(errors.InvalidArgument, match="neither 'speed' nor 'torque'"):
        RealTimeRun(model("four_bar"), 1.0, mode="power")
    with pytest.raises(errors.UnknownName, match="nonsense"):
        RealTimeRun(model("four_bar"), 1.0, parameters={"nonsense": 1.0})
    with pytest.raises(errors.InvalidArgument, match="not int"):
        ax.view(7)


def advance(drive: RealTimeRun, keys: KeyCommands, seconds: float) -> None:
    for _ in range(round(seconds / 0.02)):
        keys.advance(0.02)
        drive.advance(0.02)
    assert drive.message == ""


@pytest.mark.parametrize("name", ["differential_drive", "mecanum_rover", "tricycle"])
def test_keys_drive_vehicles(name: str) -> None:
    """Ahead moves the chassis without turning it; a turn to the left is counter-clockwise."""
    drive = RealTimeRun(model(name), 1.0)
    keys = KeyCommands(drive)
    drive.running = True
    before = drive.poses()[0]
    for _ in range(3):
        keys.press("ahead", 1)
    advance(drive, keys, 0.4)
    moved = drive.poses()[0] - before
    assert np.linalg.norm(moved[:2, 3]) > 0.02 and moved[:3, :3] == pytest.approx(0.0, abs=1e-6)
    keys.press("turn", 1)
    advance(drive, keys, 0.4)
    heading = before[:3, :3].T @ drive.poses()[0][:3, :3]
    assert heading[1, 0] > 1e-3


def test_keys_move_omnidirectional_vehicles_sideways() -> None:
    drive = RealTimeRun(model("mecanum_rover"), 1.0)
    keys = KeyCommands(drive)
    drive.running = True
    before = drive.poses()[0]
    keys.press("sideways", 1)
    advance(drive, keys, 0.4)
    moved = before[:3, :3].T @ (drive.poses()[0][:3, 3] - before[:3, 3])
    assert moved[1] > 0.005 and abs(moved[0]) < 1e-3 * moved[1]


@pytest.mark.slow
def test_keys_steer_by_an_angle_that_returns_to_the_centre() -> None:
    tricycle = model("tricycle")
    drive = RealTimeRun(tricycle, 1.0)
    keys = KeyCommands(drive)
    drive.running = True
    fork = tricycle.coordinates.index("delta")
    keys.press("turn", 1)
    advance(drive, keys, 0.5)
    assert drive.q[fork] == pytest.approx(0.25 * STEERING_ANGLE, rel=SETTLED)
    for _ in range(8):  # held
        keys.press("turn", 1)
        advance(drive, keys, 0.1)
        assert drive.q[fork] < 1.1 * STEERING_ANGLE
    assert drive.q[fork] == pytest.approx(STEERING_ANGLE, rel=SETTLED)
    advance(drive, keys, 1.8)
    assert drive.q[fork] == pytest.approx(0.0, abs=0.01) and not drive.wanted.any()
    drive.wanted[:] = [-0.2, 0.0]  # by the slider: it stays
    advance(drive, keys, 1.0)
    assert drive.q[fork] == pytest.approx(-0.2, rel=SETTLED)


def test_steering_returns_when_its_key_comes_up() -> None:
    """A page that reports releases: the angle grows while the key is down, and returns at once."""
    tricycle = model("tricycle")
    drive = RealTimeRun(tricycle, 1.0)
    keys = KeyCommands(drive)
    drive.running = True
    keys.let_go()  # of some key before
    keys.press("turn", -1)
    assert not drive.wanted.any()
    keys.advance(0.1)
    assert -STEERING_ANGLE < drive.wanted[0] < -0.2 * STEERING_ANGLE
    for _ in range(10):
        keys.press("turn", -1)  # repeated by the keyboard
        keys.advance(0.1)
    assert drive.wanted[0] == -STEERING_ANGLE
    keys.let_go()
    keys.advance(0.35)
    assert not drive.wanted.any()
    keys.press("turn", 1)
    for _ in range(20):  # a page that was closed reports nothing
        keys.advance(0.1)
    assert not drive.wanted.any()


def test_a_fork_behind_the_axle_turns_the_other_way() -> None:
    tricycle = model("tricycle")
    signs = []
    for wheelbase in (1.0, -1.0):
        options = {"parameters": dict(tricycle.parameters) | {"L": wheelbase}}
        axes = driving_axes(tricycle, tricycle.scene, np.array(tricycle.home), options)
        signs.append(axes[-1].rates[0])
    assert signs == [1.0, -1.0]


def test_keys_move_one_motor_of_what_stays() -> None:
    drive = RealTimeRun(model("five_bar"), 1.0)
    keys = KeyCommands(drive)
    assert drive.axes == ()
    keys.press("turn", -1)
    keys.press("ahead", 1)
    assert keys.picked == 1 and drive.wanted[0] == 0.0 < drive.wanted[1]


def test_sliders_are_named_after_what_they_set(opened: list[Any]) -> None:
    def labels(viewer: Any) -> list[str]:
        return [slider.label for slider in viewer.stage._sliders]

    tricycle = view(opened, model("tricycle"))
    assert labels(tricycle) == ["delta [rad]", "phi_F_dot [rad/s]"]
    assert "tau_steer" in tricycle.stage._sliders[0].hint
    torques = view(opened, model("tricycle"), drive="torque")
    assert labels(torques) == ["tau_steer [N m]", "tau_drive [N m]"]


@pytest.mark.parametrize("driven", [True, False])
def test_trails_and_arrows_are_where_the_wheels_are(opened: list[Any], driven: bool) -> None:
    what = run().model if driven else run()
    viewer = view(opened, what, trails="all contacts", forces=True, play=False)
    stage, drawing = viewer.stage, viewer.drawing
    with viewer._lock:
        if driven:
            stage.toggle()
            stage.drive.wanted[:] = 6.0
        else:
            stage.toggle()
        for _ in range(17):
            stage.tick(0.03)
            at = touch_points(drawing.scene, drawing.poses)
            tips = drawing._tips.points.reshape(-1, 3)
            missed = np.linalg.norm((tips[:, np.newaxis] - at)[..., :2], axis=-1).min(axis=0)
            assert missed == pytest.approx(0.0, abs=1e-6)
            if drawing._arrows is not None and drawing._arrows.visible:
                starts = drawing._arrows.points[:, 0]
                away = np.linalg.norm(starts[:, np.newaxis] - at, axis=-1).min(axis=1)
                assert away == pytest.approx(0.0, abs=1e-6)
        assert drawing._arrows is not None
        whole = drawing._trails[stage.looks.trails[0]].points
        assert np.linalg.norm(whole[-1, 1] - whole[0, 0]) > 0.05


def test_curves_are_laid_out_again_at_each_update(opened: list[Any]) -> None:
    """A chart that lost its axes gets them back, since a range has changed."""
    viewer = view(opened, run(), signals=("kinetic", "phi_R_dot", "phi_L_dot"), play=False)
    with viewer._lock:
        ends = set()
        for _ in range(2):
            viewer.stage._nudge(1)
            viewer.stage.tick(0.0)
            charts = viewer.stage._curves._charts
            ends.add(float(charts["J"].data[0][-1]))
    assert len(ends) == 2 and max(ends) - min(ends) < 1e-6 * max(ends)
    assert list(charts) == ["J", "rad/s"]
    assert [axis["label"] for axis in charts["rad/s"].axes] == ["t [s]", "rad/s"]
    labels = [series["label"] for series in charts["rad/s"].series]
    assert labels == ["t [s]", "phi_R_dot", "phi_L_dot", "already shown"]


# dragging ----------------------------------------------------------------------------------------


def test_a_spring_pulls_a_body_to_the_pointer() -> None:
    """Its force is J^T f: the work that it does is the energy that the robot gets."""
    pendulum = model("wheeled_pendulum")
    drive = RealTimeRun(pendulum, pendulum.scene.size, mode="torque")
    scene, poses = pendulum.scene, drive.poses()
    body = len(scene.bodies) - 1
    centre = np.array(scene.centres[body])
    held = poses[body, :3, :3] @ centre + poses[body, :3, 3]
    target = held + np.array([0.3, 0.0, 0.0])
    drive.pull = Pull(body, centre, centre, target, scene.size)
    drive.running = True
    apart = [np.linalg.norm(target - held)]
    for _ in range(25):
        drive.advance(0.04)
        pose = drive.poses()[body]
        apart.append(float(np.linalg.norm(target - pose[:3, :3] @ centre - pose[:3, 3])))
    assert drive.message == "" and min(apart) < 0.3 * apart[0] and max(apart) <= 1.01 * apart[0]


def test_an_impulse_of_the_spring_is_that_of_a_force_at_the_point() -> None:
    """Short and from rest: the same as the wrench on the body in the equations of motion."""
    arm = model("two_wheeled_cart")
    scene, q = arm.scene, np.array(arm.home)
    nu = np.linspace(0.1, 0.4, len(arm.independent))
    point, centre = np.array([0.1, 0.05, 0.2]), np.array(scene.centres[0])
    pose = arm.poses(q)[0]
    held = pose[:3, :3] @ point + pose[:3, 3]
    target = held + np.array([0.2, -0.1, 0.15])
    after = pulled_speeds(arm, q, nu, Pull(0, centre, point, target, scene.size), 1e-7, {})
    gained = arm.mass_matrix(q) @ (after - nu)

    def place(x: np.ndarray) -> np.ndarray:
        moved = arm.poses(np.ascontiguousarray(x))[0]
        return np.asarray(moved[:3, :3] @ point + moved[:3, 3])

    rates = arm.rates(q, np.eye(len(nu)))
    J = np.stack([(place(q + 1e-6 * r) - place(q - 1e-6 * r)) / 2e-6 for r in rates], axis=1)
    force = np.linalg.lstsq(J.T, gained, rcond=None)[0]
    assert J.T @ force == pytest.approx(gained, rel=1e-6, abs=1e-9 * np.abs(gained).max())


@pytest.mark.parametrize("off", [0.0, 1e-6, 1e-3])
def test_what_can_hardly_move_is_hardly_pulled(off: float) -> None:
    """A wheel of the tricycle, held where it touches the ground, or next to it."""
    tricycle = model("tricycle")
    scene, q = tricycle.scene, np.array(tricycle.home)
    nu = np.zeros(len(tricycle.independent))
    touch = scene.touches[0]
    body = scene.bodies.index(touch.body)
    contact = touch_points(scene, tricycle.poses(q))[0]
    pose = tricycle.poses(q)[body]
    point = pose[:3, :3].T @ (contact - pose[:3, 3]) + np.array([off, 0.0, off])
    target = contact + np.array([0.5, 0.5, 0.5])
    pull = Pull(body, np.array(scene.centres[body]), point, target, scene.size)
    after = pulled_speeds(tricycle, q, nu, pull, 0.02, {})
    assert np.abs(after).max() <= 1e-6 + 200.0 * off


def test_dragging_holds_the_point_under_the_pointer(opened: list[Any]) -> None:
    viewer = view(opened, model("mecanum_rover"), drive=False)
    drawing = viewer.drawing
    drag = drawing._drag_of(drawing.scene.bodies[0])
    start = np.array([0.1, 0.0, 0.2])
    event = partial(SimpleNamespace, start_position=tuple(start))
    for phase, end in (("start", start), ("update", start + 0.3)):
        asyncio.run(drag(event(phase=phase, end_position=tuple(end))))
    pull = drawing.pull()
    assert pull is not None and pull.body == 0
    pose = drawing.poses[0]
    assert pose[:3, :3] @ pull.point + pose[:3, 3] == pytest.approx(start)
    assert pull.target == pytest.approx(start + 0.3)
    drawing.show(drawing.poses)
    spring = drawing._pulled
    assert spring.visible and spring.points[0, 0] == pytest.approx(start, abs=1e-6)
    assert spring.points[-1, 1] == pytest.approx(start + 0.3, abs=1e-6)
    asyncio.run(drag(event(phase="end", end_position=(0.0, 0.0, 0.0))))
    assert drawing.pull() is None
    drawing.show(drawing.poses)
    assert not spring.visible


# recording ---------------------------------------------------------------------------------------


class Page:
    """A browser's page that draws grey pictures, ever lighter, and takes files."""

    def __init__(self, error: Exception | None = None) -> None:
        self.camera = SimpleNamespace(image_height=37, image_width=64)
        self.files: dict[str, bytes] = {}
        self.notes: list[str] = []
        self.drawn, self._error = 0, error

    def get_render(self, rows: int, columns: int, timeout: float) -> np.ndarray:
        if self._error is not None:
            raise self._error
        self.drawn += 1
        return np.full((rows, columns, 3), 20 * self.drawn % 256, np.uint8)

    def send_file_download(self, name: str, content: bytes, save_immediately: bool) -> None:
        self.files[name] = content

    def add_notification(self, title: str, body: str) -> None:
        self.notes.append(f"{title}: {body}")


def test_a_video_is_recorded_and_sent_to_the_page(opened: list[Any]) -> None:
    viewer = view(opened, run(), play=False)
    page = Page()
    viewer.recording.toggle(page)
    while page.drawn < 3:
        threading.Event().wait(0.01)
    assert viewer.recording.running and viewer.recording._button.label == "Stop recording"
    viewer.recording.toggle(page)
    viewer.recording._thread.join(20.0)
    assert not viewer.recording.running and viewer.recording._button.label == "Record"
    (name,) = page.files
    assert Path(name).stem == "differential_drive" and len(page.files[name]) > 100
    gone = Page(RuntimeError("the client disconnected"))
    viewer.recording.toggle(gone)
    viewer.recording._thread.join(20.0)
    assert gone.files == {} and gone.notes == ["No video: the client disconnected"]
    viewer.recording.toggle(page)
    viewer.close()  # in the middle
    assert not viewer.recording.running and len(page.files) == 1


# listening ---------------------------------------------------------------------------------------


def test_a_page_is_served_and_closing_leaves_nothing(opened: list[Any], capsys: Any) -> None:
    before = set(threading.enumerate())
    with view(opened, run(), trails="all contacts", signals="kinetic", forces=True) as viewer:
        assert viewer.url.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(viewer.url, timeout=20) as page:
            assert b"<html" in page.read()
        port = viewer.port
    assert viewer.closed and viewer.close() is None
    assert set(threading.enumerate()) <= before
    with socket.socket() as probe, pytest.raises(ConnectionRefusedError):
        probe.connect(("127.0.0.1", port))
    assert capsys.readouterr().out.startswith("Axode shows 'differential_drive' at http://")


def test_the_clock_survives_a_message_that_meets_the_sender(opened: list[Any]) -> None:
    viewer = view(opened, run())
    again = threading.Event()
    ticks: list[float] = []

    def tick(seconds: float) -> None:
        ticks.append(seconds)
        if len(ticks) == 1:
            raise RuntimeError("deque mutated during iteration")
        again.set()

    viewer.stage.tick = tick
    assert again.wait(20.0)


def test_a_port_in_use_is_named_or_avoided(opened: list[Any]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(errors.InvalidArgument, match=f"port {port} on 127.0.0.1 is in use"):
            view(opened, run(), port=port)
    with pytest.raises(errors.InvalidArgument, match=r"is no address of this machine"):
        view(opened, run(), host="198.51.100.7")
    with pytest.raises(errors.InvalidArgument, match="from 0 to 65535"):
        view(opened, run(), port=70000)
    first, second = (view(opened, run(), port=None) for _ in range(2))
    assert first.url != second.url


def test_others_are_let_in_with_a_warning_only(opened: list[Any]) -> None:
    with pytest.warns(UserWarning, match="may drive it"):
        viewer = view(opened, run(), host="0.0.0.0")
    assert viewer.url.startswith("http://127.0.0.1:")


def test_a_wrong_name_opens_nothing(opened: list[Any]) -> None:
    before = threading.active_count()
    with pytest.raises(errors.UnknownName, match="no point"):
        view(opened, run(), trails="nowhere")
    with pytest.raises(errors.UnknownName, match="no column"):
        view(opened, run(), signals="nothing")
    with pytest.raises(errors.InvalidArgument, match="speed: must be > 0"):
        view(opened, run(), speed=0.0)
    assert threading.active_count() == before


def test_without_viser_the_remedy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "viser", None)
    with pytest.raises(errors.NotApplicable, match=r"\[view\]"):
        ax.view(run(), block=False)


def test_shapes_follow_the_run_and_the_parameters(opened: list[Any]) -> None:
    both = ax.simulate(model("wheeled_pendulum"), 0.1, parameters={"r": [0.2, 0.3]})
    viewer = view(opened, both, play=False)
    assert viewer.drawing.scene.touches[0].radius == 0.2
    viewer.own(lambda event: viewer.stage.choose(1))(None)
    assert viewer.drawing.scene.touches[0].radius == 0.3
    driven = view(opened, model("wheeled_pendulum"), parameters={"r": 0.25})
    driven.own(lambda event: driven.stage.set_parameter("r", 0.4))(None)
    assert driven.drawing.scene.touches[0].radius == driven.poses[0, 2, 3] == pytest.approx(0.4)
    bar = view(opened, model("four_bar"))
    name = next(n for n in model("four_bar").parameters if n.startswith(("l", "L", "a")))
    bar.own(lambda event: bar.stage.set_parameter(name, 99.0))(None)
    assert bar.stage.drive.message.startswith(f"{name}: ")


def test_a_workspace_is_drawn_around_the_robot(opened: list[Any]) -> None:
    axis = np.linspace(-1.0, 1.0, 9)
    points = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1)
    margin = 0.5 - (points**2).sum(axis=-1)
    same = {"active": np.zeros(margin.shape, np.int16), "limits": ("l max",)}
    more = {"determinant": margin, "dexterity": margin}
    axes = {"x": axis, "y": axis, "z": axis}
    ball = ax.Workspace("ball", "constant-orientation", axes, {}, margin, **same, **more)
    with_it = view(opened, model("four_bar"), workspace=ball)
    assert "/world/surface" in with_it._server.scene._handle_from_node_name
    with pytest.raises(errors.InvalidArgument, match="workspace: expected a Workspace, got str"):
        view(opened, model("four_bar"), workspace="ball")
    turned = ax.Workspace("b", "pose", {"roll": axis} | axes, {}, margin, **same, **more)
    with pytest.raises(errors.InvalidArgument, match="a surface in space needs one over x, y, z"):
        view(opened, model("four_bar"), workspace=turned)


# the command line --------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_command_serves_until_it_is_interrupted() -> None:
    command = [
        sys.executable,
        "-P",
        "-c",
        "from axode.cli import main; main()",
        "view",
        "four_bar",
        "--no-browser",
        "--port",
        "0",
        "--drive",
    ]
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    listens = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # also if the tests do not
    with subprocess.Popen(command, preexec_fn=listens, **pipes) as process:
        try:
            line = process.stdout.readline()
            url = re.search(r"http://127\.0\.0\.1:\d+/\?token=[\w-]+", line)
            assert url, line + process.stderr.read()
            with urllib.request.urlopen(url[0], timeout=20) as page:
                assert b"<html" in page.read()
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=20)
        finally:
            process.kill()
    assert process.returncode == 0 and said == ""


def test_the_command_refuses_what_excludes_each_other(capsys: Any) -> None:
    from axode.cli import run as command

    assert command(["view", "four_bar", "--drive", "--time", "1"]) == 2
    assert "--time and --drive exclude each other" in _words(capsys.readouterr().err)
    assert command(["view", "four_bar", "--input", "tau=1"]) == 2
    assert "needs --time" in _words(capsys.readouterr().err)
    assert command(["view", "four_bar", "--run", "missing.npz"]) == 1
    assert "missing.npz" in capsys.readouterr().err


def _words(text: str) -> str:
    return " ".join(text.replace("│", " ").split())
