"""Blocks: parts of a law that remember.

A block is an argument of a `Law`, and its function calls it once with a signal:

    law = ax.Law(lambda s, pi: {"motor.torque": pi(2.0 - s["rate"])}, pi=ax.blocks.PI(1.0, 4.0))

A continuous block is integrated with the motion. One with a `period` takes its samples at whole
multiples of it, and once at the start of a run; in between its output stays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument
from axode.model.named_arguments import as_numbers
from axode.problems.arguments import number

OUTPUT = "output"  # state of a sampled block that keeps what it gave
MAX_DELAY = 1000  # samples

RANGES = {"> 0": np.greater, ">= 0": np.greater_equal, "!= 0": np.not_equal}

Response = Callable[[Any, SimpleNamespace, SimpleNamespace], tuple[Any, Mapping[str, Any]]]


@dataclass(frozen=True)
class Block:
    """A part of a law that remembers; `PI`, `LowPass` and the others make them.

    Attributes:
        kind: What it is called.
        gains: Numbers that may differ from run to run, by name; gains of the law, `pi.kp`.
        states: What it remembers, by name, and the values at the start; columns `pi.integral`.
        respond: Called with the signal, the gains and the states; returns the output, and by name
            the rates of the states or, of a sampled block, their next values.
        period: Between samples [s]; None for a continuous block.
        options: Further choices that `respond` depends on.
        ranges: Which numbers some gains may be, by name: "> 0", ">= 0" or "!= 0".
    """

    kind: str
    gains: Mapping[str, npt.ArrayLike]
    states: Mapping[str, float]
    respond: Response = field(repr=False, compare=False)
    period: float | None = None
    options: tuple[Any, ...] = ()
    ranges: Mapping[str, str] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        for name, within in self.ranges.items():
            values = as_numbers(f"{self.kind}: {name}", self.gains[name])
            wrong = values[~RANGES[within](values, 0.0)]
            if wrong.size:
                raise InvalidArgument(f"{self.kind}: {name} must be {within}, got {wrong[0]:g}")
        if self.period is not None:
            object.__setattr__(self, "states", {**self.states, OUTPUT: 0.0})

    def __call__(self, signal: Any) -> Any:
        """Refuse a call outside the law to which it belongs.

        Raises:
            InvalidArgument: with how to give it to one.
        """
        raise InvalidArgument(
            f"{self.kind}: a block is called inside the law to which it is given by name, which "
            f"remembers for it: ax.Law(lambda s, {self.kind.lower()}: ..., "
            f"{self.kind.lower()}=ax.blocks.{self.kind}(...))"
        )

    @property
    def key(self) -> tuple[Any, ...]:
        """What its steps depend on besides the gains."""
        return self.kind, tuple(self.states.items()), self.period, self.options


def PI(
    kp: npt.ArrayLike,
    ki: npt.ArrayLike,
    *,
    limit: npt.ArrayLike | None = None,
    period: float | None = None,
    start: float = 0.0,
) -> Block:
    """Make a proportional and integral controller, `kp e + ki` times the integral of e.

    With a limit the output stays within plus and minus that, and the integral does not wind up: the
    integral of a continuous controller follows the output, `integral' = ki (e - excess / kp)`;
    that of a sampled one waits as long as e would drive it further beyond.

    Args:
        kp: Gain of the signal; not zero where a continuous one has a limit.
        ki: Gain of its integral [1/s].
        limit: Largest absolute value of the output.
        period: Between samples [s]; continuous unless given. At sample k it gives
            `kp e_k + I_k`, and I_(k+1) = I_k + ki period e_k.
        start: Integral at the start, in units of the output.
    """
    period = _period(period)
    limited = limit is not None
    if limited and period is None and not np.all(np.asarray(kp, dtype=float)):
        raise InvalidArgument(
            "PI: the integral follows a limited output by the excess over kp, and kp is zero; give "
            "a kp, or a period"
        )

    def respond(e: Any, g: SimpleNamespace, z: SimpleNamespace) -> tuple[Any, Mapping[str, Any]]:
        wanted = g.kp * e + z.integral
        given = np.clip(wanted, -g.limit, g.limit) if limited else wanted
        if period is None:
            rate = g.ki * (e - (wanted - given) / g.kp) if limited else g.ki * e
            return given, {"integral": rate}
        added = g.ki * period * e
        if limited:
            added = np.where((wanted - given) * added > 0.0, 0.0, added)
        return given, {"integral": z.integral + added}

    gains = {"kp": kp, "ki": ki} | ({} if limit is None else {"limit": limit})
    states = {"integral": _finite("PI", "start", start)}
    ranges = {"limit": ">= 0"} if limited else {}
    if limited and period is None:
        ranges["kp"] = "!= 0"
    return Block("PI", gains, states, respond, period, (limited,), ranges)


def Integrator(*, period: float | None = None, start: float = 0.0) -> Block:
    """Make an integrator; a sampled one sums up the signal times the period.

    Args:
        period: Between samples [s]; continuous unless given.
        start: Its value at the start.
    """
    period = _period(period)

    def respond(x: Any, g: SimpleNamespace, z: SimpleNamespace) -> tuple[Any, Mapping[str, Any]]:
        return z.integral, {"integral": x if period is None else z.integral + period * x}

    states = {"integral": _finite("Integrator", "start", start)}
    return Block("Integrator", {}, states, respond, period)


def LowPass(lag: npt.ArrayLike, *, period: float | None = None, start: float = 0.0) -> Block:
    """Make a filter of first order, `lag y' + y = x`.

    Args:
        lag: Time constant [s], 1 / (2 pi f) for a corner at the frequency f.
        period: Between samples [s]; continuous unless given. A sampled filter is exact for a signal
            that stays between samples.
        start: Its value at the start.
    """
    return _filter("LowPass", lag, period, start, lambda x, y, after, lag: y)


def Derivative(lag: npt.ArrayLike, *, period: float | None = None, start: float = 0.0) -> Block:
    """Make a filtered derivative, the rate of `LowPass`.

    Args:
        lag: Time constant of the filter [s].
        period: Between samples [s]; continuous unless given.
        start: The signal at the start, of which the derivative is zero.
    """
    return _filter("Derivative", lag, period, start, lambda x, y, after, lag: (x - y) / lag)


def _filter(
    kind: str, lag: npt.ArrayLike, period: float | None, start: float, output: Callable[..., Any]
) -> Block:
    period = _period(period)

    def respond(x: Any, g: SimpleNamespace, z: SimpleNamespace) -> tuple[Any, Mapping[str, Any]]:
        y = z.filtered
        if period is None:
            return output(x, y, y, g.lag), {"filtered": (x - y) / g.lag}
        after = y + (1.0 - np.exp(-period / g.lag)) * (x - y)
        made = after if kind == "LowPass" else (after - y) / period
        return made, {"filtered": after}

    states = {"filtered": _finite(kind, "start", start)}
    return Block(kind, {"lag": lag}, states, respond, period, ranges={"lag": "> 0"})


def Hold(period: float) -> Block:
    """Make a sample-and-hold.

    Args:
        period: Between samples [s].
    """
    return Block("Hold", {}, {}, lambda x, g, z: (x, {}), _period(period, "Hold"))


def Delay(delay: float, period: float) -> Block:
    """Make a delay of a sampled signal; before it gives anything, it gives zero.

    Args:
        delay: How long [s], a whole number of periods.
        period: Between samples [s].
    """
    made = _period(period, "Delay")
    assert made is not None
    count = number("Delay: delay", delay) / made
    if not (0 <= count <= MAX_DELAY and math.isclose(count, round(count), rel_tol=1e-9)):
        raise InvalidArgument(
            f"Delay: the delay must be a whole number of periods of {made:g} s, {MAX_DELAY} at "
            f"most, got {delay}"
        )
    names = [f"past{k + 1}" for k in range(round(count))]

    def respond(x: Any, g: SimpleNamespace, z: SimpleNamespace) -> tuple[Any, Mapping[str, Any]]:
        line = [x, *(getattr(z, name) for name in names)]
        return line[-1], dict(zip(names, line, strict=False))

    return Block("Delay", {}, dict.fromkeys(names, 0.0), respond, made)


def _period(period: float | None, kind: str | None = None) -> float | None:
    """Check a period, which a kind of block may need."""
    if period is None and kind is None:
        return None
    made = number("period", period, "a number of seconds")
    if not (math.isfinite(made) and made > 0):
        raise InvalidArgument(f"period must be > 0 s, got {period}")
    return made


def _finite(kind: str, name: str, value: float) -> float:
    made = number(f"{kind}: {name}", value)
    if not math.isfinite(made):
        raise InvalidArgument(f"{kind}: {name} must be finite")
    return made
