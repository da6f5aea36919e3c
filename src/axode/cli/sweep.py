"""`axode sweep`: a few numbers of very many runs."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from axode.cli import INTERRUPTED, interruption
from axode.cli.model_sources import Options, Source, model_from
from axode.cli.options import (
    AsJson,
    Atol,
    Inputs,
    Method,
    Parameters,
    Plot,
    Rtol,
    Starts,
    Step,
    numbers,
    pairs,
    refuse,
    split_at_commas,
)
from axode.cli.output import check_writable, print_json

if TYPE_CHECKING:
    from axode.model.model import Model
    from axode.results.sweep_result import Sweep


GROUND = ("margin", ".load", ".share")  # quantities that friction or loads are in
Count = Annotated[
    int | None, typer.Option(metavar="COUNT", help="How many rows to draw from distributions.")
]


def sweep(
    source: Source,
    option: Options = None,
    time: Annotated[float, typer.Option(metavar="SECONDS", help="Duration of every run.")] = 1.0,
    over: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUES", help=f"Values of a start, parameter or input: {FORMS}."
        ),
    ] = None,
    samples: Count = None,
    sampler: Annotated[
        str, typer.Option(metavar="random|latin_hypercube|sobol", help="How rows are drawn.")
    ] = "random",
    seed: Annotated[int, typer.Option(metavar="NUMBER", help="Which of all possible draws.")] = 0,
    table: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="File with every row: .csv or .parquet, columns by name."
        ),
    ] = None,
    combine: Annotated[
        str,
        typer.Option(
            metavar="grid|zip",
            help="How lists are combined: all with all, or those of equal places.",
        ),
    ] = "grid",
    output: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=KIND:QUANTITY",
            help="What to keep of every run, as in top=max:pitch; kinds: last, min, max, "
            "largest, integral, crossing, rising, falling. The last state by default.",
        ),
    ] = None,
    start: Starts = None,
    input: Inputs = None,
    parameter: Parameters = None,
    method: Method = None,
    step: Step = None,
    rtol: Rtol = 1e-10,
    atol: Atol = 1e-12,
    friction: Annotated[
        float | None,
        typer.Option(metavar="NUMBER", help="Coefficient of friction of all wheels, for margins."),
    ] = None,
    store: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Folder for all rows; the same command resumes there."),
    ] = None,
    chunk: Annotated[
        int | None,
        typer.Option(
            metavar="COUNT",
            help="Rows computed and stored together; chosen automatically by default.",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(metavar="COUNT", help="Processes on this machine; this one alone by default."),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Address of a Dask scheduler, as in tcp://host:8786."),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="cpu|cuda|cuda:0,1",
            help="Where the runs are computed: several GPUs by their numbers; where the "
            "model is by default.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File for all rows: .csv, .parquet or .npz.")
    ] = None,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Simulate very many runs and keep a few numbers of each; print how they are spread.

    axode sweep wheeled_pendulum --over theta3=-0.1:0.1:101 --output y=max:theta3

    axode sweep caster_robot --over "mp=uniform(7,9)" --samples 100 --store study
    """
    check_writable(out, ENDINGS)
    check_writable(plot, (".png", ".svg", ".pdf"), "--plot")
    swept, outputs = read_swept(over), read_outputs(output)
    if table is not None:
        refuse("the rows are drawn or in a table, not both", "samples", "combine")
    if method == "rk4" or step is not None:
        refuse("rk4 has fixed steps, and no tolerances", "rtol", "atol")
    if samples is None:
        refuse("nothing is drawn: it needs --samples and a distribution", "sampler", "seed")
    if not any(word in text for text in output or () for word in GROUND):
        refuse("no --output reads what the ground gives, such as min:slipping_margin", "friction")
    shared: dict[str, dict[str, Any]] = {
        "start": dict(numbers("--start", start)),
        "parameter": dict(numbers("--parameter", parameter)),
        "input": dict(pairs("--input", input)),
    }
    model = model_from(source, option)
    values = group_values(model, shared, swept)
    from axode.problems.sweep.sweep import sweep as sweep_model

    with interruption.keep_results(), _executor(workers, cluster) as executor:
        made = sweep_model(
            model,
            time,
            start=values["start"] or None,
            parameters=values["parameter"] or None,
            input=values["input"] or None,
            outputs=outputs,
            method=method,
            step=step,
            rtol=rtol,
            atol=atol,
            combine=combine,  # type: ignore[arg-type]
            samples=samples if table is None else table,
            sampler=sampler,  # type: ignore[arg-type]
            seed=seed,
            friction=friction,
            store=store,
            executor=executor,
            chunk=chunk,
            target=target,
            on_interrupt="return",
        )
    if _was_interrupted(made):
        interruption.write_results()
    files = [path for path in (out, plot) if path is not None]
    if out is not None:
        save_rows(made, out)
    if plot is not None:
        made.plot(save=plot)
    print_json(summarize(made, files)) if as_json else show_sweep(made, files)
    if _was_interrupted(made):
        kept = "" if store is None else "; the same command computes the rest"
        typer.echo(f"interrupted; what was computed is kept{kept}", err=True)
        raise typer.Exit(INTERRUPTED)


