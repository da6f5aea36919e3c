"""Seeded mechanisms for the laws: every joint, wheel and force of the library occurs.

Random trees, loops that close by construction, vehicles, and a registry of named ones. A builder
takes nothing and returns a fresh `Mechanism`, so that a name is enough to make it again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import axode as ax
from axode.mechanism.elements.joints import AbstractJoint
from axode.mechanism.topology import tree_order
from coupled_mechanisms import cam_five_bar, coupled_tree, differential_car, geared_five_bar
from kinematics_by_hand import joint_motion, numbers, pose, poses_by_hand

Rng = np.random.Generator
Build = Callable[[], ax.Mechanism]
ALL_JOINTS = (
    "revolute",
    "prismatic",
    "screw",
    "cylindrical",
    "universal",
    "spherical",
    "planar",
    "floating",
    "fixed",
)
CLOSURES = tuple(name for name in ALL_JOINTS if name != "floating")  # that one closes nothing


# parts -------------------------------------------------------------------------------------------


def random_axis(rng: Rng) -> tuple[float, ...]:
    """A coordinate axis now and then, else any direction."""
    if rng.random() < 0.25:
        return tuple(np.eye(3)[rng.integers(3)] * rng.choice([-1.0, 1.0]))
    x = rng.normal(size=3)
    return tuple(x / np.linalg.norm(x))


def random_rotation(rng: Rng) -> Any:
    """Roll-pitch-yaw, a quaternion, a matrix or nothing, as users may write it."""
    form = rng.integers(4)
    if form == 0:
        return (0.0, 0.0, 0.0)
    if form == 1:
        return tuple(rng.uniform(-math.pi, math.pi, 3))
    quaternion = rng.normal(size=4)
    quaternion /= np.linalg.norm(quaternion)
    if form == 2:
        return tuple(quaternion)
    return joint_motion(ax.Spherical(), quaternion)[:3, :3]


def random_point(rng: Rng, size: float = 0.4) -> tuple[float, ...]:
    """A place within a box."""
    return tuple(rng.uniform(-size, size, 3))


def random_placement(rng: Rng) -> dict[str, Any]:
    """Where a joint stands on its two bodies."""
    return {
        "at": random_point(rng),
        "rotation": random_rotation(rng),
        "child_at": random_point(rng),
        "child_rotation": random_rotation(rng),
    }


def random_tensor(rng: Rng, mass: float) -> np.ndarray:
    """Central inertia of a random cloud of points, so that it is physical; and never thin."""
    points = rng.normal(scale=0.2, size=(6, 3))
    points -= points.mean(axis=0)
    tensor = sum(x @ x * np.eye(3) - np.outer(x, x) for x in points) / 6
    return mass * (tensor + 0.01 * np.eye(3))


def random_body(bot: ax.Mechanism, name: str, rng: Rng) -> Any:
    """A heavy body with any mass centre and inertia."""
    mass = rng.uniform(0.5, 3.0)
    return bot.add_body(
        name, mass=mass, com=random_point(rng, 0.3), inertia=random_tensor(rng, mass)
    )


def random_joint(rng: Rng, kind: str) -> AbstractJoint:
    """A joint of a kind with random directions."""
    axis = random_axis(rng)
    match kind:
        case "screw":
            return ax.Screw(axis, pitch=rng.uniform(0.05, 0.3))
        case "universal":
            second = np.cross(axis, rng.normal(size=3)) + rng.uniform(-0.3, 0.3) * np.array(axis)
            return ax.Universal(axis, tuple(second / np.linalg.norm(second)))
        case "spherical" | "floating" | "fixed":
            return {"spherical": ax.Spherical, "floating": ax.Floating, "fixed": ax.Fixed}[kind]()
    return {
        "revolute": ax.Revolute,
        "prismatic": ax.Prismatic,
        "cylindrical": ax.Cylindrical,
        "planar": ax.Planar,
    }[kind](axis)


def random_coordinates(rng: Rng, joint: AbstractJoint) -> np.ndarray:
    """Coordinates of one joint, unit quaternions included, away from zero."""
    q = rng.uniform(0.2, 0.7, len(joint.coordinate_names)) * rng.choice([-1.0, 1.0])
    if isinstance(joint, (ax.Spherical, ax.Floating)):
        q[0] = 1.0
        q[:4] /= np.linalg.norm(q[:4])
    return q


def act_on(bot: ax.Mechanism, rng: Rng) -> None:
    """Motors, springs, dampers, a strut and wrenches in both frames, on joints of the tree."""
    single = [c for c in tree_order(bot) if c.joint.dof == 1]
    for k, connection in enumerate(single[:3]):
        motor = ax.Motor(gear=rng.uniform(1, 5), rotor_inertia=rng.uniform(0.001, 0.02))
        bot.add_motor(f"motor{k}", connection, motor=motor)
    if single:
        bot.add_spring("coil", single[-1], stiffness=rng.uniform(1, 9), rest=rng.uniform(-0.3, 0.3))
        bot.add_damper("friction", single[0], coefficient=rng.uniform(0.1, 1))
    several = [s for c in tree_order(bot) if c.joint.dof > 1 for s in c.speeds]
    if several:
        bot.add_damper("drag", several[-1], coefficient=rng.uniform(0.1, 1))
        bot.add_motor("thruster", several[0])
    first, last = bot.bodies[0].name, bot.bodies[-1].name
    bot.add_spring(
        "strut",
        parent="ground",
        child=last,
        at=(2.0, 1.0, 1.5),
        child_at=random_point(rng),
        stiffness=rng.uniform(1, 9),
        rest=0.5,
        damping=rng.uniform(0.1, 1),
    )
    bot.add_damper(
        "dashpot",
        parent=first,
        child="ground",
        at=random_point(rng),
        child_at=(-2.0, 1.0, -1.5),
        coefficient=rng.uniform(0.1, 1),
    )
    bot.add_wrench("gust", last, at=random_point(rng))
    bot.add_wrench("jet", first, at=random_point(rng), frame="body")


# trees -------------------------------------------------------------------------------------------


def random_tree(
    rng: Rng, n: int, kinds: Sequence[str] = (), *, acted_on: bool = True, name: str = "tree"
) -> ax.Mechanism:
    """A branching tree of n bodies; the kinds of its joints are drawn unless given."""
    bot = ax.Mechanism(name, gravity=tuple(rng.uniform(-6, 6, 3)))
    for i in range(n):
        kind = kinds[i % len(kinds)] if kinds else str(rng.choice(ALL_JOINTS))
        parent = bot.ground if i == 0 else bot.bodies[rng.integers(max(0, i - 2), i)]
        body = random_body(bot, f"body{i}", rng)
        bot.add_joint(
            f"joint{i}", random_joint(rng, kind), parent=parent, child=body, **random_placement(rng)
        )
    bracket = bot.add_body("bracket", mass=0.0, inertia=ax.Inertia.point())
    bot.add_joint(
        "weld",
        ax.Fixed(),
        parent=bot.bodies[rng.integers(n)],
        child=bracket,
        **random_placement(rng),
    )
    load = random_body(bot, "load", rng)
    bot.add_joint("grip", ax.Fixed(), parent=bracket, child=load, **random_placement(rng))
    if acted_on:
        act_on(bot, rng)
    return bot


def all_joints_tree() -> ax.Mechanism:
    """Every kind of joint once."""
    return random_tree(np.random.default_rng(3), len(ALL_JOINTS), ALL_JOINTS, name="all joints")


# loops -------------------------------------------------------------------------------------------


def close_loop(
    bot: ax.Mechanism,
    rng: Rng,
    name: str,
    joint: AbstractJoint,
    parent: str,
    child: str,
    home: dict[str, float],
) -> None:
    """Close a loop at a configuration: the child's joint frame goes where it must be."""
    poses = poses_by_hand(bot, home)
    at, rotation = random_point(rng), random_rotation(rng)
    motion = joint_motion(joint, random_coordinates(rng, joint))
    in_child = (
        np.linalg.inv(poses[child]) @ poses[parent] @ pose(at, ax_rotation(rotation)) @ motion
    )
    bot.add_loop(
        name,
        joint,
        parent=parent,
        child=child,
        at=at,
        rotation=rotation,
        child_at=tuple(in_child[:3, 3]),
        child_rotation=in_child[:3, :3],
    )


