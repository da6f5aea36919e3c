"""How many operations the generated code takes: the promise behind every speed."""

import casadi as ca
import numpy as np
import pytest

import axode as ax
from axode.codegen.tape.tape import Tape
from axode.derivatives.derivative_tables import TableName, derivative_graph
from axode.symbolic.algebra.linear import Factor
from axode.symbolic.formulations.recursive import ALWAYS_ARTICULATED, RecursiveFormulation
from random_mechanisms import arm, chain, platform

ARM_INVERSE = 1600
ARM_DIRECT = 3500
PLATFORM_DIRECT = 5000
PLATFORM_DERIVATIVES = 14_500
HUNG_PLATFORM_DERIVATIVES = 20_000
CHAIN_OF_64 = 45_000
LINEAR = 2.2  # operations of twice the links: 2 if linear, 4 if quadratic, 8 if cubic
LEG_SPREAD = 0.15  # legs differ a little in which of their entries are zero


def operations(equations, expression):
    e = equations
    function = ca.Function("f", [e.q, e.nu, e.nu_dot, e.u, e.t, e.p], [ca.densify(expression)])
    return Tape.from_casadi(function).n_operations


def direct(mechanism, independent=None):
    equations = mechanism.derive(independent=independent)
    return operations(equations, equations.forward_dynamics)


def test_inverse_dynamics_of_a_seven_axis_arm():
    equations = arm(7).derive()
    assert operations(equations, equations.inverse_dynamics) <= ARM_INVERSE


def test_direct_dynamics_of_a_seven_axis_arm():
    assert direct(arm(7)) <= ARM_DIRECT


@pytest.mark.parametrize(
    "independent", [None, [f"base.{s}" for s in ("wx", "wy", "wz", "vx", "vy", "vz")]]
)
def test_direct_dynamics_of_a_platform_on_six_legs(independent):
    assert direct(platform(6), independent) <= PLATFORM_DIRECT


@pytest.mark.parametrize(
    ("make", "most"),
    [
        (platform, PLATFORM_DERIVATIVES),
        (lambda: ax.gallery.build("gough_stewart"), HUNG_PLATFORM_DERIVATIVES),
    ],
    ids=["floating", "hung on a leg"],
)
def test_derivatives_of_platforms_on_six_legs(make, most):
    """Differentiated row by row instead of leg by leg, these take 25 000 and more."""
    graph = derivative_graph(make().derive(), TableName("forward_dynamics"), fixed=True)
    assert Tape.from_casadi(graph.function).n_operations <= most


@pytest.mark.slow
def test_direct_dynamics_of_a_long_chain_grows_linearly():
    short, long = direct(chain(32)), direct(chain(64))
    assert long <= CHAIN_OF_64
    assert long / short < LINEAR


@pytest.mark.slow
def test_direct_dynamics_of_platforms_grows_linearly_with_the_legs():
    twist = [f"base.{s}" for s in ("wx", "wy", "wz", "vx", "vy", "vz")]
    legs = np.array([3, 4, 6, 9])
    counts = np.array([direct(platform(n), twist) for n in legs])
    increments = np.diff(counts) / np.diff(legs)
    assert np.abs(increments / np.median(increments) - 1).max() <= LEG_SPREAD, increments


@pytest.mark.parametrize("arms", [1, 3])
def test_long_paths_are_solved_by_articulated_bodies(arms):
    """The composite way, which is no longer tried there, would take more operations."""
    bot = ax.Mechanism("arms")
    for a in range(arms):
        parent = bot.ground
        for k in range(ALWAYS_ARTICULATED + 1):
            body = bot.add_body(
                f"link{a}_{k}", mass=1.0, com=(0.1, 0.02, 0.03), inertia=(0.1, 0.2, 0.25)
            )
            bot.add_joint(
                f"joint{a}_{k}",
                ax.Revolute("zyx"[k % 3]),
                parent=parent,
                child=body,
                at=(0.3, 0, 0.1),
            )
            parent = body
    tried = RecursiveFormulation(bot.derive().system)
    force = tried.tree_forces(None)
    composite = Factor.of(tried.tree_inertia).solve(force)
    assert tried._operations(tried._tree_forward(force)) < tried._operations(composite)


def test_few_links_with_many_speeds_are_solved_the_cheaper_way():
    """Five bodies on ball joints have fifteen speeds."""
    bot = ax.Mechanism("balls")
    parent = bot.ground
    for k in range(5):
        body = bot.add_body(f"body{k}", mass=1.0, com=(0.1, 0.02, 0.03), inertia=(0.1, 0.2, 0.25))
        bot.add_joint(f"ball{k}", ax.Spherical(), parent=parent, child=body, at=(0.3, 0.1, 0.1))
        parent = body
    tried = RecursiveFormulation(bot.derive().system)
    force = tried.tree_forces(None)
    composite = Factor.of(tried.tree_inertia).solve(force)
    assert tried._operations(tried._tree_forward(force)) < 0.9 * tried._operations(composite)
