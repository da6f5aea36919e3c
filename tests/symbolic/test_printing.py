"""LaTeX that can be read, and SymPy expressions that are the model."""

import builtins
import math
import re
import sys
from fractions import Fraction

import casadi as ca
import numpy as np
import pytest

import axode as ax
from axode.codegen.tape.tape import Tape
from axode.printing.exact import Generator
from axode.printing.latex import ComputedWriter, latex
from axode.printing.latex_names import typeset_names
from axode.printing.layout import Product
from axode.printing.mathml import readable
from axode.printing.parts import PRINTED, arguments_of, default_parts, exact_part, tape_of
from axode.printing.polynomials import Polynomials
from axode.printing.sympy_model import sympy_model
from axode.printing.writers import LatexWriter
from benchmarks.printed_terms import count_terms
from variants import slow

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
        yield [generator.uniform(0.2, 1.2, x.shape[0]) for x in arguments_of(equations)]


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
    definitions = [pair for pair in definitions if pair[0].strip()[-2].isdigit()]  # terms
    letter = definitions[0][0].strip()[0] if definitions else "z"
    term = re.compile(rf"\b{letter}_\{{\d+\}}")
    defined = set()
    for left, right in definitions:
        assert set(term.findall(right)) <= defined, left
        defined.add(left.strip())
    assert set(term.findall(text)) == defined


@pytest.mark.parametrize("mechanism", slow(SMALL, four_bar, rolling_disk), ids=lambda m: m.__name__)
def test_sympy_is_the_model(mechanism):
    sympy = pytest.importorskip("sympy")
    equations = mechanism().derive()
    model = sympy_model(equations)
    assert [s.name for s in model.q] == list(equations.coordinates)
    assert [s.name for s in model.nu] == list(equations.independent)
    names = ["I", "C", "bias", "tau", "gamma", "delta", "Theta", "A"]
    symbols = [model.q, model.nu, model.u, (model.t,), model.p]
    expressions = [*(getattr(model, n) for n in names), model.kinetic, model.potential]
    ours = sympy.lambdify(symbols, expressions, "numpy", cse=True)
    outputs = [*(getattr(equations, n) for n in names), equations.energy[0], equations.energy[1]]
    theirs = ca.Function("model", arguments_of(equations), outputs)
    for point in points(equations):
        for k in [k for k, name in enumerate(equations.coordinates) if name.endswith(".qw")]:
            point[0][k : k + 4] /= np.linalg.norm(point[0][k : k + 4])
        for name, a, b in zip([*names, "T", "V"], ours(*point), theirs(*point), strict=True):
            b = np.array(b)
            np.testing.assert_allclose(
                np.reshape(a, b.shape), b, rtol=TOLERANCE, atol=TOLERANCE, err_msg=name
            )


@pytest.mark.slow
def test_sympy_is_as_short_as_the_print():
    """Angeles (12.79): exact numbers, and nothing that cancels is left."""
    sympy = pytest.importorskip("sympy")
    model = ax.gallery.build("delta_array").derive().to_sympy()
    a, r, mp, mw = (next(s for s in model.p if s.name == name) for name in ("a", "r", "mp", "mw"))
    rate = sum(model.nu) * 2 * sympy.sqrt(3) * a**3 * (mp + 3 * mw) / (27 * r)
    assert (
        (model.C - rate * sympy.Matrix([[0, 1, -1], [-1, 0, 1], [1, -1, 0]]))
        .expand()
        .is_zero_matrix
    )
    assert not (model.I.atoms(sympy.Float) | model.C.atoms(sympy.Float))
    assert model.C.count_ops() < 120


@pytest.mark.slow
def test_sympy_has_the_coriolis_force_of_a_loop_in_lowest_terms():
    """Written as it is computed it has thousands of operations."""
    model = ax.gallery.build("four_bar").derive(self_check=False).to_sympy()
    assert model.bias[0].count_ops() < 400


def test_sympy_can_differentiate_the_energies_of_the_pendulum():
    sympy = pytest.importorskip("sympy")
    model = sympy_model(pendulum().derive())
    (theta,), (rate,) = model.q, model.nu
    m, length = (next(s for s in model.p if s.name == name) for name in "ml")
    assert sympy.simplify(sympy.diff(model.kinetic, rate, 2) - m * length**2) == 0
    assert sympy.simplify(sympy.diff(model.potential, theta) + model.gamma[0]) == 0


