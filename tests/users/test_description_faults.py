"""Every fault a description can have, by its text."""

import math

import numpy as np
import pytest

import axode as ax
from axode.mechanism.values.expressions import Time

NAN, INF = math.nan, math.inf
L = ax.Parameter("l", 0.4)


def arm():
    """A sound mechanism to spoil: a base in the plane, an arm on it, a wheel."""
    m = ax.Mechanism("arm")
    m.add_body("base", mass=1, inertia=(1, 1, 1))
    m.add_body("rod", mass=1, inertia=(1, 1, 1))
    m.add_joint("plane", ax.Planar(), parent="ground", child="base")
    m.add_joint("elbow", ax.Revolute("y"), parent="base", child="rod")
    return m


def spoil(**changes):
    """The arm with one more body and joint, with whatever is wrong with them."""
    body = {"mass": 1.0, "inertia": (1, 1, 1)}
    joint = {"parent": "rod", "child": "tool"}
    kind = changes.pop("joint", ax.Revolute())
    body |= {key: changes.pop(key) for key in ("mass", "com", "inertia", "shape") if key in changes}

    def apply(m):
        m.add_body("tool", **body)
        m.add_joint("wrist", kind, **(joint | changes))

    return apply


def added(method, *args, **kwargs):
    return lambda m: getattr(m, method)(*args, **kwargs)


