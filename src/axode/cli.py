"""The command line: one sub-command a verb, the same words as in Python."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axode.errors import AxodeError

if TYPE_CHECKING:
    from axode.mechanism.mechanism import Mechanism

# 0 done, 1 the mechanism or the data is wrong, 2 the command is wrong
WRONG_DATA = 1

app = typer.Typer(
    name="axode", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False,
    help="Exact dynamics of robots that roll, that close on themselves, and that do both.",
)  # fmt: skip
Source = Annotated[str, typer.Argument(help="A TOML file, or a name from the gallery.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print for machines.")]


def mechanism_from(source: str) -> Mechanism:
    """A mechanism from a file or from the gallery, whichever the word names."""
    from axode import gallery

    if source in gallery.NAMES and not Path(source).exists():
        return gallery.build(source)
    if source.endswith(".toml") or Path(source).exists():
        from axode.mechanism.files import load

        return load(source)
    return gallery.build(source)  # an error that lists the gallery


@app.command()
def check(source: Source, as_json: AsJson = False) -> None:
    """Say what a mechanism can do: mobility, redundant rows, actuation.

    axode check examples/rover.toml

    axode check caster_robot
    """
    report = mechanism_from(source).derive().mobility
    if as_json:
        from dataclasses import asdict

        more = {"holonomic": report.holonomic, "integrable": report.integrable}
        print(json.dumps(asdict(report) | more, indent=2))
    else:
        print(report)


@app.command()
def compare(source: Source, as_json: AsJson = False) -> None:
    """Derive a mechanism by every formulation and show that they agree.

    axode compare caster_robot

    axode compare examples/fourbar.toml
    """
    from axode.problems.compare import compare as compare_formulations

    result = compare_formulations(mechanism_from(source))
    if as_json:
        from dataclasses import asdict

        print(json.dumps(asdict(result), indent=2))
    else:
        print(result)
    if not result.agrees:
        raise typer.Exit(WRONG_DATA)


@app.command()
def verify(
    file: Annotated[str | None, typer.Argument(help="A file of cases; those of Axode if left out.")]
    = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Run acceptance cases through the gallery and compare every quantity.

    axode verify

    axode verify cases.json
    """
    from axode.verification import verify as verify_cases

    result = verify_cases(file)
    if as_json:
        from dataclasses import asdict

        print(json.dumps([asdict(check) for check in result], indent=2, default=str))
    else:
        print(result)
    if not result.passed:
        raise typer.Exit(WRONG_DATA)


@app.command("gallery")
def show_gallery(as_json: AsJson = False) -> None:
    """List the mechanisms that come with Axode.

    axode gallery

    axode gallery --json
    """
    from axode import gallery

    if as_json:
        print(json.dumps(gallery.NAMES, indent=2))
        return
    width = max((len(name) for name in gallery.NAMES), default=0)
    for name, words in gallery.NAMES.items():
        print(f"{name:<{width}}  {words}")


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; a user's mistake never shows a traceback."""
    sys.exit(run(arguments))


def run(arguments: list[str] | None = None) -> int:
    """The command line's exit code: 0 done, 1 wrong mechanism or data, 2 wrong command."""
    command: Callable[..., Any] = typer.main.get_command(app)
    try:
        code = command(args=arguments, standalone_mode=False)  # type: ignore[call-arg]
        return int(code or 0)
    except AxodeError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return WRONG_DATA
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except Exception as error:
        return _usage_error(error)


def _usage_error(error: Exception) -> int:
    """Words of the command line's own parser; anything else is a fault of ours and is raised."""
    show, code = getattr(error, "show", None), getattr(error, "exit_code", None)
    if show is None or code is None:
        raise error
    show()
    return int(code)
