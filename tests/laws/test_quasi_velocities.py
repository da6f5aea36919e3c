"""Quasi-velocities w = W(q) v as independent speeds: another basis of the same motion."""

import copy
from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

import axode as ax
from axode import gallery
from axode.cli import run as cli
from axode.model.model_parts import facts_of
from axode.symbolic.formulations import FORMULATIONS
from laws.cases import ROUNDING, SOLVED, WELL_POSED, Case, agree, case_of
from random_mechanisms import MECHANISMS
from variants import some

STAICU = ("theta1_dot", "theta2_dot", "theta3_dot")
UNICYCLE = {
    "v [m/s]": "r / 2 * (theta1_dot + theta2_dot)",
    "omega [rad/s]": "rho * (theta2_dot - theta1_dot)",
    "theta3_dot": "theta3_dot",
}
EXACT = {"rtol": 1e-11, "atol": 1e-13, "save_every": 0.1}


def combinations(case, seed):
    """Formulas of random combinations of the independent speeds, and their matrix at q."""
    names, coordinates = case.equations.independent, case.equations.coordinates
    rng = np.random.default_rng(seed)
    M = np.round(np.eye(len(names)) + 0.3 * rng.normal(size=(len(names),) * 2), 3)
    places = rng.integers(len(coordinates), size=M.shape)
    formulas = {}
    for k, row in enumerate(M):
        terms = (
            f"({float(m)}) * (1 + 0.2 * sin({coordinates[c]})) * {name}"
            for m, c, name in zip(row, places[k], names, strict=True)
        )
        formulas[f"quasi{k}"] = " + ".join(terms)
    return formulas, lambda q: M * (1 + 0.2 * np.sin(q[places]))


FEW = (
    *("four_bar", "rolling_ball", "rolling_disk", "fixed_wheel", "prescribed_yaw", "steered_plate"),
    *("massless_coupler", "parametric_loop", "geared_five_bar", "shaken_pendulum", "snakeboard"),
)


@pytest.mark.parametrize("name", some(MECHANISMS, *(n for n in MECHANISMS if n not in FEW)))
def test_any_basis_of_the_speeds_gives_the_same_motion(name):
    case = case_of(name)
    formulas, W_at = combinations(case, seed=len(name))
    other = Case(MECHANISMS[name](), independent=formulas)
    e, f = case.equations, other.equations
    joints, rows = len(e.speeds), len(e.rows)
    for formulation in list(FORMULATIONS)[len(name) % 3 :: 3]:
        try:
            g = other.by(formulation)
        except ax.NotApplicable:
            continue
        v_dot = ca.substitute(g.accelerations, g.nu_dot, g.forward_dynamics)
        for state in case.states:
            W = W_at(state.q)
            P = np.linalg.inv(W)  # nu = P w, forces on w are P^T those on nu
            if np.abs(P).max() > WELL_POSED:
                continue
            w = W @ state.v[list(case.system.independent)]
            there = replace(state, nu=w, nu_dot=0 * w, v=np.append(state.v, w))
            agree(other.vector(there, f.v), there.v, SOLVED, "speeds")
            agree(other.vector(there, f.energy), case.vector(state, e.energy), ROUNDING, "energy")
            mine = ca.substitute(e.accelerations, e.nu_dot, e.forward_dynamics)
            theirs = other.vector(there, v_dot)
            agree(theirs[:joints], case.vector(state, mine), SOLVED, "accelerations")
            balls = any(not contact.wheel.has_axis for contact in case.mechanism.contacts)
            lam = other.vector(there, g.multipliers)
            if g.rows[:rows] == e.rows and not balls:
                agree(lam[:rows], case.vector(state, e.multipliers), SOLVED, "constraint forces")
            agree(lam[rows:], 0 * w, SOLVED, "nothing acts on a definition")
            I, I_own = case.at(state, e.I)[0], other.at(there, g.I)[0]
            agree(I_own, P.T @ I @ P, SOLVED, "inertia")
            for part in ("tau", "gamma", "delta"):
                force = case.vector(state, getattr(e, part))
                agree(other.vector(there, getattr(g, part)), P.T @ force, SOLVED, part)
            skew = other.at(there, other.along(g.I) - 2 * g.C)[0]
            agree(skew, -skew.T, 10 * SOLVED, "I_dot - 2 C")


