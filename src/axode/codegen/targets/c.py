"""Tapes as C99: a header, a source and a self-test that need only a C compiler.

The code allocates nothing, calls only ``math.h`` and keeps no state. Arrays are
row-major. Every input is read before any output is written, so an output may
be the same array as an input. All arithmetic is in double or all in float.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from axode.codegen.tape.operations import ARITY, LEAVES, Array, Kind
from axode.codegen.tape.rounding_bounds import (
    RoundedSamples,
    round_constant,
    round_numbers,
    rounding_bounds,
)
from axode.codegen.tape.tape import Port, Tape
from axode.disk.atomic import write_atomically
from axode.errors import InvalidArgument, shortened

SAMPLES = 3
CANDIDATES = 64
# Bounds are of first order, and the reference is rounded as well.
ACCEPTED_BOUNDS = 2.0
# Relative bound beyond which first order says nothing, and a sample is not used.
LARGEST_BOUND = 0.1


@dataclass(frozen=True)
class FunctionCheck:
    """A function, samples of its arguments, and what it must give there.

    Attributes:
        name: C name of the function.
        inputs: Arguments, each with samples along the first axis.
        outputs: Results, likewise.
        accepted: Errors that are accepted, of the shape of the results.
        statements: C statements that compute `out0`, `out1`, ... of sample `s` from `in0[s]`, ...;
            the call of the function unless given. They may count up `wrong`.
    """

    name: str
    inputs: Sequence[Array]
    outputs: Sequence[Array]
    accepted: Sequence[Array]
    statements: tuple[str, ...] = ()


def check_tape(tape: Tape, name: str, precision: str) -> FunctionCheck:
    """Check of a tape at the best conditioned of some random samples.

    Args:
        tape: What the function computes.
        name: C name of the function.
        precision: "float64" or "float32".
    """
    if not tape.inputs:
        results = [np.repeat(x[np.newaxis], SAMPLES, 0) for x in tape.evaluate()]
        written = [_written_error(x, precision) for x in results]
        return FunctionCheck(name, [], results, written)
    rng = np.random.default_rng(0)
    drawn = [rng.normal(size=(CANDIDATES, *port.shape)) for port in tape.inputs]
    return check_samples(name, rounding_bounds(tape, drawn, precision), precision, SAMPLES, 0.0)


def check_samples(
    name: str,
    samples: RoundedSamples,
    precision: str,
    count: int,
    spread: float,
    statements: tuple[str, ...] = (),
) -> FunctionCheck:
    """Check of a function at some of given samples.

    Args:
        name: C name of the function.
        samples: Samples to choose from.
        precision: "float64" or "float32".
        count: How many are chosen.
        spread: 0 takes the best conditioned samples, 1 samples of all kinds.
        statements: See `FunctionCheck`.
    """
    relative = samples.relative(samples.bounds)
    usable = int(np.count_nonzero(relative < LARGEST_BOUND))
    last = min(max(count, int(spread * usable)), len(relative))
    chosen = np.argsort(relative, kind="stable")[np.linspace(0, last - 1, count).astype(int)]
    accepted = [
        ACCEPTED_BOUNDS * bound[chosen] + _written_error(result[chosen], precision)
        for result, bound in zip(samples.results, samples.bounds, strict=True)
    ]
    inputs, outputs = ([x[chosen] for x in side] for side in (samples.inputs, samples.results))
    return FunctionCheck(name, inputs, outputs, accepted, statements)


def _written_error(array: Array, precision: str) -> Array:
    """What writing numbers in a precision changes."""
    finite = np.where(np.isfinite(array), array, 0.0)
    return np.abs(finite - round_numbers(finite, precision))


def self_test(header: str, checks: Sequence[FunctionCheck], numbers: CNumbers) -> str:
    """Program that prints how many results of each function are wrong, and returns 0 if none.

    Other compilers contract products and sums, other mathematical libraries round their functions
    differently. What that can do is bounded for every sample by `rounding_bounds`.

    Args:
        header: Name of the header that declares the functions, without ending.
        checks: What is checked.
        numbers: Type of all numbers.
    """
    tests = [f"test_{k}" for k in range(len(checks))]
    return "\n".join(
        [
            f"/* Self-test of {header}: prints how many results are wrong, returns 0 if none. */",
            f'#include "{header}.h"\n',
            "#include <math.h>",
            "#include <stdio.h>\n",
            _DIFFERS.replace("REAL", numbers.type)
            .replace("HUNDRED", numbers.literal(100.0))
            .replace("MANY", numbers.literal(1e6))
            .replace("ZERO", numbers.literal(0.0)),
            *(_test(name, check, numbers) for name, check in zip(tests, checks, strict=True)),
            "int main(void)",
            "{",
            "    int wrong = 0;",
            *(f"    wrong += {name}();" for name in tests),
            "    return wrong != 0;",
            "}\n",
        ]
    )


_DIFFERS = """static int differs(REAL got, REAL expected, REAL accepted, REAL *worst)
{
    const REAL error = got > expected ? got - expected : expected - got;
    if (expected != expected || got == expected) return !(got == expected || got != got);
    if (accepted > ZERO && error > *worst * accepted) *worst = error / accepted;
    return !(error <= accepted);
}

