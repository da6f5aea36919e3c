"""`axode verify`: acceptance cases."""

from typing import Annotated

import typer

from axode.cli.shared import WRONG_DATA, AsJson, print_json


def verify(
    file: Annotated[str | None, typer.Argument(help="A file of cases; those of Axode if left out.")]
    = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Run acceptance cases through the gallery and compare every quantity.

    axode verify

    axode verify cases.json
    """
    from axode.verification import verify as verify_cases

    result = verify_cases(file)
    if as_json:
        from dataclasses import asdict

        print_json([asdict(check) for check in result])
    else:
        print(result)
    if not result.passed:
        raise typer.Exit(WRONG_DATA)
