"""Arguments of a model's functions: vectors in order, or values by name."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument, shortened
from axode.model.conditions import Conditions
from axode.model.model_parts import facts_of, model_on_cpu
from axode.model.signals import STATE_KINDS
from axode.model.state import State
from axode.names import NamedValues, Names
from axode.runtime.arrays import is_on_device
from axode.stages import call_stage

if TYPE_CHECKING:
    from axode.model.model import Model

Array = npt.NDArray[np.float64]
_NO_REALS = {"c": "complex", "m": "times", "M": "times", "S": "bytes", "U": "texts", "V": "records"}


SCALARS = ("t", "h")  # arguments without an axis of their own


class NeedsSolving(Exception):
    """Raised for names whose values have to be solved for: measures, dependent speeds."""


class NamedArguments:
    """Turns what a function of the model is given into arrays.

    Args:
        model: The model; its catalogue says what names mean.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        facts, signals = facts_of(model), model.signals
        motors = facts.inputs[: facts.motors]
        owner = f"model '{facts.name}'"
        parameters = dict(facts.parameters)
        self._names = {
            "q": signals.names(*STATE_KINDS),
            "nu": signals.names("speed", "independent", "measure"),
            "nu_dot": signals.names("independent"),
            "u": signals.names("input"),
            "weights": Names(owner, "motor", motors),
            "p": Names(owner, "parameter", parameters),
            "tangents": signals.names("speed", "independent"),
        }
        order = {"q": facts.coordinates, "u": facts.inputs, "weights": motors, "p": parameters}
        order |= dict.fromkeys(("nu", "nu_dot"), facts.independent)
        order |= {"tangents": facts.tangents}
        self._places = {
            argument: {name: k for k, name in enumerate(names)} for argument, names in order.items()
        }
        self.defaults = {argument: np.zeros(len(names)) for argument, names in order.items()}
        self.defaults |= {"q": np.array(facts.home), "weights": np.ones(len(motors))}
        self.defaults |= {"p": np.array(list(parameters.values()), dtype=float), "t": np.zeros(1)}
        self.defaults["h"] = np.full(1, np.nan)  # it has to be given

    def vector(self, argument: str, value: Any) -> Any:
        """Array of an argument, whose last axis is the vector.

        Raises:
            NeedsSolving: for names in q or nu whose values have to be solved for.
        """
        if argument == "h":
            return self._length(value)
        if value is None:
            return self.defaults[argument]
        if isinstance(value, Mapping):
            return self._by_name(argument, value)
        if isinstance(value, State):
            raise NeedsSolving
        if is_on_device(value):
            return value  # it stays where it is
        try:
            return real_array(value)
        except (TypeError, ValueError, OverflowError, RuntimeError):
            check_tracked(argument, value)
            raise InvalidArgument(
                f"{argument} must be numbers in order or by name, got {shortened(value)}"
            ) from None

    @staticmethod
    def _length(value: Any) -> Any:
        """Length of a step, with an axis of its own."""
        if value is None:
            raise InvalidArgument("h: the length of the step is needed [s]")
        array = value if is_on_device(value) else as_numbers("h", value)
        return array[..., np.newaxis]

    def direction(self, argument: str, value: Any) -> Any:
        """Array of a change of an argument; what is not named does not change.

        Raises:
            InvalidArgument: for anything but numbers, in order or by the argument's own names.
        """
        if argument in SCALARS:
            return as_numbers(argument, value)[..., np.newaxis]
        if not isinstance(value, Mapping):
            return self.vector(argument, value)
        self.entries(argument, value)
        return self._by_name(argument, value, np.zeros_like(self.defaults[argument]))

    def entries(self, argument: str, given: Mapping[str, Any]) -> dict[int, Any]:
        """Values by their place in an argument.

        Raises:
            InvalidArgument: for names of anything that would have to be solved for.
        """
        places = self._places[argument]
        named = self._names[argument].by_full_name(given)
        for name in named:
            if name not in places:
                raise InvalidArgument(
                    f"'{name}' is not one of the entries of {argument} that can be named here: "
                    f"{', '.join(places)}"
                )
        return {places[name]: value for name, value in named.items()}

    def _by_name(
        self, argument: str, given: Mapping[str, npt.ArrayLike], base: Array | None = None
    ) -> Array:
        places = self._places[argument]
        if isinstance(given, NamedValues):  # of a sample: it has more than a state
            if argument == "q":
                raise NeedsSolving
            given = {name: given[name] for name in places}
        named = self._names[argument].by_full_name(given)
        if not named.keys() <= places.keys():
            raise NeedsSolving
        vector: Array = self.defaults[argument].copy() if base is None else base
        arrays: dict[str, Array] = {}
        for name, value in named.items():
            array = as_numbers(name, value)
            if array.ndim:
                arrays[name] = array
            else:
                vector[places[name]] = array
        if not arrays:
            return vector
        batch = _broadcast(argument, {name: array.shape for name, array in arrays.items()})
        full = self._spread(argument, vector, batch)
        for name, array in arrays.items():
            full[..., places[name]] = array
        return full

    @staticmethod
    def _spread(argument: str, vector: Array, batch: tuple[int, ...]) -> Array:
        """Repeat a vector; parameters column by column, since most columns are read alone."""
        if argument != "p":
            return np.array(np.broadcast_to(vector, (*batch, vector.size)))
        full = np.empty((vector.size, *batch))
        full[...] = vector.reshape(-1, *(1 for _ in batch))
        return np.moveaxis(full, 0, -1)

    def solve_state(self, values: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
        """Coordinates and independent speeds of a state that other names describe too.

        As in `assemble`, measures are met, loops are closed and speeds are consistent.

        Args:
            values: Arguments of a function; q and nu may have values by name.
            options: Time and parameters.

        Raises:
            InvalidArgument: for a state that is not given by name, or speeds given twice.
        """
        model, q, nu = model_on_cpu(self.model), values.get("q"), values.get("nu")
        if isinstance(q, State):
            own_q, own_nu = q.vectors(model)
            return {"q": own_q, "nu": own_nu if nu is None else nu}
        if isinstance(q, NamedValues):
            sample, state = q, {"q": {name: q[name] for name in model.coordinates}}
            return state if nu is not None else state | {"nu": sample}
        places = self._names["q"].by_full_name(q) if isinstance(q, Mapping) else {}
        speeds = self._names["nu"].by_full_name(nu) if isinstance(nu, Mapping) else {}
        moving = [name for name in places if model.signals.depends_on_speeds(name)]
        if moving and nu is not None:
            raise InvalidArgument(f"q has the speed {moving[0]}, and nu is given as well")
        if np.ndim(options.get("t", 0.0)):
            raise InvalidArgument("t: give one time where measures describe the state")
        named = {name: as_numbers(name, value) for name, value in (places | speeds).items()}
        given = None if isinstance(q, Mapping) else self.vector("q", q)
        if given is not None and given.shape[-1:] != (len(model.coordinates),):
            expected = f"(..., {len(model.coordinates)})"
            raise InvalidArgument(f"'q' has shape {given.shape}, expected {expected}.")
        conditions = Conditions.of(model, options.get("t", 0.0), options.get("parameters"))
        shapes = {name: array.shape for name, array in named.items()}
        shapes |= {"parameters": conditions.shape}
        shapes |= {} if given is None else {"q": given.shape[:-1]}
        batch = _broadcast("q and nu", shapes)
        flat = {name: np.broadcast_to(array, batch).ravel() for name, array in named.items()}
        spread = conditions.spread(batch)
        rates: Array
        if given is None:
            q, rates = call_stage("assemble_many", model, flat, len(spread.t), spread)
        else:
            q = np.broadcast_to(given, (*batch, given.shape[-1])).reshape(len(spread.t), -1)
            rates = call_stage("consistent_speeds", model, q, flat, spread)
        made = {"q": q.reshape(*batch, -1), "nu": rates.reshape(*batch, -1)}
        return made if nu is None or speeds else {"q": made["q"]}


def _broadcast(argument: str, shapes: Mapping[str, tuple[int, ...]]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError:
        listed = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise InvalidArgument(f"{argument}: the batch axes do not fit together: {listed}") from None


def real_array(value: Any) -> Array:
    """Array of floats; masked numbers are NaN.

    Raises:
        TypeError: for what NumPy would make numbers of as well: of complex numbers it drops the
            imaginary part, dates it counts in units of their own, texts and bytes it parses.
    """
    array = np.asarray(value)
    # objects each by itself: a list may hold dates beside numbers
    parts = (np.asarray(one) for one in array.flat) if array.dtype.kind == "O" else (array,)
    refused = {_NO_REALS[part.dtype.kind] for part in parts if part.dtype.kind in _NO_REALS}
    if refused or isinstance(value, bytearray):
        raise TypeError(f"they are {' or '.join(sorted(refused)) or 'bytes'}")
    made = np.asarray(array, dtype=float)
    return np.where(value.mask, np.nan, made) if isinstance(value, np.ma.MaskedArray) else made


def as_numbers(name: str, value: Any) -> Array:
    """Array of floats.

    Raises:
        InvalidArgument: for anything else, with the name.
    """
    try:
        return real_array(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        check_tracked(name, value)
        raise InvalidArgument(f"{name}: expected numbers, got {shortened(value)}") from None


MOST_STATES = 2**44  # of a batch: of one byte each they fill what processors address


def require_finite(verb: str, given: Mapping[str, Any]) -> None:
    """Refuse arguments, arrays or numbers by name, with a number that is not finite.

    Raises:
        InvalidArgument: naming it, and the first of a batch.
    """
    for argument, value in given.items():
        named = value if isinstance(value, Mapping) else {argument: value}
        for name, part in named.items():
            if part is None or isinstance(part, State) or is_on_device(part):
                continue
            array = real_array(part)
            if not np.isfinite(array).all():
                first = np.argwhere(~np.isfinite(array))[0].tolist()
                place = f"[{', '.join(map(str, first))}]" if first else ""
                raise InvalidArgument(f"{verb}: {name}{place} is not finite")


def batch_shape(batch: Any) -> tuple[int, ...]:
    """Return the shape of a batch, from a number of runs or states or from a shape.

    Raises:
        InvalidArgument: for anything else.
    """
    sizes = (
        np.atleast_1d(np.array(batch))
        if isinstance(batch, int | np.integer | np.ndarray | Sequence)
        else np.array(0.5)
    )
    if sizes.size and (sizes.dtype.kind not in "iu" or sizes.ndim > 1 or sizes.min() < 0):
        raise InvalidArgument(
            f"batch: expected a whole number or the shape of a batch, got {shortened(batch)}"
        )
    shape = tuple(int(size) for size in sizes)
    if math.prod(shape) > MOST_STATES:
        raise InvalidArgument(f"batch: {shape} needs more memory than there is")
    return shape


def check_tracked(name: str, value: Any) -> None:
    """Refuse a tensor whose numbers its library does not hand out, because it traces them.

    Raises:
        InvalidArgument: naming the functions that libraries differentiate through.
    """
    library = type(value).__module__.partition(".")[0]
    if library in ("torch", "jax"):
        raise InvalidArgument(
            f"{name}: {library} traces this value and cannot see through functions of arrays; use "
            f"model.{library}_function or cost.{library}_function, or give plain numbers"
        )
