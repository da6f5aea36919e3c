"""The result of a sweep: named arrays, one number per run, over the values that were swept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from os import PathLike
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from axode.argument_types import check_arguments
from axode.errors import InvalidArgument, counted, shortened
from axode.names import Names
from axode.results.columns import INACCURATE_TEXT, describe_endings
from axode.results.sweep_arrays import (
    NOT_COMPUTED,
    SWEPT,
    AbstractColumns,
    DatasetColumns,
    DatasetTexts,
    DeviceTexts,
    DrawnColumns,
    MemoryColumns,
    RowTexts,
    SweptRows,
    as_host,
)
from axode.results.sweep_store import SweepManifest, SweepStore, rows_table, schema_names
from axode.results.tables import require_pandas, require_pyarrow
from axode.stages import call_stage

Array = npt.NDArray[np.float64]
FINISHED = "finished"
MOST_SHOWN = 20  # rows of a selection that are printed


class Sweep(Mapping[str, Any]):
    """Numbers of many runs by name.

    Attributes:
        arrays: By name, each of the shape of the batch; NaN for runs that did not finish.
        axes: Values of each axis of a grid by name; none where the rows are no grid.
        samples: Values that were swept, by name, each of the shape of the batch; computed when
            asked for.
        info: Model, steps and time it took, in JSON's own types.
        rows: Numbers of the rows, where some were chosen from a sweep; else None.
        library: Library of the arrays on a GPU that are handed out by name ("cupy", "torch",
            "jax"); None for NumPy.
    """

    def __init__(
        self,
        arrays: Mapping[str, Any],
        axes: Mapping[str, Array],
        finished: Any,
        statuses: Mapping[str, int],
        info: Mapping[str, Any] | None = None,
        *,
        samples: SweptRows | Mapping[str, Any] | None = None,
        status: RowTexts | DatasetTexts | DeviceTexts | None = None,
        reasons: Mapping[int, str] | DatasetTexts | None = None,
        rows: npt.NDArray[np.intp] | None = None,
        store: SweepStore | None = None,
    ) -> None:
        self.arrays = arrays if isinstance(arrays, AbstractColumns) else MemoryColumns(arrays)
        self.axes, self.info, self.rows = axes, dict(info or {}), rows
        self.samples = _as_columns(samples, axes)
        self.library: str | None = None
        self._handed: dict[tuple[str, str], Any] = {}
        self._finished, self._statuses = finished, statuses
        self._status, self._reasons, self._store = status, reasons, store

    @classmethod
    def load(cls, folder: str | PathLike[str]) -> Sweep:
        """Open the store of a sweep, whether all its rows are there yet or not.

        Nothing but its description is read; a column is when it is asked for.

        Args:
            folder: The folder of the store.

        Raises:
            FileError: if it is none, or damaged.
        """
        store = SweepStore.open(folder)
        manifest = store.manifest
        swept, outputs = manifest.columns
        return cls(
            DatasetColumns(store, outputs),
            {name: np.array(values) for name, values in manifest.axes.items()},
            None,
            {},
            manifest.recorded,
            samples=DatasetColumns(store, swept, SWEPT),
            status=DatasetTexts(store, "status", NOT_COMPUTED),
            reasons=DatasetTexts(store, "reason"),
            store=store,
        )

    # numbers by name -----------------------------------------------------------------------------

    def __getitem__(self, name: str) -> Any:
        array = self.arrays[name]
        if self.library is None:
            return array
        from axode.runtime.staging import hand_out

        key = self.library, name
        if key not in self._handed:
            self._handed[key] = hand_out(array, self.library)
        return self._handed[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def __len__(self) -> int:
        return len(self.arrays)

    def __eq__(self, other: object) -> bool:
        return self is other  # arrays compare by element

    def __hash__(self) -> int:
        return id(self)

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch of runs."""
        if self._store is not None:
            return self._store.manifest.shape
        if isinstance(self._status, DeviceTexts):
            return self._status.shape
        return self._finished.shape

    @property
    def runs(self) -> int:
        """How many runs there are."""
        return int(np.prod(self.batch, dtype=np.int64))

    @property
    def finished(self) -> Any:
        """Which runs came to their end."""
        if self._finished is None:
            self._finished = self.status.equal(FINISHED).reshape(self.batch)
        return self._finished

    @property
    def statuses(self) -> Mapping[str, int]:
        """How often runs ended in each way."""
        if not self._statuses:
            self._statuses = self._own_status().counts()
        return self._statuses

    @property
    def endings(self) -> str:
        """How often runs ended in each way, and how far energies of inaccurate ones are off."""
        reasons = self.reasons.texts if INACCURATE_TEXT in self.statuses else ()
        return describe_endings(self.statuses, reasons)

    @cached_property
    def status(self) -> RowTexts:
        """How each run ended, by row."""
        return _whole(self._own_status())

    @cached_property
    def reasons(self) -> RowTexts:
        """Why runs failed, by row, where more is known than the status."""
        return _whole(self._own_reasons())

    def _own_status(self) -> RowTexts | DatasetTexts | DeviceTexts:
        if self._status is not None:
            return self._status
        finished = as_host(self.finished).reshape(-1)
        return RowTexts.from_codes(finished, {0: "not finished", 1: FINISHED})

    def _own_reasons(self) -> RowTexts | DatasetTexts:
        if isinstance(self._reasons, DatasetTexts):
            return self._reasons
        return RowTexts.from_rows(self.runs, self._reasons or {})

    # rows ----------------------------------------------------------------------------------------

    def best(self, name: str, count: int = 5, *, largest: bool = False) -> Sweep:
        """Choose the rows with the smallest or largest number, the best first.

        Args:
            name: The output.
            count: How many rows; fewer where fewer have a number.
            largest: Whether the largest are the best.

        Raises:
            UnknownName: if there is no such output.
            InvalidArgument: if the count is not positive.
        """
        check_arguments(Sweep.best, locals())
        if count < 1:
            raise InvalidArgument(f"best: count must be > 0, got {count}")
        full = Names("the sweep", "output", self.arrays).resolve(name)
        keys, rows = np.empty(0), np.empty(0, dtype=np.intp)
        for first, values in self.arrays.pieces(full):
            known = np.flatnonzero(np.isfinite(values))
            keys = np.concatenate([keys, -values[known] if largest else values[known]])
            rows = np.concatenate([rows, first + known])
            if len(keys) > count:
                near = np.flatnonzero(keys <= np.partition(keys, count - 1)[count - 1])
                order = near[np.lexsort((rows[near], keys[near]))][:count]
                keys, rows = keys[order], rows[order]
        return self.take(rows[np.lexsort((rows, keys))])

    def take(self, rows: npt.ArrayLike) -> Sweep:
        """Choose rows by their numbers, counted through all axes of the batch.

        Args:
            rows: Their numbers, in any order.

        Raises:
            InvalidArgument: if there is no such row.
        """
        wanted = np.asarray(rows).reshape(-1)
        if wanted.dtype.kind not in "iu" and wanted.size:
            raise InvalidArgument(f"take: expected numbers of rows, got {shortened(rows)}")
        wanted = wanted.astype(np.intp)
        wrong = wanted[(wanted < 0) | (wanted >= self.runs)]
        if wrong.size:
            raise InvalidArgument(f"take: there is no row {wrong[0]}; the sweep has {self.runs}")
        status, reasons = self._own_status().take(wanted), self._own_reasons().take(wanted)
        return Sweep(
            {name: self.arrays.take(name, wanted) for name in self.arrays},
            {},
            status.equal(FINISHED),
            status.counts(),
            self.info,
            samples=MemoryColumns(
                {name: self.samples.take(name, wanted) for name in self.samples},
                SWEPT,
                self.samples.groups,
            ),
            status=status,
            reasons=reasons,
            rows=wanted if self.rows is None else self.rows[wanted],
        )

    # other tables --------------------------------------------------------------------------------

    def to_arrow(self) -> Any:
        """Convert to a table of Arrow: row, swept values, outputs, status and reason.

        Raises:
            NotApplicable: if pyarrow is not installed.
        """
        pa, _ = require_pyarrow("to_arrow")
        if self._store is not None:
            names = schema_names(self._store.manifest)
            parts = [table for _, table in self._store.read(names)]
            return pa.concat_tables(parts).unify_dictionaries() if parts else self._table([])
        return self._table(np.arange(self.runs))

    def to_pandas(self) -> Any:
        """Convert to a DataFrame of pandas, one line per run, indexed by the row.

        Raises:
            NotApplicable: if pandas or pyarrow is not installed.
        """
        require_pandas()
        return self.to_arrow().to_pandas().set_index("row")

    def to_xarray(self) -> Any:
        """Convert to a Dataset of xarray: outputs over the axes of a grid, else over rows.

        Swept values are coordinates, and so is `finished`; names are those of `columns`.

        Raises:
            NotApplicable: if xarray is not installed.
        """
        from axode.results.tables import sweep_dataset

        rows = np.arange(self.runs) if self.rows is None else self.rows
        return sweep_dataset(self, *self._naming().columns, rows)

    def _table(self, rows: Any) -> Any:
        wanted = np.asarray(rows, dtype=np.intp)
        return rows_table(
            self._naming(),
            wanted if self.rows is None else self.rows[wanted],
            {name: self.samples.take(name, wanted) for name in self.samples},
            {name: self.arrays.take(name, wanted) for name in self.arrays},
            self._own_status().take(wanted),
            self._own_reasons().take(wanted),
        )

    def plot(
        self,
        *what: str,
        kind: Literal["histogram", "scatter", "heatmap", "bands"] | None = None,
        reduce: Literal["min", "max", "mean", "median"] | None = None,
        overlay: Mapping[str, Sweep] | None = None,
        label: str = "this sweep",
        size: str = "screen",
        save: str | PathLike[str] | None = None,
        figure: Any = None,
    ) -> Any:
        """Figure of outputs and swept values: histogram, scatter matrix, heat map or bands.

        Args:
            what: Names of outputs and of swept values; all outputs unless given.
            kind: "histogram" of each output; "scatter", a matrix of all pairs; "heatmap" of outputs
                over two swept values; "bands", percentiles of outputs over a swept value. Unless
                given, a grid has bands over one axis and heat maps over two: those named, or the
                first two; otherwise one output has a histogram, several a scatter matrix.
            reduce: What is drawn of runs that differ in other values: "min", "max", "mean" or
                "median". Unless given, the worst: the smallest of outputs that are a "min" or
                margins, the largest of those that are a "max" or "largest"; of others the mean.
                The figure names it.
            overlay: Further sweeps by name, such as those of another design: outlines of
                histograms, bands in further colours, lines of equal value on heat maps.
            label: Name of this sweep beside those.
            size: "screen", or for print "column" (3.5 in wide) or "page" (7.16 in).
            save: A file to write as well, .png, .svg or .pdf.
            figure: A Figure or SubFigure of matplotlib to draw on, instead of a new one.

        Returns:
            The `matplotlib.figure.Figure`, which a notebook shows.

        Raises:
            UnknownName: for a name that is neither an output nor swept, or an unknown kind.
            InvalidArgument: where a kind needs other names, with what it needs.
            FileError: if the file cannot be written.
            NotApplicable: if matplotlib, from the extra `plot`, is not installed.
        """
        options = {"kind": kind, "reduce": reduce, "overlay": overlay, "label": label}
        return call_stage("plot_sweep", self, *what, **options, size=size, save=save, figure=figure)

    def _naming(self) -> SweepManifest:
        """Description that names the columns of tables."""
        groups = {name: self.samples.groups.get(name, "start") for name in self.samples}
        return SweepManifest({}, self.batch, 1, groups, tuple(self.arrays))

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of a table of the sweep after the row: swept values, then outputs.

        A swept value that has the name of an output is called "start.pitch" there.
        """
        swept, outputs = self._naming().columns
        return *swept.values(), *outputs.values()

    # text ----------------------------------------------------------------------------------------

    def _repr_html_(self) -> str:
        from axode.results.tables import sweep_html

        return sweep_html(self)

    def __repr__(self) -> str:
        over = " x ".join(f"{name} ({len(a)})" for name, a in self.axes.items())
        if not over and len(self.samples):
            over = ", ".join(self.samples)
        over = f" over {over}" if over else ""
        lines = [f"Sweep({counted(self.runs, 'run')}{over}: {self.endings})"]
        if self.rows is not None:
            return "\n".join([*lines, *self._lines()])
        for name in self.arrays:
            found = self.arrays.extremes(name)
            span = f"{found[0]:.6g} ... {found[1]:.6g}" if found else "no values"
            lines.append(f"  {name}: {span}")
        return "\n".join(lines)

    def _lines(self) -> Iterator[str]:
        """Chosen rows, each with its swept values and its numbers."""
        assert self.rows is not None
        heads = ["row", *self.columns]
        columns = [*self.samples.values(), *self.arrays.values()]
        cells = [heads] + [
            [str(row), *(f"{column[k]:.6g}" for column in columns)]
            for k, row in enumerate(self.rows[:MOST_SHOWN].tolist())
        ]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for line in cells:
            pairs = zip(line, widths, strict=True)
            yield "  " + "  ".join(cell.rjust(width) for cell, width in pairs)
        if len(self.rows) > MOST_SHOWN:
            yield f"  and {len(self.rows) - MOST_SHOWN} more"


def _whole(texts: RowTexts | DatasetTexts | DeviceTexts) -> RowTexts:
    return texts if isinstance(texts, RowTexts) else texts.whole()


def _as_columns(samples: Any, axes: Mapping[str, Array]) -> AbstractColumns:
    if isinstance(samples, AbstractColumns):
        return samples
    if isinstance(samples, Mapping):
        return MemoryColumns(samples, SWEPT)
    if samples is not None:
        return DrawnColumns(samples)
    shape = tuple(map(len, axes.values()))
    along = [[-1 if k == axis else 1 for k in range(len(shape))] for axis in range(len(shape))]
    spread = [
        np.broadcast_to(np.reshape(values, one), shape)  # views: they take no memory
        for values, one in zip(axes.values(), along, strict=True)
    ]
    return MemoryColumns(dict(zip(axes, spread, strict=True)), SWEPT)
