"""A mechanism, written and read back, is the same mechanism to the last bit."""

import dataclasses
import itertools
import math
import tomllib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import axode as ax
from axode.mechanism.elements.bodies import SHAPES
from axode.mechanism.elements.forces import Strut
from axode.mechanism.elements.joints import JOINTS
from axode.mechanism.elements.wheels import WHEELS
from axode.mechanism.files.toml.toml_lines import key_lines
from axode.mechanism.topology import coordinate_names
from users.random_descriptions import random_description

LAWS = ("friction", "restitution", "rolling_resistance", "scrub", "stops")
SEEDS = st.integers(0, 2**32)
USUAL = settings(deadline=None, derandomize=True)


def every_bit(mechanism):
    """All numbers and formulas, told apart even where they compare equal (0.0 and -0.0)."""

    def saved(items):  # all but where the meshes of a file may be
        return {key: value for key, value in items if key != "folders"}

    return repr(dataclasses.asdict(mechanism, dict_factory=saved))


@settings(USUAL, max_examples=200)
@given(SEEDS)
def test_reading_undoes_writing(tmp_path_factory, seed):
    mechanism = random_description(seed)
    path = tmp_path_factory.mktemp("files") / "robot.toml"
    mechanism.save(path)
    again = ax.load(path)
    assert again == mechanism
    assert every_bit(again) == every_bit(mechanism)
    again.save(path.with_name("again.toml"))
    assert path.read_bytes() == path.with_name("again.toml").read_bytes()


@settings(USUAL, max_examples=50)
@given(SEEDS)
def test_every_key_of_a_written_file_is_found_on_its_line(tmp_path_factory, seed):
    mechanism = random_description(seed)
    path = tmp_path_factory.mktemp("files") / "robot.toml"
    mechanism.save(path)
    text = path.read_text()
    rows = text.split("\n")
    lines = key_lines(text)
    for place in leaves(tomllib.loads(text)):
        assert place in lines, place
        row = rows[lines[place] - 1]
        key, _, value = row.partition(" = ") if not row.startswith('"') else ("", "", row)
        assert value, row
        if key:
            assert key == place[-1]
        else:
            assert tomllib.loads(row).keys() == {place[-1]}


def leaves(table, place=()):
    for key, value in table.items():
        if isinstance(value, dict):
            yield from leaves(value, (*place, key))
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for index, item in enumerate(value):
                yield from leaves(item, (*place, key, index))
        else:
            yield (*place, key)


def test_random_descriptions_use_everything():
    """Else the test above proves less than it says."""
    seen = set()
    for seed in range(200):
        mechanism = random_description(seed)
        for name in ("connections", "loops"):
            seen.update(f"{name} {type(c.joint).__name__}" for c in getattr(mechanism, name))
        seen.update(type(contact.wheel).__name__ for contact in mechanism.contacts)
        seen.update(type(body.shape).__name__ for body in mechanism.bodies)
        seen.update(type(shape).__name__ for body in mechanism.bodies for shape in body.shapes)
        seen.update(f.name for f in dataclasses.fields(mechanism) if getattr(mechanism, f.name))
        laws = [*mechanism.connections, *(contact.wheel for contact in mechanism.contacts)]
        seen.update(
            f"{type(law).__name__} {name}"
            for law in laws
            for name in LAWS
            if getattr(law, name, None) not in (None, 0.0)
        )
    loops = {f"loops {joint.__name__}" for joint in JOINTS.values()} - {"loops Floating"}
    expected = {
        *(f"connections {joint.__name__}" for joint in JOINTS.values()),
        *loops,
        *(wheel.__name__ for wheel in WHEELS.values()),
        *(shape.__name__ for shape in SHAPES.values()),
        *(f"{wheel.__name__} {name}" for wheel in WHEELS.values() for name in LAWS[:4]),
        *(f"Connection {name}" for name in ("friction", "restitution", "stops")),
        "tuple",
        *(f.name for f in dataclasses.fields(ax.Mechanism)),
    } - {"quasi_velocities"}  # an argument of derive, which files do not hold
    assert expected - seen == set()


