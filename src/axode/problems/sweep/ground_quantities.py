"""Loads on wheels, shares of friction and both margins of `feasible`, inside compiled steps.

Loads that statics does not determine are those of equally stiff wheels. Where one of these would
have to pull, its load is negative, and it slips; `feasible` then shares its load among the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from axode.codegen.tape.formulas import Formula, Vector
from axode.errors import InvalidArgument, NotApplicable
from axode.model.model import Model
from axode.model.signals import Signal
from axode.model.state import unknown_forces
from axode.names import Names
from axode.numerics.tolerances import NEGLIGIBLE, UNBALANCED
from axode.problems.feasible.ground_tape import GroundTape, ground_tape
from axode.problems.feasible.loads import by_contact

SLIPPING, TIPPING = "slipping_margin", "tipping_margin"
LOAD, SHARE = "load", "share"
UNLIMITED_LOAD = 1e300  # larger than any load
ALREADY_TIPPED = -1.0  # margin where the wheels carry no load in total


@dataclass(frozen=True)
class GroundQuantity:
    """A column of the trajectory that `feasible` returns.

    Attributes:
        name: `<wheel>.load` [N], `<wheel>.share`, `slipping_margin` or `tipping_margin`.
        friction: Coefficient of friction of every wheel.
        ground: Forces of the ground on the wheels of the model that it was asked of, which one read
            from a file does not have.
    """

    name: str
    friction: tuple[float, ...]
    ground: GroundTape = field(compare=False, repr=False)


def resolve_quantity(
    model: Model, name: str, friction: float | Mapping[str, float] | None
) -> str | GroundQuantity:
    """Return the name of a signal unchanged, and other names as quantities of the ground.

    Args:
        model: Owner of the wheels.
        name: Full or short name.
        friction: Coefficient of friction, one or by wheel; one unless given.

    Raises:
        UnknownName: for a name that means neither.
        InvalidArgument: for a wheel's force that the constraints leave indeterminate.
        NotApplicable: for wheels that cannot hold the model, and for a model read from a file.
    """
    signals = model.signals.names()
    if signals.matching(name):
        _require_determined(model, model.signals.resolve(name))
        return name
    own = [f"{wheel}.{what}" for wheel in model.contacts for what in (LOAD, SHARE)]
    margins = (SLIPPING, TIPPING) if own else ()
    full = Names(signals.owner, signals.kind, signals.known, own, margins).resolve(name)
    mu = tuple(by_contact(model, "friction", friction, 1.0).values())
    return GroundQuantity(full, mu, ground_tape(model))


def _require_determined(model: Model, signal: Signal) -> None:
    """Refuse a force that is NaN in a trajectory: compiled steps have just one of its values."""
    if signal.function == "contact_forces" and signal.index in unknown_forces(model):
        wheel = signal.name.rpartition(".")[0]
        raise InvalidArgument(
            f"output '{signal.name}': the constraints leave this force indeterminate; ask for "
            f"'{wheel}.{LOAD}' or '{wheel}.{SHARE}', which assume equally stiff wheels"
        )


def ground_formula(
    model: Model, ground: GroundTape, quantity: GroundQuantity, values: Vector
) -> Formula:
    """Formula of a quantity from the results of the tape of ground forces.

    Args:
        model: Owner of the wheels.
        ground: The tape.
        quantity: What is wanted.
        values: Results of the tape.

    Raises:
        NotApplicable: for the tipping margin where loads can be shared in several ways.
    """
    n = ground.contacts
    forces = [values[3 * k : 3 * k + 3] for k in range(n)]
    loads = [force[2] for force in forces]
    if quantity.name == TIPPING:
        return _tipping(model, ground, loads, values[3 * n :])
    shares = [_share(f, loads, mu) for f, mu in zip(forces, quantity.friction, strict=True)]
    if quantity.name == SLIPPING:
        return 1.0 - reduce(Formula.most, shares)
    wheel, _, what = quantity.name.rpartition(".")
    return (loads if what == LOAD else shares)[model.contacts.index(wheel)]


def _share(force: Vector, loads: Vector, friction: float) -> Formula:
    """Part of the friction circle that a wheel uses; infinite without load."""
    along, across, load = force
    tangent = (along * along + across * across).sqrt()
    idle = tangent <= NEGLIGIBLE * reduce(Formula.most, map(abs, loads))
    limit = friction * load
    return idle.then(0.0, (limit > 0.0).then(tangent / limit, float("inf")))


def _tipping(model: Model, ground: GroundTape, loads: Vector, change: Vector) -> Formula:
    """Smallest load over the mean load, loads shared as evenly as equilibrium allows."""
    if ground.shares > 1:
        raise NotApplicable(
            f"outputs, '{TIPPING}': the loads of '{model.name}' can be shared in {ground.shares} "
            "independent ways, of which compiled steps cannot find the most even one. Ask for the "
            f"least '{model.contacts[0]}.{LOAD}' and those of the other wheels, which are the "
            "loads of equally stiff wheels, or use feasible on a trajectory"
        )
    mean = sum(loads[1:], loads[0]) / float(len(loads))
    least = reduce(Formula.least, loads) if not ground.shares else _even(loads, change)
    return (mean > 0.0).then(least / mean, ALREADY_TIPPED)


def _even(loads: Sequence[Formula], change: Sequence[Formula]) -> Formula:
    """Find the largest least load that adding a multiple of one change can give.

    Of two wheels that it loads and relieves, both have the same load at best.
    """
    sizes = [abs(z) for z in change]
    fixed = UNBALANCED * reduce(Formula.most, sizes)
    found: Any = None
    for i, (load, size) in enumerate(zip(loads, sizes, strict=True)):
        best = (size <= fixed).then(load, UNLIMITED_LOAD)
        for j in range(i):
            opposite = (change[i] * change[j]) < 0.0
            same = (load * sizes[j] + loads[j] * size) / (size + sizes[j])
            best = best.least(opposite.then(same, UNLIMITED_LOAD))
        found = best if found is None else found.least(best)
    return found  # type: ignore[no-any-return]
