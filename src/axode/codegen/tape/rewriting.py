"""Tapes and programs rewritten: numbers out and in, shared reciprocals, small tapes as one.

Numbers of a tape become one of its arguments, so that code made for one gain serves all gains.
Constants of a program go into its tapes, where they simplify what is computed. Small tapes that
follow each other become one: a step of a small model is a dozen tapes of a few operations each, and
most of its time would go into calls and into buffers that only the next tape reads.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from axode.codegen.tape.builder import TapeBuilder
from axode.codegen.tape.operations import ARITY, Array, Kind
from axode.codegen.tape.program import (
    Evaluate,
    FactorMatrix,
    JacobianColumns,
    LargestElement,
    MaskedCopy,
    Operation,
    Program,
    ReadRow,
    Solve,
    WeightedSum,
    While,
    WriteRow,
)
from axode.codegen.tape.tape import Port, Tape

# Numbers that stay in the code: most of them belong to a formula's structure and never change.
STRUCTURAL = frozenset((0.0, 1.0, -1.0, 2.0, 0.5))
KEPT_TAPES = 256  # tapes of which it is remembered


@dataclass(frozen=True)
class ExtractedNumbers:
    """A tape without numbers of its own, and those numbers.

    Attributes:
        tape: The tape, with one more argument if there are any.
        numbers: Values of that argument by its name; empty if there are none.
    """

    tape: Tape
    numbers: dict[str, Array]


@lru_cache(maxsize=KEPT_TAPES)
def extract_numbers(tape: Tape, most: int) -> ExtractedNumbers:
    """Make the numbers of a tape an argument `<name>_numbers`.

    Two tapes that differ only in these numbers become the same one. Equal numbers share a place,
    and places are counted in the order of use.

    Args:
        tape: What to take the numbers from.
        most: How many an argument may hold; a tape with more stays as it is.
    """
    builder = TapeBuilder()
    port = len(tape.inputs)
    places: dict[int, int] = {}  # of constants of the tape, in the order of use
    values: list[int | None] = []

    def value(number: int) -> int:
        known = values[number]
        if known is None:
            constant = int(tape.operands[number, 0])
            known = builder.input(port, places.setdefault(constant, len(places)))
            values[number] = known
        return known

    for kind, row in zip(tape.kinds.tolist(), tape.operands.tolist(), strict=True):
        if kind == Kind.INPUT:
            values.append(builder.input(row[0], row[1]))
        elif kind == Kind.CONSTANT:
            number = float(tape.constants[row[0]])
            stays = number in STRUCTURAL or not math.isfinite(number)
            values.append(builder.constant(number) if stays else None)
        else:
            operands = [value(i) for i in row[: ARITY[Kind(kind)]]]
            values.append(builder.apply(Kind(kind), *operands))
    results = [value(i) for i in tape.results.tolist()]
    if not 0 < len(places) <= most:
        return ExtractedNumbers(tape, {})
    name = f"{tape.name}_numbers"
    inputs = (*tape.inputs, Port(name, (len(places),)))
    numbers = np.array([tape.constants[place] for place in places])
    numbers.setflags(write=False)
    return ExtractedNumbers(
        Tape.build(tape.name, inputs, tape.outputs, builder, results), {name: numbers}
    )


Constants = Mapping[str, Mapping[int, float]]


def inline_constants(program: Program) -> Program:
    """Replace what tapes read of the program's constants by these numbers."""
    if not program.constants:
        return program
    tapes: dict[tuple[str, tuple[str, ...]], Tape] = {}

    def inlined(operation: Operation) -> Operation:
        match operation:
            case Evaluate(tape, buffers):
                key = tape.digest, buffers[: len(tape.inputs)]
                if key not in tapes:
                    tapes[key] = _inline(tape, buffers, program.constants)
                return replace(operation, tape=tapes[key])
            case While():
                return replace(operation, body=all_inlined(operation.body))
            case JacobianColumns():
                body = tuple(
                    replace(e, tape=_inline(e.tape, e.buffers, program.constants))
                    for e in operation.body
                )
                return replace(operation, body=body)
            case _:
                return operation

    def all_inlined(operations: Sequence[Operation]) -> tuple[Operation, ...]:
        return tuple(map(inlined, operations))

    return replace(program, operations=all_inlined(program.operations))


