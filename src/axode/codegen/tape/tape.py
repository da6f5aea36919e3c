"""SX functions as flat tapes of scalar operations.

A tape is what every target compiles: plain data in single-assignment form,
with no trace of CasADi. This is the only file that knows CasADi's opcodes. As bytes,
a tape is checked data, never code.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from axode.codegen.tape.builder import TapeBuilder
from axode.codegen.tape.operations import ARITY, LEAVES, MEANING, Array, Kind
from axode.disk.bounded import as_dataclass, parse_json
from axode.errors import FileError, InvalidArgument, NotApplicable

if TYPE_CHECKING:
    import casadi


MAGIC = b"axode-tape\n"
VERSION = 1
DIGEST_SIZE = hashlib.sha256().digest_size

# More than any mechanism needs, and little enough for tables on the stack and for work arrays.
MAX_PORTS = 256
MAX_AXES = 8
MAX_HEADER = 1 << 20  # bytes; as many ports with names as long as a page
MAX_INPUT_ELEMENTS = 1 << 20
SMALL_BATCH = 256  # states for which all values of a tape are kept at once

_PREFIX = struct.Struct("<II")
_LAYOUT = (
    ("kinds", "<u1", 1),
    ("operands", "<i4", 3),
    ("constants", "<f8", 1),
    ("results", "<i4", 1),
)

AnyArray = npt.NDArray[Any]
_LABELS = [kind.label for kind in Kind]


class TapeFileError(FileError):
    """Bytes that are not a tape, or not an intact one."""


@dataclass(frozen=True)
class Header:
    """What a tape's bytes say besides numbers; ports are names and shapes.

    Layout: magic, version, header length, JSON header, little-endian arrays,
    SHA-256 of all that precedes. The header carries the array sizes and the names
    of the operation kinds, so that renumbering kinds never changes old files.
    """

    name: str
    inputs: tuple[tuple[str, tuple[int, ...]], ...]
    outputs: tuple[tuple[str, tuple[int, ...]], ...]
    kinds: tuple[str, ...]
    lengths: tuple[int, int, int, int]


def _pack(header: dict[str, Any], arrays: tuple[AnyArray, ...]) -> bytes:
    """Bytes of a header and of the arrays (kinds, operands, constants, results)."""
    full = header | {"kinds": _LABELS, "lengths": [len(array) for array in arrays]}
    text = json.dumps(full, sort_keys=True, separators=(",", ":")).encode()
    raw = [
        np.ascontiguousarray(array, dtype=dtype).tobytes()
        for array, (_, dtype, _) in zip(arrays, _LAYOUT, strict=True)
    ]
    body = b"".join((MAGIC, _PREFIX.pack(VERSION, len(text)), text, *raw))
    return body + hashlib.sha256(body).digest()


def _unpack(data: bytes) -> tuple[Header, tuple[AnyArray, ...]]:
    """Header and arrays of a tape's bytes.

    Raises:
        TapeFileError: if the bytes are not an intact tape of this version.
    """
    start = len(MAGIC) + _PREFIX.size
    if data[: len(MAGIC)] != MAGIC:
        raise TapeFileError("these bytes are not an Axode tape.")
    if len(data) < start + DIGEST_SIZE:
        raise TapeFileError("the tape is truncated.")
    version, header_size = _PREFIX.unpack_from(data, len(MAGIC))
    if version != VERSION:
        raise TapeFileError(f"the tape has format {version}; this Axode reads format {VERSION}.")
    body, digest = data[:-DIGEST_SIZE], data[-DIGEST_SIZE:]
    if hashlib.sha256(body).digest() != digest:
        raise TapeFileError("the tape is truncated or was changed: its checksum does not match.")
    try:
        if header_size > min(len(body) - start, MAX_HEADER):
            raise FileError(f"it has {header_size} bytes")
        header = as_dataclass(Header, parse_json(body[start : start + header_size]), "tape")
        arrays = _split(header, memoryview(body)[start + header_size :])
    except FileError as error:
        raise TapeFileError(f"the tape's header is damaged: {error}") from error
    return header, arrays


def _split(header: Header, raw: memoryview) -> tuple[AnyArray, ...]:
    """Cut the arrays out, once their sizes are known to be those of the file."""
    sizes = [length * width for length, (_, _, width) in zip(header.lengths, _LAYOUT, strict=True)]
    needed = [
        size * np.dtype(dtype).itemsize for size, (_, dtype, _) in zip(sizes, _LAYOUT, strict=True)
    ]
    if min(sizes) < 0 or sum(needed) != len(raw):
        raise FileError("the arrays do not fill the file")
    arrays: list[AnyArray] = []
    position = 0
    for (_, dtype, width), size, nbytes in zip(_LAYOUT, sizes, needed, strict=True):
        array = np.frombuffer(raw[position : position + nbytes], dtype=dtype, count=size)
        position += nbytes
        shaped = array.reshape(-1, width) if width > 1 else array
        arrays.append(shaped.astype(np.dtype(dtype).newbyteorder("="), copy=True))
    arrays[0] = _renumber(header.kinds, arrays[0])
    return tuple(arrays)


def _renumber(labels: tuple[str, ...], kinds: AnyArray) -> AnyArray:
    """Kinds by this version's numbers, from those of the file."""
    known = {kind.label: int(kind) for kind in Kind}
    unknown = [label for label in labels if label not in known]
    if unknown:
        raise FileError(f"operation '{unknown[0][:40]}' is not known")
    if kinds.max(initial=0) >= len(labels) and len(kinds):
        raise FileError("an operation has no name")
    return np.array([known[label] for label in labels], dtype=np.uint8)[kinds]


