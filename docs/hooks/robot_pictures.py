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
from axode.show.render.picture import camera_of, picture

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


def hexapod_modes(page: dict[str, Any]) -> Any:
    """The postures above the ground, side by side."""
    model = page["robot"].model
    heights = page["postures"].poses[:, 2, 3]
    every = page["postures"].q[heights > 0]
    views = [instants(model, q[None], size=(480, 400), elevation=18) for q in every[:4]]
    whole = Image.new("RGB", (960, 800))
    for k, view in enumerate(views):
        whole.paste(view, (480 * (k % 2), 400 * (k // 2)))
    return whole


def assembly_modes(page: dict[str, Any]) -> Any:
    """Four postures of a platform, seen by the same camera."""
    model, found = page["hexapod"].model, page["modes"]
    chosen = [found.labels.index(label) for label in ("+1", "-4", "+3", "-1")]
    poses, width, height = model.poses(found.q[chosen]), 480, 400
    scene = replace(model.scene, floors=(_floor_below(model.scene, poses),))
    turn = {"azimuth": np.radians(-50), "elevation": np.radians(14)}
    camera = camera_of(scene, poses, width / height, **turn)
    tiles = [picture(scene, pose, camera=camera, width=width, height=height) for pose in poses]
    rows = [np.concatenate(tiles[k : k + 2], axis=1) for k in (0, 2)]
    return Image.fromarray(np.concatenate(rows, axis=0))


DRAWN: dict[str, dict[str, Callable[[dict[str, Any]], Any]]] = {
    "guide/hexapod.md": {"hexapod-modes.png": hexapod_modes},
    "guide/mobile-manipulator.md": {"manipulator-robot.png": manipulator},
    "guide/inverse-kinematics.md": {"reach-robot.png": reaching},
    "guide/kinematics.md": {"kinematics-modes.png": assembly_modes},
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
