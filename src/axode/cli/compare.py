"""`axode compare`: one mechanism derived by every formulation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from axode.cli.model_sources import Options, Source, mechanism_from
from axode.cli.shared import WRONG_DATA, AsJson, JsonFile, deliver, words

if TYPE_CHECKING:
    from axode.problems.compare import Comparison


def compare(
    source: Source,
    option: Options = None,
    formulation: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME,NAME",
            help="Formulations to compare: recursive, complement, multipliers, lagrange, "
            "virtual_work, spatial_operators, pseudo_joints, reduced_order, legs; all by default.",
        ),
    ] = None,
    as_json: AsJson = False,
    out: JsonFile = None,
) -> None:
    """Derive a mechanism by every formulation and compare the results.

    axode compare caster_robot

    axode compare examples/fourbar.toml
    """
    from dataclasses import asdict

    from axode.problems.compare import compare as compare_formulations

    result = compare_formulations(mechanism_from(source, option), words(formulation) or None)
    data = asdict(result) | {"agrees": result.agrees}
    deliver(data, lambda: _show(result), as_json=as_json, out=out)
    if not result.agrees:
        raise typer.Exit(WRONG_DATA)


def _show(result: Comparison) -> None:
    from axode.cli.tables import on_terminal, show_table

    if not on_terminal():
        print(result)
        return
    rows: list[tuple[str, ...]] = []
    for rival in result.rivals:
        if rival.refused:
            rows.append((rival.name, "-", "", "", "", rival.refused.splitlines()[0]))
        else:
            counts = (f"{n}" for n in rival.operations)
            rows.append(
                (rival.name, f"{rival.worst:.1e}", *counts, f"{rival.seconds * 1e3:.0f}", "")
            )
    show_table(
        ("formulation", ">difference", ">direct", ">inverse", ">ms", ""),
        rows,
        title=f"{result.mechanism}: difference from '{result.reference}', operations, time",
        note="All agree." if result.agrees else "They do NOT agree.",
    )
