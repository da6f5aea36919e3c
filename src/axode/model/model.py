"""The model: named functions of NumPy arrays, with any leading batch axes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np
import numpy.typing as npt

from axode.argument_types import check_arguments
from axode.codegen.host import check_threads
from axode.errors import InvalidArgument, NotApplicable
from axode.model.conditions import MOMENTUM, Conditions, Options, motion_switches
from axode.model.derivative_products import DerivativeProducts
from axode.model.direct_functions import prepare_call, use_directly
from axode.model.force_deficit import solve_inverse, warn_of_deficit
from axode.model.function_source import ALL_ROWS, AbstractLibrary, Entry, SymbolicLibrary
from axode.model.metadata import Facts
from axode.model.model_parts import ModelDisplay, entry_of, function_tape, require_ideal, warn_once
from axode.model.named_arguments import NamedArguments, NeedsSolving, as_numbers, require_finite
from axode.model.parameter_checks import FAULTS, parameter_checks
from axode.model.signals import Signals
from axode.model.state import State
from axode.names import NamedValues, as_names
from axode.stages import call_stage
from axode.symbolic.algebra.casadi_interrupts import stoppable

if TYPE_CHECKING:
    from axode.codegen.targets.c import CCode
    from axode.mechanism.scene.scene import Scene
    from axode.model.leg_functions import NewtonEuler, PlatformLegs
    from axode.problems.stepping.stepper import Stepper
    from axode.symbolic.equations import Equations

Array = npt.NDArray[np.float64]
Values = npt.ArrayLike | Mapping[str, npt.ArrayLike] | State


class Model(DerivativeProducts, ModelDisplay):
    """Functions of a mechanism for numbers.

    Vectors are given by position, in the order of `coordinates`, `independent` and `inputs`, or by
    name (`{"pitch": 0.1}`; what is left out is home for coordinates and zero for the rest), full or
    short as in `signals`. A state that is given by measures or dependent speeds is solved for, as
    `assemble` does. A `State` or `run.at(t)` in place of q gives nu too, a `State` also time and
    parameters, unless these are given. Any leading axes are batch axes and broadcast. All functions
    take the keywords of `Options`.

    Attributes:
        signals: Everything that has a name and a unit and can be read off a state.
    """

    def __init__(self, facts: Facts, library: AbstractLibrary) -> None:
        self._facts = facts
        self.signals = Signals(facts)
        self._library = library
        self._entries: dict[Any, Entry] = {}
        self.name = facts.name
        self.target = library.target
        self.coordinates = facts.coordinates
        self.speed_names = facts.speeds
        self.independent = facts.independent
        self.inputs = facts.inputs
        self.rows = facts.rows
        self.residual_rows = facts.residual_rows
        self.bodies = facts.bodies
        self.contacts = facts.contacts
        self.measure_names = tuple(name for name, _, _ in facts.measures)
        self.parameters = dict(facts.parameters)
        self.actuation = facts.actuation
        self._arguments = NamedArguments(self)
        self._vector = self._arguments.vector

    @property
    def home(self) -> Array:
        """Closed configuration nearest to the mechanism's home."""
        home: Array = self._arguments.defaults["q"].copy()
        return home

    @cached_property
    def scene(self) -> Scene:
        """Solids on the bodies, floors and contacts, for pictures."""
        return self._library.scene()

    @property
    def has_equations(self) -> bool:
        """True for a model compiled from equations, False for one read from a file."""
        return isinstance(self._library, SymbolicLibrary)

    @property
    def equations(self) -> Equations:
        """Equations that the model was compiled from.

        Raises:
            NotApplicable: for a model that was read from a file.
        """
        if isinstance(self._library, SymbolicLibrary):
            return self._library.equations
        raise NotApplicable(
            f"model '{self.name}' was read from a file, which holds functions and no "
            "equations.\n  Compile it from the mechanism: mechanism.derive().compile()"
        )

    @property
    def is_underactuated(self) -> bool:
        """True if there are motions that the motors cannot produce."""
        return self.actuation in ("underactuated", "unactuated")

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave compiled code behind; a copy finds it in the cache."""
        return type(self), (self._facts, self._library)

    # functions of the state --------------------------------------------------------------------

    def forward_dynamics(
        self,
        q: Values,
        nu: Values | None = None,
        u: Values | None = None,
        **options: Unpack[Options],
    ) -> Array:
        """Independent accelerations nu_dot for inputs u (zero unless given)."""
        warn_once(self, "forward_dynamics")
        return self._evaluate("forward_dynamics", {"q": q, "nu": nu, "u": u}, options)

    def inverse_dynamics(
        self,
        q: Values,
        nu: Values | None = None,
        nu_dot: Values | None = None,
        *,
        u: Values | None = None,
        weights: Values | None = None,
        **options: Unpack[Options],
    ) -> Array:
        """Inputs that give the accelerations nu_dot.

        With more motors than needed, those of least weighted effort; with fewer, the nearest, and a
        warning if they fall short.

        Args:
            q, nu, nu_dot: The motion; at rest, and without acceleration, unless given.
            u: Known wrenches from outside, by name; entries of motors are ignored.
            weights: Weights of the motors' efforts, one unless given.
            options: See `Options`.
        """
        warn_once(self, "inverse_dynamics")
        values = {"q": q, "nu": nu, "nu_dot": nu_dot, "u": u, "weights": weights}
        if not self.is_underactuated:
            return self._evaluate("inverse_dynamics", values, options)
        solved, missing, size = solve_inverse(self, values, options)
        warn_of_deficit(self, missing, size, "inverse_dynamics_with_residual returns it")
        return solved

    def inverse_dynamics_with_residual(
        self,
        q: Values,
        nu: Values | None = None,
        nu_dot: Values | None = None,
        *,
        u: Values | None = None,
        weights: Values | None = None,
        **options: Unpack[Options],
    ) -> tuple[Array, Array]:
        """Inputs of `inverse_dynamics`, and the generalized force that they cannot give.

        The arguments are those of `inverse_dynamics`; there is no warning.
        """
        warn_once(self, "inverse_dynamics")
        values = {"q": q, "nu": nu, "nu_dot": nu_dot, "u": u, "weights": weights}
        if self.is_underactuated:
            return solve_inverse(self, values, options)[:2]
        solved = self._evaluate("inverse_dynamics", values, options)
        rest: Any = {name: value for name, value in options.items() if name != "out"}
        return solved, self._evaluate("inverse_residual", values, rest)

    def hybrid_dynamics(
        self,
        q: Values,
        nu: Values,
        *,
        nu_dot: Mapping[str, npt.ArrayLike],
        u: Mapping[str, npt.ArrayLike],
        **options: Unpack[Options],
    ) -> tuple[Array, Array]:
        """All accelerations and all inputs when some of each are known, by name.

        Args:
            q, nu: The state.
            nu_dot: Known accelerations by the name of the speed, the joint or the coordinate.
            u: Known inputs; as many are left out as accelerations are known.
            options: See `Options`.
        """
        warn_once(self, "hybrid_dynamics")
        nu_dot = self.signals.names("independent").by_full_name(nu_dot)
        u = self.signals.names("input").by_full_name(u)
        key = ("hybrid", tuple(nu_dot), tuple(u))
        if key not in self._entries:
            self._entries[key] = self._library.hybrid(*key[1:])
        values = {"q": q, "nu": nu, "nu_dot": nu_dot, "u": u}
        both = self._evaluate(key, values, options)
        return both[..., : len(self.independent)], both[..., len(self.independent) :]

    def mass_matrix(self, q: Values, **options: Unpack[Options]) -> Array:
        """Generalized inertia I, symmetric positive definite."""
        return self._evaluate("mass_matrix", {"q": q}, options)

    def coriolis(self, q: Values, nu: Values | None = None, **options: Unpack[Options]) -> Array:
        """Coriolis matrix C, with Idot - 2 C skew-symmetric."""
        return self._evaluate("coriolis", {"q": q, "nu": nu}, options)

    def bias(self, q: Values, nu: Values | None = None, **options: Unpack[Options]) -> Array:
        """Coriolis and centrifugal force C nu, with the terms of explicit time."""
        return self._evaluate("bias", {"q": q, "nu": nu}, options)

    def potential_force(self, q: Values, **options: Unpack[Options]) -> Array:
        """Generalized force of gravity and springs (gamma of the theory)."""
        return self._evaluate("potential_force", {"q": q}, options)

    def dissipative_force(
        self, q: Values, nu: Values | None = None, **options: Unpack[Options]
    ) -> Array:
        """Generalized force of dampers and friction (delta of the theory)."""
        return self._evaluate("dissipative_force", {"q": q, "nu": nu}, options)

    def input_force(self, q: Values, u: Values, **options: Unpack[Options]) -> Array:
        """Generalized force of the inputs (tau of the theory)."""
        return self._evaluate("input_force", {"q": q, "u": u}, options)

    def joint_speeds(
        self, q: Values, nu: Values | None = None, **options: Unpack[Options]
    ) -> Array:
        """All joint speeds v, in the order of `speed_names`."""
        return self._evaluate("joint_speeds", {"q": q, "nu": nu}, options)

    def rates(self, q: Values, nu: Values | None = None, **options: Unpack[Options]) -> Array:
        """Rates of the coordinates, q_dot."""
        return self._evaluate("rates", {"q": q, "nu": nu}, options)

    def step(
        self,
        q: Values,
        nu: Values | None,
        u: Values | None,
        h: npt.ArrayLike,
        **options: Unpack[Options],
    ) -> tuple[Array, Array]:
        """State (q, nu) after a step of the classical Runge-Kutta method, with inputs held.

        It is the step of `simulate(method="rk4")` on this choice of independent speeds: inputs are
        within the limits of the motors, and coordinates are brought back onto the constraints.
        Prescribed motions must not switch in it. As the function "step", whose result is q and nu
        one after the other, it has derivatives (`jvp`, `vjp`, `jacobian`), wrappers for PyTorch and
        JAX, and is one of `equations.casadi_function`.

        Args:
            q, nu: The state.
            u: Inputs, zero unless given.
            h: Length of the step [s]; an array makes a batch.
            options: See `Options`.

        Raises:
            InvalidArgument: for states, inputs and lengths that are not finite.
        """
        given = {"q": q, "nu": nu, "u": u, "h": h}
        made = self._evaluate("step", given, options)
        require_finite("step", given)
        size = len(self.coordinates)
        return made[..., :size], made[..., size:]

    def rhs(
        self,
        t: float,
        x: npt.ArrayLike,
        u: Values | None = None,
        *,
        parameters: Mapping[str, npt.ArrayLike] | None = None,
    ) -> Array:
        """Rates of the state x = (q, nu), for `scipy.integrate.solve_ivp` and its like.

        Rates keep all constraints, but a general integrator lets its errors add up; `simulate`
        projects the state onto the constraints and changes independent speeds where needed.

        Args:
            t: Time [s].
            x: Coordinates, then independent speeds: (size,), or (size, n) for n states.
            u: Inputs in order or by name; zero unless given.
            parameters: Values by name instead of the defaults.

        Raises:
            NotApplicable: for contacts that slip and lift, joints that rub, and stops.
        """
        require_ideal("rhs", self)
        state, size = as_numbers("x", x), len(self.coordinates)
        if state.ndim not in (1, 2) or len(state) != size + len(self.independent):
            raise InvalidArgument(
                f"x: {size} coordinates and {len(self.independent)} speeds are needed, got shape "
                f"{state.shape}"
            )
        options: Options = {"t": t}
        if parameters is not None:
            options["parameters"] = parameters
        values = {"q": state[:size].T, "nu": state[size:].T, "u": u}
        return self._evaluate("state_rate", values, options)[..., : len(state)].T

    def accelerations(
        self, q: Values, nu: Values, nu_dot: Values, **options: Unpack[Options]
    ) -> Array:
        """All joint accelerations for the independent ones nu_dot."""
        return self._evaluate("accelerations", {"q": q, "nu": nu, "nu_dot": nu_dot}, options)

    def multipliers(
        self,
        q: Values,
        nu: Values | None = None,
        u: Values | None = None,
        **options: Unpack[Options],
    ) -> Array:
        """Constraint force of every kept row, in the order of `rows` [N or N m].

        A row that shares its force with dropped ones holds what they carry together.
        """
        warn_once(self, "multipliers")
        return self._evaluate("multipliers", {"q": q, "nu": nu, "u": u}, options)

    def motor_powers(
        self,
        q: Values,
        nu: Values | None = None,
        u: Values | None = None,
        **options: Unpack[Options],
    ) -> Array:
        """Power of every motor [W], its torque or force times the rate of what it drives."""
        return self._evaluate("motor_powers", {"q": q, "nu": nu, "u": u}, options)

    def contact_forces(
        self,
        q: Values,
        nu: Values | None = None,
        u: Values | None = None,
        **options: Unpack[Options],
    ) -> Array:
        """Longitudinal, lateral and normal force of the ground on each wheel [N].

        Shape (..., contacts, 3), in the order of `contacts`; NaN where the rows leave a force
        indeterminate (two wheels of one axle share their lateral force in a way statics does not
        determine) or where the base itself carries it (normal forces on a Planar base).
        """
        warn_once(self, "contact_forces")
        forces = self._evaluate("contact_forces", {"q": q, "nu": nu, "u": u}, options)
        for wheel, component in self._facts.unknown_forces:
            forces[..., wheel, component] = np.nan
        return forces

    def energy(self, q: Values, nu: Values | None = None, **options: Unpack[Options]) -> Array:
        """Kinetic and potential energy [J], in this order along the last axis."""
        return self._evaluate("energy", {"q": q, "nu": nu}, options)

    def residual(self, q: Values, **options: Unpack[Options]) -> Array:
        """Position residuals of all holonomic rows, in the order of `residual_rows`."""
        return self._evaluate("residual", {"q": q}, options)

    def residual_jacobian(self, q: Values, **options: Unpack[Options]) -> Array:
        """Derivatives of the position residuals by the coordinates."""
        return self._evaluate("residual_jacobian", {"q": q}, options)

    def speed_map(self, q: Values, **options: Unpack[Options]) -> Array:
        """Matrix of all joint speeds for unit independent speeds (Theta of the theory)."""
        return self._evaluate("speed_map", {"q": q}, options)

    def measures(self, q: Values, nu: Values | None = None, **options: Unpack[Options]) -> Array:
        """All measures, in the order of `measure_names`."""
        return self._evaluate("measures", {"q": q, "nu": nu}, options)

    def measures_jacobian(
        self, q: Values, nu: Values | None = None, **options: Unpack[Options]
    ) -> Array:
        """Derivatives of the measures by the coordinates, then by the independent speeds."""
        return self._evaluate("measures_jacobian", {"q": q, "nu": nu}, options)

    def poses(self, q: Values, **options: Unpack[Options]) -> Array:
        """Homogeneous matrices of all bodies in the world: (..., bodies, 4, 4)."""
        return self._evaluate("poses", {"q": q}, options)

    def twists(self, q: Values, nu: Values | None = None, **options: Unpack[Options]) -> Array:
        """Angular velocity and mass centre's velocity of bodies, world axes: (..., bodies, 6)."""
        return self._evaluate("twists", {"q": q, "nu": nu}, options)

    @cached_property
    def legs(self) -> PlatformLegs:
        """Legs of a platform: their Jacobians, rates and wrenches.

        Raises:
            NotApplicable: for a mechanism without a platform on legs, saying what is in the way.
        """
        from axode.model.leg_functions import PlatformLegs

        return PlatformLegs(self)

    @cached_property
    def newton_euler(self) -> NewtonEuler:
        """Constraints, complement and inertia of all bodies' twists."""
        from axode.model.leg_functions import NewtonEuler

        return NewtonEuler(self)

    def prepare(
        self,
        function: str,
        batch: int | Sequence[int] = (),
        out: Array | None = None,
        *,
        t: float = 0.0,
        parameters: Mapping[str, npt.ArrayLike] | None = None,
    ) -> Callable[..., Array]:
        """Prepare calls of a function in a loop: the result goes to one array, which is returned.

        The function that is returned takes the arguments by position; arrays of float64 of the
        batch are the fastest, anything else is converted.

        Args:
            function: Its name, such as "forward_dynamics", or of a table of derivatives.
            batch: Number of states of every call, or the shape of their batch; one state unless
                given.
            out: Array for the result; a new one unless given.
            t: Time of all calls [s].
            parameters: Values by name instead of the defaults, for all calls.
        """
        check_arguments(Model.prepare, locals())
        conditions = Conditions.of(self, t, parameters)
        return prepare_call(self, function, batch, out, conditions)

    def stepper(
        self,
        step: float = 1e-3,
        method: str = "rk4",
        batch: int | tuple[int, ...] | None = None,
        **options: Any,
    ) -> Stepper:
        """Make runs that a loop in Python advances in place; see `Stepper` for the arguments."""
        return call_stage("Stepper", self, step, method, batch, **options)

    # machine code and files --------------------------------------------------------------------

    @property
    def functions(self) -> tuple[str, ...]:
        """Names of the functions of the model, without derivatives and those behind `legs`."""
        return self._library.names()

    def operations(self, function: str) -> int:
        """Count the scalar operations of a function, or of its `_jvp` or `_vjp`."""
        check_arguments(Model.operations, locals())
        return function_tape(self, function).n_operations

    def c_code(self, function: str, *, prefix: str = "") -> CCode:
        """C99 code of a function: header, source and a self-test; names begin with `prefix`."""
        check_arguments(Model.c_code, locals())
        warn_once(self, function)
        from axode.codegen.targets.c import c_code

        return c_code(function_tape(self, function), prefix)

    @stoppable
    def save(self, path: str | PathLike[str], functions: Iterable[str] | None = None) -> None:
        """Write the model to a file that `axode.load_model` reads without the mechanism.

        Args:
            path: File to write, usually `name.axm`.
            functions: Functions to write; all of `functions` unless given. Derivatives are named
                like "forward_dynamics_by_q"; those behind `legs` and `newton_euler` must be named
                as well, such as "leg_wrenches".
        """
        check_arguments(Model.save, locals())
        from axode.model.model_file import save_model

        names = self.functions if functions is None else as_names(functions)
        names += (FAULTS,) if parameter_checks(self) and FAULTS not in names else ()
        names += (MOMENTUM,) if functions is None and motion_switches(self) else ()
        description = self._library.describe()
        names += (ALL_ROWS,) if description is not None and ALL_ROWS not in names else ()
        tapes = {name: self._library.tape(name) for name in names}
        save_model(self._facts, self.scene, tapes, path, description)

    @stoppable
    def export(
        self,
        path: str | PathLike[str],
        functions: Sequence[str] | None = None,
        *,
        rollout: str | None = None,
        input: Any = None,
        capability: str = "7.5",
        precision: Literal["float64", "float32"] | None = None,
        prefix: str | None = None,
        fmi: Literal["2.0", "3.0"] | None = None,
        outputs: Sequence[str] | None = None,
        start: Any = None,
        step: float | None = None,
    ) -> tuple[Path, ...]:
        """Write files for other programs, in the format of the path's ending; return their paths.

        Args:
            path: `x.axm` for `axode.load_model`; `x.c` for C, `x/` for a CMake project; `x.ptx` for
                GPUs; `x.fmu` for tools that read FMI; `x.wasm` for browsers, `x.tgz` for npm.
            functions: Functions to write; all into `.axm`, else forward_dynamics, unless given.
            rollout: "rk4" or "dopri5" adds whole runs to a `.ptx` file.
            input: Input of those runs, as `simulate` takes it; an argument of the kernel unless
                given. In C and an `.fmu` file a law, which is compiled in: a formula, a function of
                the state or a `Law` without samples; the inputs are then measures.
            capability: Oldest compute capability the kernels must run on.
            precision: Precision of C, "float64" unless given, and of kernels, else the model's.
            prefix: Prefix of names in C; `x_` unless given, "" for none.
            fmi: Version of FMI of an `.fmu` file; "2.0" unless given.
            outputs: Signals that are outputs of an `.fmu` file; coordinates, speeds, measures and
                energies unless given.
            start: Start of an `.fmu` file, as `assemble` takes it; home at rest unless given.
            step: Longest internal step of co-simulation [s]; 1 ms unless given.
        """
        check_arguments(Model.export, locals())
        unit = {"fmi": fmi, "outputs": outputs, "start": start, "step": step}
        kernel = (rollout, input, capability, precision)
        return call_stage("export_model", self, path, functions, *kernel, prefix, unit)

    # arguments ---------------------------------------------------------------------------------

    def evaluate(
        self, function: str, arguments: Mapping[str, Any], options: Options | None = None
    ) -> Array:
        """Evaluate any of `functions`, with arguments by name (q, nu, nu_dot, u)."""
        check_arguments(Model.evaluate, locals())
        return self._evaluate(function, arguments, options or {})

    def parameter_vector(self, values: Mapping[str, npt.ArrayLike] | Array | None = None) -> Array:
        """Parameters in order, defaults where none is given."""
        vector: Array = self._vector("p", values)
        return vector

    def _evaluate(self, name: Any, values: Mapping[str, Any], options: Options) -> Array:
        entry = entry_of(self, name)
        try:
            arrays = [
                value
                if type(value := values.get(argument)) is np.ndarray and argument != "h"
                else self._vector(argument, value)
                for argument in entry.arguments
            ]
        except NeedsSolving:
            state = self._arguments.solve_state(values, options)
            given = values.get("q")
            if isinstance(given, State):  # its time and parameters, unless given
                own = given.conditions
                own = Conditions.of(self, own.t, own.named(given.model))
                options = {**own.options, **options}
            elif isinstance(given, NamedValues):  # the time of a sample
                options = options if given.time is None else {"t": given.time, **options}
            return self._evaluate(name, {**values, **state}, options)
        if not options:
            result: Array = entry.call(*arrays)
            use_directly(self, name)
            return result
        return self._with_options(entry, arrays, options)

    def _with_options(self, entry: Entry, arrays: list[Any], options: Options) -> Array:
        unknown = set(options) - {"t", "parameters", "out", "threads"}
        if unknown:
            raise InvalidArgument(
                f"unknown keyword '{unknown.pop()}' (t, parameters, out, threads)"
            )
        if "t" in options and "t" in entry.arguments:
            t = as_numbers("t", options["t"])
            arrays[entry.arguments.index("t")] = t[..., np.newaxis]
        if "parameters" in options:
            if self._facts.fixed:
                raise InvalidArgument(
                    "this model's parameters are fixed; compile(parameters='free') to change them"
                )
            given = self._vector("p", options["parameters"])
            if "p" in entry.arguments:
                arrays[entry.arguments.index("p")] = given
        threads = options.get("threads")
        if threads is not None:
            check_threads(threads)
        result: Array = entry.call(*arrays, out=options.get("out"), threads=threads)
        return result
