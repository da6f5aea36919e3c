"""Style of all pictures: colours, lines, fonts and sizes.

What the user has set in matplotlib goes before it, and stays unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import BytesIO
from os import PathLike
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any

from axode.disk.atomic import write_atomically
from axode.errors import FileError, InvalidArgument, UnknownName, require_package, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Blue, orange, green, purple, sky, brown, amber, ink: any two at least 20 apart in CIE Lab, to
# the common eye and to eyes that lack one of the three cones; all dark enough on white.
COLOURS = ("#1a47ba", "#d05f16", "#138f61", "#aa4b96", "#86aeff", "#664d1f", "#e5a108", "#2c3838")
BLUE, ORANGE = COLOURS[:2]
DASHES = ("-", (0, (5, 1.6)), (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5)))  # when the colours run out
INK, GREY, FAINT, GRID = "#22282e", "#69737d", "#b9c0c7", "#e6e9ec"
SUFFIXES = (".png", ".svg", ".pdf")
FONTS = ["sans-serif"]  # first DejaVu Sans, which comes with matplotlib: the same everywhere
# settings of the user that say nothing about the look of a picture, or would change its size
NOT_LOOKS = (
    "backend", "interactive", "toolbar", "tk.", "webagg", "keymap.", "animation.", "date.",
    "figure.figsize", "figure.subplot", "figure.autolayout", "figure.constrained_layout.use",
    "timezone", "savefig.bbox", "savefig.directory", "savefig.format", "svg.hashsalt",
)  # fmt: skip
FOLLOWERS = {  # colours that are those of another setting, unless set too
    "text.color": ("axes.titlecolor", "legend.labelcolor"),
    "xtick.color": ("xtick.labelcolor",),
    "ytick.color": ("ytick.labelcolor",),
}
# fonts of mathematics whose codes are no Unicode: without them, text shows other symbols
OWN_CODES = re.compile(rb"font(?:-family)?: [^;\"]*'(?:cm[a-z]+10|STIXNonUnicode)")
TEX = str.maketrans({c: f"\\{c}" for c in "_%&#"} | {"^": r"\^{}"})  # texts that TeX sets


@dataclass(frozen=True)
class Size:
    """Sizes of a picture: its width, a panel's height [in], text, lines [pt], dots per inch."""

    width: float
    panel: float
    text: float
    line: float
    dpi: int
    title: bool = False  # print has captions


SIZES = {
    "screen": Size(width=8.6, panel=2.1, text=10.0, line=1.6, dpi=120, title=True),
    "column": Size(width=3.5, panel=1.35, text=7.5, line=1.1, dpi=300),  # one of two, in print
    "page": Size(width=7.16, panel=1.6, text=8.0, line=1.2, dpi=300),  # the width of both
}


def sized(size: str) -> Size:
    """A size by its name.

    Raises:
        UnknownName: listing the sizes.
    """
    if size not in SIZES:
        raise UnknownName("a figure", "size", str(size), SIZES)
    return SIZES[size]


def need_matplotlib() -> None:
    """Raise `NotApplicable`, with the remedy, where matplotlib is not installed."""
    require_package("matplotlib", "plots need matplotlib", "plot")


