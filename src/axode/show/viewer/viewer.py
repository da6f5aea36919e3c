"""The open viewer: a page, a clock, a video of what the page shows, and an end."""

from __future__ import annotations

import threading
import time
import webbrowser
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from axode.errors import AxodeError, NotApplicable
from axode.mechanism.scene.scene import Array
from axode.show.render.camera import Camera
from axode.show.render.movie_files import MOVIES, check_movie, write_movie
from axode.show.viewer.drawing import Drawing
from axode.show.viewer.server import stop

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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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
