"""Friction and stops in files of other programs: read on request, written, and read back."""

from __future__ import annotations

import math
import warnings
from pathlib import Path

import pytest

import axode as ax

URDF = """<robot name="cart">
  <link name="deck"><inertial><mass value="10"/>
    <inertia ixx="0.3" iyy="0.4" izz="0.5" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="left"><inertial><mass value="0.5"/>
    <inertia ixx="0.002" iyy="0.003" izz="0.002" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><origin rpy="1.5707963267948966 0 0"/>
      <geometry><cylinder radius="0.1" length="0.04"/></geometry></collision></link>
  <link name="mast"><inertial><mass value="1"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="axle" type="continuous"><parent link="deck"/><child link="left"/>
    <origin xyz="0 0.2 0"/><axis xyz="0 1 0"/><dynamics friction="0.2" damping="0.01"/></joint>
  <joint name="hinge" type="revolute"><parent link="deck"/><child link="mast"/>
    <origin xyz="0 0 0.3"/><axis xyz="0 1 0"/>
    <limit lower="LOWER" upper="1.25" effort="5" velocity="9"/></joint>
  <gazebo reference="left"><mu1>0.7</mu1><mu2 value="0.7"/></gazebo>
</robot>"""

MJCF = """<mujoco><worldbody>
  <geom type="plane" size="0 0 1" friction="0.4 0.01 0.001"/>
  <body name="deck" pos="0 0 0.1"><joint name="base" type="free"/>
    <inertial pos="0 0 0" mass="10" diaginertia="0.3 0.4 0.5"/>
    <body name="left" pos="0 0.2 0"><joint name="axle" axis="0 1 0" frictionloss="0.2"/>
      <inertial pos="0 0 0" mass="0.5" diaginertia="0.002 0.003 0.002"/>
      <geom type="cylinder" size="0.1 0.02" euler="90 0 0" friction="0.9 0.005 0.0001"
            GEOM/></body>
    <body name="mast" pos="0 0 0.3">
      <joint name="hinge" axis="0 1 0" range="-30 60" solreflimit="0.004 1"/>
      <inertial pos="0 0 0.1" mass="1" diaginertia="0.1 0.1 0.1"/></body>
  </body></worldbody></mujoco>"""

SDF = """<sdf version="1.9"><world name="w">
  <model name="floor"><static>true</static><link name="l"><collision name="c"><geometry><plane/>
    </geometry><surface><friction><ode><mu>0.6</mu></ode></friction></surface></collision></link>
  </model>
  <model name="cart"><link name="deck"><inertial><mass>10</mass></inertial></link>
    <link name="left"><pose>0 0.2 0 0 0 0</pose><inertial><mass>0.5</mass></inertial>
      <collision name="c"><pose>0 0 0 1.5707963267948966 0 0</pose><geometry><cylinder>
        <radius>0.1</radius><length>0.04</length></cylinder></geometry>
        <surface><friction><ode><mu>0.9</mu></ode></friction></surface></collision></link>
    <link name="mast"><pose>0 0 0.3 0 0 0</pose><inertial><mass>1</mass></inertial></link>
    <joint name="axle" type="revolute"><parent>deck</parent><child>left</child>
      <axis><xyz>0 1 0</xyz><dynamics><friction>0.2</friction></dynamics></axis></joint>
    <joint name="hinge" type="revolute"><parent>deck</parent><child>mast</child>
      <axis><xyz>0 1 0</xyz><limit><lower>-0.5</lower><upper>1.25</upper></limit></axis></joint>
    <pose>0 0 0.1 0 0 0</pose></model></world></sdf>"""

FILES = {
    "cart.urdf": URDF.replace("LOWER", "-0.5"),
    "cart.xml": MJCF.replace("GEOM", 'condim="6"'),
    "cart.sdf": SDF,
}


def loaded(tmp_path: Path, name: str, text: str = "", **options) -> ax.Mechanism:
    path = tmp_path / name
    path.write_text(text or FILES[name])
    base = {"base": "floating"} if name.endswith("urdf") else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ax.load(path, wheels="proposed", **base, **options)


@pytest.mark.parametrize("name", FILES)
def test_a_file_gives_ideal_joints_and_wheels_unless_it_is_asked(tmp_path, name):
    cart = loaded(tmp_path, name)
    assert cart.contacts[0].wheel.is_ideal
    assert not any(joint.rubs_or_stops for joint in cart.connections)


