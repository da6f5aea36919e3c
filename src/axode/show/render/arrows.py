"""Arrows and rods between points, and contact forces as arrows, as triangles in the world."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from axode.mechanism.scene.scene import GROUND, Array, Colour, Scene, touch_axes, touch_points
from axode.show.render.meshes import TriangleMesh

AROUND = 10  # sides
FORCES = ((26, 71, 186), (208, 95, 22), (19, 143, 97))  # longitudinal, lateral, normal
LEAST = 0.02  # usual forces: smaller ones are not drawn
LENGTH = 0.5  # of the mechanism's size, for a usual force ...
ABOVE = 2.6  # ... but at least this many radii of the largest wheel, which would hide it
LONGEST = 2.0  # usual forces: larger ones are drawn no longer


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


def force_arrows(
    scene: Scene, poses: Array, forces: Array, usual: float
) -> tuple[Array, npt.NDArray[np.uint8]]:
    """Draw the forces of the ground on the wheels as arrows, with their colours.

    Args:
        scene: What is drawn.
        poses: Poses of all bodies.
        forces: Longitudinal, lateral and normal force on each contact [N]; NaN is not drawn.
        usual: A force that is drawn half as long as the mechanism, or more than a wheel high [N].

    Returns:
        Starts and tips (n, 2, 3) in the world, red, green and blue (n, 3).
    """
    if not usual > 0 or not scene.touches:
        return np.zeros((0, 2, 3)), np.zeros((0, 3), np.uint8)
    starts, vectors = force_vectors(scene, poses, forces, usual)
    tips = starts[:, np.newaxis, :] + vectors
    drawn = np.abs(np.nan_to_num(forces)) > LEAST * usual
    points = np.stack([np.broadcast_to(starts[:, np.newaxis, :], tips.shape), tips], axis=2)
    colours = np.broadcast_to(np.array(FORCES, np.uint8), (len(vectors), 3, 3))
    return points[drawn], colours[drawn]


def force_vectors(scene: Scene, poses: Array, forces: Array, usual: float) -> tuple[Array, Array]:
    """Points of contact and, from there, arrows of the forces, for any number of instants.

    Args:
        scene: What is drawn; it has contacts.
        poses: Poses of all bodies: (..., bodies, 4, 4).
        forces: Longitudinal, lateral and normal force on each contact [N]; NaN has length zero.
        usual: A force that is drawn half as long as the mechanism, or more than a wheel high [N].

    Returns:
        Points (..., contacts, 3) and arrows (..., contacts, 3 forces, 3) in the world [m].
    """
    axes = touch_axes(scene, poses)
    known = np.nan_to_num(forces) / usual if usual > 0 else np.zeros(forces.shape)
    length = max(LENGTH * scene.size, ABOVE * max(touch.radius for touch in scene.touches))
    arrows = length * np.clip(known, -LONGEST, LONGEST)[..., np.newaxis] * axes
    return touch_points(scene, poses), arrows
