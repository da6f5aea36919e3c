"""Labels that the user gives to what is drawn, and angles in degrees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from axode.errors import InvalidArgument, UnknownName, shortened
from axode.names import Names
from axode.show.plot.choice import Curve, Panel
from axode.show.plot.legends import MathLabel
from axode.show.plot.path_plot import Track

if TYPE_CHECKING:
    from axode.results.trajectory import Trajectory

DEGREES = {"rad": "deg", "rad/s": "deg/s", "rad/s^2": "deg/s^2"}


def shown_unit(unit: str, degrees: bool) -> tuple[str, float]:
    """Unit in which values are shown, and what they are multiplied with."""
    return (DEGREES[unit], float(np.rad2deg(1.0))) if degrees and unit in DEGREES else (unit, 1.0)


def signal_labels(
    trajectory: Trajectory, labels: Mapping[Any, Any], tracks: Sequence[Track] = ()
) -> dict[str, str]:
    """Labels by the full names of columns, and by the names of points of the path.

    Raises:
        InvalidArgument: listing all names that mean nothing and all labels that are no text.
    """
    points = {track.label for track in tracks}
    names = Names(trajectory.column_names.owner, "signal", trajectory.names)
    found, faults = dict[str, str](), list[str]()
    for name, label in labels.items():
        if not isinstance(name, str) or not isinstance(label, str):
            faults.append(f"expected NAME: LABEL, both texts, got {shortened({name: label})}")
            continue
        try:
            meant = name if name in points else names.resolve(name)
        except UnknownName as error:
            faults.append(str(error))
            continue
        found[meant] = MathLabel(label) if _is_mathematics(label) else label
    if faults:
        raise InvalidArgument("\n".join(f"plot, labels: {fault}" for fault in faults))
    return found


def _is_mathematics(label: str) -> bool:
    """Return whether a label holds mathematics between dollar signs that can be set."""
    from matplotlib.mathtext import MathTextParser

    if label.count("$") < 2 or label.count("$") % 2:
        return False
    try:
        MathTextParser("path").parse(label)
    except ValueError:
        return False
    return True


def reword(panel: Panel, labels: Mapping[str, str], degrees: bool) -> Panel:
    """Return a panel with the user's labels, and with angles in degrees if asked."""
    curves = tuple(_reword(curve, labels) for curve in panel.curves)
    if len(curves) == 1 and curves[0].label != panel.curves[0].label:
        panel = replace(panel, quantity=curves[0].label, brief="")
    unit, factor = shown_unit(panel.unit, degrees)
    if factor != 1.0:
        curves = tuple(_scale(curve, factor) for curve in curves)
    return replace(panel, curves=curves, unit=unit)


def _reword(curve: Curve, labels: Mapping[str, str]) -> Curve:
    return replace(curve, label=labels.get(curve.column, curve.label))


def _scale(curve: Curve, factor: float) -> Curve:
    return replace(curve, values=factor * curve.values, turn=factor * curve.turn)


def rename_tracks(tracks: Sequence[Track], labels: Mapping[str, str]) -> list[Track]:
    """Return tracks with the user's labels."""
    return [replace(track, label=labels.get(track.label, track.label)) for track in tracks]
