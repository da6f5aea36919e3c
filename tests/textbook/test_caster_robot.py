"""Robot with two driven wheels and a caster.

Angeles, *Fundamentals of Robotic Mechanical Systems*, section 12.5.1: the closed form of I, C and
D, with what its Coriolis matrix leaves out (the platform's term, present whenever the mass
centre is off the axle) and the barred entries in the bracket's term. Platform axes: x along the
axle, y forward, z up; both driven wheels turn about -x.
"""

import numpy as np
import pytest

import axode as ax
from tests.textbook.closed_forms import TABLE_TOLERANCE, assert_close

A, B, D, L, R = 0.12, 0.18, 0.06, 0.5, 0.1  # offsets, trail, track, wheel radius [m]
SPIN, TURN, MW = 0.006, 0.0032, 1.2  # driven wheels
MC = 0.6  # caster's wheel, a uniform disk
MB, IB = 0.4, 0.0008  # bracket
MP, IP = 15.0, 0.55  # platform
DAMPING = (0.02, 0.03, 0.01, 0.005)  # of the driven wheels, the caster's wheel and its pivot
ALPHA, DELTA, RHO, LAMBDA = (A + B) / L, D / L, R / D, A / L


def caster_robot() -> ax.Mechanism:
    mechanism = ax.Mechanism("caster_robot")
    platform = mechanism.add_body("platform", mass=MP, com=(0, -A, 0.08), inertia=(0.4, 0.3, IP))
    mechanism.add_joint("base", ax.Planar(), parent=mechanism.ground, child=platform, at=(0, 0, R))
    for name, side in (("wheel1", L / 2), ("wheel2", -L / 2)):
        inertia = ax.Inertia.axial(SPIN, TURN, "x")
        mechanism.add_wheel(
            name,
            ax.Rolling(radius=R),
            on=platform,
            at=(side, 0, 0),
            axis="-x",
            mass=MW,
            inertia=inertia,
            motor=True,
        )
    mechanism.add_caster(
        "caster",
        ax.Rolling(radius=R),
        on=platform,
        at=(0, -A - B, 0.07),
        trail=D,
        drop=0.07,
        mass=MC,
        bracket_mass=MB,
        bracket_inertia=(0.0005, 0.0006, IB),
    )
    for joint, damping in zip(
        ("wheel1", "wheel2", "caster", "caster_bracket"), DAMPING, strict=True
    ):
        mechanism.add_damper(f"{joint}_damper", joint, coefficient=damping)
    return mechanism


@pytest.fixture(scope="module")
def equations() -> ax.Equations:
    return caster_robot().derive()


@pytest.fixture(scope="module")
def model(equations: ax.Equations) -> ax.Model:
    return equations.compile("interpreter")


