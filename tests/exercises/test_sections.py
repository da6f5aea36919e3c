"""Exercises 12.1 to 12.11: each has a section that states it and asserts its answer in code."""

import ast
import re
from pathlib import Path

import pytest

PAGES = sorted((Path(__file__).parents[2] / "docs" / "exercises").glob("*.md"))
SECTION = re.compile(r"^## (12\.\d+) .+?\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def sections() -> dict[str, str]:
    found = [match for page in PAGES for match in SECTION.findall(page.read_text(encoding="utf-8"))]
    assert len(found) == len(dict(found)), "an exercise stands twice"
    return dict(found)


def assertions(source: str) -> int:
    return sum(isinstance(node, ast.Assert) for node in ast.walk(ast.parse(source)))


def test_all_exercises_are_there():
    assert set(sections()) == {f"12.{k}" for k in range(1, 12)}


@pytest.mark.parametrize("number", [f"12.{k}" for k in range(1, 12)])
def test_an_exercise_is_stated_and_its_answer_asserted(number):
    text = sections()[number]
    assert re.match(r"\s*\*[A-Z]", text), f"{number} begins with its statement, in italics"
    code = "\n".join(BLOCK.findall(text))
    assert assertions(code) >= 2, f"{number}: a symbolic and a numeric result are asserted"
    asked = re.search(r"model\.\w+\(|\bin states\.", code)
    assert asked, f"{number}: its numbers come from a model that Axode derived"


def test_assertions_are_counted():
    assert assertions("x = 1\nfor _ in ():\n    assert x\nassert x == 1\n") == 2
    assert assertions("print('assert')") == 0
