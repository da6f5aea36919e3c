"""What is read of a URDF file, and what is said of one that is wrong."""

import math
import random
import warnings
from pathlib import Path

import numpy as np
import pytest

import axode as ax
from axode.errors import PlausibilityWarning
from tests.mechanism.random_urdf import random_robot

ROUNDS = 300
DIFFDRIVE = Path(__file__).parents[2] / "examples" / "diffdrive.urdf"
SOUND = """\
<robot name="two arms">
  <link name="base"/>
  <link name="upper">
    <inertial>
      <origin xyz="0 0 0.2" rpy="0 0 0"/>
      <mass value="2"/>
      <inertia ixx="0.03" ixy="0.001" ixz="0" iyy="0.02" iyz="0" izz="0.02"/>
    </inertial>
    <visual><geometry><mesh filename="package://arm/upper.stl"/></geometry></visual>
    <collision><geometry><cylinder radius="0.05" length="0.4"/></geometry></collision>
  </link>
  <link name="fore">
    <inertial><mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.01"/></inertial>
  </link>
  <joint name="shoulder" type="revolute">
    <parent link="base"/>
    <child link="upper"/>
    <axis rpy="0 0 0" xyz="0 3 0"/>
    <limit effort="40" velocity="2" lower="-1" upper="1"/>
    <dynamics damping="0.5"/>
  </joint>
  <joint name="elbow" type="continuous">
    <origin xyz="0 0 0.4" rpy="0 1.57079632679 0"/>
    <parent link="upper"/>
    <child link="fore"/>
    <limit effort="0" velocity="2"/>
  </joint>
</robot>
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    """Write a text to arm.urdf in the current folder."""
    monkeypatch.chdir(tmp_path)

    def write(text, name="arm.urdf"):
        (tmp_path / name).write_text(text)
        return name

    return write


def refused(path, error=ax.FileError, **options):
    with pytest.raises(error) as caught:
        ax.load(path, **options)
    return str(caught.value)


def joints(bot):
    return {connection.name: connection for connection in bot.connections}


# what is read ------------------------------------------------------------------------------------


def test_a_sound_file(file):
    bot = ax.load(file(SOUND))
    assert repr(bot) == "Mechanism('two arms': 3 bodies, 3 joints, 1 motor)"
    base, shoulder, elbow = bot.connections
    assert base.joint == ax.Fixed() and (base.name, base.child) == ("base", "base")
    assert shoulder.joint == ax.Revolute("y")  # of length one, whatever the file's is
    assert elbow.joint == ax.Revolute("x")  # what URDF means by no axis
    assert (elbow.parent, elbow.child, elbow.at) == ("upper", "fore", (0, 0, 0.4))
    assert elbow.rotation == (0, math.pi / 2, 0)  # a right angle in eleven digits is one
    upper = bot.bodies[1]
    assert (upper.mass, upper.com, upper.inertia.xy) == (2, (0, 0, 0.2), 0.001)
    assert upper.shape == ax.Mesh("package://arm/upper.stl")
    assert [body.mass for body in bot.bodies] == [0, 2, 1]
    assert [(d.coordinate, d.motor.limit) for d in bot.drives] == [("shoulder", 40)]
    assert [(d.coordinate, d.coefficient) for d in bot.dampers] == [("shoulder", 0.5)]


def test_damping_is_minus_coefficient_times_speed(file):
    model = ax.load(file(SOUND)).derive().compile("interpreter")
    free = SOUND.replace('damping="0.5"', 'damping="0"')
    q, v = [0.3, 0.2], [2.0, -1.0]
    undamped = ax.load(file(free)).derive().compile("interpreter")
    np.testing.assert_allclose(
        model.forward_dynamics(q, v, [1.0]), undamped.forward_dynamics(q, v, [1.0 - 0.5 * 2.0])
    )


def test_transmissions_say_which_joints_are_driven(file):
    both = "".join(
        f'<transmission name="t{k}"><type>Simple</type><joint name="{name}"/>'
        "<actuator><mechanicalReduction>50</mechanicalReduction></actuator></transmission>"
        for k, name in enumerate(("elbow", "shoulder"))
    )
    bot = ax.load(file(SOUND.replace("</robot>", f"{both}</robot>")))
    found = {drive.name: (drive.motor.limit, drive.motor.gear) for drive in bot.drives}
    assert found == {"elbow": (None, 1.0), "shoulder": (40.0, 1.0)}


@pytest.mark.parametrize(
    ("base", "joint"),
    [("fixed", ax.Fixed()), ("floating", ax.Floating()), ("planar", ax.Planar("z"))],
)
def test_the_root_is_held_as_asked(file, base, joint):
    bot = ax.load(file(SOUND), base=base)
    assert (bot.connections[0].joint, bot.connections[0].parent) == (joint, "ground")
    named = SOUND.replace('"elbow"', '"base"')
    assert set(joints(ax.load(file(named), base=base))) == {"base_", "shoulder", "base"}


def test_a_root_called_world_is_the_ground(file):
    text = SOUND.replace('"base"', '"world"')
    bot = ax.load(file(text))
    assert [body.name for body in bot.bodies] == ["upper", "fore"]
    assert joints(bot)["shoulder"].parent == "ground" and len(bot.connections) == 2
    assert refused(file(text), ax.InvalidArgument, base="floating") == (
        "base='floating': the root link of arm.urdf is 'world', the ground itself.\n"
        "  Leave base out, and let the joint on that link be of type floating or planar."
    )


def test_turned_inertias_of_equal_solids_are_equal(file):
    """A rod along its own z, turned to lie along y, is a rod along y."""
    rod = (
        '<origin rpy="1.5707963267948966 0 0"/><mass value="1"/>'
        '<inertia ixx="0.02" ixy="0" ixz="0" iyy="0.025" iyz="0.001" izz="0.01"/>'
    )
    text = SOUND.replace("<inertial><mass", f"<inertial>{rod}</inertial><inertial><mass")
    inertia = ax.load(file(text)).bodies[2].inertia
    assert inertia == ax.Inertia(0.02, 0.01, 0.025, 0, 0, -0.001)


def test_zero_moments_are_believed(file):
    text = SOUND.replace('ixx="0.01" iyy="0.01" izz="0.01"', 'ixx="0" iyy="0.01" izz="0.01"')
    assert ax.load(file(text)).bodies[2].inertia.ideal


MESH = '<visual><geometry><mesh filename="package://arm/upper.stl"/></geometry></visual>'


@pytest.mark.parametrize(
    ("visual", "shape"),
    [
        ('<sphere radius="0.1"/>', ax.Sphere(0.1, (0, 0, 1))),
        ('<box size="1 2 3"/>', ax.Box((1, 3, 2), (0, 0, 1))),
        ('<cylinder radius="1" length="2"/>', ax.Cylinder(1, 2, "-y", (0, 0, 1))),
        ('<box size="0 0 0"/>', ax.Cylinder(0.05, 0.4)),
        (
            '<mesh filename="a.stl"/><sphere radius="0.1"/>',
            (
                ax.Mesh("a.stl", at=(0, 0, 1), rotation=(math.pi / 2, 0, 0)),
                ax.Sphere(0.1, (0, 0, 1)),
            ),
        ),
    ],
)
def test_every_shape_that_can_be_drawn_is_shown(file, visual, shape):
    visual = f'<origin xyz="0 0 1" rpy="1.5707963267948966 0 0"/><geometry>{visual}</geometry>'
    text = SOUND.replace(MESH, f"<visual>{visual}</visual>")
    assert ax.load(file(text)).bodies[1].shape == shape


def test_a_box_that_stands_askew_is_not_drawn_straight(file):
    visual = '<origin rpy="0 0 0.5"/><geometry><box size="1 2 3"/></geometry>'
    text = SOUND.replace(MESH, f"<visual>{visual}</visual>")
    assert ax.load(file(text)).bodies[1].shape == ax.Box((1, 2, 3), rotation=(0, 0, 0.5))


def test_what_is_left_out_is_warned_of(file):
    text = SOUND.replace('damping="0.5"', 'damping="0.5" friction="0.1"')
    with pytest.warns(ax.errors.OmissionWarning) as caught:
        ax.load(file(text))
    (warning,) = caught
    assert str(warning.message) == (
        'arm.urdf: dry friction of joints that contacts="friction" or "all" reads is left out: '
        "shoulder."
    )
    assert warning.filename == __file__
    with pytest.warns(
        ax.errors.OmissionWarning, match="joints with several speeds .* left out: shoulder"
    ):
        ax.load(file(SOUND.replace("revolute", "planar")))


def test_a_massless_end_that_moves_is_told_when_equations_are_derived(file):
    hand = (
        '<link name="hand"/><joint name="wrist" type="revolute"><parent link="fore"/>'
        '<child link="hand"/></joint></robot>'
    )
    bot = ax.load(file(SOUND.replace("</robot>", hand)))
    with pytest.warns(
        PlausibilityWarning, match=r"hand.*nothing resists the motion of wrist\.rate"
    ):
        equations = bot.derive()
    with pytest.raises(ax.MechanismError, match=r"hand.*nothing resists the motion of wrist\.rate"):
        ax.simulate(equations.compile("interpreter"), 1.0)
    fixed = SOUND.replace("</robot>", hand.replace("revolute", "fixed"))
    assert ax.load(file(fixed)).derive().mobility.mobility == 2


def test_a_robot_becomes_toml(file, tmp_path):
    bot = ax.load(file(random_robot(4)))
    bot.save("arm.toml")
    assert ax.load("arm.toml") == bot


@pytest.mark.slow
def test_wheels_are_added_after_loading():
    bot = ax.load(DIFFDRIVE, base="floating", wheels=())
    for side in ("left", "right"):
        bot.add_contact(side, ax.Rolling(0.08), body=f"{side}_wheel", axis="z")
    bot.add_contact("slider", ax.Ball(0.03, "free", "free"), body="slider")
    equations = bot.derive()
    assert equations.mobility.mobility == 2
    model = equations.compile("interpreter")
    q = ax.assemble(model).q
    forces = model.forward_dynamics(q, [0.0, 0.0], [1.0, 1.0])
    # the closed form of a cart: (M + 2 J / r^2) r w_dot = 2 tau / r, with both wheels alike
    mass, spin, radius = 12 + 2 * 0.8, 0.0026, 0.08
    wanted = 2 * 1.0 / radius / (mass + 2 * spin / radius**2) / radius
    np.testing.assert_allclose(forces, [wanted, wanted])


# what is wrong -----------------------------------------------------------------------------------

INERTIA = '<inertia ixx="0.03" ixy="0.001" ixz="0" iyy="0.02" iyz="0" izz="0.02"/>'
NAMES = "Links: base, upper, fore."
FAULTS = {
    "type": (
        'type="revolute"',
        'type="revolut"',
        "line  15  [joint.shoulder] type: unknown type 'revolut'. Types: revolute, continuous, "
        "prismatic, fixed, floating, planar. Did you mean 'revolute'?",
    ),
    "no type": (
        ' type="revolute"',
        "",
        "line  15  [joint.shoulder] type: is missing. Types: revolute, continuous, prismatic, "
        "fixed, floating, planar.",
    ),
    "unknown link": (
        '<child link="fore"/>',
        '<child link="four"/>',
        f"line  25  [joint.elbow] child: unknown link 'four'. {NAMES} Did you mean 'fore'?",
    ),
    "no parent": (
        '<parent link="base"/>',
        "",
        'line  15  [joint.shoulder] parent: is missing; name a link: <parent link="..."/>',
    ),
    "a joint on itself": (
        '<parent link="upper"/>',
        '<parent link="fore"/>',
        "line  22  [joint.elbow] child: a joint needs two different links",
    ),
    "two roots": (
        "</robot>",
        '<link name="stray"/></robot>',
        "line  28  [link.stray] no joint holds it, and none holds 'base'; a robot has one root: "
        "make this link the child of a joint",
    ),
    "an inertia without end": (
        'ixx="0.03" ixy="0.001"',
        'ixx="1e308" ixy="1e308"',
        "line   7  [link.upper] inertia: no moment may be larger than 1e+150 kg m^2",
    ),
    "a loop": (
        "</robot>",
        '<joint name="rod" type="fixed"><parent link="base"/><child link="fore"/></joint></robot>',
        "line  28  [joint.rod] child: joint 'elbow' holds link 'fore' already, and a URDF file is "
        "a tree",
    ),
    "one name twice": (
        '<link name="fore">',
        '<link name="upper">',
        "line  12  [link.upper] line 3 has this name already; names are unique",
    ),
    "no name": ('<joint name="elbow"', "<joint", 'line  22  [robot] a joint has no name="..."'),
    "not a number": (
        'mass value="2"',
        'mass value="heavy"',
        "line   6  [link.upper] mass value: expected a number, got 'heavy'",
    ),
    "nan": (
        'xyz="0 0 0.2"',
        'xyz="0 NaN 0.2"',
        "line   5  [link.upper] origin xyz: must be finite, got '0 NaN 0.2'",
    ),
    "too large": (
        'effort="40"',
        'effort="1e400"',
        "line  19  [joint.shoulder] limit effort: must be finite, got '1e400'",
    ),
    "two numbers": (
        'xyz="0 0 0.4"',
        'xyz="0 0.4"',
        "line  23  [joint.elbow] origin xyz: expected three numbers, got '0 0.4'",
    ),
    "python's digits": (
        'mass value="2"',
        'mass value="2_0"',
        "line   6  [link.upper] mass value: expected a number, got '2_0'",
    ),
    "negative": (
        'damping="0.5"',
        'damping="-0.5"',
        "line  20  [joint.shoulder] dynamics damping: must be >= 0, got -0.5",
    ),
    "axis": (
        'xyz="0 3 0"',
        'xyz="0 0 0"',
        "line  18  [joint.shoulder] axis xyz: points nowhere; give a direction such as '0 0 1'",
    ),
    "mass": (
        'mass value="2"',
        'mass value="-2"',
        "line   6  [link.upper] mass: must be > 0 kg, got -2",
    ),
    "no mass": (
        '<mass value="2"/>',
        "",
        'line   4  [link.upper] inertial: has no <mass value="..."/>',
    ),
    "no inertia": (
        INERTIA,
        "",
        "line   4  [link.upper] inertial: has no <inertia ixx=... iyy=... izz=.../>",
    ),
    "triangle": (
        'izz="0.02"',
        'izz="0.06"',
        "line   7  [link.upper] inertia: not physical, Ixx + Iyy < Izz",
    ),
    "no moment": ('iyy="0.02"', "", "line   7  [link.upper] inertia iyy: is missing"),
    "attribute": (
        'rpy="0 0 0"',
        'rpj="0 0 0"',
        "line   5  [link.upper] origin: unknown attribute 'rpj'. Attributes: xyz, rpy, "
        "quat_xyzw. Did you "
        "mean 'rpy'?",
    ),
    "element": (
        '<inertial><mass value="1"/>',
        '<Inertial/><inertial><mass value="1"/>',
        "line  13  [link.fore] unknown element <Inertial>. Did you mean <inertial>?",
    ),
    "mimic of a fixed joint": (
        "</robot>",
        '<link name="finger"/><joint name="grip" type="fixed"><parent link="fore"/>'
        '<child link="finger"/>\n<mimic joint="elbow"/></joint></robot>',
        "line  29  [joint.grip] mimic: a joint of type fixed cannot follow another",
    ),
    "mimic of nothing": (
        "</robot>",
        '<link name="finger"/><joint name="grip" type="revolute"><parent link="fore"/>'
        '<child link="finger"/>\n<mimic joint="elbo"/></joint></robot>',
        "line  29  [joint.grip] mimic: cannot follow joint 'elbo'. Joints: shoulder, elbow. Did "
        "you mean 'elbow'?",
    ),
    "transmission": (
        "</robot>",
        '<transmission name="t"><joint name="elbo"/></transmission></robot>',
        "line  28  [transmission.t] joint: unknown joint 'elbo'. Joints: shoulder, elbow. Did "
        "you mean 'elbow'?",
    ),
    "transmission to nowhere": (
        "</robot>",
        '<link name="tip"/><joint name="end" type="fixed"><parent link="fore"/>'
        '<child link="tip"/></joint><transmission name="t"><joint name="end"/></transmission>'
        "</robot>",
        "line  28  [transmission.t] joint: joint 'end' is fixed, and a motor moves a joint that "
        "turns or slides",
    ),
    "the ground's name": (
        '"fore"',
        '"ground"',
        "line  12  [link.ground] 'ground' is the world; choose another name",
    ),
    "bracket": (
        'name="elbow"',
        'name="[elbow"',
        "line  22  [joint.\"[elbow\"] a name must not begin with a bracket, got '[elbow'",
    ),
}


@pytest.mark.parametrize("case", FAULTS)
def test_a_fault_is_told_with_its_line(file, case):
    old, new, message = FAULTS[case]
    assert old in SOUND
    told = refused(file(SOUND.replace(old, new)), ax.MechanismError, strict=True)
    assert told == f"arm.urdf has 1 problem.\n  {message}"


def test_all_faults_are_told_at_once(file):
    text = SOUND
    for case in ("type", "nan", "two numbers", "axis", "triangle", "attribute", "negative"):
        old, new, _ = FAULTS[case]
        text = text.replace(old, new)
    told = refused(file(text), ax.MechanismError, strict=True).split("\n")
    assert told[0] == "arm.urdf has 7 problems."
    lines = [int(line.split()[1]) for line in told[1:]]
    assert lines == [5, 5, 7, 15, 18, 20, 23]


def test_faults_of_names_do_not_hide_each_other(file):
    """Whatever else is wrong, a fault is in the first list: no second round after correcting."""
    more = """
  <link name="table"/><link name="tool"/><link name="tip"/><link name="pen"/>
  <joint type="fixed"><parent link="base"/><child link="tip"/></joint>
  <joint name="slide" type="planar"><parent link="base"/><child link="table"/></joint>
  <joint name="slide.x" type="revolute"><parent link="bse"/><child link="tool"/></joint>
  <joint name="slide.x" type="revolt"><parent link="base"/><child link="tool"/></joint>
  <joint name="slide.y" type="revolute"><parent link="table"/><child link="pen"/></joint>
