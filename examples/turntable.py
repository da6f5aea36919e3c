"""A ball on a turntable: it does not fly off, it runs in circles at 2/7 of the table's rate.

The ground of a contact may be any body. Here it is a table whose angle is prescribed; the
torque that keeps it turning is an output.
"""

from __future__ import annotations

import numpy as np

import axode as ax

RATE, RADIUS = 2.0, 0.1  # of the table [rad/s], of the ball [m]


def turntable() -> ax.Mechanism:
    """A table led by time, a free ball that rolls on it."""
    machine = ax.Mechanism("turntable")
    table = machine.add_body("table", mass=10.0, inertia=(1.0, 1.0, 2.0))
    ball = machine.add_body("ball", mass=1.0, shape=ax.Sphere(RADIUS))
    machine.add_joint("spin", ax.Revolute("z"), parent=machine.ground, child=table)
    machine.add_joint("free", ax.Floating(), parent=machine.ground, child=ball)
    machine.add_contact("roll", ax.Ball(RADIUS), body=ball, ground=table)
    machine.prescribe("spin", lambda t: RATE * t)
    machine.set_home({"free.x": 0.5, "free.z": RADIUS})
    return machine


def main() -> None:
    equations = turntable().derive()
    print(equations)
    model = equations.compile()
    period = 2 * np.pi / (2 / 7 * RATE)
    run = ax.simulate(model, period, start={"free.x": 0.5, "free.vy": 0.7})
    x, y = run["free.x"], run["free.y"]
    centre = (x.max() + x.min()) / 2
    print(f"\ncircle about ({centre:.4f}, 0) m, radius {np.ptp(x) / 2:.4f} m")
    print(f"after one turn in {period:.3f} s it is {np.hypot(x[-1] - x[0], y[-1]):.1e} m from home")


if __name__ == "__main__":
    main()
