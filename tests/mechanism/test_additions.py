"""TOML files that extend others: what they add, what they remove, and what is wrong with them."""

import re
import shutil
import tomllib
import warnings
from pathlib import Path

import numpy as np
import pytest

import axode as ax
from axode.cli import run
from axode.errors import OmissionWarning
from axode.mechanism.topology import home_poses

EXAMPLES = Path(__file__).parents[2] / "examples"
HEAD = '[extends]\nfile = "diffdrive.urdf"\nbase = "floating"\n'
SLIDER = """
[contact.slider]
type = "ball"
body = "slider"
radius = 0.03
longitudinal = "free"
lateral = "free"
"""


@pytest.fixture
def place(tmp_path):
    shutil.copy(EXAMPLES / "diffdrive.urdf", tmp_path)
    return tmp_path


def write(place: Path, text: str, name: str = "robot.toml") -> Path:
    (place / name).write_text(text)
    return place / name


def load(place: Path, text: str, **options) -> ax.Mechanism:
    return ax.load(write(place, text), **options)


def refusal(place: Path, text: str, kind=ax.MechanismError, **options) -> str:
    with pytest.raises(kind) as caught:
        load(place, text, **options)
    return str(caught.value)


def by_hand(**options) -> ax.Mechanism:
    robot = ax.load(EXAMPLES / "diffdrive.urdf", base="floating", wheels=())
    slider = ax.Ball(0.03, longitudinal="free", lateral="free")
    robot.add_contact("slider", slider, body="slider")
    for side in ("left_wheel", "right_wheel"):
        robot.add_contact(side, ax.Rolling(radius=0.08), body=side, axis="z")
    return robot


# what is added -----------------------------------------------------------------------------------


def test_the_result_is_the_robot_that_calls_would_build(place):
    robot = load(place, HEAD + 'wheels = "proposed"\n' + SLIDER)
    assert robot == by_hand()
    robot.save(place / "whole.toml")
    assert "extends" not in tomllib.loads((place / "whole.toml").read_text())
    assert ax.load(place / "whole.toml") == robot


def test_the_mass_matrix_is_that_of_the_robot_of_the_gallery(place):
    """The wheels roll on z = 0 under a planar base, as those of the robot written by hand do."""
    text = (place / "diffdrive.urdf").read_text()
    for old, new in (("0.0014", "0.00128"), ("0.0026", "0.00256"), ("0.04 0 0.03", "0.08 0 0")):
        text = text.replace(old, new)
    (place / "diffdrive.urdf").write_text(text)
    robot = load(
        place,
        HEAD.replace("floating", "planar")
        + 'wheels = ["left_wheel", "right_wheel"]\nremove = ["damper.*"]\n',
    )
    wheels = ["left_wheel_joint.rate", "right_wheel_joint.rate"]
    ours = robot.derive(independent=wheels).compile()
    theirs = ax.gallery.build("differential_drive").derive(independent=["phi_L_dot", "phi_R_dot"])
    other = theirs.compile()
    q, q_other = ours.home, other.home
    np.testing.assert_allclose(ours.mass_matrix(q), other.mass_matrix(q_other), rtol=1e-13)
    nu = np.array([1.3, -0.4])
    np.testing.assert_allclose(
        ours.forward_dynamics(q, nu, [0.2, 0.1]),
        other.forward_dynamics(q_other, nu, [0.1, 0.2]),
        rtol=1e-11,
    )


FOUR_BAR = """<robot name="four_bar">
  <link name="world"/>
  {links}
  <joint name="crank" type="continuous">
    <parent link="world"/><child link="crank"/><axis xyz="0 0 1"/>
  </joint>
  <joint name="coupler" type="continuous">
    <origin xyz="1 0 0"/><parent link="crank"/><child link="coupler"/><axis xyz="0 0 1"/>
  </joint>
  <joint name="rocker" type="continuous">
    <origin xyz="2 0 0"/><parent link="world"/><child link="rocker"/><axis xyz="0 0 1"/>
  </joint>
</robot>
"""
LINK = """<link name="{0}"><inertial><origin xyz="{1} 0 0"/><mass value="1"/>
  <inertia ixx="0.01" iyy="0.1" izz="0.1"/></inertial></link>"""
