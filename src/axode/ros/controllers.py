r"""Parameters of ros2_controllers for robots on wheels.

Rolling gives the exact map from the rates of the driven wheels to the velocity of the base, for two
wheels

.. math:: \begin{pmatrix} v \\ \omega \end{pmatrix} = \frac{1}{2 s}
          \begin{pmatrix} s r_l & s r_r \\ -2 r_l & 2 r_r \end{pmatrix}
          \begin{pmatrix} \omega_l \\ \omega_r \end{pmatrix},

from which the effective radii and the effective separation s follow, whatever the description says:
with leaning or unequal wheels they differ from it, and the multipliers are their ratios. Robots
that skid have several wheels per side, which turn alike. Parameters of other controllers are fitted
to the map in the same way, and robots that these do not describe are refused.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from axode.errors import NotApplicable, PlausibilityWarning, level_outside
from axode.mechanism.elements.bodies import GROUND
from axode.mechanism.elements.parts import Connection
from axode.mechanism.elements.wheels import Contact
from axode.mechanism.mechanism import Mechanism
from axode.mechanism.topology import coordinate_of
from axode.mechanism.values.expressions import numeric
from axode.model.model import Model
from axode.numerics.rank import least_squares, pseudo_inverse
from axode.numerics.tolerances import NOTICEABLE, RANK, SEVEN_DIGITS
from axode.problems.arguments import require_model
from axode.problems.assemble.assemble import assemble


@dataclass(frozen=True)
class DrivenWheel:
    """A wheel that a motor turns, or may turn where a file gives no motors.

    Attributes:
        contact: The wheel on the ground.
        joint: The joint about which it rolls.
        steering: Joint that turns its axle, if a motor does so.
    """

    contact: Contact
    joint: Connection
    steering: Connection | None = None

    @property
    def is_disk(self) -> bool:
        """Return whether it rolls as a disk that holds its side, which may be let slide."""
        return self.contact.wheel.picture == "disk"

    @property
    def has_cross_rollers(self) -> bool:
        """Return whether it is an omni wheel."""
        wheel = self.contact.wheel
        return wheel.picture == "rollers" and not self.has_oblique_rollers

    @property
    def has_oblique_rollers(self) -> bool:
        """Return whether it is a Mecanum wheel."""
        return self.contact.wheel.rolling_rows == ("roller",)


def rolling_model(verb: str, given: Model) -> Model:
    """Return the model itself, or of wheels with friction the one that rolls without slipping.

    Raises:
        InvalidArgument: for anything else.
    """
    require_model(verb, given, contacts=True)
    mechanism = given.equations.system.mechanism
    return mechanism.ideal().derive().compile() if mechanism.contact_parts else given


def skidding_model(model: Model) -> Model:
    """Return the model whose driven wheels slide sideways, as those of a robot that skids do."""
    mechanism = model.equations.system.mechanism.copy()
    for wheel in driven_wheels(mechanism):
        if wheel.is_disk:
            slides: dict[str, Any] = {"lateral": "free"}
            name, old = wheel.contact.name, wheel.contact.wheel
            mechanism.change_contact(name, wheel=replace(old, **slides))
    return mechanism.derive().compile()


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


def driven_wheels(mechanism: Mechanism) -> list[DrivenWheel]:
    """Find wheels whose joints have motors; of a mechanism without motors, all that roll.

    Files of robots often have no motors. Then wheels on an axle of their own count, and casters,
    whose fork turns too, do not.
    """
    joints = {c.child: c for c in mechanism.connections}
    driven = {coordinate_of(mechanism, drive.coordinate) for drive in mechanism.drives}
    found = []
    for contact in mechanism.contacts:
        joint = joints.get(contact.body)
        if joint is None or not _turns(joint):
            continue
        fork = joints.get(joint.parent)
        fork = fork if fork is not None and _turns(fork) else None
        if driven & set(joint.coordinates):
            steered = fork is not None and driven & set(fork.coordinates)
            found.append(DrivenWheel(contact, joint, fork if steered else None))
        elif not mechanism.drives and fork is None:
            found.append(DrivenWheel(contact, joint))
    return found


def _turns(joint: Connection) -> bool:
    """Return whether a joint has one coordinate, an angle."""
    return joint.joint.coordinate_units == ("rad",)


def base_velocities(model: Model, q: Array | None = None) -> Array:
    """Return surge, sway and yaw rate of the base for unit independent speeds, (3, n).

    Args:
        model: The robot.
        q: Configuration; home unless given.
    """
    n = len(model.independent)
    at, unit = np.tile(model.home if q is None else q, (n, 1)), np.eye(n)
    k = model.bodies.index(base_of(model))
    change = model.jvp("poses", {"q": model.rates(at, unit)}, at)[:, k]
    R = model.poses(at)[:, k, :3, :3].swapaxes(-1, -2)
    turn, move = R @ change[:, :3, :3], (R @ change[:, :3, 3:])[..., 0]
    return np.stack([move[:, 0], move[:, 1], turn[:, 1, 0]])


def joint_rates(model: Model, joints: list[Connection], q: Array | None = None) -> Array:
    """Return rates of some joints for unit independent speeds, (joint, n)."""
    n = len(model.independent)
    at = np.tile(model.home if q is None else q, (n, 1))
    rates = model.joint_speeds(at, np.eye(n)).T
    return rates[[model.speed_names.index(joint.speeds[0]) for joint in joints]]


def map_from(rates: Array, to: Array) -> Array | None:
    """Return the matrix by which some rates determine others, None where they do not."""
    made = to @ pseudo_inverse(rates, tolerance=RANK)
    follows = np.abs(made @ rates - to).max() <= SEVEN_DIGITS * np.abs(to).max()
    return made if follows else None


def places_of(model: Model, wheels: list[DrivenWheel]) -> Array:
    """Return where the centres of wheels are at home, in the axes of the base, (wheel, 3)."""
    poses = model.poses(model.home)
    frame = poses[model.bodies.index(base_of(model))]
    centres = [poses[model.bodies.index(w.contact.body)][:3, 3] for w in wheels]
    return (np.array(centres).reshape(-1, 3) - frame[:3, 3]) @ frame[:3, :3]


Array = npt.NDArray[np.float64]
RATE = 50  # [Hz] of controllers and odometry
MOST_ASIDE = 1e-2  # of the separation: how far the base's frame may stand beside the middle
ANGLES = (-0.5, -0.2, 0.2, 0.5)  # [rad] of steering, at which a tricycle is looked at
POSSIBLE = (
    "there are controllers for two driven wheels, for several per side that skid "
    "(diff_drive_controller), for four Mecanum wheels (mecanum_drive_controller), for omni wheels "
    "around the middle (omni_wheel_drive_controller) and for one wheel that is driven and steered "
    "(tricycle_controller)"
)


@dataclass(frozen=True)
class DifferentialDrive:
    """What a differential-drive controller has to know about a robot.

    Attributes:
        base: Name of the base body.
        left, right: Names of the joints of the driven wheels, the foremost of each side.
        separation: Distance of the wheels' centres across the base [m].
        radius: Radius of the left wheel as described [m].
        separation_multiplier: Effective by described separation.
        left_multiplier, right_multiplier: Effective radii by `radius`.
        ahead: How far the base's frame is ahead of the axle [m]; of robots that skid, ahead of the
            middle of their axles.
        aside: How far it is to the left of the middle of the wheels [m]; odometry is of the middle.
        left_joints, right_joints: Joints of all driven wheels of each side, from front to back.
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
    left_joints: tuple[str, ...] = ()
    right_joints: tuple[str, ...] = ()

    @property
    def skids(self) -> bool:
        """Return whether wheels have to slide sideways where the robot turns."""
        return len(self.left_joints) + len(self.right_joints) > 2