BODIES = {
    "negative mass": (spoil(mass=-2), "[body.tool] mass: must be > 0 kg, got -2"),
    "no mass": (
        spoil(mass=0),
        "[body.tool] mass: must be > 0 kg, got 0; a massless body has the inertia of a point",
    ),
    "mass nan": (spoil(mass=NAN), "[body.tool] mass: must be > 0 kg, got nan"),
    "mass inf": (spoil(mass=INF), "[body.tool] mass: must be > 0 kg, got inf"),
    "mass by a formula": (
        spoil(mass=L - 1),
        "[body.tool] mass: must be > 0 kg, got -0.6 ('l - 1.0')",
    ),
    "mass without a value": (
        spoil(mass=1 / (L - L)),
        "[body.tool] mass: must be > 0 kg, got nan ('1.0 / (l - l)')",
    ),
    "com nan": (spoil(com=(0, NAN, 0)), "[body.tool] com: must be finite"),
    "com inf": (spoil(com=(0, 0, -INF)), "[body.tool] com: must be finite"),
    "triangle rule": (
        spoil(inertia=(1, 1, 2.5)),
        "[body.tool] inertia: not physical, Ixx + Iyy < Izz",
    ),
    "triangle rule of a tensor": (
        spoil(inertia=[[3, 1.5, 0], [1.5, 3, 0], [0, 0, 0.2]]),
        "[body.tool] inertia: not physical, principal moments 0.2 + 1.5 < 4.5",
    ),
    "negative moment": (
        spoil(inertia=(1, 1, -1)),
        "[body.tool] inertia: must be positive definite, its principal moments are -1, 1, 1",
    ),
    "zero moment": (
        spoil(inertia=(1, 1, 0)),
        "[body.tool] inertia: must be positive definite, its principal moments are 0, 1, 1; for a "
        "point mass or a thin rod use Inertia.point() or Inertia.rod(...), in a file ideal = true",
    ),
    "inertia nan": (spoil(inertia=(1, NAN, 1)), "[body.tool] inertia: must be finite"),
    "empty box": (
        spoil(shape=ax.Box((1, 0, 1))),
        "[body.tool] shape: size along y must be > 0 m, got 0",
    ),
    "negative sphere": (
        spoil(shape=ax.Sphere(-1)),
        "[body.tool] shape: radius must be > 0 m, got -1",
    ),
    "infinite cylinder": (
        spoil(shape=ax.Cylinder(1, INF)),
        "[body.tool] shape: length must be > 0 m, got inf",
    ),
    "cylinder without axis": (
        spoil(shape=ax.Cylinder(1, 1, (0, 0, 0))),
        "[body.tool] shape: axis must be a unit vector, got zero length",
    ),
    "shape at nan": (
        spoil(shape=ax.Sphere(1, (NAN, 0, 0))),
        "[body.tool] shape: at must be finite",
    ),
    "time in a mass": (
        spoil(mass=1 + Time()),
        "[body.tool] mass: time may stand only in a prescribed motion",
    ),
    "no joint": (
        added("add_body", "lost", mass=1, inertia=(1, 1, 1)),
        "[body.lost] no joint holds it; make it the child of a joint, of a Floating joint on the "
        "ground if it is free",
    ),
    "ground": (
        added("add_body", "ground", mass=1, inertia=(1, 1, 1)),
        "[body.ground] 'ground' is the world; choose another name",
    ),
}
JOINTS = {
    "long axis": (
        spoil(joint=ax.Revolute((0, 3, 4))),
        "[joint.wrist] axis: must be a unit vector, got length 5; along it the unit one is "
        "(0, 0.6, 0.8)",
    ),
    "no axis": (
        spoil(joint=ax.Prismatic((0, 0, 0))),
        "[joint.wrist] axis: must be a unit vector, got zero length",
    ),
    "axis nan": (spoil(joint=ax.Planar((NAN, 0, 1))), "[joint.wrist] axis: must be finite"),
    "pitch inf": (spoil(joint=ax.Screw("z", INF)), "[joint.wrist] pitch: must be finite"),
    "parallel axes": (
        spoil(joint=ax.Universal("x", "-x")),
        "[joint.wrist] second: must not be parallel to the first axis",
    ),
    "at nan": (spoil(at=(0, NAN, 0)), "[joint.wrist] at: must be finite"),
    "child_at inf": (spoil(child_at=(INF, 0, 0)), "[joint.wrist] child_at: must be finite"),
    "long quaternion": (
        spoil(rotation=(1, 1, 0, 0)),
        "[joint.wrist] rotation: the quaternion w, x, y, z must have length 1, got 1.41421",
    ),
    "skew matrix": (
        spoil(rotation=[[1, 1, 0], [0, 1, 0], [0, 0, 1]]),
        "[joint.wrist] rotation: the matrix is not orthogonal",
    ),
    "mirror": (
        spoil(child_rotation=np.diag([1, 1, -1])),
        "[joint.wrist] child_rotation: the matrix is a reflection (determinant -1), not a rotation",
    ),
    "rotation nan": (spoil(rotation=(NAN, 0, 0)), "[joint.wrist] rotation: must be finite"),
    "unknown parent": (
        spoil(parent="rood"),
        "[joint.wrist] parent: unknown body 'rood'. Bodies: ground, base, rod, tool. Did you "
        "mean 'rod'?",
    ),
    "unknown child": (
        added("add_joint", "extra", ax.Revolute(), parent="rod", child="hand"),
        "[joint.extra] child: unknown body 'hand'. Bodies: ground, base, rod.",
    ),
    "used twice": (
        added("add_joint", "elbow", ax.Revolute(), parent="base", child="rod"),
        "[joint.elbow] the name is used 2 times; names are unique",
    ),
    "floating loop": (
        added("add_loop", "tip", ax.Floating(), parent="base", child="rod"),
        "[loop.tip] joint: a floating loop closes nothing; leave it out or choose another joint",
    ),
    "named loop": (
        added("add_joint", "tip", ax.Revolute(), parent="ground", child="rod", coordinates=["q"]),
        "[loop.tip] coordinates: a joint that closes a loop has no coordinates; name those of the "
        "joints in the tree",
    ),
}
ROLLS = {"mass": 1, "inertia": (1, 1, 1), "on": "base"}
WHEELS = {
    "negative radius": (
        added("add_wheel", "w", ax.Rolling(-0.1), **ROLLS),
        "[wheel.w] radius: must be > 0 m, got -0.1",
    ),
    "no radius": (
        added("add_wheel", "w", ax.Omni(0), **ROLLS),
        "[wheel.w] radius: must be > 0 m, got 0",
    ),
    "radius nan": (
        added("add_contact", "c", ax.Ball(NAN), body="rod"),
        "[contact.c] radius: must be > 0 m, got nan",
    ),
    "slip": (
        added("add_wheel", "w", ax.Rolling(1, lateral="loose"), **ROLLS),
        "[wheel.w] lateral: must be 'rigid' or 'free', got 'loose'",
    ),
    "roller angle in degrees": (
        added("add_wheel", "w", ax.Mecanum(1, 45), **ROLLS),
        "[wheel.w] roller_angle: is in radians and must lie within one turn, got 45",
    ),
    "rollers along the axis": (
        added("add_wheel", "w", ax.Mecanum(1, 0.0), **ROLLS),
        "[wheel.w] roller_angle: rollers along the wheel's axis cannot drive; give an angle in "
        "radians such as 0.785 (45 degrees), or use a rolling wheel with longitudinal 'free'",
    ),
    "roller angle inf": (
        added("add_wheel", "w", ax.Mecanum(1, INF), **ROLLS),
        "[wheel.w] roller_angle: must be finite",
    ),
    "long axis": (
        added("add_wheel", "w", ax.Rolling(1), axis=(0, 2, 0), **ROLLS),
        "[joint.w] axis: must be a unit vector, got length 2; along it the unit one is (0, 1, 0)",
    ),
    "long axis without an inertia": (
        added("add_wheel", "w", ax.Rolling(1), axis=(0, 2, 0), mass=1, on="base"),
        "[joint.w] axis: must be a unit vector, got length 2; along it the unit one is (0, 1, 0)",
    ),
    "axis of a contact": (
        added("add_contact", "c", ax.Rolling(1), body="rod", axis=(0, 0, 0)),
        "[contact.c] axis: must be a unit vector, got zero length",
    ),
    "unknown carrier": (
        added("add_contact", "c", ax.Rolling(1), body="bas"),
        "[contact.c] body: unknown body 'bas'. Bodies: ground, base, rod. Did you mean 'base'?",
    ),
    "unknown ground": (
        added("add_wheel", "w", ax.Rolling(1), ground="plate", **ROLLS),
        "[wheel.w] ground: unknown body 'plate'. Bodies: ground, base, rod, w.",
    ),
    "on itself": (
        added("add_contact", "c", ax.Rolling(1), body="rod", ground="rod"),
        "[contact.c] ground: a wheel cannot roll on itself",
    ),
    "bad plane": (
        added("add_wheel", "w", ax.Rolling(1), ground=ax.Plane((0, 0, 2)), **ROLLS),
        "[wheel.w] ground: normal must be a unit vector, got length 2; along it the unit one is "
        "(0, 0, 1)",
    ),
    "plane at nan": (
        added("add_wheel", "w", ax.Rolling(1), ground=ax.Plane(point=(0, 0, NAN)), **ROLLS),
        "[wheel.w] ground: point must be finite",
    ),
    "contact at inf": (
        added("add_contact", "c", ax.Rolling(1), body="rod", at=(INF, 0, 0)),
        "[contact.c] at: must be finite",
    ),
}
ENDS = {"parent": "base", "child": "rod"}
FORCES = {
    "several speeds": (
        added("add_motor", "m", "plane"),
        "[motor.m] joint: joint 'plane' has several speeds, name one of them: plane.surge, "
        "plane.sway, plane.yaw_rate",
    ),
    "unknown joint": (
        added("add_motor", "m", "elbw"),
        "[motor.m] joint: unknown joint or speed 'elbw'. Speeds: plane.surge, plane.sway, "
        "plane.yaw_rate, elbow.rate. Did you mean 'elbow'?",
    ),
    "limit": (added("add_motor", "m", "elbow", limit=0), "[motor.m] limit: must be > 0, got 0"),
    "gear": (
        added("add_motor", "m", "elbow", gear=0),
        "[motor.m] gear: must be a number other than 0, got 0",
    ),
    "rotor": (
        added("add_motor", "m", "elbow", rotor_inertia=-1),
        "[motor.m] rotor_inertia: must be >= 0 kg m^2, got -1",
    ),
    "rotor nan": (
        added("add_motor", "m", "elbow", rotor_inertia=NAN),
        "[motor.m] rotor_inertia: must be >= 0 kg m^2, got nan",
    ),
    "damper": (
        added("add_damper", "d", "elbow", coefficient=-1),
        "[damper.d] coefficient: must be >= 0, got -1",
    ),
    "damper nan": (
        added("add_damper", "d", "elbow", coefficient=NAN),
        "[damper.d] coefficient: must be finite",
    ),
    "dashpot": (
        added("add_damper", "d", coefficient=-1, **ENDS),
        "[damper.d] coefficient: must be >= 0, got -1",
    ),
    "spring": (
        added("add_spring", "s", "elbow", stiffness=-1),
        "[spring.s] stiffness: must be >= 0, got -1",
    ),
    "rest": (
        added("add_spring", "s", "elbow", stiffness=1, rest=INF),
        "[spring.s] rest: must be finite",
    ),
    "spring on several coordinates": (
        added("add_spring", "s", "plane", stiffness=1),
        "[spring.s] joint: joint 'plane' has several coordinates, name one of them: plane.x, "
        "plane.y, plane.yaw",
    ),
    "strut": (
        added("add_spring", "s", stiffness=1, damping=-2, **ENDS),
        "[spring.s] damping: must be >= 0, got -2",
    ),
    "strut at nan": (
        added("add_spring", "s", stiffness=1, at=(NAN, 0, 0), **ENDS),
        "[spring.s] at: must be finite",
    ),
    "strut to itself": (
        added("add_spring", "s", stiffness=1, parent="rod", child="rod"),
        "[spring.s] child: it needs two different bodies",
    ),
    "wrench": (
        added("add_wrench", "f", "rods"),
        "[wrench.f] body: unknown body 'rods'. Bodies: ground, base, rod. Did you mean 'rod'?",
    ),
    "wrench frame": (
        added("add_wrench", "f", "rod", frame="tool"),
        "[wrench.f] frame: must be 'world' or 'body', got 'tool'",
    ),
    "wrench at nan": (
        added("add_wrench", "f", "rod", at=(0, 0, NAN)),
        "[wrench.f] at: must be finite",
    ),
    "measure": (
        added("measure", "tip", "postion", body="rod"),
        "[measure.tip] kind: unknown kind 'postion'. Kinds: position, velocity, distance, roll, "
        "pitch, yaw, roll_rate, pitch_rate, yaw_rate, surge, sway, heave. Did you mean "
        "'position'?",
    ),
    "measure of nothing": (
        added("measure", "tip", "position"),
        "[measure.tip] body: unknown body ''. Bodies: ground, base, rod.",
    ),
}
MOTIONS = {
    "unknown": (
        added("prescribe", "elbo", 1.0),
        "[prescribe] elbo: unknown coordinate 'elbo'. Coordinates: plane.x, plane.y, plane.yaw, "
        "elbow. Did you mean 'elbow'?",
    ),
    "nan": (added("prescribe", "elbow", NAN), "[prescribe] elbow: must be finite, got nan"),
    "home": (
        added("set_home", {"plane.z": 1.0}),
        "[home] plane.z: unknown coordinate 'plane.z'. Coordinates: plane.x, plane.y, plane.yaw, "
        "elbow. Did you mean 'plane.y'?",
    ),
    "home nan": (added("set_home", elbow=NAN), "[home] elbow: must be finite"),
    "gravity": (
        lambda m: setattr(m, "gravity", (0.0, INF, 0.0)),
        "[mechanism] gravity: must be three finite numbers",
    ),
    "parameter inf": (
        spoil(com=(ax.Parameter("a", INF) * 0, 0, 0)),
        "[parameters] a: must be finite, got inf",
    ),
    "two defaults": (
        spoil(com=(L, ax.Parameter("l", 0.5), 0)),
        "[parameters] l: has two defaults, 0.4 and 0.5; make the Parameter once and use it in both "
        "places",
    ),
    "line break": (
        lambda m: setattr(m, "name", "a\nb"),
        "[mechanism] name: must be printable text, got 'a\\nb'",
    ),
    "nameless": (added("add_wrench", "", "rod"), "[wrench] a name must be printable text, got ''"),
}
ALL = {
    f"{family}: {case}": pair
    for family, cases in (
        ("body", BODIES),
        ("joint", JOINTS),
        ("wheel", WHEELS),
        ("force", FORCES),
        ("motion", MOTIONS),
    )
    for case, pair in cases.items()
}


