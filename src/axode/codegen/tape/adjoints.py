"""Reverse derivatives of tapes: how a weighted sum of the results changes with every argument.

One pass over the operations backwards gives the derivatives by all arguments at once, at two to
three times the operations of the tape itself.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from axode.codegen.tape.builder import TapeBuilder
from axode.codegen.tape.derivatives import FLAT, PARTIALS, SLOPES
from axode.codegen.tape.formulas import Formula, Vector
from axode.codegen.tape.operations import ARITY, Kind
from axode.codegen.tape.tape import Port, Tape

Gradient = list[Formula | None]
Choice = tuple[Formula, bool]  # a condition, and which value of it counts

_KINDS = {int(kind): kind for kind in Kind}  # much faster than Kind(number)


class _Share(NamedTuple):
    """Part of a gradient that counts only where some choices are taken.

    What is not chosen may be infinite, and zero times infinity does not vanish: a share is
    therefore multiplied as if it counted, and left out where it meets other shares.
    """

    weight: Formula
    under: tuple[Choice, ...] = ()

    def masked(self, depth: int) -> Formula:
        """Weight with zero where any choice but the first few is not taken."""
        weight = self.weight
        for condition, taken in reversed(self.under[depth:]):
            weight = condition.then(weight, 0.0) if taken else condition.then(0.0, weight)
        return weight

    def joined(self, other: _Share) -> _Share:
        """Sum of both, under the choices that they have in common."""
        depth = 0
        for mine, theirs in zip(self.under, other.under, strict=False):
            if (mine[0].number, mine[1]) != (theirs[0].number, theirs[1]):
                break
            depth += 1
        return _Share(self.masked(depth) + other.masked(depth), self.under[:depth])


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
    wanted = {k for k, port in enumerate(tape.inputs) if port.name in of}
    found: dict[str, Gradient] = {
        tape.inputs[k].name: [None] * tape.inputs[k].size for k in sorted(wanted)
    }
    if not len(tape.results):
        return [], found
    kinds, rows = tape.kinds.tolist(), tape.operands.tolist()
    values, moves = _replay(tape, arguments, wanted, weights)
    felt: list[_Share | None] = [None] * len(values)

    def add(number: int, share: _Share | None) -> None:
        known = felt[number]
        felt[number] = known.joined(share) if known and share else share or known

    for number, weight in zip(tape.results.tolist(), weights, strict=True):
        if weight is not None and moves[number]:
            add(number, _Share(weight))
    for number in reversed(range(len(values))):
        share, kind, row = felt[number], _KINDS[kinds[number]], rows[number]
        if share is None:
            continue
        if kind == Kind.INPUT:
            found[tape.inputs[row[0]].name][row[1]] = share.masked(0)
            continue
        used = row[: ARITY[kind]]
        x, needed = list(map(values.__getitem__, used)), list(map(moves.__getitem__, used))
        for i, part in zip(used, _parts(kind, x, values[number], share, needed), strict=True):
            add(i, part)
        felt[number] = None
    return [values[i] for i in tape.results.tolist()], found


def _replay(
    tape: Tape,
    arguments: Sequence[Vector],
    wanted: Collection[int],
    weights: Sequence[Formula | None],
) -> tuple[Vector, list[bool]]:
    """Values of all instructions on another tape, and whether wanted arguments move them."""
    known = (x for vector in (*arguments, weights) for x in vector if x is not None)
    builder = next(x.builder for x in known)
    values: Vector = []
    moves: list[bool] = []
    for code, row in zip(tape.kinds.tolist(), tape.operands.tolist(), strict=True):
        kind = _KINDS[code]
        if kind == Kind.INPUT:
            values.append(arguments[row[0]][row[1]])
            moves.append(row[0] in wanted)
        elif kind == Kind.CONSTANT:
            values.append(Formula(builder, builder.constant(float(tape.constants[row[0]]))))
            moves.append(False)
        else:
            used = row[: ARITY[kind]]
            number = builder.apply(kind, *[values[i].number for i in used])
            values.append(Formula(builder, number))
            moves.append(kind not in FLAT and any(map(moves.__getitem__, used)))
    return values, moves


def _parts(
    kind: Kind, x: list[Formula], r: Formula, share: _Share, needed: list[bool]
) -> list[_Share | None]:
    """What each operand of an operation adds to its gradient; None where nothing is needed.

    Args:
        kind: The operation.
        x: Its operands.
        r: Its value.
        share: Gradient by its value.
        needed: Which operands move.
    """
    made: Sequence[_Share | None]
    if kind in (Kind.SELECT, Kind.FMIN, Kind.FMAX):
        made = _choices(kind, x, share)
    else:
        parts = _products(kind, x, r, share.weight, needed)
        made = [None if part is None else _Share(part, share.under) for part in parts]
    return [part if moves else None for part, moves in zip(made, needed, strict=True)]


def _choices(kind: Kind, x: list[Formula], share: _Share) -> list[_Share | None]:
    """Operations that choose one of two operands; the same one as forward derivatives."""
    match kind:
        case Kind.FMIN:
            condition = x[0] <= x[1]
        case Kind.FMAX:
            condition = x[0] >= x[1]
        case _:
            condition = x[0]
    chosen = [_Share(share.weight, (*share.under, (condition, taken))) for taken in (True, False)]
    return [None, *chosen] if kind == Kind.SELECT else [*chosen]


def _products(
    kind: Kind, x: list[Formula], r: Formula, weight: Formula, needed: list[bool]
) -> Gradient:
    """A weight times the partial derivatives of an operation."""
    if kind in SLOPES:
        return [weight * SLOPES[kind](x[0], r)]
    if kind == Kind.DIV:
        return _quotient_parts(x, r, weight, needed)
    if kind in PARTIALS:
        return [
            weight * partial(*x, r) if moves else None
            for partial, moves in zip(PARTIALS[kind], needed, strict=True)
        ]
    match kind:
        case Kind.ADD:
            return [weight, weight]
        case Kind.SUB:
            return [weight, -weight]
        case Kind.COPYSIGN:
            return [weight * x[0].apply(Kind.SIGN) * r.apply(Kind.SIGN), None]
        case Kind.FMOD | Kind.REMAINDER:  # a whole number of y less than x
            return [weight, -(weight * ((x[0] - r) / x[1]))]
    raise NotImplementedError(f"no derivative of {kind.label}")


def _quotient_parts(x: list[Formula], r: Formula, weight: Formula, needed: list[bool]) -> Gradient:
    """Share one division between both operands; the square of a reciprocal needs none."""
    if not needed[0] and r.builder.value(x[0].number) == 1.0:
        return [None, -(weight * (r * r))]
    share = weight * (1.0 / x[1])  # which others that divide by it share
    return [share, -(share * r) if needed[1] else None]