@dataclass(frozen=True)
class MecanumDrive:
    """What a controller of four Mecanum wheels has to know about a robot.

    Attributes:
        base: Name of the base body.
        front_left, front_right, rear_right, rear_left: Names of the joints of the wheels.
        radius: Effective radius [m].
        reach: Distances of the wheels from the middle along and across the base, added up [m].
        offset: Where the base's frame is as seen from the middle of the wheels, x and y [m].
    """

    base: str
    front_left: str
    front_right: str
    rear_right: str
    rear_left: str
    radius: float
    reach: float
    offset: tuple[float, float]


@dataclass(frozen=True)
class OmniDrive:
    """What a controller of omni wheels around the middle has to know about a robot.

    Attributes:
        base: Name of the base body, whose frame stands in the middle.
        joints: Names of the joints of the wheels, anticlockwise as seen from above.
        radius: Effective radius of the wheels [m].
        reach: Distance of the wheels from the middle [m].
        offset: Angle from x of the base to the first wheel [rad].
    """

    base: str
    joints: tuple[str, ...]
    radius: float
    reach: float
    offset: float


@dataclass(frozen=True)
class TricycleDrive:
    """What a controller of one wheel that is driven and steered has to know about a robot.

    Attributes:
        base: Name of the base body.
        traction, steering: Names of the joints that roll and steer the wheel.
        radius: Effective radius [m].
        wheelbase: From the axle that does not steer to the wheel [m].
        ahead: How far the base's frame is ahead of that axle [m].
    """

    base: str
    traction: str
    steering: str
    radius: float
    wheelbase: float
    ahead: float


