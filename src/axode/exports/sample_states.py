"""Random states of a model that satisfy its constraints, from its tapes alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from axode.codegen.tape.operations import Array
from axode.codegen.tape.tape import Tape
from axode.model.model_parts import facts_of, function_tape
from axode.numerics.tolerances import CLOSED

if TYPE_CHECKING:
    from axode.model.model import Model

SPREADS = (0.5, 0.2, 0.05, 0.01, 0.0)  # of coordinates about home [rad, or lengths of the model]
FARTHEST = 2.5  # from home, in the same units
CLOSING_STEPS = 12
DRAWS = 2  # per state that is wanted


def sample_arguments(model: Model, count: int, seed: int = 0) -> dict[str, Array]:
    """Arguments of a model's functions at random consistent states, by name.

    Coordinates are drawn about home and brought onto the constraints; where few draws close, they
    are drawn nearer to home. Speeds, accelerations and inputs are normal, parameters the defaults.

    Args:
        model: The model.
        count: How many states.
        seed: Seed of the random numbers.
    """
    rng = np.random.default_rng(seed)
    facts = facts_of(model)
    n_nu = len(facts.independent)
    units = {signal.name: signal.unit for signal in model.signals}
    speeds = np.array([facts.length if units[n] == "m/s" else 1.0 for n in facts.independent])
    return {
        "t": np.zeros((count, 1)),
        "q": _closed_coordinates(model, units, count, rng),
        "nu": speeds * rng.normal(size=(count, n_nu)),
        "nu_dot": speeds * rng.normal(size=(count, n_nu)),
        "u": rng.normal(size=(count, len(facts.inputs))),
        "weights": np.ones((count, facts.motors)),
        "p": np.broadcast_to(model.parameter_vector(), (count, len(facts.parameters))),
    }


def _closed_coordinates(
    model: Model, units: dict[str, str], count: int, rng: np.random.Generator
) -> Array:
    home = np.asarray(model.home)
    facts = facts_of(model)
    scales = np.array([facts.length if units[n] == "m" else 1.0 for n in facts.coordinates])
    lengths = np.array([facts.length if unit == "m" else 1.0 for unit in facts.residual_units])
    projection, residual = function_tape(model, "projection"), function_tape(model, "residual")
    found = home[np.newaxis]
    for spread in SPREADS:
        q = home + spread * scales * rng.normal(size=(DRAWS * count, len(home)))
        for _ in range(CLOSING_STEPS if projection.n_operations else 0):
            q = _call(model, projection, q)
            with np.errstate(invalid="ignore"):
                q = q[(np.abs(q - home) <= FARTHEST * scales).all(1)]
        closed = (np.abs(_call(model, residual, q)) <= CLOSED * lengths).all(1)
        found = q[closed]
        if len(found) >= count:
            break
    return np.resize(found, (count, len(home)))


def _call(model: Model, tape: Tape, q: Array) -> Array:
    given = {"q": q, "t": np.zeros(1), "p": model.parameter_vector()}
    result = tape.evaluate(*(given[port.name] for port in tape.inputs))[0]
    return np.broadcast_to(result, (len(q), *result.shape[-1:]))