def ax_rotation(rotation: Any) -> Any:
    """A rotation as the description would keep it."""
    from axode.mechanism.values.geometry import as_rotation

    return as_rotation(rotation)


def random_loop(
    rng: Rng, closure: str | None = None, *, acted_on: bool = True, name: str = "loop"
) -> ax.Mechanism:
    """Two branches of a common body, closed by a joint of any kind; one to three freedoms left."""
    closure = closure or str(rng.choice(CLOSURES))
    joint = random_joint(rng, closure)
    freedoms = 6 - joint.dof + int(rng.integers(1, 4))
    bot = ax.Mechanism(name, gravity=tuple(rng.uniform(-6, 6, 3)))
    stem = random_body(bot, "stem", rng)
    bot.add_joint(
        "root",
        random_joint(rng, "revolute"),
        parent=bot.ground,
        child=stem,
        **random_placement(rng),
    )
    ends = [stem.name, stem.name]
    moving = 0
    while moving < freedoms:
        kinds = [k for k in ALL_JOINTS if k not in ("floating", "fixed", "planar")]
        added = random_joint(rng, str(rng.choice(kinds, p=[0.4, 0.2, 0.1, 0.1, 0.1, 0.1])))
        side = int(rng.integers(2))
        body = random_body(bot, f"link{len(bot.bodies)}", rng)
        bot.add_joint(
            f"joint{len(bot.bodies) - 1}",
            added,
            parent=ends[side],
            child=body,
            **random_placement(rng),
        )
        ends[side], moving = body.name, moving + added.dof
    home = {}
    for connection in tree_order(bot):
        values = random_coordinates(rng, connection.joint)
        home |= dict(zip(connection.coordinates, map(float, values), strict=True))
    close_loop(bot, rng, "closure", joint, ends[0], ends[1], home)
    bot.set_home(home)
    if acted_on:
        act_on(bot, rng)
    return bot


def ring(cut: int, kinds: Sequence[str], seed: int) -> ax.Mechanism:
    """A ring of bodies and joints from the ground back to it, opened at the joint `cut`.

    All cuts of one seed are the same machine at home: joints beyond the cut are described from
    their other side, with their coordinates reversed.
    """
    rng = np.random.default_rng(seed)
    bot = ax.Mechanism(f"ring cut at {cut}", gravity=tuple(rng.uniform(-6, 6, 3)))
    names = [
        "ground",
        *(random_body(bot, f"bar{i}", rng).name for i in range(len(kinds) - 1)),
        "ground",
    ]
    joints = [random_joint(rng, kind) for kind in kinds]
    values = [random_coordinates(rng, joint) for joint in joints]
    places = [random_placement(rng) for _ in kinds]
    # the last joint's frame in the ground is where the chain ends
    X = np.eye(4)
    for joint, q, place in zip(joints, values, places, strict=True):
        X = X @ pose(place["at"], ax_rotation(place["rotation"])) @ joint_motion(joint, q)
        in_child = pose(place["child_at"], ax_rotation(place["child_rotation"]))
        if joint is not joints[-1]:
            X = X @ np.linalg.inv(in_child)
    places[-1] |= {"child_at": tuple(X[:3, 3]), "child_rotation": X[:3, :3]}
    home = {}
    for i, (joint, q, place) in enumerate(zip(joints, values, places, strict=True)):
        parent, child = names[i], names[i + 1]
        if i > cut:
            joint, q, place = reversed_joint(joint), reversed_values(joint, q), swapped(place)
            parent, child = child, parent
        if i == cut:
            bot.add_loop(f"joint{i}", joint, parent=parent, child=child, **place)
            continue
        connection = bot.add_joint(f"joint{i}", joint, parent=parent, child=child, **place)
        home |= dict(zip(connection.coordinates, map(float, q), strict=True))
    bot.set_home(home)
    return bot