Drive = TypeVar("Drive", DifferentialDrive, MecanumDrive, OmniDrive, TricycleDrive)
DECIMALS = 12  # of lengths in metres, multipliers and angles: the rest is rounding


def differential_drive(model: Model) -> DifferentialDrive:
    """Find separation, radii and multipliers of driven wheels from the rolling of the model.

    Args:
        model: A robot with two driven wheels and free or swivelling ones, or with several driven
            wheels per side that turn together. Wheels with friction are taken to roll.

    Raises:
        NotApplicable: for other robots, with what they have.

    Warns:
        PlausibilityWarning: if the base's frame is beside the middle of the wheels by more than a
            thousandth of their separation. Less is taken for rounded numbers.
    """
    model = rolling_model("differential_drive", model)
    base = base_of(model)
    wheels = driven_wheels(model.equations.system.mechanism)
    rolling = all(w.is_disk and not w.steering for w in wheels)
    if len(wheels) < 2 or (len(wheels) > 2 and not rolling):
        raise _refused("diff_drive_controller", model, wheels, "needs two driven wheels")
    skids = len(wheels) > 2
    if skids:
        model = skidding_model(model)
    places = places_of(model, wheels)
    sides = _sides(model, wheels, places)
    (left, left_place), (right, right_place) = (
        ([wheels[k] for k in side], places[side].mean(axis=0)) for side in sides
    )
    W = np.stack([_common_rate(model, side) for side in (left, right)])
    forward = base_velocities(model)
    F = map_from(W, forward[[0, 2]] if skids else forward)
    if F is None:
        raise NotApplicable(
            f"diff_drive_controller: the wheels '{left[0].joint.name}' and '{right[0].joint.name}' "
            f"alone do not determine how '{model.name}' moves; its independent speeds are "
            f"{', '.join(model.independent)}"
        )
    if skids:  # sideways it slides: the middle of the axles is what goes straight on
        middle = 0.5 * (left_place + right_place)
        F = np.stack([F[0], -middle[0] * F[1], F[1]])
    forwards = np.sign(F[2] * [-1, 1])  # a joint that turns the other way
    if forwards[0] != forwards[1] or not F[2].all():
        raise NotApplicable(
            f"diff_drive_controller: '{left[0].joint.name}' and '{right[0].joint.name}' turn in "
            f"opposite senses when '{model.name}' drives straight on; turn one of their axes round"
        )
    F = F * forwards[0]
    to_right, to_left = F[0, 0] / -F[2, 0], F[0, 1] / F[2, 1]
    separation, aside = to_right + to_left, (to_right - to_left) / 2
    if abs(aside) > NOTICEABLE * separation:
        where = (
            f"diff_drive_controller: '{base}' stands {abs(aside):.4g} m beside the middle of its "
            "driven wheels, which the controller takes it to be: "
            f"{abs(aside) / separation:.2g} of their separation"
        )
        if abs(aside) > MOST_ASIDE * separation:
            raise NotApplicable(where)
        warnings.warn(where, PlausibilityWarning, level_outside())
    described = float(abs(left_place[1] - right_place[1]))
    radius = numeric(left[0].contact.wheel.radius)
    return _significant(
        DifferentialDrive(
            base,
            left[0].joint.name,
            right[0].joint.name,
            described,
            radius,
            float(separation / described),
            float(-F[2, 0] * separation / radius),
            float(F[2, 1] * separation / radius),
            float(F[1] @ [-1, 1] / (F[2] @ [-1, 1])),
            float(aside),
            tuple(wheel.joint.name for wheel in left),
            tuple(wheel.joint.name for wheel in right),
        )
    )