def test_a_missing_sympy_is_told_with_its_remedy(monkeypatch):
    equations = pendulum().derive()
    monkeypatch.setitem(sys.modules, "sympy", None)
    with pytest.raises(ax.NotApplicable, match=r"pip install .*\[sym\]"):
        sympy_model(equations)


@pytest.mark.parametrize("mechanism", [*SMALL, arm], ids=lambda m: m.__name__)
def test_collecting_terms_changes_no_value(mechanism):
    equations = mechanism().derive()
    tape = tape_of(equations, PRINTED)
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
        return sum(
            float(x) * math.prod(values[a] ** e for a, e in monomial) for monomial, x in poly
        )

    for atom in collected.atoms:
        if atom.label == "input":
            values.append(float(point[atom.place[0]][atom.place[1]]))
        elif atom.label in ("root", "pi"):
            values.append(math.sqrt(atom.number) or math.pi)
        else:
            values.append(functions[atom.label](*map(value, atom.arguments)))
    return np.array([value(poly.items()) for poly in collected.results])


def test_a_pendulum_reads_as_in_a_textbook():
    assert dict(entries(latex(pendulum().derive()))) == {
        r"\mathbf{I}\,\dot{\boldsymbol{\nu}} + \mathbf{C}\,\boldsymbol{\nu}": (
            r"\boldsymbol{\tau} + \boldsymbol{\gamma} + \boldsymbol{\delta}"
        ),
        r"\boldsymbol{\nu}": r"\begin{bmatrix} \dot{\theta} \end{bmatrix}, \qquad "
        r"\mathbf{q} = \begin{bmatrix} \theta \end{bmatrix}, \qquad "
        r"\mathbf{u} = \begin{bmatrix} \tau_{\mathrm{motor}} \end{bmatrix}",
        r"\mathbf{I}": r"m \, l^{2}",
        r"\mathbf{C}\boldsymbol{\nu}": r"\mathbf{0}",
        r"\boldsymbol{\tau}": r"\tau_{\mathrm{motor}}",
        r"\boldsymbol{\gamma}": r"-9.81 \, m \, l \, \sin \theta",
        r"\boldsymbol{\delta}": r"-c \, \dot{\theta}",
    }


def test_a_cart_with_two_wheels_can_be_read():
    text = latex(cart().derive(independent=["left.rate", "right.rate"]))
    assert_well_formed(text)
    assert_terms_defined_in_order(text)
    assert r"\dot{\theta}_{\mathrm{left}}" in text and r"\tau_{\mathrm{right}}" in text
    assert r"m_{\mathrm{body}}" in text and r"\psi" in text
    assert r"\sin" not in text  # balanced wheels: no angle matters
    sides = dict(entries(text))
    assert sides[r"\mathbf{C}\boldsymbol{\nu}"].count(r"m_{\mathrm{body}}") == 1
    assert sides[r"\boldsymbol{\gamma}"] == sides[r"\boldsymbol{\delta}"] == r"\mathbf{0}"
    assert max(map(len, text.splitlines())) < 400


@pytest.mark.parametrize("mechanism", [*SMALL, arm], ids=lambda m: m.__name__)
@pytest.mark.parametrize(
    "parts", slow([None, tuple(PRINTED)], tuple(PRINTED)), ids=["usual", "all"]
)
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
    assert r"\boldsymbol{\gamma} &= \mathbf{0}" in text and r"\dot{\mathbf{q}} &=" in text
    assert r"\boldsymbol{\tau} &=" not in text
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


def test_symbols_of_the_user_keep_their_names():
    tricycle = ax.gallery.build("tricycle").derive()
    text, names = tricycle.latex(), typeset_names(tricycle)
    assert r"\sin \delta" in text and r"\dot{\delta}" in names.nu
    assert "I" in names.p and "t" not in names.p and names.time == "t"
    caster = typeset_names(ax.gallery.build("caster_robot").derive())
    assert {"I", "I_{p}", "m_{c}", "m_{p}", "H"} <= {*caster.p}


@pytest.mark.slow
def test_what_rounding_left_of_a_cosine_is_not_written():
    text = ax.gallery.build("planar_3rrr").derive().latex()
    assert r"\cdot 10^{-17}" not in text


