"""A still picture of a mechanism, drawn triangle by triangle: no display, no browser, no GPU."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from axode.mechanism.scene.scene import Array, Scene, floor_normal
from axode.show.render.camera import Camera
from axode.show.render.meshes import TriangleMesh, meshes

SKY = np.array([247.0, 248.0, 250.0])
FLOOR = np.array([231.0, 233.0, 236.0])
LINE = np.array([205.0, 209.0, 214.0])
SUN = np.array([-0.42, -0.40, 0.82]) / np.linalg.norm([-0.42, -0.40, 0.82])
TRACKS = (np.array([60.0, 105.0, 220.0]), np.array([235.0, 120.0, 50.0]))
FINE = 2  # pixels drawn per pixel shown, in each direction

Image = npt.NDArray[np.uint8]
Indices = npt.NDArray[np.int32]
Covered: TypeAlias = tuple[tuple[slice, slice], Array, Array]


def picture(
    scene: Scene,
    poses: Array,
    *,
    camera: Camera | None = None,
    width: int = 640,
    height: int = 480,
    tracks: Array | None = None,
) -> Image:
    """A picture of a mechanism whose bodies have the given poses: (height, width, 3), 0 to 255.

    Args:
        scene: What is drawn.
        poses: Poses of all bodies: (bodies, 4, 4).
        camera: Viewpoint; by default one that sees the whole mechanism.
        width, height: In pixels.
        tracks: Points that wheels have touched so far, in the world [m]: (times, touches, 3).
    """
    placed = [(mesh, *_place(scene, mesh, poses)) for mesh in meshes(scene)]
    view = camera or camera_of(scene, poses, width / height)
    canvas = _Canvas(view, width * FINE, height * FINE)
    if scene.floors:
        floor = scene.floors[0]
        normal = floor_normal(scene, floor, poses)
        pose = scene.pose_of(floor.body, poses)
        point = pose[:3, :3] @ np.array(floor.point) + pose[:3, 3]
    else:
        lowest = min((points[:, 2].min() for _, points, _ in placed), default=0.0)
        normal, point = np.array([0.0, 0.0, 1.0]), np.array([0.0, 0.0, lowest])
    canvas.floor(point, normal, scene.spacing)
    for mesh, points, _ in placed:
        canvas.shadow(points, mesh.triangles, point, normal)
    canvas.lay_shadow()
    for k in range(0 if tracks is None or len(tracks) < 2 else tracks.shape[1]):
        points, triangles = _ribbon(tracks[:, k], normal, 0.012 * scene.size)  # type: ignore[index]
        canvas.draw(points, np.broadcast_to(normal, points.shape), triangles, TRACKS[k % 2])
    for mesh, points, directions in placed:
        canvas.draw(points, directions, mesh.triangles, np.array(mesh.colour, float))
    return canvas.image()


def camera_of(
    scene: Scene,
    poses: Array,
    aspect: float = 4 / 3,
    *,
    azimuth: float | None = None,
    elevation: float | None = None,
) -> Camera:
    """Return a camera that sees the whole mechanism in all poses given: (..., bodies, 4, 4)."""
    every = poses.reshape(-1, *poses.shape[-3:])
    points = [_place(scene, mesh, pose)[0] for mesh in meshes(scene) for pose in every]
    return Camera.around(np.concatenate(points), azimuth, elevation, aspect)


def _place(scene: Scene, mesh: TriangleMesh, poses: Array) -> tuple[Array, Array]:
    """Vertices and normals in the world, up turned to z."""
    pose = scene.stance @ scene.pose_of(mesh.body, poses)
    return mesh.vertices @ pose[:3, :3].T + pose[:3, 3], mesh.normals @ pose[:3, :3].T


def _ribbon(track: Array, normal: Array, half: float) -> tuple[Array, Indices]:
    """A track with a width, just above the floor."""
    ahead = np.gradient(track, axis=0)
    side = np.cross(normal, ahead)
    length = np.linalg.norm(side, axis=1, keepdims=True)
    side = half * np.divide(side, length, out=np.zeros_like(side), where=length > 1e-9 * half)
    above = track + 0.1 * half * normal
    k = np.arange(len(track) - 1)
    n = len(track)
    triangles = np.concatenate(
        [np.column_stack([k, k + 1, k + n]), np.column_stack([k + 1, k + n + 1, k + n])]
    )
    return np.concatenate([above - side, above + side]), triangles.astype(np.int32)


class _Canvas:
    """Colours and depths of all pixels."""

    def __init__(self, camera: Camera, width: int, height: int) -> None:
        self.camera, self.width, self.height = camera, width, height
        self.focus = height / 2 / math.tan(camera.field / 2)
        self.colour = np.tile(SKY, (height, width, 1))
        self.nearness = np.zeros((height, width))  # one over the depth; zero is infinitely far
        self.shade = np.zeros((height, width), bool)
        self.near_floor = np.zeros((height, width))

    def project(self, points: Array) -> tuple[Array, Array]:
        """Pixel coordinates and nearness of points in the world."""
        seen = (points - self.camera.eye) @ self.camera.axes.T
        nearness = 1.0 / np.maximum(-seen[:, 2], 1e-9)
        x = self.width / 2 + self.focus * seen[:, 0] * nearness
        y = self.height / 2 - self.focus * seen[:, 1] * nearness
        return np.column_stack([x, y]), nearness

    def floor(self, point: Array, normal: Array, spacing: float) -> None:
        """Draw the floor, with a grid that fades away."""
        x = (np.arange(self.width) + 0.5 - self.width / 2) / self.focus
        y = (self.height / 2 - np.arange(self.height) - 0.5) / self.focus
        right, up, back = self.camera.axes
        rays = x[None, :, None] * right + y[:, None, None] * up - back
        downward = rays @ normal
        gap = (point - self.camera.eye) @ normal
        with np.errstate(divide="ignore", invalid="ignore"):
            depth = gap / downward
        hit = np.isfinite(depth) & (depth > 0)
        depth = np.where(hit, depth, 1.0)
        at = self.camera.eye + rays * depth[..., None] - point
        side = np.array([1.0, 0.0, 0.0]) if abs(normal[0]) < 0.9 else np.array([0.0, 1.0, 0.0])
        v = np.cross(normal, side)
        v /= np.linalg.norm(v)
        blur = depth * 1.3 / self.focus / np.maximum(np.abs(downward), 0.08) / spacing
        lines = np.zeros_like(depth)
        for direction in (np.cross(v, normal), v):
            away = np.abs((at @ direction / spacing + 0.5) % 1.0 - 0.5)
            lines = np.maximum(lines, np.clip(1.6 - away / np.maximum(blur, 1e-9), 0.0, 1.0))
        fade = np.clip(1.0 - depth / (6.0 * self.camera.distance), 0.0, 1.0)[..., None]
        tint = FLOOR + (LINE - FLOOR) * (lines * np.clip(0.25 / blur, 0.0, 1.0))[..., None]
        self.colour = np.where(hit[..., None], SKY + (tint - SKY) * fade, SKY)
        self.near_floor = np.where(hit, 1.0 / depth, 0.0)

    def shadow(self, points: Array, triangles: Indices, point: Array, normal: Array) -> None:
        """Mark where triangles keep the sun from the floor."""
        rise = SUN @ normal
        if rise <= 0.05:
            return
        flat = points - np.outer((points - point) @ normal / rise, SUN)
        pixels, nearness = self.project(flat)
        for corners in triangles:
            for window, _, inside in self._covered(pixels[corners], nearness[corners]):
                self.shade[window] |= inside

    def lay_shadow(self) -> None:
        """Darken the marked floor, softly at the rim."""
        soft = self.shade.astype(float)
        for axis in (0, 1):
            soft = sum(np.roll(soft, k, axis) for k in range(-3, 4)) / 7.0  # type: ignore[assignment]
        floor = self.near_floor > 0
        self.colour *= 1.0 - 0.28 * (soft * floor)[..., None]

    def draw(self, points: Array, normals: Array, triangles: Indices, colour: Array) -> None:
        """Draw triangles of one colour, lit by the sun, hidden by what is nearer."""
        pixels, nearness = self.project(points)
        towards = self.camera.eye - points
        towards /= np.linalg.norm(towards, axis=1, keepdims=True)
        halfway = towards + SUN
        halfway /= np.linalg.norm(halfway, axis=1, keepdims=True)
        lit = np.maximum(normals @ SUN, 0.0)
        light = 0.52 + 0.14 * normals[:, 2] + 0.42 * lit
        gloss = 38.0 * np.maximum(np.sum(normals * halfway, axis=1), 0.0) ** 24
        shades = np.clip(light[:, None] * colour + gloss[:, None], 0.0, 255.0)
        facing = np.einsum("ij,ij->i", normals[triangles].sum(1), towards[triangles].sum(1)) > 0
        for corners in triangles[facing]:
            for window, weights, inside in self._covered(pixels[corners], nearness[corners]):
                depth = weights @ nearness[corners]
                seen = inside & (depth > self.nearness[window])
                self.nearness[window] = np.where(seen, depth, self.nearness[window])
                tint = weights @ shades[corners]
                self.colour[window] = np.where(seen[..., None], tint, self.colour[window])

    def _covered(
        self, xy: Array, nearness: Array
    ) -> list[tuple[tuple[slice, slice], Array, Array]]:
        """The pixels a triangle may cover: window, weights of its corners, which are inside."""
        if nearness.max() > 1e6:  # behind the eye
            return []
        low = np.maximum(np.floor(xy.min(0)), 0).astype(int)
        high = np.minimum(np.ceil(xy.max(0)) + 1, (self.width, self.height)).astype(int)
        if np.any(low >= high):
            return []
        (ax, ay), (bx, by), (cx, cy) = xy
        area = (bx - ax) * (cy - ay) - (cx - ax) * (by - ay)
        if abs(area) < 1e-12:
            return []
        x = np.arange(low[0], high[0]) + 0.5
        y = (np.arange(low[1], high[1]) + 0.5)[:, None]
        wb = ((x - ax) * (cy - ay) - (cx - ax) * (y - ay)) / area
        wc = ((bx - ax) * (y - ay) - (x - ax) * (by - ay)) / area
        wa = 1.0 - wb - wc
        inside = (wa >= -1e-9) & (wb >= -1e-9) & (wc >= -1e-9)
        if not inside.any():
            return []
        window = (slice(low[1], high[1]), slice(low[0], high[0]))
        return [(window, np.stack([wa, wb, wc], -1), inside)]

    def image(self) -> Image:
        """The picture at its own size."""
        h, w = self.height // FINE, self.width // FINE
        mean = self.colour.reshape(h, FINE, w, FINE, 3).mean((1, 3))
        return np.clip(np.rint(mean), 0, 255).astype(np.uint8)
