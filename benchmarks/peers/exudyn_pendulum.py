"""The wheeled pendulum in Exudyn, whose rolling disc is exact too, beside Axode in one run.

    pip install exudyn && python -m benchmarks.peers.exudyn_pendulum

Exudyn integrates all coordinates of all bodies with their constraints, implicitly (trapezoidal
rule, index 2); Axode the three free speeds, by Runge-Kutta of order 4. Both take steps of 1 ms.
Wheels of one axle repeat a rolling row, which Exudyn's user must leave out by hand.
"""

from __future__ import annotations

import time

import numpy as np

import axode as ax
from benchmarks.mechanisms import POLE, TRACK, WHEEL, wheeled_pendulum

STEP, SECONDS, REPEATS = 1e-3, 2.0, 5  # [s], [s]
EARLY = 0.3  # [s], while both still fall alike
LEAN, SURGE = 0.3, 0.5  # at the start [rad, m/s]
AGREEMENT = 1e-3  # [rad] of the pitch then: the trapezoidal rule is of order two


def exudyn_run(seconds: float) -> tuple[float, float]:
    """Steps a second and the final pitch [rad]."""
    import exudyn as exu
    from exudyn.utilities import (
        GenericJoint,
        MarkerBodyRigid,
        ObjectGround,
        ObjectJointRollingDisc,
        RigidBodyInertia,
        RotationMatrixY,
    )

    system = exu.SystemContainer().AddSystem()
    weight, radius, mass = [0, 0, -9.81], WHEEL["radius"], WHEEL["mass"]
    world = system.AddMarker(MarkerBodyRigid(bodyNumber=system.AddObject(ObjectGround())))
    com = np.array(POLE["com"], dtype=float)
    about_axle = np.diag(POLE["inertia"]) + POLE["mass"] * (
        com @ com * np.eye(3) - np.outer(com, com)
    )
    pole = system.CreateRigidBody(
        inertia=RigidBodyInertia(mass=POLE["mass"], com=com, inertiaTensor=about_axle),
        referencePosition=[0, 0, radius],
        referenceRotationMatrix=RotationMatrixY(LEAN),
        initialVelocity=[SURGE, 0, 0],
        gravity=weight,
    )
    across, spin = mass * radius**2 / 4, mass * radius**2 / 2
    for y, rows in ((TRACK / 2, [1, 1, 1]), (-TRACK / 2, [0, 1, 1])):
        wheel = system.CreateRigidBody(
            inertia=RigidBodyInertia(
                mass=mass, com=[0, 0, 0], inertiaTensor=np.diag([across, spin, across])
            ),
            referencePosition=[0, y, radius],
            initialVelocity=[SURGE, 0, 0],
            initialAngularVelocity=[0, SURGE / radius, 0],
            gravity=weight,
        )
        hub = system.AddMarker(MarkerBodyRigid(bodyNumber=pole, localPosition=[0, y, 0]))
        rim = system.AddMarker(MarkerBodyRigid(bodyNumber=wheel))
        system.AddObject(GenericJoint(markerNumbers=[hub, rim], constrainedAxes=[1, 1, 1, 1, 0, 1]))
        system.AddObject(
            ObjectJointRollingDisc(
                markerNumbers=[world, rim],
                constrainedAxes=rows,
                discRadius=radius,
                discAxis=[0, 1, 0],
            )
        )
    system.Assemble()
    settings, steps = exu.SimulationSettings(), round(seconds / STEP)
    settings.timeIntegration.endTime = seconds
    settings.timeIntegration.numberOfSteps = steps
    settings.timeIntegration.verboseMode = 0
    settings.solutionSettings.writeSolutionToFile = False
    started = time.perf_counter()
    system.SolveDynamic(settings, solverType=exu.DynamicSolverType.TrapezoidalIndex2)
    rate = steps / (time.perf_counter() - started)
    kind = exu.OutputVariableType.RotationMatrix
    R = np.array(system.GetObjectOutputBody(pole, kind, [0, 0, 0])).reshape(3, 3)
    return rate, float(np.arctan2(R[0, 2], R[2, 2]))


def axode_run(model: ax.Model, seconds: float) -> tuple[float, float]:
    """The same in Axode."""
    start = {"pitch": LEAN, "base.surge": SURGE}
    run = ax.simulate(model, seconds, start=start, method="rk4", step=STEP, save_every=seconds)
    return run.info["steps"] / run.info["seconds"], float(run["pitch"][-1])


def main() -> None:
    """Agreement first, then both in turn."""
    model = wheeled_pendulum().derive().compile(parameters="fixed")
    ours, theirs = axode_run(model, EARLY)[1], exudyn_run(EARLY)[1]
    assert abs(ours - theirs) < AGREEMENT, (ours, theirs)
    print(f"pitch after {EARLY} s: Axode {ours:.6f}, Exudyn {theirs:.6f} rad")
    turns = [(axode_run(model, 90.0)[0], exudyn_run(SECONDS)[0]) for _ in range(REPEATS)]
    fast, slow = np.median(np.array(turns), axis=0)
    print(f"steps per second: Axode {fast:.3g}, Exudyn {slow:.3g}, ratio {fast / slow:.0f}")


if __name__ == "__main__":
    main()
