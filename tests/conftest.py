"""Options and fixtures of the whole test suite."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import settings

# The same examples every time, and a blob to make a failing one again by hand.
settings.register_profile("axode", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("axode")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="rewrite golden files")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that need a GPU say so where there is none."""
    from axode.errors import NotApplicable
    from axode.runtime.cuda import cupy

    waiting = [item for item in items if item.get_closest_marker("gpu")]
    try:
        cupy() if waiting else None
    except NotApplicable as reason:
        for item in waiting:
            item.add_marker(
                pytest.mark.skip(reason=f"on a GPU machine run pytest -m gpu: {reason}")
            )


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be rewritten."""
    return bool(request.config.getoption("--update"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep all tests of one mechanism in one process, which then derives it only once."""
    from xdist.scheduler import LoadScopeScheduling

    from random_mechanisms import MECHANISMS

    class ByMechanism(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            arguments = re.findall(r"\w+", nodeid.partition("[")[2])
            return next((name for name in arguments if name in MECHANISMS), nodeid)

    return ByMechanism(config, log) if config.getvalue("dist") == "load" else None
