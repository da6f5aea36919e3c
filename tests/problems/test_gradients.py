"""Gradients of runs: forwards against reverse, against differences of the same steps, by all."""

import math
import tracemalloc

import numpy as np
import pytest
import scipy.integrate

import axode as ax
from axode.codegen.tape.operations import MEANING
from axode.codegen.targets.cpu_rollout import Rollout
from axode.model.conditions import Conditions
from axode.problems.assemble.closure import ClosureSystem
from axode.problems.gradients import ended_runs
from axode.problems.gradients.backward import Backward
from axode.problems.gradients.ended_runs import begin_runs
from axode.problems.gradients.reverse_program import SAMPLES, reverse_program, tangent_program
from axode.problems.gradients.steps_of_cost import TABLEAUS, CostTapes, StepOfCost
from axode.problems.inputs.inputs import plan_input
from axode.problems.inputs.tracing import traced_tape
from axode.problems.runs.session import Session
from axode.problems.runs.step_log import StepLog
from axode.problems.steps import compiled
from axode.problems.steps.compiled import adjoints_of, dynamics_of
from emulated_gpu import install
from tests.problems import machines
from tests.problems.gradient_robots import balance, balancer, four_bar
from variants import further

TRANSPOSED = 1e-12  # relative: forwards and reverse are one matrix and its transpose
EXTENDED = 1e-11  # relative: differences of steps in long doubles, of order four
DIFFERENCES = 3e-7  # relative: differences of compiled runs in doubles
CRANK = {"theta1": 0.8, "theta1_dot": 1.0}


def effort(s):
    return s["pitch"] ** 2 + 1e-3 * s["left.torque"] ** 2


def difference(cost, name, value, step=1e-4):
    """Central difference of order four of a cost by a variable, all of its elements together."""
    h = step * max(1.0, float(np.abs(value).max()))
    f = [cost.value({name: np.asarray(value) + k * h}) for k in (-2, -1, 1, 2)]
    return (f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * h)


def assert_gradient(cost, at, tolerance=DIFFERENCES):
    found, cost = ax.gradient(cost, at), cost.changed(at)
    assert found.value == pytest.approx(cost.value(), rel=1e-13)
    for name, value in at.items():
        expected = difference(cost, name, value)
        own = found[name]
        own = own if own.shape == expected.shape else own.sum(axis=-1)
        scale = np.abs(expected).max() + 1e-6
        assert np.abs(own - expected).max() < tolerance * scale, name
    return found


# one step ----------------------------------------------------------------------------------------


def steps_of(model, method, law=None):
    plan = plan_input(model, law, gains=True)
    d = dynamics_of(model, plan, ())
    cost = traced_tape(model, "running", lambda s: [s.q[0] ** 2 + s.nu[0] ** 2], inputs=True)
    return StepOfCost(TABLEAUS[method], d, CostTapes(cost), adjoints_of(model)), plan


def start_of(model, runs=1):
    rng = np.random.default_rng(3)
    q, nu = np.tile(model.home, (runs, 1)), 0.3 * rng.normal(size=(runs, len(model.independent)))
    return {"q": q, "nu": nu}


def logged(step, start, given, h, count):
    """Log of a run, each state from the step before in the interpreter."""
    rows, t = [], 0.0
    state = {k: v[0] for k, v in start.items()}
    for _ in range(count):
        rows.append(np.concatenate([state["q"], state["nu"], [t, h]]))
        made = evaluate(step, state | given | {"t": [t], "h": [h]}, np.float64)
        state, t = {"q": made["q_n"], "nu": made["nu_n"]}, t + h
    return np.array(rows)


