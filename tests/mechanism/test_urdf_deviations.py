"""What is done about URDF files that depart from the format, one deviation at a time."""

import math
import warnings
from decimal import Decimal

import numpy as np
import pytest

import axode as ax
from axode.errors import FileDeviationWarning
from axode.formats.xml.reading import RIGHT_ANGLE, exact_angle
from axode.mechanism.elements.bodies import Mesh
from axode.mechanism.scene.shaping import scene_of
from axode.show.render.meshes import meshes

ARM = """\
<robot name="arm">
  <link name="base"/>
  <link name="upper">
    <inertial><origin xyz="0.2 0 0"/><mass value="2"/><inertia ixx="0.01" iyy="0.02" izz="0.02"/>
    </inertial>
  </link>
  <link name="fore">
    <inertial><origin xyz="0.1 0 0"/><mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.01"/>
    </inertial>
  </link>
  <joint name="shoulder" type="revolute">
    <parent link="base"/><child link="upper"/><axis xyz="0 0 1"/><limit effort="9" velocity="1"/>
  </joint>
  <joint name="elbow" type="revolute">
    <origin xyz="0.4 0 0" rpy="0 0 0.5"/><parent link="upper"/><child link="fore"/>
    <axis xyz="0 1 0"/><limit effort="9" velocity="1"/>
  </joint>
</robot>
"""
MIMIC = '<limit effort="9" velocity="1"/>\n  </joint>\n</robot>'


@pytest.fixture
def file(tmp_path, monkeypatch):
    """Write text or bytes to arm.urdf in the current folder."""
    monkeypatch.chdir(tmp_path)

    def write(content):
        data = content if isinstance(content, bytes) else content.encode()
        (tmp_path / "arm.urdf").write_bytes(data)
        return "arm.urdf"

    return write