def told(mechanism):
    with pytest.raises(ax.MechanismError) as caught:
        mechanism.check()
    first, *rest = str(caught.value).split("\n")
    assert len(rest) == len(caught.value.faults)
    return first, [line.strip() for line in rest]


def test_the_arm_itself_is_sound():
    arm().check()


@pytest.mark.parametrize("case", ALL)
def test_a_fault_is_told(case):
    change, message = ALL[case]
    mechanism = arm()
    change(mechanism)
    first, faults = told(mechanism)
    assert message in faults
    extra = {  # what is wrong with these makes something else wrong as well
        "joint: used twice",
        "motion: line break",
        "motion: parameter inf",
        "wheel: no radius",
    }
    if case not in extra:
        assert faults == [message]
        assert first == f"mechanism '{mechanism.name}' has 1 problem."


def test_all_faults_are_told_at_once_and_counted():
    m = arm()
    m.add_body("tool", mass=-1, com=(NAN, 0, 0), inertia=(1, 1, 5))
    m.add_wheel("w", ax.Rolling(-1), on="bse", mass=1, inertia=(1, 1, 1))
    m.prescribe("shoulder", 0)
    first, faults = told(m)
    assert first == "mechanism 'arm' has 7 problems."
    assert faults == [
        "[body.tool] mass: must be > 0 kg, got -1",
        "[body.tool] com: must be finite",
        "[body.tool] inertia: not physical, Ixx + Iyy < Izz",
        "[wheel.w] radius: must be > 0 m, got -1",
        "[body.tool] no joint holds it; make it the child of a joint, of a Floating joint on the "
        "ground if it is free",
        "[joint.w] parent: unknown body 'bse'. Bodies: ground, base, rod, tool, w. Did you mean "
        "'base'?",
        "[prescribe] shoulder: unknown coordinate 'shoulder'. Coordinates: plane.x, plane.y, "
        "plane.yaw, elbow.",
    ]


