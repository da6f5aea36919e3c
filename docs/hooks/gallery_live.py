"""Pages on which the mechanisms of the gallery are driven: starts, laws and curves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import axode as ax

WANTED = {"ahead": "surge_wanted", "sideways": "sway_wanted", "turn": "turn_wanted"}


@dataclass(frozen=True)
class Live:
    """How a mechanism is driven.

    Attributes:
        start: Where it begins; at home and at rest unless given.
        prepare: Adds measures and parameters for the law.
        law: The law of a model.
        signals: Curves that are shown first.
        keys: Parameters of the law that keys change.
    """

    start: Mapping[str, float] = field(default_factory=dict)
    prepare: Callable[[ax.Mechanism], None] | None = None
    law: Callable[[ax.Model], Any] | None = None
    signals: tuple[str, ...] = ()
    keys: Mapping[str, str] = field(default_factory=dict)


def live(name: str) -> str:
    """Text of the page on which a mechanism is driven."""
    how = LIVE.get(name, Live())
    mechanism = ax.gallery.build(name)
    if how.prepare is not None:
        how.prepare(mechanism)
    model = mechanism.derive().compile()
    with TemporaryDirectory() as folder:
        place = ax.page(
            model,
            Path(folder) / "page.html",
            input=None if how.law is None else how.law(model),
            start=dict(how.start),
            signals=how.signals,
            step=1e-3,
            play=bool(how.start),
            keys=dict(how.keys),
        )
        return place.read_text(encoding="utf-8")


def _wanted(mechanism: ax.Mechanism, *names: str) -> None:
    """Add parameters that only the law reads."""
    zeros = [ax.Parameter(name, 0.0) for name in names]
    mechanism.measure("wanted", "position", body=mechanism.ground, at=(*zeros, 0.0, 0.0)[:3])


def _rates(mechanism: ax.Mechanism, *kinds: str) -> None:
    for kind in kinds:
        mechanism.measure(kind, kind, body="body")


def prepare_ballbot(mechanism: ax.Mechanism) -> None:
    """Add the speeds of the body, seen from it, and those wanted."""
    _rates(mechanism, "roll_rate", "pitch_rate", "yaw_rate", "surge", "sway")
    _wanted(mechanism, *WANTED.values())


def balance_ballbot(model: ax.Model) -> Any:
    """Keep it upright, at the wanted speeds."""
    states = ("body.roll", "body.pitch", "roll_rate", "pitch_rate", "surge", "sway", "yaw_rate")
    costs = {"body.roll": 20, "body.pitch": 20, "surge": 4, "sway": 4, "yaw_rate": 1}
    gains = ax.linearize(model, states=states).lqr(costs, 0.1).K
    wanted = dict(zip(("surge", "sway", "yaw_rate"), WANTED.values(), strict=True))

    def law(s: Any) -> Any:
        errors = [s[x] - s[wanted[x]] if x in wanted else s[x] for x in states]
        return _feedback(model, gains, errors)

    return law


def prepare_pendulum(mechanism: ax.Mechanism) -> None:
    """Add the attitude and the speeds of the body, and those wanted."""
    _rates(mechanism, "yaw", "pitch", "pitch_rate", "yaw_rate", "surge")
    _wanted(mechanism, WANTED["ahead"], WANTED["turn"])


def balance_pendulum(model: ax.Model) -> Any:
    """Lean into the slope, by less the more it stands across, and keep the wanted speeds."""
    states = ("pitch", "pitch_rate", "surge", "yaw_rate")
    level = ax.linearize(model, states=states, parameters={"slope": 0.0})
    gains = level.lqr({"pitch": 20, "surge": 4, "yaw_rate": 2}, 1.0).K

    def law(s: Any) -> Any:
        rise = np.sin(s["slope"]) * np.cos(s["yaw"])
        torque = (s["M"] + 2 * s["m"]) * s["g"] * s["r"] * rise  # of both wheels, to stand still
        lean = torque / (s["M"] * s["g"] * s["h"])
        errors = [
            s["pitch"] - lean,
            s["pitch_rate"],
            s["surge"] - s[WANTED["ahead"]],
            s["yaw_rate"] - s[WANTED["turn"]],
        ]
        made = _feedback(model, gains, errors)
        return {name: value + torque / 2 for name, value in made.items()}

    return law


def _feedback(model: ax.Model, gains: Any, errors: Sequence[Any]) -> dict[str, Any]:
    return {
        name: -sum(gain * error for gain, error in zip(row, errors, strict=True))
        for name, row in zip(model.inputs, gains.tolist(), strict=True)
    }


LIVE = {
    "ballbot": Live(
        start={"body.roll": 0.1},
        prepare=prepare_ballbot,
        law=balance_ballbot,
        signals=("body.roll", "body.pitch", "surge", "sway"),
        keys=WANTED,
    ),
    "pendulum_on_slope": Live(
        prepare=prepare_pendulum,
        law=balance_pendulum,
        signals=("pitch", "surge", "yaw_rate"),
        keys={axis: WANTED[axis] for axis in ("ahead", "turn")},
    ),
    "rolling_disk": Live(
        start={"base.wy": 4.0, "base.wz": 0.6, "base.wx": 0.3}, signals=("c.vx", "c.vy", "c.vz")
    ),
    "chaplygin_sleigh": Live(start={"v": 0.8, "omega": 1.5}),
    "snakeboard": Live(start={"v": 0.4}),
}
