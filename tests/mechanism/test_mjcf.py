"""Mechanisms from MJCF files: what is read, what is listed, and what is refused."""

import sys
import warnings
from pathlib import Path

import mujoco
import pytest

import axode as ax
from axode.errors import FileDeviationWarning, OmissionWarning
from axode.formats.mjcf import mjcf_model, mjcf_text
from axode.formats.xml import reading
from tests.mechanism.mjcf_models import ARM, CART, FLYING, FOUR_BAR, GRIPPER, SEVERAL_JOINTS

LINK = '<body name="link"><joint name="turn"/>{}</body>'
MASS = '<inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/>'
TETRAHEDRON = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n"


def model(inside: str = MASS, after: str = "") -> str:
    """A model of one link."""
    return f"<mujoco>\n<worldbody>\n{LINK.format(inside)}\n</worldbody>\n{after}\n</mujoco>"


def read(place: Path, text: str, **options) -> tuple[ax.Mechanism, list[warnings.WarningMessage]]:
    path = place / "robot.xml"
    path.write_text(text)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        return ax.load(path, **options), caught


def refusal(place: Path, text: str, kind: type[Exception] = ax.FileError, **options) -> str:
    with pytest.raises(kind) as caught:
        read(place, text, **options)
    return str(caught.value)


def listed(caught: list[warnings.WarningMessage]) -> str:
    """What is left out; there is one such warning, and it points here."""
    (only,) = [t for t in left_out(caught) if "look like wheels" not in t]
    return only


def left_out(caught: list[warnings.WarningMessage]) -> list[str]:
    """Texts of the warnings of what is left out; all of them point here."""
    assert all(w.filename == __file__ for w in caught)
    return [str(w.message) for w in caught if w.category is OmissionWarning]


# what is read ------------------------------------------------------------------------------------


def test_motors_have_gears_limits_and_the_armature_of_their_joints(tmp_path):
    robot, _ = read(tmp_path, ARM)
    lift, bend = robot.drives
    assert (lift.name, lift.coordinate, lift.motor.gear, lift.motor.limit) == (
        "lift",
        "shoulder",
        20,
        2,
    )
    assert {c.armature for c in robot.connections if c.joint.dof} == {0.02}
    assert bend.motor.limit is None and lift.motor.rotor_inertia == 0.0
    assert robot.gravity == (0.3, 0, -9.7)
    assert [b.name for b in robot.bodies] == ["upper", "lower", "tool"]


@pytest.mark.parametrize("gear", ["1e200", "1e-320", "-1e-200"])
def test_a_gear_beyond_numbers_is_a_fault_or_nothing(gear, tmp_path):
    text = model(after=f'<actuator><motor joint="turn" gear="{gear}"/></actuator>')
    try:
        robot, _ = read(tmp_path, text.replace('"turn"/>', '"turn" armature="1"/>', 1))
        assert robot.drives[0].motor.gear == float(gear)
    except ax.MechanismError as error:
        assert "[motor.turn]" in str(error)


def test_parts_without_a_name_get_one(tmp_path):
    robot, _ = read(tmp_path, SEVERAL_JOINTS)
    names = [c.name for c in robot.connections]
    assert names == ["x", "z", "pitch", "body2", "body2_", "body2__"]
    assert robot.name == "robot"
    assert robot.home_coordinates == {"x": 0.3, "pitch": 0.2}


def test_the_keyframe_home_is_the_home_configuration(tmp_path):
    keys = (
        '<keyframe><key name="other" qpos="1"/><key name="home" qpos="0.5"/>'
        '<key name="home" qpos="2"/></keyframe>'
    )
    robot, caught = read(tmp_path, model(after=keys))
    assert robot.home_coordinates == {"turn": 0.5}
    assert "positions of 'home': key other (line 5), key home (line 5)" in listed(caught)
    robot, caught = read(tmp_path, model(after=keys.replace('"0.5"', '"0.5 3"')))
    assert "[key.home] qpos: expected 1 numbers, got 2 words -> ignored" in str(caught[0].message)
    robot, _ = read(tmp_path, FLYING)
    assert robot.home_coordinates["fly.z"] == 2


