"""Compile equations to a model for a target."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Literal

from axode.disk.bounded import parse_json
from axode.errors import FileError, UnknownName
from axode.model.function_source import SymbolicLibrary, check_precision
from axode.model.metadata import Facts
from axode.model.model import Model
from axode.symbolic.functions import are_fixed

if TYPE_CHECKING:
    from axode.symbolic.equations import Equations

TARGETS = ("cpu", "interpreter", "cuda")


def compile_model(
    equations: Equations,
    target: str = "cpu",
    parameters: Literal["fixed", "free"] = "free",
    precision: str = "float64",
) -> Model:
    """Compile a model; see `Equations.compile`."""
    if not isinstance(target, str) or target not in TARGETS:
        problem = "GPUs are the target 'cuda'." if target == "gpu" else ""
        raise UnknownName("axode", "target", target, TARGETS, problem)
    check_precision(precision, target)
    fixed = are_fixed(parameters)
    library = SymbolicLibrary(equations, target, fixed=fixed, precision=precision)
    return Model(facts_of_equations(equations, fixed), library)


def facts_of_equations(equations: Equations, fixed: bool) -> Facts:
    """Collect the metadata of a derived mechanism, or read them if they are known."""
    cache, entry = equations.cache, f"facts, fixed {fixed}"
    known = None if cache is None else cache.read(entry)
    if known is not None:
        with contextlib.suppress(FileError):
            return Facts.from_json(parse_json(known))
    facts = Facts.of(equations, fixed=fixed)
    if cache is not None:
        cache.write(entry, json.dumps(facts.to_json()).encode())
    return facts
