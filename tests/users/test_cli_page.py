"""The manual's page of the command line: its lines are run, in order, in one folder."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from axode.cli import VERBS, run

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guide" / "command-line.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
SLOW = ("view", "reproduce", "verify", "bench", "doctor")  # each has its own test


def lines() -> list[list[str]]:
    text = "\n".join(BLOCK.findall(PAGE)).replace("\\\n", " ")
    return [shlex.split(line)[1:] for line in text.splitlines() if line.startswith("axode ")]


@pytest.mark.slow
def test_every_line_of_the_page_runs(tmp_path, monkeypatch, capsys):
    for example in (ROOT / "examples").iterdir():  # the page names them as a reader's own
        if example.suffix in (".toml", ".urdf"):
            shutil.copy(example, tmp_path)
    monkeypatch.chdir(tmp_path)
    shown = [line for line in lines() if line[0] not in SLOW]
    assert len(shown) > 20
    for line in shown:
        assert run(line) == 0, f"axode {shlex.join(line)}\n{capsys.readouterr().err}"
    written = {path.name for path in tmp_path.iterdir()}
    assert {"run.csv", "run.png", "robot.c", "robot.h", "unicycle.axm", "unicycle.ptx"} <= written


def test_the_page_shows_verbs_that_exist():
    verbs = {verb.__name__ for verb in VERBS}
    assert {line[0] for line in lines() if line[0] != "--version"} <= verbs
    assert {line[0] for line in lines()} >= verbs


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.__name__)
def test_help_starts_with_a_sentence_and_lines_that_call_the_verb(verb, capsys):
    name = verb.__name__
    assert run([name, "--help"]) == 0
    assert f"axode {name}" in capsys.readouterr().out
    examples = [line.strip() for line in verb.__doc__.splitlines()[1:] if line.strip()]
    assert len(examples) >= 2
    assert all(line.startswith(f"axode {name}") for line in examples[:2])
    assert all(len(line) < 79 for line in examples[:2]), "80 columns should hold it"
