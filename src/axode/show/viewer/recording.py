"""A video of what the browser shows."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.errors import AxodeError, NotApplicable
from axode.show.render.movie_files import MOVIES, check_movie, write_movie

RATE = 20.0  # pictures per second
LONGEST = 300.0  # [s]
MOST_ROWS = 720  # pixels
PATIENCE = 20.0  # [s] for one picture; a browser without a GPU may take long
RECORD, STOP = "Record", "Stop recording"


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
