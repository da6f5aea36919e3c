"""Stiff systems: coefficients, closed forms, agreement with explicit steps, and who takes over."""

import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import axode as ax
from axode.errors import StiffSystemWarning
from axode.problems.inputs.inputs import plan_input
from axode.problems.steps import rosenbrock
from axode.problems.steps.compiled import dynamics_of, tape_of
from axode.problems.steps.radau import METHOD, Radau
from axode.problems.steps.rosenbrock import StateSystem
from tests.problems import machines
from tests.problems.rooted_trees import density, trees
from variants import slow, some

CONDITION = 1e-13  # of coefficients that are given to sixteen digits
TIGHT = {"rtol": 1e-10, "atol": 1e-12}
AGREED = 1e-8  # two methods at TIGHT after a second, relative to the motion's size
BALANCED = 1e-9  # of the energy, as for explicit steps
IMPLICIT = ("rodas5p", "radau9")
each_implicit = pytest.mark.parametrize("method", IMPLICIT)


# coefficients ---------------------------------------------------------------------------------


def elementary(tree: tuple, alpha: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """Weights of a Rosenbrock method's stages: a single branch also sees the Jacobian."""
    matrix = beta if len(tree) == 1 else alpha
    product = np.ones(len(alpha))
    for branch in tree:
        product = product * (matrix @ elementary(branch, alpha, beta))
    return product


@cache
def rodas() -> tuple[np.ndarray, np.ndarray]:
    """alpha and Gamma behind the coefficients of the form without products by J."""
    square = [
        np.array([[*row, *[0.0] * (8 - len(row))] for row in table])
        for table in (rosenbrock.A, rosenbrock.C)
    ]
    Gamma = np.linalg.inv(np.eye(8) / rosenbrock.GAMMA - square[1])
    return square[0] @ Gamma, Gamma


def misfit(weights: np.ndarray, order: int, part: float = 1.0) -> float:
    alpha, Gamma = rodas()
    b = weights @ Gamma
    return max(
        abs(b @ elementary(tree, alpha, alpha + Gamma) - part**order / density(tree))
        for tree in trees(order)
    )


def test_order_conditions_of_rodas5p():
    """All 17 trees up to order 5 (the embedded solution: 8 up to order 4), and no more."""
    assert [len(trees(k)) for k in range(1, 6)] == [1, 1, 2, 4, 9]
    new, embedded = np.array(rosenbrock.NEW), np.array([*rosenbrock.A[-1], 0.0])
    for order in range(1, 6):
        assert misfit(new, order) < CONDITION
    for order in range(1, 5):
        assert misfit(embedded, order) < CONDITION
    assert misfit(new, 6) > 1e-3 and misfit(embedded, 5) > 1e-3
    alpha, Gamma = rodas()
    assert np.abs(alpha.sum(axis=1) - rosenbrock.NODES).max() < CONDITION
    assert np.abs(Gamma.sum(axis=1) - rosenbrock.TIME).max() < CONDITION


def test_order_conditions_of_the_interpolant_of_rodas5p():
    a, b, c = map(np.array, rosenbrock.DENSE)
    for s in (0.1, 0.5, 0.9):
        inside = s * (np.array(rosenbrock.NEW) + (1 - s) * (a + s * (b + s * c)))
        for order in range(1, 5):
            assert misfit(inside, order, s) < CONDITION


@pytest.mark.parametrize("stages", [3, 5])
def test_order_conditions_of_radau(stages: int):
    """B(2s - 1), C(s) and D(s - 1) give order 2s - 1 (Butcher 1964); the end is the last stage."""
    method = Radau(stages)
    A, c, b = method.A, method.nodes, method.A[-1]
    assert c[-1] == 1.0 and (np.diff(c) > 0).all() and c[0] > 0
    for k in range(1, 2 * stages):
        assert abs(b @ c ** (k - 1) - 1 / k) < CONDITION
    assert abs(b @ c ** (2 * stages - 1) - 1 / (2 * stages)) > 1e-6
    for k in range(1, stages + 1):
        assert np.abs(A @ c ** (k - 1) - c**k / k).max() < CONDITION
    for k in range(1, stages):
        assert np.abs((b * c ** (k - 1)) @ A - b * (1 - c**k) / k).max() < CONDITION


def test_what_follows_from_the_coefficients_of_radau():
    """Blocks, error and extrapolation: they hold for polynomials of degree 5."""
    T, c = METHOD.T, METHOD.nodes
    inverse = np.linalg.inv(METHOD.A)
    assert np.abs(T @ METHOD.blocks @ np.linalg.inv(T) - inverse).max() < 1e-11  # of about 100
    first = 1 / METHOD.blocks[0, 0]
    for degree in range(1, 6):  # x = t^k: the embedded solution is exact, so there is no error
        rate_at_start = 1.0 if degree == 1 else 0.0
        assert abs(first * rate_at_start + METHOD.error @ c**degree) < 1e-12
    assert abs(METHOD.error @ c**6) > 1e-6
    motion = np.polynomial.Polynomial([0.3, 1.0, -2.0, 0.5, 0.7, 0.2])
    increments, ratio = motion(c) - motion(0), 0.7
    ahead = np.array([[p(ratio) for p in row] for row in METHOD.extrapolation()])
    assert T @ ahead @ increments == pytest.approx(motion(1 + ratio * c) - motion(1), abs=1e-11)
    for s in (0.2, 0.8):
        inside = sum(p(s) * z for p, z in zip(METHOD.lagrange, increments, strict=True))
        assert inside == pytest.approx(motion(s) - motion(0), abs=1e-12)


@pytest.mark.parametrize("method", ["rodas5p", "radau9"])
def test_stability(method: str):
    """R(z) never exceeds one on the imaginary axis and vanishes at infinity: L-stable."""
    if method == "radau9":
        A, b = METHOD.A, METHOD.A[-1]
    else:
        alpha, Gamma = rodas()
        A, b = alpha + Gamma, np.array(rosenbrock.NEW) @ Gamma

    def R(z: complex) -> complex:
        return 1 + z * b @ np.linalg.solve(np.eye(len(A)) - z * A, np.ones(len(A)))

    assert max(abs(R(1j * y)) for y in np.linspace(0, 200, 4001)) < 1 + 1e-11
    assert abs(R(-1e8)) < 1e-6


# closed forms ---------------------------------------------------------------------------------


@cache
def oscillator(stiffness: float, damping: float) -> ax.Model:
    """A kilogram on a rail, with a spring and a damper; a motor."""
    bot = ax.Mechanism("oscillator", gravity=(0, 0, 0))
    cart = bot.add_body("cart", mass=1.0, inertia=ax.Inertia.point())
    bot.add_joint("rail", ax.Prismatic("x"), parent=bot.ground, child=cart)
    bot.add_spring("coil", "rail", stiffness=stiffness)
    bot.add_damper("drag", "rail", coefficient=damping)
    bot.add_motor("rail", "rail")
    return bot.derive().compile()


@each_implicit
def test_stiff_oscillator_in_closed_form(method: str):
    """x'' = -k x - c x': two exponentials, one 10^6 times faster than the other."""
    k, c = 1e6, 1e6
    fast, slow = np.roots([1.0, c, k])
    run = ax.simulate(oscillator(k, c), 3.0, start={"rail": 1.0}, method=method, **TIGHT)
    x = (fast * np.exp(slow * run.time) - slow * np.exp(fast * run.time)) / (fast - slow)
    assert np.abs(run["rail"] - x).max() < 1e-8
    assert run.info["steps"] < 3000  # explicit ones are a million
    assert run.energy_error < BALANCED


@each_implicit
def test_rigid_damper(method: str):
    """In the limit of a rigid damper nothing moves, and no step rings: L-stability."""
    run = ax.simulate(
        oscillator(1.0, 1e12),
        10.0,
        start={"rail": 1.0, "rail.rate": 1.0},
        method=method,
        rtol=1e-6,
        atol=1e-8,
    )
    assert np.abs(run["rail"][1:] - 1.0).max() < 1e-6
    assert np.abs(run["rail.rate"][1:]).max() < 1e-8
    assert run.info["steps"] < 500


@each_implicit
def test_forced_by_the_clock(method: str):
    """x'' = c (cos t - x') is x' = cos(t - 1/c) + ...: formulas of time count in the stages."""
    c = 1e5
    model = oscillator(0.0, c)
    run = ax.simulate(model, 2.0, input={"rail.force": f"{c} * cos(t)"}, method=method, **TIGHT)
    v = c * (c * np.cos(run.time) + np.sin(run.time)) / (1 + c**2)
    assert np.abs(run["rail.rate"][5:] - v[5:]).max() < 1e-9
    assert run.info["steps"] < 6000 and run.energy_error < BALANCED


@pytest.mark.parametrize("between", ["hold", "linear"])
@each_implicit
def test_samples(method: str, between: str):
    """Samples are met as explicit steps meet them, backwards in time too."""
    rng = np.random.default_rng(5)
    table = ax.Sampled({"rail.force": rng.normal(size=12)}, 0.1, between=between, start=0.2)
    model = oscillator(40.0, 3.0)
    for duration in (1.6, -1.6):
        options = {"start": {"rail": 0.3}, "input": table}
        options |= {} if duration > 0 else {"t0": 1.6, "backwards": True}
        run = ax.simulate(model, duration, method=method, **options, **TIGHT)
        other = ax.simulate(model, duration, method="dopri5", **options, **TIGHT)
        size = np.abs(other["rail"]).max()
        assert np.abs(run["rail"] - other["rail"]).max() < AGREED * size


@each_implicit
def test_feedback_is_in_the_jacobian(method: str):
    """Gains of 10^8 in a function of the state; a callback's inputs are held instead."""
    model = machines.slider(limit=1e12)
    law = {"rail.force": lambda s: -1e8 * (s["rail"] - 1.0) - 1e6 * s["rail.rate"]}
    run = ax.simulate(model, 1.0, input=law, method=method, **TIGHT)
    assert run.final["rail"] == pytest.approx(1.0, abs=1e-9) and run.info["steps"] < 3000
    held = ax.Callback(lambda t, s: [1.0 - s["rail"]])
    runs = [
        ax.simulate(model, 0.2, input=held, method=m, save_every=0.01, **TIGHT)
        for m in (method, "dopri5")
    ]
    # every step has its own input: both make one from sample to sample
    assert runs[0]["rail"] == pytest.approx(runs[1]["rail"], abs=1e-4)


@pytest.mark.parametrize(
    ("name", "kept"),
    [("seven_axis_arm", 7), ("rolling_disk", 4 + 3), ("four_bar", 2 + 1), ("unicycle", 2)],
)
def test_systems_hold_what_rates_depend_on(name: str, kept: int):
    """Systems keep the speeds of an arm, and the quaternion and speeds of a disk."""
    model = ax.gallery.build(name).derive().compile()
    dynamics = dynamics_of(model, plan_input(model, None), ())
    table = tape_of(model, "state_rate_jacobian")
    system = StateSystem(replace(dynamics, rate_jacobian=table)).factor()
    assert system.columns == kept, name
    assert system.size + system.eliminated == dynamics.n_k


@pytest.mark.slow
def test_van_der_pol():
    """x'' = mu ((1 - x^2) x' - x) with mu = 1000, against SciPy's Radau: corners and all."""
    mu = 1e3
    law = {"rail.force": lambda s: mu * ((1 - s["rail"] ** 2) * s["rail.rate"] - s["rail"])}
    run = ax.simulate(
        machines.slider(limit=1e12),
        3.0,
        start={"rail": 2.0},
        input=law,
        method="radau9",
        rtol=1e-9,
        atol=1e-9,
    )
    other = solve_ivp(
        lambda t, x: [x[1], mu * ((1 - x[0] ** 2) * x[1] - x[0])],
        (0, 3),
        [2.0, 0.0],
        method="Radau",
        rtol=1e-10,
        atol=1e-10,
        t_eval=run.time,
        jac=lambda t, x: [[0, 1], [-mu * (2 * x[0] * x[1] + 1), mu * (1 - x[0] ** 2)]],
    )
    assert np.ptp(run["rail"]) > 3.9  # both corners are passed
    assert np.abs(run["rail"] - other.y[0]).max() < 1e-4  # 1e-9 times the corners' slope, 10^5


# agreement ------------------------------------------------------------------------------------

MOTIONS = {
    "rolling_disk": {"base.wx": 0.3, "base.wy": 8.0, "base.wz": 0.4},
    "wheeled_pendulum": {"pitch": 0.7, "left.rate": 3.0, "pitch.rate": 1.0},
    "four_bar": {"crank.rate": 5.0},
    "platform": {"base.vx": 0.1, "base.wz": 0.2, "base.vz": 0.05},
}


@pytest.mark.parametrize("name", slow(some(MOTIONS, "platform"), "rolling_disk"))
def test_agrees_with_explicit_steps(name: str):
    """Wheels, loops, quaternions: the same motion, the same balance of energy."""
    model = getattr(machines, name)()
    options = {"start": MOTIONS[name], "save_every": 0.01, **TIGHT}
    wanted = ax.simulate(model, 1.0, method="dopri5", **options)
    methods = IMPLICIT if name == "rolling_disk" else ("radau9",)
    for method in methods:
        run = ax.simulate(model, 1.0, method=method, **options)
        assert run.energy_error < BALANCED
        for column in (*model.coordinates, *model.independent, "kinetic"):
            size = max(1.0, np.abs(wanted[column]).max())
            assert np.abs(run[column] - wanted[column]).max() < AGREED * size, column


def test_a_batch_is_its_single_runs():
    """Every run has its own steps; they differ by rounding only, which the motion lets grow."""
    model = machines.wheeled_pendulum()
    pitches = np.linspace(0.2, 1.0, 5)
    options = {"method": "radau9", "save_every": 0.1, **TIGHT}
    many = ax.simulate(model, 0.5, start={"pitch": pitches}, **options)
    assert many.info["steps"] > 50
    for k in (0, 4):
        one = ax.simulate(model, 0.5, start={"pitch": pitches[k]}, **options)
        for column in (*model.coordinates, *model.independent):
            assert np.abs(many[column][k] - one[column]).max() < 1e-11, column


def test_ground_that_moves_by_the_clock():
    """A prescribed joint makes the rate depend on time without an input."""
    bot = ax.Mechanism("shaken", gravity=(0, 0, -9.81))
    cart = bot.add_body("cart", mass=1.0, inertia=ax.Inertia.point())
    rod = bot.add_body("rod", mass=1.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.01))
    bot.add_joint("shake", ax.Prismatic("x"), parent=bot.ground, child=cart)
    bot.add_joint("pin", ax.Revolute("y"), parent=cart, child=rod)
    bot.prescribe("shake", lambda t: 0.1 * np.sin(8 * t))
    model = bot.derive().compile()
    wanted = ax.simulate(model, 1.0, start={"pin": 0.5}, method="dopri5", **TIGHT)
    for method in IMPLICIT:
        run = ax.simulate(model, 1.0, start={"pin": 0.5}, method=method, **TIGHT)
        assert np.abs(run["pin"] - wanted["pin"]).max() < AGREED
        assert run.energy_error < BALANCED


