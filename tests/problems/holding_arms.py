"""Arms that hold a load, made for any number of arms, joints and bases."""

import numpy as np

import axode as ax

AXES = ("z", "y", "y", "x", "y", "x")
LENGTHS = (0.3, 0.45, 0.4, 0.12, 0.1, 0.08)
BENT = (0.2, 0.6, 0.9, 0.3, -0.5, 0.4)


def holding_arms(
    count=2, grasp=None, tree=False, base="ground", shift=(0.0, 0.0, 0.0), turn=(0.1, -0.2, 0.3)
):
    """Spatial arms of six revolutes around a load.

    Args:
        count: Number of arms.
        grasp: Joint of every grasp, Fixed unless given.
        tree: Whether the first grasp is a joint of the tree; else the load floats.
        base: "ground", or "cart" for arms on a vehicle.
        shift: Origin of the load's frame from its mass centre.
        turn: Orientation of the load at home.
    """
    grasp = grasp or ax.Fixed()
    bot, tips = _arms(count, base)
    model = bot.derive(self_check=False).compile("interpreter")
    poses = dict(zip(model.bodies, model.poses(model.home), strict=True))
    centre = np.mean([poses[tip][:3, 3] for tip in tips], axis=0) + np.array([0.02, -0.01, 0.05])
    T = np.eye(4)
    T[:3, :3] = rotation(turn)
    T[:3, 3] = centre + T[:3, :3] @ shift
    bot.add_body("load", mass=4.0, com=tuple(-np.array(shift)), inertia=(0.05, 0.08, 0.06))
    if not tree:
        bot.add_joint("load", ax.Floating(), parent="ground", child="load")
        q = quaternion(T[:3, :3])
        names = ("qw", "qx", "qy", "qz", "x", "y", "z")
        bot.set_home(dict(zip((f"load.{n}" for n in names), [*q, *T[:3, 3]], strict=True)))
    for k, tip in enumerate(tips):
        inward = np.linalg.inv(T) @ poses[tip]
        add = bot.add_joint if tree and k == 0 else bot.add_loop
        ends = {"parent": tip, "child": "load"} if add == bot.add_joint else {}
        ends = ends or {"parent": "load", "child": tip}
        flip = np.linalg.inv(inward) if ends["parent"] == tip else inward
        add(f"grip{k + 1}", grasp, **ends, **_frames(flip, point_in_tip=ends["parent"] == tip))
    return bot


def _frames(T, *, point_in_tip):
    """Frames of a joint at the tip's origin: placed in the parent, the child's own or not."""
    if point_in_tip:  # parent is the tip: the joint stands at its origin
        back = np.linalg.inv(T)
        return {"child_at": tuple(back[:3, 3]), "child_rotation": back[:3, :3].tolist()}
    return {"at": tuple(T[:3, 3]), "rotation": T[:3, :3].tolist()}


def _arms(count, base):
    bot = ax.Mechanism("holding_arms")
    holder = "ground"
    if base == "cart":
        bot.add_body("cart", mass=60.0, inertia=(4.0, 5.0, 6.0))
        bot.add_joint("base", ax.Planar(), parent="ground", child="cart", at=(0, 0, 0.1))
        for name, y in (("left", 0.4), ("right", -0.4)):
            bot.add_wheel(
                name,
                ax.Rolling(0.1),
                on="cart",
                at=(0, y, 0),
                mass=1.0,
                inertia=(0.004, 0.005, 0.004),
                motor=True,
            )
        holder = "cart"
    tips = []
    for k in range(count):
        angle = 2 * np.pi * k / count
        parent, at = holder, (0.7 * np.cos(angle), 0.7 * np.sin(angle), 0.2)
        for i, (axis, length) in enumerate(zip(AXES, LENGTHS, strict=True)):
            name = f"link{k + 1}{i + 1}"
            bot.add_body(
                name, mass=2.0 - 0.3 * i, com=(0, 0, length / 2), inertia=(0.01, 0.01, 0.004)
            )
            bot.add_joint(
                f"joint{k + 1}{i + 1}",
                ax.Revolute(axis),
                parent=parent,
                child=name,
                at=at,
                rotation=(0, 0, angle + np.pi) if i == 0 else (0, 0, 0),
            )
            bot.add_motor(f"motor{k + 1}{i + 1}", f"joint{k + 1}{i + 1}")
            bot.set_home({f"joint{k + 1}{i + 1}": BENT[i] + 0.1 * k * (i % 2)})
            parent, at = name, (0, 0, length)
        tips.append(parent)
    return bot, tips


def rotation(angles):
    """Rotation of roll, pitch and yaw about fixed axes."""
    r, p, y = angles
    x = np.array([[1, 0, 0], [0, np.cos(r), -np.sin(r)], [0, np.sin(r), np.cos(r)]])
    m = np.array([[np.cos(p), 0, np.sin(p)], [0, 1, 0], [-np.sin(p), 0, np.cos(p)]])
    z = np.array([[np.cos(y), -np.sin(y), 0], [np.sin(y), np.cos(y), 0], [0, 0, 1]])
    return z @ m @ x


def quaternion(R):
    """Unit quaternion of a turn by less than half a circle."""
    w = np.sqrt(1 + np.trace(R)) / 2
    return [w, *(np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / (4 * w))]
