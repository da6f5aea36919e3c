"""Reverse derivatives of tapes: how a weighted sum of the results changes with every argument.

One pass over the operations backwards gives the derivatives by all arguments at once, at two to
three times the operations of the tape itself.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from axode.codegen.tape.builder import TapeBuilder
from axode.codegen.tape.derivatives import FLAT, PARTIALS, SLOPES
from axode.codegen.tape.formulas import Formula, Vector
from axode.codegen.tape.operations import ARITY, Kind
from axode.codegen.tape.tape import Port, Tape

Gradient = list[Formula | None]


def adjoint_tape(tape: Tape, of: Sequence[str], *, values: bool = False) -> Tape:
    """Vector-Jacobian product of a tape.

    Args:
        tape: What is differentiated.
        of: The arguments by which it is differentiated.
        values: Whether the results of the tape itself come first.

    Returns:
        A tape of the same arguments and of the weights `<output>_weight` of the results, with the
        gradient `<argument>_gradient` of the weighted sum for every argument in `of`.
    """
    builder = TapeBuilder()
    first = len(tape.inputs)
    arguments, weights = (
        [
            [Formula(builder, builder.input(k, i)) for i in range(port.size)]
            for k, port in enumerate(ports, begin)
        ]
        for ports, begin in ((tape.inputs, 0), (tape.outputs, first))
    )
    results, found = gradients(tape, arguments, [w for port in weights for w in port], of)
    zero = builder.constant(0.0)
    numbers = [x.number for x in results] if values else []
    numbers += [zero if x is None else x.number for name in of for x in found[name]]
    ports = {port.name: port for port in tape.inputs}
    return Tape.build(
        f"{tape.name}_adjoint",
        (*tape.inputs, *(Port(f"{port.name}_weight", port.shape) for port in tape.outputs)),
        (
            *(tape.outputs if values else ()),
            *(Port(f"{name}_gradient", ports[name].shape) for name in of),
        ),
        builder,
        numbers,
    )


def gradients(
    tape: Tape, arguments: Sequence[Vector], weights: Sequence[Formula | None], of: Collection[str]
) -> tuple[Vector, dict[str, Gradient]]:
    """Results of a tape and gradients of their weighted sum, as formulas of another tape.

    Args:
        tape: What is differentiated.
        arguments: Values of its arguments, one vector per port.
        weights: One per result; None where it does not count.
        of: The arguments by which it is differentiated.

    Returns:
        The results; the gradient by each of these arguments, None where it is zero whatever the
        numbers are.
    """
    builder = next(x.builder for vector in arguments for x in vector)
    wanted = {k for k, port in enumerate(tape.inputs) if port.name in of}
    values, moves = _replay(tape, arguments, wanted, builder)
    felt: Gradient = [None] * len(values)
    for number, weight in zip(tape.results.tolist(), weights, strict=True):
        if weight is not None and moves[number]:
            felt[number] = _sum(felt[number], weight)
    kinds, rows = tape.kinds.tolist(), tape.operands.tolist()
    found: dict[str, Gradient] = {
        tape.inputs[k].name: [None] * tape.inputs[k].size for k in sorted(wanted)
    }
    for number in reversed(range(len(values))):
        weight, kind, row = felt[number], Kind(kinds[number]), rows[number]
        if weight is None or kind == Kind.CONSTANT:
            continue
        if kind == Kind.INPUT:
            found[tape.inputs[row[0]].name][row[1]] = weight
            continue
        used = row[: ARITY[kind]]
        needed = [moves[i] for i in used]
        parts = _parts(kind, [values[i] for i in used], values[number], weight, needed)
        for i, part in zip(used, parts, strict=True):
            if part is not None:
                felt[i] = _sum(felt[i], part)
        felt[number] = None
    return [values[i] for i in tape.results.tolist()], found


def _replay(
    tape: Tape, arguments: Sequence[Vector], wanted: Collection[int], builder: TapeBuilder
) -> tuple[Vector, list[bool]]:
    """Values of all instructions on another tape, and whether wanted arguments move them."""
    values: Vector = []
    moves: list[bool] = []
    for code, row in zip(tape.kinds.tolist(), tape.operands.tolist(), strict=True):
        kind = Kind(code)
        if kind == Kind.INPUT:
            values.append(arguments[row[0]][row[1]])
            moves.append(row[0] in wanted)
        elif kind == Kind.CONSTANT:
            values.append(Formula(builder, builder.constant(float(tape.constants[row[0]]))))
            moves.append(False)
        else:
            used = row[: ARITY[kind]]
            number = builder.apply(kind, *(values[i].number for i in used))
            values.append(Formula(builder, number))
            moves.append(kind not in FLAT and any(moves[i] for i in used))
    return values, moves


def _sum(known: Formula | None, more: Formula) -> Formula:
    return more if known is None else known + more


def _parts(
    kind: Kind, x: list[Formula], r: Formula, weight: Formula, needed: list[bool]
) -> Gradient:
    """What each operand of an operation adds to its gradient; None where nothing is needed."""
    made: list[Formula | None]
    if kind in SLOPES:
        made = [weight * SLOPES[kind](x[0], r)]
    elif kind == Kind.DIV:
        made = _quotient_parts(x, r, weight, needed)
    elif kind in PARTIALS:
        made = [
            weight * partial(*x, r) if wanted else None
            for partial, wanted in zip(PARTIALS[kind], needed, strict=True)
        ]
    else:
        made = _choice_parts(kind, x, r, weight)
    return [part if wanted else None for part, wanted in zip(made, needed, strict=True)]


def _quotient_parts(x: list[Formula], r: Formula, weight: Formula, needed: list[bool]) -> Gradient:
    """Share one division between both operands; the square of a reciprocal needs none."""
    if not needed[0] and r.builder.value(x[0].number) == 1.0:
        return [None, -(weight * (r * r))]
    share = weight / x[1]
    return [share, -(share * r) if needed[1] else None]


def _choice_parts(kind: Kind, x: list[Formula], r: Formula, weight: Formula) -> Gradient:
    """Operations that are sums, or choose one of their operands."""
    match kind:
        case Kind.ADD:
            return [weight, weight]
        case Kind.SUB:
            return [weight, -weight]
        case Kind.SELECT:
            return [None, x[0].then(weight, 0.0), x[0].then(0.0, weight)]
        case Kind.FMIN | Kind.FMAX:
            first = x[0] <= x[1] if kind == Kind.FMIN else x[0] >= x[1]
            return [first.then(weight, 0.0), first.then(0.0, weight)]
        case Kind.COPYSIGN:
            return [weight * x[0].apply(Kind.SIGN) * r.apply(Kind.SIGN), None]
        case Kind.FMOD | Kind.REMAINDER:  # a whole number of y less than x
            return [weight, -(weight * ((x[0] - r) / x[1]))]
    raise NotImplementedError(f"no derivative of {kind.label}")