def test_nothing_is_derived_from_a_wrong_description():
    m = arm()
    m.add_body("lost", mass=1, inertia=(1, 1, 1))
    with pytest.raises(ax.MechanismError, match=r"\[body.lost\] no joint holds it"):
        m.derive()


def test_an_empty_mechanism_is_told():
    first, faults = told(ax.Mechanism("nothing"))
    assert first == "mechanism 'nothing' has 1 problem."
    assert faults == ["[mechanism] the mechanism has no body; add one and a joint that holds it"]


def test_a_chain_in_the_air_is_told_once_a_body():
    m = ax.Mechanism("m")
    for name in "ab":
        m.add_body(name, mass=1, inertia=(1, 1, 1))
    m.add_joint("j", ax.Revolute(), parent="a", child="b")
    m.add_joint("k", ax.Revolute(), parent="b", child="a")
    message = (
        "its joints never reach the ground; join one body of this chain to the ground, by a "
        "Floating joint if it is free"
    )
    assert told(m)[1] == [f"[body.a] {message}", f"[body.b] {message}"]


def test_a_ring_through_an_unknown_body_is_told():
    m = ax.Mechanism("m")
    m.add_body("a", mass=1, inertia=(1, 1, 1))
    m.add_joint("j", ax.Revolute(), parent="b", child="a")
    m.add_joint("k", ax.Revolute(), parent="a", child="b")
    unknown = "unknown body 'b'. Bodies: ground, a."
    assert told(m)[1] == [f"[joint.j] parent: {unknown}", f"[joint.k] child: {unknown}"]


