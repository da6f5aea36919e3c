"""Signals of a state and functions of it that a program computes while it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, reduce
from typing import Any

from axode.codegen.lowering.program import Evaluate, Operation
from axode.codegen.tape.builder import TapeBuilder
from axode.codegen.tape.formulas import Formula, Vector, formula_tape
from axode.codegen.tape.fusion import replay
from axode.codegen.tape.tape import Port, Tape
from axode.errors import InvalidArgument
from axode.model.model import Model
from axode.model.signals import Signal
from axode.problems.feasible.ground_tape import GroundTape, ground_tape
from axode.problems.steps.compiled import tape_of
from axode.problems.steps.rates import Dynamics
from axode.problems.sweep.ground_quantities import GroundQuantity, ground_formula
from axode.problems.tracing import traced_tape

Quantity = str | GroundQuantity | Callable[[Any], Any]
START_ENERGY = "start_energy"  # buffer: energy at the start, for the balance's error
BUFFERS = ("q", "nu", "u", "w")  # signals that need no function
BALANCE, RESIDUAL = "energy_balance", "largest_residual"  # signals made of several numbers


class Columns:
    """Several numbers of a state, each computed once.

    Args:
        model: The model whose state it is.
        d: Its steps.
        wanted: Names of signals, what the ground tells, or functions of the state's symbols.
        speeds: What the functions call nu, where the model has other independent speeds.
    """

    def __init__(
        self,
        model: Model,
        d: Dynamics,
        wanted: Sequence[Quantity],
        speeds: Sequence[str] | None = None,
    ) -> None:
        self.model, self.d, self.wanted, self._speeds = model, d, tuple(wanted), speeds
        self._named = {w: model.signals.resolve(w) for w in self.wanted if isinstance(w, str)}
        self._functions = [w for w in self.wanted if not isinstance(w, str | GroundQuantity)]

    @cached_property
    def _ground(self) -> GroundTape | None:
        """Forces of the ground, if they are wanted."""
        quantities = [w for w in self.wanted if isinstance(w, GroundQuantity)]
        if not quantities:
            return None
        return ground_tape(self.model) if self.model.has_equations else quantities[0].ground

    @property
    def needs_start_energy(self) -> bool:
        """Return whether the energy at the start must be kept."""
        return any(signal.function == BALANCE for signal in self._named.values())

    @cached_property
    def _needs_input(self) -> bool:
        tapes = (tape for tape, _ in self._tapes.values())
        used = {port.name for tape in tapes for port in tape.inputs}
        return "u" in used or any(s.function == "u" for s in self._named.values())

    @cached_property
    def _tapes(self) -> dict[str, tuple[Tape, list[int]]]:
        """Tapes of the functions that are needed, each with its elements that are."""
        made: dict[str, tuple[Tape, list[int]]] = {}
        needed: dict[str, set[int]] = {}
        for signal in self._named.values():
            if signal.function == BALANCE:
                needed.setdefault("energy", set()).update((0, 1))
            elif signal.function == RESIDUAL:
                needed["residual"] = set(range(len(self.model.residual_rows)))
            elif signal.function not in BUFFERS:
                needed.setdefault(signal.function, set()).add(signal.index)
        for function, indices in needed.items():
            elements = sorted(indices)
            made[function] = (keep_elements(tape_of(self.model, function), elements), elements)
        if self._ground is not None:
            tape = self._ground.tape
            made[tape.name] = (tape, list(range(tape.outputs[0].size)))
        return made

    def operations(self, output: str) -> list[Operation]:
        """Operations that compute the numbers at q, nu, w and t, into the buffer `output`."""
        d = self.d
        made: list[Operation] = []
        if self._needs_input:
            made += d.input_at("q", "nu", "t")
        buffers = {name: f"y.{name}" for name in self._tapes}
        made += [d.evaluate(tape, {}, buffers[name]) for name, (tape, _) in self._tapes.items()]
        sizes = {name: len(elements) for name, (_, elements) in self._tapes.items()}
        if self._functions:
            sizes["functions"] = len(self._functions)
            buffers["functions"] = "y.functions"
            tape = traced_tape(self.model, "outputs", self._expressions, self._speeds)
            made.append(d.evaluate(tape, {}, "y.functions"))
        for name, size in {"q": d.n_q, "nu": d.n_nu, "u": d.n_u, "w": 2}.items():
            if any(s.function == name for s in self._named.values()):
                sizes[name], buffers[name] = size, name
        if self.needs_start_energy:
            sizes |= {START_ENERGY: 1, "w": 2}
            buffers |= {START_ENERGY: START_ENERGY, "w": "w"}
        gather = formula_tape("gather", sizes, lambda **v: {"y": self._gathered(v)})
        return [*made, Evaluate(gather, (*(buffers[name] for name in sizes), output))]

    def energy_at_start(self) -> list[Operation]:
        """Operations that keep the energy before the first step."""
        tape, _ = self._tapes["energy"]
        keep = formula_tape(
            "start_energy",
            {"step": 1, "energy": tape.outputs[0].size, "before": 1},
            lambda step, energy, before: {
                "kept": [step[0].equals(0.0).then(energy[0] + energy[1], before[0])]
            },
        )
        buffers = ("step", "y.energy", START_ENERGY, START_ENERGY)
        return [self.d.evaluate(tape, {}, "y.energy"), Evaluate(keep, buffers)]

    def _expressions(self, state: Any) -> list[Any]:
        made = []
        for function in self._functions:
            value = function(state)
            if getattr(value, "shape", ()) not in ((), (1, 1)):
                raise InvalidArgument(f"outputs: one number is needed, not {value.shape}")
            made.append(value)
        return made

    def _gathered(self, v: dict[str, Vector]) -> Vector:
        functions = iter(v.get("functions", []))
        made = []
        for w in self.wanted:
            if isinstance(w, str):
                made.append(self._one(self._named[w], v))
            elif isinstance(w, GroundQuantity):
                assert self._ground is not None
                values = v[self._ground.tape.name]
                made.append(ground_formula(self.model, self._ground, w, values))
            else:
                made.append(next(functions))
        return made

    def _one(self, signal: Signal, v: dict[str, Vector]) -> Formula:
        if signal.function == BALANCE:
            energy, w = v["energy"], v["w"]
            return energy[0] + energy[1] - v[START_ENERGY][0] - w[0] + w[1]
        if signal.function == RESIDUAL:
            return reduce(Formula.most, map(abs, v["residual"]))
        if signal.function in BUFFERS:
            return v[signal.function][signal.index]
        elements = self._tapes[signal.function][1]
        return v[signal.function][elements.index(signal.index)]


def keep_elements(tape: Tape, elements: Sequence[int]) -> Tape:
    """Tape that computes only some elements of the result of another."""
    builder = TapeBuilder()
    arguments = [
        [builder.input(k, i) for i in range(port.size)] for k, port in enumerate(tape.inputs)
    ]
    results = replay(builder, tape, arguments)
    output = Port(tape.outputs[0].name, (len(elements),))
    return Tape.build(tape.name, tape.inputs, (output,), builder, [results[e] for e in elements])
