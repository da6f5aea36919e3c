"""A bicycle that balances by itself: between which speeds, and how the modes change.

The numbers are those of the benchmark of Meijaard, Papadopoulos, Ruina and Schwab (2007). Both
wheels lean with what carries them, and nothing was linearized to derive the model.
"""

from __future__ import annotations

import numpy as np

import axode as ax

WHEELBASE, TRAIL, TILT = 1.02, 0.08, np.pi / 10


def bicycle() -> ax.Mechanism:
    """Frame with rider, fork, two wheels; the frame's origin is the rear wheel's centre."""
    bike = ax.Mechanism("bicycle")
    frame = bike.add_body(
        "frame",
        mass=85.0,
        com=(0.3, 0, 0.6),
        inertia=[[9.2, 0, -2.4], [0, 11.0, 0], [-2.4, 0, 2.8]],
    )
    fork = bike.add_body(
        "fork",
        mass=4.0,
        com=(-0.2, 0, 0.7),
        inertia=[[0.05892, 0, 0.00756], [0, 0.06, 0], [0.00756, 0, 0.00708]],
    )
    bike.add_joint("base", ax.Floating(), parent=bike.ground, child=frame)
    # the fork's origin is where the steering axis meets the ground, ahead of the front contact
    axis = (-np.sin(TILT), 0, np.cos(TILT))
    bike.add_joint(
        "steer", ax.Revolute(axis), parent=frame, child=fork, at=(WHEELBASE + TRAIL, 0, -0.3)
    )
    bike.add_wheel("rear", ax.Rolling(0.3), on=frame, mass=2.0, inertia=(0.0603, 0.12, 0.0603))
    bike.add_wheel(
        "front",
        ax.Rolling(0.35),
        on=fork,
        at=(-TRAIL, 0, 0.35),
        mass=3.0,
        inertia=(0.1405, 0.28, 0.1405),
    )
    return bike


def modes(model: ax.Model, speed: float) -> np.ndarray:
    """Eigenvalues of riding straight on: lean and steer go their way whatever place and heading."""
    states = ["roll", "steer", "roll_rate", "steer.rate"]
    return ax.linearize(model, {"rear.rate": speed / 0.3}, states=states).poles


def main() -> None:
    equations = bicycle().derive(independent=["base.wx", "steer.rate", "rear.rate"])
    print(equations)
    model = equations.compile()
    print("\n  m/s  eigenvalues [1/s]")
    for speed in (3.0, 4.0, 4.3, 5.0, 6.0, 7.0):
        found = modes(model, speed)
        verdict = "stable" if found.real.max() < 0 else "falls"
        print(f"  {speed:3.1f}  {np.array2string(found, precision=3)}  {verdict}")


if __name__ == "__main__":
    main()
