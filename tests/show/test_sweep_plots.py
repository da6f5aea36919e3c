"""Plots of sweeps: every run is drawn or counted, axes have units, names are checked."""

import numpy as np
import pytest
from PIL import Image

from axode.errors import FileError, InvalidArgument, UnknownName
from axode.results.sweep_arrays import RowTexts
from axode.results.sweep_result import Sweep
from axode.show.plot.maps import plot_map, reduce_cells
from axode.show.plot.sweep_plots import MAX_DOTS

UNITS = {"falls": "s", "mass": "kg"}


def scattered(runs=600):
    """Runs at random, some of which fail, slip without load, or never fall."""
    rng = np.random.default_rng(3)
    mass, height = rng.uniform(5, 12, runs), rng.uniform(0.2, 0.6, runs)
    finished = np.arange(runs) % 50 != 7
    slip = 0.4 - 0.1 * (mass - 8) + 0.2 * rng.normal(size=runs)
    slip[::100] = -np.inf
    falls = np.where(height < 0.3, np.nan, height)
    outputs = {"slip": slip, "falls": falls, "still": np.ones(runs)}
    outputs = {name: np.where(finished, values, np.nan) for name, values in outputs.items()}
    statuses = {"finished": int(finished.sum()), "failed": int((~finished).sum())}
    samples = {"mass": mass, "height": height}
    return Sweep(outputs, {}, finished, statuses, {"model": "bot", "units": UNITS}, samples=samples)


def grid():
    """Two axes, some of whose runs failed or have no value."""
    a, b = np.linspace(-1, 1, 9), np.linspace(0, 3, 7)
    x, y = np.meshgrid(a, b, indexing="ij")
    finished = ~((x > 0.8) & (y > 2))
    value = np.where(finished, x * y, np.nan)
    falls = np.where(finished & (x > -0.6), y, np.nan)
    statuses = {"finished": int(finished.sum()), "failed": int((~finished).sum())}
    axes = {"pitch": a, "mass": b}
    return Sweep({"value": value, "falls": falls}, axes, finished, statuses, {"units": UNITS})


def title(figure):
    return figure.get_suptitle()


def legends(figure):
    return [
        text.get_text()
        for axes in figure.axes
        if axes.get_legend()
        for text in axes.get_legend().get_texts()
    ]


def cube(kinds=(), shift=0.0):
    """Three axes; the first output is a "min", the second a "max"."""
    axes = {"pitch": np.arange(3.0), "mass": np.arange(2.0), "yaw": np.linspace(-1, 1, 5)}
    x, y, z = np.meshgrid(*axes.values(), indexing="ij")
    outputs = {"load": x - y * z + shift, "lean": x + z**2, "time": y + z}
    info = {"kinds": dict(kinds), "units": {"load": "N", "mass": "kg"}, "model": "bot"}
    return Sweep(outputs, axes, np.ones(x.shape, bool), {"finished": x.size}, info)


MINMAX = {"load": "min", "lean": "largest", "time": "integral"}


def test_a_map_shows_the_worst_of_further_axes_and_says_so():
    made = cube(MINMAX)
    figure = made.plot()  # all outputs over the first two axes
    load, lean, time = figure.axes[::2]
    for axes, name, reduction in ((load, "load", np.min), (lean, "lean", np.max)):
        mesh = axes.collections[-1].get_array()
        np.testing.assert_array_equal(mesh, reduction(made[name], axis=2).T)
    np.testing.assert_allclose(time.collections[-1].get_array(), made["time"].mean(axis=2).T)
    bars = [axes.get_ylabel() for axes in figure.axes[1::2]]
    assert bars == ["smallest load [N]", "largest lean", "mean time"]
    assert "smallest, largest, mean over yaw: 5 values from -1 to 1" in title(figure)


def test_a_reduction_can_be_chosen():
    made = cube(MINMAX)
    figure = made.plot("load", "pitch", "mass", reduce="median")
    mesh = figure.axes[0].collections[-1].get_array()
    np.testing.assert_allclose(mesh, np.median(made["load"], axis=2).T)
    assert "median over yaw" in title(figure) and figure.axes[1].get_ylabel() == "median load [N]"
    (axes,) = made.plot("load", "pitch", reduce="max").axes
    np.testing.assert_allclose(axes.lines[0].get_ydata(), made["load"].max(axis=(1, 2)))
    with pytest.raises(UnknownName, match="no reduction 'worst'"):
        made.plot("load", reduce="worst")
    with pytest.raises(InvalidArgument, match="a histogram shows all runs"):
        made.plot("load", kind="histogram", reduce="max")