LOOP = """
extends = "four_bar.urdf"
gravity = [0, -9.81, 0]

[parameters]
b = 0.3

[loop.pin]
type = "revolute"
parent = "coupler"
child = "rocker"
at = [2, 0, 0]
child_at = [1.5, 0, 0]

[motor.crank]
joint = "crank"

[damper.rocker]
joint = "rocker"
coefficient = "b"

[measure.tip]
kind = "position"
body = "coupler"
at = [2, 0, 0]

[home]
crank = 1.2
coupler = -0.956
rocker = 1.393
"""


def four_bar(place: Path) -> None:
    links = [LINK.format(n, x) for n, x in (("crank", 0.5), ("coupler", 1), ("rocker", 0.75))]
    write(place, FOUR_BAR.format(links="\n  ".join(links)), "four_bar.urdf")


def test_a_loop_is_closed_and_parameters_stay_parameters(place):
    four_bar(place)
    robot = load(place, LOOP)
    hand = ax.load(place / "four_bar.urdf")
    hand.gravity = (0, -9.81, 0)
    revolute = ax.Revolute("z")
    hand.add_loop(
        "pin", revolute, parent="coupler", child="rocker", at=(2, 0, 0), child_at=(1.5, 0, 0)
    )
    hand.add_motor("crank", "crank")
    hand.add_damper("rocker", "rocker", coefficient=ax.Parameter("b", 0.3))
    hand.measure("tip", "position", body="coupler", at=(2, 0, 0))
    hand.set_home(crank=1.2, coupler=-0.956, rocker=1.393)
    assert robot.loops == hand.loops and robot.dampers == hand.dampers
    equations, others = robot.derive(), hand.derive()
    assert equations.mobility.mobility == 1
    model, other = equations.compile(), others.compile()
    assert model.parameters == other.parameters
    np.testing.assert_array_equal(model.mass_matrix(model.home), other.mass_matrix(other.home))
    robot.save(place / "whole.toml")
    again = ax.load(place / "whole.toml")
    assert again.loops == robot.loops and again.dampers == robot.dampers


def test_files_extend_files_that_extend_others(place):
    four_bar(place)
    write(place, LOOP, "closed.toml")
    text = 'extends = "closed.toml"\nname = "damped"\n[damper.crank]\njoint = "crank"\n'
    robot = load(place, text + 'coefficient = "2 * b"\n[home]\ncrank = 1.3\n')
    assert robot.name == "damped" and robot.gravity == (0, -9.81, 0)
    assert str(robot.dampers[1].coefficient) == "2 * b" or "b" in str(robot.dampers[1].coefficient)
    assert robot.home_coordinates["crank"] == 1.3 and robot.home_coordinates["rocker"] == 1.393
    found = refusal(place, 'extends = "closed.toml"\n[parameters]\nb = 2.0\n')
    assert "'b' is a parameter of closed.toml already; formulas may use it without this" in found


def test_options_of_the_call_reach_the_file_that_is_extended(place):
    bare = 'extends = "diffdrive.urdf"\n'
    robot = load(place, bare, base="planar", wheels="proposed")
    assert [c.plane.point[2] for c in robot.contacts] == [-0.08, -0.08]
    found = refusal(place, HEAD, ax.errors.InvalidArgument, base="planar")
    assert 'line 1, says base = "floating"; leave one of them out' in found
    (place / "diffdrive.urdf").write_text(
        (place / "diffdrive.urdf").read_text().replace('izz="0.35"', 'izz="0.5"')
    )
    for text, options in ((bare, {"strict": True}), (HEAD + "strict = true\n", {})):
        assert "inertia: not physical, Ixx + Iyy < Izz" in refusal(place, text, **options)