static int report(const char *name, int wrong, REAL worst)
{
    const int part = (int)(worst < MANY ? worst * HUNDRED : MANY);
    printf("%s: %d wrong, largest error %d %% of what rounding explains\\n", name, wrong, part);
    return wrong;
}
"""


def _test(name: str, check: FunctionCheck, numbers: CNumbers) -> str:
    """A function that returns how many results are wrong."""
    count = len(check.outputs[0]) if check.outputs else 0
    tables = {
        **{f"in{k}": array for k, array in enumerate(check.inputs)},
        **{f"expected{k}": array for k, array in enumerate(check.outputs)},
        **{f"accepted{k}": array for k, array in enumerate(check.accepted)},
    }
    sizes = [array[0].size if len(array) else 0 for array in check.outputs]
    passed = [f"in{k}[s]" for k in range(len(check.inputs))]
    passed += [f"out{k}" for k in range(len(sizes))]
    call = check.statements or (f"{check.name}({', '.join(passed)});",)
    used = set(re.findall(r"\w+", " ".join(call)))
    tables = {k: v for k, v in tables.items() if not k.startswith("in") or k in used}
    lines = [
        f"static int {name}(void)",
        "{",
        *(_table(label, array, numbers) for label, array in tables.items()),
        *(f"    {numbers.type} out{k}[{max(1, size)}];" for k, size in enumerate(sizes)),
        f"    {numbers.type} worst = {numbers.literal(0.0)};",
        "    int s, i, wrong = 0;",
        f"    for (s = 0; s < {count}; ++s) {{",
        *(f"        {statement}" for statement in call),
        *(
            f"        for (i = 0; i < {size}; ++i) wrong +="
            f" differs(out{k}[i], expected{k}[s][i], accepted{k}[s][i], &worst);"
            for k, size in enumerate(sizes)
        ),
        "    }",
        "    (void)i;",
        f'    return report("{check.name}", wrong, worst);',
        "}\n",
    ]
    return "\n".join(lines)


def _table(name: str, array: Array, numbers: CNumbers) -> str:
    rows = array.reshape(len(array), -1)
    width = max(1, rows.shape[1])
    text = ",\n".join(
        "        {" + (", ".join(map(numbers.literal, row)) or numbers.literal(0.0)) + "}"
        for row in rows.tolist()
    )
    head = f"    static const {numbers.type} {name}[{len(rows)}][{width}]"
    return f"{head} = {{\n{text}\n    }};"


# C's own functions would let a NaN vanish, or do not exist; R is the type, F ends its functions.
HELPERS = {
    Kind.FMIN: "static R axode_fmin(R a, R b) { return a != a ? a : (a < b ? a : b); }",
    Kind.FMAX: "static R axode_fmax(R a, R b) { return a != a ? a : (a > b ? a : b); }",
    Kind.HYPOT: "static R axode_hypot(R a, R b)"
    " { return a != a || b != b ? a + b : hypotF(a, b); }",
    Kind.SIGN: "static R axode_sign(R a) { return a > ZERO ? ONE : (a < ZERO ? -ONE : a); }",
}


@dataclass(frozen=True)
class CNumbers:
    """The type of all numbers of a source, and how C writes them.

    Attributes:
        precision: "float64" or "float32".
        type: C's name of the type.
        suffix: What ends its constants, and the names of its functions.
        size: Bytes of a number.
    """

    precision: str
    type: str
    suffix: str
    size: int

    def literal(self, value: float) -> str:
        """A C constant that reads back as the same number of the type."""
        rounded = round_constant(value, self.precision)
        if math.isnan(rounded):
            return "NAN"
        if math.isinf(rounded):
            return "INFINITY" if rounded > 0 else "(-INFINITY)"
        text = f"{repr(rounded) if self.size == 8 else str(np.float32(rounded))}{self.suffix}"
        return f"({text})" if text.startswith("-") else text

    def helper(self, kind: Kind) -> str:
        """Definition of a function that the mathematical library lacks."""
        text = re.sub(r"\bR\b", self.type, HELPERS[kind]).replace("hypotF", f"hypot{self.suffix}")
        return text.replace("ZERO", self.literal(0.0)).replace("ONE", self.literal(1.0))


NUMBERS = {
    "float64": CNumbers("float64", "double", "", 8),
    "float32": CNumbers("float32", "float", "f", 4),
}


_INFIX = {Kind.ADD: "+", Kind.SUB: "-", Kind.MUL: "*", Kind.DIV: "/"}
_COMPARE = {Kind.LT: "<", Kind.LE: "<=", Kind.EQ: "==", Kind.NE: "!="}
_LOGIC = {Kind.AND: "&&", Kind.OR: "||"}

_KEYWORDS = """auto break case char const continue default do double else enum extern float for
goto if inline int long register restrict return short signed sizeof static struct switch typedef
union unsigned void volatile while main"""
# Names of math.h that a model may want for itself.
_LIBRARY = "gamma lgamma tgamma j0 j1 jn y0 y1 yn signgam scalb round trunc rint exp2 log2 log10"
_FUNCTIONS = (*_LIBRARY.split(), *(kind.label for kind in Kind))
_RESERVED = frozenset((*_KEYWORDS.split(), *_FUNCTIONS, *(f"{name}f" for name in _FUNCTIONS)))


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
            write_atomically(folder / file, text.encode(), follow=False)
        return tuple(folder / file for file in texts)


def c_code(tape: Tape, prefix: str = "", precision: str = "float64") -> CCode:
    """C99 of a tape, the function's name with `prefix` before it."""
    name = c_identifier(check_prefix(prefix) + tape.name, set())
    header, source = c_library(name, [tape], prefix=prefix, precision=precision)
    test = self_test(name, [check_tape(tape, name, precision)], NUMBERS[precision])
    return CCode(name=name, header=header, source=source, self_test=test)


