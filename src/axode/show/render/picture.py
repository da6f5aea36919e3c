"""A still picture of a mechanism, drawn without a display, a browser or a GPU."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from axode.mechanism.scene.scene import GROUND, Array, Scene, cord_ends, floor_normal
from axode.show.render.camera import Camera
from axode.show.render.meshes import TriangleMesh, meshes
from axode.show.render.painter import Image, ScenePainter

TRACKS = ((60, 105, 220), (235, 120, 50))
TRACK_WIDTH = 0.012  # half of it, in sizes of the mechanism


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
    return Camera.around(outline(scene, poses, drawn), azimuth, elevation, aspect)


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
    scene: Scene, tracks: Array, normal: Array, pixel: float = 0.0
) -> list[TriangleMesh]:
    """Tracks of all wheels with a width, just above the floor.

    Args:
        scene: What is drawn.
        tracks: Points that wheels have touched, in the world [m]: (times, touches, 3).
        normal: Normal of the floor.
        pixel: Size of a pixel [m]: the ribbons are at least as wide.
    """
    if len(tracks) < 2:
        return []
    half = max(TRACK_WIDTH * scene.size, 0.6 * pixel)
    return [
        _ribbon(tracks[:, k], normal, half, TRACKS[k % len(TRACKS)]) for k in range(tracks.shape[1])
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
