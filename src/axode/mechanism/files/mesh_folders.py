"""Where the meshes of a mechanism may be: the folder of its file, and what the user allows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from axode.mechanism.elements.bodies import Mesh
from axode.mechanism.mechanism import Mechanism


def with_mesh_folders(mechanism: Mechanism, home: Path, further: Path | None = None) -> Mechanism:
    """Let the meshes of a mechanism be read from its own folder, and from one more.

    Meshes that know their folders already, as those of a file that another one extends, keep them.

    Args:
        mechanism: The mechanism, whose bodies are replaced.
        home: The folder of its file, which paths are relative to.
        further: A folder that the user allows.
    """
    folders = tuple(str(folder.absolute()) for folder in (home, further) if folder is not None)
    for k, body in enumerate(mechanism.bodies):
        shapes = tuple(
            replace(shape, folders=folders)
            if isinstance(shape, Mesh) and not shape.folders
            else shape
            for shape in body.shapes
        )
        if any(isinstance(shape, Mesh) for shape in shapes):
            one = shapes[0] if len(shapes) == 1 else shapes
            mechanism.bodies[k] = replace(body, shape=one)
    return mechanism