def test_a_joint_needs_two_bodies():
    m = arm()
    m.add_loop("self", ax.Revolute(), parent="rod", child="rod")
    assert told(m)[1] == ["[loop.self] child: a joint needs two different bodies"]


@pytest.mark.parametrize("component", ["qw", "qx", "qy", "qz"])
def test_a_quaternion_is_not_prescribed_by_parts(component):
    m = arm()
    m.add_body("ball", mass=1, inertia=(1, 1, 1))
    m.add_joint("free", ax.Floating(), parent="ground", child="ball")
    m.prescribe(f"free.{component}", 0.1)
    assert told(m)[1] == [
        f"[prescribe] free.{component}: a quaternion's component cannot be prescribed alone; use "
        "Revolute or Universal joints instead"
    ]


def test_a_renamed_quaternion_is_still_one():
    m = ax.Mechanism("m")
    m.add_body("ball", mass=1, inertia=(1, 1, 1))
    m.add_joint("b", ax.Spherical(), parent="ground", child="ball", coordinates=list("abcd"))
    m.prescribe("c", 0.1)
    assert "a quaternion's component" in told(m)[1][0]


def test_a_coordinate_is_prescribed_once():
    m = arm()
    m.prescribe("elbow", 0.0)
    m.prescribe("elbow", lambda t: t)
    assert told(m)[1] == ["[prescribe] elbow: prescribed 2 times; once is enough"]