# what is removed ---------------------------------------------------------------------------------


def test_parts_are_removed_and_replaced(place):
    text = HEAD + 'wheels = []\nremove = ["motor.left_wheel_joint", "damper.*"]\n'
    robot = load(place, text + '[motor.left_wheel_joint]\njoint = "left_wheel_joint"\nlimit = 9\n')
    assert [d.motor.limit for d in robot.drives] == [4, 9] and robot.dampers == []
    text = HEAD + 'wheels = []\nremove = ["joint.slider_joint", "home.base.z"]\n'
    text += '[joint.slider_joint]\ntype = "prismatic"\nparent = "base_link"\nchild = "slider"\n'
    write(place, text + "at = [0.1, 0, -0.05]\n", "sprung.toml")
    found = refusal(place, text, ax.MechanismError)
    assert "diffdrive.urdf has no home 'base.z'. There is no home yet." in found
    robot = load(place, text.replace(', "home.base.z"', ""))
    assert robot.connections[-1].joint == ax.Prismatic("z")


def test_springs_between_points_are_no_dampers(place):
    robot = ax.load(EXAMPLES / "diffdrive.urdf", base="floating", wheels=())
    robot.add_spring("coil", parent="ground", child="base_link", at=(0, 0, 1), stiffness=3.0)
    robot.add_damper("dashpot", parent="ground", child="base_link", at=(0, 0, 1), coefficient=3.0)
    robot.save(place / "whole.toml")
    for kind, left in (("damper", "coil"), ("spring", "dashpot")):
        kept = load(place, f'[extends]\nfile = "whole.toml"\nremove = ["{kind}.*"]\n')
        assert [strut.name for strut in kept.struts] == [left]
        assert bool(kept.dampers) == (kind == "spring")


def test_wheels_of_a_toml_file_are_removed_as_a_whole(place):
    shutil.copy(EXAMPLES / "balancer.toml", place)
    head = '[extends]\nfile = "balancer.toml"\nremove = ["wheel.left"]\n'
    robot = load(place, head)
    for parts in (robot.bodies, robot.connections, robot.contacts, robot.drives):
        assert [p.name for p in parts if p.name == "left"] == []
    robot = load(place, '[extends]\nfile = "balancer.toml"\nremove = ["home.*"]\n')
    assert robot.home_coordinates == {}


FAULTS = {
    "wrong name": ('remove = ["motor.left"]', "has no motor 'left'. Motors: left_wheel_joint, "),
    "wrong table": ('remove = ["motr.left"]', "unknown table 'motr'. Tables: body, joint, "),
    "nothing of a kind": ('remove = ["spring.*"]', "has no spring. There is no spring yet."),
    "no name": ('remove = ["motor"]', 'expected a table and a name such as "motor.left", got'),
    "twice": (
        'remove = ["motor.left_wheel_joint", "motor.left_wheel_joint"]',
        "motor 'left_wheel_joint' is removed already by another entry",
    ),
    "wheel": ('wheels = ["left"]', "'left' is not proposed; a contact may still be written out. "),
    "wheels": ("wheels = 3", '[extends] wheels: expected "proposed" or a list of links, got 3'),
    "key": (
        "bse = 3",
        "unknown key 'bse'. Keys: file, base, strict, arguments, wheels, contacts, hold, remove.",
    ),
}


@pytest.mark.parametrize("case", FAULTS)
def test_faults_of_the_table(case, place):
    line, message = FAULTS[case]
    found = refusal(place, HEAD + line + "\n" + SLIDER)
    assert "line   4" in found and message in found


