"""Draw the robots of whole-robot pages at several instants: python docs/hooks/robot_pictures.py.

The motions are those that the pages compute; `pictures.py` makes the plots that they save.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from axode.mechanism.elements.bodies import GROUND
from axode.mechanism.scene.scene import Floor, Scene
from axode.show.render.meshes import meshes
from axode.show.render.painter import camera_of, picture

DOCS = Path(__file__).resolve().parents[1]
IMAGES = DOCS / "assets" / "images"
BLOCK = re.compile(r"^```(?:python|py)\n(.*?)^```", re.MULTILINE | re.DOTALL)
COLOURS = 160
FAINT = 0.45  # opacity of all instants but the last one
CHANGED = 10  # of 255: what differs more from the empty scene belongs to the robot


def instants(model: Any, q: Any, *, size: tuple[int, int] = (960, 560), **view: float) -> Any:
    """One picture of several configurations (k, coordinates), the last one in full colour."""
    poses, drawn = model.poses(q), model.scene
    if not drawn.floors:  # one for all instants, below the lowest of them
        drawn = replace(drawn, floors=(_floor_below(drawn, poses),))
    width, height = size
    turn = {name: np.radians(degrees) for name, degrees in view.items()}
    camera = camera_of(drawn, poses, width / height, **turn)
    camera = replace(camera, distance=1.05 * camera.distance)

    def seen(scene: Any, pose: Any) -> Any:
        return picture(scene, pose, camera=camera, width=width, height=height).astype(float)

    empty = seen(replace(drawn, solids=()), poses[0])
    whole = empty.copy()
    for k, pose in enumerate(poses):
        one = seen(drawn, pose)
        changed = (np.abs(one - empty).max(axis=2) > CHANGED)[..., None]
        weight = 1.0 if k == len(poses) - 1 else FAINT
        whole = np.where(changed, (1 - weight) * whole + weight * one, whole)
    return Image.fromarray(whole.round().astype(np.uint8))


def _floor_below(scene: Scene, poses: Any) -> Floor:
    """The floor that the lowest point of all instants stands on."""
    heights = []
    for mesh in meshes(scene):
        frames = scene.stance @ np.stack([scene.pose_of(mesh.body, pose) for pose in poses])
        heights.append((mesh.vertices @ frames[:, 2, :3].T + frames[:, 2, 3]).min())
    lowest = float(min(heights))
    return Floor(GROUND.name, (0.0, 0.0, lowest), (0.0, 0.0, 1.0))


def coordinates(run: Any, times: Any) -> Any:
    """Coordinates of a run at some times: (k, coordinates)."""
    at = run.resample(np.asarray(times, float))
    return np.column_stack([at[name] for name in run.model.coordinates])


def manipulator(page: dict[str, Any]) -> Any:
    """Four instants of the robot that drives past a point."""
    run = page["passing"]
    return instants(page["model"], coordinates(run, [0, 2.5, 3.5, 6]), azimuth=-60, elevation=35)


def reaching(page: dict[str, Any]) -> Any:
    """Four instants of the robot whose gripper follows a wave."""
    return instants(
        page["robot"], coordinates(page["walk"], [0, 2.5, 5, 8]), azimuth=-60, elevation=40
    )


DRAWN: dict[str, dict[str, Callable[[dict[str, Any]], Any]]] = {
    "guide/mobile-manipulator.md": {"manipulator-robot.png": manipulator},
    "guide/inverse-kinematics.md": {"reach-robot.png": reaching},
}


def run(page: str) -> dict[str, Any]:
    """Names that the code of a page leaves behind."""
    names: dict[str, Any] = {"__name__": "__page__"}
    text = (DOCS / page).read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        os.chdir(folder)
        exec(compile("\n".join(BLOCK.findall(text)), page, "exec"), names)
        os.chdir(DOCS)
    return names


if __name__ == "__main__":
    for page, pictures in DRAWN.items():
        names = run(page)
        for name, draw in pictures.items():
            fewer = draw(names).quantize(COLOURS, dither=Image.Dither.NONE)
            fewer.save(IMAGES / name, optimize=True)
            print(f"{name}: {(IMAGES / name).stat().st_size / 1000:.0f} kB")
