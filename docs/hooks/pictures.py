"""Makes the pictures of pages of the manual again, by running these: python docs/hooks/pictures.py.

What a page saves as a PNG whose name is among the manual's pictures takes that picture's place. The
text under each block is compared with what is printed.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import tempfile
from pathlib import Path

from PIL import Image

DOCS = Path(__file__).resolve().parents[1]
IMAGES = DOCS / "assets" / "images"
PAGES = (
    "exercises/conventional-wheels.md",
    "exercises/omnidirectional-wheels.md",
    "guide/cooperation.md",
    "guide/inverse-kinematics.md",
    "guide/kinematics.md",
    "guide/laws.md",
    "guide/design.md",
    "guide/hexapod.md",
    "guide/mobile-manipulator.md",
    "guide/planar-robot.md",
    "guide/motions.md",
    "guide/motors.md",
    "guide/plots.md",
    "guide/singularities.md",
    "guide/workspace.md",
    "start/first-robot.md",
)
# Blocks marked `py`, which the tests leave out because they take long, run here as well.
BLOCK = re.compile(r"^```(?:python|py)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SHOWN = re.compile(r"^```\n\n```text\n(.*?)^```", re.MULTILINE | re.DOTALL)
COLOURS = 160  # few enough for small files, enough for smooth edges of lines


def run(page: Path) -> list[Path]:
    """The pictures that a page shows and its own code saves."""
    text = page.read_text(encoding="utf-8")
    made = []
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            code = compile("\n".join(BLOCK.findall(text)), str(page), "exec")
            exec(code, {"__name__": "__page__"})
        for shown in SHOWN.findall(text):
            if shown.strip() not in printed.getvalue():
                print(f"{page.name} shows what is not printed:\n{shown}")
        for picture in sorted(Path(folder).glob("*.png")):
            if f"assets/images/{picture.name}" in text:
                with Image.open(picture) as image:
                    fewer = image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
                    fewer.save(IMAGES / picture.name, optimize=True)
                made.append(IMAGES / picture.name)
        os.chdir(DOCS)
    return made


if __name__ == "__main__":
    for name in PAGES:
        for path in run(DOCS / name):
            print(f"{path.relative_to(DOCS)}: {path.stat().st_size / 1000:.0f} kB")
