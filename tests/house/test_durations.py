"""Tests that take long are marked slow, by what the last `make test` measured."""

import pytest

from durations import MOST_CPU_SECONDS, RECORD

ALLOWANCE = 4  # processors differ, and tests that share a derivation leave it to the first


@pytest.mark.slow
def test_long_tests_are_marked(request):
    record = request.config.cache.get(RECORD, None)
    if record is None:
        pytest.skip("`make test` records the CPU time of tests")
    long = {test: s for test, s in record.items() if s > ALLOWANCE * MOST_CPU_SECONDS}
    assert not long, f"mark these with pytest.mark.slow, or make them faster: {long}"
