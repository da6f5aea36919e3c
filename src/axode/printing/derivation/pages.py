"""A derivation as text, as a page, as a LaTeX document and as a notebook."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib import metadata, resources
from textwrap import wrap
from typing import Any
from urllib.parse import urlsplit

from axode.mechanism.files.toml.toml_writer import text_of
from axode.names import title_words
from axode.printing.derivation.derivation import Derivation
from axode.printing.derivation.sheet import DerivationStep, WrittenFormula, plain
from axode.printing.mathml import math_font, to_mathml

HOMES = {
    "K": "kinematics",
    "C": "constraints",
    "N": "complement",
    "D": "dynamics",
    "F": "formulations",
}
RESERVED = re.compile(r"(.*\.)?(example(\.(org|com|net))?|invalid|test|localhost)")  # of RFC 2606
MATH = re.compile(r"\$([^$]+)\$")
WIDTH, INDENT = 100, " " * 3  # of text
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>{font}{style}</style></head><body>
<h1>{title}</h1>
{body}
</body></html>
"""
PREAMBLE = r"""\documentclass[a4paper]{article}
\usepackage{amsmath, amssymb, bm}
\usepackage[T1]{fontenc}
\usepackage[margin=2.2cm]{geometry}
\usepackage{adjustbox, hyperref}
\renewcommand{\arraystretch}{1.25}
\setlength{\parindent}{0pt}
\newcommand{\fit}[1]{\par\smallskip\adjustbox{max width=\linewidth}%
  {$\displaystyle #1$}\par\smallskip}
"""


def _title(made: Derivation) -> str:
    return f"{title_words(made.mechanism.name)}: equations of motion"


def lead(made: Derivation) -> str:
    """What the page shows, and where its numbers are from."""
    values = ", ".join(f"{name} = {value:.5g}" for name, value in made.state.items())
    return f"{made.way}, step by step. Numbers are in SI units, at the state {values}."


@cache
def _manual() -> str:
    """Address of the manual, as the package states it; empty where it states none that leads on."""
    try:
        urls = metadata.metadata("axode").get_all("Project-URL") or []
    except metadata.PackageNotFoundError:
        return ""
    found = dict(url.split(", ", 1) for url in urls)
    address = str(found.get("Documentation", ""))
    return "" if RESERVED.fullmatch(urlsplit(address).hostname or "") else address


def _page_of(tag: str) -> str:
    return f"theory/{HOMES[tag[0]]}"


def _references(step: DerivationStep, link: Callable[[str, str], str]) -> str:
    """Tags of a step, as links into the manual; without its address, and the manual's pages."""
    if manual := _manual():
        return " ".join(link(tag, f"{manual}/{_page_of(tag)}.html#{tag}") for tag in step.tags)
    return _named(step)


def _named(step: DerivationStep) -> str:
    """Tags of a step, and the pages of the manual that have them."""
    tags = ", ".join(f"({tag})" for tag in step.tags)
    pages = ", ".join(dict.fromkeys(f"docs/{_page_of(tag)}.md" for tag in step.tags))
    return f"{tags} {pages}".strip()


# text ---------------------------------------------------------------------------------------------


def plain_words(words: str) -> str:
    """Return text with its TeX as text."""
    return MATH.sub(lambda match: plain(match[1]), words)


def text(made: Derivation) -> str:
    """All steps for a terminal."""
    lines = [f"{made.mechanism.name}: {lead(made)}"]
    for k, step in enumerate(made.steps, start=1):
        lines += ["", f"{k}. {step.title}   {_named(step)}".rstrip()]
        lines += wrap(
            plain_words(step.prose), WIDTH, initial_indent=INDENT, subsequent_indent=INDENT
        )
        if step.law:
            lines.append(f"     {plain(step.law)}")
        for block in step.blocks:
            lines += [f"     {line}" for line in block.text]
            if block.note:
                lines.append(f"     ({block.note})")
        lines += [f"   {plain_words(label)}: {value}" for label, value in step.facts]
    return "\n".join(lines)


# HTML ---------------------------------------------------------------------------------------------


def _prose(words: str) -> str:
    return "".join(
        to_mathml(piece, "inline") if k % 2 else html.escape(piece)
        for k, piece in enumerate(MATH.split(words))
    )


def _aligned(block: WrittenFormula) -> str:
    return "\\begin{aligned}\n" + " \\\\\n".join(block.lines) + "\n\\end{aligned}"


def _block_html(block: WrittenFormula) -> str:
    formula = f'<div class="formula">{to_mathml(_aligned(block))}</div>' if block.lines else ""
    note = f'<p class="note">{html.escape(block.note)}</p>' if block.note else ""
    return f"<div>{formula}{note}</div>" if formula or note else ""


