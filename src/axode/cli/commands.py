"""The verbs as one command, and what it answers to mistakes."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import sys
import warnings
from collections.abc import Callable
from typing import Annotated, Any

import typer

from axode.cli import INTERRUPTED, interruption
from axode.cli.bench import bench
from axode.cli.completion import completion
from axode.cli.derive import check, compare, derive
from axode.cli.doctor import doctor
from axode.cli.export import export, ros
from axode.cli.inverse import feasible, inverse, size
from axode.cli.kinematics import design, kinematics, reach, workspace
from axode.cli.linearize import linearize, lqr
from axode.cli.literature import gallery, reproduce, verify
from axode.cli.model_sources import BUILD_OPTIONS
from axode.cli.options import WRONG_DATA, Verb, Verbs, as_command, describe_options, options_of_verb
from axode.cli.show import animate, page, report, view
from axode.cli.simulate import simulate
from axode.cli.sweep import sweep
from axode.errors import AxodeError

READER_GONE = 141  # exit code if the reader of the output went away, as in `axode ... | head`

# In the order in which `axode --help` lists them; each imports what it needs when it is called.
VERBS = tuple(
    as_command(verb)
    for verb in (
        check,
        derive,
        compare,
        simulate,
        sweep,
        view,
        report,
        animate,
        page,
        inverse,
        feasible,
        size,
        export,
        ros,
        linearize,
        lqr,
        kinematics,
        reach,
        workspace,
        design,
        gallery,
        verify,
        bench,
        doctor,
        reproduce,
        completion,
    )
)

app = typer.Typer(
    name="axode",
    cls=Verbs,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for verb in VERBS:
    app.command(cls=Verb, help=describe_options(verb))(verb)


def run(arguments: list[str] | None = None) -> int:
    """Return the exit code: 0 done, 1 wrong mechanism or data, 2 wrong command, 130 Ctrl-C."""
    with warnings.catch_warnings():
        warnings.showwarning = functools.partial(_print_warning, set())
        try:
            command: Callable[..., Any] = typer.main.get_command(app)
            code = command(args=arguments, prog_name="axode", standalone_mode=False)  # type: ignore[call-arg]
            sys.stdout.flush()
            return int(code or 0)
        except (KeyboardInterrupt, typer.Abort):
            return _interrupted()
        except SystemExit as left:  # the parser's way when the reader of a pipe has gone
            return _reader_gone() if isinstance(left.__context__, BrokenPipeError) else WRONG_DATA
        except Exception as error:
            if interruption.pressed():  # what a library made of it
                return _interrupted()
            return _describe(error)


def _interrupted() -> int:
    print("interrupted", file=sys.stderr)
    return INTERRUPTED


def _describe(error: Exception) -> int:
    """Describe an error, and return the exit code; a fault of Axode itself is raised."""
    show, code = getattr(error, "show", None), getattr(error, "exit_code", None)
    if show is not None and code is not None:  # of the command line's own parser
        show()
        return int(code)
    if isinstance(error, BrokenPipeError):
        return _reader_gone()
    if isinstance(error, AxodeError):
        words = [str(getattr(error, "message", error)), *getattr(error, "__notes__", ())]
        text = "\n  ".join(words)
        print(f"{type(error).__name__}: {text}{_flags(text)}", file=sys.stderr)
    elif isinstance(error, MemoryError):
        print(f"MemoryError: {error or 'too little memory'}.\n  Ask for less.", file=sys.stderr)
    elif isinstance(error, OSError):
        _forget_output()
        print(f"FileError: {error.strerror or error}", file=sys.stderr)
    else:
        raise error
    return WRONG_DATA


def _print_warning(printed: set[str], warning: Warning | str, *place: Any, **more: Any) -> None:
    """Print a warning once, without the line of code that raised it."""
    message = str(warning)
    if message not in printed:
        printed.add(message)
        print(f"Warning: {message}{_flags(message)}", file=sys.stderr)


def _flags(message: str) -> str:
    """Return a line with the flags for what a message recommends in Python."""
    flags = flags_for(message)
    return f"\n  On the command line: {', '.join(flags)}." if flags else ""


def _reader_gone() -> int:
    _forget_output()
    return READER_GONE


def _forget_output() -> None:
    """Discard what is still to be printed, so that leaving does not fail once more."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _version(wanted: bool) -> None:
    if wanted:
        print(f"axode {sys.modules['axode'].__version__}")
        raise typer.Exit


@app.callback()
def _about(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Exact dynamics of wheeled robots and closed-loop mechanisms.

    axode check caster_robot

    axode simulate wheeled_pendulum --time 2 --start theta3=0.1
    """


# arguments of Python, ahead of a value, as in method='rk4' or derive(independent=[...])
_ARGUMENT = re.compile(r"(?<![-\w.])([a-z_]+)=(?=[\[{('\".\w])")
# what a verb does with another word than Python
_OTHERS = {
    r'input="hold"': "--hold",
    r"lin\.reduced\(": "--states NAME,NAME",
    r"samples=\{": "--table FILE",
    r"compile\(parameters='free'\)": "axode export --parameters free",
    r"save_every[=:]": "--every",
    r"mechanism\.save\(": "axode export --to FILE.toml",
    r"mechanism\.ideal\(": "--option ideal=true",
}


def flags_for(message: str) -> list[str]:
    """Return the flags of the current verb for the arguments that a message names."""
    own = options_of_verb()
    found = [
        flag
        for pattern, flag in _OTHERS.items()
        if re.search(pattern, message)
        and (flag[:2] != "--" or flag.split()[0][2:].replace("-", "_") in own)
    ]
    for name in _ARGUMENT.findall(message):
        if name in own:
            found.append(f"--{name.replace('_', '-')}")
        elif name in BUILD_OPTIONS and "option" in own and f"--option {name}=" not in message:
            found.append(f"--option {name}=VALUE")
    taken = (
        {"--input"} if "--hold" in found else {"--samples"} if "--table FILE" in found else set()
    )
    return [flag for flag in dict.fromkeys(found) if flag not in taken and flag not in message]
