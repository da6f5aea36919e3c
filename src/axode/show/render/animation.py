"""A run as a movie, drawn without a browser."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from axode.argument_types import check_arguments
from axode.errors import InvalidArgument
from axode.mechanism.scene.scene import Array, floor_normal, touch_points
from axode.problems.interrupt import Interrupt
from axode.problems.progress import Progress
from axode.results.trajectory import Trajectory
from axode.show.motion import RunPoses, scene_with
from axode.show.render.camera import Camera
from axode.show.render.following import CameraPath
from axode.show.render.frame_clock import FrameClock
from axode.show.render.meshes import TriangleMesh, meshes
from axode.show.render.movie_files import check_movie, write_movie
from axode.show.render.painter import Image, ScenePainter
from axode.show.render.picture import track_ribbons

if TYPE_CHECKING:
    from axode.model.model import Model

SIDES = (16, 8192)  # pixels
MAX_FRAMES = 1_000_000
SAMPLED = 6  # frames that the colours of a GIF are chosen from
THICKNESS = 0.012  # of an arrow's shaft, in sizes of the mechanism


def animate(
    run: Trajectory,
    path: str | PathLike[str],
    *,
    model: Model | None = None,
    times: Sequence[float] | Array | None = None,
    rate: float = 25.0,
    speed: float = 1.0,
    size: tuple[int, int] = (640, 480),
    camera: Camera | None = None,
    azimuth: float | None = None,
    elevation: float | None = None,
    follow: bool | None = None,
    tracks: bool = True,
    forces: bool = False,
    clock: bool = True,
    progress: bool | None = None,
) -> Path:
    """Write one run as a movie: MP4, WebM, GIF or animated PNG.

    Frames are drawn and written one by one. At Ctrl-C the file is completed with the frames until
    then; a second Ctrl-C leaves no file, and one that was there as it was.

    Args:
        run: One run.
        path: Ends in `.mp4`, `.webm`, `.gif` or `.apng`.
        model: What made the run, if that comes from a file.
        times: Instants of the frames [s]; evenly over the whole run, according to `rate` and
            `speed`, unless given.
        rate: Frames per second; a GIF has at most 50.
        speed: Playback speed; 1 is real time.
        size: Width and height in pixels.
        camera: Viewpoint, of the first frame if the camera follows; by default one that sees the
            whole mechanism in all frames.
        azimuth: Direction from the mechanism to the eye about the vertical, without `camera` [rad].
        elevation: Angle of that direction above the floor, likewise [rad].
        follow: Let the camera go with the mechanism; by default with one that travels.
        tracks: Whether wheels leave tracks.
        forces: Whether forces at the contacts are drawn as arrows.
        clock: Whether the time is written in the picture.
        progress: Show a progress bar; by default on a terminal.

    Returns:
        The path.

    Raises:
        InvalidArgument: for a batch, and for an ending, a rate or a size that no movie has.
        NotApplicable: if PyAV or Pillow, from the extra `movie`, is not installed; or for a
            trajectory from a file without its model.
        FileError: if the file cannot be written.
        KeyboardInterrupt: at Ctrl-C, with what was written.
    """
    check_arguments(animate, locals())
    _check_size(size)
    file = check_movie(path, rate)
    if run.batch:
        raise InvalidArgument(
            f"a movie shows one run, not a batch of shape {run.batch}.\n  Remedy: batch.run(0)"
        )
    motion = RunPoses(run.run(0), model)
    instants = _instants(motion.time, times, rate, speed)
    movie = RunFrames(motion, instants, size, tracks=tracks, forces=forces, clock=clock)
    movie.aim(camera, follow, rate, azimuth, elevation)
    samples: list[Image] = []
    if file.suffix.lower() == ".gif":
        chosen = np.linspace(0, len(instants) - 1, min(SAMPLED, len(instants))).astype(int)
        samples = [movie.frame(k)[::2, ::2] for k in chosen.tolist()]
    with Progress(f"{len(instants)} frames", progress) as bar, Interrupt() as interrupt:
        written = 0

        def all_frames() -> Iterator[Image]:
            nonlocal written
            for written in range(1, len(instants) + 1):
                yield movie.frame(written - 1)
                bar.update(written / len(instants))
                if interrupt.pressed:
                    return

        write_movie(file, all_frames(), rate, samples=samples)
        if interrupt.pressed:
            raise KeyboardInterrupt(f"{written} of {len(instants)} frames are in {file}")
    return file


def _check_size(size: tuple[int, int]) -> None:
    least, most = SIDES
    whole = len(size) == 2 and all(isinstance(side, int | np.integer) for side in size)
    if not whole or not all(least <= side <= most for side in size):
        raise InvalidArgument(
            f"size: expected a width and a height from {least} to {most} pixels, got {size}"
        )


def _instants(
    time: Array, times: Sequence[float] | Array | None, rate: float, speed: float
) -> Array:
    """Times of the frames; those beyond the run show its start or its end."""
    if not (np.isfinite(speed) and speed > 0):
        raise InvalidArgument(f"speed: expected a finite number > 0, got {speed:g}")
    if times is not None:
        given = np.asarray(times, float).reshape(-1)
        if not len(given) or not np.isfinite(given).all():
            raise InvalidArgument("times: expected finite numbers, at least one")
        return given
    count = (time[-1] - time[0]) / speed * rate
    if count > MAX_FRAMES:
        raise InvalidArgument(
            f"speed: {time[-1] - time[0]:g} s at speed {speed:g} are {count:.3g} frames, and at "
            f"most {MAX_FRAMES} are drawn.\n  Remedy: a higher speed, or a lower rate"
        )
    instants: Array = np.minimum(time[0] + speed / rate * np.arange(round(count) + 1), time[-1])
    return instants


class RunFrames:
    """The pictures of a run.

    Args:
        motion: The run.
        instants: Times of the frames [s].
        size: Width and height in pixels.
        tracks, forces, clock: What is drawn besides the mechanism.
    """

    def __init__(
        self,
        motion: RunPoses,
        instants: Array,
        size: tuple[int, int],
        *,
        tracks: bool = True,
        forces: bool = False,
        clock: bool = True,
    ) -> None:
        self.scene = scene_with(motion.model, motion.run.parameters)
        self.instants = instants
        self.poses = motion.poses(instants)
        self._size = int(size[0]), int(size[1])
        self._painter = ScenePainter(self.scene, meshes(self.scene), *self._size)
        self._tracks = tracks and bool(self.scene.touches)
        self._ribbons: list[TriangleMesh] = []
        self._arrows = _ForceArrows(motion, self) if forces and self.scene.touches else None
        self._clock = FrameClock(instants, self._size[1]) if clock else None
        self._cameras: CameraPath

    def aim(
        self,
        camera: Camera | None = None,
        follow: bool | None = None,
        rate: float = 25.0,
        azimuth: float | None = None,
        elevation: float | None = None,
    ) -> None:
        """Choose the camera of all frames; see `animate`."""
        width, height = self._size
        self._cameras = CameraPath(
            self.scene,
            self.poses,
            follow=follow,
            camera=camera,
            rate=rate,
            aspect=width / height,
            azimuth=azimuth,
            elevation=elevation,
            drawn=self._painter.drawn,
        )
        if self._tracks:
            points = touch_points(self.scene, self.poses)
            normal = floor_normal(self.scene, self.scene.floors[0], self.poses[0])
            pixel = self._cameras[0].pixel(height)
            self._ribbons = track_ribbons(self.scene, points, normal, pixel)

    def frame(self, k: int) -> Image:
        """Paint a frame: (height, width, 3), 0 to 255."""
        extra = [replace(ribbon, triangles=ribbon.triangles[: 2 * k]) for ribbon in self._ribbons]
        if self._arrows is not None:
            extra += self._arrows.at(k)
        cameras = self._cameras
        image = self._painter.paint(self.poses[k], cameras[k], extra, ground=cameras.ground)
        return image if self._clock is None else self._clock.stamped(image, k)


class _ForceArrows:
    """Contact forces of all frames."""

    def __init__(self, motion: RunPoses, frames: RunFrames) -> None:
        from axode.show.render.contact_arrows import force_vectors

        usual = motion.usual_force()
        forces = motion.forces(frames.instants)
        self._starts, self._vectors = force_vectors(frames.scene, frames.poses, forces, usual)
        self._thickness = THICKNESS * frames.scene.size

    def at(self, k: int) -> list[TriangleMesh]:
        from axode.show.render.arrows import arrows
        from axode.show.render.contact_arrows import FORCES

        found = []
        for j, colour in enumerate(FORCES):
            vectors = self._vectors[k, :, j]
            drawn = np.linalg.norm(vectors, axis=1) > 2.0 * self._thickness
            if drawn.any():
                starts = self._starts[k][drawn]
                found.append(arrows(starts, vectors[drawn], self._thickness, colour))
        return found
