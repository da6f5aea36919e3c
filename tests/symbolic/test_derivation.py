"""Worked derivations: their numbers are the model's, their zeros zero, their notebooks run."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import axode as ax
from axode.cli import run

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("derive_*.ipynb"))
TURNING = {"psi": 0.4, "surge": 0.5, "psi_dot": 0.7, "theta3": 0.2, "theta3_dot": 1.0}
READABLE = 30_000  # characters of LaTeX


def cells(text: str, kind: str) -> list[str]:
    return ["".join(c["source"]) for c in json.loads(text)["cells"] if c["cell_type"] == kind]


def execute(text: str) -> dict:
    """Run the code of a notebook, whose cells check themselves; return its variables."""
    found: dict = {}
    for code in cells(text, "code"):
        exec(compile(code, "notebook", "exec"), found)
    return found


def facts(made) -> dict[str, str]:
    return {
        re.sub(r"[\\${}, ]|mathbf|boldsymbol", "", k): v for s in made.steps for k, v in s.facts
    }


@pytest.fixture(scope="module")
def pendulum():
    robot = ax.gallery.build("wheeled_pendulum")
    return robot.derive().derivation(TURNING, {"M1": 0.1, "M2": 0.05})


@pytest.mark.slow
def test_the_complement_is_derived_step_by_step(pendulum):
    titles = [step.title for step in pendulum.steps]
    order = ("Twists", "Constraints", "Rank", "Null space", "Natural", "Its rate", "Inertia of")
    places = [next(k for k, t in enumerate(titles) if t.startswith(word)) for word in order]
    assert places == sorted(places)
    found = facts(pendulum)
    assert found["allrows"] == "6 by 6, rank 3 at the state"
    assert found["sizeandrankofT"] == "24 by 3, rank 3"
    assert found["ATheta=0"] == "all 9 entries vanish identically, by exact algebra"
    assert max(pendulum.differences.values()) < 1e-12


def test_its_accelerations_are_those_of_staicu(pendulum):
    """His A and b, J at the middle of the axle; wheels turn against the platform."""
    m, M, J1, J2, r, d, rho, g = 0.5, 5.0, 0.2, 0.4, 0.3, 0.2, 0.5, 9.81
    th, w3, turn = 0.2, 1.0, 0.7
    s, c, w1, w2 = np.sin(th), np.cos(th), 0.5 / r - turn / (2 * rho), 0.5 / r + turn / (2 * rho)
    Y, x = J1 * c**2 + J2 * s**2, M * r * d
    A = np.full((3, 3), x * c / 2)
    A[0, 0] = A[1, 1] = m * r**2 * (3 + rho**2) / 2 + rho**2 * Y + M * r**2 / 4
    A[0, 1] = A[1, 0] = -m * r**2 * rho**2 / 2 - rho**2 * Y + M * r**2 / 4
    A[2, 2] = J2
    twist = 2 * rho**2 * (J1 - J2) * s * c * (w2 - w1) * w3
    b = [
        x * rho**2 * s * (w1 * w2 - w2**2) + twist - x / 2 * s * w3**2,
        x * rho**2 * s * (w1 * w2 - w1**2) - twist - x / 2 * s * w3**2,
        (J1 - J2) * rho**2 * s * c * (w1 - w2) ** 2 + M * g * d * s,
    ]
    first, second, third = np.linalg.solve(A, np.array([0.1, 0.05, 0.15]) - b)
    lines = str(pendulum).splitlines()
    found = {k: float(v) for line in lines for k, v in re.findall(r"nu_dot\[(\w+)\] = (\S+)", line)}
    assert found["surge"] == pytest.approx(r * (first + second) / 2, rel=1e-5)
    assert found["psi_dot"] == pytest.approx(rho * (second - first), rel=1e-5)
    assert found["theta3_dot"] == pytest.approx(third, rel=1e-5)


@pytest.mark.parametrize("way", ["complement", "lagrange", "virtual_work"])
def test_all_ways_agree_with_time_springs_rotors_and_wrenches(way, tmp_path, monkeypatch):
    """A slide that a motor with a rotor drives, on a cart that follows a formula of time."""
    bot = ax.Mechanism("sledge", gravity=(0, 0, -9.81))
    cart = bot.add_body("cart", mass=2.0, inertia=(0.1, 0.2, 0.3))
    arm = bot.add_body("arm", mass=1.0, com=(0, 0, -0.3), inertia=(0.02, 0.02, 0.01))
    bot.add_joint("rail", ax.Prismatic("x"), parent=bot.ground, child=cart)
    bot.add_joint("hinge", ax.Revolute("y"), parent=cart, child=arm)
    bot.add_motor("motor", "hinge", gear=5.0, rotor_inertia=0.001)
    bot.add_spring("spring", "hinge", stiffness=2.0)
    bot.prescribe("rail", "0.1 * sin(2 * t)")
    made = bot.derive(way).derivation({"hinge": 0.4, "hinge.rate": 1.0}, {"motor.torque": 0.3})
    assert max(made.differences.values()) < 1e-12
    monkeypatch.chdir(tmp_path)
    cell = execute(made.notebook())
    model = bot.derive().compile("interpreter")
    expected = model.forward_dynamics({"hinge": 0.4, "hinge.rate": 1.0}, u=[0.3])
    assert cell["nu_dot"] == pytest.approx(expected)


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_an_example_notebook_runs(file, capsys):
    found = execute(file.read_text(encoding="utf-8"))
    assert np.all(np.isfinite(found["nu_dot"]))
    printed = capsys.readouterr().out
    assert all(f"{way}: " in printed for way in ("complement", "lagrange", "virtual_work"))


NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
MADE_BY = {
    "rolling_disk": (
        *("--independent", "base.wx,base.wy,base.wz", "--state"),
        "base.qw=0.96,base.qx=0.28,base.z=0.25296,base.wx=0.3,base.wy=2,base.wz=0.5",
    ),
    "four_bar": (
        *("--formulation", "lagrange", "--input", "tau=0.3", "--state"),
        "theta1=0.7,theta1_dot=0.5",
    ),
    "wheeled_pendulum": (
        *("--formulation", "virtual_work", "--input", "M1=0.1,M2=0.05", "--independent"),
        "omega1 [rad/s] = phi1_dot - theta3_dot, omega2 [rad/s] = phi2_dot - theta3_dot, "
        "theta3_dot",
        *("--state", "theta3=0.2,omega1=1,omega2=2,theta3_dot=1"),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MADE_BY)
def test_the_example_notebooks_are_what_the_command_writes(name, tmp_path):
    """All of their text and formulas, but for the last digits of numbers."""
    kept = (EXAMPLES / f"derive_{name}.ipynb").read_text(encoding="utf-8")
    made = tmp_path / "book.ipynb"
    assert run(["derive", name, "--steps", *MADE_BY[name], "--out", str(made)]) == 0
    text = made.read_text(encoding="utf-8")
    for kind in ("markdown", "code"):
        written, shown = (
            [NUMBER.sub("0", re.sub(r"\s|,(?=\s*[])])", "", cell)) for cell in cells(book, kind)]
            for book in (text, kept)
        )
        assert written == shown


def test_what_is_handed_out_has_no_dead_links(pendulum):
    """The package's address of its manual is a placeholder: pages of the theory are named."""
    for made in (pendulum.html(), pendulum.latex(), json.dumps(pendulum.notebook())):
        assert "example.org" not in made and "href" not in made and "](http" not in made
        assert "(N1)" in made and "docs/theory/complement.md" in made