def mecanum_drive(model: Model) -> MecanumDrive:
    """Find the radius and the distances of four Mecanum wheels from the rolling of the model.

    Args:
        model: A robot with four driven Mecanum wheels. Wheels with friction are taken to roll.

    Raises:
        NotApplicable: for other robots, and where no radius and no distances describe how the
            wheels move the base, as with rollers that are not at 45 degrees.
    """
    model = rolling_model("mecanum_drive", model)
    base, name = base_of(model), "mecanum_drive_controller"
    wheels = driven_wheels(model.equations.system.mechanism)
    if len(wheels) != 4 or not all(w.has_oblique_rollers for w in wheels):
        raise _refused(name, model, wheels, "needs four driven Mecanum wheels")
    places = places_of(model, wheels)
    left, right = (side.tolist() for side in _sides(model, wheels, places))
    if len(left) != 2 or len(right) != 2:
        raise _refused(name, model, wheels, "needs two wheels on each side")
    (fl, rl), (fr, rr) = left, right
    joints = [wheels[k].joint for k in (fl, fr, rr, rl)]
    W, (surge, sway, turn) = joint_rates(model, joints), base_velocities(model)
    along, across, round_ = 0.25 * np.array([[1, 1, 1, 1], [-1, 1, -1, 1], [-1, 1, 1, -1]]) @ W
    zero = np.zeros_like(turn)
    # surge = r along - y turn, sway = r across + x turn, turn = (r / reach) round
    A = np.stack([[along, -turn, zero], [across, zero, turn]]).swapaxes(0, 1).reshape(3, -1).T
    radius, y, x = least_squares(A, np.concatenate([surge, sway]))
    slope = float(round_ @ turn / (round_ @ round_)) if round_.any() else 0.0
    off = np.concatenate(
        [A @ [radius, y, x] - np.concatenate([surge, sway]), slope * round_ - turn]
    )
    if not (radius > 0 and slope > 0) or np.abs(off).max() > SEVEN_DIGITS * np.abs(turn).max():
        raise NotApplicable(
            f"{name}: no radius and no distances of '{joints[0].name}', '{joints[1].name}', "
            f"'{joints[2].name}' and '{joints[3].name}' describe how '{model.name}' moves; the "
            "controller takes equal wheels with rollers at 45 degrees, along the diagonals as seen "
            "from above, whose positive rates drive forwards"
        )
    fl_name, fr_name, rr_name, rl_name = (joint.name for joint in joints)
    return _significant(
        MecanumDrive(
            base=base,
            front_left=fl_name,
            front_right=fr_name,
            rear_right=rr_name,
            rear_left=rl_name,
            radius=float(radius),
            reach=float(radius / slope),
            offset=(float(x), float(y)),
        )
    )


