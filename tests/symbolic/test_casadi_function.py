"""Functions for CasADi's users: named arguments and results, the numbers of the compiled model."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import axode as ax
from axode import errors

NAMES = ("rates", "forward_dynamics", "mass_matrix", "residual", "poses", "speed_map", "energy")


@pytest.fixture(scope="module")
def equations():
    return ax.gallery.build("wheeled_pendulum").derive()


@pytest.mark.parametrize("parameters", ["fixed", "free"])
def test_results_are_those_of_the_model(equations, parameters):
    function = equations.casadi_function(NAMES, parameters=parameters)
    model = equations.compile("interpreter", parameters=parameters)
    free = ["p"] if parameters == "free" else []
    assert function.name_in() == ["q", "nu", "u", *free]
    assert function.name_out() == list(NAMES)
    draw = np.random.default_rng(3)
    q = model.home + draw.normal(size=len(model.coordinates))
    nu, u = draw.normal(size=len(model.independent)), draw.normal(size=len(model.inputs))
    p = {name: value * draw.uniform(0.9, 1.1) for name, value in model.parameters.items()}
    given, options = {"q": q, "nu": nu, "u": u}, {}
    if free:
        given, options = {**given, "p": np.array(list(p.values()))}, {"parameters": p}
    found = function(**given)
    for name in NAMES:
        arguments = {"rates": (q, nu), "forward_dynamics": (q, nu, u), "energy": (q, nu)}
        wanted = getattr(model, name)(*arguments.get(name, (q,)), **options)
        wanted = wanted.reshape(-1, 1 if wanted.ndim == 1 else wanted.shape[-1])
        np.testing.assert_allclose(np.array(found[name]), wanted, rtol=1e-12, atol=1e-13)


def test_what_is_left_out_of_a_call(equations):
    function = equations.casadi_function("forward_dynamics", parameters="free")
    q, p = equations.system.home, list(equations.parameters.values())
    still = np.array(function(q=q, p=p)["forward_dynamics"])
    zero = np.zeros(len(equations.independent)), np.zeros(len(equations.inputs))
    assert np.array_equal(still, np.array(function(q, *zero, p)))
    for given in ({"q": q}, {"p": p}):  # neither parameters nor coordinates may be forgotten
        assert np.isnan(np.array(function(**given)["forward_dynamics"])).any()


def test_derivatives_and_symbols(equations):
    """It is an ordinary function: it takes symbols and is differentiated."""
    function = equations.casadi_function(["rates", "forward_dynamics"])
    model = equations.compile("interpreter")
    sizes = len(model.coordinates), len(model.independent), len(model.inputs)
    q, nu, u = (ca.MX.sym(name, size) for name, size in zip("qvu", sizes, strict=True))
    result = function(q=q, nu=nu, u=u)["forward_dynamics"]
    slope = ca.Function("slope", [q, nu, u], [ca.jacobian(result, q)])
    at = model.home + 0.1, np.full(nu.shape[0], 0.3), np.full(u.shape[0], 0.2)
    wanted = model.jacobian("forward_dynamics", "q", *at)
    np.testing.assert_allclose(np.array(slope(*at)), wanted, rtol=1e-11, atol=1e-11)


def test_time_and_weights_are_arguments_where_they_matter():
    bot = ax.gallery.build("mecanum_rover")
    function = bot.derive().casadi_function("inverse_dynamics")
    assert function.name_in() == ["q", "nu", "nu_dot", "weights"]


def test_wrong_names(equations):
    with pytest.raises(errors.UnknownName, match="forward_dynamic"):
        equations.casadi_function("forward_dynamic")
    with pytest.raises(errors.InvalidArgument, match="names: expected"):
        equations.casadi_function(3)
    with pytest.raises(
        errors.InvalidArgument, match="parameters must be 'fixed' or 'free', got 'some'"
    ):
        equations.casadi_function("rates", parameters="some")
