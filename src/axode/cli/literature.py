"""`axode gallery`, `verify` and `reproduce`: mechanisms, cases and results of the sources."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axode.cli import INTERRUPTED, interruption
from axode.cli.options import WRONG_DATA, AsJson, Result, Texts, refuse, words
from axode.cli.output import print_json, show_entries, show_table
from axode.errors import first_of

if TYPE_CHECKING:
    from axode.literature.acceptance.table import Verification
    from axode.literature.reproduce.making import Reproduction


def gallery(*, name: Annotated[str | None, typer.Argument()] = None, result: Result) -> None:
    """List the mechanisms that come with Axode, or describe one of them.

    axode gallery

    axode gallery caster_robot

    Options:
        name NAME: Mechanism to describe; all are listed by default.
    """
    from axode import gallery as shelf

    if name is None:
        result.deliver(shelf.NAMES, _list_gallery)
        return
    facts = _facts(name)
    labels = ("file", "bodies", "joints", "loops", "wheels", "couplings", "motors", "parameters")
    entries = [(label, _list_values(facts[label])) for label in labels if facts[label]]

    def show() -> None:
        show_entries(f"{name}: {facts['what']}", entries)
        print(f"\n{facts['text']}\n\n  axode check {name}\n  axode simulate {name} --time 2")

    result.deliver(facts, show)


def _list_gallery() -> None:
    from axode import gallery as shelf
    from axode.cli.output import on_terminal

    if on_terminal():
        show_table(("name", "what it is"), list(shelf.NAMES.items()))
        return
    width = max(map(len, shelf.NAMES))
    for name, what in shelf.NAMES.items():
        print(f"{name:<{width}}  {what}")


def _facts(name: str) -> dict[str, Any]:
    from inspect import getdoc
    from sys import modules

    from axode import gallery as shelf
    from axode.mechanism.topology import parameters_of

    mechanism = shelf.build(name)
    home = modules[f"axode.gallery.{name}"]
    return {
        "name": name,
        "what": shelf.NAMES[name],
        "text": getdoc(getattr(home, name)) or "",
        "file": home.__file__,
        "bodies": [body.name for body in mechanism.bodies],
        "joints": [joint.name for joint in mechanism.connections],
        "loops": [loop.name for loop in mechanism.loops],
        "wheels": [contact.name for contact in mechanism.contacts],
        "couplings": list(map(str, mechanism.couplings)),
        "motors": [drive.name for drive in mechanism.drives],
        "parameters": {n: p.default for n, p in parameters_of(mechanism).items()},
    }


def _list_values(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        value = [f"{name} = {number:g}" for name, number in value.items()]
    return first_of(value)


# verify -------------------------------------------------------------------------------------------


def verify(
    *, file: Annotated[str | None, typer.Argument()] = None, case: Texts = None, result: Result
) -> None:
    """Run acceptance cases with the mechanisms of the gallery and compare every quantity.

    axode verify

    axode verify --case A3-1

    axode verify cases.json

    Options:
        file FILE: File of cases; the cases of Axode by default.
        case NAME,NAME: Cases of the file; all by default.
    """
    from axode.literature.acceptance.table import TITLES

    checks, left = _run_cases(file, words(case) or None)

    def show() -> None:
        failed = [number for number, check in enumerate(checks) if not check.passed]
        show_table(TITLES, [check.cells for check in checks], note=checks.summary, marked=failed)

    result.deliver([asdict(check) for check in checks], show)
    if left:
        typer.echo(f"interrupted; {left} cases were not run", err=True)
        raise typer.Exit(INTERRUPTED)
    if not checks.passed:
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


# reproduce ----------------------------------------------------------------------------------------


def reproduce(
    ids: Annotated[Texts, typer.Argument()] = None,
    everything: Annotated[bool, typer.Option("--all")] = False,
    out: str = "out/reproduce",
    as_json: AsJson = False,
) -> None:
    """Recompute the results of the source documents and compare the numbers.

    axode reproduce --all

    axode reproduce quasimoro-straight --out figures

    Options:
        ids ITEM: Items or sources to reproduce; without any, list all items.
        everything: Reproduce all items.
        out FOLDER: Folder for tables, figures and the index page.
    """
    if ids and everything:
        raise typer.BadParameter("give ids or --all, not both", param_hint="--all")
    if not ids and not everything:
        refuse("name what to reproduce, or give --all", "out")
        _list_items(as_json)
        return
    from axode.literature.reproduce.making import reproduce as make

    def report(one: Reproduction) -> None:
        print(f"{one.verdict.status:<7}  {one.item.id}: {one.verdict.sentence}", flush=True)

    result = make(None if everything else ids, out, report=None if as_json else report)
    if as_json:
        print_json({"page": result.page, "items": [_plain(one) for one in result.made]})
    else:
        print(f"\n{result.page}")
    if not result.holds:
        raise typer.Exit(WRONG_DATA)


def _list_items(as_json: bool) -> None:
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
