"""`axode compare`: one mechanism by every formulation."""

import typer

from axode.cli.shared import WRONG_DATA, AsJson, Source, mechanism_from, print_json


def compare(source: Source, as_json: AsJson = False) -> None:
    """Derive a mechanism by every formulation and show that they agree.

    axode compare caster_robot

    axode compare examples/fourbar.toml
    """
    from axode.problems.compare import compare as compare_formulations

    result = compare_formulations(mechanism_from(source))
    if as_json:
        from dataclasses import asdict

        print_json(asdict(result))
    else:
        print(result)
    if not result.agrees:
        raise typer.Exit(WRONG_DATA)
