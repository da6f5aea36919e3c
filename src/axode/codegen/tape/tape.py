"""SX functions as flat tapes of scalar operations.

A tape is what every target compiles: plain data in single-assignment form,
with no trace of CasADi. This is the only file that knows CasADi's opcodes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

from axode.codegen.tape import tape_file as tapefile
from axode.codegen.tape.builder import TapeBuilder
from axode.codegen.tape.operations import ARITY, LEAVES, MEANING, Array, Kind
from axode.errors import InvalidArgument, NotApplicable

if TYPE_CHECKING:
    import casadi

Shape = tuple[int, ...]
Value = TypeVar("Value")


class UnsupportedOperation(NotApplicable):
    """An expression contains something that no target can compute."""


@dataclass(frozen=True)
class Port:
    """Name and shape of one input or output of a tape.

    Scalars have shape ``()``, column vectors ``(n,)``, everything else
    ``(rows, columns)``; elements are counted in C order.
    """

    name: str
    shape: Shape

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


@dataclass(frozen=True, eq=False)
class Tape:
    """A function as a list of scalar operations, each assigned once.

    Attributes:
        name: Name of the function.
        inputs: Names and shapes of the arguments.
        outputs: Names and shapes of the results.
        kinds: One `Kind` per instruction, shape (n,).
        operands: Up to three earlier instructions, shape (n, 3), -1 if unused. An INPUT
            has (argument, element, -1), a CONSTANT (index into constants, -1, -1).
        constants: The numbers.
        results: Instruction of every output element, outputs one after the other.
    """

    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    kinds: npt.NDArray[np.uint8]
    operands: npt.NDArray[np.int32]
    constants: Array
    results: npt.NDArray[np.int32]

    def __post_init__(self) -> None:
        for array in (self.kinds, self.operands, self.constants, self.results):
            array.setflags(write=False)

    @classmethod
    def from_casadi(cls, function: casadi.Function) -> Tape:
        """Flatten an SX function.

        Args:
            function: CasADi function made of SX expressions, without free variables.

        Raises:
            UnsupportedOperation: naming the operation and the expression it is in.
        """
        return _from_casadi(function)

    @classmethod
    def build(
        cls,
        name: str,
        inputs: tuple[Port, ...],
        outputs: tuple[Port, ...],
        builder: TapeBuilder,
        results: list[int],
    ) -> Tape:
        """The part of a builder's instructions that the results need."""
        table, renumbered, constants = builder.live_instructions(results)
        return cls(
            name=name,
            inputs=inputs,
            outputs=outputs,
            kinds=table[:, 0].astype(np.uint8),
            operands=table[:, 1:].astype(np.int32),
            constants=constants,
            results=renumbered.astype(np.int32),
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> Tape:
        """Read what `to_bytes` wrote; refuses anything else.

        Raises:
            TapeFileError: if the data is truncated, changed or of another version.
        """
        content = tapefile.unpack(data)
        header = content.header
        inputs, outputs = (
            tuple(Port(name, shape) for name, shape in side)
            for side in (header.inputs, header.outputs)
        )
        tape = cls(header.name, inputs, outputs, *content.arrays)
        tapefile.check_structure(tape)
        return tape

    def to_bytes(self) -> bytes:
        """A versioned, plain, non-executable form; the same tape gives the same bytes."""
        return self._bytes

    @cached_property
    def _bytes(self) -> bytes:
        header = {
            "name": self.name,
            "inputs": [[port.name, list(port.shape)] for port in self.inputs],
            "outputs": [[port.name, list(port.shape)] for port in self.outputs],
        }
        return tapefile.pack(header, (self.kinds, self.operands, self.constants, self.results))

    @property
    def digest(self) -> str:
        """SHA-256 of the tape in hexadecimal digits."""
        return self._bytes[-tapefile.DIGEST_SIZE :].hex()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tape) and self._bytes == other._bytes

    def __hash__(self) -> int:
        return hash(self.digest)

    @cached_property
    def operations(self) -> dict[str, int]:
        """How many operations of each kind, most frequent first."""
        counts = Counter(self.kinds.tolist())
        ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        return {Kind(kind).label: count for kind, count in ordered if kind not in LEAVES}

    @property
    def n_operations(self) -> int:
        """Arithmetic and function operations; inputs and constants are free."""
        return int((self.kinds > Kind.CONSTANT).sum())

    def __repr__(self) -> str:
        signature = ", ".join(f"{port.name}{list(port.shape)}" for port in self.inputs)
        results = ", ".join(f"{port.name}{list(port.shape)}" for port in self.outputs)
        return f"Tape {self.name}({signature}) -> ({results}), {self.n_operations} operations"

    def evaluate(self, *arrays: npt.ArrayLike) -> tuple[Array, ...]:
        """Run the tape in NumPy: slow, simple, the reference for every target.

        Args:
            *arrays: One array per input, any leading batch axes, broadcast together.

        Returns:
            One array per output, batch axes first.
        """
        values, batch = self.input_elements(arrays)
        with np.errstate(all="ignore"):
            numbers = self.fold(
                lambda argument, element: values[argument][..., element],
                lambda constant: np.asarray(constant),
                lambda kind, *operands: MEANING[kind](*operands),
            )
        return self.gather(numbers, batch)

    def fold(
        self,
        take: Callable[[int, int], Value],
        constant: Callable[[float], Value],
        apply: Callable[..., Value],
    ) -> list[Value]:
        """Run the tape on values of any kind; return those of the output elements.

        Args:
            take: Value of an element of an argument.
            constant: Value of a number.
            apply: Value of an operation, called with its `Kind` and the operands' values.
        """
        last_use = self.last_use
        values: dict[int, Value] = {}
        for number, (code, row) in enumerate(
            zip(self.kinds.tolist(), self.operands.tolist(), strict=True)
        ):
            if code == Kind.INPUT:
                values[number] = take(row[0], row[1])
            elif code == Kind.CONSTANT:
                values[number] = constant(float(self.constants[row[0]]))
            else:
                kind = Kind(code)
                used = row[: ARITY[kind]]
                values[number] = apply(kind, *(values[v] for v in used))
                for v in set(used):
                    if last_use[v] == number:
                        del values[v]
        return [values[number] for number in self.results.tolist()]

    def input_elements(self, arrays: Sequence[npt.ArrayLike]) -> tuple[list[Array], Shape]:
        """Arguments with their elements along the last axis, and the common batch axes."""
        if len(arrays) != len(self.inputs):
            raise InvalidArgument(
                f"{self.name} takes {len(self.inputs)} arrays, got {len(arrays)}."
            )
        flat, shapes = [], []
        for port, array in zip(self.inputs, arrays, strict=True):
            array = np.asarray(array, dtype=np.float64)
            shape = array.shape[: array.ndim - len(port.shape)]
            if array.shape[len(shape) :] != port.shape:
                raise InvalidArgument(
                    f"'{port.name}' has shape {array.shape}, expected (..., {port.shape})."
                )
            flat.append(array.reshape((*shape, port.size)))
            shapes.append(shape)
        return flat, np.broadcast_shapes(*shapes)

    @cached_property
    def last_use(self) -> npt.NDArray[np.int64]:
        """The instruction after which each value is not needed any more."""
        count = len(self.kinds)
        last = np.zeros(count, dtype=np.int64)
        operations = np.flatnonzero(self.kinds > Kind.CONSTANT)
        for column in range(3):
            operand = self.operands[operations, column]
            used = operand >= 0
            np.maximum.at(last, operand[used], operations[used])
        last[self.results] = count
        return last

    def gather(self, numbers: Sequence[Array], batch: Shape) -> tuple[Array, ...]:
        """Output elements as one array per output, batch axes first."""
        outputs, first = [], 0
        for port in self.outputs:
            output = np.empty((*batch, port.size))
            for element in range(port.size):
                output[..., element] = numbers[first + element]
            first += port.size
            outputs.append(output.reshape((*batch, *port.shape)))
        return tuple(outputs)


