"""Adapters: from a system's name in a file of cases to a mechanism of the gallery.

An adapter translates names and nothing else; numbers come from the derived model. To add one,
put a class into a module `<source>_cases.py` of this package, all of which are imported:

    @adapter("C1_quasimoro")
    class Quasimoro(Adapter):
        independent = ("theta1_dot", "theta2_dot", "theta3_dot")   # or None: chosen by Axode

        def mechanism(self) -> Mechanism:                  # from self.case.parameters
            return build("quasimoro", **self.case.parameters)

        def start(self) -> Mapping[str, float]:            # from self.case.state
            return {"theta3": self.case.state.get("theta3", 0.0)}

        def signals(self) -> Mapping[str, Any]:            # input of the model: signal
            return {name: self.case.input[name] for name in ("M1", "M2")}

        theta = column("theta1", "theta2", "theta3")        # its key under `expected`
        inertia = quantity(lambda _, now: now.inertia)

        @quantity
        def swing(self, now: Instant) -> float:             # whatever takes more than a line
            ...

An `Instant` is a state with its time and inputs; `now["theta1"]` is any coordinate, joint speed,
input or measure, `now.accelerations` has all joint accelerations by the speed's name. A key that no
method answers is looked up that way, so that a gallery mechanism with the source's names needs few
methods. Everything about runs (`t_end`,
`hold`, `name@t`, `max(...)`) is done for all systems in `case_runs.py`: a method is called with the
instant that is meant. Quantities that need no state may ignore their argument; `self.model` and
`self.equations` are always there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from axode.errors import UnknownName
from axode.literature.acceptance.cases import Case, Signal
from axode.mechanism.mechanism import Mechanism
from axode.model.conditions import Conditions
from axode.model.model import Model
from axode.model.state import State, state_values
from axode.names import NamedValues
from axode.problems.assemble.assemble import assemble
from axode.symbolic.equations import Equations

Array = npt.NDArray[np.float64]
T = TypeVar("T", bound="type[Adapter]")
ADAPTERS: dict[str, type[Adapter]] = {}


@dataclass(frozen=True)
class Instant:
    """A state, its time and the inputs that act then."""

    model: Model
    t: float
    q: Array
    nu: Array
    u: Array

    def __getitem__(self, name: str) -> float:
        """A coordinate, a joint speed, an input or a measure by name.

        Raises:
            UnknownName: if the model has none of that name.
        """
        return float(self.values[name])

    def several(self, *names: str) -> list[float]:
        """Several of these, in order."""
        return [self[name] for name in names]

    @cached_property
    def values(self) -> NamedValues:
        """Coordinates, joint speeds, inputs and measures by name."""
        return state_values(self.model, self.q, self.nu, Conditions(self.t), self.u)

    @cached_property
    def nu_dot(self) -> Array:
        """Independent accelerations under the inputs."""
        return self.model.forward_dynamics(self.q, self.nu, self.u, t=self.t)

    @cached_property
    def accelerations(self) -> dict[str, float]:
        """All joint accelerations under the inputs, by the speed's name."""
        found = self.model.accelerations(self.q, self.nu, self.nu_dot, t=self.t)
        return dict(zip(self.model.speed_names, map(float, found), strict=True))

    def rates(self, *coordinates: str) -> list[float]:
        """Rates of coordinates."""
        found = self.model.rates(self.q, self.nu)
        return [float(found[self.model.coordinates.index(name)]) for name in coordinates]

    def second_rates(self, *coordinates: str) -> list[float]:
        """Second derivatives of coordinates."""
        model = self.model
        by_q, by_nu = (model.jacobian("rates", by, self.q, self.nu) for by in ("q", "nu"))
        found = by_q @ model.rates(self.q, self.nu) + by_nu @ self.nu_dot
        return [float(found[model.coordinates.index(name)]) for name in coordinates]

    @property
    def inertia(self) -> Array:
        """Inertia matrix of the independent speeds."""
        return self.model.mass_matrix(self.q)

    @property
    def bias(self) -> Array:
        """C nu."""
        return self.model.bias(self.q, self.nu)

    @property
    def gravity(self) -> Array:
        """Generalized force of gravity and springs."""
        return self.model.potential_force(self.q)

    @property
    def energy(self) -> Array:
        """Kinetic and potential energy."""
        return self.model.energy(self.q, self.nu)

    @cached_property
    def forces(self) -> dict[str, float]:
        """Constraint forces by the name of their row."""
        found = self.model.multipliers(self.q, self.nu, self.u)
        return dict(zip(self.model.rows, map(float, found), strict=True))

    @property
    def lateral_force(self) -> float:
        """Sum of the forces across all wheels."""
        return sum(force for row, force in self.forces.items() if row.endswith(".lateral"))