def _inline(tape: Tape, buffers: Sequence[str], constants: Constants) -> Tape:
    own = [constants.get(buffer, {}) for buffer in buffers[: len(tape.inputs)]]
    if not any(own):
        return tape
    builder = TapeBuilder()
    arguments = [
        [
            builder.constant(known[k]) if k in known else builder.input(place, k)
            for k in range(port.size)
        ]
        for place, (port, known) in enumerate(zip(tape.inputs, own, strict=True))
    ]
    results = builder.replay(tape, arguments)
    return Tape.build(tape.name, tape.inputs, tape.outputs, builder, results)


# From this many divisions by one value on, they become multiplications by its reciprocal.
SHARED_DIVISIONS = 3


def share_reciprocals(tape: Tape, least: int = SHARED_DIVISIONS) -> Tape:
    """Divide once by each number that divides several; a division takes as long as ten products.

    A one is the first instruction then, and every reciprocal follows its number.
    """
    divides = tape.kinds == Kind.DIV
    found, counts = np.unique(tape.operands[divides, 1], return_counts=True)
    shared = found[counts >= least]
    if not shared.size:
        return tape
    place = 1 + np.arange(len(tape.kinds))
    place += np.searchsorted(shared, np.arange(len(tape.kinds)))
    calculates = (tape.kinds != Kind.INPUT) & (tape.kinds != Kind.CONSTANT)
    refers = calculates[:, np.newaxis] & (tape.operands >= 0)
    moved = np.where(refers, place[tape.operands], tape.operands)
    turned = divides & np.isin(tape.operands[:, 1], shared)
    moved[turned, 1] += 1
    size = len(tape.kinds) + len(shared) + 1
    kinds = np.full(size, Kind.DIV, dtype=tape.kinds.dtype)
    operands = np.full((size, 3), -1, dtype=tape.operands.dtype)
    kinds[0], operands[0, 0] = Kind.CONSTANT, len(tape.constants)
    kinds[place] = np.where(turned, Kind.MUL, tape.kinds)
    operands[place] = moved
    operands[place[shared] + 1, 0], operands[place[shared] + 1, 1] = 0, place[shared]
    constants = np.append(tape.constants, 1.0)
    results = place[tape.results].astype(tape.results.dtype)
    return Tape(tape.name, tape.inputs, tape.outputs, kinds, operands, constants, results)


@dataclass(frozen=True)
class FusionLimits:
    """How many instructions are joined at most.

    Attributes:
        part: Instructions of one tape. A longer one gains nothing from its neighbours and would be
            compiled once for every use.
        whole: Instructions of all tapes that become one.
    """

    part: int = 1000
    whole: int = 3000


def fuse(program: Program, limits: FusionLimits = FusionLimits()) -> Program:  # noqa: B008
    """Join neighbouring small tapes of a program."""
    operations = _join(program.operations, limits)
    wanted = _Readers(program.state, operations)
    return replace(program, operations=_lowered(operations, wanted))


@dataclass(frozen=True, eq=False)
class _Group:
    """Evaluations that are to become one."""

    members: tuple[Evaluate, ...]

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """Buffers whose values from before it needs."""
        found: dict[str, None] = {}
        written: set[str] = set()
        for member in self.members:
            n = len(member.tape.inputs)
            found |= dict.fromkeys(b for b in member.buffers[:n] if b not in written)
            written |= set(member.buffers[n:])
        return tuple(found)


