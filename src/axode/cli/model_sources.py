"""Mechanisms and models that verbs act on: from files or from the gallery."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from axode.mechanism.mechanism import Mechanism
    from axode.model.model import Model

SOURCE_HELP = "Mechanism file (.toml, .urdf, .xml, .sdf), or name of a mechanism in the gallery."
Source = Annotated[str, typer.Argument(metavar="SOURCE", help=SOURCE_HELP)]
Options = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        help="NAME=VALUE for building the mechanism: base=floating for a URDF file, or an "
        "argument of a mechanism in the gallery.",
    ),
]
ENDINGS = (".toml", ".urdf", ".xml", ".sdf", ".world", ".axm")


def mechanism_from(source: str, options: Iterable[str] | None = None) -> Mechanism:
    """Build a mechanism from a file or from the gallery."""
    from axode.errors import FileError, NotApplicable, UnknownName

    if is_compiled(source):
        raise NotApplicable(
            f"'{source}' is a compiled model, and this needs the mechanism that it was made from"
        )
    values = _values(options)
    if Path(source).exists() or (Path(source).suffix and not _in_gallery(source)):
        from axode.mechanism.files.loading import load

        for name in values:
            if name not in ("base", "strict"):
                raise UnknownName(f"the file '{source}'", "option", name, ("base", "strict"))
            if name == "base":
                values[name] = str(values[name])
        return load(source, **values)
    beside = [source + ending for ending in ENDINGS if Path(source + ending).is_file()]
    if beside and not _in_gallery(source):
        raise FileError(
            f"there is no file '{source}', and the gallery has none of that name.\n"
            f"  Did you mean {' or '.join(beside)}?"
        )
    return _from_gallery(source, values)


def model_from(
    source: str, options: Iterable[str] | None = None, parameters: Literal["fixed", "free"] = "free"
) -> Model:
    """Return a compiled model: from a mechanism, or from a file that `axode export` wrote."""
    if is_compiled(source):
        from axode.model.model_file import load_model

        if options:
            raise typer.BadParameter(f"'{source}' is built already", param_hint="--option")
        return load_model(source)
    return mechanism_from(source, options).derive().compile(parameters=parameters)


def is_compiled(source: str) -> bool:
    """Return whether a source is a compiled model's file."""
    return Path(source).suffix == ".axm"


def _in_gallery(source: str) -> bool:
    from axode import gallery

    return source in gallery.NAMES


def _from_gallery(name: str, values: dict[str, Any]) -> Mechanism:
    from axode import gallery
    from axode.errors import AxodeError, InvalidArgument

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
    for part in (part for item in given or () for part in re.split(r",(?=\s*\w+\s*=)", item)):
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
