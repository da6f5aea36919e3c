"""`axode reproduce`: results of the sources, reproduced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from axode.cli.shared import WRONG_DATA, AsJson, print_json
from axode.cli.verb_options import refuse

if TYPE_CHECKING:
    from axode.literature.reproduce.making import Reproduction


def reproduce(
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ITEM", help="Items or sources to reproduce; without any, list all items."
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Reproduce all items.")] = False,
    out: Annotated[
        str, typer.Option(metavar="FOLDER", help="Folder for tables, figures and the index page.")
    ] = "out/reproduce",
    as_json: AsJson = False,
) -> None:
    """Recompute the results of the source documents and compare the numbers.

    axode reproduce --all

    axode reproduce quasimoro-straight --out figures
    """
    if ids and everything:
        raise typer.BadParameter("give ids or --all, not both", param_hint="--all")
    if not ids and not everything:
        refuse("name what to reproduce, or give --all", "out")
        _list(as_json)
        return
    from axode.literature.reproduce.making import reproduce as make

    result = make(None if everything else ids, out, report=None if as_json else _print_verdict)
    if as_json:
        print_json({"page": result.page, "items": [_plain(one) for one in result.made]})
    else:
        print(f"\n{result.page}")
    if not result.holds:
        raise typer.Exit(WRONG_DATA)


def _print_verdict(one: Reproduction) -> None:
    print(f"{one.verdict.status:<7}  {one.item.id}: {one.verdict.sentence}", flush=True)


def _list(as_json: bool) -> None:
    from axode.literature.reproduce.item import SOURCES, catalogue

    items = catalogue()
    if as_json:
        print_json(
            {item.id: {"source": item.source, "shows": item.shows} for item in items.values()}
        )
        return
    width = max(map(len, items))
    for source, title in SOURCES.items():
        print(f"{source}: {title}")
        for item in items.values():
            if item.source == source:
                print(f"  {item.id:<{width}}  {item.shows}")


def _plain(one: Reproduction) -> dict[str, Any]:
    from dataclasses import asdict

    checks = [asdict(check) | {"status": check.status} for check in one.verdict.checks]
    return {
        "id": one.item.id,
        "source": one.item.source,
        "shows": one.item.shows,
        "verdict": one.verdict.status,
        "sentence": one.verdict.sentence,
        "checks": checks,
        "table": one.table,
        "figure": one.figure,
        "seconds": round(one.seconds, 3),
    }
