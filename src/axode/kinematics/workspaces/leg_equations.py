"""The equation of a leg: one scalar equation in its driven coordinate, given the output's pose.

A leg is e0(x) A e1(x) B e2(x): passive joints A at the base and B at the platform, and a driven
joint before, between or behind them, of coordinate x counted from home. A fixes a point p, if its
axes meet there, and the direction of its axis, if it is one revolute; B fixes q and its axis. With
the output displaced by D from home, lengths and angles between what A and B fix are the same
inside the leg and outside of it:

.. math:: |D e_2^{-1} q - e_0 p|^2 = |e_1 q - p|^2,

and so on for the components of this gap along the fixed directions, and for the angles between
these. Each is A + B cos x + C sin x = 0 for a driven revolute and A + B x + E x^2 = 0 for a driven
prismatic joint, with coefficients that depend on D. The first that holds x drives the leg; those
without x restrict the pose.

With the axes of all joints where they stand at home, the output's displacement from home is the
product of the joints' own displacements along any chain of joints from the ground to it, each
about or along its axis at home.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from typing import TYPE_CHECKING, Any, Literal

import casadi as ca
import numpy as np
import numpy.typing as npt

from axode.mechanism.elements.bodies import GROUND
from axode.numerics.rank import least_squares, singular_values
from axode.numerics.rotations import nearest_point, perpendiculars
from axode.numerics.tolerances import NEGLIGIBLE, SMALL_PIVOT

if TYPE_CHECKING:
    from axode.kinematics.motion_graph import ElementaryJoint
    from axode.kinematics.robot_kinematics import Kinematics
    from axode.symbolic.algebra.spatial import Pose


MAX_CHAINS = 1000  # from the ground to the output: more belong to nets of loops
Array = npt.NDArray[np.float64]
SX = ca.SX
Invariant = tuple[Callable[[float], SX], Callable[[float], float]]


@dataclass(frozen=True, eq=False)
class HomeScrew:
    """One freedom of a joint, in the world while the mechanism is at home.

    Attributes:
        kind: Whether it turns about the axis or slides along it.
        point: A point of the axis [m].
        axis: Unit vector; positive coordinates move what is nearer to the output about or along it.
        joint: Name of the joint.
        coordinate: Name of its coordinate; empty for joints that close loops and for balls.
    """

    kind: Literal["turn", "slide"]
    point: Array
    axis: Array
    joint: str
    coordinate: str = ""


def serial_chains(robot: Kinematics) -> list[list[HomeScrew]]:
    """Chains of joints from the ground to the output that meet no body twice, at most MAX_CHAINS.

    Chains through screws, and through links inside of joints that close loops whose place is not
    known, are left out.
    """
    beside: dict[str, list[tuple[str, list[HomeScrew]]]] = {}
    for joint in robot.graph.joints:
        screws = _home_screws(robot, joint)
        if screws:
            back = [replace(screw, axis=-screw.axis) for screw in reversed(screws)]
            beside.setdefault(joint.first, []).append((joint.second, screws))
            beside.setdefault(joint.second, []).append((joint.first, back))
    for rigid in robot.graph.rigid:
        beside.setdefault(rigid.first, []).append((rigid.second, []))
        beside.setdefault(rigid.second, []).append((rigid.first, []))

    def extend(body: str, seen: frozenset[str], made: list[HomeScrew]) -> Iterator[list[HomeScrew]]:
        if body == robot.output:
            yield made
            return
        for other, screws in beside.get(body, ()):
            if other not in seen:
                yield from extend(other, seen | {other}, made + screws)

    return list(islice(extend(GROUND.name, frozenset({GROUND.name}), []), MAX_CHAINS))


def _home_screws(robot: Kinematics, joint: ElementaryJoint) -> list[HomeScrew]:
    """Freedoms of a joint at home, from its first link to its second."""
    home = robot.home_poses
    if joint.first in home:
        frame = home[joint.first] @ _numbers(robot, joint.frame_1)
    elif joint.second in home:
        frame = home[joint.second] @ _numbers(robot, joint.frame_2)
    else:
        return []
    point, name = frame[:3, 3], joint.name
    if joint.kind == "spherical":
        return [HomeScrew("turn", point, axis, name) for axis in np.eye(3)]
    if joint.kind not in ("revolute", "prismatic"):
        return []
    kind: Literal["turn", "slide"] = "turn" if joint.kind == "revolute" else "slide"
    return [HomeScrew(kind, point, frame[:3, 2], name, "".join(joint.coordinates))]


def _numbers(robot: Kinematics, pose: Pose) -> Array:
    """Homogeneous matrix of a frame at the parameters of the model."""
    values = robot.graph.values
    symbols = ca.vertcat(ca.SX(0, 1), *values.values())
    parameters = [robot.model.parameters[name] for name in values]
    function = ca.Function("frame", [symbols], [ca.densify(pose.R), ca.densify(pose.p)])
    R, p = (np.array(part) for part in function(parameters))
    return np.block([[R, p.reshape(3, 1)], [np.zeros((1, 3)), np.ones((1, 1))]])


@dataclass(frozen=True)
class PassiveEnd:
    """What the passive joints at one end of a leg leave where it is.

    Attributes:
        joints: Their names.
        point: A point that they fix; any for a slide.
        directions: Directions that they fix.
        across: Directions along which they do not move points.
        ball: Whether they turn about the point in more than one direction.
        slides: Whether they do not fix the point.
    """

    joints: tuple[str, ...]
    point: Array
    directions: tuple[Array, ...] = ()
    across: tuple[Array, ...] = ()
    ball: bool = False
    slides: bool = False


def passive_end(screws: Sequence[HomeScrew], size: float) -> PassiveEnd | None:
    """What screws leave where it is; None if that is too little for a closed form."""
    if not screws:
        return None
    joints = tuple(dict.fromkeys(screw.joint for screw in screws))
    first = screws[0]
    if len(screws) == 1:
        if first.kind == "turn":
            return PassiveEnd(joints, first.point, (first.axis,), (first.axis,))
        u, w = perpendiculars(first.axis)
        return PassiveEnd(joints, first.point, (first.axis, u, w), (u, w), slides=True)
    if any(screw.kind == "slide" for screw in screws):
        return None
    axes = np.array([screw.axis for screw in screws])
    if singular_values(axes)[1] < NEGLIGIBLE:
        return None
    point, off = nearest_point(np.array([screw.point for screw in screws]), axes)
    return PassiveEnd(joints, point, ball=True) if off.max() <= NEGLIGIBLE * size else None


@dataclass(frozen=True, eq=False)
class PoseSymbols:
    """The output's pose in symbols; at home and at other possible poses in numbers."""

    r: SX
    R: SX
    r_home: Array
    R_home: Array
    samples: Array

    def point(self, x: Array) -> SX:
        """Where a point of the output is that is at x at home."""
        return self.r + self.vector(x - self.r_home)

    def vector(self, x: Array) -> SX:
        """What a vector of the output is that is x at home."""
        return self.R @ SX(self.R_home.T @ x)