def _step_html(k: int, step: DerivationStep) -> Iterator[str]:
    links = _references(step, lambda tag, at: f'<a href="{at}" title="{_page_of(tag)}">({tag})</a>')
    yield (
        f'<section><h2><span class="number">{k}</span>{html.escape(step.title)}'
        f'<span class="tags">{links}</span></h2>'
    )
    yield f"<p>{_prose(step.prose)}</p>"
    if step.law:
        yield f'<div class="law">{to_mathml(step.law)}</div>'
    blocks = "".join(map(_block_html, step.blocks))
    yield f'<div class="blocks">{blocks}</div>'
    if step.facts:
        rows = "".join(
            f"<dt>{_prose(label)}</dt><dd>{html.escape(value)}</dd>" for label, value in step.facts
        )
        yield f"<dl>{rows}</dl>"
    yield "</section>"


def cell(made: Derivation) -> str:
    """All steps as the cell of a notebook shows them."""
    body = [f'<p class="lead">{html.escape(lead(made))}</p>']
    for k, step in enumerate(made.steps, start=1):
        body += _step_html(k, step)
    return "\n".join(body)


def page(made: Derivation) -> str:
    """A page that needs nothing else."""
    body = cell(made)
    style = resources.files("axode.printing.derivation").joinpath("page.css").read_text("utf-8")
    title = html.escape(_title(made))
    return PAGE.format(title=title, font=math_font(body), style=style, body=body)


# LaTeX --------------------------------------------------------------------------------------------


def _escaped(words: str) -> str:
    """Text with its TeX, safe for LaTeX."""
    pieces = MATH.split(words)
    return "".join(
        f"${piece}$" if k % 2 else re.sub(r"([_&%#])", r"\\\1", piece.replace("^", r"\^{}"))
        for k, piece in enumerate(pieces)
    )


def _hash_escaped(address: str) -> str:
    return address.replace("#", r"\#")


def document(made: Derivation) -> str:
    """A LaTeX document; matrices are made as small as the lines need."""
    lines = [
        f"% Equations of motion of {' '.join(made.mechanism.name.split())}, by Axode.",
        PREAMBLE + r"\begin{document}",
        rf"\title{{{_escaped(_title(made))}}}\date{{}}\maketitle",
        _escaped(lead(made)),
    ]
    for step in made.steps:
        tags = _references(step, lambda tag, at: rf"\href{{{_hash_escaped(at)}}}{{({tag})}}")
        lines += [rf"\section{{{_escaped(step.title)}}}", _escaped(step.prose) + f" {tags}"]
        if step.law:
            lines.append(rf"\[ {step.law} \]")
        for block in step.blocks:
            if block.lines:
                lines.append(rf"\fit{{{_aligned(block)}}}")
            if block.note:
                lines.append(rf"\emph{{{_escaped(block.note)}}}\par")
        lines += [rf"{_escaped(label)}: {_escaped(value)}.\par" for label, value in step.facts]
    return "\n".join([*lines, r"\end{document}", ""])


# notebook -----------------------------------------------------------------------------------------


def notebook(made: Derivation, source: str | None) -> dict[str, Any]:
    """Cells of text and code, in version 4 of the format."""
    first = ""
    if source is None:
        described = made.mechanism.copy()
        described.measures.clear()  # some are functions, which a file cannot hold
        words = text_of(described).replace("\\", r"\\").replace("'''", r"\'\'\'")
        first = f"Path(\"robot.toml\").write_text('''{words}''', encoding=\"utf-8\")\n"
        first, source = f"from pathlib import Path\n\n{first}", 'ax.load("robot.toml")'
    cells = [_markdown(f"# {_title(made)}\n\n{lead(made)}")]
    imports = "import casadi as ca\nimport numpy as np\n\nimport axode as ax\n\n"
    cells.append(_code(f"{imports}{first}robot = {source}\n{made.setup}"))
    for k, step in enumerate(made.steps, start=1):
        cells.append(_markdown(_step_markdown(k, step)))
        if step.code:
            cells.append(_code(step.code))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {
        "cells": [{"id": f"cell-{k}", **made} for k, made in enumerate(cells)],
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _markdown(words: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": words.splitlines(keepends=True)}


def _code(words: str) -> dict[str, Any]:
    source = words.splitlines(keepends=True)
    empty: dict[str, Any] = {"execution_count": None, "outputs": []}
    return {"cell_type": "code", "metadata": {}, "source": source} | empty


def _step_markdown(k: int, step: DerivationStep) -> str:
    tags = _references(step, lambda tag, at: f"[({tag})]({at})")
    parts = [f"## {k}. {step.title}", f"{step.prose} {tags}".strip()]
    if step.law:
        parts.append(f"$$\n{step.law}\n$$")
    for block in step.blocks:
        if block.lines:
            parts.append(f"$$\n{_aligned(block)}\n$$")
        if block.note:
            parts.append(f"*{block.note}*")
    parts += ["\n".join(f"- {label}: {value}" for label, value in step.facts)] * bool(step.facts)
    return "\n\n".join(parts)
