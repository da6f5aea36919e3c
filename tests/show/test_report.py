"""A report says what is so, stands alone, and tells what is missing."""

import base64
import io
import json
import re
import sys

import numpy as np
import pytest

import axode as ax
from axode import gallery
from axode.printing.mathml import math_font, to_mathml
from axode.show.report import report
from axode.show.report.cell_player import playback
from random_mechanisms import MECHANISMS
from variants import further


@pytest.fixture(scope="module")
def pendulum():
    return gallery.build("wheeled_pendulum").derive()


@pytest.fixture(scope="module")
def swing(pendulum):
    return ax.simulate(pendulum.compile(), 1.0, start={"theta3": 0.3}, progress=False)


@pytest.fixture(scope="module")
def text(pendulum, swing, tmp_path_factory):
    path = report(pendulum, tmp_path_factory.mktemp("report") / "pendulum.html", run=swing)
    return path.read_text(encoding="utf-8")


def numbers(packed: str, kind: str = "<f4") -> np.ndarray:
    return np.frombuffer(base64.b64decode(packed), dtype=kind)


@pytest.mark.slow
def test_the_page_asks_for_nothing_from_elsewhere(text):
    """Every address in it is data of its own; names of XML dialects are no addresses."""
    addresses = re.findall(r'(?:src|href)="([^"]*)"|url\(([^)]*)\)', text)
    for address in (a or b for a, b in addresses):
        assert address.startswith(("data:", "#")), address


def test_the_page_tells_mobility_parameters_energy_and_status(text, pendulum, swing):
    assert str(pendulum.mobility).splitlines()[0] in text
    assert "<math" in text and "<svg" in text
    assert f"{swing.energy_error:.3g}" in text
    assert f"<td>Computing time</td><td>{swing.info['seconds']:.3g} s</td>" in text
    assert "<td>Relative tolerance</td><td>1e-10</td>" in text
    for name, value in pendulum.parameters.items():
        assert f'<td>{name}</td><td class="number">{value:.9g}</td>' in text


def test_what_happened_names_peaks_of_motors_speeds_and_energies(text, swing):
    happened = text[text.index("<h2>What happened</h2>") : text.index("<h2>Plots</h2>")]
    duty = next(iter(swing.motors.values()))
    k = int(np.argmax(np.abs(duty.torque)))
    peak = f"{abs(duty.torque[k]):.4g} {duty.units[0]}"
    peak += f" at {duty.time[k]:.4g} s" if duty.torque[k] else ""
    assert f"<td>{duty.name}</td><td>{peak}</td>" in happened
    for name in swing.columns("independent"):
        assert f"<td>{name}</td><td>{np.abs(swing[name]).max():.4g} " in happened
    change = swing.final["kinetic"] - swing["kinetic"][0]
    assert f"<td>Kinetic</td><td>{change:.4g} J</td>" in happened


@pytest.mark.slow
def test_what_happened_tells_the_friction_that_rolling_took(tmp_path):
    bot = ax.Mechanism("cart")
    body = bot.add_body("body", mass=8.0, com=(0, 0, 0.1), inertia=(0.1, 0.1, 0.2))
    bot.add_joint("base", ax.Planar(), parent=bot.ground, child=body)
    for name, x, y in (("left", 0.0, 0.2), ("right", 0.0, -0.2)):
        bot.add_wheel(name, ax.Rolling(0.1), on=body, at=(x, y, 0.1), mass=0.5, motor=True)
    bot.add_wheel("ball", ax.Ball(0.05), on=body, at=(-0.3, 0, 0.05), mass=0.1)
    model = bot.derive().compile()
    run = ax.simulate(model, 1.0, input={"left.torque": 0.3, "right.torque": 0.3})
    text = report(model, tmp_path / "cart.html", run=run).read_text(encoding="utf-8")
    found = ax.feasible(model, run, friction=1.0)
    for k, wheel in enumerate(found.wheels):
        load, used = found.normal[:, k], found.share[:, k].max()
        cells = f"<td>{wheel}</td><td>{load.min():.4g} N</td><td>{load.max():.4g} N</td>"
        assert f"{cells}<td>{used:.4g} at " in text
    assert "nan" not in text[text.index("What happened") : text.index("<h2>Plots")]
    run.save(tmp_path / "run.npz")  # of a run that does not know its model, what is known
    again = ax.Trajectory.load(tmp_path / "run.npz")
    text = report(model, tmp_path / "again.html", run=again).read_text(encoding="utf-8")
    assert "<td>left.torque</td><td>0.3 N m at 0 s</td>" in text


