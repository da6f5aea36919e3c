"""The open viewer: a page, a clock, and an end."""

from __future__ import annotations

import threading
import time
import webbrowser
from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol

from axode.mechanism.scene.scene import Array
from axode.show.render.camera import Camera
from axode.show.viewer.drawing import Drawing
from axode.show.viewer.recording import Recording
from axode.show.viewer.server import stop

FRAME = 1 / 40  # [s]
# Viser wakes the thread that sends its messages from ours, without a lock. Seldom, both meet; the
# message is then in the queue, and the next picture makes up for it.
WAKING = "deque mutated during iteration"


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
