"""Planar four-bar, described in space and closed by a revolute loop.

Angeles, *Fundamentals of Robotic Mechanical Systems*, section 12.3, equations (12.2) to
(12.8): one freedom, three joint rates. The numbers come from Lagrange's equation in the crank angle
alone, with derivatives of the closed-form geometry to forty digits.
"""

from dataclasses import dataclass

import numpy as np
import pytest

import axode as ax
from tests.textbook.closed_forms import TABLE_TOLERANCE, assert_close

GROUND, CRANK, COUPLER, ROCKER = 0.4, 0.1, 0.35, 0.3  # [m]
MASSES = {"crank": 0.5, "coupler": 1.0, "rocker": 0.8}
LENGTHS = {"crank": CRANK, "coupler": COUPLER, "rocker": ROCKER}
G = 9.81


@pytest.fixture(scope="module")
def equations() -> ax.Equations:
    mechanism = ax.Mechanism("four_bar", gravity=(0, -G, 0))
    parent, at = mechanism.ground, (0.0, 0.0, 0.0)
    for name, length in LENGTHS.items():
        mass = MASSES[name]
        along = mass * length**2 / 12
        body = mechanism.add_body(
            name, mass=mass, com=(length / 2, 0, 0), inertia=(1e-5, along, along)
        )
        mechanism.add_joint(name, ax.Revolute("z"), parent=parent, child=body, at=at)
        parent, at = body, (length, 0.0, 0.0)
    mechanism.add_loop(
        "hinge",
        ax.Revolute("z"),
        parent=mechanism.ground,
        child=parent,
        at=(GROUND, 0, 0),
        child_at=(ROCKER, 0, 0),
    )
    mechanism.add_motor("crank", "crank")
    home = dict(zip(LENGTHS, angles(1.2), strict=True))
    mechanism.set_home(home)
    return mechanism.derive()


@pytest.fixture(scope="module")
def model(equations: ax.Equations) -> ax.Model:
    return equations.compile("interpreter")


def angles(crank: float) -> np.ndarray:
    """Relative angles that close the loop, the coupler's end to the left of the diagonal."""
    A = CRANK * np.array([np.cos(crank), np.sin(crank)])
    diagonal = np.array([GROUND, 0.0]) - A
    length = np.linalg.norm(diagonal)
    along = diagonal / length
    x = (length**2 + COUPLER**2 - ROCKER**2) / (2 * length)
    B = A + x * along + np.sqrt(COUPLER**2 - x**2) * np.array([-along[1], along[0]])
    coupler = np.arctan2(*(B - A)[::-1])
    rocker = np.arctan2(*(np.array([GROUND, 0.0]) - B)[::-1])
    return np.array([crank, coupler - crank, rocker - coupler])


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    crank: float
    rate: float
    acceleration: float
    Theta: tuple[float, float, float]
    inertia: float
    bias: float
    gamma: float
    torque: float


TABLE = [
    Row(
        0.7,
        8.0,
        3.0,
        (1.0, -1.2882203313013583, 0.28221603799967),
        0.004973122135543231,
        0.06403514530784252,
        -0.5658807902860821,
        0.6448353020005543,
    ),
    Row(
        2.5,
        -4.0,
        0.0,
        (1.0, -0.9190788725619192, 0.22920409462999286),
        0.013169231742686827,
        -0.0425140785713127,
        1.0823730338418582,
        -1.124887112413171,
    ),
]


def test_mobility(equations: ax.Equations):
    """Five loop rows of which two hold: the other three keep the plane, where it is already."""
    mobility = equations.mobility
    assert (mobility.rows, mobility.rank, mobility.loops) == (5, 2, 1)
    assert mobility.mobility == 1 and mobility.holonomic
    assert {name.split(" ")[0] for name in mobility.dropped} == {"hinge.rx", "hinge.ry", "hinge.z"}


@pytest.mark.parametrize("row", TABLE, ids=["forward", "backward"])
def test_the_table(model: ax.Model, row: Row):
    q, nu = angles(row.crank), [row.rate]
    assert np.abs(model.residual(q)).max() < 1e-15
    assert_close(model.joint_speeds(q, [1.0]), row.Theta, TABLE_TOLERANCE)
    assert_close(model.mass_matrix(q), [[row.inertia]], TABLE_TOLERANCE)
    assert_close(model.bias(q, nu), [row.bias], TABLE_TOLERANCE)
    assert_close(model.potential_force(q), [row.gamma], TABLE_TOLERANCE)
    found = model.inverse_dynamics(q, nu, [row.acceleration])
    assert_close(found, [row.torque], TABLE_TOLERANCE)


def test_all_the_way_round(model: ax.Model):
    """The kinetic energy of the bars, from their own velocities, is I rate^2 / 2 at every angle."""
    for crank in np.linspace(0, 2 * np.pi, 13):
        q = angles(crank)
        twists = model.twists(q, [2.0])
        energy = 0.0
        for twist, name in zip(twists, model.bodies, strict=True):
            mass, length = MASSES[name], LENGTHS[name]
            energy += mass * twist[3:] @ twist[3:] / 2 + mass * length**2 / 24 * twist[2] ** 2
        assert_close(2.0 * model.mass_matrix(q)[0, 0], energy)
