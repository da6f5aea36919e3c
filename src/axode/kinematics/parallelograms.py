"""Parallelograms: two equal rods between two links, as one joint that moves without turning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations

import casadi as ca
import numpy as np
import numpy.typing as npt

from axode.kinematics.link_groups import frame_numbers
from axode.kinematics.motion_graph import ElementaryJoint, MotionGraph
from axode.symbolic.algebra.frames import Pose
from axode.symbolic.algebra.spatial import SX, cross

Array = npt.NDArray[np.float64]
Rod = tuple[ElementaryJoint, ElementaryJoint]  # from one link to the rod, and on to the other link
SAME = 1e-4  # lengths and angles that numbers of five digits leave


def join_parallelograms(
    graph: MotionGraph, parameters: Array, home: Mapping[str, Array]
) -> tuple[MotionGraph, tuple[tuple[Rod, Rod], ...]]:
    """Replace every parallelogram of four parallel revolutes by one joint, and list its rods.

    The joint has the coordinate of the first rod. The rods must not be crossed at home.

    Args:
        graph: Groups of links.
        parameters: Values of the parameters, in the order of `graph.values`.
        home: Poses of the bodies at home.
    """
    symbols = ca.vertcat(*graph.values.values())
    for one, other in _pairs_of_rods(graph):
        if not {one[0].first, one[1].second} <= home.keys():
            continue
        joint = _parallelogram(one, other)
        if _is_parallelogram(one, other, joint, symbols, parameters, home):
            gone = {one[0].second, other[0].second}
            links = tuple(link for link in graph.links if link not in gone)
            joints = tuple(j for j in graph.joints if not gone & {j.first, j.second})
            made = replace(graph, links=links, joints=(*joints, joint))
            rest, rods = join_parallelograms(made, parameters, home)
            return rest, ((one, other), *rods)
    return graph, ()


def _pairs_of_rods(graph: MotionGraph) -> Iterator[tuple[Rod, Rod]]:
    """Pairs of rods with revolutes between the same two links."""
    ends = Counter(link for joint in graph.joints for link in (joint.first, joint.second))
    rods: dict[tuple[str, str], list[Rod]] = {}
    for link in graph.links[1:]:
        touching = [j for j in graph.joints if link in (j.first, j.second)]
        if ends[link] != 2 or any(j.kind != "revolute" for j in touching):
            continue
        before, after = touching
        before = before if before.second == link else before.reverse()
        after = after if after.first == link else after.reverse()
        if graph.links.index(before.first) > graph.links.index(after.second):
            before, after = after.reverse(), before.reverse()
        if before.first != after.second:
            rods.setdefault((before.first, after.second), []).append((before, after))
    for found in rods.values():
        yield from combinations(found, 2)


def _parallelogram(one: Rod, other: Rod) -> ElementaryJoint:
    """Joint that replaces two rods: its circle is that of the first rod's end."""
    before, after = one
    rod = before.frame_2.inverse() @ after.frame_1
    length = ca.norm_2(rod.p[:2])
    c, s = rod.p[0] / length, rod.p[1] / length
    turn = ca.vertcat(ca.horzcat(c, -s, 0), ca.horzcat(s, c, 0), ca.horzcat(0, 0, 1))
    frame_1 = before.frame_1 @ Pose(turn, ca.vertcat(0, 0, rod.p[2]))
    base = _triad(other[0].frame_1.p - before.frame_1.p, before.frame_1.R[:, 2])
    same = rod.R[2, 2]  # 1 or -1: whether the two axes of the rod have one direction
    top = _triad(other[1].frame_2.p - after.frame_2.p, same * after.frame_2.R[:, 2])
    return ElementaryJoint(
        before.name,
        "parallelogram",
        before.first,
        after.second,
        frame_1,
        Pose(top @ base.T @ frame_1.R, after.frame_2.p),
        before.coordinates,
        size=length,
    )


def _triad(along: SX, axis: SX) -> SX:
    """Rotation matrix whose z is an axis and whose x is along a vector, as far as z allows."""
    flat = along - axis * ca.dot(axis, along)
    x = flat / ca.norm_2(flat)
    return ca.horzcat(x, cross(axis, x), axis)


def _is_parallelogram(
    one: Rod,
    other: Rod,
    joint: ElementaryJoint,
    symbols: SX,
    parameters: Array,
    home: Mapping[str, Array],
) -> bool:
    """Return whether the axes are parallel, opposite sides equal and the rods not crossed."""
    frames = frame_numbers([*one, *other, joint], symbols, parameters)
    (la, al), (am, ma), (lb, bl), (bm, mb), (in_first, in_second) = frames
    if not np.isfinite(in_second).all():
        return False
    pairs = ((la, lb), (al, am), (bl, bm), (ma, mb))
    parallel = all(abs(abs(a[:3, 2] @ b[:3, 2]) - 1) < SAME**2 for a, b in pairs)
    sides = [_across(b[:3, 3] - a[:3, 3], a[:3, 2]) for a, b in pairs]
    size = max(sides)
    equal = abs(sides[0] - sides[3]) < SAME * size and abs(sides[1] - sides[2]) < SAME * size
    turn = home[joint.first][:3, :3].T @ home[joint.second][:3, :3]
    uncrossed = np.abs(turn @ in_second[:3, :3] - in_first[:3, :3]).max() < np.sqrt(SAME)
    return parallel and equal and min(sides) > SAME * size and bool(uncrossed)


def _across(vector: Array, axis: Array) -> float:
    """Length of a vector across an axis."""
    return float(np.linalg.norm(vector - axis * (axis @ vector)))
