"""Values of signals at given states: each function of the model is evaluated once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.model.conditions import Conditions
from axode.model.signals import ENERGIES, KINDS, STATE_KINDS
from axode.names import NamedValues

if TYPE_CHECKING:
    from axode.model.model import Model

Array = npt.NDArray[np.float64]
DEFAULTS = Conditions()


def signal_values(
    model: Model,
    q: Array,
    nu: Array,
    u: Array | None = None,
    w: Array | None = None,
    *,
    conditions: Conditions = DEFAULTS,
    kinds: tuple[str, ...] = KINDS,
) -> Array:
    """Values of all signals of some kinds, (..., signals), in the order of the catalogue.

    Args:
        model: What moves.
        q, nu: States, (..., size) each.
        u: Inputs; needed for inputs and forces.
        w: Energy supplied and dissipated, (..., 2); needed for energies, whose balance counts from
            the first sample of the axis before the last.
        conditions: Time and parameters.
        kinds: Which signals, of `KINDS`.
    """
    options = conditions.options
    layout = model.signals.layout(*kinds)
    given = {"q": q, "nu": nu, "u": u, "w": w}
    arrays: dict[str, Any] = {
        name: np.ascontiguousarray(array) for name, array in given.items() if array is not None
    }
    values = np.empty((*arrays["q"].shape[:-1], len(layout.names)))
    for function, (columns, places) in layout.parts.items():
        if function == "energy_balance":
            continue
        if function == "largest_residual":
            residual = model.evaluate("residual", arrays, options)
            values[..., columns] = np.abs(residual).max(axis=-1, keepdims=True)
        elif function == "contact_forces":
            forces = model.contact_forces(q, nu, u, **options)
            values[..., columns] = forces.reshape(*forces.shape[:-2], -1)
        else:
            found = arrays.get(function)
            found = model.evaluate(function, arrays, options) if found is None else found
            values[..., columns] = found[..., places]
    if "energy_balance" in layout.parts:
        update_balance(model, values, kinds)
    return values


def update_balance(model: Model, values: Array, kinds: tuple[str, ...] = KINDS) -> None:
    """Compute the error of the energy balance from the other energies.

    Args:
        model: What moves.
        values: Values of signals, (..., samples, signals); changed in place.
        kinds: Which signals they are.
    """
    names = model.signals.layout(*kinds).names
    kinetic, potential, supplied, dissipated, error = (names.index(name) for name in ENERGIES)
    total = values[..., kinetic] + values[..., potential]
    values[..., error] = total - total[..., :1] - values[..., supplied] + values[..., dissipated]


def state_values(
    model: Model, q: Array, nu: Array, conditions: Conditions = DEFAULTS, u: Array | None = None
) -> NamedValues:
    """Coordinates, all speeds and measures by name, and inputs if they are given.

    Those of one state are floats, those of a batch arrays of its shape.
    """
    kinds = STATE_KINDS if u is None else (*STATE_KINDS, "input")
    values = signal_values(model, q, nu, u, conditions=conditions, kinds=kinds)
    columns = values.tolist() if values.ndim == 1 else np.moveaxis(values, -1, 0)
    names = model.signals.layout(*kinds).names
    return NamedValues(zip(names, columns, strict=True), model.signals.names(*kinds))
