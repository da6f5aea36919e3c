"""What README and the manual show is run: code blocks work, printed reports are what is printed."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

import axode
from axode.cli import VERBS, run

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
SHELL = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
ELSEWHERE = ("view", "reproduce", "verify", "bench", "doctor")  # slow; each has tests of its own
LONG = ("plots", "report")  # run by `make soak`; pictures and reports have tests of their own
# Pages whose code, or whose shell lines, `make test` runs; `make test-slow` runs the others.
QUICK = ("README", "index", "check", "describe", "from-toml", "from-urdf", "from-mjcf", "from-sdf")
QUICK_LINES = ("additions", "install")
PRINTED = re.compile(
    r"^```python\n(?:(?!^```).)*^```\n\n```text\n(.*?)^```", re.MULTILINE | re.DOTALL
)
REPORT = re.compile(r"^```text\n(.*?)^```", re.MULTILINE | re.DOTALL)


def runnable(page: Path) -> str:
    """All Python blocks of a page in order; they may build on each other."""
    return "\n".join(BLOCK.findall(page.read_text(encoding="utf-8")))


def marks(page: Path, quick: tuple[str, ...]) -> list[pytest.MarkDecorator]:
    if page.stem in LONG:
        return [pytest.mark.soak]
    return [] if page.stem in quick else [pytest.mark.slow]


@pytest.mark.parametrize(
    "page",
    [pytest.param(p, marks=marks(p, QUICK)) for p in PAGES if runnable(p)],
    ids=lambda p: str(p.relative_to(ROOT)),
)
def test_code_blocks_run(page, tmp_path, monkeypatch, capsys):
    """All of a page runs, and text that stands right under a block is what is printed."""
    for example in (ROOT / "examples").iterdir():  # pages name files as a reader's own
        if example.suffix in (".toml", ".urdf"):
            shutil.copy(example, tmp_path)
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__page__"}
    exec(compile(runnable(page), str(page), "exec"), names)
    assert any(not name.startswith("__") for name in names)
    printed = capsys.readouterr().out
    for shown in PRINTED.findall(page.read_text(encoding="utf-8")):
        assert shown.strip() in printed


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


def commands(page: Path) -> list[list[str]]:
    """Lines of a page that call Axode from a shell."""
    text = "\n".join(SHELL.findall(page.read_text(encoding="utf-8"))).replace("\\\n", " ")
    lines = (shlex.split(line, comments=True) for line in text.splitlines())
    return [line[1:] for line in lines if line and line[0] == "axode"]


def first_pages() -> dict[Path, list[list[str]]]:
    """Lines by the page that shows them first; the page of the command line has its own test."""
    known = {
        tuple(line) for page in PAGES if page.stem == "command-line" for line in commands(page)
    }
    found: dict[Path, list[list[str]]] = {}
    for page in PAGES:
        for line in commands(page):
            if line[0] not in ELSEWHERE and tuple(line) not in known:
                known.add(tuple(line))
                found.setdefault(page, []).append(line)
    return found


@pytest.mark.parametrize(
    ("page", "lines"),
    [pytest.param(p, x, marks=marks(p, QUICK_LINES)) for p, x in first_pages().items()],
    ids=lambda value: str(value.relative_to(ROOT)) if isinstance(value, Path) else "",
)
def test_shell_lines_run(page, lines, tmp_path, monkeypatch, capsys):
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    for example in (ROOT / "examples").glob("*.toml"):
        shutil.copy(example, tmp_path)
    monkeypatch.chdir(tmp_path)
    for line in lines:
        assert run(line) == 0, f"axode {shlex.join(line)}\n{capsys.readouterr().err}"


@pytest.mark.parametrize("page", [p for p in PAGES if commands(p)], ids=lambda p: p.name)
def test_shell_lines_call_verbs_that_exist(page):
    assert {line[0] for line in commands(page)} <= {verb.__name__ for verb in VERBS} | {"--version"}


def test_readme_shows_five_command_lines():
    assert len(commands(ROOT / "README.md")) == 5


def test_the_reference_has_every_public_name():
    text = "\n".join(page.read_text() for page in (ROOT / "docs" / "api").glob("*.md"))
    listed = {entry.rpartition(".")[2] for entry in re.findall(r"^::: (\S+)$", text, re.MULTILINE)}
    # modules, and what stands in one of them
    whole = {"blocks", "design", "errors", "gallery", "motions", "ros", "AxodeError", "Path"}
    assert {*axode.design.__all__, *axode.ros.__all__} <= listed
    assert set(axode.__all__) - whole <= listed
