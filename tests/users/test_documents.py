"""What README and the manual show is run: code blocks work, printed reports are what is printed."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
REPORT = re.compile(r"^```text\n(.*?)^```", re.MULTILINE | re.DOTALL)


def runnable(page: Path) -> str:
    """All Python blocks of a page in order; they may build on each other."""
    return "\n".join(BLOCK.findall(page.read_text(encoding="utf-8")))


@pytest.mark.parametrize("page", [p for p in PAGES if runnable(p)],
                         ids=lambda p: str(p.relative_to(ROOT)))  # fmt: skip
def test_code_blocks_run(page, tmp_path, monkeypatch):
    for example in (ROOT / "examples").glob("*.toml"):  # pages name them as a reader's own
        shutil.copy(example, tmp_path)
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__page__"}
    exec(compile(runnable(page), str(page), "exec"), names)
    assert any(not name.startswith("__") for name in names)


def test_readme_shows_the_report_that_is_printed():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    names: dict[str, object] = {}
    exec(compile(BLOCK.findall(readme)[0], "README.md", "exec"), names)
    (shown,) = REPORT.findall(readme)
    assert str(names["equations"]).strip() == shown.strip()


def test_readme_is_short_where_it_shows_code():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    statements = [line for line in BLOCK.findall(readme)[0].splitlines() if line.strip()]
    assert len(statements) <= 15
