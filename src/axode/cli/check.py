"""`axode check`: what a mechanism can do."""

from axode.cli.shared import AsJson, Source, mechanism_from, print_json


def check(source: Source, as_json: AsJson = False) -> None:
    """Say what a mechanism can do: mobility, redundant rows, actuation.

    axode check examples/rover.toml

    axode check caster_robot
    """
    report = mechanism_from(source).derive().mobility
    if as_json:
        from dataclasses import asdict

        more = {"holonomic": report.holonomic, "integrable": report.integrable}
        print_json(asdict(report) | more)
    else:
        print(report)
