"""Scenes: every mechanism has one, it stands where its model puts it, and pictures show it."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace
from functools import cache

import numpy as np
import pytest

import axode as ax
from axode import gallery
from axode.disk.bounded import as_dataclass
from axode.mechanism.mechanism import Mechanism
from axode.mechanism.scene.scene import GROUND, Scene, touch_axes, touch_points
from axode.mechanism.scene.shaping import JOINT, scene_of
from axode.model.model import Model
from axode.show.render.meshes import meshes
from axode.show.render.painter import SKY, Camera, camera_of, picture
from random_mechanisms import MECHANISMS
from variants import further

ROUNDING = 1e-9  # of coordinates and radii of the order of one
ON_THE_FLOOR = 1e-8  # [m]: what assembling leaves open
ALL = {**{name: lambda name=name: gallery.build(name) for name in gallery.NAMES}, **MECHANISMS}
ROLLING = (
    "caster_robot",
    "mecanum_rover",
    "pendulum_on_slope",
    "rolling_disk",
    "ballbot",
    "disk_on_plate",
)


def mechanism(name: str) -> Mechanism:
    return ALL[name]()


@cache
def model(name: str) -> Model:
    return mechanism(name).derive().compile(target="interpreter")


@pytest.mark.parametrize("name", sorted(ALL))
def test_everything_can_be_drawn(name: str) -> None:
    scene = scene_of(mechanism(name))
    assert as_dataclass(Scene, json.loads(json.dumps(asdict(scene))), "scene") == scene
    assert np.isfinite(scene.size) and scene.size > 0
    assert scene.bodies == tuple(body.name for body in mechanism(name).bodies)
    drawn = meshes(scene)
    assert drawn, "nothing is drawn"
    for mesh in drawn:
        assert mesh.body in (GROUND, *scene.bodies)
        assert np.isfinite(mesh.vertices).all() and len(mesh.triangles)
        assert mesh.triangles.min() >= 0 and mesh.triangles.max() < len(mesh.vertices)
        assert np.linalg.norm(mesh.normals, axis=1) == pytest.approx(1.0, abs=ROUNDING)


@pytest.mark.parametrize("name", sorted(ALL))
def test_triangles_face_outwards(name: str) -> None:
    """Their corners go round the way their normals say, as browsers need them to."""
    for mesh in meshes(scene_of(mechanism(name))):
        a, b, c = (mesh.vertices[mesh.triangles[:, k]] for k in range(3))
        around = np.cross(b - a, c - a)
        area = np.linalg.norm(around, axis=1)
        said = mesh.normals[mesh.triangles].mean(axis=1)
        real = area > 1e-9 * area.max()
        assert (np.einsum("ij,ij->i", around, said)[real] > 0).all()


@pytest.mark.parametrize("name", ROLLING)
def test_wheels_touch_their_floors(name: str) -> None:
    scene = model(name).scene
    points = touch_points(scene, model(name).poses(model(name).home))
    axes = touch_axes(scene, model(name).poses(model(name).home))
    poses = model(name).poses(model(name).home)
    for touch, point, (ahead, sideways, normal) in zip(scene.touches, points, axes, strict=True):
        floor = scene.floors[touch.floor]
        pose = scene.pose_of(floor.body, poses)
        start = pose[:3, :3] @ np.array(floor.point) + pose[:3, 3]
        assert normal @ (point - start) == pytest.approx(0.0, abs=ON_THE_FLOOR)
        frame = np.stack([ahead, sideways, normal])
        assert frame @ frame.T == pytest.approx(np.eye(3), abs=ROUNDING)
        assert np.linalg.det(frame) == pytest.approx(1.0)


@pytest.mark.parametrize("name", ROLLING)
def test_wheels_are_as_large_as_their_radius(name: str) -> None:
    """No part of a wheel reaches below the floor that it rolls on."""
    scene = scene_of(mechanism(name))
    for touch in scene.touches:
        own = [mesh for mesh in meshes(scene) if mesh.body == touch.body]
        away = np.concatenate([mesh.vertices for mesh in own]) - np.array(touch.at)
        if touch.axis is not None:
            axis = np.array(touch.axis)
            away = away - np.outer(away @ axis, axis)
        reach = np.linalg.norm(away, axis=1).max()
        assert touch.radius * 0.98 <= reach <= touch.radius * 1.07


@pytest.mark.parametrize("name", [*ROLLING, further("six_legged_platform")])
def test_round_things_look_round(name: str) -> None:
    """The sides of a circle are nowhere 1/3000 of the size inside it: 0.3 of 1000 pixels."""
    scene = scene_of(mechanism(name))
    for solid in scene.solids:
        if solid.kind != "cylinder":
            continue
        (mesh,) = meshes(replace(scene, solids=(solid,), stand_ins=()))
        own = (mesh.vertices - np.array(solid.at)) @ np.array(solid.axes).T
        turn = np.unique(np.round(np.arctan2(own[:, 1], own[:, 0]), 6))
        apart = np.diff([*turn, turn[0] + 2 * np.pi]).max()  # of neighbours on the rim
        assert solid.size[0] * (1.0 - np.cos(apart / 2)) < scene.size / 3000


def test_equal_legs_have_equal_colours() -> None:
    for name, legs in (("gough_stewart", 6), ("delta_robot", 3), ("planar_3rrr", 3)):
        scene = scene_of(gallery.build(name))
        seen: dict[str, set[tuple[int, int, int]]] = {}
        for solid in scene.solids:
            part = re.sub(r"(\d[ab]?|_[IV]+)$", "", solid.body)
            seen.setdefault(part, set()).add(solid.colour)
        painted = [colours - {JOINT} for colours in seen.values()]
        assert len(scene.bodies) > legs and all(len(colours) <= 1 for colours in painted)
        assert len(set().union(*painted)) == len([c for c in painted if c])  # parts differ


def test_the_parameters_shape_the_scene() -> None:
    described = mechanism("wheeled_pendulum")
    large = scene_of(described, {"r": 0.7})
    assert {touch.radius for touch in large.touches} == {0.7}
    assert large.size > scene_of(described).size


def test_the_camera_sees_all_of_it() -> None:
    robot = model("caster_robot")
    scene, poses = robot.scene, robot.poses(robot.home)
    camera = camera_of(scene, poses, 1.0)
    half = np.tan(camera.field / 2)
    for mesh in meshes(scene):
        pose = scene.pose_of(mesh.body, poses)
        seen = (mesh.vertices @ pose[:3, :3].T + pose[:3, 3] - camera.eye) @ camera.axes.T
        assert (seen[:, 2] < 0).all(), "behind the eye"
        assert (np.abs(seen[:, :2]) <= half * -seen[:, 2:]).all(), "outside the picture"


def test_camera_axes_are_a_frame() -> None:
    axes = Camera((0.0, 0.0, 0.0), 2.0).axes
    assert axes @ axes.T == pytest.approx(np.eye(3))
    assert np.linalg.det(axes) == pytest.approx(1.0) and axes[1, 2] > 0


def test_a_picture_shows_the_mechanism_and_that_a_wheel_turns() -> None:
    car = model("differential_drive")
    poses = car.poses(car.home)
    camera = camera_of(car.scene, poses, 1.2)
    still = picture(car.scene, poses, camera=camera, width=120, height=100)
    assert still.shape == (100, 120, 3) and still.dtype == np.uint8
    assert len(np.unique(still.reshape(-1, 3), axis=0)) > 100
    assert np.abs(still[0, 0] - SKY).max() < 60 < np.ptp(still)
    wheel = car.scene.bodies.index(car.scene.touches[0].body)
    turned = poses.copy()
    axis = turned[wheel, :3, :3] @ np.array(car.scene.touches[0].axis)
    turned[wheel, :3, :3] = _rotation(axis, 0.5) @ turned[wheel, :3, :3]
    spun = picture(car.scene, turned, camera=camera, width=120, height=100)
    assert (spun != still).any(axis=-1).mean() > 0.002
    assert (picture(car.scene, poses, camera=camera, width=120, height=100) == still).all()


def _rotation(axis: np.ndarray, angle: float) -> np.ndarray:
    x, y, z = axis / np.linalg.norm(axis)
    skew = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * skew + (1 - np.cos(angle)) * skew @ skew


def test_a_spring_is_a_cord_between_its_ends() -> None:
    bot = ax.Mechanism("hung")
    bob = bot.add_body("bob", mass=1.0, inertia=(0.1, 0.1, 0.1))
    bot.add_joint("rail", ax.Prismatic(axis=(0, 0, 1)), parent=bot.ground, child=bob)
    bot.add_spring("coil", stiffness=10.0, rest=1.0, parent=bot.ground, child=bob, at=(0, 0, 2))
    (cord,) = scene_of(bot).cords
    assert cord.bodies == ("ground", "bob") and cord.ends == ((0, 0, 2), (0, 0, 0))


@pytest.mark.parametrize("name", ["five_bar", "caster_robot", further("six_legged_platform")])
def test_the_camera_sees_the_whole_mechanism(name):
    """With a margin, and not from too far away: the picture's own frame is the measure."""
    model = ax.gallery.build(name).derive().compile("interpreter")
    image = picture(model.scene, model.poses(model.home), width=120, height=90).astype(int)
    empty = replace(model.scene, solids=model.scene.solids[:1])
    camera = camera_of(model.scene, model.poses(model.home))
    tiny = replace(empty, solids=(replace(empty.solids[0], size=(1e-6,) * 3),))
    bare = picture(tiny, model.poses(model.home), camera=camera, width=120, height=90).astype(int)
    seen = np.abs(image - bare).max(-1) > 72  # a shadow takes at most 70
    rows, columns = np.flatnonzero(seen.any(1)), np.flatnonzero(seen.any(0))
    assert rows[0] > 0 and rows[-1] < 89 and columns[0] > 0 and columns[-1] < 119
    assert np.ptp(rows) > 45 or np.ptp(columns) > 60


