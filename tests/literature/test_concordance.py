"""The concordance has every number of the five sources once, and every name on it exists."""

from __future__ import annotations

import inspect
import re
import shlex
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import axode
from axode import gallery
from axode.cli import VERBS
from axode.literature.reproduce import SOURCES, catalogue

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "sources" / "concordance.md").read_text(encoding="utf-8")
CELLS = ("number", "what", "names", "theory", "mechanisms", "commands", "errata")
CODE = re.compile(r"`([^`]+)`")
# A number with the letters that follow it: 12.8 has a, b, c, d.
LETTERS = {
    **{4: "abcd", 8: "abcd", 27: "abc", 28: "abcde", 29: "abc", 32: "ab", 34: "ab", 36: "ab"},
    **{45: "ab", 47: "ab", 57: "ab", 58: "abc", 60: "abcd", 66: "abc", 67: "abc", 74: "a"},
}


def chapter() -> list[str]:
    """Equations (12.1) to (12.79); the copy used has no (12.73)."""
    numbers = [k for k in range(1, 80) if k != 73]
    return [f"12.{k}{letter}" for k in numbers for letter in LETTERS.get(k, ("",))]


def counted(last: int, before: str = "") -> list[str]:
    return [f"{before}{k}" for k in range(1, last + 1)]


NUMBERS = {
    "Angeles, chapter 12": [
        *chapter(),
        *(f"Fig. 12.{k}" for k in range(1, 9)),
        "Example 12.4.1",
        *(f"Exercise 12.{k}" for k in range(1, 12)),
    ],
    "Saha and Angeles, 1991": [*counted(38), *counted(4, "Fig. ")],
    "Staicu, 2011": [*counted(39), *counted(13, "Fig. ")],
    "Yesiloglu, Temeltas and Kaynak": [*counted(36), *counted(5, "Fig. ")],
    "Valencia, Aviles and Mauledoux, 2017": [*counted(69), *counted(9, "Fig. ")],
}
LETTER_OF_ERRATA = dict(zip(NUMBERS, "ABCDE", strict=True))


@dataclass(frozen=True)
class Entry:
    """A row of a table of the page."""

    number: str
    what: str
    names: str
    theory: str
    mechanisms: str
    commands: str
    errata: str


def table_rows(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in rows if row[0] not in ("number", "name") and set(row[0]) != {"-"}]


def sections() -> dict[str, str]:
    parts = re.split(r"^## (.+)$", PAGE, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def entries(source: str) -> list[Entry]:
    return [Entry(**dict(zip(CELLS, row, strict=True))) for row in table_rows(sections()[source])]


ALL = [(source, entry) for source in NUMBERS for entry in entries(source)]


def covered(cell: str, order: list[str]) -> list[str]:
    """Numbers that the first cell of a row stands for; places between numbers are none."""
    if cell.startswith(("after ", "steps ")):
        return []
    found = []
    for part in cell.split(", "):
        first, _, last = part.partition(" to ")
        found += order[order.index(first) : order.index(last or first) + 1]
    return found


@cache
def homes() -> dict[str, str]:
    """Modules of names that `axode` does not export, as the page lists them."""
    rows = table_rows(sections()["Where the other names are"])
    return {name: CODE.findall(place)[0] for names, place in rows for name in CODE.findall(names)}


def member(parent: Any, name: str) -> Any:
    """An attribute of a module or class; those that instances set count as well."""
    if hasattr(parent, name):
        return getattr(parent, name)
    if isinstance(parent, type):
        annotated = any(name in inspect.get_annotations(one) for one in parent.__mro__[:-1])
        if annotated or re.search(rf"\bself\.{name}\b.* = ", inspect.getsource(parent)):
            return None
    elif isinstance(parent, ModuleType):
        return import_module(f"{parent.__name__}.{name}")
    raise AttributeError(f"{parent} has no {name}")


def resolve(dotted: str) -> Any:
    first, *rest = dotted.split(".")
    found = member(import_module(homes()[first]) if first in homes() else axode, first)
    for name in rest:
        found = member(found, name)
    return found


@pytest.mark.parametrize("source", NUMBERS)
def test_every_number_stands_once(source):
    order = NUMBERS[source]
    found = [number for entry in entries(source) for number in covered(entry.number, order)]
    assert sorted(found, key=order.index) == order


def test_every_name_can_be_imported():
    wrong = []
    for source, entry in ALL:
        for name in CODE.findall(entry.names):
            try:
                resolve(name)
            except (AttributeError, ImportError) as error:
                wrong.append(f"{source}, {entry.number}: {name}: {error}")
    assert not wrong, "\n".join(wrong)


def test_every_row_names_something_or_gives_a_reason():
    for source, entry in ALL:
        assert CODE.findall(entry.names) or entry.names.startswith("not needed: "), (source, entry)


def test_every_tag_is_one_of_the_theory():
    theory = "".join(path.read_text() for path in (DOCS / "theory").glob("*.md"))
    known = set(re.findall(r"\\tag\{(\w+)\}", theory))
    for source, entry in ALL:
        tags = [tag for tag in entry.theory.split(", ") if tag]
        assert {tag.strip("()") for tag in tags} <= known, (source, entry)


def test_every_mechanism_is_in_the_gallery():
    for source, entry in ALL:
        assert set(CODE.findall(entry.mechanisms)) <= set(gallery.NAMES), (source, entry)


def test_every_command_names_what_exists():
    verbs = {verb.__name__ for verb in VERBS}
    items = {*catalogue(), *SOURCES}
    for source, entry in ALL:
        for command in CODE.findall(entry.commands):
            program, verb, *rest = shlex.split(command)
            assert program == "axode" and verb in verbs, (source, command)
            known = {"reproduce": items, "verify": {"--case"}}.get(verb, gallery.NAMES)
            assert all(word in known for word in rest[:1]), (source, command)


def test_every_item_is_on_the_page():
    assert not [name for name in catalogue() if f"`axode reproduce {name}`" not in PAGE]


def rows_of_errata() -> set[str]:
    text = (DOCS / "errata.md").read_text(encoding="utf-8")
    return set(re.findall(r"^\| ([A-E]-\d+) \|", text, re.MULTILINE))


def test_every_erratum_stands_at_its_equation():
    named = {row for _, entry in ALL for row in entry.errata.split(", ") if row}
    assert named == rows_of_errata()
    for source, entry in ALL:
        letters = {row[0] for row in entry.errata.split(", ") if row}
        assert letters <= {LETTER_OF_ERRATA[source]}, (source, entry)


def test_errata_that_other_pages_name_exist():
    """They become links when the manual is built."""
    for page in DOCS.rglob("*.md"):
        named = set(re.findall(r"\b[A-E]-[1-9][0-9]*\b", page.read_text(encoding="utf-8")))
        assert named <= rows_of_errata(), page


def test_numbers_are_read_strictly():
    order = ["1", "2", "3a", "3b", "4"]
    assert covered("2 to 3b, 4", order) == ["2", "3a", "3b", "4"]
    assert covered("after 4", order) == []
    with pytest.raises(ValueError):
        covered("5", order)
    with pytest.raises(AttributeError):
        resolve("Model.no_such_function")
