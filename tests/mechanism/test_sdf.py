"""SDF files: what is read, what is left out, and what is refused."""

import warnings

import numpy as np
import pytest

import axode as ax
from axode.errors import (
    FileDeviationWarning,
    FileError,
    InvalidArgument,
    MechanismError,
    OmissionWarning,
)
from axode.mechanism.elements.bodies import Mesh
from tests.mechanism.sdf_models import rotation, transform

INERTIAL = (
    "<inertial><mass>1</mass><inertia><ixx>.02</ixx><iyy>.02</iyy><izz>.03</izz></inertia>"
    "</inertial>"
)
Z = "<axis><xyz>0 0 1</xyz></axis>"


def link(name, pose="0 0 0 0 0 0", more=""):
    return f'<link name="{name}"><pose>{pose}</pose>{INERTIAL}{more}</link>\n'


def joint(name, parent, child, more=Z, kind="revolute"):
    ends = f"<parent>{parent}</parent><child>{child}</child>"
    return f'<joint name="{name}" type="{kind}">{ends}{more}</joint>\n'


def model(*parts, version="1.9", name="robot", more=""):
    inside = "".join(parts)
    return f'<sdf version="{version}">\n<model name="{name}"{more}>\n{inside}</model></sdf>\n'


@pytest.fixture
def read(tmp_path):
    """Read a text; warnings become a list of their texts in `read.told`."""

    def load(text, name="robot.sdf", **options):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            mechanism = ax.load(path, **options)
        load.told = [str(w.message).replace(f"{tmp_path}/", "") for w in caught]
        load.kinds = [w.category for w in caught]
        return mechanism

    load.told, load.kinds, load.path = [], [], tmp_path
    return load


def faults(read, text, **options):
    """The lines of a refusal, without the name of the file."""
    with pytest.raises(MechanismError) as caught:
        read(text, **options)
    return [line.strip() for line in str(caught.value).splitlines()[1:]]


FOUR_BAR = (
    link("crank"),
    link("coupler", "0.3 0.4 0 0 0 0.2"),
    link("rocker", "1.2 0.5 0 0 0 -1.2"),
)
HINGES = (
    joint("first", "world", "crank"),
    joint("second", "crank", "coupler"),
    joint("third", "coupler", "rocker"),
)


# loops -------------------------------------------------------------------------------------------


def test_a_second_joint_of_a_child_closes_a_loop(read):
    last = joint("last", "world", "rocker", "<pose>0.7 0 0 0 0 0</pose>" + Z)
    bar = read(model(*FOUR_BAR, *HINGES, last))
    assert read.told == []
    assert [c.name for c in bar.connections] == ["first", "second", "third"]
    (loop,) = bar.loops
    place = np.array([1.2, 0.5, 0]) + 0.7 * np.array([np.cos(1.2), -np.sin(1.2), 0])
    assert (loop.parent, loop.child, loop.child_at) == ("ground", "rocker", (0.7, 0, 0))
    np.testing.assert_allclose(loop.at, place, atol=1e-15)
    equations = bar.derive()
    assert equations.mobility.mobility == 1
    home = equations.compile("interpreter").home
    np.testing.assert_allclose(home, 0, atol=1e-14)  # the file draws the loop closed


def test_joints_that_something_acts_on_keep_their_coordinates_in_loops(read):
    damped = Z.replace("</axis>", "<dynamics><damping>0.1</damping></dynamics></axis>")
    hinges = [part.replace(Z, damped) for part in HINGES]
    last = joint("last", "world", "rocker", "<pose>0.7 0 0 0 0 0</pose>" + damped)
    bar = read(model(*FOUR_BAR, *hinges, last))
    assert [c.name for c in bar.connections] == ["first", "second", "third", "last"]
    assert [(c.name, c.parent, c.child) for c in bar.loops] == [
        ("last_closure", "rocker_last", "rocker")
    ]
    assert [d.coordinate for d in bar.dampers] == ["first", "second", "third", "last"]
    bar.set_home(first=0.01)
    q = bar.derive().compile("interpreter").home
    assert q[3] == pytest.approx(q[0] + q[1] + q[2], abs=1e-12)


def test_joints_with_the_most_freedom_close_loops(read):
    ball = joint("ball", "world", "coupler", "", "ball")
    rest = (HINGES[0], HINGES[1])
    bar = read(model(*FOUR_BAR[:2], ball, *rest))
    assert [loop.name for loop in bar.loops] == ["ball"]
    cut = "<physics><simbody><must_be_loop_joint>true</must_be_loop_joint></simbody></physics>"
    first = joint("first", "world", "crank", Z + cut)
    bar = read(model(*FOUR_BAR[:2], ball, first, HINGES[1]))
    assert [loop.name for loop in bar.loops] == ["first"]


