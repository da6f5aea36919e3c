"""Mechanisms and models that verbs act on: from files or from the gallery."""

from __future__ import annotations

import ast
import os
import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from axode.cli.options import Source, Texts, words
from axode.errors import AxodeError, FileError, InvalidArgument, NotApplicable, UnknownName

if TYPE_CHECKING:
    from axode.kinematics.robot_kinematics import Kinematics
    from axode.mechanism.files.toml.additions import Additions
    from axode.mechanism.mechanism import Mechanism
    from axode.model.model import Model
    from axode.symbolic.equations import Equations

FILE_OPTIONS = ("base", "strict", "folder", "wheels", "hold", "arguments", "contacts")
DERIVE_OPTIONS = ("formulation", "independent", "self_check")
BUILD_OPTIONS = (*FILE_OPTIONS, *DERIVE_OPTIONS, "ideal")
ENDINGS = (".toml", ".urdf", ".urdf.xacro", ".xacro", ".xml", ".sdf", ".world", ".axm")


@dataclass(frozen=True)
class Built:
    """The mechanism that a verb acts on: from a file or the gallery, and how it is built."""

    source: Source
    option: Texts = None

    def mechanism(self) -> Mechanism:
        """Build the mechanism."""
        return _build(self.source, _values(self.option))

    def equations(self) -> Equations:
        """Derive its equations; some options are arguments of `derive`."""
        values = _values(self.option)
        derive = {name: value for name, value in values.items() if name in DERIVE_OPTIONS}
        if "independent" in derive:
            names = derive["independent"]
            derive["independent"] = words([names]) if isinstance(names, str) else names
        return _build(self.source, _without_derive(values)).derive(**derive)

    def model(self, parameters: Literal["fixed", "free"] = "free") -> Model:
        """Compile it, or read a file that `axode export` wrote."""
        if is_compiled(self.source):
            from axode.model.model_file import load_model

            if self.option:
                raise typer.BadParameter(f"'{self.source}' is built already", param_hint="--option")
            return load_model(self.source)
        return self.equations().compile(parameters=parameters)

    def additions(self) -> Additions | None:
        """Return what a file that extends another adds to it; None for any other source."""
        from axode.formats.loading import FileOptions, read

        if not _is_file(self.source) or Path(self.source).suffix.lower() != ".toml":
            return None
        given = _values(self.option)
        given.pop("ideal", None)
        options = _file_options(self.source, _without_derive(given))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # reading the mechanism has given them
            return read(self.source, FileOptions(**options)).additions

    def additions_text(self, to: Path) -> str:
        """Return the text of a file that extends another, as a start for additions of one's own.

        A URDF file whose links look like wheels once its root is free gets a floating base, unless
        an option is given.
        """
        from axode.formats.loading import FileOptions, read
        from axode.mechanism.files.toml.additions import additions_text

        if not _is_file(self.source) or is_compiled(self.source):
            raise typer.BadParameter(
                f"'{self.source}' is no mechanism file", param_hint="--additions"
            )
        try:
            file = Path(os.path.relpath(self.source, to.parent)).as_posix()
        except ValueError:  # on another drive of Windows
            file = Path(self.source).absolute().as_posix()
        if file.startswith("../") or Path(file).is_absolute() or file == to.name:
            raise typer.BadParameter(
                f"it extends '{self.source}' and stands in the folder of that file, or in one "
                "above it, under another name",
                param_hint="--to",
            )
        values = _file_options(self.source, _values(self.option))
        values.pop("wheels", None)  # all that look like wheels are listed
        loaded = read(self.source, FileOptions(**values))
        if loaded.if_free:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                free = read(self.source, FileOptions(**values, base="floating"))
            if free.proposals:
                loaded, values["base"] = free, "floating"
        return additions_text(loaded.mechanism, file, values.get("base"), loaded.proposals)