def reversed_joint(joint: AbstractJoint) -> AbstractJoint:
    """The same joint with parent and child exchanged."""
    return ax.Universal(joint.second, joint.axis) if isinstance(joint, ax.Universal) else joint


def reversed_values(joint: AbstractJoint, q: np.ndarray) -> np.ndarray:
    """Its coordinates then."""
    if isinstance(joint, ax.Spherical):
        return q * [1.0, -1.0, -1.0, -1.0]
    if isinstance(joint, ax.Planar):
        c, s = math.cos(q[2]), math.sin(q[2])
        return np.array([-c * q[0] - s * q[1], s * q[0] - c * q[1], -q[2]])
    return -q[::-1] if isinstance(joint, ax.Universal) else -q


def swapped(place: dict[str, Any]) -> dict[str, Any]:
    """A placement with parent and child exchanged."""
    return {
        "at": place["child_at"],
        "rotation": place["child_rotation"],
        "child_at": place["at"],
        "child_rotation": place["rotation"],
    }


# vehicles ----------------------------------------------------------------------------------------


def stand(radius: float, axis: Sequence[float]) -> float:
    """Height of a wheel's centre over the ground, its axis perhaps leaning."""
    return radius * math.sqrt(1 - axis[2] ** 2)


def random_vehicle(
    rng: Rng, base: str | None = None, *, acted_on: bool = True, name: str = "vehicle"
) -> ax.Mechanism:
    """A chassis on a planar or floating base with an axle or a skate and any steerable wheels.

    Its ground is the world's plane at some tilt, or a plate that itself moves.
    """
    base = base or str(rng.choice(["planar", "floating"]))
    bot = ax.Mechanism(name, gravity=(0.5, -0.3, -9.5))
    plane = _random_ground(bot, rng)
    chassis = random_body(bot, "chassis", rng)
    across = shortest(plane)
    joint: AbstractJoint = ax.Planar() if base == "planar" else ax.Floating()
    bot.add_joint("base", joint, parent=plane.on, child=chassis, at=plane.point, rotation=across)
    wheels = [str(rng.choice(["axle", "skate", "none"]))]
    count = int(rng.integers(2, 4))
    wheels += [str(w) for w in rng.choice(["omni", "mecanum", "caster", "ball", "free"], count)]
    corners = [(0.4, 0.3), (0.4, -0.3), (-0.4, 0.25)]
    for k, kind in enumerate(wheels):
        _add_wheels(bot, rng, kind, f"{kind}{k}", corners[k - 1], plane)
    if acted_on:
        act_on(bot, rng)
    return bot


def shortest(plane: ax.Plane) -> np.ndarray:
    """Axes whose z is the plane's normal."""
    from kinematics_by_hand import shortest_turn

    return shortest_turn(numbers(plane.normal))


def _random_ground(bot: ax.Mechanism, rng: Rng) -> ax.Plane:
    normal = np.array([*rng.uniform(-0.3, 0.3, 2), 1.0])
    normal /= np.linalg.norm(normal)
    if rng.random() < 0.5:
        return ax.Plane(normal=tuple(normal), point=random_point(rng))
    plate = random_body(bot, "plate", rng)
    kind = str(rng.choice(["revolute", "prismatic", "universal", "screw"]))
    bot.add_joint(
        "mount", random_joint(rng, kind), parent=bot.ground, child=plate, **random_placement(rng)
    )
    return ax.Plane(normal=tuple(normal), point=random_point(rng), on=plate.name)


def _add_wheels(
    bot: ax.Mechanism, rng: Rng, kind: str, name: str, corner: Sequence[float], plane: ax.Plane
) -> None:
    radius, (x, y) = rng.uniform(0.08, 0.15), corner
    lean = float(rng.choice([0.0, rng.uniform(-0.4, 0.4)]))
    heading = rng.uniform(-math.pi, math.pi)
    axis = (-math.sin(heading) * math.cos(lean), math.cos(heading) * math.cos(lean), math.sin(lean))
    at = (x, y, stand(radius, axis))
    common = {"on": "chassis", "mass": rng.uniform(0.3, 1.0), "ground": plane}
    match kind:
        case "axle":
            for side, offset in (("left", 0.3), ("right", -0.3)):
                bot.add_wheel(
                    f"{name}_{side}",
                    ax.Rolling(radius),
                    at=(0.0, offset, radius),
                    motor=True,
                    **common,
                )
        case "skate":
            bot.add_contact(name, ax.Skate(0.0), body="chassis", axis=(0.0, 1.0, 0.0), ground=plane)
        case "omni":
            bot.add_wheel(name, ax.Omni(radius), at=at, axis=axis, motor=True, **common)
        case "mecanum":
            wheel = ax.Mecanum(radius, roller_angle=rng.uniform(0.3, 2.8))
            bot.add_wheel(name, wheel, at=at, axis=axis, motor=True, **common)
        case "caster":
            bot.add_caster(
                name,
                ax.Rolling(radius),
                at=(x, y, radius + 0.1),
                drop=0.1,
                trail=rng.uniform(0.05, 0.12),
                **common,
            )
        case "ball":
            bot.add_wheel(name, ax.Ball(radius), at=(x, y, radius), **common)
        case "free":
            side = {"lateral": "free"} if rng.random() < 0.5 else {"longitudinal": "free"}
            slides = (
                ax.Rolling(radius, **side)
                if "lateral" in side
                else ax.Rolling(radius, lateral="free", longitudinal="free")
            )
            bot.add_wheel(name, slides, at=at, axis=axis, **common)