def test_a_joint_against_the_tree_keeps_its_coordinate(read):
    parts = [link("a"), link("b", "1 0 0 0 0 0"), link("c", "2 0 0 0.3 0 0")]
    two = "<axis><xyz>0 1 0</xyz></axis><axis2><xyz>1 0 0</xyz></axis2>"
    ends = [
        joint("ab", "world", "b"),
        joint("cb", "c", "b"),
        joint("ac", "a", "c", two, "universal"),
    ]
    robot = read(model(*parts, *ends))
    assert [(c.name, c.parent, c.child) for c in robot.connections] == [
        ("ab", "ground", "b"),
        ("cb", "b", "c"),
        ("ac", "c", "a"),
    ]
    assert robot.connections[1].joint == ax.Revolute("-z")
    assert robot.connections[2].coordinates == ("ac.second", "ac.first")
    compiled = robot.derive(self_check=False).compile("interpreter")
    q = dict.fromkeys(compiled.coordinates, 0.0) | {"cb": 0.4}
    found = compiled.poses(list(q.values()))[compiled.bodies.index("c")]
    # b turns against c by 0.4 about z at b's origin, so c turns against b by -0.4
    hinge, placed = transform(np.eye(3), (1, 0, 0)), transform(rotation(0.3, 0, 0), (2, 0, 0))
    turned = transform(rotation(0, 0, -0.4), (0, 0, 0))
    wanted = hinge @ turned @ np.linalg.inv(hinge) @ placed
    np.testing.assert_allclose(found, wanted, atol=1e-14)


# joints ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "switch", "wanted"),
    [
        ("1.4", "", "model"),
        ("1.4", "<use_parent_model_frame>0</use_parent_model_frame>", "joint"),
        ("1.5", "", "joint"),
        ("1.5", "<use_parent_model_frame>true</use_parent_model_frame>", "model"),
        ("1.6", "<use_parent_model_frame>0</use_parent_model_frame>", "joint"),
        ("1.6", "<use_parent_model_frame>1</use_parent_model_frame>", "model"),
        ("1.7", "", "joint"),
    ],
)
def test_the_frame_of_an_axis_depends_on_the_version(version, switch, wanted, read):
    turned = f"<pose>0 0 0 0 0 0.3</pose><axis><xyz>2 0 0</xyz>{switch}</axis>"
    arm = read(
        model(link("arm", "0 0 0 0 0 0.5"), joint("j", "world", "arm", turned), version=version)
    )
    angle = {"joint": 0.0, "model": -0.8}[wanted]
    axis = arm.connections[0].joint.axis
    np.testing.assert_allclose(axis, (np.cos(angle), np.sin(angle), 0), atol=1e-15)
    assert arm.connections[0].child_rotation[0][0] == pytest.approx(np.cos(0.3))


def test_a_switch_that_later_versions_lack_is_listed(read):
    switch = "<axis><xyz>1 0 0</xyz><use_parent_model_frame>1</use_parent_model_frame></axis>"
    text = model(link("arm"), joint("j", "world", "arm", switch), version="1.7")
    read(text)
    assert "use_parent_model_frame" in read.told[0]


@pytest.mark.parametrize(
    ("pitch", "wanted"),
    [
        ("<screw_thread_pitch>0.5</screw_thread_pitch>", 0.5 / (2 * np.pi)),
        ("<thread_pitch>4</thread_pitch>", -0.25),
        ("<thread_pitch>4</thread_pitch><screw_thread_pitch>2</screw_thread_pitch>", 1 / np.pi),
        ("", 1 / (2 * np.pi)),
    ],
)
def test_threads_have_two_conventions(pitch, wanted, read):
    screw = read(model(link("nut"), joint("j", "world", "nut", Z + pitch, "screw")))
    assert screw.connections[0].joint.pitch == pytest.approx(wanted, abs=1e-16)
    assert any("1 m per turn" in text for text in read.told) == (pitch == "")


def test_what_acts_on_joints(read):
    acting = (
        "<axis><xyz>0 0 1</xyz><dynamics><damping>0.2</damping><spring_stiffness>3"
        "</spring_stiffness><spring_reference>0.5</spring_reference><friction>1</friction>"
        "</dynamics><limit><effort>7</effort></limit></axis>"
    )
    free = "<axis><limit><effort>-1</effort></limit></axis>"
    strong = "<axis><limit><effort>inf</effort></limit></axis>"
    parts = [link(name) for name in "abc"]
    ends = [
        joint(
            "j",
            "world",
            "a",
            acting + acting.replace("axis", "axis2").replace("0 0 1", "1 0 0"),
            "universal",
        ),
        joint("k", "a", "b", free),
        joint(
            "l",
            "b",
            "c",
            strong
            + "<drake:rotor_inertia>0.1</drake:rotor_inertia>"
            + "<drake:gear_ratio>3</drake:gear_ratio>",
        ),
    ]
    robot = read(model(*parts, *ends))
    assert [(d.coordinate, d.coefficient) for d in robot.dampers] == [
        ("j.first", 0.2),
        ("j.second", 0.2),
    ]
    assert [(s.coordinate, s.stiffness, s.rest) for s in robot.springs] == [
        ("j.first", 3, 0.5),
        ("j.second", 3, 0.5),
    ]
    motors = [(d.coordinate, d.motor.limit, d.motor.rotor_inertia) for d in robot.drives]
    assert motors == [("j.first", 7, 0), ("j.second", 7, 0), ("l", None, pytest.approx(0.9))]
    assert "dry friction (damping is viscous here): joint j (line 6)" in read.told[0]
    robot.check()


