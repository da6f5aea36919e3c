"""Options that verbs share, how their values are read, and which of them were given."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, wraps
from pathlib import Path
from textwrap import dedent
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from axode.cli.output import check_json, check_picture, json_text, print_json, write_text

_known: set[str] = set()
_given: set[str] = set()
_NO_NUMBER = {"integer": "a whole number, such as 1000", "number": "a number, such as 0.5"}
_RENAMED = {"reach": {"--near": "--start"}}  # former names of options by verb


def _with_plain_number(args: list[str], options: Sequence[str]) -> list[str]:
    """Write 1e3 as 1000 after an option that takes a whole number."""
    found = list(args)
    for k, one in enumerate(args):
        option, equals, value = one.partition("=") if one.startswith("-") else ("", "", one)
        before = option if equals else args[k - 1] if k else ""
        if before in options and re.fullmatch(r"\d+(\.\d*)?[eE]\+?\d{1,2}", value):
            whole = float(value).is_integer()
            found[k] = f"{option}{equals}{float(value):.0f}" if whole else one
    return found


class Verb(TyperCommand):
    """A verb that remembers which of its options were given; others have their defaults."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; former names of options work for one version."""
        for old, new in _RENAMED.get(self.name or "", {}).items():
            if any(one.partition("=")[0] == old for one in args):
                typer.echo(f"{old} is now {new}, and will be removed in the next version", err=True)
                args = [re.sub(f"^{old}(?==|$)", new, one) for one in args]
        try:
            return super().parse_args(ctx, list(args))
        except typer.BadParameter as error:
            plain = _with_plain_number(args, getattr(error.param, "opts", ()))
            if "valid integer" in error.message and plain != args:
                return self.parse_args(ctx, plain)
            for kind, wanted in _NO_NUMBER.items():
                if f"valid {kind}" in error.message:
                    error.message = f"expected {wanted}"
            raise

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

Texts = list[str] | None
Source = Annotated[str, typer.Argument()]
AsJson = Annotated[bool, typer.Option("--json")]
JsonFile = Annotated[Path | None, typer.Option(callback=check_json)]
PlotFile = Annotated[Path | None, typer.Option(callback=check_picture)]

# Options that mean the same wherever a verb does not describe them itself.
SHARED = """
source SOURCE: Mechanism file (.toml, .urdf, .xml, .sdf), or name of a mechanism in the gallery.
option NAME=VALUE: How to build the mechanism: base=floating for a URDF file, wheels=proposed for
    links that look like wheels, hold=arm_* for joints that do not move, contacts=all for
    friction and stops of a URDF, MJCF or SDF file, ideal=true to leave friction, lift-off and
    stops out, or an argument of a mechanism in the gallery.
    How to derive its equations: independent=NAME,NAME (or
    'independent=NAME = FORMULA, ...'), formulation, self_check.
as_json: Print the result as JSON.
parameter NAME=VALUE: Parameters; may be repeated. Their defaults otherwise.
out FILE: File for the result as JSON (.json).
start NAME=VALUE: Coordinates, speeds or measures; home at rest by default.
input NAME=FORMULA: Inputs as formulas of time t and of the state: left.torque=0.1*sin(t); zero by
    default.
plot FILE: File for a plot: .png, .svg or .pdf.
method auto|dop853|dopri5|radau9|rodas5p|rk4: Integrator; radau9 and rodas5p are for stiff systems,
    rk4 has fixed steps.
step SECONDS: Fixed steps of rk4, 0.001 by default, or of steps through contacts.
contacts auto|events|steps|ideal: How wheels with friction, joints that rub, and stops are met: from
    one event to the next, in steps of one length, or left out.
rtol NUMBER: Relative tolerance of the motion; not for rk4.
atol NUMBER: Absolute tolerance of the motion, in SI units; not for rk4.
columns NAME,NAME: Columns to show and to plot: names, or path, energy, inputs, ...; the main ones
    by default.
degrees: Show angles in degrees, in the table and the plot.
forces: Draw forces at the contacts.
motion FILE|NAME=FORMULA: Motion: columns in a file (.csv, .npz, .parquet), or formulas of time t.
path KIND:NAME=VALUE: Path of a vehicle: straight, circle, parallel_lines or along, with values:
    circle:radius=2,speed=0.5.
point X,Y,Z: Point of the base that follows the path, in metres.
state NAME=VALUE: State: coordinates, speeds or measures; home at rest by default.
states NAME,NAME: States of the linear model; all independent ones by default.
inputs NAME,NAME: Inputs of the linear model; all by default.
hold: Find inputs that keep the speeds constant.
settle: Find the equilibrium nearest to that state first.
dt SECONDS: Sampling time of a discrete-time model with inputs held; continuous time by default.
output NAME: Body that the robot moves; found by default.
driven NAME,NAME: Driven coordinates; those with motors by default.
"""
_ENTRY = re.compile(r"(\w+)(?: (\S+))?: (.*)", re.DOTALL)


