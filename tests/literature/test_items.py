"""What the sources show, computed again: every item, shortened, and what is written of it."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from axode.literature.reproduce import (
    angeles,
    arms_operations,
    arms_with_load,
    catalogue,
    legs,
    manipulator_coupling,
    more_wheels,
    printed,
    saha_angeles,
    staicu,
    valencia,
    yesiloglu,
)
from axode.literature.reproduce.figures import _covers
from axode.literature.reproduce.item import FigureCurve, ItemResult
from axode.literature.reproduce.legs import forces, hinged_leg
from axode.literature.reproduce.making import comma_separated
from tests.literature.test_concordance import ALL, NUMBERS, covered
from variants import slow, some

# The same computations over less time or with fewer samples.
SHORTER = {
    staicu: {"END": 6.0, "SPACING": 0.02},
    saha_angeles: {"SPACING": 0.02, "DISK_DURATION": 1.0},
    angeles: {"PERIOD": 0.002},
    more_wheels: {"SPACING": 0.04, "CASTERS_END": 2.0, "MECANUM_END": 2.0},
    valencia: {"PERIODS": 3, "SPACING": 0.05},
    manipulator_coupling: {"CONTROL": 0.005},
    arms_operations: {"DURATION": 0.6},
    arms_with_load: {"PERIOD": 0.002, "FEW": 100, "STRAYS": 4e-3},
    yesiloglu: {"DURATION": 0.8, "FEW": 20},
}
README, INDEX = (
    (Path(__file__).parents[2] / page).read_text(encoding="utf-8")
    for page in ("README.md", "docs/index.md")
)
MANUAL = Path(__file__).parents[2] / "docs" / "sources" / "reproduce.md"
PASS = {
    "delta-torques",
    "mecanum-torques",
    "quasimoro-spin",
    "quasimoro-circle",
    "quasimoro-locked",
    "quasimoro-operations",
}  # the others use equations with errata, and say so
ITEMS = catalogue()
LONG = (
    "six-legs",
    "flight-simulator",
    "legs-recursion",
    "agv-circle",
    "arms-methods",
    "quasimoro-operations",
)  # for `make soak`
SLOW = (
    "mecanum-torques",
    "agv-lines",
    "cart-methods",
    "arms-operations",
    "arm-pulses",
    "manipulator",
)  # for `make test-slow`


SIX_LEGS = ("m1", "j1", "m2", "j2", "m3", "Jx3", "Jt3", "m4", "Jx4", "Jt4", "m5", "j5", "mM")
SIX_LEGS += ("IMx", "IMy", "IMz")


class Computed(dict[str, ItemResult]):
    """Items computed when they are asked for."""

    def __missing__(self, name: str) -> ItemResult:
        with pytest.MonkeyPatch.context() as patch:
            for module, constants in SHORTER.items():
                for constant, value in constants.items():
                    patch.setattr(module, constant, value)
            self[name] = ITEMS[name].compute()
        return self[name]


@pytest.fixture(scope="module")
def outcomes() -> Computed:
    return Computed()


@pytest.mark.parametrize("name", slow(some(ITEMS, *LONG), *SLOW))
def test_an_item(name: str, outcomes):
    """Its verdict holds, each of its checks can fail, its table can be read."""
    verdict = outcomes[name].verdict
    assert verdict.status == word_of(name), str(verdict)
    assert len(verdict.checks) >= 3
    assert "erratum" in verdict.sentence or verdict.status == "pass"
    for check in outcomes[name].checks:
        beyond = 1.01 * max(check.within, check.explained) + 1e-9
        assert replace(check, found=check.wanted + beyond).status == "fails", check.what
        assert replace(check, found=float("nan")).status == "fails", check.what
    heads, *rows = csv.reader(io.StringIO(comma_separated(outcomes[name])))
    assert heads[0] == "t [s]"
    assert len(set(heads)) == len(heads) >= 10
    assert all("[" in head and head.endswith("]") for head in heads)
    times = [float(row[0]) for row in rows]
    assert times[0] == 0.0 and np.all(np.diff(times) > 0)
    assert np.isfinite([float(value) for value in rows[-1]]).all()


@pytest.mark.parametrize("name", some(ITEMS, *LONG))
def test_an_item_names_what_the_concordance_says_it_shows(name: str, outcomes):
    """Numbers of equations, figures and exercises stand in its checks, panels or caption."""
    outcome = outcomes[name]
    texts = [outcome.caption, *(panel.title for panel in outcome.panels)]
    texts += [f"{check.what} {check.why} {check.of}" for check in outcome.checks]
    shown = numbers_in(" ".join(texts))
    for source, entry in ALL:
        if f"`axode reproduce {name}`" in entry.commands:
            wanted = {re.sub(r"[a-e]$", "", n) for n in covered(entry.number, NUMBERS[source])}
            assert wanted <= shown, (entry.number, sorted(wanted - shown))


def front_page(page: str) -> list[tuple[str, str]]:
    """Items of the table of documents, and what it says that they print."""
    rows = re.findall(r"^\| .* \| `axode reproduce (\S+)` \| (.*?) \|", page, re.MULTILINE)
    return [(item, text) for item, text in rows]


@pytest.mark.parametrize("name", [name for name, _ in front_page(README)])
def test_the_front_page_says_what_an_item_prints(name: str, outcomes):
    told = dict(front_page(README))[name]
    assert told == dict(front_page(INDEX))[name]
    printed = [f"{check.found:.2g}" for check in outcomes[name].checks]
    printed += [f"{check.found:.4g}" for check in outcomes[name].checks]
    assert set(re.findall(r"\d[\d.e-]*", told)) & set(printed), (told, printed)


def numbers_in(text: str) -> set[str]:
    """(3), (12.8a), (23) to (29), Fig. 5, Figs 2 to 13 and Exercise 12.5."""
    found = {f"Exercise {number}" for number in re.findall(r"Exercise (\d+\.\d+)", text)}
    for first, last in re.findall(r"\(([\d.]+)[a-e]?\)(?: to \(([\d.]+)\))?", text):
        if last:
            chapter, _, start = first.rpartition(".")
            numbers = range(int(start), int(last.rpartition(".")[2]) + 1)
            found |= {f"{chapter}.{k}" if chapter else str(k) for k in numbers}
        found.add(first)
    for first, last in re.findall(r"Figs?\.? (\d+)(?: to (\d+))?", text):
        found |= {f"Fig. {k}" for k in range(int(first), int(last or first) + 1)}
    return found


def word_of(name: str) -> str:
    return "pass" if name in PASS else "differs"


def test_what_the_source_numbers_is_drawn(outcomes):
    """Figs 2 to 13 of Staicu and 5 to 9 of Valencia, each once."""
    for start, end, source in ((2, 13, "staicu"), (5, 9, "valencia")):
        titles = [
            panel.title
            for item in ITEMS.values()
            if item.source == source and item.id not in LONG  # which show no numbered figure
            for panel in outcomes[item.id].panels
        ]
        for number in range(start, end + 1):
            assert sum(title.startswith(f"Fig. {number}:") for title in titles) == 1, number


def test_the_published_amplitude_is_reported_beside_ours(outcomes):
    """0.0129 rad is printed; the printed equations give 0.01314."""
    outcome = outcomes["quasimoro-straight"]
    check = outcome.checks[0]
    assert check.wanted == 0.0129
    assert check.found == pytest.approx(0.013141258, rel=1e-3)
    assert "+1.9 %" in str(check) and "printed equations" in str(check)
    levels = [level.value for panel in outcome.panels for level in panel.levels]
    assert levels == [0.0129, -0.0129]


def test_both_readings_of_the_third_manoeuvre(outcomes):
    table = outcomes["quasimoro-circle"].table
    assert np.abs(table["theta2 [rad]"]).max() < 1e-9  # held for ever
    assert np.abs(table["theta2 released [rad]"]).max() > 0.01  # drifts once let go
    assert table["M2 released [N m]"][-1] == 0.0


def test_counted_accelerations_are_those_of_the_source():
    """Columns of theta_1 hold theta_1, not the joint's phi_1 = theta_1 + theta_3."""
    phi = np.array([[0.7, 0.2, 0.5]])
    assert staicu._of_the_source(phi) == pytest.approx(np.array([[0.2, -0.3, 0.5]]))


