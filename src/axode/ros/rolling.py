"""How a base moves for given rates of its driven wheels, from the rolling of the model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.errors import NotApplicable
from axode.mechanism.elements.bodies import GROUND
from axode.mechanism.elements.parts import Connection
from axode.mechanism.elements.wheels import Contact
from axode.mechanism.mechanism import Mechanism
from axode.mechanism.topology import coordinate_of
from axode.model.model import Model
from axode.numerics.rank import pseudo_inverse
from axode.numerics.tolerances import RANK, SEVEN_DIGITS
from axode.problems.arguments import require_model

Array = npt.NDArray[np.float64]


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