def omni_drive(model: Model) -> OmniDrive:
    """Find radius, distance and angle of omni wheels around the middle from the model's rolling.

    Args:
        model: A robot with three or more driven omni wheels at equal angles. Wheels with friction
            are taken to roll.

    Raises:
        NotApplicable: for other robots, and where no such numbers describe how the wheels move the
            base.
    """
    model = rolling_model("omni_drive", model)
    base, name = base_of(model), "omni_wheel_drive_controller"
    wheels = driven_wheels(model.equations.system.mechanism)
    if len(wheels) < 3 or not all(w.has_cross_rollers for w in wheels):
        raise _refused(name, model, wheels, "needs three or more driven omni wheels")
    places = places_of(model, wheels)
    angles = np.arctan2(places[:, 1], places[:, 0]) % (2 * np.pi)
    angles = np.where(angles > 2 * np.pi - SEVEN_DIGITS, 0.0, angles)
    order = np.argsort(angles)
    joints = [wheels[k].joint for k in order]
    offset = float(angles[order[0]])
    W, (surge, sway, turn) = joint_rates(model, joints), base_velocities(model)
    around = (offset + 2 * np.pi * np.arange(len(joints)) / len(joints))[:, np.newaxis]
    # radius rate = sin(angle) surge - cos(angle) sway - reach turn
    along = (np.sin(around) * surge - np.cos(around) * sway).ravel()
    A = np.stack([W.ravel(), np.tile(turn, len(joints))], axis=1)
    radius, reach = least_squares(A, along)
    off = np.abs(A @ [radius, reach] - along).max()
    if not (radius > 0 and reach > 0) or off > SEVEN_DIGITS * np.abs(along).max():
        raise NotApplicable(
            f"{name}: no radius and no distance of {', '.join(joint.name for joint in joints)} "
            f"describe how '{model.name}' moves; the controller takes equal wheels at equal angles "
            "around the base's frame, whose positive rates turn the base clockwise as seen from "
            "above"
        )
    names = tuple(joint.name for joint in joints)
    return _significant(OmniDrive(base, names, float(radius), float(reach), offset))


def tricycle_drive(model: Model) -> TricycleDrive:
    """Find the radius and the wheelbase of a wheel that drives and steers from the model's rolling.

    Args:
        model: A robot with one driven wheel, whose fork a motor turns. Wheels with friction are
            taken to roll.

    Raises:
        NotApplicable: for other robots, and where no radius and no wheelbase describe how the wheel
            moves the base, as with a wheel beside its steering axis.
    """
    model = rolling_model("tricycle_drive", model)
    base, name = base_of(model), "tricycle_controller"
    wheels = driven_wheels(model.equations.system.mechanism)
    if len(wheels) != 1 or wheels[0].steering is None:
        raise _refused(name, model, wheels, "needs one wheel that is driven and steered")
    wheel, steering = wheels[0].joint, wheels[0].steering
    rows = []
    for angle in ANGLES:
        q = assemble(model, {steering.coordinates[0]: angle}).q
        F = map_from(joint_rates(model, [wheel, steering], q), base_velocities(model, q))
        if F is None:
            raise NotApplicable(
                f"{name}: '{wheel.name}' and '{steering.name}' alone do not determine how "
                f"'{model.name}' moves; its independent speeds are {', '.join(model.independent)}"
            )
        rows.append(F)
    a, F = np.array(ANGLES), np.array(rows)
    radius = float(F[:, 0, 0] @ np.cos(a) / (np.cos(a) @ np.cos(a)))
    curving = float(F[:, 2, 0] @ np.sin(a) / (np.sin(a) @ np.sin(a)))  # radius by wheelbase
    ahead = float(F[:, 1, 0] @ F[:, 2, 0] / (F[:, 2, 0] @ F[:, 2, 0])) if curving else 0.0
    fitted = np.stack([radius * np.cos(a), ahead * curving * np.sin(a), curving * np.sin(a)], 1)
    off = np.abs(F - np.stack([fitted, np.zeros_like(fitted)], 2)).max()
    if not (radius > 0 and curving > 0) or off > SEVEN_DIGITS * radius:
        raise NotApplicable(
            f"{name}: no radius and no wheelbase describe how '{wheel.name}' and '{steering.name}' "
            f"move '{model.name}'; the controller takes a front wheel that stands under its "
            "steering axis, which points upwards, and whose positive rate drives forwards"
        )
    return _significant(
        TricycleDrive(base, wheel.name, steering.name, radius, radius / curving, ahead)
    )