def test_joints_that_follow_others(read):
    mimic = (
        "<axis><mimic joint='j'><multiplier>2</multiplier><offset>1</offset>"
        "<reference>0.5</reference></mimic></axis>"
    )
    drake = Z + '<drake:mimic joint="k" multiplier="-1" offset="0.1"/>'
    parts = [link(name) for name in "abcde"]
    none = "<axis><mimic joint='k'><multiplier>0</multiplier><offset>0.3</offset></mimic></axis>"
    ends = [
        joint("j", "world", "a"),
        joint("k", "world", "b", mimic),
        joint("l", "world", "c", drake),
        joint("m", "world", "d", none),
        joint("n", "world", "e", "<axis><mimic joint='x'/></axis>"),
    ]
    robot = read(model(*parts, *ends))
    assert [(c.terms, c.offset) for c in robot.couplings] == [
        ((("k", 1.0), ("j", -2.0)), 0.0),
        ((("l", 1.0), ("k", 1.0)), 0.1),
    ]
    assert [(p.coordinate, p.motion) for p in robot.prescribed] == [("m", 0.3)]
    assert (
        "cannot follow joint 'x'. Joints: j, k, l, m, n. -> the joint moves by itself"
        in (read.told[0])
    )


def test_a_gearbox_couples_two_hinges(read):
    parts = [link(name) for name in ("frame", "wheel", "pinion")]
    ends = [
        joint("fix", "world", "frame", "", "fixed"),
        joint("w", "frame", "wheel"),
        joint("p", "pinion", "frame", Z.replace("0 0 1", "0 0 -1")),
        joint(
            "gear",
            "wheel",
            "pinion",
            Z + Z.replace("axis", "axis2") + "<gearbox_ratio>3</gearbox_ratio>"
            "<gearbox_reference_body>frame</gearbox_reference_body>",
            "gearbox",
        ),
    ]
    robot = read(model(*parts, *ends))
    # the pinion's own angle is that of the frame against it, about the opposite axis
    assert [c.terms for c in robot.couplings] == [(("p", 1.0), ("w", 3.0))]
    assert robot.derive().mobility.mobility == 1
    ends[-1] = ends[-1].replace(">frame<", ">wheel<")
    assert (
        "gearboxes that relate no two hinges" in faults(read, model(*parts, *ends), strict=True)[0]
    )


def test_a_joint_whose_limits_leave_no_motion_is_fixed(read):
    locked = "<axis><limit><lower>0</lower><upper>0</upper></limit></axis>"
    robot = read(model(link("a"), joint("j", "world", "a", locked)))
    assert robot.connections[0].joint == ax.Fixed()
    assert "[joint.j] limit: leaves no motion -> the joint is fixed" in read.told[0]


def test_elements_of_drake(read):
    ball = "".join(
        f"<drake:ball_constraint_{n}>{v}</drake:ball_constraint_{n}>"
        for n, v in (("body_A", "a"), ("p_AP", "1 0 0"), ("body_B", "on_b"), ("p_BQ", "0 0 1"))
    )
    flat = (
        '<drake:joint name="p" type="planar"><drake:parent>world</drake:parent>'
        "<drake:child>a</drake:child><drake:damping>1 1 1</drake:damping></drake:joint>"
    )
    frame = '<frame name="on_b" attached_to="b"><pose>0 2 0 0 0 0</pose></frame>'
    parts = [link("a", "1 2 3 0 0 0"), link("b", "1 2 3 0 0 0"), frame, flat, joint("j", "a", "b")]
    robot = read(model(*parts, f"<drake:ball_constraint>{ball}</drake:ball_constraint>"))
    planar = robot.connections[0]
    assert (planar.joint, planar.at, planar.child_at) == (ax.Planar(), (0, 0, 0), (0, 0, 0))
    (loop,) = robot.loops
    assert (loop.joint, loop.at, loop.child_at) == (ax.Spherical(), (1, 0, 0), (0, 2, 1))
    assert "damping of joints with several speeds" in read.told[0]


# links -------------------------------------------------------------------------------------------


def test_a_link_without_inertial_has_the_formats_own(read):
    robot = read(model('<link name="a"/>', '<link name="b"><inertial/></link>'))
    assert [(b.mass, b.inertia) for b in robot.bodies] == [(1, ax.Inertia(1, 1, 1))] * 2
    assert read.kinds == [FileDeviationWarning]
    assert "[link.a] has no <inertial> -> 1 kg and 1 kg m^2 about each axis" in read.told[0]
    assert "inertial: has no <mass> and no <inertia> -> 1 (SI units)" in read.told[0]


