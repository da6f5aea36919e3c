"""Units of what a sweep varies and of what it keeps."""

from __future__ import annotations

from collections.abc import Mapping

from axode.model.model import Model
from axode.problems.sweep.accumulate import Output
from axode.problems.sweep.ground_quantities import LOAD, GroundQuantity

TIMES = ("crossing", "rising", "falling")  # kinds of outputs that are times


def column_units(
    model: Model, outputs: Mapping[str, Output], groups: Mapping[str, str]
) -> dict[str, str]:
    """SI units by name, where they are known: not those of functions and of parameters.

    A swept value with the name of an output gets its group as prefix: `start.pitch`.

    Args:
        model: Owner of the signals.
        outputs: What is kept of every run.
        groups: By name of what is swept: "start", "parameter", "gain" or "input".
    """
    made = {name: _unit(model, output) for name, output in outputs.items()}
    for name, group in groups.items():
        if group in ("start", "input") and model.signals.names().accepts(name):
            own = f"{group}.{name}" if name in outputs else name
            made[own] = model.signals.resolve(name).unit
    return {name: unit for name, unit in made.items() if unit}


def _unit(model: Model, output: Output) -> str:
    if output.how in TIMES:
        return "s"
    what = output.what
    if isinstance(what, GroundQuantity):
        unit = "N" if what.name.endswith(f".{LOAD}") else ""
    else:
        unit = model.signals.resolve(what).unit if isinstance(what, str) else ""
    if output.how != "integral":
        return unit
    if unit:
        return f"{unit} s"
    return "" if isinstance(what, int) else "s"
