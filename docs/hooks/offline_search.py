"""Search that also works when the manual is opened from a folder, without a server.

From a file, browsers neither start workers nor fetch JSON. The theme then reads the index from a
script, which is written here, and `assets/offline-search.js` runs its worker in a hidden frame.
"""

from pathlib import Path

SCRIPT = "assets/offline-search.js"


def on_config(config):
    """Load the script before those of the theme."""
    config.extra.setdefault("polyfills", []).append(SCRIPT)
    return config


def on_post_build(config):
    """Write the index of the search as a script."""
    folder = Path(config["site_dir"]) / "search"
    index = (folder / "search_index.json").read_text(encoding="utf-8")
    (folder / "search_index.js").write_text(f"var __index = {index}", encoding="utf-8")
