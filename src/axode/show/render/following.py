"""Where the camera of a movie stands, frame by frame."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from axode.mechanism.scene.scene import Array, Scene
from axode.show.render.camera import Camera
from axode.show.render.meshes import TriangleMesh
from axode.show.render.picture import camera_of, outline

FAR = 1.5  # sizes of the mechanism: one that travels farther is followed
CALM = 0.4  # [s] of the movie over which the camera's motion is averaged
LOOKED_AT = 200  # frames that decide how far away the camera stands


def travels(scene: Scene, poses: Array) -> bool:
    """Decide whether a mechanism moves farther than its size, from poses (times, bodies, 4, 4)."""
    path = poses[:, :, :3, 3].mean(axis=1)
    return bool(np.linalg.norm(np.ptp(path, axis=0)) > FAR * scene.size)


class CameraPath:
    """A camera that stands still, or goes with the mechanism without turning.

    Attributes:
        follows: Whether it goes with the mechanism.
        ground: Height of the lowest point in all frames [m].

    Args:
        scene: What is drawn.
        poses: Poses of all bodies in all frames: (frames, bodies, 4, 4).
        follow: Whether it follows; None follows what travels.
        camera: Viewpoint, of the first frame if it follows; one that sees everything by default.
        rate: Frames per second.
        aspect: Width of the picture over its height.
        azimuth, elevation: Direction from the mechanism to the eye, without `camera` [rad].
        drawn: The scene's triangles.
    """

    def __init__(
        self,
        scene: Scene,
        poses: Array,
        *,
        follow: bool | None,
        camera: Camera | None,
        rate: float,
        aspect: float,
        azimuth: float | None,
        elevation: float | None,
        drawn: list[TriangleMesh],
    ) -> None:
        chosen = np.unique(np.linspace(0, len(poses) - 1, LOOKED_AT).round().astype(int))
        self.ground = float(outline(scene, poses[chosen], drawn)[:, 2].min())
        self.follows = travels(scene, poses) if follow is None else follow
        self._moved = np.zeros((len(poses), 3))
        if self.follows:
            middles = poses[:, :, :3, 3].mean(axis=1) @ scene.stance[:3, :3].T
            calm = _averaged(middles, CALM * rate)
            self._moved = calm - calm[0]
        if camera is None:
            some = np.array(poses[chosen])
            some[..., :3, 3] -= (self._moved[chosen] @ scene.stance[:3, :3])[:, None]
            camera = camera_of(
                scene, some, aspect, azimuth=azimuth, elevation=elevation, drawn=drawn
            )
        self._first = camera

    def __getitem__(self, frame: int) -> Camera:
        x, y, z = (np.array(self._first.target) + self._moved[frame]).tolist()
        return replace(self._first, target=(x, y, z))


def _averaged(path: Array, frames: float) -> Array:
    """Smooth a path by a moving average with bell-shaped weights of a width in frames."""
    frames = min(frames, len(path) / 6)
    reach = int(3 * frames)
    if reach < 1:
        return path
    weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / frames) ** 2)
    weights /= weights.sum()
    # beyond its ends the path is continued, so that the camera starts in the middle
    before = 2 * path[0] - path[np.clip(np.arange(reach, 0, -1), 0, len(path) - 1)]
    after = 2 * path[-1] - path[np.clip(len(path) - 1 - np.arange(1, reach + 1), 0, None)]
    longer = np.concatenate([before, path, after])
    return np.stack([np.convolve(longer[:, k], weights, "valid") for k in range(3)], axis=-1)