def evaluate(step, known, number):
    """Evaluations of a step, one after the other, in numbers of any precision."""
    known = {k: np.asarray(v, dtype=number) for k, v in known.items()}
    for e in step.evaluations:
        n = len(e.tape.inputs)
        arrays = [known[b] for b in e.buffers[:n]]
        with np.errstate(all="ignore"):
            made = e.tape.fold(
                lambda port, i, arrays=arrays: np.atleast_1d(arrays[port])[i],
                lambda x: number(x),
                lambda kind, *x: MEANING[kind](*x),
            )
        first = 0
        for b, port in zip(e.buffers[n:], e.tape.outputs, strict=True):
            known[b] = np.array(made[first : first + port.size], dtype=number)
            first += port.size
    return known


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("four_bar", "rk4"),
        ("four_bar", "dopri5"),
        pytest.param("balancer", "rk4", marks=pytest.mark.slow),
        further("balancer", "dopri5"),
    ],
)
def test_steps_forwards_and_backwards(name, method):
    """w . (J v) = (J^T w) . v of ten compiled steps, and J v is what long doubles say."""
    law = ax.Law(balance, kp=60.0, kd=15.0) if name == "balancer" else None
    model = four_bar() if name == "four_bar" else balancer()
    step, plan = steps_of(model, method, law)
    d, h, count = step.d, 0.01, 10
    given = {"p": np.array(list(model.parameters.values()))}
    given |= {"gains": plan.gains} if law else {"u": np.array([0.2])}
    given |= d.numbers
    start = start_of(model)
    rows = logged(step, start, given, h, count)
    shared = ["p", "gains" if law else "u"]
    rng = np.random.default_rng(0)
    v = {n: rng.normal(size=(1, len(given[n]))) * (1e-2 if n == "p" else 1.0) for n in shared}
    v |= {n: rng.normal(size=start[n].shape) for n in ("q", "nu")}
    w = {n: rng.normal(size=start[n].shape) for n in ("q", "nu")}

    ahead = Rollout(tangent_program(step, shared))
    b = ahead.new_state(1, {f"{n}~": v[n] for n in ("q", "nu")})
    b |= {f"{n}~": v[n] for n in shared} | {"count": np.array([float(count)])}
    b |= {n: a for n, a in given.items() if n in ahead.program.given}
    b |= {n: np.array([x]) for n, x in zip(SAMPLES, (0.0, h, h * count, float(count)), strict=True)}
    ahead(b, {"log": rows, "out": np.zeros((1, count + 1, rows.shape[1] - 2))}, budget=2**62)

    of = {n: range(len(given[n])) for n in shared}
    back = Rollout(reverse_program(step, of))
    a = back.new_state(1, {f"a_{n}": w[n] for n in ("q", "nu")} | {"index": count - 1.0})
    a |= {n: x for n, x in given.items() if n in back.program.given}
    a["count"] = np.array([float(count)])
    back(a, {"log": rows}, budget=2**62)
    by_cost = back.new_state(1, {"index": count - 1.0})  # the gradient of the cost alone
    by_cost |= {n: x for n, x in a.items() if n in back.program.given}
    back(by_cost, {"log": rows}, budget=2**62)
    left = sum(float((w[n] * b[f"{n}~"]).sum()) for n in ("q", "nu"))
    pairs = [(f"a_{n}", v[n]) for n in ("q", "nu")] + [(f"g_{n}", v[n]) for n in shared]
    right = sum(float(((a[n] - by_cost[n]) * x).sum()) for n, x in pairs)
    size = sum(float(np.abs((a[n] - by_cost[n]) * x).sum()) for n, x in pairs)
    assert left == pytest.approx(right, abs=TRANSPOSED * size)

    wide = np.longdouble

    def end(shift):
        """State and cost after all steps, from a start moved along the direction."""
        moved = {n: wide(1) * given[n] + wide(shift) * v[n][0] for n in shared}
        known = {n: wide(1) * x for n, x in given.items()} | moved
        state = {n: wide(1) * start[n][0] + wide(shift) * v[n][0] for n in ("q", "nu")}
        total = wide(0)
        for row in rows:
            made = evaluate(step, known | state | {"t": row[-2:-1], "h": row[-1:]}, wide)
            state, total = {"q": made["q_n"], "nu": made["nu_n"]}, total + made["dc"][0]
        return np.concatenate([state["q"], state["nu"]]), total

    k = wide(2) ** -12
    ends = [end(s * k) for s in (-2, -1, 1, 2)]
    slope, cost = ((f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * k) for f in zip(*ends, strict=True))
    found = np.concatenate([b["q~"][0], b["nu~"][0]])
    assert np.abs(found - slope).max() < EXTENDED * np.abs(slope).max()
    by_all = sum(float((by_cost[n] * x).sum()) for n, x in pairs)
    assert by_all == pytest.approx(float(cost), rel=1e-10)


