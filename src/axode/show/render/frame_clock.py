"""The time of a frame, written in its corner."""

from __future__ import annotations

import numpy as np

from axode.mechanism.scene.scene import Array
from axode.show.render.movie_files import Image, need_pillow

INK = np.array([34.0, 40.0, 46.0])
HEIGHT = 1 / 24  # of the text, in heights of the picture
LEAST_HEIGHT = 9  # pixels


class FrameClock:
    """Writes times into pictures.

    Args:
        times: Times of all frames [s].
        height: Height of the pictures, in pixels.
    """

    def __init__(self, times: Array, height: int) -> None:
        self._pillow = need_pillow()
        from PIL import ImageFont

        self._size = max(LEAST_HEIGHT, round(HEIGHT * height))
        self._font = ImageFont.load_default(self._size)
        step = float(np.median(np.abs(np.diff(times)))) if len(times) > 1 else 1.0
        decimals = int(np.clip(np.ceil(-np.log10(max(step, 1e-9)) - 0.01), 1, 6))
        self._texts = [f"t = {t + 0.0:.{decimals}f} s" for t in times.tolist()]

    def stamped(self, image: Image, k: int) -> Image:
        """The picture of frame `k` with its time in the lower left corner; it is changed."""
        from PIL import ImageDraw

        size = self._size
        strip = self._pillow.new("L", (image.shape[1], 2 * size))
        ImageDraw.Draw(strip).text((0.6 * size, 0.4 * size), self._texts[k], 255, self._font)
        _, _, right, _ = strip.getbbox() or (0, 0, 1, 1)
        share = np.asarray(strip)[:, :right, None] / 255.0
        place = image[-len(share) :, :right]
        place += (share[-len(place) :] * (INK - place)).round().astype(np.int16).astype(np.uint8)
        return image
