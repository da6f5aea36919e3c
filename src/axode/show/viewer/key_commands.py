"""What keys ask of the motors.

Keys move what is wanted by steps, once when they go down and again while they repeat. An angle of
steering grows as long as its key is down, and returns to the centre when it comes up; where a page
does not report that, soon after the last press.
"""

from __future__ import annotations

import numpy as np

from axode.show.viewer.drive import RealTimeRun

RATE_STEP = 0.1  # of the largest rate or torque, per press
ANGLE_STEP = 0.25  # of the largest angle of steering, per press
HOLD = 0.75  # [s] after a press that steering stays: longer than it takes a held key to repeat
TURN = 0.4  # [s] in which a key that is held reaches the largest angle
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
        self._held = 0.0  # which way a key steers, where the page reports when it comes up
        self._reported = False  # whether it does
        self.picked = 0

    def press(self, name: str, sign: int) -> None:
        """Ask for more, or less, of "ahead", "sideways" or "turn"."""
        drive = self._drive
        most = drive.most_wanted()
        if self._axes:
            if name not in self._axes:
                return
            steers = self._steers(name)
            change = self._steer(most) if steers else self._drive_by(name, most)
            self._held = float(sign) if steers and self._reported else self._held
        elif name == "turn":
            self.picked = (self.picked - sign) % drive.motors.count
            return
        else:
            change = RATE_STEP * most * (np.arange(len(most)) == self.picked)
        drive.wanted = np.clip(drive.wanted + sign * change, -most, most)

    def release(self) -> None:
        """Leave steering where it is."""
        self._since, self._held = None, 0.0

    def let_go(self) -> None:
        """Let steering return: its key came up."""
        self._reported, self._held = True, 0.0
        if self._since is not None:
            self._since = HOLD

    def advance(self, seconds: float) -> bool:
        """Let steering return to the centre once no key holds it; whether it moved."""
        if self._since is None:
            return False
        drive = self._drive
        on = drive.steered >= 0
        if self._held:
            most = drive.most_wanted()
            more = self._held * seconds / TURN * self._steering(most)
            drive.wanted = np.clip(drive.wanted + more, -most, most)
        self._since += seconds
        if self._since <= HOLD:
            return bool(self._held)
        self._held = 0.0
        back = seconds / RETURN * drive.most_wanted()[on]
        left = np.maximum(np.abs(drive.wanted[on]) - back, 0.0)
        drive.wanted[on] = np.copysign(left, drive.wanted[on])
        if not left.any():
            self._since = None
        return True

    def _steers(self, name: str) -> bool:
        return bool(self._axes[name].coordinates)

    def _steer(self, most: np.ndarray) -> np.ndarray:
        self._since = 0.0
        step = 0.0 if self._reported else ANGLE_STEP  # else it grows while the key is held
        return step * self._steering(most)

    def _steering(self, most: np.ndarray) -> np.ndarray:
        """Largest angles to the left of what steers, zero for other motors."""
        on = self._drive.steered >= 0
        return np.asarray(most * np.sign(self._axes["turn"].rates) * on)

    def _drive_by(self, name: str, most: np.ndarray) -> np.ndarray:
        rates = np.array(self._axes[name].rates)
        return np.asarray(RATE_STEP * rates * most[rates != 0.0].min())
