"""Text and names read as plain technical English."""

import pytest

from house.language import FILES, TEXT, wrong_words
from house.tree import ROOT, relative, sources


def test_the_package_uses_plain_words():
    faults = [
        f"{relative(path)}, {fault}"
        for path in sources()
        for fault in wrong_words(path.read_text())
    ]
    assert not faults, "words that a reader stumbles over:\n  " + "\n  ".join(faults)


def test_files_are_named_by_what_they_hold():
    names = [path for path in sources() if path.stem in FILES]
    names += [path for path in sources() if path.stem.startswith(("held_", "given_"))]
    assert not names, f"name these by what they hold: {[relative(path) for path in names]}"


@pytest.mark.parametrize(
    "source",
    [
        "OPERATIONS_A_NUMBER = 8",
        "LANES_AN_INSTRUCTION = 4",
        "def tell():\n    pass",
        "def _settled(x):\n    return x",
        '"""One file a verb."""',
        "x = 1  # frames a second",
        '"""Code.\n\n    One array an\n    input."""',
        '"""What is wrong is told at once."""',
        'raise ValueError("the page says so")',
        'def f():\n    """Of a number."""',
        'def f():\n    """Whether it is."""',
        'def f(x):\n    """Add.\n\n    Args:\n        x: Of the port.\n    """',
        "x = 1  # strangers to the pipeline",
        '"""Refuse a name that there is not."""',
        "x = 1  # nobody reads it",
        "x = 1  # numbered anew",
        '"""Return whether a detour is worth it."""',
        '"""Do something on the GPU of the piece."""',
        "x = 1  # the header tells its size",
        "x = 1  # forces that statics cannot tell",
        "def given_values():\n    pass",
        "def _held_loops():\n    pass",
        "def find_shortfall():\n    pass",
        "NOTHING = 1e300",
    ],
)
def test_a_wrong_word_is_seen(source):
    assert wrong_words(source)


@pytest.mark.parametrize(
    "source",
    [
        "OPERATIONS_PER_NUMBER = 8",
        '"""One file per verb."""',
        "x = 1  # takes a second",
        'def f():\n    """Return whether a run has ended."""',
        'def f():\n    """Offset of a row."""',
        "settled = 1",
    ],
)
def test_a_plain_word_is_let_through(source):
    assert wrong_words(source) == []


def test_the_manual_uses_plain_words():
    """Counted words aside: "where in the file a wheel appears" is good English."""
    patterns = list(TEXT.items())[1:]
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    faults = [
        f"{relative(page)}: '{match[0]}', write {instead}"
        for page in pages
        for pattern, instead in patterns
        for match in pattern.finditer(page.read_text())
    ]
    assert not faults, "words that a reader stumbles over:\n  " + "\n  ".join(faults)
