"""Robots whose geometry consists of parameters, and their kinematics by hand."""

import functools

import numpy as np

import axode as ax

POSE = ("free.x", "free.y", "free.z", "roll", "pitch", "yaw")
RADII = {"base_radius": 0.5, "platform_radius": 0.3, "base_gap": 0.314, "platform_gap": 0.87}


def anchors(radius, gap, height=0.0):
    """Six points on a circle, pairs at `gap` on both sides of three directions: (6, 3)."""
    k = np.arange(6)
    angle = np.radians(120) * (k // 2) + (1 - 2 * (k % 2)) * gap
    return np.stack([radius * np.cos(angle), radius * np.sin(angle), np.full(6, height)], axis=-1)


@functools.cache
def hexapod():
    """A Gough-Stewart platform with six driven legs, its circles of anchors parameters."""
    radii = {name: ax.Parameter(name, value) for name, value in RADII.items()}
    bot = ax.Mechanism("hexapod")
    platform = bot.add_body("platform", mass=12.0, com=(0.02, 0.01, 0.05), inertia=(0.5, 0.6, 0.9))
    bot.add_joint("free", ax.Floating(), parent=bot.ground, child=platform)
    home = {"free.z": 0.7}
    spans = anchors(0.3, 0.87, 0.7) - anchors(0.5, 0.314)
    for k in range(6):
        turn, side = np.radians(120) * (k // 2), 1 - 2 * (k % 2)
        foot, head = (
            (
                radii[f"{part}_radius"] * np.cos(turn + side * radii[f"{part}_gap"]),
                radii[f"{part}_radius"] * np.sin(turn + side * radii[f"{part}_gap"]),
                0.0,
            )
            for part in ("base", "platform")
        )
        lower = bot.add_body(f"lower{k}", mass=1.5, com=(0, 0, 0.2), inertia=(0.02, 0.02, 0.002))
        upper = bot.add_body(f"upper{k}", mass=0.8, com=(0, 0, -0.2), inertia=(0.01, 0.01, 0.001))
        bot.add_joint(f"u{k}", ax.Universal("x", "y"), parent=bot.ground, child=lower, at=foot)
        bot.add_joint(f"l{k}", ax.Prismatic("z"), parent=lower, child=upper)
        bot.add_loop(f"ball{k}", ax.Spherical(), parent=platform, child=upper, at=head)
        bot.add_motor(f"leg{k}", f"l{k}", limit=400.0)
        x, y, z = spans[k]
        length = float(np.linalg.norm(spans[k]))
        home |= {f"u{k}.first": -np.arctan2(y, z), f"u{k}.second": np.arcsin(x / length)}
        home[f"l{k}"] = length
    bot.set_home(home)
    return ax.Kinematics(bot)


def leg_vectors(pose, radii):
    """Vectors from feet to heads, and heads from the platform's origin, by hand: (6, 3) each."""
    x, y, z, roll, pitch, yaw = pose
    (cr, cp, cy), (sr, sp, sy) = np.cos([roll, pitch, yaw]), np.sin([roll, pitch, yaw])
    R = (
        np.array([[cy, -sy, 0], [sy, cy, 0], [0, 0, 1]])
        @ np.array([[cp, 0, sp], [0, 1, 0], [-sp, 0, cp]])
        @ np.array([[1, 0, 0], [0, cr, -sr], [0, sr, cr]])
    )
    arms = anchors(radii["platform_radius"], radii["platform_gap"]) @ R.T
    feet = anchors(radii["base_radius"], radii["base_gap"])
    return np.array([x, y, z]) + arms - feet, arms


@functools.cache
def arm():
    """A planar arm of two links in a vertical plane, whose lengths are parameters."""
    a, b = ax.Parameter("a", 1.0), ax.Parameter("b", 0.4)
    bot = ax.Mechanism("arm", gravity=(0, -9.81, 0))
    inner = bot.add_body("inner", mass=2.0, com=(0.5, 0, 0), inertia=(0.1, 0.2, 0.2))
    tool = bot.add_body("tool", mass=1.0, com=(-0.1, 0, 0), inertia=(0.1, 0.1, 0.1))
    bot.add_joint("one", ax.Revolute("z"), parent=bot.ground, child=inner)
    bot.add_joint(
        "two", ax.Revolute("z"), parent=inner, child=tool, at=(a, 0, 0), child_at=(-b, 0, 0)
    )
    bot.add_motor("shoulder", "one")
    bot.add_motor("elbow", "two", limit=5.0)
    bot.set_home({"one": 0.3, "two": 1.2})
    return ax.Kinematics(bot, "tool")
