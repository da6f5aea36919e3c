"""Loops inside URDF files, as the programs write them that added them to the format."""

import warnings
from functools import cache

import numpy as np
import pytest

import axode as ax
from axode.errors import FileDeviationWarning

INERTIAL = (
    '<inertial><origin xyz="0.5 0 0"/><mass value="1"/>'
    '<inertia ixx="0.01" iyy="0.1" izz="0.1"/></inertial>'
)
# a four-bar linkage, square while all joints are zero, cut between coupler and right rocker
TREE = f"""\
<robot name="four bar">
  <link name="base"/>
  <link name="left">{INERTIAL}</link>
  <link name="coupler">{INERTIAL}</link>
  <link name="right">{INERTIAL}</link>
  <joint name="a" type="continuous">
    <parent link="base"/><child link="left"/><axis xyz="0 1 0"/><origin rpy="0 -1.57079632679 0"/>
    <limit effort="5" velocity="1"/>
  </joint>
  <joint name="b" type="continuous">
    <parent link="left"/><child link="coupler"/><axis xyz="0 1 0"/>
    <origin xyz="1 0 0" rpy="0 1.57079632679 0"/>
  </joint>
  <joint name="d" type="continuous">
    <parent link="base"/><child link="right"/><axis xyz="0 1 0"/>
    <origin xyz="1 0 0" rpy="0 -1.57079632679 0"/>
  </joint>
  CLOSURE
</robot>
"""
FRAMES = 'xyz="1 0 0" rpy="0 0 0"', 'xyz="1 0 0" rpy="0 1.57079632679 0"'
SPHERICAL = {
    "loop_joint": f"""<loop_joint name="c" type="spherical">
      <link1 link="coupler" {FRAMES[0]}/><link2 link="right" {FRAMES[1]}/></loop_joint>""",
    "loop_joint, twice link1": f"""<loop_joint name="c" type="spherical">
      <link1 link="coupler" {FRAMES[0]}/><link1 link="right" {FRAMES[1]}/></loop_joint>""",
    "constraint": f"""<constraint name="c" type="spherical">
      <parent link="coupler"/><parent_origin {FRAMES[0]}/>
      <child link="right"/><child_origin {FRAMES[1]}/></constraint>""",
    "drake": """<drake:ball_constraint>
      <drake:ball_constraint_body_A name="coupler"/><drake:ball_constraint_p_AP value="1 0 0"/>
      <drake:ball_constraint_body_B name="right"/><drake:ball_constraint_p_BQ value="1 0 0"/>
      </drake:ball_constraint>""",
    "gazebo": """<gazebo><joint name="c" type="ball"><parent>coupler</parent><child>right</child>
      <pose>1 0 0 0 0 0</pose></joint></gazebo>""",
}
REVOLUTE = {
    "loop_joint": f"""<loop_joint name="c" type="revolute">
      <link1 link="coupler" {FRAMES[0]}/><link2 link="right" {FRAMES[1]}/>
      <axis xyz="0 1 0"/></loop_joint>""",
    "constraint": f"""<constraint name="c" type="revolute">
      <parent link="coupler"/><parent_origin {FRAMES[0]}/><parent_axis xyz="0 2 0"/>
      <child link="right"/><child_origin {FRAMES[1]}/></constraint>""",
    "constraint, two axes": """<constraint name="c" type="revolute">
      <parent link="coupler"/><parent_origin xyz="1 0 0"/><parent_axis xyz="0 1 0"/>
      <child link="right"/><child_origin xyz="1 0 0" rpy="1.57079632679 0 0"/>
      <child_axis xyz="0 0 -1"/></constraint>""",
    "loop": f"""<loop name="c" type="continuous">
      <predecessor link="coupler"><origin {FRAMES[0]}/></predecessor>
      <successor link="right"><origin {FRAMES[1]}/></successor><axis xyz="0 1 0"/></loop>""",
    "gazebo": """<gazebo><joint name="c" type="revolute">
      <parent>coupler</parent><child>right</child><pose>1 0 0 0 0 0</pose>
      <axis><xyz>0 1 0</xyz></axis></joint></gazebo>""",
    "gazebo, turned": """<gazebo><joint name="c" type="revolute">
      <parent>coupler</parent><child>right</child><pose>1 0 0 1.57079632679 0 0</pose>
      <axis><xyz>0 0 -1</xyz></axis></joint></gazebo>""",
}
# the coupler, welded to the right rocker's end: one pin less, the loop cannot move
WELDED = {
    "constraint": f"""<constraint name="c" type="link">
      <parent link="coupler"/><parent_origin {FRAMES[0]}/>
      <child link="right"/><child_origin {FRAMES[1]}/></constraint>""",
    "gazebo": """<gazebo><joint name="c" type="fixed"><parent>coupler</parent>
      <child>right</child></joint></gazebo>""",
}


