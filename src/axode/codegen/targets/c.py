"""Tapes as C99: a header, a source and a self-test that need only a C compiler.

The code allocates nothing, calls only ``math.h`` and keeps no state. Arrays are
row-major. Every input is read before any output is written, so an output may
be the same array as an input.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np

from axode.codegen.tape.operations import ARITY, LEAVES, Kind
from axode.codegen.tape.tape import Port, Tape
from axode.disk.atomic import write_atomically
from axode.errors import InvalidArgument, shortened

# Samples that the self-test carries, and the error it accepts: a part of the result, and a multiple
# of what one rounding of every input does to it. Other compilers and mathematical libraries round
# differently, and an ill-conditioned sample shows it.
SELF_TEST_SAMPLES = 3
SELF_TEST_CANDIDATES = 64
SELF_TEST_TOLERANCE = 1e-12
SELF_TEST_ROUNDINGS = 32
EPSILON = float(np.finfo(float).eps)

_INFIX = {Kind.ADD: "+", Kind.SUB: "-", Kind.MUL: "*", Kind.DIV: "/"}
_COMPARE = {Kind.LT: "<", Kind.LE: "<=", Kind.EQ: "==", Kind.NE: "!="}
_LOGIC = {Kind.AND: "&&", Kind.OR: "||"}

# C's own functions would let a NaN vanish, or do not exist.
_HELPERS = {
    Kind.FMIN: "static double axode_fmin(double a, double b)"
    " { return a != a ? a : (a < b ? a : b); }",
    Kind.FMAX: "static double axode_fmax(double a, double b)"
    " { return a != a ? a : (a > b ? a : b); }",
    Kind.HYPOT: "static double axode_hypot(double a, double b)"
    " { return a != a || b != b ? a + b : hypot(a, b); }",
    Kind.SIGN: "static double axode_sign(double a)"
    " { return a > 0.0 ? 1.0 : (a < 0.0 ? -1.0 : a); }",
}

_KEYWORDS = """auto break case char const continue default do double else enum extern float for
goto if inline int long register restrict return short signed sizeof static struct switch typedef
union unsigned void volatile while main"""
# Names of math.h that a model may want for itself.
_LIBRARY = "gamma lgamma tgamma j0 j1 jn y0 y1 yn signgam scalb round trunc rint exp2 log2 log10"
_NONE: Mapping[str, Iterable[str]] = MappingProxyType({})
_RESERVED = frozenset((*_KEYWORDS.split(), *_LIBRARY.split(), *(kind.label for kind in Kind)))


@dataclass(frozen=True)
class CCode:
    """Texts of the C files of one function.

    Attributes:
        name: C name of the function and of the files.
        header: ``name.h``.
        source: ``name.c``.
        self_test: ``name_test.c``, a program that returns 0 if the function is right.
    """

    name: str
    header: str
    source: str
    self_test: str

    def write(self, directory: str | Path) -> tuple[Path, ...]:
        """Write the three files and returns their paths."""
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        texts = {
            f"{self.name}.h": self.header,
            f"{self.name}.c": self.source,
            f"{self.name}_test.c": self.self_test,
        }
        for file, text in texts.items():
            write_atomically(folder / file, text.encode())
        return tuple(folder / file for file in texts)


def c_code(tape: Tape, prefix: str = "") -> CCode:
    """C99 of a tape, the function's name with `prefix` before it."""
    name = _identifier(_check_prefix(prefix) + tape.name, set())
    arguments = _arguments(tape, name)
    return CCode(
        name=name,
        header=_header(tape, name, arguments),
        source=_source(tape, name, arguments),
        self_test=_self_test(tape, name),
    )


