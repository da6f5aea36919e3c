"""The model: the same numbers however they are given.

On CasADi's own evaluator, bit for bit; `tests/targets` compares the others with it.
"""

import casadi as ca
import numpy as np
import pytest

import axode as ax
from laws.cases import ROUNDING, agree, case_of
from random_mechanisms import (
    MECHANISMS,
    balancer,
    parametric_arm,
    parametric_loop,
    parametric_vehicle,
)

SAMPLED = (
    "balancer",
    "four_bar",
    "shaken_pendulum",
    "mecanum_base",
    "all_joints_tree",
    "rolling_ball",
)
STATE_FUNCTIONS = {
    "forward_dynamics": ("q", "nu", "u"),
    "mass_matrix": ("q",),
    "coriolis": ("q", "nu"),
    "bias": ("q", "nu"),
    "potential_force": ("q",),
    "dissipative_force": ("q", "nu"),
    "input_force": ("q", "u"),
    "joint_speeds": ("q", "nu"),
    "rates": ("q", "nu"),
    "accelerations": ("q", "nu", "nu_dot"),
    "multipliers": ("q", "nu", "u"),
    "contact_forces": ("q", "nu", "u"),
    "energy": ("q", "nu"),
    "residual": ("q",),
    "poses": ("q",),
    "twists": ("q", "nu"),
}


def arguments(case, names, state):
    return [getattr(state, name) for name in names]


def named(model, name, value):
    names = {"q": model.coordinates, "u": model.inputs}.get(name, model.independent)
    return dict(zip(names, value, strict=True))


@pytest.mark.parametrize("name", SAMPLED)
def test_batches_and_names_give_what_single_calls_give(name):
    case = case_of(name)
    model = case.equations.compile("interpreter")
    first, second = case.states
    t = np.array([first.t, second.t])
    for function, takes in STATE_FUNCTIONS.items():
        call = getattr(model, function)
        singles = [call(*arguments(case, takes, s), t=s.t) for s in case.states]
        stacked = [
            np.stack(pair)
            for pair in zip(*(arguments(case, takes, s) for s in case.states), strict=True)
        ]
        batch = call(*stacked, t=t)
        np.testing.assert_array_equal(batch, np.stack(singles), function)
        deep = call(*(x[:, np.newaxis, :] for x in stacked), t=t[:, np.newaxis])
        np.testing.assert_array_equal(deep[:, 0], batch, function)
        given = zip(takes, arguments(case, takes, first), strict=True)
        by_name = call(*(named(model, n, x) for n, x in given), t=first.t)
        np.testing.assert_array_equal(by_name, singles[0], function)


@pytest.mark.parametrize("name", SAMPLED)
def test_arguments_broadcast(name):
    case = case_of(name)
    model = case.equations.compile("interpreter")
    first, second = case.states
    nu = np.stack([first.nu, second.nu])
    both = model.forward_dynamics(first.q, nu, first.u, t=first.t)
    alone = [model.forward_dynamics(first.q, x, first.u, t=first.t) for x in nu]
    np.testing.assert_array_equal(both, np.stack(alone))
    assert model.forward_dynamics(first.q, np.zeros((0, 2, nu.shape[1]))).shape == (
        0,
        2,
        nu.shape[1],
    )


@pytest.mark.parametrize("name", MECHANISMS)
def test_model_evaluates_the_equations(name):
    case = case_of(name)
    e, model = case.equations, case.equations.compile("interpreter")
    s = case.states[0]
    for function, expression in (
        ("forward_dynamics", e.forward_dynamics),
        ("multipliers", e.multipliers),
    ):
        mine = getattr(model, function)(s.q, s.nu, s.u, t=s.t)
        np.testing.assert_array_equal(mine, case.vector(s, expression))
    np.testing.assert_array_equal(model.mass_matrix(s.q, t=s.t), case.at(s, e.I)[0])
    np.testing.assert_array_equal(model.joint_speeds(s.q, s.nu, t=s.t), s.v)
    agree(model.residual(s.q, t=s.t), np.zeros(len(model.residual_rows)), 1e-11, "residual")


@pytest.mark.parametrize("name", MECHANISMS)
def test_not_a_number_in_gives_not_a_number_out(name):
    """Of every independent speed and input that matters; never a number out of thin air."""
    case = case_of(name)
    model = case.equations.compile("interpreter")
    s = case.states[0]
    nan_q = np.full_like(s.q, np.nan)
    assert np.isnan(model.energy(nan_q, s.nu, t=s.t)[0])
    assert np.isnan(model.forward_dynamics(s.q, s.nu * np.nan, s.u, t=s.t)).any()
    if len(model.inputs):
        assert np.isnan(model.forward_dynamics(s.q, s.nu, s.u * np.nan, t=s.t)).any()


