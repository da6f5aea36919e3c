"""Draw the pictures of guide/describe.md from the mechanisms that the page builds.

python docs/hooks/describe_pictures.py
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from axode.mechanism.scene.scene import touch_axes, touch_points
from axode.show.render.painter import camera_of, picture

DOCS = Path(__file__).resolve().parents[1]
IMAGES = DOCS / "assets" / "images"
PAGE = DOCS / "guide" / "describe.md"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
DPI = 100
FADE = 0.6  # pictures are paler than what is drawn over them
RED, GREEN, BLUE, INK = "#d3302f", "#2e8b3d", "#2f5fd0", "#1d2733"
AT, CHILD_AT = "#e07b00", "#8e3bb8"


class Sketch:
    """A picture of a mechanism, with arrows and names drawn over it in the world's coordinates."""

    def __init__(self, axes: Any, model: Any, q: Any, also: Any = (), room: float = 1.2, **turn):
        box = axes.get_window_extent()
        width, height = self.size = round(2 * box.width), round(2 * box.height)
        self.axes, self.scene, self.poses = axes, model.scene, model.poses(q)
        every = np.array([self.poses, *(model.poses(other) for other in also)])
        angles = {name: np.radians(degrees) for name, degrees in turn.items()}
        camera = camera_of(self.scene, every, width / height, **angles)
        self.camera = replace(camera, distance=room * camera.distance)
        image = picture(self.scene, self.poses, camera=self.camera, width=width, height=height)
        axes.imshow(image, extent=(0, width, height, 0), alpha=FADE)
        axes.set(xlim=(0, width), ylim=(height, 0))
        axes.set_axis_off()

    def seen(self, point: Any) -> tuple[float, float]:
        """Pixel at which a point of the world is seen."""
        width, height = self.size
        x, y, back = self.camera.axes @ (np.asarray(point, float) - self.camera.eye)
        scale = height / 2 / np.tan(self.camera.field / 2) / -back
        return width / 2 + scale * x, height / 2 - scale * y

    def arrow(self, start: Any, end: Any, colour: str, *, line: float = 2.0, style: str = "-"):
        """Draw an arrow between two points of the world."""
        self.axes.annotate(
            "",
            self.seen(end),
            self.seen(start),
            arrowprops={
                "arrowstyle": "-|>,head_width=0.22,head_length=0.4",
                "color": colour,
                "linewidth": line,
                "linestyle": style,
                "shrinkA": 0,
                "shrinkB": 0,
            },
        )

    def frame(self, pose: Any, length: float) -> None:
        """Draw the axes of a frame: x red, y green, z blue."""
        for k, colour in enumerate((RED, GREEN, BLUE)):
            self.arrow(pose[:3, 3], pose[:3, 3] + length * pose[:3, k], colour)

    def text(self, point: Any, words: str, shift: tuple[float, float], colour: str = INK) -> None:
        """Write words beside a point of the world, shifted right and up by points of the page."""
        self.axes.annotate(
            words,
            self.seen(point),
            shift,
            textcoords="offset points",
            color=colour,
            fontsize=10.5,
            ha="left" if shift[0] > 0 else "right",
            va="center",
            bbox={"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none", "alpha": 0.75},
        )


def canvas(width: float, height: float, columns: int = 1) -> tuple[Figure, list[Any]]:
    """Make a figure of the given size [in] whose panels fill it."""
    figure = Figure(figsize=(width, height), dpi=DPI)
    share = 1.0 / columns
    gap = 0.006 * (columns > 1)
    panels = [figure.add_axes((k * share, 0, share - gap, 1)) for k in range(columns)]
    return figure, panels


def at_point(pose: Any, point: Any) -> Any:
    """Return a frame moved along its own axes."""
    moved = pose.copy()
    moved[:3, 3] = pose[:3, :3] @ np.asarray(point) + pose[:3, 3]
    return moved


