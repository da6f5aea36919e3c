"""Bases that move freely over the ground, so that their coordinates are places in the world."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axode.mechanism.elements.bodies import GROUND
from axode.mechanism.values.expressions import numeric
from axode.mechanism.values.geometry import AXES, NO_ROTATION

if TYPE_CHECKING:
    from axode.mechanism.elements.parts import Connection
    from axode.mechanism.mechanism import Mechanism


def free_bases(mechanism: Mechanism) -> tuple[tuple[str, ...], ...]:
    """Name of each such base and of its coordinates: x, y, then its yaw or its quaternion.

    A joint that stands elsewhere than at or above the world's origin, or turned, is left out: its
    coordinates count from there.
    """
    return tuple(
        (connection.child, *_places(connection))
        for connection in mechanism.connections
        if connection.parent == GROUND.name and _is_in_world(connection)
    )


def _is_in_world(connection: Connection) -> bool:
    joint = connection.joint
    axes = [tuple(map(numeric, getattr(joint, name))) for name in joint.directions]
    upright = all(axis == AXES["z"] for axis in axes)
    above = all(numeric(part) == 0.0 for part in connection.at[:2])
    return joint.carries_base and upright and above and connection.rotation == NO_ROTATION


def _places(connection: Connection) -> tuple[str, ...]:
    names = dict(zip(connection.joint.coordinate_names, connection.coordinates, strict=True))
    return tuple(names[name] for name in connection.joint.base_coordinates)
