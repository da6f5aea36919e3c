"""Every fault of a file, by its text and line; and files that cannot be read or written at all."""

import errno
import os
import re
import subprocess
import sys
import warnings

import pytest

import axode as ax
from axode.formats import loading as files
from axode.mechanism.values.expressions import NAMES

SOUND = """\
name = "rover"
[parameters]
l = 0.4
[body.chassis]
mass = 8.0
inertia = [0.5, 0.4, 0.3]
[joint.base]
type = "planar"
parent = "ground"
child = "chassis"
[wheel.left]
type = "rolling"
radius = 0.1
on = "chassis"
at = [0, "l / 2", 0]
mass = 0.5
motor = true
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    """Write a text to rover.toml in the current folder."""
    monkeypatch.chdir(tmp_path)

    def write(text):
        (tmp_path / "rover.toml").write_text(text)
        return "rover.toml"

    return write


def told(path):
    with pytest.raises(ax.MechanismError) as caught:
        ax.load(path)
    return str(caught.value)


def test_a_working_folder_that_was_removed(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    bot = ax.gallery.build("unicycle")
    for call in (lambda: ax.load("a.toml"), lambda: bot.save("a.toml")):
        with pytest.raises(ax.FileError, match=r"'a\.toml': the working folder has been removed"):
            call()


def test_the_sound_file_is_sound(file):
    assert [body.name for body in ax.load(file(SOUND)).bodies] == ["chassis", "left"]


def test_everything_wrong_is_told_at_once_with_lines(file):
    path = file("""\
name = "rover"
gravity = 9.81

[parameters]
l = 0.4
lambda = 3
width = "l"

[body.chassis]
mas = 8.0
com = [0, 0,
       "l / 2 + k"]
inertia = [0.5, 0.4, 1.1]

[joint.base]
type = "planr"
parent = "ground"
child = "chassis"

[wheel.left]
type = "rolling"
radius = -0.1
on = "chassis"
at = [0, "l /", 0]
mass = 0.5
motor = { limit = -4.0, gea = 2 }

[wheel.right]
type = "omni"
on = "chassis"
roller_angle = 0.4
mass = -1

[home]
base.z = "high"
""")
    functions = ", ".join(["t", "pi", *NAMES])
    types = "revolute, prismatic, screw, cylindrical, universal, spherical, planar, floating, fixed"
    assert (
        told(path)
        == f"""\
rover.toml has 16 problems.
  line   2  gravity: expected three numbers or formulas, got 9.81
  line   6  [parameters] lambda: 'lambda' cannot name a Parameter: use letters, digits and \
underscores, and none of {functions} or of Python's own words
  line   7  [parameters] width: expected a number, got the formula 'l'
  line   9  [body.chassis] mass: is missing (mass [kg])
  line  10  [body.chassis] mas: unknown key 'mas'. Keys: mass, com, inertia, shape. Did you mean \
'mass'?
  line  11  [body.chassis] com: 'k' in 'l / 2 + k' is not a parameter. Names: l, width, pi, t.
  line  13  [body.chassis] inertia: not physical, Ixx + Iyy < Izz
  line  16  [joint.base] type: unknown type 'planr'. Types: {types}. Did you mean 'planar'?
  line  22  [wheel.left] radius: must be > 0 m, got -0.1
  line  24  [wheel.left] at: 'l /' is not a formula
  line  26  [wheel.left] motor.gea: unknown key 'gea'. Keys: limit, gear, rotor_inertia, \
continuous, no_load_speed, efficiency, torque_constant, resistance, inductance, voltage. Did you \
mean 'gear'?
  line  26  [wheel.left] motor.limit: must be > 0, got -4
  line  28  [wheel.right] radius: is missing; an omni wheel needs it
  line  31  [wheel.right] roller_angle: an omni wheel has no roller_angle; it has radius, \
