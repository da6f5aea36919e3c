"""A run as a movie, drawn without a browser: its frames, their camera and clock."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from axode.argument_types import check_arguments
from axode.errors import InvalidArgument
from axode.mechanism.scene.scene import Array, Scene, floor_normal, touch_points
from axode.problems.progress import Interrupt, Progress
from axode.results.trajectory import Trajectory
from axode.show.contact_marks import OPEN, SLIP, SLIP_MARK, contact_modes, mode_colour
from axode.show.motion import RunPoses, scene_with, usual_force
from axode.show.render.meshes import FORCES, TriangleMesh, arrows, force_vectors, meshes, spots
from axode.show.render.movie_files import check_movie, need_pillow, write_movie
from axode.show.render.painter import Camera, Image, ScenePainter, camera_of, outline, track_ribbons

if TYPE_CHECKING:
    from axode.model.model import Model


SIDES = (16, 8192)  # pixels
MAX_FRAMES = 1_000_000
SAMPLED = 6  # frames that the colours of a GIF are chosen from
SPOT = 0.028  # radius of a spot in the colour of a contact's mode, in sizes of the mechanism
THICKNESS = 0.012  # of an arrow's shaft, in sizes of the mechanism
FAR = 1.5  # sizes of the mechanism: one that travels farther is followed
CALM = 0.4  # [s] of the movie over which the camera's motion is averaged
LOOKED_AT = 200  # frames that decide how far away the camera stands
INK = np.array([34.0, 40.0, 46.0])
HEIGHT = 1 / 24  # of the text, in heights of the picture
LEAST_HEIGHT = 9  # pixels


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
        tracks: Whether wheels leave tracks: dark where they slip, none where they are in the air.
            Contacts that may slip have a spot, blue where they stick and orange where they slip.
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
    movie.aim(camera, follow, rate, azimuth=azimuth, elevation=elevation)
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
        self._modes = contact_modes(motion, instants, self.poses)
        self._arrows = _ForceArrows(motion, self) if forces and self.scene.touches else None
        self._clock = FrameClock(instants, self._size[1]) if clock else None
        self._cameras: CameraPath

    def aim(
        self,
        camera: Camera | None = None,
        follow: bool | None = None,
        rate: float = 25.0,
        **angles: float | None,
    ) -> None:
        """Choose the camera of all frames; see `animate`, which has the angles too."""
        self._cameras = CameraPath(self._painter, self.poses, camera, follow, rate, **angles)
        if self._tracks:
            points = touch_points(self.scene, self.poses)
            normal = floor_normal(self.scene, self.scene.floors[0], self.poses[0])
            pixel = self._cameras[0].pixel(self._size[1])
            self._ribbons = track_ribbons(self.scene, points, normal, pixel)
            self._slipped = track_ribbons(self.scene, points, normal, pixel, SLIP_MARK)
            self._spot = SPOT * self.scene.size
            self._spots = points + 0.3 * self._spot * normal

    def frame(self, k: int) -> Image:
        """Paint a frame: (height, width, 3), 0 to 255."""
        extra = self._tracks_until(k) + self._mode_spots(k)
        if self._arrows is not None:
            extra += self._arrows.at(k)
        cameras = self._cameras
        image = self._painter.paint(self.poses[k], cameras[k], extra, ground=cameras.ground)
        return image if self._clock is None else self._clock.stamped(image, k)

    def _tracks_until(self, k: int) -> list[TriangleMesh]:
        """Tracks of wheels on the ground before a frame; where they slipped, marks of rubber."""
        made: list[TriangleMesh] = []
        for j, ribbon in enumerate(self._ribbons):
            modes = self._modes[:k, j]
            for mesh, here in (
                (ribbon, (modes != OPEN) & (modes != SLIP)),
                (self._slipped[j], modes == SLIP),
            ):
                if here.any():
                    drawn = mesh.triangles[: 2 * k][np.repeat(here, 2)]
                    made.append(replace(mesh, triangles=drawn))
        return made

    def _mode_spots(self, k: int) -> list[TriangleMesh]:
        """Spots in the colour of its mode where a contact of known mode touches."""
        modes = self._modes[k]
        if not self._ribbons or not set(modes.tolist()) & {"stick", SLIP}:
            return []
        found = []
        for mode in sorted(set(modes.tolist())):
            colour = mode_colour(mode)
            if colour is not None:
                found.append(spots(self._spots[k, modes == mode], self._spot, colour))
        return found


class _ForceArrows:
    """Contact forces of all frames."""

    def __init__(self, motion: RunPoses, frames: RunFrames) -> None:
        usual = usual_force(motion.contact_forces)
        forces = motion.forces(frames.instants)
        self._starts, self._vectors = force_vectors(frames.scene, frames.poses, forces, usual)
        self._thickness = THICKNESS * frames.scene.size

    def at(self, k: int) -> list[TriangleMesh]:
        found = []
        for j, colour in enumerate(FORCES):
            vectors = self._vectors[k, :, j]
            drawn = np.linalg.norm(vectors, axis=1) > 2.0 * self._thickness
            if drawn.any():
                starts = self._starts[k][drawn]
                found.append(arrows(starts, vectors[drawn], self._thickness, colour))
        return found


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
        painter: What draws the frames.
        poses: Poses of all bodies in all frames: (frames, bodies, 4, 4).
        camera: Viewpoint, of the first frame if it follows; one that sees everything if None.
        follow: Whether it follows; None follows what travels.
        rate: Frames per second.
        angles: Azimuth and elevation of the eye, without `camera` [rad].
    """

    def __init__(
        self,
        painter: ScenePainter,
        poses: Array,
        camera: Camera | None,
        follow: bool | None,
        rate: float,
        **angles: float | None,
    ) -> None:
        scene, drawn = painter.scene, painter.drawn
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
            aspect = painter.width / painter.height
            camera = camera_of(scene, some, aspect, drawn=drawn, **angles)
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


class FrameClock:
    """Writes times into pictures.

    Args:
        times: Times of all frames [s].
        height: Height of the pictures, in pixels.
    """

    def __init__(self, times: Array, height: int) -> None:
        self._pillow = need_pillow()
        from PIL import ImageFont

        self._size = max(LEAST_HEIGHT, round(HEIGHT * height))
        self._font = ImageFont.load_default(self._size)
        step = float(np.median(np.abs(np.diff(times)))) if len(times) > 1 else 1.0
        decimals = int(np.clip(np.ceil(-np.log10(max(step, 1e-9)) - 0.01), 1, 6))
        self._texts = [f"t = {t + 0.0:.{decimals}f} s" for t in times.tolist()]

    def stamped(self, image: Image, k: int) -> Image:
        """The picture of frame `k` with its time in the lower left corner; it is changed."""
        from PIL import ImageDraw

        size = self._size
        strip = self._pillow.new("L", (image.shape[1], 2 * size))
        ImageDraw.Draw(strip).text((0.6 * size, 0.4 * size), self._texts[k], 255, self._font)
        _, _, right, _ = strip.getbbox() or (0, 0, 1, 1)
        share = np.asarray(strip)[:, :right, None] / 255.0
        place = image[-len(share) :, :right]
        place += (share[-len(place) :] * (INK - place)).round().astype(np.int16).astype(np.uint8)
        return image