def test_faults_are_listed_at_once_with_the_name_of_the_other_file(place):
    text = """[extends]
file = "diffdrive.urdf"
base = "floating"
wheels = ["left_wheel", "slider"]
remove = ["body.right_wheel"]

[contact.slider]
type = "ball"
body = "slidr"
radius = 0.03

[contact.left]
type = "rolling"
radius = -1
body = "left_wheel"

[motor.left]
joint = "left_wheel_joint"

[motor.right_wheel_joint]
joint = "right_wheel_joint"

[joint.slider_joint]
type = "fixed"
parent = "ground"
child = "slider"

[spring.a]
joint = "left_joint"
stiffness = 1
"""
    found = refusal(place, text).splitlines()
    assert found[0].endswith("robot.toml (extends diffdrive.urdf) has 9 problems.")
    expected = [
        "line   1  [joint.right_wheel_joint] child: unknown body 'right_wheel'. Bodies: ground",
        "line   4  [extends] wheels: 'left_wheel' rolls already, by the contact 'left'",
        "line   4  [extends] wheels: 'slider' is not proposed: sphere of radius 30 mm: no joint",
        "line   9  [contact.slider] body: unknown body 'slidr'. Bodies: ground, base_link, left",
        "line  14  [contact.left] radius: must be > 0 m, got -1",
        "line  17  [motor.left] joint 'left_wheel_joint' has the motor 'left_wheel_joint' of diff",
        "line  20  [motor.right_wheel_joint] diffdrive.urdf has motor 'right_wheel_joint' already; "
        'choose another name, or remove = ["motor.right_wheel_joint"] under [extends] takes it out',
        "line  23  [joint.slider_joint] diffdrive.urdf has joint 'slider_joint' already; choose",
        "line  29  [spring.a] joint: unknown joint or coordinate 'left_joint'. Coordinates: base",
    ]
    for line, start in zip(found[1:], expected, strict=True):
        assert line.strip().startswith(start)
    assert found[1].endswith("(in diffdrive.urdf)") and "Did you mean 'slider'?" in found[4]


def test_a_wrong_table_hides_no_other_fault(place):
    text = 'wheels = "proposed"\n[extends]\nbase = "flying"\n[contact.a]\nbody = "x"\n'
    found = refusal(place, text + 'type = "rolling"\nradius = -1\n')
    assert "unknown key 'wheels'. It stands under [extends], which names the file" in found
    assert "[extends] file: is missing (its path, relative to the folder of this file)" in found
    assert "[extends] base: must be 'fixed', 'floating' or 'planar', got 'flying'" in found
    assert "line   7  [contact.a] radius: must be > 0 m" in found and "4 problems" in found
    found = refusal(place, "extends = 3\n")
    assert 'expected a file such as "robot.urdf" or a table with file, got 3' in found


# other files -------------------------------------------------------------------------------------


def test_files_that_cannot_be_extended(place):
    found = refusal(place, 'extends = "difdrive.urdf"\n', ax.FileError)
    assert "robot.toml, line 1: cannot extend 'difdrive.urdf'." in found
    assert "Did you mean" in found and "diffdrive.urdf?" in found
    (place / "below").mkdir()
    for file in ("../diffdrive.urdf", str(place / "diffdrive.urdf")):
        outside = write(place / "below", HEAD.replace("diffdrive.urdf", file) + "wheels = []\n")
        with pytest.raises(ax.FileError, match=r"outside of the folder .*, and is not opened"):
            ax.load(outside)
        assert ax.load(outside, folder=place).name == "diffdrive"
    (place / "below" / "link.urdf").symlink_to(place / "diffdrive.urdf")
    with pytest.raises(ax.FileError, match="Allow a folder that holds both: load"):
        ax.load(write(place / "below", 'extends = "link.urdf"\n'))


def test_files_that_extend_each_other_and_long_chains(place):
    write(place, 'extends = "robot.toml"\n', "other.toml")
    found = refusal(place, 'extends = "other.toml"\n', ax.FileError)
    assert "the files extend each other: robot.toml, other.toml, robot.toml." in found
    for k in range(12):
        write(place, f'extends = "f{k + 1}.toml"\n', f"f{k}.toml")
    with pytest.raises(ax.FileError, match="more than 8 files extend one another"):
        ax.load(place / "f0.toml")


