"""Meshes in files are found, read, simplified and shown; nothing that a file holds does harm."""

from __future__ import annotations

import base64
import json
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import axode as ax
from axode.errors import FileError, OmissionWarning
from axode.formats.meshes import mesh_formats, mesh_library
from axode.formats.meshes.mesh_formats import (
    Part,
    clean,
    read_collada,
    read_parts,
    simplify,
    with_normals,
)
from axode.formats.meshes.mesh_library import locate
from axode.mechanism.scene.shaping import scene_of
from axode.show.render.meshes import TriangleMesh, meshes
from axode.show.render.painter import picture
from axode.show.report.cell_player import playback
from axode.show.web.scene_data import MAX_SURFACE_TRIANGLES
from tests.show.mesh_files import (
    CORNERS,
    FACES,
    SIZE,
    ascii_stl,
    binary_stl,
    boxes,
    collada,
    gltf,
    obj,
)


def nothing(_: str) -> None:
    return None


def volume(part: Part) -> float:
    a, b, c = (part.points[part.faces[:, k]] for k in range(3))
    return float(np.einsum("ij,ij->", a, np.cross(b, c))) / 6


def check_box(parts: list[Part]) -> None:
    """All parts together are the box, and their triangles go round it outwards."""
    points = np.concatenate([part.points[part.faces].reshape(-1, 3) for part in parts])
    assert points.min(0) == pytest.approx(0.0, abs=1e-6)
    assert points.max(0) == pytest.approx(SIZE, rel=1e-6)
    assert sum(len(part.faces) for part in parts) == 12
    assert sum(map(volume, parts)) == pytest.approx(SIZE.prod(), rel=1e-6)


@pytest.mark.parametrize(
    ("suffix", "data"), [*boxes(), ("stl", binary_stl(CORNERS[FACES]) + b"a comment behind it")]
)
def test_every_format_is_the_same_box(suffix: str, data: bytes) -> None:
    if suffix in mesh_formats.TRIMESH:
        pytest.importorskip("trimesh")
    check_box(read_parts(data, suffix, nothing))


def test_files_have_colours() -> None:
    materials = b"newmtl red\nKd 1 0 0\nnewmtl blue\nKd 0 0 2\n"
    parts = read_parts(obj(), "obj", {"box.mtl": materials}.get)
    assert [part.colour for part in parts] == [(255, 0, 0), (0, 0, 255)]
    (part,) = read_parts(collada(), "dae", nothing)
    assert part.colour == (255, 128, 0)
    pytest.importorskip("trimesh")
    (part,) = read_parts(gltf(), "gltf", nothing)
    assert part.colour == (0, 255, 0)


def test_a_mirrored_node_is_turned_inside_out_again() -> None:
    (part,) = read_parts(collada(1.0, "<scale>1 1 -1</scale>"), "dae", nothing)
    assert part.points[:, 2].min() == pytest.approx(-SIZE[2])
    assert volume(part) == pytest.approx(SIZE.prod())


NESTED = "<library_nodes>" + "".join(
    f'<node id="n{k}"><instance_node url="#n{k + 1}"/><instance_node url="#n{k + 1}"/></node>'
    for k in range(40)
)
SCENE = (
    '<library_visual_scenes><visual_scene id="s"><node><instance_node url="#n0"/></node>'
    "</visual_scene></library_visual_scenes>"
)
REPEATED = (
    '<library_geometries><geometry id="g"/></library_geometries><library_visual_scenes>'
    '<visual_scene id="s"><node>' + '<instance_geometry url="#g"/>' * 6000 + "</node>"
    "</visual_scene></library_visual_scenes>"
)
POLYGONS = (
    '<library_geometries><geometry><mesh><source id="p"><float_array>0 0 0</float_array></source>'
    '<vertices id="v"><input semantic="POSITION" source="#p"/></vertices><polylist>'
    '<input semantic="VERTEX" source="#v"/><vcount>3 3</vcount><p>0 0 0</p></polylist></mesh>'
    "</geometry></library_geometries>"
)