def as_command(verb: Callable[..., None]) -> Callable[..., None]:
    """Return a verb whose groups of options, which are dataclasses, are options of their own."""
    hints = get_type_hints(verb, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(verb).parameters.values():
        kind = hints[parameter.name]
        inner = inspect.signature(kind).parameters.values() if parameter.name in groups else ()
        own = get_type_hints(kind, include_extras=True) if inner else hints
        parameters += [
            each.replace(kind=each.KEYWORD_ONLY, annotation=own[each.name])
            for each in inner or (parameter,)
        ]

    @wraps(verb)
    def command(**values: Any) -> None:
        made = {
            name: kind(**{field.name: values.pop(field.name) for field in fields(kind)})
            for name, kind in groups.items()
        }
        verb(**values, **made)

    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    return command


def describe_options(verb: Callable[..., None]) -> str:
    """Declare the options of a verb to Typer, and return the help of the verb itself.

    Types, defaults and unusual flags are in the signature. Placeholders and texts are below
    "Options:" in the docstring, as `name PLACEHOLDER: text`, or else in `SHARED`.
    """
    text, _, described = (inspect.getdoc(verb) or "").partition("\n\nOptions:\n")
    texts = _read_entries(SHARED) | _read_entries(dedent(described))
    hints = get_type_hints(verb, include_extras=True)
    for name, parameter in inspect.signature(verb).parameters.items():
        kind, info = hints[name], typer.Option()
        if get_origin(kind) is Annotated:
            kind, info = get_args(kind)[0], copy(get_args(kind)[1])
        if name in texts:
            if kind is bool and parameter.default is False and info.default is ...:
                info.default = f"--{name}"  # and no --no-name beside it
            metavar, words = texts[name]
            info.metavar, info.help = info.metavar or metavar, info.help or words
            hints[name] = Annotated[kind, info]
    _annotate(verb, hints)
    return text


def _annotate(verb: Callable[..., None], hints: dict[str, Any]) -> None:
    signature = inspect.signature(verb)
    parameters = [p.replace(annotation=hints[p.name]) for p in signature.parameters.values()]
    verb.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    verb.__annotations__ = hints


@cache
def _read_entries(text: str) -> dict[str, tuple[str | None, str]]:
    """Placeholders and texts of options by name."""
    entries = map(_ENTRY.fullmatch, re.split(r"\n(?! )", text.strip()))
    return {found[1]: (found[2], " ".join(found[3].split())) for found in entries if found}


# NAME=VALUE --------------------------------------------------------------------------------------

FORMS = {1: "VALUE", 2: "LOW:HIGH", 3: "LOW:HIGH:COUNT"}
MAX_COUNT = 10_000


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


def pairs(
    option: str, given: Iterable[str] | None, example: str = "pitch=0.2,yaw=pi/6"
) -> dict[str, str]:
    """Read NAME=VALUE, several at once between commas.

    Raises:
        typer.BadParameter: for anything else, and for a name given twice.
    """
    found: dict[str, str] = {}
    for part in split_at_commas(given):
        name, _, value = (text.strip() for text in part.partition("="))
        if not name or not value:
            raise typer.BadParameter(
                f"'{part}' is not NAME=VALUE, as in {option} {example}", param_hint=option
            )
        if name in found:
            raise typer.BadParameter(f"'{name}' is given twice", param_hint=option)
        found[name] = value
    return found


def numbers(option: str, given: Iterable[str] | None) -> dict[str, float]:
    """Read NAME=NUMBER; formulas of numbers and pi are numbers."""
    return {name: _number(option, name, text) for name, text in pairs(option, given).items()}


def _number(option: str, name: str, text: str) -> float:
    found = finite_numbers([text])
    if not found:
        again = f"; for another name, repeat {option}" if "=" in text else ""
        raise typer.BadParameter(
            f"'{name}' needs a finite number such as 0.2 or pi/6, and not '{text}'{again}",
            param_hint=option,
        )
    return found[0]


def finite_numbers(texts: Iterable[str]) -> list[float]:
    """Read finite numbers, or formulas of numbers and pi; none if one is something else."""
    from axode.mechanism.values.expressions import parse_scalar

    try:
        found = [float(parse_scalar(text, {})) for text in texts]  # type: ignore[arg-type]
    except (ValueError, TypeError):
        return []
    return found if all(map(math.isfinite, found)) else []


def one_or_named(option: str, given: Sequence[str] | None) -> Any:
    """Read one number for all, or NAME=NUMBER; None if nothing is given."""
    if given and len(given) == 1 and "=" not in given[0]:
        return _number(option, "all", given[0])
    return numbers(option, given) if given else None


def ranges(option: str, given: Iterable[str] | None, counts: tuple[int, ...]) -> dict[str, Any]:
    """Read numbers between colons, by name; three of them are a range."""
    found: dict[str, Any] = {}
    for name, text in pairs(option, given).items():
        values = finite_numbers(text.split(":"))
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


def words(given: Iterable[str] | None) -> tuple[str, ...]:
    """Read names, given one by one or between commas."""
    return tuple(part for part in split_at_commas(given) if part)


# groups of options, which several verbs have -----------------------------------------------------


@dataclass(frozen=True)
class Conditions:
    """What a run starts from and is driven by, and its parameters."""

    start: Texts = None
    input: Texts = None
    parameter: Texts = None

    def read(self) -> dict[str, Any]:
        """Return start, input and parameters as `simulate` takes them, None where not given."""
        return {
            "start": numbers("--start", self.start) or None,
            "input": pairs("--input", self.input) or None,
            "parameters": numbers("--parameter", self.parameter) or None,
        }


@dataclass(frozen=True)
class Steps:
    """How a run is integrated."""

    method: str | None = None
    step: float | None = None
    rtol: float = 1e-10
    atol: float = 1e-12

    def read(self) -> dict[str, Any]:
        """Return the arguments that were given; steps of one length have no tolerances."""
        if self.method == "rk4":
            refuse("rk4 has fixed steps: --step, and no tolerances", "rtol", "atol")
        names = [field.name for field in fields(Steps) if field.name in _given]
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Result:
    """Where a result goes that is printed as a table or as JSON."""

    as_json: AsJson = False
    out: JsonFile = None

    def deliver(self, data: Any, show: Callable[[], None]) -> None:
        """Write a result to a file if asked for, and print it."""
        if self.out is not None:
            write_text(self.out, json_text(data) + "\n")
        if self.as_json:
            print_json(data)
        else:
            show()