friction, restitution, rolling_resistance, scrub
  line  32  [wheel.right] mass: must be > 0 kg, got -1
  line  35  [home] base.z: 'high' in 'high' is not a parameter. Names: l, width, pi, t."""
    )


CASES = {
    # schema
    "unknown table": (
        "[whel.right]\nradius = 1\n",
        "line  18  whel: unknown table 'whel'. Tables: extends, name, gravity, loop_tolerance, "
        "parameters, body, joint, loop, wheel, caster, contact, coupling, cam, mimic, gear, belt, "
        "differential, rack, screw, motor, damper, spring, wrench, measure, repeat, prescribe, "
        "home. Did you mean 'wheel'?",
    ),
    "name with a dot": (
        "[body.front.arm]\nmass = 1\n",
        "line  18  [body.front] arm: unknown key 'arm'. Names with dots stand in quotes: "
        '[body."front.arm"]. Keys: mass, com, inertia, shape.',
    ),
    "list of tables": (
        '[[loop]]\ntype = "revolute"\n',
        "line  18  loop: expected tables such as [loop.NAME], got 1 value",
    ),
    "text for a number": (
        '[damper.d]\njoint = "left"\ncoefficient = "much"\n',
        "line  20  [damper.d] coefficient: 'much' in 'much' is not a parameter. Names: l, pi, t.",
    ),
    "true for a number": (
        '[damper.d]\njoint = "left"\ncoefficient = true\n',
        "line  20  [damper.d] coefficient: expected a number or a formula, got true",
    ),
    "date for a number": (
        '[damper.d]\njoint = "left"\ncoefficient = 1979-05-27\n',
        "line  20  [damper.d] coefficient: expected a number or a formula, got "
        "datetime.date(1979, 5, 27)",
    ),
    "number for a name": (
        "[motor.m]\njoint = 3\n",
        "line  19  [motor.m] joint: expected text, got 3",
    ),
    "number for names": (
        '[joint.base2]\ntype="fixed"\nparent="ground"\nchild="chassis"\ncoordinates = 3\n',
        "line  22  [joint.base2] coordinates: expected a list of names, got 3",
    ),
    "two numbers": (
        '[wrench.w]\nbody = "left"\nat = [1, 2]\n',
        "line  20  [wrench.w] at: expected three numbers, got 2",
    ),
    "axis": (
        '[contact.c]\ntype = "ball"\nradius = 1\nbody = "left"\naxis = "up"\n',
        'line  22  [contact.c] axis: expected three numbers or one of "x", "y", "z", "-x", "-y", '
        "\"-z\", got 'up'",
    ),
    "rotation": (
        '[loop.c]\ntype = "fixed"\nparent = "ground"\nchild = "left"\nrotation = [1, 2]\n',
        "line  22  [loop.c] rotation: expected roll, pitch, yaw (3 numbers), a quaternion w, x, y, "
        "z (4) or a 3 x 3 matrix, got 2 numbers",
    ),
    "motor": (
        SOUND.split("[wheel.left]")[1]
        .replace("motor = true", "motor = 4.0")
        .replace("\ntype", "[wheel.right]\ntype", 1),
        "line  24  [wheel.right] motor: expected true or a table such as { limit = 4.0 }, got 4.0",
    ),
    "ground": (
        '[contact.c]\ntype = "ball"\nradius = 1\nbody = "left"\nground = 3\n',
        "line  22  [contact.c] ground: expected a body or a table with normal, point and on, got 3",
    ),
    "slip": (
        '[contact.c]\ntype = "rolling"\nradius = 1\nbody = "left"\nlateral = "loose"\n',
        "line  22  [contact.c] lateral: must be 'rigid' or 'free', got 'loose'",
    ),
    "inertia": (
        "[body.b]\nmass = 1\ninertia = 3\n",
        "line  20  [body.b] inertia: expected three principal moments, three rows of three, a "
        'table with xx, yy, zz, or "point", got 3',
    ),
    "shape": (
        '[body.b]\nmass = 1\nshape = { type = "box", radius = 1 }\n',
        "line  20  [body.b] shape.radius: a box shape has no radius; it has size, at",
    ),
    "no inertia": (
        "[body.b]\nmass = 1\n",
        'line  18  [body.b] inertia: is missing; give three principal moments, "point" for a point '
        "mass, or a shape to take it from",
    ),
    "unsuitable key": (
        '[loop.c]\ntype = "spherical"\nparent = "ground"\nchild = "left"\naxis = "x"\n',
        "line  22  [loop.c] axis: a spherical joint has no axis",
    ),
    "too many names": (
        '[joint.c]\ntype = "revolute"\nparent = "left"\nchild = "left"\nspeeds = ["a", "b"]\n',
        "line  18  [joint.c] joint 'c': expected 1 speed name, got 2",
    ),
    "spring on both": (
        '[spring.s]\njoint = "left"\nstiffness = 1\nparent = "left"\n',
        "line  21  [spring.s] parent: a spring acts on a joint or between two bodies, not both",
    ),
    "spring on nothing": (
        "[spring.s]\nstiffness = 1\n",
        "line  18  [spring.s] spring 's': give the joint it acts on, or parent and child",
    ),
    "missing key of a caster": (
        '[caster.c]\ntype = "rolling"\nradius = 1\non = "chassis"\nmass = 1\nat = [0, 0, 0]\n',
        "line  18  [caster.c] trail: is missing (from pivot to wheel centre, horizontally [m])",
    ),
    "key below its table": (
        '[body.b]\nmass = 1\ninertia = "point"\ngravity = [0, 0, 0]\n',
        "line  21  [body.b] gravity: unknown key 'gravity'. Keys of the whole file stand above the "
        "first [table]. Keys: mass, com, inertia, shape.",
    ),
    # descriptions
    "unknown body": (
        '[wrench.push]\nbody = "chasis"\n',
        "line  19  [wrench.push] body: unknown body 'chasis'. Bodies: ground, chassis, left. Did "
        "you mean 'chassis'?",
    ),
    "unknown carrier of a wheel": (
        '[wheel.w]\ntype = "rolling"\nradius = 1\nmass = 1\non = "chasis"\n',
        "line  22  [wheel.w] on: unknown body 'chasis'. Bodies: ground, chassis, left, w. Did "
        "you mean 'chassis'?",
    ),
    "axis of a wheel": (
        '[wheel.w]\ntype = "rolling"\nradius = 1\nmass = 1\non = "chassis"\naxis = [0, 2, 0]\n',
        "line  23  [wheel.w] axis: must be a unit vector, got length 2; along it the unit one is "
        "(0, 1, 0)",
    ),
    "radius of a wheel": (
        '[wheel.w]\ntype = "rolling"\nradius = 0\nmass = 1\non = "chassis"\n',
        "line  20  [wheel.w] radius: must be > 0 m, got 0",
    ),
    "motor of a ball": (
        '[wheel.w]\ntype = "ball"\nradius = 1\nmass = 1\non = "chassis"\nmotor = true\n',
        "line  23  [wheel.w] motor: joint 'w' has several speeds, name one of them: w.wx, w.wy, "
        "w.wz",
    ),
    "bracket of a caster": (
        '[caster.c]\ntype = "rolling"\nradius = 1\non = "chassis"\nmass = 1\nat = [0, 0, 0]\n'
        "trail = 0.1\nbracket_mass = -1\n",
        "line  25  [caster.c] bracket_mass: must be > 0 kg, got -1",
    ),
    "pivot of a caster": (
        '[caster.c]\ntype = "rolling"\nradius = 1\non = "chassis"\nmass = 1\nat = [0, 0, 0]\n'
        "trail = 0.1\npivot_axis = [0, 0, 0]\n",
        "line  25  [caster.c] pivot_axis: must be a unit vector, got zero length",
    ),
    "loop written as a joint": (
        '[joint.c]\ntype = "floating"\nparent = "left"\nchild = "chassis"\n',
        "line  19  [joint.c] type: a floating loop closes nothing; leave it out or choose another "
        "joint",
    ),
    "dashpot": (
        '[damper.d]\nparent = "left"\nchild = "ground"\ncoefficient = -1\n',
        "line  21  [damper.d] coefficient: must be >= 0, got -1",
    ),
    "time in a length": (
        '[wrench.w]\nbody = "left"\nat = [0, 0, "t"]\n',
        "line  20  [wrench.w] at: time may stand only in a prescribed motion",
    ),
    "infinite parameter": (
        '[wrench.w]\nbody = "left"\nat = [0, 0, "inf"]\n',
        "line  20  [wrench.w] at: 'inf' in 'inf' is not a parameter. Names: l, pi, t.",
    ),
    "not a number": (
        '[wrench.w]\nbody = "left"\nat = [0, 0, nan]\n',
        "line  20  [wrench.w] at: must be finite",
    ),
    "prescribed": (
        '[prescribe]\nbase.yaw = "t"\nbase.z = "t"\n',
        "line  20  [prescribe] base.z: unknown coordinate 'base.z'. Coordinates: base.x, base.y, "
        "base.yaw, left. Did you mean 'base.y'?",
    ),
    "measure": (
        '[measure.m]\nkind = "yew"\nbody = "left"\n',
        "line  19  [measure.m] kind: unknown kind 'yew'. Kinds: position, velocity, distance, "
        "roll, pitch, yaw, roll_rate, pitch_rate, yaw_rate, surge, sway, heave. Did you mean "
        "'yaw'?",
    ),
    "body twice": (
        '[body.left]\nmass = 1\ninertia = "point"\n',
        "line  11  [wheel.left] the name is used 2 times; names are unique",
    ),
    "number too large": (
        f'[wrench.w]\nbody = "left"\nat = [0, 0, 1{"0" * 400}]\n',
        "line  20  [wrench.w] at: expected a number or a Parameter, got 1000000000",
    ),
}
# These also lack a joint that holds the body, or have a second fault of the same cause.
ALSO = {
    "name with a dot",
    "too many names",
    "body twice",
    "number too large",
    "inertia",
    "shape",
    "no inertia",
    "key below its table",
}


@pytest.mark.parametrize("case", CASES)
def test_a_fault_is_told_with_its_line(file, case):
    text, message = CASES[case]
    first, *faults = told(file(SOUND + text)).split("\n  ")
    assert any(fault.startswith(message) for fault in faults), faults
    if case not in ALSO:
        assert (first, faults) == ("rover.toml has 1 problem.", [message])


def test_faults_of_every_kind_are_listed_at_once(file):
    """Whatever else is wrong, a fault is in the first list: no second round after correcting."""
    missing = []
    for step in (1, 7, 16):
        for one, other in zip(CASES, [*CASES][step:] + [*CASES][:step], strict=True):
            texts = [CASES[one][0], CASES[other][0].replace("w]", "w2]").replace("c]", "c2]")]
            if re.match(r"\S+", texts[0])[0] == re.match(r"\S+", texts[1])[0]:
                continue  # the same table twice is not TOML
            listed = told(file(SOUND + "".join(texts))).replace("w2", "w").replace("c2", "c")
            for message in (CASES[one][1], CASES[other][1]):
                what = re.sub(r"^line +\d+ +|\. (Bodies|Coordinates).*", "", message)
                if what not in listed:
                    missing.append((one, other, message, listed))
    assert not missing, missing[0]


def test_parts_that_cannot_be_read_are_not_held_against_others(file):
    """References to them, to their coordinates and to their bodies may be right."""
    text = SOUND.replace('type = "planar"', 'type = "sideways"').replace("radius", "radios", 1)
    text += """
