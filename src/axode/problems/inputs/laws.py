"""Laws: functions of the state that give inputs, with gains that have names, and a memory."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument, NotApplicable, UnknownName, shortened
from axode.model.memory import MemoryState, with_memory
from axode.model.model import Model
from axode.model.named_arguments import as_numbers
from axode.problems.inputs.blocks import OUTPUT, Block

Array = npt.NDArray[np.float64]


class Law:
    """A function of the state that gives inputs, its gains by name, and what it remembers.

    It is an input of `simulate`, `sweep` and `Cost`. Gains are arguments of the compiled steps:
    other numbers need no compiling, arrays of them make a batch of runs, and `gradient`
    differentiates by them.

    A law remembers by blocks, such as `ax.blocks.PI(kp, ki)`, given as keywords and called once
    each inside the function, or by states of its own. What it remembers is integrated with the
    motion by any method, or sampled; it has columns, `pi.integral`, and values in `start`.

    Args:
        function: Called with the state's symbols and the gains and blocks as keywords; returns
            inputs by name, or all of them. With `states`, returns these and the rates of the
            states by name.
        states: Values at the start of the states of the law by name, which the function reads as
            `s["name"]`.
        **gains: Numbers, or arrays of the shape of a batch; or blocks, whose gains are called
            `block.gain`.

    Attributes:
        function: The function.
        gains: The gains by name, in the order given.
        blocks: The blocks by name.
        states: The states of the law and their values at the start.

    Raises:
        InvalidArgument: for gains that are not finite numbers, or that do not fit each other.
        UnknownName: for gains that the function does not take.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        /,
        *,
        states: Mapping[str, float] | None = None,
        **gains: npt.ArrayLike | Block,
    ) -> None:
        if not callable(function):
            raise InvalidArgument(
                f"Law: expected a function of the state and of its gains, got {shortened(function)}"
            )
        self.function, self._given = function, dict(gains)
        _check_signature(function, gains)
        self.blocks = {name: block for name, block in gains.items() if isinstance(block, Block)}
        self.states = {name: _state(name, value) for name, value in (states or {}).items()}
        self.gains: dict[str, Array] = {}
        for name, given in gains.items():
            if isinstance(given, Block):
                own = {f"{name}.{gain}": value for gain, value in given.gains.items()}
            else:
                own = {name: given}
            self.gains |= {gain: _checked(gain, value) for gain, value in own.items()}
        try:
            self.batch = np.broadcast_shapes(*(gain.shape for gain in self.gains.values()))
        except ValueError:
            shapes = {name: gain.shape for name, gain in self.gains.items()}
            raise InvalidArgument(f"Law: shapes of gains do not fit each other: {shapes}") from None

    @property
    def memory(self) -> tuple[MemoryState, ...]:
        """What it remembers."""
        of_blocks = {
            f"{name}.{state}": start
            for name, block in self.blocks.items()
            for state, start in block.states.items()
        }
        return tuple(MemoryState(*item) for item in (self.states | of_blocks).items())

    @property
    def periods(self) -> tuple[float, ...]:
        """Different times between samples of its blocks [s]."""
        return tuple(dict.fromkeys(b.period for b in self.blocks.values() if b.period is not None))

    @property
    def key(self) -> tuple[Any, ...]:
        """What its steps depend on besides the function and the values of gains."""
        blocks = tuple((name, block.key) for name, block in self.blocks.items())
        return tuple(self.gains), tuple(self.states.items()), blocks

    def __call__(self, state: Any) -> Any:
        """Inputs at a state.

        Raises:
            InvalidArgument: if a gain is an array.
            NotApplicable: if the law remembers something.
        """
        if self.memory:
            raise NotApplicable(
                f"Law: it remembers {', '.join(m.name for m in self.memory)}, which is no part of "
                "the state here; simulate, sweep and Cost take such laws as input"
            )
        return self.function(state, **self.numbers())

    def numbers(self) -> dict[str, float]:
        """Gains by name.

        Raises:
            InvalidArgument: if a gain is an array.
        """
        several = [name for name, gain in self.gains.items() if gain.ndim]
        if several:
            raise InvalidArgument(
                f"Law: one number is needed for each of {', '.join(several)} here; arrays of gains "
                "make batches of simulate and Cost"
            )
        return {name: float(gain) for name, gain in self.gains.items()}

    def evaluate(
        self, state: Any, gains: Mapping[str, Any], due: Mapping[float, Any]
    ) -> tuple[Any, dict[str, Any], dict[str, Any]]:
        """Call the function with symbols.

        Args:
            state: The state's symbols; what the law remembers is read from it by name.
            gains: Symbols or numbers of the gains by name.
            due: By period, a number that is one at samples and zero between them.

        Returns:
            The inputs, the rates of continuous states by name, and the next values of sampled ones.
        """
        rates: dict[str, Any] = {}
        samples: dict[str, Any] = {}
        called: dict[str, int] = dict.fromkeys(self.blocks, 0)

        def bound(name: str, block: Block) -> Callable[[Any], Any]:
            def call(x: Any) -> Any:
                called[name] += 1
                g = SimpleNamespace(**{gain: gains[f"{name}.{gain}"] for gain in block.gains})
                z = SimpleNamespace(**{key: state[f"{name}.{key}"] for key in block.states})
                made, after = block.respond(x, g, z)
                named = {f"{name}.{key}": value for key, value in after.items()}
                if block.period is None:
                    rates.update(named)
                    return made
                samples.update(named)
                samples[f"{name}.{OUTPUT}"] = made
                return np.where(due[block.period] > 0.5, made, getattr(z, OUTPUT))

            return call

        own = {
            name: bound(name, given) if isinstance(given, Block) else gains[name]
            for name, given in self._given.items()
        }
        made = self.function(state, **own)
        wrong = [name for name, count in called.items() if count != 1]
        if wrong:
            raise InvalidArgument(
                f"Law: the function calls block '{wrong[0]}' {called[wrong[0]]} times; a block is "
                "called once, with its signal, and remembers that; give two blocks for two signals"
            )
        if self.states:
            if not (isinstance(made, tuple) and len(made) == 2 and isinstance(made[1], Mapping)):
                raise InvalidArgument(
                    "Law: with states, the function returns the inputs and the rates of the states "
                    'by name: return {"motor.torque": u}, {"x": x_dot}'
                )
            made, given = made
            if {*given} != {*self.states}:
                raise InvalidArgument(
                    f"Law: rates of {', '.join(self.states)} are needed, got those of "
                    f"{', '.join(map(str, given)) or 'none'}"
                )
            rates |= given
        return made, rates, samples

    def changed(self, **gains: npt.ArrayLike) -> Law:
        """Return the same law with other values of some gains.

        Raises:
            UnknownName: for gains that it does not have.
        """
        for name in gains:
            if name not in self.gains:
                raise UnknownName("law", "gain", name, tuple(self.gains))

        def new(name: str, old: npt.ArrayLike | Block) -> npt.ArrayLike | Block:
            if not isinstance(old, Block):
                return gains.get(name, old)
            known = {gain: gains.get(f"{name}.{gain}", old.gains[gain]) for gain in old.gains}
            return replace(old, gains=known)

        own = {name: new(name, old) for name, old in self._given.items()}
        return Law(self.function, states=self.states, **own)

    @property
    def ranges(self) -> dict[str, str]:
        """Which numbers gains of blocks may be, by name: "> 0", ">= 0" or "!= 0"."""
        return {
            f"{name}.{gain}": within
            for name, block in self.blocks.items()
            for gain, within in block.ranges.items()
        }

    def array(self) -> Array:
        """All gains along the last axis, after those of the batch."""
        return np.stack([np.broadcast_to(g, self.batch) for g in self.gains.values()], axis=-1)

    def __repr__(self) -> str:
        listed = (
            f"{name}={float(gain):g}" if not gain.ndim else f"{name}: {gain.shape}"
            for name, gain in self.gains.items()
        )
        return f"Law({', '.join([getattr(self.function, '__name__', 'function'), *listed])})"


