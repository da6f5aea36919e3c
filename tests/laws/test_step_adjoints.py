"""Gradients of rates and projections from lifted equations, against those of the solutions.

Also where loops are slightly open and quaternions slightly long, as they are inside a step.
"""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

import axode as ax
from axode.derivatives.step_adjoints import RateAdjoint, adjoint_graph
from axode.errors import NotApplicable
from axode.symbolic.algebra.spatial import SX
from axode.symbolic.functions import function_graph
from laws.cases import case_of
from random_mechanisms import MECHANISMS
from variants import some

OPEN = 0.02  # by which coordinates are moved off their constraints [rad, m]
REVERSED = 1e-9  # relative: both solve the same equations, of condition up to 1e5
# Off their constraints these are computed from other equations: quaternions inside a tree make its
# recursions differ.
ON_CONSTRAINTS_ONLY = ("ballbot", "prescribed_yaw", "on_a_plinth", "loop_30", "loop_31")
ON_CONSTRAINTS_ONLY += ("vehicle_0", "vehicle_3", "vehicle_5")
FIRST = ("all_joints_tree", "platform", "balancer", "driven_five_bar", "parametric_loop")
FIRST += ("geared_five_bar", "parametric_vehicle", "fixed_wheel", "ballbot")
TRIED = some(MECHANISMS, *(set(MECHANISMS) - set(FIRST)))


def worst(equations, state, name):
    """Largest relative difference to the gradient of the function itself, at an open state."""
    adjoint = adjoint_graph(equations, f"{name}_adjoint", fixed=False)
    graph = function_graph(equations, name, fixed=False)
    size = adjoint.sizes[-1]
    symbols = [SX.sym(a, n) for a, n in zip(graph.arguments, graph.sizes, strict=True)]
    w = SX.sym("w", size)
    plain = ca.gradient(ca.dot(w, graph.function(*symbols)[:size]), ca.vertcat(*symbols))
    rng = np.random.default_rng(0)
    q = state.q + OPEN * rng.normal(size=state.q.shape)
    given = [{**vars(state), "q": q}[a] for a in graph.arguments]
    weights, value = rng.normal(size=size), graph.function(*given)[:size]
    wanted = ca.Function("plain", [*symbols, w], [plain])(*given, weights).full()
    found = adjoint.function(*given, value, weights).full()
    return np.abs(found - wanted).max() / np.abs(wanted).max()


@pytest.mark.parametrize("name", TRIED)
def test_gradients_from_equations(name):
    """At any weights; there are none where they would hold on the constraints only."""
    case = case_of(name)
    if name in ON_CONSTRAINTS_ONLY:
        with pytest.raises(NotApplicable, match="solve no short equations"):
            adjoint_graph(case.equations, "state_rate_adjoint", fixed=False)
        return
    for function in ("state_rate", "projection"):
        assert worst(case.equations, case.states[0], function) < REVERSED, function


def ball_in_a_chain() -> ax.Mechanism:
    """A quaternion between two bodies, so that its length counts."""
    bot = ax.Mechanism("ball_in_a_chain")
    first = bot.add_body("first", mass=1.0, com=(0.1, 0.0, 0.2), inertia=(0.1, 0.2, 0.3))
    second = bot.add_body("second", mass=2.0, com=(0.0, 0.2, 0.1), inertia=(0.3, 0.2, 0.1))
    bot.add_joint("hinge", ax.Revolute("y"), parent=bot.ground, child=first)
    bot.add_joint("ball", ax.Spherical(), parent=first, child=second, at=(0.0, 0.0, 0.5))
    return bot


def test_quaternions_inside_a_chain():
    """One recursion and composite bodies differ where a quaternion is long; the right one is taken.

    A derivation that agrees with neither has no gradient from equations.
    """
    equations = ball_in_a_chain().derive()
    assert [RateAdjoint(equations, way).are_solved() for way in (False, True)] == [False, True]
    state = replace(
        case_of("all_joints_tree").states[0],
        q=np.array([0.3, 0.9, 0.1, -0.3, 0.2]),
        nu=np.random.default_rng(1).normal(size=4),
        u=np.zeros(0),
    )
    assert worst(equations, state, "state_rate") < REVERSED
    other = ball_in_a_chain().derive("complement")
    with pytest.raises(NotApplicable, match="solve no short equations"):
        adjoint_graph(other, "state_rate_adjoint", fixed=False)
