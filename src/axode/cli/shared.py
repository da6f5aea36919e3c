"""Options and output that the verbs share."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from axode.cli.overwrite_checks import check_json, check_replaceable

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


# results ------------------------------------------------------------------------------------------


def deliver(data: Any, show: Callable[[], None], *, as_json: bool, out: Path | None = None) -> None:
    """Write a result to a file if asked for, and print it as a table or as JSON."""
    if out is not None:
        write_text(out, json_text(data) + "\n")
    if as_json:
        print_json(data)
    else:
        show()


def print_json(value: Any) -> None:
    """Print JSON; what JSON has no type for is printed as text."""
    print(json_text(value))


def json_text(value: Any) -> str:
    """Return JSON that any program reads: numbers that are not finite are null."""
    return json.dumps(_plain(value), indent=2, allow_nan=False, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):  # NumPy's
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, str | bool | int) else str(value)


def write_text(path: Path, text: str) -> None:
    """Write a whole file or leave the old one as it was.

    Raises:
        FileError: if the folder or the disk refuses.
    """
    from axode.disk.atomic import write_atomically

    write_atomically(path, text.encode())


def check_writable(path: Path | None, endings: tuple[str, ...], option: str = "--out") -> None:
    """Check that a file can be written before any work is done for it.

    Raises:
        typer.BadParameter: for an ending that means nothing here.
        FileError: if there is no such folder.
    """
    from axode.errors import FileError

    if path is None:
        return
    if path.suffix.lower() not in endings:
        raise typer.BadParameter(
            f"'{path}' should end in {' or '.join(endings)}, which chooses the format",
            param_hint=option,
        )
    if not path.parent.is_dir():
        raise FileError(f"cannot write '{path}': there is no folder '{path.parent}'")
    if path.is_dir():
        raise FileError(f"cannot write '{path}': it is a folder")
    check_replaceable(path, option)