def controllers(model: Model) -> str:
    """Write the parameters of a controller manager with the controller of the wheels as YAML.

    Args:
        model: A robot with two driven wheels, several per side that skid, four Mecanum wheels, omni
            wheels around the middle, or one wheel that is driven and steered.

    Raises:
        NotApplicable: for other robots.
    """
    ideal = rolling_model("controllers", model)
    base_of(ideal)
    wheels = driven_wheels(ideal.equations.system.mechanism)
    if len(wheels) == 1 and wheels[0].steering is not None:
        return _tricycle_yaml(tricycle_drive(ideal))
    if len(wheels) == 4 and all(w.has_oblique_rollers for w in wheels):
        return _mecanum_yaml(mecanum_drive(ideal))
    if wheels and all(w.has_cross_rollers for w in wheels):
        return _omni_yaml(omni_drive(ideal))
    return _differential_yaml(differential_drive(ideal))


def _refused(
    controller: str, model: Model, wheels: Sequence[DrivenWheel], needed: str
) -> NotApplicable:
    listed = ", ".join(
        f"{w.joint.name} ({type(w.contact.wheel).__name__}{', steered' if w.steering else ''})"
        for w in wheels
    )
    return NotApplicable(
        f"{controller}: '{model.name}' {needed}, and has {listed or 'none'}; {POSSIBLE}.\n"
        "  A wheel is driven if add_motor names its joint"
    )


def _sides(model: Model, wheels: Sequence[DrivenWheel], places: Array) -> tuple[Array, Array]:
    """Return the wheels on the left and on the right, from front to back."""
    middle = 0.5 * (places[:, 1].max() + places[:, 1].min())
    order = np.argsort(-places[:, 0], kind="stable")
    left = np.array([k for k in order if places[k, 1] > middle], dtype=int)
    right = np.array([k for k in order if places[k, 1] < middle], dtype=int)
    if not (len(left) and len(right) and len(left) + len(right) == len(wheels)):
        raise _refused("controllers", model, wheels, "needs driven wheels left and right of x")
    return left, right


def _common_rate(model: Model, side: Sequence[DrivenWheel]) -> Array:
    """Return the rate of the wheels of one side for unit independent speeds."""
    rates = joint_rates(model, [wheel.joint for wheel in side])
    mean = np.asarray(rates.mean(axis=0))
    if np.abs(rates - mean).max() > NOTICEABLE * np.abs(mean).max():
        names = ", ".join(f"'{wheel.joint.name}'" for wheel in side)
        raise NotApplicable(
            f"diff_drive_controller: {names} of '{model.name}' turn at different rates where it "
            "drives or turns, and the controller gives all wheels of a side the same; make their "
            "radii and their distances from the middle equal, or drive one of them"
        )
    return mean


def _manager(controller: str, kind: str) -> list[str]:
    return [
        "controller_manager:",
        "  ros__parameters:",
        f"    update_rate: {RATE}",
        "    joint_state_broadcaster:",
        "      type: joint_state_broadcaster/JointStateBroadcaster",
        f"    {controller}:",
        f"      type: {controller}/{kind}",
        "",
        f"{controller}:",
        "  ros__parameters:",
    ]


