"""Items: what a source shows, how Axode computes it, and what comes of that.

An item has curves, panels of a figure, a table, and checks: numbers that were found beside numbers
that were wanted. Numbers are read off curves, and computed by the formulations at the states of a
run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

import casadi as ca
import numpy as np
import numpy.typing as npt

from axode.errors import NotApplicable, UnknownName
from axode.mechanism.mechanism import Mechanism
from axode.model.model import Model
from axode.numerics.tolerances import HALF_DIGITS
from axode.results.trajectory import Trajectory
from axode.symbolic.equations import Equations
from axode.symbolic.formulations import FORMULATIONS

Array = npt.NDArray[np.float64]
Role = Literal["ours", "printed", "misprint"]
TIME = "t [s]"  # head of the first column of tables, and label of axes

Status = Literal["pass", "differs", "fails"]
STATUSES: tuple[Status, ...] = ("pass", "differs", "fails")  # from good to bad


@dataclass(frozen=True)
class Check:
    """One number compared with the expected one.

    Attributes:
        what: The quantity, as text.
        found: Value by Axode.
        wanted: What it should be; 0 for a difference that should be none.
        within: Largest difference that counts as none.
        unit: Unit of all of these; "" for none.
        of: Where a wanted number that is not 0 comes from: "printed", "closed form", ...
        why: Why the source's number is known to be another one; "" if it is not.
        explained: Largest difference that this accounts for.
    """

    what: str
    found: float
    wanted: float
    within: float
    unit: str = ""
    of: str = ""
    why: str = ""
    explained: float = 0.0

    @property
    def status(self) -> Status:
        """Passes, differs for a known reason, or fails."""
        difference = abs(self.found - self.wanted)
        if difference <= self.within:
            return "pass"
        known = bool(self.why) and difference <= self.explained
        return "differs" if known else "fails"

    def __str__(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        if self.wanted == 0.0:
            size = f"{self.what} {self.found:.1e}{unit} (at most {self.within:.0e})"
        else:
            wanted = f"{self.of or 'wanted'} {self.wanted:.5g}{self._share()}"
            size = f"{self.what} {self.found:.5g}{unit} ({wanted})"
        return f"{size}: {self.why}" if self.status == "differs" else size

    def _share(self) -> str:
        """Return the relative error, unless it is negligible."""
        counted = self.within == 0.0  # of a count no share
        if self.status == "pass" or counted or not math.isfinite(self.found):
            return ""
        return f", {100 * (self.found - self.wanted) / abs(self.wanted):+.2g} %"


def vanishing(
    what: str,
    found: float,
    unit: str = "",
    within: float = HALF_DIGITS,
    why: str = "",
    explained: float = 0.0,
) -> Check:
    """Return the check of a difference that should be none."""
    return Check(what, found, 0.0, within, unit, why=why, explained=explained)


def at_most(what: str, count: int, bound: int, why: str = "", explained: float = 0.0) -> Check:
    """Return the check of a count that should not exceed another one."""
    return Check(
        what, max(0, count - bound), 0, 0, of="needed" if why else "", why=why, explained=explained
    )


@dataclass(frozen=True)
class Verdict:
    """All checks of one item; prints as a line."""

    checks: tuple[Check, ...]

    @property
    def status(self) -> Status:
        """The worst of its checks; without any there is nothing to pass."""
        found = {check.status for check in self.checks} or {"fails"}
        return max(found, key=STATUSES.index)

    @property
    def sentence(self) -> str:
        """The numbers that are off, or else the first that agrees, and how many more do."""
        if not self.checks:
            return "nothing was compared"
        off = [check for check in self.checks if check.status != "pass"]
        shown = off or list(self.checks[:1])
        more = len(self.checks) - len(shown)
        agree = [f"{more} more agree" + "s" * (more == 1)] if more else []
        return "; ".join([*map(str, shown), *agree])

    def __str__(self) -> str:
        return f"{self.status}: {self.sentence}"


def worst(verdicts: Sequence[Verdict]) -> Status:
    """The worst status of several verdicts."""
    return max((verdict.status for verdict in verdicts), key=STATUSES.index, default="pass")


# figures -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FigureCurve:
    """A line of a figure.

    Attributes:
        x, y: Its points.
        label: In the legend; "" leaves it out.
        role: Whether Axode computed it, it is what that is compared with, such as the source's
            own equations, put right where need be, or it is another one, such as their misprint.
        like: Number of the curve of ours whose colour another one has; black unless given.
    """

    x: Array
    y: Array
    label: str = ""
    role: Role = "ours"
    like: int | None = None


@dataclass(frozen=True)
class Level:
    """A number that a source prints, as a level line."""

    value: float
    label: str = ""


@dataclass(frozen=True)
class FigurePanel:
    """One figure of the source, or one quantity of it.

    Attributes:
        title: With the figure's number, where there is one.
        x, y: What is on the axes, with units.
        curves, levels: What is drawn.
        window: Range of x that is shown; all of it by default.
        heights: Range of y; all of it by default.
        equal: Whether a metre is as long on both axes, unless that leaves the panel empty and
            the title marks unequal scales.
        inset: Ranges of x and y of a part that is drawn larger, in a corner.
        dots: Values by name, drawn as one dot each over powers of ten of x, instead of curves.
        bars: Values by name, drawn as one bar each from zero, with the number, instead of curves.
    """

    title: str
    x: str
    y: str
    curves: tuple[FigureCurve, ...]
    levels: tuple[Level, ...] = ()
    window: tuple[float, float] | None = None
    heights: tuple[float, float] | None = None
    equal: bool = False
    inset: tuple[tuple[float, float], tuple[float, float]] | None = None
    dots: tuple[tuple[str, float], ...] = ()
    bars: tuple[tuple[str, float], ...] = ()


def our_curves(times: Array, rows: Iterable[Array], labels: Iterable[str]) -> list[FigureCurve]:
    """Return what Axode computes over time, under their labels."""
    return [FigureCurve(times, row, label) for row, label in zip(rows, labels, strict=True)]


def run_curves(run: Trajectory, labels: Mapping[str, str]) -> list[FigureCurve]:
    """Return columns of a run over time, under their labels."""
    return our_curves(run.time, (run[name] for name in labels), labels.values())


def from_start(
    found: Trajectory, asked: Trajectory, labels: Mapping[str, str]
) -> list[FigureCurve]:
    """Return a motion, and beneath it the one asked for, both from the latter's start."""
    moved, wanted = ([run[name] - asked[name][0] for name in labels] for run in (found, asked))
    return [
        *our_curves(found.time, moved, labels.values()),
        *printed_curves(asked.time, wanted, "asked for"),
    ]


