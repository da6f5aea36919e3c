"""`axode check`: mobility, redundant constraints and actuation of a mechanism."""

from axode.cli.model_sources import Options, Source, additions_from, equations_from
from axode.cli.shared import AsJson, JsonFile, deliver


def check(
    source: Source, option: Options = None, as_json: AsJson = False, out: JsonFile = None
) -> None:
    """Analyse a mechanism: mobility, redundant constraints, actuation, additions.

    axode check examples/rover.toml

    axode check caster_robot
    """
    from dataclasses import asdict

    from axode.cli.tables import show_entries
    from axode.errors import first_of

    report = equations_from(source, option).mobility
    additions = additions_from(source, option)
    more = {"holonomic": report.holonomic, "integrable": report.integrable}
    changed = asdict(additions) if additions else {}

    def show() -> None:
        title, *lines = str(report).splitlines()
        entries = [(line[2:17].strip(), line[17:]) for line in lines]
        names = {"file": "extends", "added": "added", "removed": "removed"}
        for key, value in changed.items():
            entries.append((names[key], value if key == "file" else first_of(value) or "nothing"))
        show_entries(title, entries)

    data = asdict(report) | more | ({"additions": changed} if additions else {})
    deliver(data, show, as_json=as_json, out=out)