def test_faults_of_the_other_file_are_its_own(place):
    (place / "diffdrive.urdf").write_text('<robot name="r"><link name="a"/><link/></robot>')
    assert "diffdrive.urdf has 1 problem" in refusal(place, HEAD)


def test_the_schema_has_both_forms():
    forms = ax.schema()["properties"]["extends"]["anyOf"]
    assert forms[0] == {"type": "string"}
    keys = {"file", "base", "strict", "arguments", "wheels", "contacts", "hold", "remove"}
    assert set(forms[1]["properties"]) == keys
    assert all(entry["description"] for entry in forms[1]["properties"].values())


# the command line --------------------------------------------------------------------------------


@pytest.mark.slow
def test_check_shows_what_was_added(place, capsys):
    path = write(place, HEAD + 'wheels = "proposed"\nremove = ["damper.*"]\n' + SLIDER)
    assert run(["check", str(path)]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"extends +diffdrive.urdf\n", shown)
    assert re.search(r"added +contact.slider, contact.left_wheel, contact.right_wheel\n", shown)
    assert re.search(r"removed +damper.left_wheel_joint, damper.right_wheel_joint\n", shown)


def test_export_writes_a_file_to_start_from(place, capsys, monkeypatch):
    monkeypatch.chdir(place)
    assert run(["export", "diffdrive.urdf", "--to", "mine.toml", "--additions"]) == 0
    data = tomllib.loads(Path("mine.toml").read_text())
    wheels = ["left_wheel", "right_wheel", "slider"]
    table = {
        "file": "diffdrive.urdf",
        "base": "floating",
        "wheels": wheels,
        "hold": [],
        "remove": [],
    }
    assert data == {"extends": table}
    assert [c.name for c in ax.load("mine.toml").contacts] == wheels
    examples = Path("mine.toml").read_text().split("fill in.\n#\n")[1]
    tables = tomllib.loads(re.sub("^# ?", "", examples, flags=re.MULTILINE))
    assert set(tables) <= set(ax.schema()["properties"])
    (place / "below").mkdir()
    wrong = ["export", "diffdrive.urdf", "--to", "below/mine.toml", "--additions"]
    assert run(wrong) == 2
    assert "stands in the folder of that file" in capsys.readouterr().err
    assert run(["export", "four_bar", "--to", "bar.toml", "--additions"]) == 2
    assert "'four_bar' is no mechanism file" in capsys.readouterr().err


# wheels ------------------------------------------------------------------------------------------

CART = """<robot name="cart">
  <link name="base">
    <inertial><mass value="5"/><inertia ixx="0.1" iyy="0.1" izz="0.1"/></inertial>
    <collision><geometry><box size="0.4 0.2 0.1"/></geometry></collision>
  </link>
  <link name="left">
    <inertial><mass value="1"/><inertia ixx="0.002" iyy="0.004" izz="0.002"/></inertial>
    <visual><geometry><mesh filename="wheel.stl"/></geometry></visual>
    <collision>{centre}<geometry>{left}</geometry></collision>
  </link>
  <link name="right">
    <inertial><mass value="1"/><inertia ixx="0.002" iyy="0.004" izz="0.002"/></inertial>
  </link>
  <link name="tyre">
    <collision><geometry><cylinder radius="0.1" length="0.02"/></geometry></collision>
  </link>
  <joint name="jl" type="continuous">
    <origin xyz="0 0.2 0" rpy="{tilt}"/><parent link="base"/><child link="left"/>
    <axis xyz="{axis}"/>
  </joint>
  <joint name="jr" type="continuous">
    <origin xyz="0 -0.2 0" rpy="{tilt}"/><parent link="base"/><child link="right"/>
    <axis xyz="{axis}"/>
  </joint>
  <joint name="on" type="fixed">
    <origin rpy="-1.5708 0 0"/><parent link="right"/><child link="tyre"/>
  </joint>
</robot>
"""
ROUND = {
    "centre": '<origin xyz="1e-5 0 -1e-5" rpy="-1.5708 0 0"/>',
    "left": '<cylinder radius="0.10001" length="0.02"/>',
    "tilt": "0 0 0",
    "axis": "0 1 0",
}