def test_a_planar_mechanism_is_seen_straight_on():
    views = {name: scene_of(mechanism(name)).view for name in ("five_bar", "planar_3rrr")}
    assert set(views.values()) == {(-np.pi / 2, 1.55)}  # from above, x to the right, y up
    linkage = scene_of(gallery.build("four_bar"))  # in an upright plane
    assert linkage.plane == (0.0, 0.0, 1.0) and linkage.view == pytest.approx((-np.pi / 2, 0.0))
    usual = {
        scene_of(mechanism(name)).view for name in ("five_axis_arm", "delta_robot", "unicycle")
    }
    assert usual == {(np.radians(-55), np.radians(22))}
    bent = ax.Mechanism("bent")  # nearly planar: its second axis is tilted
    a, b = (bent.add_body(n, mass=1.0, inertia=(0.1, 0.1, 0.1)) for n in "ab")
    bent.add_joint("one", ax.Revolute("z"), parent=bent.ground, child=a)
    bent.add_joint("two", ax.Revolute((0, 1e-4, 1)), parent=a, child=b, at=(1, 0, 0))
    assert scene_of(bent).plane == ()
    turned = ax.Mechanism("turned")  # the same plane, through a turned frame
    a, b = (turned.add_body(n, mass=1.0, inertia=(0.1, 0.1, 0.1)) for n in "ab")
    turned.add_joint("one", ax.Revolute("x"), parent=turned.ground, child=a, rotation=(0, 0, 0.3))
    turned.add_joint("two", ax.Prismatic("y"), parent=a, child=b, at=(0, 1, 0))
    normal = np.array(scene_of(turned).plane)
    assert normal == pytest.approx([np.cos(0.3), np.sin(0.3), 0.0])
    back = Camera((0.0, 0.0, 0.0), 1.0, *scene_of(turned).view).axes[2]
    assert abs(back @ normal) == pytest.approx(1.0)


