"""Numbers of a robot for ROS 2: parameters of its wheel controller, and limits for Nav2.

`controllers` writes the YAML of ros2_controllers for two driven wheels, several per side, four
Mecanum wheels, or one that drives and steers; `velocity_limits` finds the accelerations that wheels
and motors can give, and writes them for Nav2's velocity smoother.
"""

from __future__ import annotations

from axode.ros.controllers import (
    DifferentialDrive,
    MecanumDrive,
    OmniDrive,
    TricycleDrive,
    controllers,
    differential_drive,
    mecanum_drive,
    omni_drive,
    tricycle_drive,
)
from axode.ros.limits import VelocityLimits, velocity_limits

__all__ = [
    "DifferentialDrive",
    "MecanumDrive",
    "OmniDrive",
    "TricycleDrive",
    "VelocityLimits",
    "controllers",
    "differential_drive",
    "mecanum_drive",
    "omni_drive",
    "tricycle_drive",
    "velocity_limits",
]