def rc_parameters(s: Size) -> dict[Any, Any]:
    """Settings of matplotlib that make the style."""
    from cycler import cycler

    return {
        "font.family": FONTS, "font.size": s.text, "mathtext.fontset": "dejavusans",
        "text.color": INK, "text.usetex": False,
        "axes.prop_cycle": cycler(color=COLOURS), "axes.facecolor": "white",
        "axes.edgecolor": GREY, "axes.linewidth": 0.45 * s.line, "axes.axisbelow": True,
        "axes.spines.top": False, "axes.spines.right": False, "axes.labelcolor": INK,
        "axes.labelsize": s.text, "axes.labelpad": 0.4 * s.text, "axes.labelweight": "normal",
        "axes.titlesize": s.text, "axes.titleweight": "bold", "axes.titlecolor": INK,
        "axes.titlelocation": "left", "axes.titlepad": 0.6 * s.text, "axes.xmargin": 0.01,
        "axes.ymargin": 0.06, "axes.formatter.use_mathtext": False,
        "axes.formatter.limits": (-4, 5), "axes.formatter.useoffset": False,
        "axes.unicode_minus": True,
        "axes.grid": True, "axes.grid.axis": "both", "axes.grid.which": "major",
        "grid.color": GRID, "grid.linewidth": 0.5 * s.line, "grid.linestyle": "-",
        "grid.alpha": 1.0,
        "xtick.color": GREY, "ytick.color": GREY, "xtick.labelcolor": INK, "ytick.labelcolor": INK,
        "xtick.labelsize": 0.9 * s.text, "ytick.labelsize": 0.9 * s.text,
        "xtick.direction": "out", "ytick.direction": "out",
        "xtick.major.size": 0.3 * s.text, "ytick.major.size": 0.3 * s.text,
        "xtick.major.width": 0.45 * s.line, "ytick.major.width": 0.45 * s.line,
        "xtick.minor.visible": False, "ytick.minor.visible": False,
        "lines.linewidth": s.line, "lines.markersize": 0.5 * s.text, "lines.dash_capstyle": "butt",
        "lines.solid_joinstyle": "round", "lines.solid_capstyle": "round",
        "legend.frameon": False, "legend.fontsize": 0.9 * s.text, "legend.handlelength": 1.6,
        "legend.borderaxespad": 0.0, "legend.labelspacing": 0.35, "legend.columnspacing": 1.4,
        "legend.labelcolor": INK, "legend.title_fontsize": 0.9 * s.text,
        "figure.facecolor": "white", "figure.dpi": 100, "figure.titlesize": 1.1 * s.text,
        "figure.titleweight": "bold", "figure.constrained_layout.h_pad": 0.05,
        "figure.constrained_layout.w_pad": 0.05, "savefig.dpi": s.dpi,
        "savefig.facecolor": "white", "savefig.transparent": False,
        "pdf.fonttype": 42, "svg.fonttype": "none", "svg.hashsalt": "axode",
    }  # fmt: skip


@contextmanager
def figure_style(size: str = "screen") -> Iterator[Size]:
    """The style inside a `with`; matplotlib's own settings are as before when it ends.

    Settings that the user has changed, in `rcParams`, a style sheet or a matplotlibrc, take the
    place of its own: of sizes, `font.size` scales all text and `lines.linewidth` all lines.

    Args:
        size: "screen", "column" (3.5 in, one of two in print) or "page" (7.16 in, both).

    Raises:
        UnknownName: if there is no such size.
        NotApplicable: if matplotlib is not installed.
    """
    measures = sized(size)
    need_matplotlib()
    import matplotlib as mpl

    defaults: dict[Any, Any] = mpl.rcParamsDefault
    looks = [key for key in mpl.rcParams if not key.startswith(NOT_LOOKS)]  # "backend" is slow
    own: dict[Any, Any] = {
        key: mpl.rcParams[key] for key in looks if mpl.rcParams[key] != defaults.get(key)
    }
    measures = replace(
        measures,
        text=own.get("font.size", measures.text),
        line=own.get("lines.linewidth", measures.line),
        dpi=own["savefig.dpi"] if isinstance(own.get("savefig.dpi"), int) else measures.dpi,
    )
    for key, followers in FOLLOWERS.items():
        for follower in followers if key in own else ():
            own.setdefault(follower, own[key])
    if "serif" in own.get("font.family", ()):
        own.setdefault("mathtext.fontset", "dejavuserif")
    with mpl.rc_context():
        mpl.rcParams.update({"savefig.bbox": None} | rc_parameters(measures) | own)
        yield measures


def palette() -> Sequence[str]:
    """Colours of lines in turn: of the user's cycle, if there is one."""
    import matplotlib as mpl

    found: Sequence[str] = mpl.rcParams["axes.prop_cycle"].by_key().get("color", COLOURS)
    return found


@dataclass
class Drawn:
    """A figure in the making: its measures, and the figure once there is one."""

    measures: Size
    figure: Any = None


