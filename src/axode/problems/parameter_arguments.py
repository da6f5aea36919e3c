"""Check parameters given to a verb: finite, and possible for the mechanism."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument
from axode.mechanism.parameter_values import faults_of_values, find_impossible
from axode.model.model import Model
from axode.model.model_parts import facts_of
from axode.model.parameter_checks import parameter_checks
from axode.results.sweep_arrays import RowTexts

Array = npt.NDArray[np.float64]


def checked_parameters(model: Model, given: Mapping[str, npt.ArrayLike] | None) -> Array | None:
    """Return all parameters, (*batch, size), if the model's are free.

    Raises:
        InvalidArgument: for parameters that are fixed, not finite, or that no mechanism can have:
            negative masses, inertias, radii, axes that are not of length one.
    """
    if not model.parameters or facts_of(model).fixed:
        if given is not None and (not isinstance(given, Mapping) or given):
            raise InvalidArgument(
                "this model's parameters are fixed; compile(parameters='free') to change them"
                if model.parameters
                else f"model '{model.name}' has no parameters"
            )
        return None
    values = model.parameter_vector(given)
    names = list(model.parameters)
    if not values.ndim or values.shape[-1] != len(names):
        raise InvalidArgument(
            f"parameters: expected values by name, of {', '.join(names)}, got shape {values.shape}"
        )
    changed = list(given.values()) if isinstance(given, Mapping) else [values]
    if not all(np.isfinite(np.asarray(value, dtype=float)).all() for value in changed):
        worst = int(np.argmax(~np.isfinite(values).reshape(-1, values.shape[-1]).all(axis=0)))
        raise InvalidArgument(f"parameter '{names[worst]}': must be finite")
    if isinstance(given, Mapping) and given:
        _refuse_impossible(model, values.reshape(-1, values.shape[-1]), names, list(given))
    return values


def find_impossible_runs(model: Model, p: Array, names: list[str]) -> RowTexts:
    """Why no mechanism can have the parameters of some runs.

    Args:
        model: Whose parameters they are.
        p: Free parameters, (runs, size).
        names: Parameters that were given.
    """
    if not names:
        return RowTexts.from_rows(len(p), {})
    if not model.has_equations:
        return _find_faults(model, p)
    columns = dict(zip(model.parameters, np.ascontiguousarray(p.T), strict=True))
    kinds, faults = find_impossible(model.equations.mechanism, columns)
    texts = {kind: f"no mechanism has such parameters: {fault}" for kind, fault in faults.items()}
    return RowTexts.from_codes(kinds, texts)


def check_parameters(model: Model, given: Mapping[str, npt.ArrayLike] | None) -> None:
    """Check parameters that a verb passes on to the model.

    Raises:
        InvalidArgument: as `checked_parameters` does.
    """
    if given is not None and model.parameters and not facts_of(model).fixed:
        checked_parameters(model, given)


def _find_faults(model: Model, p: Array) -> RowTexts:
    """Find what no mechanism can have by the model's own function; files may lack it."""
    checks = parameter_checks(model)
    if checks is None:
        return RowTexts.from_rows(len(p), {})
    flags = np.asarray(checks.tape.evaluate(p)[0]).reshape(len(p), -1) != 0
    texts = np.array([f"no mechanism has such parameters: {text}" for text in checks.texts])
    rows = np.flatnonzero(flags.any(axis=1))
    found = texts[flags[rows].argmax(axis=1)].tolist()
    return RowTexts.from_rows(len(p), dict(zip(rows.tolist(), found, strict=True)))


def _refuse_impossible(model: Model, rows: Array, names: list[str], given: list[str]) -> None:
    if not model.has_equations:
        for run, text in _find_faults(model, rows).items():
            raise InvalidArgument(f"'{model.name}', run {run} of {len(rows)}: {text}")
        return
    mechanism = model.equations.mechanism
    columns = dict(zip(names, np.ascontiguousarray(rows.T), strict=True))
    found = faults_of_values(mechanism, columns)
    if found is None:
        return
    run, faults = found
    chosen = ", ".join(f"{name} = {columns[name][run]:.6g}" for name in given if name in columns)
    of = f" (run {run} of {len(rows)})" if len(rows) > 1 else ""
    listed = "\n  ".join(map(str, faults))
    raise InvalidArgument(f"'{model.name}' cannot have {chosen}{of}:\n  {listed}")