def test_inertia_of_collision_shapes(read):
    def solid(geometry, pose="0 0 0 0 0 0", density=""):
        return (
            f'<collision name="c">{density}<pose>{pose}</pose><geometry>{geometry}'
            "</geometry></collision>"
        )

    def body(*parts, mass=""):
        inertial = f'<inertial auto="true">{mass}<density>500</density></inertial>'
        (found,) = read(model(f'<link name="a">{inertial}{"".join(parts)}</link>')).bodies
        return found

    box = solid("<box><size>1 2 3</size></box>")
    found = body(box)
    assert (found.mass, found.inertia) == (3000, ax.Inertia.box(3000, (1, 2, 3)))
    halves = (
        solid("<box><size>1 2 1.5</size></box>", "0 0 0.75 0 0 0"),
        solid("<box><size>2 1 1.5</size></box>", "0 0 -0.75 0 0 1.5707963267948966"),
    )
    found = body(*halves)
    np.testing.assert_allclose(found.inertia.entries, ax.Inertia.box(3000, (1, 2, 3)).entries)
    # a capsule of no length is a sphere, an ellipsoid of equal radii too
    ball = body(solid("<sphere><radius>0.5</radius></sphere>"))
    for same in (
        "<capsule><radius>0.5</radius><length>0</length></capsule>",
        "<ellipsoid><radii>0.5 0.5 0.5</radii></ellipsoid>",
    ):
        other = body(solid(same))
        np.testing.assert_allclose(other.inertia.entries, ball.inertia.entries)
    density = "<density>100</density>"
    rod = body(solid("<cylinder><radius>1</radius><length>2</length></cylinder>", density=density))
    assert rod.mass == pytest.approx(200 * np.pi)
    assert rod.inertia.entries == pytest.approx(ax.Inertia.cylinder(200 * np.pi, 1, 2).entries)
    cone = body(solid("<cone><radius>1</radius><length>2</length></cone>"), mass="<mass>10</mass>")
    assert (cone.mass, cone.com) == (10, (0, 0, -0.5))
    mesh = solid("<mesh><uri>a.stl</uri></mesh>")
    found = faults(read, model(f'<link name="a"><inertial auto="1"/>{mesh}</link>'))
    assert found == [
        'line   3  [link.a] inertial: auto="true" is not computed for <mesh>; give <mass> and '
        "<inertia>"
    ]
    found = faults(read, model('<link name="a"><inertial auto="1"/></link>'))
    assert 'auto="true" needs collision shapes with a volume' in found[0]


def test_shapes_for_pictures(read):
    def drawn(geometry, pose="0 0 1 0 0 0"):
        more = f'<visual name="v"><pose>{pose}</pose><geometry>{geometry}</geometry></visual>'
        return read(model(link("a", more=more))).bodies[0].shape

    assert drawn("<box><size>1 2 3</size></box>") == ax.Box((1, 2, 3), (0, 0, 1))
    assert drawn("<sphere><radius>2</radius></sphere>") == ax.Sphere(2, (0, 0, 1))
    rod = drawn("<capsule><radius>2</radius><length>3</length></capsule>", "0 0 1 1.570796327 0 0")
    assert rod == ax.Cylinder(2, 3, (0, -1, 0), (0, 0, 1))
    assert drawn("<mesh><uri>model://a.dae</uri></mesh>") == Mesh("model://a.dae", at=(0, 0, 1))
    assert drawn("<plane/>") is None
    assert drawn("<sphere><radius>1</radius></sphere>", "0 0 0") is None
    assert "pose: expected six numbers, got '0 0 0' -> not drawn" in read.told[0]
    assert drawn("<sphere><radius>x</radius></sphere>") is None
    assert "radius: expected a number, got 'x' -> not drawn" in read.told[0]


def test_weight_that_only_some_links_lack(read):
    off = "<gravity>false</gravity>"
    assert read(model(link("a", more=off), link("b", more=off))).gravity == (0, 0, 0)
    assert read(model(link("a", more=off), link("b"))).gravity == (0, 0, -9.81)
    assert "links without weight, beside others that have it: link a (line 3)" in read.told[0]


# models ------------------------------------------------------------------------------------------


def world(*parts):
    return f'<sdf version="1.9">\n<world name="w">\n{"".join(parts)}</world></sdf>\n'


def nested(name, *parts, more=""):
    return f'<model name="{name}"{more}>{"".join(parts)}</model>\n'


