"""Summary of a run or a motion: a table, JSON, files and plots."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from axode.results.trajectory import Trajectory

MOST_ROWS = 40  # of the table unless the user names its rows
USUAL = ("coordinate", "independent", "input", "measure")  # kinds of columns in it


@dataclass(frozen=True)
class RunSummary:
    """How a trajectory is summarized.

    Attributes:
        names: Columns to show and to draw; the usual ones if there are none.
        out, plot: Files to write.
        kinds: Kinds of the usual columns.
        degrees: Whether the table and the plot show angles in degrees; files hold radians.
    """

    names: tuple[str, ...] = ()
    out: Path | None = None
    plot: Path | None = None
    kinds: tuple[str, ...] = USUAL
    degrees: bool = False

    def write(self, run: Trajectory) -> None:
        """Write the files that were asked for."""
        from axode.cli.time_tables import save_columns

        if self.out is not None:
            save_columns(run, self.out)
        if self.plot is not None:
            run.plot(*self.names, save=self.plot, degrees=self.degrees)

    def show(self, run: Trajectory) -> None:
        """Print the table, and remarks on the whole run."""
        from axode.cli.tables import format_number, show_entries, show_table
        from axode.show.plot.plots import shown_unit

        names = self._chosen(run) or self._usual(run)
        show_entries(_title(run), _remarks(run))
        rows = []
        for name in names:
            unit, factor = shown_unit(run.unit(name), self.degrees)
            numbers = (format_number(factor * value) for value in _extremes(run, name))
            rows.append((name, unit, *numbers))
        if rows:
            print()
            show_table(("name", "unit", ">start", ">end", ">min", ">max"), rows)
        left = len(run.names) - len(rows)
        if left and not self.names:
            print(
                f"\n{left} more columns, such as {', '.join(_others(run, names))}: "
                "--columns NAME,NAME shows them, --out FILE writes all"
            )
        for path in (self.out, self.plot):
            if path is not None:
                print(f"wrote {path}")

    def summary(self, run: Trajectory | None, failure: Exception | None = None) -> dict[str, Any]:
        """Return the same as data for JSON."""
        data: dict[str, Any] = {}
        if failure is not None:
            data["error"] = getattr(failure, "message", str(failure))
        if run is None:
            return data
        names = self._chosen(run) or run.names
        extremes = {name: _extremes(run, name) for name in names}
        data |= {
            "model": run.name,
            "status": run.status,
            "time": [run.time[0], run.time[-1]],
            "samples": len(run),
            "energy_error": _energy_error(run),
            "info": dict(run.info),
            "events": [asdict(event) for event in run.events],
            "units": {name: run.unit(name) for name in names},
        }
        data |= {
            word: {name: extremes[name][k] for name in names}
            for k, word in enumerate(("start", "final", "min", "max"))
        }
        return data | {"files": [str(path) for path in (self.out, self.plot) if path is not None]}

    def _usual(self, run: Trajectory) -> list[str]:
        usual = [name for kind in self.kinds for name in run.columns(kind)]
        return [name for name in usual if ".contact." not in name][:MOST_ROWS]

    def _chosen(self, run: Trajectory) -> list[str]:
        """Return the columns that names and groups mean, as in a plot."""
        from axode.show.plot.choice import columns_of

        meant = [name for word in self.names if word != "path" for name in columns_of(run, word)]
        return list(dict.fromkeys(meant))


def _title(run: Trajectory) -> str:
    from axode.errors import counted

    info = run.info
    if info.get("method") == "inverse":
        return f"{run.name}: inputs along the motion from t = {run.time[0]:g} to {run.time[-1]:g} s"
    by = f" by {info['method']}" if "method" in info else ""
    steps = f", {counted(info['steps'], 'step')}" if "steps" in info else ""
    when = "" if " at t = " in run.status else f" at t = {run.time[-1]:g} s"
    return f"{run.name}: {run.status}{when}{by}{steps}"


def _remarks(run: Trajectory) -> list[tuple[str, str]]:
    from axode.errors import counted

    found = [("samples", f"{len(run)} of {counted(len(run.names), 'column')}")]
    error = _energy_error(run)
    if error is not None:
        found.append(("energy error", f"{error:.1e} of the energy"))
    if "residual" in run:
        found.append(("residual", f"{np.nanmax(run['residual']):.1e} m at most"))
    found += [("event", f"{event.name} at t = {event.time:.6g} s") for event in run.events]
    if not any(np.any(run[name]) for name in run.columns("speed")):
        inputs = ", ".join(run.columns("input")[:4]) or "none here"
        found.append(("nothing moves", f"give --start NAME=VALUE, or --input ({inputs})"))
    took_over = run.info.get("took_over")
    if took_over:
        when = f"{took_over['method']} took over at t = {took_over['first']:.6g} s"
        found.append(("stiff", when))
    beyond = run.info.get("beyond_limit")
    if beyond:
        found.append(("beyond limit", ", ".join(beyond)))
    return found


def _energy_error(run: Trajectory) -> float | None:
    from axode.errors import UnknownName

    try:
        return float(run.energy_error)
    except UnknownName:
        return None


def _extremes(run: Trajectory, name: str) -> tuple[float, float, float, float]:
    """Return the first, last, smallest and largest value of a column; NaN for unknown forces."""
    column = run[name]
    if np.isnan(column).all():
        return (float("nan"),) * 4
    return (float(column[0]), float(column[-1]), float(np.nanmin(column)), float(np.nanmax(column)))


def _others(run: Trajectory, names: list[str]) -> list[str]:
    kinds = {run.kinds[name]: name for name in reversed(run.names) if name not in names}
    return list(kinds.values())[:3]
