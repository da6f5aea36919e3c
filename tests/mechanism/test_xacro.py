"""xacro files, expanded without ROS: properties, macros, arguments, includes and packages."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import axode as ax

pytest.importorskip("xacrodoc")

WHEELS = """<robot xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:macro name="wheel" params="side reflect">
    <link name="${side}_wheel">
      <inertial><mass value="0.5"/>
        <inertia ixx="${0.5 * radius**2 / 4}" iyy="${0.5 * radius**2 / 2}"
                 izz="${0.5 * radius**2 / 4}"/></inertial>
      <collision><origin rpy="${pi/2} 0 0"/>
        <geometry><cylinder radius="${radius}" length="0.02"/></geometry></collision>
    </link>
    <joint name="${side}_joint" type="continuous">
      <parent link="base"/><child link="${side}_wheel"/>
      <origin xyz="0 ${reflect * track / 2} 0"/><axis xyz="0 1 0"/>
    </joint>
  </xacro:macro>
</robot>
"""
ROBOT = """<?xml version="1.0"?>
<robot name="cart" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:arg name="radius" default="0.1"/>
  <xacro:arg name="caster" default="false"/>
  <xacro:property name="radius" value="$(arg radius)"/>
  <xacro:property name="track" value="0.4"/>
  <xacro:include filename="{include}"/>
  <link name="base">
    <inertial><mass value="5"/><inertia ixx="0.1" iyy="0.1" izz="0.1"/></inertial>
    <collision><geometry><box size="0.4 0.2 0.05"/></geometry></collision>
  </link>
  <xacro:wheel side="left" reflect="1"/>
  <xacro:wheel side="right" reflect="-1"/>
  <xacro:if value="$(arg caster)"><link name="caster"/>
    <joint name="caster_joint" type="fixed"><parent link="base"/><child link="caster"/></joint>
  </xacro:if>
</robot>
"""


@pytest.fixture
def robot(tmp_path: Path) -> Path:
    """A file that includes another one, by a path beside it."""
    (tmp_path / "wheels.xacro").write_text(WHEELS)
    path = tmp_path / "cart.urdf.xacro"
    path.write_text(ROBOT.replace("{include}", "wheels.xacro"))
    return path


def test_macros_properties_and_includes_become_a_robot(robot, monkeypatch):
    monkeypatch.chdir("/")  # includes are relative to the file, not to where one is
    cart = ax.load(robot, base="planar", wheels="proposed")
    assert [body.name for body in cart.bodies] == ["base", "left_wheel", "right_wheel"]
    assert [contact.wheel.radius for contact in cart.contacts] == [0.1, 0.1]
    left = cart.connections[1]
    assert left.at == (0.0, 0.2, 0.0)
    assert cart.derive().mobility.mobility == 2


def test_arguments_replace_the_defaults(robot):
    cart = ax.load(robot, base="planar", wheels="proposed", arguments={"radius": 0.05})
    assert cart.contacts[0].wheel.radius == 0.05
    cart = ax.load(robot, base="fixed", arguments={"caster": True})
    assert cart.bodies[-1].name == "caster"


def test_files_extend_a_xacro_file_with_arguments(robot):
    text = '[extends]\nfile = "cart.urdf.xacro"\nbase = "planar"\nwheels = "proposed"\n'
    place = robot.parent / "cart.toml"
    place.write_text(text + "arguments = { radius = 0.07 }\n")
    assert ax.load(place).contacts[0].wheel.radius == 0.07
    assert ax.load(place, arguments={"radius": 0.08}).contacts[0].wheel.radius == 0.08


@pytest.mark.parametrize("layout", ["own", "beside"])
def test_packages_are_found_around_the_file_and_beside_it(tmp_path, layout):
    """A folder's package.xml names the package, in which $(find ...) looks."""
    home = tmp_path / "cart_description"
    wheels = home if layout == "own" else tmp_path / "wheel_folder"
    name = "cart_description" if layout == "own" else "wheel_description"
    (home / "urdf").mkdir(parents=True)
    (home / "package.xml").write_text("<package><name>cart_description</name></package>")
    (wheels / "urdf").mkdir(parents=True, exist_ok=True)
    (wheels / "package.xml").write_text(f"<package><name>{name}</name></package>")
    (wheels / "urdf" / "wheels.xacro").write_text(WHEELS)
    path = home / "urdf" / "cart.xacro"
    path.write_text(ROBOT.replace("{include}", f"$(find {name})/urdf/wheels.xacro"))
    assert len(ax.load(path, base="fixed").bodies) == 3


def test_two_files_do_not_find_each_others_packages(tmp_path):
    for number, radius in enumerate(("0.1", "0.2")):
        home = tmp_path / str(number) / "cart"
        home.mkdir(parents=True)
        (home / "package.xml").write_text("<package><name>cart</name></package>")
        (home / "wheels.xacro").write_text(WHEELS.replace("${radius}", radius))
        path = home / "cart.xacro"
        path.write_text(ROBOT.replace("{include}", "$(find cart)/wheels.xacro"))
        cart = ax.load(path, base="planar", wheels="proposed")
        assert cart.contacts[0].wheel.radius == float(radius)


