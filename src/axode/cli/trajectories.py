"""Motions that verbs read, and runs that they summarize and write."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axode.cli.options import AsJson, PlotFile, Texts, numbers, pairs, refuse, words
from axode.cli.output import check_writable, format_number, print_json, show_entries, show_table
from axode.errors import FileError, UnknownName, counted

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from axode.model.model import Model
    from axode.results.trajectory import Trajectory

    Array = npt.NDArray[np.float64]


ENDINGS = (".npz", ".csv", ".parquet")
LOGS = {".mcap": "to_mcap", ".rrd": "to_rerun"}  # methods that write the motion for other programs
TIME = ("time", "t")  # what the column of times may be called


def _check_columns_file(path: Path | None) -> Path | None:
    check_writable(path, (*ENDINGS, *LOGS))
    return path


ColumnsFile = Annotated[
    Path | None,
    typer.Option(
        callback=_check_columns_file,
        help="File for all columns: .csv, .npz or .parquet; .mcap (messages of ROS 2) and .rrd "
        "(Rerun) hold the poses of all bodies too.",
    ),
]


def save_columns(run: Trajectory, path: Path) -> None:
    """Write a trajectory in the format that the ending names.

    Raises:
        FileError: if it cannot be written.
    """
    ending = path.suffix.lower()
    if ending in LOGS:
        getattr(run, LOGS[ending])(path, forces=True)
    else:
        run.save(path)


def load_columns(path: Path) -> Trajectory | dict[str, Array]:
    """Read a trajectory that Axode wrote, or the columns of any table by name.

    Raises:
        FileError: if it cannot be read, with the line.
    """
    from axode.disk.arrays import read_csv

    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise FileError(f"'{path}': a motion's file ends in {', '.join(ENDINGS)}")
    try:
        if ending == ".csv":
            return _check_columns(path, read_csv(path, "table of a motion"))
        return _read_binary(path)
    except OSError as error:
        raise FileError(f"cannot read '{path}': {error.strerror or error}") from None


def _read_binary(path: Path) -> Trajectory | dict[str, Array]:
    import numpy as np

    from axode.disk.arrays import UNREADABLE, NpzFile
    from axode.disk.bounded import open_plain
    from axode.results.trajectory import Trajectory

    try:
        return Trajectory.load(path)
    except FileError as refusal:
        if path.suffix.lower() != ".npz" or "not a trajectory" not in str(refusal):
            raise
    try:
        with open_plain(path) as file:
            data = NpzFile(file)
            columns = {name: np.asarray(data.read(name), dtype=float) for name in data.names}
    except FileError as error:
        raise FileError(f"'{path}' cannot be read: {error}") from None
    except UNREADABLE:
        raise FileError(f"'{path}' is not a file of NumPy's that holds arrays of numbers") from None
    return _check_columns(path, columns)


def _check_columns(path: Path, columns: dict[str, Array]) -> dict[str, Array]:
    if not set(TIME) & set(columns):
        raise FileError(f"'{path}' has no column 'time'; it has {', '.join(columns)}")
    lengths = {name: column.shape for name, column in columns.items()}
    if len(set(lengths.values())) > 1 or len(next(iter(lengths.values()))) != 1:
        raise FileError(f"'{path}': the columns differ in length: {lengths}")
    return columns


def as_trajectory(model: Any, columns: dict[str, Array]) -> Trajectory | None:
    """Return a trajectory of the model from columns that hold a whole state, else None."""
    import numpy as np

    state = (*model.coordinates, *model.independent)
    if not set(state) <= set(columns):
        return None
    from axode.results.trajectory import Trajectory

    known = [name for name in (*state, *model.inputs) if name in columns]
    kinds = (
        dict.fromkeys(model.coordinates, "coordinate")
        | dict.fromkeys(model.independent, "independent")
        | dict.fromkeys(model.inputs, "input")
    )
    return Trajectory(
        time=time_of(columns),
        values=np.column_stack([columns[name] for name in known]),
        names=tuple(known),
        units=("",) * len(known),
        kinds={name: kinds[name] for name in known},
        info={"model": model.name},
    )


def time_of(columns: dict[str, Array]) -> Array:
    """Return the column of times."""
    return columns[next(name for name in TIME if name in columns)]


# motions that are given ---------------------------------------------------------------------------


def along_motion(
    model: Model,
    motion: list[str],
    time: float | None,
    start: dict[str, float],
    options: dict[str, Any],
) -> Trajectory:
    """Compute the inputs along formulas of time, or along a file of columns."""
    from axode.problems.inverse.inverse import inverse_dynamics

    if any("=" in item for item in motion):
        if time is None:
            raise typer.BadParameter("a motion by formulas needs its duration", param_hint="--time")
        return inverse_dynamics(
            model, pairs("--motion", motion), times=time, start=start, **options
        )
    if len(motion) > 1:
        raise typer.BadParameter("name one file", param_hint="--motion")
    if time is not None:
        raise typer.BadParameter("a file has its own times", param_hint="--time")
    return _along_file(model, Path(motion[0]), start, options)


def _along_file(
    model: Model, file: Path, start: dict[str, float], options: dict[str, Any]
) -> Trajectory:
    from axode.problems.inverse.inverse import inverse_dynamics

    found = load_columns(file)
    if not isinstance(found, dict):
        return inverse_dynamics(model, found, start=start or None, **options)
    whole = as_trajectory(model, found)
    if whole is not None:
        return inverse_dynamics(model, whole, start=start or None, **options)
    signals = {name: column for name, column in found.items() if name not in TIME}
    return inverse_dynamics(model, signals, times=time_of(found), start=start, **options)


def along_path(
    model: Model, text: str, point: str, start: dict[str, float], options: dict[str, Any]
) -> Trajectory:
    """Compute the inputs along a path of a vehicle, KIND:NAME=VALUE."""
    from axode.motions import paths

    kind, _, values = text.partition(":")
    given: dict[str, Any] = dict(pairs("--path", [values] if values else []))
    if kind != "along":
        given = {
            n: x if n == "start" else numbers("--path", [f"{n}={x}"])[n] for n, x in given.items()
        }
    elif "duration" in given:
        given["duration"] = numbers("--path", [f"duration={given['duration']}"])["duration"]
    path = _make_path(paths, kind, given)
    try:
        place = tuple(float(x) for x in point.split(","))
    except ValueError:
        raise typer.BadParameter(
            f"'{point}' is not X,Y,Z in metres", param_hint="--point"
        ) from None
    return paths.follow(model, path, point=place, start=start, **options)


def _make_path(paths: Any, kind: str, given: dict[str, Any]) -> Any:
    """Make a path by its name; an unknown value is reported with the known ones."""
    from inspect import signature

    kinds = ("straight", "circle", "parallel_lines", "along")
    if kind not in kinds:
        raise UnknownName("axode", "path", kind, kinds)
    function = getattr(paths, kind)
    takes = signature(function).parameters
    for name in given:
        if name not in takes:
            raise UnknownName(f"the path '{kind}'", "value", name, tuple(takes))
    needed = [n for n, p in takes.items() if p.default is p.empty and n not in given]
    if needed:
        raise typer.BadParameter(f"{kind} needs {', '.join(needed)}", param_hint="--path")
    return function(**given)


@dataclass(frozen=True)
class Course:
    """A motion that is given: a path of a vehicle, formulas of time, or columns of a file."""

    path: str | None = None
    point: str = "0,0,0"
    motion: Texts = None
    time: float | None = None
    start: Texts = None
    parameter: Texts = None

    def check(self) -> bool:
        """Return whether a motion is given; a path and a motion exclude each other."""
        if self.path and self.motion:
            raise typer.BadParameter("choose one of --path and --motion", param_hint="--motion")
        return bool(self.path or self.motion)

    @property
    def parameters(self) -> dict[str, float] | None:
        """Parameters by name."""
        return numbers("--parameter", self.parameter) or None

    def follow(self, model: Model, **options: Any) -> Trajectory:
        """Compute the inputs along the motion."""
        start = numbers("--start", self.start)
        if self.path:
            refuse("a path has its own duration", "time")
            return along_path(model, self.path, self.point, start, options)
        refuse("it needs --path", "point")
        return along_motion(model, self.motion or [], self.time, start, options)


# summaries of runs --------------------------------------------------------------------------------


MOST_ROWS = 40  # of the table unless the user names its rows
USUAL = ("coordinate", "independent", "input", "measure")  # kinds of columns in it


@dataclass(frozen=True)
class Table:
    """Columns of a run that are shown, written and plotted."""

    columns: Texts = None
    out: ColumnsFile = None
    plot: PlotFile = None
    as_json: AsJson = False

    @property
    def files(self) -> list[str]:
        """The files that are written."""
        return [str(path) for path in (self.out, self.plot) if path is not None]


@dataclass(frozen=True)
class RunSummary(Table):
    """How a trajectory is summarized; files hold radians, degrees or not."""

    degrees: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Columns that were asked for; the usual ones if there are none."""
        return words(self.columns)

    def deliver(
        self,
        run: Trajectory | None,
        failure: Exception | None = None,
        kinds: tuple[str, ...] = USUAL,
    ) -> None:
        """Write the files that were asked for, and print the table, or the same as JSON.

        Args:
            run: What was computed, if anything.
            failure: Why it ended early, if it did.
            kinds: Kinds of the usual columns.
        """
        if run is not None and self.out is not None:
            save_columns(run, self.out)
        if run is not None and self.plot is not None:
            run.plot(*self.names, save=self.plot, degrees=self.degrees)
        if self.as_json:
            print_json(self.summary(run, failure))
        elif run is not None:
            self.show(run, kinds)

    def show(self, run: Trajectory, kinds: tuple[str, ...]) -> None:
        """Print the table, and remarks on the whole run."""
        from axode.show.plot.plots import shown_unit

        names = self._chosen(run) or _usual(run, kinds)
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
        for path in self.files:
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
        return data | {"files": self.files}

    def _chosen(self, run: Trajectory) -> list[str]:
        """Return the columns that names and groups mean, as in a plot."""
        from axode.show.plot.choice import columns_of

        meant = [name for word in self.names if word != "path" for name in columns_of(run, word)]
        return list(dict.fromkeys(meant))


