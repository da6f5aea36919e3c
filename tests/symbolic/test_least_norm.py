"""Loops of large mechanisms are closed by sparse solves, to where dense ones close them."""

import casadi as ca
import numpy as np
import pytest

from axode.symbolic.constraints import assembly
from axode.symbolic.constraints.assembly import LeastNorm
from random_mechanisms import MECHANISMS

DAMPED = 1e-9  # relative: what the damping may change, of systems whose rows are of one size
SAME = 1e-8  # [m or rad] between two ways to the same closed configuration
LOOPS = (
    "four_bar",
    "platform",
    "parametric_loop",
    "rolling_disk",
    "balancer",
    "loop_cylindrical",
    "loop_planar",
    "loop_universal",
)


@pytest.mark.parametrize("redundant", [0, 3])
def test_solutions_are_the_shortest(redundant):
    """Also where rows follow from others."""
    rng = np.random.default_rng(0)
    for _ in range(5):
        J = rng.normal(size=(12, 20)) * (rng.random((12, 20)) < 0.4) + np.eye(12, 20)
        J = np.vstack([J, rng.normal(size=(redundant, 12)) @ J])
        r = J @ rng.normal(size=20)
        sparse = ca.sparsify(ca.DM(J))
        x = LeastNorm(sparse.sparsity()).solve(J, r)
        expected = np.linalg.lstsq(J, r, rcond=1e-9)[0]
        assert np.abs(x - expected).max() < DAMPED * np.linalg.cond(J[:12]) ** 2


@pytest.mark.parametrize("name", LOOPS)
def test_both_ways_close_at_the_same_place(name, monkeypatch):
    system = MECHANISMS[name]().derive().system
    monkeypatch.setattr(assembly, "DENSE", 0)
    home = system.assembly.find_home()
    assert np.abs(home - system.home).max() < SAME
    for mine, dense in zip(system.assembly.samples(system.home, 3), system.samples, strict=False):
        assert np.abs(mine - dense).max() < SAME
        assert np.abs(system.assembly.residual(mine)).max(initial=0.0) < assembly.CLOSED
