r"""TeX to MathML, which every browser shows without a script, and the letters that it needs."""

from __future__ import annotations

import base64
import html
import io
import re
from importlib.util import find_spec
from pathlib import Path

from axode.errors import NotApplicable, install_command

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
