"""`axode sweep`: a few numbers of very many runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axode.cli import INTERRUPTED, interruption
from axode.cli.model_sources import Options, Source, model_from
from axode.cli.shared import (
    AsJson,
    Atol,
    Inputs,
    Method,
    Parameters,
    Plot,
    Rtol,
    Starts,
    Step,
    check_writable,
    numbers,
    pairs,
    print_json,
)
from axode.cli.swept_values import FORMS, group_values, read_outputs, read_swept
from axode.cli.verb_options import refuse

if TYPE_CHECKING:
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
    from axode.cli.sweep_summaries import ENDINGS, save_rows, show_sweep, summarize

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