# costs of runs -----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["rk4", "dopri5"])
def test_everything_a_closed_loop_depends_on(method):
    """Parameters that move the loop, a constant input, and a start that has to be assembled."""
    model = four_bar()
    cost = ax.Cost(
        model,
        0.3,
        start=CRANK,
        input={"tau": 0.3},
        running=lambda s: s["theta2"] ** 2 + 0.01 * s["tau"] ** 2,
        final="theta3_dot**2",
        method=method,
    )
    at = {**model.parameters, "tau": 0.3, "start.theta1": 0.8, "start.theta1_dot": 1.0}
    found = assert_gradient(cost, at)
    assert list(found) == list(at) and len(found) == len(at)
    assert "value" in repr(found) and "four_bar" in repr(cost)


@pytest.mark.slow
def test_starts_as_arrays_are_differentiated_along_tangents():
    """Displacements that keep the loop closed and the wheels on the ground, and speeds."""
    for model, given in ((four_bar(), {"tau": 0.3}), (balancer(), {})):
        state = ax.assemble(model, {})
        nu = 0.3 * np.ones(len(model.independent))

        def cost(q, nu, model=model, given=given):
            return ax.Cost(
                model, 0.1, start=(q, nu), input=given, final=lambda s: s.q.T @ s.q, step=2e-3
            )

        found = ax.gradient(cost(state.q, nu))
        along = model.tangent_map(state.q)
        assert found.by_tangents.shape == (len(model.tangents),) and not len(found)
        h = 1e-4
        for k in range(len(model.tangents)):
            ends = []
            for part in (-2, -1, 1, 2):  # on the manifold to second order, and then closed
                near = state.q + part * h * along[:, k]
                q = ClosureSystem(model, {}, [], Conditions()).close(near[np.newaxis])[0]
                ends.append(float(cost(q, nu).value()))
            slope = (ends[0] - 8 * ends[1] + 8 * ends[2] - ends[3]) / (12 * h)
            assert found.by_tangents[k] == pytest.approx(slope, rel=1e-6, abs=1e-8)
        unit = np.eye(len(nu))[0]
        ends = [float(cost(state.q, nu + part * h * unit).value()) for part in (-2, -1, 1, 2)]
        slope = (ends[0] - 8 * ends[1] + 8 * ends[2] - ends[3]) / (12 * h)
        assert found.by_speeds[0] == pytest.approx(slope, rel=1e-7)


@pytest.mark.slow
def test_wheels_quaternions_and_laws():
    """Gains and parameters of robots that differ; each run has the gradient that it has alone."""
    kp, mass = np.array([50.0, 60.0, 70.0]), np.array([7.0, 8.0, 9.0])
    given = {"running": effort, "final": lambda s: (s["surge"] - 0.5) ** 2, "step": 2e-3}
    cost = ax.Cost(
        balancer(),
        0.5,
        start={"pitch": 0.2, "surge": 0.1},
        input=ax.Law(balance, kp=kp, kd=15.0),
        parameters={"mass": mass},
        **given,
    )
    at = {"kp": kp, "kd": 15.0, "mass": mass, "radius": 0.1, "start.pitch": 0.2, "start.surge": 0.1}
    found = assert_gradient(cost, at)
    alone = ax.Cost(
        balancer(),
        0.5,
        start={"pitch": 0.2, "surge": 0.1},
        input=ax.Law(balance, kp=60.0, kd=15.0),
        **given,
    )
    one = ax.gradient(alone, {"kp": 60.0, "mass": 8.0})
    assert one["kp"] == pytest.approx(found["kp"][1], rel=1e-9)
    assert one["mass"] == pytest.approx(found["mass"][1], rel=1e-9)


