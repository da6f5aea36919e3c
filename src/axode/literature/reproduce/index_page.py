"""The index page: every figure with its caption and verdict, in one file that needs no network."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Sequence
from html import escape
from string import Template
from typing import TYPE_CHECKING

from axode.literature.reproduce.item import SOURCES, STATUSES

if TYPE_CHECKING:
    from axode.literature.reproduce.making import Reproduction

_GREEK = {"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "theta": "θ", "lambda": "λ"}
_GREEK |= {"pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "phi": "φ", "psi": "ψ", "omega": "ω"}
_GREEK |= {"zeta": "ζ", "nu": "ν", "Lambda": "Λ", "Theta": "Θ"}
_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_DOTS = {"_dot": "\u0307", "_dd": "\u0308", "": ""}
_NAME = rf"(?<![\w.])(?:({'|'.join(_GREEK)}|[A-Za-z](?=_\d))_?|([AIJMlm])(?=\d))"
_SYMBOL = re.compile(rf"{_NAME}(\d*)(_dot|_dd|)(?![\w(])")

_PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Axode: what the sources show, computed again</title>
<style>
:root { color-scheme: light; --ink: #22282e; --grey: #69737d; --line: #e6e9ec; }
body { font: 15px/1.5 system-ui, "DejaVu Sans", sans-serif; color: var(--ink); max-width: 1040px;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: .3rem; }
h2 { font-size: 1.2rem; margin-top: 2.6rem; padding-bottom: .2rem;
  border-bottom: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.8rem 0 .4rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .35rem .7rem .35rem 0;
  border-bottom: 1px solid var(--line); }
th, figcaption, .note { color: var(--grey); font-weight: normal; }
.numbers { color: var(--grey); font-size: .85rem; }
td:first-child, figcaption a { white-space: nowrap; }
figure { margin: 0; }
figure img { max-width: 100%; height: auto; display: block; }
figcaption { font-size: .9rem; margin-top: .3rem; }
.pass, .differs, .fails { font-weight: 600; white-space: nowrap; }
.pass { color: #138f61; } .differs { color: #a8480b; } .fails { color: #b3123a; }
a { color: #1a47ba; }
ul { margin: .4rem 0; padding-left: 1.2rem; }
</style>
</head>
<body>
<h1>What the sources show, computed again</h1>
<p class="note">$count. Coloured solid lines are Axode's, with long dashes where one of them would
hide another. Broad grey lines beneath are what they are compared with, named in the legend or the
caption: the source's own equations, corrected if need be, closed forms, or the motion asked for.
Thin dashed lines are other computations, such as the equations as printed; dotted levels are
numbers that the source prints. Dots and bars are numbers by method. A verdict
<span class="pass">passes</span> if all numbers agree, <span class="differs">differs</span> if the
source's number is another one for a known reason, and <span class="fails">fails</span>
otherwise.</p>
<table>
<tr><th>item</th><th>what the source shows</th><th>verdict</th><th>numbers compared</th></tr>
$rows
</table>
$sections
</body>
</html>
""")


def page(made: Sequence[Reproduction]) -> str:
    """The page as HTML text, its pictures inside."""
    rows = "\n".join(
        f'<tr><td><a href="#{one.item.id}">{one.item.id}</a></td>'
        f"<td>{escape(one.item.shows)}</td><td>{_word(one)}</td>"
        f'<td class="numbers">{escape(symbols(one.verdict.sentence))}</td></tr>'
        for one in made
    )
    sections = []
    for source, title in SOURCES.items():
        found = [_section(one) for one in made if one.item.source == source]
        if found:
            sections.append(f"<h2>{escape(title)}</h2>\n" + "\n".join(found))
    found = [one.verdict.status for one in made]
    passing, differing, failing = (found.count(status) for status in STATUSES)
    count = f"Of {len(made)}, {passing} pass, {differing} differ and {failing} fail"
    return _PAGE.substitute(count=count, rows=rows, sections="\n".join(sections))


def symbols(text: str) -> str:
    """Write names as the documents have them: theta_1_dot is θ̇₁, M1 is M₁."""

    def symbol(found: re.Match[str]) -> str:
        name, letter, number, dots = found.groups()
        return f"{_GREEK.get(name, letter or name)}{_DOTS[dots]}{number.translate(_SUBSCRIPTS)}"

    return _SYMBOL.sub(symbol, text)


def _word(one: Reproduction) -> str:
    return f'<span class="{one.verdict.status}">{one.verdict.status}</span>'


def _section(one: Reproduction) -> str:
    picture = b64encode(one.figure.read_bytes()).decode()
    checks = "\n".join(
        f'<li><span class="{check.status}">{check.status}</span> {escape(symbols(str(check)))}</li>'
        for check in one.verdict.checks
    )
    caption = escape(symbols(one.caption))
    return f"""<h3 id="{one.item.id}">{escape(one.item.shows)} {_word(one)}</h3>
<figure><img alt="{escape(one.item.shows)}" src="data:image/png;base64,{picture}">
<figcaption>{caption} <a href="{one.table.name}">{one.table.name}</a></figcaption>
</figure>
<ul>
{checks}
</ul>"""