def _usual(run: Trajectory, kinds: tuple[str, ...]) -> list[str]:
    usual = [name for kind in kinds for name in run.columns(kind)]
    return [name for name in usual if ".contact." not in name][:MOST_ROWS]


def _title(run: Trajectory) -> str:
    info = run.info
    if info.get("method") == "inverse":
        return f"{run.name}: inputs along the motion from t = {run.time[0]:g} to {run.time[-1]:g} s"
    by = f" by {info['method']}" if "method" in info else ""
    steps = f", {counted(info['steps'], 'step')}" if "steps" in info else ""
    when = "" if " at t = " in run.status else f" at t = {run.time[-1]:g} s"
    return f"{run.name}: {run.status}{when}{by}{steps}"


def _remarks(run: Trajectory) -> list[tuple[str, str]]:
    import numpy as np

    found = [("samples", f"{len(run)} of {counted(len(run.names), 'column')}")]
    error = _energy_error(run)
    if error is not None:
        found.append(("energy error", f"{error:.1e} of the largest energy"))
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
    try:
        return float(run.energy_error)
    except UnknownName:
        return None


def _extremes(run: Trajectory, name: str) -> tuple[float, float, float, float]:
    """Return the first, last, smallest and largest value of a column; NaN for unknown forces."""
    import numpy as np

    column = run[name]
    if np.isnan(column).all():
        return (float("nan"),) * 4
    return (float(column[0]), float(column[-1]), float(np.nanmin(column)), float(np.nanmax(column)))


def _others(run: Trajectory, names: list[str]) -> list[str]:
    kinds = {run.kinds[name]: name for name in reversed(run.names) if name not in names}
    return list(kinds.values())[:3]