def _differential_yaml(drive: DifferentialDrive) -> str:
    lines = _manager("diff_drive_controller", "DiffDriveController")
    lines += _off_frame("wheels" if drive.skids else "axle", drive.ahead, drive.separation)
    if abs(drive.aside) > SEVEN_DIGITS * drive.separation:
        lines.append(
            f"    # odometry is that of the middle of the wheels, {abs(drive.aside):.3g} m to the "
            f"{'right' if drive.aside > 0 else 'left'} of the frame"
        )
    if drive.skids:
        lines.append(
            "    # wheels slide sideways in turns: measure wheel_separation_multiplier on the "
            "floor, it is above this"
        )
    lines += [
        f"    left_wheel_names: {json.dumps(drive.left_joints)}",
        f"    right_wheel_names: {json.dumps(drive.right_joints)}",
        f"    wheel_separation: {real(drive.separation)}",
        f"    wheel_radius: {real(drive.radius)}",
        f"    wheel_separation_multiplier: {real(drive.separation_multiplier)}",
        f"    left_wheel_radius_multiplier: {real(drive.left_multiplier)}",
        f"    right_wheel_radius_multiplier: {real(drive.right_multiplier)}",
        *_frames(drive.base),
        f"    publish_rate: {real(RATE)}",
    ]
    return "\n".join(lines) + "\n"


def _mecanum_yaml(drive: MecanumDrive) -> str:
    x, y = (v if abs(v) > SEVEN_DIGITS * drive.reach else 0.0 for v in drive.offset)
    lines = _manager("mecanum_drive_controller", "MecanumDriveController")
    lines += [
        f"    {place}_wheel_command_joint_name: {json.dumps(getattr(drive, place))}"
        for place in ("front_left", "front_right", "rear_right", "rear_left")
    ]
    lines += [
        "    kinematics:",
        f"      base_frame_offset: {{x: {real(x)}, y: {real(y)}, theta: 0.0}}",
        f"      wheels_radius: {real(drive.radius)}",
        f"      sum_of_robot_center_projection_on_X_Y_axis: {real(drive.reach)}",
        *_frames(drive.base),
    ]
    return "\n".join(lines) + "\n"


def _omni_yaml(drive: OmniDrive) -> str:
    lines = _manager("omni_wheel_drive_controller", "OmniWheelDriveController")
    lines += [
        f"    wheel_names: {json.dumps(drive.joints)}",
        f"    wheel_offset: {real(drive.offset)}",
        f"    robot_radius: {real(drive.reach)}",
        f"    wheel_radius: {real(drive.radius)}",
        *_frames(drive.base),
    ]
    return "\n".join(lines) + "\n"


def _tricycle_yaml(drive: TricycleDrive) -> str:
    lines = _manager("tricycle_controller", "TricycleController")
    lines += [
        *_off_frame("fixed axle", drive.ahead, drive.wheelbase),
        f"    traction_joint_name: {json.dumps(drive.traction)}",
        f"    steering_joint_name: {json.dumps(drive.steering)}",
        f"    wheelbase: {real(drive.wheelbase)}",
        f"    wheel_radius: {real(drive.radius)}",
        *_frames(drive.base),
    ]
    return "\n".join(lines) + "\n"


def _off_frame(middle: str, ahead: float, length: float) -> list[str]:
    """Comment that names where odometry is from, unless the base's frame stands there."""
    if abs(ahead) <= SEVEN_DIGITS * length:
        return []
    side = "behind" if ahead > 0 else "ahead of"
    return [
        f"    # odometry is that of the middle of the {middle}, {abs(ahead):.6g} m {side} the frame"
    ]


def _frames(base: str) -> list[str]:
    return [f"    base_frame_id: {json.dumps(base)}", '    odom_frame_id: "odom"']


def _significant(drive: Drive) -> Drive:
    """Round numbers of a drive to what is not rounding of its computation."""

    def round_numbers(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(round_numbers, value))
        return round(value, DECIMALS) + 0.0 if isinstance(value, float) else value

    return replace(drive, **{f.name: round_numbers(getattr(drive, f.name)) for f in fields(drive)})


def real(value: float) -> str:
    """Return a number as ROS reads a double: with a point."""
    text = f"{float(value):.9g}"
    return text if any(c in text for c in ".en") else text + ".0"