@pytest.fixture
def read(tmp_path, monkeypatch):
    """Read the linkage with a closure; return it and the lines of warnings."""
    monkeypatch.chdir(tmp_path)

    def read(closure, tree=TREE, **options):
        (tmp_path / "bar.urdf").write_text(tree.replace("CLOSURE", closure))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            robot = ax.load("bar.urdf", **options)
        assert all(warning.category is FileDeviationWarning for warning in caught)
        return robot, [line for w in caught for line in str(w.message).split("\n  ")[1:]]

    return read


def accelerations(robot):
    """Mobility, and accelerations of the tree's joints at home, under a torque."""
    equations = robot.derive(independent=["a.rate"])
    model = equations.compile("interpreter")
    return model.forward_dynamics(model.home, np.array([0.7]), np.array([1.3]))


@pytest.fixture(scope="module")
def by_hand():
    """Accelerations of the linkage as it is described in Python."""

    @cache
    def make(joint, **rotation):
        robot = ax.Mechanism("four bar")
        for name in ("left", "coupler", "right"):
            robot.add_body(name, mass=1.0, com=(0.5, 0, 0), inertia=(0.01, 0.1, 0.1))
        up = (0.0, -np.pi / 2, 0.0)
        robot.add_joint("a", ax.Revolute("y"), parent="ground", child="left", rotation=up)
        robot.add_joint(
            "b",
            ax.Revolute("y"),
            parent="left",
            child="coupler",
            at=(1, 0, 0),
            rotation=(0.0, np.pi / 2, 0.0),
        )
        robot.add_joint(
            "d", ax.Revolute("y"), parent="ground", child="right", at=(1, 0, 0), rotation=up
        )
        robot.add_loop(
            "c",
            joint,
            parent="coupler",
            child="right",
            at=(1, 0, 0),
            child_at=(1, 0, 0),
            **rotation,
        )
        robot.add_motor("a", "a")
        return accelerations(robot)

    return make


@pytest.mark.parametrize("closure", SPHERICAL.values(), ids=list(SPHERICAL))
def test_points_that_stay_together(read, by_hand, closure):
    robot, said = read(closure)
    assert not said and [loop.joint for loop in robot.loops] == [ax.Spherical()]
    assert np.abs(accelerations(robot) - by_hand(ax.Spherical())).max() < 1e-12


@pytest.mark.parametrize("closure", REVOLUTE.values(), ids=list(REVOLUTE))
def test_pins(read, by_hand, closure):
    robot, said = read(closure)
    assert not said and [type(loop.joint) for loop in robot.loops] == [ax.Revolute]
    wanted = by_hand(ax.Revolute("y"), child_rotation=(0.0, np.pi / 2, 0.0))
    assert np.abs(accelerations(robot) - wanted).max() < 1e-12


@pytest.mark.parametrize("closure", WELDED.values(), ids=list(WELDED))
def test_welds(read, closure):
    robot, said = read(closure)
    assert not said
    with pytest.raises(ax.errors.Immobile, match=r"3 independent rows \(c.ry, c.x, c.z\)"):
        robot.derive()


