"""Small tapes that follow each other as one: values stay in registers instead of buffers.

A step of a small model is a dozen tapes of a few operations each, and most of its time would go
into calls and into buffers that only the next tape reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from axode.codegen.tape.builder import TapeBuilder
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
                case Solve(_, _, vector):
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