@dataclass(frozen=True, eq=False)
class ScalarEquation:
    """constant + cosine c + sine s + square c^2 = 0 for a driven coordinate.

    For a revolute, c and s are its cosine and sine; for a prismatic joint c is the coordinate.
    """

    constant: SX
    cosine: SX
    sine: SX
    square: float = 0.0
    distance: bool = False

    def at(self, c: Any, s: Any) -> SX:
        """Left-hand side."""
        return self.constant + self.cosine * c + self.sine * s + self.square * c * c


@dataclass(frozen=True, eq=False)
class MovedPoint:
    """A point that moves with the driven coordinate: constant + cosine c + sine s."""

    constant: SX
    cosine: SX
    sine: SX

    def at(self, c: Any, s: Any) -> SX:
        """Where it is."""
        return self.constant + self.cosine * c + self.sine * s


@dataclass(frozen=True, eq=False)
class LegEquation:
    """Equation of a leg between its driven coordinate and the pose.

    Attributes:
        driven: The driven joint; None for a leg without one.
        near, far: Its passive ends at the base and at the platform.
        place: 0, 1 or 2: the driven joint stands before, between or behind the passive ends.
        drive: The equation of the driven coordinate; None for a leg without one.
        restrictions: Equations in the pose, and in the driven coordinate where they hold it.
        start, end: Where the points that the two ends fix are in the world.
    """

    driven: HomeScrew | None
    near: PassiveEnd
    far: PassiveEnd
    place: int
    drive: ScalarEquation | None
    restrictions: tuple[ScalarEquation, ...]
    start: MovedPoint
    end: MovedPoint


