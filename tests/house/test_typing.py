"""What a type checker knows of the public names: enough to find planted mistakes."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys

import pytest

import axode
from axode import errors
from house.tree import PACKAGE

SCRIPT = """\
import axode as ax
from axode import gallery
from typing_extensions import reveal_type

ax.simulat(1)  # mistake
model = ax.load_model("robot.axm")
model.forward_dynamcs  # mistake
run = ax.simulate(model, 1.0)
run.statuss  # mistake
ax.load(3)  # mistake
ax.load("robot.toml").bodees  # mistake
ax.load("robot.toml").derive("recursive").compile().inputs + 1  # mistake
ax.linearize(model).poles.shape + "x"  # mistake
ax.Sampled()  # mistake
ax.FileErorr  # mistake
ax.view(3)  # mistake
ax.sweep  # sound
ax.paths.Path  # sound
gallery.build("four_bar").derive().compile().forward_dynamics([0.0], [0.0])
"""


def checked(text: str, tmp_path) -> str:
    """What mypy says of a script that uses Axode."""
    script = tmp_path / "script.py"
    script.write_text(text)
    root = PACKAGE.parents[1]
    command = [sys.executable, "-P", "-m", "mypy", "--config-file", "pyproject.toml", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=root)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


@pytest.mark.slow
def test_planted_mistakes_are_found(tmp_path):
    names = "".join(f"ax.{name}\n" for name in sorted({*axode.__all__, *error_names()}))
    revealed = "".join(f"reveal_type(ax.{name})\n" for name in sorted(axode._LAZY))
    said = checked(SCRIPT + names + revealed, tmp_path)
    found = {int(line) for line in re.findall(r"script\.py:(\d+): error", said)}
    lines = SCRIPT.splitlines()
    planted = {number for number, line in enumerate(lines, 1) if line.endswith("# mistake")}
    assert found == planted, said
    types = re.findall(r'Revealed type is "(.*)"', said)
    assert len(types) == len(axode._LAZY) and "Any" not in types, said


def error_names() -> list[str]:
    """The errors, each of which can be had from `axode` itself."""
    public = inspect.getmembers(errors, inspect.isclass)
    return [name for name, value in public if value.__module__ == errors.__name__]
