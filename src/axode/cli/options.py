"""Options that verbs share, how their values are read, and which of them were given."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from axode.cli.output import check_json

_known: set[str] = set()
_given: set[str] = set()
_RENAMED = {"reach": {"--near": "--start"}}  # former names of options by verb


class Verb(TyperCommand):
    """A verb that remembers which of its options were given; others have their defaults."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; former names of options work for one version."""
        for old, new in _RENAMED.get(self.name or "", {}).items():
            if any(one.partition("=")[0] == old for one in args):
                typer.echo(f"{old} is now {new}, and will be removed in the next version", err=True)
                args = [re.sub(f"^{old}(?==|$)", new, one) for one in args]
        return super().parse_args(ctx, args)

    def get_params(self, ctx: Any) -> Any:
        """Return the parameters, with placeholders instead of Python's types."""
        found = super().get_params(ctx)
        for parameter in found:
            if getattr(parameter, "is_flag", True):  # flags, and arguments
                setattr(parameter, "display_type_rich", lambda ctx: None)  # noqa: B010
        return found

    def invoke(self, ctx: Any) -> Any:
        """Run the verb."""
        _known.clear()
        _given.clear()
        for name in ctx.params:
            _known.add(name)
            source = ctx.get_parameter_source(name)
            if source is not None and source.name == "COMMANDLINE":
                _given.add(name)
        return super().invoke(ctx)


