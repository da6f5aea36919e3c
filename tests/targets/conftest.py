"""Fixtures of the target tests."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True, scope="session")
def private_cache(tmp_path_factory):
    """Tests compile into a cache of their own, not the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AXODE_CACHE", str(tmp_path_factory.mktemp("objects") / "cache"))
        yield
