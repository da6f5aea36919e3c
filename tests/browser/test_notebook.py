"""Players in a notebook that was exported as HTML play side by side, and fetch nothing."""

import numpy as np
import pytest

import axode as ax
from tests.browser.conftest import colours

pytestmark = pytest.mark.browser

# Exporters put what a cell shows into a page of their own as it is.
PAGE = '<!doctype html><html><body><main><div class="output_html">{}</div>{}</main></body></html>'


@pytest.mark.slow
def test_two_players_share_an_exported_notebook(sight, tmp_path):
    cells = []
    for name, start in (("unicycle", {"v": 1.0, "w": 0.5}), ("four_bar", None)):
        model = ax.gallery.build(name).derive().compile()
        cells.append(ax.simulate(model, 2.0, start=start, progress=False).player()._repr_html_())
    file = tmp_path / "book.html"
    file.write_text(PAGE.format(*cells), encoding="utf-8")
    sight.page.set_viewport_size({"width": 620, "height": 700})  # the controls need two lines
    sight.page.goto(file.as_uri())
    for place, frame in enumerate(sight.page.frames[1:]):
        sight.page.locator("iframe").nth(place).scroll_into_view_if_needed()
        frame.wait_for_function("document.body.dataset.frame !== undefined")
        before = sight.picture(f"iframe >> nth={place}")
        frame.locator("#scrub").fill("40")
        after = sight.picture(f"iframe >> nth={place}")
        assert colours(after) > 100
        assert np.mean(np.any(before != after, axis=-1)) > 0.002
        frame.locator("#play").click()
        frame.wait_for_function("document.body.dataset.frame > 45", timeout=20_000)
        assert frame.evaluate("document.documentElement.scrollHeight <= innerHeight")
        # a page that is laid out late changes sizes without telling the frame
        frame.locator("#scrub").fill("10")
        frame.evaluate("document.body.style.width = '300px'")
        frame.wait_for_function("document.getElementById('scene').width <= 300")
    assert len(sight.page.frames) == 3
    assert not sight.complaints and not sight.strangers


def test_equations_in_a_cell_meet_at_their_signs_of_equality(sight, tmp_path):
    """No style of the notebook helps: the columns say themselves how they are aligned."""
    file = tmp_path / "cell.html"
    text = ax.gallery.build("unicycle").derive()._repr_html_()
    file.write_text(PAGE.format(text, ""), encoding="utf-8")
    sight.page.goto(file.as_uri())
    places = sight.page.evaluate(
        """[...document.querySelectorAll("math > mrow > mtable > mtr > mtd:nth-child(2)")].map(
        (cell) => cell.querySelector("mo").getBoundingClientRect().left)"""
    )
    assert len(places) > 4 and max(places) - min(places) < 2.0
