"""How many operations the generated code takes: the promise behind every speed."""

import casadi as ca
import numpy as np
import pytest

from axode.codegen.tape import Tape
from random_mechanisms import arm, chain, platform

ARM_INVERSE = 1600
ARM_DIRECT = 3500
PLATFORM_DIRECT = 5000
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


@pytest.mark.parametrize("independent", [None, [f"base.{s}" for s in ("wx", "wy", "wz", "vx", "vy",
                                                                      "vz")]])  # fmt: skip
def test_direct_dynamics_of_a_platform_on_six_legs(independent):
    assert direct(platform(6), independent) <= PLATFORM_DIRECT


def test_direct_dynamics_of_a_long_chain_grows_linearly():
    short, long = direct(chain(32)), direct(chain(64))
    assert long <= CHAIN_OF_64
    assert long / short < LINEAR


def test_direct_dynamics_of_platforms_grows_linearly_with_the_legs():
    twist = [f"base.{s}" for s in ("wx", "wy", "wz", "vx", "vy", "vz")]
    legs = np.array([3, 4, 6, 8, 10, 12])
    counts = np.array([direct(platform(n), twist) for n in legs])
    increments = np.diff(counts) / np.diff(legs)
    assert np.abs(increments / np.median(increments) - 1).max() <= LEG_SPREAD, increments
