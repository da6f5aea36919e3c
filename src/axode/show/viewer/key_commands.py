"""What keys ask of the motors.

A page reports that a key goes down, and again while it repeats, but not that it comes up. Keys
therefore move what is wanted by steps. An angle of steering returns to the centre by itself, soon
after the last press.
"""

from __future__ import annotations

import numpy as np

from axode.show.viewer.drive import RealTimeRun

RATE_STEP = 0.1  # of the largest rate or torque, per press
ANGLE_STEP = 0.25  # of the largest angle of steering, per press
HOLD = 0.75  # [s] after a press that steering stays: longer than it takes a held key to repeat
RETURN = 0.3  # [s] in which steering returns from the largest angle


class KeyCommands:
    """Keys of one driven mechanism.

    Attributes:
        picked: Which motor keys move, where the mechanism is no vehicle.
    """

    def __init__(self, drive: RealTimeRun) -> None:
        self._drive = drive
        self._axes = {axis.name: axis for axis in drive.axes}
        self._since: float | None = None  # a key steered [s]
        self.picked = 0

    def press(self, name: str, sign: int) -> None:
        """Ask for more, or less, of "ahead", "sideways" or "turn"."""
        drive = self._drive
        most = drive.most_wanted()
        if self._axes:
            if name not in self._axes:
                return
            change = self._steer(name, most) if self._steers(name) else self._drive_by(name, most)
        elif name == "turn":
            self.picked = (self.picked - sign) % drive.motors.count
            return
        else:
            change = RATE_STEP * most * (np.arange(len(most)) == self.picked)
        drive.wanted = np.clip(drive.wanted + sign * change, -most, most)

    def release(self) -> None:
        """Leave steering where it is."""
        self._since = None

    def advance(self, seconds: float) -> bool:
        """Let steering return to the centre once no key holds it; whether it moved."""
        if self._since is None:
            return False
        self._since += seconds
        if self._since <= HOLD:
            return False
        drive = self._drive
        on = drive.steered >= 0
        back = seconds / RETURN * drive.most_wanted()[on]
        left = np.maximum(np.abs(drive.wanted[on]) - back, 0.0)
        drive.wanted[on] = np.copysign(left, drive.wanted[on])
        if not left.any():
            self._since = None
        return True

    def _steers(self, name: str) -> bool:
        return bool(self._axes[name].coordinates)

    def _steer(self, name: str, most: np.ndarray) -> np.ndarray:
        self._since = 0.0
        on = self._drive.steered >= 0
        return np.asarray(ANGLE_STEP * most * np.sign(self._axes[name].rates) * on)

    def _drive_by(self, name: str, most: np.ndarray) -> np.ndarray:
        rates = np.array(self._axes[name].rates)
        return np.asarray(RATE_STEP * rates * most[rates != 0.0].min())
