"""Measures in symbols: of the user, and the usual ones of bases and wheels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import casadi as ca

from axode.errors import InvalidArgument, UnknownName
from axode.mechanism.elements.joints import Floating
from axode.mechanism.elements.measures import KINDS, Measure
from axode.symbolic.algebra.formula_symbols import numpy_on_symbols
from axode.symbolic.algebra.spatial import SX
from axode.symbolic.tree.frames import Pose, symbolic_vector
from axode.symbolic.wheels.contacts import contact_point

if TYPE_CHECKING:
    from axode.symbolic.equations import Equations


@dataclass(frozen=True)
class SymbolicMeasure:
    """One number of the state with its name and unit."""

    name: str
    unit: str
    expression: SX
    needs_speeds: bool


def measures_of(equations: Equations) -> dict[str, SymbolicMeasure]:
    """The user's measures, then the usual ones whose names are still free."""
    taken = {*equations.coordinates, *equations.speeds, *equations.inputs}
    found: dict[str, SymbolicMeasure] = {}
    for measure in (*equations.system.mechanism.measures, *_usual(equations)):
        for made in _components(equations, measure, found):
            if made.name not in taken:
                found.setdefault(made.name, made)
    for made in _contact_points(equations):
        found.setdefault(made.name, made)
    return found


def _usual(equations: Equations) -> Iterator[Measure]:
    """Attitude and velocity of every floating body."""
    for connection in equations.system.mechanism.connections:
        if isinstance(connection.joint, Floating):
            for kind in (
                "roll",
                "pitch",
                "yaw",
                "roll_rate",
                "pitch_rate",
                "yaw_rate",
                "surge",
                "sway",
                "heave",
            ):
                yield Measure(f"{connection.name}.{kind}", kind, connection.child)


def _contact_points(equations: Equations) -> Iterator[SymbolicMeasure]:
    tree = equations.system.tree
    for contact in equations.system.mechanism.contacts:
        point = contact_point(tree, contact)
        for i, axis in enumerate("xyz"):
            name = f"{contact.name}.contact.{axis}"
            yield SymbolicMeasure(name, "m", point[i], needs_speeds=False)


def _components(
    equations: Equations, measure: Measure, known: dict[str, SymbolicMeasure]
) -> Iterator[SymbolicMeasure]:
    if measure.kind == "function":
        assert measure.function is not None
        symbols = StateSymbols(equations, known)
        value = SX(traced(f"measure '{measure.name}'", measure.function, symbols))
        needs = ca.depends_on(value, equations.nu)
        yield SymbolicMeasure(measure.name, measure.unit, value, bool(needs))
        return
    _, unit, needs_speeds = KINDS[measure.kind]
    values = _value(equations, measure)
    for name, value in zip(measure.names, ca.vertsplit(values), strict=True):
        yield SymbolicMeasure(name, unit, value, needs_speeds)


def _value(equations: Equations, measure: Measure) -> SX:
    tree = equations.system.tree
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


def traced(owner: str, function: Callable[[Any], Any], state: StateSymbols) -> Any:
    """A function's value on symbols; NumPy's functions may be used in it, without CasADi's notice
    of how it takes them.

    Raises:
        InvalidArgument: for a function that asks which value a symbol has, or takes other arguments
            than the state.
    """
    try:
        with numpy_on_symbols():
            return function(state)
    except RuntimeError as error:
        if "truth value" not in str(error):
            raise
        raise InvalidArgument(
            f"{owner}: the function is called once, with symbols, which `if`, `and`, `max` and "
            "`while` cannot decide on; write numpy.where(condition, a, b), numpy.maximum or "
            "numpy.clip"
        ) from None
    except TypeError as error:
        if "positional argument" not in str(error):
            raise
        raise InvalidArgument(
            f"{owner}: a function of the state takes one argument, the state s (time is s.t): "
            f"{error}"
        ) from None


class StateSymbols:
    """The state as a traced function sees it: `s["pitch"]`, `s.t`, `s.position("tip")`.

    Names are those of coordinates, speeds, measures, parameters; a short name (`pitch` for
    `base.pitch`) will do where only one ends in it.
    """

    def __init__(
        self, equations: Equations, measures: dict[str, SymbolicMeasure] | None = None
    ) -> None:
        self._equations = equations
        self._measures = measures

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
        e = self._equations
        symbols: dict[str, Any] = {}
        measures = e.measures if self._measures is None else self._measures
        symbols |= {n: m.expression for n, m in measures.items()}
        symbols |= dict(zip(e.parameters, ca.vertsplit(e.p), strict=True)) if e.parameters else {}
        symbols |= dict(zip(e.speeds, ca.vertsplit(e.v), strict=True))
        symbols |= dict(zip(e.coordinates, ca.vertsplit(e.q), strict=True))
        return SX(symbols[full_name(name, symbols, f"mechanism '{e.name}'")])

    def position(self, body: str, at: Any = (0.0, 0.0, 0.0)) -> SX:
        """A body's point in the world."""
        return self.pose(body).point(SX(ca.DM(list(at))))

    def pose(self, body: str) -> Pose:
        """A body's frame in the world."""
        poses = self._equations.poses
        if body not in poses:
            raise UnknownName(f"mechanism '{self._equations.name}'", "body", body, poses)
        return poses[body]


def full_name(name: str, known: Any, owner: str) -> str:
    """The one name that is meant: itself, or the only one that ends in it after a dot."""
    if name in known:
        return name
    ending = [other for other in known if other.endswith(f".{name}")]
    if len(ending) == 1:
        return str(ending[0])
    raise UnknownName(owner, "signal", name, ending or known)