def test_what_is_fixed_to_a_link_does_not_change_its_colour():
    solids = scene_of(mechanism("five_bar")).solids
    colours = {solid.body: solid.colour for solid in solids if solid.colour != JOINT}
    assert colours["link1"] == colours["link2"] != colours["crank1"] == colours["crank2"]


def test_up_is_against_gravity_unless_something_rolls():
    arm = ax.gallery.build("five_axis_arm").derive().compile("interpreter").scene
    assert arm.up == pytest.approx((0.0, 1.0, 0.0))
    assert arm.stance[:3, :3] @ np.array(arm.up) == pytest.approx([0.0, 0.0, 1.0])
    assert arm.stance[:3, :3] @ arm.stance[:3, :3].T == pytest.approx(np.eye(3))
    assert replace(arm, up=(0.0, 0.0, -1.0)).stance[:3, :3] @ [0, 0, -1] == pytest.approx([0, 0, 1])
    assert ax.gallery.build("unicycle").derive().compile("interpreter").scene.up == (0.0, 0.0, 1.0)


def test_a_coupling_is_a_line_between_its_joints() -> None:
    """From the first joint to the others, on the bodies that carry them; none along a base."""
    cords = scene_of(mechanism("differential_car")).cords
    assert [cord.bodies for cord in cords] == [("body", "body")] * 2
    shaft, left, right = (0.3, 0.0, 0.05), (0.0, 0.3, 0.0), (0.0, -0.3, 0.0)
    assert [cord.ends for cord in cords] == [(shaft, left), (shaft, right)]
    drawn = [cord.bodies for cord in scene_of(mechanism("coupled_tree")).cords]
    assert ("cross", "base") in drawn  # hinge and bolt, geared
    assert all("ground" not in bodies for bodies in drawn)
