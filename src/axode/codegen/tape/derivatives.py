"""Forward derivatives of tapes: how results change along a direction of the arguments.

Every operation carries its derivative along, so that a tape from a file, of a formula or of a
traced function is differentiated exactly and without CasADi.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from axode.codegen.tape.builder import TapeBuilder
from axode.codegen.tape.formulas import Formula, Vector
from axode.codegen.tape.operations import ARITY, LEAVES, Kind
from axode.codegen.tape.tape import Port, Tape

Rule = Callable[..., Formula]

# Derivative of a function of one variable, from its argument x and its value r. Where a slope is
# infinite (a root or a length at zero) it counts as zero: what is multiplied by it is zero too.
SLOPES: dict[Kind, Callable[[Formula, Formula], Formula | float]] = {
    Kind.NEG: lambda x, r: -1.0,
    Kind.SQRT: lambda x, r: r.equals(0.0).then(0.0, 0.5 / r),
    Kind.SIN: lambda x, r: x.apply(Kind.COS),
    Kind.COS: lambda x, r: -x.apply(Kind.SIN),
    Kind.TAN: lambda x, r: 1.0 + r * r,
    Kind.ASIN: lambda x, r: 1.0 / ((1.0 - x) * (1.0 + x)).sqrt(),
    Kind.ACOS: lambda x, r: -1.0 / ((1.0 - x) * (1.0 + x)).sqrt(),
    Kind.ATAN: lambda x, r: 1.0 / (1.0 + x * x),
    Kind.EXP: lambda x, r: r,
    Kind.EXPM1: lambda x, r: 1.0 + r,
    Kind.LOG: lambda x, r: 1.0 / x,
    Kind.LOG1P: lambda x, r: 1.0 / (1.0 + x),
    Kind.SINH: lambda x, r: x.apply(Kind.COSH),
    Kind.COSH: lambda x, r: x.apply(Kind.SINH),
    Kind.TANH: lambda x, r: 1.0 - r * r,
    Kind.ASINH: lambda x, r: 1.0 / (1.0 + x * x).sqrt(),
    Kind.ACOSH: lambda x, r: 1.0 / ((x - 1.0) * (x + 1.0)).sqrt(),
    Kind.ATANH: lambda x, r: 1.0 / ((1.0 - x) * (1.0 + x)),
    Kind.ERF: lambda x, r: (2.0 / math.sqrt(math.pi)) * (-(x * x)).apply(Kind.EXP),
    Kind.FABS: lambda x, r: x.apply(Kind.SIGN),
}

# Derivatives of functions of two variables by each of them, from the arguments and the value.
PARTIALS: dict[Kind, tuple[Rule, Rule]] = {
    Kind.MUL: (lambda x, y, r: y, lambda x, y, r: x),
    Kind.DIV: (lambda x, y, r: 1.0 / y, lambda x, y, r: -r / y),
    Kind.ATAN2: (lambda x, y, r: y / (x * x + y * y), lambda x, y, r: -x / (x * x + y * y)),
    Kind.HYPOT: (
        lambda x, y, r: r.equals(0.0).then(0.0, x / r),
        lambda x, y, r: r.equals(0.0).then(0.0, y / r),
    ),
    Kind.POW: (
        lambda x, y, r: y.equals(0.0).then(0.0, y * x ** (y - 1.0)),
        lambda x, y, r: x.equals(0.0).then(0.0, r * x.function("log")),
    ),
}

# Steps: between them the value does not change.
FLAT = frozenset(
    (
        Kind.FLOOR,
        Kind.CEIL,
        Kind.SIGN,
        Kind.LT,
        Kind.LE,
        Kind.EQ,
        Kind.NE,
        Kind.NOT,
        Kind.AND,
        Kind.OR,
    )
)


def forward_tape(
    tape: Tape, moving: Mapping[str, tuple[str, int]], sizes: Mapping[str, int]
) -> Tape:
    """Derivative of a tape along a direction.

    Args:
        tape: What is differentiated.
        moving: The arguments that change, each with the port of the new tape that holds its
            change and the place of its first element there; the others stay.
        sizes: Sizes of those ports.

    Returns:
        A tape of the same arguments and of these ports, with the changes of the results.
    """
    builder = TapeBuilder()
    first = len(tape.inputs)
    ports = {name: first + k for k, name in enumerate(sizes)}
    arguments = [
        [Formula(builder, builder.input(k, i)) for i in range(port.size)]
        for k, port in enumerate(tape.inputs)
    ]
    directions: list[list[Formula | None]] = []
    for port in tape.inputs:
        place = moving.get(port.name)
        directions.append(
            [
                None
                if place is None
                else Formula(builder, builder.input(ports[place[0]], place[1] + i))
                for i in range(port.size)
            ]
        )
    changes = changes_along(tape, arguments, directions)
    still = builder.constant(0.0)
    results = [still if change is None else change.number for change in changes]
    return Tape.build(
        f"{tape.name}_along",
        (*tape.inputs, *(Port(name, (size,)) for name, size in sizes.items())),
        tuple(Port(f"{port.name}_change", port.shape) for port in tape.outputs),
        builder,
        results,
    )


def changes_along(
    tape: Tape, arguments: Sequence[Vector], directions: Sequence[Sequence[Formula | None]]
) -> list[Formula | None]:
    """Changes of a tape's results along a direction, as formulas of another tape.

    Args:
        tape: What is differentiated.
        arguments: Values of its arguments there, one vector per port.
        directions: Change of each value; None where it stays.

    Returns:
        One per result; None where it is zero whatever the numbers are.
    """
    builder = next(x.builder for vector in arguments for x in vector)
    values: list[Formula] = []
    changes: list[Formula | None] = []
    for kind, row in zip(tape.kinds.tolist(), tape.operands.tolist(), strict=True):
        if kind == Kind.INPUT:
            values.append(arguments[row[0]][row[1]])
            changes.append(directions[row[0]][row[1]])
        elif kind == Kind.CONSTANT:
            constant = builder.constant(float(tape.constants[row[0]]))
            values.append(Formula(builder, constant))
            changes.append(None)
        else:
            used = row[: ARITY[Kind(kind)]]
            x = [values[i] for i in used]
            values.append(Formula(builder, builder.apply(Kind(kind), *(v.number for v in x))))
            changes.append(_change(Kind(kind), x, [changes[i] for i in used], values[-1]))
    return [changes[i] for i in tape.results.tolist()]


def reads(tape: Tape, argument: str) -> bool:
    """Return whether any result depends on an argument."""
    place = next((k for k, port in enumerate(tape.inputs) if port.name == argument), None)
    return place is not None and bool(
        ((tape.kinds == Kind.INPUT) & (tape.operands[:, 0] == place)).any()
    )


def dependencies(tape: Tape) -> list[set[tuple[str, int]]]:
    """Arguments and elements on which each result of a tape depends."""
    elements = {
        (port.name, i): 1 << k
        for k, (port, i) in enumerate((p, i) for p in tape.inputs for i in range(p.size))
    }
    masks: list[int] = []
    for kind, row in zip(tape.kinds.tolist(), tape.operands.tolist(), strict=True):
        mask = 0
        if kind == Kind.INPUT:
            mask = elements[tape.inputs[row[0]].name, row[1]]
        elif kind not in LEAVES:
            for i in row[: ARITY[Kind(kind)]]:
                mask |= masks[i]
        masks.append(mask)
    return [
        {element for element, bit in elements.items() if masks[i] & bit}
        for i in tape.results.tolist()
    ]


def _change(kind: Kind, x: list[Formula], dx: list[Formula | None], r: Formula) -> Formula | None:
    """Change of an operation's value; None where it is zero whatever the numbers are."""
    if kind in FLAT or all(change is None for change in dx):
        return None
    if kind in SLOPES:
        assert dx[0] is not None
        return dx[0] * SLOPES[kind](x[0], r)
    if kind in PARTIALS:
        terms = [
            change * partial(*x, r)
            for partial, change in zip(PARTIALS[kind], dx, strict=True)
            if change is not None
        ]
        return terms[0] if len(terms) == 1 else terms[0] + terms[1]
    zero = 0.0 * r
    full = [zero if change is None else change for change in dx]
    match kind:
        case Kind.ADD:
            return full[0] + full[1]
        case Kind.SUB:
            return full[0] - full[1]
        case Kind.SELECT:
            return x[0].then(full[1], full[2])
        case Kind.FMIN:
            return (x[0] <= x[1]).then(full[0], full[1])
        case Kind.FMAX:
            return (x[0] >= x[1]).then(full[0], full[1])
        case Kind.COPYSIGN:
            return full[0] * x[0].apply(Kind.SIGN) * r.apply(Kind.SIGN)
        case Kind.FMOD | Kind.REMAINDER:  # a whole number of y less than x
            return full[0] - full[1] * ((x[0] - r) / x[1])
    raise NotImplementedError(f"no derivative of {kind.label}")
