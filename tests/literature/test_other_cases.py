"""Quantities that the open cases do not ask for, against closed forms of other parameters."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from axode.literature.acceptance import checks_of, verify
from axode.literature.acceptance.case_runs import Answers
from axode.literature.acceptance.cases import Case, Quantity, load_cases

ROBOT = {
    "a": 0.1,
    "b": 0.2,
    "d": 0.07,
    "l": 0.6,
    "r": 0.12,
    "I": 0.007,
    "H": 0.004,
    "mw": 1.5,
    "mc": 0.7,
    "mb": 0.3,
    "Ib": 0.0009,
    "mp": 12.0,
    "Ip": 0.6,
    "c1": 0.01,
    "c2": 0.02,
    "c3": 0.03,
    "c4": 0.04,
    "X1": 0.0,
    "X2": 0.0,
}
DISK = {"m": 1.5, "R": 0.25, "A": 0.03, "C": 0.05, "g": 9.7}
TIGHT = {"rel": 1e-9, "abs": 1e-11}


def case(system: str, expected: dict[str, Any], **given: Any) -> Case:
    entry = {"id": "x", "system": system, "expected": expected, "tolerance": TIGHT, **given}
    return Case.of(entry, 1)


def holds(given: Case) -> None:
    wrong = [check for check in checks_of(given) if not check.passed]
    assert not wrong, "\n".join(map(str, wrong))


def of(given: Case, key: str) -> Any:
    return Answers(given).of(Quantity.of(key))


def open_case(name: str) -> Case:
    return next(c for c in load_cases() if c.id == name)


def test_exercises_of_the_caster_robot():
    p = ROBOT
    alpha, rho, lam, ratio = (
        (p["a"] + p["b"]) / p["l"],
        p["r"] / p["d"],
        p["a"] / p["l"],
        (p["r"] / p["l"]) ** 2,
    )
    s, c, r2 = np.sin(0.3), np.cos(0.3), p["r"] ** 2
    spinning = 2 * p["I"] + 8 * ratio * p["H"] + 2 * p["mw"] * r2 + 4 * p["Ip"] * ratio
    spinning += 4 * p["mp"] * r2 * lam**2
    spinning += p["mc"] * r2 / 4 * (24 * alpha**2 * c**2 + 4 * rho**2 * alpha**2 * s**2)
    spinning += 4 * p["Ib"] * rho**2 * alpha**2 * s**2
    spinning += p["mb"] * p["d"] ** 2 / 4 * rho**2 * alpha**2 * (4 * s**2 + 16 * c**2)
    total = 2 * p["mw"] + p["mc"] + p["mb"] + p["mp"]
    expected = {
        "rotation_inertia_psi_0p3": spinning,
        "translation_inertia_psi_pi_2": total * r2 + 2 * p["I"] + p["mc"] * r2 / 2,
        "steady_caster_psi": -np.arcsin(p["d"] / (p["a"] + p["b"])),
        "Ip_for_isotropic_platform_term": p["mp"] * (p["l"] ** 2 / 4 - p["a"] ** 2),
        "characteristic_length_axle_midpoint": p["l"] / 2,
        "characteristic_length_at_C": np.sqrt(p["l"] ** 2 / 4 - p["a"] ** 2),
    }
    state = {"psi": [0.2], "theta_dot": [1.0, 2.0]}
    holds(case("A3_caster_robot", expected, parameters=p, state=state))


def test_steady_rolling_of_the_disk():
    lean, turn = 0.35, -1.7
    m, R, A, C, g = DISK.values()
    s, c = np.sin(lean), np.cos(lean)
    spin = (A * turn**2 * s * c - m * g * R * s) / ((C + m * R**2) * turn * c)
    n = np.array([0.0, c, s])
    omega = spin * n + turn * (np.array([0.0, 0.0, 1.0]) - s * n)
    expected = {
        "spin_rate": spin,
        "omega": omega.tolist(),
        "omega_dot": [-turn * omega[1], 0.0, 0.0],
        "centre_circle_radius": abs(R * spin / turn),
    }
    state = {"theta": lean, "yaw_rate": turn}
    holds(case("B2_rolling_disk", expected, parameters=DISK, state=state))


def test_contact_force_carries_the_disk_whichever_way_it_looks():
    """m (c_ddot - g), for an axis that is not along y."""
    n = np.array([0.5, -0.7, 0.3]) / np.linalg.norm([0.5, -0.7, 0.3])
    given = case(
        "B2_rolling_disk",
        {"n": n.tolist()},
        parameters=DISK,
        state={"n": n.tolist(), "omega": [1.0, 4.0, -0.5]},
    )
    holds(given)
    wanted = DISK["m"] * (np.array(of(given, "c_ddot")) + np.array([0.0, 0.0, DISK["g"]]))
    assert of(given, "contact_force") == pytest.approx(wanted, rel=1e-10)


@pytest.mark.parametrize("where", ["parameters", "state"])
def test_rows_on_twists_of_the_disk(where: str):
    counts = {"rows": 3, "cols": 6, "rank": 3, "nullity": 3, "max_abs_AT": 0.0}
    given = {"parameters": {"R": 0.3}, "state": {}}
    given[where]["n"] = [0.0, 0.8, 0.6]
    holds(case("B1_NOC_nonholonomic", counts, **given))


def test_rows_on_twists_of_two_casters():
    counts = {"rows": 6 * 6 + 3 * 4, "cols": 42, "rank": 40, "nullity": 2, "max_abs_AT": 0.0}
    parameters = {**ROBOT, "X1": 0.2, "X2": -0.1}
    state = {"psi": [0.3, -0.8]}
    holds(case("B1_NOC_nonholonomic", counts, parameters=parameters, state=state))


def test_platform_accelerates_as_its_torques_say():
    inverse = open_case("A2-1")
    given = {**inverse.input, "phi": inverse.expected["phi"]}
    wanted = given.pop("q_ddot")
    holds(
        case(
            "A2_platform_6R_legs",
            {"q_ddot": wanted},
            parameters=inverse.parameters,
            state=inverse.state,
            input=given,
        )
    )


@pytest.mark.slow
def test_every_leg_has_its_rates():
    """Rows 4 of the legs' L are the unit rows: the elbows are what drives."""
    given = open_case("A2-3")
    answers = Answers(given)
    for k in (1, 4, 6):
        L = answers.of(Quantity.of(f"L_leg{k}"))
        assert L.shape == (6, 6)
        assert np.eye(6)[k - 1] == pytest.approx(L[3], abs=1e-12)
    assert not checks_of(
        case("A2_platform_6R_legs", {"L_leg7": 0.0}, parameters=given.parameters, state=given.state)
    )[0].passed


