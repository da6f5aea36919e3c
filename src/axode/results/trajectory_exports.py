"""Methods of a trajectory that hand it to other programs: plots, pages, tables, logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from axode.argument_types import check_arguments
from axode.stages import call_stage

if TYPE_CHECKING:
    from axode.model.model import Model
    from axode.results.trajectory import Trajectory
    from axode.show.report.cell_player import CellPlayer


class TrajectoryExports:
    """What a `Trajectory` can be turned into."""

    @property
    def _trajectory(self) -> Trajectory:
        return cast("Trajectory", self)

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
        return call_stage(
            "plot", self._trajectory, *what, **options, labels=labels, degrees=degrees
        )

    def view(self, *, model: Model | None = None, **options: Any) -> Any:
        """Play it in the browser; see `axode.view`, which takes the same options.

        Args:
            model: What made it, for a trajectory from a file.
            options: Such as `port`, `trails`, `signals`, `block`.

        Returns:
            The viewer, with `url` and `close()`.
        """
        return call_stage("view", self._trajectory, model=model, **options)

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
        return call_stage("cell_player", self._trajectory, model, signals, height)

    def report(self, path: str | PathLike[str], *, model: Model | None = None) -> Path:
        """Write one HTML page about it, with a playback; see `axode.show.report.report`."""
        return call_stage("report", model or self._trajectory, path, run=self._trajectory)

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
        return call_stage("animate", self._trajectory, path, model=model, **options)

    def to_pandas(self) -> Any:
        """A DataFrame with the time as its index, below the run for a batch.

        What lies beyond the end of a run is left out. `.attrs` has units, kinds, status and info.
        Needs pandas, from the extra `data`.
        """
        from axode.results.storage import data_frame

        return data_frame(self._trajectory)

    def to_xarray(self) -> Any:
        """A Dataset of xarray: one array per column over `run` and `time`, with units and kinds.

        Units are in `.attrs["units"]` of each array, and `info` is in `.attrs` of the dataset. What
        lies beyond the end of a run is NaN. Needs xarray, from the extra `data`.
        """
        from axode.results.labelled_arrays import trajectory_dataset

        return trajectory_dataset(self._trajectory)

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
        check_arguments(TrajectoryExports.to_mcap, locals())
        return call_stage(
            "write_mcap",
            self._trajectory,
            path,
            model=model,
            rate=rate,
            epoch=epoch,
            prefix=prefix,
            frame=frame,
            signals=signals,
            forces=forces,
            compression=compression,
        )

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
        check_arguments(TrajectoryExports.to_rerun, locals())
        return call_stage(
            "write_rerun",
            self._trajectory,
            path,
            model=model,
            rate=rate,
            signals=signals,
            forces=forces,
        )