@pytest.mark.parametrize(
    ("between", "method"),
    [("hold", "rk4"), ("linear", "dopri5"), further("hold", "dopri5"), further("linear", "rk4")],
)
def test_samples_of_inputs(between, method):
    """Each sample has its derivative; those beyond the end have none."""
    samples, model = np.linspace(0.0, 1.0, 7), four_bar()
    cost = ax.Cost(
        model,
        0.23,
        start=CRANK,
        input=ax.Sampled({"tau": samples}, 0.05, between=between),
        final="theta1_dot**2",
        method=method,
        step=3e-3 if method == "rk4" else None,
    )
    found = assert_gradient(cost, {"tau": samples})["tau"]
    unit, h = np.eye(7)[2], 1e-4
    ends = [cost.value({"tau": samples + k * h * unit}) for k in (-2, -1, 1, 2)]
    expected = (ends[0] - 8 * ends[1] + 8 * ends[2] - ends[3]) / (12 * h)
    assert found[2] == pytest.approx(expected, rel=1e-6)
    assert found[-1] == 0.0 and np.abs(found[:5]).min() > 0


@pytest.mark.slow
@pytest.mark.parametrize("method", ["rk4", "dopri5"])
def test_the_time_of_an_event_moves(method):
    """A run that an event ends, with the cost of its time; another event does not end it."""
    stop = ax.Event("far", lambda s: s["theta1"] - 0.6, stop=True)
    look = ax.Event("near", lambda s: s["theta1"] - 0.7)
    cost = ax.Cost(
        four_bar(),
        5.0,
        start=CRANK,
        input={"tau": 0.3},
        running=lambda s: 1.0 + s["theta2"] ** 2,
        final=lambda s: s["theta1_dot"] ** 2 + 3.0 * s.t,
        events=[look, stop],
        method=method,
    )
    at = {"m2": 0.5, "a3": 0.35, "tau": 0.3, "start.theta1": 0.8, "start.theta1_dot": 1.0}
    assert_gradient(cost, at)
    time = ax.Cost(
        four_bar(),
        5.0,
        start=CRANK,
        input={"tau": 0.3},
        running=lambda s: 1.0,
        events=stop,
        method=method,
    )
    assert time.value() < 0.5
    assert ax.gradient(time, "start.theta1_dot")["start.theta1_dot"] > 0  # it first moves away


@pytest.mark.slow
@pytest.mark.parametrize("method", [further("rk4"), "dopri5"])
def test_changes_of_independent_speeds(method):
    """The rocker stops describing the motion; the gradient is that of the same run by the crank."""
    step = 5e-4 if method == "rk4" else None
    rates = np.array([17.0, 20.0])
    given = {
        "start": {"crank.rate": rates},
        "input": {"crank.torque": 0.05},
        "running": lambda s: s["rocker"] ** 2,
        "final": lambda s: 1e-2 * s["crank.rate"] ** 2 + s["rocker.rate"],
        "method": method,
        "step": step,
    }
    of = ["start.crank.rate", "crank.torque"]
    changing = ax.Cost(machines.four_bar("rocker"), 0.5, **given)
    steady = ax.gradient(ax.Cost(machines.four_bar(), 0.5, **given), of)
    found = ax.gradient(changing, of)
    for name in of:
        assert found[name] == pytest.approx(steady[name], rel=1e-5)
    expected = difference(changing, "crank.torque", 0.05)
    assert found["crank.torque"] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("method", ["rk4", "dopri5"])
