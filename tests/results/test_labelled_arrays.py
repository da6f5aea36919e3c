"""Trajectories and sweeps as datasets of xarray."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from axode import errors
from results.runs import batch, one
from results.test_sweep_result import in_memory, stored


@pytest.fixture(scope="module", autouse=True)
def xarray():
    return pytest.importorskip("xarray", reason="pip install axode[data]")


def test_a_run_over_time():
    run = one(info={"model": "cart", "parameters": {"mass": 2.0}, "steps": 7})
    data = run.to_xarray()
    assert set(data.data_vars) == set(run.names) and data.sizes == {"time": len(run)}
    for name in run.names:
        assert np.array_equal(data[name], run[name])
        assert data[name].attrs == {"units": run.unit(name), "kind": run.kinds[name]}
    assert np.array_equal(data["time"], run.time) and data["time"].attrs["units"] == "s"
    assert data.attrs["model"] == "cart" and data.attrs["steps"] == 7
    assert json.loads(data.attrs["parameters"]) == {"mass": 2.0}
    assert float(data["pitch"].sel(time=1.0, method="nearest")) == run.at(1.0)["pitch"]


def test_runs_of_a_batch_and_how_they_ended():
    runs = batch()
    data = runs.to_xarray()
    shape = dict(zip(data["pitch"].dims, data["pitch"].shape, strict=True))
    assert list(shape.values()) == [*runs.batch, len(runs)] and "time" in shape
    assert np.array_equal(data["pitch"], runs["pitch"], equal_nan=True)
    assert data["status"].values.reshape(-1).tolist() == list(runs.statuses)


def test_a_column_may_be_called_time():
    run = one().with_columns({"time": np.zeros(41)})
    data = run.to_xarray()
    assert data["time"].dims == ("time_",) and not data["time"].any()


@pytest.mark.parametrize("place", ["memory", "store"])
def test_a_grid_has_its_axes(tmp_path, place):
    grid = in_memory("grid") if place == "memory" else stored("grid", tmp_path)
    data = grid.to_xarray()
    assert data["arm.energy"].dims == ("start.base.pitch", "mass")
    assert np.array_equal(data["arm.energy"], grid["arm.energy"], equal_nan=True)
    assert np.array_equal(data["finished"], grid.finished)
    chosen = data["arm.energy"].sel({"start.base.pitch": 0.2, "mass": 3.0})
    assert float(chosen) == pytest.approx(3.0 * 0.2**2)


def test_drawn_and_chosen_rows_have_their_values():
    drawn = in_memory("drawn")
    data = drawn.to_xarray()
    assert data["arm.energy"].dims == ("row",)
    assert np.array_equal(data["mass"], drawn.samples["mass"])
    best = drawn.best("arm.energy", 3).to_xarray()
    assert (np.diff(best["arm.energy"]) >= 0).all()
    assert np.array_equal(best["mass"], data["mass"].sel(row=best["row"]))


def test_xarray_is_an_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "xarray", None)
    for result in (one(), in_memory("grid")):
        with pytest.raises(errors.NotApplicable, match=r"to_xarray needs xarray.*\n.*\[data\]"):
            result.to_xarray()


def test_files_hold_the_dataset(xarray, tmp_path):
    pytest.importorskip("scipy.io")
    one().to_xarray().to_netcdf(tmp_path / "run.nc", engine="scipy")
    with xarray.open_dataset(tmp_path / "run.nc", engine="scipy") as data:
        assert data["pitch"].attrs["units"] == "rad"
