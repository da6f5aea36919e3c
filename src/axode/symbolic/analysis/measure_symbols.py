"""Measures in symbols: of the user, and the usual ones of bases and wheels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import casadi as ca

from axode.errors import InvalidArgument, UnknownName
from axode.mechanism.elements.forces import KINDS, Measure
from axode.mechanism.elements.wheels import Contact
from axode.mechanism.values.expressions import TIME, Scalar
from axode.names import Names
from axode.symbolic.algebra.formula_symbols import symbolic_value, trace
from axode.symbolic.algebra.spatial import SX, Pose, symbolic_vector
from axode.symbolic.wheels.contacts import contact_point

if TYPE_CHECKING:
    from axode.mechanism.mechanism import Mechanism
    from axode.symbolic.equations import Equations

ENERGIES = ("kinetic", "potential")


@dataclass(frozen=True)
class SymbolicMeasure:
    """One number of the state with its name and unit."""

    name: str
    unit: str
    expression: SX
    needs_speeds: bool


def measures_of(equations: Equations) -> dict[str, SymbolicMeasure]:
    """Measures of the user, then the usual ones whose names are still free."""
    measures = _Measures(equations)
    return {name: measures[name] for name in measures}


class _Measures(Mapping[str, SymbolicMeasure]):
    """All measures of a mechanism by name, each made when it is first asked for.

    A function of the user may therefore use any other measure, in whatever order they stand.
    """

    def __init__(self, equations: Equations) -> None:
        self._equations = equations
        taken = {*equations.coordinates, *equations.speeds, *equations.inputs}
        mechanism = equations.system.mechanism
        own = taken - {quasi.name for quasi in mechanism.quasi_velocities}
        hidden = [name for measure in mechanism.measures for name in measure.names if name in own]
        if hidden:
            raise InvalidArgument(
                f"mechanism '{equations.name}': a measure and a coordinate, speed or input are "
                f"both called '{hidden[0]}'; rename one of them"
            )
        self._origin: dict[str, Measure | Contact] = {}
        for measure in (*mechanism.measures, *_usual(equations)):
            for name in measure.names:
                if name not in taken:
                    self._origin.setdefault(name, measure)
        for contact in mechanism.contacts:
            for axis in "xyz":
                self._origin.setdefault(f"{contact.name}.contact.{axis}", contact)
            for row in contact.slip_rows:
                if f"{row}_slip" not in taken:
                    self._origin.setdefault(f"{row}_slip", contact)
        self._made: dict[str, SymbolicMeasure] = {}
        self._open: list[str] = []  # functions that are being traced

    def __iter__(self) -> Iterator[str]:
        return iter(self._origin)

    def __len__(self) -> int:
        return len(self._origin)

    def __getitem__(self, name: str) -> SymbolicMeasure:
        if name not in self._made:
            if name in self._open:
                through = ", ".join([*self._open[self._open.index(name) :], name])
                raise InvalidArgument(f"measure '{name}' depends on itself: {through}")
            self._open.append(name)
            origin = self._origin[name]
            for made in self._make(origin):
                if self._origin.get(made.name) is origin:
                    self._made[made.name] = made
            self._open.remove(name)
        return self._made[name]

    def _make(self, origin: Measure | Contact) -> Iterator[SymbolicMeasure]:
        equations = self._equations
        if isinstance(origin, Contact):
            point = contact_point(equations.system.free_tree, origin)
            for i, axis in enumerate("xyz"):
                name = f"{origin.name}.contact.{axis}"
                yield SymbolicMeasure(name, "m", point[i], needs_speeds=False)
            for row in origin.slip_rows:
                rows = equations.contact_rows
                k = rows.names.index(row)
                speed = rows.J[k, :] @ equations.nu + rows.drift[k]
                yield SymbolicMeasure(f"{row}_slip", "m/s", speed, needs_speeds=True)
        elif origin.kind == "function":
            assert origin.function is not None
            symbols = StateSymbols(equations, self)
            value = SX(trace(f"measure '{origin.name}'", origin.function, symbols))
            needs = ca.depends_on(value, equations.nu)
            yield SymbolicMeasure(origin.name, origin.unit, value, bool(needs))
        else:
            _, unit, needs_speeds = KINDS[origin.kind]
            values = ca.vertsplit(_value(equations, origin))
            for name, value in zip(origin.names, values, strict=True):
                yield SymbolicMeasure(name, unit, value, needs_speeds)


def _usual(equations: Equations) -> Iterator[Measure]:
    """Attitude and velocity of every floating body."""
    for connection in equations.system.mechanism.connections:
        for kind in connection.joint.measures:
            yield Measure(f"{connection.name}.{kind}", kind, connection.child)


def _value(equations: Equations, measure: Measure) -> SX:
    tree = equations.system.free_tree
    pose = tree.body_world_pose(measure.body)
    point = pose.point(symbolic_vector(measure.at, tree.values))
    if measure.kind == "position":
        return point
    if measure.kind == "distance":
        far = tree.body_world_pose(measure.other)
        return ca.norm_2(point - far.point(symbolic_vector(measure.other_at, tree.values)))
    if measure.kind in ("roll", "pitch", "yaw"):
        return _attitude(pose, measure.kind)
    if measure.kind.endswith("_rate"):
        return _rate(equations, _attitude(pose, measure.kind.removesuffix("_rate")))
    velocity = _rate(equations, point)
    if measure.kind == "velocity":
        return velocity
    # surge and sway in axes that only follow the heading, as a vehicle's driver feels them
    forward = ca.vertcat(pose.R[0, 0], pose.R[1, 0])
    forward = forward / ca.norm_2(forward)
    x, y = velocity[0], velocity[1]
    return {
        "surge": forward[0] * x + forward[1] * y,
        "sway": forward[0] * y - forward[1] * x,
        "heave": velocity[2],
    }[measure.kind]


def _attitude(pose: Pose, kind: str) -> SX:
    """Angles of R = Rz(yaw) Ry(pitch) Rx(roll)."""
    R = pose.R
    if kind == "yaw":
        return ca.atan2(R[1, 0], R[0, 0])
    if kind == "roll":
        return ca.atan2(R[2, 1], R[2, 2])
    return ca.atan2(-R[2, 0], ca.sqrt(R[2, 1] ** 2 + R[2, 2] ** 2))


def _rate(equations: Equations, x: SX) -> SX:
    rate = ca.jtimes(x, equations.q, equations.q_dot)
    return rate + ca.jtimes(x, equations.t, SX(1))


class EquationsNeeded(Exception):
    """A function of the state asks for more than the signals of a model."""


class SignalSymbols:
    """What `StateSymbols` reads of equations, for a model whose signals are symbols of their own.

    Nothing is derived for them. All else raises `EquationsNeeded`.

    Args:
        mechanism: What is described.
        sizes: How many elements each function of signals has, by its name.
        names: Names of coordinates, independent speeds, all speeds and inputs.
        parameters: Parameters and their defaults.
        measures: Name, unit and whether it needs speeds, of each measure.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        sizes: Mapping[str, int],
        names: tuple[tuple[str, ...], ...],
        parameters: Mapping[str, float],
        measures: Sequence[tuple[str, str, bool]],
    ) -> None:
        self.name, self.mechanism, self.parameters = mechanism.name, mechanism, dict(parameters)
        self.coordinates, self.independent, self.speeds, self.inputs = names
        self.t = SX.sym("t")
        self.q, self.nu, _, self.u = (SX.sym(s, len(n)) for s, n in zip("qnvu", names, strict=True))
        self.p = SX.sym("p", len(self.parameters))
        self.functions = {name: SX.sym(name, size) for name, size in sizes.items()}
        self.measures = {
            name: SymbolicMeasure(name, unit, self.functions["measures"][k], needs_speeds)
            for k, (name, unit, needs_speeds) in enumerate(measures)
        }

    @property
    def v(self) -> SX:
        """All joint speeds."""
        return self.functions["joint_speeds"]

    @property
    def energy(self) -> SX:
        """Kinetic and potential energy."""
        return self.functions["energy"]

    @property
    def motor_powers(self) -> SX:
        """Powers of the motors."""
        return self.functions["motor_powers"]

    @property
    def poses(self) -> Mapping[str, Pose]:
        """Refuse frames of bodies."""
        raise EquationsNeeded