def test_a_page_holds_its_formulas_and_leads_to_the_theory(pendulum, monkeypatch):
    monkeypatch.setattr("axode.printing.derivation.pages._manual", lambda: "https://a.b/docs")

    class Tags(HTMLParser):
        found: list[str] = []

        def handle_starttag(self, tag, attrs):
            self.found.append(tag)
            if tag == "a":
                self.found.append(dict(attrs)["href"])

    page, tags = pendulum.html(), Tags()
    tags.feed(page)
    assert "math" in tags.found and "script" not in tags.found and "link" not in tags.found
    assert any(link.endswith("theory/complement.html#N1") for link in tags.found)
    assert "\\" not in re.sub("<style>.*?</style>", "", page, flags=re.DOTALL)
    assert pendulum.latex().count(r"\begin") == pendulum.latex().count(r"\end")
    assert pendulum.latex().count("{") == pendulum.latex().count("}")


def test_long_matrices_are_shown_by_their_places_and_sizes():
    made = ax.gallery.build("agile_eye").derive("virtual_work").derivation()
    assert len(made.latex()) < READABLE
    assert "Too long to be read in symbols" in str(made)
    assert "\\mathbf" not in made.html()  # entry by entry, too, each formula is MathML
    assert max(made.differences.values()) < 1e-10


def test_what_has_no_derivation_is_refused():
    robot = ax.gallery.build("unicycle")
    with pytest.raises(ax.NotApplicable, match="recursive, multipliers, complement, lagrange"):
        robot.derive("spatial_operators").derivation()
    with pytest.raises(ax.UnknownName, match="input"):
        robot.derive().derivation(inputs={"torqe": 1.0})
    with pytest.raises(ax.InvalidArgument, match=r"\.ipynb"):
        robot.derive().derivation().save("derivation.pdf")


def test_the_command_prints_all_steps(capsys):
    assert run(["derive", "chaplygin_sleigh", "--steps", "--state", "v=1"]) == 0
    text = capsys.readouterr().out
    assert "Null space of the constraints" in text and "docs/theory/complement.md" in text
    assert "I nu_dot + C nu = tau + gamma + delta" in text
    assert "\\" not in text and "$" not in text
    assert run(["derive", "chaplygin_sleigh", "--steps", "--part", "I"]) == 2
