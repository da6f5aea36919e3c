"""Closed loops against Pinocchio's constraints: own linkages, and Gepetto's parallel robots.

Set AXODE_PARALLEL_ROBOTS to a checkout of example-parallel-robots for the latter.
"""

import pytest

from axode.errors import LoopNotClosed
from tests.mechanism.test_urdf_loops import INERTIAL, TREE
from tests.peers.parallel_robots import FOLDER, OPEN, ROBOTS, ParallelRobot, compare, read


@pytest.mark.skipif(not ROBOTS, reason="AXODE_PARALLEL_ROBOTS names no folder of robots")
@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("folder", ROBOTS, ids=lambda path: str(path.relative_to(FOLDER)))
def test_a_parallel_robot_accelerates_as_in_pinocchio(folder, base):
    pytest.importorskip("yaml")
    robot = read(folder, base)
    if folder.name in OPEN:
        with pytest.raises(LoopNotClosed, match=OPEN[folder.name]):
            robot.mechanism.derive()
    else:
        compare(robot)


# own robots --------------------------------------------------------------------------------------

END = (
    '<link name="{0}"/><joint name="{0} weld" type="fixed"><parent link="{1}"/><child link="{0}"/>'
)
PIN = f"""<link name="knuckle">{INERTIAL}</link>
  <joint name="c" type="continuous"><parent link="coupler"/>
  <child link="knuckle"/><origin xyz="1 0 0"/><axis xyz="0 1 0"/></joint>"""
AT_KNUCKLE = PIN + END.format("A", "knuckle") + "</joint>"
AT_COUPLER = END.format("A", "coupler") + '<origin xyz="1 0 0"/></joint>'
AT_RIGHT = END.format("B", "right") + '<origin xyz="1 0 0" rpy="0 1.57079632679489662 0"/></joint>'
OWN = {
    "planar loop of rigid frames": (AT_KNUCKLE, "6d", {}, 1),  # three of six rows are redundant
    "planar loop of points": (AT_COUPLER, "3d", {}, 1),
    "universal joint in the loop": (AT_KNUCKLE, "6d", {"c": "UJOINT_YX"}, 1),
}


@pytest.mark.parametrize(("end", "kind", "joints", "free"), OWN.values(), ids=list(OWN))
def test_a_linkage_accelerates_as_in_pinocchio(end, kind, joints, free, tmp_path):
    path = tmp_path / "robot.urdf"
    text = TREE.replace("CLOSURE", end + AT_RIGHT).replace("iyy=", 'ixy="0" ixz="0" iyz="0" iyy=')
    limits = '<limit effort="5" velocity="1" lower="-3" upper="3"/>'  # Pinocchio needs both
    path.write_text(text.replace('"continuous">', f'"revolute">{limits}'))
    notes = {"joint_name": list(joints), "joint_type": list(joints.values()), "name_mot": ["a"]}
    notes |= {"closed_loop": [["A", "B"]], "type": [kind]}
    assert compare(ParallelRobot(path, notes))["free"] == free
    assert compare(ParallelRobot(path, notes, "floating"))["free"] == free + 6
