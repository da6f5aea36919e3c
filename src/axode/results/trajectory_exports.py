"""Methods of a trajectory that hand it to other programs: plots, pages, tables, logs."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from axode.model.model import Model
    from axode.results.trajectory import Trajectory


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
        labels: Sequence[str] = (),
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
            labels: Labels of the runs of a small batch, one per run.
            x: For "path", columns of points instead of the bodies and wheels found.
            y: Likewise, as many.

        Returns:
            The `matplotlib.figure.Figure`, which a notebook shows.

        Raises:
            UnknownName: if a name means nothing, with what does.
            FileError: if the file cannot be written.
            NotApplicable: if matplotlib, from the extra `plot`, is not installed.
        """
        from axode.show.plot.plots import plot

        return plot(
            self._trajectory, *what, size=size, save=save, figure=figure, labels=labels, x=x, y=y
        )

    def view(self, *, model: Model | None = None, **options: Any) -> Any:
        """Play it in the browser; see `axode.view`, which takes the same options.

        Args:
            model: What made it, for a trajectory from a file.
            options: Such as `port`, `trails`, `signals`, `block`.

        Returns:
            The viewer, with `url` and `close()`.
        """
        from axode.show.viewer.opening import view

        return view(self._trajectory, model=model, **options)

    def report(self, path: str | PathLike[str], *, model: Model | None = None) -> Path:
        """Write one HTML page about it, with a playback; see `axode.show.report.report`."""
        from axode.show.report import report

        return report(model or self._trajectory, path, run=self._trajectory)

    def to_pandas(self) -> Any:
        """A DataFrame with the time as its index, below the run for a batch.

        What lies beyond the end of a run is left out. `.attrs` has units, kinds, status and info.
        Needs pandas, from the extra `data`.
        """
        from axode.results.storage import data_frame

        return data_frame(self._trajectory)
