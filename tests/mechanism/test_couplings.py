"""Couplings as descriptions: what the methods mean, what is wrong with one, and files."""

import math

import pytest

import axode as ax
from axode.mechanism.values.expressions import Time

UNTOLD = "must be a finite number other than 0, got"


def machine():
    """Joints of several kinds to couple."""
    m = ax.Mechanism("machine")
    joints = {
        "base": ax.Planar(),
        "a": ax.Revolute("z"),
        "b": ax.Revolute("z"),
        "c": ax.Revolute("z"),
        "slide": ax.Prismatic("x"),
        "ball": ax.Spherical(),
        "weld": ax.Fixed(),
    }
    for name, joint in joints.items():
        m.add_body(name, mass=1, inertia=(1, 1, 1))
        m.add_joint(name, joint, parent="ground" if name == "base" else "base", child=name)
    return m


RATIO = ax.Parameter("ratio", 3.0)
MEANINGS = {
    "mimic": (
        lambda m: m.add_mimic("k", "b", "a", multiplier=2.0, offset=0.1),
        (("b", 1.0), ("a", -2.0)),
    ),
    "gear": (lambda m: m.add_gear("k", "a", "b", 3.0, offset=0.1), (("a", 1.0), ("b", 3.0))),
    "gear by a parameter": (
        lambda m: m.add_gear("k", "a", "b", RATIO, offset=0.1),
        (("a", 1.0), ("b", RATIO)),
    ),
    "belt": (lambda m: m.add_belt("k", "a", "b", 3.0, offset=0.1), (("a", 1.0), ("b", -3.0))),
    "differential": (
        lambda m: m.add_differential("k", "a", "b", "c", 4.0, offset=0.1),
        (("a", 1.0), ("b", -2.0), ("c", -2.0)),
    ),
    "rack": (
        lambda m: m.add_rack("k", "a", "slide", 0.2, offset=0.1),
        (("slide", 1.0), ("a", -0.2)),
    ),
    "screw": (
        lambda m: m.add_screw("k", "a", "slide", 0.01, offset=0.1),
        (("slide", 1.0), ("a", -0.01)),
    ),
    "body and joint": (
        lambda m: m.add_coupling(
            "k", [(m.bodies[1], 1.0), (m.connections[2], RATIO / 2)], offset=0.1
        ),
        (("a", 1.0), ("b", RATIO / 2)),
    ),
}


@pytest.mark.parametrize("case", MEANINGS)
def test_every_method_is_one_linear_relation(case, tmp_path):
    add, terms = MEANINGS[case]
    m = machine()
    made = add(m)
    assert m.couplings == [made]
    assert (made.name, made.terms, made.offset) == ("k", terms, 0.1)
    m.save(tmp_path / "m.toml")
    assert ax.load(tmp_path / "m.toml") == m
    assert m.copy() == m
    assert repr(m) == "Mechanism('machine': 7 bodies, 7 joints, 1 coupling)"


FAULTS = {
    "unknown joint": (
        lambda m: m.add_gear("k", "aa", "b", 2.0),
        "terms.aa: unknown joint or coordinate 'aa'. Coordinates: base.x, base.y, base.yaw, a, b, "
        "c, slide, ball.qw, ball.qx, ball.qy, ball.qz.",
    ),
    "joint twice": (
        lambda m: m.add_gear("k", "a", "a", 2.0),
        "terms.a: is the same motion as 'a'; name each motion once",
    ),
    "a joint and its own rate": (
        lambda m: m.add_coupling("k", {"a": 1.0, "a.rate": 1.0}),
        "terms.a.rate: is the same motion as 'a'; name each motion once",
    ),
    "a yaw and its own rate": (
        lambda m: m.add_coupling("k", {"base.yaw": 1.0, "base.yaw_rate": 1.0}),
        "terms.base.yaw_rate: is the same motion as 'base.yaw'; name each motion once",
    ),
    "zero": (lambda m: m.add_gear("k", "a", "b", 0.0), f"coefficients.b: {UNTOLD} 0"),
    "not finite": (lambda m: m.add_belt("k", "a", "b", math.inf), f"coefficients.b: {UNTOLD} -inf"),
    "parameter of zero": (
        lambda m: m.add_gear("k", "a", "b", ax.Parameter("r", 0.0)),
        f"coefficients.b: {UNTOLD} 0 ('r')",
    ),
    "offset": (lambda m: m.add_gear("k", "a", "b", 1.0, offset=math.nan), "offset: must be finite"),
    "one term": (
        lambda m: m.add_coupling("k", {"a": 1.0}),
        "terms: a coupling relates at least two joints, got 1; add the others, or hold a single "
        "joint with prescribe",
    ),
    "several coordinates": (
        lambda m: m.add_gear("k", "a", "base", 1.0),
        "terms.base: joint 'base' has several coordinates, name one of them: base.x, base.y, "
        "base.yaw",
    ),
    "quaternion": (
        lambda m: m.add_gear("k", "a", "ball.qx", 1.0),
        "terms.ball.qx: a quaternion's component cannot be coupled; name one of the joint's "
        "speeds, ball.wx, ball.wy, ball.wz, or use Revolute or Universal joints",
    ),
    "fixed joint": (
        lambda m: m.add_gear("k", "a", "weld", 1.0),
        "terms.weld: joint 'weld' is fixed and has no coordinate. Coordinates: base.x",
    ),
    "loop": (
        lambda m: (
            m.add_loop("l", ax.Spherical(), parent="a", child="b"),
            m.add_gear("k", "a", "l", 1.0),
        ),
        "terms.l: joint 'l' closes a loop and has no coordinate of its own; add it before",
    ),
    "offset of speeds": (
        lambda m: m.add_coupling("k", {"a": 1.0, "base.surge": 1.0}, offset=1.0),
        "offset: 'base.surge' is a speed, so that the terms relate speeds and have no offset; name "
        "coordinates instead, or leave the offset out",
    ),
    "time": (
        lambda m: m.add_coupling("k", {"a": 1.0, "b": Time()}),
        "terms: time may stand only in a prescribed motion",
    ),
}


