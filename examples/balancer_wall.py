"""A balancer runs against a wall, bounces off and keeps its balance.

The wheels slip when they strike; the law of the balancer comes from the linear model of its
contacts' modes. Pictures go to out/.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import axode as ax

OUT = Path("out")
RADIUS, WALL = 0.1, 0.8  # [m]
AT = (0.025, 0.0, 0.15)  # [m] the middle of the wall that is drawn
STATES = ["base.x", "base.pitch", "base.yaw", "base.wy", "base.wz", "base.vx"]


def balancer() -> ax.Mechanism:
    """Build a pole on two wheels that roll on the ground and may strike a wall."""
    bot = ax.Mechanism("balancer")
    shape = ax.Box((0.12, 0.3, 0.6), at=(0, 0, 0.35))
    pole = bot.add_body("pole", mass=8.0, com=(0, 0, 0.3), inertia=(0.5, 0.4, 0.15), shape=shape)
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child=pole)
    bricks = bot.add_body("wall", mass=1.0, com=AT, shape=ax.Box((0.05, 1.0, 0.3), at=AT))
    bot.add_joint("wall", ax.Fixed(), parent=bot.ground, child=bricks, at=(WALL, 0, 0))
    wall = ax.Plane(normal=(-1, 0, 0), point=(WALL, 0, 0))
    for side, y in (("left", 0.2), ("right", -0.2)):
        wheel = ax.Rolling(RADIUS, friction=0.7)
        bot.add_wheel(side, wheel, on=pole, at=(0, y, 0), mass=0.5, motor=True)
        rim = ax.Point(RADIUS, friction=0.3, restitution=0.4)
        bot.add_contact(f"{side}_bumper", rim, body=pole, at=(0, y, 0), ground=wall)
    bot.set_home({"base.z": RADIUS})
    return bot


def main() -> None:
    """Let it go towards the wall at 1.5 m/s; the law turns it back."""
    OUT.mkdir(exist_ok=True)
    model = balancer().derive().compile()
    upright = ax.linearize(model, states=STATES)
    print("linear model with", ", ".join(f"{name} {mode}" for name, mode in upright.modes.items()))
    law = upright.lqr(np.diag([0.5, 20.0, 4.0, 1.0, 1.0, 4.0]), 0.2 * np.eye(2))
    start = {"base.vx": 1.5, "left.rate": 1.5 / RADIUS, "right.rate": 1.5 / RADIUS}
    run = ax.simulate(model, 5.0, start=start, input=law, rtol=1e-7)
    strikes = [event for event in run.contact_events if "bumper" in event["contact"]]
    print(f"strikes the wall at {strikes[0]['time']:.3f} s with {strikes[0]['speed']:.3f} m/s")
    lean = np.degrees(run["base.pitch"])
    print(f"leans by {np.abs(lean).max():.1f} degrees at most, {abs(lean[-1]):.2f} at the end")
    run.plot_modes(save=OUT / "balancer_wall_modes.png")
    run.animate(OUT / "balancer_wall.gif", rate=20, size=(480, 320), forces=True, follow=False)


if __name__ == "__main__":
    main()