[body.arm]
mass = 1
inertia = "point"
[joint.elbow]
type = "revolute"
parent = "chasis"
child = "arm"
[measure.place]
kind = "position"
body = "arm"
[motor.m]
joint = "base.wz"
[damper.d]
joint = "elbow"
coefficient = 1
[mimic.same]
joint = "elbow"
of = "left"
[home]
base.x = 1
elbow = 1
elbw = 1
"""
    assert [line.split(":")[0] for line in told(file(text)).split("\n  ")[1:]] == [
        "line   8  [joint.base] type",
        "line  11  [wheel.left] radius",
        "line  13  [wheel.left] radios",
        "line  24  [joint.elbow] parent",
        "line  40  [home] elbw",
    ]


def test_a_table_that_is_none_hides_nothing_else(file):
    text = SOUND.replace("[body.chassis]", "[body]\narm = 3\n[body.chassis]").replace("8.0", "-8")
    assert told(file(text)).split("\n  ")[1:] == [
        "line   5  [body.arm] expected a table, got 3",
        "line   7  [body.chassis] mass: must be > 0 kg, got -8",
    ]


def test_a_type_in_a_table_that_has_none_hides_nothing_else(file):
    text = SOUND + '[measure.tip]\ntype = "position"\nbody = "chasis"\n'
    assert told(file(text)).split("\n  ")[1:] == [
        "line  18  [measure.tip] kind: is missing (what is measured). Kinds: position, "
        "velocity, distance, roll, pitch, yaw, roll_rate, pitch_rate, yaw_rate, surge, sway, "
        "heave.",
        "line  19  [measure.tip] type: unknown key 'type'. Keys: kind, body, at, other, other_at.",
        "line  20  [measure.tip] body: unknown body 'chasis'. Bodies: ground, chassis, left. "
        "Did you mean 'chassis'?",
    ]


def test_an_empty_file_is_told(file):
    assert told(file("")) == (
        "rover.toml has 1 problem.\n"
        "  line   1  the mechanism has no body; add one and a joint that holds it"
    )


def test_long_files_are_refused_and_long_lists_cut(file, monkeypatch):
    many = "".join(f"a{k} = 1\n" for k in range(9))
    monkeypatch.setattr("axode.mechanism.files.toml.toml_reader.MAX_LISTED", 3)
    message = told(file(many))
    assert "6 further problems are not listed" in message and message.count("unknown key") == 3
    monkeypatch.setattr("axode.formats.loading.MAX_TOML", 20)
    with pytest.raises(ax.FileError, match="is larger than 0 MiB, as no mechanism in TOML is"):
        ax.load(file(many))


# files that are no mechanism files ---------------------------------------------------------------


def refused(path, verb=ax.load):
    with pytest.raises(ax.FileError) as caught:
        verb(path)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "name = rover\n",
            "rover.toml, line 1: not valid TOML. Invalid value; text and formulas stand in quotes, "
            'as in "l / 2".\n  name = rover',
        ),
        (
            "x = 1\n[body.a]\nmass = 1\n[body.a]\nmass = 2\n",
            "rover.toml, line 4: not valid TOML. [body.a] stands there twice, and names are unique."
            "\n  [body.a]",
        ),
        (
            'name = "a"\nname = "b"\n',
            'rover.toml, line 2: not valid TOML. this key was given before.\n  name = "b"',
        ),
        (
            "[body.a\nmass = 1\n",
            "rover.toml, line 1: not valid TOML. Expected ']' at the end of a table declaration."
            "\n  [body.a",
        ),
        (
            'x = 1\ny = """open',
            'rover.toml, line 2: not valid TOML. Unterminated string.\n  y = """open',
        ),
        (
            "<html></html>",
            "rover.toml is XML of <html>.\n  Mechanisms are read from TOML, from URDF, whose "
            "outermost element is <robot>, from MJCF, where it is <mujoco>, and from SDF, where it "
            "is <sdf>.",
        ),
        ("x = " + "[" * 5000 + "]" * 5000, "rover.toml: arrays or tables are nested too deeply."),
        ("x = " + "9" * 5000, "rover.toml: a whole number has thousands of digits."),
    ],
)
def test_what_is_not_toml_is_told(file, text, message):
    assert refused(file(text)) == message


