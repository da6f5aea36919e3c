"""What a reader of XML files finds: numbers, faults, deviations, and what a mechanism cannot hold.

What makes a file unreadable is a fault; what can be read all the same is a deviation, kept with
what was done about it; what a mechanism cannot hold is left out, by kind. Readers return something
usable even where the file is wrong, so that one fault does not hide the others.
"""

from __future__ import annotations

import difflib
import math
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, Literal, Self, TypeAlias

import numpy as np

from axode.disk.bounded import read_bounded
from axode.errors import (
    Fault,
    FileDeviationWarning,
    FileError,
    InvalidArgument,
    MechanismError,
    OmissionWarning,
    first_of,
    level_outside,
    shortened,
    suggest,
)
from axode.formats.xml.xml_tree import Element
from axode.mechanism.checks import name_fault
from axode.mechanism.elements.bodies import GROUND, Box, Inertia, principal_moments
from axode.mechanism.elements.joints import AbstractJoint, Fixed, Floating, Planar
from axode.mechanism.files.wheel_proposals import Geometry
from axode.mechanism.values.geometry import rotation_matrix
from axode.numerics.tolerances import MATRIX_ROUNDING, SEVEN_DIGITS, SUM_ROUNDING

# numbers --------------------------------------------------------------------------------------


Numbers: TypeAlias = tuple[float, ...]

MOMENTS = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")  # as URDF and SDF call them
RIGHT_ANGLE = Decimal("1.5707963267948966192313216916397514420986")
LEAST_DIGITS = 10  # of a right angle that is written as one: 1.570796327 is 2e-10 beside it
MANY_TURNS = 100.0  # [rad]


def numbers_in(words: Sequence[str]) -> Numbers | None:
    """Read the numbers that words are; None if one is no number."""
    text = "".join(words)
    if not text.isascii() or "_" in text:  # Python reads digits of all scripts, and 1_000
        return None
    try:
        return tuple(map(float, words))
    except ValueError:
        return None


def exact_angle(text: str) -> float:
    """Read an angle [rad]: a multiple of a right angle where it is written as one.

    That is a decimal number which shows the first digits of the multiple, ten of them rounded, or
    more of them rounded or cut off, or which differs from it as computed numbers do. Zeros then
    stay zeros in the equations. All other numbers are kept as they are written.
    """
    value = float(text)
    turns = round(value / (math.pi / 2)) if abs(value) < MANY_TURNS else 0
    nearest = turns * (math.pi / 2)
    if abs(value - nearest) < MATRIX_ROUNDING:
        return nearest
    if not turns:
        return value
    written, exact = Decimal(text), turns * RIGHT_ANGLE
    places = -int(written.as_tuple().exponent)
    digits = len(written.as_tuple().digits)
    last_digit = Decimal(1).scaleb(-places)
    allowed = last_digit if digits > LEAST_DIGITS else last_digit / 2
    return nearest if digits >= LEAST_DIGITS and abs(written - exact) <= allowed else value


def matrix(rotation: Numbers) -> np.ndarray:
    """Compute the matrix of roll, pitch, yaw or of a quaternion."""
    return np.array(rotation_matrix(rotation), dtype=float)  # type: ignore[arg-type]


def cleaned(values: Any, least: float = 0.0) -> Numbers:
    """Numbers without what rounding leaves of zeros beside the largest, at least `least`."""
    numbers = np.asarray(values, float)
    size = float(np.abs(numbers).max(initial=least))
    return tuple(np.where(np.abs(numbers) <= SUM_ROUNDING * size, 0.0, numbers).tolist())


def box(size: Numbers, at: Numbers, R: np.ndarray, rotation: Any, colour: Any = None) -> Box:
    """Describe a box; one whose edges are along the body's axes needs no rotation."""
    if np.abs(R).max(axis=1).min() > 1 - SEVEN_DIGITS:
        return Box(tuple((np.abs(R) @ np.array(size)).tolist()), at, colour=colour)
    return Box(size, at, rotation, colour)


# findings -------------------------------------------------------------------------------------


