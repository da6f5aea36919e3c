"""What a new user gets wrong is refused at once, by name, and leaves nothing behind."""

import math
import subprocess
import sys

import numpy as np
import pytest

import axode as ax

SOLID = {"mass": 1, "inertia": (1, 1, 1)}


def arm():
    m = ax.Mechanism("arm")
    m.add_body("base", **SOLID)
    m.add_joint("plane", ax.Planar(), parent="ground", child="base")
    return m


CASES = {
    # names
    "a number for a name": (lambda m: m.add_body(3, **SOLID), "the name of a body is text, got 3"),
    "None for a body": (
        lambda m: m.add_joint("j", ax.Revolute(), parent=None, child="base"),
        "joint 'j', parent: expected a body or its name, got None; the world is 'ground'",
    ),
    "a joint for a body": (
        lambda m: m.add_joint("j", ax.Revolute(), parent=m.connections[0], child="base"),
        "joint 'j', parent: expected a body or its name, got Connection",
    ),
    "a number for a carrier": (
        lambda m: m.add_wheel("w", ax.Rolling(1), on=3, mass=1),
        "wheel 'w', on: expected a body or its name, got 3",
    ),
    "a number for a joint": (
        lambda m: m.add_motor("m", 1),
        "motor 'm': expected a joint or its name, got 1",
    ),
    "a body that nothing holds": (
        lambda m: m.add_motor("m", m.add_body("loose", **SOLID)),
        "motor 'm': no joint holds body 'loose' yet, name the joint",
    ),
    "a number for a coordinate": (
        lambda m: m.set_home({1: 2}),
        "the name of a coordinate is text, got 1",
    ),
    "names that are none": (
        lambda m: m.add_joint("j", ax.Revolute(), parent="base", child="x", speeds=[1]),
        "joint 'j': the name of a speed is text, got 1",
    ),
    "too few names": (
        lambda m: m.add_joint("j", ax.Planar(), parent="base", child="x", coordinates=("x", "y")),
        "joint 'j': expected 3 coordinate names, got 2",
    ),
    "a name for the angle of a ball": (
        lambda m: m.add_wheel("w", ax.Ball(1), on="base", mass=1, coordinate="q"),
        "joint 'w': expected 4 coordinate names, got 1",
    ),
    "a number for a mechanism": (lambda m: ax.Mechanism(3), "the name of a mechanism is text"),
    # kinds
    "a class for a joint": (
        lambda m: m.add_joint("j", ax.Revolute, parent="base", child="x"),
        "joint 'j': expected a joint such as Revolute('z'), got <class .*>; write it with paren",
    ),
    "text for a joint": (
        lambda m: m.add_joint("j", "revolute", parent="base", child="x"),
        "joint 'j': expected a joint such as Revolute('z'), got 'revolute'",
    ),
    "a class for a wheel": (
        lambda m: m.add_wheel("w", ax.Rolling, on="base", mass=1),
        "wheel 'w': expected a wheel such as Rolling(0.1), got <class .*>; write it with its rad",
    ),
    "a radius for a wheel": (
        lambda m: m.add_contact("w", 0.1, body="base"),
        "wheel 'w': expected a wheel such as Rolling(0.1), got 0.1",
    ),
    "text for a shape": (
        lambda m: m.add_body("b", shape="box", **SOLID),
        "body 'b', shape: expected Box, Cylinder, Sphere or Mesh, or several of them, got 'box'",
    ),
    "a number for a motor": (
        lambda m: m.add_wheel("w", ax.Rolling(1), on="base", mass=1, motor=4.0),
        "wheel 'w', motor: expected True or a Motor(limit=...), got 4.0",
    ),
    "a motor and its numbers": (
        lambda m: m.add_motor("m", "plane.surge", motor=ax.Motor(), limit=3),
        "motor 'm': give limit to the Motor or to add_motor, not to both",
    ),
    "a height for the ground": (
        lambda m: m.add_wheel("w", ax.Rolling(1), on="base", mass=1, ground=0.0),
        "wheel 'w', ground: expected a body or its name, got 0.0",
    ),
    # numbers
    "no inertia": (
        lambda m: m.add_body("b", mass=1),
        "body 'b' needs inertia=... (three principal moments, a 3 x 3 tensor, Inertia.point() for "
        "a point mass) or a shape to take it from",
    ),
    "one moment": (
        lambda m: m.add_body("b", mass=1, inertia=0.1),
        "body 'b', inertia: expected three principal moments, a 3 x 3 tensor or an Inertia, got 0",
    ),
    "text for a mass": (
        lambda m: m.add_body("b", mass="1 kg", inertia=(1, 1, 1)),
        "body 'b', mass: expected a number or a Parameter, got '1 kg'",
    ),
    "an array for a mass": (
        lambda m: m.add_body("b", mass=np.array([1.0]), inertia=(1, 1, 1)),
        "body 'b', mass: expected a number or a Parameter, got array",
    ),
    "truth for a mass": (
        lambda m: m.add_body("b", mass=True, inertia=(1, 1, 1)),
        "body 'b', mass: expected a number or a Parameter, got True",
    ),
    "None for a mass": (
        lambda m: m.add_wheel("w", ax.Rolling(1), on="base", mass=None),
        "wheel 'w', mass: expected a number or a Parameter, got None",
    ),
    "two numbers": (
        lambda m: m.add_body("b", mass=1, com=(1, 2), inertia=(1, 1, 1)),
        "body 'b', com: expected three numbers, got 2",
    ),
    "one number": (
        lambda m: m.add_joint("j", ax.Revolute(), parent="base", child="x", at=1.0),
        "joint 'j', at: expected three numbers, got 1.0",
    ),
    "a set": (
        lambda m: m.add_wrench("w", "base", at={1, 2, 3}),
        "wrench 'w', at: expected three numbers, got {1, 2, 3}",
    ),
    "an angle for a rotation": (
        lambda m: m.add_joint("j", ax.Revolute(), parent="base", child="x", rotation=1.5),
        "joint 'j', rotation: expected roll, pitch, yaw (3 numbers), a quaternion w, x, y, z (4) "
        "or a 3 x 3 matrix, got 1.5",
    ),
    "five numbers": (
        lambda m: m.add_joint("j", ax.Revolute(), parent="base", child="x", rotation=range(5)),
        "joint 'j', rotation: expected roll, pitch, yaw .* got 5 numbers",
    ),
    "a name for an axis": (
        lambda m: ax.Revolute("up"),
        "Revolute, axis: expected three numbers or one of x, y, z, -x, -y, -z, got 'up'",
    ),
    "a unit in a radius": (
        lambda m: ax.Rolling("10 cm"),
        "Rolling, radius: expected a number or a Parameter, got '10 cm'",
    ),
    "a box with two sides": (lambda m: ax.Box((1, 2)), "Box, size: expected three numbers, got 2"),
    "gravity upside down": (
        lambda m: ax.Mechanism("m", gravity=9.81),
        "mechanism 'm', gravity: expected three numbers, got 9.81",
    ),
    "trail": (
        lambda m: m.add_caster("c", ax.Rolling(1), on="base", at=(0, 0, 0), trail="x", mass=1),
        "caster 'c', trail: expected a number or a Parameter, got 'x'",
    ),
    "a spring on nothing": (
        lambda m: m.add_spring("s", stiffness=1),
        "spring 's': give the joint it acts on, or parent and child",
    ),
    "a dashpot with one end": (
        lambda m: m.add_damper("d", coefficient=1, parent="base"),
        "damper 'd': give the joint it acts on, or parent and child",
    ),
    "damping of a joint's spring": (
        lambda m: m.add_spring("s", "plane.x", stiffness=1, damping=1),
        "spring 's': friction of a joint is added as a damper, with add_damper",
    ),
    "a motor's limit": (
        lambda m: m.add_motor("m", "plane.surge", limit="4 N m"),
        "motor 'm', limit: expected a number or a Parameter, got '4 N m'",
    ),
    "home without names": (
        lambda m: m.set_home([1, 2]),
        'home: expected a mapping such as {"base.z": 0.1}, got [1, 2]',
    ),
    "a formula for home": (
        lambda m: m.set_home(elbow=ax.Parameter("l", 1)),
        "home, elbow: expected a number, got the formula 'l'",
    ),
    "text for a motion": (
        lambda m: m.prescribe("elbow", "2 * * t"),
        "prescribe 'elbow', motion: '2 * * t' is not a formula",
    ),
    "a function of nothing": (
        lambda m: m.prescribe("elbow", lambda: 1.0),
        "prescribe 'elbow': .*takes 0 positional arguments but 1 was given",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_mistake_is_refused_and_leaves_nothing_behind(case):
    mistake, message = CASES[case]
    m = arm()
    before = m.copy()
    with pytest.raises(ax.InvalidArgument) as caught:
        mistake(m)
    pieces = message.split(".*")
    text = str(caught.value)
    assert text.startswith(pieces[0]) and all(piece in text for piece in pieces), text
    if case != "a body that nothing holds":  # that body is meant to be there
        assert m == before


@pytest.mark.parametrize("kind", [ax.AxodeError, ValueError, TypeError])
def test_mistakes_may_be_caught_by_any_of_their_kinds(kind):
    with pytest.raises(kind):
        ax.Revolute((1, 2))


@pytest.mark.parametrize(
    "name",
    ["left.front", "the arm", "it's", 'a "b"', "Größe", "机器人", "x\\y", "a[0]", "#", "a=b"],
)
def test_any_printable_name_will_do(name, tmp_path):
    m = ax.Mechanism(name)
    body = m.add_body(name, **SOLID)
    m.add_joint(name, ax.Revolute(), parent="ground", child=body)
    m.add_motor(name, name)
    m.add_wrench(name, name)
    m.set_home({name: 0.1})
    m.check()
    assert list(m.derive().coordinates) == [name]
    m.save(tmp_path / "robot.toml")
    assert ax.load(tmp_path / "robot.toml") == m


@pytest.mark.parametrize("name", ["", "a\nb", "tab\t", "\x00", "\ud800"])
def test_names_that_cannot_be_printed_are_told(name):
    m = arm()
    m.add_body(name, **SOLID)
    m.add_joint(name, ax.Revolute(), parent="base", child=name)
    with pytest.raises(ax.MechanismError) as caught:
        m.check()
    assert f"a name must be printable text, got {name!r}" in str(caught.value)
    assert str(caught.value).count("\n") == len(caught.value.faults)


def test_names_do_not_begin_with_a_bracket():
    m = arm()
    m.add_body("[a]", **SOLID)
    m.add_joint("j", ax.Revolute(), parent="base", child="[a]", coordinates="[q]")
    with pytest.raises(ax.MechanismError) as caught:
        m.check()
    assert str(caught.value).split("\n  ")[1:] == [
        "[body.\"[a]\"] a name must not begin with a bracket, got '[a]'",
        "[joint.j] a name must not begin with a bracket, got '[q]'",
    ]


def test_math_functions_in_a_motion_are_explained():
    with pytest.raises(ax.InvalidArgument) as caught:
        arm().prescribe("plane.x", lambda t: math.sin(2 * t))
    assert str(caught.value) == (
        "prescribe 'plane.x': the formula '2.0 * t' is not a number yet; use functions such as "
        "numpy.sin on it, not those of math"
    )


STATE_MISTAKES = {
    "a branch": (lambda s: {"push.torque": 1.0 if s["yaw"] > 0 else -1.0}, "numpy.where"),
    "math": (lambda s: {"push.torque": 1.0 + math.sin(s["yaw"])}, "not those of math"),
    "time apart": (lambda t, s: {"push.torque": t}, "time is s.t"),
}


@pytest.mark.parametrize("case", STATE_MISTAKES)
def test_functions_that_symbols_cannot_pass_through_are_explained(case):
    function, remedy = STATE_MISTAKES[case]
    m = arm()
    m.add_motor("push", "plane.yaw_rate")
    with pytest.raises(ax.InvalidArgument, match=f"^input: (?s:.*){remedy}"):
        ax.simulate(m.derive().compile("interpreter"), 0.1, input=function)


VERBS = {
    "simulate": lambda x: ax.simulate(x, 1.0),
    "sweep": lambda x: ax.sweep(x, 1.0),
    "assemble": lambda x: ax.assemble(x),
    "inverse_dynamics": lambda x: ax.inverse_dynamics(x, {"plane.x": "t"}, times=1.0),
    "follow": lambda x: ax.paths.follow(x, ax.paths.circle(1.0, speed=1.0)),
    "feasible": lambda x: ax.feasible(x, None, 0.5),
    "linearize": lambda x: ax.linearize(x),
    "inverse_kinematics": lambda x: ax.inverse_kinematics(x, {"plane.x": 1.0}),
    "resolved_rates": lambda x: ax.resolved_rates(x, {"plane.x": 1.0}),
    "resolved_motion": lambda x: ax.resolved_motion(x, {"plane.x": [0.0, 1.0]}, [0.0, 1.0]),
}


@pytest.mark.parametrize("verb", VERBS)
def test_equations_and_mechanisms_are_no_models_yet(verb):
    with pytest.raises(ax.InvalidArgument) as caught:
        VERBS[verb](arm())
    assert str(caught.value) == (
        f"{verb}: a model is needed, got Mechanism; make one with mechanism.derive().compile()"
    )
    with pytest.raises(ax.InvalidArgument, match=r"got Equations; make one with equations.compile"):
        VERBS[verb](arm().derive())


def test_compare_asks_for_the_mechanism():
    equations = arm().derive()
    for given in (equations, equations.compile()):
        with pytest.raises(
            ax.InvalidArgument, match=r"a mechanism is needed, .* derives by itself"
        ):
            ax.compare(given)
    with pytest.raises(ax.InvalidArgument, match=r"got str; ax\.load\(path\) or ax\.gallery"):
        ax.compare("unicycle")


def test_a_time_is_a_number():
    model = arm().derive().compile("interpreter")
    with pytest.raises(ax.InvalidArgument, match="duration: expected a number of seconds"):
        ax.simulate(model, "1 s")
    with pytest.raises(ax.InvalidArgument, match="step: expected a number of seconds, got '1 ms'"):
        ax.simulate(model, 1.0, method="rk4", step="1 ms")


def test_a_short_name_that_is_misspelt_is_guessed():
    model = arm().derive().compile("interpreter")
    with pytest.raises(ax.UnknownName, match=r"Did you mean 'plane\.yaw'"):
        ax.simulate(model, 1.0, start={"yow": 1.0})


def test_bodies_of_another_mechanism_are_taken_by_name():
    other, m = arm(), arm()
    m.add_body("tool", **SOLID)
    m.add_joint("j", ax.Revolute(), parent=other.bodies[0], child="tool")
    m.check()


def test_reading_files_is_not_paid_for_at_import():
    code = "import sys, axode; axode.Mechanism('m'); print('pydantic' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
