"""Choose the columns of a plot: by name, by a short name, or by a word for many.

A name that a column has means that column. Else it may be one of `WORDS`. Else it means all
columns that end in it after a dot (`pitch`), or else all that begin with it before one
(`left.contact`); elsewhere a short name has to mean one column only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.errors import AxodeError, InvalidArgument, UnknownName, shortened, suggest
from axode.names import Names
from axode.numerics.tolerances import NEGLIGIBLE
from axode.show.style import COLOURS, DASHES

if TYPE_CHECKING:
    from axode.results.trajectory import Trajectory

Array = npt.NDArray[np.float64]

# A word for many columns, and their kind; "path" is a plot of its own.
KIND_OF_WORD = {
    "coordinates": "coordinate",
    "speeds": "speed",
    "torque": "input",
    "inputs": "input",
    "energy": "energy",
    "residual": "residual",
    "measures": "measure",
    "forces": "force",
    "powers": "power",
}
WORDS = ("path", *KIND_OF_WORD)
QUANTITIES = {
    "rad": "angle",
    "rad/s": "angular speed",
    "rad/s^2": "angular acceleration",
    "m": "position",
    "m/s": "speed",
    "m/s^2": "acceleration",
    "N": "force",
    "N m": "torque",
    "J": "energy",
    "W": "power",
    "kg": "mass",
}
ENERGIES = ("kinetic", "potential", "supplied", "dissipated")
NOTABLE = 12  # columns of a panel of the overview
LINE_STYLES = len(COLOURS) * len(DASHES)  # lines of a panel that look different


@dataclass(frozen=True)
class Curve:
    """One line of a panel.

    Attributes:
        label: Label in the legend.
        values: Values of all runs, shape (runs, T).
        dashes: Index into `style.DASHES`.
        turn: Where an angle jumps by a whole turn, that turn; zero elsewhere.
        column: Column that it was read from, if it was one.
    """

    label: str
    values: Array
    dashes: int = 0
    turn: float = 0.0
    column: str = ""


@dataclass(frozen=True)
class Panel:
    """Curves that share a unit, hence an axis.

    Attributes:
        curves: One or more.
        quantity: What they are.
        brief: The same where that is too long.
        unit: Unit of all of them.
        logarithmic: Whether orders of magnitude are shown.
        more: How many an overview left out.
    """

    curves: tuple[Curve, ...]
    quantity: str
    brief: str = ""
    unit: str = ""
    logarithmic: bool = False
    more: int = 0


def choose_panels(
    trajectory: Trajectory, what: Sequence[str | Sequence[str]]
) -> tuple[bool, list[Panel]]:
    """Return whether the path is asked for, and the panels, one per unit; a list has its own.

    Panels and curves are in the order in which they are asked for; signals outside lists that share
    a unit are drawn where the first of them is named.

    Raises:
        UnknownName: if a name means nothing, with what does.
        InvalidArgument: if something is no name, or a word means no column of this trajectory.
    """
    if not trajectory.names:
        raise InvalidArgument(f"{trajectory.column_names.owner} has no column to plot")
    _check_all(trajectory, what)
    path, groups = False, dict[tuple[Any, ...], list[str]]()
    for place, item in enumerate(what):
        if item == "path" and item not in trajectory.names:
            path = True
        elif item == "energy" and item not in trajectory.names:
            groups["energy",] = []
        else:
            words, own = ([item], -1) if isinstance(item, str) else (item, place)
            for name in (name for word in words for name in columns_of(trajectory, word)):
                key = (own, trajectory.unit(name), _is_error(trajectory, name))
                groups.setdefault(key, []).append(name)
    panels = list[Panel]()
    for names in groups.values():
        panels += _by_unit(trajectory, names) if names else energy_panels(trajectory)
    return path, [part for panel in panels for part in _divide(panel)]


def _check_all(trajectory: Trajectory, what: Sequence[str | Sequence[str]]) -> None:
    """Refuse all names that mean nothing at once."""
    faults: dict[str, AxodeError] = {}
    for item in what:
        if not isinstance(item, str | list | tuple):
            raise InvalidArgument(
                f"plot: expected names of columns or lists of names, got {shortened(item)}"
            )
        if not item:
            raise InvalidArgument(
                "plot: an empty list names no signal; plot() without names draws an overview"
            )
        for word in [item] if isinstance(item, str) else item:
            if not isinstance(word, str):
                raise InvalidArgument(f"plot: the name of a column is text, got {shortened(word)}")
            if word == "path" and word not in trajectory.names:
                if not isinstance(item, str):
                    raise InvalidArgument(
                        "plot: 'path' is a plot of its own and cannot be in a list"
                    )
                continue
            try:
                columns_of(trajectory, word)
            except (UnknownName, InvalidArgument) as error:
                faults[word] = error
    if len(faults) == 1:
        raise next(iter(faults.values()))
    if faults:
        raise InvalidArgument(_all_at_once(trajectory, faults))


def _all_at_once(trajectory: Trajectory, faults: Mapping[str, AxodeError]) -> str:
    """Compose a text of several faults: first lines with likely names, then the known names."""
    known = _known(trajectory)
    lines = []
    for word, fault in faults.items():
        close = get_close_matches(word, [name for name in known if name != word], n=1)
        hint = f" Did you mean '{close[0]}'?" if close else ""
        lines.append(str(fault).split("\n")[0] + hint)
    return "\n".join([*lines, f"  {suggest('signal', '', known)}"])


def columns_of(trajectory: Trajectory, word: str) -> tuple[str, ...]:
    """Columns that a name or word means."""
    owner = trajectory.column_names.owner
    if word in KIND_OF_WORD and word not in trajectory.names:
        found = trajectory.columns(KIND_OF_WORD[word])
        if not found:
            there = ", ".join(w for w, kind in KIND_OF_WORD.items() if trajectory.columns(kind))
            text = f"{owner} has no column for '{word}'; it has {there or 'none'}"
            if word == "forces" and "contact_losses" in trajectory.info:
                text += '.\n  Remedy: contacts="events" records them; steps through contacts do not'
            raise InvalidArgument(text)
        return found
    found = Names(owner, "signal", trajectory.names).matching(word)
    if not found:
        raise UnknownName(owner, "signal", word, _known(trajectory))
    return found


def _known(trajectory: Trajectory) -> tuple[str, ...]:
    """Everything that has a meaning: words, columns, and endings of columns."""
    endings = (name.partition(".")[2] for name in trajectory.names if "." in name)
    return tuple(dict.fromkeys((*WORDS, *trajectory.names, *endings)))


def _by_unit(trajectory: Trajectory, names: Iterable[str]) -> list[Panel]:
    """Panels of columns, in the order in which their units come."""
    groups: dict[tuple[str, bool], list[str]] = {}
    for name in dict.fromkeys(names):
        key = (trajectory.unit(name), _is_error(trajectory, name))
        groups.setdefault(key, []).append(name)
    return [_panel(trajectory, group, error) for (_, error), group in groups.items()]


def _divide(panel: Panel) -> list[Panel]:
    """Divide a panel with more curves than there are styles of lines."""
    return [
        replace(panel, curves=panel.curves[first : first + LINE_STYLES])
        for first in range(0, len(panel.curves), LINE_STYLES)
    ]


def _is_error(trajectory: Trajectory, name: str) -> bool:
    """Return whether its order of magnitude is what matters."""
    kind = trajectory.kinds[name]
    return kind == "residual" or (kind == "energy" and _last(name) == "error")


def _panel(trajectory: Trajectory, names: Sequence[str], error: bool) -> Panel:
    curves = tuple(_curve(trajectory, name, error) for name in names)
    unit = trajectory.unit(names[0])
    quantity = "error" if error else QUANTITIES.get(unit, "value")
    return Panel(curves, _quantity(trajectory, names, quantity), quantity, unit, logarithmic=error)


def _curve(trajectory: Trajectory, name: str, error: bool) -> Curve:
    values = _values(trajectory, name)
    if error:
        return Curve(f"|{name}|", np.abs(values), column=name)
    label = name if np.isfinite(values).any() else f"{name} (no values)"
    wraps = trajectory.unit(name) == "rad" and trajectory.kinds[name] == "measure"
    return Curve(label, values, turn=2 * np.pi if wraps else 0.0, column=name)


def _quantity(trajectory: Trajectory, names: Sequence[str], usual: str) -> str:
    """What all columns of a panel are: by their names if these agree, else by their unit."""
    if len(names) == 1:
        return f"|{names[0]}|" if _is_error(trajectory, names[0]) else names[0]
    endings = {_last(name) for name in names}
    if len(endings) == 1:
        return endings.pop()
    quaternions = {part for group in trajectory.quaternions for part in group}
    return "quaternion" if quaternions.issuperset(names) else usual


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _values(trajectory: Trajectory, name: str) -> Array:
    return trajectory[name].reshape(-1, len(trajectory.time))


# words with panels of their own -----------------------------------------------------------------


def energy_panels(trajectory: Trajectory) -> list[Panel]:
    """Changes of the energies since the start, of the stored ones together, and their error.

    From the start, because the height where a potential is zero means nothing; and the stored ones
    together are then what was supplied less what was dissipated, which is dashed to show both.
    """
    by_word = {_last(name): name for name in columns_of(trajectory, "energy")}
    curves = []
    for word, dashes in (("kinetic", 0), ("potential", 0), ("supplied", 1), ("dissipated", 2)):
        if word in by_word:
            values = _values(trajectory, by_word[word])
            column = by_word[word]
            curves.append(Curve(column, values - values[:, :1], dashes, column=column))
    telling = [curve for curve in curves if _changes(curve.values)] or curves
    stored = [curve for curve in telling if _last(curve.label) in ("kinetic", "potential")]
    if len(stored) == 2:
        total = Curve("kinetic + potential", stored[0].values + stored[1].values)
        telling.insert(2, total)
    errors = [name for word, name in by_word.items() if word not in ENERGIES]
    first = [Panel(tuple(telling), "change of energy", "energy", "J")] if telling else []
    return [*first, *_by_unit(trajectory, errors)]


def overview(trajectory: Trajectory, *, without: Sequence[str] = ()) -> list[Panel]:
    """Coordinates and attitudes that move, independent speeds, inputs and energies.

    Args:
        trajectory: The run.
        without: Columns that another picture of the same figure shows.
    """
    turning = {name for group in trajectory.quaternions for name in group}
    attitudes = [name for name in trajectory.columns("measure") if _last(name) in ("roll", "pitch")]
    places = [n for n in trajectory.columns("coordinate") if n not in turning and n not in without]
    used = [n for n in trajectory.columns("input") if np.nan_to_num(trajectory[n]).any()]
    moving = [
        [name for name in group if _changes(_values(trajectory, name))]
        for group in ([*places, *attitudes], trajectory.columns("independent"))
    ]
    panels = [_shorten(panel) for group in (*moving, used) for panel in _by_unit(trajectory, group)]
    if trajectory.columns("energy"):
        panels += energy_panels(trajectory)[:1]
    return panels if panels or without else _by_unit(trajectory, trajectory.names[:NOTABLE])


def _shorten(panel: Panel) -> Panel:
    more = max(len(panel.curves) - NOTABLE, 0)
    return replace(panel, curves=panel.curves[:NOTABLE], more=more)


def _changes(values: Array) -> bool:
    """Return whether it moves, or differs between runs."""
    finite = values[np.abs(values) < np.inf]
    return finite.size > 0 and float(finite.max() / 2 - finite.min() / 2) > NEGLIGIBLE