def _check_structure(tape: Tape) -> None:
    """Refuse a tape whose instructions do not form a valid function.

    The checksum only proves that the bytes are as written; targets trust the
    indices in them, so these are verified as well.

    Raises:
        TapeFileError: saying what is wrong.
    """
    for fault in _faults(tape):
        raise TapeFileError(f"the tape of '{tape.name}' {fault}.")


def _faults(tape: Tape) -> Iterator[str]:
    yield from _port_faults("inputs", tape.inputs)
    yield from _port_faults("outputs", tape.outputs)
    if sum(port.size for port in tape.inputs) > MAX_INPUT_ELEMENTS:
        yield f"has inputs of more than {MAX_INPUT_ELEMENTS} numbers"
    count = len(tape.kinds)
    sound = tape.operands.shape == (count, 3)
    sound = sound and len(tape.results) == sum(port.size for port in tape.outputs)
    sound = sound and bool(np.all((tape.results >= 0) & (tape.results < count)))
    if not (sound and _operands_are_sound(tape) and _leaves_are_sound(tape)):
        yield "refers to values that do not exist"


def _port_faults(side: str, ports: tuple[Port, ...]) -> Iterator[str]:
    """Find what is wrong with numbers, names and shapes of ports."""
    if len(ports) > MAX_PORTS:
        yield f"has {len(ports)} {side}, expected at most {MAX_PORTS}"
    if len({port.name for port in ports}) != len(ports):
        yield f"has {side} of the same name"
    for port in ports:
        if not port.name:
            yield f"has {side} without a name"
        if len(port.shape) > MAX_AXES or not all(0 <= n <= 1 << 30 for n in port.shape):
            yield f"has the impossible shape {str(port.shape)[:60]} for '{port.name}'"


def _operands_are_sound(tape: Tape) -> bool:
    """Return whether operands precede their instruction, and are no more than it takes."""
    number = np.arange(len(tape.kinds))
    arity = np.array([ARITY[kind] for kind in Kind], dtype=np.int64)[tape.kinds]
    leaves = np.array([2 if kind == Kind.INPUT else int(kind == Kind.CONSTANT) for kind in Kind])
    for column in range(3):
        operand = tape.operands[:, column]
        used, leaf = arity > column, leaves[tape.kinds] > column
        if np.any((operand[used] < 0) | (operand[used] >= number[used])):
            return False
        if np.any(operand[~used & ~leaf] != -1):
            return False
    return True


