"""Geoms of an MJCF file that touch others: what may be a wheel, and what it may stand on."""

from __future__ import annotations

from typing import Any

import numpy as np

from axode.formats.mjcf.mjcf_bodies import BodyReader
from axode.formats.mjcf.mjcf_model import CompiledModel
from axode.formats.mjcf.mjcf_shapes import CAPSULE, CYLINDER, ELLIPSOID, PLANE, SPHERE, cleaned
from axode.mechanism.files.wheel_proposals import Geometry, LinkSolid
from axode.numerics.rotations import from_quaternions
from axode.numerics.tolerances import NOTICEABLE


def add_geoms(geometry: Geometry, compiled: CompiledModel, bodies: BodyReader) -> None:
    """Add the planes of a model, and its geoms that touch others.

    Args:
        geometry: Where to add them.
        compiled: The model.
        bodies: The names of its bodies.
    """
    model = compiled.model
    for geom in range(model.ngeom):
        name = bodies.bodies[int(model.geom_bodyid[geom])]
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
