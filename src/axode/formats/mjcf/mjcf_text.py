"""The text of an MJCF file as MuJoCo gets it: with its includes, without paths, within limits.

MuJoCo opens no file: includes are put in here, meshes are handed over as bytes under names of
their own, and elements that cannot change a motion are taken out before it sees them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import PurePosixPath, PureWindowsPath
from xml.sax.saxutils import quoteattr

from axode.errors import FileError
from axode.formats.xml.reading import PICTURES, PLUGINS, SENSORS, Findings, ModelFolder, XmlFile
from axode.formats.xml.xml_tree import MAX_BYTES, Element, decode, parse
from axode.mechanism.checks import MAX_BODIES

# what a mechanism cannot hold
CONTACTS = "contacts of geoms (add_contact lets a body roll)"
OTHER_PROGRAMS = "data for other programs"
FLEXIBLE = "deformable and generated parts"
TERRAIN = "height fields and distance fields"
SPRINGS = "springs that are not linear in one coordinate"
DAMPERS = "damping that is not linear in the speed"
ARMATURE = "armature of free joints and of tendons along paths"
NEGATIVE = "stiffness, damping and armature below zero"
TENDONS = "tendons along paths, with what acts on them"
EQUALITIES = "equality constraints that are switched off or of tendons along paths"
LAWS = "control laws of actuators (the motor's input is its force)"
FORCE_LIMITS = "limits of forces that are not symmetric, or of joints and tendons"
ACTUATORS = "actuators that are no motor of one joint or fixed tendon"
WEIGHT = "compensation of weight"
MOCAP = "motion-capture bodies (they are held where they stand)"
SOFTNESS = "softness of stops, dry friction and contacts (here they are rigid)"
KEYS = "keyframes, but for the positions of 'home'"

MAX_DEPTH = 150
MAX_ELEMENTS = 30_000  # with all copies that <replicate> makes; MuJoCo's time grows as the square
MAX_COPIES = 2_000  # of one <replicate>: 2 s; 9999 took minutes, which nothing interrupts
VERTICES = 10  # of a mesh that MuJoCo builds take it as long as an element
MAX_INCLUDES = 200

_SECTIONS = {  # whose elements are left out one by one
    "sensor": SENSORS,
    "contact": CONTACTS,
    "custom": OTHER_PROGRAMS,
    "extension": PLUGINS,
    "deformable": FLEXIBLE,
    "visual": PICTURES,
}
_LEFT_OUT = {
    "statistic": PICTURES,
    "texture": PICTURES,
    "material": PICTURES,
    "camera": PICTURES,
    "light": PICTURES,
    "skin": PICTURES,
    "composite": FLEXIBLE,
    "flexcomp": FLEXIBLE,
    "hfield": TERRAIN,
    "plugin": PLUGINS,
}
_IGNORED = ("size", "lengthrange")  # how much memory and time MuJoCo takes
_BODIES = ("body", "frame", "replicate")  # which MuJoCo does not see outside of <worldbody>
_DROPPED = {"compiler": ("fusestatic", "discardvisual", "meshdir", "assetdir", "texturedir")}
_OF_MATERIALS = ("name", "rgba")  # what is shown of them
_WHOLE = "mujoco.mj_saveLastXML(new, mujoco.MjModel.from_xml_path(path))"
_WHOLE_NUMBER = re.compile(r"\s*[+-]?0*\d{1,20}\s*", re.A)
_LINE = re.compile(r"line (\d+)")


@dataclass
class ModelText:
    """A model as a tree, from which the text for MuJoCo is made line by line.

    Attributes:
        root: The outermost element; includes are put in.
        keys: The keyframes, which are read here.
        mesh_folder: Where the model's meshes are, relative to the model.
    """

    root: Element
    findings: Findings
    keys: list[Element] = field(default_factory=list)
    mesh_folder: str = ""
    lines: list[Element] = field(default_factory=list)

    def text(self) -> str:
        """Write the text that MuJoCo reads; `element_of` then knows its lines."""
        self.lines = []
        written: list[str] = []
        self._write(self.root, written)
        return "\n".join(written)

    def _write(self, element: Element, written: list[str]) -> None:
        given = "".join(f" {key}={quoteattr(value)}" for key, value in element.attributes.items())
        self.lines.append(element)
        written.append(f"<{element.tag}{given}>")
        for child in element.children:
            self._write(child, written)
        self.lines.append(element)
        written.append(f"</{element.tag}>")

    def element_of(self, info: str) -> Element:
        """Find the element that MuJoCo's "line 12" means, or the outermost."""
        found = _LINE.search(info)
        number = int(found[1]) if found else 0
        return self.lines[number - 1] if 0 < number <= len(self.lines) else self.root

    def drop(self, unwanted: Callable[[Element], bool]) -> None:
        """Remove elements, wherever they are."""
        waiting = [self.root]
        while waiting:
            element = waiting.pop()
            element.children[:] = [child for child in element.children if not unwanted(child)]
            waiting += element.children


