"""Every verb tells what Python tells, and says what is wrong with what it is given."""

from __future__ import annotations

import ast
import csv
import json
import math
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest

import axode as ax
from axode.cli import run

EXAMPLES = Path(__file__).parents[2] / "examples"


def told(capsys, *arguments: str, code: int = 0):
    """What the command line prints for machines."""
    assert run([*arguments, "--json"]) == code, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def model_of(name: str):
    return ax.gallery.build(name).derive().compile()


def known(values):
    """Numbers that are known; JSON has no word for the others."""
    return {name: None if value != value else value for name, value in values.items()}


# what is built -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_options_go_to_the_gallery(capsys):
    wheels = "[[0.2, 0.1, 1.57, 0.8], (0.2, -0.1, 1.57, -0.8), (-0.2, 0, 1.57, 0.8)]"
    for name, words, options in (
        ("six_wheel_platform", ["separate=true"], {"separate": True}),
        ("cooperating_arms", ["joints=2,load=False"], {"joints": 2, "load": False}),
        (
            "mecanum_platform",
            [f"wheels={wheels},a=0.06", "mw=1/2"],
            {"wheels": ast.literal_eval(wheels), "a": 0.06, "mw": 0.5},
        ),
    ):
        flags = [flag for word in words for flag in ("--option", word)]
        found = told(capsys, "derive", name, *flags)
        expected = ax.gallery.build(name, **options).derive()
        assert found["coordinates"] == list(expected.coordinates)
        assert found["parameters"] == expected.parameters
        assert found != told(capsys, "derive", name)


def test_options_say_how_a_urdf_is_held(capsys):
    file = str(EXAMPLES / "diffdrive.urdf")
    for base in ("fixed", "floating", "planar"):
        found = told(capsys, "derive", file, "--option", f"base={base}")
        assert found["coordinates"] == list(ax.load(file, base=base).derive().coordinates)


# derive ------------------------------------------------------------------------------------------


def test_derive_counts_what_the_tapes_hold(capsys):
    found = told(capsys, "derive", "unicycle", "--formulation", "lagrange")
    equations = ax.gallery.build("unicycle").derive("lagrange")
    model = equations.compile("interpreter")
    assert found["independent"] == list(equations.independent)
    assert found["parameters"] == equations.parameters
    assert found["latex"] == equations.latex()
    for name, operations in found["operations"].items():
        assert operations == model.operations(name)


def test_derive_prints_short_equations_in_the_models_names(capsys):
    assert run(["derive", "chaplygin_sleigh"]) == 0
    shown = capsys.readouterr().out
    assert "I[omega, omega] = m a^2 + J" in shown
    assert "C nu[omega] = m a v omega" in shown
    assert run(["derive", "four_bar"]) == 0
    assert "--latex" in capsys.readouterr().out


def double_pendulum() -> ax.Mechanism:
    made, parent = ax.Mechanism("double"), None
    m, l = ([ax.Parameter(f"{n}{k}", k / 2) for k in (1, 2)] for n in "ml")
    for k, name in enumerate(("theta1", "theta2")):
        bob = made.add_body(f"bob{k}", mass=m[k], com=(0, 0, -l[k]), inertia=(0.1, 0.1, 0.1))
        made.add_joint(
            name, ax.Revolute("y"), parent=parent or made.ground, child=bob, at=(0, 0, -l[0] * k)
        )
        made.add_damper(name, name, coefficient=0.3)
        parent = bob
    made.add_motor("push", "theta1")
    return made


NAME = re.compile(r"(?<![\w.])[A-Za-z_][\w.]*")


def evaluated(text: str, values: dict[str, float]) -> float:
    """A printed formula: factors stand beside each other, powers after ^."""
    text = re.sub(r"(?<=[\w)]) (?=[\w(])", " * ", text.replace("^", "**"))
    text = NAME.sub(
        lambda name: f"({float(values[name[0]])!r})" if name[0] in values else name[0], text
    )
    return float(eval(text, {"sin": math.sin, "cos": math.cos}))


