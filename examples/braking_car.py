"""A car brakes hard: with all wheels locked it slides straight, with the rear ones it spins.

The lengths of the slides are compared with v^2 / (2 mu g). Pictures go to out/.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import axode as ax

OUT = Path("out")
RADIUS, FRONT, REAR, HALF = 0.3, 1.2, 1.4, 0.75  # [m]: wheels, axles from the mass centre, track
MU, SPEED, STIFFNESS = 0.8, 15.0, 40_000.0  # friction; [m/s]; [N/m] of springs
WHEELS = {"fl": (FRONT, HALF), "fr": (FRONT, -HALF), "rl": (-REAR, HALF), "rr": (-REAR, -HALF)}


def car(locked: tuple[str, ...]) -> ax.Mechanism:
    """Build a car whose wheels spring on struts; a locked wheel slides as a ball would."""
    made = ax.Mechanism("car")
    shape = ax.Box((4.2, 1.6, 0.7), at=(0.1, 0, 0.3))
    body = made.add_body("body", mass=1200.0, inertia=(400.0, 1600.0, 1800.0), shape=shape)
    made.add_joint("car", ax.Floating(), parent=made.ground, child=body)
    for name, (x, y) in WHEELS.items():
        tyre = ax.Cylinder(RADIUS, 0.2, axis="y") if name in locked else None
        hub = made.add_body(f"hub_{name}", mass=15.0, inertia=(0.1, 0.1, 0.1), shape=tyre)
        strut = ax.Prismatic("z")
        made.add_joint(f"strut_{name}", strut, parent=body, child=hub, at=(x, y, 0))
        load = 1200.0 * 9.81 * (REAR if x > 0 else FRONT) / (FRONT + REAR) / 2
        rest = -load / STIFFNESS  # the springs carry the body at home
        made.add_spring(f"spring_{name}", f"strut_{name}", stiffness=STIFFNESS, rest=rest)
        made.add_damper(f"damper_{name}", f"strut_{name}", coefficient=4000.0)
        if name in locked:
            made.add_contact(name, ax.Ball(RADIUS, friction=MU), body=hub)
        else:
            made.add_wheel(name, ax.Rolling(RADIUS, friction=MU), on=hub, mass=15.0)
    made.set_home({"car.z": RADIUS})
    return made


def brake(locked: tuple[str, ...], seconds: float) -> ax.Trajectory:
    """Brake from a speed, with a little yaw as from a bump."""
    start = {"car.vx": SPEED, "car.wz": 0.05}
    start |= {f"{name}.rate": SPEED / RADIUS for name in WHEELS if name not in locked}
    model = car(locked).derive().compile()
    return ax.simulate(model, seconds, start=start, contacts="steps", step=1e-3)


def main() -> None:
    """Brake with four wheels and with two."""
    OUT.mkdir(exist_ok=True)
    straight = brake(("fl", "fr", "rl", "rr"), 2.5)
    ideal = SPEED**2 / (2 * MU * 9.81)
    path = float(np.hypot(straight["car.x"][-1], straight["car.y"][-1]))
    yaw = float(straight["yaw"][-1])
    print(f"all locked: {path:.2f} m, {np.degrees(yaw):+.0f} degrees; v^2/(2 mu g): {ideal:.2f} m")
    spun = brake(("rl", "rr"), 3.5)
    turned = float(np.degrees(np.unwrap(spun["yaw"])[-1]))
    print(f"rear locked: turned by {turned:.0f} degrees, energy kept to {spun.energy_error:.0e}")
    looks: dict[str, Any] = {"size": (480, 320), "elevation": 1.1, "azimuth": -1.571}
    spun.animate(OUT / "braking_car.gif", rate=12.5, follow=False, **looks)


if __name__ == "__main__":
    main()
