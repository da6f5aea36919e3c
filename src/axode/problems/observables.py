"""Everything that has a name and can be read off a state: what states and outputs are made of."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from axode.errors import InvalidArgument
from axode.model.model import Model
from axode.problems.assemble.assemble import signal_name

FORCES = ("longitudinal", "lateral", "normal")  # of a wheel, as in a trajectory


class Observables:
    """Coordinates, joint speeds, measures, small angles and constraint forces of a model, as
    expressions of its state and inputs."""

    def __init__(self, model: Model) -> None:
        """Collect the observables of a model compiled from equations.

        Raises:
            NotApplicable: for a model read from a file.
        """
        import casadi as ca

        from axode.symbolic.analysis.small_motions import small_angles

        self.model, self.equations = model, model.equations
        self.small_angles = small_angles(self.equations)
        self.reference = ca.SX.sym("reference", len(model.coordinates))

    @cached_property
    def states(self) -> dict[str, str]:
        """Names that may be states, with their units."""
        facts = self.model.facts
        units = dict(zip(facts.coordinates, facts.coordinate_units, strict=True))
        units |= dict(zip(facts.speeds, facts.speed_units, strict=True))
        units |= {name: unit for name, unit, _ in facts.measures}
        return units | dict.fromkeys(self.small_angles, "rad")

    @cached_property
    def outputs(self) -> dict[str, str]:
        """Names that may be outputs, with their units."""
        return self.states | self._wheel_units | self._row_units

    @cached_property
    def _wheel_units(self) -> dict[str, str]:
        return {f"{wheel}.{force}": "N" for wheel in self.model.contacts for force in FORCES}

    @cached_property
    def _row_units(self) -> dict[str, str]:
        rows, units = self.model.rows, self.model.facts.row_units
        return {
            f"{rows[i]}.force": "N m" if units[i] == "rad" else "N" for i in force_rows(self.model)
        }

    def full(self, name: str, known: dict[str, str]) -> str:
        """The name that is meant, which may be given without what stands before its dot."""
        return signal_name(self.model, name, known)

    def expression(self, name: str) -> Any:
        """One quantity in symbols.

        Raises:
            InvalidArgument: for a wheel's force that statics cannot tell.
        """
        e = self.equations
        if name in e.coordinates:
            return e.q[e.coordinates.index(name)]
        if name in e.speeds:
            return e.v[e.speeds.index(name)]
        if name in e.measures:
            return e.measures[name].expression
        if name in self.small_angles:
            return self.small_angles[name].expression(e.q, self.reference)
        if name in self._wheel_units:
            return self._wheel_force(*name.rsplit(".", 1))
        return e.multipliers[e.rows.index(name.removesuffix(".force"))]

    def _wheel_force(self, wheel: str, force: str) -> Any:
        from axode.symbolic.functions import contact_forces

        place = (self.model.contacts.index(wheel), FORCES.index(force))
        if place in self.model.facts.unknown_forces:
            raise InvalidArgument(
                f"output '{wheel}.{force}': the constraints leave this force indeterminate"
            )
        return contact_forces(self.equations)[place]


def force_rows(model: Model) -> list[int]:
    """Rows whose forces have names of their own: all but those of wheels.

    A coupling, or a coordinate that time leads, may be called as a wheel is.
    """
    parts = [row.rpartition(".") for row in model.rows]
    return [
        i
        for i, (name, _, kind) in enumerate(parts)
        if kind in ("coupling", "prescribed") or name not in model.contacts
    ]