@pytest.mark.parametrize("name", ["cart.xml", "cart.sdf"])
def test_what_is_left_out_is_listed_with_the_option_that_reads_it(tmp_path, name):
    (tmp_path / name).write_text(FILES[name])
    with pytest.warns(ax.errors.OmissionWarning) as caught:
        ax.load(tmp_path / name, wheels="proposed")
    text = "\n".join(str(warning.message) for warning in caught)
    assert 'contacts="stops"' in text and "hinge" in text
    assert 'contacts="friction"' in text and "axle" in text


@pytest.mark.parametrize(
    ("name", "stops", "friction"),
    [
        ("cart.urdf", (-0.5, 1.25), 0.7),
        ("cart.xml", (-math.pi / 6, math.pi / 3), 0.9),
        ("cart.sdf", (-0.5, 1.25), 0.6),  # the lesser of wheel and floor, as Gazebo takes it
    ],
)
def test_all_contacts_of_a_file(tmp_path, name, stops, friction):
    cart = loaded(tmp_path, name, contacts="all")
    assert cart.joint("hinge").stops == pytest.approx(stops)
    assert cart.joint("axle").friction == (0.2, 0.2)
    wheel = cart.contacts[0].wheel
    assert wheel.friction == (friction, friction)
    if name == "cart.xml":  # of equal priorities the larger numbers act
        assert (wheel.scrub, wheel.rolling_resistance) == (0.01, 0.001)
    # home stands on the ground, although nothing of the wheel is eliminated
    assert cart.home_coordinates["base.z"] == pytest.approx(0.1, abs=1e-12)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("asked", ["stops", "friction", "wheels"])
def test_each_of_the_contacts_alone(tmp_path, name, asked):
    cart = loaded(tmp_path, name, contacts=[asked])
    assert (cart.joint("hinge").stops is not None) == (asked == "stops")
    assert (cart.joint("axle").friction is not None) == (asked == "friction")
    assert cart.contacts[0].wheel.is_ideal == (asked != "wheels")


@pytest.mark.parametrize(
    ("geom", "friction", "scrub", "rolling"),
    [
        ('condim="1" priority="1"', 0.0, 0.0, 0.0),
        ('condim="3"', 0.9, 0.0, 0.0),
        ('condim="4" priority="2"', 0.9, 0.005, 0.0),
        ('condim="6" priority="-1"', 0.4, 0.0, 0.0),  # the floor's numbers, and its condim 3
    ],
)
def test_priority_and_condim_decide_as_in_mujoco(tmp_path, geom, friction, scrub, rolling):
    text = MJCF.replace("GEOM", geom)
    wheel = loaded(tmp_path, "cart.xml", text, contacts="wheels").contacts[0].wheel
    assert wheel.friction == (friction, friction)
    assert (wheel.scrub, wheel.rolling_resistance) == (scrub, rolling)

    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    contact = data.contact[0]
    rows = {1: 0, 3: 1, 4: 2, 6: 3}[int(contact.dim)]
    expected = [contact.friction[0], contact.friction[2], contact.friction[3]]
    expected = [x if k < rows else 0.0 for k, x in enumerate(expected)]
    assert expected == pytest.approx([friction, scrub, rolling])


@pytest.mark.parametrize(
    ("plane", "option", "friction"),
    [
        ('contype="0" conaffinity="0" friction="1.5"', "", 0.9),  # a picture of a floor below
        ("", '<option o_friction="0.2 0.2 0.1 0.1 0.1"><flag override="enable"/></option>', 0.2),
        ('friction="1.5"', "", 1.5),
    ],
)
def test_planes_that_are_touched_and_overrides_decide_as_in_mujoco(
    tmp_path, plane, option, friction
):
    text = MJCF.replace("GEOM", "").replace("<mujoco>", f"<mujoco>{option}")
    first = f'<worldbody><geom type="plane" size="1 1 1" {plane}/>'
    text = text.replace("<worldbody>", first)
    wheel = loaded(tmp_path, "cart.xml", text, contacts="wheels").contacts[0].wheel
    assert wheel.friction == (friction, friction)

    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    assert data.contact[0].friction[0] == pytest.approx(friction)


