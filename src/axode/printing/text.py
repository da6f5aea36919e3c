"""Short equations as text: the LaTeX of a model with the model's own names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from axode.symbolic.equations import Equations

MOST_LINES = 24
WIDEST = 200  # characters of a line
_PLAIN = {
    r"\left": "",
    r"\right": "",
    r" \, ": " ",
    r"\,": " ",
    r"\ln": "log",
    r"\arcsin": "asin",
    r"\arccos": "acos",
    r"\arctan": "atan",
    r"\lnot": "not",
    r"\land": "and",
    r"\lor": "or",
    r"\le": "<=",
    r"\ne": "!=",
}


def readable(equations: Equations, parts: Sequence[str] | None = None) -> list[str]:
    """Write the entries of a model that are not zero; return nothing if they are long.

    Args:
        equations: What to write.
        parts: Some of those that `Equations.latex` takes; I, C nu, tau, gamma, delta unless given.
    """
    from axode.printing.latex import PARTS
    from axode.printing.latex_names import typeset_names

    parts = ("I", "bias", "tau", "gamma", "delta") if parts is None else parts
    latex = equations.latex(parts)
    if r"\text{where}" in latex:
        return []
    names = _names(equations, typeset_names(equations))
    lines = []
    for part in parts:
        label = re.escape(PARTS[part][0].strip("()"))
        found = re.search(rf"^\(?{label}\)? &= (.*?)(?: \\\\)?$", latex, re.MULTILINE)
        if found is None:
            return []
        lines += _entries(equations, part, found[1], names)
    short = len(lines) <= MOST_LINES and all(len(line) <= WIDEST for line in lines)
    return lines if short and not any("\\" in line for line in lines) else []


def _names(equations: Equations, typeset: object) -> dict[str, str]:
    """The model's names by their LaTeX, the longest first."""
    groups = {
        "q": equations.coordinates,
        "nu": equations.independent,
        "u": equations.inputs,
        "p": tuple(equations.parameters),
    }
    found = {
        tex: name
        for field, names in groups.items()
        for tex, name in zip(getattr(typeset, field), names, strict=True)
    }
    return dict(sorted(found.items(), key=lambda item: -len(item[0])))


def _places(equations: Equations, part: str) -> tuple[Sequence[str], ...]:
    """Return the names of the rows of a part, and of its columns where it is a matrix."""
    e = equations
    return {
        "I": (e.independent, e.independent),
        "C": (e.independent, e.independent),
        "Theta": (e.speeds, e.independent),
        "A": (e.rows, e.speeds),
        "q_dot": (e.coordinates,),
        "energy": (("kinetic", "potential"),),
    }.get(part, (e.independent,))


def _entries(equations: Equations, part: str, latex: str, names: dict[str, str]) -> list[str]:
    word = "C nu" if part == "bias" else part
    places = _places(equations, part)
    body = re.fullmatch(r"\\begin\{bmatrix\} (.*) \\end\{bmatrix\}", latex)
    rows = [row.split(" & ") for row in (body[1] if body else latex).split(r" \\ ")]
    found = []
    if latex == "0":
        return [f"{word} = 0"]
    for i, row in enumerate(rows):
        for j, entry in enumerate(row):
            if entry == "0" or (word == "I" and j < i):  # I is symmetric
                continue
            place = ", ".join(group[k] for group, k in zip(places, (i, j), strict=False))
            found.append(f"{word}[{place}] = {_text(entry, names)}")
    return found


def _text(latex: str, names: dict[str, str]) -> str:
    for number, tex in enumerate(names):  # private characters keep a name whole
        letter = re.escape(tex) + (r"(?![A-Za-z])" if tex[-1].isalpha() else "")
        before = r"(?<![A-Za-z\\])" if tex[0].isalpha() else ""
        latex = re.sub(before + letter, chr(0xE000 + number), latex)
    latex = _fractions(latex)
    for tex, plain in _PLAIN.items():
        latex = latex.replace(tex, plain)
    latex = re.sub(r"\\operatorname\{(\w+)\}", r"\1", latex)
    latex = re.sub(r"\\(sin|cos|tan|exp|log|asin|acos|atan|tanh|min|max)", r"\1", latex)
    latex = re.sub(r"(sin|cos|tan)\^\{(\d+)\} ([-\ue000-\uf8ff])", r"\1(\3)^\2", latex)
    latex = re.sub(r"(sin|cos|tan|exp|log) ([\ue000-\uf8ff])", r"\1(\2)", latex)
    latex = re.sub(r"\^\{(\w+)\}", r"^\1", latex)
    for number, name in enumerate(names.values()):
        latex = latex.replace(chr(0xE000 + number), name)
    return re.sub(r" +", " ", latex).strip()


def _fractions(latex: str) -> str:
    r"""\frac{a}{b} as (a) / (b), without brackets around single factors."""
    while found := re.search(r"\\t?frac\{|\\t?frac\{?", latex):
        top, after = _group(latex, found.end() - 1)
        bottom, after = _group(latex, after)
        latex = f"{latex[: found.start()]}{_factor(top)} / {_factor(bottom)}{latex[after:]}"
    return latex


def _factor(text: str) -> str:
    return text if re.fullmatch(r"[^ +-]+", text.strip()) else f"({text})"


def _group(text: str, start: int) -> tuple[str, int]:
    """Return the text in the braces that open at a place, and where they end."""
    depth = 0
    for place in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return text[start + 1 : place], place + 1
    return text[start + 1 :], len(text)