@contextmanager
def drawing(size: str, save: str | PathLike[str] | None) -> Iterator[Drawn]:
    """Draw a figure in the style inside a `with`, and write it to a file if one is named.

    Raises:
        UnknownName: if there is no such size.
        FileError: if the file of a picture does not end so, or cannot be written.
    """
    measures = sized(size)
    suffix = "" if save is None else picture_suffix(save)
    with figure_style(size):
        drawn = Drawn(measures)
        yield drawn
        whole = drawn.figure.canvas.figure  # also if only a part of it was drawn on
        engine = whole.get_layout_engine()
        if save is None and engine is not None:
            engine.execute(whole)  # makes the ticks, which take the style
        elif save is None:
            whole.draw_without_rendering()
        else:
            write_atomically(Path(save), picture_bytes(whole, suffix, measures))


def picture_suffix(path: str | PathLike[str]) -> str:
    """Ending of the file of a picture, checked."""
    if not isinstance(path, str | PathLike):
        raise InvalidArgument(f"plot, save: expected the path of a file, got {shortened(path)}")
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise FileError(f"'{path}': the file of a plot ends in {', '.join(SUFFIXES)}")
    return suffix


def picture_bytes(figure: Figure, suffix: str, size: Size) -> bytes:
    """A figure as the content of a file, without the time of day.

    Text of an SVG file is drawn as outlines where text would show other symbols.
    """
    import matplotlib as mpl

    dates = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}

    def written() -> bytes:
        buffer = BytesIO()
        figure.savefig(buffer, format=suffix[1:], dpi=size.dpi, metadata=dates.get(suffix, {}))
        return buffer.getvalue()

    made = written()
    if suffix == ".svg" and OWN_CODES.search(made):
        with mpl.rc_context({"svg.fonttype": "path"}):
            made = written()
    return made


def add_title(figure: Any, notes: Sequence[str], size: Size) -> None:
    """Write notes above a figure, side by side, as far as there is room."""
    if not notes:
        return
    text = shorten(" \N{MIDDLE DOT} ".join(notes), int(14 * size.width), placeholder=" ...")
    style: dict[str, Any] = {"color": GREY, "fontweight": "normal", "fontsize": size.text}
    figure.suptitle(readable(text), x=0.01, ha="left", **style)


class MathLabel(str):
    """Label with mathematics between dollar signs, as the user wrote it."""

    __slots__ = ()


def readable(label: str) -> str:
    """Return a label that matplotlib shows as written: no mathematics, no leading underscore."""
    if isinstance(label, MathLabel):
        return label
    import matplotlib as mpl

    if mpl.rcParams["text.usetex"]:
        label = label.translate(TEX)
    return (" " if label.startswith("_") else "") + label.replace("$", r"\$")


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of that size [in], which needs no display and shows itself in a notebook."""
    from functools import partial

    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    # Notebooks know figures of pyplot only; this one they ask for its own picture.
    figure._repr_png_ = partial(png, figure)  # type: ignore[attr-defined]
    return figure


def pin_ticks(axes: Axes) -> None:
    """Let ticks that are made later look as those made now; their numbers are plain text.

    Matplotlib would parse each number as mathematics, which takes most of the time of a plot.
    """
    import matplotlib as mpl
    from matplotlib.ticker import ScalarFormatter

    class TickNumbers(ScalarFormatter):
        def get_offset(self) -> str:
            self.set_useMathText(True)
            text = super().get_offset()
            self.set_useMathText(False)
            return text

    for shown in (axes.xaxis, axes.yaxis):
        if type(shown.get_major_formatter()) is ScalarFormatter:
            shown.set_major_formatter(TickNumbers())
    rc: dict[Any, Any] = mpl.rcParams
    for axis in ("x", "y"):
        axes.tick_params(
            axis=axis,
            which="major",
            direction=rc[f"{axis}tick.direction"],
            length=rc[f"{axis}tick.major.size"],
            width=rc[f"{axis}tick.major.width"],
            pad=rc[f"{axis}tick.major.pad"],
            color=rc[f"{axis}tick.color"],
            labelsize=rc[f"{axis}tick.labelsize"],
            labelcolor=rc[f"{axis}tick.labelcolor"],
            labelfontfamily=rc["font.family"],
            grid_color=rc["grid.color"],
            grid_linewidth=rc["grid.linewidth"],
            grid_linestyle=rc["grid.linestyle"],
            grid_alpha=rc["grid.alpha"],
        )


def png(figure: Figure, dpi: int = 110) -> bytes:
    """The picture as the bytes of a PNG."""
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi, facecolor="white")
    return buffer.getvalue()
