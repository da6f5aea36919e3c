"""Runs for the tests of logs and of hand-overs to other programs."""

from functools import cache

import axode as ax
from axode.results.trajectory import Trajectory


@cache
def balancer_run() -> Trajectory:
    """A leaning body with an arm on two geared wheels, a spring and a feedback that holds it."""
    bot = ax.Mechanism("balancer")
    gear = ax.Parameter("gear", 8.0)
    pole = bot.add_body("pole", mass=8.0, com=(0.02, 0.01, 0.4), inertia=(0.5, 0.4, 0.15))
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child=pole)
    for side, y in (("left", 0.2), ("right", -0.2)):
        motor = ax.Motor(gear=gear)
        bot.add_wheel(side, ax.Rolling(radius=0.1), on=pole, at=(0, y, 0), mass=0.5, motor=motor)
    arm = bot.add_body("arm 1", mass=0.5, com=(0, 0, -0.2), inertia=(0.01, 0.01, 0.001))
    bot.add_joint("shoulder", ax.Revolute("y"), parent=pole, child=arm, at=(0, 0, 0.5))
    bot.add_spring(
        "band",
        stiffness=3.0,
        rest=0.1,
        parent=pole,
        child=arm,
        at=(0.1, 0, 0.1),
        child_at=(0, 0, -0.3),
    )

    def balance(s):
        forward = 7 * s["pitch"] + 2 * s["pitch_rate"] + 2 * (s["surge"] - 0.6)
        return {"left.torque": forward, "right.torque": forward + 0.02}

    model = bot.derive().compile()
    return ax.simulate(
        model,
        1.0,
        start={"pitch": 0.1, "shoulder": 0.4, "surge": 0.3},
        input=balance,
        parameters={"gear": 9.0},
        save_every=0.02,
    )
