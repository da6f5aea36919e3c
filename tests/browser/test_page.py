"""A page that simulates a mechanism: same numbers as Python, keys, sliders, no network."""

from __future__ import annotations

import numpy as np
import pytest

import axode as ax
from tests.browser.conftest import colours

pytestmark = pytest.mark.browser
MOST_BYTES = 400_000


@pytest.fixture(scope="module")
def tricycle(tmp_path_factory):
    model = ax.gallery.build("tricycle").derive().compile()
    return model, ax.page(model, tmp_path_factory.mktemp("page") / "tricycle.html")


def opened(sight, path):
    sight.page.goto(path.as_uri())
    sight.page.wait_for_function("document.body.dataset.time !== undefined", timeout=20_000)
    return sight.page


def test_steps_equal_those_of_python(sight, tricycle):
    model, path = tricycle
    assert path.stat().st_size < MOST_BYTES
    page = opened(sight, path)
    names = [*model.coordinates, *model.independent]
    inputs = dict(zip(model.inputs, (0.05, 0.4), strict=True))
    computed = page.evaluate(
        "([inputs, names]) => { axode.robot.set(inputs); axode.robot.step(1e-3, 1500);"
        " return names.map((name) => axode.robot.get(name)); }",
        [inputs, names],
    )
    run = ax.simulate(model, 1.5, input=inputs, method="rk4", step=1e-3)
    assert computed == pytest.approx([run.final[n] for n in names], rel=1e-12, abs=1e-12)
    assert page.evaluate("axode.robot.get('kinetic')") == pytest.approx(run.final["kinetic"])
    assert not sight.complaints and not sight.strangers


def test_keys_drive_and_steering_returns(sight, tricycle):
    """A steering key sets an angle, which returns to the middle when it is released."""
    _, path = tricycle
    page = opened(sight, path)
    before = sight.picture("#scene")
    assert colours(before) > 100
    page.keyboard.down("ArrowUp")
    page.keyboard.down("a")
    page.evaluate("axode.advance(2.0)")
    turned = page.evaluate("[...axode.robot.q]")
    assert turned[3] == pytest.approx(page.evaluate("axode.data.angle"), abs=0.05)
    page.keyboard.up("a")
    page.evaluate("axode.advance(2.0)")
    page.keyboard.up("ArrowUp")
    after = page.evaluate("[...axode.robot.q]")
    assert abs(after[3]) < 0.05
    assert np.hypot(after[0], after[1]) > 1.0
    labels = page.locator("#motors label").all_inner_texts()
    assert [text.split("\n")[0] for text in labels] == ["steer [rad]", "drive [rad/s]"]
    page.locator("#motor0").fill("0.3")  # the angle itself, and no rate
    page.evaluate("axode.advance(3.0)")
    assert page.evaluate("[...axode.robot.q]")[3] == pytest.approx(0.3, abs=1e-3)
    page.keyboard.press("r")
    assert page.evaluate("axode.robot.time") < 2.0  # it still runs
    assert not sight.complaints and not sight.strangers


def test_a_law_is_compiled_in(sight, tmp_path):
    """The pendulum stands as long as its law is on; boxes and sliders work."""
    model = ax.gallery.build("wheeled_pendulum").derive().compile()
    damping = {"M1": "-0.2*theta1_dot", "M2": "-0.2*theta2_dot"}
    start = {"theta1_dot": 2.0}
    path = ax.page(model, tmp_path / "page.html", input=damping, start=start, title="A <b> & c")
    page = opened(sight, path)
    assert page.title() == "A <b> & c"
    page.evaluate("axode.advance(1.0)")
    run = ax.simulate(model, 1.0, start=start, input=damping, method="rk4", step=1e-3)
    got = page.evaluate("['theta1', 'theta2'].map((n) => axode.robot.get(n))")
    assert got == pytest.approx([run.final["theta1"], run.final["theta2"]], rel=1e-9)
    page.locator("#law").uncheck()
    page.locator("#parameter0").fill("0.1")
    page.locator("#motor0").fill("1")
    assert (
        page.evaluate("axode.data.parameters.length") == page.locator("#parameters input").count()
    )
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert not sight.complaints and not sight.strangers


def test_steps_per_second(sight, tricycle):
    """The page is compiled code: a million steps take no minute, on any machine."""
    page = opened(sight, tricycle[1])
    assert page.evaluate("axode.robot.step(1e-6, 1000000)") == "running"


@pytest.fixture(scope="module")
def platform(tmp_path_factory):
    model = ax.gallery.build("planar_3rrr").derive().compile()
    return model, ax.page(model, tmp_path_factory.mktemp("page") / "platform.html")


