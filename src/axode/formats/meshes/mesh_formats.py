"""Triangles from the bytes of STL, OBJ, COLLADA, glTF and PLY files, and as clean arrays.

COLLADA geometries are where the nodes of the scene put them, in metres. The up axis that a file
declares is ignored, as the programs of ROS do, for which these files of robots are made. Arrays of
triangles are cleaned, simplified, and get normals that keep edges sharp.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias
from xml.etree import ElementTree

import numpy as np
import numpy.typing as npt

from axode.errors import FileError, install_command
from axode.formats.xml.xml_tree import decode
from axode.mechanism.scene.scene import Array, Colour
from axode.numerics.tolerances import ROUNDING, WELD

CREASE = math.cos(math.radians(40.0))  # sharper edges stay edges
LARGEST = 1e6  # [m]
MAX_TRIANGLES = 1_000_000  # of one file
Indices = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Part:
    """Triangles of one colour, None if the file has none: points (n, 3), faces (m, 3)."""

    points: Array
    faces: Indices
    colour: Colour | None = None


def fans(corners: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Triangles of polygons whose corners follow each other: (triangles, 3).

    Raises:
        FileError: if they are too many.
    """
    check_count(int(np.maximum(sizes - 2, 0).sum()))
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]) if len(sizes) else np.zeros(0, int)
    made = []
    for size in np.unique(sizes[sizes >= 3]).tolist():
        first = starts[sizes == size]
        ring = corners[first[:, None] + np.arange(size)]
        fan = np.stack([np.zeros(size - 2, int), np.arange(1, size - 1), np.arange(2, size)], -1)
        made.append(ring[:, fan].reshape(-1, 3))
    return np.concatenate(made) if made else np.zeros((0, 3), int)


def check_count(triangles: int) -> None:
    """Raise an error for more triangles than any robot has."""
    if triangles > MAX_TRIANGLES:
        raise FileError(f"has {triangles} triangles, more than {MAX_TRIANGLES}")


def used_points(points: Array, faces: Indices) -> tuple[Array, Indices]:
    """Leave out points that no triangle has, and triangles whose points are missing."""
    faces = faces[((faces >= 0) & (faces < len(points))).all(1)]
    used, renumbered = np.unique(faces, return_inverse=True)
    return points[used], renumbered.reshape(-1, 3)


def clean(part: Part) -> Part:
    """Leave out triangles whose corners are missing, not finite, or no triangle at all."""
    points = np.asarray(part.points, float).reshape(-1, 3)
    faces = np.asarray(part.faces, np.int64).reshape(-1, 3)
    sound = np.isfinite(points).all(1) & (np.abs(points) < LARGEST).all(1)
    faces = faces[((faces >= 0) & (faces < len(points))).all(1)]
    faces = faces[sound[faces].all(1)]
    faces = faces[_doubled_areas(Part(points, faces)) > 0]
    return Part(*used_points(points, faces), part.colour)


def cluster(part: Part, cell: float) -> Part:
    """Replace all points in a cell of a grid by their mean; triangles that collapse vanish."""
    if not len(part.faces):
        return part
    low = part.points.min(0)
    extent = float(np.ptp(part.points, axis=0).max())
    cell = max(cell, WELD * extent)
    if not cell > 0:
        return Part(part.points[:0], part.faces[:0], part.colour)
    boxes = np.floor((part.points - low) / cell).astype(np.int64)
    keys = (boxes[:, 0] << 42) | (boxes[:, 1] << 21) | boxes[:, 2]
    _, group, count = np.unique(keys, return_inverse=True, return_counts=True)
    sums = [np.bincount(group, part.points[:, k], len(count)) for k in range(3)]
    points = np.stack(sums, -1) / count[:, None]
    faces = group[part.faces]
    a, b, c = faces.T
    faces = faces[(a != b) & (b != c) & (c != a)]
    return Part(points, _distinct(faces), part.colour)


def _distinct(faces: Indices) -> Indices:
    """Triangles without copies, as two sides of a thin plate that fell into one cell."""
    ordered = np.sort(faces, axis=1)
    count = int(ordered.max(initial=0)) + 1
    if count > 1 << 21:
        return faces
    keys = (ordered[:, 0] * count + ordered[:, 1]) * count + ordered[:, 2]
    _, first = np.unique(keys, return_index=True)
    return faces[np.sort(first)]


