"""Arguments of verbs: models, states and numbers, checked before anything is computed.

A verb that takes a state takes it in any of these forms, as `start` where a motion or a search
begins, as `state` where something is evaluated:

- coordinates, speeds and measures by name, `{"pitch": 0.1}`: what is left out is home or at rest;
- arrays `q` or `(q, nu)`, in the order of `model.coordinates` and `model.independent`;
- a `State`, as `assemble` returns it;
- `run.at(t)` or `run.final` of a trajectory, or the trajectory itself for its end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.argument_types import real_number
from axode.errors import InvalidArgument, shortened
from axode.mechanism.mechanism import Mechanism
from axode.mechanism.parameter_values import faults_of_values, find_impossible
from axode.model.memory import ModelWithMemory
from axode.model.model import Model
from axode.model.model_parts import facts_of, require_ideal
from axode.model.named_arguments import as_numbers, check_tracked, real_array
from axode.model.parameter_checks import parameter_checks
from axode.model.state import State
from axode.names import NamedValues
from axode.results.sweep_arrays import RowTexts

Array = npt.NDArray[np.float64]
FORMS = (
    "coordinates, speeds and measures by name, arrays q or (q, nu), a State, a trajectory or its "
    "at(t)"
)
BATCHES = (
    "one call per state; simulate and sweep start many runs at once, and model.stepper(step=..., "
    "batch=N, start=...) assembles N states as .q and .nu"
)
STEPS = {"Mechanism": "mechanism.derive().compile()", "Equations": "equations.compile()"}


def require_model(verb: str, given: Any, *, contacts: bool = False) -> None:
    """Check that a verb is given a compiled model, without contacts that it does not know.

    Raises:
        InvalidArgument: for equations, mechanisms and anything else, with how to make a model.
        NotApplicable: for contacts that slip and lift, joints that rub and stops, unless the verb
            knows `contacts`.
    """
    if isinstance(given, Model):
        if not contacts:
            require_ideal(verb, given)
        return
    kind = type(given).__name__
    remedy = STEPS.get(kind, STEPS["Mechanism"])
    raise InvalidArgument(f"{verb}: a model is needed, got {kind}; make one with {remedy}")


def require_mechanism(verb: str, given: Any) -> None:
    """Check that a verb is given a mechanism.

    Raises:
        InvalidArgument: for equations, models and anything else, with where to get a mechanism.
    """
    if isinstance(given, Mechanism):
        return
    remedy = "ax.load(path) or ax.gallery.build(name) make one"
    if type(given).__name__ in ("Equations", "Model"):
        remedy = f"give {verb} the one that was derived, since it derives by itself"
    raise InvalidArgument(f"{verb}: a mechanism is needed, got {type(given).__name__}; {remedy}")


def number(name: str, given: Any, expected: str = "a number") -> float:
    """Number as a float.

    Raises:
        InvalidArgument: for anything else, and for numbers beyond the range of floats.
    """
    try:
        return real_number(given)
    except (TypeError, ValueError, OverflowError):
        raise InvalidArgument(f"{name}: expected {expected}, got {shortened(given)}") from None


# states ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StateArgument:
    """A state, or a batch of states, as a verb was given it: arrays, or values by name.

    Attributes:
        q, nu: Coordinates and independent speeds, (..., size) each; None if it is given by name.
        named: Values by name, each of the shape of the batch; empty if it is given by arrays.
        time: Time of the state, one or one per run [s]; None for values by name and arrays.
        memory: What a law remembers by name, beside arrays.
    """

    q: Array | None = None
    nu: Array | None = None
    named: Mapping[str, Array] = field(default_factory=dict)
    time: Any = None
    memory: Mapping[str, Array] = field(default_factory=dict)

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Shapes of the batches that its arrays make."""
        vectors = [a.shape[:-1] for a in (self.q, self.nu) if a is not None]
        others = self.memory if vectors else self.named
        return [*vectors, *(a.shape for a in others.values())]

    def require_one(self, argument: str) -> None:
        """Refuse a batch of states.

        Raises:
            InvalidArgument: naming what has several values.
        """
        several = [name for name, value in self.named.items() if value.ndim]
        if several:
            raise InvalidArgument(
                f"{argument}: one number is needed for each of {', '.join(several)}\n"
                f"  Remedy: {BATCHES}"
            )
        if any(self.shapes):
            raise InvalidArgument(
                f"{argument}: one state is needed, not a batch of shape {max(self.shapes)}\n"
                f"  Remedy: {BATCHES}"
            )


