"""Models under laws that remember: states of the law beside those of the mechanism.

A memory state stands among the independent speeds and moves nothing; its rate stands among the
inputs. A law that gives these inputs, too, is a function of the state as any other: whatever
integrates, differentiates or exports a model does so with the memory of its law.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from axode.codegen.tape.builder import TapeBuilder
from axode.codegen.tape.tape import Port, Tape
from axode.errors import NotApplicable
from axode.model.conditions import MOMENTUM
from axode.model.function_source import JACOBIAN, AbstractLibrary, DerivedLibrary, Entry
from axode.model.metadata import Facts
from axode.model.model import Model
from axode.model.model_parts import facts_of, library_of, memory_of, model_on_cpu

if TYPE_CHECKING:
    from axode.symbolic.equations import Equations

WIDENED = ("nu", "nu_dot", "u")  # arguments that have entries for the memory, at their ends
ADJOINT = "state_rate_adjoint"  # which the memory has none of: steps differentiate their tapes


@dataclass(frozen=True)
class MemoryState:
    """One number that a law remembers.

    Attributes:
        name: Full name, such as `speed.integral`.
        start: Its value at the start of a run.
    """

    name: str
    start: float = 0.0


class ModelWithMemory(Model):
    """A model whose independent speeds and inputs go on with the memory of a law and its rates.

    Attributes:
        base: The model without.
        memory: What the law remembers.
    """

    def __init__(self, base: Model, memory: Sequence[MemoryState]) -> None:
        self.base, self.memory = base, tuple(memory)
        facts, names = facts_of(base), tuple(state.name for state in memory)
        wide = replace(
            facts,
            independent=(*facts.independent, *names),
            inputs=(*facts.inputs, *(f"{name}.rate" for name in names)),
            input_units=(*facts.input_units, *("" for _ in names)),
            memory=names,
        )
        super().__init__(wide, MemoryLibrary(library_of(base), facts, len(names)))

    @property
    def has_equations(self) -> bool:
        return self.base.has_equations

    @property
    def equations(self) -> Equations:
        return self.base.equations

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.base, self.memory)


class MemoryLibrary(DerivedLibrary):
    """Functions of a model, with entries of a memory at the ends of their vectors."""

    def __init__(self, base: AbstractLibrary, facts: Facts, count: int) -> None:
        super().__init__(base)
        self._facts, self._count = facts, count

    def changed(self, name: str) -> Tape:
        """Add entries of the memory to arguments, and to results that have some for speeds."""
        if name == ADJOINT:
            raise NotApplicable(f"'{self._facts.name}': {name} knows nothing of a law's memory")
        tape = self._base.tape(name)
        if not {port.name for port in tape.inputs} & {*WIDENED}:
            return tape
        n_q, n_nu, n = len(self._facts.coordinates), len(self._facts.independent), self._count
        builder, ports, whole = TapeBuilder(), [], {}
        for k, port in enumerate(tape.inputs):
            size = port.size + n * (port.name in WIDENED)
            ports.append(Port(port.name, (size,)) if size != port.size else port)
            whole[port.name] = [builder.input(k, i) for i in range(size)]
        known = [whole[port.name][: port.size] for port in tape.inputs]
        made, shape = builder.replay(tape, known), tape.outputs[0].shape
        zero, one = builder.constant(0.0), builder.constant(1.0)
        end = n_q + n_nu
        if name == "state_rate":
            made, shape = [*made[:end], *whole["u"][-n:], *made[end:]], (shape[0] + n,)
        elif name == MOMENTUM:
            made, shape = [*made, *[zero] * n], (shape[0] + n,)
        elif name == JACOBIAN:  # by q, nu, u and t
            table = np.array(made).reshape(shape)
            table = np.insert(table, [end] * n, zero, axis=0)
            last = table.shape[1] - 1
            table = np.insert(table, [end] * n + [last] * n, zero, axis=1)
            for k in range(n):
                table[end + k, last + n + k] = one
            made, shape = table.ravel().tolist(), table.shape
        outputs = (Port(tape.outputs[0].name, shape), *tape.outputs[1:])
        return Tape.build(tape.name, tuple(ports), outputs, builder, made)

    def hybrid(self, accelerations: Sequence[str], inputs: Sequence[str]) -> Entry:
        return self._base.hybrid(accelerations, inputs)

    def on_target(self, target: str) -> MemoryLibrary:
        return MemoryLibrary(self._base.on_target(target), self._facts, self._count)


def with_memory(model: Model, memory: Sequence[MemoryState]) -> Model:
    """Return a model with the memory of a law, one for each memory; itself without any.

    Another memory takes the place of one that the model has.
    """
    if not memory:
        return model
    model = without_memory(model)
    kept, key = memory_of(model), ("with memory", *memory)
    if key not in kept:
        kept[key] = ModelWithMemory(model_on_cpu(model), memory)
    made: Model = kept[key]
    return made


def without_memory(model: Model) -> Model:
    """Return the model of the mechanism alone."""
    return model.base if isinstance(model, ModelWithMemory) else model
