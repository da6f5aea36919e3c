"""The page itself, section by section."""

from __future__ import annotations

import base64
import html
import io
import re
import sys
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from axode.errors import AxodeError, InvalidArgument, NotApplicable
from axode.model.model_parts import facts_of
from axode.numerics.tolerances import ROUNDING
from axode.printing.mathml import math_font, to_mathml
from axode.printing.mathml import table as html_table
from axode.show.plot.choice import ENERGIES
from axode.show.report.cell_player import page_style, player_section
from axode.show.style import figure_style

if TYPE_CHECKING:
    from axode.model.model import Model
    from axode.results.trajectory import Trajectory
    from axode.symbolic.equations import Equations

FORMULAS = re.compile(r"<math.*?</math>", re.DOTALL)
LONG = 20_000  # characters of TeX that a reader would still follow
MODES = "modes"  # what is drawn besides what `plot` draws
ROWS = 2000  # of the table that can be taken from the page

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
    sections = [player_section(model, run)]
    if run is not None:
        sections += [
            _section("What happened", _happened(run, model)),
            _section("Plots", _plots(run)),
        ]
    sections += list(_description(equations, model))
    if run is not None:
        sections.append(_section("Numbers", _numbers(run)))
    body = "\n".join(sections)
    style = page_style() + math_font("".join(FORMULAS.findall(body)))
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


# the run -----------------------------------------------------------------------------------------


_LABELS = {
    "seconds": "Computing time",
    "rtol": "Relative tolerance",
    "atol": "Absolute tolerance",
    "rejected": "Rejected steps",
}


def _happened(run: Trajectory, model: Model) -> str:
    """What the motors gave, how fast it was, what the ground held, and the audit."""
    parts = (
        _contacts(run),
        _motors(run),
        _largest(run, "independent", "Speed"),
        _ground(run, model),
        _energy(run),
        _audit(run),
    )
    return "\n".join(part for part in parts if part)


def _contacts(run: Trajectory) -> str:
    """What each contact did, how often, and its hardest impact."""
    rows = []
    for name, spans in run.modes.items():
        events = [event for event in run.contact_events if event["contact"] == name]
        counts = Counter(event["what"] for event in events)
        words = ", ".join(f"{what} {count}" for what, count in counts.items()) or "nothing"
        hardest = max((event["impulse"] for event in events), default=0.0)
        impact = f"{hardest:.4g} N s" if hardest else ""
        rows.append((name, words, impact, spans[-1][1] if spans else ""))
    heads = ("Contact", "What it did, times", "Largest impulse", "At the end")
    return html_table(heads, rows, numbers=False) if rows else ""


def _peak(time: Any, values: Any, unit: str = "") -> str:
    """Largest absolute value with its unit, and when it is reached."""
    size = np.nan_to_num(np.abs(values), nan=-1.0)
    k = int(np.argmax(size))
    when = f" at {time[k]:.4g} s" if size[k] > 0 else ""
    return f"{size[k]:.4g} {unit}".rstrip() + when


def _motors(run: Trajectory) -> str:
    """Peak torque, speed and power of each motor, and limits that it exceeds; else of inputs."""
    try:
        report = run.motors
    except (NotApplicable, InvalidArgument):  # no motors, or a run from a file
        return _largest(run, "input", "Input")
    rows = []
    for duty in report.values():
        force, rate = duty.units
        rows.append(
            (
                duty.name,
                _peak(duty.time, duty.torque, force),
                f"{duty.rms_torque:.4g} {force}",
                f"{duty.peak_speed:.4g} {rate}",
                f"{duty.peak_power:.4g} W",
                f"{duty.energy:.4g} J",
                f"{duty.recovered:.4g} J",
            )
        )
    what = "force" if all(duty.units[0] == "N" for duty in report.values()) else "torque"
    heads = (
        "Motor", f"Peak {what}", f"RMS {what}", "Peak speed", "Peak power", "Given", "Taken back"
    )  # fmt: skip
    faults = "".join(f'<p class="fault">{html.escape(one.sentence)}</p>' for one in report.excesses)
    return html_table(heads, rows, numbers=False) + faults


