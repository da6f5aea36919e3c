"""Making: each item computed, its table and figure written, and a page over all of them.

The page has every figure with its caption and verdict, in one file that needs no network.
"""

from __future__ import annotations

import csv
import io
import re
import tempfile
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from os import PathLike
from pathlib import Path
from string import Template
from time import perf_counter

import numpy as np

from axode.disk.atomic import write_atomically
from axode.errors import FileError
from axode.literature.reproduce.figures import draw
from axode.literature.reproduce.item import SOURCES, STATUSES, Item, ItemResult, Verdict, chosen
from axode.problems.progress import Progress
from axode.show.style import need_matplotlib

FOLDER = "out/reproduce"


@dataclass(frozen=True)
class Reproduction:
    """An item that was reproduced.

    Attributes:
        item: What the source shows.
        verdict: Numbers compared.
        caption: Caption of its figure.
        table, figure: Files that were written.
        seconds: It took.
    """

    item: Item
    verdict: Verdict
    caption: str
    table: Path
    figure: Path
    seconds: float

    def __str__(self) -> str:
        return f"{self.item.id}: {self.verdict}"


@dataclass(frozen=True)
class Reproductions:
    """All that one call reproduced, and the page about it; prints as a line each."""

    made: tuple[Reproduction, ...]
    page: Path

    @property
    def holds(self) -> bool:
        """Return whether everything passes or differs for a known reason."""
        return all(one.verdict.status != "fails" for one in self.made)

    def __str__(self) -> str:
        return "\n".join(map(str, self.made))


def reproduce(
    ids: str | Iterable[str] | None = None,
    out: str | PathLike[str] = FOLDER,
    *,
    progress: bool | None = None,
    report: Callable[[Reproduction], None] | None = None,
) -> Reproductions:
    """Compute again what the sources show, and compare it with what they print.

    Args:
        ids: Items or sources by name; all unless given.
        out: Folder for a CSV file and a figure of each, and for the page `index.html`.
        progress: Show a bar; unless given, after a second on a terminal.
        report: Called with each one as soon as it is made.

    Raises:
        UnknownName: for an unknown id, listing the known ones.
        FileError: if the folder cannot be written to.
        NotApplicable: if matplotlib is not installed.
    """

    items = chosen([ids] if isinstance(ids, str) else ids)
    need_matplotlib()
    folder = _folder(out)
    made: list[Reproduction] = []
    index = folder / "index.html"
    try:
        with Progress("reproduce", progress) as bar:
            for item in items:
                bar.update(len(made) / len(items), item.id)
                made.append(_make(item, folder))
                if report is not None:
                    report(made[-1])
    finally:  # an interrupted call leaves a page of what it has made
        if made:
            write_atomically(index, page(made).encode(), follow=False)
    return Reproductions(tuple(made), index)


def _folder(out: str | PathLike[str]) -> Path:
    """The folder, made if need be, and found writable before anything is computed."""
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        raise FileError(
            f"cannot write to the folder '{folder}': {error.strerror or error}.\n"
            "  Remedy: another one, out=... or --out"
        ) from error


def _make(item: Item, folder: Path) -> Reproduction:
    started = perf_counter()
    outcome = item.compute()
    table, figure = folder / f"{item.id}.csv", folder / f"{item.id}.png"
    write_atomically(table, comma_separated(outcome).encode(), follow=False)
    write_atomically(figure, draw(outcome), follow=False)
    seconds = perf_counter() - started
    return Reproduction(item, outcome.verdict, outcome.caption, table, figure, seconds)


def comma_separated(outcome: ItemResult) -> str:
    """The table of an outcome as CSV text, its heads first."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(outcome.table)
    rows = np.column_stack(list(outcome.table.values()))
    writer.writerows([f"{value:.10g}" for value in row] for row in rows)
    return text.getvalue()


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
