"""Python functions of the state's symbols, traced once into tapes."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from axode.codegen.tape.formulas import TAPE_FUNCTIONS, Formula, Vector, formula_tape
from axode.codegen.tape.rewriting import extract_numbers
from axode.codegen.tape.switching import bounds_everywhere
from axode.codegen.tape.tape import Tape
from axode.codegen.targets.cpu import CompiledFunction
from axode.errors import InvalidArgument, NotApplicable, shortened
from axode.mechanism.values.expressions import (
    TIME,
    Expression,
    Operation,
    Parameter,
    Scalar,
    Time,
    as_scalar,
    evaluate,
    parameters_in,
)
from axode.model.conditions import Conditions
from axode.model.function_source import shaped_tape
from axode.model.memory import ModelWithMemory
from axode.model.model import Model
from axode.model.model_parts import facts_of, function_tape
from axode.model.named_arguments import real_array
from axode.problems.inputs.state_formulas import stand_in

if TYPE_CHECKING:
    from axode.symbolic.analysis.measure_symbols import SignalSymbols
    from axode.symbolic.equations import Equations

Function = Callable[..., list[Any]]

Array = npt.NDArray[np.float64]
MAX_NUMBERS = 512  # of a traced function that are arguments: vectors of them fit into the cache
MAX_FUNCTIONS = 64  # compiled tapes that are kept, those that were used last


def is_symbolic(value: Any) -> bool:
    """Return whether something is an expression of CasADi's."""
    return type(value).__module__.partition(".")[0] == "casadi"


@lru_cache(maxsize=MAX_FUNCTIONS)
def compile_tape(tape: Tape) -> CompiledFunction:
    """Compile a tape, or find it among the last `MAX_FUNCTIONS`; others are unloaded."""
    return CompiledFunction(tape)


def compile_expression(
    name: str, symbols: Mapping[str, Any], value: Any, shape: Sequence[int]
) -> CompiledFunction:
    """Compile an expression of CasADi's symbols; arguments without elements are left out."""
    import casadi as ca

    used = {n: s for n, s in symbols.items() if s.shape[0]}
    flat = ca.vec(ca.densify(value).T)
    function = ca.Function(name, list(used.values()), [flat], list(used), [name])
    sizes = {n: s.shape[0] for n, s in used.items()}
    return compile_tape(shaped_tape(function, sizes, name, tuple(shape)))


class TracedFunction:
    """A tape as machine code that is shared by all tapes which differ from it in numbers only."""

    def __init__(self, tape: Tape) -> None:
        lifted = extract_numbers(tape, MAX_NUMBERS)
        self.tape, self._numbers = tape, tuple(lifted.numbers.values())
        self._function = compile_tape(lifted.tape)

    def __call__(self, *arrays: npt.ArrayLike) -> Any:
        """Evaluate it with one array per input of the tape."""
        return self._function(*arrays, *self._numbers)


def call_traced(function: TracedFunction, q: Array, nu: Array, conditions: Conditions) -> Array:
    """Evaluate a traced function at states under conditions."""
    known: dict[str, Any] = {"t": np.asarray(conditions.t)[..., np.newaxis], "q": q, "nu": nu}
    known |= {"p": conditions.p, "gains": conditions.gains}
    arrays = (np.ascontiguousarray(known[port.name]) for port in function.tape.inputs)
    made: Array = function(*arrays)
    return made


def traced_tape(
    model: Model,
    name: str,
    function: Function,
    speeds: Sequence[str] | None = None,
    bounds: Sequence[float] | None = None,
    inputs: bool = False,
    gains: Sequence[str] = (),
) -> Tape:
    """Expressions of the state as a tape of t, q, nu and free parameters; also of u if they use it.

    Args:
        model: The model whose state it is.
        name: Name of the tape, also for error messages.
        function: Called with the state's symbols; returns expressions.
        speeds: Names of what the function calls nu, where the model has other independent speeds.
        bounds: Largest absolute value of each expression; none unless given.
        inputs: Whether they may depend on inputs.
        gains: Names of further numbers, by which the function is called; an argument `gains`.

    Raises:
        InvalidArgument: for symbols that are not of the model.
    """
    if isinstance(model, ModelWithMemory):
        return _memory_tape(model, name, function, bounds, inputs, gains)
    if model.has_equations:
        from axode.symbolic.analysis.measure_symbols import EquationsNeeded

        asked = _Asked(name, function, speeds, bounds, inputs, gains)
        try:
            return _casadi_tape(model, _signal_symbols(model), asked)
        except EquationsNeeded:
            return _casadi_tape(model, model.equations, asked)
    return _formula_tape(model, name, function, bounds, inputs, gains)