def test_distance_to_measurements(method):
    """At the truth it vanishes with its gradient; elsewhere it has the right slope."""
    model = four_bar()
    run = ax.simulate(model, 0.5, start=CRANK, input={"tau": 0.3}, save_every=0.05, rtol=1e-12)
    given = {"start": CRANK, "method": method, "scales": {"theta1_dot": 2.0}}
    cost = ax.Cost(model, 0.5, input={"tau": 0.3}, match=run[["theta2", "theta1_dot"]], **given)
    assert cost.value() < 1e-15
    assert np.abs(list(ax.gradient(cost, ["m2", "tau"]).values())).max() < 1e-5
    # samples begin before the run, and end after it
    part = run.between(0.1, 0.4)
    other = ax.Cost(model, 0.3, match=part, t0=0.0, start=CRANK, method=method)
    assert other.grid.count == 5
    assert_gradient(cost, {"tau": 0.2, "m2": 0.45})
    back = ax.Cost(
        model,
        -0.3,
        backwards=True,
        t0=0.5,
        match=run.between(0.2, 0.5),
        start=run,
        input={"tau": 0.3},
        method=method,
    )
    assert back.value() < 1e-15 and back.grid.count == 7


def waves_over_a_second():
    """Integral of cos(50 cos(10 t)), which turns faster than the state."""
    return scipy.integrate.quad(lambda t: math.cos(50.0 * math.cos(10.0 * t)), 0, 1, limit=500)[0]


RUNNING_TERMS = {  # of x = cos(10 t), and their integrals over 1 s
    "abs(x)": (6.0 - math.sin(10.0)) / 10.0,
    "sign(x)": (3.0 * math.pi - 10.0) / 10.0,
    "cos(50*x)": waves_over_a_second(),
    "x**2": 0.5 + math.sin(20.0) / 40.0,
}


@pytest.mark.parametrize("term", RUNNING_TERMS)
def test_steps_limit_the_error_of_running_terms(term):
    bar = ax.Mechanism("bar")
    body = bar.add_body("body", mass=1.0, inertia=(1.0, 1.0, 1.0))
    bar.add_joint("x", ax.Prismatic((1, 0, 0)), parent=bar.ground, child=body)
    bar.add_spring("spring", "x", stiffness=100.0)
    cost = ax.Cost(bar.derive().compile(), 1.0, start={"x": 1.0}, running=term)
    assert float(cost.value()) == pytest.approx(RUNNING_TERMS[term], rel=0, abs=5e-9)


def test_recordings_make_batches():
    """Each run is compared with its own recording; one recording serves all runs."""
    model, torques = four_bar(), np.array([0.1, 0.3])
    given = {"start": CRANK, "method": "rk4", "step": 2e-3}
    runs = ax.simulate(model, 0.2, input={"tau": torques}, save_every=0.05, **given)[["theta2"]]
    own = ax.Cost(model, 0.2, match=runs, input={"tau": 0.2}, **given)
    found = assert_gradient(own, {"tau": 0.2})
    assert found.value.shape == (2,) and found["tau"][0] > 0 > found["tau"][1]
    shared = ax.Cost(model, 0.2, match=runs.run(1), input={"tau": torques}, **given)
    assert shared.value()[1] < 1e-12 < shared.value()[0]
    wrong = ax.Cost(model, 0.2, match=runs, input={"tau": np.zeros(3)}, **given)
    with pytest.raises(ax.errors.InvalidArgument, match="make batches that do not fit"):
        wrong.value()


def test_backwards_in_time():
    model = four_bar()
    cost = ax.Cost(
        model,
        -0.2,
        backwards=True,
        start=CRANK,
        running="theta1**2",
        final="theta2",
        input={"tau": 0.1},
    )
    assert_gradient(cost, {"m3": 1.0, "tau": 0.1, "start.theta1_dot": 1.0})