@dataclass(frozen=True)
class HeaderText:
    """What a header says besides the functions.

    Attributes:
        title: Its first line.
        entries: What the numbers of an array are, by the array's name.
        notes: Lines for the comments of functions, by the names of the tapes.
        further: Declarations that it has besides, with their comments.
    """

    title: str = ""
    entries: Mapping[str, Iterable[str]] = field(default_factory=dict)
    notes: Mapping[str, Iterable[str]] = field(default_factory=dict)
    further: Sequence[str] = ()


def c_library(
    stem: str,
    tapes: Iterable[Tape],
    text: HeaderText | None = None,
    prefix: str | None = None,
    precision: str = "float64",
) -> tuple[str, str]:
    """Several tapes as one header and one source, `stem`.h and `stem`.c.

    Args:
        stem: Name of both files, without ending.
        tapes: What they hold, one function per tape.
        text: What the header says besides.
        prefix: Before the functions' names; `stem_` unless given, so that files link together.
        precision: "float64" for double, "float32" for float.
    """
    text = text or HeaderText()
    check_stem(stem)
    numbers = NUMBERS[precision]
    taken: set[str] = set()
    before = f"{stem}_" if prefix is None else check_prefix(prefix)
    named = [(tape, c_identifier(before + tape.name, taken)) for tape in tapes]
    made = [(tape, name, _arguments(tape, name)) for tape, name in named]
    declared = [
        f"{_comment(*item, text.notes.get(item[0].name, ()))}\n{_signature(*item, numbers)};"
        for item in made
    ]
    header = _GUARDED.format(
        legend="".join(f"{line}\n" for line in _legend(text.title, text.entries)),
        guard=f"AXODE_{c_identifier(stem, set()).upper()}_H",
        declarations="\n\n".join([*declared, *text.further]),
    )
    source = [
        f'#include "{stem}.h"\n',
        "#include <math.h>\n",
        *c_helpers([t for t, _, _ in made], precision),
        *(_definition(*item, numbers) for item in made),
    ]
    return header, "\n".join(source)


