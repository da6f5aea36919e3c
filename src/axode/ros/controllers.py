r"""Parameters of ros2_controllers for robots with two driven wheels.

Rolling gives the exact map from the rates of the driven wheels to the velocity of the base,

.. math:: \begin{pmatrix} v \\ \omega \end{pmatrix} = \frac{1}{2 s}
          \begin{pmatrix} s r_l & s r_r \\ -2 r_l & 2 r_r \end{pmatrix}
          \begin{pmatrix} \omega_l \\ \omega_r \end{pmatrix},

from which the effective radii and the effective separation s follow, whatever the description says:
with leaning or unequal wheels they differ from it, and the multipliers are their ratios.
"""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from axode.errors import NotApplicable, PlausibilityWarning, level_outside
from axode.mechanism.elements.bodies import GROUND
from axode.mechanism.topology import coordinate_of
from axode.mechanism.values.expressions import numeric
from axode.model.model import Model
from axode.numerics.rank import pseudo_inverse
from axode.numerics.tolerances import NOTICEABLE, RANK, SEVEN_DIGITS
from axode.problems.arguments import require_model

Array = npt.NDArray[np.float64]
RATE = 50  # [Hz] of controllers and odometry
MOST_ASIDE = 1e-2  # of the separation: how far the base's frame may stand beside the middle


@dataclass(frozen=True)
class DifferentialDrive:
    """What a differential-drive controller has to know about a robot.

    Attributes:
        base: Name of the base body.
        left, right: Names of the joints of the driven wheels.
        separation: Distance of the wheels' centres across the base [m].
        radius: Radius of the left wheel as described [m].
        separation_multiplier: Effective by described separation.
        left_multiplier, right_multiplier: Effective radii by `radius`.
        ahead: How far the base's frame is ahead of the axle [m].
        aside: How far it is to the left of the middle of the wheels [m]; odometry is of the middle.
    """

    base: str
    left: str
    right: str
    separation: float
    radius: float
    separation_multiplier: float
    left_multiplier: float
    right_multiplier: float
    ahead: float
    aside: float = 0.0


def base_of(model: Model) -> str:
    """Return the name of the body that moves about on the ground.

    Raises:
        NotApplicable: if there is none, or several.
    """
    joints = model.equations.system.mechanism.connections
    found = [c.child for c in joints if c.parent == GROUND.name and c.joint.carries_base]
    if len(found) != 1:
        raise NotApplicable(
            f"'{model.name}' has {len(found) or 'no'} moving base"
            f"{'s' if len(found) > 1 else ''}; robots on wheels have one, joined to the ground by "
            'Floating or Planar: of a URDF file, ax.load(..., base="floating")'
        )
    return found[0]


def base_velocities(model: Model) -> Array:
    """Return surge, sway and yaw rate of the base for unit independent speeds at home, (3, n)."""
    n = len(model.independent)
    q, unit = np.tile(model.home, (n, 1)), np.eye(n)
    k = model.bodies.index(base_of(model))
    change = model.jvp("poses", {"q": model.rates(q, unit)}, q)[:, k]
    R = model.poses(q)[:, k, :3, :3].swapaxes(-1, -2)
    turn, move = R @ change[:, :3, :3], (R @ change[:, :3, 3:])[..., 0]
    return np.stack([move[:, 0], move[:, 1], turn[:, 1, 0]])


