"""The page itself, section by section."""

from __future__ import annotations

import base64
import html
import io
import json
import re
import sys
from collections.abc import Iterator
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np

from axode.errors import AxodeError
from axode.printing.html import table as html_table
from axode.printing.mathml import to_mathml
from axode.show.motion import RunPoses, scene_with
from axode.show.render.picture import picture
from axode.show.report.font import math_font
from axode.show.report.player_data import playback
from axode.show.style import figure_style

if TYPE_CHECKING:
    from axode.model.model import Model
    from axode.results.trajectory import Trajectory
    from axode.symbolic.equations import Equations

PLAYER_SCRIPTS = ("scene.js", "curves.js")  # before that of the player
FORMULAS = re.compile(r"<math.*?</math>", re.DOTALL)
LONG = 20_000  # characters of TeX that a reader would still follow
ROWS = 2000  # of the table that can be taken from the page

PLAYER = """<section id="player">
<canvas id="scene" aria-label="The mechanism in three dimensions"></canvas>
<img id="still" alt="The mechanism" src="data:image/png;base64,{still}">
<div id="controls"><button id="play" type="button">Play</button>
<input id="scrub" type="range" min="0" value="0" aria-label="Time">
<span id="clock"></span>
<label>Speed <select id="speed"><option value="0.1">0.1</option><option value="0.25">0.25</option>
<option value="0.5">0.5</option><option value="1" selected>1</option><option value="2">2</option>
<option value="5">5</option><option value="10">10</option></select></label>
<label><input id="loop" type="checkbox"> loop</label>
<label><input id="follow" type="checkbox" checked> follow</label>
<label><input id="trails" type="checkbox" checked> tracks</label></div>
<div id="signals"><label>Signal <select id="signal"></select></label><span id="value"></span>
<canvas id="chart"></canvas></div>
<noscript><img alt="The mechanism" src="data:image/png;base64,{still}"></noscript>
</section>
<script type="application/json" id="playback">{data}</script>
<script>{script}</script>"""

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,"><style>{style}</style></head>
<body><h1>{title}</h1><p class="lead">{lead}</p>
{sections}
<footer>Made by Axode {version}. This page is one file; nothing is fetched when it opens.</footer>
</body></html>
"""


def page(equations: Equations | None, model: Model, run: Trajectory | None, title: str) -> str:
    """The whole page as text."""
    sections = [_player(model, run)]
    if run is not None:
        sections += [_section("What happened", _audit(run)), _section("Plots", _plots(run))]
    sections += list(_description(equations, model))
    if run is not None:
        sections.append(_section("Numbers", _numbers(run)))
    body = "\n".join(sections)
    style = _file("report.css") + math_font("".join(FORMULAS.findall(body)))
    return PAGE.format(
        title=html.escape(title),
        lead=html.escape(_lead(equations, model, run)),
        style=style,
        sections=body,
        version=sys.modules["axode"].__version__,
    )


def _lead(equations: Equations | None, model: Model, run: Trajectory | None) -> str:
    words = f"{len(model.bodies)} bodies, mobility {len(model.independent)}"
    if equations is not None:
        kind = "holonomic" if equations.mobility.holonomic else "nonholonomic"
        words += f", {kind}, {model.actuation}"
    if run is not None:
        words += f"; a run of {abs(float(run.ended) - float(run.time[0])):.4g} s"
    return words + "."


def _section(heading: str, content: str) -> str:
    return f"<section><h2>{html.escape(heading)}</h2>\n{content}\n</section>"


def _file(name: str) -> str:
    return resources.files("axode.show.report").joinpath(name).read_text(encoding="utf-8")


# the mechanism in motion -------------------------------------------------------------------------


def _player(model: Model, run: Trajectory | None) -> str:
    scene, poses = model.scene, model.poses(model.home)
    if run is not None:
        scene = scene_with(model, run.parameters)
        poses = RunPoses(run, model).poses(float(run.time[0]))
    # no tag and no comment, which would change how a browser reads the script, begins without <
    data = json.dumps(playback(model, run), separators=(",", ":")).replace("<", "\\u003c")
    return PLAYER.format(still=_png(picture(scene, poses)), data=data, script=_scripts())


def _scripts() -> str:
    shared = resources.files("axode.show.web")
    texts = [shared.joinpath(name).read_text(encoding="utf-8") for name in PLAYER_SCRIPTS]
    return "\n".join([*texts, _file("player.js")])


def _png(pixels: Any) -> str:
    from matplotlib.image import imsave

    stream = io.BytesIO()
    imsave(stream, pixels, format="png")
    return base64.b64encode(stream.getvalue()).decode("ascii")


# the run -----------------------------------------------------------------------------------------


def _audit(run: Trajectory) -> str:
    """How the run ended and how well it kept energy and constraints."""
    rows = [("Ended", run.status or "finished")]
    with_energy = bool(run.columns("energy"))
    if with_energy:
        rows.append(("Energy error, of the largest energy", f"{float(run.energy_error):.3g}"))
    for name in run.columns("residual"):
        column = run[name]
        if np.isfinite(column).any():
            worst = float(np.nanmax(np.abs(column)))
            rows.append((f"Largest {name}", f"{worst:.3g} {run.unit(name)}".rstrip()))
    rows += [
        (key.replace("_", " ").capitalize(), _words(value))
        for key, value in run.info.items()
        if not isinstance(value, dict | list)
    ]
    rows += [(f"Event: {event.name}", f"at {event.time:.6g} s") for event in run.events]
    return html_table(("", ""), rows, numbers=False)


def _words(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _plots(run: Trajectory) -> str:
    """The overview, and what else can be drawn of this run."""
    pieces = []
    for what in ((), ("energy",)):
        try:
            figure = run.plot(*what)
        except AxodeError as error:
            if not what:
                pieces.append(f'<p class="fault">{html.escape(str(error))}</p>')
            continue  # a robot that stays where it is has no path
        stream = io.StringIO()
        with figure_style():
            figure.savefig(stream, format="svg", metadata={"Date": None})
        text = stream.getvalue()
        pieces.append(f"<figure>{_unique(text[text.index('<svg') :], len(pieces))}</figure>")
    return "\n".join(pieces)


def _unique(svg: str, number: int) -> str:
    """Make the names inside a picture unique, because several pictures share the page."""
    for before in ('id="', "url(#", 'href="#'):
        svg = svg.replace(before, f"{before}p{number}-")
    return svg


def _numbers(run: Trajectory) -> str:
    """Write values at start and end, and a table to download."""
    final = run.final
    rows = [
        (name, run.unit(name), f"{run[name][0]:.6g}", f"{final[name]:.6g}") for name in run.names
    ]
    table = html_table(("Signal", "Unit", "Start", "End"), rows)
    every = max(1, -(-len(run) // ROWS))
    samples = np.column_stack([run.time[::every], run.values[::every]])
    stream = io.StringIO()
    stream.write(",".join(["time", *run.names]) + "\n")
    np.savetxt(stream, samples, delimiter=",", fmt="%.9g")
    text = base64.b64encode(stream.getvalue().encode()).decode("ascii")
    name = html.escape(run.name or "run")
    note = f"every {every}th sample" if every > 1 else "all samples"
    link = f'<p><a download="{name}.csv" href="data:text/csv;base64,{text}">'
    link += f"Take the numbers as CSV</a> ({note}, {len(samples)} rows).</p>"
    return f"{link}\n<details><summary>Start and end of every signal</summary>{table}</details>"


# the mechanism -----------------------------------------------------------------------------------


def _description(equations: Equations | None, model: Model) -> Iterator[str]:
    if equations is None:
        yield _section(
            "Mobility and equations",
            "<p>The model was loaded from a file, which holds "
            "its functions and not its equations.</p>",
        )
    else:
        yield _section("Mobility", f"<pre>{html.escape(str(equations.mobility))}</pre>")
        yield _section("Equations", _equations(equations))
    yield _section("Names", _names(model))
    if model.parameters:
        state = "fixed when it was compiled" if model.facts.fixed else "free"
        rows = [(name, f"{value:.9g}") for name, value in model.parameters.items()]
        yield _section(
            "Parameters", f"<p>In SI units, {state}.</p>" + html_table(("Name", "Value"), rows)
        )


def _equations(equations: Equations) -> str:
    """Write formulas, or TeX where there is no converter; a long model in short."""
    tex, more = equations.latex(), ""
    if len(tex) > LONG:
        more = (
            f"<p>Written out they fill {len(tex):,} characters of TeX, which nobody would read "
            "here; <code>equations.latex()</code> gives them.</p>"
        )
        tex = r"I\,\dot{\nu} + C\,\nu = \tau + \gamma + \delta"
    try:
        return f'<div class="formula">{to_mathml(tex)}</div>{more}'
    except (AxodeError, ValueError) as error:
        return f"<p>{html.escape(str(error))}</p><pre>{html.escape(tex)}</pre>{more}"


def _names(model: Model) -> str:
    facts = model.facts
    groups = (
        ("Coordinate", facts.coordinates, facts.coordinate_units),
        (
            "Independent speed",
            facts.independent,
            [
                facts.speed_units[facts.speeds.index(n)] if n in facts.speeds else ""
                for n in facts.independent
            ],
        ),
        ("Input", facts.inputs, facts.input_units),
        ("Measure", [m[0] for m in facts.measures], [m[1] for m in facts.measures]),
    )
    rows = [
        (kind, name, unit)
        for kind, names, units in groups
        for name, unit in zip(names, units, strict=True)
    ]
    return (
        "<details><summary>Coordinates, speeds, inputs, measures</summary>"
        + html_table(("", "Name", "Unit"), rows, numbers=False)
        + "</details>"
    )
