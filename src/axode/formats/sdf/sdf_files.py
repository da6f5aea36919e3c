"""The models of an SDF file and of the files it includes, as a tree of scopes.

No file outside of the folder is opened, and none is fetched from elsewhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from axode.errors import FileError
from axode.formats.sdf.sdf_scopes import (
    MISSING,
    MODEL_PARTS,
    SCENERY,
    SOLVERS,
    WORLD,
    WORLD_PARTS,
    ModelScope,
    SdfFrame,
    SdfOwner,
)
from axode.formats.xml.reading import Findings, ModelFolder
from axode.formats.xml.xml_tree import MAX_BYTES, MAX_ELEMENTS, Element, decode, parse

MAX_DEPTH = 150  # of elements
MAX_NESTED = 30  # models in models, with includes
MAX_INCLUDES = 1000
OLDEST, NEWEST = (1, 3), (1, 12)
_VERSION = re.compile(r"(\d{1,3})\.(\d{1,3})(\.\d+)?")
_SCENERY = ("sun", "ground_plane")  # models of Gazebo that most worlds include
_JOINTS = ("joint", "drake:joint")
_INCLUDE_PARTS = dict.fromkeys(("uri", "name", "pose", "placement_frame", "static"), "")
_CONVERT = "Convert it with Gazebo's own tool: gz sdf --print robot.sdf > new.sdf"
_RESERVED = re.compile(r"__.*__")


@dataclass
class ModelFiles:
    """Reads a file and what it includes.

    Attributes:
        source: What messages call the file.
        folder: Where it is, and outside of which nothing is opened.
    """

    source: str
    folder: ModelFolder
    findings: Findings
    count: int = 0
    includes: int = 0
    bytes_read: int = 0
    read: dict[Path, tuple[Element, tuple[int, int], int]] = field(default_factory=dict)
    under_way: list[Path] = field(default_factory=list)

    def world(self, root: Element) -> ModelScope:
        """The scope of everything that a file holds.

        Raises:
            FileError: if the file is no SDF, too old, too large or nested too deeply.
        """
        if root.tag != "sdf":
            old = f"\n  {_CONVERT}" if root.tag == "gazebo" else ""
            raise FileError(f"{self.source} is no SDF: its outermost element is <{root.tag}>.{old}")
        version = self._version(root, self.source)
        self._add_size(self._size(root, self.source))
        owner = SdfOwner("sdf", "", self.findings)
        worlds = list(root.all("world"))
        holder = worlds[0] if worlds else Element(WORLD, {}, root.line, root.children)
        for extra in worlds[1:]:
            owner.report(extra, "", "a second <world>; one is read: remove the others")
        world = ModelScope(holder, WORLD, None, holder, version)
        parts = {**WORLD_PARTS, "world": ""}
        if worlds:
            for child in root.children:
                if child.tag != "world":
                    owner.leave_out(SOLVERS if child.tag == "light" else SCENERY, child)
        SdfOwner("world", holder.attributes.get("name", ""), self.findings).sort(holder, parts)
        self._fill(world, self.folder.path, 1)
        return world

    def _version(self, root: Element, source: str) -> tuple[int, int]:
        text = root.attributes.get("version", "")
        found = _VERSION.fullmatch(text.strip())
        owner = SdfOwner("sdf", "", self.findings)
        if found is None:
            message = f"expected a version such as 1.9, got '{text[:40]}'"
            owner.note(root, "version", message, f"read as {NEWEST[0]}.{NEWEST[1]}")
            return NEWEST
        version = int(found[1]), int(found[2])
        if version < OLDEST:
            raise FileError(
                f"{source} is SDF {text}, and versions from {OLDEST[0]}.{OLDEST[1]} on are read.\n"
                f"  {_CONVERT}"
            )
        if version > NEWEST:
            message = f"{text} is newer than {NEWEST[0]}.{NEWEST[1]}"
            owner.note(root, "version", message, f"read as {NEWEST[0]}.{NEWEST[1]}")
        return min(version, NEWEST)

    def _size(self, root: Element, source: str) -> int:
        """Count the elements; raise an error if they are nested too deeply."""
        waiting, size = [(root, 1)], 0
        while waiting:
            element, depth = waiting.pop()
            size += 1
            if depth > MAX_DEPTH:
                raise FileError(
                    f"{source}, line {element.line}: elements are nested more than {MAX_DEPTH} "
                    "deep, as in no robot."
                )
            waiting += [(child, depth + 1) for child in element.children]
        return size

    def _add_size(self, size: int) -> None:
        self.count += size
        if self.count > MAX_ELEMENTS:
            raise FileError(f"{self.source}: more than {MAX_ELEMENTS} elements, with all includes.")

    # scopes --------------------------------------------------------------------------------------

    def _fill(self, scope: ModelScope, place: Path, depth: int) -> None:
        """Add frames and models of a scope in the order of the file."""
        if depth > MAX_NESTED:
            raise FileError(f"{self.source}: models are nested more than {MAX_NESTED} deep.")
        for child in scope.element.children:
            if child.tag == "model":
                self._add_model(scope, child, child, scope.version, place, depth)
            elif child.tag == "include":
                self._include(scope, child, place, depth)
            elif child.tag in ("frame", *_JOINTS) or (child.tag == "link" and not scope.is_world):
                self._add_frame(scope, child)

    def _add_frame(self, scope: ModelScope, element: Element) -> None:
        kind = "joint" if element.tag in _JOINTS else element.tag
        name = element.attributes.get("name", "")
        frame = SdfFrame(scope, kind, name, element)
        if self._may_have(scope, frame, name, element):
            other = scope.frames.get(name)
            if other is not None and other.kind == "joint":  # names mean links rather than joints
                scope.frames[f"{name} joint"] = scope.frames.pop(name)
                other = None
            scope.frames[name if other is None else f"{name} {kind}"] = frame

    def _may_have(self, scope: ModelScope, frame: SdfFrame, name: str, element: Element) -> bool:
        """Report a name that a frame cannot have."""
        owner = SdfOwner(element.tag, frame.full_name, self.findings)
        if not name:
            tag = "an <include>" if element.tag == "include" else f"a {frame.kind}"
            SdfOwner("", "", self.findings).report(element, "", f'{tag} has no name="..."')
            return False
        old_joint = frame.kind == "joint" and scope.version < (1, 7)  # whose name is no frame's
        if (name == WORLD and not old_joint) or _RESERVED.fullmatch(name):
            owner.report(element, "", f"the name '{name}' is reserved; choose another")
            return False
        same = [f for key in (name, f"{name} {frame.kind}") if (f := scope.frames.get(key))]
        # until version 1.6 a link and a joint may have one name
        clash = [f for f in same if f.kind == frame.kind or scope.version >= (1, 7)]
        if clash:
            line = clash[0].element.line
            owner.report(element, "", f"line {line} has this name already; names are unique")
        return not clash

    def _add_model(
        self,
        scope: ModelScope,
        element: Element,
        placed: Element,
        version: tuple[int, int],
        place: Path,
        depth: int,
    ) -> None:
        name = element.attributes.get("name", "")
        given = placed.first("name") if placed is not element else None
        name = given.text if given else name
        merged = placed.attributes.get("merge", "").lower() in ("true", "1")
        inner = ModelScope(element, name, scope, placed, version, merged=merged)
        if not merged and not self._may_have(scope, inner.own, name, placed):
            return
        owner = SdfOwner("model", inner.own.full_name, self.findings)
        static = placed.first("static") or element.first("static")
        inner.static = scope.static or owner.flag(static)
        scope.scopes.append(inner)
        if not merged:
            scope.frames[name] = inner.own
        owner.sort(element, MODEL_PARTS)
        if placed is not element:
            owner.sort(placed, _INCLUDE_PARTS | {"plugin": MODEL_PARTS["plugin"]})
        self._fill(inner, place, depth + 1)

    # includes ------------------------------------------------------------------------------------

    def _include(self, scope: ModelScope, element: Element, place: Path, depth: int) -> None:
        uri = element.first("uri")
        address = uri.text if uri else ""
        owner = SdfOwner("include", address, self.findings)
        self.includes += 1
        if self.includes > MAX_INCLUDES:
            raise FileError(f"{self.source}: more than {MAX_INCLUDES} models are included.")
        try:
            found = self._open(address, place)
        except FileError as error:
            self._miss(scope, element, address, owner, str(error))
            return
        path, root, version, size = found
        self._add_size(size)
        if path in self.under_way:
            owner.report(element, "", "the model includes itself")
            return
        models = list(root.all("model"))
        if not models:
            owner.report(element, "uri", f"{path.name} holds no <model>")
            return
        if len(models) > 1:
            message = f"{path.name} holds {len(models)} models"
            owner.note(element, "uri", message, "the first is read")
        self.under_way.append(path)
        self._add_model(scope, models[0], element, version, path.parent, depth)
        self.under_way.pop()

    def _miss(
        self, scope: ModelScope, element: Element, address: str, owner: SdfOwner, why: str
    ) -> None:
        """Note an include that cannot be read; in a world it may be scenery."""
        if not scope.is_world:
            owner.report(element, "", why)
        elif address.rstrip("/").rpartition("/")[2].lower().replace(" ", "_") in _SCENERY:
            owner.leave_out(SCENERY, element)
        else:
            self.findings.leave_out(MISSING, element, f"({why})", address)

    def _open(self, address: str, place: Path) -> tuple[Path, Element, tuple[int, int], int]:
        """File, outermost element and version of an included model."""
        scheme, rest = "", address
        if "://" in address:
            scheme, _, rest = address.partition("://")
        if scheme not in ("", "model", "package", "file"):
            raise FileError(
                f"{address} is not fetched; put the model into the folder, and include model://name"
            )
        if not rest:
            raise FileError("has no <uri>")
        folders = [place]
        if scheme in ("model", "package"):
            limit = self.folder.limit.resolve()
            above = [p for p in place.resolve().parents if p.is_relative_to(limit)]
            folders += above
        outside = ""
        for folder in folders:
            try:
                found = self._find(rest, folder)
            except FileError as error:
                outside = outside or str(error)
                continue
            if found is not None:
                return self._parse(*found)
        raise FileError(
            outside
            or f"there is no model {address} in {self.folder.limit}; load(..., folder=...) allows "
            "another folder"
        )

    def _find(self, rest: str, folder: Path) -> tuple[Path, bytes] | None:
        """Path and contents of a model: a file, or what the folder's model.config names."""
        if Path(rest).suffix.lower() not in (".sdf", ".world", ".xml", ".urdf"):
            config = self.folder.read(f"{rest}/model.config", str(folder))
            rest = f"{rest}/{_configured(config)}"
        data = self.folder.read(rest, str(folder))
        return None if data is None else ((folder / rest).resolve(), data)

    def _parse(self, path: Path, data: bytes) -> tuple[Path, Element, tuple[int, int], int]:
        if path not in self.read:
            self.bytes_read += len(data)
            if self.bytes_read > MAX_BYTES:
                raise FileError(f"the included files have more than {MAX_BYTES >> 20} MiB")
            remarks: list[tuple[int, str, str]] = []
            text = decode(data, remarks)
            if text is None:
                raise FileError(f"{path.name} is no XML")
            root = parse(text, path.name, remarks)
            if root.tag != "sdf":
                raise FileError(f"{path.name} is no SDF: its outermost element is <{root.tag}>")
            name = str(Path(path.parent.name, path.name))
            waiting = [root]
            while waiting:
                element = waiting.pop()
                self.findings.files[id(element)] = name
                waiting += element.children
            self.findings.note_remarks("include", remarks, f" (in {name})")
            size = self._size(root, path.name)
            self.read[path] = root, self._version(root, path.name), size
        return path, *self.read[path]


def _configured(config: bytes | None) -> str:
    """The newest SDF file that a model.config names."""
    best, name = (0, 0), "model.sdf"
    text = decode(config, []) if config else None
    if text is None:
        return name
    for element in parse(text, "model.config", []).all("sdf"):
        found = _VERSION.fullmatch(element.attributes.get("version", "1.0").strip())
        version = (int(found[1]), int(found[2])) if found else (1, 0)
        if best < version <= NEWEST and element.text:
            best, name = version, element.text
    return name