def cart(place: Path, base: str, **values: str) -> ax.Mechanism:
    write(place, CART.format(**(ROUND | values)), "cart.urdf")
    return ax.load(place / "cart.urdf", base=base, wheels="proposed")


@pytest.mark.filterwarnings(
    "ignore::axode.errors.PlausibilityWarning"
)  # rows that contradict others by 1e-6
@pytest.mark.parametrize("base", ["floating", "planar"])
@pytest.mark.parametrize("tilt", ["0 0 0", "1e-5 0 0", "0 0 3.14159"])
def test_wheels_in_rounded_numbers_are_round(base, tilt, place):
    """Angles of five digits, centres beside the axis, radii that differ in the fifth digit."""
    robot = cart(place, base, tilt=tilt, axis="1e-6 1 0")
    left, right = robot.contacts
    assert (left.name, left.body, left.wheel.radius) == ("left", "left", 0.10001)
    assert (right.name, right.wheel.radius) == ("tyre", 0.1)
    # the centre is on the axle exactly: a wheel that is not centred would lift its carrier
    assert np.linalg.norm(np.cross(left.at, left.axis)) < 1e-12
    assert left.axis[1] == pytest.approx(1) and abs(right.axis[2]) == pytest.approx(1)
    assert [c.plane.on for c in robot.contacts] == ["ground"] * 2
    mobility = robot.derive().mobility
    assert mobility.mobility == (2 if base == "planar" else 3)


def test_supports_that_slide_do_not_roll(place):
    """A sphere that is fixed to the chassis, and the round chassis itself: balls that slide."""
    text = CART.format(**ROUND | {"axis": "0 1 0"})
    ball = '<collision><origin xyz="0 0 -0.05"/><geometry><sphere radius="0.05"/></geometry>'
    text = text.replace("<collision><geometry><box", ball + "</collision><collision><geometry><box")
    support = '<link name="s"><visual><geometry><sphere radius="0.05"/></geometry></visual></link>'
    joint = '<joint name="f" type="fixed"><origin xyz="0.2 0 -0.05"/><parent link="base"/>'
    joint += '<child link="s"/></joint></robot>'
    write(place, text.replace("</robot>", support + joint), "cart.urdf")
    robot = ax.load(place / "cart.urdf", base="floating", wheels="proposed")
    assert [c.name for c in robot.contacts] == ["left", "tyre", "base", "s"]
    assert [c.wheel.longitudinal for c in robot.contacts] == ["rigid"] * 2 + ["free"] * 2


def test_a_sphere_on_an_axle_is_a_wheel_and_a_ball_if_the_axle_is_inclined(place):
    sphere = {"left": '<sphere radius="0.1"/>'}
    assert cart(place, "floating", **sphere).contacts[0].wheel == ax.Rolling(0.1)
    assert cart(place, "floating", **sphere, axis="0 1 1e-5").contacts[0].wheel == ax.Rolling(0.1)
    assert cart(place, "floating", **sphere, axis="0 0.8 0.3").contacts[0].wheel == ax.Ball(0.1)


NO_WHEELS = {
    "beside the axis": {"centre": '<origin xyz="0.02 0 0" rpy="1.5708 0 0"/>'},
    "across the axis": {"centre": ""},
    "not round": {"left": '<box size="0.2 0.02 0.2"/>'},
    "above the ground": {"left": '<cylinder radius="0.08" length="0.02"/>'},
    "upright axis": {"left": '<sphere radius="0.1"/>', "axis": "0 0 1"},
    "wrong number": {"left": '<cylinder radius="0.1m" length="0.02"/>'},
}


