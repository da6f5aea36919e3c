r"""Equations for readers in LaTeX.

They start from the tape, where every repeated term stands once. LaTeX gives a name to what is used
more than once or would make a line too long, and lists these names in the order in which they can
be computed; the rest is written out in place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from axode.printing.exact_parts import ExactPart, Verticals, exact_fractions, exact_part, tape_of
from axode.printing.exact_parts import unit_quaternions as unit_quaternions
from axode.printing.latex_names import Typeset, typeset_names
from axode.printing.layout import Product
from axode.printing.parts import PRINTED, default_parts, is_first_kind, part_of
from axode.printing.polynomials import ROUNDING, Frozen, Monomial, Polynomials, frozen, multiply
from axode.printing.writers import (
    LATEX_FUNCTIONS,
    LATEX_OPERATORS,
    LatexWriter,
    latex_number_near,
    raised,
)

if TYPE_CHECKING:
    from axode.codegen.tape.tape import Tape
    from axode.symbolic.equations import Equations

LONGEST_TERM = 14  # symbols in a sum before it gets a name of its own
SHARED_FUNCTION = 2  # symbols in a function used twice before it gets one
MATRIX_WIDTH = 240  # characters of LaTeX in a row, up to which a matrix is written as one
MATRIX_ROWS = 12
UNSEEN = 1e-15  # of the largest factor of a sum: cos(pi/2) is not quite zero

THIN = r" \, "  # between factors
SYMMETRIC = ("I", "I_tree")
ONE = Product(Fraction(1), ())
LONG = (
    1000  # characters of a projected matrix, above which what it is projected from may be shorter
)
_THETA = r"\boldsymbol{\Theta}"
_PROJECTED = rf"{_THETA}^{{\mathsf{{T}}}}"
_RATE = r"\tilde{\mathbf{I}} \, \dot{\boldsymbol{\Theta}}"
PROJECTIONS = {  # law, and parts that it is made of
    "I": (
        rf"\mathbf{{I}} &= {_PROJECTED} \, \tilde{{\mathbf{{I}}}} \, {_THETA}",
        ("Theta", "I_tree"),
    ),
    "C": (
        rf"\mathbf{{C}} &= {_PROJECTED} \left({_RATE} + \tilde{{\mathbf{{C}}}} \, {_THETA}\right)",
        ("Theta", "Theta_dot", "I_tree", "C_tree"),
    ),
    "bias": (
        rf"\mathbf{{C}}\boldsymbol{{\nu}} &= {_PROJECTED} \left({_RATE} \, \boldsymbol{{\nu}} + "
        r"\tilde{\mathbf{C}}\mathbf{v}\right)",
        ("Theta", "Theta_dot", "I_tree", "bias_tree"),
    ),
}


def latex(equations: Equations, parts: Sequence[str] | None = None) -> str:
    r"""The model in LaTeX: an `aligned` environment, for use between ``\[`` and ``\]``.

    Each part is written by whichever is shorter: exact fractions of polynomials, in lowest terms
    (these need SymPy), or sums and products as they are computed, repeated ones by a name.

    Args:
        equations: What to print.
        parts: Which of the `PRINTED` to write out; left out, the terms of the model, and Theta if
            there are constraints.
    """
    if parts is None:
        constrained = not (equations.system.is_tree or is_first_kind(equations))
        parts = (*default_parts(equations), *(("Theta",) if constrained else ()))
    for part in parts:
        part_of(part, PRINTED)
    plain = _aligned(equations, parts)
    bulky = [part for part in parts if part in PROJECTIONS]
    system = equations.system
    if (
        is_first_kind(equations)
        or system.is_tree
        or system.rheonomic
        or len(plain) < LONG * len(bulky)
    ):
        return plain
    needed = [name for part in bulky for name in PROJECTIONS[part][1]]
    others = [part for part in parts if part not in PROJECTIONS]
    projected = _aligned(equations, list(dict.fromkeys([*others, *needed])), bulky)
    return min((plain, projected), key=len) if bulky else plain


def _aligned(equations: Equations, parts: Sequence[str], projected: Sequence[str] = ()) -> str:
    """Write parts out; those of all speeds, and laws that project them, if any are projected."""
    all_speeds = bool(projected)
    names = typeset_names(equations, all_speeds=all_speeds)
    lines: dict[str, list[str]] = {}
    verticals: list[str] = []
    for part in parts:
        found = exact_part(equations, part, all_speeds=all_speeds)
        if found is not None:
            lines[part] = _exact_lines(part, found, names)
            writer = _Writer(tape_of(equations, [part], all_speeds=all_speeds), names)
            if sum(map(len, lines[part])) > sum(map(len, _all_lines(writer, [part]))):
                del lines[part]
            else:
                verticals += _vertical_lines(found, names)
    left = [part for part in parts if part not in lines]
    writer = _Writer(tape_of(equations, left, all_speeds=all_speeds), names)
    for number, part in enumerate(left):
        lines[part] = writer.part(number, PRINTED[part].symbol, symmetric=part in SYMMETRIC)
    written = _heading(equations, names, all_speeds=all_speeds)
    written += [PROJECTIONS[part][0] for part in projected]
    for part in parts:
        written += lines[part]
    definitions = [*dict.fromkeys(verticals), *writer.definitions()]
    if definitions:
        written += [r"& \text{where}", *definitions]
    return "\\begin{aligned}\n" + " \\\\\n".join(written) + "\n\\end{aligned}"


def _all_lines(writer: _Writer, parts: Sequence[str]) -> list[str]:
    """Lines of parts as they are computed, and what they are named for."""
    written = [
        line
        for number, part in enumerate(parts)
        for line in writer.part(number, PRINTED[part].symbol, symmetric=part in SYMMETRIC)
    ]
    return [*written, *writer.definitions()]


def _exact_lines(part: str, found: ExactPart, names: Typeset) -> list[str]:
    """Lines of one part, as a matrix if that is short, else entry by entry."""
    symbol, symmetric = PRINTED[part].symbol, part in SYMMETRIC
    return _fraction_lines(symbol, found, names, symmetric=symmetric)


def _fraction_lines(
    symbol: str, found: ExactPart, names: Typeset, *, symmetric: bool, width: int = MATRIX_WIDTH
) -> list[str]:
    bare = symbol.strip("()")
    writer = LatexWriter(found.exact, found.layout, names.vectors, names.vertical)
    results = found.exact.results
    if all(value.is_zero for value in results):
        return [f"{bare} &= " + r"\mathbf{0}"] if results else []
    if len(results) == 1:
        return [f"{bare} &= {writer.write(found.layout.ratio(results[0]))}"]
    shared, entries = found.layout.matrix(results)
    written = [writer.write(entry) for entry in entries]
    rows, columns = found.shape
    widest = [max(map(len, written[j::columns])) for j in range(columns)]
    if sum(widest) <= width and rows <= MATRIX_ROWS:
        factor = "" if shared == ONE else writer.product(shared) + THIN
        return [f"{bare} &= {factor}{_matrix(written, columns)}"]
    plain = [writer.write(found.layout.ratio(value)) for value in results]
    return _entry_lines(symbol, found.places, plain, columns, symmetric=symmetric)


def _vertical_lines(found: ExactPart, names: Typeset) -> list[str]:
    """Definitions of the components of the vertical that are used."""
    exact = found.exact
    writer = LatexWriter(exact, found.layout, names.vectors, names.vertical)
    used = set().union(*map(exact.generators, exact.results))
    return [
        rf"{writer.atom(k)} &= {writer.arguments(atom)[0]}"
        for k, atom in enumerate(exact.atoms)
        if atom.label == "name" and k in used
    ]


def _matrix(written: Sequence[str], columns: int) -> str:
    rows = [" & ".join(written[k : k + columns]) for k in range(0, len(written), columns)]
    return r"\begin{bmatrix} " + r" \\ ".join(rows) + r" \end{bmatrix}"


def _entry_lines(
    symbol: str,
    places: Sequence[tuple[int, int]],
    written: Sequence[str],
    columns: int,
    *,
    symmetric: bool,
) -> list[str]:
    equal: dict[str, list[str]] = {}
    for (i, j), text in zip(places, written, strict=True):
        if text != "0" and not (symmetric and j < i):
            place = f"{i + 1}" if columns == 1 else f"{i + 1},{j + 1}"
            equal.setdefault(text, []).append(f"{symbol}_{{{place}}}")
    lines = [f"{' = '.join(entries)} &= {text}" for text, entries in equal.items()]
    return lines + _remark(symbol, "0" in written, symmetric=symmetric)


@dataclass(frozen=True)
class WrittenMatrix:
    """One matrix in LaTeX.

    Attributes:
        lines: Lines of an `aligned` environment.
        definitions: Lines that define what was given a name there.
        exact: What they were written from, if exact fractions are the shorter form.
    """

    lines: tuple[str, ...]
    definitions: tuple[str, ...]
    exact: ExactPart | None

    def __len__(self) -> int:
        """Characters of LaTeX."""
        return sum(map(len, self.lines)) + sum(map(len, self.definitions))


def write_matrix(
    symbol: str,
    tape: Tape,
    verticals: Verticals,
    names: Typeset,
    *,
    symmetric: bool = False,
    width: int = MATRIX_WIDTH,
) -> WrittenMatrix:
    """Write the first output of a tape by exact fractions or as it is computed: the shorter.

    Args:
        symbol: What it is called.
        tape: What it is.
        verticals: Unit quaternions, as `unit_quaternions` finds them.
        names: How the inputs of the tape are written.
        symmetric: Whether it is symmetric.
        width: Characters of LaTeX in a row, up to which it is written as a matrix.
    """
    writer = _Writer(tape, names)
    lines = writer.part(0, symbol, symmetric=symmetric, width=width)
    computed = WrittenMatrix(tuple(lines), tuple(writer.definitions()), None)
    found = exact_fractions(tape, verticals)
    if found is None:
        return computed
    lines = _fraction_lines(symbol, found, names, symmetric=symmetric, width=width)
    exact = WrittenMatrix(tuple(lines), tuple(_vertical_lines(found, names)), found)
    return exact if len(exact) <= len(computed) else computed


def _heading(equations: Equations, names: Typeset, *, all_speeds: bool) -> list[str]:
    def column(entries: Iterable[str]) -> str:
        return r"\begin{bmatrix} " + r" \\ ".join(entries) + r" \end{bmatrix}"

    first_kind, moved = is_first_kind(equations), equations.system.rheonomic
    nu = r"\mathbf{v}" if first_kind else r"\boldsymbol{\nu}"
    forces = r"\boldsymbol{\tau} + \boldsymbol{\gamma} + \boldsymbol{\delta}"
    if first_kind:
        forces = forces.replace(r"\boldsymbol", r"\tilde{\boldsymbol").replace("}", "}}")
        lines = [
            r"\tilde{\mathbf{I}}\,\dot{\mathbf{v}} + \tilde{\mathbf{C}}\,\mathbf{v} &= "
            rf"{forces} + \mathbf{{A}}^{{\mathsf{{T}}}} \boldsymbol{{\lambda}}",
            r"\mathbf{A}\,\dot{\mathbf{v}} &= "
            + (r"\dot{\mathbf{b}} " if moved else "")
            + r"- \dot{\mathbf{A}}\,\mathbf{v}",
        ]
    else:
        bias = rf"(\mathbf{{C}}{nu})" if moved else rf"\mathbf{{C}}\,{nu}"
        lines = [rf"\mathbf{{I}}\,\dot{{{nu}}} + {bias} &= {forces}"]
    speeds = names.nu
    if all_speeds:
        lines.append(rf"\mathbf{{v}} &= \boldsymbol{{\Theta}} \, {nu} = {column(names.nu)}")
        speeds = tuple(names.nu[k] for k in equations.system.independent)
    lines.append(rf"{nu} &= {column(speeds)}, \qquad \mathbf{{q}} = {column(names.q)}")
    if names.u:
        lines[-1] += rf", \qquad \mathbf{{u}} = {column(names.u)}"
    if first_kind:
        lines[-1] += rf", \qquad \boldsymbol{{\lambda}} \text{{ of }} {column(names.rows)}"
    return lines


# expressions -------------------------------------------------------------------------------------

RELATIONS = {"lt": "<", "le": r"\le", "eq": "=", "ne": r"\ne", "and": r"\land", "or": r"\lor"}


class _Writer:
    """Writes polynomials and their atoms as LaTeX."""

    def __init__(self, tape: Tape, names: Typeset) -> None:
        self.tape, self.names = tape, names
        self.polynomials = Polynomials(tape)
        self.atoms = self.polynomials.atoms

    @cached_property
    def terms(self) -> dict[int, str]:
        """Names of the sums and functions that are written once and referred to."""
        named: dict[int, str] = {}
        size: dict[int, int] = {}
        uses = self.polynomials.reachable
        for number in sorted(uses):
            atom = self.atoms[number]
            inner = [1 if a in named else size[a] for a in atom.members]
            size[number] = max(sum(inner), 1)
            shared = uses[number] > 1 and (atom.label == "sum" or size[number] > SHARED_FUNCTION)
            if shared or (atom.label == "sum" and size[number] > LONGEST_TERM):
                named[number] = f"{self.names.term}_{{{len(named) + 1}}}"
        return named

    # the lines

    def part(
        self, output: int, symbol: str, *, symmetric: bool, width: int = MATRIX_WIDTH
    ) -> list[str]:
        """One output of the tape, as a matrix if that is short, else entry by entry."""
        bare = symbol.strip("()")
        first = sum(port.size for port in self.tape.outputs[:output])
        rows, columns = (*self.tape.outputs[output].shape, 1, 1)[:2]
        places = [(i, j) for i in range(rows) for j in range(columns)]
        results = self.polynomials.results[first : first + rows * columns]
        written = {
            place: self.sum(frozen(poly)) for place, poly in zip(places, results, strict=True)
        }
        if all(text == "0" for text in written.values()):
            return [f"{bare} &= " + r"\mathbf{0}"] if written else []
        if len(written) == 1:
            return [f"{bare} &= {written[0, 0]}"]
        texts = [written[place] for place in places]
        widest = [max(map(len, texts[j::columns])) for j in range(columns)]
        if sum(widest) <= width and rows <= MATRIX_ROWS:
            return [f"{bare} &= {_matrix(texts, columns)}"]
        return _entry_lines(symbol, places, texts, columns, symmetric=symmetric)

    def definitions(self) -> list[str]:
        """The named terms, each after those it is made of."""
        return [f"{name} &= {self._write_out(number)}" for number, name in self.terms.items()]

    # the expressions

    def sum(self, poly: Frozen) -> str:
        """A polynomial, what all its terms share taken out."""
        if not poly:
            return "0"
        largest = max(abs(number) for _, number in poly)
        poly = tuple(term for term in poly if abs(term[1]) > UNSEEN * largest)
        number, shared = _common(poly)
        if len(poly) == 1 or (not shared and number == 1):
            return self._open_sum(poly)
        inner = tuple((multiply(m, _inverse(shared)), x / number) for m, x in poly)
        return self._product(number, shared, [rf"\left({self._open_sum(inner)}\right)"])

    def _open_sum(self, poly: Frozen) -> str:
        ordered = sorted(poly, key=lambda term: self._order(*term))
        lead = next((term for term in ordered if term[1] > 0), ordered[0])
        text = ""
        for monomial, number in [lead, *(term for term in ordered if term is not lead)]:
            piece = self._product(abs(number), monomial, [])
            joint = "-" if number < 0 else "+" if text else ""
            text += f" {joint} {piece}" if text else f"{joint}{piece}"
        return text

    def _order(self, monomial: Monomial, number: float) -> tuple[bool, bool, Monomial]:
        """Sort terms of inputs before named ones, numbers last."""
        return not monomial, any(atom in self.terms for atom, _ in monomial), monomial

    def _product(self, number: float, monomial: Monomial, last: list[str]) -> str:
        sign = "-" if number < 0 else ""
        ordered = sorted(monomial, key=lambda factor: self._rank(factor[0]))
        above = [self._power(atom, e) for atom, e in ordered if e > 0] + last
        below = [self._power(atom, -e) for atom, e in ordered if e < 0]
        factor = latex_number_near(abs(number))
        if factor != "1" or not above:  # 1 also stands for numbers that differ by rounding
            above = [factor, *above]
        if not below:
            return sign + THIN.join(above)
        over, under = (
            _unwrap(parts[0]) if len(parts) == 1 else THIN.join(parts) for parts in (above, below)
        )
        return rf"{sign}\frac{{{over}}}{{{under}}}"

    def _rank(self, atom: int) -> tuple[int, int]:
        """Parameters, then coordinates and their functions, then speeds, then sums."""
        label, argument = self.atoms[atom].label, self.atoms[atom].place[0]
        kind = (2, 5, 6, 1, 0)[argument] if label == "input" else 4 if label == "sum" else 3
        return kind, atom

    def _power(self, atom: int, exponent: int) -> str:
        text = self.atom(atom)
        label = "sum" if atom in self.terms else self.atoms[atom].label
        if label == "sum" and atom not in self.terms:
            text = rf"\left({text}\right)"
        if exponent == 1:
            return text
        if label == "sqrt" and exponent == 2:
            return text.removeprefix(r"\sqrt{").removesuffix("}").join((r"\left(", r"\right)"))
        if label in LATEX_FUNCTIONS:  # \sin^{2} x
            return text.replace(
                LATEX_FUNCTIONS[label], f"{LATEX_FUNCTIONS[label]}^{{{exponent}}}", 1
            )
        simple = label in ("input", "sum", "fabs")
        return (
            raised(text, f"^{{{exponent}}}") if simple else rf"\left({text}\right)^{{{exponent}}}"
        )

    def atom(self, number: int) -> str:
        """An atom by its name or written out, without brackets."""
        return self.terms[number] if number in self.terms else self._write_out(number)

    def _write_out(self, number: int) -> str:
        atom = self.atoms[number]
        if atom.label == "input":
            return self.names.vectors[atom.place[0]][atom.place[1]]
        arguments = [self.sum(poly) for poly in atom.arguments]
        match atom.label:
            case "sum":
                return arguments[0]
            case "sqrt":
                return rf"\sqrt{{{arguments[0]}}}"
            case "fabs":
                return rf"\left|{arguments[0]}\right|"
            case "pow":
                return rf"\left({arguments[0]}\right)^{{{arguments[1]}}}"
            case label if label in RELATIONS:
                return rf"\left[{arguments[0]} {RELATIONS[label]} {arguments[1]}\right]"
        names = LATEX_FUNCTIONS | LATEX_OPERATORS
        name = names.get(atom.label, rf"\operatorname{{{atom.label}}}")
        if len(arguments) == 1 and self._is_bare(atom.arguments[0]):
            return f"{name} {arguments[0]}"
        return rf"{name}\left({', '.join(arguments)}\right)"

    def _is_bare(self, poly: Frozen) -> bool:
        """Return whether it is one symbol."""
        ((monomial, number),) = poly if len(poly) == 1 else (((), 0.0),)
        if number != 1 or len(monomial) != 1 or monomial[0][1] != 1:
            return False
        return monomial[0][0] in self.terms or self.atoms[monomial[0][0]].label == "input"


def _unwrap(text: str) -> str:
    """Remove brackets if one pair encloses all of the text."""
    if not (text.startswith(r"\left(") and text.endswith(r"\right)")):
        return text
    inner = text[len(r"\left(") : -len(r"\right)")]
    depth = 0
    for token in re.findall(r"\\(?:left|right)(?![a-z])", inner):
        depth += 1 if token == r"\left" else -1
        if depth < 0:
            return text
    return inner


def _remark(symbol: str, zeros: bool, *, symmetric: bool) -> list[str]:
    remarks = [rf"{symbol}^{{\mathsf{{T}}}} = {symbol}"] if symmetric else []
    if zeros:
        remarks.append(rf"\text{{other entries of }} {symbol} \text{{ are zero}}")
    return ["& " + r", \quad ".join(remarks)] if remarks else []


def _common(poly: Frozen) -> tuple[float, Monomial]:
    """Number and factors that all terms of a polynomial share."""
    shared = dict(poly[0][0])
    for monomial, _ in poly[1:]:
        own = dict(monomial)
        shared = {a: min(e, own[a]) for a, e in shared.items() if a in own and e * own[a] > 0}
    sizes = [abs(number) for _, number in poly]
    number = sizes[0] if max(sizes) - min(sizes) <= ROUNDING * sizes[0] else 1.0
    return number, tuple(sorted(shared.items()))


def _inverse(monomial: Monomial) -> Monomial:
    return tuple((atom, -e) for atom, e in monomial)
