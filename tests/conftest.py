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
    parser.addoption("--soak", action="store_true", help="run the variants of `make soak` too")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "soak: a further variant of a test, run by `make soak`")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave variants for `make soak` out; tests that need a GPU say so where there is none."""
    later = {item for item in items if is_for_soak(item)}
    for item in later:
        item.add_marker("soak")
    if not config.getoption("--soak"):
        config.hook.pytest_deselected(items=list(later))
        items[:] = [item for item in items if item not in later]
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


def is_for_soak(item: pytest.Item) -> bool:
    """Whether a test is marked, or tries a further random draw of a mechanism."""
    from variants import FURTHER_DRAWS

    given = getattr(item, "callspec", None)
    drawn = given is not None and any(
        isinstance(x, str) and x in FURTHER_DRAWS for x in given.params.values()
    )
    return drawn or item.get_closest_marker("soak") is not None


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be rewritten."""
    return bool(request.config.getoption("--update"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep all tests of one mechanism in one process, which then derives it only once."""
    from xdist.scheduler import LoadScopeScheduling

    from axode.gallery import NAMES
    from random_mechanisms import MECHANISMS

    class ByMechanism(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            arguments = re.findall(r"\w+", nodeid.partition("[")[2])
            known = (name for name in arguments if name in MECHANISMS or name in NAMES)
            return next(known, nodeid)

    return ByMechanism(config, log) if config.getvalue("dist") == "load" else None
