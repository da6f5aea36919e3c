"""Mechanisms in files: TOML, read and written, URDF, MJCF and SDF, read; TOML that extends any.

A file is read completely or refused with everything wrong with it; it is replaced completely or
left as it was.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from axode.disk.atomic import replace_file
from axode.disk.bounded import read_bounded
from axode.errors import (
    FileError,
    InvalidArgument,
    OmissionWarning,
    PlausibilityWarning,
    first_of,
    level_outside,
    shortened,
)
from axode.formats.xacro.expansion import expand, is_xacro
from axode.mechanism.checks import joints_of_tables, require_readable
from axode.mechanism.elements.wheels import AbstractWheel
from axode.mechanism.files.imported import (
    chosen_contacts,
    lock_joints,
    settle_home,
    with_mesh_addresses,
    with_mesh_folders,
)
from axode.mechanism.files.toml.toml_lines import Path as KeyPath
from axode.mechanism.files.toml.toml_lines import key_lines
from axode.mechanism.files.wheel_proposals import (
    Geometry,
    ProposedWheel,
    choose_wheels,
    describe_free_base,
    describe_missing_motors,
    describe_proposals,
    describe_tipping,
    search_wheels,
    wheels_on_free_base,
)
from axode.mechanism.mechanism import Mechanism

if TYPE_CHECKING:
    from axode.mechanism.files.toml.additions import Additions, Extended
    from axode.mechanism.files.toml.toml_schema import ExtendsTable

MAX_TOML = 4 << 20  # bytes; a robot of a thousand links has a tenth of it
MAX_KEY_PARTS = 16
MAX_WORDS = 500_000  # of TOML
USD = (".usd", ".usda", ".usdc", ".usdz")
MAX_EXTENDED = 8  # files, each of which extends the next


def load(
    path: str | os.PathLike[str],
    *,
    base: Literal["fixed", "floating", "planar"] | None = None,
    strict: bool = False,
    folder: str | os.PathLike[str] | None = None,
    wheels: Literal["proposed"] | Sequence[str] | Mapping[str, AbstractWheel] | None = None,
    hold: Sequence[str] = (),
    arguments: Mapping[str, str | float] | None = None,
    contacts: Literal["all"] | Sequence[Literal["stops", "friction", "wheels"]] = (),
) -> Mechanism:
    """Read a mechanism from a TOML, URDF, xacro, MJCF or SDF file.

    Args:
        path: The file; `Mechanism.save` writes TOML files and docs/start/from-toml.md explains
            how to write one by hand, docs/start/from-urdf.md what is read of a URDF file,
            docs/start/from-mjcf.md what of an MJCF file, which needs the `mujoco` package,
            docs/start/from-sdf.md what of an SDF file, and docs/start/additions.md how a TOML file
            adds to a file of another kind. A file that ends in `.xacro` is expanded first, which
            needs the `xacrodoc` package and runs the expressions in the file.
        base: How the root link of a URDF file, or of an SDF file that does not join it to the
            world, is held: "fixed" to the ground (usual in URDF), "floating" (usual in SDF), or
            "planar" in the ground's plane, by a joint called `base`.
        strict: Whether to refuse in a URDF file what departs from the format or from physics and
            can be read all the same, and in an MJCF or SDF file also what a mechanism cannot
            hold. A TOML file is always read strictly.
        folder: Outside of which no file is opened that a TOML file extends, an MJCF or SDF file
            includes or a mesh is in; its own folder unless given, and for meshes also that of its
            package.
        wheels: Links that roll on the ground: "proposed" for all that look like wheels and for
            spheres that slide, the names of some of them, or the wheel that each is, such as
            {"left": Omni(0.1)}; none unless given. A warning lists those that are not given,
            unless there is a choice; an empty one lets no link roll.
        hold: Joints that become rigid where they stand at home, by names or patterns such as
            "arm_*"; motors, dampers, springs and couplings of theirs are removed.
        arguments: Values of the arguments of a xacro file, by name.
        contacts: What to read of friction and stops, which are left out unless asked for: "stops"
            for the limits of joints, "friction" for their dry friction, "wheels" for the friction
            of what `wheels` lets roll; "all" for the three. Such a mechanism slips, lifts and
            strikes; `Mechanism.ideal` is the one without.

    Raises:
        FileError: if the file cannot be read or is none of these.
        MechanismError: listing everything wrong with what it describes, line by line.
        NotApplicable: if it describes more bodies than equations written out can serve, or is
            MJCF and MuJoCo is not installed, or xacro and xacrodoc is not.

    Warns:
        FileDeviationWarning: once, listing every deviation of the file and what was done about it.
        OmissionWarning: listing what a mechanism cannot represent, and links that look like wheels.
        PlausibilityWarning: if wheels="proposed" leaves a floating base free to tip, a robot from
            a URDF file has no motors, wheels have no friction to read, or home is beyond a stop.
    """
    asked = FileOptions(base, strict, folder, wheels, hold, arguments, contacts)
    loaded = read(path, asked)
    if loaded.proposals:
        text = describe_proposals(
            str(path), base, loaded.proposals, extends=loaded.additions is not None
        )
        warnings.warn(text, OmissionWarning, level_outside())
    elif loaded.if_free:
        text = describe_free_base(str(path), loaded.if_free)
        warnings.warn(text, OmissionWarning, level_outside())
    for text in loaded.doubts:
        warnings.warn(text, PlausibilityWarning, level_outside())
    return loaded.mechanism


@dataclass
class LoadedFile:
    """A mechanism from a file, and what else is in the file.

    Attributes:
        proposals: Links that look like wheels, unless a choice was given.
        if_free: Those that would, if the root were free, where nothing says how it is held.
        additions: What a file that extends another adds to it.
        doubts: What robots on proposed wheels lack: supports, motors and friction to read.
    """

    mechanism: Mechanism
    proposals: list[ProposedWheel]
    additions: Additions | None
    if_free: list[ProposedWheel] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class FileOptions:
    """How a file is read, in the words of `load`."""

    base: str | None = None
    strict: bool = False
    folder: str | os.PathLike[str] | None = None
    wheels: Literal["proposed"] | Sequence[str] | Mapping[str, AbstractWheel] | None = None
    hold: Sequence[str] = ()
    arguments: Mapping[str, str | float] | None = None
    contacts: Any = ()


def read(path: str | os.PathLike[str], asked: FileOptions) -> LoadedFile:
    """Read a mechanism as `load` does, and what else is in the file."""
    wheels, hold, arguments = asked.wheels, asked.hold, asked.arguments
    kinds = list(wheels.values()) if isinstance(wheels, Mapping) else []
    names = list(wheels) if isinstance(wheels, Mapping) else wheels
    if not (names in (None, "proposed") or _are_names(names)) or not all(
        isinstance(kind, AbstractWheel) for kind in kinds
    ):
        raise InvalidArgument(
            "wheels must be 'proposed' or names of links, or the wheel that each is, as in "
            f'{{"left": ax.Omni(0.1)}}, got {shortened(wheels)}'
        )
    if not _are_names(hold):
        raise InvalidArgument(f"hold must be names of joints, got {shortened(hold)}")
    limit = None if asked.folder is None else _as_path(asked.folder)
    if arguments is not None and not isinstance(arguments, Mapping):
        raise InvalidArgument(f"arguments must be values by name, got {shortened(arguments)}")
    files = _Files(
        asked.base, asked.strict, limit, arguments or {}, chosen_contacts(asked.contacts)
    )
    mechanism = files.read(_as_path(path))
    if files.arguments and not files.is_xacro:
        raise InvalidArgument(f"arguments are for xacro files, and {path} is none")
    proposals: list[ProposedWheel] = []
    if_free: list[ProposedWheel] = []
    _require_none(f"hold={shortened(hold)}", lock_joints(mechanism, hold))
    if wheels is not None:
        chosen, wrong = choose_wheels(wheels, mechanism, files.geometry)
        _require_none(f"wheels={shortened(wheels)}", wrong)
        for wheel in chosen:
            wheel.add_to(mechanism)
    elif not files.wheels_chosen:
        proposals = search_wheels(mechanism, files.geometry).wheels
        if not proposals and files.base is None and files.is_urdf:
            if_free = wheels_on_free_base(mechanism, files.geometry)
    doubts = []
    if wheels == "proposed" or (wheels is None and files.wheels_proposed):
        doubts.append(describe_tipping(mechanism, files.geometry))
        if files.is_urdf:
            doubts.append(describe_missing_motors(str(path), mechanism))
    if files.contacts:
        doubts += _ideal_wheels(str(path), mechanism, files.contacts)
        doubts += [f"{path}: {text}" for text in settle_home(mechanism)]
    return LoadedFile(mechanism, proposals, files.additions, if_free, list(filter(None, doubts)))


def _ideal_wheels(source: str, mechanism: Mechanism, contacts: frozenset[str]) -> list[str]:
    """Name the wheels that were asked to slip, and for which the file gives no friction."""
    ideal = [c.name for c in mechanism.contacts if c.wheel.is_ideal]
    if "wheels" not in contacts or not ideal:
        return []
    return [
        f"{source}: no friction is given for {first_of(ideal)}, which roll without slipping; "
        'wheels={"name": ax.Rolling(RADIUS, friction=0.8)} gives it'
    ]


def _are_names(given: object) -> bool:
    is_list = isinstance(given, Sequence) and not isinstance(given, str)
    return is_list and all(isinstance(name, str) for name in given)  # type: ignore[attr-defined]


def _require_none(argument: str, wrong: list[str]) -> None:
    """Raise an error that lists what is wrong with an argument, if anything."""
    if wrong:
        raise InvalidArgument("\n  ".join([f"{argument}: {wrong[0]}", *wrong[1:]]))


@dataclass
class _Files:
    """Reads a file, and the files that it extends.

    Attributes:
        geometry: The solids of links that are no TOML file's.
        arguments: Values of the arguments of a xacro file.
        contacts: What is read of friction and stops.
        wheels_chosen: Whether a file states which links roll.
        wheels_proposed: Whether it states that all do that look like wheels.
        is_xacro: Whether a file was expanded by xacro.
        is_urdf: Whether a file is URDF, whose root is fixed unless the user frees it.
        trail: The files that are being read, each of which extends the next.
        additions: What the first of them adds to the second.
    """

    base: str | None
    strict: bool
    limit: Path | None
    arguments: Mapping[str, str | float]
    contacts: frozenset[str]
    geometry: Geometry = field(default_factory=Geometry)
    wheels_chosen: bool = False
    wheels_proposed: bool = False
    is_urdf: bool = False
    is_xacro: bool = False
    trail: tuple[Path, ...] = ()
    additions: Additions | None = None

    def read(self, place: Path) -> Mechanism:
        """Read a file of any kind, whose meshes may be in its own folder and in the one allowed."""
        return with_mesh_folders(self._read(place), place.parent, self.limit)

    def _read(self, place: Path) -> Mechanism:
        remarks: list[tuple[int, str, str]] = []
        text = _text(place, remarks)
        suffix, label = place.suffix.lower(), ""
        if is_xacro(place):
            text = expand(text, place, self.arguments, self.limit)
            self.is_xacro, label = True, f"{place} (expanded)"
        is_sdf = bool(_SDF.search(text)) or suffix == ".sdf"
        is_mjcf = not is_sdf and bool(_MJCF.search(text))
        if not (is_sdf or is_mjcf or text.lstrip().startswith("<") or suffix == ".urdf"):
            return self._from_toml(text, place)
        if is_mjcf and self.base is not None:
            raise InvalidArgument(
                f"base={self.base!r} is for URDF files; in {place} a free joint, or none, holds "
                "the first body"
            )
        from axode.formats.xml.reading import XmlFile

        base: Any = self.base
        file = XmlFile(
            text, place, base, self.limit, self.strict, remarks, self.geometry, label, self.contacts
        )
        # only those who read such files wait for their reader, and for MuJoCo
        if is_sdf:
            from axode.formats.sdf.sdf import mechanism_from_sdf

            return mechanism_from_sdf(file)
        if is_mjcf:
            from axode.formats.mjcf.mjcf import mechanism_from_mjcf

            return mechanism_from_mjcf(file)
        from axode.formats.urdf.urdf import mechanism_from_urdf

        self.is_urdf = True
        return mechanism_from_urdf(file)

    def _from_toml(self, text: str, place: Path) -> Mechanism:
        # pydantic takes a moment to import: only those who read files wait for it
        from axode.mechanism.files.toml.additions import compare
        from axode.mechanism.files.toml.toml_reader import extends_table, mechanism_from

        data, lines = _toml(text, place)
        if "extends" not in data:
            if self.base is not None:
                raise InvalidArgument(
                    f"base={self.base!r} is for URDF files; in {place} a joint on the ground "
                    "holds the first body"
                )
            return mechanism_from(data, lines, str(place), place.stem)
        table = extends_table(data)
        if table is None:  # the reader reports what is wrong with it
            return mechanism_from(data, lines, str(place), place.stem)
        extended = self._extended(table, place, lines["extends",])
        mechanism = mechanism_from(data, lines, str(place), place.stem, extended)
        self.wheels_chosen |= table.wheels is not None
        self.wheels_proposed |= table.wheels == "proposed"
        self.additions = compare(extended.file, extended.mechanism, mechanism)
        return mechanism

    def _extended(self, table: ExtendsTable, place: Path, line: int) -> Extended:
        """Read the file that another extends."""
        from axode.mechanism.files.toml.additions import Extended

        if table.base is not None and self.base not in (None, table.base):
            raise InvalidArgument(
                f'base={self.base!r}: {place}, line {line}, says base = "{table.base}"; '
                "leave one of them out"
            )
        self.base = self.base or table.base
        self.strict |= table.strict
        self.arguments = {**table.arguments, **self.arguments}
        self.contacts |= chosen_contacts(table.contacts)
        self.limit = place.parent if self.limit is None else self.limit
        self.trail += (place.resolve(),)
        file = place.parent / table.file.replace("\\", "/")
        where = f"{place}, line {line}: cannot extend {shortened(table.file)}"
        try:
            real, exists = file.resolve(), file.is_file()
        except (OSError, ValueError, RuntimeError) as error:  # a zero byte, or links in a ring
            raise FileError(f"{where}: {getattr(error, 'strerror', None) or error}.") from None
        if not real.is_relative_to(self.limit.resolve()):
            raise FileError(
                f"{where}: it is outside of the folder {self.limit.resolve()}, and is not opened."
                "\n  Allow a folder that holds both: load(..., folder=...), or on the command "
                "line --option folder=..."
            )
        if real in self.trail:
            names = [path.name for path in (*self.trail, file)]
            raise FileError(f"{where}: the files extend each other: {', '.join(names)}.")
        if len(self.trail) > MAX_EXTENDED:
            raise FileError(f"{where}: more than {MAX_EXTENDED} files extend one another.")
        if not exists:
            raise FileError(
                f"{where}.\n  {_cannot('read', file, FileNotFoundError(2, 'No such file'))}"
            )
        return Extended(table.file, self.read(file), table, self.geometry)


_PROLOGUE = r"\A\s*+(?:(?:<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^>\[]*+>)\s*+)*+"
_MJCF = re.compile(_PROLOGUE + r"<mujoco(?:include)?[\s/>]", re.DOTALL)
_SDF = re.compile(_PROLOGUE + r"<sdf[\s/>]", re.DOTALL)


def _toml(text: str, place: Path) -> tuple[dict[str, Any], dict[KeyPath, int]]:
    """Parse TOML, and find where its keys stand."""
    _check_words(text, place)
    try:
        data = tomllib.loads(text)
        require_readable(str(place), joints_of_tables(data))
        return data, key_lines(text)
    except tomllib.TOMLDecodeError as error:
        raise FileError(_syntax(place, text, str(error))) from None
    except RecursionError:
        raise FileError(f"{place}: arrays or tables are nested too deeply.") from None
    except ValueError:  # of Python, which limits the digits of whole numbers
        raise FileError(f"{place}: a whole number has thousands of digits.") from None


# Dotted keys, and what could be taken for one: strings, comments, single words.
# One without its last quote goes to the end of the line or of the text: to begin again at every
# quote would take hours.
_PART = r"""(?:[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\[^\n])*+"?+|'[^'\n]*+'?+)"""
_DOTTED = re.compile(
    rf"""({_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{MAX_KEY_PARTS},}})"""
    r"""|\"{3}(?:[^\\]|\\.)*?(?:\"{3}|\Z)|'{3}.*?(?:'{3}|\Z)|#[^\n]*+|""" + _PART,
    re.DOTALL,
)


def _check_words(text: str, place: Path) -> None:
    """Raise an error for very many words, and for keys of very many parts.

    The reader keeps each beginning of a key, and the line of each entry of a list.
    """
    for count, found in enumerate(_DOTTED.finditer(text)):
        if count >= MAX_WORDS:
            raise FileError(
                f"{place} has more than {MAX_WORDS} names and numbers, and no mechanism needs them."
            )
        if found[1]:
            line = text.count("\n", 0, found.start()) + 1
            raise FileError(
                f"{place}, line {line}: a key has more than {MAX_KEY_PARTS} parts between dots, "
                "and none of a mechanism has more than four."
            )


def save(mechanism: Mechanism, path: str | os.PathLike[str]) -> None:
    """Write a mechanism to a TOML file that `load` reads back exactly.

    Paths of meshes become relative to the file.

    Raises:
        MechanismError: if the description is wrong: it could not be read back.
        FileError: if the file cannot be written, or its ending is another's; a file that was
            there is left as it was.
    """
    from axode.mechanism.files.toml.toml_writer import text_of

    place = _as_path(path)
    if place.suffix.lower() not in ("", ".toml"):
        raise FileError(
            f"cannot write {place}: mechanisms are written as TOML, not as '{place.suffix}'."
            f"\n  Name it {place.with_suffix('.toml').name}; to_urdf, to_mjcf and to_sdf write for "
            "other programs, and a compiled model's export writes .c, .axm and .fmu files."
        )
    mechanism.check()
    data = text_of(with_mesh_addresses(mechanism, place.parent)).encode()
    try:
        replace_file(place, data)
    except (OSError, ValueError) as error:  # ValueError: a path with a zero byte in it
        raise FileError(_cannot("write", place, error)) from None


def schema() -> dict[str, Any]:
    """The JSON Schema of mechanism files, for editors that complete and check TOML."""
    from axode.mechanism.files.toml.toml_schema import Document

    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Document.model_json_schema(),
    }


