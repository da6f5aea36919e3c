"""A wheeled robot and a parallel robot, from description to numbers and a picture.

Derives both, prints what they can do, shows that direct and inverse dynamics undo each other, and
lets the wheeled one balance and drive a figure of eight. Leaves numbers and a picture in out/.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

import axode as ax

OUT = Path("out")


def balancer() -> ax.Mechanism:
    """A body on two driven wheels, free in space: only the wheels hold it up."""
    bot = ax.Mechanism("balancer")
    pole = bot.add_body("pole", mass=8.0, com=(0, 0, 0.4), inertia=(0.5, 0.4, 0.15))
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child=pole)
    for side, y in (("left", 0.2), ("right", -0.2)):
        bot.add_wheel(side, ax.Rolling(radius=0.1), on=pole, at=(0, y, 0), mass=0.5, motor=True)
    return bot


def flight_simulator(legs: int = 6) -> ax.Mechanism:
    """A platform on legs that lengthen: universal joint, slider, spherical joint (6-UPS)."""
    robot = ax.Mechanism("flight simulator")
    platform = robot.add_body("platform", mass=12.0, inertia=(0.9, 0.8, 1.5))
    robot.add_joint("platform", ax.Floating(), parent=robot.ground, child=platform)
    for i in range(legs):
        pair, side = divmod(i, 2)
        base_angle = 2 * math.pi * pair / 3 + (0.2 if side else -0.2)
        tip_angle = 2 * math.pi * pair / 3 + (0.85 if side else -0.85)
        base = np.array([math.cos(base_angle), math.sin(base_angle), 0.0])
        tip = 0.5 * np.array([math.cos(tip_angle), math.sin(tip_angle), 0.0])
        leg = tip + np.array([0, 0, 1.0]) - base
        length = float(np.linalg.norm(leg))
        along = leg / length
        across = np.cross([0, 0, 1.0], along)
        across /= np.linalg.norm(across)
        turn = np.column_stack([across, np.cross(along, across), along])
        lower = robot.add_body(f"lower{i}", mass=1.6, com=(0, 0, 0.2), inertia=(0.06, 0.06, 0.002))
        upper = robot.add_body(f"upper{i}", mass=1.4, com=(0, 0, -0.2), inertia=(0.07, 0.07, 0.002))
        robot.add_joint(f"hip{i}", ax.Universal("x", "y"), parent=robot.ground, child=lower,
                        at=base, rotation=turn)  # fmt: skip
        robot.add_joint(f"leg{i}", ax.Prismatic("z"), parent=lower, child=upper, at=(0, 0, length))
        robot.add_loop(f"ball{i}", ax.Spherical(), parent=upper, child=platform, child_at=tip)
        robot.add_motor(f"leg{i}", f"leg{i}")
    robot.home({"platform.z": 1.0})
    return robot


def round_trip(mechanism: ax.Mechanism, seed: int = 1) -> dict[str, object]:
    """Direct dynamics for random inputs, then inverse dynamics back to them."""
    equations = mechanism.derive()
    print(equations)
    model = equations.compile()
    rng = np.random.default_rng(seed)
    q, nu = model.home, 0.3 * rng.normal(size=len(model.independent))
    u = rng.normal(size=len(model.inputs))
    nu_dot = model.forward_dynamics(q, nu, u)
    back = model.inverse_dynamics(q, nu, nu_dot)
    error = float(np.abs(back - u).max())
    print("  accelerations", ", ".join(f"{n} {x:+.4f}" for n, x in
                                       zip(model.independent, nu_dot, strict=True)))  # fmt: skip
    print(f"  inverse(direct(u)) - u: {error:.1e}\n")
    return {"name": model.name, "nu": nu.tolist(), "u": u.tolist(), "nu_dot": nu_dot.tolist(),
            "round_trip_error": error, "report": str(equations)}  # fmt: skip


def drive_an_eight(bot: ax.Mechanism) -> ax.Trajectory:
    """Stand up from a lean of 0.2 rad and drive a figure of eight at 0.6 m/s."""

    def balance(s: Any) -> dict[str, Any]:
        forward = 60 * s["pitch"] + 15 * s["pitch_rate"] + 15 * (s["surge"] - 0.6)
        turn = 2.0 * (1.51 * np.cos(0.628 * s.t) - s["yaw_rate"])
        return {"left.torque": forward - turn, "right.torque": forward + turn}

    return ax.simulate(bot.derive().compile(), 20.0, start={"pitch": 0.2, "yaw": -math.pi / 2},
                       input=balance)  # fmt: skip


def picture(run: ax.Trajectory, path: Path) -> None:
    """The way from above; lean, torques and the energy balance over time."""
    from matplotlib.figure import Figure

    left, right = Figure(figsize=(9.6, 4.7)).subfigures(1, 2, width_ratios=(1.3, 1))
    run.plot("path", figure=left)
    run.plot("pitch", "torque", ["kinetic", "supplied"], figure=right, save=path)


def main() -> None:
    """Run both robots."""
    OUT.mkdir(exist_ok=True)
    results = [round_trip(balancer()), round_trip(flight_simulator())]
    (OUT / "demo.json").write_text(json.dumps(results, indent=2))
    run = drive_an_eight(balancer())
    run.save(OUT / "balancer.npz")
    picture(run, OUT / "balancer.png")
    print(f"{run}: largest error of the energy balance {run.energy_error:.1e} of its energy,")
    print(f"  wheels touch the ground within {run['residual'].max():.1e} m.")
    print(f"Numbers and a picture are in {OUT}/: demo.json, balancer.npz, balancer.png.")


if __name__ == "__main__":
    main()