class StateSymbols:
    """The state as a traced function sees it: `s["pitch"]`, `s.t`, `s.position("tip")`.

    Names are those of coordinates, speeds, measures, parameters and the energies `kinetic` and
    `potential`; short ones will do, as in the catalogue of signals. Where the input is known, as
    for the outputs of a sweep, those of inputs are too.
    """

    def __init__(
        self,
        equations: Equations | SignalSymbols,
        measures: Mapping[str, SymbolicMeasure] | None = None,
        inputs: bool = False,
    ) -> None:
        self._equations, self._has_inputs = equations, inputs
        self._measures = equations.measures if measures is None else measures
        e = equations
        self._symbols: dict[str, SX] = {}
        known = [(e.parameters, e.p), (e.speeds, e.v), (e.coordinates, e.q)]
        for names, values in [(e.inputs, e.u), *known] if inputs else known:
            self._symbols |= dict(zip(names, ca.vertsplit(values), strict=True)) if names else {}
        state = dict.fromkeys((*e.coordinates, *e.speeds, *self._measures))
        drives = e.mechanism.drives if inputs else ()
        self._powers = {f"{drive.name}.power": k for k, drive in enumerate(drives)}
        groups = (state, (*e.parameters, *ENERGIES), e.inputs if inputs else (), self._powers)
        self._names = Names(f"mechanism '{e.name}'", "signal", *groups)

    @property
    def t(self) -> SX:
        """Time."""
        return self._equations.t

    @property
    def q(self) -> SX:
        """All coordinates."""
        return self._equations.q

    @property
    def nu(self) -> SX:
        """Independent speeds."""
        return self._equations.nu

    def __getitem__(self, name: str) -> SX:
        if name in self._equations.inputs and not self._has_inputs:
            raise InvalidArgument(
                f"'{name}' is an input, and a function of the state cannot depend on inputs"
            )
        full = self._names.resolve(name)
        if full in self._symbols:
            return SX(self._symbols[full])
        if full in self._measures:
            return SX(self._measures[full].expression)
        if full in self._powers:
            return SX(self._equations.motor_powers[self._powers[full]])
        return self._equations.energy[ENERGIES.index(full)]

    def evaluate(
        self, formula: Scalar, signals: Mapping[str, str], known: Mapping[str, Any] | None = None
    ) -> SX:
        """Value of a formula.

        Args:
            formula: Formula of time, parameters of the mechanism and others.
            signals: Which signals the other parameters stand for.
            known: Values of parameters that stand for neither.
        """
        e = self._equations
        values = dict(zip(e.parameters, ca.vertsplit(e.p), strict=True)) if e.parameters else {}
        values |= {parameter: self[name] for parameter, name in signals.items()} | dict(known or {})
        return SX(symbolic_value(formula, values | {TIME: self.t}))

    def position(self, body: str, at: Any = (0.0, 0.0, 0.0)) -> SX:
        """A body's point in the world."""
        return self.pose(body).point(SX(ca.DM(list(at))))

    def pose(self, body: str) -> Pose:
        """A body's frame in the world."""
        poses = self._equations.poses
        if body not in poses:
            raise UnknownName(f"mechanism '{self._equations.name}'", "body", body, poses)
        return poses[body]