def test_a_model_from_a_file(tmp_path):
    """Tapes are differentiated as they are: neither the mechanism nor CasADi is needed."""
    model = oscillator(1e6, 1e6)
    model.save(tmp_path / "oscillator.axm")
    options = {"start": {"rail": 1.0}, "input": {"rail.force": "sin(t)"}, "method": "radau9"}
    run = ax.simulate(ax.load_model(tmp_path / "oscillator.axm"), 1.0, **options)
    assert run["rail"] == pytest.approx(ax.simulate(model, 1.0, **options)["rail"], abs=1e-14)


# who takes over -------------------------------------------------------------------------------


def test_an_implicit_method_takes_over():
    """Explicit steps would be 300 000: the run reports when radau9 took over, and who began."""
    run = ax.simulate(oscillator(1e5, 1e5), 10.0, start={"rail": 1.0})
    took_over = run.info["took_over"]
    assert run.info["method"] == "dop853, radau9" and took_over["method"] == "radau9"
    assert took_over["runs"] == 1 and 0 < took_over["first"] == took_over["last"] < 1.0
    assert run.info["steps"] < 30_000
    fast, slow = np.roots([1.0, 1e5, 1e5])
    assert np.abs(run["rail"] - fast * np.exp(slow * run.time) / (fast - slow))[1:].max() < 1e-8
    assert run.energy_error < BALANCED


