"""The result of a simulation: named columns with units over one time, for one run or many."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from axode.argument_types import check_arguments
from axode.errors import InvalidArgument, UnknownName, counted, shortened
from axode.model.model_parts import facts_of
from axode.model.signals import KINDS, STATE_KINDS
from axode.names import NamedValues, Names
from axode.results.columns import (
    ArrayColumns,
    ContactModes,
    Event,
    LazyValue,
    TrajectoryColumns,
    check_kinds,
    check_shapes,
    deferred,
    find_lengths,
    find_quaternions,
    find_statuses,
    number,
    plain,
    read_only,
    run_number,
    summary,
    time_range,
    time_rounding,
)
from axode.results.interpolation import INTERPOLATED, resample
from axode.stages import call_stage

if TYPE_CHECKING:
    from axode.model.model import Model
    from axode.motors.duty import MotorReport
    from axode.results.columns import Origin
    from axode.show.report.cell_player import CellPlayer

Array = npt.NDArray[np.float64]
ENERGIES = ("kinetic", "potential", "supplied", "dissipated")


class Sample(NamedValues):
    """Values of a trajectory at one time, by name, and its state as arrays.

    Args:
        values, names, time, interpolated: As of `NamedValues`.
        order: Names of the entries of q and of nu, where the model is known.
    """

    def __init__(
        self,
        values: Any = (),
        names: Names | None = None,
        time: Any = None,
        interpolated: bool = False,
        order: tuple[Sequence[str], Sequence[str]] | None = None,
    ) -> None:
        super().__init__(values, names, time, interpolated)
        self._order = order

    @property
    def q(self) -> Array:
        """Coordinates in the order of `model.coordinates`, (*batch, size).

        Raises:
            InvalidArgument: if the model is not known, as for a trajectory from a file.
            UnknownName: naming a coordinate that the values lack.
        """
        return self._vector(0)

    @property
    def nu(self) -> Array:
        """Independent speeds in the order of `model.independent`, (*batch, size).

        Raises:
            InvalidArgument: if the model is not known, as for a trajectory from a file.
            UnknownName: naming a speed that the values lack.
        """
        return self._vector(1)

    def _vector(self, which: int) -> Array:
        if self._order is None:
            vector, entries = (("q", "coordinates"), ("nu", "independent"))[which]
            raise InvalidArgument(
                f"{vector}: these values do not know the model that they are of, and so no order.\n"
                f"  Remedy: values by name, [values[name] for name in model.{entries}]"
            )
        columns = [np.asarray(self[name], dtype=float) for name in self._order[which]]
        return np.stack(columns, axis=-1) if columns else np.zeros((*np.shape(self.time), 0))

    def __reduce__(self) -> tuple[Any, ...]:
        return Sample, (dict(self), self._names, self.time, self.interpolated, self._order)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Trajectory:
    """Named columns with units over one time, for one run or a batch of runs.

    Arrays are kept as given, without a copy, and handed out read-only. A run of a batch that ended
    before the others is NaN beyond its end. Columns of a simulation are computed from its states
    when they are first asked for; `values` computes all of them.

    Attributes:
        time: Times of the samples [s], shape (T,), strictly ascending or strictly descending.
        values: Shape (*batch, T, columns).
        names: Names of the columns; signals of one thing share a prefix, `left.torque`.
        units: Units of the columns: SI, "" for none.
        kinds: The group of each column, one of `KINDS`. Independent speeds are speeds as well.
            Energies are named after `ENERGIES`, alone or after a dot (`energy.kinetic`), and the
            error of their balance `error`.
        events: Events that occurred, in the order of time.
        status: How it ended; that of `statuses` unless given.
        statuses: How each run ended, counted through all axes of the batch.
        info: What else is known of it, in JSON's own types: model, method, steps, parameters.
        lengths: How many samples each run has; unless given, found from the NaN at the end of its
            coordinates, or of all columns if there are none.
        quaternions: Names of the columns that form unit quaternions, four per group; found from the
            endings .qw .qx .qy .qz unless given.
        origin: The model that made it; a file does not keep it.
    """

    time: Array
    values: Array = deferred()
    names: tuple[str, ...]
    units: tuple[str, ...]
    kinds: Mapping[str, str]
    events: tuple[Event, ...] = deferred(())
    status: str = deferred("")
    statuses: tuple[str, ...] = deferred(())
    info: Mapping[str, Any] = field(default_factory=dict)
    lengths: npt.NDArray[np.intp] = None  # type: ignore[assignment]
    quaternions: tuple[tuple[str, ...], ...] = None  # type: ignore[assignment]
    origin: Origin | None = None
    _columns: TrajectoryColumns = field(init=False)
    _sensitivities: Any = field(init=False, default=None)

    def __post_init__(self) -> None:
        def keep(**values: Any) -> None:
            for name, value in values.items():
                object.__setattr__(self, name, value)

        def is_given(name: str) -> bool:
            return not isinstance(self.__dict__[name], LazyValue)

        given = self.__dict__["values"]
        keep(time=read_only(self.time), names=tuple(self.names), units=tuple(self.units))
        if isinstance(given, TrajectoryColumns):
            check_shapes(self, (*given.shape, len(self.names)))
            keep(_columns=given, values=LazyValue(Trajectory._stack))
        else:
            keep(values=read_only(given))
            check_shapes(self, self.values.shape)
            keep(_columns=ArrayColumns(self.values, self.names))
        check_kinds(self)
        keep(kinds={name: self.kinds[name] for name in self.names})
        keep(info={str(key): plain(str(key), value) for key, value in self.info.items()})
        keep(lengths=find_lengths(self), quaternions=find_quaternions(self))
        if is_given("events"):
            keep(events=tuple(self.events))
        if is_given("statuses"):
            keep(statuses=find_statuses(self))
        if is_given("status") and not self.status:
            keep(status=LazyValue(lambda run: summary(run.statuses)))

    def _stack(self) -> Array:
        values = read_only(self._columns.stack(self.names))
        object.__setattr__(self, "_columns", ArrayColumns(values, self.names, self._columns))
        return values

    def changed(self, **changes: Any) -> Trajectory:
        """Trajectory with other fields; columns that were not computed stay so."""
        kept = {name: self.__dict__[name] for name in ("events", "status", "statuses")}
        return replace(self, **{"values": self._columns, **kept, **changes})

    def __reduce__(self) -> tuple[Any, ...]:
        """Let copies have all columns."""
        given = {item.name: getattr(self, item.name) for item in fields(self) if item.init}
        return partial(type(self), **given), ()

    # what it holds -----------------------------------------------------------------------------

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch of runs; () for one run."""
        return self._columns.shape[:-1]

    @property
    def count(self) -> int:
        """Number of runs."""
        return math.prod(self.batch)

    @property
    def name(self) -> str:
        """Name of the model, if `info` has it."""
        return str(self.info.get("model", ""))

    @property
    def model(self) -> Model | None:
        """The model that made it; None for one from a file."""
        return None if self.origin is None else self.origin.model

    @property
    def parameters(self) -> dict[str, float]:
        """Values of the model's free parameters, where all runs share them."""
        own = None if self.origin is None else self.origin.parameters
        return own or dict(self.info.get("parameters", {}))

    @property
    def ended(self) -> Any:
        """Time of each run's last sample [s]; NaN if it has none."""
        times = np.where(self.lengths > 0, self.time[self.lengths - 1], np.nan)
        return number(times)

    @property
    def final(self) -> Sample:
        """Last sample of each run by name; `final.q` and `final.nu` are its state as arrays."""
        rows = np.maximum(self.lengths - 1, 0).reshape(-1, 1)
        ended = self._columns.part(slice(None), rows, self.batch)
        return self._by_name(ended.stack(self.names), self.ended)

    def _by_name(self, sample: Array, time: Any) -> Sample:
        values = {name: number(sample[..., k]) for k, name in enumerate(self.names)}
        order, model = None, self.model
        if model is not None:
            memory = facts_of(model).memory
            order = model.coordinates, tuple(n for n in model.independent if n not in memory)
        return Sample(values, self.column_names, time, INTERPOLATED in self.info, order)

    @property
    def contact_events(self) -> tuple[Mapping[str, Any], ...]:
        """What contacts, joints that rub and stops did, in the order of time.

        Each has `time` [s], `contact`, `what` ("strikes", "lands", "lifts", "slips", "sticks"), and
        of a strike or a landing the normal `impulse` [N s or N m s], the `speed` at which the gap
        closed [m/s or rad/s] and the energy that all contacts of that instant took, `loss` [J].
        """
        return tuple(self.info.get("contact_events", ()))

    @property
    def modes(self) -> ContactModes:
        """Modes of each contact by name: when each began [s], and "open", "closed", "stick" or
        "slip"; empty for a run that was taken in steps."""
        return ContactModes(self.info.get("modes", {}), self._owner, self.names)

    def plot_modes(self, *, size: str = "screen", save: str | PathLike[str] | None = None) -> Any:
        """Draw when each contact sticks, slips and is open, and its impacts.

        Args:
            size: "screen", or for print "column" (3.5 in wide) or "page" (7.16 in).
            save: A file to write as well, .png, .svg or .pdf.

        Raises:
            InvalidArgument: for a run that was not integrated from event to event.
        """
        return call_stage("plot_modes", self, size=size, save=save)

    @cached_property
    def motors(self) -> MotorReport:
        """What the motion asks of each motor: torque, speed, power, heat, limits exceeded.

        Raises:
            InvalidArgument: for a trajectory from a file, which does not know its model.
            NotApplicable: for a model without motors.
        """
        return call_stage("motor_report", self)

    def sensitivity(self, signal: str, by: str) -> Array:
        """Derivative of a signal at all samples, of the shape of its column.

        A run that an event stopped ends with the derivative of its end, whose time moves.

        Args:
            signal: Name of a column.
            by: One of the names given to `simulate(..., sensitivities=[...])`.

        Raises:
            InvalidArgument: if it was simulated without sensitivities.
            UnknownName: for unknown names.
        """
        if self._sensitivities is None:
            raise InvalidArgument(
                f"{self._owner} has no sensitivities; they come with "
                "simulate(..., sensitivities=[...]), and parts of a trajectory leave them out"
            )
        made: Array = self._sensitivities.evaluate(self, signal, by)
        return made

    @property
    def energy_error(self) -> Any:
        """Largest error of each run's energy balance.

        Relative to the largest of its kinetic, potential, supplied and dissipated energies.
        """
        error = np.fmax.reduce(np.abs(self._energy("error")), axis=-1)
        size = np.zeros(self.batch)
        for word in ENERGIES:
            size = np.fmax(size, np.fmax.reduce(np.abs(self._energy(word)), axis=-1))
        return number(np.divide(error, size, out=np.array(error), where=size > 0))

    def _energy(self, word: str) -> Array:
        names = self.columns("energy")
        for name in names:
            if name.rpartition(".")[2] == word:
                return self[name]
        raise UnknownName(self._owner, "energy", word, names)

    def columns(self, kind: str | None = None) -> tuple[str, ...]:
        """Names of all columns, or of one kind, with all joint speeds for "speed".

        `run[run.columns(kind)]` has these columns alone.
        """
        check_arguments(Trajectory.columns, locals())
        if kind is None:
            return self.names
        if kind not in KINDS:
            raise UnknownName("a trajectory", "column kind", kind, KINDS)
        wanted = ("speed", "independent") if kind == "speed" else (kind,)
        return tuple(name for name in self.names if self.kinds[name] in wanted)

    def unit(self, name: str) -> str:
        """Unit of a column."""
        return self.units[self._position(name)]

    def __len__(self) -> int:
        return len(self.time)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __contains__(self, name: object) -> bool:
        return self.column_names.accepts(name)

    def __repr__(self) -> str:
        runs, samples, columns = self.count, len(self.time), len(self.names)
        status = "" if self.status == "finished" else f", {self.status}"
        label = f"'{self.name}': " if self.name else ""
        return (
            f"Trajectory({label}{counted(runs, 'run')}, {counted(samples, 'sample')}, "
            f"{abs(self.time[-1] - self.time[0]):.6g} s, "
            f"{counted(columns, 'column')}{status})"
        )

    def _repr_html_(self) -> str:
        from axode.results.tables import trajectory_html

        return trajectory_html(self)

    @property
    def _owner(self) -> str:
        return f"trajectory of '{self.name}'" if self.name else "the trajectory"

    # parts of it -------------------------------------------------------------------------------

    @overload
    def __getitem__(self, key: str) -> Array: ...
    @overload
    def __getitem__(self, key: list[str] | tuple[str, ...]) -> Trajectory: ...
    def __getitem__(self, key: str | list[str] | tuple[str, ...]) -> Array | Trajectory:
        if isinstance(key, str):
            return self._columns.get(self.column_names.resolve(key))
        if not isinstance(key, list | tuple):
            raise InvalidArgument(
                "a trajectory is indexed by a column's name or a list of names, not by "
                f"{shortened(key)}.\n"
                "  Remedy: .run(i) for one run, .between(t0, t1) or .at(t) for times"
            )
        positions = [self._position(name) for name in key]
        names = tuple(self.names[k] for k in positions)
        groups = tuple(group for group in self.quaternions if set(group) <= set(names))
        return self.changed(
            names=names, units=tuple(self.units[k] for k in positions), quaternions=groups
        )

    @cached_property
    def column_names(self) -> Names:
        """Names of the columns, with the rule for short ones."""
        state = [name for name in self.names if self.kinds[name] in STATE_KINDS]
        rest = [name for name in self.names if self.kinds[name] not in STATE_KINDS]
        return Names(self._owner, "column", state, rest)

    def _position(self, name: str) -> int:
        return self.names.index(self.column_names.resolve(name))

    def run(self, index: int | tuple[int, ...]) -> Trajectory:
        """One run of a batch, up to its end.

        Args:
            index: Counted through all axes of the batch, or one index per axis.
        """
        chosen = run_number(index, self.batch, self.count)
        length = int(self.lengths.reshape(-1)[chosen])
        shown = max(length, 1)

        def own_events(_: Trajectory) -> tuple[Event, ...]:
            events = (e for e in self.events if e.index_of_run in (None, chosen))
            return tuple(replace(e, index_of_run=None) for e in events)

        return self.changed(
            time=self.time[:shown],
            values=self._columns.part(slice(chosen, chosen + 1), slice(0, shown), (shown,)),
            events=LazyValue(own_events),
            status="" if self.batch else self.status,
            statuses=LazyValue(lambda _: (self.statuses[chosen],)),
            lengths=np.array(length),
            origin=self.origin and self.origin.run(chosen),
        )

    def window(self, first: int, last: int) -> TrajectoryColumns:
        """Columns of the samples from one number up to another."""
        return self._columns.part(slice(None), slice(first, last), (*self.batch, last - first))

    def columns_at(self, times: Array) -> TrajectoryColumns | None:
        """Columns at other times, as exact as the samples; None where nothing knows them."""
        return self._columns.at_times(self.time, self.lengths, times)

    def evaluate(self, function: str) -> Array | None:
        """Function of the model that made the states, at all samples; None if it is not known."""
        return self._columns.evaluate(function)

    def between(self, t0: float, t1: float) -> Trajectory:
        """The samples and events from t0 to t1 [s], both included; nothing is interpolated."""
        check_arguments(Trajectory.between, locals())
        t0, t1 = float(t0), float(t1)
        rounding = time_rounding(self.time)
        low, high = min(t0, t1) - rounding, max(t0, t1) + rounding
        kept = np.flatnonzero((self.time >= low) & (self.time <= high))
        if not len(kept):
            raise InvalidArgument(
                f"{self._owner} has no sample from {t0:g} s to {t1:g} s; {time_range(self.time)}.\n"
                "  Remedy: .at(t) interpolates"
            )
        first, last = int(kept[0]), int(kept[-1]) + 1
        return self.changed(
            time=self.time[first:last],
            values=self.window(first, last),
            events=LazyValue(lambda _: tuple(e for e in self.events if low <= e.time <= high)),
            lengths=np.clip(self.lengths - first, 0, last - first),
        )

    # other times -------------------------------------------------------------------------------

    def at(self, t: float, *, method: str | None = None) -> Sample:
        """Values by name at one time [s], as `resample` finds them."""
        check_arguments(Trajectory.at, locals())
        made = self.resample([float(t)], method=method)
        return made._by_name(made.values[..., 0, :], float(t))

    def resample(self, times: npt.ArrayLike, *, method: str | None = None) -> Trajectory:
        """Return the motion at other times.

        A run of `simulate` is continued from the nearest samples, to its own tolerance.
        Trajectories from files and copies of such a run do not know the motion between the samples
        and refuse, unless a method is given. Other data is interpolated. A sample is given back to
        the bit.

        Args:
            times: In the direction of `time`, and within it [s].
            method: How to interpolate: "interpolate" joins coordinates, speeds, energies and
                measures by cubic splines with not-a-knot ends, and by straight lines inputs,
                residuals and forces, which may jump, and columns with NaN in them; "cubic" or
                "linear" all columns alike. Quaternions are made unit again. Nothing starts from
                such values.

        Raises:
            InvalidArgument: if a time lies outside, or where the motion between the samples is not
                known.
        """
        check_arguments(Trajectory.resample, locals())
        return resample(self, times, method)

    # more of it --------------------------------------------------------------------------------

    def with_columns(
        self,
        columns: Mapping[str, npt.ArrayLike],
        *,
        units: Mapping[str, str] | None = None,
        kind: str = "measure",
    ) -> Trajectory:
        """Trajectory with more columns.

        Args:
            columns: Values by name, of shape (*batch, T) or what broadcasts to it.
            units: Units by name; "" for those left out.
            kind: Kind of all these columns, one of `KINDS`.
        """
        check_arguments(Trajectory.with_columns, locals())
        from axode.results.tables import widened

        return widened(self, columns, units or {}, kind)

    @staticmethod
    def concatenate(*pieces: Trajectory, shift: bool = False) -> Trajectory:
        """Join trajectories end to end.

        A sample that ends one piece and starts the next is kept once, the earlier one, and what
        energy was supplied, dissipated and lost is then counted on. Entries of `info` that all
        share are kept; `info["pieces"]` has them all.

        Args:
            pieces: With the same columns, in any order, and the same batch.
            shift: Move each in time so that it starts where the last one ends.
        """
        from axode.results.tables import join

        return join(pieces, shift=shift)

    def __add__(self, other: Trajectory) -> Trajectory:
        if not isinstance(other, Trajectory):
            return NotImplemented
        return Trajectory.concatenate(self, other)

    # files -------------------------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Write it to a file without rounding; an interrupted write keeps the old file.

        Args:
            path: Ends in `.npz` (NumPy), `.parquet` (needs pyarrow, from the extra `data`), or
                `.csv`, a table of the columns with `time` first and the number of the run before
                it, which `load` does not read back.

        Raises:
            FileError: if it cannot be written.
        """
        from axode.results.storage import save

        save(self, path)

    @staticmethod
    def load(path: str | PathLike[str]) -> Trajectory:
        """Read what `save` wrote.

        Raises:
            FileError: if it cannot be read, is damaged, or is something else.
        """
        from axode.results.storage import load

        return load(path)

    # other programs -----------------------------------------------------------------------------

    def plot(
        self,
        *what: str | list[str] | tuple[str, ...],
        size: str = "screen",
        save: str | PathLike[str] | None = None,
        figure: Any = None,
        labels: Sequence[str] | Mapping[str, str] = (),
        degrees: bool = False,
        x: str | Sequence[str] = (),
        y: str | Sequence[str] = (),
    ) -> Any:
        """Figure of columns over time, one panel per unit, of the path, or an overview.

        A name that a column has means that column. Else it may be a word: "path" (from above),
        "energy", "torque" or "inputs", "coordinates", "speeds", "residual", "measures", "forces".
        Else it means all columns that end in it (`pitch`), or else begin with it (`left.contact`).
        Residuals and errors are drawn by their size, on a logarithmic axis.

        Args:
            what: Names and words; a list of them has panels of its own. Nothing for an overview.
            size: "screen", or for print "column" (3.5 in wide) or "page" (7.16 in).
            save: A file to write as well, .png, .svg or .pdf.
            figure: A Figure or SubFigure of matplotlib to draw on, instead of a new one.
            labels: Labels of signals, `{"pitch": "lean"}`, with mathematics between dollar signs;
                or labels of the runs of a small batch, one per run.
            degrees: Whether angles and their rates are drawn in degrees.
            x: For "path", columns of points instead of the bodies and wheels found.
            y: Likewise, as many.

        Returns:
            The `matplotlib.figure.Figure`, which a notebook shows.

        Raises:
            UnknownName: if a name means nothing, with what does.
            FileError: if the file cannot be written.
            NotApplicable: if matplotlib, from the extra `plot`, is not installed.
        """
        options: dict[str, Any] = {"size": size, "save": save, "figure": figure, "x": x, "y": y}
        return call_stage("plot", self, *what, **options, labels=labels, degrees=degrees)

    def view(self, *, model: Model | None = None, **options: Any) -> Any:
        """Play it in the browser; see `axode.view`, which takes the same options.

        Args:
            model: What made it, for a trajectory from a file.
            options: Such as `port`, `trails`, `signals`, `block`.

        Returns:
            The viewer, with `url` and `close()`.
        """
        return call_stage("view", self, model=model, **options)

    def player(self, *signals: str, height: int = 560, model: Model | None = None) -> CellPlayer:
        """Player of one run for a notebook: the mechanism in motion, and its signals.

        The cell needs neither a server nor a network, also after the notebook was exported as HTML.
        A long run has fewer frames, so that what moves takes a megabyte at most.

        Args:
            signals: Names and words as in `plot`; some of the states, inputs, measures and
                energies unless given.
            height: Height of the cell in pixels.
            model: What made it, for a trajectory from a file.

        Raises:
            UnknownName: if a name means nothing, with what does.
            InvalidArgument: for a batch, with the remedy.
            NotApplicable: if matplotlib, from the extra `plot`, is not installed.
        """
        return call_stage("cell_player", self, model, signals, height)

    def report(self, path: str | PathLike[str], *, model: Model | None = None) -> Path:
        """Write one HTML page about it, with a playback; see `axode.show.report.report`."""
        return call_stage("report", model or self, path, run=self)

    def animate(
        self, path: str | PathLike[str], *, model: Model | None = None, **options: Any
    ) -> Path:
        """Write it as a movie; see `axode.show.render.animation.animate`, which has the options.

        Args:
            path: Ends in `.mp4`, `.webm`, `.gif` or `.apng`.
            model: What made it, for a trajectory from a file.
            options: Such as `speed`, `rate`, `size`, `follow`, `forces`.

        Returns:
            The path.
        """
        return call_stage("animate", self, path, model=model, **options)

    def to_pandas(self) -> Any:
        """A DataFrame with the time as its index, below the run for a batch.

        What lies beyond the end of a run is left out. `.attrs` has units, kinds, status and info.
        Needs pandas, from the extra `data`.
        """
        from axode.results.tables import data_frame

        return data_frame(self)

    def to_xarray(self) -> Any:
        """A Dataset of xarray: one array per column over `run` and `time`, with units and kinds.

        Units are in `.attrs["units"]` of each array, and `info` is in `.attrs` of the dataset. What
        lies beyond the end of a run is NaN. Needs xarray, from the extra `data`.
        """
        from axode.results.tables import trajectory_dataset

        return trajectory_dataset(self)

    def to_mcap(
        self,
        path: str | PathLike[str],
        *,
        model: Model | None = None,
        rate: float | None = None,
        epoch: float = 0.0,
        prefix: str = "",
        frame: str = "world",
        signals: Sequence[str] | None = None,
        forces: bool = False,
        compression: str = "zstd",
    ) -> Path:
        """Write one run as a log of ROS 2 messages in an MCAP file, which needs no ROS.

        Topics, after the prefix: `joint_states` (sensor_msgs/JointState) of all coordinates but
        those of free bases and ball joints, `odom` (nav_msgs/Odometry) of each base that moves over
        the ground, `signals/...` (std_msgs/Float64) of columns, with their names and units in the
        metadata of the channel, and once `robot_description` (std_msgs/String), as URDF. The poses
        of all bodies are in `/tf` (tf2_msgs/TFMessage).

        Args:
            path: Ends in `.mcap`.
            model: What made it, for a trajectory from a file.
            rate: Samples per second, interpolated where the run does not know its motion (see
                `resample`); those of the run unless given.
            epoch: Time stamp of t = 0 [s].
            prefix: Begins the names of topics, but for `/tf`, and of the bodies' frames.
            frame: Frame of the world.
            signals: Columns to write as numbers; inputs, energies, residual and measures unless
                given.
            forces: Add contact forces as `contact_forces/...` (geometry_msgs/WrenchStamped), each
                in a frame of `/tf` at its contact, and the other constraint forces as signals.
            compression: "zstd", "lz4" or "none".

        Returns:
            The path.

        Raises:
            InvalidArgument: for a batch of runs, or times that no stamp can hold.
            FileError: if it cannot be written.
            NotApplicable: if mcap, from the extra `mcap`, is not installed.
        """
        options = {name: value for name, value in locals().items() if name != "self"}
        check_arguments(Trajectory.to_mcap, options)
        return call_stage("write_mcap", self, **options)

    def to_rerun(
        self,
        path: str | PathLike[str] | None = None,
        *,
        model: Model | None = None,
        rate: float | None = None,
        signals: Sequence[str] | None = None,
        forces: bool = True,
    ) -> Path | None:
        """Write one run as a recording of Rerun, or open it in Rerun's viewer.

        The solids of the bodies are below the entity `world/bodies`, with their poses over time,
        and the columns below `signals`. Rerun keeps poses in single precision, columns in double.

        Args:
            path: Ends in `.rrd`; a window opens unless given.
            model: What made it, for a trajectory from a file.
            rate: Samples per second, interpolated where the run does not know its motion (see
                `resample`); those of the run unless given.
            signals: Columns to plot; all unless given.
            forces: Whether contact forces are drawn as arrows, and forces among the columns.

        Returns:
            The path; None if a window was opened.

        Raises:
            InvalidArgument: for a batch of runs.
            FileError: if it cannot be written.
            NotApplicable: if rerun-sdk, from the extra `rerun`, is not installed.
        """
        check_arguments(Trajectory.to_rerun, locals())
        return call_stage(
            "write_rerun", self, path, model=model, rate=rate, signals=signals, forces=forces
        )