# named ones --------------------------------------------------------------------------------------


def arm(n: int = 7) -> ax.Mechanism:
    """A serial arm with the axes of common seven-axis robots, driven at every joint."""
    rows = [(0.0, math.pi / 2 * (-1) ** i, 0.3 * ((i + 1) % 2), 0.0) for i in range(n)]
    bodies = [
        {
            "mass": 4.0 - 0.4 * i,
            "com": (0.01 * i, 0.03, -0.05),
            "inertia": ((0.04, 0.002, 0.001), (0.002, 0.03, 0.003), (0.001, 0.003, 0.02)),
        }
        for i in range(n)
    ]
    return ax.chain_from_dh(rows, name=f"arm of {n}", bodies=bodies, motors=True)


def chain(n: int) -> ax.Mechanism:
    """A chain in space: axes alternate, so that nothing is planar by accident."""
    bot = ax.Mechanism(f"chain of {n}")
    parent: Any = bot.ground
    for i in range(n):
        body = bot.add_body(
            f"link{i}", mass=1.0, com=(0.1, 0.02, 0.01), inertia=(0.01, 0.02, 0.025)
        )
        at = (0.2, 0.0, 0.0) if i else (0.0, 0.0, 0.0)
        bot.add_joint(
            f"joint{i}", ax.Revolute("z" if i % 2 else "y"), parent=parent, child=body, at=at
        )
        parent = body
    return bot


def four_bar() -> ax.Mechanism:
    """A planar four-bar described in space: its loop gives five rows of rank two."""
    bot = ax.Mechanism("four-bar")
    lengths = {"crank": 0.2, "coupler": 0.5, "rocker": 0.4}
    for name, length in lengths.items():
        bot.add_body(
            name,
            mass=length,
            com=(length / 2, 0, 0),
            inertia=(1e-3, length**3 / 12, length**3 / 12),
        )
    bot.add_joint("a", ax.Revolute("y"), parent="ground", child="crank")
    bot.add_joint("b", ax.Revolute("y"), parent="crank", child="coupler", at=(0.2, 0, 0))
    bot.add_joint("d", ax.Revolute("y"), parent="ground", child="rocker", at=(0.5, 0, 0))
    bot.add_loop(
        "c",
        ax.Revolute("y"),
        parent="coupler",
        child="rocker",
        at=(0.5, 0, 0),
        child_at=(0.4, 0, 0),
    )
    bot.add_motor("crank", "a")
    bot.set_home(a=-1.0, b=0.7, d=-1.5)
    return bot


def massless_coupler() -> ax.Mechanism:
    """A slider-crank whose rod weighs nothing: singular as a tree, regular once closed."""
    bot = ax.Mechanism("massless coupler")
    bot.add_body("crank", mass=1.0, com=(0.05, 0, 0), inertia=(0.01, 0.02, 0.02))
    bot.add_body("slider", mass=2.0, inertia=(0.02, 0.02, 0.02))
    bot.add_body("rod", mass=0.0, inertia=ax.Inertia.point())
    bot.add_joint("turn", ax.Revolute("y"), parent="ground", child="crank")
    bot.add_joint("slide", ax.Prismatic("x"), parent="ground", child="slider")
    bot.add_joint("pin", ax.Revolute("y"), parent="crank", child="rod", at=(0.2, 0, 0))
    bot.add_loop("wrist", ax.Spherical(), parent="rod", child="slider", at=(0.6, 0, 0))
    bot.add_motor("turn", "turn")
    bot.set_home(turn=-1.0, pin=1.3, slide=0.7)
    return bot