def test_bands_show_the_worst_too():
    made = cube(MINMAX)
    figure = made.plot("load", "pitch")
    median, worst, *_ = figure.axes[0].lines
    np.testing.assert_allclose(median.get_ydata(), np.median(made["load"], axis=(1, 2)))
    np.testing.assert_allclose(worst.get_ydata(), made["load"].min(axis=(1, 2)))
    assert legends(figure)[-1] == "smallest"
    assert "all runs over mass [kg]: 0, 1, yaw: 5 values from -1 to 1" in title(figure)


def test_a_map_hatches_cells_of_which_some_runs_failed():
    made = cube(MINMAX)
    finished = np.array(made.finished)
    finished[0, 0, 0] = False
    some = Sweep(dict(made), made.axes, finished, {"finished": 29, "failed": 1}, made.info)
    assert legends(some.plot("load", "pitch", "mass")) == ["some not finished (1)"]


def test_inaccurate_runs_are_drawn_and_marked():
    axes = {"pitch": np.arange(3.0), "mass": np.arange(2.0)}
    finished = np.array([[True, False], [False, False], [True, True]])
    codes = np.array([0, 1, 1, 2, 0, 0])
    status = RowTexts.from_codes(codes, {0: "finished", 1: "inaccurate", 2: "failed"})
    counts = {"finished": 3, "inaccurate": 2, "failed": 1}
    made = Sweep({"y": np.arange(6.0).reshape(3, 2)}, axes, finished, counts, status=status)
    figure = made.plot("y")
    mesh = figure.axes[0].collections[-1].get_array()
    np.testing.assert_array_equal(mesh.filled(np.nan), [[0, 2, 4], [1, np.nan, 5]])
    assert legends(figure) == ["not finished (1)", "inaccurate (2)"]


def test_two_designs_are_drawn_over_each_other():
    one, other = cube(MINMAX), cube(MINMAX, shift=0.5)
    overlay = {"longer": other}
    figure = one.plot("load", "pitch", reduce="min", overlay=overlay, label="short")
    first, second, *_ = figure.axes[0].lines
    np.testing.assert_allclose(second.get_ydata(), first.get_ydata() + 0.5)
    assert legends(figure) == ["short", "smallest", "longer"]
    maps = one.plot("load", "pitch", "mass", overlay=overlay)
    assert legends(maps) == ["this sweep: zero", "longer: zero"]  # signs differ: lines of zero
    (outline,) = one.plot("load", kind="histogram", overlay=overlay).axes[0].patches[1:]
    assert outline.get_data().values.sum() == other.runs
    alone = Sweep({"size": np.ones(2)}, {"a": np.arange(2.0)}, np.ones(2, bool), {"finished": 2})
    with pytest.raises(InvalidArgument, match="'longer' has no size"):
        alone.plot("size", overlay=overlay)
    with pytest.raises(InvalidArgument, match="a scatter matrix shows one sweep"):
        one.plot("load", "lean", kind="scatter", overlay=overlay)
    moved = Sweep(dict(one), {**one.axes, "pitch": np.arange(3.0) + 9}, one.finished, one.statuses)
    with pytest.raises(InvalidArgument, match="'longer' has other values of pitch and mass"):
        one.plot("load", "pitch", "mass", overlay={"longer": moved})


@pytest.mark.parametrize("how", ["min", "max", "mean", "median"])
def test_cells_are_reduced_as_numpy_does(how):
    rng = np.random.default_rng(5)
    values, place = rng.normal(size=400), rng.integers(0, 30, 400)
    place[place == 7] = 8  # an empty cell
    values[rng.integers(0, 400, 60)] = np.nan
    values[place == 3] = np.nan
    values[np.flatnonzero(place == 4)[:1]] = -np.inf
    values[place == 5] = np.inf
    made = reduce_cells(values, place, 30, how)
    for cell in range(30):
        own = values[place == cell]
        own = own[~np.isnan(own)]
        if how in ("mean", "median") and np.isfinite(own).any():
            own = own[np.isfinite(own)]
        expected = getattr(np, how)(own) if own.size else np.nan
        np.testing.assert_allclose(made[cell], expected, err_msg=str(cell))


def test_maps_of_other_quantities():
    x, y, z = np.linspace(-1, 1, 5), np.linspace(0, 1, 4), np.array([0.2, 0.4])
    torque = x[:, None, None] ** 2 + y[:, None] * z
    torque[0, 0] = np.nan  # out of reach
    axes = {"x [m]": x, "y [m]": y, "z [m]": z}
    figure = plot_map(torque, axes, label="torque [N m]", overlay={"B": 2 * torque}, name="A")
    space, bar = figure.axes
    mesh = space.collections[0].get_array()
    np.testing.assert_allclose(mesh.filled(np.nan), np.fmax(*np.moveaxis(torque, 2, 0)).T)
    assert bar.get_ylabel() == "largest torque [N m]" and space.get_aspect() == 1.0
    assert title(figure) == "largest over z [m]: 0.2, 0.4" and legends(figure) == ["A", "B"]
    flat = plot_map(torque, axes, label="t", over=("z [m]", "x [m]"), reduce="min", equal=False)
    np.testing.assert_allclose(flat.axes[0].collections[0].get_array(), np.nanmin(torque, axis=1))
    with pytest.raises(UnknownName, match="no axis 'w'"):
        plot_map(torque, axes, label="t", over=("w", "x [m]"))
    with pytest.raises(UnknownName, match="no reduction 'sum'"):
        plot_map(torque, axes, label="t", reduce="sum")
    with pytest.raises(InvalidArgument, match=r"has shape \(5, 4, 2\), not \(5, 4\)"):
        plot_map(torque[..., 0], axes, label="t")


