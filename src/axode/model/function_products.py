"""Derivatives of one function of a model as functions of arrays, compiled when first called."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from axode.codegen.tape import derivatives
from axode.codegen.tape.derivatives import TANGENTS, HessianPlan, adjoint_tape
from axode.codegen.tape.tape import Tape
from axode.model.function_source import AbstractLibrary, Entry

SAMPLES_AT_ONCE = 4096  # of a Hessian: arguments are repeated for every direction


class FunctionProducts:
    """Products of one function with its derivatives, for the target of its library.

    Args:
        library: Source of the model's functions.
        name: Name of the function.

    Attributes:
        tape: The function itself.
        arguments: Names of its arguments, in order.
        shape: Shape of its result, and `size` the number of its entries.
    """

    def __init__(self, library: AbstractLibrary, name: str) -> None:
        self.name = name
        self.tape = library.tape(name)
        self.arguments = tuple(port.name for port in self.tape.inputs)
        self.shape, self.size = self.tape.outputs[0].shape, self.tape.outputs[0].size
        self._library = library
        self._made: dict[Any, Entry] = {}
        self._sizes: dict[tuple[str, ...], dict[str, int]] = {}

    @cached_property
    def _displaced(self) -> Tape:
        return derivatives.with_tangents(self.tape, self._library.tape("tangent_map"))

    def _source(self, *names: str) -> Tape:
        """The tape that has these arguments."""
        return self._displaced if TANGENTS in names else self.tape

    @property
    def differentiable(self) -> tuple[str, ...]:
        """Names of arguments by which the function can be differentiated."""
        return (*self.arguments, *((TANGENTS,) if "q" in self.arguments else ()))

    def sizes(self, names: tuple[str, ...]) -> dict[str, int]:
        """Lengths of arguments."""
        if names not in self._sizes:
            known = {port.name: port.size for port in self._source(*names).inputs}
            self._sizes[names] = {name: known[name] for name in names}
        return self._sizes[names]

    def value(self) -> Entry:
        """The function itself."""
        return self._once(("value",), lambda: self._compiled(self.tape))

    def jvp(self, along: tuple[str, ...]) -> Entry:
        """Change of the result; the last arguments are the directions."""
        make = derivatives.jvp_tape
        return self._once(("jvp", along), lambda: self._compiled(make(self._source(*along), along)))

    def second_change(self, along: tuple[str, ...], again: tuple[str, ...]) -> Entry:
        """Change of `jvp`; the last arguments are its directions and those of the second change."""
        make = derivatives.second_change_tape
        return self._once(
            ("second_change", along, again), lambda: self._compiled(make(self.tape, along, again))
        )

    def vjp(self, of: tuple[str, ...]) -> Entry:
        """Gradients, one after the other; the last argument is the weights, flat."""
        make = derivatives.vjp_tape
        return self._once(("vjp", of), lambda: self._compiled(make(self._source(*of), of)))

    def second_order(
        self, of: tuple[str, ...], along: tuple[str, ...], *, jvp: bool = False
    ) -> Entry:
        """Change of the gradients, behind that of the result if `jvp`.

        The last arguments are the weights and the directions.
        """

        def make() -> Entry:
            tape = self._source(*of, *along)
            return self._compiled(derivatives.second_order_tape(tape, of, along, jvp=jvp))

        return self._once(("second", of, along, jvp), make)

    def hessian(self, of: tuple[str, ...]) -> Entry:
        """Symmetric matrix of second derivatives; the last argument is the weights."""

        def make() -> Entry:
            plan = derivatives.plan_hessian(self._source(*of), of)
            product = self.second_order(of, of)
            arguments = product.arguments[: len(product.arguments) - len(of)]
            return Entry(arguments, HessianFunction(product, plan, list(self.sizes(of).values())))

        return self._once(("hessian", of), make)

    def _compiled(self, tape: Tape) -> Entry:
        return self._library.tape_entry(tape)

    def _once(self, key: Any, make: Callable[[], Entry]) -> Entry:
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]


def product_tape(library: AbstractLibrary, name: str) -> Tape:
    """Tape of a function, or of its products by all arguments: `<function>_jvp`, `<function>_vjp`.

    Those take changes `<argument>_direction` of all arguments, or weights `<function>_weight` of
    the results, and give the change of the result, or a gradient `<argument>_gradient` each.
    """
    function, _, product = name.rpartition("_")
    if product not in ("jvp", "vjp"):
        return library.tape(name)
    tape = library.tape(function)
    names = [port.name for port in tape.inputs]
    made = derivatives.jvp_tape(tape, names) if product == "jvp" else adjoint_tape(tape, names)
    return replace(made, name=name)


class HessianFunction:
    """Hessians from products with a few directions, which the function takes as a batch.

    The code is that of one product, however many directions there are, and on the CPU directions
    and samples fill the lanes of its vectors.

    Args:
        product: Change of the gradient; its last arguments are directions.
        plan: Which directions.
        sizes: Lengths of the arguments of the gradient.
    """

    def __init__(self, product: Entry, plan: HessianPlan, sizes: Sequence[int]) -> None:
        self._product, self._plan = product, plan
        ends = np.cumsum(sizes)
        self._seeds = [
            np.ascontiguousarray(plan.seeds[:, end - size : end])
            for size, end in zip(sizes, ends, strict=True)
        ]
        self._size = int(sum(sizes))

    @property
    def directions(self) -> int:
        """Number of products per Hessian."""
        return len(self._plan.seeds)

    def __call__(self, *arrays: Any, out: Any = None, threads: int | None = None) -> Any:
        """Evaluate at arrays with any leading batch axes."""
        batch = np.broadcast_shapes(*(tuple(a.shape[:-1]) for a in arrays))
        count = math.prod(batch)
        if all(isinstance(a, np.ndarray) for a in arrays) and count > SAMPLES_AT_ONCE:
            flat = [
                a if a.ndim == 1 else np.broadcast_to(a, (*batch, a.shape[-1])).reshape(count, -1)
                for a in arrays
            ]
            made = np.empty((count, self._size, self._size))
            for first in range(0, count, SAMPLES_AT_ONCE):
                part = slice(first, first + SAMPLES_AT_ONCE)
                made[part] = self._evaluate(
                    [a if a.ndim == 1 else a[part] for a in flat], made[part].shape[:1], threads
                )
            made = made.reshape(*batch, self._size, self._size)
        else:
            made = self._evaluate(arrays, batch, threads)
        if out is None:
            return made
        out[...] = made
        return out

    def _evaluate(self, arrays: Sequence[Any], batch: tuple[int, ...], threads: int | None) -> Any:
        plan = self._plan
        if not len(plan.seeds):
            return np.zeros((*batch, self._size, self._size))
        spread = [a if a.ndim == 1 else a[..., np.newaxis, :] for a in arrays]
        found = self._product.call(*spread, *self._seeds, threads=threads)
        xp = np if isinstance(found, np.ndarray) else sys.modules["cupy"]
        made = xp.zeros((*batch, self._size, self._size), dtype=found.dtype)
        (row, column), (first, second) = plan.entries, plan.sources
        mean = 0.5 * (found[(..., *first)] + found[(..., *second)])
        made[..., row, column] = mean
        return made
