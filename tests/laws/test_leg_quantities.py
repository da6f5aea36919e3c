"""Legs of a platform as numbers on the model: velocities, wrenches, files, refusals."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

import axode as ax
from axode.codegen.tape.tape import Port
from axode.errors import InvalidArgument, NotApplicable, UnknownName
from axode.mechanism.values.expressions import numeric
from axode.model.consistency import FURTHER_SHAPES, disagreements
from axode.model.function_source import ON_DEMAND
from axode.model.model_parts import facts_of
from axode.problems.steps.compiled import ADJOINTS
from axode.symbolic.constraints.loops import Closure
from axode.symbolic.functions import FURTHER_RECIPES, function_graph
from laws.cases import ROUNDING, SOLVED, agree
from laws.test_legs import platform_case, three_legs
from variants import further, some

CLOSED_AT_THE_PLATFORM = ("ball, knee, cross", "axes that miss", "tree through a leg", "dressed")
ALL = (*CLOSED_AT_THE_PLATFORM, "sliding knees", "hanging legs", "eight legs", "6R legs")
FURTHER = set(ALL) - {"hanging legs", "dressed"}


@cache
def model_of(name):
    if name == "three RPS legs":
        return ax.gallery.build("platform_3rps").derive().compile("interpreter")
    return platform_case(name).equations.compile("interpreter")


def batch(name):
    """States of a case as arrays: q, nu, nu_dot, u."""
    if name == "three RPS legs":
        model, rng = model_of(name), np.random.default_rng(7)
        sizes = len(model.independent), len(model.independent), len(model.inputs)
        return [model.home[np.newaxis], *(rng.normal(size=(1, size)) for size in sizes)]
    states = platform_case(name).states
    return [np.array([getattr(s, key) for s in states]) for key in ("q", "nu", "nu_dot", "u")]


def dots(A, x):
    """Matrices times vectors."""
    return np.einsum("...ij,...j->...i", A, x)


@pytest.mark.parametrize("name", some(ALL, *FURTHER))
def test_velocities_of_all_legs(name):
    """J_J L_J = T, Y T = Z, y^T J_J = zeta e_k^T, and T nu is the platform's twist."""
    model, (q, nu, _, _) = model_of(name), batch(name)
    legs = model.legs
    T = legs.twist_map(q)
    moving = model.joint_speeds(q, nu)
    for leg in legs.values():
        agree(leg.jacobian(q) @ leg.speed_map(q), T, SOLVED, "J L")
        rates = dots(leg.speed_map(q), nu)
        for k, freedom in enumerate(leg.freedoms):
            if freedom in model.speed_names:
                speed = moving[:, model.speed_names.index(freedom)]
                agree(rates[:, k], speed, SOLVED, freedom)
    Y, Z = legs.velocity_matrices(q)
    agree(Y @ T, Z, SOLVED, "Y T")
    agree(Z, np.einsum("...ii->...i", Z)[..., np.newaxis] * np.eye(6), ROUNDING, "Z")
    in_legs = {freedom for own in legs.freedoms for freedom in own}
    for j, speed in enumerate(model.independent):
        if speed not in in_legs:
            continue  # of the free platform itself
        leg = legs[speed]
        unit = np.array(leg.freedoms) == speed
        row = np.einsum("...i,...ij->...j", Y[..., j, :], leg.jacobian(q))
        agree(row, Z[..., j, j, np.newaxis] * unit, SOLVED, "y J")
    place = model.bodies.index(legs.platform)
    if "load" not in model.bodies:  # else the mass centre is that of both
        agree(dots(T, nu), model.twists(q, nu)[:, place], SOLVED, "t_M")
    stacked = np.concatenate([leg.speed_map(q) for leg in legs.values()], axis=-2)
    assert np.array_equal(stacked, legs.speed_map(q))


@pytest.mark.parametrize("name", [further("6R legs"), "dressed"])
def test_motors_act_on_their_own_speeds(name):
    q = batch(name)[0]
    agree(model_of(name).legs.motor_map(q), np.tile(np.eye(6), (len(q), 1, 1)), SOLVED, "Lambda")


@pytest.mark.parametrize("name", some(CLOSED_AT_THE_PLATFORM, *CLOSED_AT_THE_PLATFORM[:3]))
def test_wrenches_are_the_forces_in_the_loops(name):
    """Legs closed at the platform: (12.18) against the multipliers of their closing joints."""
    case, model = platform_case(name), model_of(name)
    q, nu, _, u = batch(name)
    wrenches = model.legs.wrenches(q, nu, u)
    forces = dict(zip(model.rows, model.multipliers(q, nu, u).T, strict=True))
    tree, centre = case.tree, case.equations.platform.platform.centre
    assert len(case.mechanism.loops) >= 5
    for loop in case.mechanism.loops:
        closure = Closure(tree, loop)
        on_platform = 1 if closure.first == case.equations.platform.platform.link else -1
        R, arm = tree.pose(closure.first).R, closure.world_point - centre
        number = list(model.legs).index(model.legs[_leg_of(model, loop.name)].name)
        for k, state in enumerate(case.states):
            total = np.zeros(6)
            for row, (n, f) in closure.directions.items():
                if f"{loop.name}.{row}" in forces:
                    n_w, f_w, r = (x.ravel() for x in case.at(state, R @ n, R @ f, arm))
                    unit = np.concatenate([n_w + np.cross(r, f_w), f_w])
                    total += on_platform * forces[f"{loop.name}.{row}"][k] * unit
            agree(wrenches[k, number], total, SOLVED, loop.name)