def test_limits_of_motors_and_models_from_files(tmp_path):
    """A motor at its limit has no derivative; a model without equations has all others."""
    bot = ax.Mechanism("lever")
    mass = ax.Parameter("mass", 2.0)
    arm = bot.add_body("arm", mass=mass, com=(0.3, 0, 0), inertia=(0.01, 0.05, 0.05))
    bot.add_joint("hinge", ax.Revolute("y"), parent=bot.ground, child=arm)
    bot.add_motor("drive", "hinge", limit=1.0)
    model = bot.derive().compile()
    model.save(tmp_path / "lever.axm")
    files = ax.load_model(tmp_path / "lever.axm")
    (drive,) = model.inputs
    law = ax.Law(lambda s, k: [-k * s["hinge"]], k=0.5)
    given = {"start": {"hinge": 0.4}, "final": "hinge**2", "step": 0.01}
    for m in (model, files):
        found = ax.gradient(ax.Cost(m, 0.5, input={drive: 3.0}, **given), [drive, "mass"])
        assert found[drive] == 0.0 and found["mass"] != 0.0
        cost = ax.Cost(m, 0.5, input=law, **given)
        assert_gradient(cost, {"k": 0.5, "mass": 2.0, "start.hinge": 0.4})


# memory and places -------------------------------------------------------------------------------


def run_of(cost, **log):
    with Session("test", cost.settings, 0, False) as session:
        runs = begin_runs(cost.scenario, cost.settings)
        made = runs.run(StepLog(cost.grid, backwards=True, **log), session)
        return made, Backward(made, cost.ends, {"u": (0,)}, session)


@pytest.mark.parametrize("method", ["rk4", "dopri5"])
def test_steps_that_are_computed_again_are_the_same(method):
    """Events that do not stop are answered between slices, and these are not repeated wrongly."""
    look = ax.Event("near", lambda s: s["theta1"] - 0.5)
    cost = ax.Cost(
        four_bar(),
        0.5,
        start={"theta1": np.linspace(0.6, 0.8, 3), "theta1_dot": 1.0},
        input={"tau": 0.3},
        final="theta1_dot**2",
        events=look,
        method=method,
        step=2e-3 if method == "rk4" else None,
    )
    kept = run_of(cost, first=16)[1].compute()
    runs, backward = run_of(cost, first=16, kept_bytes=0)
    slices = runs.log.batches[0].slices
    assert len(slices) > 2 and all(one.rows is None for one in slices)
    again = backward.compute()
    assert np.array_equal(kept.value, again.value)
    assert np.array_equal(kept.shared["u"], again.shared["u"])


@pytest.mark.slow
@pytest.mark.parametrize("method", ["rk4", "dopri5"])
def test_parts_of_batches_and_logs_of_rates(monkeypatch, method):
    """Runs some at a time, and with rates that are read instead of computed, are the same runs."""
    starts = {"theta1": np.linspace(0.6, 0.9, 19), "theta1_dot": 1.0}
    seen = ax.simulate(four_bar(), 0.1, start=starts, save_every=0.02)
    cost = ax.Cost(
        four_bar(),
        0.1,
        start=starts,
        input=ax.Sampled({"tau": np.linspace(0, 1, 19 * 6).reshape(19, 6)}, 0.02),
        running="theta1**2 + tau**2",
        match=seen,
        events=ax.Event("far", lambda s: s["theta1"] - 0.85, stop=True),
        method=method,
    )
    by = ["m2", "a3", "tau", "start.theta1"]
    usual = ax.gradient(cost, by)
    monkeypatch.setattr(ended_runs, "LOG_BYTES", 1)
    parts = ax.gradient(cost, by)
    monkeypatch.setattr(compiled, "OPERATIONS_PER_LOGGED", 0)
    logged = ax.gradient(cost, by)
    assert len(set(usual.value)) == 19
    for found in (parts, logged):
        assert np.allclose(found.value, usual.value, rtol=1e-13)
        for name in by:
            assert np.allclose(found[name], usual[name], rtol=1e-11, atol=1e-13), name
        assert np.allclose(found.by_tangents, usual.by_tangents, rtol=1e-11)