def test_a_free_model_floats_where_the_file_puts_it(read):
    pose = "<pose>1 2 3 0 0 1.5707963267948966</pose>"
    robot = read(model(pose, link("a", "0 1 0 0 0 0"), link("b"), joint("j", "a", "b")))
    base = robot.connections[0]
    assert (base.name, base.joint, base.child) == ("base", ax.Floating(), "a")
    half = np.sqrt(0.5)
    home = {"base.qw": half, "base.qz": half, "base.y": 2, "base.z": 3}
    assert robot.home_coordinates == pytest.approx(home)
    fixed = read(model(pose, link("a")), base="fixed").connections[0]
    assert (fixed.joint, fixed.at) == (ax.Fixed(), (1, 2, 3))
    assert read(model(link("a")), base="planar").connections[0].joint == ax.Planar()
    with pytest.raises(InvalidArgument, match="joins the robot to the world"):
        read(model(link("a"), joint("j", "world", "a")), base="floating")
    with pytest.raises(InvalidArgument, match="base must be 'fixed', 'floating' or 'planar'"):
        read(model(link("a")), base="free")


def test_all_models_of_a_world_are_one_mechanism(read):
    floor = nested("floor", "<static>true</static>", link("l"))
    one, two = nested("one", link("a")), nested("two", "<pose>1 0 0 0 0 0</pose>", link("a"))
    robot = read(world(floor, one))
    assert [b.name for b in robot.bodies] == ["a"]
    assert (robot.name, robot.gravity) == ("one", (0, 0, -9.8))
    assert "part of the ground, and actors: 1 model" in read.told[0]
    robot = read(world("<gravity>0 0 -1.6</gravity>", one, two), name="robot.world")
    assert [b.name for b in robot.bodies] == ["one::a", "two::a"]
    assert [c.name for c in robot.connections] == ["one::a", "two::a"]
    assert (robot.name, robot.gravity) == ("w", (0, 0, -1.6))
    held = joint("j", "floor::l", "one::a")
    robot = read(world(floor, one, held), name="robot.xml")
    assert [(c.name, c.parent) for c in robot.connections] == [
        ("floor::l", "ground"),
        ("j", "floor::l"),
    ]
    alone = read(world(floor))
    assert alone.connections[0].joint == ax.Fixed()


def test_joints_of_static_models_hold_nothing(read):
    robot = read(model("<static>1</static>", link("a"), link("b"), joint("j", "a", "b")))
    assert [(c.child, c.joint) for c in robot.connections] == [("a", ax.Fixed()), ("b", ax.Fixed())]
    assert "1 joint" in read.told[0]


def test_included_files_are_limited_together(read, monkeypatch):
    (read.path / "part.sdf").write_text(model(link("l"), name="part"))
    monkeypatch.setattr("axode.formats.sdf.sdf_files.MAX_BYTES", 10)
    found = faults(read, model(link("a"), "<include><uri>part.sdf</uri></include>"))
    assert "the included files have more than 0 MiB" in found[0]


def test_includes_are_found_in_the_folder(read):
    part = model(link("l"), name="part", version="1.6")
    (read.path / "part").mkdir()
    (read.path / "part" / "model.sdf").write_text(part.replace("0 0 0 0 0 0", "0 0 1 0 0 0"))
    (read.path / "part" / "new.sdf").write_text(part.replace("0 0 0 0 0 0", "0 0 2 0 0 0"))
    include = (
        "<include><uri>{}</uri><name>p</name><pose>1 0 0 0 0 0</pose>{}</include>"
        '<joint name="j" type="fixed"><parent>world</parent><child>p::l</child></joint>'
    )
    for uri in ("model://part", "part", "part/model.sdf", "file://part/model.sdf"):
        robot = read(model(include.format(uri, "")))
        assert [(b.name, c.at) for b, c in zip(robot.bodies, robot.connections, strict=True)] == [
            ("p::l", (1, 0, 1))
        ]
    config = '<model><sdf version="1.4">model.sdf</sdf><sdf version="1.6">new.sdf</sdf></model>'
    (read.path / "part" / "model.config").write_text(config)
    robot = read(model(include.format("model://part", "")))
    assert robot.connections[0].at == (1, 0, 2)
    placed = include.format("model://part", "<placement_frame>l</placement_frame>")
    assert read(model(placed)).connections[0].at == (1, 0, 0)
    # from a folder beside the model's, if it is allowed
    inner = model(include.format("model://part", ""))
    robot = read(inner, name="robot/robot.sdf", folder=read.path)
    assert [b.name for b in robot.bodies] == ["p::l"]
    merged = inner.replace("<include>", '<include merge="true">').replace("p::l", "l")
    robot = read(merged, name="robot/robot.sdf", folder=read.path)
    assert [b.name for b in robot.bodies] == ["l"]


