"""Rank is judged where the mechanism will be, not only where the clock starts, in any units."""

import re

import numpy as np
import pytest

import axode as ax

LENGTH, TRACK = 2.5, 1.5


def car(left, right):
    """Both front wheels steered by the clock."""
    machine = ax.Mechanism("car")
    body = machine.add_body("body", mass=1000.0, com=(1.2, 0, 0.3), inertia=(300, 1000, 1200))
    machine.add_joint("base", ax.Planar(), parent=machine.ground, child=body, at=(0, 0, 0.3))
    for side, y, angle in (("left", TRACK / 2, left), ("right", -TRACK / 2, right)):
        machine.add_wheel(f"rear_{side}", ax.Rolling(0.3), on=body, at=(0, y, 0), mass=15.0)
        knuckle = machine.add_body(f"knuckle_{side}", mass=10.0, inertia=(0.1, 0.1, 0.1))
        machine.add_joint(
            f"steer_{side}", ax.Revolute("z"), parent=body, child=knuckle, at=(LENGTH, y, 0)
        )
        machine.add_wheel(f"front_{side}", ax.Rolling(0.3), on=knuckle, mass=15.0)
        if angle is not None:
            machine.prescribe(f"steer_{side}", angle)
    return machine


def ackermann(side):
    def angle(t):
        curvature = 0.05 * np.sin(t)
        return np.arctan(LENGTH * curvature / (1 - side * curvature * TRACK / 2))

    return angle


def test_a_car_steered_as_ackermann_asks_drives_and_turns():
    mobility = car(ackermann(1), ackermann(-1)).derive().mobility
    assert mobility.mobility == 1
    assert not mobility.conflicts


def test_wheels_steered_in_parallel_hold_a_car_though_they_start_straight():
    machine = car(lambda t: 0.2 * np.sin(t), lambda t: 0.2 * np.sin(t))
    mobility = machine.derive().mobility
    assert mobility.mobility == 0
    assert "meet at special angles only" in mobility.conflicts[0]
    assert "front_right.lateral" not in " ".join(mobility.dropped)


def test_wheels_that_steer_freely_are_named_together():
    (conflict,) = car(None, None).derive().mobility.conflicts
    assert all(
        f"{end}_{side}" in conflict for end in ("front", "rear") for side in ("left", "right")
    )
    assert "meet at special angles only" in conflict


def test_the_speeds_that_are_offered_instead_are_valid():
    machine = car(None, None)
    with pytest.raises(ax.errors.InvalidIndependent) as caught:
        machine.derive(independent=["steer_left.rate", "rear_left.rate"])
    (offered,) = re.findall(r"independent=\[(.*)\]", str(caught.value))
    names = re.findall("'(.*?)'", offered)
    assert len({*names}) == 2
    assert set(machine.derive(independent=names).independent) == {*names}


@pytest.mark.slow
def test_a_row_left_out_as_rounded_keeps_no_car_from_turning():
    machine = car(None, None)
    rod = machine.add_body("rod", mass=1.0, inertia=(0.1, 0.001, 0.1))
    arm, half = 0.15 * LENGTH, TRACK / 2 * 0.8  # arms that point at the middle of the rear axle
    machine.add_joint(
        "rod",
        ax.Revolute("z"),
        parent="knuckle_left",
        child=rod,
        at=(-arm, half - TRACK / 2, 0),
        child_at=(0, half, 0),
    )
    machine.add_loop(
        "rod_end",
        ax.Revolute("z"),
        parent=rod,
        child="knuckle_right",
        at=(0, -half, 0),
        child_at=(-arm, TRACK / 2 - half, 0),
    )
    machine.loop_tolerance = 1e-2
    with pytest.warns(
        ax.errors.PlausibilityWarning, match="left out as an effect of rounded numbers"
    ):
        mobility = machine.derive().mobility
    assert mobility.mobility == 2
    assert not mobility.conflicts
    machine.loop_tolerance = 0.0
    mobility = machine.derive().mobility
    assert mobility.mobility == 1
    assert mobility.conflicts


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_a_platform_closes_in_any_units(unit):
    machine = ax.Mechanism("tripod")
    inertia = tuple(unit**2 * x for x in (0.1, 0.1, 0.2))
    plate = machine.add_body("plate", mass=5.0, inertia=inertia)
    machine.add_joint("base", ax.Floating(), parent=machine.ground, child=plate)
    for k, angle in enumerate((0.0, 2.1, 4.2)):
        way = unit * np.array((np.cos(angle), np.sin(angle), 0))
        cylinder = machine.add_body(f"cylinder{k}", mass=0.5, inertia=inertia)
        piston = machine.add_body(f"piston{k}", mass=0.5, inertia=inertia)
        machine.add_joint(
            f"foot{k}", ax.Universal("x", "y"), parent=machine.ground, child=cylinder, at=tuple(way)
        )
        machine.add_joint(f"leg{k}", ax.Prismatic("z"), parent=cylinder, child=piston)
        machine.add_loop(
            f"ball{k}", ax.Spherical(), parent=piston, child=plate, child_at=tuple(0.6 * way)
        )
    machine.set_home({"base.z": unit})
    equations = machine.derive()
    assert equations.mobility.mobility == 6
    legs = [equations.system.home[equations.coordinates.index(f"leg{k}")] for k in range(3)]
    assert np.allclose(np.array(legs) / unit, 1.0, atol=0.3)


