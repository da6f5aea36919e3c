"""Divisions by one number many times over, as products with its reciprocal."""

from __future__ import annotations

from collections import Counter

from axode.codegen.tape.builder import TapeBuilder
from axode.codegen.tape.operations import ARITY, Kind
from axode.codegen.tape.tape import Tape

# From so many divisions by one value on, they are multiplications by its reciprocal.
SHARED_DIVISIONS = 3


def share_reciprocals(tape: Tape) -> Tape:
    """Divide once by each number that divides several; a division takes as long as ten products."""
    divisors = Counter(tape.operands[tape.kinds == Kind.DIV, 1].tolist())
    shared = {value for value, count in divisors.items() if count >= SHARED_DIVISIONS}
    if not shared:
        return tape
    builder = TapeBuilder()
    values: list[int] = []
    for code, row in zip(tape.kinds.tolist(), tape.operands.tolist(), strict=True):
        kind = Kind(code)
        if kind == Kind.INPUT:
            values.append(builder.input(row[0], row[1]))
        elif kind == Kind.CONSTANT:
            values.append(builder.constant(float(tape.constants[row[0]])))
        else:
            operands = [values[v] for v in row[: ARITY[kind]]]
            if kind == Kind.DIV and row[1] in shared:
                operands[1] = builder.apply(Kind.DIV, builder.constant(1.0), operands[1])
                kind = Kind.MUL
            values.append(builder.apply(kind, *operands))
    results = [values[v] for v in tape.results.tolist()]
    return Tape.build(tape.name, tape.inputs, tape.outputs, builder, results)
