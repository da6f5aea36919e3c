"""Where things stand in the project, for the tests that guard its house rules."""

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "axode"

_MADE = {".git", ".venv", "out", "site", "dist", "build", "__pycache__", ".hypothesis"}
_MADE |= {".mypy_cache", ".ruff_cache", ".pytest_cache"}


def relative(path: Path) -> str:
    """Path as one would type it at the project root."""
    return path.relative_to(ROOT).as_posix()


@cache
def parsed(source: str) -> ast.Module:
    """Syntax tree of some code, parsed once for all tests; not to be changed."""
    return ast.parse(source)


@cache
def nodes(source: str) -> tuple[ast.AST, ...]:
    """All nodes of the syntax tree of some code, as `ast.walk` finds them."""
    return tuple(ast.walk(parsed(source)))


def sources() -> list[Path]:
    """Every Python file of the package."""
    return sorted(PACKAGE.rglob("*.py"))


def tracked_files() -> list[Path]:
    """Files under version control, and new ones that are not ignored."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):  # an unpacked archive has no git
        return sorted(_walk(ROOT))
    paths = (ROOT / name for name in listed.decode().split("\0") if name)
    return sorted(path for path in paths if path.is_file())


def _walk(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.is_dir() and path.name not in _MADE:
            yield from _walk(path)
        elif path.is_file():
            yield path
