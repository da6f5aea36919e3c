"""Numbers of a state that a program computes while it runs: columns, functions of the state.

Columns are called as in a trajectory: coordinates, speeds, inputs, energies, measures, forces.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from axode.codegen.lowering.program import Evaluate, Operation
from axode.codegen.tape.builder import TapeBuilder
from axode.codegen.tape.formulas import Formula, Vector, formula_tape
from axode.codegen.tape.fusion import replay
from axode.codegen.tape.tape import Port, Tape
from axode.errors import InvalidArgument, UnknownName
from axode.model.model import Model
from axode.problems.steps.compiled import tape_of
from axode.problems.steps.rates import Dynamics
from axode.problems.tracing import traced_tape

Quantity = str | Callable[[Any], Any]
START_ENERGY = "start_energy"  # buffer: energy at the start, for the balance's error


@dataclass(frozen=True)
class Source:
    """Where a column comes from: an element of a buffer, or of a function's result."""

    function: str  # "" for a buffer
    place: str  # the buffer
    element: int


def sources(model: Model) -> dict[str, Source]:
    """Every column of a model by name."""
    found: dict[str, Source] = {}

    def add(names: Sequence[str], function: str, place: str) -> None:
        for k, name in enumerate(names):
            found.setdefault(name, Source(function, place, k))

    add(model.coordinates, "", "q")
    add(model.independent, "", "nu")
    add(model.speed_names, "speeds", "speeds")
    add(model.inputs, "", "u")
    add(("kinetic", "potential"), "energy", "energy")
    add(("supplied", "dissipated"), "", "w")
    found["error"] = Source("energy", "error", 0)
    add(model.measure_names, "measures", "measures")
    parts = ("longitudinal", "lateral", "normal")
    add([f"{c}.{part}" for c in model.contacts for part in parts], "contact_forces", "forces")
    add([f"{row}.force" for row in model.rows], "multipliers", "multipliers")
    return found


def source_of(known: dict[str, Source], name: str, owner: str) -> Source:
    """One column; the end of its name after a dot will do where only one ends in it."""
    ending = [other for other in known if other.endswith(f".{name}")]
    if name not in known and len(ending) == 1:
        name = ending[0]
    if name not in known:
        raise UnknownName(owner, "column", name, ending or known)
    return known[name]


class Columns:
    """Several numbers of a state, each once.

    Args:
        model: Whose state it is.
        d: Its steps.
        wanted: Names of columns, or functions of the state's symbols.
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
        known = sources(model)
        self._named = {
            w: source_of(known, w, f"model '{model.name}'")
            for w in self.wanted
            if isinstance(w, str)
        }
        self._functions = [w for w in self.wanted if not isinstance(w, str)]

    @property
    def needs_start_energy(self) -> bool:
        """Whether the energy at the start must be kept."""
        return any(source.place == "error" for source in self._named.values())

    @cached_property
    def _needs_input(self) -> bool:
        tapes = (tape for tape, _ in self._tapes.values())
        used = {port.name for tape in tapes for port in tape.inputs}
        return "u" in used or any(s.place == "u" for s in self._named.values())

    @cached_property
    def _tapes(self) -> dict[str, tuple[Tape, list[int]]]:
        """Tapes of the functions that are needed, cut to the elements that are."""
        made: dict[str, tuple[Tape, list[int]]] = {}
        for function in dict.fromkeys(s.function for s in self._named.values() if s.function):
            mine = [s for s in self._named.values() if s.function == function]
            parts = [(0, 1) if s.place == "error" else (s.element,) for s in mine]
            elements = sorted({element for part in parts for element in part})
            made[function] = (shortened(tape_of(self.model, function), elements), elements)
        return made

    def operations(self, output: str) -> list[Operation]:
        """What finds the numbers at q, nu, w and t, into the buffer `output`."""
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
            if any(s.place == name for s in self._named.values()):
                sizes[name], buffers[name] = size, name
        if self.needs_start_energy:
            sizes |= {START_ENERGY: 1, "w": 2}
            buffers |= {START_ENERGY: START_ENERGY, "w": "w"}
        gather = formula_tape("gather", sizes, lambda **v: {"y": self._gathered(v)})
        return [*made, Evaluate(gather, (*(buffers[name] for name in sizes), output))]

    def energy_at_start(self) -> list[Operation]:
        """What keeps the energy before the first step."""
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
            value = function(state)  # type: ignore[operator]
            if getattr(value, "shape", ()) not in ((), (1, 1)):
                raise InvalidArgument(f"outputs: one number is needed, not {value.shape}")
            made.append(value)
        return made

    def _gathered(self, v: dict[str, Vector]) -> Vector:
        functions = iter(v.get("functions", []))
        return [
            self._one(self._named[w], v) if isinstance(w, str) else next(functions)
            for w in self.wanted
        ]

    def _one(self, source: Source, v: dict[str, Vector]) -> Formula:
        if source.place == "error":
            energy, w = v["energy"], v["w"]
            return energy[0] + energy[1] - v[START_ENERGY][0] - w[0] + w[1]
        if not source.function:
            return v[source.place][source.element]
        elements = self._tapes[source.function][1]
        return v[source.function][elements.index(source.element)]


def shortened(tape: Tape, elements: Sequence[int]) -> Tape:
    """A tape that computes only some elements of its result, and nothing that they do not need."""
    builder = TapeBuilder()
    arguments = [
        [builder.input(k, i) for i in range(port.size)] for k, port in enumerate(tape.inputs)
    ]
    results = replay(builder, tape, arguments)
    output = Port(tape.outputs[0].name, (len(elements),))
    return Tape.build(tape.name, tape.inputs, (output,), builder, [results[e] for e in elements])