def deviations(path, **options):
    """The mechanism and the lines of the warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        bot = ax.load(path, **options)
    assert all(warning.category is FileDeviationWarning for warning in caught)
    return bot, [line for warning in caught for line in str(warning.message).split("\n")[1:]]


# numbers -----------------------------------------------------------------------------------------

SNAPPED = (
    "1.57079632679",
    "-1.570796327",
    "1.5707963267",
    "3.1415926535",
    "3.14159265359",
    "4.71238898038",
    "-6.283185307",
    "1.5707963267948961",
    "6.12323e-17",
    "0",
    "1.57079632679490",
    "157.0796326795e-2",
)
KEPT = (
    "1.5708",
    "1.57079633",
    "1.570796325",
    "1.5707963259",
    "3.141592653",
    "1.53106e-11",
    "0.5",
    "3.14159265",
    "7.45058e-09",
    "1e-12",
    "1.5707963705062866",
    "1e300",
)


@pytest.mark.parametrize("text", SNAPPED)
def test_right_angles_written_with_ten_digits_are_right_angles(text):
    turns = round(float(text) / (math.pi / 2))
    assert exact_angle(text) == turns * (math.pi / 2)
    assert abs(Decimal(text) - turns * RIGHT_ANGLE) < Decimal("1e-9")  # so that nothing moves


@pytest.mark.parametrize("text", KEPT)
def test_all_other_angles_are_kept_as_they_are_written(text):
    assert exact_angle(text) == float(text)


def test_a_wrong_limit_or_damping_is_left_out(file):
    text = ARM.replace('effort="9"', 'effort="inf"', 1)
    text = text.replace("</joint>", '<dynamics damping="-1" friction="x"/></joint>', 1)
    bot, found = deviations(file(text))
    assert found == [
        "  line  12  [joint.shoulder] limit effort: must be finite, got 'inf' -> left out",
        "  line  13  [joint.shoulder] dynamics damping: must be >= 0, got -1 -> left out",
        "  line  13  [joint.shoulder] dynamics friction: expected a number, got 'x' -> left out",
    ]
    assert [drive.name for drive in bot.drives] == ["elbow"] and not bot.dampers


def test_what_cannot_be_read_is_refused_all_the_same(file):
    text = ARM.replace('mass value="2"', 'mass value="heavy"').replace('ixx="0.01"', 'ixx="9"')
    with pytest.raises(ax.MechanismError) as caught:
        ax.load(file(text))
    assert str(caught.value) == (
        "arm.urdf has 1 problem.\n  line   4  [link.upper] mass value: expected a number, got "
        "'heavy'"
    )
    with pytest.raises(ax.MechanismError, match=r"arm\.urdf has 3 problems"):
        ax.load(file(text), strict=True)


def test_a_negative_mass_is_refused(file):
    with pytest.raises(ax.MechanismError, match="mass: must be > 0 kg, got -2"):
        ax.load(file(ARM.replace('mass value="2"', 'mass value="-2"')))


# joints that follow others -----------------------------------------------------------------------


def test_mimic_becomes_a_coupling(file):
    text = ARM.replace(MIMIC, '<mimic joint="shoulder" multiplier="-2" offset="0.1"/>' + MIMIC[33:])
    bot, found = deviations(file(text), strict=True)
    assert not found
    assert [drive.name for drive in bot.drives] == ["shoulder"]
    model = bot.derive().compile("interpreter")
    q = ax.assemble(model, fix={"shoulder": 0.3}).q
    np.testing.assert_allclose(q, [0.3, -0.5], atol=1e-12)
    assert len(model.independent) == 1


def held(file, mimic, type="revolute"):
    text = ARM.replace(MIMIC, f"{mimic}{MIMIC[33:]}")
    return file(text.replace('name="elbow" type="revolute"', f'name="elbow" type="{type}"'))


@pytest.mark.parametrize("kind", ["revolute", "prismatic"])
def test_a_joint_that_follows_nothing_that_moves_is_held_where_it_would_be(file, kind):
    path = held(file, '<mimic joint="shoulder" multiplier="0" offset="0.3"/>', kind)
    bot, found = deviations(path)
    assert len(found) == 1 and found[0].endswith("with multiplier 0 -> held at 0.3")
    free, _ = deviations(held(file, "", kind))
    still = bot.derive().compile("interpreter")
    moving = free.derive().compile("interpreter")
    np.testing.assert_allclose(still.poses([0.7]), moving.poses([0.7, 0.3]), atol=1e-15)


@pytest.mark.parametrize(
    ("mimic", "done"),
    [
        ('<mimic joint="elbow"/>', "the joint moves by itself"),
        ('<mimic joint="sholder"/>', "the joint moves by itself"),
        ("<mimic/>", "the joint moves by itself"),
    ],
)
def test_a_joint_whose_leader_is_unknown_moves_by_itself(file, mimic, done):
    bot, found = deviations(held(file, mimic))
    assert len(found) == 1 and found[0].endswith(f" -> {done}")
    assert not bot.couplings and len(bot.derive().independent) == 2


def test_a_leader_that_is_fixed_holds_its_followers(file):
    text = ARM.replace('name="shoulder" type="revolute"', 'name="shoulder" type="fixed"')
    text = text.replace(MIMIC, f'<mimic joint="shoulder"/>{MIMIC[33:]}')
    bot, found = deviations(file(text))
    assert found[0].endswith("follows joint 'shoulder', which is fixed -> held at 0")
    assert not any(connection.speeds for connection in bot.connections)


# the ground --------------------------------------------------------------------------------------

WORLD = ARM.replace('<link name="base"/>', '<link name="world"/><link name="base"/>').replace(
    "</robot>",
    '<joint name="stand" type="fixed"><parent link="world"/><child link="base"/></joint></robot>',
)


def test_a_world_that_only_carries_the_robot_may_float_with_it(file):
    bot, found = deviations(
        file(
            WORLD.replace(
                '<link name="base"/>',
                """<link name="base">
        <inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>""",
            )
        ),
        base="floating",
    )
    assert not found
    assert (bot.connections[0].joint, bot.connections[0].child) == (ax.Floating(), "world")
    assert bot.derive().mobility.mobility == 8


def test_a_ground_that_floats_has_another_name(file):
    text = WORLD.replace('"world"', '"ground"')
    bot, found = deviations(file(text), base="planar")
    assert found == [
        "  line   2  [link.ground] 'ground' is the world; choose another name -> called 'ground_'"
    ]
    assert bot.bodies[0].name == "ground_"
    assert deviations(file(text))[1] == []


# text --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "remark"),
    [
        (ARM.encode("utf-16"), None),
        (b"\xef\xbb\xbf" + ARM.encode(), None),
        (b'<?xml version="1.0" encoding="latin-1"?><!-- \xfc -->' + ARM.encode(), None),
        (b"<!-- \xfc -->\n" + ARM.encode(), "line   1  [robot] the byte 0xfc is not UTF-8"),
        (b"\n <?xml version='1.0'?>" + ARM.encode(), "line   2  [robot] the XML declaration"),
        (b"<!-- a -->\n<?xml version='1.0'\n?>" + ARM.encode(), "line   2  [robot] the XML"),
        (b"<!DOCTYPE robot SYSTEM 'robot.dtd'>" + ARM.encode(), "line   1  [robot] has a document"),
        (ARM.encode() + b"\0\0", "line  19  [robot] zero bytes end the file"),
        (b'<?xml version="1.0" encoding="no-such"?>' + ARM.encode(), None),
    ],
)
def test_encodings_and_declarations(file, data, remark):
    bot, found = deviations(file(data))
    assert [body.name for body in bot.bodies] == ["base", "upper", "fore"]
    assert [line.strip().startswith(remark or "-") for line in found] == [True] * bool(remark)


def test_lines_are_right_behind_a_declaration_that_is_left_out(file):
    text = "<!-- a -->\n<?xml version='1.0'\n?>\n" + ARM.replace('ixx="0.01"', 'ixx="1"', 1)
    _, found = deviations(file(text))
    assert [int(line.split()[1]) for line in found] == [2, 7]


@pytest.mark.parametrize(
    "part", ['<xacro:wheel side="left"/>', "<xacro:if value='1'/>", '<link name="${a}"/>']
)
def test_macros_that_would_make_parts_are_refused(file, part):
    with pytest.raises(ax.FileError, match="holds macros of xacro"):
        ax.load(file(ARM.replace("</robot>", f"{part}</robot>")))


def test_macros_where_nothing_is_read_do_no_harm(file):
    text = ARM.replace(
        "</robot>",
        '<xacro:property name="a" value="${b}"/>'
        '<gazebo x="${c}"/><material name="$(arg d)"/></robot>',
    )
    _, found = deviations(file(text))
    assert found == ["  line  18  [robot] <xacro:property> is left from xacro -> ignored"]
    with pytest.raises(ax.FileError, match="line 18: holds macros of xacro"):
        ax.load(file(text.replace('link="fore"', 'link="${fore}"'.replace("$", ""))))


# pictures ----------------------------------------------------------------------------------------


def test_a_mesh_is_kept_as_a_reference(file):
    mesh = (
        '<visual><origin xyz="0 0 1" rpy="0 0 0.5"/><geometry><mesh scale="1 1 -1" '
        'filename="package://arm/upper.stl"/></geometry></visual>'
    )
    bot, _ = deviations(file(ARM.replace('<link name="upper">', f'<link name="upper">{mesh}')))
    wanted = Mesh("package://arm/upper.stl", (1, 1, -1), (0, 0, 1), (0, 0, 0.5))
    assert bot.bodies[1].shape == wanted
    bot.save("arm.toml")
    assert ax.load("arm.toml") == bot
    plain, _ = deviations(file(ARM))
    with pytest.warns(ax.errors.OmissionWarning, match="there is no folder 'arm' around"):
        instead = meshes(scene_of(bot))
    assert [mesh.body for mesh in instead] == [mesh.body for mesh in meshes(scene_of(plain))]


def test_a_mesh_has_no_inertia():
    with pytest.raises(ax.InvalidArgument, match="a mesh has no inertia of its own"):
        ax.Mechanism("m").add_body("b", mass=1, shape=Mesh("b.stl"))


def test_a_picture_that_is_wrong_is_not_drawn(file):
    ball = '<visual><origin xyz="0 0"/><geometry><sphere radius="big"/></geometry></visual>'
    bot, found = deviations(file(ARM.replace('<link name="upper">', f'<link name="upper">{ball}')))
    assert bot.bodies[1].shape is None
    assert [line.rpartition(" -> ")[2] for line in found] == ["not drawn", "not drawn"]


def test_many_deviations_are_shortened_in_the_warning_and_kept_in_its_attribute():
    found = [ax.errors.Fault("link", f"l{k}", "mass", "wrong", k) for k in range(1, 31)]
    warning = FileDeviationWarning("robot.urdf", found)
    text = str(warning)
    assert "30 deviations" in text and "[link.l12]" in text and "[link.l13]" not in text
    assert text.endswith("... (30 in all; strict=True lists them)")
    assert warning.deviations == tuple(found)


# extensions that change the motion ---------------------------------------------------------------


def test_extensions_that_change_the_motion_are_listed(file):
    joint = '<axis xyz="0 0 1"/><dynamics damping="1" spring_stiffness="4"/><armature value="2"/>'
    more = """<transmission name="t"><joint name="elbow"/><actuator name="m">
  <drake:rotor_inertia value="0.1"/><motorInertia>0</motorInertia></actuator></transmission>
  <gazebo reference="elbow"><springStiffness>3</springStiffness></gazebo>
  <gazebo reference="fore"><turnGravityOff>true</turnGravityOff><mu1>0.2</mu1></gazebo>
  <gazebo reference="upper"><gravity>1</gravity><dampingFactor>0.0</dampingFactor></gazebo>
  <gazebo><static>false</static></gazebo>
</robot>"""
    text = ARM.replace('<axis xyz="0 0 1"/>', joint).replace("</robot>", more)
    text = text.replace('name="arm"', 'name="arm" xmlns:drake="drake"')
    _, lines = deviations(file(text))
    assert [line.split("]", 1)[0].split("[")[1] + line.split("]", 1)[1] for line in lines] == [
        "joint.shoulder dynamics: unknown attribute 'spring_stiffness'. "
        "Attributes: damping, friction. -> ignored",
        "joint.shoulder <armature> is not of URDF -> not read",
        "transmission.t drake:rotor_inertia: is 0.1 -> not read",
        "gazebo.elbow springStiffness: is 3 -> not read",
        "gazebo.fore turnGravityOff: is true -> not read",
    ]