class Verbs(TyperGroup):
    """All verbs; Ctrl-C is `typer.Abort`, as some versions of Typer would leave without a word."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Read the command line."""
        try:
            return super().make_context(*arguments, **options)
        except KeyboardInterrupt:
            raise typer.Abort from None

    def invoke(self, ctx: Any) -> Any:
        """Run the verb that is named."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise typer.Abort from None


def options_of_verb() -> set[str]:
    """Return the names of all options of the current verb."""
    return set(_known)


def refuse(reason: str, *options: str) -> None:
    """Refuse options that would mean nothing here.

    Args:
        reason: Why they mean nothing.
        options: Names of the verb's arguments.

    Raises:
        typer.BadParameter: naming those that were given.
    """
    found = [f"--{name.replace('_', '-')}" for name in options if name in _given]
    if found:
        raise typer.BadParameter(reason, param_hint=" and ".join(found))


# declared options ---------------------------------------------------------------------------------


# 0 done, 1 the mechanism or the data is wrong, 2 the command is wrong
WRONG_DATA = 1

FORMS = {1: "VALUE", 2: "LOW:HIGH", 3: "LOW:HIGH:COUNT"}
MAX_COUNT = 10_000

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
JsonFile = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="FILE", help="File for the result as JSON (.json).", callback=check_json
    ),
]
Starts = Annotated[
    list[str] | None,
    typer.Option(
        "--start",
        metavar="NAME=VALUE",
        help="Coordinates, speeds or measures; home at rest by default.",
    ),
]
Inputs = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        metavar="NAME=FORMULA",
        help="Inputs as formulas of time t and of the state: left.torque=0.1*sin(t); zero "
        "by default.",
    ),
]
Parameters = Annotated[
    list[str] | None,
    typer.Option(
        "--parameter",
        metavar="NAME=VALUE",
        help="Parameters; may be repeated. Their defaults otherwise.",
    ),
]
Method = Annotated[
    str | None,
    typer.Option(
        metavar="auto|dopri5|radau9|rodas5p|rk4",
        help="Integrator; radau9 and rodas5p are for stiff systems, rk4 has fixed steps.",
    ),
]
Step = Annotated[
    float | None, typer.Option(metavar="SECONDS", help="Fixed steps of rk4; 0.001 by default.")
]
Rtol = Annotated[
    float, typer.Option(metavar="NUMBER", help="Relative tolerance of the motion; not for rk4.")
]
Atol = Annotated[
    float,
    typer.Option(
        metavar="NUMBER", help="Absolute tolerance of the motion, in SI units; not for rk4."
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME,NAME",
        help="Columns to show and to plot: names, or path, energy, inputs, ...; the main "
        "ones by default.",
    ),
]
ColumnsFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="File for all columns: .csv, .npz or .parquet; .mcap (messages of ROS 2) and .rrd "
        "(Rerun) hold the poses of all bodies too.",
    ),
]
Plot = Annotated[
    Path | None, typer.Option(metavar="FILE", help="File for a plot: .png, .svg or .pdf.")
]
Degrees = Annotated[
    bool, typer.Option("--degrees", help="Show angles in degrees, in the table and the plot.")
]


# NAME=VALUE --------------------------------------------------------------------------------------


def split_at_commas(given: Iterable[str] | None) -> list[str]:
    """Split what was given at commas, except at those between brackets, as in min(t, 1)."""
    parts = []
    for item in given or ():
        depth, start = 0, 0
        for place, letter in enumerate(f"{item},"):
            depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(letter, 0)
            if letter == "," and (depth <= 0 or place == len(item)):
                parts.append(item[start:place].strip())
                start = place + 1
    return parts


def pairs(option: str, given: Iterable[str] | None) -> dict[str, str]:
    """Read NAME=VALUE, several at once between commas.

    Raises:
        typer.BadParameter: for anything else, and for a name given twice.
    """
    found: dict[str, str] = {}
    for part in split_at_commas(given):
        name, _, value = (text.strip() for text in part.partition("="))
        if not name or not value:
            raise typer.BadParameter(
                f"'{part}' is not NAME=VALUE, as in {option} pitch=0.2,yaw=pi/6", param_hint=option
            )
        if name in found:
            raise typer.BadParameter(f"'{name}' is given twice", param_hint=option)
        found[name] = value
    return found


def numbers(option: str, given: Iterable[str] | None) -> dict[str, float]:
    """Read NAME=NUMBER; formulas of numbers and pi are numbers."""
    return {name: _number(option, name, text) for name, text in pairs(option, given).items()}


def _number(option: str, name: str, text: str) -> float:
    from axode.mechanism.values.expressions import parse_scalar

    try:
        value = parse_scalar(text, {})
    except ValueError:
        value = math.nan
    if not isinstance(value, float) or not math.isfinite(value):
        raise typer.BadParameter(
            f"'{name}' needs a finite number such as 0.2 or pi/6, and not '{text}'",
            param_hint=option,
        )
    return value


def ranges(option: str, given: Iterable[str] | None, counts: tuple[int, ...]) -> dict[str, Any]:
    """Read numbers between colons, by name; three of them are a range."""
    found: dict[str, Any] = {}
    for name, text in pairs(option, given).items():
        values = _values(text)
        whole = len(values) < 3 or (values[2] == int(values[2]) and 1 <= values[2] <= MAX_COUNT)
        if len(values) not in counts or not whole:
            forms = " or ".join(FORMS[count] for count in counts)
            raise typer.BadParameter(f"'{name}' needs {forms}, and not '{text}'", param_hint=option)
        found[name] = values[0] if len(values) == 1 else tuple(values)
        if len(values) == 3:
            low, high, count = values
            step = (high - low) / max(count - 1, 1)
            found[name] = [low + k * step for k in range(int(count))]
    return found


def _values(text: str) -> list[float]:
    """Finite numbers between colons; none if one is not."""
    from axode.mechanism.values.expressions import parse_scalar

    try:
        found = [float(parse_scalar(part, {})) for part in text.split(":")]  # type: ignore[arg-type]
    except (ValueError, TypeError):
        return []
    return found if all(map(math.isfinite, found)) else []


def words(given: Iterable[str] | None) -> tuple[str, ...]:
    """Read names, given one by one or between commas."""
    return tuple(part for part in split_at_commas(given) if part)