def ambiguous_gain(name: str) -> InvalidArgument:
    """Make the error for a gain that is called like a parameter or an input."""
    return InvalidArgument(
        f"Law: '{name}' is the name of a gain and of something in the model; rename the gain"
    )


def model_under(given: Any, model: Model) -> Model:
    """Return the model with what its input remembers; itself where that is nothing."""
    return with_memory(model, given.memory) if isinstance(given, Law) else model


def _state(name: str, value: Any) -> float:
    array = as_numbers(f"Law, state '{name}'", value)
    if array.ndim or not np.isfinite(array):
        raise InvalidArgument(f"Law: state '{name}' needs one finite number at the start")
    return float(array)


def _checked(name: str, value: npt.ArrayLike) -> Array:
    array = as_numbers(f"Law, gain '{name}'", value)
    if not np.isfinite(array).all():
        raise InvalidArgument(f"Law: gain '{name}' must be finite")
    return array


def _check_signature(function: Callable[..., Any], gains: Mapping[str, Any]) -> None:
    """Check that a function takes these gains and no others, where that can be seen."""
    try:
        parameters = list(inspect.signature(function).parameters.values())[1:]
    except (TypeError, ValueError):
        return
    if any(p.kind == p.VAR_KEYWORD for p in parameters):
        return
    taken = [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.POSITIONAL_ONLY)]
    for name in gains:
        if name not in taken:
            raise UnknownName("law", "gain", name, tuple(taken))
    missing = [p.name for p in parameters if p.name not in gains and p.default is p.empty]
    if missing:
        raise InvalidArgument(
            f"Law: the function also takes {', '.join(missing)}; give each a value, "
            f"Law(function, {missing[0]}=...)"
        )