def test_runs_of_a_batch_are_asked_one_by_one():
    """Only those that are stiff change; events are found before and after."""
    gains = np.array([1.0, 1e5, 2e5])
    bot = ax.Mechanism("damped", gravity=(0, 0, 0))
    drag = ax.Parameter("drag", 1.0)
    cart = bot.add_body("cart", mass=1.0, inertia=ax.Inertia.point())
    bot.add_joint("rail", ax.Prismatic("x"), parent=bot.ground, child=cart)
    bot.add_damper("drag", "rail", coefficient=drag)
    bot.add_spring("coil", "rail", stiffness=drag)
    model = bot.derive().compile(parameters="free")
    watch = ax.Event("half", lambda s: s["rail"] - 0.5)
    run = ax.simulate(model, 2.0, start={"rail": 1.0}, parameters={"drag": gains}, events=[watch])
    assert run.info["took_over"]["runs"] == 2 and run.statuses == ("finished",) * 3
    times = {e.index_of_run: e.time for e in run.events}
    for k in (1, 2):  # the slow exponential alone, from 1 + 1/gain at the start
        fast, slow = np.roots([1.0, gains[k], gains[k]])
        assert times[k] == pytest.approx(np.log(0.5 * (fast - slow) / fast) / slow, abs=1e-8)


