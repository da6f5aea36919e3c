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
    page.keyboard.press("r")
    assert page.evaluate("axode.robot.time") < 2.0  # it still runs
    assert not sight.complaints and not sight.strangers


def test_a_law_is_compiled_in(sight, tmp_path):
    """The pendulum stands as long as its law is on; boxes and sliders work."""
    model = ax.gallery.build("wheeled_pendulum").derive().compile()
    damping = {"M1": "-0.2*theta1_dot", "M2": "-0.2*theta2_dot"}
    start = {"theta1_dot": 2.0}
    path = ax.page(model, tmp_path / "page.html", law=damping, start=start, title="A <b> & c")
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
