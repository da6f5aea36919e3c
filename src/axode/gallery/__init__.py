"""Mechanisms that come with Axode: those of the sources, and those people look for.

Each stands in a file of its own, as a function of the same name that returns a `Mechanism` built
from Axode's own parts: `axode.gallery.build("caster_robot")`.
"""

from __future__ import annotations

from importlib import import_module
from inspect import Parameter, signature
from typing import Any

from axode.errors import UnknownName
from axode.mechanism.mechanism import Mechanism

# name: what it is, in a line
NAMES: dict[str, str] = {
    "four_bar": "planar four-bar linkage",
    "six_legged_platform": "platform on legs of six revolutes, elbows driven",
    "flight_simulator": "platform on legs that change their length",
    "caster_robot": "two driven wheels and a caster",
    "two_caster_robot": "two driven wheels and two casters",
    "delta_array": "three omni wheels at 120 degrees",
    "mecanum_platform": "any number of Mecanum wheels, any roller angles",
    "rolling_disk": "a disk that rolls on a plane and may lean",
    "wheeled_pendulum": "a body that hangs from the axle of two wheels",
    "cooperating_arms": "two planar arms that hold a common load",
    "two_wheeled_cart": "a load on two wheels with a motor each",
    "five_axis_arm": "a turning base, three links and a gripper",
    "six_wheel_platform": "three wheels per side, steered by skidding",
    "mobile_manipulator": "the five-axis arm on the six-wheel platform",
    "unicycle": "an upright wheel, driven and steered",
    "differential_drive": "two driven wheels, the mass centre off their axle",
    "chaplygin_sleigh": "a body on a knife edge",
    "snakeboard": "two steered wheelsets and a twisting rotor",
    "ballbot": "a body that balances on a ball",
    "cam_follower": "an eccentric cam that lifts a follower",
    "five_bar": "two cranks that move a point in a plane",
    "mecanum_rover": "four Mecanum wheels along a body",
    "tricycle": "a steered and driven wheel in front of two",
    "pendulum_on_slope": "a wheeled inverted pendulum on rising ground",
    "seven_axis_arm": "an arm with one axis more than a pose needs",
    "delta_robot": "three arms with parallelograms that keep a platform level",
    "planar_3rrr": "three cranks that move and turn a platform in a plane",
    "platform_3rps": "three legs that lift and tilt a platform",
    "agile_eye": "three motors that turn a camera about a fixed point",
    "gough_stewart": "platform on six legs between general points",
    "dietmaier_platform": "platform on six legs with 40 real postures",
}


def build(name: str, **options: Any) -> Mechanism:
    """A mechanism of the gallery.

    Args:
        name: One of `NAMES`.
        options: What its function takes: numbers of legs or wheels, values of parameters.

    Raises:
        UnknownName: listing the gallery, or the options.
    """
    if not isinstance(name, str) or name not in NAMES:
        raise UnknownName("the gallery", "mechanism", name, NAMES)
    function = getattr(import_module(f"axode.gallery.{name}"), name)
    known = signature(function).parameters
    if all(entry.kind is not Parameter.VAR_KEYWORD for entry in known.values()):
        for option in options:  # those that take any word look for themselves
            if option not in known:
                raise UnknownName(f"'{name}' of the gallery", "parameter", option, known)
    mechanism: Mechanism = function(**options)
    return mechanism
