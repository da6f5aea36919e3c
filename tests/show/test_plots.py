"""Plots of trajectories: what is drawn is what was asked for, whole, labelled and readable."""

import re
import sys
import xml.etree.ElementTree as ET

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from matplotlib.collections import LineCollection
from PIL import Image

import axode as ax
from axode.errors import FileError, InvalidArgument, NotApplicable, UnknownName
from axode.results.columns import Event
from axode.results.trajectory import Trajectory
from axode.show.plot.choice import columns_of
from axode.show.plot.panels import keep_extremes, shorten
from results.runs import batch, one

SAMPLES = st.lists(
    st.one_of(st.floats(-1e6, 1e6), st.just(float("nan"))), min_size=1, max_size=400
).map(np.array)


def made(columns, time=None, unit="rad", kind="measure", **changes):
    """A trajectory of these columns, all of one unit and kind."""
    values = np.stack([np.asarray(column, dtype=float) for column in columns.values()], axis=-1)
    time = np.linspace(0, 5, values.shape[-2]) if time is None else time
    return Trajectory(
        time=time,
        values=values,
        names=tuple(columns),
        units=(unit,) * len(columns),
        kinds=dict.fromkeys(columns, kind),
        **changes,
    )


def labels(figure):
    return [axes.get_ylabel() for axes in figure.axes]


def legend(axes):
    shown = axes.get_legend()
    return [text.get_text() for text in shown.get_texts()] if shown else []


# order, labels, units ----------------------------------------------------------------------------


def three_units():
    time = np.linspace(0, 5, 20)
    return Trajectory(
        time=time,
        values=np.stack([np.sin(time), np.cos(time), time, -time], axis=-1),
        names=("arm.angle", "arm.rate", "arm.effort", "leg.angle"),
        units=("rad", "rad/s", "N m", "rad"),
        kinds=dict.fromkeys(("arm.angle", "arm.rate", "arm.effort", "leg.angle"), "measure"),
    )


def test_panels_and_curves_are_in_the_order_asked_for():
    run = three_units()
    asked = (["arm.effort"], "leg.angle", ["arm.rate"], "arm.angle")
    figure = run.plot(*asked)
    assert labels(figure) == ["arm.effort [N m]", "angle [rad]", "arm.rate [rad/s]"]
    assert legend(figure.axes[1]) == ["leg.angle", "arm.angle"]
    assert labels(run.plot("arm.rate", "arm.effort", "arm.angle")) == [
        "arm.rate [rad/s]", "arm.effort [N m]", "arm.angle [rad]"
    ]  # fmt: skip


@pytest.mark.parametrize("nothing", [[[]], [()], ["arm.angle", []], [""]])
def test_a_plot_of_nothing_raises_an_error_that_says_how_to_get_an_overview(nothing):
    with pytest.raises(InvalidArgument, match=r"names no signal; plot\(\) without names draws"):
        three_units().plot(*nothing)


def test_signals_may_be_renamed_by_short_names_too():
    run = three_units()
    figure = run.plot("angle", "effort", labels={"leg.angle": "hip", "arm.effort": "motor"})
    assert legend(figure.axes[0]) == ["arm.angle", "hip"]
    assert figure.axes[1].get_ylabel() == "motor [N m]"
    assert run.plot("rate", labels={"rate": r"$\dot{\theta}$"}).axes[0].get_ylabel() == (
        r"$\dot{\theta}$ [rad/s]"
    )
    # what matplotlib cannot set is drawn as it is written
    odd = run.plot("rate", labels={"rate": r"$\nonsense$"}).axes[0].get_ylabel()
    assert odd == r"\$\nonsense\$ [rad/s]"
    path = vehicle().plot("path", labels={"cart": "robot"})
    assert "robot" in legend(path.axes[0])


def test_labels_that_name_nothing_are_reported_all_at_once():
    with pytest.raises(InvalidArgument) as caught:
        three_units().plot("effort", labels={"tork": "T", "leg.angel": "q", "rate": 3})
    assert str(caught.value).count("plot, labels:") == 3
    for part in ("'tork'", "leg.angle", "expected NAME: LABEL"):
        assert part in str(caught.value)
    for wrong in ("run", ["one", "two"], 3):
        with pytest.raises(InvalidArgument, match=r"labels: a list of 1, one per run, or \{'NAME'"):
            three_units().plot("effort", labels=wrong)


