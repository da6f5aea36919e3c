"""The model: named functions of numbers, NumPy in and out, any leading batch axes."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from axode.codegen.interpreter import InterpreterBackend
from axode.errors import InvalidArgument, UnderactuatedMotion, UnknownName

if TYPE_CHECKING:
    from axode.symbolic.equations import Equations

Array = npt.NDArray[np.float64]
Values = npt.ArrayLike | Mapping[str, npt.ArrayLike]
RESIDUAL_TOLERANCE = 1e-9  # of the force asked for: more than this the motors cannot give


def compile_model(
    equations: Equations, target: str = "interpreter",
    parameters: Literal["fixed", "free"] = "free",
) -> Model:  # fmt: skip
    """Make a model; see `Equations.compile`."""
    if target != "interpreter":
        raise UnknownName("this version of axode", "target", target, ["interpreter"])
    if parameters not in ("fixed", "free"):
        raise InvalidArgument(f"parameters must be 'fixed' or 'free', got {parameters!r}")
    return Model(equations, InterpreterBackend(equations, fixed=parameters == "fixed"))


class Model:
    """Numbers in, numbers out.

    Vectors are given by position, in the order of `coordinates`, `independent` and `inputs`, or by
    name (`{"pitch": 0.1}`; what is left out is home for coordinates and zero for the rest). Any
    leading axes are batch axes and broadcast.
    """

    def __init__(self, equations: Equations, backend: InterpreterBackend) -> None:
        self._equations = equations
        self._backend = backend
        self.name = equations.name
        self.coordinates = equations.coordinates
        self.speed_names = equations.speeds
        self.independent = equations.independent
        self.inputs = equations.inputs
        self.rows = equations.rows
        self.residual_rows = tuple(equations.residuals)
        self.bodies = tuple(body.name for body in equations.system.mechanism.bodies)
        self.contacts = tuple(contact.name for contact in equations.system.mechanism.contacts)
        self.parameters = equations.parameters
        self.actuation = equations.actuation
        self.home: Array = equations.system.assembly.closed_home()
        self._motors = equations.system.forces.motors
        self._hybrid: dict[tuple[tuple[str, ...], ...], Callable[..., Array]] = {}

    def __repr__(self) -> str:
        return (f"Model('{self.name}': {len(self.coordinates)} coordinates, "
                f"{len(self.independent)} speeds, {len(self.inputs)} inputs, "
                f"{self._backend.target})")  # fmt: skip

    # functions of the state --------------------------------------------------------------------

    def forward_dynamics(
        self, q: Values, nu: Values, u: Values | None = None, **more: Any
    ) -> Array:
        """Independent accelerations nu_dot for inputs u (zero unless given).

        Args:
            q: Coordinates.
            nu: Independent speeds.
            u: Inputs.
            more: `t` [s] where time is explicit, `parameters` by name.
        """
        return self._evaluate("forward_dynamics", {"q": q, "nu": nu, "u": u}, more)

    def inverse_dynamics(
        self, q: Values, nu: Values, nu_dot: Values, *, u: Values | None = None,
        weights: Values | None = None, residual: bool = False, **more: Any,
    ) -> Any:  # fmt: skip
        """Inputs that give the accelerations nu_dot.

        With more motors than needed, those of least weighted effort; with fewer, the nearest, and a
        warning if they fall short.

        Args:
            q, nu, nu_dot: The motion.
            u: Known wrenches from outside, by name; entries of motors are ignored.
            weights: Of the motors' efforts, one unless given.
            residual: Return also the generalised force that the motors cannot give.
            more: As for `forward_dynamics`.
        """
        values = {"q": q, "nu": nu, "nu_dot": nu_dot, "u": u, "weights": weights}
        solved = self._evaluate("inverse_dynamics", values, more)
        short_of_motors = self.actuation in ("underactuated", "unactuated")
        if not (residual or short_of_motors):
            return solved
        missing = self._evaluate("inverse_residual", values, more)
        if residual:
            return solved, missing
        self._warn_if_short(values, missing, more)
        return solved

    def _warn_if_short(self, values: dict[str, Any], missing: Array, more: dict[str, Any]) -> None:
        state = {name: values[name] for name in ("q", "nu")}
        size = np.abs(self._evaluate("bias", state, more)).max(initial=0.0)
        size += np.abs(self._evaluate("gamma", {"q": values["q"]}, more)).max(initial=0.0)
        size += np.abs(self._vector("nu_dot", values["nu_dot"])).max(initial=0.0)
        worst = np.abs(missing).reshape(-1, missing.shape[-1]).max(axis=0, initial=0.0)
        if worst.max(initial=0.0) > RESIDUAL_TOLERANCE * max(float(size), 1e-12):
            lacking = self.independent[int(np.argmax(worst))]
            warnings.warn(
                f"'{self.name}' is {self.actuation}: its motors cannot produce this motion, "
                f"{worst.max():.3g} is missing on {lacking}; pass residual=True to get it",
                UnderactuatedMotion, stacklevel=3,
            )  # fmt: skip

    def hybrid_dynamics(
        self, q: Values, nu: Values, *, nu_dot: Mapping[str, npt.ArrayLike],
        u: Mapping[str, npt.ArrayLike], **more: Any,
    ) -> tuple[Array, Array]:  # fmt: skip
        """All accelerations and all inputs when some of each are known, by name.

        Args:
            q, nu: The state.
            nu_dot: Known accelerations by the speed's name.
            u: Known inputs; as many are left out as accelerations are known.
            more: As for `forward_dynamics`.
        """
        key = (tuple(nu_dot), tuple(u))
        if key not in self._hybrid:
            self._hybrid[key] = self._backend.hybrid(*key)
        values = {"q": q, "nu": nu, "nu_dot": nu_dot, "u": u}
        both = self._call(self._hybrid[key], ("q", "nu", "nu_dot", "u"), values, more,
                          (len(self.independent) + len(self.inputs),))  # fmt: skip
        return both[..., : len(self.independent)], both[..., len(self.independent) :]

    def mass_matrix(self, q: Values, **more: Any) -> Array:
        """Generalised inertia I, symmetric positive definite."""
        return self._evaluate("mass_matrix", {"q": q}, more)

    def coriolis(self, q: Values, nu: Values, **more: Any) -> Array:
        """The matrix C with Idot - 2 C skew."""
        return self._evaluate("coriolis", {"q": q, "nu": nu}, more)

    def bias(self, q: Values, nu: Values, **more: Any) -> Array:
        """C nu, and what explicit time adds."""
        return self._evaluate("bias", {"q": q, "nu": nu}, more)

    def gamma(self, q: Values, **more: Any) -> Array:
        """Generalised force of gravity and springs."""
        return self._evaluate("gamma", {"q": q}, more)

    def delta(self, q: Values, nu: Values, **more: Any) -> Array:
        """Generalised force of dissipation."""
        return self._evaluate("delta", {"q": q, "nu": nu}, more)

    def tau(self, q: Values, u: Values, **more: Any) -> Array:
        """Generalised force of the inputs."""
        return self._evaluate("tau", {"q": q, "u": u}, more)

    def speeds(self, q: Values, nu: Values, **more: Any) -> Array:
        """All joint speeds, in the order of `speed_names`."""
        return self._evaluate("speeds", {"q": q, "nu": nu}, more)

    def rates(self, q: Values, nu: Values, **more: Any) -> Array:
        """Rates of the coordinates."""
        return self._evaluate("rates", {"q": q, "nu": nu}, more)

    def accelerations(self, q: Values, nu: Values, nu_dot: Values, **more: Any) -> Array:
        """All joint accelerations for independent ones."""
        return self._evaluate("accelerations", {"q": q, "nu": nu, "nu_dot": nu_dot}, more)

    def multipliers(self, q: Values, nu: Values, u: Values | None = None, **more: Any) -> Array:
        """Constraint force of every kept row, in the order of `rows` [N or N m]."""
        return self._evaluate("multipliers", {"q": q, "nu": nu, "u": u}, more)

    def contact_forces(self, q: Values, nu: Values, u: Values | None = None, **more: Any) -> Array:
        """Longitudinal, lateral and normal force of the ground on each wheel [N].

        Shape (..., contacts, 3), in the order of `contacts`; NaN where the rows leave a force
        indeterminate (two wheels of one axle share their lateral force in a way statics cannot
        tell) or where the base itself carries it (normal forces on a Planar base).
        """
        from axode.symbolic.functions import unknown_contact_forces

        forces = self._evaluate("contact_forces", {"q": q, "nu": nu, "u": u}, more)
        for wheel, component in unknown_contact_forces(self._equations):
            forces[..., wheel, component] = np.nan
        return forces

    def energy(self, q: Values, nu: Values, **more: Any) -> Array:
        """Kinetic and potential energy [J], in this order along the last axis."""
        return self._evaluate("energy", {"q": q, "nu": nu}, more)

    def residual(self, q: Values, **more: Any) -> Array:
        """Position residuals of all holonomic rows, in the order of `residual_rows`."""
        return self._evaluate("residual", {"q": q}, more)

    def poses(self, q: Values, **more: Any) -> Array:
        """Homogeneous matrices of all bodies in the world: (..., bodies, 4, 4)."""
        return self._evaluate("poses", {"q": q}, more)

    def twists(self, q: Values, nu: Values, **more: Any) -> Array:
        """Angular velocity and mass centre's velocity of all bodies, world axes: (..., bodies, 6)."""
        return self._evaluate("twists", {"q": q, "nu": nu}, more)

    # arguments ---------------------------------------------------------------------------------

    def _evaluate(self, name: str, values: dict[str, Any], more: dict[str, Any]) -> Array:
        function, arguments, shape = self._backend.function(name)
        return self._call(function, arguments, values, more, shape)

    def _call(
        self, function: Callable[..., Array], arguments: Sequence[str], values: dict[str, Any],
        more: dict[str, Any], shape: tuple[int, ...],
    ) -> Array:  # fmt: skip
        unknown = set(more) - {"t", "parameters"}
        if unknown:
            raise TypeError(f"unexpected argument '{unknown.pop()}' (t and parameters are known)")
        vectors = [self._vector(name, values.get(name)) for name in arguments]
        t = np.asarray(more.get("t", 0.0), dtype=float)[..., np.newaxis]
        vectors += [t, self._parameter_vector(more.get("parameters"))]
        batch = np.broadcast_shapes(*(v.shape[:-1] for v in vectors))
        count = math.prod(batch)
        flat = [np.broadcast_to(v, batch + v.shape[-1:]).reshape(count, v.shape[-1])
                for v in vectors]  # fmt: skip
        return function(*flat).reshape(batch + shape)

    def _names(self, argument: str) -> tuple[str, ...]:
        return {"q": self.coordinates, "u": self.inputs,
                "weights": self.inputs[: self._motors]}.get(argument, self.independent)  # fmt: skip

    def _default(self, argument: str) -> Array:
        if argument == "q":
            return self.home
        fill = 1.0 if argument == "weights" else 0.0
        return np.full(len(self._names(argument)), fill)

    def _vector(self, argument: str, value: Any) -> Array:
        """An argument as an array whose last axis is the vector."""
        if value is None:
            return self._default(argument)
        if isinstance(value, Mapping):
            return self._by_name(argument, value, self._names(argument), self._default(argument))
        array = np.asarray(value, dtype=float)
        size = len(self._names(argument))
        if array.ndim == 0 or array.shape[-1] != size:
            names = ", ".join(self._names(argument)[:12])
            raise InvalidArgument(
                f"{argument}: expected {size} numbers along the last axis ({names}), got an array "
                f"of shape {array.shape}; values may also be given by name"
            )
        return array

    def _parameter_vector(self, value: Mapping[str, npt.ArrayLike] | None) -> Array:
        names, defaults = tuple(self.parameters), np.array(list(self.parameters.values()), float)
        if value is None:
            return defaults
        if self._backend.fixed:
            raise InvalidArgument(
                "this model's parameters are fixed; compile(parameters='free') to change them"
            )
        return self._by_name("parameters", value, names, defaults)

    def _by_name(
        self, argument: str, value: Mapping[str, npt.ArrayLike], names: tuple[str, ...],
        default: Array,
    ) -> Array:  # fmt: skip
        kind = {"q": "coordinate", "u": "input", "parameters": "parameter"}.get(
            argument, "independent speed")  # fmt: skip
        for name in value:
            if name not in names:
                raise UnknownName(f"model '{self.name}'", kind, name, names)
        columns = [np.asarray(value.get(n, d), float) for n, d in zip(names, default, strict=True)]
        return np.stack(np.broadcast_arrays(*columns), axis=-1) if columns else np.zeros(0)