def test_a_histogram_counts_every_run():
    made = scattered()
    figure = made.plot("slip", "falls", kind="histogram")
    assert title(figure).startswith("bot \N{MIDDLE DOT} 600 runs") and "12 failed" in title(figure)
    slip, falls = figure.axes
    for axes, name in ((slip, "slip"), (falls, "falls")):
        drawn = axes.patches[0].get_data().values.sum()
        finite = np.isfinite(made[name]).sum()
        lost = [int(words.split()[0]) for words in axes.get_title(loc="left").split(", ") if words]
        assert drawn == finite and drawn + sum(lost) == made.finished.sum()
    assert slip.get_title(loc="left") == "6 at minus infinity"
    assert "without a value" in falls.get_title(loc="left")
    assert falls.get_xlabel() == "falls [s]" and slip.get_ylabel() == "runs"


def test_few_runs_far_from_the_others_are_counted():
    values = np.concatenate([np.linspace(0, 1, 500), [90.0, 1e6, -4e5]])
    made = Sweep({"y": values}, {}, np.ones(503, bool), {"finished": 503})
    (axes,) = made.plot().axes
    assert axes.get_title(loc="left") == "3 beyond the axis"
    assert axes.patches[0].get_data().values.sum() == 500 and max(map(abs, axes.get_xlim())) < 3


def test_the_default_follows_the_sweep():
    made = scattered()
    assert len(made.plot().axes) == 6  # a matrix of three outputs, one of them constant
    assert len(made.plot("mass").axes) == 1
    maps = grid().plot()
    assert [axes.get_xlabel() for axes in maps.axes] == ["pitch", "", "pitch", ""]  # and bars
    assert grid().plot("value", "mass").axes[0].get_xlabel() == "mass [kg]"  # bands over the other
    box = {name: np.arange(2.0) for name in "abc"}
    cube = Sweep(
        {"y": np.arange(8.0).reshape(2, 2, 2)}, box, np.ones((2, 2, 2), bool), {"finished": 8}
    )
    mesh = cube.plot("y", "a", "c").axes[0].collections[-1]
    np.testing.assert_array_equal(mesh.get_array(), [[1, 5], [2, 6]])  # means over b
    line = Sweep({"y": np.arange(5.0)}, {"x": np.arange(5.0)}, np.ones(5, bool), {"finished": 5})
    (axes,) = line.plot().axes
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), np.arange(5.0))


def test_a_matrix_draws_pairs_and_failures():
    made = scattered()
    figure = made.plot("slip", "mass", "height")
    below = figure.axes[1]
    dots, failed, *_ = below.lines
    assert (below.get_xlabel(), below.get_ylabel()) == ("", "mass [kg]")
    assert len(dots.get_xdata()) == np.isfinite(made["slip"]).sum()
    np.testing.assert_array_equal(failed.get_ydata(), made.samples["mass"][~made.finished])
    swept = figure.axes[4].lines[1]
    np.testing.assert_array_equal(swept.get_xdata(), made.samples["mass"][~made.finished])


def test_very_many_runs_are_counted_in_cells():
    made = scattered(MAX_DOTS + 500)
    (mesh,) = made.plot("mass", "height").axes[1].collections
    assert mesh.get_array().sum() == made.runs


def test_a_heat_map_hatches_what_has_no_value():
    made = grid()
    figure = made.plot("value", "falls", "pitch", "mass")
    failed = int((~made.finished).sum())
    never = int((np.isnan(made["falls"]) & made.finished).sum())
    assert legends(figure) == [f"not finished ({failed})"] * 2 + [f"no value ({never})"]
    assert len(figure.axes[2].patches) == 2  # one path each, whatever the number of cells
    failed_cells, empty_cells = (patch.get_path() for patch in figure.axes[2].patches)
    assert failed_cells.contains_point((1.0, 2.5)) and empty_cells.contains_point((-1.0, 0.5))
    assert not empty_cells.contains_point((0.0, 0.5))
    mesh = figure.axes[0].collections[-1]
    np.testing.assert_array_equal(mesh.get_array().filled(np.nan), made["value"].T)
    assert mesh.norm.vmin == -mesh.norm.vmax  # zero is white


