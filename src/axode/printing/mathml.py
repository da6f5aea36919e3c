r"""Equations as text, and from TeX to MathML, which every browser shows without a script."""

from __future__ import annotations

import base64
import html
import io
import re
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from axode.errors import AxodeError, NotApplicable, install_command
from axode.printing.latex import SYMMETRIC
from axode.printing.latex_names import distinct_names
from axode.printing.parts import PRINTED, default_parts, exact_part, is_first_kind, part_of
from axode.printing.writers import TextWriter

if TYPE_CHECKING:
    from axode.mechanism.mechanism import Mechanism
    from axode.symbolic.equations import Equations

# What latex2mathml does not know, or knows better by another name.
REWRITES = (
    (re.compile(r"\\(begin|end)\{aligned\}"), r"\\\1{split}"),
    (re.compile(r"\\mathrm\{([^{}]*)\}"), r"\\text{\1}"),
    (re.compile(r"\\tfrac"), r"\\frac"),
    # brackets that belong together, so that an exponent applies to both
    (re.compile(r"\\bigl\b"), r"\\left"),
    (re.compile(r"\\bigr\b"), r"\\right"),
    # a bare letter would get an attribute that browsers ignore, not the letter of that alphabet
    (re.compile(r"\\(mathcal|mathbb|mathbf|mathfrak)\s+([A-Za-z])"), r"\\\1{\2}"),
)
# What browsers want said: columns of equations aligned, accents close to their letter, a bold unit
# matrix, no empty names, space after a function's name and none after a sign, brackets as high as
# their own matrix.
CORRECTIONS = (
    (  # browsers ignore the attribute: lines of equations meet at their signs of equality
        re.compile(r'<mtd columnalign="(left|right)">'),
        r'<mtd columnalign="\1" style="text-align: \1; text-align: -webkit-\1">',
    ),
    (
        re.compile(r"<mover>(?=<m(?:i|row)>(?:<mi>)?[^<]*(?:</mi>)?</m(?:i|row)><mo)"),
        '<mover accent="true">',
    ),
    (re.compile(r'<mn mathvariant="bold">1</mn>'), "<mi>\U0001d7cf</mi>"),
    (re.compile(r"<mi />"), "<mrow></mrow>"),
    (
        re.compile(
            r"(<mi>(?:sin|cos|tan)</mi>|<msup><mi>(?:sin|cos|tan)</mi><mrow><mn>\d</mn></mrow></msup>)"
            r"(?=<m(?:i|sub|over)\b)"
        ),
        r'\1<mspace width="0.167em" />',
    ),
    (
        re.compile(
            r"(<mo>&#x0003D;</mo>|<mo>&#x0002C;</mo>|&#x00028;</mo>|<mspace[^>]*/>)"
            r"<mo>&#x02212;</mo>"
        ),
        r'\1<mo form="prefix">&#x02212;</mo>',
    ),
    (
        re.compile(r"<mo>&#x0005B;</mo>(<mtable>(?:(?!<mtable).)*?</mtable>)<mo>&#x0005D;</mo>"),
        r"<mrow><mo>&#x0005B;</mo>\1<mo>&#x0005D;</mo></mrow>",
    ),
)
# browsers ignore the attribute, and know letters that are bold themselves
BOLD = re.compile(r'<mi mathvariant="bold-italic">&#x([0-9A-F]+);</mi>')
GREEK = {0x391: 0x1D71C, 0x3B1: 0x1D736}  # first capital and small letter, and the bold ones
# A single letter is set in mathematical italics, which have places of their own.
ITALICS = "".join(map(chr, (*range(0x1D434, 0x1D468), *range(0x1D6FC, 0x1D71B), 0x210E)))
RADICAL = "\N{SQUARE ROOT}"  # browsers draw it for <msqrt>, where it is no text
RULE = '@font-face {{ font-family: "Formulas"; src: url(data:font/woff;base64,{data}); }}'


def _bold_greek(letter: re.Match[str]) -> str:
    code = int(letter[1], 16)
    first = max(start for start in GREEK if start <= code)
    return f"<mi>{chr(GREEK[first] + code - first)}</mi>"