def test_a_binary_file_is_told(tmp_path):
    path = tmp_path / "rover.toml"
    path.write_bytes(b"\x7fELF\0\0")
    assert refused(path).startswith(f"{path} is not a text file.\n  A mechanism file is TOML")


def test_another_encoding_is_told_with_its_line(tmp_path):
    path = tmp_path / "rover.toml"
    path.write_bytes('name = "a"\n# Länge\n'.encode("latin-1"))
    assert refused(path) == (
        f"{path}, line 2: the byte 0xe4 is not UTF-8.\n  Save the file as UTF-8 in your editor."
    )


def test_a_missing_file_is_told_with_its_neighbours(file):
    file(SOUND)
    assert refused("rovr.toml") == (
        "cannot read rovr.toml: No such file or directory.\n  Did you mean rover.toml?"
    )
    assert refused("zzz").endswith(": rover.toml.")
    assert refused("robots/rover.toml") == (
        "cannot read robots/rover.toml: No such file or directory.\n"
        "  There is no folder robots; create it first."
    )


def test_a_folder_is_told(tmp_path):
    assert refused(tmp_path) == (
        f"cannot read {tmp_path}: Is a directory.\n"
        f"  Name a file in it, such as {tmp_path / 'robot.toml'}."
    )


def test_what_is_no_path_is_told():
    assert refused(None) == "expected the path of a file, got None."
    assert refused("a\0b").startswith("cannot read a\\x00b: embedded null byte")