@pytest.mark.parametrize("case", NO_WHEELS)
@pytest.mark.filterwarnings("ignore::axode.errors.FileDeviationWarning")
def test_what_is_no_wheel_is_not_proposed(case, place):
    values = ROUND | {"left": '<cylinder radius="0.1" length="0.02"/>'} | NO_WHEELS[case]
    write(place, CART.format(**values), "cart.urdf")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ax.load(place / "cart.urdf", base="floating")
    texts = [str(w.message) for w in caught if w.category is OmissionWarning]
    assert not any(re.search(r"not roll: .*\bleft\b", text) for text in texts)


def test_a_fixed_base_has_no_wheels(place):
    with pytest.raises(ax.errors.InvalidArgument, match="no link looks like a wheel"):
        ax.load(place / "diffdrive.urdf", wheels="proposed")
    with pytest.raises(ax.errors.InvalidArgument, match=r"'a' is not proposed.*\n.*'b' is not"):
        ax.load(place / "diffdrive.urdf", base="planar", wheels=["a", "b"])
    for wrong in ("all", 3, [1]):
        with pytest.raises(ax.errors.InvalidArgument, match="wheels must be 'proposed' or names"):
            ax.load(place / "diffdrive.urdf", wheels=wrong)


def test_proposals_are_given_as_toml_and_as_calls_that_work(place):
    with pytest.warns(OmissionWarning, match="look like wheels") as caught:
        robot = ax.load(place / "diffdrive.urdf", base="planar")
    (warning,) = caught
    assert warning.filename == __file__
    text = str(warning.message)
    table = text.split("in a TOML file:\n")[1].split("one by one")[0]
    other = load(place, table.replace("    ", ""))
    for call in re.findall(r"robot\.add_contact.*", text):
        exec(call, {"ax": ax, "robot": robot})
    assert robot == other
    with pytest.warns(
        OmissionWarning, match="under .extends.:\n +wheels = .*right_wheel"
    ) as caught:
        load(place, HEAD + SLIDER)
    assert caught[0].filename == __file__