@contextmanager
def _executor(workers: int | None, cluster: str | None) -> Iterator[Any]:
    """Yield what computes the chunks; None for this process."""
    if workers is not None and cluster is not None:
        raise typer.BadParameter(
            "a cluster has workers of its own; leave one of both out", param_hint="--workers"
        )
    if cluster is None:
        yield workers
        return
    from axode.problems.sweep.engines import connect_to_dask

    client = connect_to_dask(cluster)
    try:
        yield client
    finally:
        client.close()


def _was_interrupted(made: Sweep) -> bool:
    from axode.results.sweep_arrays import NOT_COMPUTED

    return any(text in made.statuses for text in ("interrupted", NOT_COMPUTED))


# values that are varied ---------------------------------------------------------------------------


OPTION = "--over"
FORMS = "LOW:HIGH:COUNT, [1,2,3], uniform(LOW,HIGH), normal(MEAN,DEVIATION) or loguniform(LOW,HIGH)"
MOST_VALUES = 10**7
_CALL = re.compile(r"(\w+)\s*\((.*)\)")


def read_swept(given: Iterable[str] | None) -> dict[str, Any]:
    """Read lists and distributions by name.

    Raises:
        typer.BadParameter: for anything else.
    """
    return {name: _values(name, text) for name, text in pairs(OPTION, given).items()}


def _values(name: str, text: str) -> Any:
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
    from axode.mechanism.values.expressions import parse_scalar

    try:
        found = [float(parse_scalar(part, {})) for part in parts]  # type: ignore[arg-type]
    except (ValueError, TypeError):
        raise _wrong(name, text) from None
    if not all(map(math.isfinite, found)) or (count is not None and len(found) != count):
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
    for name, text in pairs("--output", given).items():
        how, colon, what = (part.strip() for part in text.partition(":"))
        if not colon or not how or not what:
            raise typer.BadParameter(
                f"'{name}={text}' is not NAME=KIND:QUANTITY, as in --output top=max:pitch",
                param_hint="--output",
            )
        found[name] = (how, what)
    return found or None


def group_values(
    model: Model, shared: dict[str, dict[str, Any]], swept: dict[str, Any]
) -> dict[str, dict[str, Any]]:
    """Put swept values to the start, the parameters or the inputs, wherever each belongs.

    Args:
        model: Owner of the names.
        shared: Values that all rows share, by "start", "parameter" and "input".
        swept: Values that are swept, by name.
    """
    from axode.problems.sweep.sweep_rows import locate

    groups = {group: dict(values) for group, values in shared.items()}
    for name, values in swept.items():
        own = groups[locate(model, name)]
        if name in own:
            raise typer.BadParameter(
                f"'{name}' is given one value and swept too", param_hint=OPTION
            )
        own[name] = values
    return groups


# results ------------------------------------------------------------------------------------------


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
    from axode.cli.output import format_number, show_entries, show_table
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