class StateWithMemory:
    """The state as a traced function sees it, with what the law remembers by name.

    Args:
        model: Whose state it is.
        state: That of the mechanism.
        memory: Symbols of what the law remembers, by full name.
    """

    def __init__(self, model: Model, state: Any, memory: Mapping[str, Any]) -> None:
        self._names, self._state, self._memory = model.signals.state_names, state, memory

    def __getitem__(self, name: str) -> Any:
        found = self._names.matching(name)
        known = len(found) == 1 and found[0] in self._memory
        return self._memory[found[0]] if known else self._state[name]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._state, name)

    def evaluate(self, formula: Scalar, signals: Mapping[str, str]) -> Any:
        """Value of a formula; see `StateSymbols.evaluate`."""
        known = {word: self._memory[name] for word, name in signals.items() if name in self._memory}
        own = {word: name for word, name in signals.items() if word not in known}
        return self._state.evaluate(formula, own, known)


def _memory_tape(
    model: ModelWithMemory,
    name: str,
    function: Function,
    bounds: Sequence[float] | None,
    inputs: bool,
    gains: Sequence[str],
) -> Tape:
    """Tape of a function of the mechanism's state and of what a law remembers.

    It is traced on the mechanism alone, with the memory among the gains.
    """
    memory = [state.name for state in model.memory]

    def call(state: Any, **named: Any) -> list[Any]:
        own = {name: named.pop(name) for name in memory}
        return function(StateWithMemory(model, state, own), **named)

    tape = traced_tape(model.base, name, call, None, bounds, inputs, (*gains, *memory))
    facts, n = facts_of(model), len(memory)
    sizes = {port.name: port.size for port in tape.inputs}
    sizes |= {"nu": len(facts.independent)} | ({"u": len(facts.inputs)} if "u" in sizes else {})
    sizes["gains"] = len(gains)
    sizes = {port: size for port, size in sizes.items() if port != "gains" or size}

    def build(**ports: Vector) -> dict[str, Vector]:
        known = {**ports, "gains": [*ports.get("gains", []), *ports["nu"][-n:]]}
        builder = ports["t"][0].builder
        given = [[x.number for x in known[port.name][: port.size]] for port in tape.inputs]
        return {name: [Formula(builder, k) for k in builder.replay(tape, given)]}

    return formula_tape(name, sizes, build)


def require_sign_changes(tape: Tape, results: Mapping[str, int]) -> None:
    """Check that functions whose zero crossings count may change their sign.

    Args:
        tape: The functions.
        results: Their numbers among its results, by what they are called.

    Raises:
        InvalidArgument: for comparisons, squares and others that never do.
    """
    bounds = bounds_everywhere(tape)
    for what, number in results.items():
        low, high = bounds[number]
        if low >= 0 or high <= 0:
            side = "above" if high <= 0 else "below"
            always = f"{low:g} everywhere" if low == high else f"never {side} zero"
            raise InvalidArgument(
                f"{what} never changes its sign: the function is {always}. Give one that does, "
                "such as 'pitch - 1' for 'pitch > 1', and the larger of two for 'or'"
            )


# models that have their equations ----------------------------------------------------------------


def _with_gains(name: str, function: Function, gains: Mapping[str, Any]) -> Function:
    """Function of the state alone, gains being symbols of one number each."""

    def call(state: Any) -> Any:
        try:
            return function(state, **gains)
        except RuntimeError as error:  # of CasADi, for the second entry of a symbol
            raise InvalidArgument(
                f"{name}: a gain is one number, and an array of them makes a batch of runs; give "
                f"every entry of a vector a name of its own ({str(error).splitlines()[-1]})"
            ) from None

    return call


def _signal_symbols(model: Model) -> SignalSymbols:
    """Symbols of all signals of a state."""
    from axode.symbolic.analysis.measure_symbols import SignalSymbols

    facts = facts_of(model)
    sizes = {
        "joint_speeds": len(facts.speeds),
        "measures": len(facts.measures),
        "energy": 2,
        "motor_powers": facts.motors,
    }
    names = facts.coordinates, facts.independent, facts.speeds, facts.inputs
    mechanism = model.equations.mechanism
    return SignalSymbols(mechanism, sizes, names, dict(facts.parameters), facts.measures)


class _Asked(NamedTuple):
    """What is traced, as for `traced_tape`."""

    name: str
    function: Function
    speeds: Sequence[str] | None
    bounds: Sequence[float] | None
    inputs: bool
    gains: Sequence[str]


