"""Surfaces of a scene: read once, put where the scene wants them, and missed in one warning."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from axode.disk.bounded import read_bounded
from axode.errors import FileError, LeftOut
from axode.mechanism.scene.scene import Colour, Scene, Surface
from axode.show.surfaces.mesh_address import MAX_BYTES, locate
from axode.show.surfaces.mesh_arrays import LARGEST, Part, clean, simplify
from axode.show.surfaces.mesh_formats import MAX_TRIANGLES, read_parts

ALL_BYTES = 512 << 20  # of the files of one scene


@dataclass(frozen=True)
class PlacedPart:
    """Triangles of one colour in the frame of a body."""

    body: str
    colour: Colour
    part: Part


def surface_parts(scene: Scene, limit: int) -> list[PlacedPart]:
    """Read the surfaces of a scene, with at most `limit` triangles in all.

    Warns:
        LeftOut: once, listing every surface that cannot be shown, with the reason.
    """
    parts, problems = _simplified(scene.surfaces, limit)
    if problems:
        warnings.warn(_message(scene, problems), LeftOut, stacklevel=2)
    return parts


@lru_cache(maxsize=4)
def _simplified(
    surfaces: tuple[Surface, ...], limit: int
) -> tuple[list[PlacedPart], dict[str, list[str]]]:
    placed: list[PlacedPart] = []
    problems: dict[str, list[str]] = {}  # reason -> addresses
    bytes_left, triangles_left = ALL_BYTES, MAX_TRIANGLES
    for surface in surfaces:
        try:
            path = locate(surface.file, surface.folders)
            size = path.stat().st_size
            if size > bytes_left:
                raise FileError("the meshes are too large together")
            parts = _read(path, path.stat().st_mtime_ns, size, surface.folders)
            triangles_left -= sum(len(part.faces) for part in parts)
            if triangles_left < 0:
                raise FileError(f"the meshes have more than {MAX_TRIANGLES} triangles together")
            bytes_left -= size
            made = [_place(surface, part) for part in parts]
            made = [part for part in made if len(part.part.faces)]
            if not made:
                raise FileError(f"has no triangle between 0 and {LARGEST:g} m")
            placed += made
        except (FileError, OSError) as error:
            reason = str(error) if isinstance(error, FileError) else error.strerror or str(error)
            problems.setdefault(reason, []).append(surface.file)
    merged: dict[tuple[str, Colour], list[Part]] = {}
    for item in placed:
        merged.setdefault((item.body, item.colour), []).append(item.part)
    few = simplify([_merge(parts) for parts in merged.values()], limit)
    named = [PlacedPart(*key, part) for key, part in zip(merged, few, strict=True)]
    return [item for item in named if len(item.part.faces)], problems


@lru_cache(maxsize=256)
def _read(path: Path, changed: int, size: int, folders: tuple[str, ...]) -> tuple[Part, ...]:
    """Read a file; `changed` and `size` let a new file of this name be read again."""
    data = read_bounded(path, MAX_BYTES, "mesh")
    return tuple(read_parts(data, path.suffix[1:].lower(), _neighbour(path, folders)))


def _neighbour(path: Path, folders: tuple[str, ...]) -> Callable[[str], bytes | None]:
    """Read files in the folder of another one, or below it."""

    def read(name: str) -> bytes | None:
        try:
            beside = locate(name, (str(path.parent),))
            return read_bounded(beside, MAX_BYTES, "part of a mesh")
        except (FileError, OSError, ValueError):
            return None

    return read


def _place(surface: Surface, part: Part) -> PlacedPart:
    scale, axes = np.array(surface.scale), np.array(surface.axes).T
    with np.errstate(all="ignore"):
        points = (part.points * scale) @ axes.T + np.array(surface.at)
    faces = part.faces[:, ::-1] if np.prod(np.sign(scale)) < 0 else part.faces
    colour = surface.colour if surface.painted or part.colour is None else part.colour
    return PlacedPart(surface.body, colour, clean(Part(points, faces)))


def _merge(parts: list[Part]) -> Part:
    starts = np.cumsum([0, *(len(part.points) for part in parts[:-1])])
    faces = [part.faces + start for part, start in zip(parts, starts, strict=True)]
    return replace(
        parts[0],
        points=np.concatenate([part.points for part in parts]),
        faces=np.concatenate(faces),
    )


def _message(scene: Scene, problems: dict[str, list[str]]) -> str:
    missing = sum(map(len, problems.values()))
    lines = [
        f"{scene.name}: {missing} of {len(scene.surfaces)} meshes cannot be shown; bodies without "
        "any are drawn as simple solids."
    ]
    for reason, files in problems.items():
        lines.append(f"  {', '.join(dict.fromkeys(files))}: {reason}")
    lines.append(
        "  Remedy: ax.load(..., folder=...) with the folder that holds the meshes; for a compiled "
        "model from a file that is always its own."
    )
    return "\n".join(lines)
