"""Links that look like wheels: round solids on an axle that touch the ground.

Files of other programs hold solids and joints, and never which links roll without slipping. Every
reader hands over the solids of its links; what looks like a wheel is proposed here, and nothing
rolls until the user confirms it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any, Literal, TypeAlias

import numpy as np

from axode.errors import suggest
from axode.mechanism.elements.bodies import GROUND, Box, Cylinder, Mesh, Shape, Sphere
from axode.mechanism.elements.joints import Floating
from axode.mechanism.elements.parts import Connection
from axode.mechanism.elements.wheels import AbstractWheel, Ball, Contact, Plane, Rolling
from axode.mechanism.files.imported import Surface
from axode.mechanism.mechanism import Mechanism
from axode.mechanism.topology import HomePoses, home_poses, matrix, vector
from axode.mechanism.values.expressions import numeric
from axode.mechanism.values.geometry import unit
from axode.numerics.rotations import RigidPose
from axode.numerics.tolerances import ROUNDING

Numbers: TypeAlias = tuple[float, ...]
Choice: TypeAlias = Literal["proposed"] | Sequence[str] | Mapping[str, AbstractWheel]

PARALLEL = 1e-2  # [rad] between the axes of a wheel and of its joint; files have 1.57 for pi / 2
NEAR = 0.1  # gap to the plane, and distance from the axle, in parts of the radius
UPRIGHT = 0.5  # sine of the camber of a wheel, at most

BELOW = 0.5  # how far other links may reach below the wheels, in parts of the radius: casters
LISTED = 12  # rejected links that a message names, at most

NO_WHEEL = (
    "no link looks like a wheel, which is a cylinder or sphere that turns about its own axis, "
    'touches the ground and hangs on something that moves (base = "floating" or "planar" frees '
    "the root of a URDF file); write contacts out instead"
)


@dataclass(frozen=True)
class LinkSolid:
    """A solid of a link, as far as wheels and the ground are concerned.

    Args:
        body: The name of the link.
        at: The centre in the frame of the link [m].
        radius: That of a sphere or cylinder [m]; zero for a box.
        axis: Unit axis of a cylinder in the frame of the link; none for a sphere or box.
        half_edges: What it extends to both sides of the centre: half the axis of a cylinder, the
            three half edges of a box, each a vector in the frame of the link [m].
        surface: How it rubs on the ground, where that is read.
    """

    body: str
    at: Numbers
    radius: float = 0.0
    axis: Numbers | None = None
    half_edges: tuple[Numbers, ...] = ()
    surface: Surface | None = None

    @classmethod
    def cylinder(cls, body: str, at: Any, radius: float, length: float, axis: Any) -> LinkSolid:
        """Describe a cylinder about a unit axis; a capsule may pass for one."""
        along = np.asarray(axis, float)
        return cls(body, _numbers(at), radius, _numbers(along), (_numbers(along * length / 2),))

    @classmethod
    def box(cls, body: str, at: Any, size: Any, R: Any = None) -> LinkSolid:
        """Describe a box with edges `size` along the columns of `R`."""
        edges = (np.eye(3) if R is None else np.asarray(R)) * np.asarray(size, float) / 2
        return cls(body, _numbers(at), half_edges=tuple(_numbers(edge) for edge in edges.T))

    @classmethod
    def of(cls, body: str, shape: Shape | None) -> LinkSolid | None:
        """Describe the shape of a body; None for a mesh."""
        if isinstance(shape, Sphere):
            return cls(body, _numbers(vector(shape.at)), numeric(shape.radius))
        if isinstance(shape, Cylinder):
            radius, length = numeric(shape.radius), numeric(shape.length)
            return cls.cylinder(body, vector(shape.at), radius, length, vector(unit(shape.axis)))
        if isinstance(shape, Box):
            return cls.box(body, vector(shape.at), vector(shape.size), matrix(shape.rotation))
        return None

    def bottom(self, pose: RigidPose, normal: np.ndarray) -> float:
        """Return the height of its lowest point along a normal of the world."""
        sine = abs(float(pose.direction(self.axis) @ normal)) if self.axis else 0.0
        edges = sum(abs(float(pose.direction(edge) @ normal)) for edge in self.half_edges)
        depth = self.radius * math.sqrt(max(1 - sine * sine, 0.0)) + edges
        return float(pose.point(self.at) @ normal) - depth

    @property
    def kind(self) -> str:
        """What messages call it."""
        if not self.radius > 0:
            return "box"
        return f"{'cylinder' if self.axis else 'sphere'} of radius {_length(self.radius)}"


@dataclass
class Geometry:
    """What a reader found of solids, and of planes that they may stand on.

    Attributes:
        solids: Those that touch others come before those that are only for pictures.
        planes: A body, a point and a unit normal in its frame, for each plane of the file.
    """

    solids: list[LinkSolid] = field(default_factory=list)
    planes: list[tuple[str, Numbers, Numbers]] = field(default_factory=list)

    def add_shapes(self, mechanism: Mechanism) -> None:
        """Add the shapes of bodies that nothing is known of."""
        known = {solid.body for solid in self.solids}
        for body in mechanism.bodies:
            if body.name not in known:
                solids = (LinkSolid.of(body.name, shape) for shape in body.shapes)
                self.solids += [solid for solid in solids if solid is not None]


@dataclass(frozen=True)
class ProposedWheel:
    """A contact that would let a body roll, or a sphere that is fixed to its carrier slide."""

    body: str
    wheel: AbstractWheel
    at: Numbers
    axis: Numbers | None
    plane: Plane
    name: str

    def add_to(self, mechanism: Mechanism) -> None:
        """Let the body roll."""
        axis: Any = "y" if self.axis is None else self.axis
        mechanism.add_contact(
            self.name, self.wheel, body=self.body, at=self.at, axis=axis, ground=self.plane
        )

    def _fields(self) -> Iterator[tuple[str, Numbers]]:
        if any(self.at):
            yield "at", self.at
        if self.axis is not None:
            yield "axis", self.axis

    def _free(self) -> list[str]:
        return [row for row in _TANGENTS if getattr(self.wheel, row, "rigid") == "free"]

    def _laws(self) -> Iterator[tuple[str, float]]:
        if self.wheel.friction is not None:
            yield "friction", numeric(self.wheel.friction[0])
        for name in ("restitution", "rolling_resistance", "scrub"):
            if getattr(self.wheel, name):
                yield name, numeric(getattr(self.wheel, name))

    def call(self) -> str:
        """Write the call that adds it to a mechanism called robot."""
        wheel = [repr(self.wheel.radius), *(f'{row}="free"' for row in self._free())]
        wheel += [f"{name}={value!r}" for name, value in self._laws()]
        given = [f"ax.{type(self.wheel).__name__}({', '.join(wheel)})", f"body={self.body!r}"]
        given += [f"{key}={_listed(values, '()')}" for key, values in self._fields()]
        if self.plane != Plane():
            point, normal = (_listed(v, "()") for v in (self.plane.point, self.plane.normal))
            given.append(f"ground=ax.Plane(point={point}, normal={normal})")
        return f"robot.add_contact({self.name!r}, {', '.join(given)})"

    def table(self) -> str:
        """Write the table that adds it in a TOML file."""
        lines = [
            f"[contact.{toml_key(self.name)}]",
            f'type = "{type(self.wheel).__name__.lower()}"',
            f"body = {toml_text(self.body)}",
            f"radius = {self.wheel.radius!r}",
            *(f'{row} = "free"' for row in self._free()),
            *(f"{name} = {value!r}" for name, value in self._laws()),
            *(f"{key} = {_listed(values, '[]')}" for key, values in self._fields()),
        ]
        if self.plane != Plane():
            point, normal = (_listed(v, "[]") for v in (self.plane.point, self.plane.normal))
            lines.append(f"ground = {{ point = {point}, normal = {normal} }}")
        return "\n".join(lines)


_TANGENTS = ("longitudinal", "lateral")


@dataclass
class WheelSearch:
    """What a search for wheels found.

    Attributes:
        wheels: Bodies that look like wheels at home and do not roll yet, then spheres that slide
            with their carrier and hold it up.
        rejected: Bodies that could have been wheels, each with the reason why it is not proposed.
    """

    wheels: list[ProposedWheel] = field(default_factory=list)
    rejected: dict[str, str] = field(default_factory=dict)

    def reasons(self) -> list[str]:
        """Return a line for each rejected body, the first twelve."""
        lines = [f"{name}: {reason}" for name, reason in self.rejected.items()]
        more = len(lines) - LISTED
        return [*lines[:LISTED], *([f"and {more} more"] if more > 0 else [])]


def search_wheels(mechanism: Mechanism, geometry: Geometry) -> WheelSearch:
    """Find the bodies that look like wheels at home and do not roll yet.

    A wheel is a sphere or cylinder on a revolute joint along its axis, or a sphere on a spherical
    or floating joint that carries no other wheel. It touches a plane of the file or, if there is
    none, a plane under the lowest such solid, unless another link reaches far below it. A floating
    base then stands on z = 0, and any other on a plane at the wheel's own height. What carries a
    wheel must be able to move. A sphere that is fixed to a floating carrier of wheels and touches
    their ground is proposed as a ball that is free to slide.
    """
    with np.errstate(all="ignore"):  # lengths near the largest number touch nothing
        return _Search.of(mechanism, geometry).run()


def wheels_on_free_base(mechanism: Mechanism, geometry: Geometry) -> list[ProposedWheel]:
    """Return what would look like wheels if the root, fixed to the ground, were free to move."""
    held = [c for c in mechanism.connections if c.parent == GROUND.name]
    if len(held) != 1 or held[0].joint.dof:
        return []
    free = mechanism.copy()
    root = replace(held[0], joint=Floating(), coordinate_names=(), speed_names=())
    free.connections = [root if c is held[0] else c for c in mechanism.connections]
    return search_wheels(free, geometry).wheels


def choose_wheels(
    choice: Choice, mechanism: Mechanism, geometry: Geometry
) -> tuple[list[ProposedWheel], list[str]]:
    """Return the wheels that are confirmed, and everything wrong with the choice."""
    geometry.add_shapes(mechanism)
    search = search_wheels(mechanism, geometry)
    if choice == "proposed":
        return search.wheels, [] if search.wheels else [NO_WHEEL, *search.reasons()]
    proposals: dict[str, list[ProposedWheel]] = {}
    for wheel in search.wheels:
        proposals.setdefault(wheel.body, []).append(wheel)
    rolling = {contact.body: contact.name for contact in mechanism.contacts}
    chosen: list[ProposedWheel] = []
    faults = []
    for name in dict.fromkeys(choice):
        reason = search.rejected.get(name)
        if name in rolling:
            faults.append(f"'{name}' rolls already, by the contact '{rolling[name]}'")
        elif name in proposals:
            kind = choice[name] if isinstance(choice, Mapping) else None
            chosen += [replace(w, wheel=kind) if kind else w for w in proposals[name]]
        elif reason:
            faults.append(f"'{name}' is not proposed: {reason}; a contact may still be written out")
        elif not proposals:
            faults.append(f"'{name}' is not proposed: {NO_WHEEL}")
        else:
            hint = suggest("proposed wheel", name, list(proposals))
            faults.append(f"'{name}' is not proposed; a contact may still be written out. {hint}")
    return chosen, faults


def describe_free_base(source: str, wheels: Sequence[ProposedWheel]) -> str:
    """Warn that a robot has wheels and a fixed base; name the option that frees it."""
    names = ", ".join(dict.fromkeys(wheel.body for wheel in wheels))
    return (
        f"{source}: the root link is fixed to the ground, and these links look like wheels: {names}"
        '\n  load(..., base="floating", wheels="proposed"), or --option base=floating,'
        'wheels=proposed, lets the robot roll (base="planar" keeps it level, with fewer '
        'coordinates); base="fixed" leaves it as it is without this warning'
    )


def describe_proposals(
    source: str, base: str | None, wheels: Sequence[ProposedWheel], *, extends: bool
) -> str:
    """Say which links look like wheels, and how to let them roll, in TOML and in Python.

    Args:
        source: The file.
        base: How its root link is held, if that was asked for.
        wheels: What looks like wheels.
        extends: Whether the file is TOML and extends another.
    """
    bodies = list(dict.fromkeys(wheel.body for wheel in wheels))
    names = ", ".join(map(toml_text, bodies))
    table = [f"wheels = [{names}]"]
    if not extends:
        held = [f'base = "{base}"'] if base else []
        table = ["[extends]", f"file = {toml_text(PurePath(source).name)}", *held, *table]
    lines = [
        f"{source}: these links look like wheels and do not roll: " + ", ".join(bodies),
        'load(..., wheels="proposed"), or --option wheels=proposed, lets them roll and wheels=() '
        + f"leaves them as they are; {'under [extends]' if extends else 'in a TOML file'}:",
        *(f"  {line}" for line in table),
        "one by one, with the mechanism called robot:",
        *(f"  {wheel.call()}" for wheel in wheels),
    ]
    return "\n  ".join(lines)


def describe_tipping(mechanism: Mechanism, geometry: Geometry) -> str:
    """Name floating bases that may tip about their wheels, and how to hold them up; "" if none."""
    holding = {connection.child: connection for connection in mechanism.connections}
    touching: dict[str, list[Contact]] = {}
    for contact in mechanism.contacts:
        chain = _chain(contact.body, holding)
        if chain and chain[-1].joint.is_free and contact.plane.on == GROUND.name:
            touching.setdefault(chain[-1].child, []).append(contact)
    poses = home_poses(mechanism)
    texts = []
    for base, contacts in touching.items():
        if all(len(_chain(contact.body, holding)) == 1 for contact in contacts):
            continue  # a ball that carries nothing
        radii = [numeric(getattr(contact.wheel, "radius", 0.0)) for contact in contacts]
        up = vector(unit(contacts[0].plane.normal))
        centres = [poses.links[contact.body].point(vector(contact.at)) for contact in contacts]
        if _stands(centres, up, NEAR * max(radii)):
            continue
        ground = float(up @ centres[0]) - radii[0]
        reasons: dict[str, str] = {}
        supports = []
        for solid in geometry.solids:
            chain, pose = _chain(solid.body, holding), poses.links.get(solid.body)
            if pose is None or not chain or chain[0].child != base or solid.body in reasons:
                continue
            centre, gap = pose.point(solid.at), solid.bottom(pose, up) - ground
            if not abs(gap) <= BELOW * max(radii) or solid.body in (c.body for c in contacts):
                continue
            is_low = gap <= NEAR * max(radii)
            side = "above" if gap > 0 else "below"
            reasons[solid.body] = (
                f"{solid.kind}: its lowest point is {_length(abs(gap))} {side} the ground of the "
                f"wheels{', and only spheres are proposed to slide' if is_low else ''}"
            )
            if is_low and _stands([*centres, centre], up, NEAR * max(radii)):
                (radius,) = _numbers([float(up @ centre) - ground])
                ball = Ball(radius, longitudinal="free", lateral="free")
                plane, at = contacts[0].plane, solid.at
                supports.append(ProposedWheel(solid.body, ball, at, None, plane, solid.body))
        names = [contact.body for contact in contacts]
        calls = [support.call() for support in supports] or [
            'robot.add_contact("caster", ax.Ball(RADIUS, longitudinal="free", lateral="free"), '
            f"body={base!r}, at=(X, Y, Z))"
        ]
        tables = [line for support in supports for line in support.table().splitlines()]
        lines = [
            f"'{mechanism.name}': {base} touches the ground by {', '.join(names)} alone, and may "
            f"tip about {'the line through them' if len(names) > 1 else 'it'}",
            *(["near the ground, and no wheels:"] if reasons else []),
            *(f"  {name}: {reason}" for name, reason in reasons.items()),
            "a ball that slides holds it up, with the mechanism called robot:",
            *(f"  {call}" for call in calls),
            *(["or in a TOML file that extends this one:"] if tables else []),
            *(f"  {line}" for line in tables),
            f'if it balances, wheels={[*names]} in place of "proposed" gives no such warning',
        ]
        texts.append("\n  ".join(lines))
    return "\n".join(texts)


def describe_missing_motors(source: str, mechanism: Mechanism) -> str:
    """Return how to add motors to a robot on wheels from a URDF file; "" if it has some."""
    holding = {connection.child: connection for connection in mechanism.connections}
    chains = [_chain(contact.body, holding) for contact in mechanism.contacts]
    hinges = dict.fromkeys(c[0].name for c in chains if c and c[0].joint.dof == 1)
    if mechanism.drives or not hinges:
        return ""
    return "\n  ".join(
        [
            f"{source}: the robot has no motors, since the file has no transmission and no joint "
            "with an effort limit above zero",
            '<limit effort="..."/> in the file adds them, or with the mechanism called robot:',
            *(f"  robot.add_motor({name!r}, {name!r}, limit=TORQUE)" for name in hinges),
        ]
    )


def _stands(places: Sequence[np.ndarray], up: np.ndarray, least: float) -> bool:
    """Return whether places, seen from above, are farther than `least` off one line."""
    flat = np.array(places) - np.mean(places, axis=0)
    flat -= np.outer(flat @ up, up)
    farthest = max(flat, key=np.linalg.norm)
    areas = np.linalg.norm(np.cross(flat, farthest), axis=1)
    return bool(areas.max() > least * np.linalg.norm(farthest))


@dataclass(frozen=True)
class _Axle:
    """Centre and spin axis of a wheel in the world; a ball has no axis."""

    centre: np.ndarray
    axis: np.ndarray | None
    floats: bool  # whether it can rise: its chain begins with a floating joint


@dataclass(frozen=True)
class _Candidate:
    """A round solid on an axle of its own, and its lowest point along a normal of the world."""

    solid: LinkSolid
    axle: _Axle

    def lean(self, normal: np.ndarray) -> float:
        """Return the sine of the camber."""
        return 0.0 if self.axle.axis is None else abs(float(self.axle.axis @ normal))

    def bottom(self, normal: np.ndarray) -> float:
        """Return the height of the lowest point of its rim; a sphere's is below its centre."""
        sine = self.lean(normal) if self.solid.axis else 0.0
        depth = self.solid.radius * math.sqrt(max(1 - sine * sine, 0.0))
        return float(self.axle.centre @ normal) - depth


