"""Random contacts, and their impulses by trying all modes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Rubbing:
    """Rows that share a disk of friction."""

    rows: tuple[int, ...]
    normal: int


@dataclass(frozen=True)
class Rows:
    """Laws of rows, as a table of contacts has them."""

    normals: tuple[int, ...]
    rubbing: tuple[Rubbing, ...]


def point_contacts(count: int, tangents: int, boxes: int = 0) -> Rows:
    """Contacts of a normal and some tangent rows each, then dry friction of single rows."""
    width = 1 + tangents
    normals = tuple(range(0, count * width, width))
    rubbing = [Rubbing(tuple(range(n + 1, n + width)), n) for n in normals if tangents]
    rubbing += [Rubbing((count * width + k,), -1) for k in range(boxes)]
    return Rows(normals, tuple(rubbing))


@dataclass(frozen=True)
class ContactProblem:
    """One problem of complementarity."""

    G: Array
    w: Array
    rows: Rows
    limits: Array


def random_problem(
    rng: np.random.Generator, rows: Rows, freedoms: int, friction: float
) -> ContactProblem:
    """Random rows on random masses; with more rows than freedoms some are redundant."""
    m = max([*rows.normals, *(r for group in rows.rubbing for r in group.rows)]) + 1
    J = rng.normal(size=(m, freedoms))
    J[list(rows.normals), 0] = 1.0 + rng.random(len(rows.normals))  # all press the same way
    half = rng.normal(size=(freedoms, freedoms)) * 0.3 + np.eye(freedoms)
    G = J @ np.linalg.solve(half @ half.T, J.T)
    limits = np.zeros(m)
    for group in rows.rubbing:
        limits[list(group.rows)] = rng.random() * friction
    speeds = rng.normal(size=freedoms)
    speeds[0] -= 1.0
    return ContactProblem(G, J @ speeds, rows, limits)


def all_solutions(problem: ContactProblem, tolerance: float = 1e-9) -> Iterator[Array]:
    """Speeds of all solutions of a problem whose groups have one row each, by trying all modes."""
    G, w, rows = problem.G, problem.w, problem.rows
    m = len(w)
    choices: dict[int, tuple[str, ...]] = dict.fromkeys(rows.normals, ("open", "closed"))
    choices |= {group.rows[0]: ("stick", "left", "right") for group in rows.rubbing}
    normal_of = {group.rows[0]: group.normal for group in rows.rubbing}
    order = sorted(choices)
    for modes in product(*(choices[r] for r in order)):
        mode = dict(zip(order, modes, strict=True))
        A, f = np.zeros((m, m)), np.zeros(m)
        for r in order:
            if mode[r] in ("closed", "stick"):
                A[r], f[r] = G[r], -w[r]
                continue
            A[r, r] = 1.0
            if mode[r] in ("left", "right"):
                sign = 1.0 if mode[r] == "left" else -1.0  # moves left, is pushed right
                if normal_of[r] < 0:
                    f[r] = sign * problem.limits[r]
                else:
                    A[r, normal_of[r]] = -sign * problem.limits[r]
        x = np.linalg.lstsq(A, f, rcond=None)[0]
        if np.abs(A @ x - f).max() < tolerance and meets_laws(problem, x, tolerance):
            yield w + G @ x


def meets_laws(problem: ContactProblem, x: Array, tolerance: float) -> bool:
    """Return whether impulses meet the laws of Signorini and Coulomb, written out."""
    v = problem.w + problem.G @ x
    for n in problem.rows.normals:
        if x[n] < -tolerance or v[n] < -tolerance or abs(x[n] * v[n]) > tolerance:
            return False
    for group in problem.rows.rubbing:
        rows, limit = list(group.rows), problem.limits[group.rows[0]]
        radius = limit if group.normal < 0 else limit * max(x[group.normal], 0.0)
        force, speed = x[rows], v[rows]
        if np.linalg.norm(force) > radius + tolerance:
            return False
        # the friction takes as much power as it can
        if abs(force @ speed + radius * np.linalg.norm(speed)) > tolerance * (1 + radius):
            return False
    return True


def random_vehicle(
    rng: np.random.Generator, wheels: int, friction: float, *, tangents: int = 2
) -> ContactProblem:
    """A random rigid chassis on random wheels in a random state, as rows at one instant.

    Its speeds are those of the chassis, angular then linear, and of the wheels' spins. With one
    tangent row per wheel, these are lateral.
    """
    n, width = 6 + wheels, 1 + tangents
    mass, radius = rng.uniform(5, 50), rng.uniform(0.05, 0.3)
    size = rng.uniform(0.2, 0.8, 3) * (1.0, 0.6, 0.3)
    M = np.diag([*(mass * size**2), *[mass] * 3, *[0.1 * mass * radius**2] * wheels])
    height = radius + rng.uniform(0, 0.5)
    J = np.zeros((width * wheels, n))
    for k in range(wheels):
        angle = 2 * np.pi * (k + 0.5) / wheels
        place = np.array([size[0] * np.cos(angle), size[1] * np.sin(angle), -height])
        steer = rng.normal() * 0.3
        axes = np.array(
            [[0, 0, 1], [np.cos(steer), np.sin(steer), 0], [-np.sin(steer), np.cos(steer), 0]]
        )
        chosen = (0, 1, 2) if tangents == 2 else (0, 2)
        for i, axis in enumerate(axes[list(chosen)]):
            J[width * k + i, :3], J[width * k + i, 3:6] = np.cross(place, axis), axis
        if tangents == 2:
            J[width * k + 1, 6 + k] = -radius
    rows = point_contacts(wheels, tangents)
    h = 10.0 ** rng.uniform(-4, -2)
    speeds = rng.normal(size=n) * (0.0 if rng.random() < 0.3 else 10 ** rng.uniform(-3, 0))
    speeds[[0, 1, 5]] *= rng.random() < 0.3  # most of them stay on the ground
    push = rng.normal(size=n) * mass * (3, 3, 3, 5, 5, 2, *[radius] * wheels)
    push[5] -= 9.81 * mass
    W = np.linalg.solve(M, J.T)
    limits = np.zeros(len(J))
    for group in rows.rubbing:
        limits[list(group.rows)] = friction * rng.random()
    return ContactProblem(J @ W, J @ (speeds + h * np.linalg.solve(M, push)), rows, limits)


def parked_vehicle(rng: np.random.Generator, angle: float) -> ContactProblem:
    """A rigid chassis on four nearly parallel wheels, of which two rub, pushed a little."""
    places = np.array([(0.3, 0.2), (0.3, -0.2), (-0.3, 0.2), (-0.3, -0.2)])
    radius, J = 0.1, np.zeros((14, 10))
    for k, (x, y) in enumerate(places):
        a = angle * rng.normal()
        ahead, aside = (np.cos(a), np.sin(a), 0.0), (-np.sin(a), np.cos(a), 0.0)
        for row, direction in enumerate(((0.0, 0.0, 1.0), ahead, aside), 3 * k):
            J[row, :3], J[row, 3:6] = direction, np.cross((x, y, -radius), direction)
        J[3 * k + 1, 6 + k] = -radius
    J[12, 6], J[13, 7 + rng.integers(3)] = 1.0, 1.0
    M = np.diag([12.0, 12.0, 12.0, 0.3, 0.4, 0.5, *[0.0025] * 4])
    push = 0.01 * rng.normal(size=10) * [2, 2, 0, 0.2, 0.2, 0.5, 0, 0, 0, 0]
    push[2] = -0.01  # weight, in a millisecond
    limits = np.array([0.0, 1.0, 1.0] * 4 + [0.0, 0.0]) * rng.uniform(0.3, 1.0)
    limits[12:] = 0.01 * rng.random(2)
    return ContactProblem(J @ np.linalg.solve(M, J.T), J @ push, point_contacts(4, 2, 2), limits)
