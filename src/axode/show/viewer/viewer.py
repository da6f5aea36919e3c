"""The viewer in the browser: a page, a clock, a video of what the page shows, and an end."""

from __future__ import annotations

import sys
import threading
import time
import webbrowser
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from axode.errors import AxodeError, InvalidArgument, NotApplicable
from axode.kinematics.workspaces.workspace_result import Workspace
from axode.mechanism.mechanism import Mechanism
from axode.mechanism.scene.scene import Array, Scene
from axode.model.model import Model
from axode.model.model_parts import facts_of
from axode.names import title_words
from axode.problems.simulate.scenario import Scenario
from axode.problems.simulate.simulate import simulate
from axode.results.trajectory import Trajectory
from axode.show.motion import RunPoses, scene_with
from axode.show.render.animation import travels
from axode.show.render.movie_files import MOVIES, check_movie, write_movie
from axode.show.render.painter import Camera, camera_of
from axode.show.viewer.drawing import Drawing, check_trails
from axode.show.viewer.drive import RealTimeRun
from axode.show.viewer.driving import Driving
from axode.show.viewer.playing import Playing
from axode.show.viewer.server import serve, stop

if TYPE_CHECKING:
    from axode.symbolic.equations import Equations


FRAME = 1 / 40  # [s]
# Viser wakes the thread that sends its messages from ours, without a lock. Seldom, both meet; the
# message is then in the queue, and the next picture makes up for it.
WAKING = "deque mutated during iteration"
RATE = 20.0  # pictures per second
LONGEST = 300.0  # [s]
MOST_ROWS = 720  # pixels
PATIENCE = 20.0  # [s] for one picture; a browser without a GPU may take long
RECORD, STOP = "Record", "Stop recording"


class Stage(Protocol):
    """A recording or a drive that is shown."""

    def tick(self, seconds: float) -> None:
        """Let time pass."""


class Viewer:
    """A mechanism in the browser, until it is closed.

    Attributes:
        url: Where the page is, with the token that lets its reader in.
        port: Where the server listens.
        drawing: What is in the picture.
        stage: What is on: its `playback` or its `drive` can be looked at and changed.
        recording: The video that the page makes.
    """

    def __init__(self, server: Any, drawing: Drawing, camera: Camera) -> None:
        self._server, self.drawing = server, drawing
        host = server.get_host()
        shown = "127.0.0.1" if host in ("0.0.0.0", "") else f"[{host}]" if ":" in host else host
        self.port: int = server.get_port()
        self.url = f"http://{shown}:{self.port}/?token={server.axode_guard.token}"
        self.stage: Any = None
        self.recording: Recording | None = None
        self._lock = threading.RLock()
        self._closed = threading.Event()
        self._clock = threading.Thread(target=self._run, name="axode-viewer", daemon=True)
        look = server.initial_camera
        look.position, look.look_at, look.fov = camera.eye, camera.target, camera.field
        look.near, look.far = 0.01 * camera.distance, 300 * camera.distance

    def start(self, make: Callable[[Any], Stage]) -> None:
        """Let time pass on a stage, made on the panel; if that fails, nothing stays open."""
        try:
            self.stage = make(self._server.gui)
            name = self.drawing.scene.name
            self.recording = Recording(self._server.gui, name, own=self.own)
            self.stage.tick(0.0)
            self._clock.start()
        except BaseException:
            self.close()
            raise

    def own(self, act: Callable[..., Any]) -> Callable[..., Any]:
        """Return what a button does: never while the clock ticks, and nothing once closed."""

        def act_locked(event: Any) -> None:
            with self._lock:
                if self._closed.is_set():
                    return
                try:
                    act(event)
                except Exception as error:  # such as a value that no slider can have
                    self._server.axode_guard.report(error)

        return act_locked

    @property
    def closed(self) -> bool:
        """Return whether the viewer is closed."""
        return self._closed.is_set()

    @property
    def poses(self) -> Array:
        """Poses of all bodies, as shown: (bodies, 4, 4)."""
        with self._lock:
            return self.drawing.poses

    def open_browser(self) -> None:
        """Open the page in the user's browser, if there is one."""
        webbrowser.open(self.url)

    def wait(self) -> None:
        """Stay until Ctrl-C, then close."""
        try:
            while not self._closed.wait(0.2):
                pass
        except KeyboardInterrupt:
            pass
        finally:
            self.close()

    def close(self) -> None:
        """Close the viewer: no thread and no port stay behind. Repeated calls do no harm."""
        with self._lock:
            first = not self._closed.is_set()
            self._closed.set()
        if self._clock.is_alive() and threading.current_thread() is not self._clock:
            self._clock.join(5.0)
        if first:
            if self.recording is not None:
                self.recording.close()
            stop(self._server)

    def __enter__(self) -> Viewer:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Viewer({self.url}{', closed' if self.closed else ''})"

    def _run(self) -> None:
        last = time.perf_counter()
        while not self._closed.wait(max(0.001, FRAME - (time.perf_counter() - last))):
            now = time.perf_counter()
            with self._lock:
                if not self._closed.is_set():
                    self._tick(now - last)
            last = now

    def _tick(self, seconds: float) -> None:
        try:
            self.stage.tick(seconds)
        except RuntimeError as error:
            if WAKING not in str(error):
                raise