def read_state(model: Model, given: Any, argument: str) -> StateArgument:
    """Read a state in any of its forms; see the top of this file.

    Args:
        model: What it is a state of.
        given: The state.
        argument: What the verb calls it, for messages.

    Raises:
        InvalidArgument: for other objects, and for numbers that are not finite or too few.
        UnknownName: for a trajectory or a state of another model that lacks a coordinate or speed.
    """
    from axode.results.trajectory import Trajectory

    if isinstance(model, ModelWithMemory):
        return _with_memory(model, given, argument)
    if isinstance(given, State):
        made = _from_arrays(model, given.vectors(model), argument)
        return replace(made, time=given.conditions.t)
    if isinstance(given, Trajectory):
        given = given.final
    if isinstance(given, NamedValues):
        if given.interpolated:
            raise InvalidArgument(
                f"{argument}: these values are interpolated between samples and are no state, by "
                "an unknown error.\n  Remedy: a sample of the run; run.at(t) of the "
                "trajectory that simulate returned; or dict(values), which are a guess"
            )
        return replace(_from_arrays(model, _picked(model, given), argument), time=given.time)
    if given is None or isinstance(given, Mapping):
        return StateArgument(named=_finite_by_name(given or {}, argument))
    return _from_arrays(model, given if isinstance(given, tuple) else (given,), argument)


def _with_memory(model: ModelWithMemory, given: Any, argument: str) -> StateArgument:
    """Read a state of the mechanism, and what a law remembers where the state has it."""
    from axode.results.trajectory import Trajectory

    names, count = facts_of(model).memory, len(facts_of(model.base).independent)
    if isinstance(given, Trajectory):
        given = given.final
    memory: dict[str, Array] = {}
    if isinstance(given, NamedValues):
        own = {*given}  # full names alone
        memory = {name: np.asarray(given[name], dtype=float) for name in names if name in own}
    elif isinstance(given, tuple) and len(given) == 2 and np.ndim(given[1]):
        nu = as_numbers(argument, given[1])
        if nu.shape[-1] == len(model.independent):
            given = given[0], nu[..., :count]
            memory = {name: nu[..., count + k] for k, name in enumerate(names)}
    return replace(read_state(model.base, given, argument), memory=memory)


def start_time(t: float | None, state: StateArgument) -> float:
    """Time of a start [s]: the given one, else that of a sample or a `State`, else zero.

    Raises:
        InvalidArgument: for runs of a batch that are at different times.
    """
    if t is not None:
        return float(t)
    times = np.unique(0.0 if state.time is None else state.time)
    if times.size > 1:
        raise InvalidArgument(
            f"start: its runs are at different times, {times[0]:g} s to {times[-1]:g} s, and begin "
            "together here.\n  Remedy: continue them one by one, start=run.run(i), or give the "
            "time at which all begin"
        )
    return float(times[0])


def _picked(model: Model, values: NamedValues) -> tuple[Array, ...]:
    """Coordinates and independent speeds from values by name."""
    return tuple(
        np.stack([values[name] for name in names], axis=-1) if names else np.zeros(0)
        for names in (model.coordinates, model.independent)
    )


def _finite_by_name(given: Mapping[str, Any], argument: str) -> dict[str, Array]:
    arrays = {name: as_numbers(f"{argument} '{name}'", value) for name, value in given.items()}
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise InvalidArgument(f"{argument} '{name}': must be finite")
    return arrays


def _from_arrays(model: Model, given: tuple[Any, ...], argument: str) -> StateArgument:
    try:
        arrays = [real_array(a) for a in given]
        if not all(a.ndim for a in arrays):
            raise ValueError("a vector is needed")
    except (TypeError, ValueError, OverflowError, RuntimeError):
        for value in given:
            check_tracked(argument, value)
        shown = given if len(given) != 1 else given[0]
        raise InvalidArgument(f"{argument}: expected {FORMS}, got {shortened(shown)}") from None
    sizes = (len(model.coordinates), len(model.independent))
    if len(arrays) == 1:
        arrays.append(np.zeros(sizes[1]))
    if len(arrays) != 2 or any(a.shape[-1] != n for a, n in zip(arrays, sizes, strict=True)):
        shapes = ", ".join(str(a.shape) for a in arrays[: len(given)])
        raise InvalidArgument(
            f"{argument}: q, or (q, nu), of sizes {sizes[0]} and {sizes[1]} is needed, got {shapes}"
        )
    if not all(np.isfinite(a).all() for a in arrays):
        raise InvalidArgument(f"{argument}: every number must be finite")
    return StateArgument(arrays[0], arrays[1])


def residual_units(model: Model) -> Array:
    """One unit of each residual of a model: a radian, or the mechanism's length."""
    return in_units(model, facts_of(model).residual_units)


def coordinate_units(model: Model) -> Array:
    """One unit of each coordinate of a model: a radian, or the mechanism's length."""
    return in_units(model, facts_of(model).coordinate_units)


def in_units(model: Model, units: Sequence[str]) -> Array:
    """One unit of quantities: the mechanism's length for those in metres, one for others."""
    return np.array([facts_of(model).length if unit == "m" else 1.0 for unit in units])


# parameters ---------------------------------------------------------------------------------------


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
