"""How descriptions grow: tree or loop, wheels and casters as wholes, copies."""

import numpy as np
import pytest

import axode as ax
from axode.mechanism.topology import coordinate_names, speed_names, tree_order

POINT = ax.Inertia.point()


def with_bodies(*names):
    mechanism = ax.Mechanism("m")
    for name in names:
        mechanism.add_body(name, mass=1.0, inertia=POINT)
    return mechanism


def test_a_joint_whose_child_is_held_closes_a_loop():
    m = with_bodies("a", "b")
    m.add_joint("j1", ax.Revolute(), parent="ground", child="a")
    m.add_joint("j2", ax.Revolute(), parent="ground", child="b")
    m.add_joint("j3", ax.Revolute(), parent="a", child="b")
    m.add_joint("j4", ax.Revolute(), parent="a", child="ground")
    assert [c.name for c in m.connections] == ["j1", "j2"]
    assert [c.name for c in m.loops] == ["j3", "j4"]


def test_a_joint_listed_before_its_parents_joint_stays_in_the_tree():
    m = with_bodies("a", "b")
    m.add_joint("outer", ax.Prismatic(), parent="a", child="b")
    m.add_joint("inner", ax.Planar(), parent="ground", child="a")
    assert m.loops == []
    assert [c.name for c in tree_order(m)] == ["inner", "outer"]
    assert coordinate_names(m) == ["inner.x", "inner.y", "inner.yaw", "outer"]
    assert speed_names(m) == ["inner.surge", "inner.sway", "inner.yaw_rate", "outer.rate"]


def test_a_loop_said_to_be_one_is_one():
    m = with_bodies("a")
    m.add_loop("l", ax.Revolute(), parent="ground", child="a")
    assert m.connections == [] and [c.name for c in m.loops] == ["l"]


def test_copies_are_independent():
    m = with_bodies("a")
    m.add_joint("j", ax.Revolute(), parent="ground", child="a")
    m.set_home(j=0.1)
    same = m.copy()
    assert same == m
    same.add_body("b", mass=1, inertia=POINT)
    same.add_joint("k", ax.Revolute(), parent="a", child="b")
    same.add_contact("c", ax.Ball(1), body="b")
    same.add_motor("m", "k")
    same.add_damper("d", "k", coefficient=1)
    same.add_spring("s", "k", stiffness=1)
    same.add_spring("t", parent="a", child="ground", stiffness=1)
    same.add_wrench("w", "a")
    same.add_loop("l", ax.Revolute(), parent="ground", child="b")
    same.prescribe("k", 0)
    same.measure("tip", "position", body="a")
    same.set_home(j=0.2, k=0.3)
    original = with_bodies("a")
    original.add_joint("j", ax.Revolute(), parent="ground", child="a")
    original.set_home(j=0.1)
    assert m == original
    assert m != same


def test_names_and_parts_mean_the_same():
    by_part, by_name = with_bodies(), with_bodies()
    for m, use in ((by_part, lambda part: part), (by_name, lambda part: part.name)):
        a = m.add_body("a", mass=1, inertia=POINT)
        j = m.add_joint("j", ax.Revolute("y"), parent=use(m.ground), child=use(a))
        w = m.add_wheel("w", ax.Rolling(0.1), on=use(a), mass=1, ground=use(m.ground))
        m.add_motor("m", use(j))
        m.add_motor("n", use(w))
        m.add_damper("d", use(j), coefficient=1)
        m.add_wrench("push", use(a))
        m.add_spring("s", parent=use(a), child=use(m.ground), stiffness=1)
    assert by_part == by_name


def test_any_sequence_of_numbers_is_a_vector():
    built = []
    for make in (tuple, list, np.array, lambda v: np.array(v, dtype=np.float32)):
        m = ax.Mechanism("m", gravity=make([0, 0, -10]))
        m.add_body("a", mass=np.int64(2), com=make([1, 2, 3]), inertia=make([1, 1, 1]))
        m.add_joint(
            "j",
            ax.Revolute(make([0, 1, 0])),
            parent="ground",
            child="a",
            at=make([0, 0, 1]),
            rotation=make([1, 0, 0, 0]),
        )
        built.append(m)
    assert all(m == built[0] for m in built)
    assert type(built[-1].bodies[0].com[0]) is float


