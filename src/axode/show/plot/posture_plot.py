"""Pictures of all postures of a robot, side by side and seen by one camera."""

from __future__ import annotations

import math
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from axode.disk.atomic import write_atomically
from axode.errors import InvalidArgument
from axode.mechanism.elements.bodies import GROUND
from axode.mechanism.scene.scene import Array, Floor, Scene
from axode.show.plot.plots import picture_bytes, picture_suffix
from axode.show.render.meshes import meshes
from axode.show.render.picture import camera_of, picture
from axode.show.style import INK, figure_style, new_figure, sized

if TYPE_CHECKING:
    from axode.kinematics.postures.postures import Postures

MAX_COLUMNS = 4
PIXELS = 960  # across a row of pictures
ASPECT = 1.2  # width by height of a picture
TITLE = 0.28  # [in] above each picture


def plot_postures(
    postures: Postures, *, size: str = "screen", save: str | PathLike[str] | None = None
) -> Any:
    """Draw a picture of every posture; see `Postures.plot`."""
    sized(size)
    suffix = None if save is None else picture_suffix(save)
    if postures.shape:
        raise InvalidArgument(
            f"plot shows the postures of one target, and there are {postures.number.size}; choose "
            "one with postures.of(k)"
        )
    if not len(postures):
        raise InvalidArgument(f"'{postures.model.name}' has no posture to show for these values")
    columns = min(MAX_COLUMNS, math.ceil(math.sqrt(len(postures))))
    rows = math.ceil(len(postures) / columns)
    poses = postures.model.poses(postures.q)
    scene = _with_floor(postures.model.scene, poses)
    width = PIXELS // columns
    camera = camera_of(scene, poses, ASPECT)
    with figure_style(size) as measures:
        across = measures.width / columns
        figure = new_figure(measures.width, rows * (across / ASPECT + TITLE))
        for k, label in enumerate(postures.labels):
            axes = figure.add_subplot(rows, columns, k + 1)
            height = round(width / ASPECT)
            axes.imshow(picture(scene, poses[k], camera=camera, width=width, height=height))
            axes.set_axis_off()
            home = ", nearest home" if k == postures.nearest else ""
            axes.set_title(f"{label}{home}", color=INK, fontsize=measures.text)
        figure.draw_without_rendering()
        if save is not None and suffix is not None:
            write_atomically(Path(save), picture_bytes(figure, suffix, measures))
    return figure


def _with_floor(scene: Scene, poses: Array) -> Scene:
    """Put one floor below all postures, unless the mechanism stands on one."""
    if scene.floors:
        return scene
    heights = []
    for mesh in meshes(scene):
        rows = np.stack([(scene.stance @ scene.pose_of(mesh.body, pose))[2] for pose in poses])
        heights.append((mesh.vertices @ rows[:, :3].T + rows[:, 3]).min())
    lowest = float(min(heights, default=0.0))
    return replace(scene, floors=(Floor(GROUND.name, (0.0, 0.0, lowest), (0.0, 0.0, 1.0)),))