class ClosedForm:
    """The book's matrices at a swivel angle and wheel rates."""

    def __init__(self, psi: float, rates: np.ndarray) -> None:
        c, s = np.cos(psi), np.sin(psi)
        self.psi, self.rates = psi, np.asarray(rates, float)
        self.t1 = np.array([ALPHA * c + s / 2, -ALPHA * c + s / 2])
        self.tb = RHO * np.array([-ALPHA * s + c / 2, ALPHA * s + c / 2])
        self.t2 = self.tb + RHO * DELTA * np.array([-1.0, 1.0])
        psi_dot = self.t2 @ self.rates
        self.t1_dot = psi_dot * np.array([-ALPHA * s + c / 2, ALPHA * s + c / 2])
        self.t2_dot = psi_dot * RHO * np.array([-ALPHA * c - s / 2, ALPHA * c - s / 2])
        self.omega = (R / L) * (self.rates[0] - self.rates[1])

    @property
    def Theta(self) -> np.ndarray:
        """Rates of the caster's wheel and pivot for unit rates of the driven wheels."""
        return np.array([self.t1, self.t2])

    @property
    def I(self) -> np.ndarray:  # noqa: E743
        t1, tb = np.outer(self.t1, self.t1), np.outer(self.tb, self.tb)
        rl = (R / L) ** 2
        across = np.array([[1.0, -1.0], [-1.0, 1.0]])
        wheels = (SPIN + MW * R**2) * np.eye(2) + 2 * rl * TURN * across
        both, lean = 0.25 + LAMBDA**2, 0.25 - LAMBDA**2
        platform = IP * rl * across + MP * R**2 * np.array([[both, lean], [lean, both]])
        caster = MC * R**2 / 4 * (6 * t1 + tb)
        bracket = IB * tb + MB * D**2 / 4 * (tb + 4 * RHO**2 * t1)
        return wheels + platform + caster + bracket

    @property
    def C(self) -> np.ndarray:
        turning = self.tb @ self.rates  # of the bracket in the world
        g1 = self.t2_dot / 2 + RHO * turning * self.t1
        g2 = turning * self.tb / 2 - RHO * self.t1_dot
        caster = (
            MC * R**2 / 4 * (6 * np.outer(self.t1, self.t1_dot) + np.outer(self.tb, self.t2_dot))
        )
        bracket = IB * np.outer(self.tb, self.t2_dot)
        bracket += MB * D**2 / 2 * (np.outer(self.tb, g1) - 2 * RHO * np.outer(self.t1, g2))
        platform = MP * R**2 * LAMBDA * self.omega * np.array([[0.0, -1.0], [1.0, 0.0]])
        return caster + bracket + platform

    @property
    def D(self) -> np.ndarray:
        return np.diag(DAMPING[:2]) + self.Theta.T @ np.diag(DAMPING[2:]) @ self.Theta


STATES = [ClosedForm(0.7, [3.0, 1.0]), ClosedForm(1.4, [8.0, 6.0]), ClosedForm(-2.0, [-4.0, 5.0])]


def swivel(psi: float) -> dict[str, float]:
    return {"caster_bracket": psi, "base.yaw": 0.3, "base.x": 1.0}


def test_mobility(equations: ax.Equations):
    """Two motors move two wheels; the heading integrates, the rest does not."""
    mobility = equations.mobility
    assert (mobility.mobility, mobility.actuation) == (2, "fully actuated")
    assert mobility.integrable == 1 and not mobility.holonomic
    assert equations.independent == ("wheel1.rate", "wheel2.rate")


@pytest.mark.parametrize("state", STATES, ids=lambda s: f"psi{s.psi}")
def test_closed_form(model: ax.Model, state: ClosedForm):
    q, nu = swivel(state.psi), state.rates
    speeds = dict(zip(model.speed_names, model.joint_speeds(q, nu), strict=True))
    found = [speeds["caster.rate"], speeds["caster_bracket.rate"]]
    assert_close(found, state.Theta @ nu)
    assert_close(speeds["base.yaw_rate"], state.omega)
    assert_close(model.mass_matrix(q), state.I)
    assert_close(model.coriolis(q, nu), state.C)
    assert_close(model.dissipative_force(q, nu), -state.D @ nu)
    torque = np.array([0.3, 0.1])
    wanted = np.linalg.solve(state.I, torque - (state.C + state.D) @ nu)
    assert_close(model.forward_dynamics(q, nu, torque), wanted)


def test_the_table(model: ax.Model):
    """A case computed with seven coordinates and multipliers."""
    found = model.forward_dynamics(swivel(1.4), [8.0, 6.0], [0.3, 0.1])
    assert_close(found, [2.281446401231521, -2.7292176594693123], TABLE_TOLERANCE)
    C = [
        [-1.5506770091690774e-05, -0.00919442930397794],
        [0.01209869129514953, -0.0005082126053654813],
    ]
    assert_close(model.coriolis(swivel(0.7), [3.0, 1.0]), C, TABLE_TOLERANCE)


def test_straight_ahead_is_a_point_mass(model: ax.Model):
    """Exercise 12.3: caster aligned, both wheels alike, the inertia is what the rim feels."""
    I = model.mass_matrix(swivel(np.pi / 2))
    total = 2 * MW + MC + MB + MP
    assert_close(I.sum(), total * R**2 + 2 * SPIN + MC * R**2 / 2)
