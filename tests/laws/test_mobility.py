"""Reports of known mechanisms: rows, rank, what is dropped and what is left free."""

import casadi as ca
import numpy as np
import pytest

import axode as ax
from laws.cases import case_of
from variants import slow

# speeds, rows, rank, dof of configuration, mobility, what motion reaches
KNOWN = {
    "rolling_disk": (6, 3, 3, 5, 3, 5),
    "rolling_ball": (6, 3, 3, 5, 3, 5),
    "balancer": (8, 6, 5, 6, 3, 5),  # heading follows from the two wheels' angles
    "car": (10, 10, 8, 7, 2, 4),
    "mecanum_base": (7, 8, 4, 7, 3, 5),
    "disk_on_plate": (9, 3, 3, 8, 6, 8),
    "four_bar": (3, 5, 2, 1, 1, 1),
    "platform": (24, 18, 18, 6, 6, 6),
    "caster_robot": (7, 9, 5, 7, 2, 6),
    "snakeboard": (6, 4, 2, 6, 4, 6),
    "ballbot": (9, 3, 3, 8, 6, 8),
}
DROPPED = {
    "balancer": ["right.lateral (follows from left.lateral)"],
    "car": [
        "rr.lateral (follows from rl.lateral)",
        "fr.touch (follows from rl.touch, rr.touch, fl.touch)",
    ],
    "four_bar": [
        "c.rx (vanishes everywhere)",
        "c.ry (vanishes everywhere)",
        "c.z (vanishes everywhere)",
    ],
    "platform": [],
}


@pytest.mark.parametrize("name", slow(KNOWN, "balancer", "car"))
def test_known_mechanisms_are_counted_right(name):
    m = case_of(name).equations.mobility
    found = (len(m.speeds), m.rows, m.rank, m.configuration_dof, m.mobility, m.reachable)
    assert found == KNOWN[name]


@pytest.mark.parametrize("name", DROPPED)
def test_dropped_rows_are_told_with_their_reason(name):
    assert list(case_of(name).equations.mobility.dropped) == DROPPED[name]


def test_loops_by_the_formula_of_euler():
    assert case_of("four_bar").equations.mobility.loops == 1
    assert case_of("platform").equations.mobility.loops == 5
    assert case_of("all_joints_tree").equations.mobility.loops == 0


@pytest.mark.parametrize(
    ("name", "rheonomic", "holonomic"),
    [
        ("four_bar", False, True),
        ("balancer", False, False),
        ("shaken_pendulum", True, True),
        ("driven_five_bar", True, False),
        ("snakeboard", False, False),
    ],
)
def test_kinds_of_constraints_are_told_apart(name, rheonomic, holonomic):
    m = case_of(name).equations.mobility
    assert (m.rheonomic, m.holonomic, m.catastatic) == (rheonomic, holonomic, not rheonomic)
    assert ("acatastatic (time alone gives" in str(m)) == rheonomic
    e = case_of(name).equations  # Angeles' words: kinetic energy while all these speeds are zero
    known = [e.system.home, np.zeros(len(e.independent)), 0.3, e.system.defaults]
    energy = ca.Function("T", [e.q, e.nu, e.t, e.p], [e.energy])(*known)
    assert (float(energy[0]) > 0.0) == rheonomic


def test_a_joint_that_time_holds_still_is_catastatic():
    bot = case_of("four_bar").mechanism.copy()
    bot.prescribe("a", -1.0)
    m = bot.derive().mobility
    assert m.catastatic and not m.driven


def test_rows_on_twists_of_a_guided_vehicle():
    """Saha and Angeles: 24 rows of rank 20 and 9 of rank 9, together 28: one wheel slides less."""
    found = ax.gallery.build("caster_robot").derive().twist_redundancy
    assert (found.rows, found.columns, found.own, found.rank) == (33, 30, 29, 28)
    assert found.redundant == ("wheel2.lateral = wheel1.lateral",)


def test_three_wheels_keep_a_plane_and_the_fourth_follows():
    found = ax.gallery.build("mecanum_rover").derive().twist_redundancy
    assert found.own - found.rank == 1
    assert found.redundant == ("wheel4.touch = -wheel1.touch + wheel2.touch + wheel3.touch",)


def test_a_planar_four_bar_has_three_rows_too_many():
    found = case_of("four_bar").equations.twist_redundancy
    assert (found.own, found.rank) == (20, 17)
    assert len(found.redundant) == 1 and "3 of 5 follow" in found.redundant[0]