def c_library(
    stem: str,
    tapes: Iterable[Tape],
    title: str = "",
    entries: Mapping[str, Iterable[str]] = _NONE,
    prefix: str | None = None,
) -> tuple[str, str]:
    """Several tapes as one header and one source, `stem`.h and `stem`.c.

    Args:
        stem: Name of both files, without ending.
        tapes: What they hold, one function per tape.
        title: First line of the header.
        entries: What the numbers of an array are, by the array's name, for the header.
        prefix: Before the functions' names; `stem_` unless given, so that files link together.
    """
    if not stem.isprintable() or any(c in stem for c in '"\\?'):
        raise InvalidArgument(
            f"{stem!r} cannot be written in an #include of C; name the file without quotes, "
            "backslashes and question marks"
        )
    taken: set[str] = set()
    before = f"{stem}_" if prefix is None else _check_prefix(prefix)
    named = [(tape, _identifier(before + tape.name, taken)) for tape in tapes]
    made = [(tape, name, _arguments(tape, name)) for tape, name in named]
    guard = f"AXODE_{_identifier(stem, set()).upper()}_H"
    header = _GUARDED.format(
        comment="\n".join([*_legend(title, entries), *(_comment(*item) for item in made)]),
        guard=guard,
        signatures="\n".join(f"{_signature(*item)};" for item in made),
    )
    source = [
        f'#include "{stem}.h"\n',
        "#include <math.h>\n",
        *_helpers(t for t, _, _ in made),
        *(_definition(*item) for item in made),
    ]
    return header, "\n".join(source)


def _legend(title: str, entries: Mapping[str, Iterable[str]]) -> list[str]:
    """A comment that names the entries of the arrays, with the place of each."""
    lines = [f"{title or 'Arrays'}, the arrays' entries in order."]
    for array, names in entries.items():
        lines += [f"  {array}[{place}]  {name}" for place, name in enumerate(names)]
    return [_as_comment(lines)] if entries else []


def _as_comment(lines: Iterable[str]) -> str:
    """Lines as one comment of C, whatever they hold: the only place that writes comments."""
    first, *rest = map(_escape, lines)
    return "\n".join([f"/* {first}", *(f" * {line}".rstrip() for line in rest), " */"])


def _escape(text: str) -> str:
    """Text that neither ends a comment, nor begins one, nor joins lines, nor hides anything."""
    plain = "".join(c if c.isprintable() and c != "\\" else f"<U+{ord(c):04X}>" for c in text)
    return re.sub(r"\*(?=/)|/(?=\*)|\?(?=\?)", r"\g<0> ", plain).rstrip()


def _check_prefix(prefix: str) -> str:
    """A prefix that may begin a C name, or an error."""
    if not isinstance(prefix, str) or (
        prefix and not re.fullmatch(r"[A-Za-z_]\w*", prefix, re.ASCII)
    ):
        raise InvalidArgument(
            f"prefix: {shortened(prefix)} cannot begin a name in C; letters, digits and _ can, as "
            "in robot_"
        )
    return prefix


def _identifier(name: str, taken: set[str]) -> str:
    """A C identifier for a name such as ``left.torque``, different from those taken."""
    base = re.sub(r"\W", "_", name, flags=re.ASCII) or "unnamed"
    if base[0].isdigit() or base in _RESERVED or re.fullmatch(r"v\d+", base):
        base = f"_{base}" if base[0].isdigit() else f"{base}_"
    chosen, count = base, 2
    while chosen in taken:
        chosen, count = f"{base}_{count}", count + 1
    taken.add(chosen)
    return chosen


def _arguments(tape: Tape, name: str) -> list[str]:
    """C names of all inputs, then all outputs; one named as its function is its result."""
    taken = {name}
    outputs = ("result" if port.name == tape.name else port.name for port in tape.outputs)
    return [_identifier(n, taken) for n in (*(port.name for port in tape.inputs), *outputs)]


def _signature(tape: Tape, name: str, arguments: list[str]) -> str:
    count = len(tape.inputs)
    typed = [f"const double *{a}" for a in arguments[:count]]
    typed += [f"double *{a}" for a in arguments[count:]]
    return f"void {name}({', '.join(typed) or 'void'})"


def _describe(port: Port, argument: str) -> str:
    shape = " x ".join(map(str, port.shape)) or "1"
    alias = f" ({port.name})" if argument != port.name else ""
    return f"  {argument}[{shape}]{alias}"