_UP = np.array([0.0, 0.0, 1.0])


@dataclass
class _Search:
    """One search for wheels, and why the others are none."""

    mechanism: Mechanism
    holding: dict[str, Connection]
    poses: HomePoses
    solids: list[LinkSolid]
    planes: list[tuple[np.ndarray, np.ndarray]]  # a point and the normal of each, in the world
    rejected: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, mechanism: Mechanism, geometry: Geometry) -> _Search:
        """Place the solids; without a round one on a joint there is nothing to look at."""
        holding = {connection.child: connection for connection in mechanism.connections}
        if not any(s.radius > 0 and s.body in holding for s in geometry.solids) and not any(
            isinstance(shape, Mesh) for body in mechanism.bodies for shape in body.shapes
        ):
            return cls(mechanism, holding, HomePoses({}, {}), [], [])
        poses = home_poses(mechanism)
        bodies = {body.name for body in mechanism.bodies}
        solids = [s for s in geometry.solids if s.body in poses.links and s.body in bodies]
        placed = [(poses.links[b], p, n) for b, p, n in geometry.planes if b in poses.links]
        planes = [(pose.point(p), pose.direction(n)) for pose, p, n in placed]
        return cls(mechanism, holding, poses, solids, planes)

    def run(self) -> WheelSearch:
        """Return the wheels in the order of their bodies, then what slides with a carrier."""
        rolling = {contact.body for contact in self.mechanism.contacts}
        candidates: list[_Candidate] = []
        for solid in self.solids:
            if solid.radius > 0 and solid.body not in rolling:
                axle = self._axle(solid)
                if isinstance(axle, _Axle):
                    candidates.append(_Candidate(solid, axle))
                elif axle:
                    self.rejected.setdefault(solid.body, axle)
        self._note_meshes(rolling)
        found: dict[str, ProposedWheel] = {}
        ground = None if self.planes else self._ground(candidates)
        for candidate in candidates:
            if candidate.solid.body not in found:
                plane = self._touched(candidate, ground)
                if plane is not None:
                    found[candidate.solid.body] = self._proposal(candidate, plane)
        carriers = {c.child for name in found for c in _chain(name, self.holding)[1:]}
        order = {body.name: number for number, body in enumerate(self.mechanism.bodies)}
        wheels = [wheel for name, wheel in found.items() if name not in carriers]
        wheels.sort(key=lambda wheel: order[wheel.body])
        if wheels:
            wheels += self._supports(wheels, rolling, ground)
        named = {wheel.body for wheel in wheels}
        return WheelSearch(wheels, {n: r for n, r in self.rejected.items() if n not in named})

    def _axle(self, solid: LinkSolid) -> _Axle | str:
        """Return where a solid turns about its own axis, or the reason why it does not."""
        chain = _chain(solid.body, self.holding)
        if not chain:
            if self.holding.get(solid.body) is None:
                return ""
            return f"{solid.kind}: no joint moves it"
        joint, carriers = chain[0], chain[1:]
        floats = chain[-1].joint.is_free
        poses = self.poses
        frame, centre = poses.joints[joint.name], poses.links[solid.body].point(solid.at)
        if joint.joint.is_free:  # a free ball, and not a support that slides with its carrier
            alone = solid.axis is None and joint.child == solid.body
            slides = f"{solid.kind}: turns with the base of the robot"
            return _Axle(centre, None, floats) if alone else slides
        if not carriers:
            return (
                f"{solid.kind}: what carries it is fixed to the ground; "
                'base = "floating" or "planar" frees the root of a URDF file'
            )
        if joint.joint.holds_point and joint.joint.dof == 3:
            away = float(np.linalg.norm(centre - frame.p))
            if solid.axis is not None or not away <= NEAR * solid.radius:
                where = f"its centre is {_length(away)} beside joint '{joint.name}'"
                return f"{solid.kind}: {where if solid.axis is None else 'is no ball'}"
            return _Axle(frame.p, None, floats)
        if not joint.joint.holds_point or joint.joint.dof != 1:
            return f"{solid.kind}: joint '{joint.name}' is no hinge"
        axis = frame.direction(vector(unit(joint.joint.axis)))  # type: ignore[attr-defined]
        own = axis if solid.axis is None else poses.links[solid.body].direction(solid.axis)
        along = frame.p + axis * float(axis @ (centre - frame.p))
        angle = float(np.linalg.norm(np.cross(axis, own)))
        if not angle <= PARALLEL:
            degrees = math.degrees(math.asin(min(angle, 1.0)))
            return f"{solid.kind}: its axis is {degrees:.3g} degrees off joint '{joint.name}'"
        away = float(np.linalg.norm(centre - along))
        if not away <= NEAR * solid.radius:
            return f"{solid.kind}: its centre is {_length(away)} beside joint '{joint.name}'"
        return _Axle(along, axis, floats)

    def _note_meshes(self, rolling: set[str]) -> None:
        """Reject bodies on hinges that are drawn by meshes alone: their radius is unknown."""
        known = {solid.body for solid in self.solids}
        for body in self.mechanism.bodies:
            connection = self.holding.get(body.name)
            if body.name in known | rolling or connection is None or connection.joint.dof != 1:
                continue
            if connection.joint.holds_point and any(isinstance(s, Mesh) for s in body.shapes):
                reason = "has only meshes, which have no radius; give it a <collision> cylinder"
                self.rejected.setdefault(body.name, reason)

    def _ground(self, candidates: list[_Candidate]) -> float | None:
        """Return the height of the lowest wheel, unless links reach far below it."""
        upright = [c for c in candidates if c.lean(_UP) <= UPRIGHT]
        if not upright:
            return None
        lowest = min(upright, key=lambda c: c.bottom(_UP))
        ground = lowest.bottom(_UP)
        bottoms = [(s.bottom(self.poses.links[s.body], _UP), s) for s in self.solids]
        below, solid = min(bottoms, key=lambda pair: pair[0])
        if not ground - below <= BELOW * lowest.solid.radius:
            gap = _length(ground - below)
            for c in upright:
                reason = f"{c.solid.kind}: '{solid.body}' reaches {gap} below the lowest wheel"
                self.rejected.setdefault(c.solid.body, reason)
            return None
        return ground

    def _touched(self, candidate: _Candidate, ground: float | None) -> Plane | None:
        """Find the plane that a wheel stands on."""
        solid = candidate.solid
        planes = self.planes or ([] if ground is None else [(ground * _UP, _UP)])
        reason = "its axis is upright"
        for point, normal in planes:
            if not candidate.lean(normal) <= UPRIGHT:
                continue
            gap = candidate.bottom(normal) - float(normal @ point)
            if not abs(gap) <= NEAR * solid.radius:
                side = "above" if gap > 0 else "below"
                reason = f"its lowest point is {_length(abs(gap))} {side} the ground"
                continue
            if self.planes:
                return _plane(point, normal)
            return Plane() if candidate.axle.floats else _plane(candidate.bottom(_UP) * _UP, _UP)
        self.rejected.setdefault(solid.body, f"{solid.kind}: {reason}")
        return None

    def _proposal(self, candidate: _Candidate, plane: Plane) -> ProposedWheel:
        solid, axle = candidate.solid, candidate.axle
        link = self.poses.links[solid.body]
        at = _numbers(link.R.T @ (axle.centre - link.p), scale=solid.radius)
        axis = None if axle.axis is None else _numbers(link.R.T @ axle.axis)
        # a sphere touches below its centre, however its axis is inclined
        inclined = axle.axis is not None and abs(axle.axis @ vector(plane.normal)) > PARALLEL
        is_ball = axis is None or (solid.axis is None and inclined)
        wheel = _surfaced(Ball(solid.radius) if is_ball else Rolling(solid.radius), solid)
        return ProposedWheel(
            solid.body, wheel, at, None if is_ball else axis, plane, name=solid.body
        )

    def _supports(
        self, wheels: list[ProposedWheel], rolling: set[str], ground: float | None
    ) -> list[ProposedWheel]:
        """Propose the spheres that hold up a floating carrier of wheels and slide with it.

        Their radius is the height of their centre: they reach the ground of the wheels.
        """
        chains = {wheel.body: _chain(wheel.body, self.holding) for wheel in wheels}
        carriers = {c.child for chain in chains.values() for c in chain[1:]}
        plane, largest = wheels[0].plane, max(numeric(wheel.wheel.radius) for wheel in wheels)
        point, normal = vector(plane.point), vector(plane.normal)
        if ground is not None:
            point, normal = ground * _UP, _UP
        found: list[ProposedWheel] = []
        placed: list[np.ndarray] = []
        names = {contact.name for contact in self.mechanism.contacts} | set(chains)
        for solid in self.solids:
            chain = _chain(solid.body, self.holding)
            on_carrier = chain and chain[0].child in carriers and chain[-1].joint.is_free
            if not on_carrier or solid.axis or not solid.radius > 0 or solid.body in rolling:
                continue
            centre = self.poses.links[solid.body].point(solid.at)
            height = float(normal @ (centre - point))
            gap = height - solid.radius
            if not abs(gap) <= NEAR * largest:
                side = "above" if gap > 0 else "below"
                reason = f"{solid.kind}: its lowest point is {_length(abs(gap))} {side} the ground"
                self.rejected[solid.body] = f"{reason}, and it slides with its carrier"
                continue
            if any(np.linalg.norm(centre - other) < solid.radius for other in placed):
                continue  # for collision and for pictures
            placed.append(centre)
            name, number = solid.body, 2
            while name in names:
                name, number = f"{solid.body}_{number}", number + 1
            names.add(name)
            (radius,) = _numbers([height])
            ball = _surfaced(Ball(radius, longitudinal="free", lateral="free"), solid)
            found.append(ProposedWheel(solid.body, ball, solid.at, None, plane, name))
        return found