def test_angles_and_their_rates_are_drawn_in_degrees_on_request():
    run = three_units()
    figure = run.plot("arm.angle", "rate", "effort", degrees=True)
    assert labels(figure) == ["arm.angle [deg]", "arm.rate [deg/s]", "arm.effort [N m]"]
    drawn = [axes.lines[0].get_ydata() for axes in figure.axes]
    np.testing.assert_allclose(drawn[0], np.rad2deg(run["arm.angle"]))
    np.testing.assert_allclose(drawn[2], run["arm.effort"])
    # a heading that jumps by a turn has a gap in degrees as well
    turning = made({"yaw": np.angle(np.exp(1j * np.linspace(0, 9, 200)))})
    assert np.isnan(turning.plot("yaw", degrees=True).axes[0].lines[0].get_ydata()).any()


# many lines, equal lines -------------------------------------------------------------------------


def looks(lines):
    return [(line.get_color(), line.get_linestyle(), line._unscaled_dash_pattern) for line in lines]


@pytest.mark.parametrize("count", [11, 32, 45])
def test_no_two_lines_of_a_panel_look_alike(count):
    time = np.linspace(0, 5, 30)
    figure = made({f"joint.{k}": np.sin(time + 0.1 * k) for k in range(count)}, time).plot("joint")
    assert sum(len(legend(axes)) for axes in figure.axes) == count
    for axes in figure.axes:
        assert len(set(looks(axes.lines))) == len(axes.lines) <= 32


def stripes(line):
    offset, (on, off) = line._unscaled_dash_pattern
    start = -offset % (on + off)
    return start, start + on, on + off


def test_lines_on_each_other_are_all_seen():
    time = np.linspace(0, 5, 400)
    wave = np.sin(time)
    columns = {"a": wave, "b": wave + 1e-4, "c": 2 * wave, "d": wave.round(5)}
    first, second, other, third = made(columns, time).plot("a", "b", "c", "d").axes[0].lines
    assert first.get_linestyle() == other.get_linestyle() == "-"
    parts = sorted([stripes(second), stripes(third)])
    assert (
        parts[0][0] > 0 and parts[0][1] <= parts[1][0] + 1e-9 and parts[1][1] <= parts[1][2] + 1e-9
    )

    # lines that meet only now and then keep their looks, and so does a line on nothing
    crossing = made({"a": wave, "b": -wave, "c": np.full(400, np.nan)}, time).plot("a", "b", "c")
    assert [line.get_linestyle() for line in crossing.axes[0].lines] == ["-"] * 3

    # on a logarithmic axis, orders of magnitude are far from each other
    small = {"a": np.full(400, 1e-3), "b": 1e-9 + 1e-10 * wave, "c": 1e-6 + 1e-7 * wave}
    errors = made(small, time, unit="m", kind="residual").plot("a", "b", "c").axes[0].lines
    assert [line.get_linestyle() for line in errors] == ["-"] * 3

    # constants, and runs of a batch
    still = made({"a": np.ones(9), "b": np.ones(9)}).plot("a", "b").axes[0].lines
    assert [line.get_linestyle() for line in still] == ["-", "--"]
    runs = one(values=np.repeat(one().values[None], 3, 0)).plot("pitch")
    assert len(set(looks(runs.axes[0].lines))) == len(runs.axes[0].lines)


# fewer points ------------------------------------------------------------------------------------


@given(SAMPLES, st.integers(1, 60))
@example(np.arange(400.0), 7)
def test_decimation_keeps_ends_and_extremes_of_all_it_leaves_out(values, buckets):
    there = keep_extremes(values, buckets)
    assert (np.diff(there) > 0).all() and there[0] == 0 and there[-1] == len(values) - 1
    assert len(there) <= max(3 * buckets + 2, 5 * buckets)
    finite = values[~np.isnan(values)]
    if finite.size:
        shown = values[there]
        assert np.nanmin(shown) == finite.min() and np.nanmax(shown) == finite.max()