def test_parameters_may_stand_in_every_place():
    p = ax.Parameter("p", 0.6)
    q = (p * p / 0.6, 0.0, ax.Parameter("q", 0.8))
    m = ax.Mechanism("m", gravity=(0, 0, -p))
    a = m.add_body(
        "a", mass=p, com=(p, 0, 0), inertia=(p, p, p), shape=ax.Box((p, p, p), (p, 0, 0))
    )
    b = m.add_body("b", mass=p, inertia=[[p, 0, 0], [0, p, 0], [0, 0, p]], shape=ax.Sphere(p))
    m.add_joint("j", ax.Screw(q, p), parent="ground", child=a, at=(p, 0, p), rotation=(p, 0, 0))
    m.add_joint("k", ax.Universal(q, "y"), parent=a, child=b, child_at=np.array([1, 2, 3]) * p)
    m.add_wheel(
        "w",
        ax.Mecanum(p, p),
        on=a,
        at=(p, 0, 0),
        axis=q,
        mass=p,
        inertia=(p, p, p),
        motor=ax.Motor(p, p, p),
        ground=ax.Plane(q, (p, p, p)),
    )
    m.add_caster(
        "c",
        ax.Rolling(p),
        on=a,
        at=(p, 0, 0),
        trail=p,
        drop=p,
        mass=p,
        bracket_mass=p,
        bracket_inertia=(p, p, p),
        pivot_axis=q,
    )
    m.add_contact("e", ax.Ball(p), body=b, at=(p, 0, 0))
    m.add_motor("m", "j", limit=p, gear=p, rotor_inertia=p)
    m.add_damper("d", "j", coefficient=p)
    m.add_spring("s", "j", stiffness=p, rest=p)
    m.add_spring("t", parent=a, child=b, at=(p, 0, 0), stiffness=p, rest=p, damping=p)
    m.add_wrench("f", a, at=(p, 0, 0))
    m.measure("tip", "position", body=a, at=(p, 0, 0))
    m.prescribe("j", p)
    m.check()


def test_a_caster_is_a_bracket_and_a_wheel_behind_it():
    m = with_bodies("a")
    wheel = m.add_caster("c", ax.Rolling(0.1), on="a", at=(1, 0, 0), trail=0.2, drop=0.3, mass=2)
    bracket = m.bodies[-2]
    assert (bracket.name, bracket.mass, bracket.com) == ("c_bracket", 0.0, (-0.1, 0.0, -0.15))
    assert [(c.name, c.parent, c.at) for c in m.connections] == [
        ("c_bracket", "a", (1.0, 0.0, 0.0)),
        ("c", "c_bracket", (-0.2, 0.0, -0.3)),
    ]
    assert wheel.inertia == ax.Inertia.disk(2.0, 0.1, "y")


def test_a_wheel_may_lean_roll_on_a_body_and_carry_other_names():
    m = with_bodies("a", "plate")
    m.add_wheel(
        "w",
        ax.Rolling(0.1),
        on="a",
        axis=(0, 0.8, 0.6),
        mass=1,
        ground="plate",
        coordinate="turn",
        speed="spin",
    )
    assert m.contacts[0].plane == ax.Plane((0, 0, 1), (0, 0, 0), "plate")
    assert m.connections[0].coordinates == ("turn",) and m.connections[0].speeds == ("spin",)
    m.add_wheel("ball", ax.Ball(0.1), on="a", mass=1)
    assert m.bodies[-1].inertia == ax.Inertia.sphere(1.0, 0.1)
    assert m.connections[-1].joint == ax.Spherical()


def test_scipy_rotations_are_understood():
    spatial = pytest.importorskip("scipy.spatial.transform")
    m = with_bodies("a")
    turn = spatial.Rotation.from_euler("z", 90, degrees=True)
    joint = m.add_joint("j", ax.Revolute(), parent="ground", child="a", rotation=turn)
    np.testing.assert_allclose(joint.rotation, [[0, -1, 0], [1, 0, 0], [0, 0, 1]], atol=1e-15)


def test_a_mechanism_tells_what_it_holds():
    m = with_bodies("a")
    m.add_joint("j", ax.Revolute(), parent="ground", child="a")
    assert repr(m) == "Mechanism('m': 1 body, 1 joint)"
    m.add_wheel("w", ax.Rolling(1), on="a", mass=1, motor=True)
    m.add_loop("l", ax.Revolute(), parent="ground", child="w")
    assert repr(m) == "Mechanism('m': 2 bodies, 2 joints, 1 loop, 1 contact, 1 motor)"