@dataclass(frozen=True)
class Robot(Built):
    """A robot that moves one body by driven coordinates."""

    output: str | None = None
    driven: Texts = None

    def kinematics(self) -> Kinematics:
        """Build it."""
        from axode.kinematics.robot_kinematics import Kinematics

        return Kinematics(self.mechanism(), self.output, words(self.driven) or None)


def _build(source: str, values: dict[str, Any]) -> Mechanism:
    ideal = values.pop("ideal", False)
    if not isinstance(ideal, bool):
        raise typer.BadParameter(f"ideal is true or false, not {ideal!r}", param_hint="--option")
    made = _as_described(source, values)
    return made.ideal() if ideal else made


def _as_described(source: str, values: dict[str, Any]) -> Mechanism:
    if is_compiled(source):
        if not Path(source).is_file():
            raise FileError(f"cannot read '{source}': No such file or directory")
        raise NotApplicable(
            f"'{source}' is a compiled model, and this needs the mechanism that it was made from"
        )
    if _is_file(source):
        from axode.formats.loading import load

        return load(source, **_file_options(source, values))
    beside = [source + ending for ending in ENDINGS if Path(source + ending).is_file()]
    if beside and not _in_gallery(source):
        raise FileError(
            f"there is no file '{source}', and the gallery has none of that name.\n"
            f"  Did you mean {' or '.join(beside)}?"
        )
    return _from_gallery(source, values)


def _is_file(source: str) -> bool:
    return Path(source).exists() or bool(Path(source).suffix and not _in_gallery(source))


def _file_options(source: str, values: dict[str, Any]) -> dict[str, Any]:
    """Check the options of a mechanism file."""
    for name in values:
        if name not in FILE_OPTIONS:
            raise UnknownName(f"the file '{source}'", "option", name, FILE_OPTIONS)
        if name in ("base", "folder"):
            values[name] = str(values[name])
        if name in ("wheels", "hold") and values[name] != "proposed":
            values[name] = [values[name]] if isinstance(values[name], str) else values[name]
    return values


def is_compiled(source: str) -> bool:
    """Return whether a source is a compiled model's file."""
    return Path(source).suffix == ".axm"


def _in_gallery(source: str) -> bool:
    from axode import gallery

    return source in gallery.NAMES


def _from_gallery(name: str, values: dict[str, Any]) -> Mechanism:
    from axode import gallery

    try:
        return gallery.build(name, **values)  # an error lists the gallery, or the options
    except AxodeError:
        raise
    except (TypeError, ValueError, LookupError, ArithmeticError) as error:
        if not values:
            raise
        given = ", ".join(f"{option}={value!r}" for option, value in values.items())
        raise InvalidArgument(f"'{name}' cannot be built with {given}: {error}") from None


def _values(given: Iterable[str] | None) -> dict[str, Any]:
    """Read options by name; a comma separates them only before NAME=, as lists have commas too."""
    found: dict[str, Any] = {}
    for part in (part for item in given or () for part in _parts(item)):
        name, _, text = (piece.strip() for piece in part.partition("="))
        if not name or not text:
            raise typer.BadParameter(
                f"'{part.strip()}' is not NAME=VALUE, as in --option separate=true",
                param_hint="--option",
            )
        if name in found:
            raise typer.BadParameter(f"'{name}' is given twice", param_hint="--option")
        found[name] = _value(text)
    return found


def _parts(item: str) -> list[str]:
    """Split options; what follows the formula of a quasi-velocity belongs to `independent`."""
    if re.match(r"\s*independent\s*=[^,=]*=", item):
        return [item]
    return re.split(r",(?=\s*\w+\s*=)", item)


def _without_derive(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in DERIVE_OPTIONS}


def _value(text: str) -> Any:
    """Read a truth value, a number, a formula of numbers, a list of these, or else text."""
    from axode.mechanism.values.expressions import parse_scalar

    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        pass
    try:
        return parse_scalar(text, {})
    except ValueError:
        return text
