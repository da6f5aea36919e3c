"""A still picture of a mechanism, drawn triangle by triangle: no display, no browser, no GPU."""

from __future__ import annotations

import math
from collections.abc import Iterator
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
TOGETHER = 1 << 20  # pixels that are computed at a time

Image = npt.NDArray[np.uint8]
Indices = npt.NDArray[np.int32]
Covered: TypeAlias = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], Array]


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
        drawn: The scene's triangles, for those who draw many pictures of it.
    """
    drawn = meshes(scene) if drawn is None else drawn
    placed = [(mesh, *_place(scene, mesh, poses)) for mesh in drawn]
    view = camera or camera_of(scene, poses, width / height, drawn=drawn)
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
        colour = np.array(mesh.colour, float)
        canvas.draw(points, directions, mesh.triangles, colour, two_sided=mesh.two_sided)
    return canvas.image()


def camera_of(
    scene: Scene,
    poses: Array,
    aspect: float = 4 / 3,
    *,
    azimuth: float | None = None,
    elevation: float | None = None,
    drawn: list[TriangleMesh] | None = None,
) -> Camera:
    """Return a camera that sees the whole mechanism in all poses given: (..., bodies, 4, 4)."""
    every = poses.reshape(-1, *poses.shape[-3:])
    drawn = meshes(scene) if drawn is None else drawn
    points = [_place(scene, mesh, pose)[0] for mesh in drawn for pose in every]
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
        for covered, _, _ in self._covered(pixels[triangles], nearness[triangles]):
            self.shade.reshape(-1)[covered] = True

    def lay_shadow(self) -> None:
        """Darken the marked floor, softly at the rim."""
        soft = self.shade.astype(float)
        for axis in (0, 1):
            soft = sum(np.roll(soft, k, axis) for k in range(-3, 4)) / 7.0  # type: ignore[assignment]
        floor = self.near_floor > 0
        self.colour *= 1.0 - 0.28 * (soft * floor)[..., None]

    def draw(
        self,
        points: Array,
        normals: Array,
        triangles: Indices,
        colour: Array,
        *,
        two_sided: bool = False,
    ) -> None:
        """Draw triangles of one colour, lit by the sun, hidden by what is nearer."""
        pixels, nearness = self.project(points)
        towards = self.camera.eye - points
        towards /= np.linalg.norm(towards, axis=1, keepdims=True)
        if two_sided:
            away = np.einsum("ij,ij->i", normals, towards) < 0
            normals = np.where(away[:, None], -normals, normals)
        else:
            faced = normals[triangles].sum(1), towards[triangles].sum(1)
            triangles = triangles[np.einsum("ij,ij->i", *faced) > 0]
        shades = self._shades(normals, towards, colour)[triangles]
        corners = nearness[triangles]
        all_nearness, all_colours = self.nearness.reshape(-1), self.colour.reshape(-1, 3)
        for covered, which, weights in self._covered(pixels[triangles], corners):
            depth = np.einsum("ij,ij->i", weights, corners[which])
            seen = np.flatnonzero(depth > all_nearness[covered])
            order = seen[np.argsort(depth[seen])]  # the nearest is written last, and stays
            all_nearness[covered[order]] = depth[order]
            tint = np.einsum("ij,ijk->ik", weights[order], shades[which[order]])
            all_colours[covered[order]] = tint

    @staticmethod
    def _shades(normals: Array, towards: Array, colour: Array) -> Array:
        """Colours of points in the light."""
        halfway = towards + SUN
        halfway /= np.linalg.norm(halfway, axis=1, keepdims=True)
        lit = np.maximum(normals @ SUN, 0.0)
        light = 0.52 + 0.14 * normals[:, 2] + 0.42 * lit
        gloss = 38.0 * np.maximum(np.sum(normals * halfway, axis=1), 0.0) ** 24
        shades: Array = np.clip(light[:, None] * colour + gloss[:, None], 0.0, 255.0)
        return shades

    def _covered(self, xy: Array, nearness: Array) -> Iterator[Covered]:
        """Pixels that triangles cover: their numbers, those of their triangles, the weights of
        the corners there.

        Triangles whose windows are about as large are computed together.

        Args:
            xy: Corners on the canvas: (triangles, 3, 2).
            nearness: One over the depth of the corners: (triangles, 3).
        """
        low = np.maximum(np.floor(xy.min(1)), 0.0)
        high = np.minimum(np.ceil(xy.max(1)) + 1, (self.width, self.height))
        (bx, by), (cx, cy) = ((xy[:, k] - xy[:, 0]).T for k in (1, 2))
        area = bx * cy - cx * by
        ahead = nearness.max(1) <= 1e6  # else behind the eye
        visible = np.flatnonzero(ahead & (low < high).all(1) & (np.abs(area) >= 1e-12))
        low, high = low[visible].astype(np.int64), high[visible].astype(np.int64)
        sides = np.ceil(np.log2(high - low)).astype(np.int64)
        kinds, kind = np.unique(sides[:, 0] * 64 + sides[:, 1], return_inverse=True)
        for k, code in enumerate(kinds.tolist()):
            wide, tall = 1 << (code // 64), 1 << (code % 64)
            alike = np.flatnonzero(kind == k)
            step = max(1, TOGETHER // (wide * tall))
            for start in range(0, len(alike), step):
                some = alike[start : start + step]
                which = visible[some]
                x = low[some, 0, None] + np.arange(wide)
                y = low[some, 1, None] + np.arange(tall)
                dx, dy = x + 0.5 - xy[which, 0, :1], y + 0.5 - xy[which, 0, 1:]
                full = area[which, None]
                wb = (dx * (cy[which, None] / full))[:, None] - (dy * (cx[which, None] / full))[
                    ..., None
                ]
                wc = (dy * (bx[which, None] / full))[..., None] - (dx * (by[which, None] / full))[
                    :, None
                ]
                inside = (wb >= -1e-9) & (wc >= -1e-9) & (wb + wc <= 1.0 + 1e-9)
                inside &= (x < high[some, :1])[:, None] & (y < high[some, 1:])[..., None]
                n, row, column = np.nonzero(inside)
                b, c = wb[inside], wc[inside]
                yield (
                    y[n, row] * self.width + x[n, column],
                    which[n],
                    np.stack([1.0 - b - c, b, c], -1),
                )

    def image(self) -> Image:
        """The picture at its own size."""
        h, w = self.height // FINE, self.width // FINE
        mean = self.colour.reshape(h, FINE, w, FINE, 3).mean((1, 3))
        return np.clip(np.rint(mean), 0, 255).astype(np.uint8)
