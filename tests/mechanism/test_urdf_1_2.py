"""What URDF 1.2 adds, capsules and quaternions; scenes in USD, which are not read."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import axode as ax
from axode.errors import FileDeviationWarning
from axode.mechanism.elements.bodies import Cylinder, Sphere
from axode.mechanism.topology import home_poses
from axode.numerics.rotations import from_angles, to_angles

ARM = """<robot name="arm" version="1.2">
  <link name="base"/>
  <link name="arm">
    <inertial><mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="0.1"/></inertial>
    <visual><origin xyz="0.1 0 0" {turn}/>
      <geometry><capsule radius="0.05" length="0.4"/></geometry></visual>
  </link>
  <joint name="shoulder" type="continuous"><origin xyz="0 0 1" {turn}/>
    <parent link="base"/><child link="arm"/><axis xyz="0 0 1"/></joint>
</robot>
"""


@pytest.mark.filterwarnings("error")
def test_a_capsule_is_a_cylinder_with_two_caps(tmp_path):
    """Its length is that between the centres of its caps."""
    (tmp_path / "arm.urdf").write_text(ARM.replace("{turn}", 'rpy="0 1.5707963267948966 0"'))
    shapes = ax.load(tmp_path / "arm.urdf").bodies[1].shapes
    cylinder, *caps = shapes
    assert isinstance(cylinder, Cylinder) and (cylinder.radius, cylinder.length) == (0.05, 0.4)
    assert all(isinstance(cap, Sphere) and cap.radius == 0.05 for cap in caps)
    np.testing.assert_allclose([cap.at for cap in caps], [(-0.1, 0, 0), (0.3, 0, 0)], atol=1e-15)


CAPSULE_WHEEL = """<robot name="cart">
  <link name="base">
    <inertial><mass value="5"/><inertia ixx="0.1" iyy="0.1" izz="0.1"/></inertial></link>
  <link name="wheel">
    <inertial><mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="0.1"/></inertial>
    <collision><origin rpy="1.5707963267948966 0 0"/>
      <geometry><capsule radius="0.1" length="0.05"/></geometry></collision></link>
  <joint name="axle" type="continuous">
    <parent link="base"/><child link="wheel"/><axis xyz="0 1 0"/></joint>
</robot>
"""


def test_a_capsule_on_an_axle_is_a_wheel(tmp_path):
    (tmp_path / "cart.urdf").write_text(CAPSULE_WHEEL)
    robot = ax.load(tmp_path / "cart.urdf", base="floating", wheels="proposed")
    assert [contact.wheel for contact in robot.contacts] == [ax.Rolling(0.1)]


QUATERNIONS = {
    "general": (0.1, -0.2, 0.3, 0.9),
    "of a right angle": (0.0, 0.0, 0.7071067811865476, 0.7071067811865476),
    "pitched by a right angle": (0.5, 0.5, -0.5, 0.5),
}


@pytest.mark.parametrize("case", QUATERNIONS)
def test_quaternions_turn_as_scipy_says(tmp_path, case):
    words = " ".join(map(str, QUATERNIONS[case]))
    (tmp_path / "arm.urdf").write_text(ARM.replace("{turn}", f'quat_xyzw="{words}"'))
    robot = ax.load(tmp_path / "arm.urdf")
    expected = Rotation.from_quat(QUATERNIONS[case]).as_matrix()
    np.testing.assert_allclose(home_poses(robot).links["arm"].R, expected, atol=1e-14)


@pytest.mark.parametrize(
    ("turn", "message"),
    [
        ('quat_xyzw="0 0 0 0"', "origin quat_xyzw: is no rotation"),
        ('quat_xyzw="0 0 1"', "origin quat_xyzw: expected four numbers"),
        ('rpy="0 0 1" quat_xyzw="0 0 0 1"', "has both rpy and quat_xyzw"),
    ],
)
@pytest.mark.filterwarnings("ignore::axode.errors.FileDeviationWarning")
def test_wrong_quaternions_are_refused(tmp_path, turn, message):
    (tmp_path / "arm.urdf").write_text(ARM.replace("{turn}", turn))
    with pytest.raises(ax.MechanismError, match=message):
        ax.load(tmp_path / "arm.urdf")


@pytest.mark.parametrize("pitch", [np.pi / 2, -np.pi / 2, 1.2])
def test_angles_of_a_rotation_give_the_rotation(pitch):
    R = from_angles(np.array([0.3, pitch, -0.4]))
    np.testing.assert_allclose(from_angles(to_angles(R)), R, atol=1e-14)


@pytest.mark.parametrize(
    ("name", "data"),
    [("robot.usda", b"#usda 1.0\n"), ("robot", b"PXR-USDC\0\0"), ("r.usdz", b"PK")],
)
def test_usd_is_refused_with_a_remedy(tmp_path, name, data):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ax.FileError, match=r"(?s)scene in USD.*Export the robot as URDF or MJCF"):
        ax.load(tmp_path / name)


def test_a_capsule_without_length_is_not_drawn(tmp_path):
    text = ARM.replace("{turn}", "").replace('length="0.4"', 'length="0.4 m"')
    (tmp_path / "arm.urdf").write_text(text)
    with pytest.warns(FileDeviationWarning, match=r"\[link.arm\] capsule length.*not drawn"):
        assert ax.load(tmp_path / "arm.urdf").bodies[1].shapes == ()
