"""Coupled joints in clusters: articulated bodies between them give what projection gives."""

import casadi as ca
import numpy as np
import pytest

import axode as ax
from axode.symbolic.clusters import ClusterSolve, find_clusters
from axode.symbolic.formulations.recursive import RecursiveFormulation
from axode.symbolic.system import build_system
from coupled_mechanisms import coupled_tree, gripper_arm
from laws.cases import SOLVED, agree
from random_mechanisms import prescribed_yaw, random_tree, shaken_pendulum

KINDS = ("revolute", "prismatic", "screw", "cylindrical", "universal", "revolute")


def coupled_at_random(seed: int) -> ax.Mechanism:
    """A branching tree with two to four couplings between any of its coordinates."""
    rng = np.random.default_rng(seed)
    bot = random_tree(rng, 10, KINDS)
    names = [name for c in bot.connections for name in c.coordinates]
    for k in range(int(rng.integers(2, 5))):
        chosen = rng.choice(names, size=int(rng.integers(2, 4)), replace=False)
        bot.add_coupling(f"row{k}", {str(n): float(rng.uniform(0.3, 2)) for n in chosen})
    return bot


def massless_wheel() -> ax.Mechanism:
    """A gear wheel that weighs nothing, driven through its teeth: singular as a tree."""
    bot = gripper_arm()
    bot.add_body("wheel", mass=0.0, inertia=ax.Inertia.point())
    bot.add_joint("wheel", ax.Revolute("z"), parent="link2", child="wheel", at=(0.1, 0, 0))
    bot.add_gear("teeth", "wheel", "joint3", 5.0)
    return bot


BUILDS = {
    "tree": coupled_tree,
    "gripper": gripper_arm,
    "massless wheel": massless_wheel,
    "prescribed": shaken_pendulum,
    "prescribed in the plane": prescribed_yaw,
    **{f"random {seed}": lambda seed=seed: coupled_at_random(seed) for seed in range(6)},
}


@pytest.mark.parametrize("name", BUILDS)
def test_clusters_solve_what_projection_solves(name):
    system = build_system(BUILDS[name](), None)
    tree, c = system.tree, system.complement
    force = ca.SX.sym("f", tree.v.shape[0])
    projected = RecursiveFormulation(system)._projected_forward(force)
    clusters = find_clusters(tree, system.kept)
    solve = ClusterSolve(
        system.still_tree, system.regrouped, system.forces.armature, c.Theta_0, force
    )
    articulated = solve.accelerations(clusters)
    function = ca.Function("f", [tree.q, tree.t, tree.parameters, force], [projected, articulated])
    rng = np.random.default_rng(1)
    for q in system.samples[:2]:
        first, second = function(q, 0.3, system.defaults, rng.normal(size=force.shape[0]))
        agree(np.array(second), np.array(first), SOLVED, name)


def test_clusters_are_what_rows_tie_together_and_all_between():
    system = build_system(gripper_arm(), None)
    names = [body.name for body in system.mechanism.bodies]
    assert find_clusters(system.tree, system.kept) == [*((i,) for i in range(7)), (7, 8)]
    bot = gripper_arm()
    bot.add_gear("elbow", "joint1", "joint4", 2.0)
    bot.add_belt("wrist", "joint4", "joint5", 2.0)
    system = build_system(bot, None)
    clusters = find_clusters(system.tree, system.kept)
    assert clusters == [(0,), (1, 2, 3, 4, 5), (6,), (7, 8)]
    assert names[7:] == ["left", "right"]


def operations(mechanism: ax.Mechanism) -> int:
    e = mechanism.derive()
    inputs = [e.q, e.nu, e.u, e.t, e.p]
    return int(ca.Function("f", inputs, [e.forward_dynamics]).n_instructions())


def test_a_coupled_gripper_costs_about_nothing():
    """Seven axes: within 2 %; twenty: within 10 %, where projection takes twice as many."""
    assert operations(gripper_arm()) <= 1.02 * operations(gripper_arm(coupled=False))
    assert operations(gripper_arm(n=20)) <= 1.1 * operations(gripper_arm(coupled=False, n=20))
