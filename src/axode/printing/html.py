"""Small pages of HTML for notebooks: tables of names and numbers, and short equations."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from axode.errors import AxodeError

if TYPE_CHECKING:
    from axode.mechanism.mechanism import Mechanism
    from axode.symbolic.equations import Equations

MAX_ROWS = 40  # of a table in a notebook
MAX_SPEEDS = 8  # of mechanisms whose equations are worth writing out there
MAX_TEX = 2_000  # characters of LaTeX that fit
LEFT_OUT = "<p>The equations are too long to show here: use <code>.latex()</code>.</p>"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: bool = True) -> str:
    """A table of text; with `numbers`, cells that hold one are aligned to the right."""
    head = "".join(f"<th>{html.escape(h)}</th>" for h in heads)
    lines = [f"<tr>{head}</tr>"] if any(heads) else []
    for row in rows:
        cells = (f"<td{_right(cell) if numbers else ''}>{html.escape(cell)}</td>" for cell in row)
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return f'<div class="wide"><table>{"".join(lines)}</table></div>'


def _right(cell: str) -> str:
    try:
        float(cell)
    except ValueError:
        return ""
    return ' class="number"'


def notebook(title: str, *parts: str, more: str = "") -> str:
    """What a notebook shows of an object: a line of text, parts that are HTML, a last line."""
    last = f"<p>{html.escape(more)}</p>" if more else ""
    return f"<div><p><b>{html.escape(title)}</b></p>{''.join(parts)}{last}</div>"


def limited_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of at most `MAX_ROWS` rows, with the total number of rows."""
    if len(rows) <= MAX_ROWS:
        return table(heads, rows)
    left = len(rows) - MAX_ROWS
    return table(heads, rows[:MAX_ROWS]) + f"<p>and {left} more</p>"


def equations_html(equations: Equations) -> str:
    """Mobility of derived equations, and the equations if they are short, else how to get them."""
    mobility = equations.mobility
    return notebook(
        f"{equations.name}: mobility {mobility.mobility}, {mobility.actuation}",
        table(("", ""), [entry for entry in mobility.entries() if entry[1]], numbers=False),
        _short_equations(equations),
    )


def _short_equations(equations: Equations) -> str:
    from axode.printing.mathml import to_mathml

    if len(equations.speeds) > MAX_SPEEDS:
        return LEFT_OUT
    tex = equations.latex()
    if len(tex) > MAX_TEX or r"\text{where}" in tex:  # with names for repeated terms
        return LEFT_OUT
    try:
        return to_mathml(tex)
    except (AxodeError, ValueError):  # latex2mathml is not installed, or does not know a command
        return f"<pre>{html.escape(tex)}</pre>"


def mechanism_html(mechanism: Mechanism) -> str:
    """Make what a notebook shows of a mechanism: its joints, loops and wheels."""
    kinds = (("joint", mechanism.connections), ("loop", mechanism.loops))
    rows = [
        (kind, str(joint.name), type(joint.joint).__name__, f"{joint.parent} - {joint.child}")
        for kind, joints in kinds
        for joint in joints
    ]
    rows += [
        ("wheel", str(c.name), type(c.wheel).__name__, str(c.body)) for c in mechanism.contacts
    ]
    return notebook(repr(mechanism), limited_table(("", "name", "type", "between"), rows))
