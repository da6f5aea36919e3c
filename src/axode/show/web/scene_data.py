"""What pages are made of: styles and scripts in files, and the mechanism in JSON's own types."""

from __future__ import annotations

import base64
from importlib import resources
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.mechanism.scene.scene import Scene
from axode.show.render.meshes import TriangleMesh, meshes

MAX_SURFACE_TRIANGLES = 20_000  # of surfaces in files: half a megabyte of the page


def asset(folder: str, name: str) -> str:
    """Return the text of a style sheet, a script or a page in a folder of `axode.show`."""
    return resources.files(f"axode.show.{folder}").joinpath(name).read_text(encoding="utf-8")


def scene_data(scene: Scene) -> dict[str, Any]:
    """Triangles, floors and cords of a scene."""
    return {
        "name": scene.name,
        "size": scene.size,
        "spacing": scene.spacing,
        "meshes": [_mesh(scene, mesh) for mesh in meshes(scene, MAX_SURFACE_TRIANGLES)],
        "view": list(scene.view) if scene.plane else [],
        "bodies": len(scene.bodies),
        # anything but one only where there are no floors
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


def _mesh(scene: Scene, mesh: TriangleMesh) -> dict[str, Any]:
    """One mesh in few bytes: places in 65535ths of its extent, directions in 127ths."""
    low = mesh.vertices.min(0)
    step = float(np.ptp(mesh.vertices, axis=0).max()) / 65535 or 1.0
    return {
        "body": body_index(scene, mesh.body),
        "colour": list(mesh.colour),
        "low": low.tolist(),
        "step": step,
        "vertices": pack_arrays(np.rint((mesh.vertices - low) / step), "<u2"),
        "normals": pack_arrays(np.rint(127 * mesh.normals), "<i1"),
        "triangles": pack_arrays(mesh.triangles, "<u2"),
    }


def body_index(scene: Scene, body: str) -> int:
    """Place of a body among the poses; -1 is the ground."""
    return scene.bodies.index(body) if body in scene.bodies else -1


def pack_arrays(values: npt.ArrayLike, kind: str = "<f4") -> str:
    """Numbers as text, four bytes each unless another kind is given, lowest byte first."""
    return base64.b64encode(np.ascontiguousarray(values, dtype=kind).tobytes()).decode("ascii")