def test_a_factor_that_rounds_to_one_is_not_written():
    text = ax.gallery.build("mecanum_rover").derive().latex()  # tan(45 degrees) is not quite 1
    assert "a + b" in text
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
        math.sqrt(3) / 3: r"\tfrac{1}{3} \, \sqrt{3}",
        2 * math.pi: r"2 \, \pi",
        0.1 * 0.1: "0.01",
    }
    names = typeset_names(pendulum().derive())
    for x, text in shown.items():
        tape = Tape.from_casadi(ca.Function("number", [ca.SX.sym("q", 0)], [ca.SX(x)]))
        (line,) = ComputedWriter.of(tape, names).part(0, "x", symmetric=False)
        assert line == f"x &= {text}"


@pytest.mark.slow
def test_numbers_of_long_equations_stay_within_their_range():
    """Common denominators of doubles, taken out of sum after sum, overflowed."""
    equations = ax.gallery.build("flight_simulator").derive(self_check=False)
    assert latex(equations, ["C"]).count("&=") > 1000


def test_fractions_of_huge_numbers_are_rounded():
    writer = LatexWriter([Generator("input")], None, (("x",),))
    third = Product(Fraction(10**320 + 1, 3 * 10**320 + 1), ((0, -1),))
    assert writer.product(third) == r"\frac{0.333333}{x}"


# exact fractions ---------------------------------------------------------------------------------

EXACT = (
    "delta_array",
    "mecanum_platform",
    "wheeled_pendulum",
    "two_wheeled_cart",
    "tricycle",
    "five_axis_arm",
)


@pytest.mark.parametrize("name", EXACT)
def test_latex_read_back_is_the_model(name):
    """The text itself is evaluated, by a reader of its own, at random states."""
    equations = ax.gallery.build(name).derive()
    names = typeset_names(equations)
    groups = [names.q, names.nu, names.u, (names.time,), names.p]
    for part in ("I", "bias", "tau", "gamma", "Theta"):
        lines = entries(latex(equations, [part]))[2:]  # after the heading
        expected = ca.Function(
            "part", arguments_of(equations), [PRINTED[part].expression(equations)]
        )
        for point in points(equations):
            values = {
                n: x
                for g, xs in zip(groups, point, strict=True)
                for n, x in zip(g, xs, strict=True)
            }
            wanted = np.array(expected(*point))
            found = np.zeros_like(wanted)
            for left, right in lines:
                fill(found, left, right, values)
            if part == "I":
                found = np.triu(found) + np.triu(found, 1).T
            np.testing.assert_allclose(found, wanted, rtol=TOLERANCE, atol=TOLERANCE, err_msg=part)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["caster_robot", "two_caster_robot"])
def test_what_is_projected_reads_back(name):
    """I = Theta^T I~ Theta and C nu = Theta^T (I~ Theta_dot nu + C~ v), where that is shorter."""
    equations = ax.gallery.build(name).derive()
    text = latex(equations, ["I", "bias"])
    assert r"\mathbf{I} &= \boldsymbol{\Theta}^{\mathsf{T}} \, \tilde{\mathbf{I}}" in text
    names = typeset_names(equations, all_speeds=True)
    state = [equations.q, equations.nu, equations.t, equations.p]
    expected = ca.Function("I", state, [equations.I, equations.bias, equations.v])
    for q, nu, _, t, p in points(equations):
        inertia, bias, v = (np.array(x) for x in expected(q, nu, t, p))
        given = ((names.q, q), (names.nu, v[:, 0]), (names.p, p))
        values = {n: x for group, xs in given for n, x in zip(group, xs, strict=True)}
        for left, right in entries(text.partition(r"\text{where}")[2]):
            values[left.strip()] = read(right, values)
        size, n = len(v), len(nu)
        shapes = {"Theta": (size, n), "Theta_dot": (size, n), "I_tree": (size,) * 2}
        found = {k: np.zeros(shape) for k, shape in (shapes | {"bias_tree": (size, 1)}).items()}
        for left, right in entries(text):
            for part, matrix in found.items():
                symbols = PRINTED[part].symbol, PRINTED[part].symbol.strip("()")
                if left.startswith(symbols) and r"\Theta}^" not in right:
                    fill(matrix, left, right, values)
        tree = np.triu(found["I_tree"]) + np.triu(found["I_tree"], 1).T
        Theta = found["Theta"]
        np.testing.assert_allclose(Theta.T @ tree @ Theta, inertia, rtol=TOLERANCE)
        ours = Theta.T @ (tree @ found["Theta_dot"] @ nu + found["bias_tree"][:, 0])
        np.testing.assert_allclose(ours, bias[:, 0], rtol=1e-9)


