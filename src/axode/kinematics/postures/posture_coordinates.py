"""From roots of the polynomials of closure to coordinates of the mechanism."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
import numpy.typing as npt

from axode.kinematics.motion_graph import flat_poses, homogeneous
from axode.kinematics.polynomials.polynomial_family import ComplexArray
from axode.kinematics.postures.chains import (
    Branch,
    ChainNumbers,
    ReducedChain,
    SideNumbers,
    Values,
    chain_branches,
    chain_end,
    inverse_pose,
    joined_values,
    nearest_branch,
)
from axode.kinematics.postures.closure_family import ClosureFamily
from axode.mechanism.elements.bodies import GROUND
from axode.numerics.rotations import from_quaternions, to_quaternions
from axode.numerics.tolerances import TINY
from axode.symbolic.algebra.spatial import Pose, placement

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
NumberArray = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class RealRoots:
    """Real parts of roots, in a form that does not depend on charts.

    Attributes:
        poses: (q, g) of every carrier with |q| = 1, (n, 8) each.
        turns: (c, s) of every unknown joint, of length one, (n, 2) each; (s, 0) of one that slides.
        imaginary: Largest imaginary part that was left out, relative to the largest real one, (n,).
    """

    poses: tuple[Array, ...]
    turns: tuple[Array, ...]
    imaginary: Array

    def at(self, rows: Indices) -> RealRoots:
        """Select some roots."""
        poses, turns = (tuple(a[rows] for a in arrays) for arrays in (self.poses, self.turns))
        return RealRoots(poses, turns, self.imaginary[rows])

    @property
    def features(self) -> Array:
        """Numbers that are equal for equal postures, whatever the sign of the unknowns: (n, size).

        Turns enter by their matrices and by cosine and sine of their angles.
        """
        parts: list[Array] = [np.zeros((len(self.imaginary), 0))]
        for both in self.poses:
            q = both[:, :4]
            parts += [from_quaternions(q).reshape(len(q), 9), node_shift(both)]
        for pair in self.turns:
            c, s = pair.T
            parts.append(np.stack([c * c - s * s, 2 * c * s], axis=1))
        return np.concatenate(parts, axis=1)


def node_shift(both: Array) -> Array:
    """Shift of dual quaternions with |q| = 1: the vector of g q*, (n, 3)."""
    q, g = both[:, :4], both[:, 4:]
    return np.asarray(q[:, :1] * g[:, 1:] - g[:, :1] * q[:, 1:] - np.cross(g[:, 1:], q[:, 1:]))


def real_roots(closure: ClosureFamily, x: NumberArray, charts: NumberArray) -> RealRoots:
    """Make homogeneous unknowns real as far as they can be.

    Args:
        closure: The polynomials.
        x: Roots, (n, unknowns).
        charts: Parameters of which the charts are used, (parameters,) or (n, parameters).
    """
    imaginary = np.zeros(len(x))
    poses, turns = [], []
    for pose in closure.poses:
        both = np.zeros((len(x), 8), dtype=complex)
        both[:, pose.entries] = x[:, pose.unknowns]
        if pose.carrier.kind == "translational":
            both[:, 0] = 1.0
        turned = _without_phase(both, 4)
        imaginary = np.maximum(imaginary, np.abs(turned.imag).max(axis=1))
        real = turned.real
        poses.append(real / np.linalg.norm(real[:, :4], axis=1)[:, None])
    for joint in closure.joints:
        w = x[:, joint.unknown]
        if joint.placed.joint.kind == "prismatic":
            imaginary = np.maximum(imaginary, np.abs(w.imag))
            turns.append(np.stack([w.real, np.zeros(len(w))], axis=1))
            continue
        p = charts[..., joint.chart].T
        pair = _without_phase(np.stack([p[0] + w * p[2], p[1] + w * p[3]], axis=1), 2)
        imaginary = np.maximum(imaginary, np.abs(pair.imag).max(axis=1))
        turns.append(pair.real / np.linalg.norm(pair.real, axis=1)[:, None])
    return RealRoots(tuple(poses), tuple(turns), imaginary)


def proper_turns(closure: ClosureFamily, roots: NumberArray) -> Array:
    """Smallest square of the quaternions of roots, against their absolute values: (..., paths).

    Where it vanishes there is no turn: such roots are at infinity.
    """
    least = np.ones(roots.shape[:-1])
    turns = []
    for pose in closure.poses:
        first = pose.unknowns.start
        turns.append(roots[..., first : first + pose.chart.stop - pose.chart.start])
    for joint in closure.joints:
        p, w = closure.chart_values[joint.chart], roots[..., joint.unknown]
        if len(p):
            turns.append(np.stack([p[0] + w * p[2], p[1] + w * p[3]], axis=-1))
    for turn in turns:
        if turn.shape[-1]:
            size = np.maximum((np.abs(turn) ** 2).sum(axis=-1), TINY)
            least = np.minimum(least, np.abs((turn**2).sum(axis=-1)) / size)
    return least


def _without_phase(vectors: ComplexArray, first: int) -> ComplexArray:
    """Divide vectors by the largest of their first entries."""
    rows = np.arange(len(vectors))
    largest = np.argmax(np.abs(vectors[:, :first]), axis=1)
    return np.asarray(vectors / vectors[rows, largest][:, None])


def centred(closure: ClosureFamily, roots: RealRoots, geometry: Array) -> tuple[Array, Array]:
    """Unknowns and parameters of real roots in real charts of their own.

    Args:
        closure: The polynomials.
        roots: Real roots.
        geometry: Parameters of each, those of charts are replaced.
    """
    count = len(roots.imaginary)
    x, p = np.zeros((count, closure.family.unknowns)), geometry.copy()
    for pose, both in zip(closure.poses, roots.poses, strict=True):
        entries = both[:, pose.entries]
        x[:, pose.unknowns] = entries
        if pose.carrier.kind != "translational":
            p[:, pose.chart] = entries[:, : pose.chart.stop - pose.chart.start]
    for joint, pair in zip(closure.joints, roots.turns, strict=True):
        if joint.placed.joint.kind == "prismatic":
            x[:, joint.unknown] = pair[:, 0]
        else:
            c, s = pair.T  # at one, because errors are relative to the unknowns
            x[:, joint.unknown] = 1.0
            p[:, joint.chart] = np.stack([c + s, s - c, -s, c], axis=1)
    return x, p


class CoordinateMap:
    """Coordinates of a mechanism from the unknowns of its closure.

    Args:
        closure: The polynomials.
        coordinates: Names of the mechanism's coordinates.
        home: Their values at home: of two branches of a leg the one nearer to it is chosen.
    """

    def __init__(self, closure: ClosureFamily, coordinates: Sequence[str], home: Array) -> None:
        self.closure, self.problem = closure, closure.problem
        self.coordinates = {name: k for k, name in enumerate(coordinates)}
        self.home = home
        arguments = [self.problem.held, self.problem.parameters]
        self.chains = ChainNumbers(self.problem.chains, arguments)
        rods = []  # as chains between the links that they join
        for rod in (rod for pair in self.problem.rods for rod in pair):
            back = tuple(joint.reverse() for joint in reversed(rod))
            rods.append(ReducedChain("axes", chain_end(rod, 0, 1), chain_end(back, 0, 1), ()))
        self.rods = ChainNumbers(rods, arguments)
        self.rod_links = [(rod.first.node, rod.second.node) for rod in rods]
        self.anchors = self._anchors()
        places = [self.problem.groups.places[link][1] @ pose for link, pose in self.anchors]
        self.places = ca.Function("places", arguments, [flat_poses(places)])

    def _anchors(self) -> list[tuple[str, Pose]]:
        """Frames whose poses are needed: of links beside rods, then of joints that are free."""
        graph = self.problem.groups.graph
        named = [(link, Pose.identity()) for pair in self.rod_links for link in pair]
        for joint in graph.free:
            named.append((joint.parent, placement(joint.at, joint.rotation, graph.values)))
            at = placement(joint.child_at, joint.child_rotation, graph.values)
            named.append((joint.child, at))
        return named

    def find(
        self,
        roots: RealRoots,
        held: Array,
        parameters: Array,
        rows: Indices,
        branch: Sequence[int] | None = None,
    ) -> tuple[Array, Array]:
        """Find coordinates, and what is missing where legs cannot reach: (n, size) and (n,).

        Args:
            roots: Real roots.
            held, parameters: What is held, and parameters, of each target.
            rows: Target of each root.
            branch: Which branch of every chain; the one nearest to home unless given.
        """
        count = len(rows)
        q = np.tile(self.home, (count, 1))
        missing = np.zeros(count)
        frames, poses = self._nodes(roots)
        sides = self.chains.at(held, parameters, rows)
        turns = self._tree_values(roots, sides)
        ends = [(chain.first.node, chain.second.node) for chain in self.problem.chains]
        found = self._all_branches(sides, [(frames[a], frames[b]) for a, b in ends], turns)
        for k, branches in enumerate(found):
            pair = sides[2 * k], sides[2 * k + 1]
            made = self._chosen(branches, *pair, None if branch is None else branch[k])
            missing = np.maximum(missing, made.missing)
            for side, values, node in zip(pair, (made.first, made.second), ends[k], strict=True):
                self._write(q, side, values)
                if self.anchors:
                    poses.update(side.link_poses(frames[node], values))
        self._write_followers(q, poses, held, parameters, rows)
        return q, missing

    def branches(self, chain: ReducedChain) -> int:
        """Number of ways in which the elements of a chain can reach the same postures."""
        made = 1
        ends = sorted((chain.first, chain.second), key=lambda end: end.freedoms)
        for k, end in enumerate(ends):
            spherical = any(item.joint.kind == "spherical" for item in end.element)
            if end.freedoms > 1 and not spherical and not (k == 1 and end.freedoms == 2):
                made *= 2
        return made

    def _nodes(self, roots: RealRoots) -> tuple[dict[str, Array], dict[str, Array]]:
        """Poses of the carriers' frames and of the nodes."""
        count, size = len(roots.imaginary), self.problem.size
        frames = {GROUND.name: np.tile(self.problem.base, (count, 1, 1))}
        poses = {GROUND.name: np.tile(np.eye(4), (count, 1, 1))}
        for unknown, both in zip(self.closure.poses, roots.poses, strict=True):
            motion = np.tile(np.eye(4), (count, 1, 1))
            motion[:, :3, :3] = from_quaternions(both[:, :4])
            motion[:, :3, 3] = size * node_shift(both)
            carrier = unknown.carrier
            frames[carrier.node] = carrier.base @ motion
            poses[carrier.node] = frames[carrier.node] @ np.linalg.inv(carrier.frame)
        return frames, poses

    def _tree_values(self, roots: RealRoots, sides: Sequence[SideNumbers]) -> list[Values]:
        """Values of the unknown joints, side by side."""
        size, pairs = self.problem.size, iter(roots.turns)
        made = []
        for side in sides:
            values: Values = {}
            for k in range(side.tree):
                pair = next(pairs)
                slides = side.joints[k].kind == "prismatic"
                values[k] = size * pair[:, 0] if slides else 2 * np.arctan2(pair[:, 1], pair[:, 0])
                if self.problem.space == "planar" and not slides:  # the family turns about z
                    values[k] = values[k] * np.sign(side.axis(k)[:, 2])
            made.append(values)
        return made

    def _all_branches(
        self,
        sides: Sequence[SideNumbers],
        nodes: Sequence[tuple[Array, Array]],
        turns: Sequence[Values],
    ) -> list[list[Branch]]:
        """Branches of all chains; chains of one form are computed together."""
        spins = [self._spin(side) for side in sides]
        forms: dict[object, list[int]] = {}
        for k in range(len(nodes)):
            kept = tuple(spin is not None for spin in spins[2 * k : 2 * k + 2])
            form = (sides[2 * k].form, sides[2 * k + 1].form, kept)
            forms.setdefault(form, []).append(k)
        made: list[list[Branch]] = [[] for _ in nodes]
        for chains in forms.values():
            one, two = (SideNumbers.joined([sides[2 * k + j] for k in chains]) for j in (0, 1))
            start, end = (np.concatenate([nodes[k][j] for k in chains]) for j in (0, 1))
            before, after = (joined_values([turns[2 * k + j] for k in chains]) for j in (0, 1))
            # a rod between two spherical joints keeps its spin at home
            from_second = spins[2 * chains[0]] is None and one.freedoms == 3
            near = [spin for k in chains if (spin := spins[2 * k + from_second]) is not None]
            spin = np.concatenate(near) if near else None
            if from_second:
                found = chain_branches(two, one, (end, start), (after, before), spin)
                found = [Branch(b.second, b.first, b.missing) for b in found]
            else:
                found = chain_branches(one, two, (start, end), (before, after), spin)
            for branch in found:
                for k, part in zip(chains, branch.split(len(chains)), strict=True):
                    made[k].append(part)
        return made

    def _spin(self, side: SideNumbers) -> Array | None:
        """Turn at home of a spherical joint, which a rod between two of them keeps."""
        joint = side.joints[side.tree] if side.element else None
        if joint is None or joint.kind != "spherical" or not joint.coordinates:
            return None
        home = self.home[[self.coordinates[name] for name in joint.coordinates]]
        R = from_quaternions(home[np.newaxis])[0]
        F = side.frames[side.tree][:, :3, :3]
        return F @ (R.T if joint.inverted else R) @ F.swapaxes(1, 2)

    def _chosen(
        self, found: list[Branch], first: SideNumbers, second: SideNumbers, branch: int | None
    ) -> Branch:
        if branch is not None:
            return found[branch]
        if len(found) == 1:
            return found[0]
        costs = [
            self._cost(first, made.first) + self._cost(second, made.second) + made.missing * 1e6
            for made in found
        ]
        return nearest_branch(found, costs)

    def _cost(self, side: SideNumbers, values: Values) -> Array:
        """How far coordinates are from home."""
        total = np.zeros(len(side.point))
        for k, value in values.items():
            names = side.joints[k].coordinates
            if len(names) == 1 and value.ndim == 1:
                change = value - self.home[self.coordinates[names[0]]]
                total += (np.remainder(change + np.pi, 2 * np.pi) - np.pi) ** 2
        return total

    def _write(self, q: Array, side: SideNumbers, values: Values) -> None:
        """Write the values of joints that have coordinates."""
        for k, value in values.items():
            joint = side.joints[k]
            self._write_values(q, joint.coordinates, value, joint.kind != "prismatic")

    def _write_values(
        self, q: Array, names: Sequence[str], value: Array, turns: bool = True
    ) -> None:
        places = [self.coordinates[name] for name in names]
        if len(places) == 1:
            home = self.home[places[0]]
            near = home + np.remainder(value - home + np.pi, 2 * np.pi) - np.pi
            q[:, places[0]] = near if turns else value
        elif places:
            sign = np.where(value[:, :4] @ self.home[places[:4]] < 0, -1.0, 1.0)
            q[:, places[:4]] = value[:, :4] * sign[:, None]
            q[:, places[4:]] = value[:, 4:]

    def _write_followers(
        self, q: Array, poses: dict[str, Array], held: Array, parameters: Array, rows: Indices
    ) -> None:
        """Write coordinates of rods of parallelograms, and of joints that constrain nothing."""
        if not self.anchors:
            return
        table = np.array(self.places(held.T, parameters.T)).T[rows]
        links = [self.problem.groups.places[link][0] for link, _ in self.anchors]
        places = np.moveaxis(homogeneous(table), 1, 0)
        at = [poses[link] @ place for link, place in zip(links, places, strict=True)]
        sides = self.rods.at(held, parameters, rows)
        pairs = list(zip(at[::2], at[1::2], strict=True))
        for k, pair in enumerate(pairs[: len(self.rod_links)]):
            first, second = sides[2 * k : 2 * k + 2]
            made = chain_branches(first, second, pair, ({}, {}))[0]
            self._write(q, first, made.first)
            self._write(q, second, made.second)
        free = zip(self.problem.groups.graph.free, pairs[len(self.rod_links) :], strict=True)
        for connection, (parent, child) in free:
            relative = inverse_pose(parent) @ child
            both = np.concatenate([to_quaternions(relative[:, :3, :3]), relative[:, :3, 3]], axis=1)
            self._write_values(q, connection.coordinates, both)
