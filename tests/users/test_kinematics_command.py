"""`axode kinematics`: what it prints and writes."""

import json

import pytest

from axode.cli import run


def test_postures_are_listed(capsys):
    assert run(["kinematics", "five_bar", "--values", "theta1=1.9"]) == 0
    text = capsys.readouterr().out
    assert "driven    theta1, theta2" in text
    assert "legs      R_R (theta1), R_RR (theta2)" in text
    assert "2 real postures, 2 over the complex numbers" in text


def test_postures_are_written(tmp_path, capsys):
    path, picture = tmp_path / "postures.json", tmp_path / "modes.png"
    words = ["kinematics", "five_bar", "--json", "--out", str(path), "--plot", str(picture)]
    assert run(words) == 0 and picture.exists()
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads(path.read_text())
    assert printed["mobility"] == 2 and printed["finite"] == [2]
    assert {posture["mode"] for posture in printed["postures"]} == {"+1", "-1"}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("seven_axis_arm --pose x=0.1", "more joints than a pose needs to reach a pose in"),
        ("five_bar --pose x=0.1 --values theta1=1", "give a pose, or values and parameters"),
        ("five_bar --values theta9=1", "has no driven coordinate 'theta9'"),
    ],
)
def test_mistakes_are_named(arguments, text, capsys):
    assert run(["kinematics", *arguments.split()]) > 0
    assert text in " ".join(capsys.readouterr().err.replace("│", " ").split())
