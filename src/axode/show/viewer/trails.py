"""Points whose paths are drawn: mass centres by the body's name, contacts by the wheel's."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from axode.errors import UnknownName
from axode.mechanism.scene.scene import Array, Scene, touch_points

NONE, CONTACTS = "none", "all contacts"


def trail_names(scene: Scene) -> tuple[str, ...]:
    """What may be asked for."""
    contacts = tuple(f"{touch.name} contact" for touch in scene.touches)
    return (NONE, *((CONTACTS,) if len(contacts) > 1 else ()), *contacts, *scene.bodies)


def check_trails(scene: Scene, names: Iterable[str]) -> tuple[str, ...]:
    """Names of points, words for many taken apart.

    Raises:
        UnknownName: listing what there is.
    """
    known = trail_names(scene)
    found: list[str] = []
    for name in [names] if isinstance(names, str) else names:
        if name not in known:
            raise UnknownName(f"the scene of '{scene.name}'", "point", name, known)
        if name == CONTACTS:
            found += [f"{touch.name} contact" for touch in scene.touches]
        elif name != NONE:
            found.append(name)
    return tuple(dict.fromkeys(found))


def trail_points(scene: Scene, names: Iterable[str], poses: Array) -> dict[str, Array]:
    """Where the named points are: (..., 3) each."""
    contacts = [f"{touch.name} contact" for touch in scene.touches]
    touched = touch_points(scene, poses) if scene.touches else np.zeros((*poses.shape[:-3], 0, 3))
    found: dict[str, Array] = {}
    for name in names:
        if name in contacts:
            found[name] = touched[..., contacts.index(name), :]
        else:
            pose, k = scene.pose_of(name, poses), scene.bodies.index(name)
            centre = np.array(scene.centres[k] if scene.centres else (0.0, 0.0, 0.0))
            found[name] = pose[..., :3, :3] @ centre + pose[..., :3, 3]
    return found
