"""A report opens from its file, plays, scrubs and turns, and fetches nothing."""

import numpy as np
import pytest

import axode as ax
from axode.show.report import report
from tests.browser.conftest import colours

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    equations = ax.gallery.build("differential_drive").derive()
    run = ax.simulate(
        equations.compile(), 30.0, start={"phi_R_dot": 3.0, "phi_L_dot": 1.5}, progress=False
    )
    return report(equations, tmp_path_factory.mktemp("report") / "page.html", run=run)


def frame(sight) -> int:
    return int(sight.page.evaluate("document.body.dataset.frame"))


@pytest.mark.slow
def test_a_report_plays_scrubs_and_turns(sight, page_file):
    sight.page.goto(page_file.as_uri())
    sight.page.wait_for_function("document.body.dataset.frame !== undefined")
    before = sight.picture("#scene")
    assert colours(before) > 100
    assert sight.page.locator("math").count() >= 1

    sight.page.locator("#scrub").fill("80")
    assert frame(sight) == 80
    after = sight.picture("#scene")
    assert np.mean(np.any(before != after, axis=-1)) > 0.01

    sight.page.locator("#play").click()
    sight.page.wait_for_function("document.body.dataset.frame > 85", timeout=20_000)
    sight.page.locator("#play").click()
    assert sight.page.locator("#play").inner_text() == "Play"

    sight.page.locator("#scrub").fill("80")
    box = sight.page.locator("#scene").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    sight.page.mouse.move(x, y)
    sight.page.mouse.down()
    sight.page.mouse.move(x + 150, y + 20, steps=3)
    sight.page.mouse.up()
    assert np.mean(np.any(sight.picture("#scene") != after, axis=-1)) > 0.05

    assert not sight.complaints and not sight.strangers
