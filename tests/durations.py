"""CPU time of tests: a pytest plugin that lists those that should be marked slow.

A test pays for what it is the first to derive or compile, child processes included.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

MOST_CPU_SECONDS = 1.0  # of a test in `make test`
PROPERTY = "cpu_seconds"


def cpu_seconds() -> float:
    """Return the CPU time of this process and of its ended children."""
    return sum(os.times()[:4])


class Durations:
    """Measures tests where they run, and lists the long ones where the results arrive."""

    def __init__(self) -> None:
        self.began = 0.0
        self.long: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Iterator[None]:
        self.began = cpu_seconds()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: Any) -> Iterator[None]:
        if call.when == "call" and not item.get_closest_marker("slow"):
            item.user_properties.append((PROPERTY, round(cpu_seconds() - self.began, 2)))
        return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        seconds = dict(report.user_properties).get(PROPERTY, 0.0)
        if report.when == "call" and seconds > MOST_CPU_SECONDS:
            self.long[report.nodeid] = seconds

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self.long:
            terminalreporter.section(f"over {MOST_CPU_SECONDS} s of CPU time, and not marked slow")
        for test, seconds in sorted(self.long.items(), key=lambda item: -item[1]):
            terminalreporter.line(f"{seconds:6.1f} s  {test}")