def test_includes_that_cannot_be_read(read):
    def included(uri):
        return f"<include><uri>{uri}</uri></include>"

    (read.path / "outside.sdf").write_text(model(link("l")))
    text = model(link("a"), included("../outside.sdf"), included("https://x.org/robot"))
    found = faults(read, text, name="in/robot.sdf")
    assert "outside.sdf is outside of the folder" in found[0]
    assert found[1].endswith(
        "https://x.org/robot is not fetched; put the model into the folder, and include model://name"
    )
    found = faults(read, model(included("model://x"), included("")))
    assert "there is no model model://x in" in found[0]
    assert found[1].endswith("[include] has no <uri>")
    text = world(included("model://sun"), included("model://x"), nested("m", link("a")))
    assert [b.name for b in read(text).bodies] == ["a"]
    assert "models that are not in the folder" in read.told[0]
    assert "include model://x (line 3) (there is no model model://x in" in read.told[0]
    assert "1 include" in read.told[0]
    assert len(faults(read, text, strict=True)) == 1
    found = faults(read, world(included("model://x")))
    assert "has no <model> with a <link>" in found[0] and "there is no model" in found[1]
    (read.path / "self.sdf").write_text(model(included("self.sdf"), name="s"))
    found = faults(read, model(included("self.sdf")))
    assert found[0].endswith("the model includes itself (in " + f"{read.path.name}/self.sdf)")
    for name, text, message in (
        ("robot.urdf", "<robot/>", "robot.urdf is no SDF: its outermost element is <robot>"),
        ("text.sdf", "robot", "text.sdf is no XML"),
        ("empty.sdf", '<sdf version="1.9"/>', "empty.sdf holds no <model>"),
    ):
        (read.path / name).write_text(text)
        assert message in faults(read, model(included(name)))[0]
    (read.path / "two.sdf").write_text(f'<sdf version="1.9">{nested("a", link("l")) * 2}</sdf>')
    read(model(included("two.sdf")))
    assert "two.sdf holds 2 models -> the first is read" in read.told[0]


# what is not read --------------------------------------------------------------------------------


def test_what_is_left_out_is_listed_and_strict_refuses_it(read):
    more = (
        '<sensor name="s" type="imu"/><light name="l" type="point"/><enable_wind>1</enable_wind>'
        "<velocity_decay><linear>0.1</linear></velocity_decay><kinematic>true</kinematic>"
        "<inertail/>"
    )
    limits = "<limit><lower>-1</lower><upper>1</upper><velocity>2</velocity></limit>"
    ends = joint("j", "world", "a", Z.replace("</axis>", limits + "</axis>") + "<physics/>")
    rest = '<plugin name="p" filename="f"/><drake:linear_bushing_rpy/><gripper name="g"/>'
    text = model(link("a", more=more), ends, rest)
    read(text)
    assert read.kinds == [OmissionWarning]
    assert read.told[0].splitlines() == [
        "robot.sdf: left out (strict=True refuses what is listed with its line):",
        "  plugins: plugin p (line 5) (of model robot)",
        "  bushings and other forces between links (add_spring, add_damper): "
        "drake:linear_bushing_rpy (line 5) (of model robot)",
        "  generated and attached parts, and saved states: gripper g (line 5) (of model robot)",
        "  sensors (measure names quantities of the state): sensor s (line 3) (of link a)",
        "  forces of air and water: enable_wind (line 3) (of link a), velocity_decay (line 3) (of "
        "link a)",
        "  elements that are not understood: inertail (line 3) (did you mean <inertial>?)",
        "  links that other programs move (kinematic): kinematic (line 3) (of link a)",
        "  limits of joints and tendons: joint j (line 4) (positions and speeds)",
        "  only for pictures, and marks: 1 light",
        "  settings and data of other programs: 1 physics",
    ]
    assert len(faults(read, text, strict=True)) == 9
    pictures = link("a", more='<light name="l" type="point"/>')
    assert read(model(pictures), strict=True).bodies[0].name == "a"


def test_nothing_inside_joints_is_lost(read):
    damped = "<axis><dynamics><damping>1</damping></dynamics></axis>"
    misspelt = (
        '<axis><xyz expresed_in="a">0 0 1</xyz><dynamics><dampnig>1</dampnig></dynamics>'
        "<limit><efort>1</efort><stiffness>1</stiffness></limit></axis>"
        '<axis2/><pose relativ_to="a">0 0 0 0 0 0</pose>'
    )
    inertia = "<inertial><inertia><ixxx>1</ixxx></inertia><mass>1</mass></inertial>"
    parts = [link("a"), f'<link name="b">{inertia}</link>']
    robot = read(model(*parts, joint("j", "a", "b", damped, "ball")))
    assert not robot.dampers
    assert "damping of joints with several speeds" in read.told[0]
    assert "ixxx (line 4)" in read.told[0]
    read(model(*parts, joint("j", "a", "b", misspelt)))
    assert "unknown attribute 'expresed_in'. Attributes: expressed_in." in read.told[0]
    assert "unknown attribute 'relativ_to'. Attributes: relative_to," in read.told[0]
    for text in ("dampnig (line 4) (did you mean <damping>?)", "efort (line 4)", "axis2 (line 4)"):
        assert text in read.told[1]


