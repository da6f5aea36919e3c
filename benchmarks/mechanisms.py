"""The mechanisms that are measured, built with Axode's own parts.

Every link has a full inertia tensor and a mass centre off its axes: zeros would make the operation
counts look better than those of a real robot.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

import axode as ax

# Lengths and twists of a seven-joint arm of the usual S-R-S build with a bent elbow, in rows
# a, alpha, d, theta of the modified convention [m, rad].
ARM_ROWS = (
    (0.0, 0.0, 0.333, 0.0),
    (0.0, -math.pi / 2, 0.0, 0.0),
    (0.0, math.pi / 2, 0.316, 0.0),
    (0.0825, math.pi / 2, 0.0, 0.0),
    (-0.0825, -math.pi / 2, 0.384, 0.0),
    (0.0, math.pi / 2, 0.0, 0.0),
    (0.088, math.pi / 2, 0.107, 0.0),
)

LEG_CYLINDER = {"mass": 2.0, "com": (0.01, -0.005, 0.2), "inertia": (0.03, 0.028, 0.004)}
LEG_ROD = {"mass": 1.0, "com": (0.0, 0.004, -0.2), "inertia": (0.015, 0.016, 0.001)}
POLE = {"mass": 8.0, "com": (0.0, 0.0, 0.4), "inertia": (0.5, 0.4, 0.1)}
WHEEL = {"mass": 0.5, "radius": 0.1}
TRACK = 0.4  # [m] between the wheels
BASE_RADIUS, PLATFORM_RADIUS, PLATFORM_HEIGHT = 0.6, 0.35, 0.7  # [m]


def general_inertia(number: int) -> dict[str, object]:
    """Mass, mass centre and full tensor of link `number`; none of the ten numbers is zero."""
    rng = np.random.default_rng(number)
    Q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    moments = rng.uniform(0.01, 0.1, size=3)
    tensor = Q @ np.diag(moments.sum() - moments) @ Q.T
    return {
        "mass": rng.uniform(1.0, 4.0),
        "com": rng.uniform(-0.1, 0.1, 3),
        "inertia": (tensor + tensor.T) / 2,
    }


def arm(motors: bool = True) -> ax.Mechanism:
    """A seven-joint serial arm."""
    bodies = [general_inertia(number) for number in range(len(ARM_ROWS))]
    return ax.chain_from_dh(
        ARM_ROWS, name="arm", bodies=bodies, convention="modified", motors=motors
    )


def chain(length: int) -> ax.Mechanism:
    """A snake of `length` links, its revolute axes crosswise."""
    mechanism = ax.Mechanism(f"chain{length}")
    parent = mechanism.ground
    for number in range(length):
        link = mechanism.add_body(f"link{number}", **general_inertia(number))
        mechanism.add_joint(
            f"joint{number}",
            ax.Revolute("zy"[number % 2]),
            parent=parent,
            child=link,
            at=(0.2, 0.0, 0.0),
        )
        mechanism.add_motor(f"joint{number}", f"joint{number}")
        parent = link
    return mechanism


def tree(limbs: int = 4, length: int = 6) -> ax.Mechanism:
    """A trunk of `length` joints with as many in each of its `limbs`: thirty unless told otherwise.

    Axes alternate between all three directions; every joint has a motor.
    """
    mechanism = ax.Mechanism("tree")

    def grow(name: str, parent: ax.mechanism.bodies.Body, at: tuple[float, float, float]) -> object:
        for number in range(length):
            seed = len(mechanism.bodies)
            link = mechanism.add_body(f"{name}{number}", **general_inertia(seed))
            joint = f"{name}{number}"
            mechanism.add_joint(
                joint,
                ax.Revolute("zyx"[number % 3]),
                parent=parent,
                child=link,
                at=at if number == 0 else (0.15, 0.02, -0.03),
            )
            mechanism.add_motor(joint, joint)
            parent = link
        return parent

    trunk = grow("trunk", mechanism.ground, (0.0, 0.0, 0.1))
    for k in range(limbs):
        angle = 2 * math.pi * k / limbs
        grow(f"limb{k}.", trunk, (0.2 * math.cos(angle), 0.2 * math.sin(angle), 0.1))
    return mechanism


def _leg_points(legs: int) -> tuple[np.ndarray, np.ndarray]:
    """Joints on the base and on the platform, in pairs as flight simulators have them."""
    number = np.arange(legs)
    step = 2 * math.pi / legs
    base = step * number + 0.15 * (-1.0) ** number
    top = step * number - 0.2 * (-1.0) ** number
    at_base = np.stack([np.cos(base), np.sin(base), np.zeros(legs)], axis=1)
    at_top = np.stack([np.cos(top), np.sin(top), np.zeros(legs)], axis=1)
    return BASE_RADIUS * at_base, PLATFORM_RADIUS * at_top


def platform(legs: int = 6) -> ax.Mechanism:
    """A platform on universal-prismatic-spherical legs; the six-legged one is Gough's.

    The platform floats in the tree and each leg's spherical joint is a loop.
    """
    mechanism = ax.Mechanism(f"platform{legs}")
    tensor = ((1.2, 0.02, 0.01), (0.02, 1.3, -0.03), (0.01, -0.03, 2.1))
    top = mechanism.add_body("platform", mass=20.0, com=(0.02, -0.01, 0.05), inertia=tensor)
    mechanism.add_joint("platform", ax.Floating(), parent=mechanism.ground, child=top)
    at_base, at_top = _leg_points(legs)
    for k in range(legs):
        cylinder = mechanism.add_body(f"cylinder{k}", **LEG_CYLINDER)
        rod = mechanism.add_body(f"rod{k}", **LEG_ROD)
        mechanism.add_joint(
            f"hip{k}",
            ax.Universal("x", "y"),
            parent=mechanism.ground,
            child=cylinder,
            at=at_base[k],
        )
        mechanism.add_joint(f"leg{k}", ax.Prismatic("z"), parent=cylinder, child=rod)
        mechanism.add_loop(f"ankle{k}", ax.Spherical(), parent=rod, child=top, child_at=at_top[k])
        mechanism.add_motor(f"leg{k}", f"leg{k}")
    pose = (np.array([0.0, 0.0, PLATFORM_HEIGHT]), np.array([1.0, 0.0, 0.0, 0.0]))
    mechanism.set_home(platform_coordinates(legs, *pose))
    return mechanism


def platform_coordinates(
    legs: int, position: np.ndarray, quaternion: np.ndarray
) -> dict[str, float]:
    """All coordinates of `platform(legs)` for a pose of its platform: the legs in closed form.

    A leg of direction (x, y, z) has its universal joint at atan2(-y, z) and asin(x).
    """
    w, x, y, z = quaternion
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    R = np.eye(3) + 2 * w * cross + 2 * cross @ cross
    at_base, at_top = _leg_points(legs)
    names = (f"platform.{name}" for name in ("qw", "qx", "qy", "qz", "x", "y", "z"))
    found = dict(zip(names, (*quaternion, *position), strict=True))
    for k, leg in enumerate(position + at_top @ R.T - at_base):
        length = np.linalg.norm(leg)
        found[f"hip{k}.first"] = math.atan2(-leg[1], leg[2])
        found[f"hip{k}.second"] = math.asin(leg[0] / length)
        found[f"leg{k}"] = length
    return {name: float(value) for name, value in found.items()}


def balancer() -> ax.Mechanism:
    """A wheeled pendulum: a body on a Floating base and two rolling wheels."""
    mechanism = ax.Mechanism("balancer")
    pole = mechanism.add_body("pole", mass=8.0, com=(0.0, 0.0, 0.4), inertia=(0.5, 0.4, 0.1))
    mechanism.add_joint("base", ax.Floating(), parent=mechanism.ground, child=pole)
    for side, y in (("left", 0.2), ("right", -0.2)):
        mechanism.add_wheel(
            side, ax.Rolling(radius=0.1), on=pole, at=(0.0, y, 0.0), mass=0.5, motor=True
        )
    mechanism.set_home({"base.z": 0.1})
    return mechanism


def wheeled_pendulum() -> ax.Mechanism:
    """A pendulum on two wheels over a plane: a planar axle, a pitch joint, two rolling wheels.

    The wheels turn against the pole, as motors in it would have it. The axle has no mass.
    """
    mechanism = ax.Mechanism("wheeled_pendulum")
    axle = mechanism.add_body("axle", mass=0.0, inertia=ax.Inertia.point())
    mechanism.add_joint(
        "base", ax.Planar(), parent=mechanism.ground, child=axle, at=(0.0, 0.0, WHEEL["radius"])
    )
    pole = mechanism.add_body("pole", **POLE)
    mechanism.add_joint("pitch", ax.Revolute("y"), parent=axle, child=pole)
    for side, y in (("left", TRACK / 2), ("right", -TRACK / 2)):
        mechanism.add_wheel(
            side,
            ax.Rolling(radius=WHEEL["radius"]),
            on=pole,
            at=(0.0, y, 0.0),
            mass=WHEEL["mass"],
            motor=True,
        )
    return mechanism


def caster_robot() -> ax.Mechanism:
    """A cart on two driven wheels and a caster."""
    mechanism = ax.Mechanism("caster_robot")
    cart = mechanism.add_body("cart", mass=15.0, com=(-0.12, 0.0, 0.1), inertia=(0.4, 0.5, 0.55))
    mechanism.add_joint("base", ax.Planar(), parent=mechanism.ground, child=cart, at=(0, 0, 0.1))
    for side, y in (("left", 0.25), ("right", -0.25)):
        mechanism.add_wheel(
            side, ax.Rolling(radius=0.1), on=cart, at=(0.0, y, 0.0), mass=1.2, motor=True
        )
    mechanism.add_caster(
        "caster",
        ax.Rolling(radius=0.1),
        on=cart,
        at=(-0.3, 0.0, 0.05),
        trail=0.06,
        drop=0.05,
        mass=0.6,
        bracket_mass=0.4,
        bracket_inertia=(0.001, 0.001, 0.0008),
    )
    return mechanism


def rolling_disk() -> ax.Mechanism:
    """A thin disk, free in space but for the ground it rolls on."""
    mechanism = ax.Mechanism("disk")
    disk = mechanism.add_body("disk", mass=2.0, inertia=ax.Inertia.disk(2.0, 0.3, "y"))
    mechanism.add_joint("base", ax.Floating(), parent=mechanism.ground, child=disk)
    mechanism.add_contact("disk", ax.Rolling(radius=0.3), body=disk, axis="y")
    mechanism.set_home({"base.z": 0.3})
    return mechanism


def platform_twist() -> Sequence[str]:
    """The platform's own six speeds, as independent ones."""
    return [f"platform.{speed}" for speed in ("wx", "wy", "wz", "vx", "vy", "vz")]
