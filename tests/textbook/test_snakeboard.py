"""The snakeboard: two steered wheelsets and a rider's twisting torso.

Ostrowski, Lewis, Murray and Burdick, "Nonholonomic mechanics and locomotion: the snakeboard
example", ICRA 1994, and Bullo and Lewis, *Geometric Control of Mechanical Systems*, 2005. With the
wheelsets steered opposite ways by phi, the board turns at a rate tan(phi) / l times its speed and
the one free momentum obeys the reduced equation below.
"""

import numpy as np
import pytest

import axode as ax
from tests.textbook.closed_forms import assert_close

M, L = 6.0, 0.2  # total mass, half length
J, JR, JW = 0.016, 0.072, 0.0013  # board, rotor, each wheelset
SPEEDS = ["base.surge", "rotor", "back", "front"]


@pytest.fixture(scope="module")
def model() -> ax.Model:
    mechanism = ax.Mechanism("snakeboard")
    board = mechanism.add_body("board", mass=M - 3.0, inertia=(J, J, J))
    rotor = mechanism.add_body("rotor", mass=1.0, inertia=(JR, JR, JR))
    mechanism.add_joint("base", ax.Planar(), parent=mechanism.ground, child=board)
    mechanism.add_joint("rotor", ax.Revolute("z"), parent=board, child=rotor)
    mechanism.add_motor("rotor", "rotor")
    for name, x in (("back", -L), ("front", L)):
        truck = mechanism.add_body(name, mass=1.0, inertia=(JW, JW, JW))
        mechanism.add_joint(name, ax.Revolute("z"), parent=board, child=truck, at=(x, 0, 0))
        mechanism.add_contact(name, ax.Skate(), body=truck, axis="y")
        mechanism.add_motor(name, name)
    mechanism.set_home({"front": 0.4, "back": -0.4})
    return mechanism.derive(independent=SPEEDS).compile("interpreter")


def reduced(phi: float, surge: float, phi_dot: float, torque: float) -> np.ndarray:
    """Accelerations of surge and rotor for trucks steered by +-phi, by Lagrange with constraints.

    With yaw = k v, k = tan(phi) / l, twice the kinetic energy is
    m v^2 + J_t yaw^2 + Jr (yaw + psi_dot)^2, the trucks' own spins cancelling. On (v, psi):
    (m + (J_t + Jr) k^2) v_dot + (J_t + Jr) k k_dot v + Jr k psi_ddot = 0,
    Jr (psi_ddot + k v_dot + k_dot v) = torque.
    """
    k, k_dot = np.tan(phi) / L, phi_dot / (L * np.cos(phi) ** 2)
    board = J + 2 * JW + 2 * 1.0 * L**2  # the trucks' masses stand at the ends
    inertia = np.array([[M + (board + JR) * k**2, JR * k], [JR * k, JR]])
    bias = np.array([(board + JR) * k * k_dot * surge, JR * k_dot * surge])
    return np.linalg.solve(inertia, np.array([0.0, torque]) - bias)


@pytest.mark.parametrize(
    ("phi", "phi_dot", "torque"), [(0.4, 0.0, 0.5), (0.9, 1.3, -0.2), (-0.5, -2.0, 0.0)]
)
def test_reduced_equations(model: ax.Model, phi: float, phi_dot: float, torque: float):
    q = {"base.yaw": 1.0, "rotor": 0.3, "front": phi, "back": -phi}
    surge, spin = 0.7, -1.1
    nu = np.array([surge, spin, -phi_dot, phi_dot])
    speeds = dict(zip(model.speed_names, model.joint_speeds(q, nu), strict=True))
    assert_close(speeds["base.yaw_rate"], np.tan(phi) * surge / L)
    assert_close(speeds["base.sway"], 0.0)
    wanted = reduced(phi, surge, phi_dot, torque)
    found, _ = model.hybrid_dynamics(
        q, nu, nu_dot={"front.rate": 0.0, "back.rate": 0.0}, u={"rotor.torque": torque}
    )
    assert_close(found, [*wanted, 0.0, 0.0])
