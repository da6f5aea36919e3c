"""Mechanisms made harder: coupled joints, constraints that are there twice, inputs that jump."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import axode as ax
from axode.mechanism.topology import tree_order
from kinematics_by_hand import numbers, pose, poses_by_hand, turn
from random_mechanisms import Rng

COUPLED, TWICE = 0.3, 0.3  # parts of the mechanisms
EXACT_TWINS = 0.2  # of those with twins
EXACT = 0.5  # of those, how many are described as exact numbers
TILTS = (3.0, 9.0)  # of other twins, as digits [rad]


def make_harder(bot: ax.Mechanism, rng: Rng) -> str:
    """Couple some joints of some mechanisms, describe a constraint of some twice; return which."""
    made = []
    if rng.random() < COUPLED:
        made.append(couple(bot, rng))
    if rng.random() < TWICE:
        made.append(add_twin(bot, rng))
    return ", ".join(filter(None, made))


def home_of(bot: ax.Mechanism) -> dict[str, float]:
    """All coordinates of the tree as described, zero or no rotation unless given."""
    names = [name for c in tree_order(bot) for name in c.coordinates]
    return {n: float(n.endswith(".qw")) for n in names} | bot.home_coordinates


def couple(bot: ax.Mechanism, rng: Rng) -> str:
    """A gear, a belt, a differential, or a relation of coordinates, linear or not, or of speeds."""
    moving = [c for c in tree_order(bot) if c.joint.dof == 1]
    if len(moving) < 2:
        return ""
    chosen = [moving[k] for k in rng.permutation(len(moving))[:3]]
    names, home = [c.name for c in chosen], home_of(bot)
    a, *others = (home[c.coordinates[0]] for c in chosen)
    ratio = float(rng.uniform(0.3, 3.0) * rng.choice([-1.0, 1.0]))
    turning = all(isinstance(c.joint, ax.Revolute) for c in chosen)
    kind = str(rng.choice(["gear", "belt", "differential", "positions", "speeds", "function"]))
    if kind == "gear" and turning:
        bot.add_gear("gear", *names[:2], ratio, offset=a + ratio * others[0])
    elif kind == "belt" and turning:
        bot.add_belt("belt", *names[:2], ratio, offset=a - ratio * others[0])
    elif kind == "differential" and turning and len(names) == 3:
        bot.add_differential("axle", *names, ratio, offset=a - ratio * sum(others) / 2)
    elif kind == "speeds":
        speeds = [c.speeds[0] for c in chosen]
        bot.add_coupling("speeds", dict(zip(speeds, (1.0, ratio, 0.4), strict=False)))
    elif kind == "function":
        last = names[-1]
        by = float(rng.uniform(0.1, 0.6))
        offset = a - by * math.sin(ratio * others[-1]) * (1.0 + others[0])
        bot.add_coupling(
            "function",
            {names[0]: 1.0},
            offset=offset,
            function=lambda q: by * np.sin(ratio * q[last]) * (1.0 + q[names[1]]),
        )
    else:
        terms = dict(zip(names, (1.0, ratio, 0.4), strict=False))
        offset = sum(x * y for x, y in zip(terms.values(), (a, *others), strict=True))
        bot.add_coupling("positions", terms, offset=offset)
    return bot.couplings[-1].name


def add_twin(bot: ax.Mechanism, rng: Rng) -> str:
    """Close a loop beside a joint by the same joint, tilted by a little or by nothing."""
    pairs = [c for c in (*tree_order(bot), *bot.loops) if c.joint.dof in (1, 2, 3)]
    if not pairs:
        return ""
    of: Any = pairs[rng.integers(len(pairs))]
    tilt = 0.0 if rng.random() < EXACT_TWINS else 10.0 ** -rng.uniform(*TILTS)
    axis = rng.normal(size=3)
    poses = poses_by_hand(bot, home_of(bot))
    own, other = pose(of.at, of.rotation), pose(of.child_at, of.child_rotation)
    child = np.linalg.inv(poses[of.parent]) @ poses[of.child]
    motion = np.linalg.inv(own) @ child @ other
    tilted = own.copy()
    tilted[:3, :3] = own[:3, :3] @ turn(axis, tilt)
    in_child = np.linalg.inv(child) @ tilted @ motion
    bot.add_loop(
        "twin",
        of.joint,
        parent=of.parent,
        child=of.child,
        at=tuple(numbers(of.at)),
        rotation=tilted[:3, :3],
        child_at=tuple(in_child[:3, 3]),
        child_rotation=in_child[:3, :3],
    )
    if rng.random() < EXACT:
        bot.loop_tolerance = 0.0
    return f"twin of {of.name} tilted by {tilt:.1e}, loop_tolerance {bot.loop_tolerance:g}"