def _as_path(path: str | os.PathLike[str]) -> Path:
    try:
        found = Path(path)
        found.absolute()
    except TypeError:
        raise FileError(f"expected the path of a file, got {shortened(path)}.") from None
    except FileNotFoundError:
        raise FileError(
            f"'{path}': the working folder has been removed; go to another, or give a full path."
        ) from None
    return found


def _text(path: Path, remarks: list[tuple[int, str, str]]) -> str:
    """Read the text of a file, or raise an error with the reason.

    XML may have another encoding than UTF-8; `remarks` gets what was done about bytes that no
    encoding explains.
    """
    from axode.formats.xml.xml_tree import MAX_BYTES, decode

    try:
        data = read_bounded(path, MAX_BYTES, "mechanism's file")
    except (OSError, ValueError) as error:  # ValueError: a path with a zero byte in it
        raise FileError(_cannot("read", path, error)) from None
    xml = decode(data, remarks)
    if xml is not None:
        return xml
    if path.suffix.lower() in USD or data.startswith((b"PXR-USDC", b"#usda")):
        raise FileError(
            f"{path} is a scene in USD, which is not read.\n  Export the robot as URDF or MJCF, in "
            'Isaac Sim by File > Export to URDF (extension "isaacsim.asset.exporter.urdf"), and '
            "load that file."
        )
    if data.startswith(b"axode-model\n"):
        raise FileError(f"{path} is a compiled model.\n  Read it with ax.load_model.")
    if b"\0" in data:
        raise FileError(
            f"{path} is not a text file.\n  A mechanism file is TOML, URDF, MJCF or SDF, as UTF-8 "
            "text; mechanism.save(path) writes one."
        )
    if len(data) > MAX_TOML:
        raise FileError(f"{path} is larger than {MAX_TOML >> 20} MiB, as no mechanism in TOML is.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FileError(
            f"{path}, line {line}: the byte 0x{data[error.start]:02x} is not UTF-8.\n"
            "  Save the file as UTF-8 in your editor."
        ) from None
    return text


