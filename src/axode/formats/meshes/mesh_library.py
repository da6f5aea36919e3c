"""Surfaces of a scene: found, read once, put where the scene wants them, missed in one warning."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote

import numpy as np

from axode.disk.bounded import read_bounded
from axode.errors import FileError, OmissionWarning, first_of
from axode.formats.meshes.mesh_formats import LARGEST, Part, clean, read_parts, simplify
from axode.formats.xml.reading import plain_path
from axode.mechanism.scene.scene import Colour, Scene, Surface

# addresses ------------------------------------------------------------------------------------


LEVELS = 12  # folders that are looked at on the way up to a package
MARKS = ("package.xml", "model.config")  # what only the outermost folder of a package has
MAX_BYTES = 128 << 20
_SCHEME = re.compile(r"([a-z]+)://(.*)", re.I | re.S)


def locate(address: str, folders: tuple[str, ...]) -> Path:
    """Find the file of a mesh.

    A path, or `file://...`, has to be inside one of the folders, or inside the package that the
    first of them belongs to. `package://name/...` and `model://name/...` are inside the package of
    that name, which is looked for around the folders. If there is none, the longest end of the
    path that is in one of the folders counts: a description may be copied out of its package.

    Args:
        address: As a description gives it.
        folders: What may be opened, and what paths are relative to; without any, paths are
            relative to the working directory and anything may be opened.

    Raises:
        FileError: if there is no such file, or it is elsewhere.
    """
    found = _SCHEME.fullmatch(address)
    scheme, rest = (found[1].lower(), found[2]) if found else ("file", address)
    homes = [Path(folder) for folder in folders] or [Path.cwd()]
    places = [rest, unquote(rest)] if found and "%" in rest else [rest]
    try:
        for place in (plain_path(place) for place in places):
            if scheme in ("package", "model"):
                name, inner = place.parts[:1], Path(*place.parts[1:])
                roots = list(_packages("".join(name), homes))
                candidates = [(root / inner, [root]) for root in roots]
                ends = [Path(*inner.parts[k:]) for k in range(min(len(inner.parts), LEVELS))]
                candidates += [(home / end, homes) for end in ends for home in homes if not roots]
            elif scheme == "file":
                allowed = [*homes, *_around(homes)] if folders else []
                candidates = [(home / place, allowed) for home in homes]
            else:
                raise FileError("no address of a file on this machine")
            real = _first(candidates)
            if real is not None:
                return real
    except (OSError, ValueError, RuntimeError) as error:  # a zero byte, links in a circle
        raise FileError(f"no file can be there: {error}") from None
    raise FileError(
        f"there is no folder '{rest.split('/')[0]}' around"
        if scheme in ("package", "model") and not any(_packages(rest.split("/")[0], homes))
        else "there is no such file"
    )


def _first(candidates: list[tuple[Path, list[Path]]]) -> Path | None:
    """Return the first file that exists and may be opened."""
    outside: Path | None = None
    for path, allowed in candidates:
        real = path.resolve()
        if not real.is_file():
            continue
        if not allowed or any(real.is_relative_to(folder.resolve()) for folder in allowed):
            return real
        outside = real
    if outside is not None:
        raise FileError("is outside of the model's folder, and is not opened")
    return None


def _around(homes: list[Path]) -> Iterator[Path]:
    """The package that the first folder belongs to."""
    for folder in _upwards(homes[0]):
        if any((folder / mark).is_file() for mark in MARKS):
            yield folder
            return


def _upwards(home: Path) -> list[Path]:
    real = home.resolve()
    return [real, *real.parents][:LEVELS]


def _packages(name: str, homes: list[Path]) -> Iterator[Path]:
    """Folders that a package may be: around the first folder, or in any that may be opened."""
    if not name or name in (".", ".."):
        return
    for home in homes:
        if home.name == name or (home / name).is_dir():
            yield home if home.name == name else home / name
    for folder in _upwards(homes[0]):
        beside = folder / name
        if folder.name == name or _is_called(folder, name):
            yield folder
        elif any((beside / mark).is_file() for mark in MARKS):
            yield beside


def _is_called(folder: Path, name: str) -> bool:
    """Return whether a folder is the package of a name, according to its package.xml."""
    mark = folder / MARKS[0]
    if not mark.is_file():
        return False
    said = re.search(rb"<name>\s*([^<]*?)\s*</name>", read_bounded(mark, 1 << 20, "package.xml"))
    return said is not None and said[1].decode(errors="replace") == name


# surfaces -------------------------------------------------------------------------------------


_File: TypeAlias = tuple[Path, int, int]  # when it was changed, and its size

ALL_BYTES = 512 << 20  # of the files of one scene
ALL_TRIANGLES = 3_000_000  # likewise
MOST_FILES = 3  # named for one reason why they cannot be shown


@dataclass(frozen=True)
class PlacedPart:
    """Triangles of one colour in the frame of a body."""

    body: str
    colour: Colour
    part: Part


def surface_parts(scene: Scene, limit: int) -> list[PlacedPart]:
    """Read the surfaces of a scene, with at most `limit` triangles in all.

    Warns:
        OmissionWarning: once, listing every surface that cannot be shown, with the reason.
    """
    problems: dict[str, list[str]] = {}  # reason -> addresses
    found: list[tuple[Surface, _File]] = []
    for surface in scene.surfaces:
        try:
            path = locate(surface.file, surface.folders)
            status = path.stat()
            found.append((surface, (path, status.st_mtime_ns, status.st_size)))
        except (FileError, OSError) as error:
            _note(problems, surface, error)
    parts, unreadable = _simplified(tuple(found), limit)
    for surface, reason in unreadable:
        _note(problems, surface, reason)
    if problems:
        warnings.warn(OmissionWarning(_message(scene, problems), problems), stacklevel=2)
    return parts


def _note(problems: dict[str, list[str]], surface: Surface, error: FileError | OSError) -> None:
    reason = str(error) if isinstance(error, FileError) else error.strerror or str(error)
    problems.setdefault(reason, []).append(surface.file)


@lru_cache(maxsize=4)
def _simplified(
    found: tuple[tuple[Surface, _File], ...], limit: int
) -> tuple[list[PlacedPart], list[tuple[Surface, FileError | OSError]]]:
    """Read files; those that cannot be shown are listed with their errors."""
    placed: list[PlacedPart] = []
    unreadable: list[tuple[Surface, FileError | OSError]] = []
    bytes_left, triangles_left = ALL_BYTES, ALL_TRIANGLES
    for surface, file in found:
        try:
            bytes_left -= file[2]
            if bytes_left < 0:
                raise FileError("the meshes are too large together")
            parts = _read(*file)
            triangles_left -= sum(len(part.faces) for part in parts)
            if triangles_left < 0:
                raise FileError(f"the meshes have more than {ALL_TRIANGLES} triangles together")
            made = [_place(surface, part) for part in parts]
            made = [item for item in made if len(item.part.faces)]
            if not made:
                raise FileError(f"has no triangle between 0 and {LARGEST:g} m")
            few = simplify([item.part for item in made], limit)  # one large file in memory, not all
            placed += [replace(item, part=part) for item, part in zip(made, few, strict=True)]
        except (FileError, OSError) as error:
            unreadable.append((surface, error))
    merged: dict[tuple[str, Colour], list[Part]] = {}
    for item in placed:
        merged.setdefault((item.body, item.colour), []).append(item.part)
    few = simplify([_merge(parts) for parts in merged.values()], limit)
    named = [PlacedPart(*key, part) for key, part in zip(merged, few, strict=True)]
    return [item for item in named if len(item.part.faces)], unreadable


@lru_cache(maxsize=256)
def _read(path: Path, changed: int, size: int) -> tuple[Part, ...]:
    """Read a file; `changed` and `size` let a new file of this name be read again."""
    data = read_bounded(path, MAX_BYTES, "mesh")
    return tuple(read_parts(data, path.suffix[1:].lower(), _neighbour(path)))


def _neighbour(path: Path) -> Callable[[str], bytes | None]:
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
        lines.append(f"  {first_of(list(dict.fromkeys(files)), MOST_FILES)}: {reason}")
    lines.append(
        "  Remedy: ax.load(..., folder=...), or --option folder=..., with the folder that holds "
        "the meshes. A model file (.axm) finds them beside itself."
    )
    return "\n".join(lines)
