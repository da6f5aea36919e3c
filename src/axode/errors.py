"""Errors and warnings, each with its cause and its remedy."""

from __future__ import annotations

import difflib
import functools
import inspect
import json
import os
import re
import reprlib
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

# What a terminal obeys instead of showing, what turns lines around, halves of characters.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)

MOST_DEVIATIONS = 12  # named in one warning
MAX_LISTED = 5000  # faults in one message
MOST_COMPARED = 300  # names with which an unknown one is compared


def _function_name(x: FunctionType, level: int) -> str:
    """Name a function without the address that Python shows; as `reprlib` calls it."""
    return "a function" if x.__name__ == "<lambda>" else f"the function {x.__name__}"


_REPR = reprlib.Repr()
vars(_REPR)["repr_function"] = _function_name
_REPR.maxother = _REPR.maxstring = 60


class AxodeError(Exception):
    """Base of every error Axode raises on purpose."""

    def __str__(self) -> str:
        return visible(super().__str__())


class UnknownName(AxodeError, KeyError):
    """A name that means nothing, or one of several things, with the names that exist.

    Attributes:
        name: As it was given.
        known: What it may mean if it is ambiguous, else all names.
    """

    def __init__(
        self, owner: str, kind: str, name: str, known: Iterable[str], problem: str = ""
    ) -> None:
        self.name = name
        self.known = tuple(known)
        like = "" if problem else name
        shown = name if isinstance(name, str) else shortened(name)
        problem = problem or f"{owner} has no {kind} '{shown}'."
        super().__init__(f"{problem}\n  {suggest(kind, like, self.known)}")

    def __str__(self) -> str:  # KeyError would print the quoted repr
        return visible(str(self.args[0]))


_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")  # a name that a table of a file carries without quotes


@dataclass(frozen=True)
class Fault:
    """One thing wrong with a description: where it stands and what is wrong with it."""

    kind: str  # "body", "joint", "wheel", ...: the table of a file it would stand in; "" for none
    name: str
    field: str
    message: str
    line: int | None = None

    def __str__(self) -> str:
        name = self.name if _BARE_KEY.fullmatch(self.name) else f'"{self.name}"'
        place = f"[{self.kind}.{name}]" if self.name else f"[{self.kind}]" if self.kind else ""
        label = f"{self.field}:" if self.field else ""
        prefix = "" if self.line is None else f"line {self.line:>3}  "
        return prefix + " ".join(part for part in (place, label, self.message) if part)


class MechanismError(AxodeError):
    """Everything wrong with a description, reported at once."""

    def __init__(self, source: str, faults: Sequence[Fault]) -> None:
        self.source = source
        self.faults = tuple(faults)
        count = f"{len(faults)} problem" + ("s" if len(faults) != 1 else "")
        lines = [f"{source} has {count}.", *map(str, faults[:MAX_LISTED])]
        if len(faults) > MAX_LISTED:
            lines.append(f"... and {len(faults) - MAX_LISTED} more, in the error's .faults")
        super().__init__("\n  ".join(lines))


class FileError(AxodeError):
    """A file that cannot be read, written or understood."""


class LoopNotClosed(AxodeError):
    """No configuration near the guess closes the loops and touches the ground."""

    def __init__(
        self, row: str, residual: float, unit: str, configuration: dict[str, float], remedy: str
    ) -> None:
        self.row = row
        self.residual = residual
        self.configuration = configuration
        super().__init__(f"'{row}' is open by {residual:.3g} {unit}.\n  {remedy}")


class SimulationFailed(AxodeError):
    """A run that failed; it carries what was computed until then.

    Attributes:
        message: What happened and what to do, without where Python keeps the run.
        trajectory: The run until then, if it began.
        time: When it failed [s].
    """

    def __init__(self, message: str, trajectory: object = None, time: float = 0.0) -> None:
        self.message = message
        self.trajectory = trajectory
        self.time = time
        super().__init__(message)

    def __str__(self) -> str:
        message = visible(self.message)
        if self.trajectory is None:
            return message
        return f"{message}\n  The trajectory so far is in the error's .trajectory."