def test_motions_without_stiffness_keep_their_method():
    """Bit for bit what dop853 does, and no word about stiffness."""
    model = machines.wheeled_pendulum()
    start = {"start": MOTIONS["wheeled_pendulum"]}
    with warnings.catch_warnings():
        warnings.simplefilter("error", StiffSystemWarning)
        explicit = ax.simulate(model, 3.0, method="dop853", **start)
    automatic = ax.simulate(model, 3.0, **start)
    assert np.array_equal(automatic.values, explicit.values, equal_nan=True)
    assert automatic.info["method"] == "dop853" and "took_over" not in automatic.info


def test_short_stiff_runs_are_not_worth_it():
    """A thousand explicit steps cost less than compiling another method."""
    run = ax.simulate(oscillator(1e5, 1e5), 0.02, start={"rail": 1.0})
    assert run.info["method"] == "dop853" and run.info["steps"] > 300


def test_files_may_lack_what_implicit_steps_need(tmp_path):
    """`auto` stays explicit, the others name what is missing."""
    path, model = tmp_path / "oscillator.axm", oscillator(1e5, 1e5)
    model.save(path, [name for name in model.functions if name != "state_rate_jacobian"])
    read = ax.load_model(path)
    run = ax.simulate(read, 1.0, start={"rail": 1.0})
    assert run.info["method"] == "dop853" and run.info["steps"] > 10_000
    for method in IMPLICIT:
        with pytest.raises(ax.NotApplicable, match=r"no state_rate_jacobian; save it along: model"):
            ax.simulate(read, 1.0, method=method)


