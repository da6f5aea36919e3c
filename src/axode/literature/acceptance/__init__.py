"""Acceptance cases of the sources, run through the gallery.

`verify` reads a file of cases, lets the adapter of each case's system build the mechanism, and
compares every quantity with the derived model's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from axode.argument_types import check_arguments
from axode.errors import AxodeError
from axode.literature.acceptance.cases import (
    OPEN_CASES,
    Case,
    Quantity,
    chosen_cases,
    equation_of,
    load_cases,
)
from axode.literature.acceptance.table import CaseCheck, Verification, compare


def verify(
    path: str | PathLike[str] | None = None, *, cases: Sequence[str] | None = None
) -> Verification:
    """Run a file of acceptance cases and compare every quantity.

    Args:
        path: A JSON list of cases with the fields id, system, parameters, state, input, expected,
            tolerance; those that come with Axode unless given.
        cases: Cases of it by id; all unless given.

    Returns:
        All checks; print it for the table. A system or quantity that is not known fails.

    Raises:
        FileError: if the file cannot be read as cases.
        UnknownName: for a case that is not in the file.
    """
    check_arguments(verify, locals())
    chosen = chosen_cases(load_cases(path), cases)
    source = Path(OPEN_CASES if path is None else fspath(path)).name
    return Verification(tuple(check for case in chosen for check in checks_of(case)), source)


def checks_of(case: Case) -> list[CaseCheck]:
    """Every quantity of one case, with its equation in the source."""
    return [replace(check, equation=_equation(case, check.quantity)) for check in _checks(case)]


def _equation(case: Case, key: str) -> str:
    try:
        name = Quantity.of(key).name
    except AxodeError:  # reported where it is asked for
        name = key
    return equation_of(case.system, name, case.source_equation)


def _checks(case: Case) -> list[CaseCheck]:
    from axode.literature.acceptance.case_runs import Answers

    answers: Answers | None = None
    trouble = "" if case.expected else "the case expects nothing"
    try:
        answers = Answers(case)
    except AxodeError as error:
        trouble = str(error)
    if answers is None or trouble:
        keys = list(case.expected) or ["-"]
        return [_failed(case, key, trouble) for key in keys]
    return [_check(case, key, answers) for key in case.expected]


def _check(case: Case, key: str, answers: Any) -> CaseCheck:
    try:
        got = answers.of(Quantity.of(key))
        return compare(case.id, key, case.expected[key], got, case.rel, case.abs)
    except AxodeError as error:
        return _failed(case, key, str(error))
    except Exception as error:  # one strange case must not hide the others
        return _failed(case, key, f"{type(error).__name__}: {error}")


def _failed(case: Case, key: str, reason: str) -> CaseCheck:
    return CaseCheck(case.id, key, case.expected.get(key), None, float("inf"), False, reason)


__all__ = ["Check", "Verification", "verify"]
