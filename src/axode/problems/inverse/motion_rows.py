"""Rows that motions are given by: functions of the configuration, and speeds, by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from axode.codegen.targets.cpu import CompiledFunction
from axode.errors import InvalidArgument
from axode.model.conditions import Conditions
from axode.model.function_source import shaped_tape
from axode.model.model import Model
from axode.model.model_parts import facts_of
from axode.model.signals import STATE_KINDS
from axode.problems.inputs.tracing import compile_tape

Array = npt.NDArray[np.float64]
_KEPT: WeakKeyDictionary[Model, dict[Any, dict[str, CompiledFunction]]] = WeakKeyDictionary()


@dataclass(frozen=True)
class PositionRow:
    """A function of the configuration that a motion is given by.

    Attributes:
        name: What messages call it.
        expression: In CasADi's symbols of the model's equations.
        unit: Unit of its value.
        is_angle: Whether full turns do not matter.
    """

    name: str
    expression: Any
    unit: str
    is_angle: bool = False


class Rows:
    """What a motion is given by, as functions of the configuration and of all joint speeds.

    Functions of rows that belong to the equations of the model are kept with it if `keep` is set.
    """

    def __init__(
        self,
        model: Model,
        rows: Sequence[PositionRow],
        speeds: Sequence[str],
        *,
        keep: bool = False,
    ) -> None:
        self.model = model
        self.positions = tuple(rows)
        self.speeds = [model.speed_names.index(name) for name in speeds]
        self.names = (*(row.name for row in rows), *speeds)
        self.angles = np.array([row.is_angle for row in rows], dtype=bool)
        kept = _KEPT.setdefault(model, {}) if keep else {}
        key = tuple((row.name, row.expression.element_hash()) for row in rows if keep)
        if rows and key not in kept:
            kept[key] = _row_functions(model, rows)
        self._functions = kept.get(key, {})

    def call(
        self, name: str, q: Array, conditions: Conditions, v: Any = 0.0, a: Any = 0.0
    ) -> Array:
        """Evaluate values, Jacobians or derivatives of the rows of position, batch axes first."""
        if not self.positions:
            shape = {
                "jacobian": (0, len(self.model.speed_names)),
                "by_q": (0, len(self.model.coordinates)),
            }
            return np.zeros((*q.shape[:-1], *shape.get(name, (0,))))
        function = self._functions[name]
        size = (*q.shape[:-1], len(self.model.speed_names))
        known = {
            "q": q,
            "v": np.broadcast_to(v, size),
            "a": np.broadcast_to(a, size),
            "t": np.broadcast_to(conditions.t, q.shape[:-1])[..., np.newaxis],
            "p": self.model.parameter_vector(conditions.p),
        }
        arrays = [np.ascontiguousarray(known[port.name]) for port in function.tape.inputs]
        result: Array = function(*arrays)
        return result


def _row_functions(model: Model, rows: Sequence[PositionRow]) -> dict[str, CompiledFunction]:
    """y(q), its derivative by q, its rate, its Jacobian on the joint speeds, its second rate."""
    import casadi as ca

    e = model.equations
    tree, q, t = e.system.tree, e.q, e.t
    a = ca.SX.sym("a", tree.v.shape[0])
    y = ca.vertcat(*[row.expression for row in rows])
    q_dot = tree.N @ tree.v
    rate = ca.jtimes(y, q, q_dot) + ca.jtimes(y, t, ca.SX(1))
    second = ca.jtimes(rate, q, q_dot) + ca.jtimes(rate, t, ca.SX(1)) + ca.jtimes(rate, tree.v, a)
    made = {
        "value": y,
        "by_q": ca.jacobian(y, q),
        "rate": rate,
        "jacobian": ca.jacobian(rate, tree.v),
        "second": second,
    }
    symbols = {"q": q, "v": tree.v, "a": a, "t": t}
    if e.parameters:
        symbols["p"] = e.p
    found = {}
    for name, x in made.items():
        shape = x.shape if name in ("by_q", "jacobian") else (y.shape[0],)
        flat = ca.vec(ca.densify(x).T)
        function = ca.Function(name, list(symbols.values()), [flat], list(symbols), [name])
        sizes = {n: s.shape[0] for n, s in symbols.items()}
        found[name] = compile_tape(shaped_tape(function, sizes, name, shape))
    return found


def rows_by_name(model: Model, names: Sequence[str]) -> Rows:
    """Make rows for coordinates, speeds and measures of position.

    Raises:
        UnknownName: for any other name.
    """
    placed = {n: unit for n, unit, needs_speeds in facts_of(model).measures if not needs_speeds}
    positions: list[PositionRow] = []
    speeds: list[str] = []
    for name in names:
        if name in model.speed_names:
            speeds.append(name)
        elif name in model.coordinates:
            k = model.coordinates.index(name)
            unit = facts_of(model).coordinate_units[k]
            positions.append(PositionRow(name, model.equations.q[k], unit))
        else:
            expression = model.equations.measures[name].expression
            unit = placed[name]
            positions.append(PositionRow(name, expression, unit, is_angle=unit == "rad"))
    return Rows(model, positions, speeds, keep=True)


def full_names(model: Model, names: Sequence[str]) -> list[str]:
    """Full names of the signals that a motion gives.

    Raises:
        InvalidArgument: for a measure of speed.
    """
    signals = [model.signals.resolve(name, *STATE_KINDS) for name in names]
    for name, signal in zip(names, signals, strict=True):
        if signal.kind == "measure" and model.signals.depends_on_speeds(signal.name):
            raise InvalidArgument(
                f"motion: '{name}' is a measure of speed, and a motion is given by coordinates, "
                "joint speeds and measures of position.\n"
                f"  Joint speeds: {', '.join(model.speed_names)}"
            )
    return [signal.name for signal in signals]