def simplify(parts: list[Part], limit: int) -> list[Part]:
    """Simplify surfaces to `limit` triangles in all, on a grid that is as fine as allows that."""
    parts = [cluster(part, 0.0) for part in parts]
    count = sum(len(part.faces) for part in parts)
    if count <= limit:
        return parts
    area = sum(float(_doubled_areas(part).sum()) for part in parts)
    cell, best = math.sqrt(area / limit), parts
    for _ in range(12):
        best = [cluster(part, cell) for part in parts]
        count = sum(len(part.faces) for part in best)
        if 0.75 * limit <= count <= limit:
            break
        cell *= min(max(math.sqrt(count / (0.9 * limit)), 0.6), 4.0)
    while sum(len(part.faces) for part in best) > limit:
        cell *= 1.5
        best = [cluster(part, cell) for part in parts]
    return best


def _doubled_areas(part: Part) -> Array:
    a, b, c = (part.points[part.faces[:, k]] for k in range(3))
    areas: Array = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    return areas


def with_normals(part: Part) -> tuple[Array, Array, npt.NDArray[np.int32]]:
    """Vertices, unit normals and triangles; a vertex on a sharp edge occurs once per side of it."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    points, faces = part.points, part.faces
    a, b, c = (points[faces[:, k]] for k in range(3))
    around = np.cross(b - a, c - a)
    length = np.linalg.norm(around, axis=1)
    real = length > 0
    faces, around, length = faces[real], around[real], length[real]
    unit = around / length[:, None]
    n = len(faces)
    # Corners 3 f + k of two faces that share an edge without a crease are one vertex.
    starts, ends = faces.ravel(), np.roll(faces, -1, axis=1).ravel()
    corner, after = np.arange(3 * n), np.roll(np.arange(3 * n).reshape(n, 3), -1, 1).ravel()
    key = np.minimum(starts, ends) * np.int64(len(points)) + np.maximum(starts, ends)
    order = np.argsort(key, kind="stable")
    first, second = order[:-1], order[1:]
    near = key[first] == key[second]
    near &= np.einsum("ij,ij->i", unit[first // 3], unit[second // 3]) > CREASE
    first, second = first[near], second[near]
    same = starts[first] == starts[second]
    other = np.where(same, second, after[second])  # the corner at the start of the first edge
    next_other = np.where(same, after[second], second)
    rows = np.concatenate([corner[first], after[first]])
    columns = np.concatenate([other, next_other])
    links = coo_array((np.ones(len(rows), bool), (rows, columns)), shape=(3 * n, 3 * n))
    count, label = connected_components(links, directed=False)
    vertices = np.zeros((count, 3))
    vertices[label] = points[starts]
    weights = np.repeat(around, 3, axis=0)
    normals = np.stack([np.bincount(label, weights[:, k], count) for k in range(3)], -1)
    size = np.linalg.norm(normals, axis=1, keepdims=True)
    flat = np.zeros((count, 3))
    flat[label] = np.repeat(unit, 3, axis=0)
    whole = (size > ROUNDING * length.max(initial=1.0)).ravel()
    flat[whole] = normals[whole] / size[whole]
    return vertices, flat, label.reshape(n, 3).astype(np.int32)


# COLLADA --------------------------------------------------------------------------------------


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


# formats --------------------------------------------------------------------------------------


Neighbour: TypeAlias = Callable[[str], bytes | None]

MAX_TEXT = 32 << 20  # bytes of a file of words, which take far more memory than that
MAX_PLY_TEXT = MAX_TEXT // 2
MAX_COLOURS = 1000  # of an OBJ file
MAX_NODES = 10_000  # of a glTF file
MAX_CORNERS = 3 * MAX_TRIANGLES  # of all copies in a glTF file
TEXTS = ("obj", "dae", "gltf")
TRIMESH = ("glb", "gltf", "ply")


def read_parts(data: bytes, suffix: str, neighbour: Neighbour) -> list[Part]:
    """Read the triangles of a file.

    Args:
        data: What the file holds.
        suffix: How its name ends, in small letters.
        neighbour: Reads a file beside it, or returns None.

    Raises:
        FileError: if it is none of these formats, damaged or too large.
    """
    if suffix not in FORMATS:
        raise FileError(f"'.{suffix}' files are not read, only {', '.join(FORMATS)}")
    limit = _longest_text(data, suffix)
    if limit is not None and len(data) > limit:
        raise FileError(f"is a text of more than {limit >> 20} MiB; binary files may be larger")
    try:
        parts = FORMATS[suffix](data, neighbour)
    except FileError:
        raise
    except Exception as error:  # whatever a reader of a damaged file may raise
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        raise FileError(f"is damaged, or no {suffix.upper()} file: {reason}") from None
    count = sum(len(part.faces) for part in parts)
    check_count(count)
    if not count:
        raise FileError("holds no triangles")
    return parts


def _longest_text(data: bytes, suffix: str) -> int | None:
    """Size limit of a file of words [bytes]; None for a binary one."""
    if suffix == "ply" and b"format ascii" in data[:1000]:
        return MAX_PLY_TEXT
    return MAX_TEXT if suffix in TEXTS or (suffix == "stl" and _is_ascii_stl(data)) else None


# STL ----------------------------------------------------------------------------------------

_FACET = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])


def _stl(data: bytes, _: Neighbour) -> list[Part]:
    count = int.from_bytes(data[80:84], "little")
    if len(data) >= 84 and len(data) == 84 + count * _FACET.itemsize:
        return [_soup(np.frombuffer(data, _FACET, count, 84)["corners"])]
    if _is_ascii_stl(data):
        words = data.lower().split()
        at = np.flatnonzero(np.array(words, dtype=object) == b"vertex")
        numbers = np.array([words[k + 1 : k + 4] for k in at.tolist()], dtype="S32")
        return [_soup(numbers[: len(numbers) // 3 * 3].astype(float))]
    whole = (len(data) - 84) // _FACET.itemsize
    if whole > 0 and whole < count:
        raise FileError(f"ends after {whole} of {count} triangles")
    if whole >= count > 0:  # something follows the triangles
        return [_soup(np.frombuffer(data, _FACET, count, 84)["corners"])]
    return []


def _is_ascii_stl(data: bytes) -> bool:
    return data[:256].lstrip()[:5].lower() == b"solid" and b"vertex" in data[: 1 << 16]


def _soup(corners: np.ndarray) -> Part:
    """Triangles that share no points yet."""
    points = np.asarray(corners, float).reshape(-1, 3)
    return Part(points, np.arange(len(points)).reshape(-1, 3))


# OBJ ----------------------------------------------------------------------------------------


def _obj(data: bytes, neighbour: Neighbour) -> list[Part]:
    """Faces by colour; polygons become fans of triangles."""
    points: list[list[bytes]] = []
    groups: dict[bytes, list[list[bytes]]] = {}
    colours: dict[bytes, Colour] = {}
    material = b""
    for line in data.replace(b"\\\n", b" ").splitlines():
        words = line.split()
        if not words:
            continue
        if words[0] == b"v":
            points.append(words[1:4])
        elif words[0] == b"f":
            groups.setdefault(material, []).append(words[1:])
        elif words[0] == b"usemtl":
            material = b" ".join(words[1:])
        elif words[0] == b"mtllib":
            for name in dict.fromkeys([b" ".join(words[1:]), *words[1:]]):
                colours |= _materials(neighbour(name.decode(errors="replace")) or b"")
    places = np.array(points, dtype="S32").astype(float).reshape(-1, 3)
    by_colour: dict[Colour | None, list[list[bytes]]] = {}
    for name, polygons in groups.items():
        by_colour.setdefault(colours.get(name), []).extend(polygons)
    if len(by_colour) > MAX_COLOURS:
        raise FileError(f"has more than {MAX_COLOURS} colours")
    return [
        Part(*used_points(places, _fans(polygons, len(places))), colour)
        for colour, polygons in by_colour.items()
    ]


def _fans(polygons: list[list[bytes]], count: int) -> np.ndarray:
    """Triangles of polygons; negative numbers count from the end of all points."""
    sizes = np.array([len(polygon) for polygon in polygons])
    check_count(int(np.maximum(sizes - 2, 0).sum()))
    words = [int(word.split(b"/", 1)[0]) for polygon in polygons for word in polygon]
    flat = np.array(words, np.int64)
    corners = np.where(flat > 0, flat - 1, flat + count)
    return fans(corners, sizes)


def _materials(data: bytes) -> dict[bytes, Colour]:
    """Diffuse colours of a material file."""
    found: dict[bytes, Colour] = {}
    name = b""
    for line in data.splitlines():
        words = line.split()
        if len(words) > 1 and words[0] == b"newmtl":
            name = b" ".join(words[1:])
        elif len(words) > 3 and words[0] == b"Kd":
            found[name] = as_colour([float(word) for word in words[1:4]])
    return found


def as_colour(rgb: Any) -> Colour:
    """Red, green and blue from 0 to 1 as whole numbers up to 255."""
    red, green, blue = np.rint(255 * np.clip(np.nan_to_num(np.asarray(rgb, float)[:3]), 0, 1))
    return int(red), int(green), int(blue)


# by trimesh ---------------------------------------------------------------------------------


def _by_trimesh(suffix: str) -> Callable[[bytes, Neighbour], list[Part]]:
    def read(data: bytes, neighbour: Neighbour) -> list[Part]:
        try:
            import trimesh
        except ImportError:
            raise FileError(f"reading it needs trimesh: {install_command('view')}") from None
        if suffix != "ply":
            _check_gltf(data, suffix)
        scene = trimesh.load_scene(
            io.BytesIO(data),
            file_type=suffix,
            resolver=_untyped(_Resolver(neighbour)),
            process=False,
        )
        # glTF's y is up, and robots' z: programs that load such files for robots do not turn them
        made = []
        for mesh in map(_untyped, scene.dump()):
            if hasattr(mesh, "faces"):
                part = Part(np.array(mesh.vertices, float), np.asarray(mesh.faces), _tint(mesh))
                made.append(part)
        return made

    return read


def _untyped(value: Any) -> Any:
    return value


class _Resolver:
    """What trimesh may read besides: buffers, and no pictures."""

    def __init__(self, neighbour: Neighbour) -> None:
        self._neighbour = neighbour

    def get(self, name: str) -> bytes:
        data = self._neighbour(name) if name.endswith(".bin") else None
        if data is None:
            raise FileError(f"needs {name[:80]}, which is not read")
        return data

    __getitem__ = get


def _check_gltf(data: bytes, suffix: str) -> None:
    """Raise an error for files that ask for more memory or time than they have bytes."""
    text = data
    if suffix == "glb":
        length = int.from_bytes(data[12:16], "little")
        text = data[20 : 20 + length]
    try:
        tree = json.loads(text)
    except RecursionError:
        raise FileError("is nested too deeply") from None
    nodes = tree.get("nodes", [])
    children = [child for node in nodes for child in node.get("children", [])]
    if len(nodes) > MAX_NODES or len(set(children)) < len(children):
        raise FileError("its nodes are too many, or no tree")
    if not all("bufferView" in accessor for accessor in tree.get("accessors", [])):
        raise FileError("announces numbers without their bytes, or compressed ones")
    corners = [sum(_sizes(mesh, tree["accessors"])) for mesh in tree.get("meshes", [])]
    copies = [corners[node["mesh"]] for node in nodes if "mesh" in node]
    if sum(corners) + sum(copies) > MAX_CORNERS:
        raise FileError(f"has more than {MAX_CORNERS} corners of triangles with all copies")


def _sizes(mesh: dict[str, Any], accessors: list[dict[str, Any]]) -> Iterator[int]:
    """How many numbers, or triples of them, the parts of a mesh have."""
    for part in mesh.get("primitives", []):
        used = [*part["attributes"].values(), *([part["indices"]] if "indices" in part else [])]
        yield sum(int(accessors[number]["count"]) for number in used)


def _tint(mesh: Any) -> Colour | None:
    material = getattr(mesh.visual, "material", None)
    for name in ("baseColorFactor", "diffuse"):
        value = getattr(material, name, None)
        if value is not None:
            values = np.asarray(value, float)
            return as_colour(values / 255.0 if np.asarray(value).dtype == np.uint8 else values)
    return None


FORMATS: dict[str, Callable[[bytes, Neighbour], list[Part]]] = {
    "stl": _stl,
    "obj": _obj,
    "dae": read_collada,
    **{suffix: _by_trimesh(suffix) for suffix in TRIMESH},
}