def platform(legs: int = 6) -> ax.Mechanism:
    """A platform on UPS legs: universal at the base, a driven slide, a ball on the platform."""
    bot = ax.Mechanism(f"{legs}-UPS")
    plate = bot.add_body("platform", mass=8.0, com=(0, 0, 0.02), inertia=(0.3, 0.32, 0.6))
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child=plate)
    home = {"base.z": 0.7}
    for k in range(legs):
        foot = _on_circle(0.6, 2 * math.pi * (k // 2) / (legs / 2) + (0.2 if k % 2 else -0.2), 0.0)
        # ends are shifted against the feet: an unshifted platform is singular
        head = _on_circle(
            0.4,
            2 * math.pi * ((k + 1) // 2) / (legs / 2) - math.pi / 3 + (-0.25 if k % 2 else 0.25),
            0.0,
        )
        cylinder = bot.add_body(
            f"cylinder{k}", mass=1.5, com=(0, 0, 0.2), inertia=(0.03, 0.03, 0.002)
        )
        piston = bot.add_body(f"piston{k}", mass=0.8, com=(0, 0, -0.2), inertia=(0.02, 0.02, 0.001))
        bot.add_joint(f"u{k}", ax.Universal("x", "y"), parent=bot.ground, child=cylinder, at=foot)
        bot.add_joint(f"p{k}", ax.Prismatic("z"), parent=cylinder, child=piston)
        bot.add_loop(f"s{k}", ax.Spherical(), parent=piston, child=plate, child_at=head)
        bot.add_motor(f"p{k}", f"p{k}")
        dx, dy, dz = head[0] - foot[0], head[1] - foot[1], 0.7
        home |= {
            f"u{k}.first": math.atan2(-dy, dz),
            f"p{k}": math.sqrt(dx**2 + dy**2 + dz**2),
            f"u{k}.second": math.atan2(dx, math.hypot(dy, dz)),
        }
    bot.set_home(home)
    return bot


def _on_circle(radius: float, angle: float, z: float) -> tuple[float, float, float]:
    return (radius * math.cos(angle), radius * math.sin(angle), z)


def rolling_disk() -> ax.Mechanism:
    """A disk as a free body with one contact."""
    bot = ax.Mechanism("rolling disk")
    disk = bot.add_body("disk", mass=2.0, inertia=ax.Inertia.disk(2.0, 0.3, "y"))
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child=disk)
    bot.add_contact("rim", ax.Rolling(0.3), body=disk)
    bot.add_wrench("push", disk, frame="body")
    bot.set_home({"base.z": 0.3})
    return bot


def rolling_ball() -> ax.Mechanism:
    """An unbalanced ball on a slope."""
    bot = ax.Mechanism("rolling ball")
    ball = bot.add_body("ball", mass=2.0, com=(0.05, 0.02, -0.03), inertia=(0.05, 0.06, 0.07))
    normal = (math.sin(0.3), 0.0, math.cos(0.3))
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child=ball)
    bot.add_contact(
        "skin", ax.Ball(0.25), body=ball, ground=ax.Plane(normal=normal, point=(0, 0, 1))
    )
    bot.set_home({"base.z": 1.0 + 0.25 / math.cos(0.3)})
    return bot


def balancer() -> ax.Mechanism:
    """A two-wheel balancer on a floating base: 8 speeds, 6 rows, rank 5, 3 free."""
    bot = ax.Mechanism("balancer")
    height = ax.Parameter("height", 0.4)
    radius = ax.Parameter("radius", 0.1)
    pole = bot.add_body(
        "pole", mass=ax.Parameter("mass", 8.0), com=(0, 0, height), inertia=(0.5, 0.4, 0.1)
    )
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child=pole)
    for side, y in (("left", 0.2), ("right", -0.2)):
        bot.add_wheel(
            side,
            ax.Rolling(radius),
            on=pole,
            at=(0, y, 0),
            mass=0.5,
            motor=ax.Motor(limit=4.0, gear=3.0, rotor_inertia=1e-3),
        )
    bot.set_home({"base.z": 0.1})
    return bot


def car() -> ax.Mechanism:
    """Four wheels on a floating base: four touch rows, dependent only where all wheels touch."""
    bot = ax.Mechanism("car")
    body = bot.add_body("body", mass=20.0, com=(0.1, 0, 0.2), inertia=(1.0, 2.0, 2.5))
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child=body)
    for name, x, y in (("rl", 0, 0.4), ("rr", 0, -0.4), ("fl", 1, 0.4), ("fr", 1, -0.4)):
        wheel = ax.Rolling(0.15) if x == 0 else ax.Rolling(0.15, lateral="free")
        bot.add_wheel(name, wheel, on=body, at=(x, y, 0), mass=1.0, motor=x == 0)
    bot.set_home({"base.z": 0.15})
    return bot


def mecanum_base() -> ax.Mechanism:
    """Four Mecanum wheels under a planar base: redundantly actuated."""
    bot = ax.Mechanism("mecanum base")
    body = bot.add_body("body", mass=20.0, com=(0.05, 0.02, 0.1), inertia=(1.0, 2.0, 2.5))
    bot.add_joint("base", ax.Planar(), parent=bot.ground, child=body)
    for name, x, y in (("rl", -0.3, 0.2), ("rr", -0.3, -0.2), ("fl", 0.3, 0.2), ("fr", 0.3, -0.2)):
        angle = math.pi / 4 * (1 if x * y > 0 else -1)
        bot.add_wheel(
            name, ax.Mecanum(0.1, roller_angle=angle), on=body, at=(x, y, 0.1), mass=1.0, motor=True
        )
    return bot


def disk_on_plate() -> ax.Mechanism:
    """A leaning disk that rolls on a plate which itself tilts and slides."""
    bot = ax.Mechanism("disk on a plate")
    sledge = bot.add_body("sledge", mass=3.0, inertia=(0.1, 0.1, 0.1))
    plate = bot.add_body("plate", mass=4.0, com=(0.1, 0, 0), inertia=(0.4, 0.4, 0.7))
    disk = bot.add_body("disk", mass=1.0, inertia=ax.Inertia.disk(1.0, 0.2, "y"))
    bot.add_joint("slide", ax.Prismatic("x"), parent=bot.ground, child=sledge)
    bot.add_joint("tilt", ax.Universal("x", "y"), parent=sledge, child=plate, at=(0, 0, 0.5))
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child=disk)
    bot.add_contact(
        "rim", ax.Rolling(0.2), body=disk, ground=ax.Plane(point=(0, 0, 0.02), on=plate)
    )
    bot.add_spring("hinge", "tilt.first", stiffness=60.0)
    bot.add_spring("hinge2", "tilt.second", stiffness=60.0)
    bot.set_home({"base.z": 0.72})
    return bot


def caster_robot() -> ax.Mechanism:
    """A driven axle and a massless caster."""
    bot = ax.Mechanism("caster robot")
    body = bot.add_body("body", mass=10.0, com=(0.1, 0, 0.1), inertia=(0.3, 0.4, 0.5))
    bot.add_joint("base", ax.Planar(), parent=bot.ground, child=body)
    for side, y in (("left", 0.2), ("right", -0.2)):
        bot.add_wheel(side, ax.Rolling(0.1), on=body, at=(0, y, 0.1), mass=0.5, motor=True)
    trail = ax.Parameter("trail", 0.06)
    bot.add_caster(
        "caster", ax.Rolling(0.05), on=body, at=(0.3, 0, 0.12), drop=0.07, trail=trail, mass=0.2
    )
    return bot


