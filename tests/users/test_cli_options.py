"""Options of all verbs: placeholders, combinations that mean nothing, flags that errors name."""

from __future__ import annotations

import inspect
import json
import re
from typing import get_args, get_type_hints

import numpy as np
import pytest

import axode as ax
from axode.cli import VERBS, run
from axode.cli.options import refuse

PLACES = {
    *("NAME", "NAME,NAME", "NAME=VALUE", "NAME=VALUES", "NAME=FORMULA", "MOTOR=VALUE"),
    *("NAME=LOW:HIGH", "NAME=LOW:HIGH:COUNT", "NAME=LOW:HIGH|NAME=ANGLE", "NAME=KIND:QUANTITY"),
    *("VALUE|NAME=VALUE", "VALUE|WHEEL=VALUE", "KIND", "KIND:NAME=VALUE", "X,Y,Z"),
    *(
        "NUMBER",
        "COUNT",
        "SECONDS",
        "METRES",
        "RADIANS",
        "WIDTHxHEIGHT",
        "TEXT",
        "ADDRESS",
        "SOURCE",
        "ITEM",
    ),
    *("FILE", "FOLDER", "FILE|FOLDER", "FILE|NAME=FORMULA"),
}


def options():
    for verb in VERBS:
        hints = get_type_hints(verb, include_extras=True)
        for name in inspect.signature(verb).parameters:
            kind, info = get_args(hints[name])[:2]
            yield verb.__name__, name, kind, info


