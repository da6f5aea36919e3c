"""A consistent state of a model, and values of signals at given states.

Each function of the model is evaluated once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.codegen.targets.cpu import CompiledFunction
from axode.codegen.targets.direct_call import direct_call
from axode.model.conditions import Conditions
from axode.model.model_parts import defaults_of, entry_of, facts_of
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
    layout = model.signals.layout(*kinds)
    given = {"q": q, "nu": nu, "u": u, "w": w}
    arrays: dict[str, Any] = {name: array for name, array in given.items() if array is not None}
    values = np.empty((*arrays["q"].shape[:-1], len(layout.names)))
    # functions first: their threads share the work of touching new memory
    parts = sorted(layout.parts.items(), key=lambda part: part[0] in arrays)
    for function, (columns, places) in parts:
        if function == "energy_balance":
            continue
        if function in arrays:
            values[..., columns] = arrays[function][..., places]
        elif isinstance(columns, slice) and places == slice(0, _size(model, function)):
            evaluate_signals(model, function, arrays, conditions, values[..., columns])
        else:
            found = evaluate_signals(model, function, arrays, conditions)
            values[..., columns] = found[..., places]
        if function == "contact_forces":
            values[..., np.arange(len(layout.names))[columns][unknown_forces(model)]] = np.nan
    if "energy_balance" in layout.parts:
        update_balance(model, values, kinds)
    return values


def evaluate_signals(
    model: Model,
    function: str,
    arrays: Mapping[str, Any],
    conditions: Conditions,
    out: Array | None = None,
) -> Array:
    """Evaluate a function of signals at states, (..., size).

    Forces of contacts that statics does not determine, `unknown_forces`, may have any value.

    Args:
        model: What moves.
        function: Function of a signal, see `Signal`.
        arrays: States and inputs by name, (..., size) each.
        conditions: Time and parameters.
        out: Where to write the result, rows of a wider array perhaps; a new array unless given.
    """
    options = conditions.options
    batch = arrays["q"].shape[:-1]
    on_gpu = model.target == "cuda"
    if on_gpu:
        arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    if function == "largest_residual":
        made = _largest(model.evaluate("residual", arrays, options))
    elif on_gpu:
        made = model.evaluate(function, arrays, options)
    else:
        size = _size(model, function)
        out = np.empty((*batch, size)) if out is None else out
        shape = (*batch, size // 3, 3) if function == "contact_forces" else out.shape
        model.evaluate(function, arrays, {**options, "out": out.reshape(shape)})
        return out
    flat = made.reshape(*batch, -1)
    if out is None:
        return flat
    out[...] = flat
    return out


def unknown_forces(model: Model) -> list[int]:
    """Find the elements of all contact forces that statics does not determine."""
    return [3 * contact + part for contact, part in facts_of(model).unknown_forces]


def _largest(values: Array) -> Array:
    """Largest absolute value along the last axis; one by one, which is faster for few of them."""
    largest = np.array(np.abs(values[..., 0]))
    for k in range(1, values.shape[-1]):
        np.maximum(largest, np.abs(values[..., k]), out=largest)
    return largest


def _size(model: Model, function: str) -> int:
    """Number of elements of a function of signals."""
    sizes = {
        "joint_speeds": len(model.speed_names),
        "energy": 2,
        "measures": len(model.measure_names),
        "contact_forces": 3 * len(model.contacts),
        "multipliers": len(model.rows),
        "motor_powers": facts_of(model).motors,
        "state_rate": len(model.coordinates) + len(model.independent) + 2,
    }
    return sizes.get(function, 1)


def update_balance(
    model: Model, values: Array, kinds: tuple[str, ...] = KINDS, start: Array | None = None
) -> None:
    """Compute the error of the energy balance from the other energies.

    Args:
        model: What moves.
        values: Values of signals, (..., samples, signals); changed in place.
        kinds: Which signals they are.
        start: Energy from which it counts, (..., 1); that of the first samples unless given.
    """
    names = model.signals.layout(*kinds).names
    kinetic, potential, supplied, dissipated, error = (names.index(name) for name in ENERGIES)
    total = values[..., kinetic] + values[..., potential]
    start = total[..., :1] if start is None else start
    values[..., error] = total - start - values[..., supplied] + values[..., dissipated]


class StateReader:
    """Coordinates, all speeds and measures by name, of one state after another.

    It gives what `state_values` does, with arrays and calls that are prepared.

    Args:
        model: What moves.
    """

    def __init__(self, model: Model) -> None:
        layout = model.signals.layout(*STATE_KINDS)
        self._keys, self._names = layout.names, model.signals.names(*STATE_KINDS)
        self._values = np.empty(len(layout.names))
        self._parts = [
            (columns, places, *_prepared(model, function))
            for function, (columns, places) in layout.parts.items()
        ]

    def __call__(self, q: Array, nu: Array, t: Array, p: Array | None) -> NamedValues:
        """Read a state: vectors q, nu, p and (t,)."""
        arrays = {"q": q, "nu": nu, "t": t, "p": p}
        for columns, places, names, call in self._parts:
            made = arrays[names[0]] if call is None else call(*[arrays[name] for name in names])
            self._values[columns] = made[places]  # type: ignore[index]
        return NamedValues(zip(self._keys, self._values.tolist(), strict=True), self._names)


def _prepared(model: Model, function: str) -> tuple[tuple[str, ...], Callable[..., Array] | None]:
    """Return what a function of a state takes, and a call with one array for all results."""
    if function in ("q", "nu"):
        return (function,), None
    entry = entry_of(model, function)
    if not isinstance(entry.call, CompiledFunction):
        return entry.arguments, entry.call
    out, defaults = np.empty(entry.call.tape.outputs[0].shape), defaults_of(model)
    return entry.arguments, direct_call(entry.call, entry.arguments, defaults, entry.call, out=out)


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


@dataclass(frozen=True)
class State:
    """A consistent state of a model, as `assemble` finds it, or a batch of them.

    Attributes:
        q: Coordinates, (..., size), in the order of `model.coordinates`.
        nu: Independent speeds, (..., size), in the order of `model.independent`.
        residual: Largest residual of loops and contacts [m or rad].
        model: What it is a state of.
        conditions: Time and parameters it was found for.
    """

    q: Array
    nu: Array
    residual: float
    model: Model
    conditions: Conditions = field(default_factory=Conditions)

    def __getitem__(self, name: str) -> Any:
        """A coordinate, any joint speed, a measure or an energy by name."""
        signals = self.model.signals
        full = signals.state_names.resolve(name)
        signal = signals.resolve(full)
        if signal.function == "energy":
            return self.model.energy(self.q, self.nu, **self.conditions.options)[..., signal.index]
        return self.as_dict()[full]

    def __repr__(self) -> str:
        if self.q.ndim > 1:
            return f"State(batch of shape {self.q.shape[:-1]} of '{self.model.name}')"
        named = {**dict(zip(self.model.coordinates, self.q, strict=True))}
        named |= zip(self.model.independent, self.nu, strict=True)
        values = ", ".join(f"{name}={value:.6g}" for name, value in named.items())
        return f"State of '{self.model.name}': {values}"

    def vectors(self, model: Model) -> tuple[Array, Array]:
        """q and nu in the order of a model, which may have other independent speeds."""
        own = (self.model.coordinates, self.model.independent)
        if own == (model.coordinates, model.independent):
            return self.q, self.nu
        values = self.as_dict()
        q, nu = ([values[n] for n in names] for names in (model.coordinates, model.independent))
        return np.moveaxis(np.array(q), 0, -1), np.moveaxis(np.array(nu), 0, -1)

    def as_dict(self) -> NamedValues:
        """Coordinates, all joint speeds and measures by name."""
        return state_values(self.model, self.q, self.nu, self.conditions)