def test_inertia_of_the_wheeled_pendulum_is_equation_24_as_printed():
    e = gallery.build("wheeled_pendulum").derive(independent=STAICU)
    p = dict(zip(e.parameters, ca.vertsplit(e.p), strict=True))
    m, M, r, d, rho, J1, J2, J3 = (p[n] for n in ("m", "M", "r", "d", "rho", "J1", "J2", "J3"))
    theta3 = e.q[e.coordinates.index("theta3")]
    c, s = ca.cos(theta3), ca.sin(theta3)
    Y = J1 * c**2 + J2 * s**2
    A11 = 0.5 * m * r**2 * (3 + rho**2) + rho**2 * Y + 0.25 * M * r**2
    A12 = -0.5 * m * r**2 * rho**2 - rho**2 * Y + 0.25 * M * r**2
    A13 = 0.5 * M * r * d * c
    printed = ca.blockcat([[A11, A12, A13], [A12, A11, A13], [A13, A13, J3]])
    function = ca.Function("I", [e.q, e.p], [e.I, printed])
    rng = np.random.default_rng(0)
    for _ in range(3):
        I, expected = function(rng.normal(size=6), rng.uniform(0.5, 2, size=e.p.shape[0]))
        agree(I, expected, ROUNDING)
    B = ca.jacobian(e.tau, e.u)  # the torques act as (23) to (28) have them: M1, M2, M1 + M2
    assert np.array_equal(np.array(ca.DM(ca.simplify(B))), [[1, 0], [0, 1], [1, 1]])


@pytest.fixture(scope="module")
def bases():
    robot = gallery.build("wheeled_pendulum")
    return robot.derive(independent=UNICYCLE).compile(), robot.derive().compile()


OWN = {"v": 1.0, "omega": 0.3, "theta3": 0.2}
JOINTS = {"surge": 1.0, "psi_dot": 0.3, "theta3": 0.2}


@pytest.mark.slow
def test_runs_start_and_are_recorded_in_quasi_velocities(bases):
    own, joints = bases
    push = {"M1": 0.1, "M2": "0.1 * sin(t)"}
    run = ax.simulate(own, 1.0, start=OWN, input=push, **EXACT)
    same = ax.simulate(joints, 1.0, start=JOINTS, input=push, **EXACT)
    for name in ("x", "psi", "theta3", "phi1_dot", "wheel1.longitudinal", "surge"):
        assert np.abs(run[name] - same[name]).max() < 1e-10
    assert np.abs(run["v"] - same["surge"]).max() < 1e-10
    assert (run.unit("v"), run.unit("omega")) == ("m/s", "rad/s")
    assert not [signal.name for signal in own.signals if "definition" in signal.name]
    motion = {"v": "sin(t)", "omega": "0.3 * t", "theta3": "0.1 * sin(t)"}
    with pytest.warns(ax.UnderactuatedMotionWarning):
        needed = ax.inverse_dynamics(own, motion, times=run.time)
    motion = {"surge": "sin(t)", "psi_dot": "0.3 * t", "theta3": "0.1 * sin(t)"}
    with pytest.warns(ax.UnderactuatedMotionWarning):
        same = ax.inverse_dynamics(joints, motion, times=run.time)
    assert np.abs(needed["M1"] - same["M1"]).max() < 1e-12
    assert np.abs(needed["v.missing"] - same["surge.missing"]).max() < 1e-12


@pytest.mark.slow
def test_sweeps_gradients_and_linear_models_agree(bases):
    found = []
    for model, start in zip(bases, (OWN, JOINTS), strict=True):
        first, *_ = start
        swept = start | {first: np.linspace(0, 1, 3)}
        result = ax.sweep(model, 0.5, start=swept, outputs={"x": ("last", "x")}, progress=False)
        cost = ax.Cost(model, 0.5, final=lambda s: s["x"] ** 2 + s["psi"], start=start, step=0.01)
        slopes = ax.gradient(cost, ["M", "d", f"start.{first}", "start.theta3"])
        linear = ax.linearize(model)
        modes = np.sort_complex(np.linalg.eigvals(linear.A))
        found.append([result["x"], [float(slopes[n]) for n in slopes], modes])
    for own, joints in zip(*found, strict=True):
        assert np.abs(np.asarray(own) - np.asarray(joints)).max() < 1e-9