def fill(found, left, right, values):
    """Put what a line of LaTeX says into a matrix."""
    places = re.findall(r"_\{(\d+)(?:,(\d+))?\}", left)
    if places:
        for row, column in places:
            found[int(row) - 1, int(column or 1) - 1] = read(right, values)
        return
    matrix = re.fullmatch(r"(.*?)(?: \\, )?\\begin\{bmatrix\} (.*) \\end\{bmatrix\}", right)
    if matrix is None:
        found[...] = 0.0 if right == r"\mathbf{0}" else read(right, values)
        return
    factor = read(matrix[1], values) if matrix[1] else 1.0
    rows = [row.split(" & ") for row in matrix[2].split(r" \\ ")]
    found[...] = [[factor * read(entry, values) for entry in row] for row in rows]


def read(latex_text, values):
    """Evaluate the LaTeX of an expression with values of its symbols."""
    text = latex_text
    for number, name in enumerate(sorted(values, key=len, reverse=True)):
        end = r"(?![A-Za-z_])" if name[-1].isalpha() else ""
        start = r"(?<![A-Za-z\\])" if name[0].isalpha() else ""
        text = re.sub(start + re.escape(name) + end, f" X{number:03d}X ", text)
    symbols = {f"X{k:03d}X": values[n] for k, n in enumerate(sorted(values, key=len, reverse=True))}
    text = text.replace(r"\left(", "(").replace(r"\right)", ")").replace(r"\,", "*")
    text = re.sub(r"\\(sin|cos|tan)\^\{(\d+)\} *(X\d+X)", r"(\1(\3)**\2)", text)
    text = re.sub(r"\\(sin|cos|tan)\^\{(\d+)\} *\(([^()]*)\)", r"(\1(\3)**\2)", text)
    text = re.sub(r"\\(sin|cos|tan) *(X\d+X)", r"\1(\2)", text)
    text = re.sub(r"\\(sin|cos|tan)\(", r"\1(", text)
    while r"frac{" in text:
        text = re.sub(r"\\t?frac\{([^{}]*)\}\{([^{}]*)\}", r"((\1)/(\2))", text)
        text = re.sub(r"\^\{(\d+)\}", r"**\1", text)
        text = re.sub(r"\\sqrt\{([^{}]*)\}", r"sqrt(\1)", text)
    text = re.sub(r"\^\{(\d+)\}", r"**\1", text)
    text = re.sub(r"\\sqrt\{([^{}]*)\}", r"sqrt(\1)", text).replace(r"\pi", "pi")
    assert "\\" not in text, text
    known = {name: getattr(math, name) for name in ("sin", "cos", "tan", "sqrt", "pi")}
    return eval(text, {"__builtins__": {}}, known | symbols)


@pytest.mark.slow
def test_sums_as_computed_share_factors_and_cancel():
    """Angeles, 12.5.1: (a + b) once; the angle of the caster's disk, which cancels, never."""
    robot = ax.gallery.build("caster_robot").derive()
    assert r"\left(a + b\right)" in latex(robot, ["Theta"])
    assert r"b \, \cos \psi" not in latex(robot, ["Theta"])
    assert r"\theta_{3}" not in latex(robot, ["bias"]).partition(r"\text{where}")[2]


def test_the_omni_array_is_as_short_as_in_the_book():
    """Angeles (12.79): one product before a matrix of ones."""
    lines = dict(entries(latex(ax.gallery.build("delta_array").derive(), ["C"])))
    assert lines[r"\mathbf{C}"] == (
        r"\frac{2 \, \sqrt{3} \, a^{3} \, \left(m_{p} + 3 \, m_{w}\right) \, "
        r"\left(\dot{\theta}_{1} + \dot{\theta}_{2} + \dot{\theta}_{3}\right)}{27 \, r} \, "
        r"\begin{bmatrix} 0 & 1 & -1 \\ -1 & 0 & 1 \\ 1 & -1 & 0 \end{bmatrix}"
    )


