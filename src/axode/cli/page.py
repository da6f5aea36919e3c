"""`axode page`: a self-contained page that simulates a mechanism."""

from pathlib import Path
from typing import Annotated

import typer

from axode.cli.model_sources import Options, Source, model_from
from axode.cli.report import page_name
from axode.cli.shared import Inputs, Parameters, Starts, check_writable, numbers, pairs, words


def page(
    source: Source,
    option: Options = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="File of the page (.html); NAME.html by default."
        ),
    ] = None,
    start: Starts = None,
    input: Inputs = None,
    parameter: Parameters = None,
    signals: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME,NAME", help="Signals that are shown first; the main ones by default."
        ),
    ] = None,
    step: Annotated[float, typer.Option(metavar="SECONDS", help="Length of the steps.")] = 1e-3,
    title: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Title of the page; the mechanism's name by default."),
    ] = None,
    play: Annotated[bool, typer.Option(help="Run as soon as the page is open.")] = False,
) -> None:
    """Write a page that simulates a mechanism: one file, to be driven with keys and sliders.

    axode page tricycle -o tricycle.html

    axode page wheeled_pendulum --start theta3=0.3 --input M1=-0.2*theta1_dot
    """
    from axode.show.live.live_page import page as write_page

    check_writable(out, (".html", ".htm"))
    begin, values = numbers("--start", start), numbers("--parameter", parameter)
    law = pairs("--input", input)
    model = model_from(source, option)
    path = write_page(
        model,
        out or page_name(model.name),
        input=law or None,
        start=begin or None,
        title=title,
        signals=words(signals),
        step=step,
        parameters=values,
        play=play,
    )
    print(f"wrote {path} ({path.stat().st_size} bytes)")
