"""Linearize: how a mechanism moves near one state, on states that its constraints leave free."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from axode.argument_types import check_arguments
from axode.errors import (
    InvalidArgument,
    NotAnEquilibriumWarning,
    SingularConfiguration,
    level_outside,
    shortened,
)
from axode.mechanism.topology import tree_order
from axode.model.conditions import Conditions
from axode.model.model import Model
from axode.model.model_parts import facts_of
from axode.model.state import State
from axode.numerics.rank import smallest_singular_value, weakest_rows
from axode.numerics.tolerances import HALF_DIGITS, LIES_FLAT, NO_MOTION, ROW_RANK, SEVEN_DIGITS
from axode.problems.arguments import check_parameters, read_state, require_model, start_time
from axode.problems.linearize.feedback import Reading
from axode.problems.linearize.linearization import Linearization
from axode.problems.linearize.observables import Observables
from axode.problems.linearize.operating_point import (
    find_equilibrium,
    find_inputs,
    find_operating_point,
)
from axode.problems.linearize.steady_motions import (
    CoMoving,
    axes_field,
    co_moving,
    later_states,
    nearby_states,
)
from axode.problems.singular.pivots import find_flattest_wheel
from axode.problems.singular.switching import choose_rows, smallest_pivot
from axode.stages import call_stage
from axode.symbolic.algebra.casadi_interrupts import stoppable

if TYPE_CHECKING:
    from axode.derivatives.small_motions import Chart, ChartValues

Array = npt.NDArray[np.float64]
FASTEST = 1e6  # speed that a unit independent speed may cause: beyond, these are singular

# charts of a model, by what was asked of it: linearizing along a motion makes them once
_CHARTS: WeakKeyDictionary[Model, dict[Any, Chart]] = WeakKeyDictionary()


@stoppable
def linearize(
    model: Model,
    state: Any = None,
    *,
    states: Sequence[str] | None = None,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    input: Any = None,
    settle: bool = False,
    parameters: Mapping[str, float] | None = None,
    t: float | None = None,
) -> Linearization:
    """The linear model at a state that satisfies all constraints, by exact derivatives.

    Of contacts with friction, joints that rub and stops it is that of the modes they have there:
    what sticks is ideal, what is open is not there, and a joint that sticks is locked.

    Args:
        model: What moves.
        state: The operating point, by name, as arrays `q` or `(q, nu)`, as a `State`, as
            `run.at(t)`, or a `Trajectory` for its end; home at rest unless given.
        states: Names of coordinates, joint speeds or measures. Unless given, as many coordinates
            as loops and contacts leave free and the independent speeds; attitudes are described by
            roll, pitch and yaw of floating bodies, and by small angles `ball.rx` about the body's
            axes. Fewer will do if they depend on no others.
        inputs: Which of the model's; all unless given, the others stay as they are.
        outputs: Coordinates, speeds, measures, constraint forces by name; the states unless given.
        input: Inputs at the operating point by name, or "hold": those that keep the speeds.
        settle: Go to the equilibrium next to `state` first: what the motors cannot hold, the
            configuration does, as a balancer leans into a slope.
        parameters: Values by name instead of the defaults.
        t: Time, where it is explicit [s]; that of `state` or zero unless given.

    Raises:
        InvalidArgument: for states that repeat each other or do not stand alone, or if there is
            no equilibrium to settle at.
        SingularConfiguration: where the constraints lose rank.
        NotApplicable: where a contact slips, or is about to slip, lift or stick.
    """
    given = locals()
    check_arguments(linearize, given)
    require_model("linearize", model, contacts=True)
    check_parameters(model, parameters)
    if facts_of(model).contact_table:
        options = {name: value for name, value in given.items() if name not in ("model", "state")}
        return call_stage("linearize_modes", model, state, options)
    conditions = Conditions.of(model, start_time(t, read_state(model, state, "state")), parameters)
    point = find_operating_point(model, state, conditions)
    regular = choose_rows(model, point.q, conditions)
    if regular is not model:
        model, point = regular, find_operating_point(regular, state, conditions)
    observables = Observables(model)
    if settle:
        point = find_equilibrium(model, point, input, lambda q: _places(observables, q, conditions))
    task = _Task(observables, point, find_inputs(model, input, point))
    chosen = task.names(states, "state") if states is not None else task.all_states
    shown = task.names(outputs, "output") if outputs is not None else chosen
    made = task.linear(chosen, shown, _chosen_inputs(model, inputs))
    if not made.steady:
        warnings.warn(
            f"'{model.name}' is at no equilibrium and in no steady motion there: "
            f"{', '.join(made.changing)} change{'s' if len(made.changing) == 1 else ''}, or how "
            "the rates depend on the states does; the linear model holds only near that instant. "
            'Its .drift holds the rates; input="hold" finds inputs that keep the speeds, '
            "settle=True the equilibrium nearby.",
            NotAnEquilibriumWarning,
            stacklevel=level_outside(),
        )
    return made


def _chosen_inputs(model: Model, names: Sequence[str] | None) -> list[int]:
    if names is None:
        return list(range(len(model.inputs)))
    if isinstance(names, str):
        raise InvalidArgument(f"inputs: a list of names is needed, got '{names}'")
    return [model.signals.resolve(name, "input").index for name in names]


def _tangents(observables: Observables, q: Array, conditions: Conditions) -> Array:
    """Changes of q and nu that keep the constraints, in columns."""
    from axode.derivatives.small_motions import tangent_basis

    R = observables.model.residual_jacobian(q, **conditions.options)
    tangents = tangent_basis(observables.equations, R, q)
    if tangents is None:
        raise _singular(observables.model, "the constraints lose rank")
    flat, words = find_flattest_wheel(observables.model, q, conditions)
    if flat < LIES_FLAT:
        raise _singular(observables.model, words)
    fastest = np.abs(observables.model.speed_map(q, **conditions.options)).max(initial=0.0)
    pivot = smallest_pivot(observables.model, q, conditions)
    if not fastest < FASTEST or pivot < 1 / FASTEST**2:
        speeds = ", ".join(observables.model.independent)
        raise _singular(
            observables.model,
            f"the speeds {speeds} cannot describe the motion; derive the "
            "mechanism with other independent=[...]",
        )
    return tangents


def _places(observables: Observables, q: Array, conditions: Conditions) -> Array:
    """Changes of q alone."""
    tangents = _tangents(observables, q, conditions)
    return tangents[: q.size, : tangents.shape[1] - len(observables.model.independent)]


def _singular(model: Model, why: str) -> SingularConfiguration:
    return SingularConfiguration(
        f"'{model.name}' cannot be linearized there: the configuration is singular, {why}."
    )


class _Task:
    """One operating point, and the linear models of it."""

    def __init__(
        self,
        observables: Observables,
        point: State,
        u: Array,
        axes: CoMoving | None = None,
        reference: Array | None = None,
    ) -> None:
        model = observables.model
        self.model, self.observables, self.point, self.u = model, observables, point, u
        self.t = float(point.conditions.t)
        self.p = model.parameter_vector(point.conditions.p)
        self._charts = _CHARTS.setdefault(model, {})
        self.tangents = _tangents(observables, point.q, point.conditions)
        self.reference = point.q if reference is None else reference
        self.axes = axes or co_moving(observables, point, u, self.t, self.p)

    def names(self, given: Sequence[str], kind: str) -> tuple[str, ...]:
        """Full names of what the user calls states or outputs."""
        if isinstance(given, str) or not len(given):
            raise InvalidArgument(f"{kind}s: a list of names is needed, got {shortened(given)}")
        known = self.observables.states if kind == "state" else self.observables.outputs
        names = tuple(known.resolve(name) for name in given)
        if len(set(names)) != len(names):
            twice = next(n for n in names if names.count(n) > 1)
            raise InvalidArgument(f"{kind}s: '{twice}' is named twice")
        return names

    @property
    def all_states(self) -> tuple[str, ...]:
        """Coordinates that describe the configuration, and the independent speeds."""
        from axode.derivatives.small_motions import independent_rows, place_candidates

        e = self.observables.equations
        by_joint = place_candidates(e, self.point.q, self.t, self.p)
        candidates = tuple(name for names in by_joint.values() for name in names)
        free = self.tangents.shape[1] - len(e.independent)
        gradients = (self._there(candidates, ()).x_by_z @ self.tangents)[:, :free]
        chosen = independent_rows(gradients, free)
        assert chosen is not None, "coordinates and small angles describe every configuration"
        found = [candidates[k] for k in chosen]
        places: list[str] = []  # as the model lists them, angles after coordinates
        for joint in tree_order(e.system.mechanism):
            own = [name for name in by_joint.get(joint.name, ()) if name in found]
            places += sorted(own, key=[*joint.coordinates, *own].index)
        return (*places, *e.independent)

    def _there(self, states: tuple[str, ...], outputs: tuple[str, ...]) -> ChartValues:
        from axode.derivatives.small_motions import Chart

        key = (states, outputs, tuple(self.axes.weights.tolist()) if self.axes.rates else ())
        if key not in self._charts:
            o = self.observables
            x, y = ([o.expression(n) for n in names] for names in (states, outputs))
            lifted = (o.reference, o.forces)
            self._charts[key] = Chart(o.equations, x, y, lifted, axes_field(o, self.axes))
        point = self.point
        return self._charts[key].at(point.q, point.nu, self.u, self.t, self.p, self.reference)

    def linear(
        self, states: tuple[str, ...], outputs: tuple[str, ...], inputs: list[int]
    ) -> Linearization:
        """The linear model on some states."""
        from axode.derivatives.small_motions import on_states

        d = self._there(states, outputs)
        self._refuse_undefined(d, states, outputs)
        Z = self.tangents
        X = d.x_by_z @ Z
        self._refuse_repetition(X, states)
        A, rest = on_states(d.x_dot_by_z @ Z, X)
        self._refuse_dependence(rest, d.x_dot_by_z @ Z, states, states, "state")
        C, rest = on_states(d.y_by_z @ Z, X)
        self._refuse_dependence(rest, d.y_by_z @ Z, outputs, states, "output")
        m = self.model
        names = tuple(m.inputs[k] for k in inputs)
        units = {n: self.observables.units[n] for n in (*states, *outputs, *m.inputs)}
        return Linearization(
            m.name,
            states,
            names,
            outputs,
            A,
            d.x_dot_by_u[:, inputs],
            C,
            d.y_by_u[:, inputs],
            d.x,
            self.u[inputs],
            d.y,
            d.x_dot,
            self.point,
            units,
            tuple(self._reading(n, x) for n, x in zip(states, d.x.tolist(), strict=True)),
            dict(zip(m.inputs, self.u.tolist(), strict=True)),
            self._changing(A, d.x_dot, states),
            axes=self.axes,
            carried=self._carried(states),
        )

    def _carried(self, states: tuple[str, ...]) -> tuple[str, ...]:
        """States that the motion of the axes changes at rates that differ from place to place."""
        if not self.axes.rates:
            return ()
        sizes = np.zeros(len(states))
        for q, nu in nearby_states(self.model, self.point):
            point = State(q, nu, 0.0, self.model, self.point.conditions)
            task = _Task(self.observables, point, self.u, self.axes, q)
            carried = task._there(states, ()).carried_by_z @ task.tangents
            sizes = np.maximum(sizes, np.abs(carried).max(axis=1, initial=0.0))
        return tuple(n for n, size in zip(states, sizes.tolist(), strict=True) if size > NO_MOTION)

    def _changing(self, A: Array, drift: Array, states: tuple[str, ...]) -> tuple[str, ...]:
        """Independent speeds that change, be they states or not; else states whose rates do."""
        if self.axes.proven:
            return ()
        known = {"q": self.point.q, "nu": self.point.nu, "u": self.u}
        speeds = self.model.evaluate("forward_dynamics", known, self.point.conditions.options)
        accelerated = zip(self.model.independent, speeds.tolist(), strict=True)
        bent = zip(states, (A @ drift).tolist(), strict=True)
        return (
            tuple(name for name, rate in accelerated if abs(rate) > NO_MOTION)
            or tuple(name for name, rate in bent if abs(rate) > NO_MOTION)
            or self._varying(A, states)
        )

    def _varying(self, A: Array, states: tuple[str, ...]) -> tuple[str, ...]:
        """States whose rates depend on the states in another way a little later."""
        from axode.derivatives.small_motions import on_states

        if self.observables.equations.system.rheonomic:
            return ()
        for point in later_states(self.model, self.point, self.u):
            task = _Task(self.observables, point, self.u, self.axes, self.reference)
            d = task._there(states, ())
            there, _ = on_states(d.x_dot_by_z @ task.tangents, d.x_by_z @ task.tangents)
            off = np.abs(there - A).max(axis=1) > SEVEN_DIGITS * max(1.0, np.abs(A).max())
            if off.any():
                return tuple(n for n, bad in zip(states, off.tolist(), strict=True) if bad)
        return ()

    def _reading(self, name: str, value: float) -> Reading:
        angle = self.observables.small_angles.get(name)
        if angle is None:
            return Reading(name, value, turns=name in turning(self.model, self.observables))
        four = tuple(self.model.coordinates[k] for k in angle.four)
        return Reading(
            name, value, False, four, tuple(self.point.q[list(angle.four)].tolist()), angle.axis
        )

    # refusals ----------------------------------------------------------------------------------

    def _refuse_undefined(
        self, d: ChartValues, states: Sequence[str], outputs: Sequence[str]
    ) -> None:
        parts = ((states, (d.x_by_z, d.x_dot_by_z, d.x_dot_by_u)), (outputs, (d.y_by_z, d.y_by_u)))
        for names, matrices in parts:
            fine = np.all([np.isfinite(M).all(axis=1) for M in matrices], axis=0)
            if not fine.all():
                bad = [n for n, ok in zip(names, fine, strict=True) if not ok]
                raise InvalidArgument(
                    f"{', '.join(bad)}: has no derivative at this point; choose another quantity, "
                    "or a point next to it"
                )

    def _refuse_repetition(self, X: Array, states: tuple[str, ...]) -> None:
        lengths = np.linalg.norm(X, axis=1, keepdims=True)
        still = [n for n, size in zip(states, lengths.ravel(), strict=True) if size < ROW_RANK]
        if still:
            raise InvalidArgument(
                f"states: the constraints keep {', '.join(still)} from changing; leave it out"
            )
        scaled = X / lengths.clip(1e-300)
        if len(states) <= X.shape[1] and smallest_singular_value(scaled) > ROW_RANK:
            return
        weights = np.abs(weakest_rows(scaled))
        joined = [n for n, w in zip(states, weights, strict=True) if w > 1e-6 * weights.max()]
        raise InvalidArgument(
            f"states: {', '.join(joined)} depend on each other there; leave one of them out"
        )

    def _refuse_dependence(
        self, rest: Array, whole: Array, names: Sequence[str], states: tuple[str, ...], kind: str
    ) -> None:
        causes = _left(rest, whole, names)
        if not causes:
            return
        what = ", ".join(causes)
        if kind == "state":
            what = f"how fast {what} {'changes' if len(causes) == 1 else 'change'}"
        more = self._missing(states, names if kind == "output" else ())
        raise InvalidArgument(
            f"{kind}s: {what} depends on more than the states "
            f"{', '.join(states)}.\n  Add {', '.join(more)}, or name no states to get all."
        )

    def _missing(self, states: tuple[str, ...], outputs: Sequence[str]) -> list[str]:
        """States to add, one after the other, until the rates depend on no others."""
        from axode.derivatives.small_motions import on_states

        everything = tuple(dict.fromkeys((*states, *self.all_states)))
        d = self._there(everything, tuple(outputs))
        X, rates, shown = (M @ self.tangents for M in (d.x_by_z, d.x_dot_by_z, d.y_by_z))
        chosen, left = list(range(len(states))), list(range(len(states), len(everything)))

        def rest(rows: list[int], given: list[int]) -> tuple[Array, Array]:
            whole = np.vstack([rates[rows], shown])
            return on_states(whole, X[given])[1], whole

        while left:
            best = min(left, key=lambda k: float(np.linalg.norm(rest(chosen, [*chosen, k])[0])))
            chosen.append(best)
            left.remove(best)
            names = [*(everything[k] for k in chosen), *outputs]
            if not _left(*rest(chosen, chosen), names):
                break
        return [everything[k] for k in chosen[len(states) :]]


def turning(model: Model, observables: Observables) -> set[str]:
    """Measures that are angles between minus and plus half a turn."""
    mechanism = observables.equations.system.mechanism
    own = {n for m in mechanism.measures if m.kind in ("roll", "yaw") for n in m.names}
    bases = {f"{c.name}.{kind}" for c in mechanism.connections for kind in ("roll", "yaw")}
    return (own | bases) & set(model.measure_names)


def _left(rest: Array, whole: Array, names: Sequence[str]) -> list[str]:
    """Names of the rows that are not accounted for."""
    size = np.maximum(1.0, np.abs(whole).max(axis=1, initial=0.0))
    wrong = np.abs(rest).max(axis=1, initial=0.0) > HALF_DIGITS * size
    return [name for name, bad in zip(names, wrong, strict=True) if bad]
