"""Motors of a design: what a motion asks of them, which of a catalogue can do it.

`run.motors` is the report of a motion: torque, speed, power and heat of each motor, and the limits
that are exceeded. `run.motors.size(catalogue)` tries other motors and gears in their places.
"""

from __future__ import annotations

from axode.motors.duty import Excess, MotorDuty, MotorReport
from axode.motors.sizing import Candidate, Choice, Sizing, catalogue

__all__ = ["Candidate", "Choice", "Excess", "MotorDuty", "MotorReport", "Sizing", "catalogue"]
