"""The benchmarks' own guards: they notice a wrong answer, and say why they skip."""

import shutil
from dataclasses import replace

import pytest

import axode as ax
from benchmarks.correctness import (
    TOLERANCE,
    check_rolling,
    check_with_kane,
    check_with_pinocchio,
)
from benchmarks.mechanisms import arm, balancer, caster_robot, chain, platform, rolling_disk
from benchmarks.peers.pinocchio_native.build import Skipped, build
from benchmarks.run import main


def compiled(mechanism: ax.Mechanism) -> ax.Model:
    return mechanism.derive().compile("interpreter")


@pytest.mark.parametrize("mechanism", [arm(), chain(20), platform(3), platform(8)], ids=repr)
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


def test_unknown_options_are_refused(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main(["--fast"])
    assert "--repeat" in capsys.readouterr().err
