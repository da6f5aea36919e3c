"""Equations of motion of one mechanism: names, symbols, functions of them.

Matrices are derived when they are asked for and kept; asking for I never builds C.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import casadi as ca
import numpy as np

from axode.argument_types import check_arguments
from axode.errors import (
    DESCRIPTION_WARNINGS,
    MechanismError,
    PlausibilityWarning,
    UnknownName,
    collect_warnings,
    issue_warnings,
    warn_of_description,
)
from axode.mechanism.description_cache import DescriptionCache
from axode.mechanism.elements.wheels import warn_without_contacts
from axode.mechanism.mechanism import Mechanism
from axode.mechanism.quasi_velocities import Definition, read_independent
from axode.mechanism.topology import speed_meanings
from axode.stages import call_stage
from axode.symbolic.algebra.casadi_interrupts import derived_property, stoppable
from axode.symbolic.algebra.spatial import ROOT, SX, Pose, cross, symbolic_vector
from axode.symbolic.analysis.actuation import (
    actuation_ranks,
    classify,
    find_missing_inertia,
    independent_motors,
    solve_inputs,
)
from axode.symbolic.constraints.closing import beyond_tolerance
from axode.symbolic.constraints.level import tilts
from axode.symbolic.constraints.row_choice import Choice, system_on
from axode.symbolic.constraints.system import System, build_system
from axode.symbolic.contact_rows import (
    SymbolicContactRows,
    check_contacts_open,
    symbolic_contact_rows,
)
from axode.symbolic.formulations import FORMULATIONS
from axode.symbolic.formulations.base import AbstractFormulation
from axode.symbolic.formulations.lagrange import energies

if TYPE_CHECKING:
    from axode.model.model import Model
    from axode.model.state import State
    from axode.printing.derivation.derivation import Derivation
    from axode.symbolic.analysis.measure_symbols import SymbolicMeasure
    from axode.symbolic.analysis.mobility import Mobility
    from axode.symbolic.analysis.twist_constraints import TwistConstraints, TwistRedundancy
    from axode.symbolic.formulations.explicit_complement import ComplementFormulation
    from axode.symbolic.formulations.legs import LegsFormulation
    from axode.symbolic.formulations.platform_maps import PlatformMaps
    from axode.symbolic.formulations.self_check import SelfCheck

REDUCED = ("recursive",)  # formulations that write bases which do not tilt as such


@stoppable
def derive(
    mechanism: Mechanism,
    formulation: str = "recursive",
    independent: Sequence[str] | Mapping[str, Definition] | None = None,
    self_check: bool = True,
    reduce: bool = True,
) -> Equations:
    """Check a mechanism and derive its equations; see `Mechanism.derive`."""
    if not isinstance(formulation, str) or formulation not in FORMULATIONS:
        raise UnknownName("axode", "formulation", formulation, FORMULATIONS)
    if independent is not None:
        known = speed_meanings(mechanism)
        names, quasi = read_independent(mechanism, independent, known)
        independent, mechanism.quasi_velocities = names, quasi
    mechanism.check()
    described = DescribedSystem(mechanism, independent, formulation, self_check, reduce)
    cache = DescriptionCache.of(mechanism, formulation, independent, self_check, reduce)
    warned = None if cache is None else _known_warnings(cache)
    if warned is None:
        warned = []
        try:
            with collect_warnings(warned):
                equations = _derived(described)
            if cache is not None:
                cache.write("derived", json.dumps(warned).encode())
        finally:
            issue_warnings(warned)
        equations.cache = cache
        return equations
    issue_warnings(warned)
    return Equations(described, formulation, cache=cache)


def _derived(described: DescribedSystem) -> Equations:
    """Derive a mechanism that is not known yet, and check the result."""
    equations = Equations(described, described.formulation)
    _ = equations._by  # raises if the formulation does not apply
    if equations.missing_inertia is not None:
        what = "Forward dynamics is not defined; kinematics and inverse dynamics are computed."
        warn_of_description(f"{equations.missing_inertia}\n  {what}", PlausibilityWarning)
    check_contacts_open(equations)
    if equations.self_check is not None:
        equations.self_check.check_system()
    return equations


def _known_warnings(cache: DescriptionCache) -> list[tuple[str, str]] | None:
    """Read what derivation warned of in another process; None if this is the first one."""
    data = cache.read("derived")
    with contextlib.suppress(ValueError, TypeError):
        found = [] if data is None else json.loads(data)
        if data is not None and all(kind in DESCRIPTION_WARNINGS for kind, _ in found):
            return [(str(kind), str(text)) for kind, text in found]
    return None


@dataclass(frozen=True)
class ChosenSystem:
    """What a system on other rows and speeds is made from."""

    parent: Equations
    choice: Choice

    @property
    def mechanism(self) -> Mechanism:
        """What is described."""
        return self.parent.mechanism

    def build(self) -> System:
        """Build the system."""
        return system_on(self.parent.system, self.choice)


@dataclass(frozen=True)
class DescribedSystem:
    """What a system is built from, and what was asked for."""

    mechanism: Mechanism
    independent: Sequence[str] | None
    formulation: str
    self_check: bool
    reduce: bool

    def build(self) -> System:
        """Build the system."""
        reduce = self.reduce and self.formulation in REDUCED
        return build_system(self.mechanism, self.independent, reduce=reduce)


class Equations:
    """The reduced model I(q) nu_dot + C(q, nu) nu = tau + gamma + delta, in symbols.

    Attributes are CasADi SX expressions of `q`, `nu`, `u`, `t` and `p` (parameters), in the order
    of `coordinates`, `independent`, `inputs` and `parameters`.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and other processes derive the mechanism again; symbols cannot travel."""
        source = self.source
        if isinstance(source, ChosenSystem):
            return source.parent.on, (source.choice,)
        if source is not None:
            options = source.independent, source.self_check, source.reduce
            return derive, (source.mechanism, source.formulation, *options)
        system, checked = self.system, self.self_check is not None
        chosen = self.independent, checked, system.reduce
        return derive, (system.mechanism, self.formulation, *chosen)

    def __init__(
        self,
        system: System | DescribedSystem | ChosenSystem,
        formulation: str,
        self_check: SelfCheck | None = None,
        cache: DescriptionCache | None = None,
    ) -> None:
        self.source = None if isinstance(system, System) else system
        self.formulation = formulation
        self.cache = cache
        if isinstance(system, System):
            self.system, self.self_check = system, self_check
            _ = self._by  # raises if the formulation does not apply

    @derived_property
    def system(self) -> System:
        """Symbols, rows and choices; of a mechanism that is known built when they are needed."""
        assert self.source is not None
        if self.cache is None:
            return self.source.build()
        with collect_warnings([]):  # they were issued when the mechanism was derived
            return self.source.build()

    @derived_property
    def self_check(self) -> SelfCheck | None:
        """What compares functions with the laws of Newton and Euler, unless it was turned off."""
        from axode.symbolic.formulations.self_check import SelfCheck

        source = self.source
        checked = isinstance(source, DescribedSystem) and source.self_check
        return SelfCheck(self.system) if checked else None

    @derived_property
    def _by(self) -> AbstractFormulation:
        return FORMULATIONS[self.formulation](self.system)

    @derived_property
    def _book(self) -> ComplementFormulation:
        from axode.symbolic.formulations.explicit_complement import ComplementFormulation

        by = self._by
        return by if isinstance(by, ComplementFormulation) else ComplementFormulation(self.system)

    @cached_property
    def missing_inertia(self) -> MechanismError | None:
        """Why forward dynamics is not defined, motions that nothing resists; None if it is."""
        return find_missing_inertia(self.system)

    # names -------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The mechanism's."""
        return self.mechanism.name

    @property
    def mechanism(self) -> Mechanism:
        """What is described."""
        return self.system.mechanism if self.source is None else self.source.mechanism

    def on(self, choice: Choice) -> Equations:
        """Return the equations on other rows and independent speeds."""
        source = self.source.parent if isinstance(self.source, ChosenSystem) else self
        cache = None if source.cache is None else source.cache.part(repr(choice))
        return Equations(ChosenSystem(source, choice), self.formulation, cache=cache)

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names of q."""
        return self.system.tree.coordinate_names

    @property
    def speeds(self) -> tuple[str, ...]:
        """Names of all joint speeds v."""
        return self.system.tree.speed_names

    @property
    def independent(self) -> tuple[str, ...]:
        """Names of nu."""
        return tuple(self.speeds[j] for j in self.system.independent)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of u: motors, then components of wrenches."""
        return self.system.forces.input_names

    @property
    def parameters(self) -> dict[str, float]:
        """Parameters and their defaults."""
        names, values = self.system.parameter_names, self.system.defaults
        return dict(zip(names, map(float, values), strict=True))

    @property
    def rows(self) -> tuple[str, ...]:
        """Names of the constraint rows that were kept: those of A and of the multipliers."""
        return tuple(row.name for row in self.system.kept)

    # symbols -----------------------------------------------------------------------------------

    @property
    def q(self) -> SX:
        """Coordinates."""
        return self.system.tree.q

    @property
    def nu(self) -> SX:
        """Independent speeds."""
        return self.system.nu

    @property
    def nu_dot(self) -> SX:
        """Independent accelerations."""
        return self.system.nu_dot

    @property
    def u(self) -> SX:
        """Inputs."""
        return self.system.u

    @property
    def t(self) -> SX:
        """Time."""
        return self.system.tree.t

    @property
    def p(self) -> SX:
        """Parameters."""
        return self.system.tree.parameters

    @derived_property
    def v(self) -> SX:
        """All joint speeds as expressions of nu."""
        return self.system.complement.speeds(self.nu)

    def _reduced(self, expression: SX) -> SX:
        return self.system.at_speeds(expression)

    @derived_property
    def q_dot(self) -> SX:
        """Rates of the coordinates."""
        return self._reduced(self.system.tree.q_dot)

    @derived_property
    def U(self) -> SX:
        """Twists of all bodies for unit joint speeds, at mass centres, in world axes."""
        return self._book.U

    @property
    def A(self) -> SX:
        """Constraint matrix of the kept rows on the joint speeds: A v = b."""
        return self.system.A

    @derived_property
    def Theta(self) -> SX:
        """Joint speeds for unit independent speeds: A Theta = 0."""
        return ca.densify(self.system.complement.Theta)

    @derived_property
    def contact_rows(self) -> SymbolicContactRows:
        """Rows on which contacts with friction, joints that rub, and stops act."""
        return symbolic_contact_rows(self)

    @derived_property
    def Theta_dot(self) -> SX:
        """Rate of Theta along the motion."""
        return self._reduced(ca.densify(self.system.tree.time_derivative(self.Theta)))

    @derived_property
    def T(self) -> SX:
        """Twists of all bodies for unit independent speeds: T = U Theta."""
        return ca.densify(self._book.T)

    @property
    def twist_map(self) -> SX:
        """T of the bodies alone, without the rows of motors' rotors."""
        return self.T[: 6 * len(self.system.mechanism.bodies), :]

    @derived_property
    def twist_map_rate(self) -> SX:
        """Rate of `twist_map` along the motion."""
        rate = self._book.T_dot[: 6 * len(self.system.mechanism.bodies), :]
        return self._reduced(ca.densify(rate))

    @derived_property
    def twist_constraints(self) -> TwistConstraints:
        """Constraints A t = 0 on the twists of all bodies, as Saha and Angeles write them."""
        from axode.symbolic.analysis.twist_constraints import TwistConstraints

        return TwistConstraints(self)

    @derived_property
    def twist_redundancy(self) -> TwistRedundancy:
        """How many constraints on twists are independent, and what the others follow from."""
        from axode.symbolic.analysis.twist_constraints import twist_redundancy

        return twist_redundancy(self)

    @derived_property
    def platform(self) -> PlatformMaps:
        """Legs of a platform: their Jacobians, and the rates that unit speeds give them."""
        from axode.symbolic.formulations.platform_maps import PlatformMaps

        return PlatformMaps(self.system)

    @derived_property
    def legs(self) -> LegsFormulation:
        """Platform leg by leg, as the book models it; legs of six freedoms."""
        from axode.symbolic.formulations.legs import LegsFormulation

        by = self._by
        return by if isinstance(by, LegsFormulation) else LegsFormulation(self.system)

    @derived_property
    def M(self) -> SX:
        """Inertia of all bodies: diag(I_i, m_i 1), in world axes."""
        return self._book.M

    @derived_property
    def W(self) -> SX:
        """Angular velocities of all bodies: diag(w_i^, 0)."""
        return self._reduced(self._book.W)

    @derived_property
    def I(self) -> SX:  # noqa: E743
        """Generalized inertia, n x n."""
        return self._by.inertia()

    @derived_property
    def C(self) -> SX:
        """Coriolis and centrifugal matrix T^T M Tdot + T^T W M T; Idot - 2 C is skew."""
        return self._reduced(self._by.coriolis())

    @derived_property
    def bias(self) -> SX:
        """C nu, and what explicit time adds where there is any."""
        return self._reduced(self._by.bias())

    @derived_property
    def tau(self) -> SX:
        """Generalized force of the inputs."""
        return self._by.tau()

    @derived_property
    def gamma(self) -> SX:
        """Generalized force of gravity and springs."""
        return self._by.gamma()

    @derived_property
    def delta(self) -> SX:
        """Generalized force of dissipation."""
        return self._reduced(self._by.delta())

    @derived_property
    def forward_dynamics(self) -> SX:
        """nu_dot for the inputs u."""
        self.require_inertia()
        return self._reduced(self._by.forward_dynamics())

    @derived_property
    def pitching_rate(self) -> SX | None:
        """Rates of the state of a base that pitches on an axle, where this is shorter.  (F39)"""
        from axode.symbolic.formulations.pitching import shorter_rate
        from axode.symbolic.functions import general_state_rate

        if not self.system.reduce or self.missing_inertia is not None:
            return None
        return shorter_rate(self.system, lambda: general_state_rate(self))

    def require_inertia(self) -> None:
        """Refuse what divides by an inertia that is not there."""
        missing = self.missing_inertia
        if missing is not None:
            raise MechanismError(missing.source, missing.faults)

    @derived_property
    def accelerations(self) -> SX:
        """All joint accelerations for independent ones nu_dot."""
        return self._reduced(self._by.accelerations(self.nu_dot))

    @derived_property
    def multipliers(self) -> SX:
        """Constraint force of every kept row, for the inputs u."""
        if self.rows:
            self.require_inertia()
        return self._reduced(self._by.multipliers())

    @derived_property
    def weights(self) -> SX:
        """Symbols of the weights of redundant motors in inverse dynamics."""
        names = self.inputs[: self.system.forces.motors]
        return ca.vertcat(*[SX.sym(f"weight({n})") for n in names]) if names else SX.zeros(0)

    @derived_property
    def inverse_dynamics(self) -> SX:
        """Inputs that give nu_dot: motors solved for, wrenches as given in u."""
        return self._inverse[0]

    @derived_property
    def inverse_residual(self) -> SX:
        """Generalized force on nu that the motors cannot give; zero unless underactuated."""
        return self._inverse[1]

    @derived_property
    def _inverse(self) -> tuple[SX, SX]:
        if self.actuation == "underactuated":
            self.require_inertia()
        need, G = self._by.required(self.nu_dot)
        motors = self.system.forces.motors
        given = self.u[motors:, :]
        need = need - ca.densify(G[:, motors:] @ given)
        u = solve_inputs(G[:, :motors], need, self._by, self.weights, self.independent_motors)
        solved = self._reduced(ca.densify(ca.vertcat(u, given)))
        if self.actuation not in ("underactuated", "unactuated"):
            return solved, SX.zeros(len(self.independent))
        missing = need - ca.densify(G[:, :motors] @ u) if motors else need
        return solved, self._reduced(self._by.on_independent(missing))

    @stoppable
    def hybrid_dynamics(self, accelerations: Sequence[str], inputs: Sequence[str]) -> tuple[SX, SX]:
        """All of nu_dot and u when some accelerations and the other inputs are known.

        Args:
            accelerations: Independent speeds whose accelerations are known (symbols in nu_dot).
            inputs: Inputs that are known (symbols in u); as many are left to find as
                accelerations are known.
        """
        from axode.symbolic.analysis.actuation import hybrid_dynamics

        self.require_inertia()
        return hybrid_dynamics(self, accelerations, inputs)

    @derived_property
    def energy(self) -> SX:
        """Kinetic and potential energy [J]."""
        return self._reduced(energies(self.system))

    @derived_property
    def motor_powers(self) -> SX:
        """Power of every motor [W]: its torque or force times the rate of what it drives."""
        motors = list(range(self.system.forces.motors))
        rates = ca.densify(ca.sparsify(self.system.forces.B[:, motors]).T @ self.v)
        return self.u[motors] * rates if motors else SX.zeros(0)

    @derived_property
    def measures(self) -> dict[str, SymbolicMeasure]:
        """Named quantities of the state: the user's, and the usual ones of bases and wheels."""
        from axode.symbolic.analysis.measure_symbols import measures_of

        return measures_of(self)

    @derived_property
    def residuals(self) -> dict[str, SX]:
        """Position residual of every holonomic row, dropped ones included, and of level bases.

        Of rows that were dropped within a tolerance, what is beyond it.
        """
        report = self.system.report
        found = {row.name: row.residual for row in self.system.rows if row.residual is not None}
        for row in (self.system.rows[r] for r in report.loose):
            if row.residual is not None:
                found[row.name] = beyond_tolerance(row.residual, row.unit, report)
        return found | dict(tilts(self.system.free_tree, self.system.level))

    @derived_property
    def poses(self) -> dict[str, Pose]:
        """Orientation R and position p of every body's frame in the world."""
        tree = self.system.free_tree
        return {body.name: tree.body_world_pose(body.name) for body in self.system.mechanism.bodies}

    @derived_property
    def twists(self) -> dict[str, SX]:
        """Twist of every body: angular velocity and velocity of the mass centre, in world axes."""
        tree = self.system.tree
        w, u = tree.world_velocities(self.v)
        found = {}
        for body in self.system.mechanism.bodies:
            link = tree.body_link[body.name]
            if link == ROOT:
                found[body.name] = SX.zeros(6)
                continue
            centre = tree.body_pose[body.name].point(symbolic_vector(body.com, tree.values))
            velocity = u[link] + cross(w[link], tree.pose(link).R @ centre)
            found[body.name] = ca.vertcat(w[link], velocity)
        return found

    # what it amounts to ------------------------------------------------------------------------

    @derived_property
    def actuation(self) -> str:
        """Under-, fully or redundantly actuated, or not at all."""
        motors = self.system.forces.motors
        return classify(actuation_ranks(self._motor_maps), motors, len(self.independent))

    @property
    def shares_effort(self) -> bool:
        """Return whether motors repeat each other, so that weights decide how they share."""
        fewer = len(self.independent_motors) < self.system.forces.motors
        return bool(self.independent) and fewer

    @derived_property
    def independent_motors(self) -> list[int]:
        """As many motors as possible none of which repeats the others."""
        return independent_motors(self._motor_maps)

    @derived_property
    def _motor_maps(self) -> list[np.ndarray]:
        """Generalized force of unit motor inputs, at feasible configurations."""
        system = self.system
        motors = system.forces.motors
        G = ca.densify(self._by.Theta.T @ system.forces.B[:, :motors]) if motors else SX(0, 0)
        function = ca.Function("G", [self.q, self.t, self.p], [G])
        return [np.array(function(q, 0.0, system.defaults)) for q in system.samples]

    @derived_property
    def integrals(self) -> SX:
        """Sums of coordinates that motion keeps as they are, though rows ask for speeds alone.

        Their factors are constant: integrals of other forms are not among them (needs SymPy).
        """
        return call_stage("integrals_of", self)

    @derived_property
    def mobility(self) -> Mobility:
        """The mobility report."""
        from axode.symbolic.analysis.mobility import mobility_of

        found = mobility_of(self)
        if not (found.integrable and found.reachable_is_certain and self.integrals.numel()):
            return found
        return replace(found, integrals=tuple(call_stage("readable", self, ["integrals"])))

    @stoppable
    def latex(self, parts: Sequence[str] | None = None) -> str:
        """The model as LaTeX: named symbols, repeated terms given names once.

        Args:
            parts: Which matrices to write out, such as `("I", "gamma")`; the model's terms unless
                given.
        """
        check_arguments(Equations.latex, locals())
        return call_stage("latex", self, parts)

    @stoppable
    def derivation(
        self, state: Any = None, inputs: Mapping[str, float] | None = None
    ) -> Derivation:
        """Return the derivation of the equations, step by step: a notebook shows it.

        Each step has its matrix in symbols and as numbers, its size and rank, what it is for, and
        where the theory is. The formulation decides on the way: the natural orthogonal complement
        ("recursive", "complement"), Lagrange's equations of the first kind ("lagrange",
        "multipliers") or virtual work ("virtual_work"); at the end all three are compared.

        Args:
            state: State of the numbers, as `assemble` takes it: {"psi": 1.0}; home unless given,
                with speeds that are not zero.
            inputs: Inputs there by name, zero for those left out; unless given, some numbers.

        Raises:
            NotApplicable: for other formulations.
        """
        check_arguments(Equations.derivation, locals())
        for name in inputs or ():
            if name not in self.inputs:
                raise UnknownName("the model", "input", name, self.inputs)
        u = None if inputs is None else np.array([inputs.get(n, 0.0) for n in self.inputs])
        if state is None:
            return call_stage("derivation", self, self.system.home, None, u)
        found: State = call_stage("assemble", self.compile("interpreter"), state)
        return call_stage("derivation", self, found.q, found.nu, u)

    @stoppable
    def to_sympy(self) -> Any:
        """The model as SymPy expressions, exact and short as printed (needs the `sym` extra)."""
        return call_stage("sympy_model", self)

    @stoppable
    def casadi_function(
        self, names: str | Sequence[str], parameters: Literal["fixed", "free"] = "fixed"
    ) -> ca.Function:
        """CasADi function with named arguments and results, for optimal control and the like.

        Arguments are those of `q`, `nu`, `nu_dot`, `u`, `weights`, `t` and `p` that the results
        need, in this order, as columns. In a call by name, inputs, speeds and accelerations that
        are left out are zero.

        Args:
            names: One result or several, of `Model.functions`: "rates" for q_dot,
                "forward_dynamics" for nu_dot, "residual" of the holonomic rows, "speed_map" for
                Theta, "measures", "energy", "poses" and so on.
            parameters: "fixed" puts the defaults in, "free" makes `p` an argument.

        Raises:
            UnknownName: if there is no such function.
        """
        check_arguments(Equations.casadi_function, locals())
        from axode.symbolic.functions import are_fixed, casadi_function

        wanted = (names,) if isinstance(names, str) else tuple(names)
        contacts = [part.name for part in self.mechanism.contact_parts]
        warn_without_contacts(self.name, contacts, wanted)
        return casadi_function(self, wanted, fixed=are_fixed(parameters))

    @stoppable
    def compile(
        self,
        target: str = "cpu",
        parameters: Literal["fixed", "free"] = "free",
        precision: Literal["float64", "float32"] = "float64",
    ) -> Model:
        """A model for numbers.

        Args:
            target: "cpu" compiles each function to machine code when it is first used;
                "interpreter" evaluates with CasADi, at once; "cuda" runs on a GPU.
            parameters: "free" leaves them arguments, "fixed" folds their defaults into the code.
            precision: Precision of arrays and arithmetic; "float32" on a GPU only.
        """
        check_arguments(Equations.compile, locals())
        return call_stage("compile_model", self, target, parameters, precision)

    def __repr__(self) -> str:
        return str(self.mobility)

    def _repr_html_(self) -> str:
        return call_stage("equations_html", self)
