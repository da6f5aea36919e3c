"""Triangles from COLLADA files: geometries where the nodes of the scene put them, in metres.

The up axis that a file declares is ignored, as the programs of ROS do, for which these files of
robots are made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from xml.etree import ElementTree

import numpy as np

from axode.errors import FileError
from axode.formats.meshes.mesh_arrays import Indices, Part, check_count, fans, used_points
from axode.formats.xml.xml_tree import decode
from axode.mechanism.scene.scene import Array, Colour

MAX_DEPTH = 64
MAX_ELEMENTS = 1_000_000  # their beginnings and ends
MAX_INSTANCES = 5_000


def read_collada(data: bytes, _: Callable[[str], bytes | None]) -> list[Part]:
    """Read all geometries of a COLLADA file.

    Raises:
        FileError: if it is no XML, declares entities, or repeats its geometries too often.
    """
    text = decode(data, [])
    if text is None:
        raise FileError("is no XML")
    if text.count("<") > MAX_ELEMENTS:
        raise FileError(f"has more than {MAX_ELEMENTS // 2} elements")
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise FileError("declares entities, which are not read")
    try:
        root = ElementTree.fromstring(text.encode())
    except ElementTree.ParseError as error:
        raise FileError(f"is no XML: {error}") from None
    return _Document(root).parts()


def _tag(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _below(element: ElementTree.Element, *tags: str) -> Iterator[ElementTree.Element]:
    """Elements along a path of tags, whatever the namespace."""
    if not tags:
        yield element
        return
    for child in element:
        if _tag(child) == tags[0]:
            yield from _below(child, *tags[1:])


def _numbers(element: ElementTree.Element) -> Array:
    return np.array((element.text or "").split(), dtype="S32").astype(float)


class _Document:
    """The parts of a file by their identifiers."""

    def __init__(self, root: ElementTree.Element) -> None:
        self.root = root
        self.by_id = {e.get("id", ""): e for e in root.iter() if e.get("id")}
        self.geometries: dict[str, list[tuple[str, Array, Indices]]] = {}
        self.made: list[Part] = []
        self.instances = 0
        self.triangles = 0

    def parts(self) -> list[Part]:
        """All parts in metres."""
        unit = 1.0
        for element in _below(self.root, "asset", "unit"):
            unit = float(element.get("meter", "1"))
        world = np.diag([unit, unit, unit, 1.0])
        shown = [self._target(e) for e in _below(self.root, "scene", "instance_visual_scene")]
        scenes = [scene for scene in shown if scene is not None]
        if not scenes:
            scenes = list(_below(self.root, "library_visual_scenes", "visual_scene"))[:1]
        for scene in scenes:
            for node in _below(scene, "node"):
                self._node(node, world, 1)
        if not scenes:
            for geometry in _below(self.root, "library_geometries", "geometry"):
                self._place(geometry, world, {})
        return self.made

    def _target(self, element: ElementTree.Element) -> ElementTree.Element | None:
        return self.by_id.get(element.get("url", "").removeprefix("#"))

    def _node(self, node: ElementTree.Element, above: Array, depth: int) -> None:
        self.instances += 1
        if depth > MAX_DEPTH or self.instances > MAX_INSTANCES:
            raise FileError("its nodes are nested too deeply, or too many")
        pose = above @ _transform(node)
        for child in node:
            tag = _tag(child)
            if tag == "node":
                self._node(child, pose, depth + 1)
            elif tag == "instance_node":
                target = self._target(child)
                if target is not None:
                    self._node(target, pose, depth + 1)
            elif tag == "instance_geometry":
                target = self._target(child)
                path = ("bind_material", "technique_common", "instance_material")
                bound = {e.get("symbol", ""): e.get("target", "") for e in _below(child, *path)}
                if target is not None:
                    self._place(target, pose, bound)

    def _place(self, geometry: ElementTree.Element, pose: Array, bound: dict[str, str]) -> None:
        self.instances += 1
        if self.instances > MAX_INSTANCES:
            raise FileError("its geometries are repeated too often")
        name = geometry.get("id", str(id(geometry)))
        if name not in self.geometries:
            self.geometries[name] = list(self._triangles(geometry))
        for material, points, faces in self.geometries[name]:
            self.triangles += len(faces)
            check_count(self.triangles)
            if np.linalg.det(pose[:3, :3]) < 0:
                faces = faces[:, ::-1]
            placed = points @ pose[:3, :3].T + pose[:3, 3]
            self.made.append(Part(placed, faces, self._colour(bound.get(material, material))))

    def _triangles(self, geometry: ElementTree.Element) -> Iterator[tuple[str, Array, Indices]]:
        """Material, points and triangles of each list of polygons."""
        for mesh in _below(geometry, "mesh"):
            for group in mesh:
                if _tag(group) not in ("triangles", "polylist", "polygons"):
                    continue
                inputs = {e.get("semantic"): e for e in _below(group, "input")}
                if "VERTEX" not in inputs:
                    continue
                points = self._positions(inputs["VERTEX"])
                offsets = [int(e.get("offset", "0")) for e in _below(group, "input")]
                stride, offset = max(offsets) + 1, int(inputs["VERTEX"].get("offset", "0"))
                lists = [np.array((e.text or "").split(), np.int64) for e in _below(group, "p")]
                lists = [numbers[offset::stride] for numbers in lists]
                corners = np.concatenate(lists) if lists else np.zeros(0, np.int64)
                sizes = np.full(len(corners) // 3, 3)
                if _tag(group) == "polygons":
                    sizes = np.array([len(numbers) for numbers in lists])
                for element in _below(group, "vcount"):
                    sizes = np.array((element.text or "").split(), np.int64)
                if sizes.sum() > len(corners) or sizes.min(initial=0) < 0:
                    raise FileError("its polygons have fewer corners than they announce")
                yield group.get("material", ""), *used_points(points, fans(corners, sizes))

    def _positions(self, vertex: ElementTree.Element) -> Array:
        vertices = self.by_id.get(vertex.get("source", "").removeprefix("#"))
        inputs = list(_below(vertices, "input")) if vertices is not None else []
        for element in inputs:
            source = self.by_id.get(element.get("source", "").removeprefix("#"))
            if element.get("semantic") == "POSITION" and source is not None:
                for numbers in _below(source, "float_array"):
                    values = _numbers(numbers)
                    return values[: len(values) // 3 * 3].reshape(-1, 3)
        raise FileError("a geometry has no positions")

    def _colour(self, material: str) -> Colour | None:
        """Diffuse colour of a material's effect."""
        found = self.by_id.get(material.removeprefix("#"))
        for instance in _below(found, "instance_effect") if found is not None else ():
            effect = self._target(instance)
            for element in effect.iter() if effect is not None else ():
                if _tag(element) == "diffuse":
                    for colour in _below(element, "color"):
                        values = np.clip(np.nan_to_num(_numbers(colour)[:3]), 0.0, 1.0)
                        red, green, blue = np.rint(255 * values).astype(int).tolist()
                        return red, green, blue
        return None


def _transform(node: ElementTree.Element) -> Array:
    """Pose and scale of a node in the one above it, from its elements in their order."""
    pose = np.eye(4)
    for element in node:
        step = np.eye(4)
        tag = _tag(element)
        if tag not in ("matrix", "translate", "rotate", "scale"):
            continue
        values = _numbers(element)
        if tag == "matrix":
            step = values.reshape(4, 4)
        elif tag == "translate":
            step[:3, 3] = values
        elif tag == "scale":
            step[:3, :3] = np.diag(values)
        else:
            axis = values[:3] / (np.linalg.norm(values[:3]) or 1.0)
            angle = np.radians(values[3])
            K = np.cross(np.eye(3), -axis)
            step[:3, :3] += np.sin(angle) * K + (1 - np.cos(angle)) * K @ K
        pose = pose @ step
    return pose
