"""Points whose paths are drawn: mass centres by the body's name, contacts by the wheel's."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from axode.mechanism.scene.scene import Array, Scene, touch_points
from axode.names import Names

NONE, CONTACTS = "none", "all contacts"


def trail_names(scene: Scene) -> tuple[str, ...]:
    """Return the names of all points that may leave a trail."""
    contacts = tuple(f"{touch.name} contact" for touch in scene.touches)
    return (NONE, *((CONTACTS,) if len(contacts) > 1 else ()), *contacts, *scene.bodies)


def check_trails(scene: Scene, names: Iterable[str]) -> tuple[str, ...]:
    """Full names of points; `left.contact` is the point called `left contact`.

    Raises:
        UnknownName: listing the known names.
    """
    aliases = {f"{touch.name}.contact": f"{touch.name} contact" for touch in scene.touches}
    owner = f"the scene of '{scene.name}'"
    known = Names(owner, "point", trail_names(scene), aliases=aliases)
    found: list[str] = []
    for given in [names] if isinstance(names, str) else names:
        name = known.resolve(given)
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
