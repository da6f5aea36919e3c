"""Tapes as C99: a header, a source and a self-test that need only a C compiler.

The code allocates nothing, calls only ``math.h`` and keeps no state. Arrays are
row-major. Every input is read before any output is written, so an output may
be the same array as an input. All arithmetic is in double or all in float.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np

from axode.codegen.tape.operations import ARITY, LEAVES, Kind
from axode.codegen.tape.tape import Port, Tape
from axode.codegen.targets.c_numbers import HELPERS, NUMBERS, CNumbers
from axode.codegen.targets.c_self_test import check_tape, self_test
from axode.disk.atomic import write_atomically
from axode.errors import InvalidArgument, shortened

_INFIX = {Kind.ADD: "+", Kind.SUB: "-", Kind.MUL: "*", Kind.DIV: "/"}
_COMPARE = {Kind.LT: "<", Kind.LE: "<=", Kind.EQ: "==", Kind.NE: "!="}
_LOGIC = {Kind.AND: "&&", Kind.OR: "||"}

_KEYWORDS = """auto break case char const continue default do double else enum extern float for
goto if inline int long register restrict return short signed sizeof static struct switch typedef
union unsigned void volatile while main"""
# Names of math.h that a model may want for itself.
_LIBRARY = "gamma lgamma tgamma j0 j1 jn y0 y1 yn signgam scalb round trunc rint exp2 log2 log10"
_NONE: Mapping[str, Iterable[str]] = MappingProxyType({})
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


def c_library(
    stem: str,
    tapes: Iterable[Tape],
    title: str = "",
    entries: Mapping[str, Iterable[str]] = _NONE,
    prefix: str | None = None,
    precision: str = "float64",
    notes: Mapping[str, Iterable[str]] = _NONE,
    further: Sequence[str] = (),
) -> tuple[str, str]:
    """Several tapes as one header and one source, `stem`.h and `stem`.c.

    Args:
        stem: Name of both files, without ending.
        tapes: What they hold, one function per tape.
        title: First line of the header.
        entries: What the numbers of an array are, by the array's name, for the header.
        prefix: Before the functions' names; `stem_` unless given, so that files link together.
        precision: "float64" for double, "float32" for float.
        notes: Lines for the comments of functions, by the names of the tapes.
        further: Declarations that the header has besides, with their comments.
    """
    check_stem(stem)
    numbers = NUMBERS[precision]
    taken: set[str] = set()
    before = f"{stem}_" if prefix is None else check_prefix(prefix)
    named = [(tape, c_identifier(before + tape.name, taken)) for tape in tapes]
    made = [(tape, name, _arguments(tape, name)) for tape, name in named]
    declared = [
        f"{_comment(*item, notes.get(item[0].name, ()))}\n{_signature(*item, numbers)};"
        for item in made
    ]
    header = _GUARDED.format(
        legend="".join(f"{line}\n" for line in _legend(title, entries)),
        guard=f"AXODE_{c_identifier(stem, set()).upper()}_H",
        declarations="\n\n".join([*declared, *further]),
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
