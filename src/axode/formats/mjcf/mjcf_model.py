"""MuJoCo's model of an MJCF file: what its compiler makes of defaults, geoms and meshes."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from axode.errors import FileError, require_package
from axode.formats.mjcf.mjcf_text import CONTACTS, ModelText
from axode.formats.xml.reading import AS_WRITTEN, PICTURES, Findings, ModelFolder, XmlFile
from axode.formats.xml.xml_tree import Element

ALL_MESHES = 256 << 20  # bytes of the meshes that masses come from


def require_mujoco() -> Any:
    """Import MuJoCo, or raise an error that explains how to install it."""
    return require_package("mujoco", "reading MJCF needs MuJoCo", "mujoco")


@dataclass(frozen=True)
class MeshFile:
    """The file of a mesh; its points are moved by `-refpos`, turned back by `refquat`, scaled."""

    file: str
    scale: tuple[float, ...]
    refpos: tuple[float, ...]
    refquat: tuple[float, ...]


@dataclass
class CompiledModel:
    """A model that MuJoCo compiled, with the elements of the file behind its parts.

    Attributes:
        model: MuJoCo's compiled model.
        text: The file, which knows the elements behind the lines of MuJoCo.
        findings: Where faults and what is left out are kept.
        meshes: The files of geoms that are meshes, by the number of the geom, for pictures.
        contacts: What to read of friction and stops.
    """

    mujoco: Any
    spec: Any
    model: Any
    text: ModelText
    findings: Findings
    meshes: dict[int, MeshFile] = field(default_factory=dict)
    contacts: frozenset[str] = frozenset()

    def element(self, part: Any) -> Element:
        """Find the element of the file behind a part of the specification."""
        return self.text.element_of(part.info)

    def disabled(self, *names: str) -> bool:
        """Return whether the file switches one of these kinds of forces off."""
        bits = self.mujoco.mjtDisableBit
        flags = int(self.model.opt.disableflags)
        known = [getattr(bits, f"mjDSBL_{name}", None) for name in names]
        return any(bit is not None and flags & int(bit) for bit in known)


def compile_text(text: ModelText, file: XmlFile, findings: Findings) -> CompiledModel:
    """Compile a model; meshes are read only where a mass comes from them.

    Raises:
        FileError: if MuJoCo refuses it.
        MechanismError: listing the meshes that are missing, and other faults of the text.
    """
    mujoco, source = require_mujoco(), file.source
    spec = _parse(mujoco, text, source, {})
    uses = _MeshUse(mujoco, spec, text)
    files = uses.files(text.mesh_folder)
    _note_contacts(spec, text, findings)
    for site in spec.sites:
        findings.leave_out(PICTURES, text.element_of(site.info), name=site.name)
    assets = _assets(uses, text, file.folder, findings)
    if findings.faults:
        findings.conclude(source, strict=False)
    text.drop(lambda element: element.tag == "mesh" and id(element) in uses.unneeded)
    spec = _parse(mujoco, text, source, assets)
    shown: list[tuple[Any, MeshFile | None]] = []
    for geom in spec.geoms:
        if geom.meshname:
            geom.contype = geom.conaffinity = 0  # no convex hull
            shown.append((geom, files.get(geom.meshname)))
            if id(text.element_of(geom.info)) in uses.unneeded:
                # a massless sphere instead: MuJoCo still gives its place
                geom.type, geom.meshname = mujoco.mjtGeom.mjGEOM_SPHERE, ""
                geom.size, geom.mass = [1.0] * 3, 0.0
    model = _ask(mujoco, text, source, spec.compile)
    meshes = {int(geom.id): file for geom, file in shown if file is not None}
    return CompiledModel(mujoco, spec, model, text, findings, meshes, file.contacts)


def _parse(mujoco: Any, text: ModelText, source: str, assets: dict[str, bytes]) -> Any:
    written = text.text()
    return _ask(mujoco, text, source, lambda: mujoco.MjSpec.from_string(written, assets=assets))


def _ask(mujoco: Any, text: ModelText, source: str, call: Callable[[], Any]) -> Any:
    """Call MuJoCo; its warnings become deviations, its refusals errors."""
    messages: list[str] = []
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(messages.append)  # otherwise it writes them to a file
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            # a thread of its own: a failure inside MuJoCo leaves the thread that met it unusable
            with ThreadPoolExecutor(1) as thread:
                result = thread.submit(call).result()
    except (ValueError, RuntimeError, MemoryError, mujoco.FatalError) as error:
        raise _refusal(text, source, error) from None
    finally:
        mujoco.set_mju_user_warning(before)
    for message in [*messages, *(str(warning.message) for warning in caught)]:
        said = " ".join(message.split()).rstrip(".")
        text.findings.of(text.root).note(text.root, "", f"MuJoCo warns: {said}", AS_WRITTEN)
    return result


def _refusal(text: ModelText, source: str, error: Exception) -> FileError:
    """Return MuJoCo's message about the file, with the file's own line."""
    message = re.sub(r"^(XML )?Error: ", "", str(error).strip())
    message, _, place = message.partition("\nElement")
    what = " ".join(message.split()) or type(error).__name__
    if not place:
        return FileError(f"{source}: MuJoCo cannot read it, {what}.")
    element = text.element_of(place)
    file = text.findings.files.get(id(element), "")
    within = f" of {file}" if file else ""
    name = element.attributes.get("name", "")
    tag = f"<{element.tag}>{f' {name!r}' if name else ''}"
    return FileError(f"{source}, line {element.line}{within}: MuJoCo cannot read {tag}, {what}.")


class _MeshUse:
    """Which geoms need a mesh: those that a mass comes from, and no others."""

    def __init__(self, mujoco: Any, spec: Any, text: ModelText) -> None:
        self.spec = spec
        self.text = text
        self.unneeded: set[int] = set()
        self.needed: dict[str, str] = {}  # mesh -> a body whose mass comes from it
        mode = int(spec.compiler.inertiafromgeom)
        low, high = (int(group) for group in spec.compiler.inertiagrouprange)
        moving: set[int] = set()
        wanted: set[int] = set()
        for number, body in enumerate(spec.bodies):
            if body.joints or (number and body.parent.id in moving):
                moving.add(body.id)
            from_geoms = mode == 1 or (mode == 2 and not body.explicitinertial)
            counts = from_geoms and (body.id in moving or spec.compiler.settotalmass > 0)
            for geom in body.geoms:
                if not geom.meshname:
                    continue
                element = id(text.element_of(geom.info))
                weighs = geom.mass > 0 or (math.isnan(geom.mass) and geom.density > 0)
                if counts and weighs and low <= geom.group <= high:
                    wanted.add(element)
                    self.needed.setdefault(geom.meshname, body.name or f"body{number}")
                else:
                    self.unneeded.add(element)
        self.unneeded -= wanted

    def files(self, mesh_folder: str) -> dict[str, MeshFile]:
        """The files of meshes by name."""
        found: dict[str, MeshFile] = {}
        for mesh in self.spec.meshes:
            if mesh.file and mesh.file.isprintable():
                file = str(PurePosixPath(mesh_folder.replace("\\", "/")) / mesh.file)
                numbers = (tuple(map(float, n)) for n in (mesh.scale, mesh.refpos, mesh.refquat))
                found[mesh.name] = MeshFile(file, *numbers)
        return found


def _assets(
    uses: _MeshUse, text: ModelText, folder: ModelFolder, findings: Findings
) -> dict[str, bytes]:
    """Read the meshes that are needed, under names without a path; drop the others."""
    assets: dict[str, bytes] = {}
    total = 0
    for mesh in uses.spec.meshes:
        element = text.element_of(mesh.info)
        if mesh.name not in uses.needed:
            uses.unneeded.add(id(element))
            continue
        file = element.attributes.get("file")
        if not file:
            continue
        body = uses.needed[mesh.name]
        remedy = f"the mass of body '{body}' comes from it; give that body an <inertial>"
        try:
            # relative to the model, or to the file that declares it
            own = PurePosixPath(text.findings.files.get(id(element), "")).parent
            data = folder.read(file, text.mesh_folder, str(own / text.mesh_folder))
        except FileError as error:
            findings.of(element).report(element, "file", f"{str(error).rstrip('.')}; {remedy}")
            continue
        if data is None:
            message = f"there is no file {file}, and {remedy}"
            findings.of(element).report(element, "file", message)
            continue
        total += len(data)
        if total > ALL_MESHES:
            raise FileError(
                f"the meshes that masses come from are larger than {ALL_MESHES >> 20} MiB.\n"
                "  Give the bodies an <inertial>, with which no mesh is read."
            )
        name = f"{len(assets)}{PurePosixPath(file).suffix}"
        element.attributes["file"] = name
        assets[name] = data
    return assets


def _note_contacts(spec: Any, text: ModelText, findings: Findings) -> None:
    """Note the bodies whose geoms could touch others."""
    for body in spec.bodies:
        touching = [geom for geom in body.geoms if geom.contype or geom.conaffinity]
        if touching:
            first = text.element_of(touching[0].info)
            element = text.element_of(body.info) if body.info else first
            count = f"({len(touching)} geoms)" if len(touching) > 1 else ""
            findings.leave_out(CONTACTS, element, count, body.name if element is not first else "")