def split_chain(
    chain: Sequence[HomeScrew], driven: str, size: float
) -> tuple[HomeScrew | None, PassiveEnd, PassiveEnd, int] | None:
    """Divide a chain into its driven joint, two passive ends and the place of the driven joint.

    Args:
        chain: Screws from the ground to the output.
        driven: Name of the driven coordinate; empty for a chain without one.
        size: Size of the robot [m].

    Returns:
        None if there are not two ends.
    """
    places = [k for k, screw in enumerate(chain) if driven and screw.coordinate == driven]
    if not places:
        found = None if driven else _split(chain, size)
        return None if found is None else (None, *found, 1)
    (k,) = places
    before, after = chain[:k], chain[k + 1 :]
    if before and after:
        near, far = passive_end(before, size), passive_end(after, size)
        return None if near is None or far is None else (chain[k], near, far, 1)
    found = _split(before or after, size)
    return None if found is None else (chain[k], *found, 0 if after else 2)


def _split(screws: Sequence[HomeScrew], size: float) -> tuple[PassiveEnd, PassiveEnd] | None:
    for k in range(1, len(screws)):
        near, far = passive_end(screws[:k], size), passive_end(screws[k:], size)
        if near is not None and far is not None:
            return near, far
    return None


def leg_equation(
    pose: PoseSymbols,
    driven: HomeScrew | None,
    near: PassiveEnd,
    far: PassiveEnd,
    place: int,
    size: float,
) -> LegEquation:
    """Write the equations of a leg.

    Args:
        pose: The output's pose.
        driven: The driven joint, if there is one.
        near, far: The passive ends.
        place: 0, 1 or 2: the driven joint stands before, between or behind them.
        size: Size of the robot [m].
    """
    near, far = _at_feet(near, far, size)
    motions = [driven if k == place else None for k in range(3)]
    start = MovedPoint(*map(SX, displaced(motions[0], near.point)))
    c, u, w = displaced(motions[2], far.point, -1.0)
    end = MovedPoint(pose.point(c), pose.vector(u), pose.vector(w))
    found = [_written(driven, *pair) for pair in _pairs(pose, near, far, motions)]
    if (far.point != near.point).any() and not near.slides and not far.slides:
        found.insert(0, _distance(start, end, driven, near, far, place))
    drive = _driving(pose, driven, found, min(size, size**2))
    rest = tuple(equation for equation in found if equation is not drive)
    return LegEquation(driven, near, far, place, drive, rest, start, end)


def _at_feet(near: PassiveEnd, far: PassiveEnd, size: float) -> tuple[PassiveEnd, PassiveEnd]:
    """Choose the fixed points where the two ends come nearest to each other."""
    if near.slides or far.slides:
        return near, far
    p, q = near.point, far.point
    a = near.directions[0] if near.directions else np.zeros(3)
    b = far.directions[0] if far.directions else np.zeros(3)
    columns = np.column_stack([a, -b])
    s, t = least_squares(columns, q - p, tolerance=SMALL_PIVOT)
    p, q = p + s * a, q + t * b
    if np.linalg.norm(q - p) <= NEGLIGIBLE * size:
        q = p  # axes that meet: only angles matter
    return replace(near, point=p), replace(far, point=q)


def displaced(
    driven: HomeScrew | None, v: Array, sign: float = 1.0, *, is_point: bool = True
) -> tuple[Array, Array, Array]:
    """A point or a direction displaced by a joint, or back: numbers of `MovedPoint`."""
    none = np.zeros(3)
    if driven is None or (driven.kind == "slide" and not is_point):
        return v, none, none
    if driven.kind == "slide":
        return v, sign * driven.axis, none
    origin = driven.point if is_point else none
    centre = origin + driven.axis * (driven.axis @ (v - origin))
    return centre, v - centre, sign * np.cross(driven.axis, v - centre)


