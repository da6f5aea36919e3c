"""Random vehicles that are pushed: nothing gains energy, and nothing slips for nothing."""

from __future__ import annotations

import numpy as np
import pytest

import axode as ax
from problems.contact_robots import G
from tests.variants import further

RUNS, STEP, DURATION = 16, 1e-3, 2.0
GAIN = 1e-9  # of the energies of a run, in a sample
UNRESOLVED = 0.6  # of one vehicle: runs without impulses that meet the laws; 7 % of all
SMOOTH = 1e-3  # rotations of rigid bodies in steps of second order


def random_vehicle(rng: np.random.Generator, slope: float = 0.0) -> ax.Mechanism:
    """A chassis on three to six wheels of any kind, rigid or on struts."""
    m = ax.Mechanism("vehicle", gravity=(G * np.sin(slope), 0.0, -G * np.cos(slope)))
    mass, length = 10 ** rng.uniform(0, 2), 10 ** rng.uniform(-1, 0)
    size = length * np.array([1.0, rng.uniform(0.4, 1), rng.uniform(0.1, 0.5)])
    x, y, z = size**2
    inertia = mass * np.array([y + z, x + z, x + y]) / 5 * rng.uniform(0.7, 1.3)
    base = m.add_body("base", mass=mass, inertia=tuple(inertia), com=(0, 0, 0.1 * size[2]))
    m.add_joint("base", ax.Floating(), parent=m.ground, child=base)
    count, radius = int(rng.integers(3, 7)), length * rng.uniform(0.1, 0.4)
    sprung, friction = rng.random() < 0.5, rng.uniform(0.05, 1.0)
    laws = {"friction": (friction, friction * rng.uniform(0.6, 1))}
    if not sprung:
        laws["restitution"] = rng.choice([0.0, rng.uniform(0, 0.8)])
    for k in range(count):
        angle = 2 * np.pi * (k + 0.5) / count
        on, at = base, (size[0] * np.cos(angle), size[1] * np.sin(angle), 0.0)
        if sprung:
            hub = m.add_body(f"hub{k}", mass=0.03 * mass, inertia=(0.01 * mass * radius**2,) * 3)
            stiffness = mass * G / count / (0.3 * radius)
            m.add_joint(f"strut{k}", ax.Prismatic("z"), parent=base, child=hub, at=at)
            m.add_spring(f"spring{k}", f"strut{k}", stiffness=stiffness)
            damping = 2 * rng.uniform(0.1, 1) * np.sqrt(stiffness * mass / count)
            m.add_damper(f"damper{k}", f"strut{k}", coefficient=damping)
            on, at = hub, (0.0, 0.0, 0.0)
        kind = rng.choice([ax.Rolling, ax.Ball, ax.Omni, ax.Point], p=[0.7, 0.1, 0.1, 0.1])
        wheel = kind(radius, **laws)
        if kind is ax.Point:
            m.add_contact(f"wheel{k}", wheel, body=on, at=at)
            continue
        m.add_wheel(f"wheel{k}", wheel, on=on, at=at, mass=0.02 * mass)
        if kind is not ax.Ball and rng.random() < 0.3:
            m.change_joint(f"wheel{k}", friction=rng.uniform(0, 0.3) * mass * G * radius)
    m.set_home({"base.z": radius})
    return m


def pushed(rng: np.random.Generator, model: ax.Model) -> ax.Trajectory:
    """Runs from random speeds, half of them from above the ground."""
    height = model.home[model.coordinates.index("base.z")]
    fall = rng.uniform(0, 0.5, RUNS) * (rng.random(RUNS) < 0.5)
    size = 10 ** rng.uniform(-2, 0.3, RUNS)
    start = {f"base.{v}": rng.normal(size=RUNS) * size for v in ("vx", "vy", "vz")}
    start |= {f"base.{w}": 0.3 * rng.normal(size=RUNS) * size for w in ("wx", "wy", "wz")}
    start["base.z"] = height * (1 + fall)
    return ax.simulate(model, DURATION, start=start, step=STEP, save_every=5 * STEP)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", [0, *(further(k) for k in range(1, 60))])
def test_random_vehicles_are_pushed(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = random_vehicle(rng, slope=rng.choice([0.0, 0.2])).derive().compile()
    run = pushed(rng, model)
    lost = np.array(["failed" in status for status in run.statuses])
    assert lost.mean() <= UNRESOLVED
    kinetic, potential = run["kinetic"][~lost], run["potential"][~lost]
    assert np.isfinite(kinetic).all()
    largest = kinetic.max(axis=1) + np.ptp(potential, axis=1)
    turning = np.abs([run[f"base.{w}"][~lost] for w in ("wx", "wy", "wz")]).max(axis=(0, 2))
    allowed = GAIN + SMOOTH * (turning * STEP) ** 2
    assert (np.diff(kinetic + potential, axis=1).max(axis=1) < allowed * largest).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", [34, further(28)])
def test_several_impacts_in_one_step_give_no_energy(seed: int) -> None:
    """Rigid vehicles that bounce: in single steps they gained 4 % and 0.3 %."""
    rng = np.random.default_rng(seed)
    model = random_vehicle(rng, slope=rng.choice([0.0, 0.2])).derive().compile()
    run = pushed(rng, model)
    kinetic, potential = run["kinetic"], run["potential"]
    largest = kinetic.max(axis=1) + np.ptp(potential, axis=1)
    assert (np.diff(kinetic + potential, axis=1).max(axis=1) < 1e-6 * largest).all()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, *(further(k) for k in range(1, 40))])
def test_a_crate_that_friction_can_hold_does_not_move(seed: int) -> None:
    """Pushed at its mass centre by less than friction times weight, beside what statics leaves."""
    rng = np.random.default_rng(seed)
    friction, angle = rng.uniform(0.1, 1.0), rng.uniform(0, 2 * np.pi)
    m = ax.Mechanism("crate")
    com = (*rng.uniform(-0.05, 0.05, 2), -0.04)  # low, so that it does not tip
    body = m.add_body("crate", mass=2.0, inertia=(0.02, 0.03, 0.04), com=com)
    m.add_joint("crate", ax.Floating(), parent=m.ground, child=body, at=(0, 0, 0.05))
    for k, (x, y) in enumerate(((1, 1), (1, -1), (-1, 1), (-1, -1))):
        at = (0.2 * x, 0.15 * y, -0.05)
        m.add_contact(f"corner{k}", ax.Point(friction=friction), body=body, at=at)
    force = 0.97 * friction * 2.0 * G * np.array([np.cos(angle), np.sin(angle)])
    m.add_wrench("push", body, at=com)
    push = {"push.fx": force[0], "push.fy": force[1]}
    run = ax.simulate(m.derive().compile(), 0.5, step=STEP, input=push)
    assert all((run[name] == run[name][0]).all() for name in ("crate.x", "crate.y", "crate.z"))