@pytest.mark.parametrize(
    "mechanism",
    [double_pendulum(), ax.gallery.build("unicycle"), ax.gallery.build("chaplygin_sleigh")],
    ids=lambda one: one.name,
)
def test_printed_equations_have_the_models_values(mechanism):
    from axode.printing.mathml import readable

    equations = mechanism.derive()
    model = equations.compile("interpreter")
    rng = np.random.default_rng(2)
    q, nu, u = (
        rng.normal(size=len(names))
        for names in (model.coordinates, model.independent, model.inputs)
    )
    values = (
        dict(
            zip((*model.coordinates, *model.independent, *model.inputs), (*q, *nu, *u), strict=True)
        )
        | model.parameters
    )
    expected = {
        "I": model.mass_matrix(q),
        "C nu": model.bias(q, nu),
        "tau": model.input_force(q, u),
        "gamma": model.potential_force(q),
        "delta": model.dissipative_force(q, nu),
    }
    lines = readable(equations)
    assert len(lines) >= 5
    found = {word: np.zeros_like(array) for word, array in expected.items()}
    order = {name: k for k, name in enumerate(model.independent)}
    for line in lines:
        place, text = line.split(" = ", 1)
        word, _, names = place.rstrip("]").partition("[")
        where = tuple(order[name] for name in names.split(", ")) if names else ...
        found[word][where] = evaluated(text, values)
        if word == "I" and names:
            found[word][where[::-1]] = found[word][where]
    for word, array in expected.items():
        assert found[word] == pytest.approx(array, rel=1e-5, abs=1e-12), word


def test_derive_prints_the_parts_that_are_named(capsys):
    assert run(["derive", "chaplygin_sleigh", "--part", "q_dot,energy", "--part", "Theta"]) == 0
    lines = capsys.readouterr().out.split("\n\n")[-1].splitlines()
    e = ax.gallery.build("chaplygin_sleigh").derive()
    expected = [f"q_dot[{name}]" for name in e.coordinates]
    expected += ["energy[kinetic]", f"Theta[{e.speeds[0]}, {e.independent[0]}]"]
    assert [line.split(" = ")[0] for line in lines][: len(expected)] == expected


def test_derive_writes_a_document(tmp_path, capsys):
    file = tmp_path / "x.tex"
    assert run(["derive", "unicycle", "--part", "I", "--latex", "--out", str(file)]) == 0
    latex = ax.gallery.build("unicycle").derive().latex(["I"])
    assert capsys.readouterr().out.strip() == latex
    text = file.read_text()
    lines = latex.splitlines()[1:-1]
    assert "\n".join([r"\begin{align*}", *lines, r"\end{align*}"]) in text
    assert text.index(r"\begin{document}") < text.index(r"\begin{align*}")


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no TeX: pdflatex is not installed")
@pytest.mark.parametrize("name", ["tricycle", "mecanum_rover", "planar_3rrr"])
def test_a_document_is_set_by_tex_within_its_pages(name, tmp_path):
    file = tmp_path / "x.tex"
    assert run(["export", name, "--to", str(file)]) == 0
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", file.name]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull" not in file.with_suffix(".log").read_text(errors="replace")


# simulate ----------------------------------------------------------------------------------------


def test_formulas_with_commas_and_conditions(tmp_path, capsys):
    file = tmp_path / "run.csv"
    inputs = "tau_drive=clip(2*t, 0, 1) - step(w), tau_steer=where(0.2 < t < 0.4, 0.01, 0)"
    flags = ["--time", "1", "--every", "0.1", "--input", inputs, "--out", str(file)]
    assert run(["simulate", "unicycle", *flags]) == 0
    columns = np.genfromtxt(file, delimiter=",", names=True)
    t = columns["time"]
    drive = np.clip(2 * t, 0, 1) - (columns["w"] >= 0)
    assert columns["tau_drive"] == pytest.approx(drive, abs=1e-12)
    assert columns["tau_steer"] == pytest.approx(np.where((t > 0.2) & (t < 0.4), 0.01, 0.0))


