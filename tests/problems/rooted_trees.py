"""Rooted trees, one per order condition of a Runge-Kutta or Rosenbrock method."""

import itertools
import math


def trees(size: int) -> list[tuple]:
    """Rooted trees of so many nodes, each a tuple of its branches."""
    if size == 1:
        return [()]
    found = set()
    for parts in partitions(size - 1, size - 1):
        for branches in itertools.product(*(trees(part) for part in parts)):
            found.add(tuple(sorted(branches)))
    return sorted(found)


def partitions(total: int, largest: int):
    if total == 0:
        yield ()
    for first in range(min(total, largest), 0, -1):
        for rest in partitions(total - first, first):
            yield (first, *rest)


def nodes_of(tree: tuple) -> int:
    return 1 + sum(map(nodes_of, tree))


def density(tree: tuple) -> int:
    return nodes_of(tree) * math.prod(density(branch) for branch in tree)
