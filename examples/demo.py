"""The wheeled pendulum Quasimoro of St. Staicu (2011), from description to pictures.

Prints what the mobility analysis finds, shows that direct and inverse dynamics undo each other,
runs the three manoeuvres of the paper and compares them with its figures, and writes a page on
which the robot moves. Everything is left in out/.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import axode as ax
from axode.literature.reproduce import reproduce
from axode.show.report import report

OUT = Path("out")


def round_trip(model: Any) -> float:
    """Forward dynamics of an arbitrary state, then inverse dynamics back; the error of torques."""
    nu, torques = [0.3, -0.2, 0.5], [0.05, -0.02]
    rates = model.forward_dynamics(model.home, nu, torques)
    return float(np.abs(model.inverse_dynamics(model.home, nu, rates) - torques).max())


def weave(s: Any) -> dict[str, Any]:
    """Torques that start it and let it weave, for the page to play."""
    push = 0.25 * np.exp(-s.t) + 0.02 * (0.6 - s["surge"])
    turn = 0.12 * np.cos(0.9 * s.t) - 0.1 * s["psi_dot"]
    return {"M1": push - turn, "M2": push + turn}


def main() -> None:
    """Run it."""
    OUT.mkdir(exist_ok=True)
    equations = ax.gallery.build("wheeled_pendulum").derive()
    print(equations)
    model = equations.compile()
    print(f"inverse(direct(torques)) - torques: {round_trip(model):.1e} N m\n")

    print("The manoeuvres of the paper, 90 s each:")
    made = reproduce("staicu", OUT / "reproduce", report=lambda item: print(f"  {item}"))

    run = ax.simulate(model, 12.0, input=weave)
    run.save(OUT / "wheeled_pendulum.npz")
    run.plot(save=OUT / "wheeled_pendulum.png")
    page = report(equations, OUT / "wheeled_pendulum.html", run=run)
    print(f"\n{run}: energy balance within {run.energy_error:.1e} of its energy.")
    print(
        f"Path: from ({run['x'][0]:.2f}, {run['y'][0]:.2f}) m "
        f"to ({run['x'][-1]:.2f}, {run['y'][-1]:.2f}) m."
    )
    print("\nLook at")
    for file in (made.page, page, OUT / "wheeled_pendulum.png"):
        print(f"  {file}")


if __name__ == "__main__":
    main()
