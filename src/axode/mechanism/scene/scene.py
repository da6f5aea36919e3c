"""What a picture of a mechanism shows, as plain numbers: solids, floors, cords, contacts."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from axode.numerics.tolerances import NEGLIGIBLE, ROUNDING

Array: TypeAlias = npt.NDArray[np.float64]
Triple: TypeAlias = tuple[float, float, float]
Colour: TypeAlias = tuple[int, int, int]

GROUND = "ground"


@dataclass(frozen=True)
class Solid:
    """A solid that moves with a body.

    Attributes:
        body: The body it moves with; `GROUND` stays.
        kind: "box", "cylinder" (along its own z) or "sphere".
        size: Edges of a box; radius, length and 0 of a cylinder; radius, 0, 0 of a sphere [m].
        at: Its centre in the body's frame [m].
        axes: Its own x, y and z in the body's frame.
        colour: Red, green, blue, 0 to 255.
    """

    body: str
    kind: str
    size: Triple
    at: Triple
    axes: tuple[Triple, Triple, Triple]
    colour: Colour


@dataclass(frozen=True)
class Surface:
    """A surface in a file that moves with a body; programs that draw it read the file.

    Attributes:
        body: The body it moves with.
        file: Its address.
        scale: Along x, y and z of the file.
        at: The file's origin in the body's frame [m].
        axes: The file's x, y and z in the body's frame.
        colour: Red, green, blue, 0 to 255: where the file has no colours, or, with `painted`,
            instead of them.
        painted: Whether the colour was chosen by the description.
        folders: Folders outside of which no file is opened; any file if there are none.
    """

    body: str
    file: str
    scale: Triple
    at: Triple
    axes: tuple[Triple, Triple, Triple]
    colour: Colour
    painted: bool = False
    folders: tuple[str, ...] = ()


@dataclass(frozen=True)
class Floor:
    """A plane that something rolls on: a point and the unit normal, fixed to a body."""

    body: str
    point: Triple
    normal: Triple


@dataclass(frozen=True)
class Touch:
    """A wheel on its floor: centre and spin axis in the body that rolls; a ball has no axis."""

    name: str
    body: str
    at: Triple
    axis: Triple | None
    radius: float
    floor: int  # which of the scene's floors


@dataclass(frozen=True)
class Cord:
    """A line between points of two bodies, such as a spring."""

    bodies: tuple[str, str]
    ends: tuple[Triple, Triple]


LEVEL = 0.99  # least vertical part of the normal of a plane that is seen from above
ABOVE = 1.55  # [rad]: a little less than upright, where azimuths end


@dataclass(frozen=True)
class Scene:
    """All that is drawn; poses are asked of a model.

    Attributes:
        name: Name of the mechanism.
        bodies: Names in the order of the model's poses.
        solids, floors, touches, cords: What is drawn.
        surfaces: Surfaces in files, which are drawn where they can be read.
        stand_ins: Solids of the bodies that have surfaces in files, drawn where none of these can
            be read; also those of bodies without a shape, drawn where no surface of any body can.
        size: A length of the order of the mechanism's size [m].
        centres: Mass centres of the bodies, each in its own frame [m].
        up: Unit vector of the world that points up in pictures.
        plane: Unit normal of the plane in which all bodies move, if there is one; empty otherwise.
    """

    name: str
    bodies: tuple[str, ...]
    solids: tuple[Solid, ...]
    floors: tuple[Floor, ...]
    touches: tuple[Touch, ...]
    cords: tuple[Cord, ...]
    size: float
    centres: tuple[Triple, ...] = ()
    up: Triple = (0.0, 0.0, 1.0)
    surfaces: tuple[Surface, ...] = ()
    stand_ins: tuple[Solid, ...] = ()
    plane: tuple[float, ...] = ()

    @property
    def view(self) -> tuple[float, float]:
        """Azimuth and elevation of an eye that sees the mechanism well [rad].

        It looks straight at the plane in which all bodies move: from above if that is level.
        """
        if not self.plane:
            return math.radians(-55), math.radians(22)
        x, y, z = (self.stance[:3, :3] @ np.array(self.plane)).tolist()
        if abs(z) > LEVEL:
            return -math.pi / 2, ABOVE
        azimuth = math.atan2(y, x)
        if (round(-math.sin(azimuth), 9), math.cos(azimuth)) < (0.0, 0.0):  # x to the right
            azimuth += math.pi
        return azimuth, math.asin(min(abs(z), 1.0))

    @property
    def spacing(self) -> float:
        """A round distance between the lines of a floor: 1, 2 or 5 times a power of ten [m]."""
        rough = self.size / 2
        power = 10.0 ** math.floor(math.log10(rough))
        return power * max(
            step for step in (1.0, 2.0, 5.0) if step * power <= rough * (1 + NEGLIGIBLE)
        )

    @property
    def stance(self) -> Array:
        """Homogeneous matrix that turns the world so that up is z, by the smallest angle."""
        up, z = np.array(self.up), np.array([0.0, 0.0, 1.0])
        v, c = np.cross(up, z), float(up @ z)
        turned = np.eye(4)
        if c < -1.0 + ROUNDING:
            turned[:3, :3] = np.diag([1.0, -1.0, -1.0])
        else:
            K = np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])
            turned[:3, :3] = np.eye(3) + K + K @ K / (1.0 + c)
        return turned

    def pose_of(self, body: str, poses: Array) -> Array:
        """Homogeneous matrices of one body, from those of all: (..., 4, 4)."""
        if body == GROUND:
            return np.broadcast_to(np.eye(4), (*poses.shape[:-3], 4, 4))
        return poses[..., self.bodies.index(body), :, :]


def within_folders(scene: Scene, folders: tuple[str, ...] | None) -> Scene:
    """Return the same scene whose surfaces may be in these folders; None is a scene without any."""
    surfaces = () if folders is None else scene.surfaces
    return replace(
        scene, surfaces=tuple(replace(surface, folders=folders or ()) for surface in surfaces)
    )


def touch_points(scene: Scene, poses: Array) -> Array:
    """Where each wheel touches its floor, in the world [m]: (..., touches, 3)."""
    points = np.empty((*poses.shape[:-3], len(scene.touches), 3))
    for k, touch in enumerate(scene.touches):
        body = scene.pose_of(touch.body, poses)
        centre = body[..., :3, :3] @ np.array(touch.at) + body[..., :3, 3]
        down = -floor_normal(scene, scene.floors[touch.floor], poses)
        if touch.axis is not None:  # the lowest point of the rim, not of a ball around it
            axis = body[..., :3, :3] @ np.array(touch.axis)
            down = down - np.sum(down * axis, -1, keepdims=True) * axis
            length = np.linalg.norm(down, axis=-1, keepdims=True)
            down = np.divide(down, length, out=np.zeros_like(down), where=length > 0)
        points[..., k, :] = centre + touch.radius * down
    return points


def cord_ends(scene: Scene, poses: Array) -> Array:
    """Where each cord begins and ends, in the world [m]: (..., cords, 2, 3)."""
    ends = np.empty((*poses.shape[:-3], len(scene.cords), 2, 3))
    for k, cord in enumerate(scene.cords):
        for end, (body, at) in enumerate(zip(cord.bodies, cord.ends, strict=True)):
            pose = scene.pose_of(body, poses)
            ends[..., k, end, :] = pose[..., :3, :3] @ np.array(at) + pose[..., :3, 3]
    return ends


def touch_axes(scene: Scene, poses: Array) -> Array:
    """Longitudinal, lateral and normal direction of each contact: (..., touches, 3 axes, 3).

    A model gives contact forces along these axes; those of a ball are fixed in its floor.
    """
    axes = np.empty((*poses.shape[:-3], len(scene.touches), 3, 3))
    for k, touch in enumerate(scene.touches):
        floor = scene.floors[touch.floor]
        normal = floor_normal(scene, floor, poses)
        if touch.axis is None:
            ahead = scene.pose_of(floor.body, poses)[..., :3, :3] @ _level(np.array(floor.normal))
        else:
            spin = scene.pose_of(touch.body, poses)[..., :3, :3] @ np.array(touch.axis)
            ahead = np.cross(spin, normal)
            length = np.linalg.norm(ahead, axis=-1, keepdims=True)
            ahead = np.divide(ahead, length, out=np.zeros_like(ahead), where=length > 0)
        axes[..., k, :, :] = np.stack([ahead, np.cross(normal, ahead), normal], axis=-2)
    return axes


def _level(normal: Array) -> Array:
    """The x axis after the shortest turn that takes z to a normal."""
    x, y, z = normal
    if z < -1 + ROUNDING:
        return np.array([1.0, 0.0, 0.0])
    return np.array([1.0 - x * x / (1 + z), -x * y / (1 + z), -x])


def floor_normal(scene: Scene, floor: Floor, poses: Array) -> Array:
    """Unit normal of a floor in the world: (..., 3)."""
    return scene.pose_of(floor.body, poses)[..., :3, :3] @ np.array(floor.normal)
