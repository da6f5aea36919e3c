"""Mechanisms written as URDF, MJCF and SDF: what is said, what is left out, and how."""

import math
import re
import warnings
from dataclasses import dataclass
from xml.etree import ElementTree

import mujoco
import numpy as np
import pytest

import axode as ax
from axode.errors import FileError, InvalidArgument, NotApplicable, OmissionWarning, UnknownName
from axode.formats.written.written_joints import FramePose
from axode.mechanism.elements.joints import AbstractJoint
from kinematics_by_hand import pose
from variants import some

SLOW = (
    *("six_legged_platform", "dietmaier_platform", "flight_simulator", "delta_robot"),
    *("gough_stewart", "planar_3rrr", "agile_eye"),
)
FORMATS = ("to_urdf", "to_mjcf", "to_sdf")


def written(bot: ax.Mechanism, method: str, **options) -> ax.MechanismText:
    """Write without the warning about what is left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OmissionWarning)
        return getattr(bot, method)(**options)


def arm() -> ax.Mechanism:
    """Two links with a parameter, a motor, a damper and a spring."""
    length = ax.Parameter("length", 0.4)
    bot = ax.Mechanism("arm")
    for name, parent in (("upper", "ground"), ("lower", "upper")):
        bot.add_body(name, mass=0.1, com=(length / 2, 0, 0), inertia=(0.01, 0.02, 0.02))
        at = (0, 0, 0) if parent == "ground" else (length, 0, 0)
        bot.add_joint(f"{name}_pin", ax.Revolute("y"), parent=parent, child=name, at=at)
    bot.add_motor("drive", "upper_pin", limit=2.0, gear=-3.0, rotor_inertia=0.1)
    bot.add_damper("friction", "lower_pin", coefficient=0.3)
    return bot


@pytest.mark.parametrize("name", some(ax.gallery.NAMES, *SLOW))
def test_every_mechanism_of_the_gallery_is_written_and_everything_left_out_is_named(name):
    bot = ax.gallery.build(name)
    for method in FORMATS:
        made = written(bot, method)
        root = ElementTree.fromstring(made.text)
        lost = "\n".join(made.left_out)
        links = {e.get("name") for e in root.iter() if e.tag in ("link", "body")}
        assert {body.name for body in bot.bodies} <= links, method
        for contact in bot.contacts:
            assert f"wheel '{contact.name}'" in lost, method
        for part in (*bot.wrenches, *bot.measures):
            assert f"'{part.name}'" in lost, method
        if method == "to_urdf":
            for part in (*bot.loops, *bot.springs, *bot.struts):
                assert f"'{part.name}'" in lost
        if method == "to_mjcf":
            model = mujoco.MjModel.from_xml_string(made.text)
            # a motor without a limit is a motor all the same
            missing = [d for d in bot.drives if f"motor '{d.name}' drives" in lost]
            assert model.nu == len(bot.drives) - len(missing)
            assert model.nkey == 1
        if method == "to_sdf":
            for drive in bot.drives:
                assert f"motor '{drive.name}'" in lost


def test_what_is_left_out_is_warned_about_and_refused_if_strict():
    bot = arm()
    bot.add_spring("coil", "lower_pin", stiffness=3.0, rest=0.2)
    with pytest.warns(OmissionWarning, match="as URDF") as caught:
        made = bot.to_urdf()
    assert len(caught) == 1
    assert made.left_out == (
        "gear of motor 'drive': only its transmission says it, and the joint's effort is after "
        "the gear",
        "rotor inertia of motor 'drive', 0.9 kg m^2 at the joint",
        "spring 'coil'",
    )
    for sentence in made.left_out:
        assert sentence in str(caught[0].message)
    with pytest.raises(NotApplicable, match="Leave strict out to write the rest"):
        bot.to_urdf(strict=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert bot.to_mjcf(strict=True).left_out == ()


def test_numbers_are_the_shortest_that_read_back_and_motors_keep_gear_and_rotor():
    model = ElementTree.fromstring(arm().to_mjcf().text)
    motor, pin = model.find("actuator/motor"), model.find("worldbody/body/joint")
    assert motor.attrib == {
        "name": "drive",
        "joint": "upper_pin",
        "gear": "-3",
        "ctrllimited": "true",
        "ctrlrange": "-2 2",
    }
    assert float(pin.get("armature")) == 0.1 * 3.0 * 3.0
    robot = ElementTree.fromstring(written(arm(), "to_urdf").text)
    assert robot.find("joint[@name='upper_pin']/limit").get("effort") == "6"
    assert robot.find("link[@name='upper']/inertial/mass").get("value") == "0.1"
    assert robot.find("joint[@name='lower_pin']/dynamics").get("damping") == "0.3"


def test_sdf_keeps_motors_without_limit_and_those_of_both_axes_of_a_universal_joint(tmp_path):
    bot = ax.Mechanism("driven")
    parent = "ground"
    for name, joint in (("slide", ax.Prismatic()), ("cross", ax.Universal("x", "y"))):
        bot.add_body(f"{name} body", mass=1.0, inertia=(1, 1, 1))
        bot.add_joint(name, joint, parent=parent, child=f"{name} body")
        parent = f"{name} body"
    bot.add_motor("lift", "slide")
    bot.add_motor("tilt", "cross.second", limit=2.0)
    written(bot, "to_sdf", path=tmp_path / "driven.sdf")
    read = ax.load(tmp_path / "driven.sdf")
    limits = {drive.coordinate: drive.motor.limit for drive in read.drives}
    assert limits == {"slide": None, "cross.second": 2.0}
    root = ElementTree.parse(tmp_path / "driven.sdf").getroot()
    assert [effort.text for effort in root.iter("effort")] == ["inf", "0", "2"]


@pytest.mark.parametrize("ending", ["urdf", "sdf"])
def test_the_joint_with_a_motor_leads_the_one_without(ending, tmp_path):
    for driven in ("upper_pin", "lower_pin"):
        bot = arm()
        bot.drives.clear()
        bot.add_coupling("belt", {"upper_pin": 2.0, "lower_pin": 1.0})
        bot.add_motor("drive", driven, limit=2.0)
        path = tmp_path / f"arm.{ending}"
        written(bot, f"to_{ending}", path=path)
        text = path.read_text()
        path.write_text(re.sub("(?s)<transmission.*</transmission>", "", text))
        (drive,) = ax.load(path).drives
        assert drive.coordinate == driven


def test_the_home_of_mjcf_has_coordinates_where_they_are_held():
    bot = arm()
    bot.prescribe("lower_pin", 0.5)
    model = mujoco.MjModel.from_xml_string(written(bot, "to_mjcf").text)
    assert model.key_qpos[0].tolist() == [0.0, 0.5]


@pytest.mark.parametrize("method", FORMATS)
def test_parameters_have_their_defaults_or_the_values_given(method):
    for length in (None, 0.7):
        given = {} if length is None else {"parameters": {"length": length}}
        text = written(arm(), method, **given).text
        assert f'"{length or 0.4} 0 0"' in text or f">{length or 0.4} 0 0 0 0 0<" in text
    with pytest.raises(UnknownName, match="has no parameter 'lenght'"):
        written(arm(), method, parameters={"lenght": 1.0})
    with pytest.raises(InvalidArgument, match="parameters: expected values by name, got"):
        written(arm(), method, parameters=[1.0])
    with pytest.raises(InvalidArgument, match="parameter 'length': expected a finite number, got"):
        written(arm(), method, parameters={"length": math.nan})


def test_files_are_replaced_completely_or_left_as_they_were(tmp_path):
    path = tmp_path / "robot.urdf"
    path.write_text("old")
    made = written(arm(), "to_urdf", path=path)
    assert path.read_text() == made.text == str(made)
    path.write_text("old")
    with pytest.raises(NotApplicable):
        written(arm(), "to_urdf", path=path, strict=True)
    assert path.read_text() == "old"
    with pytest.raises(FileError, match="cannot write"):
        made.save(tmp_path / "nowhere" / "robot.urdf")
    assert [file.name for file in tmp_path.iterdir()] == ["robot.urdf"]


@pytest.mark.parametrize("method", FORMATS)
def test_names_with_signs_are_escaped_and_reserved_ones_changed(method):
    bot = ax.Mechanism('a <b> & "c"')
    bot.add_body("world", mass=1.0, inertia=(1, 1, 1))
    bot.add_body("<arm>::é", mass=1.0, inertia=(1, 1, 1))
    bot.add_joint("world", ax.Revolute(), parent="ground", child="world")
    bot.add_joint("<arm>::é", ax.Revolute("x"), parent="world", child="<arm>::é")
    made = written(bot, method)
    root = ElementTree.fromstring(made.text)
    names = [e.get("name") for e in root.iter() if e.tag in ("link", "body", "joint")]
    names.remove("world") if method == "to_urdf" else None
    assert "link 'world' is called 'world_' in the file" in made.left_out
    assert "world" not in names
    if method == "to_sdf":
        assert not any("::" in name for name in names)
        assert len(set(names)) == len(names) == 4
    else:
        assert "<arm>::é" in names


@dataclass(frozen=True)
class Odd(AbstractJoint):
    """A joint from outside the package."""


@pytest.mark.parametrize("method", FORMATS)
def test_joints_of_other_classes_are_refused(method):
    bot = ax.Mechanism("odd")
    bot.add_body("body", mass=1.0, inertia=(1, 1, 1))
    bot.add_joint("odd", Odd(), parent="ground", child="body")
    with pytest.raises(NotApplicable, match="files of other programs have no joints of class"):
        written(bot, method)


def test_mujoco_gets_bodies_that_it_accepts_and_every_change_is_named():
    bot = ax.Mechanism("ideal")
    bot.add_body("point", mass=1.0, com=(0, 0, -1), inertia=ax.Inertia.point())
    bot.add_body("frame", mass=0.0, inertia=ax.Inertia.point())
    bot.add_body("cad", mass=1.0, inertia=(0.02, 0.03, 0.0501))
    for name, parent in (("frame", "ground"), ("point", "frame"), ("cad", "point")):
        bot.add_joint(name, ax.Revolute("x"), parent=parent, child=name, at=(0, 0, 0.1))
    made = written(bot, "to_mjcf")
    model = mujoco.MjModel.from_xml_string(made.text)
    assert [s.split("'")[1] for s in made.left_out] == ["cad", "frame", "point"]
    assert np.allclose(model.body("point").mass, 1.0)
    assert np.allclose(sorted(model.body("cad").inertia), (0.0201, 0.03, 0.0501))


def test_wheels_touch_their_plane_and_nothing_else():
    bot = ax.gallery.build("differential_drive")
    model = mujoco.MjModel.from_xml_string(written(bot, "to_mjcf").text)
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    data.qpos[:] += 1e-6
    mujoco.mj_forward(model, data)
    touching = {tuple(sorted((c.geom1, c.geom2))) for c in data.contact}
    planes = {k for k in range(model.ngeom) if model.geom_type[k] == mujoco.mjtGeom.mjGEOM_PLANE}
    assert touching and all(len(planes & set(pair)) == 1 for pair in touching)


def test_positions_are_written_as_they_are_beside_larger_ones():
    bot = ax.Mechanism("far")
    bot.add_body("body", mass=1.0, inertia=(1, 1, 1))
    place = {"at": (1e6, 1e-11, 0), "rotation": (0.1, 0.2, 1.5708), "child_at": (0, 0, 0.1)}
    bot.add_joint("pin", ax.Revolute(), parent="ground", child="body", **place)
    for method in FORMATS:
        text = written(bot, method).text
        assert "1000000 1e-11 0" in text
        assert method == "to_mjcf" or "0.1 0.2 1.5708" in text


def test_springs_between_points_are_written_where_the_format_has_them(tmp_path):
    bot = arm()
    bot.add_spring(
        "strut", parent="upper", child="lower", at=(0.1, 0, 0.2), stiffness=7.0, rest=0.2, damping=3
    )
    bot.add_spring("tether", parent="ground", child="lower", at=(0, 0, 1), stiffness=2.0)
    read = {}
    for method, ending in (("to_urdf", ".urdf"), ("to_mjcf", ".xml")):
        made = written(bot, method, path=tmp_path / f"robot{ending}")
        assert ("spring 'tether' between a point and the world" in made.left_out) == (
            method == "to_urdf"
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read[method] = ax.load(tmp_path / f"robot{ending}").struts
    assert [s.name for s in read["to_mjcf"]] == ["strut", "tether"]
    for strut in (read["to_urdf"][0], read["to_mjcf"][0]):
        assert (strut.parent, strut.child, strut.at) == ("upper", "lower", (0.1, 0.0, 0.2))
        assert (strut.stiffness, strut.rest, strut.damping) == (7.0, 0.2, 3.0)
    assert len(read["to_urdf"]) == 1
    assert "spring 'strut' between two points" in written(bot, "to_sdf").left_out


@pytest.mark.soak
def test_very_long_chains_are_written():
    bot, parent = ax.Mechanism("chain"), "ground"
    for k in range(1200):
        bot.add_body(f"body{k}", mass=1.0, inertia=(1, 1, 1))
        bot.add_joint(f"joint{k}", ax.Revolute("y"), parent=parent, child=f"body{k}")
        parent = f"body{k}"
    assert bot.to_mjcf().text.count("<body") == 1200


def test_equal_damping_of_all_speeds_is_one_number_for_mujoco():
    bot = ax.Mechanism("ball")
    bot.add_body("body", mass=1.0, inertia=(1, 1, 1))
    bot.add_joint("ball", ax.Spherical(), parent="ground", child="body")
    for axis, strength in (("wx", 0.3), ("wy", 0.3), ("wz", 0.1)):
        bot.add_damper(axis, f"ball.{axis}", coefficient=strength)
    assert written(bot, "to_mjcf").left_out == (
        "damping of joint 'ball': one number damps all its speeds in MuJoCo",
    )
    bot.add_damper("more", "ball.wz", coefficient=0.2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = mujoco.MjModel.from_xml_string(bot.to_mjcf().text)
    assert np.allclose(model.dof_damping, 0.3)


@pytest.mark.parametrize("pitch", [0.0, 0.7, 1.5708, math.pi / 2, math.pi / 2 - 1e-9, -1.5707963])
def test_angles_make_up_their_rotation_near_a_pitch_of_a_right_angle_too(pitch):
    for roll, yaw in ((0.0, 0.0), (0.3, -2.0), (3.1416, 1.5708)):
        R = pose((0, 0, 0), (roll, pitch, yaw))[:3, :3]
        placed = FramePose(R, np.zeros(3))
        again = FramePose.of((0, 0, 0), placed.angles).R
        assert np.abs(again - R).max() < 1e-15
        quaternion = FramePose.of((0, 0, 0), placed.quaternion).R
        assert np.abs(quaternion - R).max() < 1e-15


def test_command_line_writes_all_three(tmp_path):
    from typer.testing import CliRunner

    from axode.cli import app

    for ending, root in ((".urdf", "robot"), (".xml", "mujoco"), (".sdf", "sdf")):
        path = tmp_path / f"robot{ending}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OmissionWarning)
            result = CliRunner().invoke(app, ["export", "seven_axis_arm", "--to", str(path)])
        assert result.exit_code == 0, result.output
        assert re.search("wrote .*bytes", result.output)
        assert ElementTree.parse(path).getroot().tag == root


def test_paths_of_meshes_are_relative_to_the_new_file(tmp_path, monkeypatch):
    home, new = tmp_path / "home", tmp_path / "new"
    (home / "meshes").mkdir(parents=True)
    new.mkdir()
    (home / "meshes" / "arm.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\n")
    monkeypatch.chdir(home)
    bot = ax.Mechanism("bot")
    shapes = ax.Mesh("meshes/arm.obj"), ax.Mesh("none.obj"), ax.Mesh("package://bot/arm.obj")
    bot.add_body("arm", mass=1.0, inertia=(1, 1, 1), shape=shapes)
    bot.add_joint("arm", ax.Revolute("z"), parent=bot.ground, child="arm")
    files = [shape.file for shape in shapes]
    moved = ["../home/meshes/arm.obj", *files[1:]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for write, suffix in ((bot.to_urdf, "urdf"), (bot.to_sdf, "sdf")):
            write(new / f"bot.{suffix}")
            read = ax.load(new / f"bot.{suffix}", base="fixed")
            assert [shape.file for shape in read.bodies[-1].shapes] == moved
            assert all(file in str(write()) for file in files)
        assert 'file="../home/meshes/arm.obj"' in str(bot.to_mjcf(new / "bot.xml"))
        bot.save(new / "bot.toml")
        assert [shape.file for shape in ax.load(new / "bot.toml").bodies[0].shapes] == moved
    assert [shape.file for shape in bot.bodies[0].shapes] == files


def test_long_lists_say_where_the_rest_is(monkeypatch):
    monkeypatch.setattr("axode.formats.written.mechanism_text.MOST_SENTENCES", 1)
    bot = ax.Mechanism("bot")
    bot.add_body("arm", mass=1.0, inertia=(1, 1, 1))
    bot.add_joint("arm", ax.Revolute("z"), parent=bot.ground, child="arm")
    bot.add_spring("a", "arm", stiffness=1.0)
    bot.set_home({"arm": 0.1})
    with pytest.warns(
        OmissionWarning, match=r"\.\.\. \(2 in all; the text's \.left_out has them\)"
    ):
        bot.to_urdf()