def _comment(tape: Tape, name: str, arguments: list[str]) -> str:
    count = len(tape.inputs)
    kinds = ", ".join(f"{n} {kind}" for kind, n in tape.operations.items())
    return _as_comment(
        [
            f"{name}: {tape.n_operations} operations ({kinds or 'none'}).",
            "",
            "Inputs, row-major doubles:",
            *(_describe(p, a) for p, a in zip(tape.inputs, arguments[:count], strict=True)),
            "Outputs, row-major doubles:",
            *(_describe(p, a) for p, a in zip(tape.outputs, arguments[count:], strict=True)),
            "",
            "Generated by Axode. No allocation, no state; an output may be an input's array.",
        ]
    )


_GUARDED = """{comment}
#ifndef {guard}
#define {guard}

#ifdef __cplusplus
extern "C" {{
#endif

{signatures}

#ifdef __cplusplus
}}
#endif

#endif
"""


def _header(tape: Tape, name: str, arguments: list[str]) -> str:
    return _GUARDED.format(
        comment=_comment(tape, name, arguments),
        guard=f"AXODE_{name.upper()}_H",
        signatures=f"{_signature(tape, name, arguments)};",
    )


def _source(tape: Tape, name: str, arguments: list[str]) -> str:
    return "\n".join(
        [
            f'#include "{name}.h"\n',
            "#include <math.h>\n",
            *_helpers([tape]),
            _definition(tape, name, arguments),
        ]
    )


def _helpers(tapes: Iterable[Tape]) -> list[str]:
    used = {Kind(k) for tape in tapes for k in np.unique(tape.kinds).tolist()}
    return [f"{text}\n" for kind, text in _HELPERS.items() if kind in used]


def _definition(tape: Tape, name: str, arguments: list[str]) -> str:
    first = len(tape.inputs)
    body, place = _statements(tape, arguments), 0
    for port, argument in zip(tape.outputs, arguments[first:], strict=True):
        for element in range(port.size):
            value = _value(tape, int(tape.results[place + element]))
            body.append(f"{argument}[{element}] = {value};")
        place += port.size
    lines = "\n".join(f"    {line}" for line in body)
    unused = "".join(f"    (void){a};\n" for a in arguments)
    return f"{_signature(tape, name, arguments)}\n{{\n{unused}{lines}\n}}\n"


def _statements(tape: Tape, arguments: list[str]) -> list[str]:
    statements = []
    for number, (code, row) in enumerate(
        zip(tape.kinds.tolist(), tape.operands.tolist(), strict=True)
    ):
        kind = Kind(code)
        if kind == Kind.INPUT:
            statements.append(f"const double v{number} = {arguments[row[0]]}[{row[1]}];")
        elif kind not in LEAVES:
            values = [_value(tape, v) for v in row[: ARITY[kind]]]
            statements.append(f"const double v{number} = {_expression(kind, values)};")
    return statements


def _value(tape: Tape, number: int) -> str:
    if tape.kinds[number] == Kind.CONSTANT:
        return _literal(float(tape.constants[tape.operands[number, 0]]))
    return f"v{number}"


def _literal(value: float) -> str:
    """A C constant that reads back as the same double."""
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "(-INFINITY)"
    text = repr(value)
    return f"({text})" if text.startswith("-") else text


def _expression(kind: Kind, values: list[str]) -> str:
    if kind in _INFIX:
        return f"{values[0]} {_INFIX[kind]} {values[1]}"
    if kind in _COMPARE:
        return f"(double)({values[0]} {_COMPARE[kind]} {values[1]})"
    if kind in _LOGIC:
        return f"(double)({values[0]} != 0.0 {_LOGIC[kind]} {values[1]} != 0.0)"
    if kind == Kind.NOT:
        return f"(double)({values[0]} == 0.0)"
    if kind == Kind.NEG:
        return f"-{values[0]}"
    if kind == Kind.SELECT:
        return f"{values[0]} != 0.0 ? {values[1]} : {values[2]}"
    prefix = "axode_" if kind in _HELPERS else ""
    return f"{prefix}{kind.label}({', '.join(values)})"


