"""Joints and wheels that the library does not have, added from outside: two classes and a line."""

from dataclasses import dataclass
from typing import Any, ClassVar

import casadi as ca
import numpy as np
import pytest

import axode as ax
from axode.errors import NotApplicable
from axode.mechanism.elements.joints import AbstractJoint
from axode.mechanism.elements.wheels import AbstractWheel
from axode.symbolic.analysis.twist_constraints import TwistConstraints
from axode.symbolic.formulations import FORMULATIONS
from axode.symbolic.joints import SYMBOLIC_JOINTS, SymbolicJoint
from axode.symbolic.joints.base import ZERO, X, Y
from axode.symbolic.wheels import SYMBOLIC_WHEELS
from axode.symbolic.wheels.disk import SymbolicDisk
from laws.cases import FOR_LOOPS, ROUNDING, SOLVED, Case, agree


@dataclass(frozen=True)
class XYTable(AbstractJoint):
    """Slides in the plane normal to `axis`, without turning."""

    axis: Any = (0.0, 0.0, 1.0)
    coordinate_names: ClassVar = ("x", "y")
    speed_names: ClassVar = ("x_rate", "y_rate")
    coordinate_units: ClassVar = ("m", "m")
    speed_units: ClassVar = ("m/s", "m/s")
    closure_names: ClassVar = ("rx", "ry", "rz", "z")


class SymbolicXYTable(SymbolicJoint):
    twists: ClassVar = [(ZERO, X), (ZERO, Y)]

    def displacement(self, q):
        return ca.SX(0), ca.vertcat(q[0], q[1], 0)


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(SYMBOLIC_JOINTS, XYTable, SymbolicXYTable)


def pendulum_on_table(one_joint: bool) -> ax.Mechanism:
    """A pendulum on a tilted table; with one joint, or with two prismatic ones instead."""
    bot = ax.Mechanism("table")
    slide = bot.add_body("slide", mass=2.0, com=(0.1, 0, 0.05), inertia=(0.2, 0.3, 0.4))
    axis = np.array([0.0, 0.6, 0.8])
    if one_joint:
        bot.add_joint("table", XYTable(axis), parent=bot.ground, child=slide, rotation=(0, 0, 0.3))
    else:
        middle = bot.add_body("middle", mass=0.0, inertia=ax.Inertia.point())
        x, y = np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.8, -0.6])  # the shortest turn from z
        names = ("table.x", "table.y"), ("table.x_rate", "table.y_rate")
        for k, (parent, child, along) in enumerate([(bot.ground, middle, x), (middle, slide, y)]):
            place = {"rotation": (0, 0, 0.3)} if k == 0 else {}
            own = {"coordinates": names[0][k], "speeds": names[1][k]}
            bot.add_joint(f"s{k}", ax.Prismatic(along), parent=parent, child=child, **place, **own)
    bob = bot.add_body("bob", mass=1.0, com=(0.4, 0.1, -0.3), inertia=(0.02, 0.03, 0.04))
    bot.add_joint("hinge", ax.Revolute("y"), parent=slide, child=bob, at=(0.1, 0.2, 0.0))
    bot.add_motor("hinge", "hinge")
    bot.add_spring("spring", "table.x", stiffness=30.0)
    return bot


def crank_and_table() -> ax.Mechanism:
    """A crank whose tip carries a plate that the table keeps from turning: it moves in a circle."""
    bot = ax.Mechanism("circle", gravity=(0, -9.81, 0))
    crank = bot.add_body("crank", mass=1.0, com=(0.25, 0, 0), inertia=(0.001, 0.02, 0.02))
    plate = bot.add_body("plate", mass=3.0, inertia=(0.1, 0.1, 0.2))
    bot.add_joint("crank", ax.Revolute("z"), parent=bot.ground, child=crank)
    bot.add_joint("pin", ax.Revolute("z"), parent=crank, child=plate, at=(0.5, 0, 0))
    bot.add_loop("table", XYTable(), parent=bot.ground, child=plate)
    bot.add_motor("crank", "crank")
    bot.set_home(crank=0.3, pin=-0.3)
    return bot


