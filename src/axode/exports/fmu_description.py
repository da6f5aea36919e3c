"""FMUs: the functions of the model, and variables, units and dependencies as XML of FMI 2 and 3.

Functions of an FMU as tapes of time, states, inputs and parameters.

All take the same four arrays, so that the C around them is the same for every model. The states
are the coordinates and the independent speeds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.sax.saxutils import quoteattr

import numpy as np

from axode.codegen.tape.builder import TapeBuilder
from axode.codegen.tape.derivatives import adjoint_tape, dependencies, forward_tape
from axode.codegen.tape.operations import Kind
from axode.codegen.tape.switching import places_tape
from axode.codegen.tape.tape import Port, Tape
from axode.exports.law_model import LawModel
from axode.model.conditions import MOMENTUM, motion_switches, require_momentum
from axode.model.model_parts import facts_of, function_tape

if TYPE_CHECKING:
    from axode.model.model import Model
    from axode.model.signals import Signal
    from axode.problems.inputs.inputs import Updates

# Exponents of kg, m, s, A, K and rad in the units that signals have.
_BASES: dict[str, dict[str, int]] = {
    "kg": {"kg": 1},
    "m": {"m": 1},
    "s": {"s": 1},
    "A": {"A": 1},
    "K": {"K": 1},
    "rad": {"rad": 1},
    "N": {"kg": 1, "m": 1, "s": -2},
    "J": {"kg": 1, "m": 2, "s": -2},
    "W": {"kg": 1, "m": 2, "s": -3},
    "V": {"kg": 1, "m": 2, "s": -3, "A": -1},
    "Hz": {"s": -1},
    "1": {},
}
_STRUCTURED = re.compile(r"(der\()?[A-Za-z_]\w*(\.[A-Za-z_]\w*)*(\)|\[\d+\])?", re.ASCII)

TOLERANCE = 1e-10  # relative, that is proposed to tools: the one of `simulate`
_LOG_CATEGORIES = '<Category name="logStatusDiscard"/><Category name="logStatusError"/>'


@dataclass(frozen=True)
class FmuVariable:
    """One variable of an FMU; its value reference is its place among all.

    Attributes:
        name: Its name.
        causality: "independent", "input", "output", "parameter" or "local".
        variability: "continuous", "fixed" or "tunable".
        unit: SI unit, "" for none.
        description: What it is.
        initial: "exact", "approx" or "calculated"; "" where the causality says it.
        start: Start value, if it has one.
        derivative: Reference of the state of which it is the derivative.
        reinit: Whether the FMU may change this state at an event.
        depends: References of states and inputs on which it depends, if it is computed.
    """

    name: str
    causality: str
    variability: str
    unit: str
    description: str
    initial: str = ""
    start: float | None = None
    derivative: int | None = None
    reinit: bool = False
    depends: tuple[int, ...] = ()


@dataclass(frozen=True)
class FmuDescription:
    """What a model description says.

    Attributes:
        name: Name of the model.
        identifier: Name of the library and of its sources.
        token: What the description and the binary have in common.
        tool: Program that wrote it.
        variables: All variables; the first one is time.
        indicators: Number of event indicators, which are the last variables.
        corrects: Whether states may be corrected after steps of model exchange.
        sources: Names of the C files to compile.
        about: What is not said by the variables; empty if nothing.
    """

    name: str
    identifier: str
    token: str
    tool: str
    variables: tuple[FmuVariable, ...]
    indicators: int
    corrects: bool
    sources: tuple[str, ...]
    about: str = ""

    def xml(self, version: str) -> str:
        """Write the model description for a version of FMI, "2.0" or "3.0"."""
        return self._fmi2() if version == "2.0" else self._fmi3()

    # the versions -----------------------------------------------------------------------------

    def _fmi2(self) -> str:
        files = "".join(f"<File{_attributes(name=name)}/>" for name in self.sources)
        same = {
            "modelIdentifier": self.identifier,
            "canGetAndSetFMUstate": True,
            "canSerializeFMUstate": True,
            "providesDirectionalDerivative": True,
        }
        exchange = same | {"completedIntegratorStepNotNeeded": not self._needs_steps}
        steps = same | {"canHandleVariableCommunicationStepSize": True}
        kinds = {"ModelExchange": exchange, "CoSimulation": steps}
        return self._document(
            {"fmiVersion": "2.0", "guid": self.token},
            {"numberOfEventIndicators": self.indicators},
            [
                f"  <{name}{_attributes(**flags)}><SourceFiles>{files}</SourceFiles></{name}>"
                for name, flags in kinds.items()
            ],
            [self._scalar(k, v) for k, v in enumerate(self.variables)],
            [
                *self._list("Outputs", self._outputs),
                *self._list("Derivatives", self._derivatives),
                *self._list("InitialUnknowns", self._unknowns, known=False),
            ],
        )

    def _fmi3(self) -> str:
        same = {
            "modelIdentifier": self.identifier,
            "canGetAndSetFMUState": True,
            "canSerializeFMUState": True,
            "providesDirectionalDerivatives": True,
            "providesAdjointDerivatives": True,
        }
        exchange = same | {"needsCompletedIntegratorStep": self._needs_steps}
        steps = same | {"canHandleVariableCommunicationStepSize": True}
        return self._document(
            {"fmiVersion": "3.0", "instantiationToken": self.token},
            {},
            [
                f"  <ModelExchange{_attributes(**exchange)}/>",
                f"  <CoSimulation{_attributes(**steps)}/>",
            ],
            [
                f"    <Float64{_attributes(**_described(k, v), **_values(v, 0))}/>"
                for k, v in enumerate(self.variables)
            ],
            [
                *(self._unknown("Output", k) for k in self._outputs),
                *(self._unknown("ContinuousStateDerivative", k) for k in self._derivatives),
                *(self._unknown("InitialUnknown", k, known=False) for k in self._unknowns),
                *(self._unknown("EventIndicator", k) for k in self._indicators),
            ],
        )

    # parts of both ----------------------------------------------------------------------------

    @property
    def _needs_steps(self) -> bool:
        return self.corrects or bool(self.indicators)

    @property
    def _outputs(self) -> list[int]:
        return [k for k, v in enumerate(self.variables) if v.causality == "output"]

    @property
    def _derivatives(self) -> list[int]:
        return [k for k, v in enumerate(self.variables) if v.derivative is not None]

    @property
    def _indicators(self) -> range:
        return range(len(self.variables) - self.indicators, len(self.variables))

    @property
    def _unknowns(self) -> list[int]:
        """What an environment may ask for during initialization."""
        states = {v.derivative for v in self.variables}
        return [
            k
            for k, v in enumerate(self.variables)
            if v.initial in ("approx", "calculated")
            and (v.causality == "output" or v.derivative is not None or k in states)
        ]

    def _document(
        self,
        versions: dict[str, str],
        counts: dict[str, int],
        kinds: list[str],
        variables: list[str],
        structure: list[str],
    ) -> str:
        convention = all(_STRUCTURED.fullmatch(v.name) for v in self.variables)
        experiment = _attributes(startTime=0.0, stopTime=1.0, tolerance=TOLERANCE)
        head = _attributes(
            **versions,
            modelName=self.name,
            **({"description": self.about} if self.about else {}),
            generationTool=self.tool,
            variableNamingConvention="structured" if convention else "flat",
            **counts,
        )
        return "\n".join(
            [
                '<?xml version="1.0" encoding="UTF-8"?>',
                f"<fmiModelDescription{head}>",
                *kinds,
                *self._units(),
                f"  <LogCategories>{_LOG_CATEGORIES}</LogCategories>",
                f"  <DefaultExperiment{experiment}/>",
                "  <ModelVariables>",
                *variables,
                "  </ModelVariables>",
                "  <ModelStructure>",
                *structure,
                "  </ModelStructure>",
                "</fmiModelDescription>\n",
            ]
        )

    def _units(self) -> list[str]:
        units = dict.fromkeys(v.unit for v in self.variables if v.unit)
        lines = []
        for unit in units:
            base = base_unit(unit)
            inner = "" if base is None else f"<BaseUnit{_attributes(**base)}/>"
            lines.append(f"    <Unit{_attributes(name=unit)}>{inner}</Unit>")
        return ["  <UnitDefinitions>", *lines, "  </UnitDefinitions>"] if lines else []

    def _scalar(self, reference: int, v: FmuVariable) -> str:
        real = f"<Real{_attributes(**_values(v, 1))}/>"
        said = _attributes(**_described(reference, v))
        return f"    <ScalarVariable{said}>{real}</ScalarVariable>"

    def _list(self, name: str, places: list[int], known: bool = True) -> list[str]:
        """A list of unknowns in FMI 2, where variables are counted from one."""
        if not places:
            return []
        inner = [self._unknown("Unknown", k, known=known, index=True) for k in places]
        return [f"    <{name}>", *inner, f"    </{name}>"]

    def _unknown(self, tag: str, place: int, *, known: bool = True, index: bool = False) -> str:
        first = 1 if index else 0
        said: dict[str, object] = {"index" if index else "valueReference": place + first}
        if known:
            depends = self.variables[place].depends
            said["dependencies"] = " ".join(str(k + first) for k in sorted(depends))
        return f"    <{tag}{_attributes(**said)}/>"


def base_unit(unit: str) -> dict[str, int] | None:
    """Exponents of the base units in a unit such as "kg m^2/s"; None if it is not understood."""
    total: dict[str, int] = {}
    for k, side in enumerate(unit.split("/")):
        for factor in side.replace("*", " ").split():
            found = re.fullmatch(r"([A-Za-z]+|1)\^?(\d*)", factor)
            if not found or found[1] not in _BASES:
                return None
            power = int(found[2] or 1) * (1 if k == 0 else -1)
            for base, exponent in _BASES[found[1]].items():
                total[base] = total.get(base, 0) + power * exponent
    return {base: exponent for base, exponent in total.items() if exponent}


def unit_of_rate(unit: str) -> str:
    """Unit of the derivative of a quantity by time."""
    head, slash, seconds = unit.partition("/")
    if not slash:
        return f"{unit or '1'}/s"
    power = re.fullmatch(r"s\^?(\d*)", seconds)
    return f"{head}/s{int(power[1] or 1) + 1}" if power else f"{unit}/s"


def _described(reference: int, v: FmuVariable) -> dict[str, object]:
    said = {
        "name": v.name,
        "valueReference": reference,
        "causality": v.causality,
        "variability": v.variability,
        "description": v.description,
    }
    return said | ({"initial": v.initial} if v.initial else {})


def _values(v: FmuVariable, first: int) -> dict[str, object]:
    said: dict[str, object] = {}
    if v.start is not None:
        said["start"] = v.start
    if v.unit:
        said["unit"] = v.unit
    if v.derivative is not None:
        said["derivative"] = v.derivative + first
    if v.reinit:
        said["reinit"] = True
    return said


def _attributes(**values: object) -> str:
    return "".join(f" {name}={quoteattr(_text(value))}" for name, value in values.items())


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)


def build_description(identifier: str, sources: Iterable[str]) -> str:
    """Write the build description of FMI 3: what to compile, and how."""
    files = "".join(f"<SourceFile{_attributes(name=name)}/>" for name in sources)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<fmiBuildDescription fmiVersion="3.0">\n'
        f"  <BuildConfiguration{_attributes(modelIdentifier=identifier)}>\n"
        f'    <SourceFileSet language="C99">{files}</SourceFileSet>\n'
        '    <Library name="m" external="true"/>\n'
        "  </BuildConfiguration>\n</fmiBuildDescription>\n"
    )


# functions of an FMU ------------------------------------------------------------------------------


ARGUMENTS = ("t", "x", "u", "p")
JUMPS = (Kind.LT, Kind.LE, Kind.SIGN)  # operations whose value may jump


@dataclass(frozen=True)
class FmuFunctions:
    """Tapes of an FMU.

    Attributes:
        rate: Rates of the states.
        flow: These, and the power that is supplied less what is dissipated, for fixed steps.
        outputs: Signals that are not states, then what `audit` gives if it was asked for.
        audit: Smallest pivot of the solves and energy; empty where the model has no such function.
        projection: One step of the coordinates back onto the constraints; None if nothing opens.
        residual: What must vanish at a start: residuals by the length of the mechanism, then rows
            that the model left out.
        pivots: Numbers whose change of sign is a singularity of the independent speeds.
        indicators: These, then numbers at whose change of sign the rate may jump; the same tape
            where it cannot.
        places: Where prescribed motions are between their switches, then signs of slopes; see
            `places_tape`.
        n_places: How many places there are.
        momentum: Generalized momentum as speeds and energy; empty where nothing switches.
        update: What a law remembers after the samples that are `due`, a fifth argument; None if it
            takes none.
        periods: Times between its samples [s], one for each number of `due`.
    """

    rate: Tape
    flow: Tape
    outputs: Tape
    audit: Tape
    projection: Tape | None
    residual: Tape
    pivots: Tape
    indicators: Tape
    places: Tape
    n_places: int
    momentum: Tape
    update: Tape | None = None
    periods: tuple[float, ...] = ()

    @property
    def n_memory(self) -> int:
        """How many of the states, the last ones, samples may change."""
        return self.update.outputs[0].size if self.update is not None else 0

    def tapes(self, *, adjoint: bool) -> list[Tape]:
        """All tapes that are called and not empty, with the derivatives of rate and outputs.

        Args:
            adjoint: Whether derivatives in reverse are among them.
        """
        along = {name: (f"d{name}", 0) for name in ARGUMENTS}
        sizes = {f"d{port.name}": port.size for port in self.rate.inputs}
        both = (self.rate, self.outputs)
        derivatives = [forward_tape(tape, along, sizes) for tape in both]
        derivatives += [adjoint_tape(tape, ARGUMENTS) for tape in both] if adjoint else []
        optional = [self.projection, self.residual, self.pivots, self.places, self.momentum]
        optional.append(self.update)
        optional += [] if self.indicators is self.pivots else [self.indicators]
        return [
            self.flow,
            self.outputs,
            *derivatives,
            *(tape for tape in optional if tape is not None and tape.outputs[0].size),
        ]


def fmu_functions(
    model: Model, outputs: Sequence[Signal], *, audited: bool = False
) -> FmuFunctions:
    """Make the functions of an FMU from those of a model.

    Args:
        model: The model.
        outputs: Signals that are computed besides the states.
        audited: Whether the audit is computed with them.
    """
    facts = facts_of(model)
    sizes = (1, len(facts.coordinates) + len(facts.independent), len(facts.inputs))
    ports = tuple(
        Port(name, (size,))
        for name, size in zip(ARGUMENTS, (*sizes, _parameters(model)), strict=True)
    )
    made = _Made(model, ports)
    rates = made.results("state_rate")
    power = made.builder.apply(Kind.SUB, *rates[-2:])
    rate = made.tape("rate", rates[: ports[1].size])
    projection = made.tape("projection", made.results("projection"))
    leaning = 2 * len(facts.leaning)
    pivots = made.results("pivots")
    pivots = made.moving(pivots[: len(pivots) - leaning])
    lengths = [facts.length if unit == "m" else 1.0 for unit in facts.residual_units]
    residual = [
        made.builder.apply(Kind.MUL, number, made.builder.constant(1.0 / length))
        for number, length in zip(made.results("residual"), lengths, strict=True)
    ]
    dropped = made.results("dropped_rows") if facts.row_parameters and not facts.fixed else []
    signals = [made.results(signal.function)[signal.index] for signal in outputs]
    audit = made.audit(pivots) if "energy" in model.functions else []
    singular, jumps = made.tape("pivots", pivots), made.jumps(rate)
    switches = motion_switches(model)
    places = places_tape(switches)
    require_momentum(model, switches)
    momentum = [*made.results(MOMENTUM), made.audit([])[1]] if switches else []
    updates = model.updates if isinstance(model, LawModel) else None
    return FmuFunctions(
        rate=rate,
        flow=made.tape("flow", [*rates[: ports[1].size], power]),
        outputs=made.tape("outputs", [*signals, *(audit if audited else [])]),
        audit=made.tape("audit", audit),
        projection=None if _is_identity(projection) else projection,
        residual=made.tape("residual", [*residual, *dropped]),
        pivots=singular,
        indicators=made.tape("indicators", [*pivots, *jumps]) if jumps else singular,
        places=made.tape("places", made.of(places)),
        n_places=places.outputs[0].size,
        momentum=made.tape("momentum", momentum),
        update=None if updates is None else made.update(updates, len(facts.memory)),
        periods=() if updates is None else updates.periods,
    )


def _parameters(model: Model) -> int:
    return 0 if facts_of(model).fixed else len(facts_of(model).parameters)


class _Made:
    """Functions of a model on one builder, of the arguments of an FMU."""

    def __init__(self, model: Model, ports: tuple[Port, ...]) -> None:
        self.builder = TapeBuilder()
        self._model = model
        self._ports = ports
        t, x, u, p = (
            [self.builder.input(k, i) for i in range(port.size)] for k, port in enumerate(ports)
        )
        n_q = len(model.coordinates)
        u = self._within_limits(u)
        self._arguments = {"t": t, "q": x[:n_q], "nu": x[n_q:], "u": u, "p": p}
        self._results: dict[str, list[int]] = {}

    def _within_limits(self, inputs: list[int]) -> list[int]:
        """Inputs between the limits of the motors, which come first, as `simulate` keeps them."""
        apply, constant = self.builder.apply, self.builder.constant
        made = list(inputs)
        for k, limit in enumerate(facts_of(self._model).limits):
            if limit is not None:
                below = apply(Kind.FMIN, inputs[k], constant(limit))
                made[k] = apply(Kind.FMAX, below, constant(-limit))
        return made

    def results(self, function: str) -> list[int]:
        """Results of a function of the model, made once."""
        if function in ("q", "nu"):
            return self._arguments[function]
        if function not in self._results:
            self._results[function] = self.of(function_tape(self._model, function))
        return self._results[function]

    def of(self, tape: Tape) -> list[int]:
        """Results of a tape of arguments of the model."""
        arguments = [self._arguments[port.name] for port in tape.inputs]
        return self.builder.replay(tape, arguments)

    def tape(self, name: str, results: list[int]) -> Tape:
        """A tape of some results."""
        outputs = (Port(name, (len(results),)),)
        return Tape.build(name, self._ports, outputs, self.builder, results)

    def update(self, updates: Updates, count: int) -> Tape:
        """What a law remembers after samples, of these arguments and of what is due."""
        due = Port("due", (len(updates.periods),))
        flags = [self.builder.input(len(self._ports), i) for i in range(due.size)]
        known = {**self._arguments, "due": flags}
        made = self.builder.replay(updates.tape, [known[p.name] for p in updates.tape.inputs])
        outputs = (Port("update", (count,)),)
        return Tape.build("update", (*self._ports, due), outputs, self.builder, made[-count:])

    def audit(self, pivots: list[int]) -> list[int]:
        """Smallest pivot, one if there is none, and kinetic and potential energy together."""
        apply, smallest = self.builder.apply, self.builder.constant(1.0)
        for pivot in pivots:
            smallest = apply(Kind.FMIN, smallest, apply(Kind.FABS, pivot))
        return [smallest, apply(Kind.ADD, *self.results("energy"))]

    def jumps(self, tape: Tape) -> list[int]:
        """Numbers at whose change of sign a tape may jump, from its comparisons."""
        arguments = [
            [self.builder.input(k, i) for i in range(port.size)]
            for k, port in enumerate(tape.inputs)
        ]
        found = np.flatnonzero(np.isin(tape.kinds, JUMPS)).tolist()
        every = replay_all(self.builder, tape, arguments) if found else []
        numbers: dict[int, None] = {}
        for i in found:
            a, b = (every[k] if k >= 0 else -1 for k in tape.operands[i, :2].tolist())
            sign = tape.kinds[i] == Kind.SIGN
            number = a if sign else self.builder.apply(Kind.SUB, a, b)
            if self.builder.value(number) is None:
                numbers[number] = None
        return self.moving(list(numbers))

    def moving(self, numbers: list[int]) -> list[int]:
        """Those of some numbers that depend on more than parameters."""
        arguments = dependencies(self.tape("numbers", numbers))
        return [
            number
            for number, on in zip(numbers, arguments, strict=True)
            if any(argument != "p" for argument, _ in on)
        ]


def replay_all(builder: TapeBuilder, tape: Tape, arguments: list[list[int]]) -> list[int]:
    """Values of all operations of a tape on other arguments."""
    every = Tape(
        tape.name,
        tape.inputs,
        (Port("all", (len(tape.kinds),)),),
        tape.kinds,
        tape.operands,
        tape.constants,
        np.arange(len(tape.kinds), dtype=np.int32),
    )
    return builder.replay(every, arguments)


def _is_identity(projection: Tape) -> bool:
    """Check whether a projection returns the coordinates as they are."""
    inputs = projection.kinds[projection.results] == Kind.INPUT
    same = projection.operands[projection.results, 1] == np.arange(len(projection.results))
    return bool(inputs.all() and same.all())