def to_mathml(tex: str, display: str = "block") -> str:
    """TeX to MathML.

    Raises:
        NotApplicable: if latex2mathml is not installed.
        ValueError: if it does not know a command, which it would print as it stands.
    """
    try:
        from latex2mathml.converter import convert
    except ImportError as error:
        raise NotApplicable(
            "formulas need latex2mathml, which is not installed.\n"
            f"  Remedy: {install_command('report')}"
        ) from error
    for pattern, replacement in REWRITES:
        tex = pattern.sub(replacement, tex)
    mathml = str(convert(tex.strip(), display=display))
    for pattern, replacement in CORRECTIONS:
        mathml = pattern.sub(replacement, mathml)
    mathml = BOLD.sub(_bold_greek, mathml)
    unknown = re.search(r"\\[A-Za-z]+", html.unescape(mathml))
    if unknown:
        raise ValueError(f"latex2mathml does not know {unknown.group()} in: {tex}")
    return mathml


def math_font(mathml: str) -> str:
    """A style rule that brings the font along; nothing where the extra `report` is missing."""
    home = find_spec("ziamath")  # found, not imported: only its font is wanted
    if home is None or home.origin is None or find_spec("fontTools") is None:
        return ""
    from fontTools import subset, ttLib

    file = Path(home.origin).parent / "fonts" / "STIXTwoMath-Regular.ttf"
    options = subset.Options(drop_tables=["GSUB", "GPOS", "GDEF", "DSIG"], hinting=False)
    font = ttLib.TTFont(file, recalcTimestamp=False)  # the same page every time
    wanted = subset.Subsetter(options)
    wanted.populate(text=html.unescape(re.sub("<[^>]*>", "", mathml)) + ITALICS + RADICAL)
    wanted.subset(font)
    font.flavor = "woff"
    stream = io.BytesIO()
    font.save(stream)
    return RULE.format(data=base64.b64encode(stream.getvalue()).decode("ascii"))


# pages --------------------------------------------------------------------------------------------


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


# equations as text --------------------------------------------------------------------------------


MOST_LINES = 24
WIDEST = 200  # characters of a line


def law(equations: Equations) -> str:
    """The form of the equations of motion."""
    time = equations.system.rheonomic
    if not is_first_kind(equations):
        return "I nu_dot + C nu = tau + gamma + delta"
    rate = "b_dot - A_dot v" if time else "-A_dot v"
    return f"I~ v_dot + C~ v = tau~ + gamma~ + delta~ + A^T lambda, A v_dot = {rate}"


def readable(equations: Equations, parts: Sequence[str] | None = None) -> list[str]:
    """Write the entries of a model that are not zero; return nothing if they are long.

    Args:
        equations: What to write.
        parts: Some of those that `Equations.latex` takes; the terms of the equations unless given.
    """
    e = equations
    speeds = e.speeds if is_first_kind(e) else e.independent
    q, nu, u, p = distinct_names([e.coordinates, speeds, e.inputs, tuple(e.parameters)])
    names = (q, nu, u, ("t",), p)
    lines: list[str] = []
    for name in default_parts(e) if parts is None else parts:
        part = part_of(name, PRINTED)
        found = exact_part(equations, name)
        if found is None:
            return []
        writer = TextWriter(found.exact.atoms, found.layout, names)
        word, rows = part.text or name, part.rows(e)
        columns = part.columns(e) if part.columns(e) != ("value",) else ()
        written = []
        for (i, j), value in zip(found.places, found.exact.results, strict=True):
            if value.is_zero or (name in SYMMETRIC and j < i):
                continue
            where = ", ".join([rows[i], *columns[j : j + 1]])
            right = writer.write(found.layout.ratio(value))
            written.append(
                f"{right} = const." if name == "integrals" else f"{word}[{where}] = {right}"
            )
        lines += written or [f"{word} = {0 if found.exact.results else 'none'}"]
        if len(lines) > MOST_LINES or any(len(line) > WIDEST for line in written):
            return []
    return lines
