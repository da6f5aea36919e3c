"""`axode gallery`: the mechanisms that come with Axode."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from axode.cli.shared import AsJson, JsonFile, deliver
from axode.errors import first_of


def gallery(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Mechanism to describe; all are listed by default."),
    ] = None,
    as_json: AsJson = False,
    out: JsonFile = None,
) -> None:
    """List the mechanisms that come with Axode, or describe one of them.

    axode gallery

    axode gallery caster_robot
    """
    from axode import gallery as shelf
    from axode.cli.tables import show_entries

    if name is None:
        deliver(shelf.NAMES, _list, as_json=as_json, out=out)
        return
    facts = _facts(name)
    labels = ("file", "bodies", "joints", "loops", "wheels", "couplings", "motors", "parameters")
    entries = [(label, _list_values(facts[label])) for label in labels if facts[label]]

    def show() -> None:
        show_entries(f"{name}: {facts['what']}", entries)
        print(f"\n{facts['text']}\n\n  axode check {name}\n  axode simulate {name} --time 2")

    deliver(facts, show, as_json=as_json, out=out)


def _list() -> None:
    from axode import gallery as shelf
    from axode.cli.tables import on_terminal, show_table

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
