"""Loops of tapes: what runs without Python between steps.

A program is a few buffers and a list of operations on them: evaluate a tape, read or write a row of
a table, repeat while a flag is up. Each run (lane) has its own buffers; flags are numbers, zero for
no. The same program is compiled for one run or for a vector of runs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from axode.codegen.tape.tape import Tape

ENTRY = "rollout"
WIDEST = 8  # lanes of any processor: how far a vector may reach over the end of a row

Slice = tuple[str, int]  # a buffer, and the place in it where a vector begins


@dataclass(frozen=True)
class Evaluate:
    """A tape on buffers: one per input, then one per output; an output may be an input."""

    tape: Tape
    buffers: tuple[str, ...]


@dataclass(frozen=True)
class ReadRow:
    """Row `index` of a table into a buffer; the index is cut to what the table has."""

    table: str
    index: str
    buffer: str


@dataclass(frozen=True)
class WriteRow:
    """A buffer into row `index` of a table, for the runs whose flag is up."""

    table: str
    index: str
    buffer: str
    flag: str


@dataclass(frozen=True)
class While:
    """Operations repeated while any run's flag is up, at most `budget` times if one is named."""

    flag: str
    body: tuple[Operation, ...]
    counted: bool = False  # by the program's budget


@dataclass(frozen=True)
class JacobianColumns:
    """A Jacobian: column j of a matrix is the result of evaluations along unit vector j.

    What the evaluations make is not kept.
    """

    body: tuple[Evaluate, ...]
    direction: str
    result: str
    matrix: str
    stride: int  # places of a row of the matrix

    @property
    def outside(self) -> tuple[str, ...]:
        """Buffers that the evaluations read and do not make."""
        found: dict[str, None] = {}
        made = {self.direction}
        for evaluation in self.body:
            n = len(evaluation.tape.inputs)
            found |= dict.fromkeys(b for b in evaluation.buffers[:n] if b not in made)
            made |= set(evaluation.buffers[n:])
        return tuple(found)


@dataclass(frozen=True)
class FactorMatrix:
    """Eliminate scale 1 - J for one scale, or for a complex one of two numbers.

    J has `size` rows and `columns` columns; further ones are zero, and rows beyond that number are
    not exchanged. Unknowns whose own rows of J are a one in the column of another unknown are
    eliminated beforehand: there are no such rows, their columns come after the others, and the
    other unknowns are the first. `matrix_loops` lays out matrices and the order of rows.
    """

    jacobian: str
    scale: str
    matrix: str
    work: str
    size: int
    columns: int
    pair: bool = False
    eliminated: int = 0

    @property
    def parts(self) -> int:
        """How many reals a number of the matrix has."""
        return 2 if self.pair else 1

    @property
    def sizes(self) -> tuple[int, int, int, int, int]:
        """Rows, columns, unknowns eliminated beforehand, places of a row of the matrix and of J."""
        places = stride(self.size), stride(self.size + self.eliminated)
        return self.size, self.columns, self.eliminated, *places


@dataclass(frozen=True)
class Solve:
    """Solve a system that `FactorMatrix` has eliminated, in place.

    Unknowns eliminated beforehand come after the others; what is known of them, over the scale,
    stays. The imaginary part of a complex vector comes after its real one.
    """

    system: FactorMatrix
    vector: str


@dataclass(frozen=True)
class WeightedSum:
    """Sum of vectors times the numbers in `weights`, as a loop; places are where they begin.

    As a tape it would take a load, a product and a sum for every element.
    """

    weights: Slice
    vectors: tuple[Slice, ...]
    result: Slice
    size: int


def slices(*names: str) -> tuple[Slice, ...]:
    """Whole buffers."""
    return tuple((name, 0) for name in names)


@dataclass(frozen=True)
class LargestElement:
    """Largest size of any element of some vectors, each times its weight; NaN if there is one."""

    vectors: tuple[Slice, ...]
    weights: str
    result: str
    size: int


@dataclass(frozen=True)
class MaskedCopy:
    """A buffer into another one of its size, for the runs whose flag is up."""

    flag: str
    buffer: str
    kept: str


Operation = (
    Evaluate
    | ReadRow
    | WriteRow
    | While
    | JacobianColumns
    | FactorMatrix
    | Solve
    | WeightedSum
    | LargestElement
    | MaskedCopy
)


