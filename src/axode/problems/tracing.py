"""Python functions of the state's symbols, traced once into tapes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.codegen.tape.tape import Tape
from axode.codegen.targets.cpu import CompiledFunction
from axode.errors import InvalidArgument, NotApplicable
from axode.model.conditions import Conditions
from axode.model.function_source import SymbolicLibrary
from axode.model.model import Model

Array = npt.NDArray[np.float64]


def is_symbolic(value: Any) -> bool:
    """Whether something is an expression of CasADi's."""
    return type(value).__module__.partition(".")[0] == "casadi"


def call_traced(function: CompiledFunction, q: Array, nu: Array, conditions: Conditions) -> Array:
    """Evaluate a traced function at states under conditions."""
    known = {"t": np.asarray(conditions.t)[..., np.newaxis], "q": q, "nu": nu, "p": conditions.p}
    arrays = (np.ascontiguousarray(known[port.name]) for port in function.tape.inputs)
    made: Array = function(*arrays)
    return made


def traced_tape(
    model: Model,
    name: str,
    function: Callable[[Any], list[Any]],
    speeds: Sequence[str] | None = None,
) -> Tape:
    """Expressions of the state as a tape of t, q, nu and free parameters.

    Args:
        model: Whose state it is.
        name: Of the tape, and for messages.
        function: Given the state's symbols; gives expressions.
        speeds: Names of what the function calls nu, where the model has other independent speeds.

    Raises:
        NotApplicable: for a model read from a file.
        InvalidArgument: for symbols that are not of the model.
    """
    import casadi as ca

    from axode.model.function_source import shaped_tape
    from axode.symbolic.tree.measure_symbols import StateSymbols, traced

    if not isinstance(model.library, SymbolicLibrary):
        raise NotApplicable(
            f"{name}: functions of the state need the mechanism; this model was read from a file. "
            "Use formulas of time, Sampled(...) or Callback(...)."
        )
    e = model.library.equations
    own = dict(zip(e.speeds, ca.vertsplit(e.v), strict=True))
    nu = e.nu if speeds is None else ca.vertcat(*(own[speed] for speed in speeds))

    class Symbols(StateSymbols):
        """The state, with nu as its reader knows it."""

        @property
        def nu(self) -> Any:
            return nu

    values = ca.vertcat(ca.SX(0, 1), *traced(name, function, Symbols(e)))
    if e.parameters and model.facts.fixed:
        values = ca.substitute(values, e.p, ca.DM(e.system.defaults))
    symbols = {"t": e.t, "q": e.q, "nu": e.nu}
    if e.parameters and not model.facts.fixed:
        symbols["p"] = e.p
    values = _in_own_speeds(values, [s for v in symbols.values() for s in ca.symvar(v)], own, name)
    made = ca.Function(name, list(symbols.values()), [values], list(symbols), [name])
    _refuse_nan(made, name)
    return shaped_tape(made, {n: s.shape[0] for n, s in symbols.items()}, name, (values.shape[0],))


def _refuse_nan(made: Any, name: str) -> None:
    """Stop at functions of math, which take a symbol for a number that is not one."""
    import casadi as ca

    constants = [
        made.instruction_constant(k)
        for k in range(made.n_instructions())
        if made.instruction_id(k) == ca.OP_CONST
    ]
    if any(math.isnan(x) for x in constants):
        raise InvalidArgument(
            f"{name}: the function makes NaN of the state's symbols; use functions such as "
            "numpy.sin on them, not those of math, and no float()"
        )


def _in_own_speeds(values: Any, known: list[Any], own: dict[str, Any], name: str) -> Any:
    """Expressions whose symbols are all known; speeds of another choice are put in terms of ours.

    An expression that the user made from the model's equations has the symbols of their speeds.
    """
    import casadi as ca

    mine = {s.element_hash() for s in known}
    others = [s for s in ca.symvar(values) if s.element_hash() not in mine]
    for symbol in others:
        if symbol.name() not in own:
            raise InvalidArgument(
                f"{name}: the symbol '{symbol.name()}' is not of this model; use those of its "
                "equations (t, q, nu, p), or a function of the state"
            )
        values = ca.substitute(values, symbol, own[symbol.name()])
    return values