def test_a_path_that_hides_another_is_dashed():
    """Circles with other points, as those of axle and mass centre; a larger one is seen."""
    turn = np.linspace(0.0, 2 * np.pi, 200)

    def circle(radius: float, ahead: float) -> FigureCurve:
        return FigureCurve(radius * np.cos(turn + ahead), radius * np.sin(turn + ahead))

    assert _covers(circle(2.002, 0.06), circle(2.0, 0.0))
    assert not _covers(circle(2.2, 0.06), circle(2.0, 0.0))


@pytest.mark.slow
def test_the_print_is_drawn_where_the_verdict_blames_it(outcomes):
    for name in (
        *("caster-torques", "two-casters", "disk", "agv-lines", "arm-pulses"),
        *("arms-methods", "legs-recursion"),
    ):
        drawn = [curve.role for panel in outcomes[name].panels for curve in panel.curves]
        assert drawn.count("misprint") >= 2, name


def test_rates_are_called_rates(outcomes):
    """Fig. 6 of Valencia has dots over its angles."""
    (panel,) = (p for p in outcomes["arm-pulses"].panels if p.title.startswith("Fig. 6:"))
    assert [curve.label for curve in panel.curves][:4] == [
        rf"$\dot\theta_{k}$" for k in range(1, 5)
    ]