FAULTS = {
    "include": (("wheels.xacro", "weels.xacro"), "No such file or directory.*weels.xacro"),
    "package": (
        ("wheels.xacro", "$(find rims)/w.xacro"),
        r" expand it: Package not found: rims\.\n.*folder=...",
    ),
    "macro": (("<xacro:wheel", "<xacro:whel"), "unknown macro name: xacro:whel"),
    "parameter": (('reflect="1"', ""), "Undefined parameters .*reflect"),
    "property": (('value="0.4"', 'value="${2 * halftrack}"'), "'halftrack' is not defined"),
    "argument": (("$(arg radius)", "$(arg rad)"), "rad.*arguments="),
    "xml": (('<link name="base">', '<link name="base>'), "not well-formed.*line 9"),
}


@pytest.mark.parametrize("case", FAULTS)
def test_what_xacro_refuses_is_named(robot, case):
    (old, new), message = FAULTS[case]
    text = robot.read_text()
    assert old in text
    robot.write_text(text.replace(old, new, 1))
    with pytest.raises(ax.FileError, match=rf"(?s)cart.urdf.xacro: xacro cannot.*{message}"):
        ax.load(robot)
    robot.write_text(text)
    assert ax.load(robot, base="fixed")  # nothing of the failure is left behind


def test_a_fault_in_an_included_file_is_named_with_both_files(robot):
    wheels = robot.parent / "wheels.xacro"
    wheels.write_text(WHEELS.replace("${0.5 * radius**2 / 2}", "${raduis}"))
    with pytest.raises(ax.FileError, match=r"(?s)'raduis' is not defined.*in macro .*wheel"):
        ax.load(robot)


def test_faults_of_the_robot_are_those_of_the_expanded_file(robot):
    robot.write_text(
        ROBOT.replace("{include}", "wheels.xacro").replace('value="5"', 'value="5 kg"')
    )
    with pytest.raises(ax.MechanismError, match=r"\(expanded\) has 1 problem.*") as wrong:
        ax.load(robot, base="fixed")
    assert "[link.base] mass value: expected a number, got '5 kg'" in str(wrong.value)


def test_unknown_arguments_and_arguments_of_other_files_are_refused(robot, tmp_path):
    with pytest.raises(ax.errors.UnknownName, match="no xacro argument 'radus'") as wrong:
        ax.load(robot, arguments={"radus": 0.1})
    assert "Did you mean 'radius'" in str(wrong.value)
    plain = tmp_path / "plain.urdf"
    plain.write_text('<robot name="a"><link name="b"/></robot>')
    with pytest.raises(ax.errors.InvalidArgument, match="arguments are for xacro files"):
        ax.load(plain, arguments={"radius": 0.1})
    for wrong_type in ({"radius": [1]}, {3: "a"}, "radius"):
        with pytest.raises(ax.errors.InvalidArgument, match="arguments must be"):
            ax.load(robot, arguments=wrong_type)


def test_macros_in_a_file_of_another_name_are_not_run(robot):
    """Expressions of xacro are code: a file that is called .urdf is never expanded."""
    path = robot.with_name("cart.urdf")
    path.write_text(robot.read_text())
    with pytest.raises(ax.FileError, match=r"holds macros of xacro.*\n.*robot.urdf.xacro"):
        ax.load(path)


def test_without_xacrodoc_the_remedy_is_named(robot, monkeypatch):
    monkeypatch.setitem(sys.modules, "xacrodoc", None)
    with pytest.raises(ax.NotApplicable, match=r"pip install .*\[xacro\]"):
        ax.load(robot)


def test_the_expanded_robot_has_the_dynamics_of_the_written_one(robot, tmp_path):
    """The same numbers as a file in which the macros are written out by hand."""
    cart = ax.load(robot, base="planar", wheels="proposed")
    text = ROBOT.replace("{include}", "wheels.xacro").split('<xacro:wheel side="left"')[0]
    body = text[text.index("<link") :]
    wheel = WHEELS[WHEELS.index("    <link") : WHEELS.index("  </xacro:macro>")]
    values = {
        "${0.5 * radius**2 / 4}": "0.00125",
        "${0.5 * radius**2 / 2}": "0.0025",
        "${radius}": "0.1",
        "${pi/2}": "1.5707963267948966",
    }
    for old, new in values.items():
        wheel = wheel.replace(old, new)
    for side, y in (("left", "0.2"), ("right", "-0.2")):
        body += wheel.replace("${side}", side).replace("${reflect * track / 2}", y)
    path = tmp_path / "plain.urdf"
    path.write_text(f'<robot name="cart">{body}</robot>')
    plain = ax.load(path, base="planar", wheels="proposed")
    models = [robot.derive().compile() for robot in (cart, plain)]
    ours, theirs = (model.mass_matrix(model.home) for model in models)
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)
