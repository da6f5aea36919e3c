"""What a state has that was not asked for: warned of at once, or collected for a warning later."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from axode.errors import NotAsAsked, level_outside

_COLLECTED: ContextVar[list[str] | None] = ContextVar("collected", default=None)


def notice(text: str) -> None:
    """Warn of what was not asked for, or keep the text where notices are collected."""
    collected = _COLLECTED.get()
    if collected is None:
        warnings.warn(text, NotAsAsked, stacklevel=level_outside())
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