def test_the_table_to_take_away_is_the_run(text, swing):
    data = re.search(r'href="data:text/csv;base64,([^"]*)"', text)[1]
    lines = base64.b64decode(data).decode().splitlines()
    assert lines[0].split(",") == ["time", *swing.names]
    assert len(lines) == 1 + len(swing)
    last = [float(x) for x in lines[-1].split(",")]
    assert last == pytest.approx(
        [swing.time[-1], *swing.values[-1]], rel=1e-8, abs=1e-12, nan_ok=True
    )


def test_playback_has_the_poses_of_the_model(pendulum, swing, text):
    model = pendulum.compile()
    embedded = json.loads(re.search(r'id="playback">(.*?)</script>', text, re.DOTALL)[1])
    assert embedded == playback(model, swing)
    vectors = numbers(embedded["poses"]).reshape(-1, len(model.bodies), 7)
    q = [swing[name][-1] for name in model.coordinates]
    poses = model.poses(q)
    assert vectors[-1, :, :3] == pytest.approx(poses[:, :3, 3], abs=1e-6)
    x, y, z, w = vectors[-1, :, 3:].T
    assert 1 - 2 * (y**2 + z**2) == pytest.approx(poses[:, 0, 0], abs=1e-6)
    assert 2 * (x * z + y * w) == pytest.approx(poses[:, 0, 2], abs=1e-6)


def test_long_runs_are_thinned_and_indices_fit(swing, pendulum):
    long = ax.simulate(pendulum.compile(), 100.0, save_every=0.02, progress=False)
    data = playback(pendulum.compile(), long)
    assert len(numbers(data["time"])) == 1500
    for mesh in data["meshes"]:
        count = len(numbers(mesh["vertices"], "<u2")) // 3
        assert numbers(mesh["triangles"], "<u2").max() == count - 1


def test_the_runs_own_parameters_shape_it(pendulum):
    """Wheels of the radius that the run had, and not of the default."""
    model = pendulum.compile()
    batch = ax.simulate(model, 0.1, parameters={"r": [0.3, 0.45]}, progress=False)
    for k, radius in enumerate((0.3, 0.45)):
        data = playback(model, batch.run(k))
        tyre = next(m for m in data["meshes"] if m["body"] == model.bodies.index("wheel1"))
        places = numbers(tyre["vertices"], "<u2").reshape(-1, 3) * tyre["step"] + tyre["low"]
        x, _, z = places.T
        assert np.hypot(x, z).max() == pytest.approx(radius, abs=1.5 * tyre["step"])
        tracks = numbers(data["tracks"][0]["points"]).reshape(-1, 3)
        assert tracks[:, 2] == pytest.approx(0.0, abs=1e-6)


def test_a_run_backwards_is_played_forwards(pendulum):
    model = pendulum.compile()
    back = ax.simulate(model, -1.0, backwards=True, start={"theta3": 0.3}, progress=False)
    data = playback(model, back)
    assert (np.diff(numbers(data["time"])) > 0).all()
    theta3 = next(s for s in data["signals"] if s["name"] == "theta3")
    assert numbers(theta3["values"])[-1] == pytest.approx(0.3)


@pytest.mark.slow
def test_a_mechanism_that_time_moves_is_where_the_clock_puts_it():
    """Poses are asked for with the time of each moment."""
    model = MECHANISMS["disk_on_plate"]().derive().compile()
    run = ax.simulate(model, 1.0, progress=False)
    vectors = numbers(playback(model, run)["poses"]).reshape(-1, len(model.bodies), 7)
    q = np.array([run[name][-1] for name in model.coordinates])
    assert vectors[-1, :, :3] == pytest.approx(model.poses(q, t=1.0)[:, :3, 3], abs=1e-5)


def test_an_animation_moves(pendulum, swing, tmp_path):
    from PIL import Image, ImageChops

    path = swing.animate(tmp_path / "swing.gif", rate=4, size=(80, 60))
    with Image.open(path) as film:
        assert film.n_frames == 5 and film.size == (80, 60)
        first = film.convert("RGB")
        film.seek(2)
        assert ImageChops.difference(first, film.convert("RGB")).getbbox() is not None


@pytest.mark.slow
def test_a_mechanism_without_a_run_stands_still(tmp_path):
    page = report(gallery.build("four_bar"), tmp_path / "still.html").read_text(encoding="utf-8")
    assert "Mobility" in page and "What happened" not in page


@pytest.mark.slow
def test_a_run_reports_itself(swing, text, tmp_path):
    assert swing.report(tmp_path / "run.html").read_text(encoding="utf-8") == text