@pytest.mark.parametrize(
    ("suffix", "data", "message"),
    [
        ("stl", binary_stl(CORNERS[FACES], 2**32 - 1), "ends after 12 of 4294967295 triangles"),
        ("stl", b"", "holds no triangles"),
        ("stl", b"solid\nvertex 1 2", "holds no triangles"),
        ("stl", b"solid\nvertex 1 2 a\n" * 3, "is damaged, or no STL file"),
        ("obj", b"v 1 2\nv 1 2 3\nf 1 2 3", "is damaged, or no OBJ file"),
        ("obj", b"v 1 2 3\nf a b c", "is damaged, or no OBJ file"),
        ("obj", b"v 1 2 3\nf 1 1 " + b"9" * 30, "is damaged, or no OBJ file"),
        (
            "ply",
            b"ply\nformat ascii 1.0\nelement face 1\nend_header\n3 0 1 2",
            "holds no triangles",
        ),
        ("dae", b"\0\1", "is no XML"),
        ("dae", b"<COLLADA><asset>", "is no XML: "),
        ("dae", b'<!DOCTYPE a [<!ENTITY b "c">]><COLLADA/>', "declares entities"),
        (
            "dae",
            collada(text=NESTED + "</library_nodes>" + SCENE),
            "nested too deeply, or too many",
        ),
        ("dae", collada(text=REPEATED), "its geometries are repeated too often"),
        ("dae", collada(text=POLYGONS), "fewer corners than they announce"),
        ("dae", collada(text=POLYGONS.replace("#p", "#q")), "a geometry has no positions"),
        ("gltf", b"[" * 100_000, "is nested too deeply"),
        ("gltf", gltf(nodes=[{"children": [1, 1]}, {}]), "its nodes are too many, or no tree"),
        ("gltf", gltf(accessors=[{"count": 10**12}]), "announces numbers without their bytes"),
        (
            "gltf",
            gltf(buffers=[{"uri": "a.bin", "byteLength": 9}]),
            "needs a.bin, which is not read",
        ),
        ("glb", b"glTF" + bytes(40), "is damaged, or no GLB file"),
        ("zip", b"PK", r"'\.zip' files are not read, only stl, obj, dae"),
    ],
)
def test_hostile_files_are_refused(suffix: str, data: bytes, message: str) -> None:
    if suffix in mesh_formats.TRIMESH:
        pytest.importorskip("trimesh")
    with pytest.raises(FileError, match=message):
        read_parts(data, suffix, nothing)


def test_more_triangles_than_any_robot_has_are_refused(monkeypatch) -> None:
    monkeypatch.setattr(mesh_formats, "MAX_TRIANGLES", 11)
    files = {"stl": binary_stl(CORNERS[FACES]), "obj": obj(), "dae": collada()}
    for suffix, data in files.items():
        with pytest.raises(FileError, match="has 12 triangles, more than 11"):
            read_parts(data, suffix, nothing)


def test_copies_count_before_they_are_made(monkeypatch) -> None:
    """A few bytes repeat a mesh thousands of times; the copies would take all memory."""
    monkeypatch.setattr(mesh_formats, "MAX_TRIANGLES", 50)
    copies = collada().replace(b"<node>", b'<node><instance_geometry url="#g"/>')
    assert len(read_parts(copies, "dae", nothing)) == 2
    many = collada().replace(b"<node>", b"<node>" + b'<instance_geometry url="#g"/>' * 4000)
    with pytest.raises(FileError, match="has 60 triangles, more than 50"):
        read_parts(many, "dae", nothing)
    pytest.importorskip("trimesh")
    monkeypatch.setattr(mesh_formats, "MAX_CORNERS", 3 * (8 + 36))
    for count in (1, 2, 3):
        nodes = {"nodes": [{"mesh": 0}] * count, "scenes": [{"nodes": list(range(count))}]}
        if count < 3:
            assert len(read_parts(gltf(**nodes), "gltf", nothing)) == count
        else:
            with pytest.raises(FileError, match="more than 132 corners of triangles with all cop"):
                read_parts(gltf(**nodes), "gltf", nothing)