def _casadi_tape(model: Model, e: Equations | SignalSymbols, asked: _Asked) -> Tape:
    import casadi as ca

    from axode.symbolic.algebra.formula_symbols import trace
    from axode.symbolic.analysis.measure_symbols import SignalSymbols, StateSymbols

    name, function, speeds, bounds, inputs, gains = asked
    own = dict(zip(e.speeds, ca.vertsplit(e.v), strict=True))
    nu = e.nu if speeds is None else ca.vertcat(*(own[speed] for speed in speeds))

    class Symbols(StateSymbols):
        """The state, with nu as the function knows it."""

        @property
        def nu(self) -> Any:
            return nu

    named = {gain: ca.SX.sym(gain) for gain in gains}
    call = _with_gains(name, function, named) if gains else function
    made = [_as_expression(name, x) for x in trace(name, call, Symbols(e, inputs=inputs))]
    if bounds is not None:
        made = [
            x if np.isinf(b) else ca.if_else(x > b, b, ca.if_else(x < -b, -b, x))
            for x, b in zip(made, bounds, strict=True)
        ]
    values = ca.vertcat(ca.SX(0, 1), *made)
    if e.parameters and facts_of(model).fixed:
        values = ca.substitute(values, e.p, ca.DM(list(e.parameters.values())))
    symbols = {"t": e.t, "q": e.q, "nu": e.nu}
    if e.parameters and not facts_of(model).fixed:
        symbols["p"] = e.p
    functions = e.functions if isinstance(e, SignalSymbols) else {}
    signals = {n: s for n, s in functions.items() if s.shape[0] and ca.depends_on(values, s)}
    if inputs and ("motor_powers" in signals or ca.depends_on(values, e.u)):
        symbols["u"] = e.u
    if gains:
        symbols["gains"] = ca.vertcat(*named.values())
    symbols |= signals
    known = [s for v in symbols.values() for s in ca.symvar(v)]
    if isinstance(e, SignalSymbols):
        _require_known(values, known)
    else:
        values = _in_own_speeds(values, known, own, name)
    compiled = ca.Function(name, list(symbols.values()), [values], list(symbols), [name])
    tape = _replayed(compiled.serialize(), tuple((n, s.shape[0]) for n, s in symbols.items()))
    return _composed(tape, tuple(function_tape(model, n) for n in signals)) if signals else tape


@lru_cache(64)
def _composed(tape: Tape, functions: tuple[Tape, ...]) -> Tape:
    """Tape of a function of the state and of signals, which other tapes compute."""
    made = {function.outputs[0].name for function in functions}
    sizes = {port.name: port.size for port in tape.inputs if port.name not in made}

    def build(**ports: Vector) -> dict[str, Vector]:
        builder = ports["t"][0].builder
        known = {name: [x.number for x in port] for name, port in ports.items()}
        for function in (*functions, tape):
            port = function.outputs[0].name
            known[port] = builder.replay(function, [known[p.name] for p in function.inputs])
        return {tape.name: [Formula(builder, k) for k in known[tape.outputs[0].name]]}

    return formula_tape(tape.name, sizes, build)


def _require_known(values: Any, known: list[Any]) -> None:
    """Leave expressions of a model's equations to those who know their symbols."""
    import casadi as ca

    from axode.symbolic.analysis.measure_symbols import EquationsNeeded

    mine = {s.element_hash() for s in known}
    if any(s.element_hash() not in mine for s in ca.symvar(values)):
        raise EquationsNeeded


@lru_cache(64)
def _replayed(serialized: str, sizes: tuple[tuple[str, int], ...]) -> Tape:
    """Tape of a CasADi function with one output; a law that is traced again has it at once."""
    import casadi as ca

    from axode.model.function_source import shaped_tape

    made = ca.Function.deserialize(serialized)
    _refuse_nan(made, made.name())
    return shaped_tape(made, dict(sizes), made.name(), made.size_out(0)[:1])


def _as_expression(name: str, given: Any) -> Any:
    """One number that a function returned, as an expression."""
    import casadi as ca

    made = None
    with contextlib.suppress(NotImplementedError, RuntimeError, TypeError, ValueError):
        if isinstance(given, np.generic | np.ndarray) and given.dtype.kind != "O":
            given = real_array(given)  # CasADi ends the process at NumPy's longdouble
        made = None if isinstance(given, bytearray | memoryview) else ca.SX(given)
    if made is None or made.shape != (1, 1):
        raise InvalidArgument(
            f"{name}: the function gives {shortened(given)} where one number or expression is "
            "needed"
        )
    return made


def _refuse_nan(made: Any, name: str) -> None:
    """Refuse functions of math, which take a symbol for a number that is not one."""
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


# models read from files --------------------------------------------------------------------------