def test_backing_up_on_a_circle():
    """Along -j the trailing caster stands near -pi/2; the torques hold the turn."""
    state = {"path_radius_of_mass_centre": 1.5, "omega": -0.6, "forward_axis": "-j"}
    given = case("B3_AGV_paths", {"psi": 0.0}, parameters=ROBOT, state=state)
    a, b, d, r, l = (ROBOT[name] for name in ("a", "b", "d", "r", "l"))
    v = -0.6 * np.sqrt(1.5**2 - a**2)
    psi = of(given, "psi")
    assert abs(psi + np.pi / 2) < 0.5
    assert -(a + b) * -0.6 * np.sin(psi) + v * np.cos(psi) == pytest.approx(d * -0.6, rel=1e-10)
    assert of(given, "theta_dot") == pytest.approx([(v - 0.3 * l) / r, (v + 0.3 * l) / r])
    assert of(given, "theta_ddot") == pytest.approx([0.0, 0.0], abs=1e-10)
    assert max(abs(np.array(of(given, "tau")))) > 1e-2


@pytest.mark.slow
def test_a_coordinate_is_held_and_let_go():
    """The torque on the held wheel is that which hybrid dynamics asks for; then it is none."""
    given = case(
        "A3_caster_robot",
        {"theta2@0.3": 0.0, "theta2_dot@1": 0.0, "tau2@1.5": 0.0},
        parameters=ROBOT,
        state={"psi0": [1.2], "theta_dot0": [0.0, 0.0]},
        input={
            "tau1": {"signal": "0.2*sin(pi*t)", "until": 1.2},
            "t_end": 2.0,
            "hold": {"theta2": 0.0, "until": 1.0},
        },
    )
    holds(given)
    answers = Answers(given)
    now = answers.run.at(0.4)
    assert now["tau1"] == pytest.approx(0.2 * np.sin(0.4 * np.pi))
    _, u = now.model.hybrid_dynamics(
        now.q, now.nu, nu_dot={"theta2_dot": 0.0}, u={"tau1": now["tau1"]}
    )
    assert abs(now["tau2"]) > 1e-4
    assert now["tau2"] == pytest.approx(u[1], rel=1e-9)
    assert now.accelerations["theta2_dot"] == pytest.approx(0.0, abs=1e-10)
    assert abs(answers.of(Quantity.of("theta2"))) > 1e-3  # it drifts once let go
    assert answers.of(Quantity.of("max(abs(theta2))[0,1]")) == pytest.approx(0.0, abs=1e-12)