def test_many_materials_are_a_few_parts() -> None:
    """Every part costs time; a file with a material per triangle once took hours."""
    faces = "".join(f"usemtl m{k}\nf 1 2 3\n" for k in range(3000))
    data = b"v 0 0 0\nv 1 0 0\nv 0 1 0\nv 9 9 9\nmtllib a.mtl\n" + faces.encode()
    (part,) = read_parts(data, "obj", nothing)
    assert len(part.faces) == 3000 and len(part.points) == 3
    colours = "".join(f"newmtl m{k}\nKd 0 {k % 60 / 60} {k // 60 / 60}\n" for k in range(3000))
    with pytest.raises(FileError, match="has more than 1000 colours"):
        read_parts(data, "obj", {"a.mtl": colours.encode()}.get)


def test_long_texts_are_refused(monkeypatch) -> None:
    monkeypatch.setattr(mesh_formats, "MAX_TEXT", 100)
    for suffix, data in (("obj", obj()), ("stl", ascii_stl(CORNERS[FACES]))):
        with pytest.raises(
            FileError, match="is a text of more than 0 MiB; binary files may be larger"
        ):
            read_parts(data, suffix, nothing)
    check_box(read_parts(binary_stl(CORNERS[FACES]), "stl", nothing))
    monkeypatch.setattr(mesh_formats, "MAX_PLY_TEXT", 50)
    with pytest.raises(FileError, match="is a text of more than 0 MiB"):
        read_parts(b"ply\nformat ascii 1.0\n" + b" " * 50, "ply", nothing)
    with pytest.raises(FileError, match="has more than 500000 elements"):
        read_collada(b"<COLLADA>" + b"<a/>" * 1_000_000, nothing)


def test_triangles_that_are_none_vanish() -> None:
    points = np.vstack([CORNERS, [np.nan, 0, 0], [np.inf, 0, 0], [1e300, 0, 0]])
    wrong = [(0, 1, 8), (0, 1, 9), (0, 1, 10), (0, 0, 1), (0, 1, 11), (-1, 0, 1)]
    check_box([clean(Part(points, np.concatenate([FACES, wrong])))])
    empty = clean(Part(points, np.array(wrong)))
    assert not len(empty.faces) and simplify([empty], 10)[0] == empty
    flat = clean(Part(np.outer(np.arange(3), np.ones(3)), np.array([[0, 1, 2]])))
    assert [len(array) for array in with_normals(flat)] == [0, 0, 0]


def ball(rows: int) -> Part:
    polar, turn = np.meshgrid(np.linspace(0, np.pi, rows), np.linspace(0, 2 * np.pi, rows))
    points = np.stack([np.sin(polar) * np.cos(turn), np.sin(polar) * np.sin(turn), np.cos(polar)])
    k = (np.arange(rows - 1)[:, None] * rows + np.arange(rows - 1)).ravel()
    faces = [(k, k + 1, k + rows), (k + 1, k + rows + 1, k + rows)]
    return Part(points.reshape(3, -1).T, np.concatenate([np.stack(f, -1) for f in faces]))


def test_a_simplified_surface_is_still_that_surface() -> None:
    fine = ball(120)
    (coarse,) = simplify([fine], 3000)
    assert 1500 < len(coarse.faces) <= 3000
    assert abs(volume(coarse)) == pytest.approx(4 / 3 * np.pi, rel=0.02)
    vertices, normals, triangles = with_normals(coarse)
    assert np.linalg.norm(normals, axis=1) == pytest.approx(1.0)
    outwards = np.sign(volume(coarse)) * np.einsum("ij,ij->i", normals, vertices)
    assert outwards.min() > 0.9 and triangles.max() == len(vertices) - 1
    assert len(vertices) < 1.2 * len(triangles), "the vertices of a ball are shared"


def test_edges_stay_sharp() -> None:
    vertices, normals, triangles = with_normals(Part(CORNERS, FACES))
    assert len(vertices) == 24 and len(triangles) == 12
    assert np.abs(normals).max(1) == pytest.approx(1.0)


