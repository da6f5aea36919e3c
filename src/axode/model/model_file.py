"""Model files: names and tapes, read as data that is checked, never as code."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping
from dataclasses import asdict
from os import PathLike
from pathlib import Path

from axode.codegen.tape.tape import Tape
from axode.disk.atomic import write_atomically
from axode.disk.bounded import read_bounded
from axode.disk.typed import as_dataclass, as_type, parse_json
from axode.errors import AxodeError, FileError, UnknownName
from axode.mechanism.scene.scene import Scene, within_folders
from axode.model.consistency import check_scene, disagreements
from axode.model.file_description import FileDescription
from axode.model.function_source import TapeLibrary, check_precision
from axode.model.metadata import Facts
from axode.model.model import Model

MAGIC = b"axode-model\n"
VERSION = 3  # 1 had the scene as text among the facts
READABLE = (2, 3)  # 2 had no description of the mechanism
MAX_BYTES = 512 << 20  # a chain of a hundred joints has a hundredth of it
MAX_FAULTS = 10  # named in one message
_PREFIX = struct.Struct("<II")
_DIGEST = hashlib.sha256().digest_size


def save_model(
    facts: Facts,
    scene: Scene,
    tapes: Mapping[str, Tape],
    path: str | PathLike[str],
    description: FileDescription | None = None,
) -> None:
    """Write a model; an interrupted write leaves the old file as it was."""
    write_atomically(path, encode_model(facts, scene, tapes, description))


def encode_model(
    facts: Facts,
    scene: Scene,
    tapes: Mapping[str, Tape],
    description: FileDescription | None = None,
) -> bytes:
    """Content of a model file, with the description for runs that change rows and speeds."""
    blobs = {name: tape.to_bytes() for name, tape in tapes.items()}
    header = {
        "facts": facts.to_json(),
        "scene": asdict(within_folders(scene, ())),  # not where they are on this machine
        "functions": [[name, len(blob)] for name, blob in blobs.items()],
    }
    if description is not None:
        header["mechanism"] = description.to_json()
    text = json.dumps(header, separators=(",", ":")).encode()
    body = b"".join((MAGIC, _PREFIX.pack(VERSION, len(text)), text, *blobs.values()))
    return body + hashlib.sha256(body).digest()


def load_model(path: str | PathLike[str], target: str = "cpu", precision: str = "float64") -> Model:
    """Read a model that `Model.save` wrote; needs neither its mechanism nor CasADi.

    Args:
        path: The file, usually `name.axm`.
        target: "cpu" or "cuda".
        precision: "float64", or "float32" on a GPU.

    Raises:
        FileError: if it cannot be read, is truncated, was changed, or is of another version.
    """
    if not isinstance(target, str) or target not in ("cpu", "cuda"):
        raise UnknownName("a model from a file", "target", target, ("cpu", "cuda"))
    check_precision(precision, target)
    data = _bytes(path)
    folder = str(Path(path).absolute().parent)
    return decode_model(data, target, precision, f"'{path}'", folder)


def decode_model(
    data: bytes,
    target: str = "cpu",
    precision: str = "float64",
    source: str = "this model",
    folder: str | None = None,
) -> Model:
    """Read the content of a model file.

    Args:
        data: The content.
        target: "cpu" or "cuda".
        precision: "float64", or "float32" on a GPU.
        source: Where it comes from, for messages.
        folder: Where the meshes of its pictures may be; without one, they are not shown.

    Raises:
        FileError: as `load_model` does.
    """
    start = len(MAGIC) + _PREFIX.size
    if data[: len(MAGIC)] != MAGIC:
        raise FileError(f"{source} is not an Axode model; write one with model.save(...).")
    if len(data) < start + _DIGEST:
        raise FileError(f"{source} is truncated; save the model again.")
    version, size = _PREFIX.unpack_from(data, len(MAGIC))
    if version not in READABLE:
        raise FileError(
            f"{source} has format {version}; this Axode reads format {VERSION}; save it again."
        )
    body, digest = data[:-_DIGEST], data[-_DIGEST:]
    if hashlib.sha256(body).digest() != digest:
        raise FileError(f"{source} is truncated or was changed: its checksum does not match.")
    try:
        return _decoded(body, start, size, target, precision, folder)
    except AxodeError as error:
        raise FileError(f"{source} is damaged: {error}") from error


def _bytes(path: str | PathLike[str]) -> bytes:
    """Content of a model file; only the beginning of other files."""
    try:
        return read_bounded(path, MAX_BYTES, "model", start=MAGIC)
    except (OSError, ValueError) as error:  # ValueError: a path with a zero byte in it
        reason = getattr(error, "strerror", None) or error
        raise FileError(f"cannot read '{path}': {reason}") from error


def _decoded(
    body: bytes, start: int, size: int, target: str, precision: str, folder: str | None
) -> Model:
    if start + size > len(body):
        raise FileError("its description is longer than the file")
    header = parse_json(body[start : start + size])
    if not isinstance(header, dict) or set(header) - {"mechanism"} != {
        "facts",
        "scene",
        "functions",
    }:
        raise FileError("its description has other entries than facts, scene and functions")
    facts = Facts.from_json(header["facts"])
    functions = as_type(tuple[tuple[str, int], ...], header["functions"], "functions")
    lengths = [length for _, length in functions]
    if min(lengths, default=0) < 0 or sum(lengths) != len(body) - start - size:
        raise FileError("the functions do not fill the file")
    position, tapes = start + size, {}
    for name, length in functions:
        tapes[name] = Tape.from_bytes(body[position : position + length])
        position += length
    wrong = list(disagreements(facts, tapes))
    if len(tapes) != len(functions):
        wrong.append("two functions have the same name")
    if wrong:
        raise FileError("; ".join(wrong[:MAX_FAULTS]))
    scene = as_dataclass(Scene, header["scene"], "scene")
    check_scene(facts, scene)
    scene = within_folders(scene, None if folder is None else (folder,))
    described = header.get("mechanism")
    description = None if described is None else FileDescription.from_json(described, facts)
    return Model(facts, TapeLibrary(tapes, scene, target, precision, description))