@pytest.mark.parametrize("method", ["dopri5", "dop853"])
def test_who_asks_for_explicit_steps_keeps_them(method):
    told = rf"'oscillator' is stiff.*the steps of {method} short; use method='auto' or 'radau9'"
    with pytest.warns(StiffSystemWarning, match=told):
        run = ax.simulate(oscillator(1e5, 1e5), 1.0, start={"rail": 1.0}, method=method)
    assert run.info["method"] == method and run.info["steps"] > 10_000


def test_implicit_steps_that_are_no_longer_go_back(monkeypatch):
    """Where an implicit step would have to be much longer than it is, explicit ones go on."""
    monkeypatch.setattr("axode.problems.simulate.switch_to_implicit.COST_RATIO", 1e9)
    monkeypatch.setattr("axode.problems.simulate.runs.REVIEW", 5)
    run = ax.simulate(oscillator(1e5, 1e5), 1.0, start={"rail": 1.0})
    assert run.info["method"] == "dop853" and run.info["steps"] > 10_000
    assert run.status == "finished"


def test_a_run_that_went_back_is_asked_again():
    """While another cart rings, implicit steps are short; afterwards they are worth their price."""
    bot = ax.Mechanism("two carts", gravity=(0, 0, 0))
    for name, stiffness, drag in (("slow", 1e5, 1e5), ("ringing", 4e6, 40.0)):
        cart = bot.add_body(name, mass=1.0, inertia=ax.Inertia.point())
        bot.add_joint(name, ax.Prismatic("x"), parent=bot.ground, child=cart)
        bot.add_spring(f"{name} coil", name, stiffness=stiffness)
        bot.add_damper(f"{name} drag", name, coefficient=drag)
    run = ax.simulate(bot.derive().compile(), 20.0, start={"slow": 1.0, "ringing": 1e-3})
    assert run.info["method"] == "dop853, radau9" and run.info["took_over"]["first"] > 0.1
    assert run.info["steps"] < 200_000  # explicit ones would be 600 000
    fast, slow = np.roots([1.0, 1e5, 1e5])
    assert np.abs(run["slow"] - fast * np.exp(slow * run.time) / (fast - slow))[1:].max() < 1e-8


def test_unknown_methods_are_named():
    with pytest.raises(ax.UnknownName, match="auto, rk4, dopri5, dop853, rodas5p, radau9"):
        ax.simulate(machines.slider(), 1.0, method="radau")
    with pytest.raises(ax.InvalidArgument, match="radau9 chooses its own steps"):
        ax.simulate(machines.slider(), 1.0, method="radau9", step=1e-3)
