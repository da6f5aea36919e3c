"""`axode sweep`: a few numbers of very many runs."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from axode.cli import INTERRUPTED, interruption
from axode.cli.model_sources import Built
from axode.cli.options import (
    AsJson,
    Conditions,
    PlotFile,
    Steps,
    Texts,
    finite_numbers,
    pairs,
    refuse,
    split_at_commas,
)
from axode.cli.output import (
    check_writable,
    csv_text,
    format_number,
    print_json,
    show_entries,
    show_table,
    write_text,
)
from axode.errors import counted

if TYPE_CHECKING:
    from axode.model.model import Model
    from axode.results.sweep_result import Sweep


GROUND = ("margin", ".load", ".share")  # quantities that friction or loads are in


@dataclass(frozen=True)
class Rows:
    """What is varied from row to row."""

    over: Texts = None
    samples: int | None = None
    sampler: str = "random"
    seed: int = 0
    table: Path | None = None
    combine: str = "grid"

    def read(self) -> dict[str, Any]:
        """Return the arguments of `sweep`."""
        if self.table is not None:
            refuse("the rows are drawn or in a table, not both", "samples", "combine")
        if self.samples is None:
            refuse("nothing is drawn: it needs --samples and a distribution", "sampler", "seed")
        names = ("sampler", "seed", "combine")
        drawn = self.samples if self.table is None else self.table
        return {name: getattr(self, name) for name in names} | {"samples": drawn}


@dataclass(frozen=True)
class Kept:
    """What is kept of every run, and where it goes."""

    output: Texts = None
    friction: float | None = None
    store: Path | None = None
    out: Path | None = None
    plot: PlotFile = None
    as_json: AsJson = False


@dataclass(frozen=True)
class Engine:
    """What computes the rows."""

    chunk: int | None = None
    workers: int | None = None
    cluster: str | None = None
    target: str | None = None

    @contextmanager
    def executor(self) -> Iterator[Any]:
        """Yield what computes the chunks; None for this process."""
        if self.workers is not None and self.cluster is not None:
            raise typer.BadParameter(
                "a cluster has workers of its own; leave one of both out", param_hint="--workers"
            )
        if self.cluster is None:
            yield self.workers
            return
        from axode.problems.sweep.engines import connect_to_dask

        client = connect_to_dask(self.cluster)
        try:
            yield client
        finally:
            client.close()


def sweep(
    *,
    built: Built,
    time: float = 1.0,
    rows: Rows,
    kept: Kept,
    conditions: Conditions,
    steps: Steps,
    engine: Engine,
) -> None:
    """Simulate very many runs and keep a few numbers of each; print how they are spread.

    axode sweep wheeled_pendulum --over theta3=-0.1:0.1:101 --output y=max:theta3

    axode sweep caster_robot --over "mp=uniform(7,9)" --samples 100 --store study

    Options:
        time SECONDS: Duration of every run.
        over NAME=VALUES: Values of a start, parameter or input: LOW:HIGH:COUNT, [1,2,3],
            uniform(LOW,HIGH), normal(MEAN,DEVIATION) or loguniform(LOW,HIGH).
        samples COUNT: How many rows to draw from distributions.
        sampler random|latin_hypercube|sobol: How rows are drawn.
        seed NUMBER: Which of all possible draws.
        table FILE: File with every row: .csv or .parquet, columns by name.
        combine grid|zip: How lists are combined: all with all, or those of equal places.
        output NAME=KIND:QUANTITY: What to keep of every run, as in top=max:pitch; kinds: last, min,
            max, largest, integral, crossing, rising, falling. The last state by default.
        friction NUMBER: Coefficient of friction of all wheels, for margins.
        store FOLDER: Folder for all rows; the same command resumes there.
        chunk COUNT: Rows computed and stored together; chosen automatically by default.
        workers COUNT: Processes on this machine; this one alone by default.
        cluster ADDRESS: Address of a Dask scheduler, as in tcp://host:8786.
        target cpu|cuda|cuda:0,1: Where the runs are computed: several GPUs by their numbers; where
            the model is by default.
        out FILE: File for all rows: .csv, .parquet or .npz.
    """
    check_writable(kept.out, ENDINGS)
    swept = {name: _values(name, text) for name, text in pairs(OPTION, rows.over).items()}
    outputs, options = read_outputs(kept.output), rows.read()
    if steps.step is not None:
        refuse("rk4 has fixed steps, and no tolerances", "rtol", "atol")
    if not any(word in text for text in kept.output or () for word in GROUND):
        refuse("no --output reads what the ground gives, such as min:slipping_margin", "friction")
    options |= steps.read()
    given = conditions.read()
    model = built.model()
    _add_swept(model, given, swept)
    from axode.problems.sweep.sweep import sweep as sweep_model

    with interruption.keep_results(), engine.executor() as executor:
        made = sweep_model(
            model,
            time,
            **given,
            **options,
            outputs=outputs,
            friction=kept.friction,
            store=kept.store,
            executor=executor,
            chunk=engine.chunk,
            target=engine.target,
            on_interrupt="return",
        )
    if _was_interrupted(made):
        interruption.write_results()
    files = [path for path in (kept.out, kept.plot) if path is not None]
    if kept.out is not None:
        save_rows(made, kept.out)
    if kept.plot is not None:
        made.plot(save=kept.plot)
    print_json(summarize(made, files)) if kept.as_json else show_sweep(made, files)
    if _was_interrupted(made):
        rest = "" if kept.store is None else "; the same command computes the rest"
        typer.echo(f"interrupted; what was computed is kept{rest}", err=True)
        raise typer.Exit(INTERRUPTED)


def _was_interrupted(made: Sweep) -> bool:
    from axode.results.sweep_arrays import NOT_COMPUTED

    return any(text in made.statuses for text in ("interrupted", NOT_COMPUTED))


# values that are varied ---------------------------------------------------------------------------


OPTION = "--over"
FORMS = "LOW:HIGH:COUNT, [1,2,3], uniform(LOW,HIGH), normal(MEAN,DEVIATION) or loguniform(LOW,HIGH)"
MOST_VALUES = 10**7
_CALL = re.compile(r"(\w+)\s*\((.*)\)")


def _values(name: str, text: str) -> Any:
    """Read a list or a distribution."""
    import numpy as np

    from axode.problems.sweep.distributions import LogUniform, Normal, Uniform

    kinds = {"uniform": Uniform, "normal": Normal, "loguniform": LogUniform}
    call = _CALL.fullmatch(text)
    if call and call[1].lower() in kinds:
        return kinds[call[1].lower()](*_numbers(name, text, split_at_commas([call[2]]), 2))
    if text.startswith("[") and text.endswith("]"):
        return _numbers(name, text, split_at_commas([text[1:-1]]))
    low, high, count = _numbers(name, text, text.split(":"), 3)
    if count != int(count) or not 1 <= count <= MOST_VALUES:
        raise _wrong(name, text)
    return np.linspace(low, high, int(count))


def _numbers(name: str, text: str, parts: list[str], count: int | None = None) -> list[float]:
    found = finite_numbers(parts)
    if len(found) != (len(parts) if count is None else count):
        raise _wrong(name, text)
    return found


def _wrong(name: str, text: str) -> typer.BadParameter:
    return typer.BadParameter(
        f"'{name}' needs values such as {FORMS}, and not '{text}'", param_hint=OPTION
    )


def read_outputs(given: Iterable[str] | None) -> dict[str, tuple[str, str]] | None:
    """Read NAME=KIND:QUANTITY; None if nothing is given.

    Raises:
        typer.BadParameter: for anything else.
    """
    found: dict[str, tuple[str, str]] = {}
    for name, text in pairs("--output", given, "top=max:pitch").items():
        how, colon, what = (part.strip() for part in text.partition(":"))
        if not colon or not how or not what:
            raise typer.BadParameter(
                f"'{name}={text}' is not NAME=KIND:QUANTITY, as in --output top=max:pitch",
                param_hint="--output",
            )
        found[name] = (how, what)
    return found or None


def _add_swept(model: Model, given: dict[str, Any], swept: dict[str, Any]) -> None:
    """Add swept values to the start, the parameters or the inputs, wherever each belongs."""
    from axode.problems.sweep.sweep_rows import locate

    for name, values in swept.items():
        group = {"parameter": "parameters"}.get(kind := locate(model, name), kind)
        own = given[group] = given[group] or {}
        if name in own:
            raise typer.BadParameter(
                f"'{name}' is given one value and swept too", param_hint=OPTION
            )
        own[name] = values


# results ------------------------------------------------------------------------------------------


ENDINGS = (".csv", ".parquet", ".npz")
BLOCK = 1 << 16  # rows that are written at once


def save_rows(made: Sweep, path: Path) -> None:
    """Write all rows of a sweep in the format that the ending names.

    Raises:
        FileError: if it cannot be written.
        NotApplicable: for .parquet without pyarrow.
    """
    import numpy as np

    from axode.disk.atomic import write_atomically

    ending = path.suffix.lower()
    if ending == ".csv":
        write_text(path, "".join(_lines(made)))
        return
    content = io.BytesIO()
    if ending == ".parquet":
        from axode.results.tables import require_pyarrow

        _, parquet = require_pyarrow("a .parquet file")
        parquet.write_table(made.to_arrow(), content)
    else:
        np.savez_compressed(content, **_columns(made, np.arange(made.runs)))
    write_atomically(path, content.getbuffer())


def _columns(made: Sweep, rows: Any) -> dict[str, Any]:
    """Columns of some rows by name: row, swept values, outputs, status and reason."""
    import numpy as np

    from axode.results.sweep_store import SweepManifest

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
    import numpy as np

    for first in range(0, max(made.runs, 1), BLOCK):
        columns = _columns(made, np.arange(first, min(first + BLOCK, made.runs)))
        if not first:
            yield csv_text([columns])
        yield csv_text(zip(*(column.tolist() for column in columns.values()), strict=True))


def show_sweep(made: Sweep, files: list[Path]) -> None:
    """Print how runs ended, and the extremes and means of all outputs."""
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
    import numpy as np

    low, high, total, runs = np.inf, -np.inf, 0.0, 0
    for _, piece in made.arrays.pieces(name):
        known = piece[np.isfinite(piece)]
        low, high = min(low, known.min(initial=np.inf)), max(high, known.max(initial=-np.inf))
        total, runs = total + float(known.sum()), runs + known.size
    if not runs:
        return dict.fromkeys(("min", "mean", "max"), float("nan")) | {"runs": 0}
    return {"min": float(low), "mean": total / runs, "max": float(high), "runs": runs}
