"""Contacts on the command line, in reports and in what refuses them."""

from __future__ import annotations

import json

import pytest

import axode as ax
from axode.cli import run
from axode.errors import InvalidArgument, NotApplicable
from problems.contact_robots import rover

SHORT = ("--time", "0.05")


@pytest.fixture
def path(tmp_path):
    rover(0.6).save(tmp_path / "rover.toml")
    return str(tmp_path / "rover.toml")


@pytest.mark.parametrize(
    "options",
    [["--step", "0.001"], ["--contacts", "steps"], ["--step", "0.001", "--input", "fl=1"]],
)
def test_steps_through_contacts_take_no_tolerance_that_was_not_given(path, options, capsys):
    assert run(["simulate", path, *SHORT, *options, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "finished"


def test_tolerances_that_were_given_are_kept(path, capsys):
    assert run(["simulate", path, *SHORT, "--rtol", "1e-6", "--contacts", "events"]) == 0
    assert run(["simulate", path, *SHORT, "--rtol", "1e-6", "--step", "0.001"]) != 0
    assert "rtol: steps through contacts have one length" in capsys.readouterr().err
    assert run(["simulate", path, *SHORT, "--contacts", "sometimes"]) != 0
    assert "events" in capsys.readouterr().err


def test_sweeps_go_through_contacts(path, capsys):
    args = ["--over", "base.z=0.1:0.2:3", "--json"]
    assert run(["sweep", path, *SHORT, *args]) == 0
    assert run(["sweep", path, *SHORT, *args, "--step", "0.001"]) == 0


def test_reports_name_what_slips_and_lifts(path, capsys):
    equations = rover(0.6).derive()
    line = "  contacts       friction, lift-off or stops of fl, fr, rl, rr"
    assert line in str(equations).splitlines()
    assert run(["check", path]) == 0
    assert "friction, lift-off or stops of fl, fr, rl, rr" in capsys.readouterr().out
    assert "contacts  " not in str(rover(None).derive())


def test_refusals_name_what_works():
    model = rover(0.6).derive().compile()
    with pytest.raises(NotApplicable, match=r"Remedy: simulate\(model, duration, step=1e-3\)"):
        model.step(model.home, None, None, 0.01)
    steps = ax.simulate(model, 0.02, step=1e-3)
    for what in (["forces"], ["forces", "torqe"]):
        with pytest.raises(InvalidArgument, match="no column for 'forces'") as error:
            steps.plot(*what)
        assert "Did you mean 'forces'" not in str(error.value)
    with pytest.raises(InvalidArgument, match=r"no column for 'forces'(.|\n)*contacts=\"events\""):
        steps.plot("forces")
    assert "fl.normal" in ax.simulate(model, 0.02).columns("force")


@pytest.mark.parametrize(
    "line",
    [
        ["size", "--motion", "base.vx=0.1*t", "--time", "1"],
        ["inverse", "--motion", "base.vx=0.1*t", "--time", "1"],
        ["feasible", "--motion", "base.vx=0.1*t", "--time", "1", "--friction", "0.6"],
        ["export", "--to", "rover.c"],
        pytest.param(["page", "--out", "rover.html"], marks=pytest.mark.slow),
    ],
    ids=lambda line: line[0],
)
def test_verbs_that_refuse_contacts_name_the_option_that_leaves_them_out(
    line, path, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    verb, *rest = line
    assert run([verb, path, *rest]) == 1
    assert "--option ideal=true" in capsys.readouterr().err
    assert run([verb, path, *rest, "--option", "ideal=true"]) == 0


def test_ideal_is_true_or_false(path, tmp_path, capsys):
    assert run(["check", path, "--option", "ideal=maybe"]) == 2
    assert "true or false" in capsys.readouterr().err
    written = str(tmp_path / "ideal.toml")
    assert run(["export", path, "--to", written, "--option", "ideal=true"]) == 0
    assert not ax.load(written).contact_parts
