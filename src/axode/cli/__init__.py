"""The command line: a file a verb, the same words as in Python."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import typer

from axode.cli.check import check
from axode.cli.compare import compare
from axode.cli.gallery import gallery
from axode.cli.reproduce import reproduce
from axode.cli.shared import WRONG_DATA
from axode.cli.verify import verify
from axode.errors import AxodeError

# In the order in which `axode --help` lists them; each imports what it needs when it is called.
VERBS = (
    check,
    compare,
    gallery,
    verify,
    reproduce,
)  # fmt: skip

app = typer.Typer(
    name="axode", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False,
    help="Exact dynamics of robots that roll, that close on themselves, and that do both.",
)  # fmt: skip
for verb in VERBS:
    app.command()(verb)


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