def _join(operations: Sequence[Operation], limits: FusionLimits) -> list[Operation | _Group]:
    """Operations with every run of small evaluations as a group."""
    made: list[Operation | _Group] = []
    waiting: list[Evaluate] = []
    length = 0

    def close() -> None:
        nonlocal length
        if waiting:
            made.append(_Group(tuple(waiting)))
            waiting.clear()
        length = 0

    for operation in operations:
        if isinstance(operation, Evaluate) and len(operation.tape.kinds) <= limits.part:
            if length + len(operation.tape.kinds) > limits.whole:
                close()
            waiting.append(operation)
            length += len(operation.tape.kinds)
            continue
        close()
        if isinstance(operation, While):
            body = _join(operation.body, limits)
            made.append(While(operation.flag, tuple(body), operation.counted))  # type: ignore[arg-type]
        else:
            made.append(operation)
    close()
    return made


class _Readers:
    """Who reads which buffer."""

    def __init__(self, state: Iterable[str], operations: Sequence[Operation | _Group]) -> None:
        self._outside = set(state)
        self._groups: dict[str, set[int]] = {}
        self._collect(operations)

    def _collect(self, operations: Iterable[Operation | _Group]) -> None:
        for operation in operations:
            match operation:
                case _Group():
                    for buffer in operation.reads:
                        self._groups.setdefault(buffer, set()).add(id(operation))
                case Evaluate(tape, buffers):
                    self._outside |= set(buffers[: len(tape.inputs)])
                case ReadRow(_, index, _):
                    self._outside.add(index)
                case WriteRow(_, index, buffer, flag):
                    self._outside |= {index, buffer, flag}
                case While(flag, body, _):
                    self._outside.add(flag)
                    self._collect(body)
                case JacobianColumns():
                    self._outside |= set(operation.outside)
                case FactorMatrix(jacobian, scale):
                    self._outside |= {jacobian, scale}
                case Solve(_, vector):
                    self._outside.add(vector)
                case WeightedSum(weights, vectors, _):
                    self._outside |= {weights[0], *(name for name, _ in vectors)}
                case LargestElement(vectors, weights, _):
                    self._outside |= {weights, *(name for name, _ in vectors)}
                case MaskedCopy(flag, buffer, kept):
                    self._outside |= {flag, buffer, kept}

    def want(self, buffer: str) -> bool:
        """Return whether anything reads what a group leaves in a buffer, its next turn included.

        What a group reads after writing it is not among its `reads`.
        """
        return buffer in self._outside or buffer in self._groups


def _lowered(operations: Sequence[Operation | _Group], wanted: _Readers) -> tuple[Operation, ...]:
    made: list[Operation] = []
    for operation in operations:
        match operation:
            case _Group(members=(single,)):
                made.append(single)
            case _Group():
                made.append(_one(operation, wanted))
            case While(flag, body, counted):
                made.append(While(flag, _lowered(body, wanted), counted))
            case _:
                made.append(operation)
    return tuple(made)


def _one(group: _Group, wanted: _Readers) -> Evaluate:
    """A group as a single evaluation of what others read of it."""
    builder = TapeBuilder()
    values: dict[str, list[int]] = {}
    sizes: dict[str, int] = {}
    written: dict[str, None] = {}
    for member in group.members:
        n = len(member.tape.inputs)
        for buffer, port in zip(member.buffers[:n], member.tape.inputs, strict=True):
            if buffer not in values:
                place = group.reads.index(buffer)
                values[buffer] = [builder.input(place, i) for i in range(port.size)]
            sizes[buffer] = port.size
        results = builder.replay(member.tape, [values[b] for b in member.buffers[:n]])
        first = 0
        for buffer, port in zip(member.buffers[n:], member.tape.outputs, strict=True):
            values[buffer] = results[first : first + port.size]
            sizes[buffer] = port.size
            first += port.size
        written |= dict.fromkeys(member.buffers[n:])
    kept = [buffer for buffer in written if wanted.want(buffer)]
    # ports without names of buffers: equal groups share their code
    tape = Tape.build(
        "_".join(dict.fromkeys(member.tape.name for member in group.members))[:80],
        tuple(Port(f"in_{i}", (sizes[b],)) for i, b in enumerate(group.reads)),
        tuple(Port(f"out_{i}", (sizes[b],)) for i, b in enumerate(kept)),
        builder,
        [number for b in kept for number in values[b]],
    )
    return Evaluate(tape, (*group.reads, *kept))