class StateFormulas:
    """The state of a model without equations, as a traced function sees it.

    Every signal is a parameter of a formula, which the tape of the model's function computes.
    """

    def __init__(self, model: Model, inputs: bool = False, gains: Sequence[str] = ()) -> None:
        self._model = model
        self._known = model.signals.step_names if inputs else model.signals.state_names
        self._names = {name: stand_in(model, k) for k, name in enumerate(self._known)}
        words = (stand_in(model, k) for k in range(len(self._names), len(self._names) + len(gains)))
        self.gains = {gain: Parameter(word, 0.0) for gain, word in zip(gains, words, strict=True)}
        self.t = Time()
        self.q = self._vector(model.coordinates)
        self.nu = self._vector(model.independent)

    def __getitem__(self, name: str) -> Parameter:
        if name in self._model.parameters and name not in self._names:
            return Parameter(name, self._model.parameters[name])
        return Parameter(self._names[self._known.resolve(name)], 0.0)

    def _vector(self, names: Sequence[str]) -> Any:
        vector = np.empty(len(names), dtype=object)
        vector[:] = [self[name] for name in names]
        return vector

    def evaluate(
        self,
        formula: Scalar,
        signals: Mapping[str, str],
        known: Mapping[str, Expression] | None = None,
    ) -> Scalar:
        """A formula with signals in place of the parameters that stand for them."""
        values: dict[str, Expression] = {word: self[name] for word, name in signals.items()}
        return _replaced(formula, values | dict(known or {}))

    def position(self, body: str, at: Any = ()) -> Any:
        """Refuse a body's point, which files do not hold."""
        raise NotApplicable(
            f"the position of '{body}' needs the mechanism; this model was read from a file.\n"
            "  Add a measure to the mechanism before it is saved: "
            "mechanism.measure(name, 'position', body=...)"
        )

    pose = position

    def values(self, ports: Mapping[str, Vector], used: set[str]) -> dict[str, Formula]:
        """Values of parameters of a formula on a tape, by name.

        Args:
            ports: Elements of t, q, nu and, if the formula has them, of p, u and gains.
            used: Parameters that the formula has.
        """
        model, builder = self._model, ports["t"][0].builder
        found: dict[str, Any] = dict(model.parameters) | {TIME: ports["t"][0]}
        found |= dict(zip(model.parameters, ports.get("p", []), strict=False))
        found |= dict(
            zip((g.name for g in self.gains.values()), ports.get("gains", []), strict=False)
        )
        made = {name: ports[name] for name in ("q", "nu", "u") if name in ports}
        for full, word in self._names.items():
            if word not in used:
                continue
            signal = model.signals.resolve(full)
            if signal.function not in made:
                tape = function_tape(model, signal.function)
                arguments = [[x.number for x in ports[port.name]] for port in tape.inputs]
                numbers = builder.replay(tape, arguments)
                made[signal.function] = [Formula(builder, number) for number in numbers]
            found[word] = made[signal.function][signal.index]
        return found


def _replaced(formula: Scalar, values: Mapping[str, Expression]) -> Scalar:
    """A formula with others in place of some of its parameters."""
    if isinstance(formula, Parameter):
        return values.get(formula.name, formula)
    if isinstance(formula, Operation):
        return Operation(formula.kind, tuple(_replaced(x, values) for x in formula.operands))
    return formula


def _formula_tape(
    model: Model,
    name: str,
    function: Function,
    bounds: Sequence[float] | None,
    inputs: bool,
    gains: Sequence[str],
) -> Tape:
    state = StateFormulas(model, inputs, gains)
    try:
        made = [as_scalar(x) for x in function(state, **state.gains)]
    except (TypeError, AttributeError) as error:
        raise InvalidArgument(f"{name}: {error}") from None
    sizes = {"t": 1, "q": len(model.coordinates), "nu": len(model.independent)}
    if model.parameters and not facts_of(model).fixed:
        sizes["p"] = len(model.parameters)
    used = {parameter.name for x in made for parameter in parameters_in(x)}
    pushed = [signal.name for signal in model.signals.of_kind("input", "power")]
    if inputs and any(state[name].name in used for name in pushed):
        sizes["u"] = len(model.inputs)
    if gains:
        sizes["gains"] = len(gains)

    def build(**ports: Vector) -> dict[str, Vector]:
        values, zero = state.values(ports, used), 0.0 * ports["t"][0]
        found = [zero + evaluate(x, values, TAPE_FUNCTIONS) for x in made]
        limits = bounds or [math.inf] * len(found)
        return {name: [saturate(x, b) for x, b in zip(found, limits, strict=True)]}

    return formula_tape(name, sizes, build)


def saturate(value: Formula, bound: float) -> Formula:
    """Value between plus and minus a bound; NaN stays, so that it is reported."""
    if math.isinf(bound):
        return value
    return (value > bound).then(bound, (value < -bound).then(-bound, value))
