"""Rank, null space and least squares have one home, with tolerances that are named."""

import re

from house.tree import relative, sources

RAW = re.compile(r"\b(svd|svdvals|pinv|lstsq|matrix_rank)\(")
HOMES = ("src/axode/numerics/", "src/axode/oracle/")  # the oracle shares nothing


def test_singular_values_are_computed_in_numerics():
    found = [
        f"{relative(path)}, line {number}"
        for path in sources()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if RAW.search(line) and not relative(path).startswith(HOMES)
    ]
    assert not found, f"call axode.numerics.rank instead: {found}"
