"""Warnings of starts that differ from the request: issued at once, or collected for later."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from axode.errors import RequestNotMetWarning, level_outside

_COLLECTED: ContextVar[list[str] | None] = ContextVar("collected", default=None)


def warn_of_start(text: str) -> None:
    """Warn of a start that differs from the request, or keep the text for `collect_warnings`."""
    collected = _COLLECTED.get()
    if collected is None:
        warnings.warn(text, RequestNotMetWarning, stacklevel=level_outside())
    else:
        collected.append(text)


@contextmanager
def collect_warnings() -> Iterator[list[str]]:
    """Collect the warnings of this thread, so that a sweep of many chunks warns once."""
    found: list[str] = []
    token = _COLLECTED.set(found)
    try:
        yield found
    finally:
        _COLLECTED.reset(token)
