"""What errors about missing packages recommend works for every way of installing Axode."""

import importlib.metadata
import json
import os
import shlex
from types import SimpleNamespace

import pytest

from axode.errors import install_command


class Installed:
    """The metadata that pip leaves, and where it says that Axode came from."""

    requires = ("numpy>=1.26", "viser>=1.1; extra == 'view'", "av>=14; extra == 'movie'")

    def __init__(self, origin):
        self.origin = origin

    def read_text(self, name):
        assert name == "direct_url.json"
        return None if self.origin is None else json.dumps(self.origin)


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        (None, "axode[view]"),
        ({"url": "FOLDER", "dir_info": {}}, "FOLDER[view]"),
        ({"url": "FOLDER", "dir_info": {"editable": True}}, "-e FOLDER[view]"),
        ({"url": "FOLDER/axode-1-py3-none-any.whl", "archive_info": {}}, "WHEEL[view]"),
        ({"url": "FOLDER/gone", "dir_info": {}}, "viser>=1.1"),
        ({"url": "https://example.org/axode.git", "vcs_info": {"vcs": "git"}}, "viser>=1.1"),
    ],
)
def test_the_remedy_names_where_it_came_from(origin, expected, tmp_path, monkeypatch):
    folder = tmp_path / "my sources"  # of which an address makes %20
    folder.mkdir()
    wheel = folder / "axode-1-py3-none-any.whl"
    wheel.touch()
    if origin is not None:
        origin = {**origin, "url": origin["url"].replace("FOLDER", folder.as_uri())}
    monkeypatch.setattr(importlib.metadata, "distribution", lambda name: Installed(origin))
    line = shlex.split(install_command("view").replace(os.sep, "/"))
    wanted = expected.split(" ")
    wanted[-1] = wanted[-1].replace("FOLDER", folder.as_posix()).replace("WHEEL", wheel.as_posix())
    assert line == ["pip", "install", *wanted]


def test_a_checkout_that_is_not_installed_names_its_folder(monkeypatch):
    def none(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", none)
    folder = shlex.split(install_command("view"))[-1].removesuffix("[view]")
    assert os.path.isfile(os.path.join(folder, "pyproject.toml"))


def test_quotes_are_those_of_the_shell(monkeypatch):
    monkeypatch.setattr(importlib.metadata, "distribution", lambda name: Installed(None))
    assert install_command("view") == "pip install 'axode[view]'"
    monkeypatch.setattr("axode.errors.os", SimpleNamespace(name="nt"))
    assert install_command("view") == 'pip install "axode[view]"'
