"""What a state has that was not asked for: warned of at once, or collected for a warning later."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from axode.errors import NotAsAsked

_COLLECTED: ContextVar[list[str] | None] = ContextVar("collected", default=None)


def notice(text: str, stacklevel: int) -> None:
    """Warn of what was not asked for, or keep the text where notices are collected.

    Args:
        text: What it is.
        stacklevel: As `warnings.warn` takes it, counted from the caller.
    """
    collected = _COLLECTED.get()
    if collected is None:
        warnings.warn(text, NotAsAsked, stacklevel=stacklevel + 1)
    else:
        collected.append(text)


@contextmanager
def collect_notices() -> Iterator[list[str]]:
    """Collect notices of this thread: a sweep of many chunks and processes warns once."""
    found: list[str] = []
    token = _COLLECTED.set(found)
    try:
        yield found
    finally:
        _COLLECTED.reset(token)
