"""The index page: every figure with its caption and verdict, in one file that needs no network."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Sequence
from html import escape
from pathlib import Path
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
    template = Template(Path(__file__).with_name("index_page.html").read_text("utf-8"))
    return template.substitute(count=count, rows=rows, sections="\n".join(sections))


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
