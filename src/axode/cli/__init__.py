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


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; neither a user's mistake nor Ctrl-C shows a traceback.

    Nothing is imported before, so that Ctrl-C during imports is answered as well.
    """
    code: int = INTERRUPTED
    answer: Any = None
    try:
        from axode.cli import interruption

        answer = interruption
        answer.listen()
        from axode.cli.commands import run

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