def test_wheels_that_pass_through_the_floor_have_no_friction(tmp_path):
    (tmp_path / "cart.xml").write_text(MJCF.replace("GEOM", 'contype="2" conaffinity="4"'))
    with pytest.warns(ax.errors.PlausibilityWarning, match="no friction is given for left"):
        ax.load(tmp_path / "cart.xml", wheels="proposed", contacts="wheels")


def test_the_softness_of_mujoco_is_listed(tmp_path):
    (tmp_path / "cart.xml").write_text(FILES["cart.xml"])
    with pytest.warns(ax.errors.OmissionWarning, match=r"solref 0.004 1"):
        ax.load(tmp_path / "cart.xml", wheels="proposed", contacts="all")


def test_impossible_limits_and_names_are_reported(tmp_path):
    path = tmp_path / "cart.urdf"
    path.write_text(URDF.replace("LOWER", "1.25"))
    with pytest.warns(ax.errors.FileDeviationWarning, match="leaves no motion -> no stops"):
        assert ax.load(path, contacts="stops", wheels=()).joint("hinge").stops is None
    with pytest.raises(ax.errors.InvalidArgument, match="Did you mean 'stops'"):
        ax.load(path, contacts=["stop"])
    with pytest.raises(ax.errors.InvalidArgument, match="stops, friction, wheels"):
        ax.load(path, contacts=3)


def test_home_moves_between_the_stops(tmp_path):
    path = tmp_path / "cart.urdf"
    path.write_text(URDF.replace("LOWER", "0.5"))
    with pytest.warns(ax.errors.PlausibilityWarning, match="home at 0 is beyond its stops"):
        cart = ax.load(path, base="fixed", contacts="stops", wheels=())
    assert cart.home_coordinates["hinge"] == 0.5


def test_wheels_without_friction_in_the_file_are_named(tmp_path):
    path = tmp_path / "cart.urdf"
    path.write_text(URDF.replace("LOWER", "-0.5").replace("mu1", "mu9").replace("mu2", "mu9"))
    with pytest.warns(ax.errors.PlausibilityWarning, match="no friction is given for left"):
        ax.load(path, base="floating", wheels="proposed", contacts="wheels")