@pytest.mark.parametrize("case", FAULTS)
def test_a_fault_is_reported_with_its_remedy(case):
    add, message = FAULTS[case]
    m = machine()
    add(m)
    with pytest.raises(ax.MechanismError) as caught:
        m.check()
    faults = str(caught.value).split("\n  ")[1:]
    assert any(fault.startswith(f"[coupling.k] {message}") for fault in faults), faults
    assert case == "time" or len(faults) == 1, faults


def test_names_of_couplings_are_unique_and_may_be_those_of_joints():
    m = machine()
    m.add_mimic("a", "a", "b")
    m.check()
    m.add_mimic("a", "c", "b")
    with pytest.raises(ax.MechanismError, match=r"\[coupling.a\] the name is used 2 times"):
        m.check()


@pytest.mark.parametrize(
    ("add", "message"),
    [
        (lambda m: m.add_coupling("k", "ab"), "coupling 'k', terms: expected coefficients by"),
        (lambda m: m.add_coupling("k", ["a", "b"]), "coupling 'k', terms: expected coefficients"),
        (lambda m: m.add_coupling("k", 3), "coupling 'k', terms: expected coefficients by joint"),
        (lambda m: m.add_coupling("k", {"a": "x"}), "coupling 'k', terms, a: expected a number"),
        (lambda m: m.add_coupling(3, {}), "the name of a coupling is text, got 3"),
        (lambda m: m.add_gear("k", "a", "b", None), "coupling 'k', ratio: expected a number"),
        (lambda m: m.add_rack("k", "a", "b", "r"), "coupling 'k', radius: expected a number"),
        (lambda m: m.add_mimic("k", "a", 3), "coupling 'k': expected a joint or its name, got 3"),
    ],
)
def test_what_cannot_be_understood_is_refused_at_once(add, message):
    m = machine()
    with pytest.raises(ax.InvalidArgument, match=message):
        add(m)
    assert m.couplings == []


FILE = """\
[parameters]
r = 3.0
[body.a]
mass = 1
inertia = [1, 1, 1]
[body.b]
mass = 1
inertia = [1, 1, 1]
[body.s]
mass = 1
inertia = [1, 1, 1]
[joint.a]
type = "revolute"
parent = "ground"
child = "a"
[joint.b]
type = "revolute"
parent = "ground"
child = "b"
[joint.s]
type = "prismatic"
parent = "ground"
child = "s"
"""
TABLES = """\
[coupling.one]
terms = { a = 1.0, "b" = "r / 2", s.rate = -1 }
[mimic.two]
joint = "a"
of = "b"
multiplier = "r"
[gear.three]
joint_a = "a"
joint_b = "b"
ratio = "r"
offset = 0.1
[belt.four]
joint_a = "a"
joint_b = "b"
[differential.five]
shaft = "a"
left = "b"
right = "s"
ratio = 4
[rack.six]
pinion = "a"
slide = "s"
radius = 0.1
[screw.seven]
turning = "a"
slide = "s"
pitch = 0.01
"""


def test_every_table_of_a_file_is_its_method(tmp_path):
    path = tmp_path / "machine.toml"
    path.write_text(FILE + TABLES)
    r = ax.Parameter("r", 3.0)
    m = ax.Mechanism("machine")
    m.add_coupling("one", {"a": 1.0, "b": r / 2.0, "s.rate": -1.0})
    m.add_mimic("two", "a", "b", multiplier=r)
    m.add_gear("three", "a", "b", r, offset=0.1)
    m.add_belt("four", "a", "b")
    m.add_differential("five", "a", "b", "s", 4)
    m.add_rack("six", "a", "s", 0.1)
    m.add_screw("seven", "a", "s", 0.01)
    assert ax.load(path).couplings == m.couplings


