"""`axode check`: mobility, redundant constraints and actuation of a mechanism."""

from typing import Annotated

import typer

from axode.cli.model_sources import Options, Source, additions_from, equations_from
from axode.cli.shared import AsJson, JsonFile, deliver

Twists = Annotated[
    bool, typer.Option("--twists", help="Count the constraints on the twists of bodies as well.")
]


def check(
    source: Source,
    option: Options = None,
    twists: Twists = False,
    as_json: AsJson = False,
    out: JsonFile = None,
) -> None:
    """Analyse a mechanism: mobility, redundant constraints, actuation, additions.

    axode check examples/rover.toml

    axode check caster_robot

    axode check caster_robot --twists
    """
    from dataclasses import asdict

    from axode.cli.tables import show_entries
    from axode.errors import first_of

    equations = equations_from(source, option)
    report = equations.mobility
    on_twists = equations.twist_redundancy if twists else None
    additions = additions_from(source, option)
    more: dict[str, object] = {"holonomic": report.holonomic, "integrable": report.integrable}
    changed = asdict(additions) if additions else {}

    def show() -> None:
        title, *lines = str(report).splitlines()
        entries = [(line[2:17].strip(), line[17:]) for line in lines]
        names = {"file": "extends", "added": "added", "removed": "removed"}
        entries += on_twists.entries() if on_twists else []
        for key, value in changed.items():
            entries.append((names[key], value if key == "file" else first_of(value) or "nothing"))
        show_entries(title, entries)

    more |= {"twists": asdict(on_twists)} if on_twists else {}
    data = asdict(report) | more | ({"additions": changed} if additions else {})
    deliver(data, show, as_json=as_json, out=out)
