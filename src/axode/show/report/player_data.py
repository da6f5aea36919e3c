"""Data of the player in a page: triangles, poses over time, tracks and signals, as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from axode.mechanism.scene.scene import Array, touch_points
from axode.results.interpolation import resample_picture
from axode.show.motion import RunPoses, scene_with
from axode.show.web.scene_data import pack_arrays, scene_data

if TYPE_CHECKING:
    from axode.model.model import Model
    from axode.results.trajectory import Trajectory

RATE = 50.0  # frames per second, unless that would be too many
MOST, FEWEST = 1500, 200
COMPACT = 1_000_000  # characters of what moves, in a notebook
CHARACTERS = 16 / 3  # per number


def playback(
    model: Model,
    run: Trajectory | None,
    signals: Sequence[str] | None = None,
    *,
    compact: bool = False,
) -> dict[str, Any]:
    """All that moves, in JSON's own types.

    Args:
        model: Whose motion.
        run: What it did; without a run, the mechanism is at home.
        signals: Columns to take along; all unless given.
        compact: Whether a long run has fewer frames.
    """
    names = () if run is None else run.names if signals is None else tuple(signals)
    if run is None:
        frames, times, scene = None, np.zeros(1), model.scene
        poses = model.poses(model.home)[np.newaxis]
    else:
        numbers = len(names) + 7 * len(model.bodies) + 3 * len(model.scene.touches)
        fitting = max(FEWEST, int(COMPACT / (CHARACTERS * max(numbers, 1))))
        frames = resample_picture(run, _times(run, min(MOST, fitting) if compact else MOST))
        scene = scene_with(model, run.parameters)
        times, poses = RunPoses(frames, model).all_poses(len(frames))
    tracks = touch_points(scene, poses)
    return {
        **scene_data(scene),
        "time": pack_arrays(times),
        "poses": pack_arrays(_vectors(scene.stance @ poses)),
        "tracks": [
            {"name": touch.name, "points": pack_arrays(tracks[:, k])}
            for k, touch in enumerate(scene.touches)
            if frames is not None
        ],
        "signals": [] if frames is None else _signals(frames, names),
    }


def _times(run: Trajectory, most: int) -> Array:
    start, end = float(run.time[0]), float(run.ended)
    count = min(most, max(2, round(abs(end - start) * RATE) + 1))
    return np.linspace(start, end, count) if end != start else np.array([start])


def _vectors(poses: Array) -> Array:
    """Position and quaternion x, y, z, w of each body: (T, bodies, 7)."""
    from scipy.spatial.transform import Rotation

    flat = poses.reshape(-1, 4, 4)
    turns = Rotation.from_matrix(flat[:, :3, :3]).as_quat()
    return np.concatenate([flat[:, :3, 3], turns], axis=-1)


def _signals(run: Trajectory, names: Sequence[str]) -> list[dict[str, Any]]:
    onward = 1 if run.time[-1] >= run.time[0] else -1  # a run backwards is played forwards
    return [
        {
            "name": name,
            "unit": run.unit(name),
            "kind": run.kinds[name],
            "values": pack_arrays(run[name][::onward]),
        }
        for name in names
    ]