def _cannot(verb: str, path: Path, error: Exception) -> str:
    """Why a file cannot be read or written, and what to do about it."""
    reason = getattr(error, "strerror", None) or str(error)
    message = f"cannot {verb} {path}: {reason}."
    if isinstance(error, FileNotFoundError):
        folder = path.parent
        if not folder.is_dir():
            return f"{message}\n  There is no folder {folder}; create it first."
        kind = path.suffix.lower() if path.suffix.lower() in (".urdf", ".xml", ".sdf") else ".toml"
        names = sorted(item.name for item in folder.iterdir() if item.suffix == kind)
        close = difflib.get_close_matches(path.name, names, n=1)
        if close:
            return f"{message}\n  Did you mean {folder / close[0]}?"
        listed = ", ".join(names[:10]) or "none"
        return f"{message}\n  {kind[1:].upper()} files in {folder.resolve()}: {listed}."
    if isinstance(error, IsADirectoryError):
        return f"{message}\n  Name a file in it, such as {path / 'robot.toml'}."
    if isinstance(error, PermissionError):
        return f"{message}\n  Ask for the right to {verb} it, or choose another place."
    return message + ("\n  Nothing was changed." if verb == "write" else "")


def _syntax(path: Path, text: str, message: str) -> str:
    """A syntax error with its line, the line itself, and the usual remedies."""
    found = re.fullmatch(r"(.*) \(at (?:line (\d+), column \d+|end of document)\)", message)
    what, number = (found[1], found[2]) if found else (message, None)
    rows = text.replace("\r\n", "\n").split("\n")
    line = int(number) if number else max(len(text.rstrip().split("\n")), 1)
    shown = rows[line - 1].strip() if line <= len(rows) else ""
    declared = re.fullmatch(r"Cannot declare \((.*?),?\) twice", what)
    if declared:
        keys = ".".join(key.strip().strip("'\"") for key in declared[1].split(","))
        what = f"[{keys}] stands there twice, and names are unique"
    elif what == "Cannot overwrite a value":
        what = "this key was given before"
    elif what.startswith("Invalid value"):
        what += '; text and formulas stand in quotes, as in "l / 2"'
    return f"{path}, line {line}: not valid TOML. {what}.\n  {shown}"
