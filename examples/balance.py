"""Balance a two-wheeled robot: linearize upright, let LQR find the gains, simulate the whole robot.

The states are measures of the robot; where it stands and how far its wheels have turned do not
matter to its balance, and are left out.
"""

from __future__ import annotations

import numpy as np

import axode as ax

SETTLED = 0.01  # [rad]


def balancer() -> ax.Mechanism:
    """A pole on two wheels, each with a motor of 3 N m."""
    bot = ax.Mechanism("balancer")
    pole = bot.add_body("pole", mass=8.0, com=(0, 0, 0.4), inertia=(0.5, 0.4, 0.15))
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child=pole)
    for side, y in (("left", 0.2), ("right", -0.2)):
        bot.add_wheel(
            side, ax.Rolling(radius=0.1), on=pole, at=(0, y, 0), mass=0.5, motor=ax.Motor(limit=3.0)
        )
    return bot


def main() -> None:
    model = balancer().derive().compile()

    upright = ax.linearize(model, {"pitch": 0.0})
    print(upright.controllable)

    upright = ax.linearize(model, states=["pitch", "pitch_rate", "surge", "yaw", "yaw_rate"])
    print(upright)
    balance = upright.lqr({"pitch": 10.0, "surge": 1.0, "yaw": 1.0}, R=0.1)
    print(balance)

    run = ax.simulate(model, 6.0, start={"pitch": 0.3, "yaw": 0.5}, input=balance)
    late = run.time[np.abs(run["base.pitch"]) > SETTLED].max()
    pitch, surge = run.final["base.pitch"], run.final["base.surge"]
    print(
        f"from a lean of 0.3 rad: within {SETTLED} rad after {late:.2f} s, "
        f"at the end {pitch:.1e} rad, {surge:.1e} m/s"
    )

    drive = balance.at({"surge": 0.6, "yaw": np.pi / 2})
    run = ax.simulate(model, 8.0, input=drive)
    print(
        f"asked for 0.6 m/s to the left: {run.final['base.surge']:.4f} m/s, "
        f"heading {run.final['base.yaw']:.4f} rad"
    )

    leans = np.linspace(0.1, 1.2, 23)
    many = ax.simulate(model, 6.0, start={"pitch": leans}, input=balance)
    up = many["base.qw"][:, -1] ** 2 + many["base.qz"][:, -1] ** 2 > 0.99  # head over wheels
    kept = (np.abs(many["base.pitch"][:, -1]) < SETTLED) & up
    print(f"with motors of 3 N m it recovers from leans up to {leans[kept].max():.2f} rad")


if __name__ == "__main__":
    main()
