"""A recording that is played, and its panel: play, pause, scrub, choose a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from axode.mechanism.scene.scene import Array, touch_points
from axode.show.contact_marks import contact_modes, mode_colour, slip_marks
from axode.show.motion import RunPoses, scene_with, usual_force
from axode.show.render.meshes import force_arrows
from axode.show.style import COLOURS
from axode.show.viewer.drawing import CONTACTS, Drawing, check_trails, trail_names, trail_points

if TYPE_CHECKING:
    from axode.model.model import Model
    from axode.results.trajectory import Trajectory


MOST = 600  # samples drawn
SHADE = "rgba(26, 71, 186, 0.10)"
ASPECT = 1.5  # of a chart
HIDDEN = {"show": False}
# Charts lay out their axes again only if a range changes, and fail to if their size changes with
# their data, as when they first appear while a recording plays. Every other time, their range
# is longer by this share of it, too little to see.
RANGE_CHANGE = 1e-7
NO_SIGNAL = "none"


class Curves:
    """One chart of signals for each of their units."""

    def __init__(self, gui: Any) -> None:
        self._gui = gui
        self._charts: dict[str, Any] = {}
        self._names: tuple[str, ...] = ()
        self._even = False

    def draw(
        self,
        time: Array,
        columns: Mapping[str, Array],
        units: Mapping[str, str],
        now: float | None = None,
    ) -> None:
        """Draw columns by name over time; `now` parts what has passed from what comes."""
        stride = max(1, -(-len(time) // MOST))
        x = np.array(time[::stride], dtype=float)
        self._even = not self._even
        passed = () if now is None else ((x <= now).astype(float),)
        if self._even:
            x[-1] += RANGE_CHANGE * (x[-1] - x[0])
        if self._names != tuple(columns):
            self.remove()
            self._names = tuple(columns)
        for unit in dict.fromkeys(units[name] for name in columns):
            chosen = {name: y[::stride] for name, y in columns.items() if units[name] == unit}
            data = (x, *chosen.values(), *passed)
            if unit in self._charts:
                self._charts[unit].data = data
            else:
                self._charts[unit] = self._add(data, tuple(chosen), unit)

    def _add(self, data: tuple[Array, ...], names: tuple[str, ...], unit: str) -> Any:
        series: list[dict[str, Any]] = [{"label": "t [s]"}]
        series += [
            {"label": name, "stroke": COLOURS[k % len(COLOURS)], "width": 1.6, "points": HIDDEN}
            for k, name in enumerate(names)
        ]
        if len(data) > len(series):
            series.append(
                {
                    "label": "already shown",
                    "scale": "passed",
                    "fill": SHADE,
                    "stroke": SHADE,
                    "width": 0,
                    "points": HIDDEN,
                }
            )
        label = {"labelSize": 18, "size": 44}
        return self._gui.add_uplot(
            data,
            tuple(series),
            aspect=ASPECT,
            legend={"show": True, "live": False},
            scales={"x": {"time": False}, "passed": {"range": (0.0, 1.0)}},
            axes=({"label": "t [s]", **label, "size": 32}, {"label": unit or "1", **label}),
            padding=(8, 16, 0, 0),
            order=1000.0,
        )

    def remove(self) -> None:
        """Take all charts away."""
        for chart in self._charts.values():
            chart.remove()
        self._charts, self._names = {}, ()


class Looks:
    """A folder of the panel.

    Attributes:
        trails: Names of the points whose paths are drawn.
        signals: Names of the columns whose curves are drawn.
        forces: Whether contact forces are drawn.
        changed: Set when one of them has changed.
    """

    def __init__(
        self,
        gui: Any,
        drawing: Drawing,
        columns: Sequence[str],
        *,
        follow: bool,
        forces: bool,
        trails: Sequence[str],
        signals: Sequence[str],
        own: Callable[..., Any],
    ) -> None:
        self.trails = check_trails(drawing.scene, trails)
        self.signals = tuple(signals)
        self.forces = forces and bool(drawing.scene.touches)
        self.changed = True
        drawing.follow(follow)
        with gui.add_folder("Show"):
            followed = gui.add_checkbox("follow", follow, hint="Keep the mechanism in view.")
            followed.on_update(own(lambda event: drawing.follow(followed.value)))
            shaded = gui.add_checkbox("shadows", True, hint="Without them pages draw faster.")
            shaded.on_update(own(lambda event: drawing.shadows(shaded.value)))
            if drawing.scene.touches:
                hint = (
                    "Of the ground on the wheels: longitudinal blue, lateral orange, normal green."
                )
                shown = gui.add_checkbox("contact forces", self.forces, hint=hint)
                shown.on_update(own(lambda event: self._set(forces=shown.value)))
            names = trail_names(drawing.scene)
            trail = gui.add_dropdown("trail", names, initial_value=_one(self.trails, names))
            trail.on_update(own(lambda event: self._trail(drawing, trail.value)))
            if columns:
                first = self.signals[0] if self.signals else NO_SIGNAL
                curve = gui.add_dropdown("curve", (NO_SIGNAL, *columns), initial_value=first)
                curve.on_update(own(lambda event: self._set(signals=_chosen(curve.value))))

    def _trail(self, drawing: Drawing, name: str) -> None:
        drawing.forget_trails()
        self._set(trails=check_trails(drawing.scene, [name]))

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            setattr(self, name, value)
        self.changed = True


def _one(trails: tuple[str, ...], names: tuple[str, ...]) -> str:
    """The choice that stands for some trails, or for none where no single one does."""
    if len(trails) == 1:
        return trails[0]
    return CONTACTS if trails and CONTACTS in names else NO_SIGNAL


def _chosen(name: str) -> tuple[str, ...]:
    return () if name == NO_SIGNAL else (name,)


SPEEDS = ("0.1", "0.25", "0.5", "1", "2", "5", "10")
TRAIL_SAMPLES = 800
SLOW = 0.1  # [s] between updates of slider and curves, and of the long part of trails


@dataclass
class Playback:
    """A recording that is played.

    Attributes:
        begin, end: Its first and last time [s]; the end may come before the begin.
        elapsed: How much of it has been shown [s].
        speed: Seconds of it per second on the clock.
        playing: Whether it is running.
        loop: Whether it starts again at its end.
    """

    begin: float
    end: float
    elapsed: float = 0.0
    speed: float = 1.0
    playing: bool = False
    loop: bool = True

    @property
    def length(self) -> float:
        """Duration [s]."""
        return abs(self.end - self.begin)

    @property
    def time(self) -> float:
        """The time that is shown [s]."""
        return self.begin + (self.elapsed if self.end >= self.begin else -self.elapsed)

    def toggle(self) -> None:
        """Play or pause; at the end, play from the start."""
        if not self.playing and self.elapsed >= self.length:
            self.elapsed = 0.0
        self.playing = not self.playing

    def seek(self, elapsed: float) -> None:
        """Show another instant, counted from the start [s]."""
        self.elapsed = min(max(elapsed, 0.0), self.length)

    def advance(self, seconds: float) -> None:
        """Let time pass on the clock."""
        if not self.playing:
            return
        after = self.elapsed + self.speed * seconds
        if after >= self.length:
            self.playing = self.loop and self.length > 0
            after = after % self.length if self.playing else self.length
        self.elapsed = after


class Playing:
    """A recording on the stage."""

    def __init__(
        self,
        gui: Any,
        drawing: Drawing,
        run: Trajectory,
        model: Model,
        first: int,
        *,
        own: Callable[..., Any],
        speed: float,
        loop: bool,
        playing: bool,
        **looks: Any,
    ) -> None:
        self._gui, self._drawing, self._runs, self._model = gui, drawing, run, model
        self._since = 0.0
        self.playback = Playback(0.0, 0.0, speed=speed, loop=loop)
        self.choose(first)
        self._said = gui.add_markdown("")
        self._button = gui.add_button(
            "Play", icon="player-play", hint="Key: space; J and L step back and ahead"
        )
        self._button.on_click(own(lambda event: self.toggle()))
        self._slider = gui.add_slider(
            "time",
            0.0,
            max(self.playback.length, 1e-9),
            max(self.playback.length, 1e-9) / 1000,
            0.0,
        )
        self._slider.on_update(own(self._scrub))
        self._speeds(own, speed)
        again = gui.add_checkbox("loop", loop)
        again.on_update(own(lambda event: setattr(self.playback, "loop", again.value)))
        if run.batch:
            which = gui.add_slider("run", 0, max(len(run.statuses) - 1, 1), 1, first)
            which.on_update(own(lambda event: self.choose(int(which.value))))
        gui.add_command("Play or pause", hotkey="space").on_trigger(own(lambda e: self.toggle()))
        for label, key, way in (("Step back", "J", -1), ("Step ahead", "L", 1)):
            gui.add_command(label, hotkey=key).on_trigger(own(lambda e, way=way: self._nudge(way)))
        self._curves = Curves(gui)
        self.looks = Looks(gui, drawing, self._columns(), own=own, **looks)
        if playing:
            self.toggle()

    def _speeds(self, own: Callable[..., Any], speed: float) -> None:
        options = SPEEDS if f"{speed:g}" in SPEEDS else (*SPEEDS, f"{speed:g}")
        chosen = self._gui.add_dropdown("speed", options, initial_value=f"{speed:g}")
        chosen.on_update(
            own(lambda event: setattr(self.playback, "speed", float(chosen.value.rstrip("x"))))
        )

    def _columns(self) -> Sequence[str]:
        """What a curve can show: columns with numbers in them."""
        run = self.motion.run
        return [name for name in run.names if np.isfinite(run[name]).any()]

    def choose(self, run: int) -> None:
        """Show another run of a batch."""
        chosen = self._runs.run(run)
        self.motion = RunPoses(chosen, self._model)
        self._times, self._poses = self.motion.all_poses(TRAIL_SAMPLES)
        modes = contact_modes(self.motion, self._times, self._poses)
        self._has_modes = bool((modes != "").any())
        self._slipped = slip_marks(self._model.scene, self._poses, modes)
        if chosen.time[-1] < chosen.time[0]:  # in the order in which they are shown
            self._times, self._poses = self._times[::-1], self._poses[::-1]
        self._drawn = 0
        self._usual = usual_force(self.motion.contact_forces)
        scene = scene_with(self._model, chosen.parameters)
        if scene != self._drawing.scene:
            self._drawing.rebuild(scene, self._poses[0])
        self.playback.begin, self.playback.end = float(chosen.time[0]), float(chosen.time[-1])
        self.playback.seek(self.playback.elapsed)
        self._since = np.inf

    def toggle(self) -> None:
        """Play or pause."""
        self.playback.toggle()
        self._button.label = "Pause" if self.playback.playing else "Play"
        self._button.icon = "player-pause" if self.playback.playing else "player-play"

    def _scrub(self, event: Any) -> None:
        if event.client is not None:  # moved by hand and not by the recording
            self.playback.seek(float(self._slider.value))
            self._since = np.inf

    def _nudge(self, way: int) -> None:
        self.playback.seek(self.playback.elapsed + way * self.playback.length / 100)
        self._since = np.inf

    def tick(self, seconds: float) -> None:
        """Show what is due after so much time on the clock."""
        was = self.playback.playing
        self.playback.advance(seconds)
        if was and not self.playback.playing:  # it came to its end
            self._button.label, self._button.icon = "Play", "player-play"
            self._since = np.inf
        self._since += seconds
        if not (was or self.looks.changed or self._since == np.inf):
            return
        due = self._since >= SLOW or self.looks.changed
        with self._drawing.at_once():
            poses = self.motion.poses(self.playback.time)
            self._drawing.show(poses)
            arrows = None
            if self.looks.forces:
                forces = self.motion.forces(self.playback.time)
                arrows = force_arrows(self._drawing.scene, poses, forces, self._usual)
            self._drawing.arrows(arrows)
            self._draw_trails(poses, due)
            self._draw_modes(poses, due)
        if due:
            self._slowly()

    def _draw_trails(self, poses: Array, due: bool) -> None:
        """Draw paths up to now: a long part that is seldom sent again, and a tip that always is."""
        scene, drawing, names = self._drawing.scene, self._drawing, self.looks.trails
        sign = 1.0 if self.playback.end >= self.playback.begin else -1.0
        passed = int(np.searchsorted(sign * self._times, sign * self.playback.time, side="right"))
        if due or passed < self._drawn:
            for name, points in trail_points(scene, names, self._poses[:passed]).items():
                drawing.trail(name, points)
            self._drawn = passed
        since = [*self._poses[max(self._drawn - 1, 0) : passed], poses]
        drawing.tips(trail_points(scene, names, np.stack(since)))

    def _draw_modes(self, poses: Array, due: bool) -> None:
        """Draw contacts in the colours of their modes, and marks of those that slipped."""
        if not self._has_modes:
            return
        now = self.playback.time
        modes = contact_modes(self.motion, np.array([now]), poses[np.newaxis])[0].tolist()
        colours = {k: c for k, mode in enumerate(modes) if (c := mode_colour(mode)) is not None}
        points = touch_points(self._drawing.scene, poses)[list(colours)]
        self._drawing.spots(points, np.array([*colours.values()], np.uint8).reshape(-1, 3))
        if due:
            lines, ends = self._slipped
            self._drawing.marks(lines[self._times[ends] <= now])

    def _slowly(self) -> None:
        self._since, self.looks.changed = 0.0, False
        now = self.playback.time
        self._slider.value = self.playback.elapsed
        status = self.motion.run.status
        ended = "" if status == "finished" else f" · {status}"
        self._said.content = f"**{now:.2f} s** of {self.playback.end:.2f} s{ended}"
        if not self.looks.signals:
            self._curves.remove()
            return
        run = self.motion.run
        order = 1 if run.time[-1] >= run.time[0] else -1
        columns = {name: run[name][::order] for name in self.looks.signals}
        units = {name: run.unit(name) for name in columns}
        self._curves.draw(run.time[::order], columns, units, now)
