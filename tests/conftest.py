"""Options and fixtures of the whole test suite."""

from __future__ import annotations

import pytest
from hypothesis import settings

# The same examples every time, and a blob to make a failing one again by hand.
settings.register_profile("axode", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("axode")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="rewrite golden files")


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be rewritten."""
    return bool(request.config.getoption("--update"))