class Interrupted(KeyboardInterrupt):
    """Ctrl-C while runs were computed; it carries what was computed until then.

    Attributes:
        result: The trajectory or sweep until then; runs that had not finished are NaN beyond. None
            if even the starts were not known yet.
    """

    def __init__(self, result: object, kept: str = "") -> None:
        self.result = result
        super().__init__(
            "interrupted before there was a result"
            if result is None
            else f"interrupted; what was computed is in the error's .result{kept}"
        )


class SweepFailed(AxodeError):
    """A sweep whose executor stopped computing; it carries what was computed until then.

    Attributes:
        result: The sweep until then; runs that had not finished are NaN.
    """

    def __init__(self, message: str, result: object = None) -> None:
        self.result = result
        super().__init__(message)


class SingularConfiguration(SimulationFailed):
    """A configuration at which the equations lose rank."""


class InvalidIndependent(AxodeError, ValueError):
    """A choice of independent speeds that cannot describe the motion."""


class Immobile(AxodeError):
    """Constraints that leave nothing able to move."""


class NotApplicable(AxodeError):
    """A formulation or target that cannot accept this mechanism, and why."""


# What models from files run without: names of imports, and of packages.
DISPENSABLE = {
    **{name: name for name in ("casadi", "scipy", "rich", "typer", "pydantic")},
    "tomli_w": "tomli-w",
}


@contextmanager
def naming_packages() -> Iterator[None]:
    """Raise `NotApplicable` with the remedy where a package is missing that models run without."""
    try:
        yield
    except ModuleNotFoundError as missing:
        package = DISPENSABLE.get((missing.name or "").partition(".")[0])
        if package is None:
            raise
        every = [word for name, word in DISPENSABLE.items() if find_spec(name) is None] or [package]
        raise NotApplicable(
            f"this needs {package}, which is not installed; without it, models from files run, and "
            f"nothing is derived.\n  Remedy: pip install {' '.join(every)}"
        ) from missing


class SelfCheckFailed(AxodeError):
    """Derived equations that disagree with a second computation from the description.

    Attributes:
        disagreements: What differs and by how much, the largest first.
    """

    def __init__(self, mechanism: str, disagreements: Sequence[str], remedy: str) -> None:
        self.disagreements = tuple(disagreements)
        shown = [*disagreements[:5], *(["..."] if len(disagreements) > 5 else [])]
        super().__init__(
            "\n  ".join(
                [
                    f"mechanism '{mechanism}': the derived equations disagree with Newton's and "
                    "Euler's laws of its bodies, computed from the description:",
                    *shown,
                    remedy,
                ]
            )
        )


class InvalidArgument(AxodeError, ValueError, TypeError):
    """An argument of the wrong size, type or value, with what was expected."""


class UnderactuatedMotionWarning(UserWarning):
    """A motion that the actuators cannot produce; the nearest forces are returned."""


class RunsFailedWarning(UserWarning):
    """Runs of a batch that failed; the others are not affected."""


class RunsInaccurateWarning(UserWarning):
    """Runs that finished with an error in the balance of energy."""


class NotAnEquilibriumWarning(UserWarning):
    """A linear model about a state that is no equilibrium."""


class PlausibilityWarning(UserWarning):
    """Input that can be computed with but is unlikely to be what was meant."""


class MotorLimitWarning(UserWarning):
    """A motion that asks more of a motor than it can give."""


class FileDeviationWarning(PlausibilityWarning):
    """A file that departs from its format or from physics, and what was done about it.

    Attributes:
        deviations: One `Fault` for each, with its line; the message ends with what was done.
    """

    def __init__(self, source: str, deviations: Sequence[Fault]) -> None:
        self.source = source
        self.deviations = tuple(deviations)
        count = f"{len(deviations)} deviation" + ("s" if len(deviations) != 1 else "")
        head = f"{source} was read with {count} (strict=True refuses it)."
        shown = [str(fault) for fault in self.deviations[:MOST_DEVIATIONS]]
        if len(shown) < len(self.deviations):
            shown.append(f"... ({len(self.deviations)} in all; strict=True lists them)")
        super().__init__("\n  ".join([head, *shown]))


