"""What readers of XML formats are given, and the names that they give to parts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Literal, TypeAlias

from axode.disk.bounded import read_bounded
from axode.errors import FileError, InvalidArgument, shortened
from axode.formats.xml.findings import Owner
from axode.formats.xml.xml_tree import Element
from axode.mechanism.checks import name_fault
from axode.mechanism.elements.bodies import GROUND
from axode.mechanism.elements.joints import AbstractJoint, Fixed, Floating, Planar
from axode.mechanism.files.wheel_proposals import Geometry

Base: TypeAlias = Literal["fixed", "floating", "planar"]

BASES: dict[str, AbstractJoint] = {"fixed": Fixed(), "floating": Floating(), "planar": Planar()}
MAX_FILE = 32 << 20  # bytes of a mesh or of an included file


@dataclass(frozen=True)
class XmlFile:
    """The text of a file, and how it is to be read.

    Attributes:
        text: What the file holds.
        path: Where it is: includes and meshes are relative to its folder.
        base: How a robot is held that nothing joins to the world; as is usual in the format
            unless given.
        limit: Outside of which nothing is opened; the folder of the file unless given.
        strict: Whether to refuse what can be read only with a warning.
        remarks: Line, message and remedy of what was found when the file was decoded.
        geometry: Where to put the solids of the links, and the planes that they may stand on.
    """

    text: str
    path: Path
    base: Base | None = None
    limit: Path | None = None
    strict: bool = False
    remarks: list[tuple[int, str, str]] = field(default_factory=list)
    geometry: Geometry = field(default_factory=Geometry)

    def __post_init__(self) -> None:
        if self.base is not None and self.base not in BASES:
            raise InvalidArgument(
                f"base must be 'fixed', 'floating' or 'planar', got {shortened(self.base)}"
            )

    @property
    def source(self) -> str:
        """What messages call the file."""
        return str(self.path)

    @property
    def folder(self) -> ModelFolder:
        """The folder of the file."""
        return ModelFolder(self.path.parent, self.limit or self.path.parent)


@dataclass(frozen=True)
class ModelFolder:
    """The folder of a model, and the one outside of which nothing is opened."""

    path: Path
    limit: Path

    def read(self, file: str, *folders: str) -> bytes | None:
        """Read a file of the model; None if there is none.

        Args:
            file: Its address as the model has it.
            folders: Where it may be, relative to the model.

        Raises:
            FileError: if it is outside of the folder, too large or unreadable.
        """
        outside = inside = False
        limit = self.limit.resolve()
        for folder in folders or ("",):
            try:
                real = (self.path / plain_path(folder) / plain_path(file)).resolve()
                if real.is_relative_to(limit):
                    inside = True
                    return read_bounded(real, MAX_FILE, "file of a model")
                outside = True
            except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
                continue
            except (OSError, ValueError, RuntimeError) as error:
                reason = getattr(error, "strerror", None) or str(error)
                raise FileError(f"cannot read {file}: {reason}.") from None
        if outside and not inside:
            raise FileError(
                f"{file} is outside of the folder {self.limit}, and is not opened; allow a folder "
                "that holds all files of the model: load(..., folder=...)."
            )
        return None


def plain_path(path: str) -> Path:
    """A path with either kind of slashes."""
    return Path(*PurePosixPath(path.replace("\\", "/")).parts)


@dataclass
class PartNames:
    """Names of the parts of a mechanism: those of the file where it can have them, each once.

    Attributes:
        taken: Names that parts have, by their kind.
    """

    taken: dict[str, set[str]] = field(default_factory=lambda: {"body": {GROUND.name}})

    def fault(self, kind: str, name: str) -> str | None:
        """Return why no part of this kind can have a name, or None."""
        if kind == "body" and name == GROUND.name:
            return f"'{name}' is the world; choose another name"
        return name_fault(name)

    def reserve(self, kind: str, names: Iterable[str]) -> None:
        """Take the names of the file that parts of this kind can have."""
        self.taken.setdefault(kind, set()).update(n for n in names if not self.fault(kind, n))

    def free(self, kind: str, name: str) -> str:
        """Return a name that nothing of this kind has yet, and take it."""
        taken = self.taken.setdefault(kind, set())
        while name in taken:
            name += "_"
        taken.add(name)
        return name

    def choose(self, kind: str, given: str, owner: Owner, element: Element) -> str:
        """Return a free name as near as can be to that of the file, and take it."""
        fault = self.fault(kind, given)
        if not fault:
            return self.free(kind, given)
        new = "".join(c if c.isprintable() else "_" for c in given)
        new = self.free(kind, f"_{new}" if new.startswith("[") else new)
        shown = Owner(owner.kind, repr(given)[1:-1], owner.findings)
        shown.note(element, "", fault, f"called '{new}'")
        return new