FILE_FAULTS = {
    "unknown joint of a gear": (
        '[gear.g]\njoint_a = "a"\njoint_b = "c"\nratio = 2\n',
        "line  26  [gear.g] joint_b: unknown joint or coordinate 'c'. Coordinates: a, b, s.",
    ),
    "ratio of zero": (
        '[gear.g]\njoint_a = "a"\njoint_b = "b"\nratio = 0\n',
        f"line  27  [gear.g] ratio: {UNTOLD} 0",
    ),
    "ratio missing": (
        '[gear.g]\njoint_a = "a"\njoint_b = "b"\n',
        "line  24  [gear.g] ratio: is missing (turns of a per turn of b: teeth of b over teeth of "
        "a)",
    ),
    "joint missing": (
        '[rack.g]\npinion = "a"\nradius = 1\n',
        "line  24  [rack.g] slide: is missing (the joint of the rack, which slides)",
    ),
    "one joint twice": (
        '[mimic.g]\njoint = "a"\nof = "a"\n',
        "line  26  [mimic.g] of: is the same motion as 'a'; name each motion once",
    ),
    "side of a differential": (
        '[differential.g]\nshaft = "a"\nleft = "b"\nright = "r"\n',
        "line  27  [differential.g] right: unknown joint or coordinate 'r'. Coordinates: a, b, s.",
    ),
    "pitch": (
        '[screw.g]\nturning = "a"\nslide = "s"\npitch = nan\n',
        f"line  27  [screw.g] pitch: {UNTOLD} nan",
    ),
    "term": (
        '[coupling.g.terms]\na = 1\n"a.rat" = 2\n',
        "line  26  [coupling.g] terms.a.rat: unknown joint, coordinate or speed 'a.rat'. Speeds: "
        "a.rate, b.rate, s.rate. Coordinates: a, b, s. Did you mean 'a.rate'?",
    ),
    "coefficient": (
        "[coupling.g.terms]\na = 0\nb = 2\n",
        f"line  25  [coupling.g] terms.a: {UNTOLD} 0",
    ),
    "formulas": (
        '[coupling.g]\nterms = { a = "x", b = true }\n',
        "line  25  [coupling.g] terms: a: 'x' in 'x' is not a parameter. Names: r, pi, t.; b: "
        "expected a number or a formula, got true",
    ),
    "no terms": (
        "[coupling.g]\nterms = 3\n",
        "line  25  [coupling.g] terms: expected coefficients by joint such as { finger2 = 1.0, "
        "finger1 = -1.0 }, got 3",
    ),
    "unknown key": (
        '[belt.g]\njoint_a = "a"\njoint_b = "b"\nratios = 2\n',
        "line  27  [belt.g] ratios: unknown key 'ratios'. Keys: joint_a, joint_b, ratio, offset. "
        "Did you mean 'ratio'?",
    ),
    "name twice": (
        '[belt.g]\njoint_a = "a"\njoint_b = "b"\n[rack.g]\npinion = "a"\nslide = "s"\nradius = 1\n',
        "line  27  [rack.g] the name is used 2 times; names are unique",
    ),
}


@pytest.mark.parametrize("case", FILE_FAULTS)
def test_a_fault_of_a_file_is_reported_with_its_line(case, tmp_path):
    text, message = FILE_FAULTS[case]
    path = tmp_path / "machine.toml"
    path.write_text(FILE + text)
    with pytest.raises(ax.MechanismError) as caught:
        ax.load(path)
    assert str(caught.value).split("\n  ")[1:] == [message]


def spindles(pitch: float) -> ax.Mechanism:
    """A nut on two spindles."""
    bot = ax.Mechanism("two spindles")
    bot.add_body("nut", mass=2.0, inertia=(0.01, 0.01, 0.01))
    bot.add_joint("nut", ax.Prismatic("z"), parent=bot.ground, child="nut", at=(0, 0, 0.3))
    for k in range(2):
        bot.add_body(f"s{k}", mass=0.3, inertia=(1e-5, 1e-5, 1e-6))
        bot.add_joint(f"s{k}", ax.Revolute("z"), parent="ground", child=f"s{k}", at=(0.3 * k, 0, 0))
        bot.add_screw(f"t{k}", f"s{k}", "nut", pitch)
    return bot


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("pitch", [1e-3, 8e-5, 1e-6])  # 8e-5 m per radian: a thread of 0.5 mm
def test_small_pitches_are_no_rounding(pitch):
    equations = spindles(pitch).derive()

    assert equations.system.report.dropped == ()
    model = equations.compile()
    speeds = dict(zip(model.speed_names, model.joint_speeds(model.home, [0.1]), strict=True))
    assert speeds["s0.rate"] == pytest.approx(speeds["s1.rate"], rel=1e-12)


def test_small_coefficients_hold_as_large_ones_do():
    bot = spindles(1e-3)
    bot.couplings.clear()
    bot.add_coupling("pair", {"s0": 1e-8, "s1": 2e-8})

    assert bot.derive().mobility.mobility == 2


def test_couplings_that_nearly_repeat_others_are_rounded():
    bot = spindles(8e-5)
    bot.add_screw("again", "s0", "nut", 8e-5 * (1 + 1e-6))

    assert [row.name for row in bot.derive().system.report.dropped] == ["again.coupling"]
