"""Models in files: names and tapes, checked data and never code."""

from __future__ import annotations

import hashlib
import json
import os
import struct
import tempfile
from collections.abc import Mapping
from os import PathLike
from pathlib import Path

from axode.codegen.consistency import disagreements
from axode.codegen.facts import Facts
from axode.codegen.library import TapeLibrary, refuse_precision
from axode.codegen.model import Model
from axode.codegen.tape import Tape
from axode.errors import FileError, UnknownName

MAGIC = b"axode-model\n"
VERSION = 1
_PREFIX = struct.Struct("<II")
_DIGEST = hashlib.sha256().digest_size


def save_model(facts: Facts, tapes: Mapping[str, Tape], path: str | PathLike[str]) -> None:
    """Write a model; an interrupted write leaves the old file as it was."""
    blobs = {name: tape.to_bytes() for name, tape in tapes.items()}
    header = {"facts": facts.to_json(), "functions": [[n, len(b)] for n, b in blobs.items()]}
    text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    body = b"".join((MAGIC, _PREFIX.pack(VERSION, len(text)), text, *blobs.values()))
    write_atomically(Path(path), body + hashlib.sha256(body).digest())


def load_model(path: str | PathLike[str], target: str = "cpu", precision: str = "float64") -> Model:
    """Read a model that `Model.save` wrote; needs neither its mechanism nor CasADi.

    Args:
        path: The file, usually `name.axm`.
        target: "cpu" or "cuda".
        precision: "float64", or "float32" on a GPU.

    Raises:
        FileError: if it cannot be read, is truncated, was changed, or is of another version.
    """
    if target not in ("cpu", "cuda"):
        raise UnknownName("a model from a file", "target", target, ("cpu", "cuda"))
    refuse_precision(precision, target)
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise FileError(f"cannot read '{path}': {error.strerror or error}") from error
    start = len(MAGIC) + _PREFIX.size
    if data[: len(MAGIC)] != MAGIC:
        raise FileError(f"'{path}' is not an Axode model; write one with model.save(...).")
    if len(data) < start + _DIGEST:
        raise FileError(f"'{path}' is truncated; save the model again.")
    version, size = _PREFIX.unpack_from(data, len(MAGIC))
    if version != VERSION:
        raise FileError(f"'{path}' has format {version}; this Axode reads format {VERSION}.")
    body, digest = data[:-_DIGEST], data[-_DIGEST:]
    if hashlib.sha256(body).digest() != digest:
        raise FileError(f"'{path}' is truncated or was changed: its checksum does not match.")
    try:
        return _decoded(body, start, size, target, precision)
    except (ValueError, KeyError, TypeError, FileError) as error:
        raise FileError(f"'{path}' is damaged: {error}") from error


def _decoded(body: bytes, start: int, size: int, target: str, precision: str) -> Model:
    header = json.loads(body[start : start + size])
    position = start + size
    tapes = {}
    for name, length in header["functions"]:
        tapes[str(name)] = Tape.from_bytes(body[position : position + length])
        position += length
    facts = Facts.from_json(header["facts"])
    wrong = list(disagreements(facts, tapes))
    if wrong:
        raise FileError("; ".join(wrong))
    return Model(facts, TapeLibrary(tapes, target, precision))


def write_atomically(path: Path, data: bytes) -> None:
    """Write beside the file, then take its place.

    Raises:
        FileError: if the disk or the folder refuses; what was there before is still there.
    """
    temporary = None
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            path.write_bytes(data)  # a device or a pipe, which nothing must take the place of
            return
        handle, temporary = tempfile.mkstemp(dir=path.parent or ".", prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except OSError as error:
        if temporary is not None and os.path.exists(temporary):
            os.unlink(temporary)
        raise FileError(f"cannot write '{path}': {error.strerror or error}") from error
