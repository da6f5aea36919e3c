"""Model files: names and tapes, read as data that is checked, never as code.

The description itself is in the file, too, so that runs can change rows and speeds.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from axode.codegen.tape.tape import Tape
from axode.disk.atomic import write_atomically
from axode.disk.bounded import as_dataclass, as_type, parse_json, read_bounded
from axode.errors import AxodeError, FileError, UnknownName, collect_warnings
from axode.mechanism.description_cache import NoDigest, digest_of
from axode.mechanism.elements.bodies import Mesh
from axode.mechanism.scene.scene import Scene, within_folders
from axode.mechanism.topology import parameters_of, speed_units
from axode.model.consistency import check_scene, disagreements
from axode.model.function_source import TapeLibrary, check_precision
from axode.model.metadata import Facts
from axode.model.model import Model
from axode.symbolic.constraints.row_choice import RowNumbers

if TYPE_CHECKING:
    from axode.mechanism.mechanism import Mechanism
    from axode.model.metadata import Facts
    from axode.symbolic.equations import Equations


@dataclass(frozen=True)
class FileDescription:
    """A mechanism as a document of a mechanism file, and the numbers of its rows.

    Attributes:
        rows: Numbers of all rows at the configurations at which the mechanism was derived.
        document: Tables of the mechanism file, without meshes.
        name, formulation, speeds, parameters: Those of the model.
    """

    rows: RowNumbers
    document: dict[str, Any]
    name: str
    formulation: str
    speeds: tuple[str, ...]
    parameters: tuple[str, ...]

    @classmethod
    def of(cls, equations: Equations, rows: RowNumbers) -> FileDescription | None:
        """Describe a mechanism, exactly; None if a file cannot hold it."""
        from axode.mechanism.files.toml.toml_writer import document_of

        mechanism = equations.mechanism
        bare = _without_meshes(mechanism)
        with contextlib.suppress(AxodeError, NoDigest, RecursionError):
            document = document_of(bare)
            speeds, parameters = tuple(speed_units(mechanism)), tuple(parameters_of(mechanism))
            again = _mechanism(document, mechanism.name)
            same = digest_of(_without_meshes(again)) == digest_of(bare)
            if same and parameters == tuple(parameters_of(again)):
                form = equations.formulation
                return cls(rows, document, mechanism.name, form, speeds, parameters)
        return None

    def to_json(self) -> dict[str, Any]:
        """Return the description in JSON's own types."""
        return {"rows": asdict(self.rows), "document": self.document}

    @classmethod
    def from_json(cls, data: Any, facts: Facts) -> FileDescription:
        """Read what `to_json` returned.

        Raises:
            FileError: for what is no description, or not that of the model.
        """
        if not isinstance(data, dict) or set(data) != {"rows", "document"}:
            raise FileError("its mechanism has other entries than rows and document")
        if not isinstance(data["document"], dict):
            raise FileError("its mechanism is no table")
        rows = as_dataclass(RowNumbers, data["rows"], "rows")
        for fault in chain(rows.faults, _disagreements(rows, facts)):
            raise FileError(f"its rows have {fault}")
        parameters = tuple(name for name, _ in facts.parameters)
        names = facts.name, facts.formulation, facts.speeds, parameters
        return cls(rows, data["document"], *names)

    @property
    def is_usable(self) -> bool:
        """True where equations can be derived: CasADi may be missing where files are read."""
        with contextlib.suppress(ImportError):
            return find_spec("casadi") is not None
        return False

    @cached_property
    def equations(self) -> Equations:
        """Equations on the rows and speeds of the model.

        Raises:
            FileError: if the description is not that of the model.
        """
        from axode.model.function_source import SymbolicLibrary
        from axode.symbolic.equations import derive

        own, mechanism = self.rows.own, _mechanism(self.document, self.name)
        known = tuple(speed_units(mechanism)), tuple(parameters_of(mechanism))
        if known != (self.speeds, self.parameters):
            raise FileError(f"the file of model '{self.name}' holds another mechanism")
        independent = [self.speeds[j] for j in own.independent]
        with collect_warnings([]):  # they were issued when the mechanism was derived
            equations = derive(mechanism, self.formulation, independent, self_check=False)
        found = SymbolicLibrary(equations, "cpu", fixed=False).row_numbers
        if found.names != self.rows.names:
            raise FileError(f"the file of model '{self.name}' holds another mechanism")
        return equations if found.own == own else equations.on(own)


def _without_meshes(mechanism: Mechanism) -> Mechanism:
    """A mechanism without shapes that are files on this machine."""
    kept = {b.name: tuple(s for s in b.shapes if type(s) is not Mesh) for b in mechanism.bodies}
    return replace(mechanism, bodies=[replace(b, shape=kept[b.name]) for b in mechanism.bodies])


def _mechanism(document: dict[str, Any], name: str) -> Mechanism:
    from axode.mechanism.files.toml.toml_reader import mechanism_from

    return mechanism_from(document, {}, f"the file of model '{name}'", name)


def _disagreements(rows: RowNumbers, facts: Facts) -> Iterator[str]:
    """What rows and metadata of a file say differently."""
    if rows.speeds != len(facts.speeds):
        yield "other speeds than the model"
    elif tuple(rows.names[r] for r in rows.own.rows) != facts.rows:
        yield "other names than those of the model"
    elif tuple(facts.speeds[j] for j in rows.own.independent) != facts.independent:
        yield "other independent speeds than the model"
    elif any(len(q) != len(facts.coordinates) for q in rows.samples):
        yield "configurations of other sizes"


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
