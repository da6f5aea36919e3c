"""Where the meshes of a mechanism are: in the folder of its file, and in what the user allows."""

from __future__ import annotations

import os
from collections.abc import Callable
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
    _replace_meshes(
        mechanism, lambda mesh: mesh if mesh.folders else replace(mesh, folders=folders)
    )
    return mechanism


def with_mesh_addresses(mechanism: Mechanism, folder: Path | None) -> Mechanism:
    """Return a mechanism whose meshes have addresses for a file in a folder.

    Only relative paths of existing files change; without a folder, none does.
    """
    if folder is None:
        return mechanism
    target = folder.absolute()
    moved = mechanism.copy()
    _replace_meshes(moved, lambda mesh: replace(mesh, file=_address(mesh, target)))
    return moved


def _address(mesh: Mesh, target: Path) -> str:
    if "://" in mesh.file or Path(mesh.file).is_absolute():
        return mesh.file
    for home in map(Path, mesh.folders or (os.getcwd(),)):
        if (home / mesh.file).is_file():
            return Path(os.path.relpath(home / mesh.file, target)).as_posix()
    return mesh.file


def _replace_meshes(mechanism: Mechanism, change: Callable[[Mesh], Mesh]) -> None:
    for k, body in enumerate(mechanism.bodies):
        if any(isinstance(shape, Mesh) for shape in body.shapes):
            shapes = tuple(
                change(shape) if isinstance(shape, Mesh) else shape for shape in body.shapes
            )
            one = shapes[0] if len(shapes) == 1 else shapes
            mechanism.bodies[k] = replace(body, shape=one)