def test_rows_that_vanish_leave_their_forces_undecided():
    machine = ax.Mechanism("slider crank")
    crank = machine.add_body("crank", mass=1.0, com=(0.05, 0, 0), inertia=(1e-4, 1e-3, 1e-3))
    rod = machine.add_body("rod", mass=0.5, com=(0.2, 0, 0), inertia=(1e-4, 5e-3, 5e-3))
    piston = machine.add_body("piston", mass=2.0, inertia=(1e-3, 1e-3, 1e-3))
    machine.add_joint("crank", ax.Revolute("y"), parent=machine.ground, child=crank)
    machine.add_joint("wrist", ax.Revolute("y"), parent=crank, child=rod, at=(0.1, 0, 0))
    machine.add_joint("slide", ax.Prismatic("x"), parent=machine.ground, child=piston)
    machine.add_loop("pin", ax.Revolute("y"), parent=rod, child=piston, at=(0.4, 0, 0))
    machine.set_home(crank=0.5, wrist=-0.6, slide=0.45)
    mobility = machine.derive().mobility
    assert mobility.rank == 2
    assert len(mobility.indeterminate) == 3


def test_a_joint_driven_by_the_clock_alone_tells_the_force_it_takes():
    machine = ax.Mechanism("shaker")
    body = machine.add_body("body", mass=2.0, inertia=(0.1, 0.1, 0.1))
    machine.add_joint("x", ax.Prismatic("x"), parent=machine.ground, child=body)
    machine.prescribe("x", lambda t: 0.1 * np.sin(3 * t))
    equations = machine.derive()
    assert equations.mobility.mobility == 0
    assert "driven by time alone" in str(equations)
    model = equations.compile()
    assert model.forward_dynamics([0.0], np.zeros(0)).shape == (0,)
    force = model.multipliers([0.1 * np.sin(1.5)], np.zeros(0), t=0.5)
    assert np.allclose(force, -2.0 * 0.9 * np.sin(1.5), rtol=1e-12)


def test_redundant_rows_that_ask_for_other_rates_are_named():
    """Both coordinates of a pair of gears prescribed: consistent at t = 0, not a moment later."""
    bot = ax.Mechanism("gears")
    for name in ("a", "b"):
        bot.add_body(name, mass=1.0, inertia=(0.1, 0.1, 0.1))
        bot.add_joint(name, ax.Revolute("z"), parent=bot.ground, child=name)
    bot.add_body("tool", mass=1.0, inertia=(0.1, 0.1, 0.1))
    bot.add_joint("tool", ax.Revolute("z"), parent="b", child="tool")
    bot.add_coupling("mesh", {"a": 1.0, "b": 1.0})
    bot.prescribe("a", lambda t: 0.5 * t)
    bot.prescribe("b", lambda t: -0.4 * t)
    with pytest.raises(ax.MechanismError, match="contradicts the other constraints: they move it"):
        bot.derive()