def test_equations_are_looked_at_once(monkeypatch):
    """A model whose rates solve no short equations is not asked again."""
    model, asked = ax.gallery.build("rolling_disk").derive().compile(), []

    def refuse(model, name):
        asked.append(name)
        raise ax.errors.NotApplicable("none")

    monkeypatch.setattr(compiled, "tape_of", refuse)
    assert compiled.adjoints_of(model) == compiled.adjoints_of(model) == {}
    assert asked == [*compiled.ADJOINTS.values()]


def test_memory_grows_with_the_square_root_of_the_steps():
    model = four_bar()

    def peak(steps):
        cost = ax.Cost(model, 1.0, start=CRANK, final="theta1", step=1.0 / steps)
        run_of(cost, first=16, kept_bytes=0)[1].compute()  # compiled, and memory kept
        from axode.problems.runs import step_log

        found = []
        for _ in range(2):  # other threads, such as those that compile, allocate memory too
            step_log._MEMORY._free.clear()
            tracemalloc.start()
            run_of(cost, first=16, kept_bytes=0)[1].compute()
            found.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        return min(found)

    few, many = peak(4_000), peak(64_000)
    rows = 8 * (len(model.coordinates) + len(model.independent) + 2)
    assert many < 6 * few and many < 0.2 * 64_000 * rows


@pytest.mark.slow
@pytest.mark.parametrize("method", ["rk4", further("dopri5")])
def test_a_gpu_finds_the_same(monkeypatch, method):
    gpu = install(monkeypatch)
    given = {
        "start": {"theta1": np.linspace(0.7, 0.9, 5)},
        "running": "theta1**2",
        "final": "theta1_dot**2",
        "method": method,
        "events": ax.Event("far", lambda s: s["theta1"] - 0.72, stop=True),
    }
    for tau in (0.1, ax.Sampled({"tau": np.linspace(0, 1, 7)}, 0.03, between="linear")):
        given["input"] = tau if isinstance(tau, ax.Sampled) else {"tau": tau}
        here = ax.gradient(ax.Cost(four_bar(), 0.2, **given), ["m2", "tau"])
        before = len(gpu.launches)
        there = ax.gradient(ax.Cost(four_bar(), 0.2, target="cuda", **given), ["m2", "tau"])
        assert len(gpu.launches) >= before + 2
        for name in here:
            np.testing.assert_allclose(there[name], here[name], rtol=1e-8, atol=1e-9)


def test_steps_of_a_cost_are_as_long_as_tolerances_allow():
    """A slider on a spring: the integral of its square has a closed form, and so has its slope."""
    fast, top, time = 30.0, 0.3, 2.0
    exact = top**2 * (time / 2 + np.sin(2 * fast * time) / (4 * fast))
    given = {"start": {"rail": top}, "input": {"rail": f"-{fast**2} * rail"}, "running": "rail**2"}
    model, names = machines.slider(limit=1e6), ["start.rail", "mass"]
    cost = ax.Cost(model, time, **given)
    found = ax.gradient(cost, names)
    assert cost.settings.adaptive
    assert float(found.value) == pytest.approx(exact, rel=1e-8)
    assert float(found["start.rail"]) == pytest.approx(2 * exact / top, rel=1e-8)
    by_mass = [float(cost.value({"mass": 1.0 + k * 1e-4})) for k in (1, -1)]
    assert float(found["mass"]) == pytest.approx((by_mass[0] - by_mass[1]) / 2e-4, rel=1e-4)
    fixed = ax.Cost(model, time, step=1e-3, **given)
    assert not fixed.settings.adaptive and fixed.settings.step_size == 1e-3