def snakeboard() -> ax.Mechanism:
    """Two steered skates and a rotor: moves though nothing pushes it."""
    bot = ax.Mechanism("snakeboard")
    board = bot.add_body("board", mass=5.0, inertia=(0.1, 0.5, 0.6))
    rotor = bot.add_body("rotor", mass=1.0, inertia=(0.1, 0.1, 0.2))
    bot.add_joint("base", ax.Planar(), parent=bot.ground, child=board)
    bot.add_joint("rotor", ax.Revolute("z"), parent=board, child=rotor)
    bot.add_motor("rotor", "rotor")
    for name, x in (("front", 0.4), ("back", -0.4)):
        truck = bot.add_body(name, mass=0.5, inertia=(0.01, 0.01, 0.02))
        bot.add_joint(name, ax.Revolute("z"), parent=board, child=truck, at=(x, 0, 0))
        bot.add_contact(name, ax.Skate(0.0), body=truck)
        bot.add_motor(name, name)
    bot.set_home(front=0.4, back=-0.5)
    return bot


def ballbot() -> ax.Mechanism:
    """A body that balances on a driven ball."""
    bot = ax.Mechanism("ballbot")
    body = bot.add_body("body", mass=12.0, com=(0, 0, 0.5), inertia=(1.5, 1.4, 0.4))
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child=body)
    bot.add_wheel("ball", ax.Ball(0.15), on=body, mass=3.0)
    for axis in ("wx", "wy", "wz"):
        bot.add_motor(axis, f"ball.{axis}")
    bot.set_home({"base.z": 0.15})
    return bot


def fixed_wheel() -> ax.Mechanism:
    """A wheel on an axle in the world drives a plate that slides under it and under a ball."""
    bot = ax.Mechanism("fixed wheel")
    plate = bot.add_body("plate", mass=4.0, com=(0.1, 0.05, 0), inertia=(0.4, 0.4, 0.7))
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child=plate)
    under = ax.Plane(normal=(0, 0, 1), point=(0, 0, 0.05), on=plate)
    bot.add_wheel(
        "drive",
        ax.Rolling(0.1, lateral="free"),
        on=bot.ground,
        at=(0, 0, 0.15),
        mass=0.5,
        motor=True,
        ground=under,
    )
    bot.add_contact(
        "knob",
        ax.Ball(0.1, longitudinal="free", lateral="free"),
        body=bot.ground,
        at=(0.4, 0.2, 0.15),
        ground=under,
    )
    bot.add_contact(
        "edge",
        ax.Rolling(0.2, lateral="free"),
        body=bot.ground,
        at=(-0.4, 0.1, 0.25),
        axis=(0.6, 0.8, 0.0),
        ground=under,
    )
    return bot


def shaken_pendulum() -> ax.Mechanism:
    """A double pendulum whose pivot is shaken: rheonomic."""
    bot = ax.Mechanism("shaken pendulum")
    depth = ax.Parameter("depth", 0.1)
    cart = bot.add_body("cart", mass=1.0, inertia=(0.1, 0.1, 0.1))
    bot.add_joint(
        "shake", ax.Prismatic(random_axis(np.random.default_rng(5))), parent=bot.ground, child=cart
    )
    parent = cart
    for i, axis in enumerate(("x", "y")):
        rod = bot.add_body(f"rod{i}", mass=1.0, com=(0, 0.02, -0.2), inertia=(0.02, 0.02, 0.001))
        bot.add_joint(f"pin{i}", ax.Revolute(axis), parent=parent, child=rod, at=(0, 0, -0.4 * i))
        bot.add_damper(f"friction{i}", f"pin{i}", coefficient=0.1)
        parent = rod
    bot.add_motor("pin0", "pin0")
    bot.prescribe("shake", lambda t: depth * np.sin(7.0 * t) + 0.05 * t**2)
    return bot


def driven_five_bar() -> ax.Mechanism:
    """A five-bar with one crank prescribed and a rolling base: loops, rolling and time together."""
    bot = ax.Mechanism("driven five-bar")
    body = bot.add_body("body", mass=5.0, com=(0.05, 0, 0.1), inertia=(0.2, 0.3, 0.4))
    bot.add_joint("base", ax.Planar(), parent=bot.ground, child=body)
    for side, y in (("left", 0.3), ("right", -0.3)):
        bot.add_wheel(side, ax.Rolling(0.1), on=body, at=(0, y, 0.1), mass=0.5, motor=True)
    for name, length in (("a", 0.3), ("b", 0.5), ("c", 0.3), ("d", 0.5)):
        bot.add_body(name, mass=length, com=(length / 2, 0.01, 0.02), inertia=(0.01, 0.02, 0.02))
    bot.add_joint("ja", ax.Revolute("y"), parent=body, child="a", at=(-0.2, 0, 0.2))
    bot.add_joint("jb", ax.Revolute("y"), parent="a", child="b", at=(0.3, 0, 0))
    bot.add_joint("jc", ax.Revolute("y"), parent=body, child="c", at=(0.2, 0, 0.2))
    bot.add_joint("jd", ax.Revolute("y"), parent="c", child="d", at=(0.3, 0, 0))
    bot.add_loop(
        "tip", ax.Revolute("y"), parent="b", child="d", at=(0.5, 0, 0), child_at=(0.5, 0, 0)
    )
    bot.set_home(ja=-1.9, jb=0.9, jc=-1.2, jd=-0.9)
    bot.prescribe("ja", lambda t: -1.9 + 0.4 * np.sin(3.0 * t))
    bot.add_motor("elbow", "jb")
    return bot