def c_function(tape: Tape, name: str, precision: str) -> str:
    """A tape as a function that only its own source sees."""
    return f"static {_definition(tape, name, _arguments(tape, name), NUMBERS[precision])}"


def check_stem(stem: str) -> None:
    """Check that C can include a file of this name."""
    if not stem.isprintable() or any(c in stem for c in '"\\?'):
        raise InvalidArgument(
            f"{stem!r} cannot be written in an #include of C; name the file without quotes, "
            "backslashes and question marks"
        )


def _legend(title: str, entries: Mapping[str, Iterable[str]]) -> list[str]:
    """A comment that names the entries of the arrays, with the place of each."""
    lines = [f"{title or 'Arrays'}, the arrays' entries in order."]
    for array, names in entries.items():
        lines += [f"  {array}[{place}]  {name}" for place, name in enumerate(names)]
    return [c_comment(lines)] if entries else []


def c_comment(lines: Iterable[str]) -> str:
    """Lines as one comment of C, whatever they hold: the only place that writes comments."""
    first, *rest = map(_escape, lines)
    return "\n".join([f"/* {first}", *(f" * {line}".rstrip() for line in rest), " */"])


def _escape(text: str) -> str:
    """Text that neither ends a comment, nor begins one, nor joins lines, nor hides anything."""
    plain = "".join(c if c.isprintable() and c != "\\" else f"<U+{ord(c):04X}>" for c in text)
    return re.sub(r"\*(?=/)|/(?=\*)|\?(?=\?)", r"\g<0> ", plain).rstrip()


def check_prefix(prefix: str) -> str:
    """A prefix that may begin a C name, or an error."""
    if not isinstance(prefix, str) or (
        prefix and not re.fullmatch(r"[A-Za-z_]\w*", prefix, re.ASCII)
    ):
        raise InvalidArgument(
            f"prefix: {shortened(prefix)} cannot begin a name in C; letters, digits and _ can, as "
            "in robot_"
        )
    return prefix


def c_identifier(name: str, taken: set[str]) -> str:
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
    return [c_identifier(n, taken) for n in (*(port.name for port in tape.inputs), *outputs)]


def _signature(tape: Tape, name: str, arguments: list[str], numbers: CNumbers) -> str:
    count = len(tape.inputs)
    typed = [f"const {numbers.type} *{a}" for a in arguments[:count]]
    typed += [f"{numbers.type} *{a}" for a in arguments[count:]]
    return f"void {name}({', '.join(typed) or 'void'})"