def test_a_file_one_may_not_read_is_told(file, monkeypatch):
    path = file(SOUND)

    def forbidden(*_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("axode.disk.bounded.os.open", forbidden)
    assert refused(path) == (
        "cannot read rover.toml: Permission denied.\n"
        "  Ask for the right to read it, or choose another place."
    )


# writing -----------------------------------------------------------------------------------------


def test_a_wrong_description_is_not_written(tmp_path):
    lost = ax.Mechanism("lost")
    lost.add_body("a", mass=1, inertia=(1, 1, 1))
    with pytest.raises(ax.MechanismError, match="no joint holds it"):
        lost.save(tmp_path / "lost.toml")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", [".xml", ".urdf", ".axm", ".c"])
def test_a_mechanism_is_not_written_under_another_ending(file, tmp_path, ending):
    with pytest.raises(ax.FileError, match=r"written as TOML(.|\n)*Name it other\.toml"):
        ax.load(file(SOUND)).save(tmp_path / f"other{ending}")
    assert not (tmp_path / f"other{ending}").exists()


def test_a_function_cannot_be_written(file):
    rover = ax.load(file(SOUND))
    rover.measure("difference", lambda s: s["left"] * 2)
    with pytest.raises(
        ax.InvalidArgument, match="measure 'difference' is a Python function, which"
    ):
        rover.save("other.toml")
    assert not os.path.exists("other.toml")


@pytest.mark.parametrize(
    ("step", "number", "reason"),
    [
        ("fsync", errno.ENOSPC, "No space left on device"),
        ("replace", errno.EACCES, "Permission denied"),
        ("replace", errno.EIO, "Input/output error"),
    ],
)
def test_a_failed_write_leaves_the_old_file_alone(
    file, tmp_path, monkeypatch, step, number, reason
):
    path = file(SOUND)
    rover = ax.load(path)

    def fail(*args):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(files.os, step, fail)
    assert refused(path, rover.save).startswith(f"cannot write rover.toml: {reason}.\n  ")
    assert (tmp_path / path).read_text() == SOUND
    assert [item.name for item in tmp_path.iterdir()] == ["rover.toml"]


def test_a_full_disk_is_told(file, tmp_path):
    """As a limit on the size of files, which the system enforces in the same place."""
    path = file(SOUND)
    code = f"""
import resource, signal
import axode as ax
rover = ax.load({path!r})
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
try:
    rover.save({path!r})
except ax.FileError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "cannot write rover.toml: File too large.\n  Nothing was changed.\n"
    assert (tmp_path / path).read_text() == SOUND
    assert [item.name for item in tmp_path.iterdir()] == ["rover.toml"]


def test_places_one_cannot_write_to_are_told(file, tmp_path):
    rover = ax.load(file(SOUND))
    assert refused(tmp_path, rover.save).startswith(f"cannot write {tmp_path}: Is a directory.")
    assert refused("none/rover.toml", rover.save).endswith(
        "There is no folder none; create it first."
    )
    assert refused("rover.toml/x.toml", rover.save).startswith(
        "cannot write rover.toml/x.toml: Not a"
    )


def test_writing_goes_through_a_link_and_keeps_the_mode(file, tmp_path):
    rover = ax.load(file(SOUND))
    os.chmod("rover.toml", 0o640)
    os.symlink("rover.toml", "link.toml")
    rover.save("link.toml")
    assert os.path.islink("link.toml")
    assert os.stat("rover.toml").st_mode & 0o777 == 0o640
    assert ax.load("rover.toml") == rover


def test_a_file_that_describes_too_much_is_refused_before_it_is_checked(tmp_path, monkeypatch):
    """Nothing else of the file is looked at; bodies that are fixed or close loops do not count."""
    from axode.formats import loading
    from axode.formats.urdf import urdf
    from axode.mechanism import checks

    monkeypatch.setattr(checks, "MAX_SPEEDS", 3)
    monkeypatch.setattr(loading, "key_lines", None)
    monkeypatch.setattr(urdf, "Reader", None)
    tables = ["gravity = 'none'"]
    elements = ["<robot name='chain'><link/>"]
    for k in range(4):
        tables.append(f"[joint.j{k}]\ntype = 'revolute'\nchild = 'b{k}'")
        elements.append(f"<joint type='continuous'><child link='b{k}'/></joint>")
    files = {"chain.toml": "\n".join(tables), "chain.urdf": "".join(elements) + "</robot>"}
    for name, text in files.items():
        path = tmp_path / name
        path.write_text(text)
        with pytest.raises(
            ax.NotApplicable,
            match=rf"{name} has 4 bodies that move, and equations are written out for at most 3",
        ):
            ax.load(path)
        path.write_text(text.replace("'b2'", "'b1'").replace("'continuous'", "'fixed'", 1))
        with pytest.raises(TypeError, match="NoneType"):  # read on
            ax.load(path)


def test_an_encoding_that_gives_halves_of_characters_is_not_used(tmp_path):
    path = tmp_path / "robot.urdf"
    path.write_bytes(b"<?xml version='1.0' encoding='utf-7'?><robot><!-- +2AA- --></robot>")
    with pytest.raises(ax.MechanismError, match="has no <link>"):
        ax.load(path)


def test_a_box_of_infinite_size_is_a_fault_alone(tmp_path):
    text = """[body.a]
mass = 1.0
com = [inf, 0, 0]
shape = { type = "box", size = [1, 1, 1], at = [-inf, 0, 0], rotation = [0.1, 0.2, 0.3] }
"""
    (tmp_path / "robot.toml").write_text(text)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        with pytest.raises(ax.AxodeError, match="must be finite"):
            ax.load(tmp_path / "robot.toml")
