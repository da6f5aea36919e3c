"""Which file the address of a mesh means, and whether it may be opened."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from axode.disk.bounded import read_bounded
from axode.errors import FileError

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
        for place in (_plain(place) for place in places):
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
        if _is_lost(scheme, homes, rest)
        else "there is no such file"
    )


def _plain(path: str) -> Path:
    """A path with either kind of slashes."""
    return Path(*PurePosixPath(path.replace("\\", "/")).parts)


def _is_lost(scheme: str, homes: list[Path], rest: str) -> bool:
    return scheme in ("package", "model") and not any(_packages(rest.split("/")[0], homes))


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