@pytest.mark.slow
def test_an_arm_is_as_short_as_in_the_paper():
    """Valencia and others: A of (38) is a sum of squares, 10 terms, and Q of (42) has 21."""
    equations = ax.gallery.build("five_axis_arm").derive(self_check=False)
    first = {part: latex(equations, [part]).split("\\\\\n")[2] for part in ("I", "bias")}
    assert count_terms(first["I"]) == 10 and count_terms(first["bias"]) == 21
    inertia = first["I"].partition("&=")[2]
    assert inertia.count(r"\right)^{2}") == 3 and "sin" not in inertia
    text = latex(equations, ["I", "bias", "gamma"])
    assert r"\text{where}" not in text
    angles = re.findall(r"\\(?:sin|cos)\\left\((.*?)\\right\)", text)
    assert angles and all(
        re.findall(r"\d", one) == sorted(re.findall(r"\d", one)) for one in angles
    )


def test_identities_leave_nothing_behind():
    text = "\n".join(readable(ax.gallery.build("wheeled_pendulum").derive()))
    assert "gamma[theta3_dot] = -g M d sin(theta3)" in text and "gamma[surge]" not in text
    sleigh = readable(ax.gallery.build("chaplygin_sleigh").derive())
    assert "I[omega, omega] = m a^2 + J" in sleigh and "C nu[omega] = m a v omega" in sleigh


@pytest.mark.slow
def test_the_vertical_of_a_disk_is_named():
    found = exact_part(rolling_disk().derive(), "bias")
    text = latex(rolling_disk().derive(), ["bias"])
    assert (
        found.exact.exact and r"n_{x} &= 2 \, \left(q_{x} \, q_{z} - q_{w} \, q_{y}\right)" in text
    )
    assert len(text) < 1500


def test_objects_of_the_theory_are_printed():
    robot = ax.gallery.build("unicycle").derive()
    for part in ("T", "T_dot", "A", "U", "Theta", "Theta_dot", "lambda"):
        assert PRINTED[part].symbol in latex(robot, [part])
    assert robot.Theta_dot.shape == robot.Theta.shape


def driven_cart():
    bot = cart()
    bot.prescribe("left", "0.3 * sin(2 * t)")
    return bot


@pytest.mark.parametrize(
    "mechanism", [cart, four_bar, rolling_disk, driven_cart], ids=lambda m: m.__name__
)
def test_the_first_kind_is_what_the_model_computes(mechanism):
    """I~ v_dot + C~ v = tau~ + gamma~ + delta~ + A^T lambda and A v_dot = b_dot - A_dot v."""
    equations = mechanism().derive("multipliers")
    model = equations.compile("interpreter")
    parts = default_parts(equations)
    generator = np.random.default_rng(2)
    speeds = {name: generator.uniform(0.5, 1.5) for name in equations.independent}
    start, t = ax.assemble(model, speeds, t=0.3), 0.3
    u = generator.uniform(-1, 1, len(equations.inputs))
    v = model.joint_speeds(start.q, start.nu, t=t)
    v_dot = model.accelerations(
        start.q, start.nu, model.forward_dynamics(start.q, start.nu, u, t=t), t=t
    )
    force = model.multipliers(start.q, start.nu, u, t=t)
    point = [start.q, v, u, t, list(equations.parameters.values())]
    tape = tape_of(equations, parts)
    shaped = [
        np.asarray(x, float).reshape(p.shape) for x, p in zip(point, tape.inputs, strict=True)
    ]
    value = dict(zip(parts, map(np.array, tape.evaluate(*shaped)), strict=True))
    applied = value["tau_tree"] + value["gamma_tree"] + value["delta_tree"]
    ours = value["I_tree"] @ v_dot + value["bias_tree"]
    np.testing.assert_allclose(ours, applied + value["A"].T @ force, atol=1e-10)
    rate = value.get("b_dot", 0.0) - value["A_dot_v"]
    np.testing.assert_allclose(value["A"] @ v_dot, rate, atol=1e-10)


