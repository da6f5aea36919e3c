"""Files of cases: every open one holds, and whatever is not known fails and says so."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from axode.errors import FileError, InvalidArgument
from axode.literature.acceptance import checks_of, verify
from axode.literature.acceptance.adapters import Adapter, adapter_of
from axode.literature.acceptance.cases import Case, Quantity, Signal, load_cases
from axode.literature.acceptance.table import compare

CASES = load_cases()
BAR = next(case for case in CASES if case.id == "A1-1")


def entry(**changes: Any) -> dict[str, Any]:
    made = {
        "id": "A",
        "system": BAR.system,
        "parameters": BAR.parameters,
        "state": BAR.state,
        "input": BAR.input,
        "expected": {"I": BAR.expected["I"]},
        "tolerance": {"rel": 1e-8, "abs": 1e-10},
    }
    return {**made, **changes}


def write(folder: Path, entries: Any) -> Path:
    path = folder / "cases.json"
    path.write_text(json.dumps(entries))
    return path


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_open_case(case: Case):
    checks = checks_of(case)
    assert {check.quantity for check in checks} == set(case.expected)
    wrong = [check for check in checks if not check.passed]
    assert not wrong, "\n".join(f"{check.quantity}: {check}" for check in wrong)


def test_every_system_has_an_adapter():
    for case in CASES:
        assert issubclass(adapter_of(case.system), Adapter)
    assert len({case.id for case in CASES}) == len(CASES) == 39


def test_wrong_numbers_are_seen(tmp_path: Path):
    """Every quantity of a case, spoiled a little, fails; the sound case passes."""
    assert verify(write(tmp_path, [entry(expected=dict(BAR.expected))])).passed
    for key, value in BAR.expected.items():
        spoiled = (np.array(value) * (1 + 1e-6)).tolist()
        found = verify(write(tmp_path, [entry(expected={key: spoiled})]))
        assert not found.passed and found.checks[0].reason == "", key


def test_unknown_things_fail_and_say_so(tmp_path: Path):
    entries = [
        entry(id="B", system="Z9_perpetuum_mobile"),
        entry(id="C", expected={"I": BAR.expected["I"], "colour": 3.0}),
        entry(id="D", parameters={**BAR.parameters, "a9": 1.0}),
        entry(id="E", expected={"theta1@1": 0.0}),
        entry(id="F", expected={}),
        entry(id="G", parameters={**BAR.parameters, "a4": 0.01}),
        entry(id="H", parameters={**BAR.parameters, "m2": -1.0}),
    ]
    found = verify(write(tmp_path, entries))
    reasons = {(c.id, c.quantity): c.reason for c in found if not c.passed}
    assert [(c.id, c.quantity) for c in found if c.passed] == [("C", "I")]
    assert "no system 'Z9_perpetuum_mobile'" in reasons["B", "I"]
    assert "no quantity 'colour'" in reasons["C", "colour"]
    assert "a9" in reasons["D", "I"]
    assert "no t_end" in reasons["E", "theta1@1"]
    assert "expects nothing" in reasons["F", "-"]
    assert "is open by" in reasons["G", "I"]
    assert "mass: must be" in found.checks[-1].cells[4]  # the fault, not their number
    assert not found.passed
    assert found.summary == "1 of 8 quantities of 7 cases agree"


def test_the_table_shows_all_of_it(tmp_path: Path):
    expected = {"I": BAR.expected["I"], "Theta": [1.0, 2.0, 3.0], "colour": 1.0}
    found = verify(write(tmp_path, [entry(expected=expected)]))
    lines = str(found).splitlines()
    assert lines[0].split() == ["id", "quantity", "equation", "expected", "got", "error", "pass"]
    assert lines[1].split()[-1] == "yes" and "0.00497312214" in lines[1]
    assert lines[2].endswith("NO") and "[1, 2, 3]" in lines[2]
    assert lines[3].endswith("NO") and "no quantity 'colour'" in lines[3]
    shown = StringIO()
    Console(width=200, file=shown).print(found)
    text = shown.getvalue()
    assert "cases.json" in text and "colour" in text and "1 of 3 quantities" in text


# comparing ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expected", "got", "passed"),
    [
        (1.0, 1.0 + 0.9e-3, True),
        (1.0, 1.0 + 1.2e-3, False),
        (0.0, 0.9e-6, True),
        (0.0, 2e-6, False),
        (1.0, float("nan"), False),
        (3, 3.0, True),
        ([1.0, 2.0], np.array([1.0, 2.0]), True),
        ([1.0, 2.0], [1.0, 2.1], False),
        ([1.0, 2.0], [1.0, 2.0, 3.0], False),
        ([[1.0], [2.0]], [1.0, 2.0], False),
        (1.0, [1.0], False),
        ({"x": 1.0, "y": 2.0}, {"y": 2.0, "x": 1.0}, True),
        ({"x": 1.0}, {"y": 1.0}, False),
        (True, True, True),
        (True, False, False),
        (True, 1.0, False),
    ],
)
def test_comparison(expected: Any, got: Any, passed: bool):
    assert compare("A", "x", expected, got, 1e-3, 1e-6).passed is passed


# the format --------------------------------------------------------------------------------------


def test_quantities():
    assert Quantity.of("theta1_dot@0.5") == Quantity("theta1_dot", at=0.5)
    assert Quantity.of("max(theta3)[0,1]") == Quantity("theta3", extreme="max", between=(0.0, 1.0))
    assert Quantity.of("argmax( abs(x) )[1, 2*pi]") == Quantity(
        "x", extreme="argmax", absolute=True, between=(1.0, 2 * np.pi)
    )
    assert Quantity.of("min(x)") == Quantity("x", extreme="min")
    assert Quantity.of("L_leg1") == Quantity("L_leg1")
    with pytest.raises(InvalidArgument, match="time"):
        Quantity.of("x@soon")


def test_signals():
    assert Signal.of(2)(5.0) == 2.0
    assert Signal.of("0.3*cos(2*t) + t**2")(0.5) == pytest.approx(0.3 * np.cos(1.0) + 0.25)
    pulse = Signal.of({"signal": "2*t", "until": 2.5})
    assert [pulse(t) for t in (1.0, 2.5, 2.6)] == [2.0, 5.0, 0.0]
    assert pulse.during(2.5) == 0.0 and pulse.during(1.0) != 0.0
    for wrong in ("__import__('os')", "x + 1", "t.real", None, [1.0], True):
        with pytest.raises(InvalidArgument, match="signal"):
            Signal.of(wrong)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not a file of cases"),
        ("3", "list of cases"),
        ('["x"]', "case 1"),
        ('[{"id": "x", "expected": {}}]', "no system"),
        ('[{"id": "x", "system": "s", "expected": [1]}]', "expected must be an object"),
        ('[{"id": "x", "system": "s", "expected": {}, "tolerance": {"rel": "no"}}]', "tolerance"),
    ],
)
def test_spoiled_files_are_told(tmp_path: Path, text: str, message: str):
    path = tmp_path / "cases.json"
    path.write_text(text)
    with pytest.raises(FileError, match=message):
        load_cases(path)


def test_a_missing_file_is_told(tmp_path: Path):
    with pytest.raises(FileError, match="cannot be read"):
        verify(tmp_path / "none.json")