def test_a_loaded_model_says_that_it_has_no_equations(pendulum, tmp_path):
    model = pendulum.compile()
    model.save(tmp_path / "p.axm", ["poses"])
    page = report(ax.load_model(tmp_path / "p.axm"), tmp_path / "p.html").read_text("utf-8")
    assert "loaded from a file" in page


def test_what_cannot_be_told(pendulum, swing, tmp_path):
    with pytest.raises(ax.InvalidArgument, match=r"has to end in \.html"):
        report(pendulum, tmp_path / "page.pdf")
    with pytest.raises(ax.InvalidArgument, match="a mechanism, its equations, a model or a run"):
        report(3.0, tmp_path / "page.html")
    swing.save(tmp_path / "swing.npz")
    loaded = ax.Trajectory.load(tmp_path / "swing.npz")
    with pytest.raises(ax.InvalidArgument, match="does not know its model"):
        loaded.report(tmp_path / "page.html")
    with pytest.raises(ax.InvalidArgument, match="the run is one of 'wheeled_pendulum'"):
        report(gallery.build("four_bar"), tmp_path / "page.html", run=swing)
    with pytest.raises(ax.InvalidArgument, match="no column for x"):
        report(pendulum, tmp_path / "page.html", run=swing[["surge"]])
    batch = ax.simulate(pendulum.compile(), 0.1, start={"theta3": [0.1, 0.2]}, progress=False)
    with pytest.raises(ax.InvalidArgument, match="a batch of shape"):
        report(pendulum, tmp_path / "page.html", run=batch)
    (tmp_path / "file").write_text("")
    with pytest.raises(ax.FileError, match="cannot write"):
        report(pendulum, tmp_path / "file" / "page.html")
    assert not list(tmp_path.glob("*.html*"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["four_bar", further("six_legged_platform")])
def test_without_the_converter_equations_are_tex(name, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "latex2mathml.converter", None)
    page = report(gallery.build(name), tmp_path / "x.html").read_text(encoding="utf-8")
    assert "[report]" in page and r"\dot{\boldsymbol{\nu}}" in page and "<math" not in page


def test_without_matplotlib_the_remedy_is_told(pendulum, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ax.NotApplicable, match=r"pip install .*\[plot\]"):
        report(pendulum, tmp_path / "x.html")


def test_names_cannot_break_the_page(tmp_path):
    bot = ax.Mechanism("a<b>&</script><!--<script>")
    arm = bot.add_body("arm", mass=1.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.1))
    bot.add_joint("j", ax.Revolute("y"), parent=bot.ground, child=arm)
    page = report(bot, tmp_path / "x.html").read_text(encoding="utf-8")
    # a comment that opens a script inside a script makes a browser swallow the rest of the page
    assert "<!--<script" not in page and page.count("<script") == page.count("</script>")
    assert "<title>A&lt;b&gt;&amp;&lt;/script&gt;&lt;!--&lt;script&gt;</title>" in page
    assert json.loads(re.search(r'id="playback">(.*?)</script>', page, re.DOTALL)[1])["name"] == (
        "a<b>&</script><!--<script>"
    )


@pytest.mark.slow
def test_formulas_of_all_the_gallery_are_known_to_the_converter():
    for name in ("four_bar", "rolling_disk", "unicycle", "snakeboard", "ballbot"):
        assert "<mtable" in to_mathml(gallery.build(name).derive().latex())
    with pytest.raises(ValueError, match=r"does not know \\nonsense"):
        to_mathml(r"\nonsense{x}")


def test_the_font_of_a_page_has_the_sign_of_roots():
    # which is an element of MathML and no text; browsers draw nothing for a letter that is missing
    fonts = pytest.importorskip("fontTools.ttLib")
    rule = math_font(to_mathml(r"\sqrt{x}"))
    data = base64.b64decode(rule.partition("base64,")[2].partition(")")[0])
    letters = fonts.TTFont(io.BytesIO(data)).getBestCmap()
    assert {ord("\N{SQUARE ROOT}"), 0x1D465} <= set(letters)


@pytest.mark.parametrize(
    "tex", [r"\sin x", r"\sin \theta_{2}", r"\cos \dot{x}", r"\sin^{2} \theta_{1}"]
)
def test_a_space_follows_the_name_of_a_function(tex):
    assert '<mspace width="0.167em" />' in to_mathml(tex)


def test_script_letters_are_letters():
    # browsers ignore mathvariant="script": the letter itself has to be the script one
    for tex in (r"\mathcal M x", r"\mathcal{M} x", r"\bar{\mathcal M}"):
        mathml = to_mathml(tex)
        assert "&#x02133;" in mathml and "mathvariant" not in mathml
