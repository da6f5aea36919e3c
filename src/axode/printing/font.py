"""The few letters of a mathematical font that a page's formulas need, inside the page."""

from __future__ import annotations

import base64
import html
import io
import re
from importlib.util import find_spec
from pathlib import Path

# A single letter is set in mathematical italics, which have places of their own.
ITALICS = "".join(map(chr, (*range(0x1D434, 0x1D468), *range(0x1D6FC, 0x1D71B), 0x210E)))
RADICAL = "\N{SQUARE ROOT}"  # browsers draw it for <msqrt>, where it is no text
RULE = '@font-face {{ font-family: "Formulas"; src: url(data:font/woff;base64,{data}); }}'


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
