"""The bicycle of Whipple and Carvallo with the benchmark's numbers.

Meijaard, Papadopoulos, Ruina and Schwab, Linearized dynamics equations for the balance and steer of
a bicycle, Proc. R. Soc. A 463, 2007: their z points down, ours up.
"""

import numpy as np
import pytest

import axode as ax

WHEELBASE, TRAIL, TILT = 1.02, 0.08, np.pi / 10

# upright riding at a forward speed [m/s]: weave, capsize, castering [1/s]
EIGENVALUES = {
    4.0: (0.413253315211239 + 3.079108186032065j, -1.429444273613259, -12.158614265764450),
    5.0: (-0.775341882195845 + 4.464867713788230j, -0.322866429004087, -14.078389692798216),
    6.0: (-1.526444865841428 + 5.876730605987100j, -0.004066900769697, -16.085371230980261),
}


def bicycle():
    bike = ax.Mechanism("bicycle")
    rear = bike.add_body(
        "frame",
        mass=85.0,
        com=(0.3, 0, 0.9 - 0.3),
        inertia=[[9.2, 0, -2.4], [0, 11.0, 0], [-2.4, 0, 2.8]],
    )
    front = bike.add_body(
        "fork",
        mass=4.0,
        com=(0.9 - WHEELBASE - TRAIL, 0, 0.7),
        inertia=[[0.05892, 0, 0.00756], [0, 0.06, 0], [0.00756, 0, 0.00708]],
    )
    bike.add_joint("base", ax.Floating(), parent=bike.ground, child=rear)
    head = ax.Revolute((-np.sin(TILT), 0, np.cos(TILT)))
    at = (WHEELBASE + TRAIL, 0, -0.3)
    bike.add_joint("steer", head, parent=rear, child=front, at=at)
    bike.add_wheel("rear", ax.Rolling(0.3), on=rear, mass=2.0, inertia=(0.0603, 0.12, 0.0603))
    bike.add_wheel(
        "front",
        ax.Rolling(0.35),
        on=front,
        at=(-TRAIL, 0, 0.35),
        mass=3.0,
        inertia=(0.1405, 0.28, 0.1405),
    )
    return bike


@pytest.fixture(scope="module", params=["chosen", "lean and steer"])
def model(request):
    named = ["base.wx", "steer.rate", "rear.rate"]
    equations = bicycle().derive(independent=None if request.param == "chosen" else named)
    return equations.compile(target="interpreter")


def linearized(model, speed):
    """Of the state (q, nu) about riding straight on."""
    q = model.home
    moving = {"base.vx": speed, "rear.rate": speed / 0.3}
    nu = np.array([moving.get(name, 0.0) for name in model.independent])
    assert np.abs(model.forward_dynamics(q, nu)).max() < 1e-11, "upright riding is steady"
    rows = [
        [model.jacobian(f, x, q, nu) for x in ("q", "nu")] for f in ("rates", "forward_dynamics")
    ]
    return np.block(rows)


def test_the_bicycle_leans_steers_and_rolls():
    mobility = bicycle().derive().mobility
    assert (mobility.mobility, mobility.rows, mobility.rank) == (3, 6, 6)
    assert (mobility.configuration_dof, mobility.reachable) == (7, 7)
    assert not mobility.dropped


@pytest.mark.parametrize("speed", EIGENVALUES)
def test_eigenvalues_are_those_of_the_benchmark(model, speed):
    found = np.linalg.eigvals(linearized(model, speed))
    for expected in EIGENVALUES[speed]:
        assert np.abs(found - expected).min() < 1e-9


def test_the_bicycle_is_stable_between_weave_and_capsize(model):
    """From 4.292 to 6.024 m/s."""

    def growth(speed):
        found = np.linalg.eigvals(linearized(model, speed))
        return found.real[np.abs(found) > 1e-3].max()

    stable = [growth(speed) < 0 for speed in (4.29, 4.30, 6.00, 6.05)]
    assert stable == [False, True, True, False]


def test_the_wheels_carry_the_weight(model):
    forces = model.contact_forces(model.home, np.zeros(3))
    total = 9.81 * (85 + 4 + 2 + 3)
    about_rear = 9.81 * (85 * 0.3 + 4 * 0.9 + 3 * WHEELBASE) / WHEELBASE
    order = [model.contacts.index(name) for name in ("rear", "front")]
    assert np.allclose(forces[order, 2], [total - about_rear, about_rear], rtol=1e-12)