def test_loops_and_couplings(tmp_path):
    bar, _ = read(tmp_path, FOUR_BAR)
    assert [loop.name for loop in bar.loops] == ["pin"]
    gripper, _ = read(tmp_path, GRIPPER)
    assert [(c.name, dict(c.terms)) for c in gripper.couplings] == [
        ("same", {"left": 1.0, "right": -1.5})
    ]
    assert gripper.couplings[0].offset == pytest.approx(0.03)
    assert [(p.coordinate, p.motion) for p in gripper.prescribed] == [("nail", 0.3)]
    assert gripper.gravity == (0, 0, 0)


def test_includes_are_put_in_and_keep_their_lines(tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "link.xml").write_text(
        f"<mujocoinclude>\n{LINK.format(MASS)}\n</mujocoinclude>"
    )
    text = '<mujoco><worldbody><include file="parts/link.xml"/></worldbody></mujoco>'
    robot, caught = read(tmp_path, text)
    assert [body.name for body in robot.bodies] == ["link"] and not caught
    inside = '<joint name="turn" range="0 1"/>'
    part = (tmp_path / "parts" / "link.xml").read_text()
    (tmp_path / "parts" / "link.xml").write_text(part.replace('<joint name="turn"/>', inside))
    _, caught = read(tmp_path, text)
    assert "joint turn (line 2) (in parts/link.xml)" in listed(caught)


def test_a_mesh_is_read_only_where_a_mass_comes_from_it(tmp_path):
    asset = '<compiler meshdir="meshes"/><asset><mesh name="m" file="solid.obj"/></asset>'
    geom = '<geom name="g" type="mesh" mesh="m" quat="2 0 0 0"/>'
    robot, _ = read(tmp_path, model(MASS + geom, asset))
    assert robot.bodies[0].mass == 1 and robot.bodies[0].shape.file == "meshes/solid.obj"
    message = refusal(tmp_path, model(geom, asset), ax.MechanismError)
    assert (
        "line   5  [mesh.m] file: there is no file solid.obj, and the mass of body 'link'"
        in message
    )
    (tmp_path / "meshes").mkdir()
    (tmp_path / "meshes" / "solid.obj").write_text(TETRAHEDRON)
    robot, _ = read(tmp_path, model(geom, asset))
    assert robot.bodies[0].mass == pytest.approx(1000 / 6)


def test_names_that_a_mechanism_cannot_have_are_changed(tmp_path):
    robot, caught = read(tmp_path, model().replace('"link"', '"ground"').replace('"turn"', '"[a]"'))
    assert robot.bodies[0].name == "ground_" and robot.connections[0].name == "_[a]"
    assert "'ground' is the world; choose another name -> called 'ground_'" in str(
        caught[0].message
    )


def test_armature_is_of_the_joint_and_needs_no_motor(tmp_path):
    robot, caught = read(tmp_path, model().replace('"turn"', '"turn" armature="0.1"'))
    assert robot.connections[0].armature == 0.1
    assert not robot.drives and not caught


def test_wheels_are_proposed_and_the_proposals_work(tmp_path):
    robot, caught = read(tmp_path, CART)
    text = left_out(caught)[1]
    assert 'wheels = ["left", "right", "ball"]' in text
    calls = [line.strip() for line in text.split("\n") if "robot.add" in line]
    assert calls == [
        "robot.add_contact('left', ax.Rolling(0.1), body='left', axis=(0, 1, 0))",
        "robot.add_contact('right', ax.Rolling(0.1), body='right', axis=(0, 1, 0))",
        "robot.add_contact('ball', ax.Ball(0.03), body='ball')",
    ]
    for call in calls:
        exec(call, {"ax": ax, "robot": robot})
    robot.check()
    raised = CART.replace('size="5 5 0.1"', 'size="5 5 0.1" pos="0 0 0.001"')
    _, caught = read(tmp_path, raised)
    assert "ground=ax.Plane(point=(0, 0, 0.001), normal=(0, 0, 1)))" in left_out(caught)[1]


# what is listed ----------------------------------------------------------------------------------