class RequestNotMetWarning(UserWarning):
    """A coordinate, speed or force that differs from the requested one; others determine it."""


class StiffSystemWarning(UserWarning):
    """An explicit method that takes many short steps where an implicit one takes few."""


class ContactStepsWarning(UserWarning):
    """Contacts whose events come too often, or find no modes, so that a run takes steps there."""


class NearSingularityWarning(UserWarning):
    """A motion that comes near a singularity, where forces or speeds grow without bound."""


class OmissionWarning(UserWarning):
    """Content of a file that a mechanism cannot represent, or the other way around.

    Attributes:
        left_out: Everything omitted, by kind; the message names the first of each kind.
    """

    def __init__(self, message: str = "", left_out: Mapping[str, Sequence[str]] | None = None):
        self.left_out = {kind: tuple(names) for kind, names in (left_out or {}).items()}
        super().__init__(message)


# Former names of warnings; removed in the next version.
_RENAMED = {
    "Doubtful": PlausibilityWarning,
    "DoubtfulFile": FileDeviationWarning,
    "LeftOut": OmissionWarning,
    "NearSingularity": NearSingularityWarning,
    "NotAnEquilibrium": NotAnEquilibriumWarning,
    "NotAsAsked": RequestNotMetWarning,
    "RunsFailed": RunsFailedWarning,
    "StiffSystem": StiffSystemWarning,
    "UnderactuatedMotion": UnderactuatedMotionWarning,
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> type[Warning]:
        if name not in _RENAMED:
            raise AttributeError(f"module 'axode.errors' has no attribute '{name}'")
        warn_renamed(name, _RENAMED[name].__name__)
        return _RENAMED[name]


def warn_renamed(old: str, new: str) -> None:
    """Warn that a public name has changed and that its old form will be removed."""
    warnings.warn(
        f"'{old}' is now '{new}'; the old name will be removed in the next version",
        DeprecationWarning,
        stacklevel=level_outside(),
    )


DESCRIPTION_WARNINGS: dict[str, type[Warning]] = {
    kind.__name__: kind for kind in (PlausibilityWarning, RequestNotMetWarning)
}
_COLLECTED: ContextVar[list[tuple[str, str]] | None] = ContextVar("collected", default=None)


def warn_of_description(message: str, category: type[Warning]) -> None:
    """Warn of a description at the user's line, or leave it to who collects such warnings."""
    collected = _COLLECTED.get()
    if collected is None:
        warnings.warn(message, category, stacklevel=level_outside())
    else:
        collected.append((category.__name__, message))


@contextmanager
def collect_warnings(collected: list[tuple[str, str]]) -> Iterator[None]:
    """Collect warnings of a description, class and text, in place of issuing them."""
    token = _COLLECTED.set(collected)
    try:
        yield
    finally:
        _COLLECTED.reset(token)


def issue_warnings(collected: Iterable[tuple[str, str]]) -> None:
    """Issue warnings that were collected, here or in another process."""
    for category, message in collected:
        warn_of_description(message, DESCRIPTION_WARNINGS[category])


def level_outside() -> int:
    """Count the levels from the caller to the first function outside of this package.

    `warnings.warn` takes it as `stacklevel`: a warning then shows the user's line, by whichever way
    it was reached.
    """
    own = (os.path.join(os.path.dirname(__file__), ""), functools.__file__)  # cached properties
    level, frame = 0, inspect.currentframe()
    while frame is not None and frame.f_code.co_filename.startswith(own):
        level, frame = level + 1, frame.f_back
    return level


def visible(text: str) -> str:
    """Return text that any terminal shows verbatim: control characters are written out."""
    return _HIDDEN.sub(lambda found: ascii(found[0])[1:-1], text)


def shortened(given: object) -> str:
    """What was given, as a message shows it, however large or deep it is."""
    text = ascii(given) if isinstance(given, str) else _REPR.repr(given)
    return text if len(text) <= 60 else f"{text[:57]}..."


def first_of(names: Sequence[str], most: int = 12, shown: int | None = None) -> str:
    """All names, or the first `shown` (`most`) of more than `most` and how many there are."""
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[: shown or most])}, ... ({len(names)} in all)"


