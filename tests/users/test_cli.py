"""The command line: the same answers as Python, exit codes, and words instead of tracebacks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import axode as ax
from axode.cli import run

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.slow
def test_a_warning_is_printed_once(tmp_path, monkeypatch, capsys):
    """A cache that takes nothing was mentioned for every function that was compiled."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("AXODE_CACHE", str(tmp_path / "file"))
    assert run(["simulate", "unicycle", "--time", "0.1"]) == 0
    shown = capsys.readouterr().err
    assert shown.count("Compiled code is not cached: cannot write") == 1


def test_check_prints_the_mobility_report(capsys):
    assert run(["check", str(EXAMPLES / "balancer.toml")]) == 0
    expected = str(ax.load(EXAMPLES / "balancer.toml").derive())
    assert capsys.readouterr().out.strip() == expected


def test_check_for_machines(capsys):
    assert run(["check", str(EXAMPLES / "fourbar.toml"), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["mobility"] == 1
    assert report["holonomic"] is True


@pytest.mark.slow
def test_check_lists_the_couplings(capsys):
    path = str(EXAMPLES / "differential.toml")
    assert run(["check", path]) == 0
    assert "  coupling       tie_rod: steer_right - steer = 0\n" in capsys.readouterr().out
    assert run(["check", path, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)["couplings"]
    assert shown == list(map(str, ax.load(path).couplings))


@pytest.mark.slow
def test_compare_shows_every_formulation(capsys):
    assert run(["compare", str(EXAMPLES / "fourbar.toml")]) == 0
    shown = capsys.readouterr().out
    for name in ax.FORMULATIONS:
        assert name in shown


def test_gallery_lists_names(capsys):
    from axode import gallery

    assert run(["gallery", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == gallery.NAMES


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["check", "missing.toml"], 1, "cannot read missing.toml"),
        (["check", "no_such_robot"], 1, "the gallery has no mechanism 'no_such_robot'"),
        (["chekc", "x"], 2, "No such command"),
        (["check"], 2, "Missing argument"),
    ],
)
def test_mistakes_are_told_without_a_traceback(arguments, code, words, capsys):
    assert run(arguments) == code
    shown = capsys.readouterr().err
    assert words in shown
    assert "Traceback" not in shown


def test_a_wrong_file_is_told_with_its_lines(tmp_path, capsys):
    wrong = tmp_path / "wrong.toml"
    wrong.write_text('name = "wrong"\n[body.arm]\nmass = -1.0\ninertia = [1, 1, 9]\n')
    assert run(["check", str(wrong)]) == 1
    shown = capsys.readouterr().err
    assert "line   3" in shown
    assert "must be > 0 kg" in shown


@pytest.mark.parametrize("verb", ["check", "compare", "gallery"])
def test_help_opens_with_lines_that_run(verb, capsys):
    assert run([verb, "--help"]) == 0
    assert f"axode {verb}" in capsys.readouterr().out


def test_the_package_runs_as_a_module():
    environment = {**os.environ, "PYTHONPATH": str(Path(ax.__file__).parents[1])}
    command = [sys.executable, "-P", "-m", "axode", "--version"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert shown.stdout.startswith("axode ")


@pytest.mark.slow
@pytest.mark.parametrize(("example", "needed"), [("balancer", set()), ("rover", {"sympy"})])
def test_a_check_waits_for_nothing_that_it_does_not_need(example, needed):
    """Of the rover, exact sums of coordinates are printed that its wheels keep constant."""
    path = str(EXAMPLES / f"{example}.toml")
    code = (
        f"import sys; from axode.cli import run; run(['check', {path!r}]); "
        "print(*{name.split('.')[0] for name in sys.modules})"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(ax.__file__).parents[1])}
    shown = subprocess.run(
        [sys.executable, "-P", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    ).stdout
    loaded = set(shown.splitlines()[-1].split())
    assert "casadi" in loaded
    others = {"scipy", "rich", "llvmlite", "matplotlib", "pandas", "sympy", "viser"}
    assert loaded & others == needed
