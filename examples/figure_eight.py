"""A balancer stands up from a lean and drives a figure of eight; a picture and a GIF in out/."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

import axode as ax

OUT = Path("out")


def balancer() -> ax.Mechanism:
    """A body on two driven wheels, free in space: only the wheels hold it up."""
    bot = ax.Mechanism("balancer")
    pole = bot.add_body(
        "pole", mass=8.0, com=(0, 0, 0.4), shape=ax.Box((0.16, 0.3, 0.7), at=(0, 0, 0.4))
    )
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child=pole)
    for side, y in (("left", 0.2), ("right", -0.2)):
        bot.add_wheel(side, ax.Rolling(radius=0.1), on=pole, at=(0, y, 0), mass=0.5, motor=True)
    return bot


def drive(s: Any) -> dict[str, Any]:
    """Torques that hold it upright at 0.6 m/s and turn it left, then right."""
    forward = 60 * s["pitch"] + 15 * s["pitch_rate"] + 15 * (s["surge"] - 0.6)
    turn = 2.0 * (1.51 * np.cos(0.628 * s.t) - s["yaw_rate"])
    return {"left.torque": forward - turn, "right.torque": forward + turn}


def main() -> None:
    """Simulate 10 s, twice around."""
    OUT.mkdir(exist_ok=True)
    model = balancer().derive().compile()
    run = ax.simulate(model, 10.0, start={"pitch": 0.2, "yaw": -math.pi / 2}, input=drive)
    run.plot("path", save=OUT / "figure_eight.png")
    run.animate(OUT / "figure_eight.gif", rate=12.5, size=(480, 320), follow=False)
    print(
        f"upright to {abs(run.final['base.pitch']):.1e} rad, energy kept to {run.energy_error:.1e}"
    )
    print(f"see {OUT}/figure_eight.gif and {OUT}/figure_eight.png")


if __name__ == "__main__":
    main()