def test_angles_are_shown_in_degrees_on_request(tmp_path, capsys):
    flags = ["--time", "0.1", "--columns", "theta,v", "--start", "theta=1,v=1"]
    picture, file = tmp_path / "run.svg", tmp_path / "run.csv"
    files = ["--plot", str(picture), "--out", str(file)]
    assert run(["simulate", "unicycle", *flags, "--degrees", *files]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["theta", "deg", "57.2958"] in [row[:3] for row in rows]
    assert ["v", "m/s", "1"] in [row[:3] for row in rows]
    assert picture.stat().st_size > 1000
    assert np.genfromtxt(file, delimiter=",", names=True)["theta"][0] == 1.0  # files hold radians


def test_simulate_ends_where_python_ends(tmp_path, capsys):
    file = tmp_path / "run.csv"
    found = told(
        capsys,
        "simulate",
        "unicycle",
        "--time",
        "1.5",
        "--start",
        "theta=pi/6,w=0.2",
        "--input",
        "tau_drive=0.1*sin(2*t)",
        "--input",
        "tau_steer=0.01",
        "--parameter",
        "m=3",
        "--every",
        "0.1",
        "--out",
        str(file),
    )
    expected = ax.simulate(
        model_of("unicycle"),
        1.5,
        start={"theta": np.pi / 6, "w": 0.2},
        parameters={"m": 3.0},
        input={"tau_drive": "0.1*sin(2*t)", "tau_steer": 0.01},
        save_every=0.1,
    )
    assert found["status"] == "finished"
    assert found["final"] == known(expected.final)
    assert found["energy_error"] == expected.energy_error
    assert found["units"]["tau_drive"] == "N m"
    with file.open() as lines:
        rows = list(csv.DictReader(lines))
    assert [float(row["time"]) for row in rows] == expected.time.tolist()
    assert [float(row["x"]) for row in rows] == expected["x"].tolist()


def test_a_formula_of_the_state_is_feedback(capsys):
    found = told(
        capsys,
        "simulate",
        "unicycle",
        "--time",
        "1",
        "--start",
        "phi_dot=2",
        "--input",
        "tau_drive=-0.5*phi_dot",
    )
    expected = ax.simulate(
        model_of("unicycle"),
        1.0,
        start={"phi_dot": 2.0},
        input=lambda s: {"tau_drive": -0.5 * s["phi_dot"]},
    )
    assert found["final"] == known(expected.final)
    assert abs(found["final"]["phi_dot"]) < 1.9


def test_a_stiff_run_shows_who_took_over(capsys):
    arguments = ["simulate", "unicycle", "--start", "phi_dot=2", "--input"]
    assert run([*arguments, "tau_drive=-3e4*phi_dot"]) == 0
    assert "radau9 took over at t = " in capsys.readouterr().out
    assert run([*arguments, "tau_drive=-0.5*phi_dot"]) == 0
    assert "took over" not in capsys.readouterr().out


def test_a_run_stops_where_it_is_told_to(capsys):
    found = told(
        capsys,
        "simulate",
        "unicycle",
        "--start",
        "phi_dot=2",
        "--until",
        "phi=1",
        "--columns",
        "phi,speeds",
    )
    assert found["final"]["phi"] == pytest.approx(1.0, abs=1e-9)
    assert found["events"][0]["time"] == pytest.approx(0.5, rel=1e-9)
    assert set(found["final"]) == {"phi", "v", "v_lat", "w", "phi_dot"}


@pytest.mark.slow
def test_a_run_that_fails_is_told_and_kept(tmp_path, capsys):
    file = tmp_path / "run.npz"
    # an input that has no value after half a second
    formula = "tau=log(0.5 - t)"
    arguments = ["simulate", "four_bar", "--time", "1", "--input", formula, "--out", str(file)]
    found = told(capsys, *arguments, code=1)
    assert "failed" in found["status"]
    assert "failed" in found["error"]
    kept = ax.Trajectory.load(file)
    assert 0 < kept.time[-1] == found["time"][1] < 1
    assert run(arguments) == 1
    shown = capsys.readouterr()
    assert "theta1_dot" in shown.out
    assert "SimulationFailed" in shown.err
    assert ".trajectory" not in shown.err
    assert shown.err.endswith(
        f"  What was computed until then is shown above and kept in {file}.\n"
    )
    assert run(arguments[:-2]) == 1
    assert capsys.readouterr().err.endswith("is shown above; --out FILE keeps it.\n")


def test_a_saved_model_simulates_as_its_mechanism(tmp_path, capsys):
    file = tmp_path / "u.axm"
    assert run(["export", "unicycle", "--to", str(file), "--parameters", "free"]) == 0
    capsys.readouterr()
    flags = ("--time", "0.5", "--start", "w=1", "--input", "tau_drive=0.1*t")
    assert (
        told(capsys, "simulate", str(file), *flags)["final"]
        == told(capsys, "simulate", "unicycle", *flags)["final"]
    )


# inverse -----------------------------------------------------------------------------------------


def test_inverse_at_a_state(capsys):
    found = told(
        capsys,
        "inverse",
        "five_axis_arm",
        "--state",
        "theta2=0.5,theta1_dot=1",
        "--acceleration",
        "theta3_dot=2",
    )
    model = model_of("five_axis_arm")
    expected = model.inverse_dynamics({"theta2": 0.5}, {"theta1_dot": 1.0}, {"theta3_dot": 2.0})
    assert list(found["inputs"].values()) == pytest.approx(expected.tolist(), rel=1e-12)
    assert found["state"]["theta2"] == 0.5


def test_inverse_says_what_motors_cannot_give(capsys):
    found = told(capsys, "inverse", "wheeled_pendulum", "--state", "theta3=0.3")
    model = model_of("wheeled_pendulum")
    _, missing = model.inverse_dynamics_with_residual({"theta3": 0.3}, {}, {})
    assert list(found["missing"].values()) == pytest.approx(missing.tolist(), rel=1e-9)


def test_inverse_undoes_simulate_through_a_file(tmp_path, capsys):
    file = tmp_path / "run.csv"
    flags = ["--time", "2", "--input", "tau_drive=0.2*cos(t),tau_steer=0.1", "--out", str(file)]
    assert run(["simulate", "unicycle", *flags]) == 0
    torque = tmp_path / "torque.csv"
    assert run(["inverse", "unicycle", "--motion", str(file), "--out", str(torque)]) == 0
    with torque.open() as lines:
        rows = list(csv.DictReader(lines))
    drive = [0.2 * math.cos(float(row["time"])) for row in rows]
    assert [float(row["tau_drive"]) for row in rows] == pytest.approx(drive, abs=1e-9)
    assert [float(row["tau_steer"]) for row in rows] == pytest.approx([0.1] * len(rows), abs=1e-9)
    # two columns are enough: the rest follows
    with file.open() as lines:
        cells = [(row["time"], row["phi_dot"], row["w"]) for row in csv.DictReader(lines)]
    short = tmp_path / "short.csv"
    short.write_text("\n".join(["# by hand", "t;phi_dot;w", *map(";".join, cells)]))
    capsys.readouterr()
    found = told(capsys, "inverse", "unicycle", "--motion", str(short))
    assert found["start"]["tau_drive"] == pytest.approx(0.2, abs=1e-5)
    assert found["final"]["tau_steer"] == pytest.approx(0.1, abs=1e-5)


def test_inverse_along_formulas_and_paths(capsys):
    model = model_of("unicycle")
    found = told(
        capsys, "inverse", "unicycle", "--path", "circle:radius=2,speed=0.5", "--every", "1"
    )
    expected = ax.paths.follow(model, ax.paths.circle(2.0, speed=0.5), save_every=1.0)
    for name in ("phi", "w", "tau_drive"):
        assert found["final"][name] == pytest.approx(expected[name][-1], rel=1e-9, abs=1e-12)
    found = told(
        capsys,
        "inverse",
        "unicycle",
        "--motion",
        "phi_dot=t**2,w=sin(t)",
        "--time",
        "2",
        "--every",
        "0.5",
    )
    expected = ax.inverse_dynamics(
        model, {"phi_dot": "t**2", "w": "sin(t)"}, times=2.0, save_every=0.5
    )
    for name in ("tau_drive", "tau_steer"):
        assert found["final"][name] == pytest.approx(expected[name][-1], rel=1e-9)


# export, gallery, verify, bench, doctor ----------------------------------------------------------


@pytest.mark.parametrize("ending", [".c", ".axm", ".tex", ".toml", ".ptx", ".fmu"])
def test_export_writes_what_the_ending_says(ending, tmp_path, capsys):
    found = told(capsys, "export", "unicycle", "--to", str(tmp_path / f"u{ending}"))
    files = [Path(file) for file in found["files"]]
    assert all(file.stat().st_size for file in files)
    assert files[0].suffix == ending
    if ending == ".c":
        assert [file.suffix for file in files] == [".c", ".h"]
        assert "forward_dynamics" in files[1].read_text()
    if ending == ".toml":
        again, first = ax.load(files[0]).derive(), ax.gallery.build("unicycle").derive()
        assert str(again.mobility) == str(first.mobility)
    if ending == ".axm":
        model = ax.load_model(files[0])
        assert model.forward_dynamics({}, {}, {"tau_drive": 1.0})[0] > 0


def test_export_begins_names_in_c_as_asked(tmp_path, capsys):
    found = told(capsys, "export", "unicycle", "--to", str(tmp_path / "u.c"), "--prefix", "left_")
    assert "void left_forward_dynamics(" in Path(found["files"][1]).read_text()


def test_export_of_a_unit_takes_its_options(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    words = ["--fmi", "3.0", "--outputs", "x,theta", "--step", "0.01", "--start", "x=0.25"]
    found = told(capsys, "export", "unicycle", "--to", str(tmp_path / "u.fmu"), *words)
    with zipfile.ZipFile(found["files"][0]) as archive:
        text = archive.read("modelDescription.xml").decode()
    assert (
        'fmiVersion="3.0"' in text and text.count('causality="output"') == 2 + 2
    )  # what the steps report
    assert 'start="0.25"' in text
    assert text.count('causality="parameter"') == 1 + len(found["arrays"]["p"]) > 1


def test_gallery_tells_more_of_one(capsys):
    found = told(capsys, "gallery", "caster_robot")
    mechanism = ax.gallery.build("caster_robot")
    assert found["bodies"] == [body.name for body in mechanism.bodies]
    assert found["parameters"] == mechanism.derive().parameters
    assert run(["gallery", "caster_robot"]) == 0
    assert "Angeles" in capsys.readouterr().out


def test_gallery_lists_one_a_line_in_a_pipe(capsys):
    assert run(["gallery"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(ax.gallery.NAMES)


def test_verify_a_file_of_cases(tmp_path, capsys):
    from axode.literature.acceptance.cases import OPEN_CASES

    cases = json.loads(Path(OPEN_CASES).read_text())[:1]
    file = tmp_path / "cases.json"
    file.write_text(json.dumps(cases))
    assert all(check["passed"] for check in told(capsys, "verify", str(file)))
    name, value = next(iter(cases[0]["expected"].items()))
    cases[0]["expected"] = {name: np.asarray(value).astype(float).tolist()}
    cases[0]["expected"][name] = (np.asarray(value, dtype=float) + 1).tolist()
    file.write_text(json.dumps(cases))
    assert not told(capsys, "verify", str(file), code=1)[0]["passed"]


def test_bench_times_what_it_is_asked_for(capsys):
    found = told(
        capsys,
        "bench",
        "chaplygin_sleigh",
        "--functions",
        "energy,mass_matrix",
        "--repeat",
        "3",
        "--batch",
        "16",
    )
    assert [row["function"] for row in found["functions"]] == ["energy", "mass_matrix"]
    for row in found["functions"]:
        for kind in ("call", "scalar", "vector", "threads"):
            assert 0 < row[kind]["min"] <= row[kind]["median"] <= row[kind]["max"]
    for steps in found["steps_per_second"].values():
        assert 0 < steps["min"] <= steps["median"] <= steps["max"]
    assert run(["bench", "chaplygin_sleigh", "--functions", "nope"]) == 1
    assert "has no function 'nope'" in capsys.readouterr().err


@pytest.mark.slow
def test_doctor_finds_nothing_wrong_here(capsys):
    found = told(capsys, "doctor")
    assert found["passed"]
    assert {check["what"] for check in found["checks"]} >= {"derive", "machine code", "simulate"}
    assert found["versions"]["axode"] == ax.__version__
    assert found["lanes"] in (2, 4, 8)


@pytest.mark.slow
def test_doctor_sees_what_is_wrong(monkeypatch, capsys):
    from axode.cli import doctor
    from axode.problems.assemble import assemble

    assert run(["doctor"]) == 0  # imports what would otherwise keep the broken function
    capsys.readouterr()

    def broken(*_arguments, **_options):
        raise RuntimeError("a broken installation")

    monkeypatch.setattr(assemble, "assemble", broken)
    monkeypatch.setattr(doctor, "driver", lambda: "550.54")
    monkeypatch.setattr(doctor, "find_spec", lambda package: None)
    monkeypatch.setattr(doctor, "_writable", lambda folder: False)
    assert run(["doctor"]) == 0
    shown = capsys.readouterr().out
    assert "FAILED  loops: RuntimeError: a broken installation" in shown
    assert "OK      derive" in shown
    problems = shown.partition("Problems:")[2]
    assert "  loops: RuntimeError: a broken installation" in problems
    assert "driver for NVIDIA GPUs" in problems and "temporary folder" in problems
    assert "AXODE_CACHE" in problems or "off (AXODE_CACHE)" in shown


# terminals ---------------------------------------------------------------------------------------


def test_a_terminal_shows_the_same_words_in_tables(monkeypatch, capsys):
    lines = (
        ["check", "chaplygin_sleigh"],
        ["gallery"],
        ["derive", "chaplygin_sleigh"],
        ["compare", "chaplygin_sleigh"],
        ["inverse", "unicycle"],
    )
    for line in lines:
        assert run(line) == 0
        plain = capsys.readouterr().out
        with monkeypatch.context() as patch:
            patch.setattr("axode.cli.output.on_terminal", lambda: True)
            patch.setenv("COLUMNS", "400")
            assert run(line) == 0
        drawn = capsys.readouterr().out
        assert drawn != plain
        kept = {word for word in plain.split() if word.isidentifier() and len(word) > 4}
        assert len(kept & set(drawn.split())) > 0.8 * len(kept), line


def test_a_bracket_in_a_name_is_no_markup(monkeypatch, capsys):
    from axode.cli.output import show_entries, show_table

    monkeypatch.setattr("axode.cli.output.on_terminal", lambda: True)
    show_table(("[red]", ">x"), [("[bold]", "1")], title="[i]", note="[/nothing]")
    show_entries("[u]", [("label", "[/]")])
    shown = capsys.readouterr().out
    for word in ("[red]", "[bold]", "[i]", "[/nothing]", "[u]", "[/]"):
        assert word in shown
