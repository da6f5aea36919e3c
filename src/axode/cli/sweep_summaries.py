"""Summary of a sweep: a table, JSON, and files of all rows."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from axode.results.sweep_result import Sweep

ENDINGS = (".csv", ".parquet", ".npz")
BLOCK = 1 << 16  # rows that are written at once


def save_rows(made: Sweep, path: Path) -> None:
    """Write all rows of a sweep in the format that the ending names.

    Raises:
        FileError: if it cannot be written.
        NotApplicable: for .parquet without pyarrow.
    """
    from axode.disk.atomic import write_atomically

    ending = path.suffix.lower()
    if ending == ".csv":
        write_atomically(path, "".join(_lines(made)).encode())
        return
    content = io.BytesIO()
    if ending == ".parquet":
        from axode.results.arrow import require_pyarrow

        _, parquet = require_pyarrow("a .parquet file")
        parquet.write_table(made.to_arrow(), content)
    else:
        np.savez_compressed(content, **_columns(made, np.arange(made.runs)))
    write_atomically(path, content.getbuffer())


def _columns(made: Sweep, rows: Any) -> dict[str, Any]:
    """Columns of some rows by name: row, swept values, outputs, status and reason."""
    from axode.results.sweep_manifest import SweepManifest

    some = made.take(rows)
    groups = {name: some.samples.groups.get(name, "start") for name in some.samples}
    names = SweepManifest({}, (len(rows),), 1, groups, tuple(some)).columns
    columns: dict[str, Any] = {"row": np.asarray(rows)}
    for own, source in zip(names, (some.samples, some), strict=True):
        columns |= {column: source[name] for name, column in own.items()}
    for name, texts in (("status", some.status), ("reason", some.reasons)):
        columns[name] = np.array([*texts.texts, ""])[texts.codes]
    return columns


def _lines(made: Sweep) -> Iterator[str]:
    for first in range(0, max(made.runs, 1), BLOCK):
        columns = _columns(made, np.arange(first, min(first + BLOCK, made.runs)))
        if not first:
            yield ",".join(map(_quote, columns)) + "\n"
        texts = [map(_quote if c.dtype.kind == "U" else repr, c.tolist()) for c in columns.values()]
        yield "".join(",".join(row) + "\n" for row in zip(*texts, strict=True))


def _quote(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if set(text) & set(',;"\n') else text


def show_sweep(made: Sweep, files: list[Path]) -> None:
    """Print how runs ended, and the extremes and means of all outputs."""
    from axode.cli.tables import format_number, show_entries, show_table
    from axode.errors import counted

    info, units = made.info, made.info.get("units", {})
    over = ", ".join(f"{n} ({len(a)})" for n, a in made.axes.items()) or ", ".join(made.samples)
    entries = [("over", over)] if over else []
    entries += [("ended", made.endings)]
    computed, seconds = info["computed"], max(info["seconds"], 1e-9)
    rate = f"{counted(computed, 'run')}, {computed / seconds:,.0f} per second"
    entries += [("computed", rate if computed else "nothing: the store has all rows")]
    if "step" in info:
        entries += [("steps", f"{info['steps']} of {info['step']:g} s")]
    else:
        chosen = f"{info['method']}, rtol {info['rtol']:g}, atol {info['atol']:g}"
        entries += [("steps", chosen)]
    show_entries(f"{info['model']}: {counted(made.runs, 'run')}", entries)
    print()
    rows = [
        (name, units.get(name, ""), *map(format_number, _statistics(made, name).values()))
        for name in made
    ]
    show_table(("name", "unit", ">min", ">mean", ">max", ">runs"), rows)
    for path in files:
        print(f"wrote {path}")


def summarize(made: Sweep, files: list[Path]) -> dict[str, Any]:
    """Return the same as data for JSON."""
    return {
        "model": made.info["model"],
        "runs": made.runs,
        "shape": list(made.batch),
        "swept": list(made.samples),
        "statuses": dict(made.statuses),
        "ended": made.endings,
        "outputs": {name: _statistics(made, name) for name in made},
        "info": dict(made.info),
        "files": [str(path) for path in files],
    }


def _statistics(made: Sweep, name: str) -> dict[str, float]:
    """Extremes and mean of an output, and how many runs have a finite one."""
    low, high, total, runs = np.inf, -np.inf, 0.0, 0
    for _, piece in made.arrays.pieces(name):
        known = piece[np.isfinite(piece)]
        low, high = min(low, known.min(initial=np.inf)), max(high, known.max(initial=-np.inf))
        total, runs = total + float(known.sum()), runs + known.size
    if not runs:
        return dict.fromkeys(("min", "mean", "max"), float("nan")) | {"runs": 0}
    return {"min": float(low), "mean": total / runs, "max": float(high), "runs": runs}
