"""Notebooks of the course run, say what they show, and stay small."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "examples").glob("course_*.ipynb"))
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
ROUNDING = 1e-9  # smaller numbers are what rounding leaves
SMALL = 60_000  # bytes

# What they teach, checked where it is computed: a line of each, with its two numbers.
ALIKE = {
    "course_gough_platform": r"l_VI +(\S+) m, by hand (\S+) m",
    "course_rolling_disk": r"height of the centre: (\S+) to (\S+) m",
    "course_rover_motors": r"by hand: (\S+) N m at the motor's shaft\s+by the model: (\S+) N m",
}


def runner():
    """The module that runs notebooks."""
    spec = importlib.util.spec_from_file_location(
        "course_notebooks", ROOT / "docs" / "hooks" / "notebooks.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_what_it_computes(path):
    notebooks, book = runner(), json.loads(path.read_text(encoding="utf-8"))
    every = ""
    for place, outputs in notebooks.executed(book, pictures=False):
        cell = book["cells"][place]
        kept, made = notebooks.text_of(cell["outputs"]), notebooks.text_of(outputs)
        assert NUMBER.sub("#", kept) == NUMBER.sub("#", made), "".join(cell["source"])
        for a, b in zip(NUMBER.findall(kept), NUMBER.findall(made), strict=True):
            assert float(b) == pytest.approx(float(a), rel=1e-3, abs=ROUNDING), (a, b)
        every += made
    assert len({float(x) for x in re.search(ALIKE[path.stem], every).groups()}) == 1


def test_notebooks_are_small_whole_and_linked():
    nbformat = pytest.importorskip("nbformat")
    page = (ROOT / "docs" / "guide" / "course.md").read_text(encoding="utf-8")
    assert {path.stem for path in NOTEBOOKS} == {*ALIKE}
    for path in NOTEBOOKS:
        nbformat.validate(nbformat.read(path, as_version=4))
        assert path.stat().st_size < SMALL and path.name in page
        assert "image/png" in path.read_text(encoding="utf-8")