def test_wheels_written_out_in_full_are_not_proposed(place):
    contact = '[contact.{0}]\ntype = "omni"\nradius = 0.08\nbody = "{0}"\naxis = "z"\n'
    text = HEAD + "".join(contact.format(f"{side}_wheel") for side in ("left", "right"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        robot = load(place, text)
    assert all(isinstance(c.wheel, ax.Omni) for c in robot.contacts)


MODEL = """<mujoco><worldbody>{plane}
  <body name="base" pos="0 0 {height}"><freejoint/><geom type="box" size=".2 .1 .02"/>
    <body name="left" pos="0 .2 0"><joint axis="0 1 0"/>
      <geom type="ellipsoid" size=".1 .1 .02" euler="90 0 0"/></body>
    <body name="right" pos="0 -.2 0"><joint axis="0 1 0"/><geom type="sphere" size=".1"/></body>
    <body name="up" pos="0 0 .5"><joint axis="0 1 0"/><geom type="sphere" size=".1"/></body>
  </body></worldbody></mujoco>
"""


@pytest.mark.filterwarnings("ignore::axode.errors.OmissionWarning")
@pytest.mark.parametrize("plane", ['<geom type="plane" size="1 1 1"/>', ""])
def test_wheels_of_mjcf_files(plane, place):
    pytest.importorskip("mujoco")
    write(place, MODEL.format(plane=plane, height=0.1 if plane else 0.7), "cart.xml")
    robot = load(place, '[extends]\nfile = "cart.xml"\nwheels = "proposed"\n')
    assert [(c.name, c.wheel, c.axis) for c in robot.contacts] == [
        (side, ax.Rolling(0.1), (0.0, 1.0, 0.0)) for side in ("left", "right")
    ]
    found = refusal(place, '[extends]\nfile = "cart.xml"\nwheels = ["up"]\n')
    assert (
        "'up' is not proposed: sphere of radius 100 mm: its lowest point is 500 mm above the ground"
        in found
    )


@pytest.mark.filterwarnings("ignore::axode.errors.OmissionWarning")
def test_wheels_of_sdf_files_with_angles_of_three_digits(place):
    link = """<link name="{0}"><pose>0 {1} 0.1 -1.57 0 0</pose>
      <inertial><mass>1</mass><inertia><ixx>.1</ixx><iyy>.1</iyy><izz>.1</izz></inertia></inertial>
      <collision name="c"><pose>0 0 0 {2} 0 0</pose><geometry>{3}</geometry></collision></link>"""
    wheel = "<cylinder><radius>0.1</radius><length>0.02</length></cylinder>"
    joint = """<joint name="{0}_joint" type="revolute"><parent>base</parent><child>{0}</child>
      <axis><xyz expressed_in="__model__">0 1 0</xyz></axis></joint>"""
    sides = (("left", 0.2, 0), ("right", -0.2, 3.14))
    parts = [link.format("base", 0, 0, "<box><size>.1 .1 .1</size></box>")]
    parts += [link.format(*side, wheel) + joint.format(side[0]) for side in sides]
    text = f'<sdf version="1.9"><model name="cart">{"".join(parts)}</model></sdf>'
    write(place, text, "cart.sdf")
    robot = load(place, '[extends]\nfile = "cart.sdf"\nbase = "planar"\nwheels = "proposed"\n')
    assert [(c.name, c.wheel) for c in robot.contacts] == [
        (side, ax.Rolling(0.1)) for side in ("left", "right")
    ]
    np.testing.assert_allclose([c.plane.point[2] for c in robot.contacts], 0, atol=1e-9)


def test_lengths_without_measure_are_no_wheels(place):
    text = CART.format(**ROUND).replace("0.4 0.2 0.1", "1e308 1e308 1e308")
    write(place, text.replace("0 0.2 0", "1e308 1e308 1e308"), "cart.urdf")
    with pytest.raises(ax.errors.InvalidArgument, match="no link looks like a wheel"):
        ax.load(place / "cart.urdf", base="floating", wheels="proposed")


def test_joints_that_are_wrong_keep_wheels_from_being_looked_for(place):
    text = HEAD + 'wheels = "proposed"\n[body.b]\nmass = 1\ninertia = "point"\n[joint.j]\n'
    text += 'type = "fixed"\nparent = "base_link"\nchild = "b"\nrotation = [0, 0, 0, 0]\n'
    assert "has 1 problem" in refusal(place, text)


@pytest.mark.parametrize("file", ["a\\u0000b", "a" * 5000, "", "."])
def test_addresses_that_are_none(file, place):
    assert "cannot extend" in refusal(place, f'extends = "{file}"\n', ax.FileError)


def test_links_are_where_the_model_has_them_at_home():
    robot = ax.Mechanism("all joints")
    home, parent = {}, robot.ground
    joints = [
        ax.Floating(),
        ax.Revolute("y"),
        ax.Prismatic("x"),
        ax.Screw("z", 0.3),
        ax.Cylindrical("y"),
        ax.Universal("x", "z"),
        ax.Spherical(),
        ax.Planar((0.6, 0, 0.8)),
        ax.Fixed(),
    ]
    for k, joint in enumerate(joints):
        body = robot.add_body(f"b{k}", mass=1, inertia=(1, 1, 1))
        placed = {"at": (0.1, k, 0.3), "rotation": (0.1 * k, 0.2, 0.3), "child_at": (0, 0.2, 0.1)}
        robot.add_joint(
            f"j{k}", joint, parent=parent, child=body, **placed, child_rotation=(0.3, 0.1 * k, 0)
        )
        for n, name in enumerate(robot.connections[-1].coordinates):
            home[name] = 0.5 if joint.has_quaternion and n < 4 else 0.3 + 0.1 * n
        parent = body
    robot.set_home(home)
    links = home_poses(robot).links
    model = robot.derive(self_check=False).compile()
    poses = model.poses(model.home)
    for k, name in enumerate(model.bodies):
        np.testing.assert_allclose(poses[k][:3, :3], links[name].R, atol=1e-13)
        np.testing.assert_allclose(poses[k][:3, 3], links[name].p, atol=1e-13)