def test_derivatives_are_those_of_differences(bases):
    model, _ = bases
    q, nu, u = model.home + 0.1, np.array([1.0, 0.5, 0.2]), np.array([0.1, 0.2])
    table, h = model.derivatives("forward_dynamics", q, nu, u), 1e-6
    assert not {"v", "omega"} & set(facts_of(model).tangents)  # they have no places of their own
    for by, columns, at in (
        (table.by_nu, np.eye(3), lambda x: model.forward_dynamics(q, nu + x, u)),
        (table.by_q, model.tangent_map(q).T, lambda x: model.forward_dynamics(q + x, nu, u)),
    ):
        differences = [(at(h * x) - at(-h * x)) / (2 * h) for x in columns]
        assert np.abs(by - np.array(differences).T).max() < 1e-7


def test_models_and_copies_keep_their_quasi_velocities(bases, tmp_path):
    own, _ = bases
    assert copy.deepcopy(own.equations).independent == ("v", "omega", "theta3_dot")
    own.save(tmp_path / "own.axm", ["forward_dynamics"])
    loaded = ax.load_model(tmp_path / "own.axm")
    state = own.home, np.ones(3), np.ones(2)
    assert np.array_equal(loaded.forward_dynamics(*state), own.forward_dynamics(*state))
    report = own.equations.mobility
    assert (report.rows, report.rank, report.configuration_dof) == (6, 3, 6)
    assert "v [m/s] = r / 2 * (theta1_dot + theta2_dot)" in str(report)


@pytest.mark.slow
def test_the_command_line_takes_formulas(capsys):
    own = "v [m/s] = r/2*(theta1_dot + theta2_dot), omega = rho*(theta2_dot - theta1_dot)"
    what = ["--independent", f"{own}, theta3_dot", "--part=I", "--state=theta3=0", "--json"]
    assert cli(["derive", "wheeled_pendulum", *what]) == 0
    assert '"v"' in capsys.readouterr().out
    option = f"--option=independent={own}, theta3_dot"
    assert cli(["simulate", "wheeled_pendulum", "--time=0.1", option, "--start=v=1"]) == 0
    assert "omega" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("independent", "words"),
    [
        ({"v": "phi1_dot"}, "3 independent speeds, 1 were named"),
        ({"v": "phi1_dot", "w": "2 * phi1_dot", "theta3_dot": "theta3_dot"}, "tie v, w"),
        (["v = phi1_dot ** 2", "w = phi2_dot", "theta3_dot"], "not linear in the speeds surge"),
        (["v = phi1_dot + 1", "w = phi2_dot", "theta3_dot"], "not zero where all speeds are"),
        (["v = phi1 + 2", "w = phi2_dot", "theta3_dot"], "none of the speeds occurs in it"),
        (["v = phi1_dot * t", "w = phi2_dot", "theta3_dot"], "depends on time"),
        (["v = phi1_dt", "w = phi2_dot", "theta3_dot"], "Did you mean 'phi1_dot'"),
        (["v = phi1_dot +", "w = phi2_dot", "theta3_dot"], "is not a formula"),
        (["M1 = phi1_dot", "w = phi2_dot", "theta3_dot"], "'M1' is taken"),
        (["v = ", "w = phi2_dot", "theta3_dot"], "neither a name nor NAME = FORMULA"),
        (["theta1", "theta2_dot", "theta3_dot"], "none of the speeds occurs in it"),
    ],
)
def test_errors_say_what_is_wrong_with_a_combination(independent, words):
    with pytest.raises((ax.InvalidIndependent, ax.InvalidArgument, ax.UnknownName)) as caught:
        gallery.build("wheeled_pendulum").derive(independent=independent)
    assert words in str(caught.value)
