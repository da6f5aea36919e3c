"""Rank, null space and least squares have one home, and tolerances one table."""

import re

from house.arrows import imports
from house.measure import small_constants
from house.tree import PACKAGE, relative, sources

RAW = re.compile(r"\b(svd|svdvals|pinv|lstsq|matrix_rank)\(")
HOMES = ("src/axode/numerics/", "src/axode/oracle/")  # the oracle shares nothing
TABLE = "axode.numerics.tolerances"
ROW = re.compile(r"^([A-Z_]+) = [^#]+?(?:  # (.+))?$", re.MULTILINE)
ALL, ELSEWHERE = 100, 50  # of contacts, figures and differences; oracle and runtime have their own


def test_singular_values_are_computed_in_numerics():
    found = [
        f"{relative(path)}, line {number}"
        for path in sources()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if RAW.search(line) and not relative(path).startswith(HOMES)
    ]
    assert not found, f"call axode.numerics.rank instead: {found}"


def test_tolerances_stand_in_their_table():
    others = {module: names for module, names in small_constants().items() if module != TABLE}
    count = sum(map(len, others.values()))
    assert count <= ELSEWHERE, f"move tolerances to {TABLE}: {others}"
    assert count + len(small_constants()[TABLE]) < ALL, "share one with an equal idea"


def test_tolerances_have_a_reason_and_are_used():
    table = PACKAGE / "numerics/tolerances.py"
    rows = ROW.findall(table.read_text())
    assert {name for name, _ in rows} == set(small_constants()[TABLE])
    assert not [name for name, reason in rows if not reason], "give a unit or a reason"
    used = {
        item.module
        for path in sources()
        for item in imports(path.read_text(), "axode", is_package=True)
    }
    unused = [name for name, _ in rows if f"{TABLE}.{name}" not in used]
    assert not unused, f"take out of {TABLE}: {unused}"
