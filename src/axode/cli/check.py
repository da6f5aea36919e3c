"""`axode check`: mobility, redundant constraints and actuation of a mechanism."""

from axode.cli.model_sources import Options, Source, mechanism_from
from axode.cli.shared import AsJson, JsonFile, deliver


def check(
    source: Source, option: Options = None, as_json: AsJson = False, out: JsonFile = None
) -> None:
    """Analyse a mechanism: mobility, redundant constraints, actuation.

    axode check examples/rover.toml

    axode check caster_robot
    """
    from dataclasses import asdict

    from axode.cli.tables import show_entries

    report = mechanism_from(source, option).derive().mobility
    more = {"holonomic": report.holonomic, "integrable": report.integrable}

    def show() -> None:
        title, *lines = str(report).splitlines()
        show_entries(title, [(line[2:17].strip(), line[17:]) for line in lines])

    deliver(asdict(report) | more, show, as_json=as_json, out=out)
