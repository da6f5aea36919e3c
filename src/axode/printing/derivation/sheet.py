"""Matrices of a derivation: in symbols where they can be read, and as numbers at a state."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import casadi as ca
import numpy as np
import numpy.typing as npt

from axode.codegen.tape.tape import Tape
from axode.numerics.tolerances import MATRIX_ROUNDING
from axode.printing.exact import ExactTape, TooLong
from axode.printing.latex import WrittenMatrix, write_matrix
from axode.printing.latex_names import distinct_names, typeset_names
from axode.printing.parts import PARTS, unit_quaternions, world_fractions
from axode.printing.writers import TextWriter
from axode.symbolic.algebra.spatial import SX
from axode.symbolic.equations import Equations

Array = npt.NDArray[np.float64]
Names = Sequence[str]
LONGEST = 2200  # characters of LaTeX of a matrix that can be read
FEWER = 0.8  # of the operations, in axes that are preferred to those of the world
ALL = 20_000  # characters of all matrices together
MOST_OPERATIONS = 1200  # of a matrix whose symbols are written
MOST_AFTER = 100  # where those that it is made of were too long
WIDTH = 420  # characters of LaTeX in a row of a matrix
BESIDE = 360  # characters of LaTeX of a matrix beside which there is room for numbers
MOST_ROWS, MOST_ENTRIES = 12, 72  # of a matrix of numbers
DIGITS = 4


@dataclass(frozen=True)
class WrittenFormula:
    """A matrix, or the part of one that belongs to one body.

    Attributes:
        lines: Lines of an `aligned` environment: symbols where they are short, the places of
            entries that do not vanish where they are long, and numbers.
        text: The same as text.
        note: Further remarks about it.
    """

    lines: tuple[str, ...]
    text: tuple[str, ...]
    note: str = ""


@dataclass(frozen=True)
class DerivationStep:
    """One step of a derivation.

    Attributes:
        title: Heading.
        prose: What is done and why; TeX between dollar signs.
        law: Its equation in LaTeX.
        tags: Equations of the manual's theory.
        blocks: Its matrices.
        facts: Sizes, ranks and residuals, by what they are of.
        code: Python that computes its numbers, in a notebook.
    """

    title: str
    prose: str
    law: str
    tags: tuple[str, ...]
    blocks: tuple[WrittenFormula, ...]
    facts: tuple[tuple[str, str], ...]
    code: str


class Sheet:
    """What the steps of a derivation have in common: symbols, a state, and room on the page.

    Args:
        equations: What is derived; matrices are printed in the forms of `recursive`, the shortest.
        q, nu, u: State and inputs.
    """

    def __init__(self, equations: Equations, q: Array, nu: Array, u: Array) -> None:
        self.equations = e = Equations(equations.system, "recursive")
        self.system = e.system
        self.q, self.nu, self.u = q, nu, u
        self.v = np.zeros(len(e.speeds))
        self.v = self.numbers(e.v).ravel()
        self._left: float = ALL
        self._defined: set[str] = set()
        self._most = MOST_OPERATIONS
        chosen = e.system.independent
        self.names = typeset_names(e, all_speeds=True)
        self.reduced_names = replace(self.names, nu=tuple(self.names.nu[j] for j in chosen))
        self._texts = distinct_names([e.coordinates, e.speeds, e.inputs, tuple(e.parameters)])

    def numbers(self, expression: SX) -> Array:
        """Evaluate an expression of coordinates, any speeds, inputs, time and parameters."""
        e, system = self.equations, self.system
        given = [e.q, system.tree.v, e.nu, e.u, e.t, e.p]
        function = ca.Function("numbers", given, [ca.densify(expression)])
        found = function(self.q, self.v, self.nu, self.u, 0.0, system.defaults)
        return np.array(found, dtype=float)

    def zero(self, product: SX, *, exactly: bool = True) -> str:
        """Say how a matrix is known to vanish."""
        count, (tape, _) = product.numel(), self._tape(product)
        if exactly and tape.n_operations <= self._most:
            with suppress(TooLong, ModuleNotFoundError):  # too long, or no SymPy
                exact = ExactTape(tape, unit_quaternions(self.equations))
                if exact.exact and all(value.is_zero for value in exact.results):
                    return f"all {count} entries vanish identically, by exact algebra"
        largest = float(np.abs(self.numbers(product)).max(initial=0.0))
        return f"{count} entries, at most {largest:.1g} at the state"

    def _tape(self, expression: SX) -> tuple[Tape, bool]:
        """Return the tape of a matrix, and whether it is of all joint speeds."""
        e, v = self.equations, self.system.tree.v
        wide = v.numel() > 0 and ca.depends_on(expression, v)
        arguments = [e.q, v if wide else e.nu, e.u, e.t, e.p]
        return Tape.from_casadi(ca.Function("matrix", arguments, [ca.densify(expression)])), wide

    def _operations(self, expression: SX) -> int:
        return self._tape(expression)[0].n_operations

    def _write(
        self, symbol: str, expression: SX, *, symmetric: bool = False
    ) -> tuple[WrittenMatrix | None, bool]:
        """Write a matrix in symbols unless it is long, and whether it is of all joint speeds."""
        tape, wide = self._tape(expression)
        if tape.n_operations > self._most:
            return None, wide
        part = next((name for name in ("I", "bias") if PARTS[name].symbol == symbol), None)
        found = write_matrix(
            symbol,
            tape,
            unit_quaternions(self.equations),
            self.names if wide else self.reduced_names,
            symmetric=symmetric,
            width=WIDTH,
            other=world_fractions(self.equations, part, tape) if part and not wide else None,
        )
        return found, wide

    def block(
        self,
        word: str,
        symbol: str,
        expression: SX,
        rows: Names = (),
        columns: Names = (),
        *,
        symmetric: bool = False,
        other: tuple[str, SX] | None = None,
        needed: bool = False,
    ) -> WrittenFormula:
        """Write a matrix in symbols and as numbers.

        Args:
            word, symbol: What it is called, in text and in LaTeX.
            expression: What it is.
            rows, columns: Names of its rows and columns.
            symmetric: Whether it is symmetric.
            other: A form that may be shorter, and what it is: the axes of a body.
            needed: Whether later matrices are made of it without becoming much shorter.
        """
        note = ""
        if other is not None and self._operations(other[1]) < FEWER * self._operations(expression):
            note, expression = f"In {other[0]}.", other[1]
        found, wide = self._write(symbol, expression, symmetric=symmetric)
        value = self.numbers(expression)
        if found is None or _length(found) > min(LONGEST, self._left):
            if needed:
                self._most = MOST_AFTER
            lines, texts = _places(symbol, expression), []
            note += " Too long to be read in symbols"
            note += ": dots mark entries that do not vanish." if lines else "."
            if not _readable(value.shape):
                filled = np.count_nonzero(_pattern(expression))
                note += f" {value.shape[0]} by {value.shape[1]}, {filled} of them do not vanish."
        else:
            lines = [*found.lines, *self._new_definitions(found)]
            self._left -= _length(found)
            texts = self._text(word, found, wide, rows, columns, symmetric=symmetric)
        if value.any() and _readable(value.shape) and not _same(lines, value):
            if len(lines) == 1 and len(lines[0]) <= BESIDE:
                lines[0] += rf" \approx {_matrix(value)}"
            else:
                left = "" if len(lines) == 1 else symbol.strip("()")
                lines.append(rf"{left} &\approx {_matrix(value)}")
            texts += _table(word, value, rows, columns)
        return WrittenFormula(tuple(lines), tuple(texts), note.strip())

    def _new_definitions(self, found: WrittenMatrix) -> list[str]:
        """Definitions that are not on the page yet; numbered terms are of one matrix only."""
        if found.exact is None:
            return list(found.definitions)
        lines = [line for line in found.definitions if line not in self._defined]
        self._defined |= {*lines}
        return lines

    def vector(self, word: str, symbol: str, value: Array, rows: Names) -> WrittenFormula:
        """Write numbers that have no symbols."""
        column_of = value.reshape(-1, 1)
        if not _readable(column_of.shape):
            return WrittenFormula((), ())
        tex = rf"{symbol} &\approx {_matrix(column_of)}"
        return WrittenFormula((tex,), tuple(_table(word, column_of, rows, ())))

    def _text(
        self,
        word: str,
        found: WrittenMatrix,
        wide: bool,
        rows: Names,
        columns: Names,
        *,
        symmetric: bool,
    ) -> list[str]:
        """Write entries as text, where there are exact fractions."""
        if found.exact is None:
            return []
        q, v, u, p = self._texts
        exact = found.exact
        nu = v if wide else tuple(v[j] for j in self.system.independent)
        writer = TextWriter(exact.exact.atoms, exact.layout, (q, nu, u, ("t",), p))
        lines = []
        for (i, j), value in zip(exact.places, exact.exact.results, strict=True):
            if not value.is_zero and not (symmetric and j < i):
                where = ", ".join([*rows[i : i + 1], *columns[j : j + 1]])
                entry = writer.write(exact.layout.ratio(value))
                lines.append(f"{word}[{where}] = {entry}" if where else f"{word} = {entry}")
        return lines or [f"{word} = 0"]


def column(entries: Sequence[str]) -> str:
    """A matrix of these rows in LaTeX."""
    return r"\begin{bmatrix} " + r" \\ ".join(entries) + r" \end{bmatrix}"


def _number(x: float) -> str:
    digits, _, exponent = f"{x:.{DIGITS}g}".partition("e")
    return rf"{digits} \cdot 10^{{{int(exponent)}}}" if exponent else digits


def _matrix(value: Array) -> str:
    rows = [" & ".join(map(_number, row)) for row in _clean(value)]
    return rows[0] if value.size == 1 else column(rows)


def _clean(value: Array) -> Array:
    return np.where(np.abs(value) <= MATRIX_ROUNDING * np.abs(value).max(), 0.0, value)


def _length(found: WrittenMatrix | None) -> float:
    return np.inf if found is None else len(found)


def _pattern(expression: SX) -> npt.NDArray[np.bool_]:
    rows, columns = expression.shape
    return np.array([[not expression[i, j].is_zero() for j in range(columns)] for i in range(rows)])


def _readable(shape: tuple[int, ...]) -> bool:
    return (1 < shape[0] * shape[1] <= MOST_ENTRIES and max(shape) <= MOST_ROWS) or shape == (1, 1)


def _same(lines: Sequence[str], value: Array) -> bool:
    """Return whether a matrix was written as these very numbers."""
    return len(lines) == 1 and lines[0].partition("&= ")[2] == _matrix(value)


def _places(symbol: str, expression: SX) -> list[str]:
    if not _readable(expression.shape) or expression.numel() == 1:
        return []
    rows = [" & ".join(r"\bullet" if x else r"\cdot" for x in row) for row in _pattern(expression)]
    return [f"{symbol.strip('()')} &= {column(rows)}"]


def _table(word: str, value: Array, rows: Names, columns: Names) -> list[str]:
    """Numbers as text, their rows and columns named."""
    cells = [[f"{x:.{DIGITS}g}" for x in row] for row in _clean(value)]
    heads = columns if len(columns) == value.shape[1] else [""] * value.shape[1]
    names = rows if len(rows) == value.shape[0] else [""] * value.shape[0]
    widths = [max(map(len, each)) for each in zip(heads, *cells, strict=True)]
    title = f"{word} at the state"
    first = max(len(title), *map(len, names))
    lines = [(title, heads), *zip(names, cells, strict=True)]
    return [
        "  ".join(
            [name.ljust(first), *(c.rjust(width) for c, width in zip(row, widths, strict=True))]
        ).rstrip()
        for name, row in lines
    ]


STYLES = re.compile(r"\\(?:mathbf|boldsymbol|mathrm|mathsf|text|operatorname)\s*\{([^{}]*)\}")
ACCENTS = {"dot": "_dot", "tilde": "~", "hat": "^"}
ACCENT = re.compile(r"\\(dot|tilde|hat)\s*\{([^{}]*)\}")
FRACTION = re.compile(r"\\frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}")
PLAIN = (
    (re.compile(r"\\begin\{bmatrix\}"), "["),
    (re.compile(r"\\end\{bmatrix\}"), "]"),
    (re.compile(r"\\left|\\right"), ""),
    (re.compile(r"&"), ","),
    (re.compile(r"\\[,;!]|\\q?quad"), " "),
    (re.compile(r"[{}\\]"), ""),
    (re.compile(r"\s+"), " "),
)


def plain(tex: str) -> str:
    """Return TeX of the theory's equations as text."""
    before = ""
    while before != tex:
        before = tex
        tex = STYLES.sub(r"\1", tex)
        tex = ACCENT.sub(lambda match: match[2] + ACCENTS[match[1]], tex)
        tex = FRACTION.sub(r"(\1)/(\2)", tex).replace("^{T}", "^T ").replace(r"\times", "x")
        tex = tex.replace(r"\cdot", ".")
    for pattern, instead in PLAIN:
        tex = pattern.sub(instead, tex)
    return tex.strip()
