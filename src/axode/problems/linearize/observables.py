"""Signals of a model in symbols: what states and outputs of a linear model are made of."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from axode.errors import InvalidArgument
from axode.model.model import Model
from axode.model.model_parts import facts_of
from axode.model.signals import CONTACT_FORCES, STATE_KINDS, Signal
from axode.names import Names

OUTPUT_FUNCTIONS = ("u", "energy", "contact_forces", "multipliers", "motor_powers")


class Observables:
    """Signals of a model and small angles of its bodies, as expressions of state and inputs.

    Constraint forces are symbols of their own, `forces`: their derivatives are known without
    differentiating what they are computed by.
    """

    def __init__(self, model: Model) -> None:
        """Collect the observables of a model compiled from equations.

        Raises:
            NotApplicable: for a model read from a file.
        """
        import casadi as ca

        from axode.derivatives.small_motions import small_angles

        self.model, self.equations = model, model.equations
        self.small_angles = small_angles(self.equations)
        self.reference = ca.SX.sym("reference", len(model.coordinates))
        self.forces = ca.SX.sym("force", len(model.rows))
        self.units = {signal.name: signal.unit for signal in model.signals}
        self.units |= dict.fromkeys(self.small_angles, "rad")

    @cached_property
    def states(self) -> Names:
        """Names that may be states."""
        return Names(f"model '{self.model.name}'", "signal", self._states)

    @cached_property
    def outputs(self) -> Names:
        """Names that may be outputs."""
        others = [s.name for s in self.model.signals if s.function in OUTPUT_FUNCTIONS]
        return Names(f"model '{self.model.name}'", "signal", self._states, others)

    @property
    def _states(self) -> tuple[str, ...]:
        return (*self.model.signals.names(*STATE_KINDS), *self.small_angles)

    def expression(self, name: str) -> Any:
        """Expression of one observable.

        Raises:
            InvalidArgument: for a wheel's force that the constraints leave indeterminate.
        """
        e = self.equations
        if name in self.small_angles:
            return self.small_angles[name].expression(e.q, self.reference)
        signal = self.model.signals.resolve(name)
        if signal.function == "measures":
            return e.measures[name].expression
        if signal.function == "contact_forces":
            return self._wheel_force(signal)
        vectors = {
            "q": lambda: e.q,
            "nu": lambda: e.nu,
            "joint_speeds": lambda: e.v,
            "u": lambda: e.u,
            "energy": lambda: e.energy,
            "motor_powers": lambda: e.motor_powers,
            "multipliers": lambda: self.forces,
        }
        return vectors[signal.function]()[signal.index]

    def _wheel_force(self, signal: Signal) -> Any:
        from axode.symbolic.functions import contact_forces

        place = divmod(signal.index, len(CONTACT_FORCES))
        if place in facts_of(self.model).unknown_forces:
            raise InvalidArgument(
                f"output '{signal.name}': the constraints leave this force indeterminate"
            )
        return contact_forces(self.equations, self.forces)[place]