def _distance(
    start: MovedPoint,
    end: MovedPoint,
    driven: HomeScrew | None,
    near: PassiveEnd,
    far: PassiveEnd,
    place: int,
) -> ScalarEquation:
    """Square of the distance of the two points, outside the leg less inside."""
    g = [a - b for a, b in zip(vars(end).values(), vars(start).values(), strict=True)]
    c, u, w = displaced(driven if place == 1 else None, far.point)
    c = c - near.point
    radius = float(u @ u)  # of the circle, or one for a slide
    outer = [ca.dot(g[0], g[0]), 2 * ca.dot(g[0], g[1]), 2 * ca.dot(g[0], g[2])]
    inner = [float(c @ c), 2 * float(c @ u), 2 * float(c @ w)]
    square = -radius
    if driven is not None and place != 1:
        own = displaced(driven, near.point if place == 0 else far.point)[1]
        square = float(own @ own)
    constant, cosine, sine = (a - b for a, b in zip(outer, inner, strict=True))
    if driven is not None and driven.kind == "turn":
        constant, square = constant + square, 0.0
    return ScalarEquation(constant, cosine, sine, square, True)


def _pairs(
    pose: PoseSymbols, near: PassiveEnd, far: PassiveEnd, motions: Sequence[HomeScrew | None]
) -> list[Invariant]:
    """Components and angles that are the same outside a leg and inside, as functions of x."""

    def moved(k: int, v: Array, x: float, *, is_point: bool = False) -> Array:
        """A vector displaced by joint k, back by the last; quarter turns are exact."""
        screw = motions[k]
        c, u, w = displaced(screw, v, -1.0 if k == 2 else 1.0, is_point=is_point)
        if screw is None or screw.kind == "slide":
            return c + x * u
        return c + round(np.cos(x)) * u + round(np.sin(x)) * w

    def gap(x: float) -> SX:
        end = pose.point(moved(2, far.point, x, is_point=True))
        return end - SX(moved(0, near.point, x, is_point=True))

    def inner_gap(x: float) -> Array:
        return moved(1, far.point, x, is_point=True) - near.point

    def along_near(a: Array) -> Invariant:
        return lambda x: ca.dot(SX(moved(0, a, x)), gap(x)), lambda x: float(a @ inner_gap(x))

    def along_far(b: Array) -> Invariant:
        return (
            lambda x: ca.dot(pose.vector(moved(2, b, x)), gap(x)),
            lambda x: float(moved(1, b, x) @ inner_gap(x)),
        )

    def angle(a: Array, b: Array) -> Invariant:
        return (
            lambda x: ca.dot(SX(moved(0, a, x)), pose.vector(moved(2, b, x))),
            lambda x: float(a @ moved(1, b, x)),
        )

    made = [] if far.slides else [along_near(a) for a in near.across]
    made += [] if near.slides else [along_far(b) for b in far.across]
    return made + [angle(a, b) for a, b in product(near.directions, far.directions)]


def _written(
    driven: HomeScrew | None, outside: Callable[[float], SX], inside: Callable[[float], float]
) -> ScalarEquation:
    """Equation of an invariant, from its values at three driven coordinates."""
    if driven is None:
        return ScalarEquation(outside(0.0) - inside(0.0), SX(0), SX(0))
    if driven.kind == "slide":
        (f0, g0), (f1, g1) = ((outside(x), inside(x)) for x in (0.0, 1.0))
        return ScalarEquation(f0 - g0, (f1 - f0) - (g1 - g0), SX(0))
    values = [(outside(x), inside(x)) for x in (0.0, np.pi / 2, np.pi)]
    (f0, f1, f2), (g0, g1, g2) = zip(*values, strict=True)
    middle, mean = (f0 + f2) / 2, (g0 + g2) / 2
    return ScalarEquation(middle - mean, (f0 - f2) / 2 - (g0 - g2) / 2, (f1 - middle) - (g1 - mean))


def _driving(
    pose: PoseSymbols, driven: HomeScrew | None, found: Sequence[ScalarEquation], size: float
) -> ScalarEquation | None:
    """The first equation that holds the driven coordinate at possible poses."""
    if driven is None:
        return None
    for equation in found:
        held = ca.vertcat(equation.cosine, equation.sine, equation.square)
        function = ca.Function("held", [pose.r, pose.R], [held, equation.constant])
        for sample in pose.samples:
            values = function(sample[:3, 3], sample[:3, :3])
            strength, rest = (float(ca.norm_2(value)) for value in values)
            if strength > NEGLIGIBLE * (size + rest):
                return equation
    return None