def _largest(run: Trajectory, kind: str, head: str) -> str:
    """Largest absolute values of all columns of a kind."""
    rows = [(name, _peak(run.time, run[name], run.unit(name))) for name in run.columns(kind)]
    return html_table((head, "Largest"), rows, numbers=False) if rows else ""


def _ground(run: Trajectory, model: Model) -> str:
    """Least load of each wheel, and the friction that rolling took: its forces by its load."""
    if not model.contacts:
        return ""
    from axode.problems.feasible.feasible import feasible

    try:
        found = feasible(model, run, 1.0, parameters=run.parameters or None)
    except AxodeError:
        return ""  # loads that nothing determines, as of a robot that is not on the ground
    rows = []
    for k, wheel in enumerate(found.wheels):
        load, share = found.normal[:, k], found.share[:, k]
        words = "more than any ground has"
        if np.isfinite(share).all():
            words = _peak(found.time, share)
        rows.append((wheel, f"{float(load.min()):.4g} N", f"{float(load.max()):.4g} N", words))
    heads = ("Wheel", "Least load", "Largest load", "Coefficient of friction used")
    notes = "".join(f"<p>{html.escape(note)}</p>" for note in found.notes)
    return html_table(heads, rows, numbers=False) + notes


def _energy(run: Trajectory) -> str:
    """Changes of the energies over the run."""
    named = {name.rpartition(".")[2]: run[name] for name in run.columns("energy")}
    known = {word: named[word] for word in ENERGIES if word in named}
    noise = ROUNDING * max((float(np.nanmax(np.abs(x))) for x in known.values()), default=0.0)
    changes = {word: float(values[-1] - values[0]) for word, values in known.items()}
    rows = [
        (word.capitalize(), f"{change if abs(change) > noise else 0.0:.4g} J")
        for word, change in changes.items()
    ]
    return html_table(("Energy", "Change"), rows, numbers=False) if rows else ""


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
        (_LABELS.get(key) or key.replace("_", " ").capitalize(), _words(key, value))
        for key, value in run.info.items()
        if not isinstance(value, dict | list)
    ]
    rows += [(f"Event: {event.name}", f"at {event.time:.6g} s") for event in run.events]
    return html_table(("", ""), rows, numbers=False)


def _words(key: str, value: Any) -> str:
    if key == "seconds":
        return f"{value:.3g} s"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _plots(run: Trajectory) -> str:
    """The overview, and what else can be drawn of this run."""
    pieces = []
    drawn = [(), ("energy",), *([(MODES,)] if run.modes else [])]
    for what in drawn:
        try:
            figure = run.plot_modes() if MODES in what else run.plot(*what)
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
        state = "fixed when it was compiled" if facts_of(model).fixed else "free"
        rows = [(name, f"{value:.9g}") for name, value in model.parameters.items()]
        yield _section(
            "Parameters", f"<p>In SI units, {state}.</p>" + html_table(("Name", "Value"), rows)
        )


def _equations(equations: Equations) -> str:
    """Write formulas, or TeX where there is no converter; a long model in short."""
    tex, more = equations.latex(), ""
    if len(tex) > LONG:
        more = (
            f"<p>Written out they fill {len(tex):,} characters of TeX, which is too long to read "
            "here; <code>equations.latex()</code> gives them.</p>"
        )
        tex = r"I\,\dot{\nu} + C\,\nu = \tau + \gamma + \delta"
    try:
        return f'<div class="formula">{to_mathml(tex)}</div>{more}'
    except (AxodeError, ValueError) as error:
        return f"<p>{html.escape(str(error))}</p><pre>{html.escape(tex)}</pre>{more}"


def _names(model: Model) -> str:
    facts = facts_of(model)
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
