"""Every command of the concordance shows what its row promises, by name and by number.

Numbers come from elsewhere: matrices at a state from maximal coordinates (`theory_by_oracle`),
those of cases from the file of cases, counts from the sources. What `axode reproduce` shows is
tested with the items.
"""

from __future__ import annotations

import re
import shlex
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import axode as ax
from axode.cli import run
from axode.cli.model_sources import Built
from axode.gallery import build
from tests.literature.test_concordance import ALL, CODE, NUMBERS, covered
from tests.literature.theory_by_oracle import SixLegs, Theory
from variants import slow

SIX_DIGITS = 2e-5  # relative, of what is printed
SMALL = 2e-6  # of the largest entry: rounding of zeros, differences in the oracle


def commands(verb: str) -> dict[str, list[tuple[str, str]]]:
    """Commands of a verb, each with the rows that name it: source, number."""
    found: dict[str, list[tuple[str, str]]] = {}
    for source, entry in ALL:
        for command in CODE.findall(entry.commands):
            if command.split()[1] == verb:
                found.setdefault(command, []).append((source, entry.number))
    return found


def output(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert run(shlex.split(command)[1:]) == 0, command
    return capsys.readouterr().out


# numbers at a state -------------------------------------------------------------------------------


@cache
def equations(
    mechanism: str, options: tuple[tuple[str, float], ...], speeds: tuple[str, ...] = ()
) -> ax.Equations:
    return build(mechanism, **dict(options)).derive(independent=speeds or None, self_check=False)


def independent(words: list[str]) -> tuple[str, ...]:
    """Names of the independent speeds that a command asks for."""
    place = words.index("--independent") + 1 if "--independent" in words else None
    return tuple(words[place].split(",")) if place else ()


def option(words: list[str], name: str) -> dict[str, float]:
    """NAME=VALUE pairs of an option that may be repeated."""
    given = [words[k + 1] for k, word in enumerate(words) if word == name]
    pairs = [pair.split("=") for text in given for pair in text.split(",")]
    return {key: float(value) for key, value in pairs}


def tables(text: str) -> dict[str, tuple[list[str], list[str], np.ndarray]]:
    """Rows, columns and numbers by the part's name."""
    found = {}
    for block in text.strip().split("\n\n"):
        title, heads, *lines = block.splitlines()
        cells = [re.split(r"\s{2,}", line.strip()) for line in lines]
        names = [row[0] for row in cells]
        numbers = np.array([[float(x) for x in row[1:]] for row in cells])
        found[title.split(":")[0]] = (names, re.split(r"\s{2,}", heads.strip()), numbers)
    return found


def theory(mechanism: str, words: list[str]) -> Theory:
    """The same objects from maximal coordinates, at the state of the command."""
    options, given = option(words, "--option"), option(words, "--input")
    e = equations(mechanism, tuple(sorted(options.items())), independent(words))
    model = e.compile("interpreter")
    start = ax.assemble(model, option(words, "--state"))
    u = np.array([given.get(name, 0.0) for name in e.inputs])
    made = SixLegs if mechanism == "six_legged_platform" else Theory
    return made(e.system.mechanism, e.independent, e.rows, start.q, start.nu, u)


BY_MECHANISM: dict[str, list[str]] = {}
for _command in commands("derive"):
    BY_MECHANISM.setdefault(_command.split()[2], []).append(_command)


@pytest.mark.parametrize("mechanism", slow(BY_MECHANISM, "six_legged_platform"))
def test_numbers_at_a_state(mechanism: str, monkeypatch, capsys):
    def once(built: Built) -> Any:
        given = {key: float(value) for key, value in (o.split("=") for o in built.option or ())}
        own, source = tuple(sorted(given.items())), built.source
        return SimpleNamespace(derive=lambda _, speeds: equations(source, own, tuple(speeds or ())))

    monkeypatch.setattr(Built, "mechanism", once)
    theories: dict[tuple[str, ...], Theory] = {}
    for command in BY_MECHANISM[mechanism]:
        words = shlex.split(command)
        parts = words[words.index("--part") + 1].split(",")
        key = tuple(word for word in words[3:] if word not in ("--part", ",".join(parts)))
        if key not in theories:
            theories[key] = theory(mechanism, words)
        shown = tables(output(command, capsys))
        assert list(shown) == parts, command
        for name, (rows, columns, numbers) in shown.items():
            if name == "A_t":
                check_twist_rows(theories[key], columns, numbers)
                continue
            their_rows, their_columns, theirs = theories[key].part(name)
            assert set(rows) <= set(their_rows), (command, name)
            assert columns == list(their_columns), (command, name)
            expected = theirs[[their_rows.index(row) for row in rows]]
            far = np.abs(numbers - expected)
            limit = SIX_DIGITS * np.abs(expected) + SMALL * np.abs(expected).max(initial=1.0)
            assert (far <= limit).all(), (command, name, far.max())
            assert name in ("A", "lambda") or len(rows) == len(their_rows), (command, name)


def check_twist_rows(by: Theory, columns: list[str], A: np.ndarray) -> None:
    """They annihilate T, and leave no other motion than that."""
    assert A.shape[1] == len(columns) == len(by.T)
    assert np.abs(A @ by.T).max() < 1e-5
    assert np.linalg.matrix_rank(A, tol=1e-3) == len(by.T) - len(by.independent)


def test_a_wrong_number_is_seen(capsys):
    """The oracle of a four-bar with another length does not give the printed matrices."""
    command = "axode derive four_bar --part Theta,I --state theta1=0.8"
    shown = tables(output(command, capsys))
    words = shlex.split(command)
    e = equations("four_bar", ())
    start = ax.assemble(e.compile("interpreter"), option(words, "--state"))
    longer, nothing = build("four_bar", a2=0.11), np.zeros(1)
    other = Theory(longer, e.independent, e.rows, start.q, start.nu, nothing)
    for name in ("Theta", "I"):
        assert np.abs(shown[name][2] - other.part(name)[2]).max() > 1e-3


# acceptance cases ---------------------------------------------------------------------------------


def stands_at(cell: str, source: str) -> set[str]:
    """Numbers that the equation of a quantity covers."""
    found = set()
    if steps := re.match(r"steps (\d) to (\d)", cell):
        return {f"step {k}" for k in range(int(steps[1]), int(steps[2]) + 1)}
    for part in cell.split(", "):
        try:
            found |= set(covered(part, NUMBERS[source])) or {part}
        except ValueError:
            found.add(part)
    return found


CASES = commands("verify")
BETWEEN = {  # numbers of which a case has not the quantity, but what follows from it
    "axode verify --case A2-3": {"12.34b"},  # the row has a command for it, too
    "axode verify --case D2-1": {"6", "30", "31"},
    "axode verify --case D2-2": {"10", "step 2", "step 3", "step 5"},
    "axode verify --case D5-1": {"15", "35"},
}


@pytest.mark.parametrize("command", CASES)
def test_cases(command: str, capsys):
    """Each row finds a quantity of its number, whose expected value comes with the case."""
    lines = [re.split(r"\s{2,}", line) for line in output(command, capsys).splitlines()]
    assert lines[0] == ["id", "quantity", "equation", "expected", "got", "error", "pass"]
    quantities = [line for line in lines[1:] if len(line) == 7]
    assert quantities and all(line[6] == "yes" for line in quantities)
    for source, number in CASES[command]:
        wanted = stands_at(number, source)
        shown = set().union(*(stands_at(line[2], source) for line in quantities))
        assert wanted - shown <= BETWEEN.get(command, set()), (command, number, sorted(shown))
        assert wanted & shown, (command, number)


# what a robot can do, what it is made of ----------------------------------------------------------

CHECKS = {  # by the row's number, what the source says of the robot
    "12.1": r"independent +theta1_dot\n",
    "12.9": "independent loops 5\n",
    "12.12": r"independent +theta_I4_dot, theta_II4_dot, theta_III4_dot, theta_IV4_dot, theta_V4",
    "12.15, 12.16": "fully actuated, 6 motors",
    "12.28e": "fully actuated, 6 motors",
    "12.33": "fully actuated, 6 motors",
    "12.35": r"independent +theta1_dot, theta2_dot\n",
    "12.56": r"independent +theta1_dot, theta2_dot, theta3_dot\n",
    "12.59": r"integral +3 r sigma \+ a \(theta1 \+ theta2 \+ theta3\) = const\.",
    "Fig. 12.3": "independent loops 5\n",
    "after 25": r"rows +33 on .*\n.* 29 independent.*\n.*rank +28: .*\n.*2.lateral = wheel1.lat",
    "after 12.1": "nonholonomic, scleronomic, catastatic\n",
    "11": r"integral +rho phi1 - rho phi2 \+ psi = const\.",
}
ROBOTS = {  # bodies, and what the source calls the parameters or inputs
    "six_legged_platform": (31, ("L1", "Rp")),
    "flight_simulator": (13, ("Rp",)),
    "caster_robot": (5, ("a", "b", "d", "l", "r", "h")),
    "delta_array": (4, ("a", "r", "mw", "mp", "H")),
    "four_bar": (3, ("a2", "a3", "a4")),
    "rolling_disk": (1, ("m", "R")),
    "wheeled_pendulum": (4, ("r", "d", "J1", "J2", "rho")),
    "cooperating_arms": (7, ("mc",)),
    "two_wheeled_cart": (4, ("r", "l")),
    "five_axis_arm": (5, ("l1", "l2", "l3", "mc")),
    "six_wheel_platform": (3, ("m", "I", "r", "l")),
}


@pytest.mark.parametrize("command", commands("check"))
def test_reports(command: str, capsys):
    text = output(command, capsys)
    assert text.startswith(command.split()[2] + ":")
    for _, number in commands("check")[command]:
        assert re.search(CHECKS[number], text), (number, text)


@pytest.mark.parametrize("command", commands("gallery"))
def test_robots(command: str, capsys):
    name = command.split()[2]
    entries = dict(re.findall(r"^  (\w+) +(.+)$", output(command, capsys), flags=re.MULTILINE))
    bodies, parameters = ROBOTS[name]
    assert len(entries["bodies"].split(", ")) == bodies or f"{bodies} in all" in entries["bodies"]
    for parameter in parameters:
        assert re.search(rf"\b{parameter} = ", entries["parameters"]), (name, parameter)


@pytest.mark.parametrize("command", commands("compare"))
def test_formulations_agree(command: str, capsys):
    text = output(command, capsys)
    found = [float(x) for x in re.findall(r"\b\d\.?\d*e-\d+\b", text)]
    assert len(found) >= 2 and max(found) < 1e-9, text


def test_every_row_has_a_command():
    """Where there is something to show."""
    for source, entry in ALL:
        assert entry.commands or entry.names.startswith("not needed"), (source, entry.number)
