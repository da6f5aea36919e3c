"""Coupled joints in clusters: articulated bodies between them give what projection gives."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

import axode as ax
from axode.symbolic.constraints.system import build_system
from axode.symbolic.formulations.base import AbstractFormulation
from axode.symbolic.formulations.recursive import RecursiveFormulation
from axode.symbolic.tree.recursions import ClusterSolve, find_clusters
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


def floating_gripper(n: int = 7) -> ax.Mechanism:
    """The gripper's arm on a base that flies, a joint of it coupled to that base's own speed."""
    bot = gripper_arm(n=n)
    bot.connections[0] = replace(bot.connections[0], joint=ax.Floating())
    bot.drives[:] = bot.drives[1:]
    bot.add_gear("wrist", "joint4", "joint6", -1.5)
    bot.add_coupling("reaction", {"joint2": 1.0, "joint0.wz": 0.4})
    return bot


BUILDS = {
    "tree": coupled_tree,
    "floating": floating_gripper,
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
    projected = RecursiveFormulation(system)._by_composites(force)
    clusters = find_clusters(tree, [row.entries for row in system.kept])
    solve = ClusterSolve(
        system.still_tree, system.regrouped, system.forces.armature, c.Theta_0, force
    )
    articulated = solve.accelerations(clusters)
    function = ca.Function("f", [tree.q, tree.t, tree.parameters, force], [projected, articulated])
    rng = np.random.default_rng(1)
    for q in system.samples[:2]:
        first, second = function(q, 0.3, system.defaults, rng.normal(size=force.shape[0]))
        agree(np.array(second), np.array(first), SOLVED, name)


@pytest.mark.parametrize("name", ["floating", "gripper", "massless wheel", "random 0"])
def test_held_joints_in_clusters_transmit_what_projection_says(name, monkeypatch):
    """Every other speed is held, coupled ones among them; the others give way."""
    counts = iter((2, 1))  # the second of the two ways, whichever is shorter
    monkeypatch.setattr(RecursiveFormulation, "_operations", lambda self, x: next(counts))
    system = build_system(BUILDS[name](), None)
    tree, by = system.tree, RecursiveFormulation(system)
    force = ca.SX.sym("f", len(system.complement.base.independent))
    held = list(range(0, force.shape[0], 2))
    projected = AbstractFormulation.hold(by, held, force)
    function = ca.Function(
        "f", [tree.q, tree.t, tree.parameters, force], [projected, by._coupled_hold(held, force)]
    )
    q, rng = system.samples[0], np.random.default_rng(2)
    first, second = function(q, 0.0, system.defaults, rng.normal(size=force.shape[0]))
    agree(np.array(second), np.array(first), SOLVED, name)


def test_clusters_are_what_rows_tie_together_and_all_between():
    system = build_system(gripper_arm(), None)
    names = [body.name for body in system.mechanism.bodies]
    assert find_clusters(system.tree, [row.entries for row in system.kept]) == [
        *((i,) for i in range(7)),
        (7, 8),
    ]
    bot = gripper_arm()
    bot.add_gear("elbow", "joint1", "joint4", 2.0)
    bot.add_belt("wrist", "joint4", "joint5", 2.0)
    system = build_system(bot, None)
    clusters = find_clusters(system.tree, [row.entries for row in system.kept])
    assert clusters == [(0,), (1, 2, 3, 4, 5), (6,), (7, 8)]
    assert names[7:] == ["left", "right"]


def operations(mechanism: ax.Mechanism, what: str = "forward_dynamics") -> int:
    e = mechanism.derive()
    inputs = [e.q, e.nu, e.nu_dot, e.u, e.weights, e.t, e.p]
    return int(ca.Function("f", inputs, [getattr(e, what)]).n_instructions())


def test_a_coupled_gripper_costs_about_nothing():
    """Seven axes: within 2 %; twenty: within 10 %, where projection takes twice as many."""
    assert operations(gripper_arm()) <= 1.02 * operations(gripper_arm(coupled=False))
    assert operations(gripper_arm(n=20)) <= 1.1 * operations(gripper_arm(coupled=False, n=20))


def test_inverse_dynamics_on_a_floating_base_grow_linearly():
    """Twice the links take about twice the operations, where projection takes 2.5 times."""

    def count(n: int) -> int:
        bot = gripper_arm(n=n)
        bot.connections[0] = replace(bot.connections[0], joint=ax.Floating())
        bot.drives[:] = bot.drives[1:]
        return operations(bot, "inverse_dynamics")

    assert count(24) <= 2.2 * count(12)
