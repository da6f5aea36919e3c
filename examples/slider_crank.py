"""A slider-crank: the torque that turns it at a constant rate, computed in two ways.

Inverse dynamics along a motion and the constraint force of the same prescribed motion must agree.
"""

from __future__ import annotations

import numpy as np

import axode as ax

CRANK, ROD = 0.1, 0.4  # [m]


def slider_crank(*, motor: bool) -> ax.Mechanism:
    """A crank, a rod and a piston, driven by a motor or prescribed to turn at 30 rad/s."""
    machine = ax.Mechanism("slider crank")
    crank = machine.add_body("crank", mass=1.0, com=(CRANK / 2, 0, 0), inertia=(1e-4, 1e-3, 1e-3))
    rod = machine.add_body("rod", mass=0.5, com=(ROD / 2, 0, 0), inertia=(1e-4, 5e-3, 5e-3))
    piston = machine.add_body("piston", mass=2.0, inertia=(1e-3, 1e-3, 1e-3))
    machine.add_joint("crank", ax.Revolute("y"), parent=machine.ground, child=crank)
    machine.add_joint("rod", ax.Revolute("y"), parent=crank, child=rod, at=(CRANK, 0, 0))
    machine.add_joint("slide", ax.Prismatic("x"), parent=machine.ground, child=piston)
    machine.add_loop("pin", ax.Revolute("y"), parent=rod, child=piston, at=(ROD, 0, 0))
    machine.set_home(crank=0.5, rod=-0.6, slide=0.45)  # in front of the crank, not behind it
    if motor:
        machine.add_motor("motor", "crank")
    else:
        machine.prescribe("crank", lambda t: 0.5 + 30 * t)
    return machine


def configurations(angle: np.ndarray) -> np.ndarray:
    """All coordinates for angles of the crank, in closed form."""
    lean = np.arcsin(CRANK / ROD * np.sin(angle))
    return np.stack([angle, -angle - lean, CRANK * np.cos(angle) + ROD * np.cos(lean)], axis=-1)


def main() -> None:
    driven = slider_crank(motor=True).derive()
    print(driven)
    model = driven.compile()
    t = np.linspace(0, 2 * np.pi / 30, 13)
    q = configurations(0.5 + 30 * t)
    torque = model.inverse_dynamics(q, np.full((t.size, 1), 30.0), np.zeros((t.size, 1)))[:, 0]
    led = slider_crank(motor=False).derive().compile()
    force = led.multipliers(q, np.zeros((t.size, 0)), t=t)[:, led.rows.index("crank.prescribed")]
    print("\n  angle [rad]  torque [N m]  the clock's")
    for angle, one, other in zip(q[:, 0], torque, force, strict=True):
        print(f"  {angle:11.3f}  {one:12.4f}  {other:11.4f}")
    print(f"\nlargest difference {np.abs(torque - force).max():.1e} N m")


if __name__ == "__main__":
    main()