def test_motors_of_loops_and_fixed_joints_are_explained():
    m = arm()
    m.add_body("plate", mass=1, inertia=(1, 1, 1))
    m.add_joint("glue", ax.Fixed(), parent="rod", child="plate")
    m.add_joint("tip", ax.Revolute(), parent="ground", child="plate")
    m.add_motor("m1", "glue")
    m.add_motor("m2", "tip")
    listed = "Speeds: plane.surge, plane.sway, plane.yaw_rate, elbow.rate."
    assert told(m)[1] == [
        f"[motor.m1] joint: joint 'glue' is fixed and has no speed. {listed}",
        "[motor.m2] joint: joint 'tip' closes a loop and has no speed of its own; add it before "
        f"the joints that close the loop, or name another one. {listed}",
    ]


def test_two_things_of_one_name_are_told():
    m = arm()
    m.add_body("rod", mass=1, inertia=(1, 1, 1))
    m.add_contact("c", ax.Ball(1), body="rod")
    m.add_contact("c", ax.Ball(1), body="base")
    m.add_motor("m", "elbow")
    m.add_motor("m", "elbow")
    m.add_damper("f", "elbow", coefficient=1)
    m.add_spring("f", "elbow", stiffness=1)
    m.add_wrench("w", "rod")
    m.add_wrench("w", "rod")
    m.measure("x", "yaw", body="rod")
    m.measure("x", "yaw", body="base")
    unique = "the name is used 2 times; names are unique"
    places = ["body.rod", "contact.c", "motor.m", "damper.f", "wrench.w", "measure.x"]
    assert told(m)[1] == [f"[{place}] {unique}" for place in places]


def test_a_joint_of_a_name_used_twice_is_one_fault():
    """Its coordinates and speeds have one name only because their joints do."""
    m = arm()
    m.add_body("tool", mass=1, inertia=(1, 1, 1))
    m.add_joint("elbow", ax.Revolute(), parent="rod", child="tool")
    m.add_body("hand", mass=1, inertia=(1, 1, 1))
    m.add_joint("elbow", ax.Cylindrical(), parent="tool", child="hand")
    assert told(m)[1] == ["[joint.elbow] the name is used 3 times; names are unique"]


def test_two_signals_of_one_name_are_told():
    m = arm()
    m.add_body("tool", mass=1, inertia=(1, 1, 1))
    m.add_joint("plane.x", ax.Revolute(), parent="rod", child="tool")
    assert told(m)[1] == ['[joint."plane.x"] 2 coordinates or speeds have this name']


def test_two_inputs_of_one_name_are_told():
    m = arm()
    m.add_motor("a", "elbow", input="u")
    m.add_motor("b", "plane.surge", input="u")
    m.add_motor("c", "plane.sway", input="a.torque")
    assert told(m)[1] == [
        "[motor.a] input: another input is called 'u'",
        "[motor.b] input: another input is called 'u'",
    ]


def test_unknown_names_print_without_the_quotes_of_a_key_error():
    error = ax.UnknownName("mechanism 'balancer'", "body", "left_weel", ["pole", "left", "right"])
    assert str(error) == (
        "mechanism 'balancer' has no body 'left_weel'.\n"
        "  Bodies: pole, left, right. Did you mean 'left'?"
    )
    assert isinstance(error, KeyError) and isinstance(error, ax.AxodeError)
    empty = ax.UnknownName("mechanism 'm'", "body", "a", [])
    assert str(empty).endswith("There is no body yet.")