def _leaves_are_sound(tape: Tape) -> bool:
    constant = tape.operands[tape.kinds == Kind.CONSTANT, 0]
    sizes = np.array([port.size for port in tape.inputs], dtype=np.int64)
    argument, element, _ = tape.operands[tape.kinds == Kind.INPUT].T
    if np.any((constant < 0) | (constant >= len(tape.constants))):
        return False
    if np.any((argument < 0) | (argument >= len(sizes))):
        return False
    return not np.any((element < 0) | (element >= sizes[argument]))


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
        header, arrays = _unpack(data)
        inputs, outputs = (
            tuple(Port(name, shape) for name, shape in side)
            for side in (header.inputs, header.outputs)
        )
        tape = cls(header.name, inputs, outputs, *arrays)
        _check_structure(tape)
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
        return _pack(header, (self.kinds, self.operands, self.constants, self.results))

    @property
    def digest(self) -> str:
        """SHA-256 of the tape in hexadecimal digits."""
        return self._bytes[-DIGEST_SIZE:].hex()

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
            if math.prod(batch) <= SMALL_BATCH:
                return self.gather(self._small_batch(values), batch)
            numbers = self.fold(
                lambda argument, element: values[argument][..., element],
                lambda constant: np.asarray(constant),
                lambda kind, *operands: MEANING[kind](*operands),
            )
        return self.gather(numbers, batch)

    def _small_batch(self, values: list[Array]) -> list[Array]:
        """Values of the output elements of so few states that calls take the time, not numbers."""
        numbers: list[Any] = []
        add = numbers.append
        for function, a, b, c in self._schedule:
            if function is None:
                add(values[a][..., b])
            elif c >= 0:
                add(function(numbers[a], numbers[b], numbers[c]))
            elif b >= 0:
                add(function(numbers[a], numbers[b]))
            elif a >= 0:
                add(function(numbers[a]))
            else:
                add(function())
        return [numbers[number] for number in self.results.tolist()]

    @cached_property
    def _schedule(self) -> list[tuple[Callable[..., Any] | None, int, int, int]]:
        """Function and operands of each instruction; an input has no function."""
        made: list[tuple[Callable[..., Any] | None, int, int, int]] = []
        for code, row in zip(self.kinds.tolist(), self.operands.tolist(), strict=True):
            if code == Kind.INPUT:
                made.append((None, row[0], row[1], -1))
            elif code == Kind.CONSTANT:
                number = np.asarray(float(self.constants[row[0]]))
                made.append((lambda number=number: number, -1, -1, -1))
            else:
                kind = Kind(code)
                used = [*row[: ARITY[kind]], -1, -1, -1]
                made.append((MEANING[kind], used[0], used[1], used[2]))
        return made

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

    same = {code: int(kind) for code, kind in _opcode_table().items()}
    apply: Callable[..., int] = builder.apply
    one, two, zero = (builder.constant(x) for x in (1.0, 2.0, 0.0))
    work: dict[int, int] = {}
    parts = function.instruction_id, function.instruction_input, function.instruction_output
    rows = zip(*(map(part, range(function.n_instructions())) for part in parts), strict=True)
    for k, (code, source, target) in enumerate(rows):
        if code in same:
            if len(source) == 2:
                value = apply(same[code], work[source[0]], work[source[1]])
            else:
                value = apply(same[code], *map(work.__getitem__, source))
        elif code == ca.OP_OUTPUT:
            place = first_result[target[0]] + outputs[target[0]][1][target[1]]
            results[place] = work[source[0]]
            continue
        elif code == ca.OP_INPUT:
            value = builder.input(source[0], inputs[source[0]][1][source[1]])
        elif code == ca.OP_CONST:
            value = builder.constant(function.instruction_constant(k))
        elif code == ca.OP_SQ:
            value = apply(Kind.MUL, work[source[0]], work[source[0]])
        elif code == ca.OP_TWICE:
            value = apply(Kind.MUL, work[source[0]], two)
        elif code == ca.OP_INV:
            value = apply(Kind.DIV, one, work[source[0]])
        elif code == ca.OP_IF_ELSE_ZERO:
            value = apply(Kind.SELECT, work[source[0]], work[source[1]], zero)
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
