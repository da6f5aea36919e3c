"""The page and the tests know the same rows."""

import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "errata.md"
ROW = re.compile(r"^\| ([A-E]-\d+) \|(.*)\|$", re.MULTILINE)
TEST = re.compile(r"^def test_([A-E])(\d+)_", re.MULTILINE)
LAST = {"A": 21, "B": 8, "C": 13, "D": 16, "E": 27}
FILES = {"A": "angeles", "B": "saha_angeles", "C": "staicu", "D": "yesiloglu", "E": "valencia"}


def rows() -> dict[str, list[str]]:
    """Cells of every row of the page, by its number."""
    found = ROW.findall(PAGE.read_text(encoding="utf-8"))
    numbers = [number for number, _ in found]
    assert len(numbers) == len(set(numbers)), "a row stands twice on the page"
    return {number: [cell.strip() for cell in cells.split("|")] for number, cells in found}


def rows_checked() -> set[str]:
    found = set()
    for letter, name in FILES.items():
        source = (HERE / f"test_{name}.py").read_text(encoding="utf-8")
        numbers = TEST.findall(source)
        assert {first for first, _ in numbers} == {letter}, f"test_{name}.py checks other rows"
        found |= {f"{first}-{number}" for first, number in numbers}
    return found


def test_every_row_of_the_documents_is_on_the_page():
    expected = {f"{letter}-{k}" for letter, last in LAST.items() for k in range(1, last + 1)}
    assert set(rows()) == expected


def by_inspection(cells: list[str]) -> bool:
    return cells[-1].endswith("(by inspection)")


def test_every_row_says_where_what_and_what_follows():
    for number, cells in rows().items():
        assert len(cells) == 4 and all(cells), f"{number}: four cells after its number, got {cells}"
        assert cells[1] != cells[2], f"{number}: printed and correct are the same"


def test_rows_and_tests_match():
    """A row has a test unless it says otherwise; a test checks a row of the page."""
    claimed = {number for number, cells in rows().items() if not by_inspection(cells)}
    assert claimed == rows_checked()


def test_few_rows_are_by_inspection():
    """Words, headings and references, which no number decides."""
    inspected = {n for n, cells in rows().items() if by_inspection(cells)}
    assert inspected == {"A-21", "C-11", "D-15", "D-16", "E-26", "E-27"}
