"""The plain byte form of a tape: checked data, never code.

Layout: magic, version, header length, JSON header, little-endian arrays,
SHA-256 of all that precedes. The header carries the array sizes and the names
of the operation kinds, so that renumbering kinds never changes old files.
"""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.codegen.operations import ARITY, Kind
from axode.errors import FileError

if TYPE_CHECKING:
    from axode.codegen.tape import Tape

MAGIC = b"axode-tape\n"
VERSION = 1
DIGEST_SIZE = hashlib.sha256().digest_size

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
class Content:
    """What a tape's bytes hold, not yet checked for consistency."""

    header: dict[str, Any]
    arrays: tuple[AnyArray, ...]


def pack(header: dict[str, Any], arrays: tuple[AnyArray, ...]) -> bytes:
    """Bytes of a header and of the arrays (kinds, operands, constants, results)."""
    full = header | {
        "kinds": [kind.label for kind in Kind],
        "lengths": [len(array) for array in arrays],
    }
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
        header = json.loads(body[start : start + header_size])
        arrays = _split(header, body[start + header_size :])
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise TapeFileError(f"the tape's header is damaged: {error}") from error
    return Content(header, arrays)


def _split(header: dict[str, Any], raw: bytes) -> tuple[AnyArray, ...]:
    arrays: list[AnyArray] = []
    position = 0
    for (name, dtype, width), length in zip(_LAYOUT, header["lengths"], strict=True):
        size = int(length) * width
        array = np.frombuffer(raw, dtype=dtype, count=size, offset=position)
        position += array.nbytes
        shaped = array.reshape(-1, width) if width > 1 else array
        arrays.append(shaped.astype(np.dtype(dtype).newbyteorder("="), copy=True))
        if name == "kinds":
            numbers = np.array([Kind[label.upper()] for label in header["kinds"]], dtype=np.uint8)
            arrays[0] = numbers[arrays[0]]
    if position != len(raw):
        raise ValueError("the arrays do not fill the file")
    return tuple(arrays)


def check_structure(tape: Tape) -> None:
    """Refuses a tape whose instructions do not form a valid function.

    The checksum only proves that the bytes are as written; targets trust the
    indices in them, so these are verified as well.
    """
    count = len(tape.kinds)
    number = np.arange(count)
    arity = np.array([ARITY[kind] for kind in Kind], dtype=np.int64)[tape.kinds]
    sound = tape.operands.shape == (count, 3)
    sound = sound and len(tape.results) == sum(port.size for port in tape.outputs)
    sound = sound and all(
        size >= 0 for port in (*tape.inputs, *tape.outputs) for size in port.shape
    )
    if sound:
        for column in range(3):
            operand, used = tape.operands[:, column], arity > column
            sound &= bool(np.all((operand[used] >= 0) & (operand[used] < number[used])))
        sound &= bool(np.all((tape.results >= 0) & (tape.results < count)))
        sound &= _leaves_are_sound(tape)
    if not sound:
        raise TapeFileError(f"the tape of '{tape.name}' refers to values that do not exist.")


def _leaves_are_sound(tape: Tape) -> bool:
    constant = tape.operands[tape.kinds == Kind.CONSTANT, 0]
    sizes = np.array([port.size for port in tape.inputs], dtype=np.int64)
    argument, element, _ = tape.operands[tape.kinds == Kind.INPUT].T
    if np.any((constant < 0) | (constant >= len(tape.constants))):
        return False
    if np.any((argument < 0) | (argument >= len(sizes))):
        return False
    return not np.any((element < 0) | (element >= sizes[argument]))
