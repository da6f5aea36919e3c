"""`axode verify`: acceptance cases."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from axode.cli import INTERRUPTED, interruption
from axode.cli.shared import WRONG_DATA, AsJson, JsonFile, deliver, words

if TYPE_CHECKING:
    from axode.literature.acceptance.table import Verification


def verify(
    file: Annotated[
        str | None,
        typer.Argument(metavar="FILE", help="File of cases; the cases of Axode by default."),
    ] = None,
    case: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME,NAME", help="Cases of the file; all by default."),
    ] = None,
    as_json: AsJson = False,
    out: JsonFile = None,
) -> None:
    """Run acceptance cases with the mechanisms of the gallery and compare every quantity.

    axode verify

    axode verify --case A3-1

    axode verify cases.json
    """
    from dataclasses import asdict

    from axode.cli.tables import show_table
    from axode.literature.acceptance.table import TITLES

    result, left = _run_cases(file, words(case) or None)

    def show() -> None:
        failed = [number for number, check in enumerate(result) if not check.passed]
        show_table(TITLES, [check.cells for check in result], note=result.summary, marked=failed)

    deliver([asdict(check) for check in result], show, as_json=as_json, out=out)
    if left:
        typer.echo(f"interrupted; {left} cases were not run", err=True)
        raise typer.Exit(INTERRUPTED)
    if not result.passed:
        raise typer.Exit(WRONG_DATA)


def _run_cases(file: str | None, ids: tuple[str, ...] | None) -> tuple[Verification, int]:
    """Run the cases, with a progress bar on a terminal; return also how many Ctrl-C left out."""
    from axode.literature.acceptance import checks_of
    from axode.literature.acceptance.cases import OPEN_CASES, chosen_cases, load_cases
    from axode.literature.acceptance.table import Verification as Found
    from axode.problems.progress import Progress

    cases, checks, done = chosen_cases(load_cases(file), ids), [], 0
    with interruption.stop_early(), Progress("verify") as bar:
        for case in cases:
            bar.update(done / len(cases))
            found = checks_of(case)
            if interruption.pressed():  # the case may have taken it for its own error
                raise KeyboardInterrupt
            checks += found
            done += 1
    return Found(tuple(checks), Path(file or OPEN_CASES).name), len(cases) - done
