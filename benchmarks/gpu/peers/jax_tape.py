"""A tape as a function of JAX, operation by operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from axode.codegen.tape.operations import ARITY, LOGICAL, Kind
from axode.codegen.tape.tape import Tape

Numbers = Sequence[Any]

MEANING: dict[Kind, Callable[..., Any]] = {
    Kind.ADD: jnp.add,
    Kind.SUB: jnp.subtract,
    Kind.MUL: jnp.multiply,
    Kind.DIV: jnp.divide,
    Kind.NEG: jnp.negative,
    Kind.SQRT: jnp.sqrt,
    Kind.SIN: jnp.sin,
    Kind.COS: jnp.cos,
    Kind.TAN: jnp.tan,
    Kind.ASIN: jnp.arcsin,
    Kind.ACOS: jnp.arccos,
    Kind.ATAN: jnp.arctan,
    Kind.ATAN2: jnp.arctan2,
    Kind.EXP: jnp.exp,
    Kind.LOG: jnp.log,
    Kind.POW: jnp.power,
    Kind.TANH: jnp.tanh,
    Kind.HYPOT: jnp.hypot,
    Kind.FLOOR: jnp.floor,
    Kind.FABS: jnp.abs,
    Kind.SIGN: jnp.sign,
    Kind.FMIN: jnp.minimum,
    Kind.FMAX: jnp.maximum,
    Kind.LT: jnp.less,
    Kind.LE: jnp.less_equal,
    Kind.EQ: jnp.equal,
    Kind.NE: jnp.not_equal,
    Kind.AND: jnp.logical_and,
    Kind.OR: jnp.logical_or,
    Kind.NOT: jnp.logical_not,
    Kind.SELECT: lambda condition, x, y: jnp.where(condition != 0, x, y),
}


def on_numbers(tape: Tape) -> Callable[..., tuple[Any, ...]]:
    """A function of sequences of numbers, one a port, to a tuple of numbers.

    A number is a scalar or an array of a batch. Constants are Python's, so that they take the
    precision of what they meet.
    """

    def function(*ports: Numbers) -> tuple[Any, ...]:
        numbers: list[Any] = []
        for kind, row in zip(tape.kinds.tolist(), tape.operands.tolist(), strict=True):
            if kind == Kind.INPUT:
                numbers.append(ports[row[0]][row[1]])
            elif kind == Kind.CONSTANT:
                numbers.append(float(tape.constants[row[0]]))
            else:
                operands = [numbers[at] for at in row[: ARITY[Kind(kind)]]]
                found = MEANING[Kind(kind)](*operands)
                numbers.append(found * 1.0 if kind in LOGICAL else found)
        return tuple(numbers[at] for at in tape.results.tolist())

    return function


def on_vectors(tape: Tape) -> Callable[..., jax.Array]:
    """A function of vectors, one a port, to a vector: what `jax.vmap` wants."""
    function = on_numbers(tape)
    return lambda *vectors: jnp.stack(function(*vectors))


def rk4(rate: Callable[[Any], Any], h: float) -> Callable[[Any], Any]:
    """One step of the classic method of order four, of a state that is any tree of arrays."""

    def moved(x: Any, k: Any, factor: float) -> Any:
        return jax.tree.map(lambda a, b: a + factor * b, x, k)

    def step(x: Any) -> Any:
        k1 = rate(x)
        k2 = rate(moved(x, k1, h / 2))
        k3 = rate(moved(x, k2, h / 2))
        k4 = rate(moved(x, k3, h))
        return jax.tree.map(
            lambda y, a, b, c, d: y + h / 6 * (a + 2 * (b + c) + d), x, k1, k2, k3, k4
        )

    return step
