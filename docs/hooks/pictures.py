"""Makes the pictures of pages of the manual again, by running these: python docs/hooks/pictures.py.

What a page saves as a PNG whose name is among the manual's pictures takes that picture's place.
"""

from __future__ import annotations

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
    "guide/mobile-manipulator.md",
    "guide/plots.md",
    "guide/singularities.md",
    "guide/workspace.md",
    "start/first-robot.md",
)
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
COLOURS = 160  # few enough for small files, enough for smooth edges of lines


def run(page: Path) -> list[Path]:
    """The pictures that a page shows and its own code saves."""
    text = page.read_text(encoding="utf-8")
    made = []
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        exec(compile("\n".join(BLOCK.findall(text)), str(page), "exec"), {"__name__": "__page__"})
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