def suggest(kind: str, name: str, known: Sequence[str], others: Sequence[str] = ()) -> str:
    """The alternatives to a name that is not known, and the likely one, perhaps of `others`."""
    if not known:
        return f"There is no {kind} yet."
    name = name[:100] if isinstance(name, str) else shortened(name)
    shown = ", ".join(known[:30]) + (", ..." if len(known) > 30 else ".")
    close = _nearest(name, [*known, *others])
    hint = f" Did you mean '{close}'?" if close else ""
    kinds = plural(kind)
    return f"{kinds[:1].upper()}{kinds[1:]}: {shown}{hint}"


def plural(noun: str) -> str:
    """Plural of a regular noun, or of each of several: "outputs or swept values"."""

    def several(part: str) -> str:
        head, of, rest = part.partition(" of ")
        return re.sub("(?<=[^aeiou])y$", "ie", head) + "s" + of + rest

    parts = re.split("(, | or )", noun)
    parts[::2] = map(several, parts[::2])
    return "".join(parts)


def counted(amount: int, noun: str) -> str:
    """Number with its noun: "1 run", "2 runs"."""
    return f"{amount} {noun if amount == 1 else plural(noun)}"


def with_article(noun: str) -> str:
    """Noun with "a" or "an"."""
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def _nearest(name: str, names: Sequence[str]) -> str | None:
    """The name most like it, or the first that ends in one: 'pich' is meant for 'base.pitch'."""
    if len(names) > MOST_COMPARED:
        return None
    whole = difflib.get_close_matches(name, names, n=1)
    if whole:
        return whole[0]
    endings: dict[str, str] = {}
    for full in names:
        endings.setdefault(full.rpartition(".")[2], full)
    near = difflib.get_close_matches(name, endings, n=1)
    return endings[near[0]] if near else None


def require_package(module: str, need: str, extra: str, more: str = "") -> Any:
    """Import a module of an optional package.

    Args:
        module: Name of the module.
        need: What needs the package, as the beginning of a sentence.
        extra: Extra of Axode that brings it.
        more: What else helps, as the end of the remedy.

    Raises:
        NotApplicable: if it is not installed.
    """
    try:
        import_module(module.partition(".")[0])
        return import_module(module)
    except ImportError as missing:
        raise NotApplicable(
            f"{need}, which is not installed.\n  Remedy: {install_command(extra)}{more}"
        ) from missing


def install_command(extra: str) -> str:
    """Return the line for a shell that installs an extra, from where Axode itself came.

    That is its folder or wheel as long as it is there; of other sources, which pip could not find
    by the name alone, the packages of the extra are named.
    """
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    quote = '"' if os.name == "nt" else "'"
    try:
        installed = distribution("axode")
    except PackageNotFoundError:  # a checkout on the path
        folder = Path(__file__).resolve().parents[2]
        known = (folder / "pyproject.toml").is_file()
        return f"pip install {quote}{folder if known else 'axode'}[{extra}]{quote}"
    origin = json.loads(installed.read_text("direct_url.json") or "{}")
    if not origin:
        return f"pip install {quote}axode[{extra}]{quote}"
    address = urlsplit(origin.get("url", ""))
    place = Path(url2pathname(address.path))
    if address.scheme == "file" and place.exists():
        editable = "-e " if origin.get("dir_info", {}).get("editable") else ""
        return f"pip install {editable}{quote}{place}[{extra}]{quote}"
    own = re.compile(rf"""extra\s*==\s*['"]{re.escape(extra)}['"]""")
    named = [line.split(";")[0].strip() for line in installed.requires or () if own.search(line)]
    return f"pip install {' '.join(f'{quote}{line}{quote}' for line in named)}"