@pytest.mark.parametrize("build", [balancer, parametric_arm, parametric_vehicle, parametric_loop])
def test_free_parameters_are_those_of_another_description(build):
    """Changing a parameter of a model is the same as describing the mechanism with it."""
    rng = np.random.default_rng(0)
    case = case_of(build.__name__)
    free = case.equations.compile("interpreter", parameters="free")
    values = {n: x * rng.uniform(0.9, 1.1) for n, x in free.parameters.items()}
    other = with_defaults(build(), values).derive(independent=case.equations.independent)
    fixed = other.compile("interpreter", parameters="fixed")
    s = case.states[0]
    q = fixed.home if case.system.rows else s.q  # feasible with the new values
    for function, takes in STATE_FUNCTIONS.items():
        given = [q if n == "q" else getattr(s, n) for n in takes]
        one = getattr(free, function)(*given, parameters=values)
        two = getattr(fixed, function)(*given)
        known = ~np.isnan(two)
        agree(one[known], two[known], ROUNDING, function)


def with_defaults(bot, values):
    """A description whose parameters have other defaults."""
    return ax.Mechanism(**{f: redefined(getattr(bot, f), values) for f in bot.__dataclass_fields__})


def redefined(x, values):
    from dataclasses import fields, is_dataclass

    if isinstance(x, ax.Parameter):
        return ax.Parameter(x.name, values[x.name])
    if isinstance(x, (list, tuple)):
        return type(x)(redefined(item, values) for item in x)
    if is_dataclass(x) and not isinstance(x, type):
        copy = object.__new__(type(x))
        for field in fields(x):
            object.__setattr__(copy, field.name, redefined(getattr(x, field.name), values))
        return copy
    return x


@pytest.mark.parametrize("name", ["balancer", "parametric_arm"])
def test_fixed_parameters_give_what_free_ones_give_at_their_defaults(name):
    case = case_of(name)
    free, fixed = (case.equations.compile("interpreter", parameters=p) for p in ("free", "fixed"))
    s = case.states[0]
    agree(fixed.forward_dynamics(s.q, s.nu, s.u), free.forward_dynamics(s.q, s.nu, s.u), ROUNDING)
    with pytest.raises(ax.InvalidArgument, match="fixed"):
        fixed.mass_matrix(s.q, parameters=case.equations.parameters)


@pytest.mark.parametrize("target", ["interpreter", "cpu"])
@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "two"])
def test_threads_that_cannot_be_are_refused(target, threads):
    model = case_of("balancer").equations.compile(target)
    with pytest.raises(ax.InvalidArgument, match="threads: must be a whole number > 0"):
        model.energy(model.home, np.zeros(len(model.independent)), threads=threads)


def test_speeds_are_named_as_independent_ones_are():
    """By joint, coordinate or speed, in every place, and not twice."""
    bot = ax.Mechanism("arm")
    parent = bot.ground
    for name in ("shoulder", "elbow"):
        body = bot.add_body(name, mass=1.0, com=(0.2, 0, 0), inertia=(0.01, 0.02, 0.02))
        bot.add_joint(name, ax.Revolute("y"), parent=parent, child=body, at=(0.4, 0, 0))
        bot.add_motor(name, name)
        parent = body
    model = bot.derive(independent=["shoulder", "elbow"]).compile("interpreter")
    q, by_joint = model.home, {"elbow": 2.0}
    np.testing.assert_array_equal(model.joint_speeds(q, by_joint), [0.0, 2.0])
    known = {"u": {"elbow.torque": 0.1}}
    full = model.hybrid_dynamics(q, {"elbow.rate": 2.0}, nu_dot={"shoulder.rate": 0.3}, **known)
    short = model.hybrid_dynamics(q, by_joint, nu_dot={"shoulder": 0.3}, **known)
    for one, other in zip(full, short, strict=True):
        np.testing.assert_array_equal(one, other)
    e = bot.derive()
    assert all(
        map(
            ca.is_equal,
            e.hybrid_dynamics(["shoulder"], ["elbow.torque"]),
            e.hybrid_dynamics(["shoulder.rate"], ["elbow.torque"]),
            (9, 9),
        )
    )
    with pytest.raises(ax.InvalidArgument, match=r"'elbow' means elbow\.rate, .* twice"):
        model.joint_speeds(q, {"elbow.rate": 1.0, "elbow": 2.0})
    with pytest.raises(ax.UnknownName, match="no independent speed 'wrist'"):
        model.hybrid_dynamics(q, by_joint, nu_dot={"wrist": 0.3}, **known)


def test_hybrid_dynamics_by_name():
    case = case_of("arm")
    model, s = case.equations.compile("interpreter"), case.states[0]
    known = {model.independent[2]: 0.7, model.independent[5]: -0.3}
    inputs = {n: 0.1 * i for i, n in enumerate(model.inputs) if i not in (2, 5)}
    nu_dot, u = model.hybrid_dynamics(s.q, s.nu, nu_dot=known, u=inputs)
    agree(model.forward_dynamics(s.q, s.nu, u), nu_dot, ROUNDING, "forward dynamics")
    assert nu_dot[2] == 0.7 and nu_dot[5] == -0.3 and u[6] == pytest.approx(0.6)