LEFT_OUT = {
    "limits of joints": ('<joint axis="1 0 0" range="0 1"/>', ""),
    "dry friction": ('<joint axis="1 0 0" frictionloss="1"/>', ""),
    "(stiffness -2)": ('<joint axis="1 0 0" stiffness="-2"/>', ""),
    "(armature -1e-12)": ('<joint axis="1 0 0" armature="-1e-12"/>', ""),
    "(damping -3)": (
        "",
        '<tendon><fixed damping="-3"><joint joint="turn" coef="1"/></fixed></tendon>',
    ),
    "contacts of geoms": ('<geom size="1"/>', ""),
    "springs that are not linear": (f'<body><joint type="ball" stiffness="2"/>{MASS}</body>', ""),
    "compensation of weight": (f'<body name="b" gravcomp="1"><joint/>{MASS}</body>', ""),
    "deformable and generated parts": (
        '<composite type="cable" prefix="c" curve="s" count="5 1 1"><geom size="1"/></composite>',
        "",
    ),
    "sensors": ("", '<sensor><jointpos joint="turn"/></sensor>'),
    "data for other programs": ("", '<custom><numeric name="n" data="1"/></custom>'),
    "forces of air and water": ("", '<option density="1.2"/>'),
    "control laws": ("", '<actuator><position joint="turn" kp="3"/></actuator>'),
    "limits of forces": (
        "",
        '<actuator><motor joint="turn" ctrllimited="true" ctrlrange="0 1"/></actuator>',
    ),
    "actuators that are no motor": (
        "",
        '<actuator><adhesion body="link" ctrlrange="0 1"/></actuator>',
    ),
    "equality constraints": (
        "",
        '<equality><connect body1="link" anchor="0 0 1" active="false"/></equality>',
    ),
    "tendons along paths": (
        '<site name="s"/><site name="t" pos="1 0 0"/>',
        '<tendon><spatial><site site="s"/><site site="t"/><site site="s"/></spatial></tendon>',
    ),
    "keyframes": ("", '<keyframe><key name="home" qpos="1" qvel="2"/></keyframe>'),
    "switched off": (
        "",
        '<option actuatorgroupdisable="0"/><actuator><motor joint="turn"/></actuator>',
    ),
    "delay 0.1": ("", '<actuator><motor joint="turn" delay="0.1" nsample="3"/></actuator>'),
    "(user)": ('<site user="1"/>', ""),
    "of joints and tendons": (
        "",
        '<tendon><fixed actuatorfrcrange="-1 1"><joint joint="turn" coef="1"/></fixed></tendon>',
    ),
    "height fields": ("", '<asset><hfield name="h" nrow="2" ncol="2" size="1 1 1 1"/></asset>'),
    "plugins": ("", '<extension><plugin plugin="mujoco.pid"/></extension>'),
}


@pytest.mark.parametrize("what", LEFT_OUT)
def test_what_is_left_out_is_listed_and_strict_refuses_it(what, tmp_path):
    inside, after = LEFT_OUT[what]
    text = model(MASS + inside, after)
    robot, caught = read(tmp_path, text)
    assert what in listed(caught) and "line" in listed(caught)
    assert "link" in [body.name for body in robot.bodies]
    message = refusal(tmp_path, text, ax.MechanismError, strict=True)
    assert what in message and "cannot be kept" in message


def test_a_long_list_is_shortened_in_the_warning_and_complete_in_its_attribute(tmp_path):
    sensors = "".join(f'<jointpos name="s{k}" joint="turn"/>' for k in range(20))
    text = model(MASS, f"<sensor>{sensors}</sensor>")
    _, caught = read(tmp_path, text)
    assert "jointpos s2 (line 5), ... (20 in all)\n" in listed(caught)
    assert listed(caught).endswith("strict=True lists every one of them (--option strict=true)")
    (names,) = caught[0].message.left_out.values()
    assert len(names) == 20 and names[-1].startswith("jointpos s19 (line")
    assert "jointpos.s19" in refusal(tmp_path, text, ax.MechanismError, strict=True)


def test_pictures_are_listed_and_strict_does_not_refuse_them(tmp_path):
    text = model(MASS + '<camera/><light/><light pos="0 0 1"/>', "<visual><rgba/></visual>")
    _, caught = read(tmp_path, text, strict=True)
    assert "only for pictures, and marks: 1 camera, 2 light, 1 rgba" in listed(caught)


def test_what_mujoco_warns_of_is_a_deviation(tmp_path):
    _, caught = read(tmp_path, model(MASS + "<joint/>"))
    assert [w.category for w in caught] == [FileDeviationWarning]
    assert "MuJoCo warns: Inertia matrix is too close to singular" in str(caught[0].message)
    assert "-> used as written" in str(caught[0].message)