def differential_drive(model: Model) -> DifferentialDrive:
    """Find separation, radii and multipliers of two driven wheels from the rolling of the model.

    Args:
        model: A robot with two driven wheels, and free or swivelling ones.

    Raises:
        NotApplicable: for other robots, with what they have.

    Warns:
        PlausibilityWarning: if the base's frame is beside the middle of the wheels by more than a
            thousandth of their separation. Less is taken for rounded numbers.
    """
    require_model("differential_drive", model)
    mechanism, base = model.equations.system.mechanism, base_of(model)
    joints = {c.child: c for c in mechanism.connections}
    driven = {coordinate_of(mechanism, drive.coordinate) for drive in mechanism.drives}
    wheels = [
        (c, joints[c.body])
        for c in mechanism.contacts
        if c.body in joints and driven & set(joints[c.body].coordinates)
    ]
    if len(wheels) != 2:
        listed = ", ".join(joint.name for _, joint in wheels) or "none"
        raise NotApplicable(
            f"diff_drive_controller: '{model.name}' needs two driven wheels, and has {listed}"
        )
    poses = model.poses(model.home)
    frame = poses[model.bodies.index(base)]
    centres = np.array([poses[model.bodies.index(c.body)][:3, 3] for c, _ in wheels])
    places = (centres - frame[:3, 3]) @ frame[:3, :3]  # in the base's axes
    order = np.argsort(-places[:, 1])  # left first
    (contact, left), (_, right) = (wheels[k] for k in order)
    n = len(model.independent)
    rates = model.joint_speeds(np.tile(model.home, (n, 1)), np.eye(n)).T
    W = rates[[model.speed_names.index(joint.speeds[0]) for joint in (left, right)]]
    forward = base_velocities(model)
    F = forward @ pseudo_inverse(W, tolerance=RANK)
    if np.abs(F @ W - forward).max() > SEVEN_DIGITS * np.abs(forward).max():
        raise NotApplicable(
            f"diff_drive_controller: the wheels '{left.name}' and '{right.name}' alone do not "
            f"determine how '{model.name}' moves; its independent speeds are "
            f"{', '.join(model.independent)}"
        )
    forwards = np.sign(F[2] * [-1, 1])  # a joint that turns the other way
    if forwards[0] != forwards[1] or not F[2].all():
        raise NotApplicable(
            f"diff_drive_controller: '{left.name}' and '{right.name}' turn in opposite senses when "
            f"'{model.name}' drives straight on; turn one of their axes round"
        )
    F = F * forwards[0]
    to_right, to_left = F[0, 0] / -F[2, 0], F[0, 1] / F[2, 1]
    separation, aside = to_right + to_left, (to_right - to_left) / 2
    if abs(aside) > NOTICEABLE * separation:
        where = (
            f"diff_drive_controller: '{base}' stands {abs(aside):.4g} m beside the middle of its "
            "two driven wheels, which the controller takes it to be: "
            f"{abs(aside) / separation:.2g} of their separation"
        )
        if abs(aside) > MOST_ASIDE * separation:
            raise NotApplicable(where)
        warnings.warn(where, PlausibilityWarning, level_outside())
    described = float(abs(places[0, 1] - places[1, 1]))
    radius = numeric(contact.wheel.radius)
    return DifferentialDrive(
        base,
        left.name,
        right.name,
        described,
        radius,
        float(separation / described),
        float(-F[2, 0] * separation / radius),
        float(F[2, 1] * separation / radius),
        float(F[1] @ [-1, 1] / (F[2] @ [-1, 1])),
        float(aside),
    )


def controllers(model: Model) -> str:
    """Write the parameters of a controller manager with a differential-drive controller as YAML.

    Args:
        model: A robot with two driven wheels.

    Raises:
        NotApplicable: for other robots.
    """
    drive = differential_drive(model)
    lines = [
        "controller_manager:",
        "  ros__parameters:",
        f"    update_rate: {RATE}",
        "    joint_state_broadcaster:",
        "      type: joint_state_broadcaster/JointStateBroadcaster",
        "    diff_drive_controller:",
        "      type: diff_drive_controller/DiffDriveController",
        "",
        "diff_drive_controller:",
        "  ros__parameters:",
    ]
    if abs(drive.ahead) > SEVEN_DIGITS * drive.separation:
        lines.append(
            f"    # odometry is that of the middle of the axle, {abs(drive.ahead):.6g} m "
            f"{'behind' if drive.ahead > 0 else 'ahead of'} the frame"
        )
    if abs(drive.aside) > SEVEN_DIGITS * drive.separation:
        lines.append(
            f"    # odometry is that of the middle of the wheels, {abs(drive.aside):.3g} m to the "
            f"{'right' if drive.aside > 0 else 'left'} of the frame"
        )
    lines += [
        f"    left_wheel_names: [{json.dumps(drive.left)}]",
        f"    right_wheel_names: [{json.dumps(drive.right)}]",
        f"    wheel_separation: {real(drive.separation)}",
        f"    wheel_radius: {real(drive.radius)}",
        f"    wheel_separation_multiplier: {real(drive.separation_multiplier)}",
        f"    left_wheel_radius_multiplier: {real(drive.left_multiplier)}",
        f"    right_wheel_radius_multiplier: {real(drive.right_multiplier)}",
        f"    base_frame_id: {json.dumps(drive.base)}",
        '    odom_frame_id: "odom"',
        f"    publish_rate: {real(RATE)}",
    ]
    return "\n".join(lines) + "\n"


def real(value: float) -> str:
    """Return a number as ROS reads a double: with a point."""
    text = f"{float(value):.9g}"
    return text if any(c in text for c in ".en") else text + ".0"