def test_a_second_joint_on_a_link_closes_a_loop(read, by_hand):
    joint = """<joint name="c" type="continuous"><parent link="coupler"/><child link="tip"/>
      <origin xyz="1 0 0"/><axis xyz="0 1 0"/></joint>
      <link name="tip"/><joint name="weld" type="fixed"><parent link="right"/><child link="tip"/>
      <origin xyz="1 0 0" rpy="0 1.57079632679 0"/></joint>"""
    robot, said = read(joint)
    assert said == [
        "line  20  [joint.weld] child: joint 'c' holds link 'tip' already, and a URDF "
        "file is a tree -> closes a loop"
    ]
    wanted = by_hand(ax.Revolute("y"), child_rotation=(0.0, np.pi / 2, 0.0))
    assert np.abs(accelerations(robot) - wanted).max() < 1e-12
    with pytest.raises(ax.MechanismError, match="holds link 'tip' already"):
        read(joint, strict=True)


def test_the_joint_that_a_root_leads_to_holds_a_link(read):
    """In the order of the file, `back` would hold the coupler, which holds the tip."""
    ring = """<link name="tip"/>
      <joint name="back" type="fixed"><parent link="tip"/><child link="coupler"/></joint>
      <joint name="on" type="fixed"><parent link="coupler"/><child link="tip"/></joint>"""
    first = TREE.replace('<link name="base"/>', f'<link name="base"/>{ring}')
    robot, said = read("", first)
    assert [loop.name for loop in robot.loops] == ["back"]
    assert len(said) == 1 and "[joint.back] child: joint 'b' holds link 'coupler'" in said[0]


def test_what_a_second_joint_cannot_have_is_listed(read):
    joint = """<joint name="c" type="continuous"><parent link="coupler"/><child link="right"/>
      <origin xyz="1 0 0"/><dynamics damping="1" friction="2"/><mimic joint="a"/></joint>"""
    _, said = read(joint)
    assert [line.split("  ", 2)[-1] for line in said] == [
        "[joint.c] child: joint 'd' holds link 'right' already, and a URDF file is a tree "
        "-> closes a loop",
        "[joint.c] damping: a joint that closes a loop has no damping -> left out",
        "[joint.c] friction: a joint that closes a loop has no friction -> left out",
        "[joint.c] mimic: a joint that closes a loop has no mimic -> left out",
    ]


def test_the_ground_ends_a_loop(read):
    robot, _ = read(
        """<gazebo><joint name="c" type="revolute"><parent>world</parent><child>right</child>
        <pose>1 0 0 0 0 0</pose><axis><xyz>0 1 0</xyz></axis></joint></gazebo>"""
    )
    (loop,) = robot.loops
    assert loop.parent == "ground"
    assert np.allclose(loop.at, [1, 0, 1])


def test_a_joint_of_gazebo_has_the_usual_axis_of_sdf(read):
    closure = """<gazebo><joint name="c" type="revolute"><parent>coupler</parent>
      <child>right</child>AXIS</joint></gazebo>"""
    robot, _ = read(closure.replace("AXIS", ""))
    assert robot.loops[0].joint == ax.Revolute("z")
    with pytest.raises(ax.MechanismError, match="axis xyz: points nowhere"):
        read(closure.replace("AXIS", "<axis><xyz>0 0 0</xyz></axis>"))
    robot, said = read(closure.replace("AXIS", '<pose degrees="true">0 0 0 0 0 90</pose>'))
    assert not robot.loops
    assert "a joint of SDF with pose degrees -> not read" in said[0]


# what is wrong, and what is not read --------------------------------------------------------------


