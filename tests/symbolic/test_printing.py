"""LaTeX that can be read, and SymPy expressions that are the model."""

import builtins
import math
import re

import casadi as ca
import numpy as np
import pytest

import axode as ax
from axode.printing.latex import PARTS, _arguments, _tape, latex, number_tex, to_sympy
from axode.printing.latex_names import typeset_names
from axode.printing.polynomials import Polynomials

TOLERANCE = 1e-11  # relative: both sides are rounded arithmetic on the same graph


def pendulum():
    bot = ax.Mechanism("pendulum")
    length = ax.Parameter("l", 0.5)
    bob = bot.add_body(
        "bob", mass=ax.Parameter("m", 2.0), com=(0, 0, -length), inertia=ax.Inertia.point()
    )
    bot.add_joint("theta", ax.Revolute("y"), parent=bot.ground, child=bob)
    bot.add_motor("motor", "theta")
    bot.add_damper("friction", "theta", coefficient=ax.Parameter("c", 0.1))
    return bot


def cart():
    bot = ax.Mechanism("cart")
    radius = ax.Parameter("r", 0.1)
    body = bot.add_body(
        "body",
        mass=ax.Parameter("m_body", 5.0),
        com=(ax.Parameter("a", 0.1), 0, 0),
        inertia=(0.1, 0.1, 0.2),
    )
    bot.add_joint("base", ax.Planar(), parent=bot.ground, child=body, at=(0, 0, radius))
    for side, y in (("left", 0.2), ("right", -0.2)):
        bot.add_wheel(side, ax.Rolling(radius), on=body, at=(0, y, 0), mass=0.5, motor=True)
    return bot


def four_bar():
    bot = ax.Mechanism("four_bar")
    links = [
        bot.add_body(name, mass=1.0, com=(x / 2, 0, 0), inertia=(0.01, 0.02, 0.02))
        for name, x in (("crank", 0.3), ("coupler", 0.8), ("rocker", 0.6))
    ]
    bot.add_joint("phi1", ax.Revolute("z"), parent=bot.ground, child=links[0])
    bot.add_joint("phi2", ax.Revolute("z"), parent=links[0], child=links[1], at=(0.3, 0, 0))
    bot.add_joint("phi3", ax.Revolute("z"), parent=bot.ground, child=links[2], at=(0.7, 0, 0))
    bot.add_loop(
        "pin",
        ax.Revolute("z"),
        parent=links[1],
        child=links[2],
        at=(0.8, 0, 0),
        child_at=(0.6, 0, 0),
    )
    bot.add_motor("drive", "phi1")
    bot.set_home(phi1=1.0, phi2=-0.5, phi3=1.2)
    return bot


def rolling_disk():
    bot = ax.Mechanism("disk")
    disk = bot.add_body("disk", mass=1.0, inertia=ax.Inertia.disk(1.0, 0.3, "y"))
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child=disk)
    bot.add_contact("rim", ax.Rolling(0.3), body=disk)
    bot.set_home({"base.z": 0.29, "base.qw": 0.98, "base.qx": 0.2})
    return bot


def arm():
    half = math.pi / 2
    rows = [
        (0, -half, 0.34, 0),
        (0, half, 0, 0),
        (0, half, 0.4, 0),
        (0, -half, 0, 0),
        (0, -half, 0.4, 0),
        (0, half, 0, 0),
        (0, 0, 0.126, 0),
    ]
    link = {"mass": 3.0, "com": (0.01, 0.02, 0.1), "inertia": (0.1, 0.12, 0.05)}
    return ax.chain_from_dh(rows, bodies=[link] * 7, motors=True)


SMALL = [pendulum, cart, four_bar, rolling_disk]


def points(equations, count=3):
    """Random arguments of the model's functions; laws of algebra need no feasible ones."""
    generator = np.random.default_rng(4)
    for _ in range(count):
        yield [generator.uniform(0.2, 1.2, x.shape[0]) for x in _arguments(equations)]


def entries(text):
    """The lines of an aligned environment as pairs of sides."""
    body = text.removeprefix("\\begin{aligned}\n").removesuffix("\n\\end{aligned}")
    return [line.split(" &= ") for line in body.split(" \\\\\n") if " &= " in line]


def assert_well_formed(text):
    assert text.startswith("\\begin{aligned}\n") and text.endswith("\n\\end{aligned}")
    depth = 0
    for character in re.sub(r"\\[{}]", "", text):
        depth += {"{": 1, "}": -1}.get(character, 0)
        assert depth >= 0
    assert depth == 0
    assert text.count(r"\left") == text.count(r"\right")
    assert text.count(r"\begin{bmatrix}") == text.count(r"\end{bmatrix}")
    assert not re.search(r"[+-] *[+-]|nan|inf|\? ", text)


