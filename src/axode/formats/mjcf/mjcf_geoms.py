"""Geoms of an MJCF file: shapes for pictures, and what may be a wheel or what it stands on.

By convention, geoms of the groups 0, 1 and 2 are seen, and those of higher groups only touch.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from axode.formats.mjcf.mjcf_model import CompiledModel, MeshFile
from axode.formats.xml.values import Numbers, box, cleaned
from axode.mechanism.elements.bodies import Cylinder, Mesh, Shape, Sphere
from axode.mechanism.files.wheel_proposals import Geometry, LinkSolid
from axode.numerics.rotations import from_quaternions
from axode.numerics.tolerances import NOTICEABLE

PLANE, _HFIELD, SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH = range(8)  # MuJoCo's geoms
LAST_SEEN = 2
UNPAINTED = (0.5, 0.5, 0.5, 1.0)  # a geom that the file gives no colour


def shapes_of_geoms(compiled: CompiledModel) -> dict[int, list[Shape]]:
    """List the shapes of all bodies, by the number of the body."""
    model = compiled.model
    bodies = model.geom_bodyid
    moving = [g for g in range(int(model.ngeom)) if bodies[g] > 0 and _colour(model, g)[3] > 0]
    found: dict[int, list[Shape]] = {}
    for highest in (LAST_SEEN, math.inf):
        for geom in moving if not found else ():
            shapes = _shapes(compiled, geom) if model.geom_group[geom] <= highest else []
            if shapes:
                found.setdefault(int(bodies[geom]), []).extend(shapes)
    return found


def _colour(model: Any, geom: int) -> Numbers:
    """Red, green, blue and opacity of a geom or of its material."""
    own = tuple(float(part) for part in model.geom_rgba[geom])
    material = int(model.geom_matid[geom])
    if own == UNPAINTED and material >= 0:
        own = tuple(float(part) for part in model.mat_rgba[material])
    red, green, blue, opacity = (min(max(part, 0.0), 1.0) for part in own)
    return round(red, 6), round(green, 6), round(blue, 6), opacity


def _shapes(compiled: CompiledModel, geom: int) -> list[Shape]:
    model, kind = compiled.model, int(compiled.model.geom_type[geom])
    rgba = _colour(model, geom)
    colour = None if rgba == UNPAINTED else rgba[:3]
    at, quaternion = np.array(model.geom_pos[geom]), np.array(model.geom_quat[geom])
    if geom in compiled.meshes:
        if kind == MESH:  # MuJoCo moved its frame to the mesh's mass centre and principal axes
            mesh = int(model.geom_dataid[geom])
            quaternion = _product(quaternion, model.mesh_quat[mesh] * [1, -1, -1, -1])
            at = at - from_quaternions(quaternion) @ model.mesh_pos[mesh]
        return _mesh(compiled.meshes[geom], at, quaternion, colour)
    R, size = (from_quaternions(quaternion), [float(part) for part in model.geom_size[geom]])
    place = cleaned(at)
    if kind == SPHERE:
        return [Sphere(size[0], place, colour)]
    if kind in (CAPSULE, CYLINDER):
        ends = [cleaned(at + sign * size[1] * R[:, 2]) for sign in (-1, 1) if kind == CAPSULE]
        rod = Cylinder(size[0], 2 * size[1], cleaned(R[:, 2]), place, colour)
        return [rod, *(Sphere(size[0], end, colour) for end in ends)]
    if kind == BOX:
        edges = tuple(2 * part for part in size)
        return [box(edges, place, R, cleaned(quaternion), colour)]
    return []


def _mesh(file: MeshFile, at: np.ndarray, quaternion: np.ndarray, colour: Any) -> list[Shape]:
    """A mesh: a point v of its file is at S R^T (v - p) in the frame of the geom."""
    reference = np.array(file.refquat) / (np.linalg.norm(file.refquat) or 1.0)
    scale = np.array(file.scale)
    turned = not np.allclose(np.abs(reference), [1, 0, 0, 0], atol=1e-9)
    if turned and np.ptp(scale) > 1e-9 * np.abs(scale).max():
        return []  # a skewed mesh, which no rotation and scale describe
    if turned:
        quaternion = _product(quaternion, reference * [1, -1, -1, -1])
    at = at - from_quaternions(quaternion) @ (scale * np.array(file.refpos))
    made = Mesh(file.file, file.scale, cleaned(at), cleaned(quaternion), colour)
    return [] if any(made.faults()) else [made]


def _product(a: Any, b: Any) -> np.ndarray:
    """Multiply unit quaternions w, x, y, z."""
    u, v = np.array(a[1:]), np.array(b[1:])
    product = np.array([a[0] * b[0] - u @ v, *(a[0] * v + b[0] * u + np.cross(u, v))])
    return product / np.linalg.norm(product)


def add_geoms(geometry: Geometry, compiled: CompiledModel, bodies: list[str]) -> None:
    """Add the planes of a model, and its geoms that touch others.

    Args:
        geometry: Where to add them.
        compiled: The model.
        bodies: The names of its bodies, by number.
    """
    model = compiled.model
    for geom in range(model.ngeom):
        name = bodies[int(model.geom_bodyid[geom])]
        at, R = cleaned(model.geom_pos[geom]), from_quaternions(model.geom_quat[geom])
        if model.geom_type[geom] == PLANE:
            geometry.planes.append((name, at, cleaned(R[:, 2])))
        elif model.geom_contype[geom] or model.geom_conaffinity[geom]:
            geometry.solids.append(_solid(model, geom, name, at, R))


def _solid(model: Any, geom: int, name: str, at: Any, R: np.ndarray) -> LinkSolid:
    """Describe a geom; one that is neither round nor a box by the box around it."""
    size, kind = np.array(model.geom_size[geom]), int(model.geom_type[geom])
    if kind == SPHERE or (kind == ELLIPSOID and np.ptp(size) <= NOTICEABLE * size[0]):
        return LinkSolid(name, at, float(size[0]))
    if kind in (CAPSULE, CYLINDER):
        return LinkSolid.cylinder(name, at, float(size[0]), 2 * float(size[1]), R[:, 2])
    if kind == ELLIPSOID:
        for k in range(3):
            first, second = np.delete(size, k)
            if abs(first - second) <= NOTICEABLE * first:
                return LinkSolid.cylinder(name, at, float(first), 2 * float(size[k]), R[:, k])
    centre, half = np.split(np.array(model.geom_aabb[geom]), 2)
    return LinkSolid.box(name, np.array(at) + R @ centre, 2 * half, R)
