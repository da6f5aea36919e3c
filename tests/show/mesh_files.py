"""A box in every format of meshes, and a robot that is drawn with one."""

from __future__ import annotations

import base64
import json
import struct
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

import axode as ax
from axode.errors import FileError, OmissionWarning
from axode.formats.meshes import mesh_formats, mesh_library
from axode.mechanism.scene.shaping import scene_of
from axode.show.render.meshes import meshes

SIZE = np.array([0.2, 0.3, 0.4])
CORNERS = np.array([(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)]) * SIZE
QUADS = np.array(
    [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
)
FACES = np.concatenate([QUADS[:, [0, 1, 2]], QUADS[:, [0, 2, 3]]])


def binary_stl(corners: np.ndarray, count: int | None = None) -> bytes:
    facets = np.zeros(len(corners), mesh_formats._FACET)
    facets["corners"] = corners
    number = len(corners) if count is None else count
    return bytes(80) + struct.pack("<I", number) + facets.tobytes()


def ascii_stl(corners: np.ndarray) -> bytes:
    facets = [
        "facet normal 0 0 0\nouter loop\n"
        + "".join("vertex {:g} {:g} {:g}\n".format(*point) for point in triangle)
        + "endloop\nendfacet\n"
        for triangle in corners
    ]
    return ("solid box\n" + "".join(facets) + "endsolid box\n").encode()


def obj() -> bytes:
    points = "".join("v {:g} {:g} {:g}\n".format(*point) for point in CORNERS)
    quads = ["f " + " ".join(f"{k + 1}//1" for k in quad) for quad in QUADS]
    last = "f " + " ".join(str(int(k) - len(CORNERS)) for k in QUADS[-1])
    lines = ["mtllib box.mtl", points, "usemtl red", *quads[:3], "usemtl blue", *quads[3:5], last]
    return "\n".join(lines).encode()


def collada(unit: float = 0.001, place: str = "", text: str = "") -> bytes:
    points = " ".join(f"{x:.17g}" for x in (CORNERS / unit).ravel())
    corners = " ".join(f"{k} 0" for k in QUADS.ravel())
    inside = (
        text
        or f"""
      <library_effects><effect id="e"><profile_COMMON><technique><phong>
        <diffuse><color>1 0.5 0 1</color></diffuse></phong></technique></profile_COMMON></effect>
      </library_effects>
      <library_materials><material id="m"><instance_effect url="#e"/></material></library_materials>
      <library_geometries><geometry id="g"><mesh>
        <source id="p"><float_array id="f">{points}</float_array></source>
        <vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
        <polylist material="s"><input semantic="VERTEX" source="#v" offset="0"/>
          <input semantic="NORMAL" source="#p" offset="1"/>
          <vcount>4 4 4 4 4 4</vcount><p>{corners}</p></polylist>
      </mesh></geometry></library_geometries>
      <library_visual_scenes><visual_scene id="scene"><node>{place}
        <instance_geometry url="#g"><bind_material><technique_common>
        <instance_material symbol="s" target="#m"/></technique_common></bind_material>
        </instance_geometry></node></visual_scene></library_visual_scenes>
      <scene><instance_visual_scene url="#scene"/></scene>"""
    )
    return f"""<?xml version="1.0"?><COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema">
      <asset><unit meter="{unit}"/><up_axis>Y_UP</up_axis></asset>{inside}</COLLADA>""".encode()


def gltf(**changed: object) -> bytes:
    points, faces = CORNERS.astype("<f4").tobytes(), FACES.astype("<u2").tobytes()
    data = base64.b64encode(points + faces).decode()
    tree = {
        "asset": {"version": "2.0"},
        "scenes": [{"nodes": [0]}],
        "scene": 0,
        "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "indices": 1, "material": 0}]}],
        "materials": [{"pbrMetallicRoughness": {"baseColorFactor": [0.0, 1.0, 0.0, 1.0]}}],
        "buffers": [
            {
                "uri": f"data:application/octet-stream;base64,{data}",
                "byteLength": len(points) + len(faces),
            }
        ],
        "bufferViews": [
            {"buffer": 0, "byteOffset": 0, "byteLength": len(points)},
            {"buffer": 0, "byteOffset": len(points), "byteLength": len(faces)},
        ],
        "accessors": [
            {
                "bufferView": 0,
                "componentType": 5126,
                "count": 8,
                "type": "VEC3",
                "min": [0, 0, 0],
                "max": SIZE.tolist(),
            },
            {"bufferView": 1, "componentType": 5123, "count": 36, "type": "SCALAR"},
        ],
    }
    return json.dumps(tree | changed).encode()


def ply(form: str) -> bytes:
    """A PLY file, `ascii` or `binary_little_endian`."""
    head = f"""ply
format {form} 1.0
element vertex {len(CORNERS)}
property float x
property float y
property float z
element face {len(FACES)}
property list uchar int vertex_indices
end_header
""".encode()
    if form != "ascii":
        faces = b"".join(b"\3" + face.astype("<i4").tobytes() for face in FACES)
        return head + CORNERS.astype("<f4").tobytes() + faces
    lines = ["{:g} {:g} {:g}".format(*point) for point in CORNERS]
    lines += ["3 {} {} {}".format(*face) for face in FACES]
    return head + "\n".join(lines).encode()


def glb() -> bytes:
    """The glTF file in its binary form."""
    text = gltf()
    text += b" " * (-len(text) % 4)
    chunk = struct.pack("<I4s", len(text), b"JSON") + text
    return struct.pack("<4sII", b"glTF", 2, 12 + len(chunk)) + chunk


def boxes() -> Iterator[tuple[str, bytes]]:
    """The box in every format, with the endings of the files."""
    yield "stl", binary_stl(CORNERS[FACES])
    yield "stl", ascii_stl(CORNERS[FACES])
    yield "obj", obj()
    yield "dae", collada()
    yield "dae", collada(2.54, "<translate>0 0 0</translate><rotate>0 0 1 0</rotate>")
    yield "gltf", gltf()
    yield "glb", glb()
    yield "ply", ply("ascii")
    yield "ply", ply("binary_little_endian")


def draw(path: Path) -> object:
    """Draw a robot whose body is a mesh.

    Raises:
        FileError: if the mesh cannot be shown.
    """
    mesh_library._read.cache_clear()
    mesh_library._simplified.cache_clear()
    robot = ax.Mechanism("robot")
    shape = replace(ax.Mesh(path.name), folders=(str(path.parent),))
    robot.add_body("arm", mass=1.0, inertia=(1, 1, 1), shape=shape)
    robot.add_joint("arm", ax.Revolute("z"), parent=robot.ground, child="arm")
    with warnings.catch_warnings():
        warnings.simplefilter("error", OmissionWarning)
        try:
            return meshes(scene_of(robot))
        except OmissionWarning as missing:
            raise FileError(str(missing)) from None
