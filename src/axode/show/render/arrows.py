"""Arrows and rods between points, as triangles in the world."""

from __future__ import annotations

import numpy as np

from axode.mechanism.scene.scene import GROUND, Array, Colour
from axode.show.render.meshes import TriangleMesh

AROUND = 10  # sides


def arrows(starts: Array, vectors: Array, thickness: float, colour: Colour) -> TriangleMesh:
    """Arrows of one colour.

    Args:
        starts: Where they start [m]: (n, 3).
        vectors: From there to their tips [m]: (n, 3).
        thickness: Radius of a shaft [m].
        colour: Red, green, blue, 0 to 255.
    """
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    ahead = np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0)
    neck = np.maximum(length - 6.0 * thickness, 0.4 * length)
    zero, thin, wide = np.zeros_like(length), thickness + 0 * length, 2.4 * thickness + 0 * length
    rings = [(zero, thin, 0.0), (neck, thin, 0.0), (neck, wide, 0.35), (length, zero, 0.35)]
    return _turned(starts, ahead, rings, colour)


def rods(starts: Array, ends: Array, thickness: float, colour: Colour) -> TriangleMesh:
    """Rods of one colour between points: (n, 3) each."""
    vectors = ends - starts
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    ahead = np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0)
    thin = thickness + 0 * length
    return _turned(starts, ahead, [(0 * length, thin, 0.0), (length, thin, 0.0)], colour)


def _turned(
    starts: Array, ahead: Array, rings: list[tuple[Array, Array, float]], colour: Colour
) -> TriangleMesh:
    """Rings about axes, each with its place, its radius and its normals' slope, joined by walls."""
    least = np.eye(3)[np.argmin(np.abs(ahead), axis=1)]
    right = np.cross(ahead, least)
    right /= np.maximum(np.linalg.norm(right, axis=1, keepdims=True), 1e-300)
    up = np.cross(ahead, right)
    angle = np.linspace(0.0, 2 * np.pi, AROUND, endpoint=False)
    outwards = (
        np.cos(angle)[:, None] * right[:, None] + np.sin(angle)[:, None] * up[:, None]
    )  # (n, around, 3)
    points = [
        starts[:, None] + place[:, None] * ahead[:, None] + radius[:, None] * outwards
        for place, radius, _ in rings
    ]
    normals = [(outwards + slope * ahead[:, None]) / np.hypot(1.0, slope) for *_, slope in rings]
    k = np.arange(AROUND)
    after = (k + 1) % AROUND
    walls = [
        np.stack([[k, after, after + AROUND], [k, after + AROUND, k + AROUND]], 0) + ring * AROUND
        for ring in range(len(rings) - 1)
    ]
    one = np.concatenate(walls).swapaxes(1, 2).reshape(-1, 3)
    per = AROUND * len(rings)
    triangles = (one[None] + per * np.arange(len(starts))[:, None, None]).reshape(-1, 3)
    return TriangleMesh(
        GROUND,
        colour,
        np.stack(points, axis=1).reshape(-1, 3),
        np.stack(normals, axis=1).reshape(-1, 3),
        triangles.astype(np.int32),
        two_sided=True,
    )
