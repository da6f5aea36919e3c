"""The look of pictures: colours for every eye, and nothing of the user's changed."""

import itertools
import os
import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest

from axode.errors import NotApplicable, UnknownName
from axode.show.style import COLOURS, SIZES, figure_style, new_figure, palette, pin_ticks, readable

# How eyes without the long, middle or short cones see linear sRGB: G. M. Machado, M. M. Oliveira,
# L. A. F. Fernandes, IEEE Trans. Visualization and Computer Graphics 15 (2009), severity 1.0.
EYES = {
    "common": np.eye(3),
    "no long cones": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "no middle cones": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "no short cones": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = XYZ @ np.ones(3)
APART = 20.0  # in CIE Lab, where 2.3 is what an eye just sees
CONTRAST = 2.0  # to white, of a line; text has its own dark colour


def linear(colour):
    part = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)


def lab(light):
    x = XYZ @ np.clip(light, 0, 1) / WHITE
    f = np.where(x > 0.008856, np.cbrt(x), 7.787 * x + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("eye", EYES)
def test_any_two_colours_differ_to_every_eye(eye):
    seen = {colour: lab(EYES[eye] @ linear(colour)) for colour in COLOURS}
    nearest = min(
        itertools.combinations(COLOURS, 2),
        key=lambda pair: np.linalg.norm(seen[pair[0]] - seen[pair[1]]),
    )
    assert np.linalg.norm(seen[nearest[0]] - seen[nearest[1]]) > APART, nearest


def test_the_measure_of_colours_tells_alike_from_different():
    black, white = lab(np.zeros(3)), lab(np.ones(3))
    assert np.linalg.norm(white - black) == pytest.approx(100, abs=0.1)
    red_and_green = [lab(EYES["no middle cones"] @ linear(c)) for c in ("#b04a3a", "#6f7a2c")]
    assert np.linalg.norm(red_and_green[0] - red_and_green[1]) < APART


@pytest.mark.parametrize("colour", COLOURS)
def test_every_colour_stands_out_on_white(colour):
    assert 1.05 / (XYZ[1] @ linear(colour) + 0.05) > CONTRAST


def test_settings_of_matplotlib_are_as_before_even_after_an_error():
    before = dict(mpl.rcParams)
    with pytest.raises(ZeroDivisionError), figure_style("column"):
        assert mpl.rcParams["font.size"] == SIZES["column"].text != before["font.size"]
        raise ZeroDivisionError
    assert dict(mpl.rcParams) == before


def test_ticks_that_are_made_when_the_picture_is_asked_for_look_as_the_others():
    def drawn(settings, pinned=True):
        with figure_style():
            figure = new_figure(3, 2)
            axes = figure.subplots()
            axes.plot([0, 1], [1, 3])
            if pinned:
                pin_ticks(axes)
            figure.draw_without_rendering()
        with mpl.rc_context(settings):
            return figure._repr_png_()

    other = {"xtick.labelsize": 20, "ytick.color": "red", "grid.linestyle": ":"}
    assert drawn(other) == drawn({}) != drawn(other, pinned=False)


def test_what_the_user_has_set_goes_before_the_style():
    from cycler import cycler

    user = {
        "font.family": ["serif"],
        "font.size": 13.0,
        "axes.prop_cycle": cycler(color=["k", "r"]),
    }
    with mpl.rc_context(user), figure_style("column") as size:
        assert size.text == mpl.rcParams["axes.labelsize"] == 13.0
        assert mpl.rcParams["font.family"] == ["serif"] and list(palette()) == ["k", "r"]
        assert mpl.rcParams["mathtext.fontset"] == "dejavuserif"
        assert mpl.rcParams["lines.linewidth"] == SIZES["column"].line  # not set by the user
    with mpl.rc_context({"text.usetex": True}), figure_style():
        assert readable("left_dot [rad/s^2]") == r"left\_dot [rad/s\^{}2]"
    with (
        mpl.rc_context({"figure.figsize": (1, 1), "savefig.bbox": "tight"}),
        figure_style() as size,
    ):
        assert size == SIZES["screen"] and mpl.rcParams["savefig.bbox"] is None


def test_numbers_at_ticks_are_text_and_powers_of_ten_are_not():
    with figure_style():
        figure = new_figure(3, 2)
        axes = figure.subplots()
        axes.plot([0, 1], [-1e-7, 3e-7])
        pin_ticks(axes)
        figure.draw_without_rendering()
        assert not any("$" in text.get_text() for text in axes.get_yticklabels())
        assert axes.get_yticklabels()[0].get_text().startswith("\N{MINUS SIGN}")
        assert "10^{" in axes.yaxis.get_offset_text().get_text()


def test_the_style_does_not_ask_for_a_backend():
    code = "from axode.show.style import *\nwith figure_style(): new_figure(3, 2).subplots()\n"
    code += "import sys; assert 'matplotlib.pyplot' not in sys.modules"
    environment = {k: v for k, v in os.environ.items() if k != "MPLBACKEND"}
    subprocess.run([sys.executable, "-P", "-c", code], check=True, env=environment)


def test_sizes_for_print_are_those_of_columns_and_pages():
    assert (SIZES["column"].width, SIZES["page"].width) == (3.5, 7.16)
    with pytest.raises(UnknownName, match="screen, column, page"), figure_style("poster"):
        pass


def test_without_matplotlib_the_remedy_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(NotApplicable, match=r"pip install .*\[plot\]"), figure_style():
        pass