def frames(arm: Any) -> Figure:
    """Show the frames of ground, column, link and hinge, with `at` and `child_at`."""
    figure, (panel,) = canvas(7.6, 4.3)
    model = arm.derive().compile()
    sketch = Sketch(panel, model, {"lift": 0.5}, azimuth=-65, elevation=14)
    column, link = sketch.poses
    hinge = at_point(column, (0.06, 0, 0.3))
    for pose in (column, link, hinge):
        sketch.frame(pose, 0.13)
    sketch.arrow(column[:3, 3], hinge[:3, 3], AT, line=2.6, style="--")
    sketch.arrow(link[:3, 3], hinge[:3, 3], CHILD_AT, line=2.6, style="--")
    sketch.text(column[:3, 3], "frame of ground and column", (-14, -6))
    sketch.text(hinge[:3, 3], "frame of the joint", (-14, 14))
    sketch.text(link[:3, 3], "frame of the link", (16, -10))
    sketch.text((column[:3, 3] + hinge[:3, 3]) / 2, "at", (12, -6), AT)
    sketch.text((hinge[:3, 3] + link[:3, 3]) / 2, "child_at", (22, -24), CHILD_AT)
    return figure


def wheels(cart: Any) -> Figure:
    """Show the directions at the contact of a wheel."""
    figure, (panel,) = canvas(7.6, 4.3)
    model = cart.derive().compile()
    sketch = Sketch(panel, model, model.home, room=1.45, azimuth=58, elevation=22)
    which = [touch.name for touch in sketch.scene.touches].index("left")
    contact = touch_points(sketch.scene, sketch.poses)[which]
    ahead, across, normal = touch_axes(sketch.scene, sketch.poses)[which]
    centre = contact + 0.1 * normal
    sketch.arrow(centre, centre + 0.2 * across, INK)
    sketch.text(centre + 0.2 * across, "spin axis", (8, 4))
    for direction, words, colour, shift in (
        (ahead, "longitudinal", BLUE, (-8, 8)),
        (across, "lateral", AT, (8, 0)),
        (normal, "normal", GREEN, (8, 6)),
    ):
        sketch.arrow(contact, contact + 0.22 * direction, colour, line=2.6)
        sketch.text(contact + 0.22 * direction, words, shift, colour)
    sketch.frame(sketch.poses[0], 0.14)
    sketch.text(sketch.poses[0][:3, 3], "frame of the deck", (-12, 24))
    return figure


def loop(bar: Any) -> Figure:
    """Show a loop that is open at home, and two ways to close it."""
    figure, panels = canvas(9.0, 3.3, columns=3)
    above = bar.derive().compile()
    other = bar.copy()
    other.set_home(coupler=-1.8, rocker=-1.2)
    below = other.derive().compile()
    given = np.array([bar.home_coordinates[name] for name in above.coordinates])
    every = (given, above.home, below.home)
    titles = ("home, as given", "closed", "closed from another home")
    for panel, q, title in zip(panels, every, titles, strict=True):
        sketch = Sketch(panel, above, q, every, room=1.0, azimuth=-90, elevation=8)
        coupler, rocker = sketch.poses[1], sketch.poses[2]
        ends = at_point(coupler, (0.6, 0, 0))[:3, 3], at_point(rocker, (0.4, 0, 0))[:3, 3]
        for end in ends:
            panel.plot(*sketch.seen(end), "o", ms=8, mfc="none", mec=RED, mew=2)
        if np.linalg.norm(ends[1] - ends[0]) > 1e-6:
            sketch.arrow(*ends, RED, style=":")
        sketch.text(ends[0], "tip", (-10, 8), RED)
        panel.set_title(title, fontsize=10.5, color=INK, y=0.02)
    return figure


def main() -> None:
    """Run the page and draw its pictures."""
    names: dict[str, Any] = {"__name__": "__page__"}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with contextlib.redirect_stdout(io.StringIO()):
            code = "\n".join(BLOCK.findall(PAGE.read_text(encoding="utf-8")))
            exec(compile(code, str(PAGE), "exec"), names)
        os.chdir(DOCS)
    for name, figure in (
        ("frames", frames(names["arm"])),
        ("wheels", wheels(names["cart"])),
        ("loop", loop(names["bar"])),
    ):
        path = IMAGES / f"describe-{name}.png"
        figure.savefig(path)
        with Image.open(path) as image:
            image.convert("RGB").save(path, optimize=True)
        print(f"{path.relative_to(DOCS)}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