def test_all_faults_are_reported_at_once(read):
    text = model(
        '<link name="a">\n<pose>0 0 0 0 0</pose><inertial><mass>1 kg</mass></inertial></link>\n',
        '<link name="b"><pose relative_to="x">0 0 0 0 0 0</pose></link>\n',
        '<link name="b"/><link/><link name="__b__"/>\n',
        joint("j", "a", "c", kind="revolut"),
        joint("k", "a", "", Z.replace("0 0 1", "0 0 0")),
        joint("l", "a", "b", "<axis><xyz>0 0 0</xyz></axis><pose>a</pose>"),
        joint("m", "a", "a"),
        joint("n", "a", "b", "<thread_pitch>0</thread_pitch>", "screw"),
        '<frame name="f" attached_to="y"/>\n',
        "<pose rotation_format='x'>0 0 0 0 0 0</pose>\n",
        '<static>maybe</static><joint name="q" type=""/>\n',
    )
    found = faults(read, text)
    for message in (
        "line   4  [link.a] pose: expected six numbers, got '0 0 0 0 0'",
        "line   4  [link.a] mass: expected a number, got '1 kg'",
        "line   5  [link.b] relative_to: unknown frame 'x'. Names: __model__, a, b, j, k, l, m,",
        'line   6  [link."robot::b"] line 5 has this name already; names are unique',
        'line   6  a link has no name="..."',
        "line   6  [link.\"robot::__b__\"] the name '__b__' is reserved; choose another",
        "line   7  [joint.j] type: unknown type 'revolut'. Types: revolute, continuous, prismatic,",
        "line   7  [joint.j] child: unknown frame 'c'. Names: __model__, a, b,",
        "line   8  [joint.k] child: is missing; name a link: <child>...</child>",
        "line   9  [joint.l] axis xyz: points nowhere; give a direction such as 0 0 1",
        "line   9  [joint.l] pose: expected six numbers, got 'a'",
        "line  10  [joint.m] child: a joint needs two different links",
        "line  11  [joint.n] thread_pitch: must not be 0; <screw_thread_pitch> is in m per turn",
        "line  12  [frame.f] attached_to: unknown frame 'y'. Names: __model__, a,",
        "line  13  [model.robot] pose: rotation_format is euler_rpy or quat_xyzw, and degrees is",
        "line  14  [model.robot] static: expected true or false, got 'maybe'",
        "line  14  [joint.q] type: is missing. Types: revolute,",
    ):
        assert any(line.startswith(message) for line in found), (message, found)


def test_frames_in_a_ring_are_refused(read):
    one = '<frame name="f"><pose relative_to="g">0 0 0 0 0 0</pose></frame>'
    two = '<frame name="g"><pose relative_to="f">0 0 0 0 0 0</pose></frame>'
    found = faults(read, model(link("a"), one + two))
    assert "[frame.g] relative_to: poses are relative to each other in a ring: f, g" in found[0]
    one, two = '<frame name="f" attached_to="g"/>', '<frame name="g" attached_to="f"/>'
    found = faults(read, model(link("a"), one + two))
    assert any("frames are attached to each other in a ring: f, g" in line for line in found)
    # a chain of thousands is no ring, and needs no stack of Python's
    chain = [f'<frame name="f{k}" attached_to="f{k + 1}"/>' for k in range(3000)]
    robot = read(model(link("a"), *chain, '<frame name="f3000" attached_to="a"/>'))
    assert len(robot.bodies) == 1


def test_names_that_a_mechanism_cannot_have_are_changed(read):
    robot = read(model(link("ground"), link("[a"), joint("j", "ground", "[a")))
    assert [b.name for b in robot.bodies] == ["ground_", "_[a"]
    assert "'ground' is the world; choose another name -> called 'ground_'" in read.told[0]
    old = model(link("a"), joint("a", "world", "a"), version="1.6")
    assert [c.name for c in read(old).connections] == ["a"]
    assert "line 3 has this name already" in faults(read, old.replace("1.6", "1.7"))[0]
    assert read(model(link("a"), joint("world", "world", "a"), version="1.4")).connections
    assert "'world' is reserved" in faults(read, model(link("world")))[0]


