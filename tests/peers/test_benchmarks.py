"""The benchmarks' own guards: they notice a wrong answer, and say why they skip."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import axode as ax
from benchmarks import report
from benchmarks.contestants import (
    Entrants,
    Subject,
    add_axode,
    add_casadi,
    add_mujoco,
    add_pinocchio,
)
from benchmarks.correctness import TOLERANCE, check_rolling, check_with_kane, check_with_pinocchio
from benchmarks.mechanisms import (
    arm,
    balancer,
    caster_robot,
    chain,
    platform,
    platform_twist,
    rolling_disk,
    tree,
    wheeled_pendulum,
)
from benchmarks.peers import c_loop
from benchmarks.peers.pinocchio_native.build import Skipped, build
from benchmarks.report import filled, newest, table
from benchmarks.run import main
from benchmarks.simulation import _check
from benchmarks.states import random_states
from benchmarks.targets import Target
from benchmarks.timing import Quiet, Times, in_turn, net


def compiled(mechanism: ax.Mechanism) -> ax.Model:
    return mechanism.derive().compile("interpreter")


@pytest.mark.parametrize(
    "mechanism", [arm(), chain(20), tree(2, 3), platform(3), platform(8)], ids=repr
)
def test_trees_and_platforms_agree_with_pinocchio(mechanism: ax.Mechanism):
    assert check_with_pinocchio(mechanism, compiled(mechanism)) < TOLERANCE


@pytest.mark.parametrize("mechanism", [balancer(), caster_robot()], ids=repr)
def test_wheeled_mechanisms_agree_with_their_energies(mechanism: ax.Mechanism):
    assert check_rolling(mechanism, compiled(mechanism)) < TOLERANCE


def test_disk_agrees_with_kane():
    mechanism = rolling_disk()
    assert check_with_kane(mechanism, compiled(mechanism)) < TOLERANCE


def test_a_wrong_mass_is_noticed():
    right, wrong = arm(), arm()
    wrong.bodies[-1] = replace(wrong.bodies[-1], mass=wrong.bodies[-1].mass * (1 + 1e-6))
    with pytest.raises(AssertionError, match="relative error"):
        check_with_pinocchio(right, compiled(wrong))


def test_native_loop_says_what_it_lacks(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(Skipped, match="compiler"):
        build()


def subject(mechanism: ax.Mechanism, function: str) -> Subject:
    independent = platform_twist() if mechanism.loops else None
    equations = mechanism.derive(independent=independent)
    model = equations.compile(parameters="fixed")
    return Subject(mechanism, equations, function, random_states(mechanism, model, 70))


@pytest.mark.slow
@pytest.mark.parametrize("function", ["inverse_dynamics", "forward_dynamics"])
@pytest.mark.parametrize("mechanism", [arm(), platform(3)], ids=repr)
def test_contestants_agree_before_they_are_timed(mechanism: ax.Mechanism, function: str):
    entrants = Entrants()
    this = subject(mechanism, function)
    for add in (add_axode, add_casadi, add_mujoco):
        add(entrants, this)
    add_pinocchio(entrants, this, native=False)
    soft = [name for name in entrants.errors if "MuJoCo" in name and mechanism.loops]
    assert all(e < TOLERANCE for name, e in entrants.errors.items() if name not in soft)
    assert len(entrants.contestants) > 6
    for measure in entrants.contestants.values():
        assert measure() >= 0.0


def test_a_contestant_that_is_wrong_is_noticed():
    this = subject(chain(2), "forward_dynamics")
    this.wanted = this.wanted * (1 + 1e-6)
    with pytest.raises(AssertionError, match="relative error"):
        add_axode(Entrants(), this)


def test_c_says_what_it_lacks(monkeypatch: pytest.MonkeyPatch):
    entrants = Entrants()
    this = subject(chain(2), "forward_dynamics")
    monkeypatch.setattr(c_loop.shutil, "which", lambda name: None)
    add_casadi(entrants, this)
    assert "compiler" in entrants.skipped["CasADi, C by cc"]
    assert "CasADi, interpreter" in entrants.contestants


def test_simulation_is_right_and_rolls():
    checks = _check(wheeled_pendulum().derive().compile(parameters="fixed"))
    assert checks["axode_slip"] < 1e-12
    assert checks["axode_energy_change"] < 1e-4


def test_contestants_run_in_turn():
    order: list[str] = []

    def one() -> float:
        order.append("one")
        return 3.0

    def two() -> list[float]:
        order.append("two")
        return [1.0, 2.0]

    times = in_turn({"one": one, "two": two, "net": net(one, lambda: 1.0)}, 2)
    assert order == ["one", "two", "one"] * 2
    assert times["two"].seconds == (1.0, 2.0, 1.0, 2.0)
    assert times["net"].median == 2.0
    assert Times((1e-3, 2e-3, 4e-3)).text() == "2.0 (1.0..4.0)"


def test_disturbed_turns_are_repeated_while_patience_lasts(monkeypatch: pytest.MonkeyPatch):
    quiet, done, loads = Quiet(), [], iter([0.5, 0.5, 0.0, 0.5])
    monkeypatch.setattr(quiet, "others", lambda work: (work(), next(loads))[1])
    monkeypatch.setattr(quiet, "PAUSE", 0.0)
    quiet.reset(1e3)
    quiet.turn(lambda: done.append(1), undo=done.pop)
    assert (quiet.turns, quiet.disturbed, quiet.repeated, done) == (1, 0, 2, [1])
    quiet.patience = 0.0
    quiet.turn(lambda: done.append(2), undo=done.pop)
    assert (quiet.turns, quiet.disturbed, quiet.repeated, done) == (2, 1, 2, [1, 2])


def test_targets_say_whether_they_are_met():
    assert Target("a", 5.0, 6.0).verdict == "met"
    assert Target("a", 5.0, 4.0).verdict == "not met"
    assert Target("a", 5.0, 4.0, at_most=True).verdict == "met"
    assert Target("a", 5.0, None).verdict == "not measured"


def test_report_fills_a_page_between_marks():
    page = "before\n<!-- code begins -->\nold\n<!-- code ends -->\nafter"
    text = filled(page, "code", table(("a", "b"), [("1", "2")]))
    assert "old" not in text
    assert "| 1 | 2 |" in text
    assert filled(text, "code", "x").splitlines()[2] == "x"
    with pytest.raises(SystemExit, match="no marks"):
        filled(page, "growth", "x")


def test_report_says_what_to_run_first(tmp_path: Path):
    with pytest.raises(SystemExit, match="--save"):
        newest("growth", tmp_path)


@pytest.mark.parametrize("lacking", [1, 99])
def test_report_says_what_is_missing_and_writes_the_rest(
    tmp_path: Path, monkeypatch, capsys, lacking
):
    """It takes older numbers where the newest lack some, and leaves a part that has none."""
    (tmp_path / "page.md").write_text(
        "".join(f"<!-- {part} begins --> old <!-- {part} ends -->\n" for part in report.PARTS)
    )
    monkeypatch.setattr(report, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(report, "IMAGES", tmp_path)
    monkeypatch.setattr(report, "ROOT", tmp_path)
    real = report.newest

    def without_peers(section: str, folder: Path = report.RESULTS, back: int = 0) -> dict:
        found = real(section, folder, back)
        for row in found.get("derivatives", {}).values() if back < lacking else ():
            row["times"] = {k: v for k, v in row["times"].items() if "Pinocchio" not in k}
        return found

    monkeypatch.setattr(report, "newest", without_peers)
    assert report.main() == (lacking > 1)
    said = capsys.readouterr().err
    how = "from older numbers" if lacking == 1 else "left as it was"
    assert said.startswith(f"{how}: derivatives") and "Pinocchio" in said
    assert "benchmarks.run derivatives --save" in said and len(said.splitlines()) == 1
    page = (tmp_path / "page.md").read_text()
    assert page.count(" old ") == (0 if lacking == 1 else 2)  # the table and its conditions
    assert (tmp_path / "benchmark-work-precision.svg").stat().st_size > 5000


def test_newest_is_of_the_section_itself(tmp_path: Path):
    (tmp_path / "2026-01-01-gpu.json").write_text('{"of": "gpu"}')
    (tmp_path / "2026-01-02-sweep-gpu.json").write_text('{"of": "sweep"}')
    assert newest("gpu", tmp_path) == {"of": "gpu"}


@pytest.mark.parametrize("arguments", [["everything"], ["--repeat", "0"]])
def test_nonsense_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main(arguments)
    assert "choose from derive" in (said := capsys.readouterr().err) or "--repeat" in said


def test_unknown_options_are_refused(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main(["--fast"])
    assert "--repeat" in capsys.readouterr().err
