"""The look of pictures: colours for every eye, and nothing of the user's changed."""

import itertools
import sys

import matplotlib as mpl
import numpy as np
import pytest

from axode.errors import NotApplicable, UnknownName
from axode.show.style import COLOURS, SIZES, figure_style, new_figure, pin_ticks

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
    def drawn(pinned=True):
        with figure_style():
            figure = new_figure(3, 2)
            axes = figure.subplots()
            axes.plot([0, 1], [1, 3])
            if pinned:
                pin_ticks(axes)
            figure.draw_without_rendering()
        return figure._repr_png_()

    plain = drawn()
    with mpl.rc_context({"xtick.labelsize": 20, "ytick.color": "red", "grid.linestyle": ":"}):
        assert drawn() == plain != drawn(pinned=False)


def test_sizes_for_print_are_those_of_columns_and_pages():
    assert (SIZES["column"].width, SIZES["page"].width) == (3.5, 7.16)
    with pytest.raises(UnknownName, match="screen, column, page"), figure_style("poster"):
        pass


def test_without_matplotlib_the_remedy_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(NotApplicable, match=r"pip install 'axode\[plot\]'"), figure_style():
        pass