def _leg_of(model, loop):
    return next(f for leg in model.legs.values() for f in leg.freedoms if f.startswith(loop))


@pytest.mark.parametrize("name", some(ALL, *FURTHER))
def test_wrenches_are_those_of_the_book(name):
    """(12.18), by the inverse of each leg's Jacobian."""
    case, model = platform_case(name), model_of(name)
    q, nu, _, u = batch(name)
    nu_dot = model.forward_dynamics(q, nu, u)
    found = model.legs.wrenches(q, nu, u)
    book = case.system.at_speeds(case.equations.legs.wrenches(case.equations.nu_dot))
    for k, state in enumerate(case.states):
        (theirs,) = case.at(replace(state, nu_dot=nu_dot[k]), book)
        agree(found[k], theirs, SOLVED, "w")


@pytest.mark.parametrize("name", [further("6R legs"), "hanging legs", "three RPS legs"])
def test_legs_weight_and_wrench_move_the_platform(name):
    """Newton-Euler of the platform alone, (12.11), from the bodies' own matrices."""
    model, (q, nu, _, u) = model_of(name), batch(name)
    place = model.bodies.index("platform")
    nu_dot = model.forward_dynamics(q, nu, u)
    bodies = model.newton_euler
    own = slice(6 * place, 6 * place + 6)
    t_dot = dots(bodies.complement(q), nu_dot) + dots(bodies.complement_rate(q, nu), nu)
    M, W = bodies.inertias(q)[:, place], bodies.angular_velocities(q, nu)[:, place]
    need = dots(M, t_dot[:, own]) + dots(W @ M, model.twists(q, nu)[:, place])
    gravity = np.array([numeric(x) for x in model.equations.system.mechanism.gravity])
    weight = M[0, 3, 3] * np.concatenate([np.zeros(3), gravity])
    given = model.legs.wrenches(q, nu, nu_dot=nu_dot)
    agree(given.sum(axis=-2) + weight, need, SOLVED, "platform")
    agree(given, model.legs.wrenches(q, nu, u), SOLVED, "given u or nu_dot")


def test_a_leg_alone_needs_these_forces():
    """(12.14): a leg as a serial arm of its own, the platform's wrench at its tip."""
    model = ax.gallery.build("flight_simulator").derive().compile("interpreter")
    rng = np.random.default_rng(4)
    q, nu, nu_dot = model.home, rng.normal(size=6), rng.normal(size=6)
    legs, g = model.legs, model.parameters
    leg = legs["l_I"]  # the one that carries the platform in the tree
    wrench, force = leg.wrench(q, nu, nu_dot=nu_dot), model.inverse_dynamics(q, nu, nu_dot)[0]

    whole = ax.gallery.build("flight_simulator")
    arm = ax.Mechanism("leg", gravity=(0, 0, -g["g"]))
    for body in whole.bodies[1:3]:
        arm.add_body(body.name, mass=body.mass, com=body.com, inertia=body.inertia)
    arm.add_body("tip", mass=0.0, inertia=(0.0, 0.0, 0.0))
    for c in whole.connections:
        if c.child in ("cylinder_I", "piston_I", "platform"):
            child = "tip" if c.child == "platform" else c.child
            arm.add_joint(
                c.name,
                c.joint,
                parent=c.parent,
                child=child,
                at=c.at,
                rotation=c.rotation,
                child_at=c.child_at,
                child_rotation=c.child_rotation,
            )
    arm.add_wrench("w", "tip")
    for speed in (s for c in arm.connections for s in c.speeds):
        arm.add_motor(f"on {speed}", speed)
    with pytest.warns(ax.PlausibilityWarning, match="nothing resists the motion of ball_I"):
        alone = arm.derive(self_check=False).compile("interpreter")
    places = [model.coordinates.index(name) for name in _renamed(alone.coordinates)]
    speeds = [model.speed_names.index(name) for name in _renamed(alone.speed_names)]
    at = q[places]
    tip = alone.poses(at)[alone.bodies.index("tip")]
    load = dict.fromkeys(alone.inputs, 0.0)
    load |= dict(zip([n for n in alone.inputs if n.startswith("w.")], -wrench, strict=True))
    agree(tip[:3, 3], model.poses(q)[model.bodies.index("platform")][:3, 3], ROUNDING, "tip")
    order = [alone.speed_names.index(name) for name in alone.independent]
    tau = alone.inverse_dynamics(
        at,
        model.joint_speeds(q, nu)[speeds][order],
        model.accelerations(q, nu, nu_dot)[speeds][order],
        u=load,
    )
    agree(tau[:6], [0.0, 0.0, force, 0.0, 0.0, 0.0], SOLVED, "tau_J")