def assert_terms_defined_in_order(text):
    definitions = entries(text.partition(r"\text{where}")[2])
    letter = definitions[0][0].strip()[0] if definitions else "z"
    term = re.compile(rf"\b{letter}_\{{\d+\}}")
    defined = set()
    for left, right in definitions:
        assert set(term.findall(right)) <= defined, left
        defined.add(left.strip())
    assert set(term.findall(text)) == defined


@pytest.mark.parametrize("mechanism", SMALL, ids=lambda m: m.__name__)
def test_sympy_is_the_model(mechanism):
    sympy = pytest.importorskip("sympy")
    equations = mechanism().derive()
    model = to_sympy(equations)
    assert [s.name for s in model.q] == list(equations.coordinates)
    assert [s.name for s in model.nu] == list(equations.independent)
    names = ["I", "C", "bias", "tau", "gamma", "delta", "Theta", "A"]
    symbols = [model.q, model.nu, model.u, (model.t,), model.p]
    expressions = [*(getattr(model, n) for n in names), model.kinetic, model.potential]
    ours = sympy.lambdify(symbols, expressions, "numpy", cse=True)
    outputs = [*(getattr(equations, n) for n in names), equations.energy[0], equations.energy[1]]
    theirs = ca.Function("model", _arguments(equations), outputs)
    for point in points(equations):
        for name, a, b in zip([*names, "T", "V"], ours(*point), theirs(*point), strict=True):
            b = np.array(b)
            np.testing.assert_allclose(
                np.reshape(a, b.shape), b, rtol=TOLERANCE, atol=TOLERANCE, err_msg=name
            )


def test_sympy_can_differentiate_the_energies_of_the_pendulum():
    sympy = pytest.importorskip("sympy")
    model = to_sympy(pendulum().derive())
    (theta,), (rate,) = model.q, model.nu
    m, length = (next(s for s in model.p if s.name == name) for name in "ml")
    assert sympy.simplify(sympy.diff(model.kinetic, rate, 2) - m * length**2) == 0
    assert sympy.simplify(sympy.diff(model.potential, theta) + model.gamma[0]) == 0


def test_a_missing_sympy_is_told_with_its_remedy(monkeypatch):
    equations = pendulum().derive()
    actual = builtins.__import__

    def without(name, *more, **options):
        if name == "sympy":
            raise ModuleNotFoundError("No module named 'sympy'")
        return actual(name, *more, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ax.NotApplicable, match=r"pip install 'axode\[sym\]'"):
        to_sympy(equations)


@pytest.mark.parametrize("mechanism", [*SMALL, arm], ids=lambda m: m.__name__)
def test_collecting_terms_changes_no_value(mechanism):
    equations = mechanism().derive()
    tape = _tape(equations, PARTS)
    collected = Polynomials(tape)
    for point in points(equations):
        shaped = [x if port.shape else x[0] for x, port in zip(point, tape.inputs, strict=True)]
        expected = np.concatenate([np.ravel(x) for x in tape.evaluate(*shaped)])
        found = evaluate(collected, point)
        scale = max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(found, expected, rtol=TOLERANCE, atol=TOLERANCE * scale)


def evaluate(collected, point):
    """Numbers for the results of collected polynomials."""
    functions = {
        "sin": math.sin,
        "cos": math.cos,
        "sqrt": math.sqrt,
        "sum": float,
        "copysign": math.copysign,
        "fabs": abs,
    }
    values = []

    def value(poly):
        return sum(x * math.prod(values[a] ** e for a, e in monomial) for monomial, x in poly)

    for atom in collected.atoms:
        if atom.label == "input":
            values.append(float(point[atom.place[0]][atom.place[1]]))
        else:
            values.append(functions[atom.label](*map(value, atom.arguments)))
    return np.array([value(poly.items()) for poly in collected.results])


def test_a_pendulum_reads_as_in_a_textbook():
    assert latex(pendulum().derive()).splitlines() == [
        r"\begin{aligned}",
        r"I\,\dot{\nu} + C\,\nu &= \tau + \gamma + \delta \\",
        r"\nu &= \begin{bmatrix} \dot{\theta} \end{bmatrix}, \qquad "
        r"q = \begin{bmatrix} \theta \end{bmatrix}, \qquad "
        r"u = \begin{bmatrix} \tau_{\mathrm{motor}} \end{bmatrix} \\",
        r"I &= m \, l^{2} \\",
        r"C\nu &= 0 \\",
        r"\tau &= \tau_{\mathrm{motor}} \\",
        r"\gamma &= -9.81 \, m \, l \, \sin \theta \\",
        r"\delta &= -c \, \dot{\theta}",
        r"\end{aligned}",
    ]