@pytest.mark.parametrize("build", [lambda: pendulum_on_table(True), crank_and_table])
def test_all_formulations_and_both_directions_agree(build):
    case = Case(build(), self_check=False)
    e = case.equations
    loops = ("legs",) if case.mechanism.loops else FOR_LOOPS
    names = [name for name in FORMULATIONS if name not in loops]
    rivals = [case.by(name).forward_dynamics for name in names]
    energy = e.energy[0] + e.energy[1]
    rate = case.along(energy, e.forward_dynamics)
    for state in case.states:
        nu_dot, *others, power = case.at(state, *rivals, rate)
        for name, other in zip(names[1:], others, strict=True):
            agree(other, nu_dot, SOLVED, name)
        back = [
            ca.substitute(x, e.nu_dot, nu_dot) for x in (e.inverse_dynamics, e.inverse_residual)
        ]
        u, missing = (case.vector(state, x) for x in back)
        agree(u, state.u, SOLVED, "inverse after forward dynamics")
        agree(missing, 0 * missing, SOLVED, "forces that no motor gives")
        driven = e.speeds.index(case.mechanism.drives[0].coordinate + ".rate")
        agree(power.ravel(), state.u * state.v[driven], SOLVED, "dE/dt")


def test_it_moves_as_two_sliders_do():
    one, two = (Case(pendulum_on_table(is_one), self_check=False) for is_one in (True, False))
    order = [one.equations.independent.index(name) for name in two.equations.independent]
    for state in one.states:
        mine, right = (c.at(state, c.equations.forward_dynamics)[0].ravel() for c in (one, two))
        agree(mine[order], right, SOLVED, "nu_dot")


def test_it_closes_loops():
    case = Case(crank_and_table(), self_check=False)
    e = case.equations
    assert len(e.independent) == 1
    for state in case.states:
        assert np.abs(state.q.sum()) < ROUNDING  # the plate does not turn
        # as if all of the plate's mass stood at the tip: I = 0.02 + m c^2 + M l^2
        agree(case.at(state, e.I)[0], [[0.02 + 0.25**2 + 3 * 0.5**2]], ROUNDING, "I")
        A, T = TwistConstraints(e).at(state.q)
        assert np.abs(A @ T).max() < ROUNDING


def test_energy_is_conserved_over_a_motion():
    e = crank_and_table().derive(self_check=False)
    state, still = ca.vertcat(e.q, e.nu), np.zeros(1)
    rate = ca.Function("f", [state, e.u], [ca.vertcat(e.q_dot, e.forward_dynamics)])
    energy = ca.Function("E", [state], [e.energy[0] + e.energy[1]])
    x, h = np.append(e.system.home, 4.0), 0.01
    first = float(energy(x))
    for _ in range(50):
        slopes = [np.array(rate(x, still)).ravel()]
        for part in (0.5, 0.5, 1.0):
            slopes.append(np.array(rate(x + part * h * slopes[-1], still)).ravel())
        x = x + h / 6 * (slopes[0] + 2 * slopes[1] + 2 * slopes[2] + slopes[3])
    assert x[-1] < -1  # it has turned back
    assert abs(float(energy(x)) - first) < 1e-6
    assert abs(x[0] + x[1]) < 1e-8  # and the loop is still closed


def test_a_joint_without_symbols_is_named():
    @dataclass(frozen=True)
    class Odd(XYTable):
        pass

    @dataclass(frozen=True)
    class Other(AbstractJoint):
        speed_names: ClassVar = ("rate",)
        coordinate_names: ClassVar = ("",)

    bot = ax.Mechanism("odd")
    body = bot.add_body("body", mass=1.0, inertia=(1, 1, 1))
    bot.add_joint("odd", Odd(), parent=bot.ground, child=body)
    assert bot.derive(self_check=False).coordinates == ("odd.x", "odd.y")
    bot.connections[0] = ax.Mechanism("other").add_joint(
        "j", Other(), parent="ground", child="body"
    )
    with pytest.raises(NotApplicable, match="joints of class Other have no symbolic counterpart"):
        bot.derive(self_check=False)


def test_a_new_wheel_needs_symbols_too(monkeypatch):
    @dataclass(frozen=True)
    class Caterpillar(AbstractWheel):
        """Slides sideways, as an omni wheel does."""

        rolling_rows: ClassVar = ("longitudinal",)

    def cart(wheel):
        bot = ax.Mechanism("cart")
        base = bot.add_body("base", mass=2.0, inertia=(0.1, 0.1, 0.2))
        bot.add_joint("base", ax.Planar(), parent=bot.ground, child=base, at=(0, 0, 0.1))
        bot.add_wheel("wheel", wheel, on=base, at=(0, 0.2, 0), mass=0.5)
        return bot

    with pytest.raises(NotApplicable, match="wheels of class Caterpillar have no symbolic counter"):
        cart(Caterpillar(0.1)).derive(self_check=False)
    monkeypatch.setitem(SYMBOLIC_WHEELS, Caterpillar, SymbolicDisk)
    mine, right = (Case(cart(w(0.1)), self_check=False) for w in (Caterpillar, ax.Omni))
    for state in mine.states:
        agree(*(c.at(state, c.equations.forward_dynamics)[0] for c in (mine, right)), ROUNDING, "v")
