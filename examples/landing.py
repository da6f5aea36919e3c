"""A robot on two legs with wheels drops, lands on its wheels, and stands.

Its knees are held by springs and dampers between stops, its wheels by a law that balances. Pictures
go to out/.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import axode as ax

OUT = Path("out")
RADIUS, LEG, HEIGHT = 0.1, 0.25, 0.35  # [m]: wheels, leg at rest, how high the drop begins
SIDES = {"left": 0.2, "right": -0.2}


def robot() -> ax.Mechanism:
    """Build a trunk on two legs that telescope, each with a driven wheel."""
    made = ax.Mechanism("leggy")
    shape = ax.Box((0.2, 0.3, 0.3), at=(0, 0, 0.15))
    trunk = made.add_body("trunk", mass=10.0, com=(0, 0, 0.12), shape=shape)
    made.add_joint("base", ax.Floating(), parent=made.ground, child=trunk)
    for side, y in SIDES.items():
        bar = ax.Box((0.05, 0.03, LEG + 0.2), at=(0, 0, LEG / 2 + 0.1))
        shank = made.add_body(f"{side}_shank", mass=0.8, com=(0, 0, LEG / 2), shape=bar)
        knee = f"{side}_knee"
        made.add_joint(
            knee,
            ax.Prismatic("z"),
            parent=trunk,
            child=shank,
            at=(0, y, -LEG),
            stops=(-0.02, 0.18),
            restitution=0.1,
        )
        # the spring carries half of the trunk where the leg has its length
        made.add_spring(f"{knee}_spring", knee, stiffness=1500.0, rest=-10.0 * 9.81 / 2 / 1500.0)
        made.add_damper(f"{knee}_damper", knee, coefficient=90.0)
        wheel = ax.Rolling(RADIUS, friction=0.8, restitution=0.1)
        made.add_wheel(side, wheel, on=shank, mass=0.6, motor=True)
    made.set_home({"base.z": RADIUS + LEG})
    return made


def main() -> None:
    """Drop it askew, moving ahead."""
    OUT.mkdir(exist_ok=True)
    model = robot().derive().compile()
    standing = ax.linearize(robot_upright(), states=["base.pitch", "base.wy", "base.wz", "base.vx"])
    law = standing.lqr(np.diag([60.0, 2.0, 2.0, 2.0]), 0.3 * np.eye(2))
    start: dict[str, Any] = {"base.z": HEIGHT + RADIUS + LEG, "base.vx": 0.5, "base.roll": 0.1}
    run = ax.simulate(model, 3.0, start=start, input=law, contacts="steps", step=5e-4)
    deepest = max(float(run[f"{side}_knee"].max()) for side in SIDES)
    print(f"lands from {HEIGHT} m; knees give way by {deepest:.3f} m of 0.180 m")
    final = run.final
    print(f"stands at {final['base.z']:.3f} m, upright to {abs(final['base.pitch']):.1e} rad")
    print(f"energy kept to {run.energy_error:.0e} in steps of 0.5 ms")
    run.animate(OUT / "landing.gif", rate=25, size=(480, 320), forces=True)


def robot_upright() -> ax.Model:
    """The same robot with ideal wheels and legs that are held, for its law."""
    made = robot().ideal()
    for side in SIDES:
        made.prescribe(f"{side}_knee", 0.0)
    return made.derive().compile()


if __name__ == "__main__":
    main()