def test_the_manual_has_these_verdicts():
    rows = [row.split("|")[1:] for row in MANUAL.read_text().splitlines() if row.startswith("| `")]
    told = {item.strip(" `"): word.strip() for item, _, word, *_ in rows}
    assert told == {name: word_of(name) for name in ITEMS}


def test_a_wrong_model_is_seen(monkeypatch):
    """With gravity 10 % off, our motion is no longer that of the printed equations."""
    monkeypatch.setattr(staicu, "END", 3.0)
    build = staicu.build
    monkeypatch.setattr(staicu, "build", lambda name, **p: build(name, **{**p, "g": 1.1 * p["g"]}))
    verdict = staicu.straight.compute().verdict
    assert verdict.status == "fails"
    assert "(23) to (29)" in verdict.sentence


def test_a_wrong_caster_is_seen(monkeypatch):
    """With one pivot moved by a centimetre, the closed form is left."""
    monkeypatch.setattr(more_wheels, "CASTERS_END", 0.1)
    build = more_wheels.build
    monkeypatch.setattr(more_wheels, "build", lambda name, **p: build(name, **{**p, "X1": 0.24}))
    assert more_wheels.two_casters.compute().checks[0].status == "fails"


def test_another_length_is_not_characteristic(monkeypatch):
    """The condition number is 1 at the lengths of Exercise 12.5, and at no others."""
    model = more_wheels.build("two_caster_robot", **printed.CASTER, X1=0.25, X2=-0.25)
    model = model.derive(independent=("theta1_dot", "theta2_dot")).compile("interpreter")
    assert more_wheels._condition(model, 0.25, 0.0) == pytest.approx(1.0, abs=1e-12)
    for length, behind in ((0.22, 0.0), (0.25, printed.CASTER["a"])):
        assert more_wheels._condition(model, length, behind) > 1.05


@pytest.mark.slow
def test_a_wrong_leg_is_seen(monkeypatch):
    """Cylinders 1 % heavier in Lagrange's equations of the pose than in the mechanism."""
    monkeypatch.setattr(angeles, "DURATION", 0.1)
    leg = angeles.sliding_leg
    heavier = lambda sums, p, *points: leg(sums, p | {"m1": 1.01 * p["m1"]}, *points)  # noqa: E731
    monkeypatch.setattr(angeles, "sliding_leg", heavier)
    statuses = {check.what: check.status for check in angeles.flight_simulator.compute().checks}
    by_pose = "our forces and those of Lagrange's equations of the pose apart by"
    assert statuses[by_pose] == "fails"


def test_legs_side_by_side_give_the_forces_of_lagrange():
    """The recursion shares nothing with the equations of the pose but the data."""
    data = dict(zip(SIX_LEGS, np.linspace(0.7, 1.3, len(SIX_LEGS)), strict=True))
    data |= {"zp": -0.05, "Rb": 1.0, "Rp": 0.5, "L1": 0.7, "L2": 0.8, "g": 9.81}
    times = np.array([0.13, 0.4, 0.77])
    pose = legs._pose()
    by_leg = legs.recursion(data)
    found = np.array([by_leg.forces(*pose(t)) for t in times]).T
    wanted = forces(hinged_leg, data, (legs.BETA, legs.PI), angeles._poses(times))
    assert found == pytest.approx(wanted, rel=1e-10)
    own, shared = by_leg.operations
    assert own < 1000 and shared < 600


def test_equation_36_holds_at_any_speed():
    """The locked body: torques of inverse dynamics are those of (36), and none other."""
    model = staicu.build("wheeled_pendulum", **staicu.DATA)
    model.prescribe("theta3", 0.0)
    model = model.derive(independent=("phi1_dot", "phi2_dot")).compile("interpreter")
    torques = model.inverse_dynamics(model.home, [2.0, -3.0], [1.0, 0.5])
    p = staicu.DATA
    body, wheel, yaw = p["M"] * p["r"] ** 2, p["m"] * p["r"] ** 2, p["rho"] ** 2
    expected = [
        body / 4 * 1.5 + wheel / 2 * (3 * 1.0 + yaw * 0.5) + p["J1"] * yaw * 0.5,
        body / 4 * 1.5 + wheel / 2 * (3 * 0.5 - yaw * 0.5) - p["J1"] * yaw * 0.5,
    ]
    assert torques == pytest.approx(expected, rel=1e-12)
