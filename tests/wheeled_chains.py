"""Chains and trees of links on wheels, of any length: trailers, snakes, rows of four-bars."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

import axode as ax


def _links(bot: ax.Mechanism, count: int, parents: Callable[[int], int]) -> list[ax.Body]:
    """Links hinged about upright axes, the first on a planar base, one behind the other."""
    links: list[ax.Body] = []
    for k in range(count):
        link = bot.add_body(
            f"link{k}", mass=1.0 + 0.1 * (k % 7), com=(-0.2, 0.02, 0.0), inertia=(0.01, 0.02, 0.03)
        )
        if k == 0:
            bot.add_joint("base", ax.Planar(), parent=bot.ground, child=link)
        else:
            bot.add_joint(
                f"hinge{k}",
                ax.Revolute("z"),
                parent=links[parents(k)],
                child=link,
                at=(-0.5, 0.05 * (k % 3 - 1), 0),
            )
        links.append(link)
    return links


def trailers(count: int) -> ax.Mechanism:
    """A driven cart and trailers, hitched behind the axle of the one before: two freedoms."""
    bot = ax.Mechanism("trailers")
    links = _links(bot, count + 1, lambda k: k - 1)
    for k, link in enumerate(links):
        bot.add_contact(f"axle{k}", ax.Skate(), body=link, at=(-0.25 * (k > 0), 0, 0))
    bot.add_motor("push", "base.surge")
    bot.add_motor("turn", "base.yaw_rate")
    bot.set_home({f"hinge{k}": 0.3 * math.sin(k + 0.5) for k in range(1, count + 1)})
    return bot


def tree_of_trailers(count: int) -> ax.Mechanism:
    """Trailers each of which may pull two others."""
    bot = ax.Mechanism("tree_of_trailers")
    links = _links(bot, count + 1, lambda k: (k - 1) // 2)
    for k, link in enumerate(links):
        bot.add_contact(f"axle{k}", ax.Skate(), body=link, at=(-0.25 * (k > 0), 0, 0))
    bot.set_home({f"hinge{k}": 0.3 * math.sin(k + 0.5) for k in range(1, count + 1)})
    return bot


def snake(
    count: int, every: int = 1, bend: float = 0.4, lever: float = 0.25, wave: float = 0.8
) -> ax.Mechanism:
    """Links with an axle under their middle, or under every second one; all hinges driven."""
    bot = ax.Mechanism("snake")
    links = _links(bot, count, lambda k: k - 1)
    for k, link in enumerate(links):
        if k % every == 0:
            bot.add_contact(f"axle{k}", ax.Skate(), body=link, at=(-lever, 0, 0))
        if k:
            bot.add_motor(f"hinge{k}", f"hinge{k}")
    bot.set_home({f"hinge{k}": bend * math.cos(wave * k) for k in range(1, count)})
    return bot


def row_of_four_bars(count: int) -> ax.Mechanism:
    """Parallelograms in one row, each on the coupler of the one before; all hinges upright."""
    bot = ax.Mechanism("four_bars")
    carrier: ax.Body = bot.ground
    rng = np.random.default_rng(4)
    for k in range(count):
        arms = [
            bot.add_body(f"{side}{k}", mass=0.5, com=(0.2, 0.01, 0), inertia=(0.01, 0.02, 0.02))
            for side in ("left", "right")
        ]
        coupler = bot.add_body(
            f"coupler{k}", mass=1.0, com=(0.05, 0.1, 0), inertia=(0.02, 0.02, 0.03)
        )
        length = 0.4 + 0.1 * rng.random()
        start = (0, 0, 0) if k == 0 else (0.1, 0, 0)
        other = tuple(np.add(start, (0, 0.3, 0)))
        bot.add_joint(f"left{k}", ax.Revolute("z"), parent=carrier, child=arms[0], at=start)
        bot.add_joint(f"right{k}", ax.Revolute("z"), parent=carrier, child=arms[1], at=other)
        bot.add_joint(f"top{k}", ax.Revolute("z"), parent=arms[0], child=coupler, at=(length, 0, 0))
        bot.add_joint(
            f"close{k}",
            ax.Revolute("z"),
            parent=arms[1],
            child=coupler,
            at=(0.45, 0, 0),
            child_at=(0, 0.25, 0),
        )
        bot.add_motor(f"left{k}", f"left{k}")
        carrier = coupler
    return bot
