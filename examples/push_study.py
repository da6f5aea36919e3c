"""How hard a push can a balancing robot take? A study of robots that differ from the drawing.

A Latin hypercube draws mass, height of the mass centre, inertia and wheel radius of every robot,
and its pitch rate after a push. All are balanced with the gains of the robot on the drawing. The
motion is ideal rolling; what it asks of the ground is found on the way: the friction that the
wheels need, and the least load on them.

    python examples/push_study.py --robots 20000 --plots out
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import axode as ax

ROBOTS = 500
STANDING = 0.02  # [rad] of pitch at the end
FALLEN = 1.2  # [rad]
FLOOR = 0.5  # coefficient of friction
SAFE = 0.99  # part of the robots
HARDEST = 5.0  # [rad/s] after the push


def balancer() -> ax.Mechanism:
    """A pole on two wheels, each with a motor of 2 N m."""
    mass, height = ax.Parameter("mass", 8.0), ax.Parameter("height", 0.4)
    inertia, radius = ax.Parameter("inertia", 0.4), ax.Parameter("radius", 0.1)
    bot = ax.Mechanism("balancer")
    pole = bot.add_body("pole", mass=mass, com=(0, 0, height), inertia=(0.6, inertia, 0.3))
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child=pole)
    for side, y in (("left", 0.2), ("right", -0.2)):
        bot.add_wheel(
            side, ax.Rolling(radius), on=pole, at=(0, y, 0), mass=0.5, motor=ax.Motor(limit=2.0)
        )
    return bot


def study(robots: int) -> ax.Sweep:
    """Push many robots, each different."""
    model = balancer().derive().compile()
    upright = ax.linearize(model, states=["pitch", "pitch_rate", "surge", "yaw_rate"])
    balance = upright.lqr({"pitch": 10.0, "surge": 1.0, "yaw_rate": 1.0}, R=0.1)
    return ax.sweep(
        model,
        4.0,
        start={"pitch_rate": ax.Uniform(0.0, HARDEST)},
        parameters={
            "mass": ax.Normal(8.0, 0.6),
            "height": ax.Uniform(0.35, 0.45),
            "inertia": ax.Uniform(0.3, 0.5),
            "radius": ax.Uniform(0.09, 0.11),
        },
        samples=robots,
        sampler="latin_hypercube",
        input=balance,
        step=2e-3,
        outputs={
            "end": ("last", "pitch"),
            "lean": ("largest", "pitch"),
            "friction": ("max", "left.share"),  # friction is one: the coefficient needed
            "load": ("min", "left.load"),
        },
        progress=False,
    )


def hardest_push(push: np.ndarray, good: np.ndarray) -> float:
    """Largest push for which nearly all robots are good, of those pushed no harder."""
    order = np.argsort(push)
    part = np.cumsum(good[order]) / np.arange(1, push.size + 1)
    return float(push[order][part >= SAFE].max(initial=0.0))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--robots", type=int, default=ROBOTS)
    parser.add_argument("--plots", type=Path, help="folder for pictures")
    options, _ = parser.parse_known_args()
    robots, folder = options.robots, options.plots
    made = study(robots)
    push = made.samples["pitch_rate"]
    stands = (np.abs(made["end"]) < STANDING) & (made["lean"] < FALLEN)
    grips = stands & (made["friction"] < FLOOR) & (made["load"] > 0)
    print(made)
    print(f"{stands.mean():.0%} of {robots} robots stand after pushes of up to {HARDEST:g} rad/s")
    print(f"{SAFE:.0%} of the robots stand after pushes of up to {hardest_push(push, stands):.1f}")
    print(
        f"and without slipping, on a friction of {FLOOR:g}, {hardest_push(push, grips):.1f} rad/s"
    )
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
        made.plot("friction", "load", "pitch_rate", kind="bands", save=folder / "ground.png")
        made.plot("friction", "load", "pitch_rate", "height", save=folder / "pairs.png")
        made.plot("lean", "pitch_rate", "height", kind="heatmap", save=folder / "lean.png")


if __name__ == "__main__":
    main()