# where files are ---------------------------------------------------------------------------------


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package `bot` with a description in a folder of its own, and one beside it."""
    for name in ("bot/urdf", "bot/meshes", "other", "loose"):
        (tmp_path / "ws" / name).mkdir(parents=True)
    for name in ("bot", "other"):
        (tmp_path / "ws" / name / "package.xml").write_text(
            f"<package><name>{name}</name></package>"
        )
    for name in ("bot/meshes/a b.stl", "bot/urdf/b.stl", "other/c.stl", "loose/d.stl", "e.stl"):
        (tmp_path / "ws" / name).write_bytes(binary_stl(CORNERS[FACES]))
    return tmp_path / "ws"


@pytest.mark.parametrize(
    ("address", "file"),
    [
        ("b.stl", "bot/urdf/b.stl"),
        ("../meshes/a b.stl", "bot/meshes/a b.stl"),
        ("..\\meshes\\a b.stl", "bot/meshes/a b.stl"),
        ("package://bot/meshes/a b.stl", "bot/meshes/a b.stl"),
        ("package://bot/meshes/a%20b.stl", "bot/meshes/a b.stl"),
        ("model://other/c.stl", "other/c.stl"),
    ],
)
def test_files_of_a_package_are_found(package: Path, address: str, file: str) -> None:
    assert locate(address, (str(package / "bot" / "urdf"),)) == package / file
    renamed = package.rename(package.parent / "elsewhere")
    (renamed / "bot").rename(renamed / "bot-main")  # package.xml still has its name
    moved = renamed / file.replace("bot/", "bot-main/")
    assert locate(address, (str(renamed / "bot-main" / "urdf"),)) == moved


def test_a_package_that_is_not_there_may_be_copied_under_an_allowed_folder(package: Path) -> None:
    """A description that was copied out of a collection: the end of the address is enough."""
    address = "package://collection/robots/bot/meshes/a b.stl"
    for allowed in (package, package / "bot"):
        homes = (str(package / "bot" / "urdf"), str(allowed))
        assert locate(address, homes) == (package / "bot/meshes/a b.stl").resolve()
    with pytest.raises(FileError, match="no folder 'collection' around"):
        locate(address, (str(package / "bot" / "urdf"),))
    with pytest.raises(FileError, match="outside of the model's folder"):
        locate("package://collection/x/../meshes/../../e.stl", (str(package / "bot"),))


def test_only_files_of_the_model_are_opened(package: Path) -> None:
    home, outside = str(package / "bot" / "urdf"), "is outside of the model's folder"
    absolute = f"file://{package / 'e.stl'}"
    for address in ("../../e.stl", absolute, str(package / "e.stl"), "../../loose/d.stl"):
        with pytest.raises(FileError, match=outside):
            locate(address, (home,))
        assert locate(address, (home, str(package))).is_file()
    with pytest.raises(FileError, match=outside):
        locate("package://bot/../e.stl", (home,))
    (package / "bot" / "urdf" / "link.stl").symlink_to(package / "e.stl")
    with pytest.raises(FileError, match=outside):
        locate("link.stl", (home,))
    with pytest.raises(FileError, match="there is no folder 'loose' around"):
        locate("package://loose/d.stl", (home,))  # nothing says that it is a package
    assert locate("package://loose/d.stl", (home, str(package))).name == "d.stl"
    with pytest.raises(FileError, match="there is no such file"):
        locate("package://bot/meshes/none.stl", (home,))
    with pytest.raises(FileError, match="no address of a file on this machine"):
        locate("http://example.com/a.stl", (home,))
    with pytest.raises(FileError, match="no file can be there"):
        locate("a\0.stl", (home,))


def test_a_mesh_made_in_python_is_relative_to_the_working_directory(package: Path, monkeypatch):
    monkeypatch.chdir(package / "loose")
    assert locate("d.stl", ()) == package / "loose" / "d.stl"
    assert locate("../e.stl", ()) == package / "e.stl"


# scenes ------------------------------------------------------------------------------------------

LINK = """<robot name="bot"><material name="grey"><color rgba="0.4 0.4 0.4 1"/></material>
<link name="arm"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0"
iyz="0"/></inertial>
<visual><origin xyz="0 0 1"/><geometry><mesh filename="package://bot/meshes/a b.stl"
scale="1 1 -2"/></geometry><material name="grey"/></visual>
<visual><geometry><sphere radius="0.1"/></geometry><material name=""><color rgba="1 0 0 1"/>
</material></visual>
<visual><geometry><box size="9 9 9"/></geometry><material name="none"><color rgba="0 0 0 0"/>
</material></visual>
<collision><geometry><box size="1 1 1"/></geometry></collision></link></robot>"""


@pytest.fixture
def robot(package: Path) -> ax.Mechanism:
    file = package / "bot" / "urdf" / "bot.urdf"
    file.write_text(LINK)
    return ax.load(file, base="floating")


def surfaces(drawn: list[TriangleMesh]) -> list[TriangleMesh]:
    return [mesh for mesh in drawn if mesh.two_sided]


def test_all_visuals_of_a_link_are_shown(robot: ax.Mechanism) -> None:
    mesh, sphere = robot.bodies[0].shapes
    assert sphere == ax.Sphere(0.1, colour=(1.0, 0.0, 0.0))
    assert mesh.colour == (0.4, 0.4, 0.4) and mesh.scale == (1, 1, -2)
    drawn = meshes(scene_of(robot))
    (solid,) = surfaces(drawn)
    assert len(drawn) == 2 and solid.colour == (102, 102, 102)
    assert solid.vertices.min(0) == pytest.approx([0, 0, 1 - 2 * SIZE[2]], abs=1e-6)
    assert solid.vertices.max(0) == pytest.approx([SIZE[0], SIZE[1], 1], abs=1e-6)
    assert volume(Part(solid.vertices - [0, 0, 1], solid.triangles)) > 0, "mirrored, not inside out"


def test_a_missing_mesh_is_one_warning_and_a_simple_solid(robot: ax.Mechanism) -> None:
    body = robot.bodies[0]
    lost = (ax.Mesh("a.stl"), ax.Mesh("b.stl"), ax.Mesh("package://c/d.stl"), ax.Mesh("e.doc"))
    folders = body.shapes[0].folders
    robot.bodies[0] = replace(body, shape=tuple(replace(mesh, folders=folders) for mesh in lost))
    Path(folders[0], "b.stl").write_bytes(b"nonsense")
    Path(folders[0], "e.doc").write_bytes(b"nonsense")
    with pytest.warns(OmissionWarning) as caught:
        drawn = meshes(scene_of(robot))
    (warning,) = caught
    for text in (
        "bot: 4 of 4 meshes cannot be shown",
        "a.stl: there is no such file",
        "b.stl: holds no triangles",
        "package://c/d.stl: there is no folder 'c' around",
        "e.doc: '.doc' files are not read",
        "Remedy: ax.load(..., folder=...)",
    ):
        assert text in str(warning.message)
    assert drawn and not surfaces(drawn)


def test_limits_hold_for_all_meshes_together(robot: ax.Mechanism, monkeypatch) -> None:
    limits = (
        ("ALL_BYTES", 100, "the meshes are too large together"),
        ("ALL_TRIANGLES", 3, "the meshes have more than 3 triangles together"),
    )
    for name, limit, message in limits:
        with monkeypatch.context() as patch, pytest.warns(OmissionWarning, match=message):
            patch.setattr(mesh_library, name, limit)
            mesh_library._simplified.cache_clear()
            meshes(scene_of(robot))
    mesh_library._simplified.cache_clear()
    body = robot.bodies[0]
    robot.bodies[0] = replace(body, shape=replace(body.shapes[0], scale=(0, 0, 1e200)))
    with pytest.warns(OmissionWarning, match="has no triangle between 0 and 1e"):
        meshes(scene_of(robot))


def test_saved_mechanisms_and_models_keep_their_meshes(robot: ax.Mechanism, package: Path) -> None:
    """Beside the file that it came from; a model from elsewhere opens nothing there."""
    robot.save(package / "bot" / "bot.toml")
    again = ax.load(package / "bot" / "bot.toml")
    assert again == robot and len(surfaces(meshes(scene_of(again)))) == 1
    model = robot.derive().compile(target="interpreter")
    model.save(package / "bot" / "bot.axm")
    assert str(package) not in (package / "bot" / "bot.axm").read_bytes().decode("latin-1")
    loaded = ax.load_model(package / "bot" / "bot.axm")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(surfaces(meshes(loaded.scene))) == 1
    model.save(package.parent / "bot.axm")
    with pytest.warns(OmissionWarning, match="there is no folder 'bot' around"):
        assert not surfaces(meshes(ax.load_model(package.parent / "bot.axm").scene))


def test_pages_and_pictures_show_meshes(robot: ax.Mechanism) -> None:
    model = robot.derive().compile(target="interpreter")
    data = playback(model, None)
    assert [mesh["colour"] for mesh in data["meshes"]] == [[255, 0, 0], [102, 102, 102]]
    still = picture(model.scene, model.poses(model.home), width=60, height=60)
    spread = np.ptp(still.astype(int), axis=-1)
    assert (spread > 100).any(), "the red sphere"
    assert ((still.max(-1) < 150) & (spread < 10)).sum() > 50, "the grey mesh"


def test_a_page_stays_small(robot: ax.Mechanism, package: Path) -> None:
    fine = ball(160)
    (package / "bot" / "meshes" / "a b.stl").write_bytes(binary_stl(fine.points[fine.faces]))
    model = robot.derive().compile(target="interpreter")
    data = playback(model, None)
    count = len(base64.b64decode(data["meshes"][1]["triangles"])) // 6
    assert 0.7 * MAX_SURFACE_TRIANGLES < count <= MAX_SURFACE_TRIANGLES
    assert len(json.dumps(data)) < 700_000


# descriptions ------------------------------------------------------------------------------------


def test_shapes_of_a_body() -> None:
    bot = ax.Mechanism("bot")
    two = [ax.Sphere(0.1), ax.Box((1, 1, 1))]
    body = bot.add_body("a", mass=1, inertia=(1, 1, 1), shape=two)
    assert body.shape == tuple(two) == body.shapes
    assert bot.add_body("b", mass=1, shape=[ax.Sphere(0.1)]).shape == ax.Sphere(0.1)
    assert bot.add_body("c", mass=1, inertia=(1, 1, 1), shape=[]).shapes == ()
    divided = "shapes, and it is not known how its mass is divided among them; give inertia="
    with pytest.raises(ax.InvalidArgument, match=f"body 'd' has 2 {divided}"):
        bot.add_body("d", mass=1, shape=two)
    expected = "shape: expected Box, Cylinder, Sphere or Mesh, or several of them, got 'red'"
    with pytest.raises(ax.InvalidArgument, match=expected):
        bot.add_body("d", mass=1, shape=[ax.Sphere(0.1), "red"])
    bot.add_body("e", mass=1, shape=ax.Sphere(0.1, colour=(0, 0.5, 2)))
    with pytest.raises(
        ax.errors.MechanismError, match=r"three numbers from 0 to 1, got 0, 0\.5, 2"
    ):
        bot.check()


def test_a_turned_box_has_the_inertia_of_the_box_and_its_mass_centre_inside() -> None:
    quarter = (0, 0, np.pi / 2)
    straight, turned = ax.Box((2, 1, 3)), ax.Box((1, 2, 3), rotation=quarter)
    assert turned.inertia(2.0).entries == pytest.approx(straight.inertia(2.0).entries)
    skew = ax.Box((1, 2, 3), rotation=(0.3, -0.2, 0.7))
    R = np.array([[float(x) for x in row] for row in _matrix((0.3, -0.2, 0.7))])
    own = np.diag([float(x) for x in ax.Box((1, 2, 3)).inertia(2.0).entries[:3]])
    xx, yy, zz, xy, xz, yz = skew.inertia(2.0).entries
    assert np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) == pytest.approx(R @ own @ R.T)
    assert not turned.outside((0.9, 0.4, 0)) and turned.outside((0.4, 0.9, 0))


def _matrix(angles):
    from axode.mechanism.values.geometry import rotation_matrix

    return rotation_matrix(angles)


def test_wrong_colours_of_a_file_are_ignored(package: Path) -> None:
    file = package / "bot" / "urdf" / "bot.urdf"
    file.write_text(LINK.replace("0.4 0.4 0.4 1", "grey"))
    with pytest.warns(
        ax.errors.FileDeviationWarning, match="expected four numbers, got 'grey' -> ignored"
    ):
        assert ax.load(file).bodies[0].shapes[0].colour is None


def test_several_shapes_in_a_toml_file(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    head = '[joint.j]\ntype = "fixed"\nparent = "ground"\nchild = "a"\n[body.a]\nmass = 1\n'
    file.write_text(
        head + 'inertia = [1, 1, 1]\nshape = [{type = "sphere", radius = 1}, '
        '{type = "mesh", file = "a.stl", colour = [0, 0, 1]}]'
    )
    sphere, mesh = ax.load(file).bodies[0].shapes
    assert sphere == ax.Sphere(1) and mesh == ax.Mesh("a.stl", colour=(0, 0, 1))
    assert mesh.folders == (str(tmp_path),)
    file.write_text(head + "inertia = [1, 1, 1]\nshape = 3")
    with pytest.raises(ax.errors.MechanismError, match=r"expected a table such as .* or a list of"):
        ax.load(file)


# MJCF --------------------------------------------------------------------------------------------

MJCF = """<mujoco><compiler angle="degree" meshdir="meshes"/>
<default><default class="seen"><geom group="2" type="mesh" material="paint"/></default></default>
<asset><material name="paint" rgba="0.25 0.5 1 1" specular="0.3"/>
<mesh name="a" file="a b.stl" {asset}/></asset>
<worldbody><body name="arm"><freejoint/>{inertial}
<frame pos="0.1 0.2 0.3" euler="30 -40 50"><geom name="g" class="seen" mesh="a" pos="1 2 3"
euler="10 20 -70"/></frame>
<geom type="box" size="0.1 0.2 0.3" euler="0 0 20" group="1" mass="0"/>
<geom type="capsule" size="0.1 0.2" rgba="1 0 0 1" group="0" mass="0"/>
<geom type="sphere" size="9" group="3" mass="0"/>
<geom type="sphere" size="8" rgba="0 0 0 0" mass="0"/></body></worldbody></mujoco>"""
INERTIAL = '<inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/>'
PLACES = (
    "",
    'scale="2 3 -1" refpos="0.1 -0.2 0.3"',
    'scale="2 2 2" refpos="0.1 -0.2 0.3" refquat="0.7 0.1 -0.5 0.3"',
)


@pytest.mark.filterwarnings("ignore::axode.errors.OmissionWarning")
@pytest.mark.parametrize("asset", PLACES)
def test_meshes_are_where_mujoco_puts_them(package: Path, asset: str) -> None:
    mujoco = pytest.importorskip("mujoco")
    file = package / "bot" / "bot.xml"
    file.write_text(MJCF.format(asset=asset, inertial=""))
    own = mujoco.MjModel.from_xml_path(str(file))
    data = mujoco.MjData(own)
    mujoco.mj_kinematics(own, data)
    geom = own.geom("g").id
    points = own.mesh_vert @ data.geom_xmat[geom].reshape(3, 3).T + data.geom_xpos[geom]
    for inertial in ("", INERTIAL):  # the mesh is read by MuJoCo, or not at all
        file.write_text(MJCF.format(asset=asset, inertial=inertial))
        robot = ax.load(file)
        mesh, box, rod, *ends = robot.bodies[0].shapes
        assert mesh.colour == (0.25, 0.5, 1.0) and box.rotation != (0, 0, 0)
        assert rod.colour == (1, 0, 0) and [end.radius for end in ends] == [0.1, 0.1]
        (drawn,) = surfaces(meshes(scene_of(robot)))
        gaps = np.linalg.norm(drawn.vertices[:, None] - points, axis=-1)
        assert gaps.min(0).max() < 1e-6 and gaps.min(1).max() < 1e-6
        assert drawn.colour == (64, 128, 255)


@pytest.mark.filterwarnings("ignore::axode.errors.OmissionWarning")
def test_what_only_touches_is_shown_if_there_is_nothing_else(package: Path) -> None:
    pytest.importorskip("mujoco")
    file = package / "bot" / "bot.xml"
    collision = '<geom type="sphere" size="9" group="3"/>'
    file.write_text(f"<mujoco><worldbody><body><freejoint/>{collision}</body></worldbody></mujoco>")
    assert ax.load(file).bodies[0].shape == ax.Sphere(9)
    skewed = MJCF.format(asset='scale="1 1 2" refquat="1 1 0 0"', inertial=INERTIAL)
    file.write_text(skewed)
    assert not any(isinstance(shape, ax.Mesh) for shape in ax.load(file).bodies[0].shapes)