def test_a_file_that_extends_another_asks_for_its_contacts(tmp_path):
    (tmp_path / "cart.urdf").write_text(FILES["cart.urdf"])
    path = tmp_path / "more.toml"
    path.write_text(
        '[extends]\nfile = "cart.urdf"\nbase = "floating"\nwheels = "proposed"\n'
        'contacts = ["stops", "wheels"]\n'
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cart = ax.load(path)
    assert cart.joint("hinge").stops == (-0.5, 1.25)
    assert cart.joint("axle").friction is None
    assert cart.contacts[0].wheel.friction == (0.7, 0.7)


def test_a_held_joint_loses_its_stops_and_friction(tmp_path):
    cart = loaded(tmp_path, "cart.urdf", contacts="all", hold=["hinge"])
    assert not cart.joint("hinge").rubs_or_stops
    cart.check()


# writers ----------------------------------------------------------------------------------------


def machine() -> ax.Mechanism:
    found = ax.Mechanism("machine")
    deck = found.add_body("deck", mass=10.0, inertia=(0.3, 0.4, 0.5))
    found.add_joint("base", ax.Floating(), parent=found.ground, child=deck)
    for name, x, y in (("fl", 0.3, 0.2), ("fr", 0.3, -0.2), ("rl", -0.3, 0.2), ("rr", -0.3, -0.2)):
        wheel = ax.Rolling(0.1, friction=1.2)
        found.add_wheel(name, wheel, on=deck, at=(x, y, 0), mass=0.5, motor=True)
        found.change_joint(name, friction=0.3)
    mast = found.add_body("mast", mass=1.0, com=(0, 0, 0.2), inertia=(0.01, 0.01, 0.01))
    hinge = ax.Revolute("y")
    found.add_joint("tilt", hinge, parent=deck, child=mast, at=(0, 0, 0.1), stops=(-0.7, 1.1))
    head = found.add_body("head", mass=0.5, inertia=(0.01, 0.01, 0.01))
    slide = ax.Prismatic("z")
    found.add_joint(
        "lift", slide, parent=mast, child=head, at=(0, 0, 0.4), stops=(None, 0.2), friction=2.0
    )
    found.add_damper("lift_damper", "lift", coefficient=3.0)
    found.set_home({"base.z": 0.1})
    return found


@pytest.mark.parametrize(
    ("verb", "file"), [("urdf", "m.urdf"), ("mjcf", "m.xml"), ("sdf", "m.sdf")]
)
def test_stops_and_friction_come_back_as_they_were_written(tmp_path, verb, file):
    written = machine()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text = getattr(written, f"to_{verb}")(tmp_path / file)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        back = ax.load(tmp_path / file, contacts="all", wheels="proposed")
    found = {joint.child: joint for joint in back.connections}
    for expected in written.connections[1:]:
        joint, stops = found[expected.child], expected.stops
        assert joint.friction == expected.friction, joint
        if verb == "mjcf" and stops is not None:  # a range has two ends; 1e9 m is none
            stops = tuple(min(max(x, -1e9), 1e9) for x in stops)
        assert joint.stops == stops, joint
    assert back.derive().system.home[6] == pytest.approx(0.1)  # on the ground
    assert {c.body.split(".")[0]: c.wheel.friction for c in back.contacts} == {
        c.body.split(".")[0]: (1.2, 1.2) for c in written.contacts
    }
    assert not any("friction and stops" in sentence for sentence in text.left_out)


def test_writers_list_what_they_cannot_say():
    made = machine()
    made.change_joint("tilt", friction=(0.4, 0.3), restitution=0.5)
    laws = {"friction": (0.9, 0.8), "restitution": 0.2, "scrub": 0.01}
    made.add_wheel("fifth", ax.Omni(0.1, **laws), on="deck", at=(0, 0, 0), mass=0.5)
    lists = {}
    for verb in ("urdf", "mjcf", "sdf"):
        with pytest.warns(ax.errors.OmissionWarning):
            lists[verb] = "\n".join(getattr(made, f"to_{verb}")().left_out)
        assert "static friction of joint 'tilt', 0.4" in lists[verb]
        assert "restitution of the stops of joint 'tilt'" in lists[verb]
        assert "the friction is the kinetic one" in lists[verb]
        assert "without rollers" in lists[verb]
    assert "an element of Gazebo's" in lists["urdf"]
    assert "restitution of wheel 'fifth'" in lists["mjcf"]
    assert "scrub and rolling resistance of wheel 'fifth'" in lists["sdf"]


def test_mujoco_stops_a_rotor_where_we_do():
    """A rotor with dry friction turns until w0 I / M; MuJoCo's soft friction agrees to 1 %."""
    mujoco = pytest.importorskip("mujoco")
    rotor = ax.Mechanism("rotor", gravity=(0, 0, 0))
    disk = rotor.add_body("disk", mass=1.0, inertia=(0.02, 0.02, 0.04))
    rotor.add_joint("axle", ax.Revolute("z"), parent=rotor.ground, child=disk, friction=0.1)
    run = ax.simulate(rotor.derive().compile(), 2.0, start={"axle.rate": 3.0})
    closed_form = 0.04 * 3.0**2 / (2 * 0.1)
    assert run["axle"][-1] == pytest.approx(closed_form, rel=1e-9)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = mujoco.MjModel.from_xml_string(rotor.to_mjcf().text)
    model.opt.timestep = 1e-4
    data = mujoco.MjData(model)
    data.qvel[0] = 3.0
    for _ in range(20_000):
        mujoco.mj_step(model, data)
    assert data.qpos[0] == pytest.approx(closed_form, rel=0.01)


def test_mujoco_reads_the_written_ranges_and_friction():
    mujoco = pytest.importorskip("mujoco")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = mujoco.MjModel.from_xml_string(machine().to_mjcf().text)
    tilt, lift = model.joint("tilt"), model.joint("lift")
    assert tilt.range.tolist() == [-0.7, 1.1]
    assert lift.range.tolist() == [-1e9, 0.2]
    assert lift.frictionloss[0] == 2.0
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    data.qpos[2] -= 1e-4
    mujoco.mj_forward(model, data)
    assert data.ncon > 0
    assert all(contact.friction[0] == 1.2 for contact in data.contact)
