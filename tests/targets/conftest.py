"""Fixtures of the target tests."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def cache_of_targets(tmp_path_factory) -> Path:
    """Folder of the cache that all target tests of a process share."""
    return tmp_path_factory.mktemp("objects") / "cache"


@pytest.fixture(autouse=True, scope="module")
def private_cache(cache_of_targets):
    """Tests compile into a cache of their own, not the user's; those of other folders do not."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AXODE_CACHE", str(cache_of_targets))
        yield