def test_a_constant_lies_in_the_middle_of_its_colours():
    axes = {"a": np.arange(3.0), "b": np.arange(2.0)}
    made = Sweep({"y": np.full((3, 2), 0.3)}, axes, np.ones((3, 2), bool), {"finished": 6})
    norm = made.plot("y").axes[0].collections[-1].norm
    assert norm.vmin < 0.3 < norm.vmax and norm.vmax - 0.3 == pytest.approx(0.3 - norm.vmin)


def test_outputs_without_any_value_are_drawn_only_when_named():
    made = scattered()
    outputs = dict(made) | {"never": np.full(made.runs, np.nan)}
    made = Sweep(outputs, {}, made.finished, made.statuses, samples=made.samples)
    assert len(made.plot().axes) == 6 and "3 of 4 outputs" in title(made.plot())
    (axes,) = made.plot("never").axes
    assert "without a value" in axes.get_title(loc="left")


def test_a_heat_map_of_scattered_runs_shows_means():
    made = scattered(2000)
    mesh = made.plot("slip", "mass", "height", kind="heatmap").axes[0].collections[-1]
    means = mesh.get_array()
    assert means.count() == means.size and means.min() < 0 < means.max()
    figure = scattered(20).plot("slip", "mass", "height", kind="heatmap")
    assert figure.axes[0].collections[-1].get_array().shape == (4, 4)  # not a row for each run
    assert any(text.startswith("no run (") for text in legends(figure))


def test_bands_are_percentiles():
    made = scattered(3000)
    figure = made.plot("slip", "mass", kind="bands")
    (axes,) = figure.axes
    median, at = axes.lines[0].get_ydata(), axes.lines[0].get_xdata()
    np.testing.assert_allclose(median, 0.4 - 0.1 * (at - 8), atol=0.15)
    assert legends(figure) == ["median", "25 to 75 %", "5 to 95 %", "30 at minus infinity"]
    over = grid().plot("value", "mass", kind="bands").axes[0].lines[0]
    np.testing.assert_array_equal(over.get_xdata(), grid().axes["mass"])


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("kind", ["histogram", "scatter", "heatmap", "bands"])
def test_sweeps_without_a_finite_number_are_drawn(kind, value):
    runs = {"a": np.full(9, value), "b": np.full(9, value)}
    samples = {"mass": np.arange(9.0), "height": np.arange(9.0) // 3}
    swept = ["mass", "height"][: {"bands": 1, "heatmap": 2}.get(kind, 0)]
    made = Sweep(runs, {}, np.isinf(runs["a"]), {"failed": 9}, samples=samples)
    assert made.plot("a", "b", *swept, kind=kind).axes


def test_a_figure_is_written(tmp_path):
    path = tmp_path / "sweep.png"
    grid().plot("value", size="column", save=path)
    assert Image.open(path).width == 3.5 * 300
    with pytest.raises(FileError, match="the file of a plot ends in"):
        grid().plot(save=tmp_path / "sweep.txt")


def test_what_is_refused():
    made = scattered()
    with pytest.raises(UnknownName, match=r"no output or swept value 'slipp'.*\n.*slip"):
        made.plot("slipp")
    with pytest.raises(UnknownName, match="histogram"):
        made.plot(kind="histogramm")
    with pytest.raises(
        InvalidArgument,
        match="plot, kind 'heatmap': name 2 swept values besides outputs; swept: mass, height",
    ):
        made.plot("slip", "mass", kind="heatmap")
    with pytest.raises(
        InvalidArgument, match="plot, kind 'bands': name one swept value besides outputs"
    ):
        made.plot("slip", kind="bands")
    many = Sweep({f"y{k}": np.ones(3) for k in range(13)}, {}, np.ones(3, bool), {"finished": 3})
    assert "4 of 13 outputs" in title(many.plot())
    with pytest.raises(InvalidArgument, match="13 outputs are too many for one figure, name up to"):
        many.plot(*many, kind="histogram")
    with pytest.raises(
        InvalidArgument, match="plot, kind 'scatter': 13 columns are too many, name up to 7"
    ):
        many.plot(*many, kind="scatter")


def test_a_swept_value_called_as_an_output_is():
    axes, units = {"pitch": np.arange(3.0)}, {"pitch": "rad", "start.pitch": "rad"}
    made = Sweep({"pitch": np.ones(3)}, axes, np.ones(3, bool), {"finished": 3}, {"units": units})
    (drawn,) = made.plot("pitch").axes
    assert (drawn.get_xlabel(), drawn.get_ylabel()) == ("start.pitch [rad]", "pitch [rad]")