def steered_plate() -> ax.Mechanism:
    """A ball on a plate whose tilt is prescribed: rolling on ground that time moves."""
    bot = ax.Mechanism("ball on a driven plate")
    plate = bot.add_body("plate", mass=4.0, inertia=(0.4, 0.4, 0.7))
    ball = bot.add_body("ball", mass=1.0, inertia=ax.Inertia.sphere(1.0, 0.1))
    bot.add_joint("tilt", ax.Universal("x", "y"), parent=bot.ground, child=plate)
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child=ball)
    bot.add_contact("skin", ax.Ball(0.1), body=ball, ground=plate)
    bot.prescribe("tilt.first", lambda t: 0.2 * np.sin(2.0 * t))
    bot.prescribe("tilt.second", lambda t: 0.1 * np.cos(3.0 * t))
    bot.set_home({"base.z": 0.1, "tilt.second": 0.1})
    return bot


def prescribed_yaw() -> ax.Mechanism:
    """A planar body led in x and yaw by time: rows whose direction turns with the coordinates."""
    bot = ax.Mechanism("led body")
    body = bot.add_body("body", mass=5.0, com=(0.2, 0.1, 0.0), inertia=(0.2, 0.3, 0.4))
    bot.add_joint("base", ax.Planar(), parent=bot.ground, child=body, rotation=(0.3, 0.2, 0.1))
    bob = bot.add_body("bob", mass=1.0, com=(0.1, 0, -0.3), inertia=(0.02, 0.02, 0.01))
    bot.add_joint("ball", ax.Spherical(), parent=body, child=bob, at=(0.1, 0, 0))
    bot.prescribe("base.x", lambda t: 0.3 * t + 0.1 * t**2)
    bot.prescribe("base.yaw", lambda t: np.sin(t))
    return bot


def parametric_arm() -> ax.Mechanism:
    """Parameters in placements, axes, offsets, masses and stiffness."""
    bot = ax.Mechanism("parametric arm", gravity=(0, 0, -ax.Parameter("g", 9.81)))
    a, lean = ax.Parameter("a", 0.3), ax.Parameter("lean", 0.4)
    parent: Any = bot.ground
    axes = [(0.0, 0.0, 1.0), (0.0, np.cos(lean), np.sin(lean)), (0.0, np.cos(lean), np.sin(lean))]
    for i, axis in enumerate(axes):
        m = ax.Parameter(f"m{i}", 1.0 + i)
        body = bot.add_body(
            f"link{i}", mass=m, com=(a / 2, 0.01, 0.02), inertia=ax.Inertia.box(m, (a, 0.1, 0.2))
        )
        bot.add_joint(
            f"joint{i}",
            ax.Revolute(axis),
            parent=parent,
            child=body,
            at=(a * float(i > 0), 0, 0.1),
            rotation=(lean * i, 0, a),
        )
        bot.add_motor(f"joint{i}", f"joint{i}", gear=ax.Parameter("gear", 2.0))
        parent = body
    tip = bot.add_body("tip", mass=0.5, com=(0, 0, 0.1), inertia=(0.01, 0.01, 0.01))
    bot.add_joint(
        "screw",
        ax.Screw("x", pitch=ax.Parameter("pitch", 0.05)),
        parent=parent,
        child=tip,
        at=(a, 0, 0),
        child_rotation=(0, lean, 0),
    )
    bot.add_spring("coil", "screw", stiffness=ax.Parameter("k", 5.0), rest=lean)
    return bot


def parametric_vehicle() -> ax.Mechanism:
    """Parameters in wheels, axes, rollers, casters and the ground; springs on the base."""
    bot = ax.Mechanism("parametric vehicle")
    tilt, roll, r = ax.Parameter("tilt", 0.2), ax.Parameter("roll", 0.7), ax.Parameter("r", 0.1)
    lean, x = ax.Parameter("lean", 0.3), ax.Parameter("x", 0.3)
    slope = ax.Plane(normal=(np.sin(tilt), 0.0, np.cos(tilt)), point=(0, 0, x))
    body = bot.add_body("body", mass=9.0, com=(0.05, 0.02, 0.1), inertia=(0.3, 0.4, 0.5))
    bot.add_joint(
        "base", ax.Planar(), parent=bot.ground, child=body, at=(0, 0, x), rotation=(0, tilt, 0)
    )
    axis = (0.0, np.cos(lean), np.sin(lean))
    bot.add_wheel(
        "leaning",
        ax.Omni(r),
        on=body,
        at=(x, 0, r * np.cos(lean)),
        axis=axis,
        mass=0.5,
        ground=slope,
        motor=True,
    )
    bot.add_wheel(
        "rollers",
        ax.Mecanum(r, roller_angle=roll),
        on=body,
        at=(-x, 0.2, r),
        mass=0.5,
        ground=slope,
        motor=True,
    )
    bot.add_caster(
        "caster",
        ax.Rolling(r),
        on=body,
        at=(0, -x, r + 0.1),
        drop=0.1,
        trail=r / 2,
        mass=0.5,
        ground=slope,
        bracket_mass=0.1,
        bracket_inertia=(0.01, 0.01, 0.01),
    )
    bot.add_spring("tether", "base.x", stiffness=ax.Parameter("k", 20.0), rest=0.1)
    bot.add_spring("vane", "base.yaw", stiffness=3.0, rest=tilt)
    bot.add_damper("drag", "base.surge", coefficient=2.0)
    return bot


