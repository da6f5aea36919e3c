"""The manual is searched from a folder, without a server, and fetches nothing."""

from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

DOCS = Path(__file__).parents[2] / "docs"
SETTINGS = """
site_name: Manual
site_dir: {site}
docs_dir: {docs}
use_directory_urls: false
theme: {{name: material, font: false}}
hooks: [{hook}]
"""


@pytest.fixture(scope="module")
def manual(tmp_path_factory):
    """A small manual with the theme and the search of the real one."""
    build = pytest.importorskip("mkdocs.commands.build", reason="`make test-all` installs it")
    from mkdocs.config import load_config

    folder = tmp_path_factory.mktemp("manual")
    docs = folder / "docs"
    (docs / "assets").mkdir(parents=True)
    script = "assets/offline-search.js"
    (docs / script).write_text((DOCS / script).read_text(encoding="utf-8"), encoding="utf-8")
    (docs / "index.md").write_text("# Start\n\nWelcome.\n", encoding="utf-8")
    (docs / "wheels.md").write_text(
        "# Wheels\n\n## Mecanum\n\nRollers at 45 degrees.\n", encoding="utf-8"
    )
    hook = DOCS / "hooks" / "offline_search.py"
    file = folder / "mkdocs.yml"
    file.write_text(SETTINGS.format(site=folder / "site", docs=docs, hook=hook), encoding="utf-8")
    build.build(load_config(str(file)))
    return folder / "site"


def test_the_search_finds_a_page_from_a_file(sight, manual):
    sight.page.goto((manual / "index.html").as_uri())
    sight.page.keyboard.press("f")
    sight.page.keyboard.type("rollers")
    found = sight.page.locator(".md-search-result__link").first
    found.wait_for(timeout=20_000)
    assert "wheels.html" in found.get_attribute("href")
    found.click()
    sight.page.wait_for_url("**/wheels.html*")
    assert not sight.complaints and not sight.strangers


def test_the_manual_is_built_with_the_search_for_folders():
    settings = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8")
    assert "docs/hooks/offline_search.py" in settings
    assert "use_directory_urls: false" in settings