def test_holding_what_no_motor_turns_is_refused():
    given = case(
        "A3_caster_robot",
        {"psi": [0.0]},
        parameters=ROBOT,
        state={"psi0": [0.0]},
        input={"t_end": 1.0, "hold": {"psi": 0.0, "until": 1.0}},
    )
    (check,) = checks_of(given)
    assert not check.passed and "no motor acts on 'psi'" in check.reason


def test_a_run_obeys_the_law_of_its_input(tmp_path: Path):
    """Equal torques on equal wheels with a trailing caster: uniform motion in closed form."""
    p = {**ROBOT, "c1": 0.0, "c2": 0.0, "c3": 0.0, "c4": 0.0}
    total = 2 * p["mw"] + p["mc"] + p["mb"] + p["mp"]
    inertia = total * p["r"] ** 2 + 2 * p["I"] + p["mc"] * p["r"] ** 2 / 2
    w = 2 * 0.3 / inertia  # for 0.3 cos(2 t) on each: rate (w/2) sin(2 t), angle (w/4)(1 - cos 2t)
    expected = {
        "theta_dot": [w / 2 * np.sin(2 * 2.5)] * 2,
        "theta1@1": w / 4 * (1 - np.cos(2.0)),
        "max(theta1)": w / 2,
        "argmax(theta1)": np.pi / 2,
        "min(theta1_dot)": -w / 2,
        "max(theta1_dot)[0,0.5]": w / 2 * np.sin(1.0),
        "max(abs(theta1_dot))[1,2.5]": w / 2,
        "argmax(abs(theta1_dot))[1,2.5]": 3 * np.pi / 4,
        "argmax(theta1)[0,0.7071]": 0.7071,
        "max(theta1)[0.1,0.7071]": w / 4 * (1 - np.cos(1.4142)),
        "min(theta1)": 0.0,
        "min(theta1)[0.7071,2]": w / 4 * (1 - np.cos(1.4142)),
        "omega": 0.0,
    }
    entry = {
        "id": "line",
        "system": "A3_caster_robot",
        "parameters": p,
        "state": {"psi0": np.pi / 2, "theta_dot0": [0, 0]},
        "expected": expected,
        "input": {"tau": ["0.3*cos(2*t)", "0.3*cos(2*t)"], "t_end": 2.5},
        "tolerance": {"rel": 1e-8, "abs": 1e-9},
    }
    path = tmp_path / "cases.json"
    path.write_text(json.dumps([entry]))
    found = verify(path)
    assert found.passed, str(found)
    assert len(found) == len(expected)
