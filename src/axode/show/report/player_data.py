"""Data of the player in a page: triangles, poses over time, tracks and signals, as text."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.mechanism.scene.scene import Array, Scene, touch_points
from axode.show.motion import RunPoses, scene_with
from axode.show.render.meshes import TriangleMesh, meshes

if TYPE_CHECKING:
    from axode.model.model import Model
    from axode.results.trajectory import Trajectory

RATE = 50.0  # frames per second, unless that would be too many
MOST = 1500
MAX_SURFACE_TRIANGLES = 20_000  # of surfaces in files: half a megabyte of the page


def playback(model: Model, run: Trajectory | None) -> dict[str, Any]:
    """All that moves, in JSON's own types; without a run, the mechanism at home."""
    if run is None:
        frames, times, scene = None, np.zeros(1), model.scene
        poses = model.poses(model.home)[np.newaxis]
    else:
        frames = run.resample(_times(run))
        scene = scene_with(model, run.parameters)
        times, poses = RunPoses(frames, model).all_poses(len(frames))
    tracks = touch_points(scene, poses)
    stance = scene.stance  # anything but one only where there are no floors
    poses = stance @ poses
    return {
        "name": scene.name,
        "size": scene.size,
        "spacing": scene.spacing,
        "time": pack_arrays(times),
        "meshes": [_mesh(scene, mesh) for mesh in meshes(scene, MAX_SURFACE_TRIANGLES)],
        "bodies": len(scene.bodies),
        "ground": stance.T.ravel().tolist(),
        "poses": pack_arrays(_vectors(poses)),
        "floors": [
            {"body": _index(scene, f.body), "point": list(f.point), "normal": list(f.normal)}
            for f in scene.floors
        ],
        "tracks": [
            {"name": touch.name, "points": pack_arrays(tracks[:, k])}
            for k, touch in enumerate(scene.touches)
            if frames is not None
        ],
        "cords": [
            {
                "bodies": [_index(scene, b) for b in cord.bodies],
                "ends": [list(end) for end in cord.ends],
            }
            for cord in scene.cords
        ],
        "signals": [] if frames is None else _signals(frames),
    }


def _mesh(scene: Scene, mesh: TriangleMesh) -> dict[str, Any]:
    """One mesh in few bytes: places in 65535ths of its extent, directions in 127ths."""
    low = mesh.vertices.min(0)
    step = float(np.ptp(mesh.vertices, axis=0).max()) / 65535 or 1.0
    return {
        "body": _index(scene, mesh.body),
        "colour": list(mesh.colour),
        "low": low.tolist(),
        "step": step,
        "vertices": pack_arrays(np.rint((mesh.vertices - low) / step), "<u2"),
        "normals": pack_arrays(np.rint(127 * mesh.normals), "<i1"),
        "triangles": pack_arrays(mesh.triangles, "<u2"),
    }


def pack_arrays(values: npt.ArrayLike, kind: str = "<f4") -> str:
    """Numbers as text, four bytes each unless another kind is given, lowest byte first."""
    return base64.b64encode(np.ascontiguousarray(values, dtype=kind).tobytes()).decode("ascii")


def _times(run: Trajectory) -> Array:
    start, end = float(run.time[0]), float(run.ended)
    count = min(MOST, max(2, round(abs(end - start) * RATE) + 1))
    return np.linspace(start, end, count) if end != start else np.array([start])


def _vectors(poses: Array) -> Array:
    """Position and quaternion x, y, z, w of each body: (T, bodies, 7)."""
    from scipy.spatial.transform import Rotation

    flat = poses.reshape(-1, 4, 4)
    turns = Rotation.from_matrix(flat[:, :3, :3]).as_quat()
    return np.concatenate([flat[:, :3, 3], turns], axis=-1)


def _index(scene: Scene, body: str) -> int:
    """Index of a body among the poses; -1 is the ground."""
    return scene.bodies.index(body) if body in scene.bodies else -1


def _signals(run: Trajectory) -> list[dict[str, Any]]:
    onward = 1 if run.time[-1] >= run.time[0] else -1  # a run backwards is played forwards
    return [
        {
            "name": name,
            "unit": run.unit(name),
            "kind": run.kinds[name],
            "values": pack_arrays(run[name][::onward]),
        }
        for name in run.names
    ]
