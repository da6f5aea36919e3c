"""Models that move under a law of their own, for files in which the law is compiled in.

The inputs are no arguments any more: every function computes them from the state. What the law
remembers stands among the independent speeds, as in a run, and the inputs are measures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from axode.codegen.tape.builder import TapeBuilder
from axode.codegen.tape.tape import Port, Tape
from axode.errors import InvalidArgument, NotApplicable
from axode.model.function_source import AbstractLibrary, DerivedLibrary, Entry
from axode.model.model import Model
from axode.model.model_parts import facts_of, library_of
from axode.problems.inputs.inputs import plan_input
from axode.problems.inputs.laws import model_under

MEASURES = "measures"  # function that has the inputs at its end


class LawModel(Model):
    """A model under a law.

    Args:
        model: The mechanism's.
        law: Its input: formulas, a function of the state or a `Law`.

    Attributes:
        updates: What samples change of what the law remembers; None if it takes none.

    Raises:
        InvalidArgument: for inputs that Python computes, tables and batches.
    """

    def __init__(self, model: Model, law: Any) -> None:
        wide = model_under(law, model)
        plan = plan_input(wide, law)
        if plan.tape is None:
            raise InvalidArgument(
                "input: a law is compiled into the file, a formula or a function of the state; "
                "numbers, samples and a Callback are given to its inputs where it is used"
            )
        facts = facts_of(wide)
        last = len(facts.inputs) - len(facts.memory)
        outputs = zip(facts.inputs[:last], facts.input_units[:last], strict=True)
        closed = replace(
            facts,
            inputs=(),
            input_units=(),
            limits=(),
            motors=0,
            motor_names=(),
            motor_speeds=(),
            motor_numbers=(),
            measures=(*facts.measures, *((name, unit, True) for name, unit in outputs)),
        )
        super().__init__(closed, LawLibrary(library_of(wide), plan.tape, last))
        self.updates = plan.updates


class LawLibrary(DerivedLibrary):
    """Functions of a model whose inputs a law gives.

    Args:
        base: Those of the model.
        law: The inputs as a tape of time, state and parameters.
        shown: How many of the inputs are measures; rates of a memory follow them.
    """

    def __init__(self, base: AbstractLibrary, law: Tape, shown: int) -> None:
        super().__init__(base)
        self._law, self._shown = law, shown

    def changed(self, name: str) -> Tape:
        """Compute the inputs of a function by the law."""
        tape = self._base.tape(name)
        measured = tape.name == MEASURES
        if not measured and "u" not in {port.name for port in tape.inputs}:
            return tape
        ports = {port.name: port for port in (*tape.inputs, *self._law.inputs) if port.name != "u"}
        order = [name for name in ("q", "nu", "nu_dot", "weights", "t", "p") if name in ports]
        builder = TapeBuilder()
        known: dict[str, list[int]] = {
            name: [builder.input(k, i) for i in range(ports[name].size)]
            for k, name in enumerate(order)
        }
        known["u"] = builder.replay(self._law, [known[port.name] for port in self._law.inputs])
        made = builder.replay(tape, [known[port.name] for port in tape.inputs])
        port = tape.outputs[0]
        if measured:
            made = [*made, *known["u"][: self._shown]]
            port = Port(port.name, (port.shape[0] + self._shown,))
        return Tape.build(tape.name, tuple(ports[name] for name in order), (port,), builder, made)

    def hybrid(self, accelerations: Sequence[str], inputs: Sequence[str]) -> Entry:
        raise NotApplicable("a model under a law has no inputs that may be known")

    def on_target(self, target: str) -> LawLibrary:
        return LawLibrary(self._base.on_target(target), self._law, self._shown)