def read_model_text(file: XmlFile, findings: Findings) -> ModelText:
    """Read a model and the files it includes, without what cannot change its motion.

    Raises:
        FileError: if something is no XML, outside of the folder or too large.
    """
    remarks: list[tuple[int, str, str]] = []
    top = parse(file.text, file.source, remarks)
    if top.tag != "mujoco":
        raise FileError(
            f"{file.source} is a part of an MJCF model: its outermost element is <{top.tag}>.\n"
            "  Load the file that includes it, whose outermost element is <mujoco>."
        )
    findings.note_remarks("mujoco", remarks)
    return _Expansion(file.source, file.folder, findings).expand(top)


class _Expansion:
    """Puts includes in and takes out what is not needed, and counts the rest."""

    def __init__(self, source: str, folder: ModelFolder, findings: Findings) -> None:
        self.source = source
        self.folder = folder
        self.findings = findings
        self.included: set[str] = set()
        self.materials: set[str] = set()
        self.count = self.bodies = 0
        self.bytes_read = 0
        self.kept: list[Element] = []  # alive: identities must stay theirs
        self.model = ModelText(Element("mujoco", {}, 1), findings)

    def expand(self, top: Element) -> ModelText:
        root = self._copy(top, "", 1, 1)
        assert root is not None
        for element in self.kept:
            if element.attributes.get("material", "") not in self.materials:
                element.attributes.pop("material", None)
        none = Element("lengthrange", {"mode": "none"}, top.line)  # else MuJoCo moves all muscles
        root.children.append(Element("compiler", {}, top.line, [none]))
        self.model.root = root
        return self.model

    def _copy(self, element: Element, file: str, depth: int, copies: int) -> Element | None:
        """Copy an element with what is needed in it."""
        if depth > MAX_DEPTH:
            raise FileError(
                f"{self.source}, line {element.line}: elements are nested more than {MAX_DEPTH} "
                "deep, as in no robot."
            )
        if element.tag == "replicate" and _WHOLE_NUMBER.fullmatch(
            count := element.attributes.get("count", "")
        ):  # MuJoCo refuses any other
            if int(count) > MAX_COPIES:
                raise FileError(
                    f"{self.source}, line {element.line}: <replicate> makes at most {MAX_COPIES} "
                    "copies here; MuJoCo's time grows as their cube.\n"
                    "  Remedy: nest two of them"
                )
            copies *= max(1, int(count))
        for key in ("class", "childclass"):
            if "%" in element.attributes.get(key, ""):  # MuJoCo ends the process at unknown ones
                raise FileError(
                    f"{self.source}, line {element.line}: {key} '{element.attributes[key]}': "
                    "MuJoCo takes the % for a format.\n  Remedy: rename the class"
                )
        self.bodies += copies * (element.tag == "body")
        if self.bodies > MAX_BODIES:
            raise FileError(
                f"{self.source}, line {element.line}: more than {MAX_BODIES} bodies, with all "
                "copies that <replicate> makes."
            )
        self.count += copies * self._weight(element)
        if self.count > MAX_ELEMENTS:
            raise FileError(
                f"{self.source}, line {element.line}: more than {MAX_ELEMENTS} elements, with all "
                f"copies that <replicate> makes. Of builtin meshes, {VERTICES} vertices are one."
            )
        unseen = () if element.tag == "geom" else ("material",)
        dropped: tuple[str, ...] = _DROPPED.get(element.tag, unseen)
        if element.tag == "material":
            dropped = tuple(key for key in element.attributes if key not in _OF_MATERIALS)
        if element.tag == "compiler":
            given = element.attributes.get("meshdir", element.attributes.get("assetdir"))
            self.model.mesh_folder = self.model.mesh_folder if given is None else given
        if "user" in element.attributes:
            self._remember(element, file)
            self.findings.leave_out(OTHER_PROGRAMS, element, "(user)")
        kept = {key: value for key, value in element.attributes.items() if key not in dropped}
        if element.tag == "mesh" and "file" in kept and not kept.get("name"):
            kept["name"] = PureWindowsPath(kept["file"]).stem
        copy = Element(element.tag, kept, element.line)
        self._remember(copy, file)
        self._copy_children(element, copy, file, depth, copies)
        return copy

    def _copy_children(
        self, element: Element, copy: Element, file: str, depth: int, copies: int
    ) -> None:
        for child in element.children:
            if child.tag == "include":
                part, name = self._include(child, file)
                self._copy_children(part, copy, name, depth, copies)
            elif self._is_needed(child, element, file, top=depth == 1):
                made = self._copy(child, file, depth + 1, copies)
                if made is not None:
                    copy.children.append(made)

    def _remember(self, element: Element, file: str) -> None:
        self.kept.append(element)
        if file:
            self.findings.files[id(element)] = file

    def _is_needed(self, child: Element, parent: Element, file: str, *, top: bool) -> bool:
        """Return whether MuJoCo should see an element; what it should not is noted."""
        self._remember(child, file)
        tag = child.tag
        if tag in _IGNORED:
            return False
        if tag == "attach" or (tag == "model" and parent.tag == "asset"):
            message = "models attached to others are not read; write one file of them first: "
            self.findings.of(child).report(child, "", message + _WHOLE)
            return False
        if top and tag in _BODIES:
            message = (
                f"a <{tag}> outside of <worldbody> is not part of the model; put it there, or "
                "load the file that includes this one"
            )
            self.findings.of(child).report(child, "", message)
            return False
        if top and tag == "keyframe":
            self.model.keys += child.children
            for key in child.children:
                self._remember(key, file)
            return False
        if top and tag in _SECTIONS:
            self._leave_out_section(child, file, _SECTIONS[tag])
            return False
        if tag == "material" and parent.tag == "asset":
            name = child.attributes.get("name", "")
            if not set(child.attributes) <= {*_OF_MATERIALS, "class"}:
                self.findings.leave_out(PICTURES, child)
            is_new = bool(name) and name not in self.materials
            self.materials.add(name)
            return is_new
        if tag in _LEFT_OUT or (parent.tag == "default" and tag == "pair"):
            if parent.tag != "default":
                self.findings.leave_out(_LEFT_OUT[tag], child)
            return False
        if tag in ("geom", "mesh"):
            sdf = child.attributes.get("type") == "sdf" or child.first("plugin")
            if "hfield" in child.attributes or sdf:
                self.findings.leave_out(TERRAIN, child)
                return False
        return True

    def _leave_out_section(self, section: Element, file: str, what: str) -> None:
        for child in section.children:
            if child.tag == "include":
                part, name = self._include(child, file)
                self._leave_out_section(part, name, what)
            else:
                self._remember(child, file)
                other = PICTURES if child.tag == "skin" else what
                self.findings.leave_out(other, child)

    def _weight(self, element: Element) -> int:
        """Elements that take MuJoCo as long as a mesh that it builds from a few numbers."""
        if element.tag != "mesh" or "builtin" not in element.attributes:
            return 1
        try:  # the first two give the resolution
            numbers = [*map(float, element.attributes.get("params", "").split()[:2])]
            return 1 + int(max(map(abs, numbers), default=0.0) ** 2) // VERTICES
        except (ValueError, OverflowError):
            place = f"{self.source}, line {element.line}"
            raise FileError(f"{place}: params of <mesh> must be finite numbers.") from None

    def _include(self, element: Element, file: str) -> tuple[Element, str]:
        """Read an included file, and its name in messages."""
        name = element.attributes.get("file", "")
        place = f"{self.source}, line {element.line}{f' of {file}' if file else ''}: "
        if not name or name in self.included or len(self.included) >= MAX_INCLUDES:
            why = "it is included already" if name in self.included else "there are too many"
            why = why if name else 'it has no file="..."'
            raise FileError(f"{place}<include> cannot be read: {why}.")
        self.included.add(name)
        folders = ("", str(PurePosixPath(file).parent)) if file else ("",)
        try:
            data = self.folder.read(name, *folders)
        except FileError as error:
            raise FileError(f"{place}{error}") from None
        if data is None:
            raise FileError(f"{place}there is no file {name} to include.")
        self.bytes_read += len(data)
        if self.bytes_read > MAX_BYTES:
            raise FileError(f"{place}the included files have more than {MAX_BYTES >> 20} MiB.")
        remarks: list[tuple[int, str, str]] = []
        text = decode(data, remarks)
        if text is None:
            raise FileError(f"{place}{name} is no XML.")
        part = parse(text, name, remarks)
        self.findings.note_remarks("include", remarks, f" (in {name})")
        return part, name
