"""The command line: one file per kind of verb, the same words as in Python."""

import sys
from typing import TYPE_CHECKING, Any

INTERRUPTED = 130  # exit code of shells for a program that SIGINT ended

if TYPE_CHECKING:
    from axode.cli.commands import VERBS as VERBS
    from axode.cli.commands import app as app
    from axode.cli.commands import run as run
else:

    def __getattr__(name: str) -> Any:
        if name not in ("VERBS", "app", "run"):
            raise AttributeError(f"module 'axode.cli' has no attribute '{name}'")
        from axode.cli import commands

        return getattr(commands, name)


def _print_any_letter() -> None:
    """Write UTF-8 into files and pipes, and replace what a terminal does not know.

    Streams of Windows have the alphabet of the country unless they are terminals.
    """
    for stream in (sys.stdout, sys.stderr):
        known = (getattr(stream, "encoding", None) or "utf-8").lower().replace("_", "-")
        if known not in ("utf-8", "utf8") and hasattr(stream, "reconfigure"):
            if stream.isatty():
                stream.reconfigure(errors="replace")
            else:
                stream.reconfigure(encoding="utf-8")


def _describe_missing(missing: ModuleNotFoundError) -> int:
    """Print which packages the command line lacks, and return the exit code."""
    from axode.errors import NotApplicable, naming_packages

    try:
        with naming_packages():
            raise missing
    except NotApplicable as error:
        print(f"NotApplicable: {error}", file=sys.stderr)
    return 1


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; neither a user's mistake nor Ctrl-C shows a traceback.

    Nothing is imported before, so that Ctrl-C during imports is answered as well.
    """
    code: int = INTERRUPTED
    answer: Any = None
    _print_any_letter()
    try:
        from axode.cli import interruption

        answer = interruption
        answer.listen()
        try:
            from axode.cli.commands import run
        except ModuleNotFoundError as missing:
            code = _describe_missing(missing)
        else:
            code = run(arguments)
        if code != INTERRUPTED and answer.pressed():  # a library has swallowed it
            raise KeyboardInterrupt
    except (KeyboardInterrupt, Exception) as error:
        if not isinstance(error, KeyboardInterrupt) and not (answer and answer.pressed()):
            raise
        code = INTERRUPTED
        print("interrupted", file=sys.stderr)
    finally:
        if answer is not None:
            answer.leave_at_once()
    sys.exit(code)
