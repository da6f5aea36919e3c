"""A run as a moving picture, drawn without a browser."""

from __future__ import annotations

import io
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from axode.disk.atomic import write_atomically
from axode.errors import InvalidArgument, NotApplicable
from axode.mechanism.scene.scene import touch_points
from axode.show.motion import RunPoses, scene_with
from axode.show.render.camera import Camera
from axode.show.render.meshes import meshes
from axode.show.render.picture import camera_of, picture

if TYPE_CHECKING:
    from axode.model.model import Model
    from axode.results.trajectory import Trajectory

LOOKED_AT = 12  # frames that say where a run goes, so that the camera sees all of it


def animate(
    model: Model,
    run: Trajectory,
    path: str | PathLike[str],
    *,
    frames_per_second: float = 15.0,
    speed: float = 1.0,
    width: int = 480,
    height: int = 320,
    camera: Camera | None = None,
) -> Path:
    """Draw one run as an animated GIF that repeats for ever.

    Args:
        model: The model that made the run.
        run: One run.
        path: Ends in `.gif`.
        frames_per_second: Frame rate; a GIF resolves hundredths of a second.
        speed: Playback speed; 1 is real time.
        width, height: Size of the picture.
        camera: Viewpoint; by default one that sees all of the run.
    """
    file = Path(path)
    if file.suffix.lower() != ".gif":
        raise InvalidArgument(f"an animation is a GIF: '{file}' has to end in .gif")
    if run.batch:
        raise InvalidArgument(
            f"one run can be shown, not a batch of shape {run.batch}.\n  Remedy: batch.run(0)"
        )
    end = float(run.ended)
    count = max(2, round(abs(end - run.time[0]) / speed * frames_per_second))
    frames_of = run.resample(np.linspace(run.time[0], end, count))
    poses = RunPoses(frames_of, model).all_poses(count)[1]
    scene = scene_with(model, run.parameters)
    drawn = meshes(scene)
    some = poses[:: max(1, count // LOOKED_AT)]
    view = camera or camera_of(scene, some, width / height, drawn=drawn)
    tracks = touch_points(scene, poses) if scene.touches else None
    image = _image()
    frames = [
        image(
            picture(
                scene,
                p,
                camera=view,
                width=width,
                height=height,
                tracks=None if tracks is None else tracks[: k + 1],
                drawn=drawn,
            )
        )
        for k, p in enumerate(poses)
    ]
    palette = frames[-1].quantize(160)  # one for all, so that nothing flickers
    few = [frame.quantize(palette=palette, dither=0) for frame in frames]
    stream = io.BytesIO()
    few[0].save(
        stream,
        format="GIF",
        save_all=True,
        append_images=few[1:],
        loop=0,
        duration=1000.0 / frames_per_second,
        optimize=True,
    )
    write_atomically(file, stream.getvalue())
    return file


def _image() -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise NotApplicable(
            "animations need Pillow, which is not installed.\n  Remedy: pip install axode[plot]"
        ) from error
    return Image.fromarray
