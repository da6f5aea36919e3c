"""A disk rolling on a plane, free to lean.

Saha and Angeles, "Dynamics of nonholonomic mechanical systems using a natural orthogonal
complement", *J. Applied Mechanics* 58, 1991, section 5, with the motion of the contact point that
its equations (32) to (35) leave out: T_dot = [0; (q_dot - c_dot) x 1].
"""

import numpy as np
import pytest

import axode as ax
from tests.textbook.closed_forms import TABLE_TOLERANCE, assert_close, quaternion, rotation, skew

M, R, ACROSS, ALONG, G = 2.0, 0.3, 0.045, 0.09, 9.81
UP = np.array([0.0, 0.0, 1.0])


@pytest.fixture(scope="module")
def equations() -> ax.Equations:
    mechanism = ax.Mechanism("disk", gravity=(0, 0, -G))
    disk = mechanism.add_body("disk", mass=M, inertia=ax.Inertia.axial(ALONG, ACROSS, "y"))
    mechanism.add_joint("base", ax.Floating(), parent=mechanism.ground, child=disk)
    mechanism.add_contact("rim", ax.Rolling(radius=R), body=disk, axis="y")
    mechanism.set_home({"base.z": R})
    return mechanism.derive(independent=["base.wx", "base.wy", "base.wz"])


@pytest.fixture(scope="module")
def model(equations: ax.Equations) -> ax.Model:
    return equations.compile("interpreter")


def test_mobility(equations: ax.Equations):
    """Three speeds, five posture variables, all of them within reach."""
    mobility = equations.mobility
    assert (mobility.mobility, mobility.configuration_dof, mobility.reachable) == (3, 5, 5)
    assert not mobility.holonomic


class Disk:
    """A disk that leans by `lean` about x and has turned by `spin` about its own axis."""

    def __init__(self, lean: float, omega: np.ndarray, spin: float = 0.8) -> None:
        self.R = rotation("x", lean) @ rotation("y", spin)
        four = quaternion(("x", lean), ("y", spin))
        self.q = np.array([*four, 0.4, -0.1, R * np.cos(lean)])
        self.omega = np.asarray(omega, float)
        self.nu = self.R.T @ self.omega
        self.n = self.R[:, 1]
        u = UP - (UP @ self.n) * self.n
        length = np.linalg.norm(u)
        n_dot = np.cross(self.omega, self.n)
        u_dot = -(UP @ n_dot) * self.n - (UP @ self.n) * n_dot
        u_dot = u_dot / length - u * (u @ u_dot) / length**3
        self.s, self.s_dot = -R * u / length, -R * u_dot  # from the centre to the contact

    @property
    def inertia(self) -> np.ndarray:
        """About the mass centre, in the world's axes."""
        nn = np.outer(self.n, self.n)
        return ACROSS * (np.eye(3) - nn) + ALONG * nn

    @property
    def I_Q(self) -> np.ndarray:
        """About the contact: their equation (32)."""
        return self.inertia + M * (self.s @ self.s * np.eye(3) - np.outer(self.s, self.s))

    @property
    def C(self) -> np.ndarray:
        """For speeds omega in the world's axes, corrected and with Angeles's sign."""
        return skew(self.omega) @ self.inertia - M * np.outer(self.s_dot, self.s)


STATES = [Disk(0.3, [0.2, 8.0, 0.5]), Disk(-0.8, [1.0, -3.0, 0.7]), Disk(0.0, [0.3, 4.0, 0.5], 0.0)]


@pytest.mark.parametrize("disk", STATES, ids=["leaning", "far over", "upright"])
def test_inertia_coriolis_and_gravity(model: ax.Model, disk: Disk):
    """Axode's speeds are omega in the disk's axes, so C gains I R_dot."""
    R_dot = skew(disk.omega) @ disk.R
    assert_close(model.mass_matrix(disk.q), disk.R.T @ disk.I_Q @ disk.R)
    wanted = disk.R.T @ (disk.C @ disk.R + disk.I_Q @ R_dot)
    assert_close(model.coriolis(disk.q, disk.nu), wanted)
    gamma = M * np.cross(-disk.s, [0, 0, -G])
    assert_close(model.potential_force(disk.q), disk.R.T @ gamma)


def test_the_table(model: ax.Model):
    """A case computed with five Euler-angle coordinates and two rolling constraints."""
    disk = Disk(0.3, [0.2, 8.0, 0.5])
    omega_dot = [5.672188206445314, 0.700745329950907, -1.4141676926624902]
    force = [-0.07545973634911657, -3.4192847739139585, 21.39241600631855]
    found = disk.R @ model.forward_dynamics(disk.q, disk.nu)
    assert_close(found, omega_dot, TABLE_TOLERANCE)
    assert_close(model.contact_forces(disk.q, disk.nu), [force], TABLE_TOLERANCE)


def test_printed_coriolis_term_is_not_the_physics(model: ax.Model):
    """Without the contact's own motion the angular acceleration about x has the wrong sign."""
    disk = Disk(0.3, [0.2, 8.0, 0.5])
    as_printed = -6.965827773567394
    assert abs((disk.R @ model.forward_dynamics(disk.q, disk.nu))[0] - as_printed) > 1.0


@pytest.mark.parametrize(("lean", "turn"), [(0.3, 1.2), (0.6, -2.0), (-0.4, 0.9)])
def test_steady_circle(model: ax.Model, lean: float, turn: float):
    """(C + m R^2) w_n Om cos - A Om^2 sin cos = -m g R sin: then the disk only precesses."""
    c, s = np.cos(lean), np.sin(lean)
    spin = (ACROSS * turn**2 * s * c - M * G * R * s) / ((ALONG + M * R**2) * turn * c)
    n = np.array([0.0, c, s])
    omega = spin * n + turn * (UP - s * n)
    disk = Disk(lean, omega)
    found = disk.R @ model.forward_dynamics(disk.q, disk.nu)
    assert_close(found, turn * np.cross(UP, omega))
    velocity = np.cross(omega, -disk.s)
    force = M * (turn * np.cross(UP, velocity) + G * UP)
    assert_close(model.contact_forces(disk.q, disk.nu), [force])


def test_energy_is_conserved(model: ax.Model):
    """Power of gravity is all there is: nu . (I nu_dot + C nu - gamma) = 0 and Idot - 2C skew."""
    disk = STATES[1]
    nu_dot = model.forward_dynamics(disk.q, disk.nu)
    step = 1e-6  # central differences of the total energy: error about step^2
    rates = model.rates(disk.q, disk.nu)

    def energy(h: float) -> float:
        return model.energy(disk.q + h * rates, disk.nu + h * nu_dot).sum()

    change = (energy(step) - energy(-step)) / (2 * step)
    assert abs(change) < 1e-6 * energy(0.0)