def test_mujoco_writes_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    robot, _ = read(tmp_path, model(after='<compiler settotalmass="7"/>'))
    assert robot.bodies[0].mass == pytest.approx(7)
    assert [path.name for path in tmp_path.iterdir()] == ["robot.xml"]


# what is refused ---------------------------------------------------------------------------------


def test_mujoco_refuses_with_the_line_of_the_file(tmp_path):
    message = refusal(tmp_path, model("<!-- a\n comment -->\n<geom size='x'/>"))
    assert "robot.xml, line 5: MuJoCo cannot read <geom>, " in message
    assert "line 3: MuJoCo cannot read <body> 'link', mass and inertia" in refusal(
        tmp_path, model("")
    )


def test_a_failure_inside_mujoco_does_not_stop_the_next_model(tmp_path):
    """After some exceptions, warnings of MuJoCo never return in the thread that met them."""
    broken = model(after='<equality><connect body1="ball" anchor=" "/></equality>')
    assert "MuJoCo cannot read" in refusal(tmp_path, broken)
    _, caught = read(tmp_path, model(after='<option wind="nan 0 0"/>'))
    assert "XML contains a 'NaN'" in str(caught[0].message)


def test_no_file_outside_of_the_folder_is_opened(tmp_path):
    inner = tmp_path / "robot"
    inner.mkdir()
    (tmp_path / "part.xml").write_text(f"<mujoco>{LINK.format(MASS)}</mujoco>")
    text = '<mujoco><worldbody><include file="../part.xml"/></worldbody></mujoco>'
    assert "../part.xml is outside of the folder" in refusal(inner, text)
    (inner / "link.xml").symlink_to(tmp_path / "part.xml")
    assert "link.xml is outside of the folder" in refusal(inner, text.replace("../part", "link"))
    robot, _ = read(inner, text, folder=tmp_path)
    assert robot.bodies[0].name == "link"
    asset = '<asset><mesh name="m" file="/etc/passwd.obj"/></asset>'
    message = refusal(inner, model('<geom type="mesh" mesh="m"/>', asset), ax.MechanismError)
    assert "/etc/passwd.obj is outside of the folder" in message


def test_includes_that_cannot_be_read(tmp_path):
    text = '<mujoco>\n<include file="{}"/></mujoco>'
    missing = refusal(tmp_path, text.format("none.xml"))
    assert "line 2: there is no file none.xml to include" in missing
    (tmp_path / "part.xml").write_text('<mujoco><include file="part.xml"/></mujoco>')
    message = refusal(tmp_path, text.format("part.xml"))
    assert "line 1 of part.xml: <include> cannot be read: it is included already" in message
    assert 'it has no file="..."' in refusal(tmp_path, text.replace('"{}"', '""'))
    (tmp_path / "part.xml").write_text("solid = 1")
    assert "part.xml is no XML" in refusal(tmp_path, text.format("part.xml"))
    assert "not valid XML" in refusal(tmp_path, "<mujoco><worldbody></mujoco>")
    part = refusal(tmp_path, "<mujocoinclude/>")
    assert "is a part of an MJCF model: its outermost element is <mujocoinclude>" in part


def test_models_within_models_are_refused_with_a_remedy_that_works(tmp_path):
    (tmp_path / "m.xml").write_text(model())
    attached = f'<body><joint/>{MASS}<attach model="m" prefix="m_" body="link"/></body>'
    text = model(after='<asset><model name="m" file="m.xml"/></asset>')
    text = text.replace("</worldbody>", f"{attached}</worldbody>")
    message = refusal(tmp_path, text, ax.MechanismError)
    assert message.count("models attached to others are not read; write one file of them") == 2
    remedy = message.rsplit("first: ", 1)[1].splitlines()[0]
    files = {"path": str(tmp_path / "robot.xml"), "new": str(tmp_path / "new.xml")}
    eval(remedy, {"mujoco": mujoco, **files})
    robot = ax.load(tmp_path / "new.xml")
    assert "m_link" in [body.name for body in robot.bodies]


def test_bodies_that_mujoco_would_not_see_are_refused(tmp_path):
    """MuJoCo itself forgets them without a message."""
    lost = '<body name="lost"/><frame><body name="too"/></frame>'
    message = refusal(tmp_path, model(after=lost), ax.MechanismError)
    assert "[body.lost] a <body> outside of <worldbody> is not part of the model" in message
    assert "[frame] a <frame> outside of <worldbody> is not part of the model" in message
    part = "<mujoco><asset/></mujoco>"
    assert "has no body; if this is a part of a model, load the file that includes it" in refusal(
        tmp_path, part, ax.MechanismError
    )


