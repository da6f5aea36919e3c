"""Data of the mechanism that a page draws, in JSON's own types."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.mechanism.scene.scene import Scene
from axode.show.render.meshes import meshes


def scene_data(scene: Scene) -> dict[str, Any]:
    """Triangles, floors and cords of a scene."""
    return {
        "name": scene.name,
        "size": scene.size,
        "spacing": scene.spacing,
        "meshes": [
            {
                "body": body_index(scene, m.body),
                "colour": list(m.colour),
                "vertices": pack_arrays(m.vertices),
                "normals": pack_arrays(m.normals),
                "triangles": pack_arrays(m.triangles, "<u2"),
            }
            for m in meshes(scene)
        ],
        "bodies": len(scene.bodies),
        "ground": scene.stance.T.ravel().tolist(),
        "floors": [
            {"body": body_index(scene, f.body), "point": list(f.point), "normal": list(f.normal)}
            for f in scene.floors
        ],
        "cords": [
            {
                "bodies": [body_index(scene, b) for b in cord.bodies],
                "ends": [list(end) for end in cord.ends],
            }
            for cord in scene.cords
        ],
    }


def body_index(scene: Scene, body: str) -> int:
    """Place of a body among the poses; -1 is the ground."""
    return scene.bodies.index(body) if body in scene.bodies else -1


def pack_arrays(values: npt.ArrayLike, kind: str = "<f4") -> str:
    """Numbers as text, four bytes each (two for indices), lowest byte first."""
    return base64.b64encode(np.ascontiguousarray(values, dtype=kind).tobytes()).decode("ascii")
