"""Options and fixtures of the whole test suite."""

from __future__ import annotations

import gc
import os
import re
import signal
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import pytest
from hypothesis import settings

# Not made for Windows; every test beside it compares with it.
if find_spec("pinocchio") is None:
    collect_ignore_glob = ["peers/*", "mechanism/test_urdf_peers.py"]
# The same examples every time, and a blob to make a failing one again by hand.
settings.register_profile("axode", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("axode")
# Of several processes on a few cores, each with as many threads, BLAS spends the time on waiting.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Tests change the derivation, and see whether it notices: it has to take place.
os.environ.setdefault("AXODE_MODEL_CACHE", "off")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="rewrite golden files")
    parser.addoption("--soak", action="store_true", help="run the variants of `make soak` too")


def pytest_configure(config: pytest.Config) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # shells ignore it in the background
    from durations import Durations

    config.addinivalue_line("markers", "soak: a further variant of a test, run by `make soak`")
    config.pluginmanager.register(Durations())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave variants for `make soak` out; tests that need a GPU say so where there is none."""
    later = {item for item in items if is_for_soak(item)}
    for item in later:
        item.add_marker("soak")
    if not config.getoption("--soak"):
        config.hook.pytest_deselected(items=list(later))
        items[:] = [item for item in items if item not in later]
    keep_mechanisms_together(items)
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


# What `make test` does not install; tests that need it are skipped there.
FULL_ONLY = {"av", "duckdb", "jax", "joblib", "mkdocs", "playwright", "polars", "rerun", "torch"}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, None, None]:
    """Skip a test whose fixtures need what only `make test-all` installs."""
    with skipping_without_the_full_environment():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, None, None]:
    """Skip a test that needs what only `make test-all` installs."""
    with skipping_without_the_full_environment():
        return (yield)


@contextmanager
def skipping_without_the_full_environment() -> Iterator[None]:
    """Turn errors about missing packages, ours too, into skips; other errors pass."""
    try:
        yield
    except Exception as error:
        cause: BaseException | None = error
        while cause is not None:
            name = cause.name if isinstance(cause, ModuleNotFoundError) else None
            if name and name.split(".")[0] in FULL_ONLY:
                pytest.skip(f"no {name} in the quick environment; `make test-all` installs it")
            cause = cause.__cause__ or cause.__context__
        raise


def pytest_collection_finish() -> None:
    """Let the garbage collector leave the tests alone, and run it less often: 5 % of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 20)


def is_for_soak(item: pytest.Item) -> bool:
    """Whether a test is marked, or tries a further random draw of a mechanism."""
    from variants import FURTHER_DRAWS

    given = getattr(item, "callspec", None)
    drawn = given is not None and any(
        isinstance(x, str) and x in FURTHER_DRAWS for x in given.params.values()
    )
    return drawn or item.get_closest_marker("soak") is not None


def keep_mechanisms_together(items: list[pytest.Item]) -> None:
    """Put the laws of one mechanism in a row, so that one process derives it, once."""
    from axode.gallery import NAMES
    from random_mechanisms import MECHANISMS

    groups: dict[str, list[pytest.Item]] = {}
    for item in items:
        arguments = re.findall(r"\w+", item.nodeid.partition("[")[2])
        known = (name for name in arguments if name in MECHANISMS or name in NAMES)
        judged = item.path.parent.name in ("gallery", "laws", "oracle")
        group = next(known, str(item.path)) if judged else str(item.path)
        groups.setdefault(group, []).append(item)
    items[:] = [item for group in groups.values() for item in group]


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be rewritten."""
    return bool(request.config.getoption("--update"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give each process whole stretches of the order, so that a file derives its robots once.

    A process that has nothing left takes half of what the other still has to do.
    """
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log) if config.getvalue("dist") == "load" else None