class Recording:
    """The button that records, and the video that it makes.

    The page that pressed it draws the pictures and gets the file. A page that draws fewer pictures
    than the video has shows some of them longer, so that the video takes as long as the motion did.
    """

    def __init__(self, gui: Any, name: str, *, own: Callable[..., Any]) -> None:
        self._name = name
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._closed = False
        hint = "Record a video of the picture; once more to stop and to save it."
        self._button = gui.add_button(RECORD, icon="video", hint=hint)
        self._button.on_click(own(lambda event: self.toggle(event.client)))

    @property
    def running(self) -> bool:
        """Return whether a video is being made."""
        return self._thread is not None and self._thread.is_alive()

    def toggle(self, client: Any) -> None:
        """Begin a video of what a page shows, or end it."""
        if self.running:
            self._stop.set()
            return
        self._stop.clear()
        self._button.label, self._button.icon = STOP, "player-stop"
        self._thread = threading.Thread(target=self._record, args=(client,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End without a file."""
        self._closed = True
        self._stop.set()
        if self._thread is not None:
            self._thread.join(PATIENCE)

    def _record(self, client: Any) -> None:
        try:
            with TemporaryDirectory() as folder:
                path = Path(folder) / f"{self._name}{_ending()}"
                write_movie(path, self._pictures(client), RATE)
                if not self._closed:
                    client.send_file_download(path.name, path.read_bytes(), save_immediately=True)
        except (AxodeError, RuntimeError, TimeoutError) as error:  # the last two: the page is gone
            if not self._closed:
                client.add_notification("No video", str(error).splitlines()[0])
        if not self._closed:
            self._button.label, self._button.icon = RECORD, "video"

    def _pictures(self, client: Any) -> Iterator[npt.NDArray[np.uint8]]:
        """Pictures at even times: each the last that there was."""
        rows, columns = _size(client.camera.image_height, client.camera.image_width)
        begin, count = time.perf_counter(), 0
        while not self._closed:
            elapsed = time.perf_counter() - begin
            drawn = client.get_render(rows, columns, timeout=PATIENCE)
            picture: npt.NDArray[np.uint8] = np.asarray(drawn[..., :3], np.uint8)
            due = max(int(elapsed * RATE) + 1 - count, 0)
            for _ in range(due):
                yield picture
            count += due
            pause = max(count / RATE - (time.perf_counter() - begin), 0.0)
            if self._stop.wait(pause) or elapsed > LONGEST:
                return


def _ending() -> str:
    """Return the first kind of movie that can be written here."""
    for ending in MOVIES:
        try:
            check_movie(f"video{ending}", RATE)
        except NotApplicable:
            continue
        return ending
    return MOVIES[-1]


def _size(rows: int, columns: int) -> tuple[int, int]:
    """Even numbers of pixels, as codecs need them, in the shape of the page."""
    shrink = min(1.0, MOST_ROWS / max(rows, 1))
    return max(2, 2 * round(shrink * rows / 2)), max(2, 2 * round(shrink * columns / 2))


# opening it ---------------------------------------------------------------------------------------


VIEW_DISTANCE = 1.15  # times the distance from which it just fits
ROOM = 1.25  # times that, for what is yet to move


def view(
    what: Trajectory | Scenario | Mechanism | Equations | Model,
    *,
    model: Model | None = None,
    drive: bool | str = False,
    start: Any = None,
    parameters: Mapping[str, float] | None = None,
    play: bool = True,
    speed: float = 1.0,
    loop: bool = True,
    run: int = 0,
    trails: str | Sequence[str] = (),
    signals: str | Sequence[str] = (),
    forces: bool = False,
    follow: bool | None = None,
    workspace: Workspace | None = None,
    host: str = "127.0.0.1",
    port: int | None = None,
    open_browser: bool = True,
    block: bool | None = None,
) -> Viewer:
    """Show a mechanism in the browser: a trajectory is played, anything else can be driven.

    Args:
        what: A trajectory, or a `Scenario`, which is simulated; or a mechanism, its equations or a
            model, which stands at its start until it is run or driven from the panel.
        model: What made the trajectory, if it comes from a file.
        drive: Run at once; "torque" or "speed" is what the motors' sliders set.
        start: State where a drive starts, by name or in any other form that `simulate` takes; home
            at rest unless given.
        parameters: Values by name that a drive starts with; the defaults unless given.
        play: Whether a trajectory plays at once.
        speed: Playback speed; 1 is real time.
        loop: Whether it starts again at its end.
        run: Which run of a batch is first shown.
        trails: Bodies whose mass centres leave a trail, or "left contact" for a wheel's.
        signals: Columns whose curves are drawn.
        forces: Whether forces at the contacts are drawn.
        follow: Keep the mechanism in view; unless given, if it travels.
        workspace: Positions whose boundary is drawn around the mechanism.
        host: Address to listen on; this machine only by default.
        port: Port to listen on; the first free one from 8080 by default.
        open_browser: Whether to open the page.
        block: Stay until Ctrl-C; unless given, in scripts and not in interactive sessions.

    Returns:
        The viewer, with `url`, `wait()` and `close()`; a context manager.

    Raises:
        NotApplicable: if viser, from the extra `view`, is not installed; or for a trajectory from
            a file without its model.
        UnknownName: for a trail or a signal that is not there.
        InvalidArgument: for anything else to show, and for a port that is in use.
    """
    surface = None if workspace is None else _surface(workspace)
    looks: dict[str, Any] = {
        "trails": (trails,) if isinstance(trails, str) else tuple(trails),
        "signals": (signals,) if isinstance(signals, str) else tuple(signals),
        "forces": forces,
    }
    if isinstance(what, Scenario):
        what = simulate(what)
    if isinstance(what, Trajectory):
        how = {"playing": play, "speed": float(speed), "loop": loop}
        viewer = _play(what, model, run, looks, follow, (host, port), how)
    else:
        viewer = _driven(what, start, parameters or {}, drive, looks, follow, (host, port))
    if surface is not None:
        viewer.drawing.surface(*surface)
    return _open(viewer, open_browser, block)


def _play(
    run: Trajectory,
    model: Model | None,
    first: int,
    looks: dict[str, Any],
    follow: bool | None,
    where: tuple[str, int | None],
    how: dict[str, Any],
) -> Viewer:
    looks["signals"] = tuple(map(run.column_names.resolve, looks["signals"]))
    if not how["speed"] > 0:
        raise InvalidArgument(f"speed: must be > 0, got {how['speed']}")
    motion = RunPoses(run.run(first), model)
    scene = scene_with(motion.model, motion.run.parameters)
    check_trails(scene, looks["trails"])
    _, poses = motion.all_poses(12)
    follow = travels(scene, poses) if follow is None else follow
    server = serve(*where, label=title_words(scene.name))
    drawing = Drawing(server, scene, motion.poses(float(run.time[0])))
    viewer = Viewer(server, drawing, _camera(scene, poses, follow))
    looks |= {"own": viewer.own, "follow": follow, **how}
    viewer.start(lambda gui: Playing(gui, drawing, run, motion.model, first, **looks))
    return viewer


def _driven(
    what: Any,
    start: Any,
    parameters: Mapping[str, float],
    drive: bool | str,
    looks: dict[str, Any],
    follow: bool | None,
    where: tuple[str, int | None],
) -> Viewer:
    model = _model(what)
    signals = model.signals
    looks["signals"] = tuple(signals.resolve(name).name for name in looks["signals"])
    slips = bool(facts_of(model).contact_table) and not drive
    mode = drive if isinstance(drive, str) else "torque" if slips else "speed"
    driven = RealTimeRun(model, model.scene.size, start=start, mode=mode, parameters=parameters)
    scene = scene_with(model, driven.parameters)
    check_trails(scene, looks["trails"])
    poses = driven.poses()
    follow = bool(scene.touches) if follow is None else follow
    server = serve(*where, label=title_words(scene.name))
    drawing = Drawing(server, scene, poses, draggable=True)
    camera = _camera(scene, poses, follow)
    camera = replace(camera, distance=(1.0 if follow else ROOM) * camera.distance)
    viewer = Viewer(server, drawing, camera)
    looks |= {"own": viewer.own, "follow": follow, "running": bool(drive)}
    viewer.start(lambda gui: Driving(gui, drawing, driven, **looks))
    server.axode_guard.on_release = viewer.stage.keys.let_go
    server.axode_guard.drives = bool(driven.axes)
    return viewer


def _surface(workspace: Any) -> tuple[Array, Any]:
    """Vertices and triangles of a workspace's boundary."""
    if not isinstance(workspace, Workspace):
        raise InvalidArgument(f"workspace: expected a Workspace, got {type(workspace).__name__}")
    if tuple(workspace.axes) != ("x", "y", "z"):
        raise InvalidArgument(
            f"workspace: a surface in space needs one over x, y, z, got {', '.join(workspace.axes)}"
        )
    return workspace.boundary.vertices, workspace.boundary.faces


def _model(what: Any) -> Model:
    if isinstance(what, Model):
        return what
    if isinstance(what, Mechanism):
        what = what.derive()
    if hasattr(what, "compile") and hasattr(what, "mobility"):
        made: Model = what.compile()
        return made
    raise InvalidArgument(
        f"view shows a Trajectory, a Mechanism, its Equations or a Model, not {type(what).__name__}"
    )


def _camera(scene: Scene, poses: Array, follow: bool) -> Camera:
    """One that sees all poses, moved to where the first is if the view follows."""
    if follow:
        every = np.array(poses.reshape(-1, *poses.shape[-3:]))
        middle = every[:, :, :3, 3].mean(axis=1, keepdims=True)
        every[:, :, :3, 3] += middle[:1] - middle
        poses = every
    camera = camera_of(scene, poses, 1.0)
    return replace(camera, distance=VIEW_DISTANCE * camera.distance)


def _open(viewer: Viewer, open_browser: bool, block: bool | None) -> Viewer:
    interactive = hasattr(sys, "ps1") or bool(sys.flags.interactive)
    waits = not interactive and "ipykernel" not in sys.modules if block is None else block
    try:
        ending = "; Ctrl-C closes it" if waits else ""
        print(f"Axode shows '{viewer.drawing.scene.name}' at {viewer.url}{ending}", flush=True)
        if open_browser:
            viewer.open_browser()
        if waits:
            viewer.wait()
    except KeyboardInterrupt:  # before the wait began, or while it ended
        viewer.close()
        if not waits:
            raise
    return viewer
