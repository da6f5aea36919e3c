"""Joints of an imported robot that are held where they stand at home."""

import json
from pathlib import Path

import numpy as np
import pytest

import axode as ax
from axode.cli import run

LINK = '<link name="{0}"><inertial><origin xyz="0.2 0.01 0"/><mass value="1"/><inertia ixx="0.01" iyy="0.02" izz="0.02"/></inertial></link>'  # noqa: E501
JOINT = (
    '<joint name="{0}" type="{1}"><parent link="{2}"/><child link="{3}"/>'
    '<origin xyz="0.4 0 0.1" rpy="0.3 0 0.2"/><axis xyz="0.6 0 0.8"/>'
    '<dynamics damping="0.1"/><limit effort="5" velocity="9"/>{4}</joint>'
)


@pytest.fixture
def arm(tmp_path: Path) -> Path:
    """An arm whose gripper mimics its wrist."""
    parts = [LINK.format(name) for name in ("base", "a", "b", "c", "d")]
    parts += [
        JOINT.format("arm_1", "revolute", "base", "a", ""),
        JOINT.format("arm_2", "revolute", "a", "b", ""),
        JOINT.format("slide", "prismatic", "b", "c", ""),
        JOINT.format("grip", "revolute", "c", "d", '<mimic joint="slide" multiplier="2"/>'),
    ]
    path = tmp_path / "arm.urdf"
    path.write_text(f'<robot name="arm">{"".join(parts)}</robot>')
    return path


def test_held_joints_are_rigid_where_home_has_them(arm):
    (arm.parent / "held.toml").write_text(
        'extends = {file = "arm.urdf", hold = ["slide", "grip", "arm_2"]}\n'
        "[home]\narm_2 = 0.7\nslide = 0.3\ngrip = 0.6\n"
    )
    held, whole = ax.load(arm.parent / "held.toml"), ax.load(arm)
    assert [drive.name for drive in held.drives] == ["arm_1"]
    assert [damper.name for damper in held.dampers] == ["arm_1"]
    assert held.couplings == [] and held.home_coordinates == {}
    whole.prescribe("arm_2", 0.7)
    whole.prescribe("slide", 0.3)
    whole.set_home({"arm_2": 0.7, "slide": 0.3, "grip": 0.6})
    few = held.derive().compile("interpreter")
    many = whole.derive().compile("interpreter")
    assert few.coordinates == ("arm_1",)
    state = ({"arm_1": 0.4}, {"arm_1": 1.1}, {"arm_1": 2.0})
    q = {"arm_1": 0.4, "arm_2": 0.7, "slide": 0.3, "grip": 0.6}
    expected = many.forward_dynamics(q, *state[1:])
    np.testing.assert_allclose(few.forward_dynamics(*state), expected, rtol=1e-9)


def test_patterns_name_many_joints_and_load_takes_them(arm):
    robot = ax.load(arm, hold=["arm_*"])
    assert [c.name for c in robot.connections if not isinstance(c.joint, ax.Fixed)] == [
        "slide",
        "grip",
    ]
    assert ax.load(arm, hold=()) == ax.load(arm)


def test_wrong_names_and_half_held_couplings_are_reported(arm):
    with pytest.raises(ax.InvalidArgument) as caught:
        ax.load(arm, hold=["arm3", "grip"])
    text = str(caught.value)
    assert "no joint is called 'arm3'. Joints: base, arm_1" in text
    assert "'grip' is held, and coupling 'grip' relates it to 'slide'; hold both" in text
    with pytest.raises(ax.InvalidArgument, match="hold must be names of joints"):
        ax.load(arm, hold="arm_1")
    (arm.parent / "wrong.toml").write_text('[extends]\nfile = "arm.urdf"\nhold = ["slied"]\n')
    with pytest.raises(ax.MechanismError, match=r"line +3  \[extends\] hold: .*'slide'"):
        ax.load(arm.parent / "wrong.toml")


def test_a_joint_placed_by_a_parameter_is_held_at_zero_only(tmp_path):
    bot = ax.Mechanism("rod")
    bot.add_body("rod", mass=1.0, inertia=(1, 1, 1))
    at = (ax.Parameter("l", 0.5), 0, 0)
    bot.add_joint("turn", ax.Revolute("z"), parent=bot.ground, child="rod", at=at)
    bot.save(tmp_path / "rod.toml")
    assert ax.load(tmp_path / "rod.toml", hold=["turn"]).connections[0].at == at
    bot.set_home({"turn": 0.2})
    bot.save(tmp_path / "rod.toml")
    with pytest.raises(ax.InvalidArgument, match="'turn' is placed by parameters, and is held"):
        ax.load(tmp_path / "rod.toml", hold=["turn"])


def test_the_command_line_takes_one_name_or_several(arm, capsys):
    for given, left in (("arm_*", ["slide", "grip"]), ("['arm_1', 'slide', 'grip']", ["arm_2"])):
        assert run(["check", str(arm), "--option", f"hold={given}", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)["speeds"]
        assert found == [f"{name}.rate" for name in left]