def test_all_faults_of_loops_are_reported(read):
    closure = """<constraint name="c" type="revolute"><parent link="copler"/><child link="right"/>
      <parent_axis xyz="0 0 0"/></constraint>
      <loop name="a" type="fixed"><predecessor link="left"/><successor link="right"/></loop>
      <loop name="e" type="fixed"><predecessor link="left"/><successor link="left"/></loop>
      <loop_joint type="fixed"/>
      <loop_joint name="f" type="fixed"><link1 link="left" xyz="1 0"/></loop_joint>
      <gazebo><joint name="g" type="fixed"><parent>left</parent><child>right</child>
      <pose>1 2 3</pose></joint></gazebo>"""
    with pytest.raises(ax.MechanismError) as caught:
        read(closure)
    assert list(map(str, caught.value.faults)) == [
        "line  18  [loop.c] parent: unknown link 'copler'. Links: base, left, coupler, right. "
        "Did you mean 'coupler'?",
        "line  18  [loop.c] axis xyz: points nowhere; give a direction such as '0 0 1'",
        "line  20  [loop.a] line 6 has this name already; names are unique",
        "line  21  [loop.e] child: a loop needs two different links",
        'line  22  [robot] a loop_joint has no name="..."',
        "line  23  [loop.f] link1 xyz: expected three numbers, got '1 0'",
        "line  23  [loop.f] child: is missing; a loop names two links",
        "line  25  [loop.g] pose: expected six numbers, got '1 2 3'",
    ]


def test_what_is_not_understood_is_listed(read):
    closure = """<constraint name="c" type="position"/>
      <drake:linear_bushing_rpy/>
      <gazebo><joint:hinge name="h"/><joint name="i" type="gearbox"/><link name="x"/></gazebo>
      <gazebo><joint name="j" type="fixed"><parent>left</parent><child>right</child>
      <pose relative_to="left">0 0 0 0 0 0</pose></joint></gazebo>
      <mujoco><compiler/><equality><connect/></equality></mujoco>
      <gazebo reference="a"><joint name="k"/></gazebo><ros2_control/><material name="red"/>"""
    robot, said = read(closure)
    assert not robot.loops
    types = (
        "fixed, link, weld, spherical, ball, revolute, continuous, prismatic, cylindrical, "
        "planar, universal"
    )
    assert said == [
        f"line  18  [loop.c] type: unknown type 'position'. Types: {types}. -> not read",
        "line  19  [robot] <drake:linear_bushing_rpy> is not of URDF -> not read",
        "line  20  [robot] gazebo: holds a <joint:hinge> -> not read",
        "line  20  [robot] gazebo: holds a <link> -> not read",
        f"line  20  [loop.i] type: unknown type 'gearbox'. Types: {types}. -> not read",
        "line  21  [loop.j] type: a joint of SDF with pose relative_to -> not read",
        "line  23  [robot] mujoco: holds <equality> -> not read",
    ]


# springs and couplings beside loops ---------------------------------------------------------------


def test_a_spring_between_two_links(read):
    parts = {"p_AP": "1 0 0", "p_BQ": "1 0 0", "free_length": 0.2, "stiffness": 8, "damping": 2}
    values = "".join(
        f'<drake:linear_spring_damper_{word} value="{value}"/>' for word, value in parts.items()
    )
    spring = f"""<drake:linear_spring_damper><drake:linear_spring_damper_body_A name="coupler"/>
      <drake:linear_spring_damper_body_B name="right"/>{values}</drake:linear_spring_damper>"""
    robot, said = read(spring)
    (strut,) = robot.struts
    assert not said and (strut.parent, strut.child) == ("coupler", "right")
    assert (strut.stiffness, strut.rest, strut.damping) == (8.0, 0.2, 2.0)
    with pytest.raises(ax.MechanismError, match="unknown link 'rght'"):
        read(spring.replace('"right"', '"rght"'))


def test_links_on_one_link_are_coupled(read):
    coupling = """<coupling name="belt"><predecessor link="left"/><successor link="END"/>
      <ratio value="3"/></coupling>"""
    robot, said = read(coupling.replace("END", "right"))
    assert not said and robot.couplings[0].terms == (("d", 1.0), ("a", -3.0))
    robot, said = read(coupling.replace("END", "coupler"))
    assert not robot.couplings and said == [
        "line  18  [coupling.belt] couples links that no two joints of one link turn -> not read"
    ]
