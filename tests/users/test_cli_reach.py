"""`axode reach`: postures for targets, from the command line."""

import json

import pytest

from axode.cli import run


def test_a_posture_as_json(capsys):
    words = "reach seven_axis_arm --target link7=0.4,0.1,0.6,pi,0,0 --limits q1=-0.1:0.1 --json"
    assert run(words.split()) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["reached"] and abs(found["coordinates"]["q1"]) <= 0.1
    assert found["errors"]["link7.rotation"] < 1e-9


def test_a_posture_as_a_table(capsys):
    assert run(["reach", "five_axis_arm", "--target", "theta1=0.5", "--attempts", "1"]) == 0
    shown = capsys.readouterr().out
    assert "All targets are met" in shown and "theta1" in shown
    words = "reach five_axis_arm --target theta1=0.5 --limits theta1=0:0.4 --attempts 1"
    assert run(words.split()) == 1
    shown = capsys.readouterr().out
    assert "Not all targets can be met" in shown and "at its limit" in shown


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("", "give at least one, NAME=X,Y,Z or NAME=X,Y,Z,ROLL,PITCH,YAW of a body"),
        ("--target link7=1,2", "has 2 numbers; expected NAME=X,Y,Z"),
        ("--target link7", "is not NAME=VALUE"),
        ("--target q1=1 --limits q1=1", "needs LOW:HIGH"),
        ("--target q1=much", "needs a finite number"),
    ],
)
def test_mistakes(words, text, capsys):
    assert run(f"reach seven_axis_arm {words}".split()) == 2
    assert text in capsys.readouterr().err.replace("\n", " ")