def printed_curves(times: Array, rows: Iterable[Array], label: str = "") -> list[FigureCurve]:
    """Return what the source has, over time; the first has the label of all."""
    return [FigureCurve(times, row, label * (k == 0), "printed") for k, row in enumerate(rows)]


def misprinted(times: Array, rows: Iterable[Array], label: str = "") -> list[FigureCurve]:
    """Return what the source has by mistake, over time, each in the colour of our own curve."""
    return [
        FigureCurve(times, row, label * (k == 0), "misprint", like=k) for k, row in enumerate(rows)
    ]


def three_ways(
    run: Trajectory, labels: Mapping[str, str], right: Iterable[Array], wrong: Iterable[Array] = ()
) -> list[FigureCurve]:
    """Return columns of a run under their labels, the source's beneath them, and its misprint."""
    return [
        *run_curves(run, labels),
        *printed_curves(run.time, right),
        *misprinted(run.time, wrong),
    ]


def over_time(title: str, y: str, curves: Iterable[FigureCurve], **more: Any) -> FigurePanel:
    """Return a panel of curves over time."""
    return FigurePanel(title, TIME, y, tuple(curves), **more)


def torques_panel(run: Trajectory, motors: int) -> FigurePanel:
    """Return a panel of the torques tau1, tau2, ..."""
    labels = {f"tau{k}": rf"$\tau_{k}$" for k in range(1, motors + 1)}
    return over_time("torques", "torque [N m]", run_curves(run, labels))


def plan_view(title: str, *paths: FigureCurve) -> FigurePanel:
    """Return a panel of paths in the plane."""
    return FigurePanel(title, "x [m]", "y [m]", paths, equal=True)


def operations_panel(title: str, counts: Mapping[str, int]) -> FigurePanel:
    """Return a panel of scalar operations by method."""
    bars = tuple((name, float(count)) for name, count in counts.items())
    return FigurePanel(title, "operations" * ("operations" not in title), "", (), bars=bars)


def methods_panel(reference: str, off: Mapping[str, float]) -> FigurePanel:
    """Return a panel of the accelerations of each method, less those of one."""
    title, x = f"each method minus {reference}", "largest difference [rad/s²]"
    return FigurePanel(title, x, "", (), dots=tuple(off.items()))


def columns_of(run: Trajectory, names: Iterable[str], label: str = "") -> dict[str, Array]:
    """Return columns of a run as columns of a table, after that of the time."""
    return {TIME: run.time} | {f"{name}{label} [{run.unit(name)}]": run[name] for name in names}


def rows_beside(
    run: Trajectory, names: Iterable[str], label: str, rows: Iterable[Array]
) -> dict[str, Array]:
    """Return rows that stand beside columns of a run as columns of a table."""
    pairs = zip(names, rows, strict=False)
    return {f"{name} {label} [{run.unit(name)}]": row for name, row in pairs}