# what several formats have and a mechanism cannot hold
PICTURES = "only for pictures, and marks"
PLUGINS = "plugins"
SENSORS = "sensors (measure names quantities of the state)"
FLUID = "forces of air and water"
LIMITS = "limits of joints and tendons"
DRY_FRICTION = "dry friction (damping is viscous here)"
UNREAD_STOPS = 'limits of joints that contacts="stops" or "all" reads as stops'
UNREAD_FRICTION = 'dry friction of joints that contacts="friction" or "all" reads'
SPEED_DAMPING = "damping of joints with several speeds (add_damper takes one of them)"

AS_WRITTEN = "used as written"
MANY_FOUND = 200  # faults and deviations, after which unknown names are reported without a hint
LARGEST = 1e150  # moments of inertia whose squares are numbers, too
MOST_NAMED = 5  # of each kind, in a warning; of more, three
_COUNTED = {
    1: "a number",
    3: "three numbers",
    4: "four numbers",
    6: "six numbers",
    7: "seven numbers",
}


@dataclass
class Findings:
    """What is wrong with a file, what was done about it, and what a mechanism cannot hold.

    Attributes:
        counted: What is no loss: its elements are counted, and `strict` does not refuse them.
        refused: What `strict` refuses, as in the summary.
        left_out: By what they are, the elements that were left out.
        files: By the identity of an element, the included file that it comes from.
    """

    counted: tuple[str, ...] = (PICTURES,)
    refused: str = "all but pictures"
    faults: list[Fault] = field(default_factory=list)
    deviations: list[tuple[Fault, str]] = field(default_factory=list)
    left_out: dict[str, list[Fault]] = field(default_factory=dict)
    files: dict[int, str] = field(default_factory=dict)

    def of(self, element: Element, name: str = "") -> Owner:
        """Return the owner of what is wrong with an element that has a name of its own."""
        return Owner(element.tag, name or element.attributes.get("name", ""), self)

    def note_remarks(
        self, tag: str, remarks: Iterable[tuple[int, str, str]], where: str = ""
    ) -> None:
        """Note what was found when a file was decoded: line, message and remedy."""
        for line, message, done in remarks:
            self.deviations.append((Fault(tag, "", "", message + where, line), done))

    def leave_out(self, what: str, element: Element, detail: str = "", name: str = "") -> None:
        """Note an element, or the part of it given by `detail`, as left out."""
        self.left_out.setdefault(what, []).append(self.of(element, name).fault(element, "", detail))

    def keep(
        self,
        found: Iterable[Fault],
        line_of: Callable[[Fault], int | None],
        kinds: Mapping[str, str] | None = None,
    ) -> None:
        """Keep what every description is checked for, in the words and lines of the file."""
        for fault in found:
            kind = (kinds or {}).get(fault.kind, fault.kind)
            self.faults.append(replace(fault, kind=kind, line=line_of(fault)))

    def conclude(self, source: str, *, strict: bool) -> None:
        """Raise an error for what is wrong, or warn of what was done about it.

        Raises:
            MechanismError: listing every fault with its line.

        Warns:
            FileDeviationWarning: once, listing every deviation and what was done about it.
        """
        found = self._lost() if strict else _by_line(self.faults)
        if found:
            raise MechanismError(source, found)
        if self.deviations:
            noted = _by_line(
                replace(fault, message=f"{fault.message} -> {done}")
                for fault, done in self.deviations
            )
            warnings.warn(FileDeviationWarning(source, noted), stacklevel=level_outside())

    def _lost(self) -> list[Fault]:
        """List faults, deviations and what is left out but not counted, by line."""
        lost = [
            replace(fault, message=f"{what} cannot be kept{_detail(fault)}")
            for what, faults in self.left_out.items()
            if what not in self.counted
            for fault in faults
        ]
        known = _by_line([*self.faults, *(fault for fault, _ in self.deviations)])
        return sorted([*known, *lost], key=lambda fault: fault.line or 0)

    def warn_left_out(self, source: str) -> None:
        """Warn once of what is left out, kind by kind, if there is anything.

        Warns:
            OmissionWarning: listing everything that a mechanism cannot hold.
        """
        if not self.left_out:
            return
        lines = [f"{source}: left out (strict=True refuses {self.refused}):"]
        listed: dict[str, list[str]] = {}
        for what, faults in sorted(self.left_out.items(), key=lambda x: x[0] in self.counted):
            if what in self.counted:
                tags = [fault.kind for fault in faults]
                listed[what] = [f"{tags.count(tag)} {tag}" for tag in dict.fromkeys(tags)]
                lines.append(f"{what}: {', '.join(listed[what])}")
            else:
                listed[what] = [
                    f"{' '.join(filter(None, (f.kind, f.name)))} (line {f.line}){_detail(f)}"
                    for f in faults
                ]
                lines.append(f"{what}: {first_of(listed[what], MOST_NAMED, 3)}")
        if any(len(faults) > MOST_NAMED for faults in listed.values()):
            lines.append("strict=True lists every one of them (--option strict=true)")
        warnings.warn(OmissionWarning("\n  ".join(lines), listed), stacklevel=level_outside())


