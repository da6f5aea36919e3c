"""Branched trees: branch by branch, derivatives are those of one factorization of the inertia."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import axode as ax
from axode.derivatives import lifted_derivatives
from axode.derivatives.branches import branches_of
from axode.derivatives.derivative_tables import TableName, derivative_graph
from axode.model.function_source import graph_tape
from axode.symbolic.functions import function_graph

TURNED = 1e-6  # [rad] between axes that are almost parallel
DIGITS = 1e-12  # of the largest entry
LIGHT = 1e-9  # [kg] of a link that weighs almost nothing


def grow(
    mechanism: ax.Mechanism, name: str, parent: object, joints: list[object], mass: float = 2.0
) -> object:
    """Links in a row; returns the last one."""
    for k, joint in enumerate(joints):
        inertia = np.diag([0.03, 0.04, 0.05]) * mass
        link = mechanism.add_body(
            f"{name}{k}", mass=mass, com=(0.1, 0.02 * k, -0.05), inertia=inertia
        )
        mechanism.add_joint(f"{name}{k}", joint, parent=parent, child=link, at=(0.2, 0.1 * k, -0.1))
        if isinstance(joint, ax.Revolute):
            mechanism.add_motor(f"{name}{k}", f"{name}{k}", rotor_inertia=0.01 * mass)
        parent = link
    return parent


def walker(mass: float = 2.0, axes: tuple[object, ...] = ("x", "y")) -> ax.Mechanism:
    """A floating trunk with two legs of which one forks, a tail, springs, dampers and rotors."""
    mechanism = ax.Mechanism("walker")
    trunk = mechanism.add_body("trunk", mass=9.0, com=(0.0, 0.1, 0.0), inertia=(0.4, 0.5, 0.6))
    mechanism.add_joint("base", ax.Floating(), parent=mechanism.ground, child=trunk)
    legs = [ax.Revolute(axis) for axis in axes]
    foot = grow(mechanism, "left", trunk, legs, mass)
    grow(mechanism, "heel", foot, [ax.Revolute("y")])
    grow(mechanism, "toe", foot, [ax.Prismatic("x"), ax.Universal("y", "z")])
    grow(mechanism, "right", trunk, [*legs, ax.Cylindrical("z")])
    grow(mechanism, "tail", trunk, [ax.Spherical()])
    mechanism.add_damper("damper", "left0", coefficient=0.3)
    mechanism.add_spring("spring", "right1", stiffness=40.0)
    return mechanism


def tables(
    mechanism: ax.Mechanism, monkeypatch: pytest.MonkeyPatch, *, rates: bool = False
) -> list[np.ndarray]:
    """Tables of derivatives at random states, branch by branch and by one factorization.

    Those of accelerations, or of the rates of states.
    """
    equations, found = mechanism.derive(), []
    rng = np.random.default_rng(2)
    for branched in (True, False):
        monkeypatch.setattr(lifted_derivatives, "uses_branches", lambda tree, b=branched: b)
        by = TableName("forward_dynamics", ("q", "nu", "u"))
        table = derivative_graph(equations, by, fixed=True)
        if rates:
            table = function_graph(equations, "state_rate_jacobian", fixed=True)
        tape = graph_tape(table)
        if not found:
            arrays = [rng.normal(size=(5, *port.shape)) for port in tape.inputs]
            for four in map(list, equations.system.tree.quaternions):
                arrays[0][:, four] /= np.linalg.norm(arrays[0][:, four], axis=1, keepdims=True)
        found.append(tape.evaluate(*arrays)[0])
    return found


@pytest.mark.parametrize(
    "mechanism",
    [walker, lambda: walker(mass=LIGHT), lambda: walker(axes=("x", (1.0, TURNED, 0.0)))],
    ids=["usual", "almost massless", "almost parallel"],
)
def test_branches_give_what_one_factorization_gives(mechanism, monkeypatch):
    branched, whole = tables(mechanism(), monkeypatch)
    size = np.abs(whole).max(axis=(1, 2), keepdims=True)
    assert np.abs((branched - whole) / size).max() < DIGITS


@pytest.mark.slow
def test_branches_give_rates_of_states(monkeypatch):
    """What implicit steps need, every coordinate of the quaternions included."""
    branched, whole = tables(walker(), monkeypatch, rates=True)
    assert np.abs(branched - whole).max() < DIGITS * np.abs(whole).max()


def test_branches_end_at_forks():
    tree = walker().derive().system.still_tree
    runs = branches_of(tree)
    assert sorted(i for run in runs for i in run) == list(range(len(tree.links)))
    assert len(runs) == 6
    for run in runs:
        assert all(tree.links[b].parent == a for a, b in pairwise(run))


def test_branches_are_used_where_six_speeds_lead_to_every_fork():
    assert not lifted_derivatives.uses_branches(walker().derive().system.still_tree)
    plain = ax.Mechanism("plain")
    trunk = plain.add_body("trunk", mass=9.0, inertia=(0.4, 0.5, 0.6))
    plain.add_joint("base", ax.Floating(), parent=plain.ground, child=trunk)
    for name in ("left", "right"):
        grow(plain, name, trunk, [ax.Revolute(axis) for axis in "xyz"])
    assert lifted_derivatives.uses_branches(plain.derive().system.still_tree)