@dataclass(frozen=True)
class Program:
    """Buffers and operations.

    Attributes:
        name: For messages.
        state: Buffers that live between calls, name to size: read before, written after.
        given: Buffers that are only read, one per run or shared.
        tables: Arrays of rows, one per run or shared, name to row width.
        operations: What is done, in order.
        interleaved: Tables of which each number of a group of runs lies side by side, so that a
            row of them is read and written by whole vectors. Lanes beyond the last run hold what
            it does. On a GPU any layout will do.
        constants: Numbers of given buffers by place, the same in every call. Kernels of a GPU hold
            them and leave them out of what they are given.
        in_order: Whether sums and products are neither regrouped nor fused on a CPU, so that the
            bits do not depend on the operations around them.
    """

    name: str
    state: dict[str, int]
    given: dict[str, int]
    tables: dict[str, int]
    operations: tuple[Operation, ...]
    interleaved: frozenset[str] = frozenset()
    constants: dict[str, dict[int, float]] = field(default_factory=dict)
    in_order: bool = False

    def varying(self, buffer: str) -> list[int]:
        """Places of a buffer that are not constant."""
        constants = self.constants.get(buffer, {})
        return [k for k in range(self.external[buffer]) if k not in constants]

    @cached_property
    def external(self) -> dict[str, int]:
        """Buffers that come from outside, in the order of the call's table."""
        return {**self.state, **self.given}

    @cached_property
    def local(self) -> dict[str, int]:
        """Buffers that only the operations know, with their sizes."""
        sizes: dict[str, int] = {}
        for operation in self.flatten():
            if isinstance(operation, Evaluate):
                ports = (*operation.tape.inputs, *operation.tape.outputs)
                for name, port in zip(operation.buffers, ports, strict=True):
                    known = self.external.get(name, sizes.get(name, port.size))
                    if known != port.size:
                        raise ValueError(f"buffer '{name}' has two sizes, {known} and {port.size}")
                    if name not in self.external:
                        sizes[name] = port.size
            elif isinstance(operation, ReadRow) and operation.buffer not in self.external:
                sizes.setdefault(operation.buffer, self.tables[operation.table])
            elif isinstance(operation, JacobianColumns):
                rows = operation.body[-1].tape.outputs[0].size
                sizes.setdefault(operation.matrix, rows * operation.stride)
            elif isinstance(operation, FactorMatrix):
                n, _, _, places, given = operation.sizes
                sizes |= {
                    operation.jacobian: n * given,
                    operation.matrix: n * operation.parts * places,
                    operation.work: (1 + 2 * operation.parts) * places,  # order of rows, vectors
                }
            elif isinstance(operation, WeightedSum):
                name, place = operation.result
                if name not in self.external:
                    sizes[name] = max(sizes.get(name, 0), place + operation.size)
            elif isinstance(operation, LargestElement):
                sizes.setdefault(operation.result, 1)
        return sizes

    def size(self, buffer: str) -> int:
        """Length of a buffer."""
        return self.external[buffer] if buffer in self.external else self.local[buffer]

    def flatten(self, operations: Sequence[Operation] | None = None) -> Iterator[Operation]:
        """All operations, loops opened."""
        for operation in self.operations if operations is None else operations:
            yield operation
            if isinstance(operation, While | JacobianColumns):
                yield from self.flatten(operation.body)

    @cached_property
    def tapes(self) -> list[Tape]:
        """Every tape once."""
        found: dict[str, Tape] = {}
        for operation in self.flatten():
            if isinstance(operation, Evaluate):
                found.setdefault(operation.tape.digest, operation.tape)
        return list(found.values())

    @cached_property
    def columns(self) -> list[JacobianColumns]:
        """Every Jacobian."""
        return [operation for operation in self.flatten() if isinstance(operation, JacobianColumns)]

    @property
    def has_matrices(self) -> bool:
        """Return whether Jacobians or linear systems are among the operations."""
        return any(isinstance(o, JacobianColumns | FactorMatrix) for o in self.flatten())

    @property
    def has_pairs(self) -> bool:
        """Return whether any linear system is complex."""
        return any(isinstance(o, FactorMatrix) and o.pair for o in self.flatten())

    @cached_property
    def along(self) -> dict[str, Tape]:
        """Tapes of Jacobians, which have a vector for every number even of one run."""
        return {e.tape.digest: e.tape for operation in self.columns for e in operation.body}

    @cached_property
    def wide(self) -> dict[str, int]:
        """Buffers of Jacobians and their sizes."""
        names = [b for operation in self.columns for e in operation.body for b in e.buffers]
        return {name: self.size(name) for name in names}

    @cached_property
    def digest(self) -> str:
        """Names the program uniquely."""
        text = repr((self.state, self.given, self.tables, _shape(self.operations)))
        text += repr(sorted(self.interleaved)) if self.interleaved else ""
        text += repr(self.constants) if self.constants else ""
        text += "in order" * self.in_order
        return hashlib.sha256(text.encode()).hexdigest()


def _shape(operations: Sequence[Operation]) -> list[object]:
    described: list[object] = []
    for operation in operations:
        match operation:
            case Evaluate(tape, buffers):
                described.append((tape.digest, buffers))
            case While(flag, body, counted):
                described.append((flag, counted, _shape(body)))
            case JacobianColumns(body, direction, result, matrix, places):
                described.append((direction, result, matrix, places, _shape(body)))
            case _:
                described.append(repr(operation))
    return described


def stride(n: int) -> int:
    """Places of a row of n numbers: the last one is its scale, vectors may reach over its end."""
    return -(-(n + WIDEST + 1) // WIDEST) * WIDEST