def _by_line(faults: Iterable[Fault]) -> list[Fault]:
    return sorted(dict.fromkeys(faults), key=lambda fault: fault.line or 0)


def _detail(fault: Fault) -> str:
    text = fault.message.strip()
    return f" {text}" if text.startswith("(") else f": {text}" if text else ""


@lru_cache(maxsize=1024)  # files have the same few tags again and again
def close_to(tag: str, known: tuple[str, ...]) -> str | None:
    """Return the known tag that a tag is, or is a slip of; None if there is none."""
    if tag in known:
        return tag
    close = difflib.get_close_matches(tag.lower(), known, n=1, cutoff=0.8)
    return close[0] if close else None


@dataclass(frozen=True)
class Owner:
    """The link, joint or other part that elements belong to, and where its faults are kept.

    With `otherwise`, nothing read through it is a fault: that is what is done instead.
    """

    kind: str
    name: str
    findings: Findings
    otherwise: str = ""

    def aside(self, otherwise: str) -> Self:
        """Return the owner of what is replaced or left out instead of refused."""
        return type(self)(self.kind, self.name, self.findings, otherwise)

    def fault(self, element: Element, field: str, message: str) -> Fault:
        """Make a fault at the line of an element, and of its file if that is another."""
        file = self.findings.files.get(id(element), "")
        where = f" (in {file})" if file else ""
        return Fault(self.kind, self.name, field, message + where, element.line)

    def report(self, element: Element, field: str, message: str) -> None:
        """Note a fault at the line of an element."""
        if self.otherwise:
            self.note(element, field, message, self.otherwise)
        else:
            self.findings.faults.append(self.fault(element, field, message))

    def note(self, element: Element, field: str, message: str, done: str) -> None:
        """Note a deviation at the line of an element, and what was done about it."""
        self.findings.deviations.append((self.fault(element, field, message), done))

    def count(self) -> int:
        """Count what has been found until now."""
        return len(self.findings.faults) + len(self.findings.deviations)

    def hint(self, kind: str, name: str, known: Sequence[str]) -> str:
        """The alternatives to an unknown name, unless there were many: each is a long search."""
        return suggest(kind, name, known) if self.count() < MANY_FOUND else ""

    # words that are not read ---------------------------------------------------------------------

    def look_for_slips(self, element: Element, known: tuple[str, ...]) -> None:
        """Note elements that look like a known one misspelt; all others may be extensions."""
        for child in element.children:
            close = close_to(child.tag, known)
            if close and close != child.tag:
                message = f"unknown element <{child.tag}>. Did you mean <{close}>?"
                self.note(child, "", message, "ignored")

    def only(self, element: Element, *known: str) -> None:
        """Note attributes other than these: they might be meant to change the mechanism."""
        for attribute in element.attributes:
            if attribute not in known:
                hint = suggest("attribute", attribute, known)
                message = f"unknown attribute '{attribute}'. {hint}"
                self.note(element, element.tag, message, "ignored")

    # numbers -------------------------------------------------------------------------------------

    def parse(
        self,
        element: Element,
        field: str,
        text: str,
        usual: Numbers,
        words: list[str] | None = None,
        *,
        bounded: bool = True,
    ) -> Numbers:
        """As many numbers as there usually are, in a text or its words."""
        values = numbers_in(text.split() if words is None else words)
        fault = ""
        if values is None or len(values) != len(usual):
            fault = f"expected {_COUNTED[len(usual)]}"
        elif bounded and not all(map(math.isfinite, values)):
            fault = "must be finite"
        if fault:
            got = text if len(text) < 80 else text[:77] + "..."
            self.report(element, field, f"{fault}, got '{got}'")
        return usual if fault or values is None else values

    def words(self, element: Element, attribute: str) -> list[str]:
        """Split an attribute into words; commas between them are blanks."""
        text = element.attributes.get(attribute, "")
        if "," in text and re.fullmatch(r"[^,]+(,\s+[^,\s]+)+\s*", text):
            self.note(element, f"{element.tag} {attribute}", "has commas", "taken as blanks")
            text = text.replace(",", " ")
        return text.split()

    def numbers(
        self, element: Element, attribute: str, usual: Numbers, *, required: bool = True
    ) -> Numbers:
        """As many numbers in an attribute as there usually are."""
        field = f"{element.tag} {attribute}"
        text = element.attributes.get(attribute)
        if text is None:
            if required:
                self.report(element, field, "is missing")
            return usual
        return self.parse(element, field, text, usual, self.words(element, attribute))

    def number(
        self, element: Element, attribute: str, usual: float, *, required: bool = True
    ) -> float:
        """One number in an attribute."""
        return self.numbers(element, attribute, (usual,), required=required)[0]

    def not_negative(self, element: Element, field: str, value: float) -> float:
        """Return a number, or zero instead of one below zero, which is noted as left out."""
        if value < 0:
            self.note(element, field, f"must be >= 0, got {value:g}", "left out")
        return max(value, 0.0)

    def inertia(
        self,
        weight: Element,
        tensor: Element,
        mass: float,
        entries: Sequence[float],
        R: np.ndarray | None,
    ) -> Inertia:
        """Inertia in the axes of a link.

        Args:
            weight, tensor: The elements of the mass and of the inertia.
            mass: The mass [kg].
            entries: Entries xx, yy, zz, xy, xz, yz of the tensor itself [kg m^2].
            R: The axes of these entries in those of the link; None if they are the same.
        """
        xx, yy, zz, xy, xz, yz = entries
        if R is not None:
            turned = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
            with np.errstate(over="ignore", invalid="ignore"):
                turned = R @ turned @ R.T
                turned = (turned + turned.T) / 2
            (xx, xy, xz), (_, yy, yz), (_, _, zz) = turned.tolist()
        found = tuple([entry + 0.0 for entry in (xx, yy, zz, xy, xz, yz)])  # no negative zeros
        if not all(abs(entry) <= LARGEST for entry in found):
            self.report(tensor, "inertia", f"no moment may be larger than {LARGEST:g} kg m^2")
            return Inertia.point()
        # a file cannot mark zero moments as intended, so they are accepted
        ideal = principal_moments(found)[0] <= 0.0
        xx, yy, zz, xy, xz, yz = found
        inertia = Inertia(xx, yy, zz, xy, xz, yz, ideal)
        if inertia.is_point(mass):
            return replace(inertia, ideal=True)
        inertia = self.physical(tensor, inertia)
        if mass == 0.0 and not inertia.vanishes:
            message = "must be > 0 kg, got 0; a massless body has the inertia of a point"
            self.note(weight, "mass", message, "mass and inertia are " + AS_WRITTEN)
            inertia = replace(inertia, ideal=True)
        return inertia

    def physical(self, tensor: Element, inertia: Inertia) -> Inertia:
        """Return an inertia; one that no rigid body has is noted, and used as written."""
        fault = inertia.fault()
        if fault:
            self.note(tensor, "inertia", fault, AS_WRITTEN)
            inertia = replace(inertia, unphysical=True)
        return inertia


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
        label: What messages call the file; its path unless given.
        contacts: What to read of friction and stops.
    """

    text: str
    path: Path
    base: Base | None = None
    limit: Path | None = None
    strict: bool = False
    remarks: list[tuple[int, str, str]] = field(default_factory=list)
    geometry: Geometry = field(default_factory=Geometry)
    label: str = ""
    contacts: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.base is not None and self.base not in BASES:
            raise InvalidArgument(
                f"base must be 'fixed', 'floating' or 'planar', got {shortened(self.base)}"
            )

    @property
    def source(self) -> str:
        """What messages call the file."""
        return self.label or str(self.path)

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
