"""Model descriptions of FMUs: variables, units and dependencies as XML of FMI 2 and 3."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from xml.sax.saxutils import quoteattr

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
    """

    name: str
    identifier: str
    token: str
    tool: str
    variables: tuple[FmuVariable, ...]
    indicators: int
    corrects: bool
    sources: tuple[str, ...]

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
        head = _attributes(
            **versions,
            modelName=self.name,
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
                f"  <DefaultExperiment{_attributes(startTime=0.0, stopTime=1.0)}/>",
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
