r"""Equations for readers in LaTeX.

They start from the tape, where every repeated term stands once. LaTeX gives a name to what is used
more than once or would make a line too long, and lists these names in the order in which they can
be computed; the rest is written out in place.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from axode.names import as_names
from axode.numerics.tolerances import SUM_ROUNDING
from axode.printing.latex_names import Typeset, typeset_names
from axode.printing.layout import ZERO, Product, Sum, positive_first, rank
from axode.printing.parts import (
    PRINTED,
    ExactPart,
    Verticals,
    default_parts,
    exact_fractions,
    is_first_kind,
    part_of,
    tape_of,
    world_fractions,
)
from axode.printing.parts import unit_quaternions as unit_quaternions
from axode.printing.polynomials import (
    Frozen,
    Monomial,
    Polynomials,
    content,
    divided,
    frozen,
    members,
)
from axode.printing.writers import LatexWriter

if TYPE_CHECKING:
    from axode.codegen.tape.tape import Tape
    from axode.symbolic.equations import Equations

LONGEST_TERM = 14  # symbols in a sum before it gets a name of its own
SHARED_FUNCTION = 2  # symbols in a function used twice before it gets one
MATRIX_WIDTH = 240  # characters of LaTeX in a row, up to which a matrix is written as one
MATRIX_ROWS = 12

SYMMETRIC = ("I", "I_tree")
ONE = Product(Fraction(1), ())
EXACT_WORTH = 1.3  # times the symbols of what is computed, for what has no terms that cancel
LONG = 1000  # characters of a projection, above which what it is projected from may be shorter
UNREAD = re.compile(
    r"_\{[^{}]*\}|\\,|"
    r"\\(?:left|right|dot|ddot|tilde|mathbf|boldsymbol|mathrm|[td]?frac)"
)
ANGLE = re.compile(r"(\\(?:sin|cos)(?:\^\{\d\})?)\\left\([^()]*\\right\)")
SYMBOL = re.compile(r"\\?[A-Za-z]+|\d+(?:\.\d+)?|[-+=()|^]")
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
    parts = as_names(parts)
    for part in parts:
        part_of(part, PRINTED)
    plain = _aligned(equations, parts)
    bulky = [part for part in parts if part in PROJECTIONS]
    system = equations.system
    if (
        not bulky
        or is_first_kind(equations)
        or system.is_tree
        or system.rheonomic
        or len(plain) < LONG * len(bulky)
    ):
        return plain
    needed = [name for part in bulky for name in PROJECTIONS[part][1]]
    others = [part for part in parts if part not in PROJECTIONS]
    projected = _aligned(equations, list(dict.fromkeys([*others, *needed])), bulky)
    return min((plain, projected), key=count_symbols)


def _aligned(equations: Equations, parts: Sequence[str], projected: Sequence[str] = ()) -> str:
    """Write parts out; those of all speeds, and laws that project them, if any are projected."""
    all_speeds = bool(projected)
    names = typeset_names(equations, all_speeds=all_speeds)
    lines: dict[str, Sequence[str]] = {}
    verticals: list[str] = []
    for part in parts:
        tape = tape_of(equations, [part], all_speeds=all_speeds)
        symbol, symmetric = PRINTED[part].symbol, part in SYMMETRIC
        made = write_matrix(
            symbol,
            tape,
            unit_quaternions(equations),
            names,
            symmetric=symmetric,
            other=world_fractions(equations, part, tape, all_speeds=all_speeds),
        )
        if made.exact is not None:
            lines[part] = made.lines
            verticals += made.definitions
    left = [part for part in parts if part not in lines]
    writer = ComputedWriter.of(tape_of(equations, left, all_speeds=all_speeds), names)
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


def _fraction_lines(
    symbol: str, found: ExactPart, names: Typeset, *, symmetric: bool, width: int = MATRIX_WIDTH
) -> list[str]:
    writer = LatexWriter(found.exact.atoms, found.layout, names.vectors, names.vertical)
    shared, entries = found.layout.matrix(found.exact.results)
    written = [writer.write(found.layout.ratio(value)) for value in found.exact.results]
    factor = "" if shared == ONE else writer.product(shared) + writer.times
    inner = [writer.write(entry) for entry in entries] if factor else written
    columns = found.shape[1]
    return _matrix_lines(symbol, written, columns, factor, inner, symmetric=symmetric, width=width)


def _matrix_lines(
    symbol: str,
    written: Sequence[str],
    columns: int,
    factor: str = "",
    inner: Sequence[str] = (),
    *,
    symmetric: bool,
    width: int,
) -> list[str]:
    """Lines of one part, as a matrix if that is short, else entry by entry.

    Args:
        symbol: What it is called.
        written: Its entries, row by row.
        columns: How many it has.
        factor, inner: What stands before the matrix, and the entries after it.
        symmetric: Whether it is symmetric.
        width: Characters in a row, up to which it is written as a matrix.
    """
    bare = symbol.strip("()")
    if all(text == "0" for text in written):
        return [f"{bare} &= " + r"\mathbf{0}"] if written else []
    if len(written) == 1:
        return [f"{bare} &= {written[0]}"]
    entries = inner or written
    widest = [max(map(len, entries[j::columns])) for j in range(columns)]
    if sum(widest) <= width and len(written) <= MATRIX_ROWS * columns:
        return [f"{bare} &= {factor}{_matrix(entries, columns)}"]
    return _entry_lines(symbol, written, columns, symmetric=symmetric)


def _vertical_lines(found: ExactPart, names: Typeset) -> list[str]:
    """Definitions of the components of the vertical that are used."""
    exact = found.exact
    writer = LatexWriter(exact.atoms, found.layout, names.vectors, names.vertical)
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
    symbol: str, written: Sequence[str], columns: int, *, symmetric: bool
) -> list[str]:
    equal: dict[str, list[str]] = {}
    for k, text in enumerate(written):
        i, j = divmod(k, columns)
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

    @property
    def symbols(self) -> int:
        """Symbols that are read."""
        return sum(map(count_symbols, (*self.lines, *self.definitions)))


def write_matrix(
    symbol: str,
    tape: Tape,
    verticals: Verticals,
    names: Typeset,
    *,
    symmetric: bool = False,
    width: int = MATRIX_WIDTH,
    other: ExactPart | None = None,
) -> WrittenMatrix:
    """Write the first output of a tape by exact fractions or as it is computed: the shorter.

    Args:
        symbol: What it is called.
        tape: What it is.
        verticals: Unit quaternions, as `unit_quaternions` finds them.
        names: How the inputs of the tape are written.
        symmetric: Whether it is symmetric.
        width: Characters of LaTeX in a row, up to which it is written as a matrix.
        other: Exact fractions that were found in another way.
    """
    writer = ComputedWriter.of(tape, names)
    lines = writer.part(0, symbol, symmetric=symmetric, width=width)
    computed = WrittenMatrix(tuple(lines), tuple(writer.definitions()), None)
    known = [x for x in (exact_fractions(tape, verticals), other) if x is not None]
    if not known:
        return computed
    found = min(known, key=lambda x: x.terms)
    lines = _fraction_lines(symbol, found, names, symmetric=symmetric, width=width)
    exact = WrittenMatrix(tuple(lines), tuple(_vertical_lines(found, names)), found)
    return exact if exact.symbols <= EXACT_WORTH * computed.symbols else computed


def count_symbols(text: str) -> int:
    """Count what a reader reads: letters with subscripts, angles, numbers, signs and brackets."""
    return len(SYMBOL.findall(UNREAD.sub("", ANGLE.sub(r"\1 x", text))))


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


@dataclass(frozen=True, kw_only=True)
class ComputedWriter(LatexWriter):
    """Writes polynomials as they are computed; sums and functions used again have a name.

    Attributes:
        polynomials: What was computed.
        tape: How it was.
        term: Letter of these names.
    """

    polynomials: Polynomials
    tape: Tape
    term: str

    @classmethod
    def of(cls, tape: Tape, names: Typeset) -> ComputedWriter:
        """Return the writer of a tape whose inputs have these names."""
        made = Polynomials(tape)
        return cls(
            made.atoms,
            None,
            names.vectors,
            names.vertical,
            polynomials=made,
            tape=tape,
            term=names.term,
        )

    @cached_property
    def terms(self) -> dict[int, str]:
        """Names of the sums and functions that are written once and referred to."""
        named: dict[int, str] = {}
        size: dict[int, int] = {}
        uses = self.polynomials.reachable
        for number in sorted(uses):
            atom = self.atoms[number]
            inner = [1 if a in named else size[a] for a in members(atom)]
            size[number] = max(sum(inner), 1)
            shared = uses[number] > 1 and (atom.label == "sum" or size[number] > SHARED_FUNCTION)
            if shared or (atom.label == "sum" and size[number] > LONGEST_TERM):
                named[number] = f"{self.term}_{{{len(named) + 1}}}"
        return named

    def part(
        self, output: int, symbol: str, *, symmetric: bool, width: int = MATRIX_WIDTH
    ) -> list[str]:
        """One output of the tape, as a matrix if that is short, else entry by entry."""
        first = sum(port.size for port in self.tape.outputs[:output])
        rows, columns = (*self.tape.outputs[output].shape, 1, 1)[:2]
        results = self.polynomials.results[first : first + rows * columns]
        written = [self.write(self.node(frozen(poly))) for poly in results]
        return _matrix_lines(symbol, written, columns, symmetric=symmetric, width=width)

    def definitions(self) -> list[str]:
        """The named terms, each after those it is made of."""
        return [f"{name} &= {self.written_out(k)}" for k, name in self.terms.items()]

    def node(self, poly: Frozen) -> Product | Sum:
        """A polynomial, what its terms share taken out of all and of some of them."""
        largest = max((abs(number) for _, number in poly), default=0)
        poly = tuple(term for term in poly if abs(term[1]) > SUM_ROUNDING * largest)
        if len(poly) < 2:
            return self._product(poly[0][1], poly[0][0]) if poly else ZERO
        number, shared = content(poly)
        total = Sum(positive_first(self._collected(divided(poly, number, shared))))
        return total if number == 1 and not shared else self._product(number, shared, total)

    def _product(self, number: Fraction, monomial: Monomial, *sums: Sum) -> Product:
        ordered = sorted(monomial, key=lambda factor: rank(self.atoms, factor[0]))
        factors = ((self._opened(k), e) for k, e in ordered)
        return Product(number, (*factors, *((total, 1) for total in sums)))

    def _opened(self, k: int) -> int | Sum:
        """A sum that has no name in full."""
        atom = self.atoms[k]
        if atom.label != "sum" or k in self.terms:
            return k
        node = self.node(atom.arguments[0])
        return node if isinstance(node, Sum) else Sum((node,))

    def _collected(self, poly: Frozen) -> list[Product]:
        """Terms of a sum; those that share a factor, or a sum of factors, together."""
        count = Counter(atom for monomial, _ in poly for atom, e in monomial if e > 0)
        atom, most = min(count.items(), key=lambda item: (-item[1], item[0]), default=(0, 0))
        if most < 2:
            ordered = sorted(poly, key=lambda term: self._order(term[0]))
            return [self._product(number, monomial) for monomial, number in ordered]
        some = tuple(
            term for term in poly if (atom, 1) in term[0] or dict(term[0]).get(atom, 0) > 1
        )
        rest = tuple(term for term in poly if term not in some)
        number, shared = content(some)
        inner = Sum(positive_first(self._collected(divided(some, number, shared))))
        own = self._product(number, shared)
        others = self._collected(rest)
        for k, other in enumerate(others):
            if other.factors and other.factors[-1] == (inner, 1):
                match Product(other.number, other.factors[:-1]):
                    case Product(number=1, factors=((Sum(terms=terms), 1),)):
                        pass
                    case term:
                        terms = (term,)
                both = Sum(positive_first([own, *terms]))
                return [
                    *others[:k],
                    *others[k + 1 :],
                    Product(Fraction(1), ((both, 1), (inner, 1))),
                ]
        return [*others, Product(own.number, (*own.factors, (inner, 1)))]

    def _order(self, monomial: Monomial) -> tuple[bool, bool, list[tuple[int, int]]]:
        """Sort terms of inputs before named ones, numbers last."""
        named = any(atom in self.terms for atom, _ in monomial)
        return not monomial, named, sorted(rank(self.atoms, atom) for atom, _ in monomial)

    def is_symbol(self, k: int) -> bool:
        """Return whether an exponent may follow without brackets."""
        return k in self.terms or super().is_symbol(k)

    def atom(self, k: int) -> str:
        """Return an atom by its name or written out."""
        return self.terms[k] if k in self.terms else self.written_out(k)

    def written_out(self, k: int) -> str:
        """Write what an atom is."""
        atom = self.atoms[k]
        if atom.label in ("input", "root", "pi"):
            return super().atom(k)
        nodes = [self.node(poly) for poly in atom.arguments]
        arguments = [self.write(node) for node in nodes]
        if atom.label == "sum":
            return arguments[0]
        match nodes:
            case [Product(number=1, factors=((int() as only, 1),))]:
                return self.function(atom.label, arguments, single=self.is_symbol(only))
        return self.function(atom.label, arguments)


def _remark(symbol: str, zeros: bool, *, symmetric: bool) -> list[str]:
    remarks = [rf"{symbol}^{{\mathsf{{T}}}} = {symbol}"] if symmetric else []
    if zeros:
        remarks.append(rf"\text{{other entries of }} {symbol} \text{{ are zero}}")
    return ["& " + r", \quad ".join(remarks)] if remarks else []