def _surfaced(wheel: AbstractWheel, solid: LinkSolid) -> AbstractWheel:
    return wheel if solid.surface is None else solid.surface.on(wheel)


def _chain(body: str, holding: dict[str, Connection]) -> list[Connection]:
    """List the joints that move between a body and the ground, its own first."""
    found: list[Connection] = []
    seen: set[str] = set()
    while body in holding and body not in seen:
        seen.add(body)
        connection = holding[body]
        if connection.joint.dof:
            found.append(connection)
        body = connection.parent
    return found


def _plane(point: np.ndarray, normal: np.ndarray) -> Plane:
    """Return a plane in round numbers; one at z = 0 is the ground itself."""
    n = np.array(_numbers(normal))
    if np.abs(n - (0.0, 0.0, 1.0)).max() <= ROUNDING and abs(point[2]) <= ROUNDING:
        return Plane()
    if np.abs(n - (0.0, 0.0, 1.0)).max() <= ROUNDING:
        return Plane(point=_numbers((0.0, 0.0, point[2])))
    return Plane(_numbers(n), _numbers(point))


def _length(metres: float) -> str:
    """Write a length in millimetres."""
    return f"{1e3 * metres:.3g} mm"


def _numbers(values: Any, scale: float = 1.0) -> Numbers:
    """Return numbers without what rounding adds to short ones: at most twelve digits.

    Directions are as long as one and places as long as `scale`; smaller parts are zero.
    """
    found = np.asarray(values, float)
    size = max(scale, float(np.abs(found).max(initial=0.0)))
    digits = 12 - math.ceil(math.log10(size)) if size > 0 else 12
    return tuple(float(round(float(x), digits)) + 0.0 for x in found)


def _listed(values: Any, brackets: str) -> str:
    return brackets[0] + ", ".join(f"{x:.12g}" for x in values) + brackets[1]


def toml_key(name: str) -> str:
    """Return a name as TOML writes it between dots."""
    bare = name.isascii() and name.replace("-", "a").replace("_", "a").isalnum()
    return name if bare else toml_text(name)


def toml_text(text: str) -> str:
    """Return text as TOML writes it, in quotes."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
