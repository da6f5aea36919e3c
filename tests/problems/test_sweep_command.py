"""`axode sweep`: rows from flags, results in files, mistakes named."""

from __future__ import annotations

import json
import sys
import types

import numpy as np
import pytest

import axode as ax
from axode.cli import run
from axode.problems.sweep import engines
from axode.problems.sweep.sweep import sweep
from tests.problems import machines


@pytest.fixture
def model(tmp_path, monkeypatch):
    """A model's file in the folder of the test, so that nothing is derived again."""
    monkeypatch.chdir(tmp_path)
    machines.slider().save("slider.axm")
    return "slider.axm"


def call(capsys, *arguments, code=0):
    assert run(["sweep", *arguments, "--time", "0.1", "--step", "0.01"]) == code
    return capsys.readouterr()


def test_a_grid_and_its_files(model, capsys):
    grid = ["--over", "rail.rate=0:1:3,mass=[1,2]", "--output", "x=last:rail,y=max:rail**2"]
    force = ["--input", "rail=0.5"]
    shown = call(capsys, model, *grid, *force, "--out", "a.csv").out
    assert (
        "slider: 6 runs" in shown and "rail.rate (3), mass (2)" in shown and "6 finished" in shown
    )
    lines = (np.loadtxt(f, delimiter=",", usecols=range(5), skiprows=1) for f in ["a.csv"])
    (rows,) = lines
    np.testing.assert_allclose(rows[:, 3], 0.1 * rows[:, 1] + 0.0025 / rows[:, 2], atol=1e-12)
    data = json.loads(call(capsys, model, *grid, *force, "--json", "--out", "a.npz").out)
    assert data["runs"] == 6 and data["statuses"] == {"finished": 6} and data["files"] == ["a.npz"]
    assert data["outputs"]["x"]["max"] == pytest.approx(0.1025)
    with np.load("a.npz") as saved:
        np.testing.assert_array_equal(saved["x"], rows[:, 3])
        assert set(saved["status"]) == {"finished"}


def test_draws_and_tables(model, capsys):
    drawn = ["--over", "rail.rate=normal(0,1),mass=uniform(1,2)", "--samples", "20", "--seed", "3"]
    parquet = ["--store", "s", "--sampler", "latin_hypercube", "--out", "a.parquet"]
    call(capsys, model, *drawn, *parquet, "--plot", "a.png", "--output", "x=last:rail")
    assert len(ax.Sweep.load("s")["x"]) == 20
    call(capsys, model, *drawn, "--sampler", "latin_hypercube", "--out", "b.csv")
    with open("rows.csv", "w") as file:
        file.write("rail.rate,mass\n0.5,1\n1,2\n")
    table = ["--table", "rows.csv", "--output", "x=last:rail", "--json"]
    assert json.loads(call(capsys, model, *table).out)["outputs"]["x"]["max"] == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--over", "mass=1:2"], "'mass' needs values such as LOW:HIGH:COUNT"),
        (["--over", "mass=1:2:2.5"], "'mass' needs values such as"),
        (["--over", "mass=uniform(1)"], "'mass' needs values such as"),
        (["--over", "mass=[a]"], "'mass' needs values such as"),
        (["--over", "mass=1:2:3", "--parameter", "mass=1"], "given one value and swept too"),
        (["--output", "x=rail"], "is not NAME=KIND:QUANTITY"),
        (["--table", "a.csv", "--samples", "3"], "the rows are drawn or in a table"),
        (["--workers", "2", "--cluster", "tcp://a:1"], "a cluster has workers of its own"),
        (["--out", "a.txt"], "should end in .csv or .parquet or .npz"),
    ],
)
def test_mistakes_in_the_command(model, capsys, flags, words):
    shown = " ".join(call(capsys, model, *flags, code=2).err.replace("│", " ").split())
    assert words in shown


@pytest.mark.parametrize("count", ["1e1", "1.0E+1", "10"])
def test_whole_numbers_with_an_exponent(model, capsys, count):
    over = ["--over", "mass=uniform(1,2)", "--samples", count]
    assert "10 runs" in call(capsys, model, *over, code=0).out
    shown = call(capsys, model, *over[:-1], "1.5e0", code=2).err
    assert "expected a whole number" in " ".join(shown.replace("│", " ").split())


def test_names_that_mean_nothing(model, capsys):
    assert (
        "has no parameter, input or signal 'mas'"
        in call(capsys, model, "--over", "mas=1:2:3", code=1).err
    )


def test_after_ctrl_c_what_was_computed_is_shown(model, capsys, monkeypatch):
    def interrupted(self, made):
        raise KeyboardInterrupt

    monkeypatch.setattr(engines.Tally, "add", interrupted)
    over = ["--over", "mass=1:2:3", "--output", "x=last:rail"]
    shown = call(capsys, model, *over, "--store", "s", code=130)
    assert "what was computed is kept; the same command computes the rest" in shown.err


def test_a_cluster_that_cannot_be_reached(monkeypatch):
    def client(address, timeout):
        raise OSError("no answer")

    monkeypatch.setitem(sys.modules, "distributed", types.SimpleNamespace(Client=client))
    with pytest.raises(ax.InvalidArgument, match="cluster: no scheduler of Dask answers at 'tcp"):
        engines.connect_to_dask("tcp://a:1")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ax.NotApplicable, match=r"pip install .*\[cluster\]"):
        engines.connect_to_dask("tcp://a:1")


def test_inputs_that_a_table_cannot_add_to():
    with pytest.raises(ax.InvalidArgument, match="give inputs by name where the table has columns"):
        sweep(machines.slider(), 0.1, input=[1.0], samples={"rail.force": [1.0, 2.0]})


def test_more_rows_than_memory():
    mass = {"mass": ax.Uniform(1.0, 2.0)}
    with pytest.raises(ax.InvalidArgument, match="do not fit into the memory; store='folder'"):
        sweep(machines.slider(), 0.1, parameters=mass, samples=10**14)
    with pytest.raises(ax.InvalidArgument, match="samples: expected how many rows to draw"):
        sweep(machines.slider(), 0.1, parameters=mass, samples=True)