Answer = Callable[[Any, Instant], Any]


def quantity(answer: Answer) -> Answer:
    """Mark a method of an adapter as the quantity of its name."""
    answer.is_quantity = True  # type: ignore[attr-defined]
    return answer


def column(*names: str) -> Answer:
    """Return the quantity that is one number of the instant, or several in order."""
    if len(names) == 1:
        return quantity(lambda _, now: now[names[0]])
    return quantity(lambda _, now: now.several(*names))


def acceleration(speed: str) -> Answer:
    """Return the quantity that is the acceleration of a joint speed."""
    return quantity(lambda _, now: now.accelerations[speed])


class Adapter:
    """What the cases of one system mean, in terms of a mechanism of the gallery."""

    independent: ClassVar[tuple[str, ...] | None] = None
    target: ClassVar[str] = "interpreter"  # of models for single states; runs are compiled
    # inputs that hold a coordinate or measure on which no motor acts directly
    holders: ClassVar[Mapping[str, str]] = {}

    def __init__(self, case: Case) -> None:
        self.case = case

    # what a system says ---------------------------------------------------------------------------

    def mechanism(self) -> Mechanism:
        """The mechanism with the case's parameters."""
        raise NotImplementedError

    def start(self) -> Mapping[str, float] | State:
        """The state by name, as `axode.assemble` takes it; or the state itself."""
        return {}

    def signals(self) -> Mapping[str, Any]:
        """Inputs of the model by name, in any form that `Signal.of` understands."""
        return {
            name: self.case.input[name] for name in self.model.inputs if name in self.case.input
        }

    # what follows ---------------------------------------------------------------------------------

    @cached_property
    def equations(self) -> Equations:
        """Equations of the mechanism."""
        return self.mechanism().derive(independent=self.independent)

    @cached_property
    def model(self) -> Model:
        """Model for single states, or compiled where the case is a run."""
        return self.equations.compile("cpu" if self.case.t_end is not None else self.target)

    @cached_property
    def inputs(self) -> dict[str, Signal]:
        """Signals of the inputs, zero where the case gives none."""
        given = self.signals()
        for name in given:
            if name not in self.model.inputs:
                owner = f"model '{self.model.name}'"
                raise UnknownName(owner, "input", name, self.model.inputs)
        return {name: Signal.of(given.get(name, 0.0)) for name in self.model.inputs}

    @cached_property
    def initial(self) -> Instant:
        """The state that the case gives."""
        start = self.start()
        state = start if isinstance(start, State) else assemble(self.model, start)
        u = np.array([signal(0.0) for signal in self.inputs.values()])
        return Instant(self.model, 0.0, state.q, state.nu, u)

    kinetic_energy = quantity(lambda _, now: float(now.energy[0]))
    potential_energy = quantity(lambda _, now: float(now.energy[1]))
    energy = quantity(lambda _, now: float(now.energy.sum()))

    def of(self, name: str, now: Instant) -> Any:
        """A quantity at a moment.

        Raises:
            UnknownName: if neither the adapter nor the model has it.
        """
        methods = self.quantities()
        if name in methods:
            return methods[name](self, now)
        try:
            return now[name]
        except UnknownName as error:
            known = (*methods, *error.known)
            raise UnknownName(self.case.system, "quantity", name, known) from None

    @classmethod
    def quantities(cls) -> dict[str, Callable[..., Any]]:
        """Methods that answer for quantities, by their key."""
        return {
            name: method
            for parent in reversed(cls.__mro__)
            for name, method in vars(parent).items()
            if hasattr(method, "is_quantity")
        }


def adapter(*systems: str) -> Callable[[T], T]:
    """Let a class answer for systems of a file of cases."""

    def register(cls: T) -> T:
        for system in systems:
            ADAPTERS[system] = cls
        return cls

    return register


def adapter_of(system: str) -> type[Adapter]:
    """The adapter of a system.

    Raises:
        UnknownName: listing the systems that have one.
    """
    package = import_module("axode.literature.acceptance")
    for module in iter_modules(package.__path__):
        if module.name.endswith("_cases"):
            import_module(f"axode.literature.acceptance.{module.name}")
    if system not in ADAPTERS:
        raise UnknownName("the acceptance cases", "system", system, sorted(ADAPTERS))
    return ADAPTERS[system]
