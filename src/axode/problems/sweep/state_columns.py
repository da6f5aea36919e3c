"""Signals of a state and functions of it that a program computes while it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, reduce

from axode.codegen.tape.builder import TapeBuilder
from axode.codegen.tape.formulas import Formula, Vector, formula_tape
from axode.codegen.tape.program import Evaluate, Operation
from axode.codegen.tape.tape import Port, Tape
from axode.model.model import Model
from axode.model.signals import Signal
from axode.problems.feasible.ground_tape import GroundTape, ground_tape
from axode.problems.steps.compiled import tape_of
from axode.problems.steps.rates import Dynamics
from axode.problems.sweep.ground_quantities import GroundQuantity, ground_formula

# a signal by name, what the ground gives, or a traced function of the state by number
Quantity = str | GroundQuantity | int
START_ENERGY = "start_energy"  # buffer: energy at the start, for the balance's error
BUFFERS = ("q", "nu", "u", "w")  # signals that need no function
BALANCE, RESIDUAL = "energy_balance", "largest_residual"  # signals made of several numbers


class StateColumns:
    """Several numbers of a state, each computed once.

    Args:
        model: The model whose state it is.
        d: Its steps.
        wanted: Names of signals, what the ground gives, or numbers of functions of the state.
        functions: Those functions as one tape.
        name: What the names of its buffers begin with.
    """

    def __init__(
        self,
        model: Model,
        d: Dynamics,
        wanted: Sequence[Quantity],
        functions: Tape | None = None,
        name: str = "y",
    ) -> None:
        self.model, self.d, self.wanted, self._functions = model, d, tuple(wanted), functions
        self._name = name
        self._named = {w: model.signals.resolve(w) for w in self.wanted if isinstance(w, str)}

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
    def needs_input(self) -> bool:
        """Return whether any number depends on the input."""
        tapes = [tape for tape, _ in self._tapes.values()]
        tapes += [] if self._functions is None else [self._functions]
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

    def operations(
        self, output: str, at: Mapping[str, str] | None = None, begin: str = "t"
    ) -> list[Operation]:
        """Operations that compute the numbers into the buffer `output`.

        Args:
            output: Where they go.
            at: Buffers of q, nu, w and t; those of these names unless given.
            begin: Buffer of the time at which the step begins that holds the input there.
        """
        d = self.d
        there = {name: name for name in ("q", "nu", "w", "t")} | dict(at or {})
        made: list[Operation] = []
        if self.needs_input:
            made += d.input_at(there["q"], there["nu"], there["t"], begin)
        if d.switches and at:  # ends of steps are on the far side of a switch
            made += d.time_inside(there["t"], begin)
            there["t"] = "t_inside"
        buffers = {name: f"{self._name}.{name}" for name in self._tapes}
        made += [d.evaluate(tape, there, buffers[name]) for name, (tape, _) in self._tapes.items()]
        sizes = {name: len(elements) for name, (_, elements) in self._tapes.items()}
        if self._functions is not None:
            sizes["functions"] = self._functions.outputs[0].size
            buffers["functions"] = f"{self._name}.functions"
            made.append(d.evaluate(self._functions, there, f"{self._name}.functions"))
        for name, size in {"q": d.n_q, "nu": d.n_nu, "u": d.n_u, "w": 2}.items():
            if any(s.function == name for s in self._named.values()):
                sizes[name], buffers[name] = size, there.get(name, name)
        if self.needs_start_energy:
            sizes |= {START_ENERGY: 1, "w": 2}
            buffers |= {START_ENERGY: START_ENERGY, "w": there["w"]}
        gather = formula_tape("gather", sizes, lambda **v: {"y": self._gathered(v)})
        return [*made, Evaluate(gather, (*(buffers[name] for name in sizes), output))]

    def energy_at_start(self, counter: str) -> list[Operation]:
        """Operations that keep the energy before the first step; `counter` counts the steps."""
        tape, _ = self._tapes["energy"]
        keep = formula_tape(
            "start_energy",
            {"count": 1, "starts": 1, "energy": tape.outputs[0].size, "before": 1},
            lambda count, starts, energy, before: {
                "kept": [(starts[0] & count[0].equals(0.0)).then(energy[0] + energy[1], before[0])]
            },
        )
        buffers = (counter, "starts", f"{self._name}.energy", START_ENERGY, START_ENERGY)
        return [self.d.evaluate(tape, {}, f"{self._name}.energy"), Evaluate(keep, buffers)]

    def _gathered(self, v: dict[str, Vector]) -> Vector:
        return [self._quantity(w, v) for w in self.wanted]

    def _quantity(self, quantity: Quantity, v: dict[str, Vector]) -> Formula:
        if isinstance(quantity, str):
            return self._one(self._named[quantity], v)
        if isinstance(quantity, int):
            return v["functions"][quantity]
        assert self._ground is not None
        return ground_formula(self.model, self._ground, quantity, v[self._ground.tape.name])

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
    results = builder.replay(tape, arguments)
    output = Port(tape.outputs[0].name, (len(elements),))
    return Tape.build(tape.name, tape.inputs, (output,), builder, [results[e] for e in elements])
