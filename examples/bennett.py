"""Bennett's linkage: by the count of its degrees of freedom it is rigid, and yet it moves.

The loop of four hinges in space adds five constraint rows on three speeds. Only two of them are
independent, everywhere along the motion. Axode leaves the other three out and reports which
constraint forces are indeterminate.
"""

from __future__ import annotations

import numpy as np

import axode as ax

ALPHA, BETA = np.radians(60.0), np.radians(30.0)  # twists of neighbouring links
A = 1.0  # their lengths [m]: a / sin(alpha) is the same for both
B = A * np.sin(BETA) / np.sin(ALPHA)
RATIO = np.sin((BETA + ALPHA) / 2) / np.sin((BETA - ALPHA) / 2)


def linkage() -> ax.Mechanism:
    """Three moving links; the fourth is the ground."""
    machine = ax.Mechanism("Bennett")
    parent, at, turned = machine.ground, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    for k, (length, twist) in enumerate(((A, ALPHA), (B, BETA), (A, ALPHA)), start=1):
        link = machine.add_body(
            f"link{k}", mass=1.0, com=(length / 2, 0, 0), inertia=(0.01, 0.1, 0.1)
        )
        machine.add_joint(
            f"j{k}", ax.Revolute("z"), parent=parent, child=link, at=at, rotation=turned
        )
        parent, at, turned = link, (length, 0.0, 0.0), (twist, 0.0, 0.0)
    machine.add_loop(
        "j4",
        ax.Revolute("z"),
        parent=parent,
        child=machine.ground,
        at=at,
        rotation=turned,
        child_at=(-B, 0, 0),
        child_rotation=(-BETA, 0, 0),
    )
    machine.set_home(j1=1.0, j2=2 * np.arctan(RATIO / np.tan(0.5)), j3=-1.0)
    return machine


def main() -> None:
    equations = linkage().derive()
    print(equations)
    run = ax.simulate(equations.compile(), 1.0, start={"j1.rate": 0.5})
    product = np.tan(run["j1"] / 2) * np.tan(run["j2"] / 2)
    print(f"\nj1 moves by {np.ptp(run['j1']):.2f} rad")
    print(f"tan(j1/2) tan(j2/2) stays {product[-1]:.9f},")
    print(f"the closed form says {RATIO:.9f}; energy is kept to {run.energy_error:.0e}")


if __name__ == "__main__":
    main()