</robot>"""
    text = SOUND.replace('mass value="2"', 'mass value="-2"').replace("</robot>", more)
    assert [line.split(". ")[0] for line in refused(file(text), ax.MechanismError).split("\n")] == [
        "arm.urdf has 5 problems.",
        "  line   6  [link.upper] mass: must be > 0 kg, got -2",
        '  line  30  [robot] a joint has no name="..."',
        "  line  32  [joint.\"slide.x\"] parent: unknown link 'bse'",
        '  line  33  [joint."slide.x"] line 32 has this name already; names are unique',
        '  line  34  [joint."slide.y"] 2 coordinates or speeds have this name',
    ]


def test_a_ring_is_told(file):
    text = SOUND.replace('<parent link="base"/>', '<parent link="fore"/>')
    ring = (
        "its links hold each other in a ring and reach no root; one link is the child of no joint"
    )
    assert refused(file(text), ax.MechanismError) == (
        f"arm.urdf has 2 problems.\n  line  15  [joint.shoulder] {ring}\n"
        f"  line  22  [joint.elbow] {ring}"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "arm.urdf, line 1: not valid XML, no element found."),
        ("name = 3", "arm.urdf, line 1: not valid XML, syntax error.\n  name = 3"),
        (
            "<robot>\n<link name=a/>\n</robot>",
            "arm.urdf, line 2: not valid XML, not well-formed (invalid token).\n  <link name=a/>",
        ),
        (
            "<robot>\n<link>\n</robot>",
            "arm.urdf, line 3: not valid XML, mismatched tag.\n  </robot>",
        ),
        (
            '<!DOCTYPE r [\n<!ENTITY a "ha">\n<!ENTITY b "&a;&a;">]>\n<robot name="&b;"/>',
            "arm.urdf, line 1: a document type declaration, which is not read.\n  Remove the lines "
            "of <!DOCTYPE ...>; the file needs none.",
        ),
        (
            '<robot xmlns:xacro="x">\n<xacro:macro name="wheel"/></robot>',
            "arm.urdf, line 2: holds macros of xacro.\n  Call the file robot.urdf.xacro, and it is "
            f"expanded ({ax.errors.install_command('xacro')}), or expand it first: "
            "xacro arm.urdf > robot.urdf",
        ),
        (
            '<robot>\n<link name="${a}"/></robot>',
            "arm.urdf, line 2: holds macros of xacro.\n  Call the file robot.urdf.xacro, and it is "
            f"expanded ({ax.errors.install_command('xacro')}), or expand it first: "
            "xacro arm.urdf > robot.urdf",
        ),
        (
            "<model/>",
            "arm.urdf is XML of <model>.\n  Mechanisms are read from TOML, from URDF, whose "
            "outermost element is <robot>, from MJCF, where it is <mujoco>, and from SDF, where it "
            "is <sdf>.",
        ),
    ],
)
def test_what_is_not_urdf_is_told(file, text, message):
    assert refused(file(text)) == message


def test_an_empty_robot_is_told(file):
    told = refused(file("<robot/>"), ax.MechanismError)
    assert told == "arm.urdf has 1 problem.\n  line   1  [robot] has no <link>"


def test_a_name_with_a_slip_finds_its_file(file):
    file(SOUND)
    assert refused("arn.urdf") == (
        "cannot read arn.urdf: No such file or directory.\n  Did you mean arm.urdf?"
    )


def test_files_without_end_are_refused():
    assert refused("/dev/zero") == "/dev/zero is larger than 16 MiB, as no mechanism's file is."


def test_elements_without_end_are_refused_while_they_are_read(file):
    """Each takes a hundred times the memory of its text."""
    path = file(f"<robot>{'<a/>' * 200_001}</robot>")
    assert refused(path) == "arm.urdf: more than 50000 elements, as in no robot."


def test_messages_have_an_end(file, monkeypatch):
    monkeypatch.setattr(ax.errors, "MAX_LISTED", 2)
    links = "".join(f'<link name="{name}"/>' for name in "abcde")
    with pytest.raises(ax.MechanismError) as caught:
        ax.load(file(f"<robot>{links}</robot>"))
    first, *_, last = str(caught.value).splitlines()
    assert first == "arm.urdf has 4 problems." and len(caught.value.faults) == 4
    assert last == "  ... and 2 more, in the error's .faults"


def test_elements_in_elements_without_end(file):
    depth = 40_000
    text = SOUND.replace("</robot>", "<gazebo>" * depth + "</gazebo>" * depth + "</robot>")
    assert len(ax.load(file(text)).bodies) == 3


def test_base_is_one_of_three_words_and_of_urdf_only(file, tmp_path):
    assert refused(file(SOUND), ax.InvalidArgument, base="free") == (
        "base must be 'fixed', 'floating' or 'planar', got 'free'"
    )
    ax.load("arm.urdf").save("arm.toml")
    assert refused("arm.toml", ax.InvalidArgument, base="floating") == (
        "base='floating' is for URDF files; in arm.toml a joint on the ground holds the first body"
    )


def spoiled(dice, text):
    """A file with a few lines lost, doubled or changed."""
    lines = text.split("\n")
    for _ in range(dice.randrange(1, 4)):
        k = dice.randrange(len(lines))
        match dice.randrange(4):
            case 0:
                del lines[k]
            case 1:
                lines.insert(dice.randrange(len(lines)), lines[k])
            case 2:
                words = lines[k].split('"')
                word = dice.choice(("", "nan", "1", "base", "1 2 3", "é", "&lt;", "[", "-1", "x y"))
                words[dice.randrange(len(words))] = word
                lines[k] = '"'.join(words)
            case 3:
                lines[k] = lines[k].replace(
                    *dice.choice(
                        (("link", "joint"), ("1", "-1"), ("/>", ">"), ("0", "0.0.1"), ("=", ""))
                    )
                )
    return "\n".join(lines)


def test_whatever_a_file_holds_it_loads_or_is_refused_by_an_error_of_ours(file):
    dice = random.Random(11)
    texts = [SOUND, DIFFDRIVE.read_text(encoding="utf-8")]
    outcomes = {"loaded": 0, "MechanismError": 0, "FileError": 0}
    for _ in range(ROUNDS):
        text = spoiled(dice, dice.choice(texts))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ax.load(file(text)).check()
            outcomes["loaded"] += 1
        except ax.AxodeError as error:
            outcomes[type(error).__name__] += 1
            for fault in getattr(error, "faults", ()):
                assert 1 <= fault.line <= text.count("\n") + 1, error
        except Exception as error:
            pytest.fail(f"{type(error).__name__}: {error}\n{text}")
    assert all(count > ROUNDS / 20 for count in outcomes.values()), outcomes
