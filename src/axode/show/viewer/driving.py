"""The panel of a mechanism that is driven: motors, parameters, keys.

Keys move what is wanted by steps, once when they go down and again while they repeat. An angle of
steering grows as long as its key is down, and returns to the centre when it comes up; where a page
does not report that, soon after the last press.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from axode.errors import AxodeError
from axode.show.motion import scene_with
from axode.show.render.meshes import force_arrows
from axode.show.viewer.drawing import Drawing, trail_points
from axode.show.viewer.drive import RealTimeRun
from axode.show.viewer.playing import Curves, Looks

SLOW = 0.15  # [s] between updates of text and curves, and of the long part of trails
MEMORY = 15.0  # [s] of curves
TRAIL = 1500  # points of a trail
APART = 0.01  # of the mechanism's size: the next point of a trail
ROUND = 1000  # steps of a slider from end to end
# Under the right hand; the left one's letters and the arrows move the camera.
KEYS = {
    "ahead": ("I", "K", "ahead and back"),
    "turn": ("J", "L", "left and right"),
    "sideways": ("U", "O", "sideways to the left and right"),
}
ROBOT_KEYS = {"ahead": ("I", "K", "one motor up and down"), "turn": ("J", "L", "which motor")}
RATE_STEP = 0.1  # of the largest rate or torque, per press
ANGLE_STEP = 0.25  # of the largest angle of steering, per press
HOLD = 0.75  # [s] after a press that steering stays: longer than it takes a held key to repeat
TURN = 0.4  # [s] in which a key that is held reaches the largest angle
RETURN = 0.3  # [s] in which steering returns from the largest angle


class Driving:
    """A driven mechanism on the stage."""

    def __init__(
        self,
        gui: Any,
        drawing: Drawing,
        drive: RealTimeRun,
        *,
        own: Callable[..., Any],
        running: bool,
        **looks: Any,
    ) -> None:
        self.drive, self._gui, self._drawing = drive, gui, drawing
        self._own, self._since = own, 0.0
        self.keys = KeyCommands(drive)
        self._fresh: dict[str, list[Any]] = {}
        self._trails: dict[str, deque[Any]] = {}
        self._history: deque[tuple[float, dict[str, float]]] = deque()
        self._usual = 0.0
        self._said = gui.add_markdown("")
        self._button = gui.add_button("Run", icon="player-play", hint="Key: enter")
        self._button.on_click(own(lambda event: self.toggle()))
        back = gui.add_button("Reset", icon="refresh", hint="Back to the start. Key: backspace")
        back.on_click(own(lambda event: self.reset()))
        self._sliders: list[Any] = []
        if drive.motors.count:
            self._motors()
        self._keys()
        self._curves = Curves(gui)
        columns = tuple(signal.name for signal in self.drive.model.signals)
        self.looks = Looks(gui, drawing, columns, own=own, **looks)
        if drive.parameters:
            self._parameters()
        if running:
            self.toggle()

    # the panel ---------------------------------------------------------------------------------

    def _motors(self) -> None:
        with self._gui.add_folder("Motors") as self._folder:
            mode = self._gui.add_dropdown("set", self.drive.modes, initial_value=self.drive.mode)
            mode.on_update(self._own(lambda event: self._set_mode(mode.value)))
            stop = self._gui.add_button("All zero", icon="hand-stop", hint="Key: space")
            stop.on_click(self._own(lambda event: self.stop()))
        self._motor_sliders()

    def _motor_sliders(self) -> None:
        for slider in self._sliders:
            slider.remove()
        self._sliders = []
        most, motors = self.drive.most_wanted().tolist(), self.drive.motors.names
        with self._folder:
            for k, (name, unit) in enumerate(self.drive.wanted_names()):
                slider = self._gui.add_slider(
                    f"{name} [{unit}]",
                    -most[k],
                    most[k],
                    2 * most[k] / ROUND,
                    0.0,
                    hint=_slider_hint(name, unit, motors[k]),
                )
                slider.on_update(self._own(lambda event, k=k: self._wish(event, k)))
                self._sliders.append(slider)

    def _parameters(self) -> None:
        with self._gui.add_folder("Parameters", expand_by_default=False):
            for name, value in self.drive.parameters.items():
                low, high = sorted((0.2 * value, 3.0 * value)) if value else (-1.0, 1.0)
                slider = self._gui.add_slider(name, low, high, (high - low) / ROUND, value)
                slider.on_update(self._own(lambda event, name=name: self._asked(event, name)))

    def _keys(self) -> None:
        def key(label: str, hotkey: str, act: Callable[[], None]) -> None:
            command = self._gui.add_command(label, hotkey=hotkey)
            command.on_trigger(self._own(lambda event: act()))

        key("Run or pause", "enter", self.toggle)
        key("Reset", "backspace", self.reset)
        if not self.drive.motors.count:
            return
        key("All motors zero", "space", self.stop)
        axes = {axis.name for axis in self.drive.axes}
        said: list[str] = []
        for name, (more, less, what) in (KEYS if axes else ROBOT_KEYS).items():
            if axes and name not in axes:
                continue
            key(f"More {name}", more, lambda name=name: self.press(name, 1))  # type: ignore[misc]
            key(f"Less {name}", less, lambda name=name: self.press(name, -1))  # type: ignore[misc]
            said.append(f"{more} and {less}: {what}")
        words = "; ".join([*said, "space: all zero", "enter: run or pause"])
        self._gui.add_markdown(
            f"<small>Keys {words}. Ctrl and the left button drag a body with a spring.</small>"
        )

    # what the driver does ----------------------------------------------------------------------

    def toggle(self) -> None:
        """Run or pause."""
        self.drive.running, self.drive.message = not self.drive.running, ""
        self._since = np.inf

    def reset(self) -> None:
        """Return to the start."""
        try:
            self.drive.reset()
        except AxodeError as error:  # parameters with which the start does not close
            self.drive.running, self.drive.message = False, str(error).splitlines()[0]
        self._show_wanted()
        self._trails, self._fresh, self._usual = {}, {}, 0.0
        self._history.clear()
        self._drawing.forget_trails()
        self._since = np.inf

    def stop(self) -> None:
        """Set all motors to zero."""
        self.keys.release()
        self.drive.wanted[:] = 0.0
        self._show_wanted()

    def _set_mode(self, mode: str) -> None:
        self.drive.mode = mode
        self.drive.wanted[:] = 0.0
        self._motor_sliders()

    def _wish(self, event: Any, motor: int) -> None:
        if event.client is not None:
            self.keys.release()
            self.drive.wanted[motor] = float(self._sliders[motor].value)

    def press(self, name: str, sign: int) -> None:
        """Do what a key does: more or less of "ahead", "turn" or "sideways"."""
        self.keys.press(name, sign)
        self._show_wanted()

    def _show_wanted(self) -> None:
        for slider, value in zip(self._sliders, self.drive.wanted.tolist(), strict=True):
            slider.value = value

    def _asked(self, event: Any, name: str) -> None:
        if event.client is not None:
            wanted = float(event.target.value)
            self.set_parameter(name, wanted)
            if self.drive.parameters[name] != wanted:  # refused
                event.target.value = self.drive.parameters[name]

    def set_parameter(self, name: str, value: float) -> None:
        """Change a parameter and the shapes that depend on it; show why not where it cannot be."""
        try:
            self.drive.set_parameter(name, value)
        except AxodeError as error:
            self.drive.message = f"{name}: {str(error).splitlines()[0]}"
        scene = scene_with(self.drive.model, self.drive.parameters)
        if scene != self._drawing.scene:
            self._drawing.rebuild(scene, self.drive.poses())
        self._since = np.inf

    # time --------------------------------------------------------------------------------------

    def tick(self, seconds: float) -> None:
        """Let time pass and show where it led."""
        drive, drawing = self.drive, self._drawing
        was, before = drive.running, drive.time
        if was and self.keys.advance(seconds):
            self._show_wanted()
        drive.pull = drawing.pull()
        drive.advance(seconds)
        self._since += seconds
        if was and not drive.running:
            self._since = np.inf
        with drawing.at_once():
            if drive.time != before or self._since == np.inf or self.looks.changed:
                drawing.show(drive.poses())
                self._leave_trails()
                self._draw_forces()
        if self._since >= SLOW:
            self._slowly()

    def _slowly(self) -> None:
        self._since, self.looks.changed = 0.0, False
        self._button.label = "Pause" if self.drive.running else "Run"
        self._button.icon = "player-pause" if self.drive.running else "player-play"
        self._said.content = self._words()
        self._remember()

    def _draw_forces(self) -> None:
        drawing, arrows = self._drawing, None
        if self.looks.forces:
            forces = self.drive.forces()
            if not np.isnan(forces).all():
                self._usual = self._usual or float(np.nanmax(np.abs(forces)))
            arrows = force_arrows(drawing.scene, drawing.poses, forces, self._usual)
        drawing.arrows(arrows)

    def _leave_trails(self) -> None:
        """Draw paths up to now: a long part that is seldom sent again, and a tip that always is."""
        scene, now = self._drawing.scene, self._drawing.poses
        tips: dict[str, Any] = {}
        for name, point in trail_points(scene, self.looks.trails, now).items():
            path = self._trails.setdefault(name, deque(maxlen=TRAIL))
            fresh = self._fresh.setdefault(name, [point])
            if not path or np.linalg.norm(path[-1] - point) > APART * scene.size:
                path.append(point)
                fresh.append(point)
            if self._since >= SLOW:
                self._drawing.trail(name, np.array(path))
                self._fresh[name] = fresh = [path[-1]]
            tips[name] = np.array([*fresh, point])
        self._drawing.tips(tips)

    def _remember(self) -> None:
        now = self.drive.time
        if self.drive.last and (not self._history or self._history[-1][0] != now):
            self._history.append((now, self.drive.last))
        while self._history and self._history[0][0] < now - MEMORY:
            self._history.popleft()
        names = [name for name in self.looks.signals if name in self.drive.last]
        if len(self._history) < 2 or not names:
            self._curves.remove()
            return
        times = np.array([t for t, _ in self._history])
        units = {signal.name: signal.unit for signal in self.drive.model.signals}
        columns = {name: np.array([values[name] for _, values in self._history]) for name in names}
        self._curves.draw(times, columns, units)

    def _words(self) -> str:
        drive = self.drive
        pace = f" · {drive.real_time_factor:.2f} × real time" if drive.running else ""
        lines = [f"**{drive.time:.2f} s**{pace}", f"energy {drive.energy():.4g} J"]
        if drive.motors.count and not drive.axes:
            lines.append(f"keys move {drive.wanted_names()[self.keys.picked][0]}")
        if drive.message:
            lines.append(f"**Stopped:** {drive.message}")
        return "  \n".join(lines)


def _slider_hint(name: str, unit: str, motor: str) -> str:
    if name == motor:
        return f"Torque or force of the motor {motor} [{unit}]"
    kind = {"rad": "Angle"}.get(unit, "Speed")
    return f"{kind} {name} [{unit}], which the motor {motor} reaches as its limits allow"


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
