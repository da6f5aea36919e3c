"""Viewpoints, and pictures of a scene in many poses: no display, no browser, no GPU."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from axode.codegen.targets.rasteriser import PixelBuffer, aligned, resolve, whole_vectors
from axode.mechanism.scene.scene import GROUND, Array, Scene, Triple, cord_ends, floor_normal
from axode.show.render.meshes import TriangleMesh, meshes, rods


@dataclass(frozen=True)
class Camera:
    """A viewpoint: it looks at `target` from a distance, turned about the vertical, and raised.

    Attributes:
        target: The point in the middle of the picture [m].
        distance: From there [m].
        azimuth, elevation: Direction from the target to the eye [rad].
        field: Opening angle of the picture's height [rad].
    """

    target: Triple
    distance: float
    azimuth: float = math.radians(-55)
    elevation: float = math.radians(22)
    field: float = math.radians(30)

    @classmethod
    def around(
        cls,
        points: Array,
        azimuth: float | None = None,
        elevation: float | None = None,
        aspect: float = 4 / 3,
    ) -> Camera:
        """Return a camera that sees all points."""
        low, high = points.min(0), points.max(0)
        centre = (low + high) / 2
        camera = cls((float(centre[0]), float(centre[1]), float(centre[2])), 1.0)
        turn = camera.azimuth if azimuth is None else azimuth
        raised = camera.elevation if elevation is None else elevation
        camera = cls(camera.target, 1.0, turn, raised)
        seen = (points - centre) @ camera.axes.T
        half = math.tan(camera.field / 2) * 0.86
        needed = np.maximum(np.abs(seen[:, 0]) / (half * aspect), np.abs(seen[:, 1]) / half)
        distance = float(np.max(needed + seen[:, 2]))  # what is nearer looks larger
        return cls(camera.target, max(distance, 1e-3), turn, raised)

    @property
    def axes(self) -> Array:
        """Rows: right, up, and backwards from the target to the eye."""
        ca, sa = math.cos(self.azimuth), math.sin(self.azimuth)
        ce, se = math.cos(self.elevation), math.sin(self.elevation)
        return np.array([[-sa, ca, 0.0], [-se * ca, -se * sa, ce], [ce * ca, ce * sa, se]])

    def pixel(self, height: int) -> float:
        """Return the size of a pixel at the target, in a picture of this many rows [m]."""
        return 2.0 * self.distance * math.tan(self.field / 2) / height

    @property
    def eye(self) -> Array:
        """Where it stands [m]."""
        return np.array(self.target) + self.distance * self.axes[2]


# pictures -----------------------------------------------------------------------------------------


SKY = np.array([247.0, 248.0, 250.0])
FLOOR = np.array([231.0, 233.0, 236.0])
LINE = np.array([205.0, 209.0, 214.0])
SUN = np.array([-0.42, -0.40, 0.82]) / np.linalg.norm([-0.42, -0.40, 0.82])
LINE_WIDTH = 0.65  # half of it, in pixels
SIGHT = 6.0  # distances of the camera: the floor fades away until there
SHADOW = 0.28  # of the floor's light that it takes
CORD = 0.008  # radius of a spring, in sizes of the mechanism
CORD_COLOUR = (96, 104, 112)
LOWEST_SUN = 0.05  # sine of its height above the floor: below it there are no shadows

Image = npt.NDArray[np.uint8]
Indices = npt.NDArray[np.int32]
TRACKS = ((60, 105, 220), (235, 120, 50))
TRACK_WIDTH = 0.012  # half of it, in sizes of the mechanism


class ScenePainter:
    """Draws a scene in any poses, from any camera, at one size.

    Args:
        scene: What is drawn.
        drawn: Its triangles, if they are known.
        width, height: In pixels.
    """

    def __init__(
        self,
        scene: Scene,
        drawn: Sequence[TriangleMesh] | None = None,
        width: int = 640,
        height: int = 480,
    ) -> None:
        self.scene, self.width, self.height = scene, width, height
        self.drawn = meshes(scene) if drawn is None else list(drawn)
        self._solids = _Batch(self.drawn)
        wide = whole_vectors(width)
        self._fine = PixelBuffer(2 * wide, 2 * height)
        self._shadows = PixelBuffer(width, height)
        self._shade = aligned((height, wide), np.float32)
        self._result = aligned((height, wide), np.uint32)

    def paint(
        self,
        poses: Array,
        camera: Camera,
        extra: Sequence[TriangleMesh] = (),
        *,
        ground: float | None = None,
    ) -> Image:
        """Paint a picture: (height, width, 3), 0 to 255.

        Args:
            poses: Poses of all bodies: (bodies, 4, 4).
            camera: Viewpoint.
            extra: Triangles in the world that cast no shadow, such as tracks.
            ground: Height of the floor where the scene has none, below everything by default [m].
        """
        points, normals = self._solids.placed(self.scene, poses)
        point, normal = self._floor(poses, points, ground)
        self._fine.clear()
        lens = _Lens(camera, 2 * self.width, 2 * self.height)
        self._fine.draw(self._solids.seen(lens, points, normals), self._solids.corners)
        extra = [*extra, *self._cords(poses, camera)]
        if extra:
            batch = _Batch(extra)
            self._fine.draw(batch.seen(lens, batch.vertices, batch.normals), batch.corners)
        view = _Lens(camera, self.width, self.height)
        self._cast(view, points, point, normal)
        numbers = _floor_numbers(view, point, normal, self.scene.spacing)
        resolve(self._fine, self._shade, numbers, self._result)
        pixels = self._result.view(np.uint8).reshape(self.height, -1, 4)
        return np.ascontiguousarray(pixels[:, : self.width, :3])

    def _cords(self, poses: Array, camera: Camera) -> Iterator[TriangleMesh]:
        """Springs and belts, as thin rods."""
        if not self.scene.cords:
            return
        ends = cord_ends(self.scene, poses) @ self.scene.stance[:3, :3].T
        thickness = max(CORD * self.scene.size, 0.6 * camera.pixel(self.height))
        yield rods(ends[:, 0], ends[:, 1], thickness, CORD_COLOUR)

    def _floor(self, poses: Array, points: Array, ground: float | None) -> tuple[Array, Array]:
        """A point and the normal of the floor, the first of the scene or one below everything."""
        if not self.scene.floors:
            if ground is None:
                ground = float(points[:, 2].min()) if len(points) else 0.0
            return np.array([0.0, 0.0, ground]), np.array([0.0, 0.0, 1.0])
        floor = self.scene.floors[0]
        pose = self.scene.pose_of(floor.body, poses)
        return (
            pose[:3, :3] @ np.array(floor.point) + pose[:3, 3],
            floor_normal(self.scene, floor, poses),
        )

    def _cast(self, lens: _Lens, points: Array, point: Array, normal: Array) -> None:
        """Find where the solids keep the sun from the floor, softly at the rim."""
        rise = float(SUN @ normal)
        self._shade.fill(0.0)
        if rise <= LOWEST_SUN or not len(points):
            return
        flat = points - np.outer((points - point) @ (normal / rise), SUN)
        vertices = np.zeros((len(points), 6), np.float32)
        lens.project(flat, vertices)
        self._shadows.clear()
        self._shadows.draw(vertices, self._solids.corners)
        hidden = self._shadows.nearness > 0.0
        rows, columns = _window(hidden, 0, 3), _window(hidden, 1, 3)
        soft = hidden[rows, columns].astype(np.float32)
        for axis in (0, 1, 0, 1):
            soft = _mean_of_three(soft, axis)
        self._shade[rows, columns] = soft


class _Batch:
    """Triangles of many meshes as one."""

    def __init__(self, drawn: Sequence[TriangleMesh]) -> None:
        counts = [len(mesh.vertices) for mesh in drawn]
        ends = np.cumsum(counts)
        self._parts = [
            (mesh.body, slice(int(end) - count, int(end)))
            for mesh, count, end in zip(drawn, counts, ends, strict=True)
        ]
        self.vertices = np.concatenate([np.zeros((0, 3)), *(mesh.vertices for mesh in drawn)])
        self.normals = np.concatenate([np.zeros((0, 3)), *(mesh.normals for mesh in drawn)])
        self._colours = np.repeat(
            np.array([mesh.colour for mesh in drawn], float).reshape(-1, 3), counts, axis=0
        )
        both = np.array([mesh.two_sided for mesh in drawn], bool)
        self._both = np.repeat(both, counts)
        self._any_both = bool(both.any())
        corners = [np.zeros((0, 4), np.int32)]
        for mesh, (_, part) in zip(drawn, self._parts, strict=True):
            back = np.full((len(mesh.triangles), 1), mesh.two_sided)
            corners.append(np.hstack([mesh.triangles + part.start, back]).astype(np.int32))
        self.corners = np.concatenate(corners)

    def placed(self, scene: Scene, poses: Array) -> tuple[Array, Array]:
        """Vertices and normals in the world, up turned to z."""
        points, normals = np.empty_like(self.vertices), np.empty_like(self.normals)
        for body, part in self._parts:
            pose = scene.stance @ scene.pose_of(body, poses)
            points[part] = self.vertices[part] @ pose[:3, :3].T + pose[:3, 3]
            normals[part] = self.normals[part] @ pose[:3, :3].T
        return points, normals

    def seen(self, lens: _Lens, points: Array, normals: Array) -> npt.NDArray[np.float32]:
        """Vertices on the canvas, with their colours in the light."""
        vertices = np.empty((len(points), 6), np.float32)
        lens.project(points, vertices)
        towards = lens.eye - points
        towards /= np.sqrt(np.einsum("ij,ij->i", towards, towards))[:, None]
        if self._any_both:
            away = self._both & (np.einsum("ij,ij->i", normals, towards) < 0)
            normals = np.where(away[:, None], -normals, normals)
        towards += SUN
        towards /= np.sqrt(np.einsum("ij,ij->i", towards, towards))[:, None]
        light = 0.52 + 0.14 * normals[:, 2] + 0.42 * np.maximum(normals @ SUN, 0.0)
        gloss = np.maximum(np.einsum("ij,ij->i", normals, towards), 0.0)
        gloss = gloss**2
        gloss = (gloss**2) ** 2
        gloss = 38.0 * gloss * gloss**2  # the 24th power
        np.clip(light[:, None] * self._colours + gloss[:, None], 0.0, 255.0, out=vertices[:, 3:])
        return vertices


class _Lens:
    """A camera and the size of its picture."""

    def __init__(self, camera: Camera, width: int, height: int) -> None:
        self.camera, self.eye, self.axes = camera, camera.eye, camera.axes
        self.width, self.height = width, height
        self.focus = height / 2 / math.tan(camera.field / 2)

    def project(self, points: Array, vertices: npt.NDArray[np.float32]) -> None:
        """Write column, row and nearness of points in the world to the first three columns."""
        seen = (points - self.eye) @ self.axes.T
        nearness = 1.0 / np.maximum(-seen[:, 2], 1e-9)
        scaled = self.focus * nearness
        vertices[:, 0] = self.width / 2 + scaled * seen[:, 0]
        vertices[:, 1] = self.height / 2 - scaled * seen[:, 1]
        vertices[:, 2] = nearness


def _floor_numbers(lens: _Lens, point: Array, normal: Array, spacing: float) -> dict[str, float]:
    """What the rays through pixels need to find the floor and its lines."""
    right, up, back = lens.axes
    numbers = {
        "x0": (0.5 - lens.width / 2) / lens.focus,
        "y0": (lens.height / 2 - 0.5) / lens.focus,
        "step": 1.0 / lens.focus,
        "down_x": right @ normal,
        "down_y": up @ normal,
        "down": -back @ normal,
        "gap": (point - lens.eye) @ normal,
        "line": LINE_WIDTH / lens.focus / spacing,
        "fade": 1.0 / (SIGHT * lens.camera.distance),
        "shadow": SHADOW,
    }
    side = np.array([1.0, 0.0, 0.0]) if abs(normal[0]) < 0.9 else np.array([0.0, 1.0, 0.0])
    v = np.cross(normal, side)
    v /= np.linalg.norm(v)
    for name, direction in (("u", np.cross(v, normal)), ("v", v)):
        numbers[f"{name}_x"] = right @ direction / spacing
        numbers[f"{name}_y"] = up @ direction / spacing
        numbers[f"{name}_0"] = -back @ direction / spacing
        # lines repeat, so a camera far away sees them as sharply as one at the origin
        numbers[f"{name}_eye"] = math.remainder((lens.eye - point) @ direction / spacing, 1.0)
    for name, colour in (("sky", SKY), ("floor", FLOOR), ("line", LINE)):
        numbers |= {f"{name}_{part}": value for part, value in zip("rgb", colour, strict=True)}
    return {name: float(value) for name, value in numbers.items()}


def _window(used: npt.NDArray[np.bool_], axis: int, margin: int) -> slice:
    """From the first to the last row or column that is used, and a margin."""
    where = np.flatnonzero(used.any(axis=1 - axis))
    if not len(where):
        return slice(0, 0)
    return slice(max(int(where[0]) - margin, 0), int(where[-1]) + 1 + margin)


def _mean_of_three(values: npt.NDArray[np.float32], axis: int) -> npt.NDArray[np.float32]:
    """Mean of each pixel and its neighbours along an axis; those at the rim are their own."""
    ahead = (slice(None),) * axis + (slice(1, None),)
    behind = (slice(None),) * axis + (slice(None, -1),)
    total = values.copy()
    total[ahead] += values[behind]
    total[behind] += values[ahead]
    for end in (slice(None, 1), slice(-1, None)):
        rim = (slice(None),) * axis + (end,)
        total[rim] += values[rim]
    total *= np.float32(1.0 / 3.0)
    return total


def picture(
    scene: Scene,
    poses: Array,
    *,
    camera: Camera | None = None,
    width: int = 640,
    height: int = 480,
    tracks: Array | None = None,
    drawn: list[TriangleMesh] | None = None,
) -> Image:
    """A picture of a mechanism whose bodies have the given poses: (height, width, 3), 0 to 255.

    Args:
        scene: What is drawn.
        poses: Poses of all bodies: (bodies, 4, 4).
        camera: Viewpoint; by default one that sees the whole mechanism.
        width, height: In pixels.
        tracks: Points that wheels have touched so far, in the world [m]: (times, touches, 3).
        drawn: The scene's triangles, if they are known.
    """
    painter = ScenePainter(scene, drawn, width, height)
    view = camera or camera_of(scene, poses, width / height, drawn=painter.drawn)
    normal = floor_normal(scene, scene.floors[0], poses) if scene.floors else None
    ribbons = []
    if tracks is not None and normal is not None:
        ribbons = track_ribbons(scene, tracks, normal, view.pixel(height))
    return painter.paint(poses, view, ribbons)


def camera_of(
    scene: Scene,
    poses: Array,
    aspect: float = 4 / 3,
    *,
    azimuth: float | None = None,
    elevation: float | None = None,
    drawn: Sequence[TriangleMesh] | None = None,
) -> Camera:
    """Return a camera that sees the whole mechanism in all poses given: (..., bodies, 4, 4)."""
    usual = scene.view
    return Camera.around(
        outline(scene, poses, drawn),
        usual[0] if azimuth is None else azimuth,
        usual[1] if elevation is None else elevation,
        aspect,
    )


def outline(scene: Scene, poses: Array, drawn: Sequence[TriangleMesh] | None = None) -> Array:
    """Points of a mechanism in all poses given that are farthest in some direction: (n, 3)."""
    every = poses.reshape(-1, *poses.shape[-3:])
    points = [(cord_ends(scene, every) @ scene.stance[:3, :3].T).reshape(-1, 3)]
    for mesh in meshes(scene) if drawn is None else drawn:
        pose = scene.stance @ scene.pose_of(mesh.body, every)
        corners = _extremes(mesh.vertices) if len(every) > 1 else mesh.vertices
        placed = corners @ pose[:, :3, :3].swapaxes(1, 2) + pose[:, None, :3, 3]
        points.append(placed.reshape(-1, 3))
    return np.concatenate(points)


def _extremes(vertices: Array) -> Array:
    """Vertices that are farthest in some direction."""
    ways = np.stack(np.meshgrid(*[(-1.0, 0.0, 1.0)] * 3), axis=-1).reshape(-1, 3)
    ways = ways[np.abs(ways).sum(1) > 0]
    return vertices[np.unique(np.argmax(vertices @ ways.T, axis=0))]


def track_ribbons(
    scene: Scene,
    tracks: Array,
    normal: Array,
    pixel: float = 0.0,
    colour: tuple[int, int, int] | None = None,
) -> list[TriangleMesh]:
    """Tracks of all wheels with a width, just above the floor.

    Args:
        scene: What is drawn.
        tracks: Points that wheels have touched, in the world [m]: (times, touches, 3).
        normal: Normal of the floor.
        pixel: Size of a pixel [m]: the ribbons are at least as wide.
        colour: The colour of all tracks; one of its own for each wheel unless given.
    """
    if len(tracks) < 2:
        return []
    half = max(TRACK_WIDTH * scene.size, 0.6 * pixel)
    return [
        _ribbon(tracks[:, k], normal, half, colour or TRACKS[k % len(TRACKS)])
        for k in range(tracks.shape[1])
    ]


def _ribbon(track: Array, normal: Array, half: float, colour: tuple[int, int, int]) -> TriangleMesh:
    ahead = np.gradient(track, axis=0)
    side = np.cross(normal, ahead)
    length = np.linalg.norm(side, axis=1, keepdims=True)
    side = half * np.divide(side, length, out=np.zeros_like(side), where=length > 1e-9 * half)
    above = track + 0.1 * half * normal
    k, n = np.arange(len(track) - 1), len(track)
    # in the order of time, so that the first of them are an earlier track
    triangles = np.stack([k, k + 1, k + n, k + 1, k + n + 1, k + n], -1).reshape(-1, 3)
    points = np.concatenate([above - side, above + side])
    normals = np.broadcast_to(normal, points.shape)
    return TriangleMesh(GROUND, colour, points, normals, triangles.astype(np.int32), two_sided=True)