def test_sliders_of_a_loop(sight, platform):
    """An angle is reached; a value with which loops do not close is refused; a singular stop."""
    page = opened(sight, platform[1])
    place = page.evaluate("axode.data.motors[0].coordinate")
    goal = page.evaluate("axode.robot.q[axode.data.motors[0].coordinate]") + 0.3
    page.locator("#motor0").fill(str(goal))
    assert page.inner_text("#run") == "Pause"  # the first touch of a slider starts it
    page.evaluate("axode.advance(2.0)")
    assert page.evaluate("[...axode.robot.q]")[place] == pytest.approx(goal, abs=1e-3)
    page.locator("#run").click()
    name = page.evaluate("axode.data.parameters.findIndex((p) => p.name === 'l2')")
    length = page.locator(f"#parameter{name}")
    page.evaluate(f"const s = document.getElementById('parameter{name}'); s.min = 0")
    before = page.evaluate("[[...axode.robot.q], [...axode.robot.p]]")
    length.fill("0.001")
    assert "the loops do not close" in page.inner_text("#said")
    assert page.evaluate("[[...axode.robot.q], [...axode.robot.p]]") == before
    assert float(length.input_value()) == pytest.approx(before[1][name])
    page.locator("#mode").select_option("speed")
    page.locator("#motor0").fill("1")
    page.evaluate("axode.advance(3.0)")
    assert "a singular posture was reached" in page.inner_text("#said")
    again = page.evaluate("[axode.robot.step(1e-3, 10), [...axode.robot.q].every(Number.isFinite)]")
    assert again == ["singular", True]
    page.locator("#reset").click()
    assert page.evaluate("axode.advance(0.1)") == pytest.approx(0.1)
    assert not sight.complaints and not sight.strangers


def test_controls_without_a_mouse(sight, platform):
    """Tab reaches every control, each has a name; curves are saved; errors are shown."""
    page = opened(sight, platform[1])
    page.locator("summary").focus()
    page.keyboard.press("Enter")
    page.evaluate("document.activeElement.blur(); axode.advance(0.1)")
    controls = page.locator("button, input, select, summary, canvas[tabindex]")
    reached, names = set(), set()
    for _ in range(controls.count()):
        page.keyboard.press("Tab")
        place, named = page.evaluate(
            "[[...document.querySelectorAll('*')].indexOf(document.activeElement), "
            "(document.activeElement.ariaLabel || document.activeElement.labels?.[0]?.textContent "
            "|| document.activeElement.textContent).trim()]"
        )
        reached.add(place)
        names.add(bool(named))
    assert len(reached) == controls.count() and names == {True}
    with page.expect_download() as download:
        page.locator("#save").press("Enter")
    rows = download.value.path().read_text().splitlines()
    assert rows[0].startswith("time,") and rows[1].startswith("s,") and len(rows) > 4
    while page.locator("#list input:checked").count():
        page.locator("#list input:checked").first.uncheck()
    assert page.locator("#chart").is_hidden()
    page.evaluate("setTimeout(() => { throw new Error('broken'); })")
    page.wait_for_function("document.getElementById('fault').textContent.includes('broken')")
    assert sight.complaints == ["broken"] and not sight.strangers


def test_keys_change_what_a_law_wants(sight, tmp_path):
    model = ax.gallery.build("unicycle").derive().compile()
    law = {"tau_drive": "m*0.1"}
    path = ax.page(model, tmp_path / "page.html", input=law, keys={"ahead": "m"})
    page = opened(sight, path)
    mass = model.parameters["m"]
    page.keyboard.down("w")
    page.evaluate("axode.advance(0.1)")
    assert page.evaluate("axode.robot.get('m')") == pytest.approx(2 * mass)
    page.keyboard.up("w")
    page.evaluate("axode.advance(0.1)")
    assert page.evaluate("axode.robot.get('m')") == pytest.approx(mass)
    held = ax.page(model, tmp_path / "held.html", input={"tau_drive": 0.2})
    page = opened(sight, held)
    page.evaluate("axode.advance(1.0)")
    run = ax.simulate(model, 1.0, input={"tau_drive": 0.2}, method="rk4", step=1e-3)
    assert page.evaluate("axode.robot.get('x')") == pytest.approx(run.final["x"], rel=1e-9)
    assert not sight.complaints and not sight.strangers


