"""Mechanisms without loops, written and read back: the same inertia and bias forces."""

import warnings

import numpy as np
import pytest

import axode as ax
from axode.mechanism.topology import tree_order
from kinematics_by_hand import numbers, quaternion_turn
from tests.peers.test_written_files import IN_MJCF, IN_URDF, TREES, VEHICLES
from tests.peers.trees import relative_error
from tests.peers.written_states import SpeedMap, random_state
from variants import some

TOLERANCE = 1e-9
WHOLE = {".urdf": IN_URDF, ".xml": IN_MJCF, ".sdf": {"screw", "spherical", "free in the world"}}
NAMES = [name for name in TREES if name not in VEHICLES]
CASES = [(name, ending) for name in NAMES for ending in WHOLE]
CASES.remove(("floating revolute floating", ".sdf"))  # there free bodies are free in the world
QUICK = [("planar cylindrical screw", ".sdf"), ("floating universal spherical", ".sdf")]


def is_cardan(joint) -> bool:
    """Return whether the axes of a universal joint are at right angles, as those of SDF are."""
    return (
        isinstance(joint, ax.Universal) and abs(numbers(joint.axis) @ numbers(joint.second)) < 1e-12
    )


class ReadState(SpeedMap):
    """A state in the joints of what was read back; a free joint there has speeds as here."""

    def __init__(self, bot, q, v, whole, read):
        super().__init__(bot, q, v, whole)
        self.values, self.speeds, start = {}, [], 0
        for (name, x), width in zip(self.coordinates.items(), self.widths(), strict=True):
            rows = slice(start, start + width)
            if len(x) == 7 and "free in the world" in whole:
                x = self._turn(rows, x)
            found = [c for c in read.connections if c.name in (name, f"{name}_joint")]
            found += [c for c in read.connections if len(c.coordinates) == 7 == len(x)]
            self.values |= dict(zip(found[0].coordinates, map(float, x), strict=True))
            self.speeds += found[0].speeds
            start += width

    def _turn(self, rows, x):
        """Turn the velocity from the axes of the world to those of the body, and put it last."""
        R = quaternion_turn(x[3:])
        A = np.zeros((6, 6))
        A[:3, 3:], A[3:, :3] = np.eye(3), R.T
        velocity, spin = R.T @ self.rates[rows][:3], self.rates[rows][3:]
        self.N[rows], self.N_dot_v[rows] = A @ self.N[rows], A @ self.N_dot_v[rows]
        self.N_dot_v[rows][3:] -= np.cross(spin, velocity)
        return np.concatenate([x[3:], x[:3]])


@pytest.mark.parametrize("case", some(CASES, *(c for c in CASES if c not in QUICK)), ids="".join)
def test_trees_read_back_are_the_same(case, tmp_path):
    name, ending = case
    bot = TREES[name]()
    for forces in (bot.drives, bot.dampers, bot.springs, bot.struts, bot.wrenches):
        forces.clear()
    path = tmp_path / f"robot{ending}"
    write = {".urdf": bot.to_urdf, ".xml": bot.to_mjcf, ".sdf": bot.to_sdf}[ending]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        write(path)
        read = ax.load(path)
    read.couplings.clear()  # of screws: all speeds are compared
    if ending == ".urdf":
        read.gravity = bot.gravity
    ours, theirs = (m.derive(self_check=False).compile("interpreter") for m in (bot, read))
    rng = np.random.default_rng(4)
    q, v = random_state(bot, rng), rng.uniform(-2, 2, len(ours.independent))
    cardan = ending == ".sdf" and any(is_cardan(c.joint) for c in bot.connections)
    state = ReadState(bot, q, v, WHOLE[ending] | ({"universal"} if cardan else set()), read)
    order = [list(theirs.independent).index(speed) for speed in state.speeds]
    assert len(order) == len(theirs.independent)
    there = np.array([state.values[name] for name in theirs.coordinates])
    rates = np.zeros(len(order))
    rates[order] = state.N @ v
    here = np.concatenate([q[c.name] for c in tree_order(bot)])
    M = theirs.mass_matrix(there)[np.ix_(order, order)]
    assert relative_error(state.N.T @ M @ state.N, ours.mass_matrix(here)) < TOLERANCE
    bias = (theirs.bias(there, rates) - theirs.potential_force(there))[order]
    found = state.N.T @ (bias + M @ state.N_dot_v)
    assert relative_error(found, ours.bias(here, v) - ours.potential_force(here)) < TOLERANCE