def test_the_first_kind_of_the_omni_array_is_that_of_the_exercise():
    """Exercise 12.11: M is diagonal, no angle matters in the axes of the platform."""
    lines = readable(ax.gallery.build("delta_array").derive("multipliers"), ["I_tree", "A"])
    assert "I_tree[omega, omega] = H + 3 r^2 mw + 3 J" in lines
    assert "A[wheel2.longitudinal, vx] = 1/2 sqrt(3)" in lines and len(lines) == 6 + 11


def test_latex_without_sympy_is_written_as_computed(monkeypatch):
    equations = pendulum().derive()
    actual = builtins.__import__

    def without(name, *more, **options):
        if name.partition(".")[0] == "sympy":
            raise ModuleNotFoundError("No module named 'sympy'")
        return actual(name, *more, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    assert r"\mathbf{I} &= m \, l^{2}" in latex(equations)


def test_small_numbers_are_no_zeros():
    """Numbers with many digits below 1e-14 were taken for what rounding left."""
    bot = ax.Mechanism("mote")
    bob = bot.add_body("bob", mass=1e-9 / 7, com=(0, 0, -1e-6 / 3), inertia=ax.Inertia.point())
    bot.add_joint("theta", ax.Revolute("y"), parent=bot.ground, child=bob)
    lines = dict(entries(latex(bot.derive(), ["I", "gamma"])))
    assert lines[r"\mathbf{I}"] == r"1.5873 \cdot 10^{-23}"
    assert r"4.67143 \cdot 10^{-16}" in lines[r"\boldsymbol{\gamma}"]


def test_a_parameter_with_the_name_of_a_joint_is_another_symbol():
    bot = ax.Mechanism("twice")
    body = bot.add_body("body", mass=1.0, inertia=(1, 1, 1))
    bot.add_joint("n", ax.Prismatic("z"), parent=bot.ground, child=body)
    bot.add_spring("spring", "n", stiffness=ax.Parameter("n", 10.0))
    equations = bot.derive()
    pytest.importorskip("sympy")
    assert len(sympy_model(equations).gamma.free_symbols) == 2
    assert readable(equations, ["gamma"]) == ["gamma[n.rate] = -(n' n + 9.81)"]


def test_users_have_their_own_notation(tmp_path):
    """In exact and computed forms, squared where it has an exponent, and through files."""
    bot = ax.Mechanism("own")
    length = ax.Parameter("l", 0.5, latex=r"\ell^{*}")
    bob = bot.add_body(
        "bob",
        mass=ax.Parameter("mb", 2.0, latex=r"\hat m_b"),
        com=(0, 0, -length),
        inertia=ax.Inertia.point(),
    )
    bot.add_joint("theta", ax.Revolute("y"), parent=bot.ground, child=bob)
    bot.save(tmp_path / "own.toml")
    assert 'latex = "\\\\hat m_b"' in (tmp_path / "own.toml").read_text()
    again = ax.load(tmp_path / "own.toml")
    assert again == bot
    lines = dict(entries(latex(again.derive(), ["I", "gamma"])))
    assert lines[r"\mathbf{I}"] == r"\hat m_b \, {\ell^{*}}^{2}"
    assert lines[r"\boldsymbol{\gamma}"] == r"-9.81 \, \hat m_b \, \ell^{*} \, \sin \theta"


def test_notation_that_breaks_equations_is_refused(tmp_path):
    for wrong in ("a & b", r"\\", "{x", "x}{", "$x$", " x", 3):
        with pytest.raises(ax.InvalidArgument, match="Parameter 'k': LaTeX must be a symbol"):
            ax.Parameter("k", 1.0, latex=wrong)
    bot = pendulum()
    bot.add_damper("air", "theta", coefficient=ax.Parameter("d", 0.1, latex="b"))
    bot.add_spring("leaf", "theta", stiffness=ax.Parameter("k", 0.1, latex="b"))
    with pytest.raises(ax.InvalidArgument, match="'d' and 'k' have the same LaTeX 'b'"):
        latex(bot.derive())
    path = tmp_path / "wrong.toml"
    for text, message in (
        ("k = { default = 1, latex = '$' }", "latex must be a symbol"),
        ("k = { latex = 'k' }", "the default is missing"),
        ("k = { default = 1, tex = 'k' }", "unknown key 'tex'"),
        ("k = { default = 1, latex = 2 }", "expected text"),
    ):
        path.write_text(f"[parameters]\n{text}\n")
        with pytest.raises(ax.MechanismError, match=message):
            ax.load(path)