def parametric_loop() -> ax.Mechanism:
    """A spatial slider-crank with parameters in its lengths and in the loop's own joint."""
    bot = ax.Mechanism("parametric loop")
    a, b, lean = ax.Parameter("a", 0.2), ax.Parameter("b", 0.6), ax.Parameter("lean", 0.2)
    bot.add_body("crank", mass=1.0, com=(a / 2, 0, 0), inertia=(0.01, 0.02, 0.02))
    bot.add_body("slider", mass=2.0, com=(0.02, 0, 0.01), inertia=(0.02, 0.02, 0.02))
    bot.add_body("rod", mass=b, com=(b / 2, 0, 0), inertia=ax.Inertia.box(b, (b, 0.05, 0.02)))
    bot.add_joint(
        "turn", ax.Revolute((0.0, np.cos(lean), np.sin(lean))), parent="ground", child="crank"
    )
    bot.add_joint(
        "slide", ax.Cylindrical("x"), parent="ground", child="slider", rotation=(0, lean, 0)
    )
    bot.add_joint("ball", ax.Spherical(), parent="crank", child="rod", at=(a, 0, 0))
    bot.add_loop(
        "wrist",
        ax.Universal((0.0, np.cos(lean), np.sin(lean)), "x"),
        parent="slider",
        child="rod",
        child_at=(b, 0, 0),
        rotation=(0, 0, lean),
    )
    bot.add_motor("turn", "turn", gear=ax.Parameter("gear", 2.0))
    bot.set_home({"turn": -1.0, "slide.slide": 0.7, "ball.qw": 0.87, "ball.qy": 0.5})
    return bot


def on_a_plinth() -> ax.Mechanism:
    """A heavy plinth welded to the world that carries, closes, springs and is rolled upon."""
    bot = ax.Mechanism("on a plinth")
    plinth = bot.add_body("plinth", mass=50.0, com=(0, 0, 0.2), inertia=(1.0, 1.0, 1.0))
    bot.add_joint(
        "weld",
        ax.Fixed(),
        parent=bot.ground,
        child=plinth,
        at=(0.1, 0.2, 0.3),
        rotation=(0.2, -0.1, 0.5),
    )
    rod = bot.add_body("rod", mass=1.0, com=(0.2, 0, 0), inertia=(0.001, 0.02, 0.02))
    bot.add_joint("hinge", ax.Universal("y", "z"), parent=plinth, child=rod, at=(0, 0, 0.5))
    ball = bot.add_body("ball", mass=1.0, com=(0.01, 0, 0.02), inertia=(0.01, 0.012, 0.013))
    bot.add_joint(
        "socket", ax.Spherical(), parent=rod, child=ball, at=(0.4, 0, 0), child_at=(0.0, 0.02, 0.01)
    )
    bot.add_contact("skin", ax.Ball(0.1), body=ball, ground=ax.Plane(point=(0, 0, 0.3), on=plinth))
    bot.add_spring(
        "strut", parent=plinth, child=ball, at=(0.5, 0, 1.0), stiffness=7.0, rest=0.2, damping=0.5
    )
    bot.add_wrench("nothing", plinth)
    bot.add_wrench("push", rod, frame="body")
    bot.set_home({"hinge.first": 0.2})
    return bot


def double_spin() -> ax.Mechanism:
    """A wheel on a hub on an axle, all about one axis, one of them led by time."""
    bot = ax.Mechanism("double spin")
    body = bot.add_body("body", mass=5.0, com=(0.05, 0, 0.2), inertia=(0.2, 0.3, 0.4))
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child=body)
    hub = bot.add_body("hub", mass=0.5, com=(0.01, 0, 0.02), inertia=(0.004, 0.005, 0.004))
    bot.add_joint("axle", ax.Revolute("-y"), parent=body, child=hub, at=(0, 0.3, 0))
    bot.add_wheel("left", ax.Rolling(0.1), on=hub, axis="y", at=(0, 0.05, 0), mass=0.5, motor=True)
    bot.add_wheel(
        "right",
        ax.Rolling(0.1),
        on=body,
        axis="-y",
        at=(0, -0.3, 0),
        mass=0.5,
        motor=ax.Motor(gear=-2.0, rotor_inertia=1e-3),
    )
    bot.prescribe("axle", lambda t: 0.5 * np.sin(2.0 * t))
    bot.set_home({"base.z": 0.1})
    return bot


NAMED: dict[str, Build] = {
    "all_joints_tree": all_joints_tree,
    "arm": arm,
    "parametric_arm": parametric_arm,
    "four_bar": four_bar,
    "massless_coupler": massless_coupler,
    "platform": platform,
    "rolling_disk": rolling_disk,
    "rolling_ball": rolling_ball,
    "balancer": balancer,
    "car": car,
    "mecanum_base": mecanum_base,
    "disk_on_plate": disk_on_plate,
    "caster_robot": caster_robot,
    "snakeboard": snakeboard,
    "ballbot": ballbot,
    "fixed_wheel": fixed_wheel,
    "shaken_pendulum": shaken_pendulum,
    "driven_five_bar": driven_five_bar,
    "steered_plate": steered_plate,
    "prescribed_yaw": prescribed_yaw,
    "parametric_vehicle": parametric_vehicle,
    "parametric_loop": parametric_loop,
    "on_a_plinth": on_a_plinth,
    "double_spin": double_spin,
    "coupled_tree": coupled_tree,
    "geared_five_bar": geared_five_bar,
    "cam_five_bar": cam_five_bar,
    "differential_car": differential_car,
}


def _seeded(make: Callable[..., ax.Mechanism], seed: int, *more: Any) -> Build:
    return lambda: make(np.random.default_rng(seed), *more)


MECHANISMS: dict[str, Build] = {
    **NAMED,
    **{f"tree_{s}": _seeded(random_tree, s, 4) for s in range(4)},
    **{f"loop_{kind}": _seeded(random_loop, 10 + i, kind) for i, kind in enumerate(CLOSURES)},
    **{f"loop_{s}": _seeded(random_loop, s) for s in range(30, 34)},
    **{f"vehicle_{s}": _seeded(random_vehicle, s) for s in range(8)},
}