@dataclass(frozen=True)
class ItemResult:
    """Result of an item.

    Attributes:
        table: Columns of its CSV file, units in the heads, all of one length.
        panels: Panels of its figure, in the order of the source, row by row.
        caption: What the figure shows and the data behind it.
        checks: Numbers compared.
        across: Panels in a row.
    """

    table: Mapping[str, Array]
    panels: Sequence[FigurePanel]
    caption: str
    checks: Sequence[Check]
    across: int = 2

    @property
    def verdict(self) -> Verdict:
        """What the checks come to."""
        return Verdict(tuple(self.checks))


@dataclass(frozen=True)
class Item:
    """Something that a source shows.

    Attributes:
        id: What the command line calls it.
        source: Key of the source.
        shows: What it is, in a line, with the source's figures.
        compute: Computes it.
    """

    id: str
    source: str
    shows: str
    compute: Callable[[], ItemResult]


def item(id: str, source: str, shows: str) -> Callable[[Callable[[], ItemResult]], Item]:
    """Return a decorator that makes an item of what computes it."""
    return lambda compute: Item(id, source, shows, compute)


# key: the document; its items stand in the file of the same name
SOURCES = {
    "angeles": "Angeles, Fundamentals of Robotic Mechanical Systems, chapter 12",
    "saha_angeles": "Saha and Angeles, J. Applied Mechanics 58, 1991",
    "staicu": "Staicu, Rev. Roum. Sci. Techn. - Méc. Appl. 56(2), 2011",
    "yesiloglu": "Yesiloglu, Temeltas and Kaynak, two-wheeled cart as cooperating manipulators",
    "valencia": "Valencia, Aviles and Mauledoux, J. Eng. Applied Sci. 12, 2017",
}


def catalogue() -> dict[str, Item]:
    """All items by id, in the order of the sources."""
    modules = (import_module(f"axode.literature.reproduce.{source}") for source in SOURCES)
    return {item.id: item for module in modules for item in module.ITEMS}


def chosen(ids: Iterable[str] | None) -> list[Item]:
    """Items by id or by source, each once, in the catalogue's order; all of them for None.

    Raises:
        UnknownName: for the first that is neither, listing the ids.
    """
    items = catalogue()
    if ids is None:
        return list(items.values())
    wanted = list(ids)
    for name in wanted:
        if name not in items and name not in SOURCES:
            raise UnknownName("axode reproduce", "id", name, (*items, *SOURCES))
    return [item for item in items.values() if item.id in wanted or item.source in wanted]


def largest(values: npt.ArrayLike) -> float:
    """Largest absolute value; NaN if any is."""
    return float(np.abs(values).max(initial=0.0))


def apart(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """Largest difference between two curves at the same times."""
    return largest(np.asarray(first) - np.asarray(second))


def farthest(run: Trajectory, names: Iterable[str], rows: Iterable[Array]) -> float:
    """Largest difference between columns of a run and rows, as many as there are rows."""
    return max(apart(run[name], row) for name, row in zip(names, rows, strict=False))


def at(run: Trajectory, name: str, time: float) -> float:
    """A column at a time."""
    return float(run.at(time)[name])


def swing(times: Array, values: Array, since: float) -> float:
    """Largest absolute value from a time on, a parabola through its sample and its neighbours."""
    y = np.abs(values[times >= since])
    k = int(np.clip(np.argmax(y), 1, len(y) - 2))
    left, top, right = y[k - 1 : k + 2]
    bend = left - 2 * top + right
    return float(top - (right - left) ** 2 / (8 * bend)) if bend < 0 else float(top)


def by_formulations(
    mechanism: Mechanism, independent: Sequence[str], run: Trajectory, speeds: Sequence[str]
) -> dict[str, Array]:
    """Accelerations of some joint speeds, (samples, speeds), by all formulations that apply."""
    found = {}
    for name in FORMULATIONS:
        try:
            equations = mechanism.derive(name, independent)
        except NotApplicable:  # made for other mechanisms
            continue
        model = equations.compile("interpreter")
        q, nu, u = states_of(model, run)
        columns = [model.speed_names.index(speed) for speed in speeds]
        found[name] = model.accelerations(q, nu, model.forward_dynamics(q, nu, u))[:, columns]
    return found


def at_states(equations: Equations, run: Trajectory, *expressions: Any) -> list[Array]:
    """Values of expressions of all speeds at the states of a run, (samples, rows, columns)."""
    e = equations
    reduced = [ca.densify(e.system.at_speeds(x)) for x in expressions]
    function = ca.Function("f", [e.q, e.nu, e.u, e.t, e.p], reduced)
    rows = [
        [np.array(x) for x in function.call([q, nu, u, 0.0, e.system.defaults])]
        for q, nu, u in zip(*states_of(e, run), strict=True)
    ]
    return [np.array(values) for values in zip(*rows, strict=True)]


def states_of(owner: Equations | Model, run: Trajectory) -> tuple[Array, Array, Array]:
    """Coordinates, independent speeds and inputs of a run, (samples, number) each."""
    e = owner
    return run[e.coordinates].values, run[e.independent].values, run[e.inputs].values
