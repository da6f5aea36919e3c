"""The manual's search finds what newcomers ask for, by the words of its pages."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINE = re.compile(r"^\s+separator: '(.*)'$", re.MULTILINE)


def words(text):
    """Words as the search of the manual takes text apart."""
    (separator,) = LINE.findall((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    return set(re.split(separator.replace("''", "'"), text.lower()))


@pytest.mark.parametrize(
    ("word", "page"),
    [
        ("csv", "guide/command-line.md"),
        ("gymnasium", "guide/stepper.md"),
        ("ramp", "guide/ramps-and-payload.md"),
        ("payload", "guide/ramps-and-payload.md"),
        ("motor", "guide/motors.md"),
        ("urdf", "guide/from-ros.md"),
        ("nav2", "guide/from-ros.md"),
        ("clearances", "guide/design.md"),
        ("tolerances", "guide/design.md"),
        ("notebook", "guide/course.md"),
    ],
)
def test_words_lead_to_their_pages(word, page):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert word in words(text)


def test_words_inside_code_are_found():
    assert {"csv", "save", "add", "motor", "x"} <= words('run.save("x.csv"), bot.add_motor(...)')


def test_every_page_of_the_guide_is_in_a_group():
    """A page of the guide stands once in the navigation, under one of the groups."""
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    guide = text[text.index("  - Guide:") : text.index("  - Gallery:")]
    listed = re.findall(r"^          - .*: guide/(\S+)$", guide, re.MULTILINE)
    pages = sorted(path.name for path in (ROOT / "docs" / "guide").glob("*.md"))
    assert sorted(listed) == pages