@cache
def _opcode_table() -> dict[int, Kind]:
    """CasADi opcodes that are one operation of ours under the same name."""
    import casadi

    names = [kind.name for kind in Kind if kind not in (*LEAVES, Kind.SELECT)]
    return {getattr(casadi, f"OP_{name}"): Kind[name] for name in names} | {
        casadi.OP_CONSTPOW: Kind.POW
    }


def _port(name: str, sparsity: casadi.Sparsity) -> tuple[Port, list[int]]:
    """The port of a CasADi argument, and the C-order element of each of its nonzeros."""
    rows, columns = sparsity.shape
    shape: Shape = (rows, columns)
    if columns == 1:
        shape = () if rows == 1 else (rows,)
    nonzero_rows, nonzero_columns = sparsity.get_triplet()
    elements = [r * columns + c for r, c in zip(nonzero_rows, nonzero_columns, strict=True)]
    return Port(name, shape), elements


def _from_casadi(function: casadi.Function) -> Tape:
    _refuse_unless_closed_sx(function)
    inputs = [_port(function.name_in(i), function.sparsity_in(i)) for i in range(function.n_in())]
    outputs = [
        _port(function.name_out(i), function.sparsity_out(i)) for i in range(function.n_out())
    ]
    first_result = np.concatenate(([0], np.cumsum([port.size for port, _ in outputs])))
    builder = TapeBuilder()
    results = [builder.constant(0.0)] * int(first_result[-1])
    _replay(function, builder, inputs, outputs, results, first_result)
    return Tape.build(
        name=function.name(),
        inputs=tuple(port for port, _ in inputs),
        outputs=tuple(port for port, _ in outputs),
        builder=builder,
        results=results,
    )