def test_lengths_of_muscles_are_not_searched_for(tmp_path):
    """MuJoCo moves each muscle for as long as the file says; nothing here needs to know."""
    long = '<compiler><lengthrange mode="all" inttotal="1e9" timestep="1e-9"/></compiler>'
    muscle = '<actuator><muscle joint="turn"/></actuator>'
    assert len(read(tmp_path, model(after=long + muscle))[0].bodies) == 1


@pytest.mark.parametrize("key", ["class", "childclass"])
def test_formats_in_names_of_classes_do_not_reach_mujoco(tmp_path, key):
    """MuJoCo prints the unknown class by itself as the format: %n ended the process."""
    tag = "geom" if key == "class" else "body"
    said = refusal(tmp_path, model(MASS + f'<{tag} {key}="%s%n"/>'))
    assert "MuJoCo takes the % for a format" in said


def test_sizes_are_limited(tmp_path, monkeypatch):
    deep = "<frame>" * 200 + "</frame>" * 200
    assert "elements are nested more than 150 deep" in refusal(tmp_path, model(MASS + deep))
    for count in ("4999", "999999", "1000000000", " 900000", "+900000", "\t0000900000"):
        many = model(MASS + f'<replicate count="{count}"><site/></replicate>')
        assert "at most 2000 copies" in refusal(tmp_path, many)
    many = model(MASS + '<replicate count="200">' * 2 + "<site/>" + "</replicate>" * 2)
    assert "more than 30000 elements, with all copies" in refusal(tmp_path, many)
    many = model(MASS + '<replicate count="80">' * 2 + "<body/>" + "</replicate>" * 2)
    assert "more than 5000 bodies, with all copies" in refusal(tmp_path, many)
    assert "more than 5000 bodies" in refusal(tmp_path, model(MASS + "<body/>" * 5001))
    fine = '<asset><mesh name="m" builtin="supersphere" params="{} 1 1"/></asset>'
    assert "10 vertices are one" in refusal(tmp_path, model(MASS, after=fine.format(" +4e3")))
    assert "must be finite numbers" in refusal(tmp_path, model(MASS, after=fine.format("inf")))
    (tmp_path / "part.xml").write_text("<mujoco/>")
    monkeypatch.setattr(mjcf_text, "MAX_BYTES", 8)
    included = model(after='<include file="part.xml"/>')
    assert "the included files have more than 0 MiB." in refusal(tmp_path, included)
    monkeypatch.undo()
    entity = '<!DOCTYPE mujoco [<!ENTITY a "b">]>' + model()
    assert "a document type declaration, which is not read" in refusal(tmp_path, entity)
    (tmp_path / "solid.obj").write_text(TETRAHEDRON)
    asset = '<asset><mesh name="m" file="solid.obj"/></asset>'
    solid = model('<geom type="mesh" mesh="m"/>', asset)
    monkeypatch.setattr(mjcf_model, "ALL_MESHES", 10)
    assert "the meshes that masses come from are larger than 0 MiB" in refusal(tmp_path, solid)
    monkeypatch.setattr(reading, "MAX_FILE", 10)
    assert "solid.obj is larger than" in refusal(tmp_path, solid, ax.MechanismError)


def test_without_mujoco_the_remedy_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    message = refusal(tmp_path, model(), ax.errors.NotApplicable)
    assert "reading MJCF needs MuJoCo, which is not installed" in message


def test_a_base_is_for_urdf_files(tmp_path):
    message = refusal(tmp_path, model(), ax.errors.InvalidArgument, base="floating")
    assert "a free joint, or none, holds the first body" in message


@pytest.mark.parametrize("joint", ['type="slide" ref="-inf"', 'type="hinge" pos="inf 0 0"'])
def test_numbers_that_are_not_finite_are_faults_alone(tmp_path, joint):
    """NumPy's own warnings about them stay inside."""
    text = model().replace('<joint name="turn"/>', f'<joint name="turn" {joint}/>')
    (tmp_path / "robot.xml").write_text(text)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        with pytest.raises(ax.MechanismError, match="must be finite"):
            ax.load(tmp_path / "robot.xml")
