"""The plain byte form of a tape: checked data, never code.

Layout: magic, version, header length, JSON header, little-endian arrays,
SHA-256 of all that precedes. The header carries the array sizes and the names
of the operation kinds, so that renumbering kinds never changes old files.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.codegen.tape.operations import ARITY, Kind
from axode.disk.typed import as_dataclass, parse_json
from axode.errors import FileError

if TYPE_CHECKING:
    from axode.codegen.tape.tape import Port, Tape

MAGIC = b"axode-tape\n"
VERSION = 1
DIGEST_SIZE = hashlib.sha256().digest_size

# More than any mechanism needs, and little enough for tables on the stack and for work arrays.
MAX_PORTS = 256
MAX_AXES = 8
MAX_HEADER = 1 << 20  # bytes; as many ports with names as long as a page
MAX_INPUT_ELEMENTS = 1 << 20

_PREFIX = struct.Struct("<II")
_LAYOUT = (
    ("kinds", "<u1", 1),
    ("operands", "<i4", 3),
    ("constants", "<f8", 1),
    ("results", "<i4", 1),
)

AnyArray = npt.NDArray[Any]


class TapeFileError(FileError):
    """Bytes that are not a tape, or not an intact one."""


@dataclass(frozen=True)
class Header:
    """What a tape's bytes say besides numbers; ports are names and shapes."""

    name: str
    inputs: tuple[tuple[str, tuple[int, ...]], ...]
    outputs: tuple[tuple[str, tuple[int, ...]], ...]
    kinds: tuple[str, ...]
    lengths: tuple[int, int, int, int]


@dataclass(frozen=True)
class Content:
    """What a tape's bytes hold, not yet checked for consistency."""

    header: Header
    arrays: tuple[AnyArray, ...]


_LABELS = [kind.label for kind in Kind]


def pack(header: dict[str, Any], arrays: tuple[AnyArray, ...]) -> bytes:
    """Bytes of a header and of the arrays (kinds, operands, constants, results)."""
    full = header | {"kinds": _LABELS, "lengths": [len(array) for array in arrays]}
    text = json.dumps(full, sort_keys=True, separators=(",", ":")).encode()
    raw = [
        np.ascontiguousarray(array, dtype=dtype).tobytes()
        for array, (_, dtype, _) in zip(arrays, _LAYOUT, strict=True)
    ]
    body = b"".join((MAGIC, _PREFIX.pack(VERSION, len(text)), text, *raw))
    return body + hashlib.sha256(body).digest()


def unpack(data: bytes) -> Content:
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
    return Content(header, arrays)


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


def check_structure(tape: Tape) -> None:
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