def test_files_that_are_no_sdf(read, monkeypatch):
    def refused(text, **options):
        with pytest.raises(FileError) as caught:
            read(text, **options)
        return str(caught.value).replace(f"{read.path}/", "")

    assert refused("<gazebo/>") == (
        "robot.sdf is no SDF: its outermost element is <gazebo>.\n  Convert it with Gazebo's own "
        "tool: gz sdf --print robot.sdf > new.sdf"
    )
    assert "robot.sdf is SDF 1.2, and versions from 1.3 on are read." in refused(
        model(link("a"), version="1.2")
    )
    assert "a document type declaration" in refused('<!DOCTYPE a [<!ENTITY b "c">]>' + model())
    assert "not valid XML" in refused("<sdf>")
    deep = "<a>" * 200 + "</a>" * 200
    assert "elements are nested more than 150 deep, as in no robot." in refused(model(deep))
    inside = link("a")
    for _ in range(40):
        inside = nested("m", inside)
    assert "models are nested more than 30 deep." in refused(model(inside))
    files = "axode.formats.sdf.sdf_files"
    monkeypatch.setattr(f"{files}.MAX_ELEMENTS", 10)
    assert "more than 10 elements, with all includes." in refused(model(*map(link, "abcd")))
    monkeypatch.undo()
    monkeypatch.setattr("axode.formats.sdf.sdf.MAX_FRAMES", 10)
    chain = [f"<frame name='f{k}' attached_to='f{k + 1}'/>" for k in range(8)]
    assert "has 12 models, links, joints and frames, and files of at most 10 are read." in refused(
        model(link("a"), *chain)
    )
    monkeypatch.undo()
    monkeypatch.setattr(f"{files}.MAX_INCLUDES", 1)
    include = "<include><uri>model://x</uri></include>"
    assert "more than 1 models are included." in refused(world(include, include))
    assert faults(read, "<sdf version='1.9'><world/><world/></sdf>")[0].endswith(
        "a second <world>; one is read: remove the others"
    )


def test_versions_and_quaternions_that_are_not_as_they_should_be(read):
    pose = '<pose rotation_format="quat_xyzw">0 0 0 0 0 0 2</pose>'
    robot = read(model(pose, link("a"), version="1.99"))
    assert robot.home_coordinates == {}
    assert "version: 1.99 is newer than 1.12 -> read as 1.12" in read.told[0]
    assert "its quaternion has length 2 -> normalized" in read.told[0]
    read(model(link("a"), version=""))
    assert "version: expected a version such as 1.9, got '' -> read as 1.12" in read.told[0]
    zero = pose.replace(" 2<", " 0<")
    assert "must have length 1, got 0" in faults(read, model(zero, link("a")))[0]
    found = faults(read, model(pose.replace("0 2<", "0 inf<"), link("a")))
    assert "pose: must be finite" in found[0]


def test_numbers_that_are_too_large(read):
    large = "1.7e308 1.7e308 1.7e308"
    parts = [
        f'<link name="a"><pose>{large} 1 1 1</pose><inertial><pose>{large} 1 1 1</pose>'
        "<inertia><ixx>1.7e308</ixx><ixy>1.7e308</ixy><iyz>1.7e308</iyz></inertia></inertial></link>",
        f'<link name="b"><pose relative_to="a">{large} 1 1 1</pose>{INERTIAL}</link>',
        joint("j", "a", "b", f"<axis><xyz>{large}</xyz></axis>"),
    ]
    with np.errstate(all="raise"):
        found = faults(read, model(*parts))
    assert any(
        "[link.a] inertia: no moment may be larger than 1e+150 kg m^2" in line for line in found
    )
    assert any("axis xyz: points nowhere" in line for line in found)


def test_numbers_that_are_doubtful(read):
    limit = '<limit><velocity>2"</velocity></limit>'
    bad = f"<axis><dynamics><damping>-1</damping></dynamics>{limit}</axis>"
    flat = INERTIAL.replace(".03", ".5")
    text = model(f'<link name="a">{flat}</link>', joint("j", "world", "a", bad, "continuous"))
    read(text)
    assert "inertia: not physical, Ixx + Iyy < Izz -> used as written" in read.told[0]
    assert "damping: must be >= 0, got -1 -> left out" in read.told[0]
    assert "velocity: expected a number, got '2\"' -> left out" in read.told[0]
    assert len(faults(read, text, strict=True)) == 3
    massless = INERTIAL.replace("<mass>1", "<mass>0")
    read(model(f'<link name="a">{massless}</link>'))
    assert "must be > 0 kg, got 0" in read.told[0]
    parallel = Z + Z.replace("axis", "axis2")
    found = faults(read, model(link("a"), joint("j", "world", "a", parallel, "universal")))
    assert found == ["line   4  [joint.j] second: must not be parallel to the first axis"]


@pytest.mark.parametrize("name", ["four_bar", "agile_eye"])
def test_what_is_written_is_read_back(name, read):
    robot = ax.gallery.build(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text = str(robot.to_sdf())
    again = read(text)
    assert {loop.name for loop in again.loops} == {loop.name for loop in robot.loops}
    first = robot.derive(self_check=False).compile("interpreter")
    names = {c.speeds[0]: f"{c.name}.rate" for c in robot.connections}
    chosen = [names[speed] for speed in first.independent]
    second = again.derive(independent=chosen, self_check=False).compile("interpreter")
    still = np.zeros(len(first.independent))
    # the file is written where the loops are closed, and counts coordinates from there
    wanted = first.forward_dynamics(first.home, still)
    found = second.forward_dynamics(np.zeros(len(second.coordinates)), still)
    np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-8)
