"""What contacts do, in pictures: colours of their modes, and where they slip on the ground."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from axode.mechanism.scene.scene import Array, Colour, Scene, floor_normal, touch_points
from axode.model.model_parts import facts_of
from axode.numerics.tolerances import NOTICEABLE
from axode.show.motion import RunPoses
from axode.show.style import BLUE, GREY, ORANGE

MODES = {"stick": BLUE, "slip": ORANGE, "closed": GREY}  # nothing is drawn of what is open
OPEN, CLOSED, SLIP, STICK = "open", "closed", "slip", "stick"
SLIPPING = 0.01  # sizes of the mechanism per second: what slips in a run without modes
SLIP_MARK: Colour = (38, 42, 48)  # of rubber on the ground


def mode_colour(mode: str) -> Colour | None:
    """Red, green and blue of a mode; None for one that is not drawn."""
    text = MODES.get(mode)
    return None if text is None else (int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16))


def contact_modes(motion: RunPoses, times: Array, poses: Array) -> npt.NDArray[np.str_]:
    """Modes of the contacts that a scene shows, at many times: (times, touches).

    A run from event to event knows them. Of any other, contacts that may lift are "open" where they
    are above their floor; where they touch it, they slip or stick as their point there moves, or
    are "closed" if they have rollers. The mode of a wheel that never slips nor lifts is "".

    Args:
        motion: The run.
        times: Instants [s].
        poses: Poses of all bodies then: (times, bodies, 4, 4).
    """
    scene, model = motion.model.scene, motion.model
    found = np.full((len(times), len(scene.touches)), "", dtype="<U6")
    table = facts_of(model).contact_table
    heights = touch_heights(scene, poses)
    speeds = slip_speeds(motion, times, poses) if table and not motion.run.modes else heights
    for k, touch in enumerate(scene.touches):
        spans = motion.run.modes.get(touch.name)
        if spans:
            begins = np.array([begin for begin, _ in spans])
            words = np.array([word for _, word in spans])
            found[:, k] = words[np.clip(np.searchsorted(begins, times, "right") - 1, 0, None)]
        elif touch.name in table.names:
            both = {f"{touch.name}.longitudinal", f"{touch.name}.lateral"} <= set(table.rows)
            slips = speeds[:, k] > SLIPPING * scene.size
            found[:, k] = np.where(slips, SLIP, STICK) if both else CLOSED
            found[heights[:, k] > NOTICEABLE * scene.size, k] = OPEN
    return found


def slip_speeds(motion: RunPoses, times: Array, poses: Array) -> Array:
    """How fast the lowest points of wheels move along their floors [m/s]: (times, touches)."""
    model, scene, run = motion.model, motion.model.scene, motion.run
    order = 1 if run.time[-1] >= run.time[0] else -1
    columns = [np.interp(times, motion.time, run[n][::order]) for n in model.independent]
    nu, q = np.stack(columns, axis=-1), np.ascontiguousarray(motion.coordinates(times))
    twists = model.twists(q, nu, **motion.options(times))
    points, speeds = touch_points(scene, poses), np.zeros((len(times), len(scene.touches)))
    for k, touch in enumerate(scene.touches):
        if touch.body not in scene.bodies:
            continue
        place = scene.bodies.index(touch.body)
        body, twist = poses[:, place], twists[:, place]
        centre = body[:, :3, :3] @ np.array(scene.centres[place]) + body[:, :3, 3]
        v = twist[:, 3:] + np.cross(twist[:, :3], points[:, k] - centre)
        normal = floor_normal(scene, scene.floors[touch.floor], poses)
        across = v - np.sum(v * normal, axis=-1, keepdims=True) * normal
        speeds[:, k] = np.linalg.norm(across, axis=-1)
    return speeds


def touch_heights(scene: Scene, poses: Array) -> Array:
    """Heights of the lowest points of wheels above their floors [m]: (..., touches)."""
    points = touch_points(scene, poses)
    heights = np.empty(points.shape[:-1])
    for k, touch in enumerate(scene.touches):
        floor = scene.floors[touch.floor]
        body = scene.pose_of(floor.body, poses)
        origin = body[..., :3, :3] @ np.array(floor.point) + body[..., :3, 3]
        normal = floor_normal(scene, floor, poses)
        heights[..., k] = np.sum((points[..., k, :] - origin) * normal, axis=-1)
    return heights


def slip_marks(
    scene: Scene, poses: Array, modes: npt.NDArray[np.str_]
) -> tuple[Array, npt.NDArray[np.intp]]:
    """Lines on the ground along which contacts slipped: (lines, 2, 3), and the sample each ends at.

    Args:
        scene: What is drawn.
        poses: Poses of all bodies: (samples, bodies, 4, 4).
        modes: Modes of the contacts then: (samples, touches).
    """
    points = touch_points(scene, poses) if scene.touches else np.zeros((len(poses), 0, 3))
    slips = (modes[:-1] == SLIP) & (modes[1:] != OPEN)
    ends, touches = np.nonzero(slips)
    lines = np.stack([points[ends, touches], points[ends + 1, touches]], axis=1)
    return lines, ends + 1
