"""The page on the architecture names every folder, and only paths that exist."""

import re

from house.arrows import ORDER
from house.tree import PACKAGE, ROOT

PAGE = ROOT / "docs" / "develop" / "architecture.md"
PATH = re.compile(r"`([a-z_]+(?:/[a-z_0-9]+)*(?:/|\.(?:py|md)))`")
SOURCE = re.compile(r"`(src/axode/[\w/.]*)`")
ROW = re.compile(r"^\| `([^`]+)` \|", re.MULTILINE)


def exists(path: str) -> bool:
    """Return whether a path of the page is there, seen from the package or from the project."""
    return (PACKAGE / path).exists() or (ROOT / path).exists()


def test_every_path_exists():
    named = set(PATH.findall(PAGE.read_text()))
    assert len(named) > 90
    missing = sorted(path for path in named if not exists(path))
    assert not missing, f"docs/develop/architecture.md names {missing}"


def test_sources_named_in_the_manual_exist():
    missing = [
        f"{page.name}: {path}"
        for page in sorted((ROOT / "docs").rglob("*.md"))
        for path in SOURCE.findall(page.read_text())
        if not (ROOT / path).exists()
    ]
    assert not missing, f"name the files where they are now: {missing}"


def test_every_folder_is_in_the_tree():
    listed = ROW.findall(PAGE.read_text())
    folders = {
        f"{path.relative_to(PACKAGE).as_posix()}/"
        for path in PACKAGE.rglob("*")
        if path.is_dir() and any(path.glob("*.py"))
    }
    missing = sorted(folders - set(listed))
    assert not missing, f"give each a line in the tree of docs/develop/architecture.md: {missing}"


def test_the_tree_has_the_order_of_the_layers():
    rows = [name.rstrip("/").removesuffix(".py") for name in ROW.findall(PAGE.read_text())]
    assert [name for name in rows if name in ORDER] == list(ORDER)


def test_paths_are_read():
    text = "`a/b.py`, `a/`, `tests/x_1/y.md`, `Model.export`, `q`, `__init__.py`, `axode view`"
    assert PATH.findall(text) == ["a/b.py", "a/", "tests/x_1/y.md", "__init__.py"]