def test_wheels_and_casters_of_a_file_are_those_of_python(tmp_path):
    path = tmp_path / "cart.toml"
    path.write_text("""
name = "cart"
gravity = [0, 0, -1.62]
[wheel.left]
type = "rolling"
radius = "r"
lateral = "free"
on = "chassis"
at = [0, "w / 2", 0]
mass = 0.5
motor = { limit = 4, gear = 10 }
coordinate = "turn"
[wheel.ball]
type = "ball"
radius = 0.05
on = "chassis"
mass = 1
ground = { normal = [0, 0.6, 0.8], point = [0, 0, -1] }
[caster.rear]
type = "rolling"
radius = 0.05
on = "chassis"
at = [-0.3, 0, 0]
trail = "r / 2"
drop = 0.1
mass = 0.2
bracket_mass = 0.1
bracket_inertia = [1e-3, 1e-3, 1e-3]
[parameters]
r = 0.1
w = 0.4
[body.chassis]
mass = 10
shape = { type = "box", size = [0.5, "w", 0.1] }
[joint.base]
type = "floating"
parent = "ground"
child = "chassis"
[home]
base.z = "1 / 10"
"base.x" = 2
[prescribe]
turn = "2 * pi * t"
""")
    r, w = ax.Parameter("r", 0.1), ax.Parameter("w", 0.4)
    cart = ax.Mechanism("cart", (0, 0, -1.62))
    chassis = cart.add_body("chassis", mass=10, shape=ax.Box((0.5, w, 0.1)))
    cart.add_joint("base", ax.Floating(), parent="ground", child=chassis)
    cart.add_wheel(
        "left",
        ax.Rolling(r, lateral="free"),
        on=chassis,
        at=(0, w / 2, 0),
        mass=0.5,
        motor=ax.Motor(limit=4, gear=10),
        coordinate="turn",
    )
    cart.add_wheel(
        "ball", ax.Ball(0.05), on=chassis, mass=1, ground=ax.Plane((0, 0.6, 0.8), (0, 0, -1))
    )
    cart.add_caster(
        "rear",
        ax.Rolling(0.05),
        on=chassis,
        at=(-0.3, 0, 0),
        trail=r / 2,
        drop=0.1,
        mass=0.2,
        bracket_mass=0.1,
        bracket_inertia=(1e-3, 1e-3, 1e-3),
    )
    cart.set_home({"base.z": 0.1, "base.x": 2})
    cart.prescribe("turn", lambda t: 2 * math.pi * t)
    loaded = ax.load(path)
    assert loaded == cart
    assert loaded.home_coordinates == {"base.z": 0.1, "base.x": 2.0}


def test_the_order_of_tables_does_not_change_the_order_of_coordinates(tmp_path):
    tables = [
        '[body.a]\nmass = 1\ninertia = "point"\n',
        '[joint.ja]\ntype = "revolute"\nparent = "ground"\nchild = "a"\n',
        '[wheel.w]\ntype = "rolling"\nradius = 1\non = "a"\nmass = 1\n',
    ]
    path = tmp_path / "robot.toml"
    found = set()
    for order in itertools.permutations(tables):
        path.write_text("".join(order))
        found.add(tuple(coordinate_names(ax.load(path))))
    assert found == {("ja", "w")}


def test_joints_keep_the_order_of_the_file(tmp_path):
    path = tmp_path / "robot.toml"
    names = ["z", "a", "m"]
    bodies = "".join(f'[body.{n}]\nmass = 1\ninertia = "point"\n' for n in sorted(names))
    joints = "".join(
        f'[joint.{n}]\ntype = "prismatic"\nparent = "ground"\nchild = "{n}"\n' for n in names
    )
    path.write_text(bodies + joints)
    assert coordinate_names(ax.load(path)) == names


def test_a_joint_whose_child_is_held_closes_a_loop_in_a_file_too(tmp_path):
    path = tmp_path / "robot.toml"
    path.write_text("""
[body.a]
mass = 1
inertia = "point"
[joint.first]
type = "prismatic"
parent = "ground"
child = "a"
[joint.second]
type = "planar"
parent = "ground"
child = "a"
""")
    loaded = ax.load(path)
    assert [c.name for c in loaded.connections] == ["first"]
    assert [c.name for c in loaded.loops] == ["second"]


def test_a_dashpot_comes_back_as_the_same_strut(tmp_path):
    arm = ax.Mechanism("arm")
    arm.add_body("a", mass=1, inertia=(1, 1, 1))
    arm.add_joint("j", ax.Revolute(), parent="ground", child="a")
    arm.add_damper("d", parent="ground", child="a", coefficient=2, at=(1, 0, 0))
    arm.save(tmp_path / "arm.toml")
    assert ax.load(tmp_path / "arm.toml").struts == [
        Strut("d", "ground", "a", (1.0, 0.0, 0.0), (0.0, 0.0, 0.0), 0.0, 0.0, 2.0)
    ]


def test_a_file_without_a_name_is_called_after_itself(tmp_path):
    path = tmp_path / "walker.toml"
    path.write_text(
        '[body.a]\nmass = 1\ninertia = "point"\n'
        '[joint.j]\ntype = "fixed"\nparent = "ground"\nchild = "a"\n'
    )
    assert ax.load(path).name == "walker"
    assert ax.load(str(path)).gravity == (0.0, 0.0, -9.81)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_files_of_other_systems_are_read(tmp_path, newline, mark):
    path = tmp_path / "robot.toml"
    text = (
        'name = "rück"\n[body.a]\nmass = 1\ninertia = "point"\n'
        '[joint.j]\ntype = "fixed"\nparent = "ground"\nchild = "a"\n'
    )
    path.write_bytes((mark + text.replace("\n", newline)).encode())
    assert ax.load(path).name == "rück"


def test_numpy_numbers_are_written_as_numbers(tmp_path):
    arm = ax.Mechanism("arm", gravity=np.array([0, 0, -9.81]))
    arm.add_body("a", mass=np.float32(1.5), com=np.arange(3), inertia=np.diag([1, 1, 1]))
    arm.add_joint(
        "j", ax.Revolute(np.array([0, 0, 1])), parent="ground", child="a", rotation=np.eye(3)
    )
    arm.set_home(j=np.float64(0.1))
    arm.save(tmp_path / "arm.toml")
    assert every_bit(ax.load(tmp_path / "arm.toml")) == every_bit(arm)