def test_steps_are_audited_and_impossible_parameters_refused(sight, tmp_path):
    """A motion too fast for steps of a millisecond says so; a slider keeps what is possible."""
    model = ax.gallery.build("wheeled_pendulum").derive().compile()
    page = opened(sight, ax.page(model, tmp_path / "page.html"))
    start = {"theta3": 0.3, "theta3_dot": 5.0}
    found = page.evaluate(
        "(start) => { const r = axode.robot; r.set(start); r.step(1e-3, 500);"
        " const slow = [r.energyError, r.inaccurate, r.smallestPivot];"
        " r.set({theta3_dot: 2000}); r.step(1e-3, 20);"
        " return [...slow, r.energyError, r.inaccurate]; }",
        start,
    )
    run = ax.simulate(model, 0.5, start=start, method="rk4", step=1e-3)
    assert found[0] == pytest.approx(run["error"][-1], abs=1e-10)
    assert found[1] is False and 0 < found[2] <= 1
    assert abs(found[3]) > 1e-3 and found[4] is True
    assert page.evaluate("axode.change('m', -1)") > 0
    page.evaluate("axode.robot.set({m: -1})")
    assert page.evaluate("axode.robot.impossible()").startswith("mass of body")
    page.evaluate("axode.run(true)")
    assert page.inner_text("#run") == "Run"  # it does not start


@pytest.mark.parametrize("period", [None, 0.05])
def test_a_law_that_remembers_runs_in_the_page(sight, tmp_path, period):
    model = ax.gallery.build("wheeled_pendulum").derive().compile()
    blocks = {"pi": ax.blocks.PI(0.2, 0.5, limit=0.3, period=period), "lag": ax.blocks.LowPass(0.1)}

    def drive(s, pi, lag):
        torque = lag(pi(1.0 - s["theta1_dot"]))
        return {"M1": torque, "M2": torque}

    law, start = ax.Law(drive, **blocks), {"theta3": 0.1, "pi.integral": 0.05}
    path = ax.page(model, tmp_path / "page.html", input=law, start=start)
    page = opened(sight, path)
    page.evaluate("axode.advance(0.525)")
    end = page.evaluate("axode.robot.time")
    run = ax.simulate(model, end, start=start, input=law, method="rk4", step=1e-3)
    for name in ("theta1", "theta3", "pi.integral", "lag.filtered"):
        assert page.evaluate(f"axode.robot.get('{name}')") == pytest.approx(
            run.final[name], rel=1e-8
        )
    page.locator("#law").uncheck()
    page.evaluate("axode.advance(0.1)")
    assert page.evaluate("axode.robot.get('pi.integral')") == pytest.approx(
        run.final["pi.integral"], rel=1e-8
    )
    assert not sight.complaints and not sight.strangers


def test_keys_are_those_of_the_viewer(sight, tricycle, tmp_path):
    page = opened(sight, tricycle[1])
    page.keyboard.press("Enter")
    assert page.inner_text("#run") == "Pause"
    page.locator("#motor1").fill("3")
    page.locator("h1").click()
    page.keyboard.press(" ")  # all motors zero; it still runs
    assert page.input_value("#motor1") == "0" and page.inner_text("#run") == "Pause"
    page.keyboard.press("Enter")
    page.keyboard.press("Backspace")
    assert page.evaluate("axode.robot.time") == 0.0
    arm = ax.gallery.build("five_axis_arm").derive().compile()
    page = opened(sight, ax.page(arm, tmp_path / "arm.html"))
    page.keyboard.press("l")
    before = [float(page.input_value(f"#motor{k}")) for k in (0, 1)]
    page.keyboard.press("i")
    after = [float(page.input_value(f"#motor{k}")) for k in (0, 1)]
    assert after[0] == before[0] and after[1] > before[1]
    assert page.locator("label.picked #motor1").count() == 1
    assert not sight.complaints and not sight.strangers


def test_rounding_is_drawn_flat(sight, tmp_path):
    """Speeds of 1e-18 m/s make no axis of their own."""
    cart = ax.Mechanism("cart")
    body = cart.add_body("body", mass=1.0, inertia=ax.Inertia.point(), shape=ax.Box((1, 1, 1)))
    cart.add_joint("rail", ax.Prismatic("x"), parent=cart.ground, child=body)
    model = cart.derive().compile()
    page = opened(sight, ax.page(model, tmp_path / "page.html", start={"rail.rate": 1e-18}))
    page.evaluate(
        """() => { const draw = CanvasRenderingContext2D.prototype.fillText; globalThis.texts = [];
        CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
          texts.push(text); draw.call(this, text, ...rest); }; }"""
    )
    page.evaluate("axode.advance(0.5)")
    texts = page.evaluate("texts")
    assert texts and not [text for text in texts if "e-" in text]
    assert "e-" not in page.inner_text("#legend")