def _describe(port: Port, argument: str) -> str:
    shape = " x ".join(map(str, port.shape)) or "1"
    alias = f" ({port.name})" if argument != port.name else ""
    return f"  {argument}[{shape}]{alias}"


def _comment(tape: Tape, name: str, arguments: list[str], notes: Iterable[str]) -> str:
    count = len(tape.inputs)
    kinds = ", ".join(f"{n} {kind}" for kind, n in tape.operations.items())
    return c_comment(
        [
            f"{name}: {tape.n_operations} operations ({kinds or 'none'}).",
            "",
            "Inputs, row-major:",
            *(_describe(p, a) for p, a in zip(tape.inputs, arguments[:count], strict=True)),
            "Outputs, row-major:",
            *(_describe(p, a) for p, a in zip(tape.outputs, arguments[count:], strict=True)),
            "",
            *notes,
            "Generated by Axode. No allocation, no state; an output may be an input's array.",
        ]
    )


_GUARDED = """{legend}#ifndef {guard}
#define {guard}

#ifdef __cplusplus
extern "C" {{
#endif

{declarations}

#ifdef __cplusplus
}}
#endif

#endif
"""


def c_helpers(tapes: Iterable[Tape], precision: str) -> list[str]:
    """Definitions of the functions that tapes need and the mathematical library lacks."""
    used = {Kind(k) for tape in tapes for k in np.unique(tape.kinds).tolist()}
    return [f"{NUMBERS[precision].helper(kind)}\n" for kind in HELPERS if kind in used]


def _definition(tape: Tape, name: str, arguments: list[str], numbers: CNumbers) -> str:
    first = len(tape.inputs)
    body, place = _statements(tape, arguments, numbers), 0
    for port, argument in zip(tape.outputs, arguments[first:], strict=True):
        for element in range(port.size):
            value = _value(tape, int(tape.results[place + element]), numbers)
            body.append(f"{argument}[{element}] = {value};")
        place += port.size
    lines = "\n".join(f"    {line}" for line in body)
    unused = "".join(f"    (void){a};\n" for a in arguments)
    return f"{_signature(tape, name, arguments, numbers)}\n{{\n{unused}{lines}\n}}\n"


def _statements(tape: Tape, arguments: list[str], numbers: CNumbers) -> list[str]:
    statements = []
    for number, (code, row) in enumerate(
        zip(tape.kinds.tolist(), tape.operands.tolist(), strict=True)
    ):
        kind = Kind(code)
        if kind == Kind.INPUT:
            statements.append(f"const {numbers.type} v{number} = {arguments[row[0]]}[{row[1]}];")
        elif kind not in LEAVES:
            values = [_value(tape, v, numbers) for v in row[: ARITY[kind]]]
            expression = _expression(kind, values, numbers)
            statements.append(f"const {numbers.type} v{number} = {expression};")
    return statements


def _value(tape: Tape, number: int, numbers: CNumbers) -> str:
    if tape.kinds[number] == Kind.CONSTANT:
        return numbers.literal(float(tape.constants[tape.operands[number, 0]]))
    return f"v{number}"


def _expression(kind: Kind, values: list[str], numbers: CNumbers) -> str:
    zero, real = numbers.literal(0.0), numbers.type
    if kind in _INFIX:
        return f"{values[0]} {_INFIX[kind]} {values[1]}"
    if kind in _COMPARE:
        return f"({real})({values[0]} {_COMPARE[kind]} {values[1]})"
    if kind in _LOGIC:
        return f"({real})({values[0]} != {zero} {_LOGIC[kind]} {values[1]} != {zero})"
    if kind == Kind.NOT:
        return f"({real})({values[0]} == {zero})"
    if kind == Kind.NEG:
        return f"-{values[0]}"
    if kind == Kind.SELECT:
        return f"{values[0]} != {zero} ? {values[1]} : {values[2]}"
    name = f"axode_{kind.label}" if kind in HELPERS else f"{kind.label}{numbers.suffix}"
    return f"{name}({', '.join(values)})"