def _self_test(tape: Tape, name: str) -> str:
    """A program with a few samples and the results they must give."""
    inputs, outputs, accepted = _samples(tape)
    given = [_table(f"in{k}", array) for k, array in enumerate(inputs)]
    expected = [_table(f"expected{k}", array) for k, array in enumerate(outputs)]
    expected += [_table(f"accepted{k}", array) for k, array in enumerate(accepted)]
    sizes = [max(1, port.size) for port in tape.outputs]
    results = [f"    double out{k}[{size}];" for k, size in enumerate(sizes)]
    passed = [f"in{k}[s]" for k in range(len(inputs))] + [f"out{k}" for k in range(len(sizes))]
    checks = [
        f"        for (i = 0; i < {port.size}; ++i)"
        f" bad += differs(out{k}[i], expected{k}[s][i], accepted{k}[s][i]);"
        for k, port in enumerate(tape.outputs)
    ]
    return "\n".join(
        [
            f"/* Self-test of {name}: prints the number of wrong results and returns 0 if none. */",
            f'#include "{name}.h"\n',
            "#include <math.h>",
            "#include <stdio.h>\n",
            *given,
            *expected,
            "static int differs(double got, double expected, double accepted)",
            "{",
            "    if (expected != expected || got == expected)"
            " return !(got == expected || got != got);",
            "    return !(fabs(got - expected) <= accepted);",
            "}\n",
            "int main(void)",
            "{",
            "    int s, i, bad = 0;",
            *results,
            f"    for (s = 0; s < {SELF_TEST_SAMPLES}; ++s) {{",
            f"        {name}({', '.join(passed)});",
            *checks,
            "    }",
            "    (void)i;",
            f'    printf("{name}: %d wrong\\n", bad);',
            "    return bad != 0;",
            "}\n",
        ]
    )


def _samples(tape: Tape) -> tuple[list[np.ndarray], list[np.ndarray], list[np.ndarray]]:
    """Inputs of the self-test, their results, and the errors that rounding explains.

    Of many random samples the best conditioned are taken: at others another compiler's rounding
    would be indistinguishable from a mistake.
    """
    if not tape.inputs:
        results = list(_constant_outputs(tape))
        return [], results, [SELF_TEST_TOLERANCE * (1.0 + np.abs(array)) for array in results]
    rng = np.random.default_rng(0)
    inputs = [rng.normal(size=(SELF_TEST_CANDIDATES, *port.shape)) for port in tape.inputs]
    results = list(tape.evaluate(*inputs))
    accepted = [SELF_TEST_TOLERANCE * (1.0 + np.abs(array)) for array in results]
    worst = np.zeros(SELF_TEST_CANDIDATES)
    for _ in range(4):
        rounded = [x * (1.0 + EPSILON * rng.choice((-1.0, 1.0), size=x.shape)) for x in inputs]
        for error, moved, array in zip(accepted, tape.evaluate(*rounded), results, strict=True):
            with np.errstate(invalid="ignore"):  # of samples with infinite results, taken last
                change = SELF_TEST_ROUNDINGS * np.abs(moved - array)
                relative = np.where(np.isnan(array), 0.0, change / (1.0 + np.abs(array)))
            worst = np.maximum(worst, relative.reshape(SELF_TEST_CANDIDATES, -1).max(1, initial=0))
            np.fmax(error, change, out=error)
    best = np.argsort(worst, kind="stable")[:SELF_TEST_SAMPLES]
    return [x[best] for x in inputs], [x[best] for x in results], [x[best] for x in accepted]


def _constant_outputs(tape: Tape) -> tuple[np.ndarray, ...]:
    """Results of a tape without inputs, repeated for every sample."""
    return tuple(
        np.broadcast_to(value, (SELF_TEST_SAMPLES, *value.shape)) for value in tape.evaluate()
    )


def _table(name: str, array: np.ndarray) -> str:
    rows = array.reshape(SELF_TEST_SAMPLES, -1)
    width = max(1, rows.shape[1])
    text = ",\n".join(
        "    {" + (", ".join(map(_literal, row)) or "0.0") + "}" for row in rows.tolist()
    )
    return f"static const double {name}[{SELF_TEST_SAMPLES}][{width}] = {{\n{text}\n}};\n"