def test_every_option_says_what_it_takes():
    faults = []
    for verb, name, kind, info in options():
        where = f"{verb} --{name}"
        if kind in (bool, bool | None):
            continue
        place = info.metavar or ""
        choice = re.fullmatch(r"[a-z0-9_.:,]+(\|[a-z0-9_.:,]+)+", place)
        if place not in PLACES and not choice:
            faults.append(f"{where}: the placeholder '{place}'")
        if re.match(r"[A-Z]+=", info.help):
            faults.append(f"{where}: the help repeats the placeholder")
        if place == "SECONDS" and "second" in info.help:
            faults.append(f"{where}: the help repeats the unit")
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(
    "command, option",
    [
        ("simulate four_bar --method rk4 --step 0.01 --rtol 1e-3", "--rtol"),
        ("sweep four_bar --over theta1_dot=0:1:2 --seed 3", "--seed"),
        ("sweep four_bar --over theta1_dot=0:1:2 --friction 0.3", "--friction"),
        ("sweep four_bar --table rows.csv --combine zip", "--combine"),
        ("view four_bar --torque", "--torque"),
        ("view four_bar --run a.npz --start theta1=1", "--start"),
        ("report four_bar --run a.npz --time 1", "--time"),
        ("report four_bar --time 0 --start theta1=1", "--start"),
        ("inverse four_bar --columns inputs", "--columns"),
        ("inverse four_bar --point 1,0,0", "--point"),
        ("inverse unicycle --path circle:radius=2,speed=1 --time 3", "--time"),
        ("inverse unicycle --motion phi_dot=t --time 1 --point 1,0,0", "--point"),
        ("export four_bar --to a.toml --parameters free", "--parameters"),
        ("workspace five_bar --show regions", "--show"),
        ("reproduce --out figures", "--out"),
        ("feasible tricycle --friction 1 --path circle:radius=2,speed=1 --time 1", "--time"),
        ("feasible tricycle --friction 1 --time 1 --point 1,0,0", "--point"),
        ("feasible tricycle --friction 1 --time 1 --columns x", "--columns"),
        ("feasible tricycle --friction 1", "--path"),
        ("feasible tricycle --friction 1 --path a --motion b=t", "--motion"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(command, option, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(command.split()) == 2
    assert option in capsys.readouterr().err


def test_help_shows_placeholders_and_no_types(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["simulate", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "SECONDS" in shown and "NAME=VALUE" in shown
    assert not re.search(r"<(bool|str|float|int)>|\b(TEXT|FLOAT|INTEGER|PATH)\b", shown)
    assert max(map(len, shown.splitlines())) <= 80


def test_outside_a_verb_nothing_was_given():
    assert run(["gallery"]) == 0
    refuse("never", "out", "json")


@pytest.mark.slow
def test_the_part_of_long_equations_is_printed(capsys):
    assert run(["derive", "four_bar", "--part", "I"]) == 0
    shown = capsys.readouterr().out
    assert "as LaTeX:" in shown and r"\begin{aligned}" in shown


@pytest.mark.parametrize(
    "command, flag",
    [
        ("simulate four_bar --time 0.1 --step 0.01", "--method"),
        ("kinematics four_bar", "--output"),
        ("lqr pendulum_on_slope --hold", "--states NAME,NAME"),
        ("sweep four_bar --over theta1=uniform(0,1)", "--samples"),
    ],
)
def test_errors_name_the_flag(command, flag, capsys):
    assert run(command.split()) == 1
    said = capsys.readouterr().err
    assert "On the command line: " in said and flag in said.partition("On the command line:")[2]


def test_flags_that_a_message_has_already_are_not_named_again(tmp_path, capsys):
    assert run(["export", "caster_robot", "--to", str(tmp_path / "robot.urdf")]) == 0
    capsys.readouterr()
    assert run(["check", str(tmp_path / "robot.urdf")]) == 0
    said = capsys.readouterr().err
    assert "or --option wheels=proposed, lets them roll" in said
    assert "On the command line" not in said


def test_equations_are_derived_as_asked(capsys):
    """What errors recommend, derive(independent=[...]), is an option of every verb that derives."""
    command = ["linearize", "four_bar", "--json", "--option", "independent=theta2_dot"]
    assert run(command) == 0
    assert "theta2_dot" in json.loads(capsys.readouterr().out)["states"]
    assert run(["check", "four_bar", "--option", "formulation=lagrange,self_check=false"]) == 0
    assert run(["compare", "four_bar", "--option", "independent=theta2_dot"]) == 1
    assert "independent" in capsys.readouterr().err


# lqr and feasible --------------------------------------------------------------------------------


STATES = ["theta3", "theta3_dot", "surge"]
LQR = ["lqr", "wheeled_pendulum", "--states", ",".join(STATES), "--R", "0.5"]


def test_lqr_gives_the_gains(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run([*LQR, "--Q", "theta3=10,surge=1", "--dt", "0.01", "--out", "law.json"]) == 0
    shown, data = capsys.readouterr().out, json.loads((tmp_path / "law.json").read_text())
    assert "in steps of 0.01 s" in shown and "axode simulate" not in shown
    model = ax.gallery.build("wheeled_pendulum").derive().compile()
    law = ax.linearize(model, states=STATES).discretized(0.01).lqr({"theta3": 10, "surge": 1}, 0.5)
    assert np.allclose(data["K"], law.K, rtol=1e-9) and data["states"] == STATES


@pytest.mark.soak
@pytest.mark.parametrize("away", [[], ["--state", "theta3=0.4,surge=0.2", "--hold"]])
def test_the_law_of_lqr_simulates(capsys, away):
    """Formulas for --input do what the law does in Python."""
    assert run([*LQR, *away]) == 0
    shown = capsys.readouterr().out
    inputs = dict(re.findall(r'--input "(\w+)=(.*)"', shown))
    model = ax.gallery.build("wheeled_pendulum").derive().compile()
    point = {"state": {"theta3": 0.4, "surge": 0.2}, "input": "hold"} if away else {}
    law = ax.linearize(model, states=STATES, **point).lqr(1.0, 0.5)
    runs = [ax.simulate(model, 0.5, start={"theta3": 0.2}, input=i) for i in (inputs, law)]
    assert runs[0].final["theta3"] == pytest.approx(runs[1].final["theta3"], abs=1e-8)


@pytest.mark.slow
def test_feasible_says_whether_wheels_slip(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = ["--path", "straight:length=1,duration=2"]
    flags = ["--out", "a.npz", "--plot", "a.png"]
    assert run(["feasible", "tricycle", "--friction", "0.5", *path, *flags]) == 0
    shown = capsys.readouterr().out
    assert "slipping: never" in shown and "rear_R" in shown and "wrote a.png" in shown
    assert "front.share" in ax.Trajectory.load(tmp_path / "a.npz")
    grip = ["--friction", "front=0.001,rear_R=1,rear_L=1", "--motion", "a.npz"]
    assert run(["feasible", "tricycle", *grip, "--json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert not data["feasible"] and data["slips"] == "front" and data["files"] == []


@pytest.mark.soak
def test_feasible_of_a_simulation(capsys):
    flags = ["--friction", "1", "--stiffness", "1e5", "--time", "0.1", "--json"]
    assert run(["feasible", "mecanum_rover", *flags]) == 0
    assert json.loads(capsys.readouterr().out)["feasible"]


def test_a_negative_time_has_to_be_meant(capsys):
    words = ["simulate", "unicycle", "--time=-0.1"]
    assert run(words) == 1
    assert "is negative" in (error := capsys.readouterr().err) and "--backwards" in error
    assert run([*words, "--backwards"]) == 0
