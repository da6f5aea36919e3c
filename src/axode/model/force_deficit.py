"""Inverse dynamics where motors may fall short of a motion: one test for every verb."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument, UnderactuatedMotionWarning, level_outside
from axode.numerics.tolerances import NEGLIGIBLE, UNBALANCED

if TYPE_CHECKING:
    from axode.model.model import Model

Array = npt.NDArray[np.float64]


def force_size(model: Model, q: Array, nu: Array, u: Array, missing: Array, options: Any) -> float:
    """Size of the generalized forces that balance along a motion [N or N m].

    It is the sum of the largest entries of every term, dissipation included, so that terms that
    cancel each other count.
    """
    terms = (
        model.input_force(q, u, **options) + missing,
        model.bias(q, nu, **options),
        model.potential_force(q, **options),
        model.dissipative_force(q, nu, **options),
    )
    return sum(float(np.nanmax(np.abs(term), initial=0.0)) for term in terms)


def find_deficit(model: Model, missing: Array, size: float) -> tuple[float, str] | None:
    """Find the largest force that the motors cannot give, and the speed that it is missing on.

    Args:
        model: Whose motors they are.
        missing: Generalized forces on the independent speeds, (..., speeds).
        size: Size of the forces that balance, as `force_size` gives it.

    Returns:
        None if the motors give everything.
    """
    worst = np.nanmax(np.abs(missing).reshape(-1, missing.shape[-1]), axis=0, initial=0.0)
    if worst.max(initial=0.0) <= NEGLIGIBLE * float(size) or _is_rounding(model, worst):
        return None
    lacking = int(np.argmax(worst))
    return float(worst[lacking]), model.independent[lacking]


def _is_rounding(model: Model, worst: Array) -> bool:
    """Return whether forces move nothing: next to none is needed, and splines have rounding."""
    if worst.max(initial=0.0) > UNBALANCED or "mass_matrix" not in model.functions:
        return False
    return bool((worst <= NEGLIGIBLE * np.diag(model.mass_matrix(model.home))).all())


def solve_inverse(
    model: Model, values: dict[str, Any], options: Mapping[str, Any]
) -> tuple[Array, Array, float]:
    """Inputs, the forces that they cannot give, and the size of the forces that balance.

    Args:
        model: An underactuated model.
        values: Arguments of its inverse dynamics by name.
        options: Time, parameters, `out` and threads.
    """
    out = options.get("out")
    rest: Any = {name: value for name, value in options.items() if name != "out"}
    if "inverse_solution" not in model.functions:  # of a file that holds some functions only
        every: Any = options
        solved = model.evaluate("inverse_dynamics", values, every)
        missing = model.evaluate("inverse_residual", values, rest)
        return solved, missing, force_size(model, values["q"], values["nu"], solved, missing, rest)
    whole = model.evaluate("inverse_solution", values, rest)
    inputs = len(model.inputs)
    solved, missing = whole[..., :inputs].copy(), whole[..., inputs:-1].copy()
    if out is not None:
        if (out.shape, out.dtype) != (solved.shape, solved.dtype):
            raise InvalidArgument(
                "inverse_dynamics: out for 'inverse_dynamics' must be a writable C-contiguous "
                f"{solved.dtype} array of shape {solved.shape}."
            )
        out[...] = solved
        solved = out
    return solved, missing, whole[..., -1].max(initial=0.0)


def warn_of_deficit(model: Model, missing: Array, size: float, remedy: str) -> bool:
    """Warn of a force that the motors cannot give; `remedy` says where to find it.

    Returns:
        Whether there is one.
    """
    found = find_deficit(model, missing, size)
    if found is None:
        return False
    warnings.warn(
        f"'{model.name}' is {model.actuation}: its motors cannot produce this motion, up to "
        f"{found[0]:.3g} is missing on {found[1]}; {remedy}",
        UnderactuatedMotionWarning,
        stacklevel=level_outside(),
    )
    return True