def _renamed(names):
    return [{"slide_I": "l_I", "slide_I.rate": "l_I_dot"}.get(name, name) for name in names]


def test_legs_that_hold_each_other_have_velocities_and_no_wrenches():
    model = ax.gallery.build("cooperating_arms").derive().compile("interpreter")
    legs, q = model.legs, model.home + 0.01
    q = ax.assemble(model, dict(zip(model.coordinates, q, strict=True))).q
    assert legs.platform == "load" and {len(own) for own in legs.freedoms} == {3}
    for leg in legs.values():
        assert leg.jacobian(q).shape == (6, 3)
        agree(leg.jacobian(q) @ leg.speed_map(q), legs.twist_map(q), SOLVED, leg.name)
    with pytest.raises(NotApplicable, match=r"take legs of six freedoms: .* has 3 freedoms"):
        legs.velocity_matrices(q)
    with pytest.raises(NotApplicable, match=r"hold each other: statics .* grip1\.rx, grip1\.ry"):
        legs.wrenches(q)


def test_files_hold_legs_that_were_asked_for(tmp_path):
    model = three_legs().derive(self_check=False).compile()
    path = tmp_path / "legs.axm"
    model.save(path, ["leg_jacobians", "platform_twist_map"])
    loaded = ax.load_model(path)
    assert facts_of(loaded) == facts_of(model) and list(loaded.legs) == list(model.legs)
    assert np.array_equal(model.legs.twist_map(model.home), loaded.legs.twist_map(model.home))
    for one in ("upper2.joint", "tip2.first_rate"):
        there, here = loaded.legs[one], model.legs[one]
        assert there.name == "one2.joint"
        assert np.array_equal(here.jacobian(model.home), there.jacobian(model.home))
    with pytest.raises(NotApplicable, match="this file has no leg_speed_maps; save it along"):
        there.speed_map(model.home)
    with pytest.raises(NotApplicable, match="holds functions and no equations"):
        _ = loaded.newton_euler.rows


def test_files_are_held_to_the_shapes_of_legs():
    e = platform_case("dressed").equations
    facts = facts_of(e.compile("interpreter"))
    assert set(FURTHER_RECIPES) == {*FURTHER_SHAPES, "twist_constraints"}
    assert set(FURTHER_RECIPES) == set(ON_DEMAND) - {*ADJOINTS.values(), "parameter_faults"}
    tapes = {
        name: SimpleNamespace(inputs=[], outputs=[Port(name, graph.shape)])
        for name in FURTHER_RECIPES
        for graph in [function_graph(e, name, fixed=False)]
    }
    assert not list(disagreements(facts, tapes))
    wrong = SimpleNamespace(**{**vars(facts), "platform": "nothing", "legs": ((), *facts.legs[1:])})
    found = list(disagreements(wrong, tapes))
    assert {"legs of a platform that is no body", "a leg without a name"} <= set(found)
    assert any("leg_wrenches gives (6, 6)" in x for x in found) is False
    assert any("leg_jacobians gives (6, 36), the names ask for (6, " in x for x in found)


def test_other_mechanisms_have_no_legs(tmp_path):
    model = ax.gallery.build("four_bar").derive().compile("interpreter")
    with pytest.raises(NotApplicable, match=r"model\.legs take a platform .* three joints or more"):
        _ = model.legs
    model.save(tmp_path / "m.axm", ["energy"])
    with pytest.raises(NotApplicable, match="has no platform that is carried by legs"):
        _ = ax.load_model(tmp_path / "m.axm").legs


def test_mistakes_are_named():
    legs = model_of("dressed").legs
    q = batch("dressed")[0]
    with pytest.raises(UnknownName, match="leg 'seven'"):
        _ = legs["seven"]
    with pytest.raises(InvalidArgument, match="legs take t, parameters and threads, not out"):
        legs.twist_map(q, out=np.zeros((2, 6, 6)))
    assert "on lower0.joint" in repr(legs) and "upper0.joint.rate" in repr(legs["upper0.joint"])


@pytest.mark.parametrize("name", ["six_legged_platform", "flight_simulator"])
def test_legs_have_the_names_of_the_book(name: str):
    legs = ax.gallery.build(name).derive(self_check=False).compile("interpreter").legs
    for leg, book in zip(legs.values(), ("I", "II", "III", "IV", "V", "VI"), strict=True):
        assert legs[book] is leg
