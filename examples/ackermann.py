"""A car whose front wheels follow prescribed steering angles, each its own.

If all axles meet in one point, the lateral constraint of the fourth wheel is redundant and left
out. If both wheels have the same angle, the constraints conflict, and the report names the wheels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import axode as ax

LENGTH, TRACK = 2.5, 1.5  # between axles, between wheels [m]


def car(curvature: Callable[[Any], Any], *, alike: bool = False) -> ax.Mechanism:
    """A planar car that follows a path of the given curvature [1/m] as a function of time."""
    machine = ax.Mechanism("car")
    body = machine.add_body("body", mass=1000.0, com=(1.2, 0, 0.3), inertia=(300, 1000, 1200))
    machine.add_joint("base", ax.Planar(), parent=machine.ground, child=body, at=(0, 0, 0.3))
    for name, side in (("left", 1), ("right", -1)):
        y = side * TRACK / 2
        offset = 0.0 if alike else y
        machine.add_wheel(
            f"rear_{name}", ax.Rolling(0.3), on=body, at=(0, y, 0), mass=15.0, motor=True
        )
        knuckle = machine.add_body(f"knuckle_{name}", mass=10.0, inertia=(0.1, 0.1, 0.1))
        machine.add_joint(
            f"steer_{name}", ax.Revolute("z"), parent=body, child=knuckle, at=(LENGTH, y, 0)
        )
        machine.add_wheel(f"front_{name}", ax.Rolling(0.3), on=knuckle, mass=15.0)
        machine.prescribe(
            f"steer_{name}",
            lambda t, d=offset: np.arctan(LENGTH * curvature(t) / (1 - d * curvature(t))),
        )
    return machine


def main() -> None:
    def slalom(t: Any) -> Any:
        return 0.1 * np.sin(t)

    equations = car(slalom).derive()
    print(equations)
    run = ax.simulate(equations.compile(), 6.0, start={"base.surge": 5.0})
    curvature = run["base.yaw_rate"] / run["base.surge"]
    print(f"\nlargest error of the curvature: {np.abs(curvature - slalom(run.time)).max():.1e} 1/m")
    print(f"speed between {run['base.surge'].min():.3f} and {run['base.surge'].max():.3f} m/s\n")
    print(car(slalom, alike=True).derive())


if __name__ == "__main__":
    main()
