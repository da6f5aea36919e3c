"""Expand the macros of xacro files with xacrodoc, which needs no installation of ROS.

A xacro file holds expressions in Python that xacro evaluates, and may include any file: it is a
program, and is expanded only where a file is named as one.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from contextlib import redirect_stderr, suppress
from io import StringIO
from pathlib import Path
from typing import Any

from axode.disk.bounded import read_bounded
from axode.errors import FileError, InvalidArgument, UnknownName, require_package, shortened

ENDING = ".xacro"
PACKAGE = "package.xml"
MAX_PACKAGES = 1000  # folders beside a file that are looked through for packages
_ALONE = threading.Lock()  # xacro keeps what it is doing in its modules


def is_xacro(path: Path) -> bool:
    """Return whether a file is named as one of xacro."""
    return path.suffix.lower() == ENDING


def expand(text: str, path: Path, arguments: Mapping[str, Any], folder: Path | None) -> str:
    """Return the XML that a xacro file makes.

    Args:
        text: What the file holds.
        path: Where it is; includes are relative to its folder, packages are those of the folders
            around it, those beside them, and what ROS knows if it is installed.
        arguments: Values of its `<xacro:arg>` elements.
        folder: One more folder that is looked through for packages.

    Raises:
        FileError: if xacro refuses the file, with the files and macros that led there.
        UnknownName: if the file declares no argument of a name.
        NotApplicable: if xacrodoc is not installed.
    """
    values = _Arguments(arguments)
    xacrodoc = require_package("xacrodoc", "expanding xacro files needs xacrodoc", "xacro")
    xacro = require_package("xacro", "expanding xacro files needs xacro", "xacro")
    complaints = StringIO()  # xacro prints what it also raises
    with _ALONE, redirect_stderr(complaints):
        packages = xacrodoc.packages
        packages.reset()
        packages.walk_up_from(path)
        packages.update_package_cache(_packages_near(path, folder))
        xacro.init_stacks(str(path))
        try:
            made = xacrodoc.XacroDoc.from_string(text, subargs=values, resolve_packages=False)
        except Exception as error:  # of xacro, of Python in its expressions, of YAML files
            raise FileError(_refusal(path, error, xacro)) from None
        finally:
            packages.reset()
            xacro.init_stacks(None)
    unused = [name for name in arguments if name not in values.used]
    if unused:
        raise UnknownName(str(path), "xacro argument", unused[0], sorted(values.used))
    return str(made.dom.toprettyxml(indent="  "))


class _Arguments(dict[str, str]):
    """Values of arguments, which remember the names that the file asks for."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        for name, value in given.items():
            if not isinstance(name, str) or not isinstance(value, str | int | float):
                raise InvalidArgument(
                    "arguments must be texts or numbers by name, as in "
                    f'{{"prefix": "left_"}}, got {shortened({name: value})}'
                )
        super().__init__({name: _text(value) for name, value in given.items()})
        self.used: set[str] = set()

    def __contains__(self, name: object) -> bool:
        self.used.add(str(name))
        return super().__contains__(name)

    def __getitem__(self, name: str) -> str:
        self.used.add(name)
        return super().__getitem__(name)


def _text(value: str | float) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _packages_near(path: Path, folder: Path | None) -> dict[str, Path]:
    """Find packages beside the package of a file, and in a folder, by name."""
    homes = [p.parent for p in path.resolve().parents if (p / PACKAGE).is_file()][:1]
    found: dict[str, Path] = {}
    for home in (*homes, *([] if folder is None else [folder.resolve()])):
        with suppress(OSError):
            for place in sorted(home.iterdir())[:MAX_PACKAGES]:
                if (place / PACKAGE).is_file():
                    found.setdefault(_package_name(place), place)
    return found


def _package_name(place: Path) -> str:
    from axode.formats.xml.xml_tree import parse

    with suppress(FileError, OSError, ValueError):
        data = read_bounded(place / PACKAGE, 1 << 20, "package's file")
        name = parse(data.decode(errors="replace"), str(place / PACKAGE), []).first("name")
        if name is not None and name.text:
            return name.text.strip()
    return place.name


def _refusal(path: Path, error: Exception, xacro: Any) -> str:
    """Describe what xacro refuses, in which file, called by which macro, and the remedy."""
    what = " ".join(re.sub(r"<class '[\w.]+'>: ", "", str(error)).split()) or type(error).__name__
    what = re.sub(r"(.+) \1", r"\1", what) if re.fullmatch(r"(.+) \1", what) else what
    lines = [f"{path}: xacro cannot expand it: {what}."]
    files = [str(file) for file in xacro.filestack or [] if file]
    if len(files) > 1:
        lines.append(f"in {files[-1]}, included from {', '.join(reversed(files[:-1]))}")
    macros = [macro.body.getAttribute("name") for macro in reversed(xacro.macrostack or [])]
    if macros:
        lines.append("in macro " + ", called by ".join(macros))
    if "substitution argument" in what.lower() or "undefined argument" in what.lower():
        lines.append('Give it a value: ax.load(..., arguments={"NAME": VALUE})')
    if "package not found" in what.lower():
        lines.append("Allow a folder that holds the package's folder: ax.load(..., folder=...)")
    return "\n  ".join(lines)
