"""The fixtures themselves: a page is drawn, and what it complains of is heard."""

import pytest

from tests.browser.conftest import Sight, colours

pytestmark = pytest.mark.browser


def test_a_page_is_seen_and_heard(sight: Sight) -> None:
    sight.page.set_content("<h1>Axode</h1><script>console.error('oh'); missing()</script>")
    assert colours(sight.picture()) > 2
    assert len(sight.complaints) == 2
    assert sight.complaints[0] == "oh" and "missing" in sight.complaints[1]