def _replay(
    function: casadi.Function,
    builder: TapeBuilder,
    inputs: list[tuple[Port, list[int]]],
    outputs: list[tuple[Port, list[int]]],
    results: list[int],
    first_result: npt.NDArray[np.int64],
) -> None:
    """Run CasADi's instructions through the builder; fills in the results."""
    import casadi as ca

    same = _opcode_table()
    one, two, zero = (builder.constant(x) for x in (1.0, 2.0, 0.0))
    work: dict[int, int] = {}
    for k in range(function.n_instructions()):
        code, source = function.instruction_id(k), function.instruction_input(k)
        target = function.instruction_output(k)
        if code == ca.OP_OUTPUT:
            place = first_result[target[0]] + outputs[target[0]][1][target[1]]
            results[place] = work[source[0]]
            continue
        if code == ca.OP_INPUT:
            value = builder.input(source[0], inputs[source[0]][1][source[1]])
        elif code == ca.OP_CONST:
            value = builder.constant(function.instruction_constant(k))
        elif code in same:
            value = builder.apply(same[code], *map(work.__getitem__, source))
        elif code == ca.OP_SQ:
            value = builder.apply(Kind.MUL, work[source[0]], work[source[0]])
        elif code == ca.OP_TWICE:
            value = builder.apply(Kind.MUL, work[source[0]], two)
        elif code == ca.OP_INV:
            value = builder.apply(Kind.DIV, one, work[source[0]])
        elif code == ca.OP_IF_ELSE_ZERO:
            value = builder.apply(Kind.SELECT, work[source[0]], work[source[1]], zero)
        elif code in (ca.OP_ASSIGN, ca.OP_LIFT):
            value = work[source[0]]
        else:
            raise _unsupported(function, k)
        work[target[0]] = value


def _refuse_unless_closed_sx(function: casadi.Function) -> None:
    if not function.is_a("SXFunction"):
        raise UnsupportedOperation(
            f"function '{function.name()}' is a {function.class_name()}, not made of SX.\n"
            "  Call function.expand() first."
        )
    free = function.get_free()
    if free:
        raise UnsupportedOperation(
            f"function '{function.name()}' depends on {', '.join(free)}, not among its inputs.\n"
            "  Add them to the inputs or substitute numbers."
        )


def _unsupported(function: casadi.Function, instruction: int) -> UnsupportedOperation:
    import casadi

    code = function.instruction_id(instruction)
    names = {getattr(casadi, n): n[3:].lower() for n in dir(casadi) if n.startswith("OP_")}
    expression = str(function.instructions_sx()[instruction])
    return UnsupportedOperation(
        f"function '{function.name()}' uses '{names.get(code, code)}', which cannot be compiled.\n"
        f"  Found in: {expression[:200]}"
    )