@given(SAMPLES, st.integers(1, 60))
def test_what_decimation_leaves_out_lies_within_its_neighbourhood(values, buckets):
    there, width = keep_extremes(values, buckets), -(-len(values) // buckets)
    for start in range(0, len(values), width):
        own = there[(there >= start) & (there < start + width)]
        left_out = values[start : start + width]
        if not np.isnan(left_out).all():
            assert np.nanmin(values[own]) == np.nanmin(left_out)
            assert np.nanmax(values[own]) == np.nanmax(left_out)
        assert np.isnan(left_out).any() == np.isnan(values[own]).any()


def test_a_spike_of_one_sample_in_a_long_run_is_drawn():
    values = np.zeros(300_000)
    values[123_456], values[200_001] = 7.0, -3.0
    (line,) = made({"a": values}).plot("a").axes[0].get_lines()
    assert len(line.get_ydata()) < 10_000
    assert (line.get_ydata().min(), line.get_ydata().max()) == (-3.0, 7.0)


# what is asked for -------------------------------------------------------------------------------


def test_a_panel_has_signals_of_one_unit_and_says_which():
    figure = one().plot("pitch", "left.torque", "pitch.rate", "left.rate")
    assert labels(figure) == ["pitch [rad]", "left.torque [N m]", "rate [rad/s]"]
    assert [legend(axes) for axes in figure.axes] == [[], [], ["pitch.rate", "left.rate"]]
    assert [axes.get_xlabel() for axes in figure.axes] == ["", "", "time [s]"]
    for axes, name in zip(figure.axes, ("pitch", "left.torque"), strict=False):
        (line,) = axes.get_lines()
        np.testing.assert_array_equal(line.get_xydata().T, [one().time, one()[name]])


def test_a_list_has_panels_of_its_own():
    assert labels(one().plot("pitch.rate", ["left.rate"])) == [
        "pitch.rate [rad/s]",
        "left.rate [rad/s]",
    ]


def test_a_name_is_a_column_or_a_word_or_an_ending_or_a_beginning():
    run = one()
    assert columns_of(run, "residual") == ("residual",)
    assert columns_of(run, "speeds") == ("pitch.rate", "left.rate")
    assert columns_of(run, "torque") == columns_of(run, "inputs") == ("left.torque",)
    assert columns_of(run, "rate") == ("pitch.rate", "left.rate")
    assert columns_of(run, "left") == ("left.rate", "left.torque")
    own = made({"speeds": np.zeros(3), "a.torque": np.zeros(3)}, kind="input")
    assert columns_of(own, "speeds") == ("speeds",)  # a column before a word
    assert columns_of(own, "torque") == ("speeds", "a.torque")  # a word before an ending


def test_what_means_nothing_is_told_with_what_is_near():
    with pytest.raises(UnknownName, match=r"no signal 'pich'(.|\n)*Did you mean 'pitch'\?"):
        one().plot("pich")
    with pytest.raises(InvalidArgument, match=r"'pich'.*'pitch'(.|\n)*'torq'.*\n *Signals: path"):
        one().plot("pitch", "pich", ["torq"])
    with pytest.raises(InvalidArgument, match="no column for 'forces'; it has coordinates"):
        one().plot("forces")
    for wrong, told in (
        (3, "names of columns or lists"),
        (["pitch", 4], "text, got 4"),
        (["path"], "plot of its own"),
    ):
        with pytest.raises(InvalidArgument, match=told):
            one().plot(wrong)
    with pytest.raises(InvalidArgument, match="no column to plot"):
        Trajectory(time=[0, 1], values=np.zeros((2, 0)), names=(), units=(), kinds={}).plot()


def test_stored_energy_is_what_was_supplied_less_what_was_dissipated():
    run = one()
    balance, error = run.plot("energy").axes
    drawn = dict(
        zip(legend(balance), (line.get_ydata() for line in balance.get_lines()), strict=True)
    )
    stored = drawn["kinetic + potential"]
    flow = drawn["energy.supplied"] - drawn["energy.dissipated"]
    np.testing.assert_allclose(stored - flow, run["energy.error"], atol=1e-12)
    assert stored[0] == 0 and error.get_yscale() == "log"
    assert (balance.get_ylabel(), error.get_ylabel()) == (
        "change of energy [J]",
        "|energy.error| [J]",
    )


def test_residuals_are_shown_by_their_order_of_magnitude():
    (axes,) = one().plot("residual").axes
    assert axes.get_yscale() == "log" and axes.get_ylim()[1] >= one()["residual"].max()
    (axes,) = made({"residual": np.zeros(4)}, kind="residual").plot("residual").axes
    assert [text.get_text() for text in axes.texts] == ["exactly zero"]


def test_a_constant_is_not_put_under_a_microscope():
    (axes,) = made({"a": 2.0 + 1e-15 * np.sin(np.arange(50))}).plot("a").axes
    assert axes.get_ylim()[1] - axes.get_ylim()[0] > 0.1


def test_an_angle_that_jumps_by_a_turn_moves_nowhere():
    turning = np.linspace(0, 20, 500)
    wrapped = np.angle(np.exp(1j * turning))
    (line,) = made({"yaw": wrapped}).plot("yaw").axes[0].get_lines()
    assert np.nanmax(np.abs(np.diff(line.get_ydata()))) < 0.1
    assert np.isnan(line.get_ydata()).sum() == 3


def test_the_overview_of_a_mechanism_without_wheels_shows_states_inputs_and_energy():
    assert labels(one().plot()) == [
        "pitch [rad]",
        "pitch.rate [rad/s]",
        "left.torque [N m]",
        "change of energy [J]",
    ]
    many = made({f"j{k}": np.arange(4) for k in range(40)}, kind="coordinate")
    assert legend(many.plot().axes[0])[-1] == "and 28 more"
    assert sum(len(legend(axes)) for axes in many.plot("coordinates").axes) == 40


# legends -----------------------------------------------------------------------------------------

LONG = [f"front_left_suspension_arm_{k}.carrier.longitudinal_force" for k in range(12)]


@pytest.mark.parametrize("size", ["screen", "column", "page"])
@pytest.mark.parametrize(
    "names", [["a", "b"], LONG, [f"j{k}" for k in range(30)]], ids=["few", "long", "many"]
)
def test_a_legend_lies_on_the_figure_and_covers_no_data(size, names):
    figure = made({name: np.arange(20) * k for k, name in enumerate(names)}).plot(*names, size=size)
    figure.canvas.draw()
    for axes in figure.axes:
        box, inside = axes.get_legend().get_window_extent(), axes.get_window_extent()
        assert not box.overlaps(inside)
        assert figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1 + 0.5
        assert figure.bbox.y0 <= box.y0 and box.y1 <= figure.bbox.y1 + 0.5
        assert inside.width > 0.5 * figure.bbox.width and inside.height > 40


@given(
    st.lists(st.text("abc.", min_size=1, max_size=30), min_size=1, max_size=6), st.integers(9, 40)
)
def test_shortened_labels_fit(texts, letters):
    short = shorten(texts, letters)
    assert all(len(text) <= letters for text in short)
    assert all(new == old for old, new in zip(texts, short, strict=True) if len(old) <= letters)


def test_shortened_labels_keep_what_tells_them_apart():
    assert len(set(shorten(LONG, 30))) == len(LONG)


def test_names_are_drawn_as_they_are_written():
    figure = made({"_cost$1": [1, 2], "b$": [1, 3]}).plot("_cost$1", "b$")
    figure.canvas.draw()
    assert legend(figure.axes[0]) == [r" _cost\$1", r"b\$"]


# many runs, ends and events ----------------------------------------------------------------------


def test_few_runs_have_a_colour_and_a_name_each():
    figure = batch((3,)).plot("pitch", "left.torque", labels=["soft", "middle", "hard"])
    assert [legend(axes) for axes in figure.axes] == [["soft", "middle", "hard"], []]
    for axes in figure.axes:
        assert len({line.get_color() for line in axes.get_lines()}) == 3
    with pytest.raises(InvalidArgument, match="a list of 3, one per run"):
        batch((3,)).plot("pitch", labels=["soft"])
    with pytest.raises(
        InvalidArgument, match="2 to 8 runs of one signal per panel, here are 3 runs"
    ):
        batch((3,)).plot("speeds", labels=["soft", "middle", "hard"])


def test_many_runs_are_faint_and_none_is_lost():
    run = batch((5, 50), time=np.linspace(0, 1, 11))
    figure = run.plot("speeds")
    (axes,) = figure.axes
    lines = [c for c in axes.collections if isinstance(c, LineCollection)]
    assert [len(one.get_segments()) for one in lines] == [100, 100]
    assert all(one.get_alpha() < 0.5 for one in lines) and len(legend(axes)) == 2
    band = next(c for c in axes.collections if not isinstance(c, LineCollection))
    shaded = band.get_paths()[0].vertices[:, 1]
    assert shaded.max() == run["pitch.rate"].max() and shaded.min() == run["pitch.rate"].min()
    assert "100 of 250 runs drawn" in figure.get_suptitle()


def test_lines_end_where_runs_end_and_failures_are_marked():
    statuses = ("finished", "failed: steps too short at t = 1 s, pitch", "failed: at once")
    figure = batch((3,), lengths=[41, 20, 0], statuses=statuses).plot("pitch")
    lines = figure.axes[0].get_lines()
    drawn = [int(np.isfinite(line.get_ydata()).sum()) for line in lines]
    assert drawn == [41, 20, 0, 1]
    assert lines[-1].get_marker() == "x" and lines[-1].get_xdata()[0] == one().time[19]
    assert "failed" in figure.get_suptitle()


def test_runs_of_one_sample_or_of_none_are_drawn_too():
    (line,) = one(time=[0.0]).plot("pitch").axes[0].get_lines()
    assert line.get_marker() == "o"
    empty = made({"a": np.full(5, np.nan)}, kind="coordinate", statuses=("failed: at once",))
    (axes,) = empty.plot("a").axes
    assert [text.get_text() for text in axes.texts] == ["no samples"]
    huge = made({"a": [0.0, 1.0, 1e300, np.inf]}).plot("a")
    huge.canvas.draw()
    assert huge.axes[0].get_ylim()[1] < 2


def test_events_are_marked_in_all_panels_and_named_in_the_legend():
    events = (Event("touch", time=0.4), Event("fallen", time=1.5), Event("touch", time=0.9))
    figure = one(events=events).plot("pitch", "left.torque")
    for axes in figure.axes:
        marks = [line.get_xdata()[0] for line in axes.get_lines()[1:]]
        assert sorted(marks) == [0.4, 0.9, 1.5]
    assert legend(figure.axes[0]) == ["touch (2 times)", "fallen (1.5 s)"]


# the path ----------------------------------------------------------------------------------------


def vehicle(turn=0.3, **changes):
    """A body that drives a curve between two wheels, and the same in space, by quaternion."""
    t = np.linspace(0, 5, 101)
    yaw = turn * t
    x, y = np.sin(yaw) / turn, (1 - np.cos(yaw)) / turn
    columns = {
        "X": (x, "coordinate"),
        "Y": (y, "coordinate"),
        "heading": (yaw, "coordinate"),
        "b.qw": (np.cos(yaw / 2), "coordinate"),
        "b.qx": (0 * t, "coordinate"),
        "b.qy": (0 * t, "coordinate"),
        "b.qz": (np.sin(yaw / 2), "coordinate"),
        "left.contact.x": (x - 0.2 * np.sin(yaw), "measure"),
        "left.contact.y": (y + 0.2 * np.cos(yaw), "measure"),
        "right.contact.x": (x + 0.2 * np.sin(yaw), "measure"),
        "right.contact.y": (y - 0.2 * np.cos(yaw), "measure"),
        "surge": (np.sin(t), "independent"),
    }
    return Trajectory(
        time=t,
        values=np.stack([values for values, _ in columns.values()], axis=-1),
        names=tuple(columns),
        units=tuple("" if ".q" in n else "m" for n in columns),
        kinds={name: kind for name, (_, kind) in columns.items()},
        **{"info": {"bases": [["cart", "X", "Y", "heading"]]}, **changes},
    )


def arrows(axes):
    (found,) = [c for c in axes.collections if type(c).__name__ == "Quiver"]
    return found


@pytest.mark.parametrize("turned", [["heading"], ["b.qw", "b.qx", "b.qy", "b.qz"]])
def test_the_path_is_seen_from_above_with_headings_along_it(turned):
    run = vehicle(info={"bases": [["cart", "X", "Y", *turned]]})
    (axes,) = run.plot("path").axes
    assert axes.get_aspect() == 1 and (axes.get_xlabel(), axes.get_ylabel()) == ("x [m]", "y [m]")
    assert legend(axes) == ["cart", "left", "right", "start", "end"]
    shown = arrows(axes)
    heading = np.arctan2(shown.V, shown.U)
    np.testing.assert_allclose(shown.X, np.sin(heading) / 0.3, atol=1e-9)  # on the way, along it
    (low, high), (left, right) = axes.get_ylim(), axes.get_xlim()
    for name in run.names:
        if name.endswith(("x", "X")):
            assert left < run[name].min() and run[name].max() < right
        elif name.endswith(("y", "Y")) and ".q" not in name:
            assert low < run[name].min() and run[name].max() < high


def test_a_body_that_turns_over_has_no_heading():
    t = np.linspace(0, 3, 50)
    zero = 0 * t
    run = made(
        {"w.qw": np.cos(t), "w.qx": zero, "w.qy": np.sin(t), "w.qz": zero, "w.x": t, "w.y": zero},
        unit="",
        kind="coordinate",
    )
    (axes,) = run.plot("path").axes
    assert not [c for c in axes.collections if type(c).__name__ == "Quiver"]


def test_points_of_ones_own_make_a_path_and_without_any_the_remedy_is_told():
    (axes,) = vehicle().plot("path", x="left.contact.x", y="left.contact.y").axes
    assert legend(axes)[0] == "left.contact"
    with pytest.raises(
        InvalidArgument, match=r"no body that moves(.|\n)*x='...', y='...'.*residual"
    ):
        one().plot("path")
    with pytest.raises(InvalidArgument, match="2 and 1 columns"):
        vehicle().plot("path", x=["X", "X"], y="Y")
    with pytest.raises(InvalidArgument, match="for plot\\('path'\\)"):
        one().plot("pitch", x="pitch")


def test_the_overview_of_a_vehicle_begins_with_its_path():
    figure = vehicle().plot()
    assert figure.axes[0].get_aspect() == 1 and labels(figure)[1:] == ["surge [m]"]


def test_a_simulation_tells_which_coordinates_are_places_in_the_world():
    sleigh = ax.gallery.build("chaplygin_sleigh")
    run = ax.simulate(sleigh.derive().compile(), 0.1, method="rk4", step=0.05)
    ((body, *places),) = run.info["bases"]
    (joint,) = sleigh.connections
    assert body == joint.child and tuple(places) == joint.coordinates
    assert legend(run.plot("path").axes[0])[0] == body


def test_coordinates_that_count_from_elsewhere_are_no_places_in_the_world():
    from axode.mechanism.topology import free_bases

    def bases(joint, **placement):
        bot = ax.Mechanism("m")
        body = bot.add_body("b", mass=1.0, inertia=(1, 1, 1))
        bot.add_joint("j", joint, parent=bot.ground, child=body, **placement)
        return free_bases(bot)

    assert bases(ax.Planar(), at=(0, 0, 1)) == (("b", "j.x", "j.y", "j.yaw"),)
    assert bases(ax.Floating()) == (("b", "j.x", "j.y", "j.qw", "j.qx", "j.qy", "j.qz"),)
    assert bases(ax.Planar(), at=(1, 0, 0)) == bases(ax.Planar("x")) == ()
    assert bases(ax.Floating(), rotation=(0, 0, 1)) == bases(ax.Revolute()) == ()


# figures and files -------------------------------------------------------------------------------


@pytest.mark.slow
def test_files_are_whole_and_the_same_every_time(tmp_path):
    for suffix in (".png", ".svg", ".pdf"):
        one().plot("pitch", size="column", save=tmp_path / f"a{suffix}")
    one().plot("pitch", size="column", save=str(tmp_path / "b.svg"))
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    with Image.open(tmp_path / "a.png") as picture:
        picture.load()
        assert picture.width == 3.5 * 300
    assert ET.parse(tmp_path / "a.svg").getroot().tag.endswith("svg")
    pdf = (tmp_path / "a.pdf").read_bytes()
    assert pdf.startswith(b"%PDF") and pdf.rstrip().endswith(b"%%EOF")


def test_files_that_cannot_be_written_are_told_before_or_after_drawing(tmp_path):
    with pytest.raises(FileError, match=r"ends in \.png, \.svg, \.pdf"):
        one().plot("pitch", save=tmp_path / "a.bmp")
    with pytest.raises(FileError, match="cannot write"):
        one().plot("pitch", save=tmp_path / "none" / "a.png")
    with pytest.raises(InvalidArgument, match="path of a file, got 3"):
        one().plot("pitch", save=3)
    assert list(tmp_path.iterdir()) == []


def test_a_plot_may_be_drawn_on_a_part_of_a_figure():
    from matplotlib.figure import Figure

    whole = Figure(figsize=(8, 4))
    left, right = whole.subfigures(1, 2)
    assert one().plot("pitch", figure=left) is left
    one().plot("left.torque", "energy", figure=right)
    assert (len(left.axes), len(right.axes), len(whole.axes)) == (1, 3, 4)
    assert tuple(whole.get_size_inches()) == (8, 4)


def test_plots_and_settings_of_matplotlib_leave_each_other_alone():
    before = dict(mpl.rcParams)
    plain = one().plot("pitch", "left.torque")._repr_png_()
    figure = one().plot("pitch", "left.torque")
    assert plain.startswith(b"\x89PNG") and dict(mpl.rcParams) == before
    dark = {
        "axes.facecolor": "black",
        "xtick.labelsize": 20,
        "lines.linewidth": 9,
        "ytick.color": "red",
        "text.color": "white",
        "grid.linestyle": ":",
        "font.family": "serif",
    }
    with mpl.rc_context(dark):
        assert figure._repr_png_() == plain  # drawn before
        axes = one().plot("pitch", "left.torque").axes[0]
    assert axes.get_facecolor() == (0, 0, 0, 1) and axes.lines[0].get_linewidth() == 9
    assert axes.yaxis.label.get_fontfamily() == ["serif"]
    assert axes.get_yticklabels()[0].get_color() == "red"


def test_text_in_svg_stays_text(tmp_path):
    one().plot("pitch", labels={"pitch": r"lean $\theta$"}, save=tmp_path / "a.svg")
    texts = [t for t in ET.parse(tmp_path / "a.svg").getroot().iter() if t.tag.endswith("}text")]
    written = ["".join(t.itertext()) for t in texts]
    assert "time [s]" in written and any("lean" in "".join(text.split()) for text in written)


@pytest.mark.parametrize(
    "fontset, label", [("cm", r"$\theta_3$"), ("dejavusans", r"$\mathcal{L}$")]
)
def test_text_in_svg_shows_the_symbols_that_were_written(tmp_path, fontset, label):
    """As text these show as micro signs and empty boxes, in browsers without the fonts."""
    place = tmp_path / "a.svg"
    with mpl.rc_context({"mathtext.fontset": fontset}):
        one().plot("pitch", labels={"pitch": label}, save=place)
    root = ET.parse(place).getroot()
    written = "".join(t for e in root.iter() if e.tag.endswith("}text") for t in e.itertext())
    assert not {"\N{MICRO SIGN}", "\ue238"} & {*written}
    assert any(re.match("(Cmmi10|STIXNonUnicode)", e.get("id", "")) for e in root.iter())


def test_a_signal_of_both_signs_has_a_line_at_zero():
    both, positive = one().plot("pitch", "left.torque").axes[:2]
    for axes in (both, positive):
        low, high = axes.get_ylim()
        level = [line for line in axes.collections if (line.get_segments()[0][:, 1] == 0).all()]
        values = axes.lines[0].get_ydata()
        assert bool(level) == bool(values.min() < 0 < values.max()), (low, high)
    if "matplotlib.pyplot" in sys.modules:
        assert not sys.modules["matplotlib.pyplot"].get_fignums()


def test_without_matplotlib_a_plot_tells_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(NotApplicable, match=r"pip install .*\[plot\]"):
        one().plot("pitch")
