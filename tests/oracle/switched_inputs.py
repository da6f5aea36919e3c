"""Laws that switch by time or by state, against the same motion in pieces that do not switch."""

from __future__ import annotations

from typing import Any

import numpy as np

import axode as ax
from axode.symbolic.equations import Equations

Rng = np.random.Generator
DURATION, SPEED, FORCE = 0.2, 0.3, 2.0  # [s]; of starts and inputs
SAME = 1e-6  # of the largest coordinate or speed
FINE: dict[str, Any] = {"rtol": 1e-12, "atol": 1e-14}  # some motions are sensitive


def switched_fault(equations: Equations, rng: Rng) -> str:
    """Return by how much the run of a law that switches misses its pieces; empty if it does not.

    A law of time switches at a time; its pieces are two runs with constant inputs. A law of state
    switches at a coordinate, which an event locates; speeds are continuous there, so that it does
    not chatter.
    """
    model = equations.compile()
    before, after = rng.uniform(-FORCE, FORCE, (2, len(model.inputs)))
    q = ax.assemble(model).q
    start = (q, rng.uniform(-SPEED, SPEED, len(model.independent)))
    at = float(rng.uniform(0.3, 0.7)) * DURATION
    place = int(np.argmax(np.abs(rng.normal(size=len(q)))))
    by_time = bool(rng.random() < 0.5)
    try:
        first = ax.simulate(model, at, start=start, input=before, **FINE)
        if by_time:
            whole = run(model, start, lambda s: s.t < at, before, after)
        else:
            name = model.coordinates[place]
            level, rate = first[name][-1], first[name][-1] - first[name][-2]
            if abs(rate) < 1e-4 * abs(at) or crosses(first[name][:-1], level):
                return ""
            ahead = (lambda s: s[name] < level) if rate > 0 else (lambda s: s[name] > level)
            whole = run(model, start, ahead, before, after)
        last = ax.simulate(model, DURATION - at, start=first, input=after, **FINE)
        if not by_time and crosses(last[name][1:], level):
            return ""
    except ax.SimulationFailed:
        return ""  # a singular configuration is near: other draws judge that
    names = (*model.coordinates, *model.independent)
    size = max(1.0, *(abs(last.final[name]) for name in names))
    worst = max(names, key=lambda name: abs(whole.final[name] - last.final[name]))
    error = abs(whole.final[worst] - last.final[worst]) / size
    kind = "time" if by_time else "state"
    return f"a law that switches by {kind}: {worst} off by {error:.1e}" if error > SAME else ""


def run(model: ax.Model, start: Any, ahead: Any, before: Any, after: Any) -> ax.Trajectory:
    """Simulate with inputs that change where a comparison does."""

    def law(s: Any) -> list[Any]:
        return [np.where(ahead(s), x, y) for x, y in zip(before, after, strict=True)]

    return ax.simulate(model, DURATION, start=start, input=law, **FINE)


def crosses(values: Any, level: float) -> bool:
    """Return whether values are on both sides of a level."""
    return bool((values < level).any() and (values > level).any())