def test_a_cart_with_two_wheels_can_be_read():
    text = latex(cart().derive(independent=["left.rate", "right.rate"]))
    assert_well_formed(text)
    assert_terms_defined_in_order(text)
    assert r"\dot{\theta}_{\mathrm{left}}" in text and r"\tau_{\mathrm{right}}" in text
    assert r"m_{\mathrm{body}}" in text and r"\psi" in text
    assert r"\sin" not in text  # balanced wheels: no angle matters
    sides = dict(entries(text))
    assert sides["C\\nu"].count(r"m_{\mathrm{body}} \, a") == 2
    assert sides[r"\gamma"] == sides[r"\delta"] == "0"
    assert max(map(len, text.splitlines())) < 400


@pytest.mark.parametrize("mechanism", [*SMALL, arm], ids=lambda m: m.__name__)
@pytest.mark.parametrize("parts", [None, tuple(PARTS)], ids=["usual", "all"])
def test_latex_is_well_formed(mechanism, parts):
    text = latex(mechanism().derive(), parts)
    assert_well_formed(text)
    assert_terms_defined_in_order(text)


def test_a_long_model_stays_short_lines():
    text = latex(arm().derive())
    assert len(text) < 60_000
    lengths = sorted(map(len, text.splitlines()))
    assert lengths[-1] < 1000 and lengths[len(lengths) // 2] < 200


def test_parts_are_chosen_by_name():
    equations = cart().derive()
    text = latex(equations, parts=("gamma", "q_dot"))
    assert r"\gamma &= 0" in text and r"\dot{q} &=" in text and r"\tau &=" not in text
    with pytest.raises(ax.UnknownName, match="has no part 'gama'"):
        latex(equations, parts=("gama",))


def test_names_are_set_as_symbols():
    bot = ax.Mechanism("names")
    parent = bot.ground
    for name, joint, more in [
        ("theta1", ax.Revolute("z"), {"speeds": ("theta1_dot",)}),
        ("elbow", ax.Revolute("y"), {}),
        ("q2", ax.Revolute("y"), {}),
        ("lift", ax.Prismatic("z"), {}),
        ("ball", ax.Spherical(), {}),
        ("big_toe", ax.Revolute("x"), {}),
    ]:
        body = bot.add_body(f"{name}_body", mass=1.0, inertia=(1, 1, 1), com=(0.1, 0.2, 0.3))
        bot.add_joint(name, joint, parent=parent, child=body, at=(0, 0, 1), **more)
        parent = body
    bot.add_motor("push", "lift")
    equations = bot.derive()
    names = typeset_names(equations)
    assert names.q == (
        r"\theta_{1}",
        r"\theta_{\mathrm{elbow}}",
        "q_{2}",
        r"s_{\mathrm{lift}}",
        "q_{w}",
        "q_{x}",
        "q_{y}",
        "q_{z}",
        r"\theta_{\mathrm{big},\mathrm{toe}}",
    )
    assert names.nu[:4] == (
        r"\dot{\theta}_{1}",
        r"\dot{\theta}_{\mathrm{elbow}}",
        r"\dot{q}_{2}",
        r"\dot{s}_{\mathrm{lift}}",
    )
    assert names.nu[4] == r"\omega_{x}" and names.u == (r"f_{\mathrm{push}}",)


def test_two_bases_keep_their_owners():
    bot = ax.Mechanism("two")
    for name in ("front", "back"):
        body = bot.add_body(name, mass=1.0, inertia=(1, 1, 1))
        bot.add_joint(name, ax.Planar(), parent=bot.ground, child=body)
    names = typeset_names(bot.derive())
    assert names.q[0] == r"x_{\mathrm{front}}" and names.q[3] == r"x_{\mathrm{back}}"
    assert len({*names.q, *names.nu}) == 12


def test_names_that_look_like_the_model_get_a_subscript():
    tricycle = ax.gallery.build("tricycle").derive()
    text, names = tricycle.latex(), typeset_names(tricycle)
    assert r"\delta &= 0" in text and r"\sin \delta_{q}" in text
    assert r"\dot{\delta}_{q}" in names.nu and r"\dot{\delta}" not in names.nu
    assert "I_{p}" in names.p and "I" not in names.p


def test_what_rounding_left_of_a_cosine_is_not_written():
    text = ax.gallery.build("planar_3rrr").derive().latex()
    assert r"\cdot 10^{-17}" not in text


def test_a_factor_that_rounds_to_one_is_not_written():
    text = ax.gallery.build("mecanum_rover").derive().latex()  # tan(45 degrees) is not quite 1
    assert r"\frac{a + b}{r}" in text
    assert not re.search(r"(?<![\d._{])1 \\,", text)


def test_numbers_are_short():
    shown = {
        2.0: "2",
        0.5: r"\tfrac{1}{2}",
        9.81: "9.81",
        1 / 3: r"\tfrac{1}{3}",
        -0.25: r"-\tfrac{1}{4}",
        0.33333: "0.33333",
        0.2: "0.2",
        math.tan(math.pi / 4): "1",
        1e-9: "10^{-9}",
        2.5e8: r"2.5 \cdot 10^{8}",
        1e5: "100000",
    }
    assert {x: number_tex(x) for x in shown} == shown
