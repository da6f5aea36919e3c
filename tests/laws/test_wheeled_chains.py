"""Chains on wheels: code that grows with their length and agrees with other derivations."""

from functools import cache

import casadi as ca
import numpy as np
import pytest

import axode as ax
import wheeled_chains as chains
from axode.codegen.tape.tape import Tape
from axode.derivatives.derivative_tables import table_by_adjoints
from axode.derivatives.lifted_derivatives import ForwardDerivatives
from axode.model.function_source import graph_tape
from axode.symbolic.formulations.recursive import RecursiveFormulation
from axode.symbolic.functions import function_graph
from laws.cases import SOLVED, agree
from multiprecision import evaluate
from near_mechanisms import mechanism_of

SIZES = (18, 30, 42)
SPREAD = 1.1  # of the second difference of counts: which terms vanish differs a little
OF_STATE = ("forward_dynamics", "joint_speeds", "accelerations", "multipliers", "bias")
FAMILIES = {
    "trailers": chains.trailers,
    "tree": chains.tree_of_trailers,
    "snake": chains.snake,
    "axles under hinges": lambda n: chains.snake(n, lever=0.0),
    "four-bars": lambda n: chains.row_of_four_bars(n // 3),
}
ROUNDED = 1e-9  # of accelerations of a dozen trailers that push each other


@cache
def derived(family: str, size: int) -> ax.Equations:
    return FAMILIES[family](size).derive(self_check=False)


def tape_of(equations: ax.Equations, name: str) -> Tape:
    return graph_tape(function_graph(equations, name, fixed=True))


def state_of(equations: ax.Equations) -> list[np.ndarray]:
    """Home, where these mechanisms are closed, with any speeds and inputs."""
    rng = np.random.default_rng(5)
    count = len(equations.independent)
    u = rng.normal(size=len(equations.inputs))
    return [equations.system.home, rng.normal(size=count), rng.normal(size=count), u]


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_operations_grow_linearly_with_the_length(family):
    for name in OF_STATE:
        few, more, most = (tape_of(derived(family, n), name).n_operations for n in SIZES)
        assert most - more <= SPREAD * (more - few), (name, few, more, most)


@pytest.mark.slow
def test_inverse_dynamics_with_too_few_motors_grows_linearly():
    """The inertia of the speeds that no motor holds is a sum over links."""
    counts = []
    for size in SIZES:
        towed = chains.trailers(size)
        del towed.drives[1:]
        equations = towed.derive(self_check=False)
        assert equations.actuation == "underactuated"
        counts.append(tape_of(equations, "inverse_solution").n_operations)
    few, more, most = counts
    assert most - more <= SPREAD * (more - few), counts


@pytest.mark.slow
@pytest.mark.parametrize("lever", [0.25, 0.0])
def test_operations_do_not_depend_on_home(lever):
    """At homes where no speed of the head does well blocks as long as the chain were solved."""
    straight, *bent = (
        chains.snake(40, bend=b, lever=lever).derive(self_check=False) for b in (0.05, 0.4, 0.9)
    )
    least = tape_of(straight, "forward_dynamics").n_operations
    for equations in bent:
        assert tape_of(equations, "forward_dynamics").n_operations <= SPREAD * least


def test_few_blocks_are_larger_than_one():
    bent = chains.snake(30, bend=1.0, lever=0.0).derive(self_check=False)
    assert bent.system.complement.base.largest <= 3


@pytest.mark.slow
def test_derivatives_by_adjoints_are_those_of_the_equations():
    """Few accelerations, many arguments: one gradient per acceleration."""
    equations = derived("trailers", SIZES[0])
    q, nu, _, u = state_of(equations)
    by = ("q", "nu", "u")
    ways = table_by_adjoints(equations, by), ForwardDerivatives(equations).table(by, False)
    found = ca.Function("d", [equations.q, equations.nu, equations.u], list(ways))
    first, second = (np.array(x) for x in found(q, nu, u))
    agree(first, second, SOLVED)


@pytest.mark.parametrize("family", FAMILIES)
def test_all_ways_to_solve_agree(family):
    equations = derived(family, SIZES[0])
    tried, system = RecursiveFormulation(equations.system), equations.system
    force = ca.SX.sym("f", system.tree.v.shape[0])
    ways = (tried._by_composites, tried._by_twists, tried._by_clusters)
    found = ca.Function("a", [equations.q, force], [way(force) for way in ways])
    forces = np.random.default_rng(2).normal(size=system.tree.v.shape[0])
    first, *others = (np.array(x) for x in found(system.home, forces))
    for other in others:
        agree(other, first, SOLVED)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_other_formulations_agree(family):
    """Their rows are not read at inner links, nor are their bodies solved by clusters."""
    mine, state = derived(family, SIZES[0]), state_of(derived(family, SIZES[0]))
    rival = FAMILIES[family](SIZES[0]).derive("multipliers", self_check=False)
    for name in ("forward_dynamics", "multipliers", "bias", "I"):
        values = []
        for e in (mine, rival):
            given = [e.q, e.nu, e.nu_dot, e.u]
            function = ca.Function("f", given, [ca.densify(getattr(e, name))])
            values.append(np.array(function(*state)))
        agree(*values, SOLVED, name)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_rounding_against_multiprecision(family):
    equations = derived(family, SIZES[0])
    q, nu, _, u = state_of(equations)
    graph = function_graph(equations, "forward_dynamics", fixed=True)
    known = {"q": q, "nu": nu, "u": u}
    given = [known[a] for a in graph.arguments]
    exact = np.array([float(x) for x in evaluate(graph_tape(graph), given)])
    found = np.array(graph.function(*given)).ravel()
    assert np.abs(found - exact).max() <= ROUNDED * np.abs(exact).max()


def test_a_long_chain_in_one_loop_has_a_way_to_be_solved():
    """None of those for chains applies: one cluster, several freedoms, a long path."""
    equations = mechanism_of("nearly", "loop", 102806, size=5).derive()
    assert equations.forward_dynamics.shape[0] == equations.mobility.mobility
