"""Functional mock-up units: a model as a library of C behind the interface of FMI 2 or 3."""

from __future__ import annotations

import hashlib
import html
import io
import os
import platform
import re
import shlex
import subprocess
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from axode.codegen.tape.derivatives import dependencies
from axode.codegen.targets.c import HeaderText, c_library
from axode.codegen.targets.jit import find_program
from axode.disk.atomic import write_atomically
from axode.errors import InvalidArgument, OmissionWarning, UnknownName
from axode.exports.c_step import sample_periods
from axode.exports.fmu_description import (
    FmuDescription,
    FmuFunctions,
    FmuVariable,
    build_description,
    fmu_functions,
    unit_of_rate,
)
from axode.exports.law_model import LawModel
from axode.model.model_parts import facts_of
from axode.model.parameter_checks import ParameterChecks, c_text, parameter_checks
from axode.names import as_names

if TYPE_CHECKING:
    from axode.model.metadata import Facts
    from axode.model.model import Model
    from axode.model.signals import Signal, Signals

VERSIONS = ("2.0", "3.0")
COMPUTED = (
    *("q", "nu", "joint_speeds", "measures", "energy"),
    *("contact_forces", "multipliers", "motor_powers"),
)
# outputs that every FMU has besides those that were chosen: name, unit, description
AUDIT = (
    ("smallest_pivot", "", "Smallest pivot of the solves; singular at zero"),
    ("energy_error", "J", "Energy less that of the start and the work since, in co-simulation"),
)
UNDER_LAW = (
    "The mechanism moves under a law that is compiled in: the gains of the law are numbers in the "
    "code, and what it gives are outputs instead of inputs. For other gains, export it again."
)
HEADERS = ("fmu_core.h", "fixed_step.h")
WRAPPERS = {"2.0": "fmu_fmi2.c", "3.0": "fmu_fmi3.c"}
COMPILERS = ("cc", "gcc", "clang")
FLAGS = ("-std=c99", "-O2", "-fPIC", "-shared", "-fvisibility=hidden")
_FRESH = "static const char fresh_memory[] = { /* what the first samples change */"
NO_COMPILER = (
    "{name} holds sources and no binary: {reason}.\n"
    "  Install gcc or clang, or name a compiler in the environment variable CC; tools that compile "
    "sources can use the file as it is."
)

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class FmuStart:
    """Start values of an FMU.

    Attributes:
        q, nu: Coordinates and independent speeds.
        p: Parameters, if the model has free ones.
        fresh: Places in nu of what the first samples of a law change.
    """

    q: Array
    nu: Array
    p: Array
    fresh: tuple[int, ...] = ()


def write_fmu(
    model: Model,
    place: Path,
    start: FmuStart,
    version: str,
    outputs: Sequence[str] | None,
    step: float,
) -> Path:
    """Write an FMU for model exchange and co-simulation.

    Args:
        model: What it computes.
        place: The file.
        start: Start values.
        version: Version of FMI, "2.0" or "3.0".
        outputs: Names of the outputs; coordinates, speeds, measures and energies unless given.
        step: Longest internal step of co-simulation [s].
    """
    if version not in VERSIONS:
        raise UnknownName("axode", "version of FMI", version, VERSIONS)
    if not (np.isfinite(step) and step > 0):
        raise InvalidArgument(f"step: expected a positive number of seconds, got {step}")
    chosen = _outputs(model, outputs)
    further = [signal for signal in chosen if signal.function not in ("q", "nu")]
    functions, checks = fmu_functions(model, further, audited=True), parameter_checks(model)
    identifier = re.sub(r"\W", "_", place.stem, flags=re.ASCII)
    identifier = identifier if re.match("[A-Za-z]", identifier) else f"m_{identifier}"
    variables = _variables(model, functions, chosen, further, start, step)
    texts = _sources(model, functions, checks, identifier, version, start, step)
    compiled = tuple(name for name in texts if name.endswith(".c"))
    description = FmuDescription(
        name=model.name,
        identifier=identifier,
        token="",
        tool=_tool(),
        variables=variables,
        indicators=functions.indicators.outputs[0].size,
        corrects=functions.projection is not None,
        sources=compiled,
        about=UNDER_LAW if isinstance(model, LawModel) else "",
    )
    token = _token([*texts.values(), description.xml(version)])
    description = replace(description, token=token)
    texts["settings.h"] = texts["settings.h"].replace("MODEL_TOKEN_TEXT", token)
    if version == "3.0":
        texts["buildDescription.xml"] = build_description(identifier, compiled)
    members = {"modelDescription.xml": description.xml(version).encode()}
    members |= {f"sources/{name}": text.encode() for name, text in texts.items()}
    members["documentation/index.html"] = _page(description, version).encode()
    try:
        library = compile_library(texts, identifier)
        members[f"binaries/{_platform(version)}/{identifier}{_ending()}"] = library
    except _NoBinary as reason:
        warnings.warn(NO_COMPILER.format(name=place.name, reason=reason), OmissionWarning, 5)
    write_atomically(place, _archive(members))
    return place


# variables ---------------------------------------------------------------------------------------


def _outputs(model: Model, names: Sequence[str] | None) -> tuple[Signal, ...]:
    """Signals by name, in the order of the catalogue; those of the state unless given."""
    unknown = {f"{model.contacts[w]}.{part}" for w, part in _unknown_forces(model)}
    offered = [s for s in model.signals if s.function in COMPUTED and s.name not in unknown]
    if names is None:
        return tuple(s for s in offered if s.kind not in ("force", "power"))
    found = {model.signals.resolve(name).name for name in as_names(names)}
    other = sorted(found - {s.name for s in offered})
    if other:
        known = [s.name for s in offered]
        raise UnknownName(f"the FMU of '{model.name}'", "output", other[0], known)
    return tuple(s for s in offered if s.name in found)


def _unknown_forces(model: Model) -> list[tuple[int, str]]:
    from axode.model.signals import CONTACT_FORCES

    return [(wheel, CONTACT_FORCES[part]) for wheel, part in facts_of(model).unknown_forces]


def _variables(
    model: Model,
    functions: FmuFunctions,
    chosen: Sequence[Signal],
    further: Sequence[Signal],
    start: FmuStart,
    step: float,
) -> tuple[FmuVariable, ...]:
    """All variables in the order of their value references, as fmu_core.h lays them out."""
    facts, shown = facts_of(model), {signal.name for signal in chosen}
    units = _state_units(model.signals, (*facts.coordinates, *facts.independent))
    opens = functions.projection is not None
    sampled = len(units) - functions.n_memory
    made = [FmuVariable("time", "independent", "continuous", "s", "Time")]
    values = [*start.q.tolist(), *start.nu.tolist()]
    for k, (name, unit) in enumerate(units.items()):
        changed = (opens and k < len(facts.coordinates)) or k >= sampled
        made.append(
            FmuVariable(
                name,
                "output" if name in shown else "local",
                "continuous",
                unit,
                _state_kind(facts, k),
                "approx" if changed else "exact",
                values[k],
                reinit=changed,
                depends=(1 + k,),
            )
        )
    first_input = len(made)
    for name, unit in zip(facts.inputs, facts.input_units, strict=True):
        what = "Input of a motor" if name in facts.inputs[: facts.motors] else "Wrench from outside"
        made.append(FmuVariable(name, "input", "continuous", unit, what, start=0.0))
    made += _parameters(model, functions, start)
    made.append(
        FmuVariable(
            "internal_step",
            "parameter",
            "tunable",
            "s",
            "Longest step of the integration inside co-simulation",
            "exact",
            step,
        )
    )
    firsts = {"t": 0, "x": 1, "u": first_input}
    rates = [_references(on, firsts) for on in dependencies(functions.rate)]
    for k, (name, unit) in enumerate(units.items()):
        about = FmuVariable(f"der({name})", "local", "continuous", unit_of_rate(unit), "Rate")
        made.append(replace(about, initial="calculated", derivative=1 + k, depends=rates[k]))
    computed = [(s.name, s.unit, s.kind.capitalize()) for s in further]
    computed += AUDIT if functions.audit.results.size else ()
    for (name, unit, what), on in zip(computed, dependencies(functions.outputs), strict=True):
        about = FmuVariable(name, "output", "continuous", unit, what)
        made.append(replace(about, initial="calculated", depends=_references(on, firsts)))
    singular = functions.pivots.outputs[0].size
    for k, on in enumerate(dependencies(functions.indicators)):
        what = "the independent speeds do not suffice" if k < singular else "rates may jump"
        about = FmuVariable(f"event_indicator[{k + 1}]", "local", "continuous", "", f"Zero: {what}")
        made.append(replace(about, initial="calculated", depends=_references(on, firsts)))
    return _distinct(made)


def _state_kind(facts: Facts, place: int) -> str:
    if place < len(facts.coordinates):
        return "Coordinate"
    own = place < len(facts.coordinates) + len(facts.independent) - len(facts.memory)
    return "Independent speed" if own else "Memory of the law"


def _parameters(model: Model, functions: FmuFunctions, start: FmuStart) -> list[FmuVariable]:
    """Free parameters; those that would open loops are fixed once the FMU is initialized."""
    if facts_of(model).fixed:
        return []
    fixed = _fixed_parameters(model, functions)
    return [
        FmuVariable(
            name,
            "parameter",
            "fixed" if fixed[k] else "tunable",
            "",
            "Parameter",
            "exact",
            float(start.p[k]),
        )
        for k, name in enumerate(model.parameters)
    ]


def _fixed_parameters(model: Model, functions: FmuFunctions) -> list[bool]:
    """Which parameters constraints between coordinates, or rows that were left out, depend on."""
    if facts_of(model).fixed:
        return []
    held = set().union(*dependencies(functions.residual))
    return [("p", k) in held for k in range(len(facts_of(model).parameters))]


def _references(on: Iterable[tuple[str, int]], firsts: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(sorted(firsts[argument] + k for argument, k in on if argument in firsts))


def _state_units(signals: Signals, names: Iterable[str]) -> dict[str, str]:
    units = {signal.name: signal.unit for signal in signals}
    return {name: units[name] for name in names}


def _distinct(variables: Sequence[FmuVariable]) -> tuple[FmuVariable, ...]:
    """Variables with different names: parameters may be called as signals are."""
    taken = {v.name for v in variables if v.causality not in ("parameter", "independent")}
    made = []
    for v in variables:
        name = v.name
        if v.causality in ("parameter", "independent"):
            while name in taken:
                name = f"parameter.{name}" if v.causality == "parameter" else f"_{name}"
            taken.add(name)
        made.append(replace(v, name=name))
    return tuple(made)


# sources -----------------------------------------------------------------------------------------


def _sources(
    model: Model,
    functions: FmuFunctions,
    checks: ParameterChecks | None,
    identifier: str,
    version: str,
    start: FmuStart,
    step: float,
) -> dict[str, str]:
    """Texts of the C files by name."""
    tapes = functions.tapes(adjoint=version == "3.0")
    tapes += [checks.tape] if checks else []
    header, source = c_library("model", tapes, HeaderText(model.name), prefix=f"{identifier}_")
    wrapper = WRAPPERS[version]
    folder = files("axode.exports")
    given = {name: (folder / name).read_text("utf-8") for name in (*HEADERS, wrapper)}
    names = [tape.name for tape in tapes]
    settings = _settings(model, functions, checks, names, identifier, start, step)
    return {"model.h": header, "model.c": source, "settings.h": settings, **given}


def _settings(
    model: Model,
    functions: FmuFunctions,
    checks: ParameterChecks | None,
    names: Sequence[str],
    identifier: str,
    start: FmuStart,
    step: float,
) -> str:
    """Text of `settings.h`; `names` are those of all functions."""
    facts, texts = facts_of(model), checks.texts if checks else ()
    n_residual = len(facts.residual_rows)
    sizes = {
        "N_Q": len(facts.coordinates),
        "N_X": functions.rate.outputs[0].size,
        "N_U": len(facts.inputs),
        "N_P": functions.rate.inputs[3].size,
        "N_Y": functions.outputs.outputs[0].size,
        "N_PIVOTS": functions.pivots.outputs[0].size,
        "N_INDICATORS": functions.indicators.outputs[0].size,
        "N_RESIDUAL": n_residual,
        "N_DROPPED": functions.residual.outputs[0].size - n_residual,
        "N_PLACES": functions.n_places,
        "N_SLOPES": functions.places.outputs[0].size - functions.n_places,
        "CAN_OPEN": int(functions.projection is not None),
        "AUDITED": int(bool(functions.audit.results.size)),
        "N_CHECKS": len(texts),
        "N_PERIODS": len(functions.periods),
        "N_MEMORY": functions.n_memory,
    }
    values = [0.0, *start.q.tolist(), *start.nu.tolist(), *(0.0 for _ in facts.inputs)]
    values += [*(start.p.tolist() if sizes["N_P"] else ()), step]
    fixed = [int(flag) for flag in _fixed_parameters(model, functions)] or [0]
    first = sizes["N_X"] - sizes["N_MEMORY"] - sizes["N_Q"]
    fresh = [int(k in start.fresh) for k in range(first, first + sizes["N_MEMORY"])]
    same = functions.indicators is functions.pivots
    return "\n".join(
        [
            "/* Sizes and start values of the model. */",
            "#ifndef AXODE_FMU_SETTINGS_H",
            "#define AXODE_FMU_SETTINGS_H\n",
            '#define MODEL_TOKEN "MODEL_TOKEN_TEXT"',
            *(f"#define {name} {size}" for name, size in sizes.items()),
            *(f"#define model_{name} {identifier}_{name}" for name in names),
            *([f"#define model_indicators {identifier}_pivots"] if same else []),
            "\n/* time, states, inputs, parameters, internal step */",
            f"static const double start_values[] = {{{', '.join(map(repr, values))}}};",
            f"static const char fixed_parameters[] = {{{', '.join(map(str, fixed))}}};",
            *([_FRESH, f"    {', '.join(map(str, fresh))}}};"] if functions.periods else []),
            *(line.replace(" real ", " double ") for line in sample_periods(functions.periods)),
            *(["static const char *const check_texts[] = {"] if texts else []),
            *(f"    {c_text(f'impossible parameters: {text}')}," for text in texts),
            *(["};"] if texts else []),
            "\n#endif\n",
        ]
    )


def _token(texts: Iterable[str]) -> str:
    """Compute the token that a description and its binary share; equal for equal models."""
    digest = hashlib.sha256("\0".join(texts).encode()).hexdigest()
    return f"{{{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}}}"


# the binary --------------------------------------------------------------------------------------


class _NoBinary(Exception):
    """Raised with the reason why there is no binary."""


def find_compiler() -> list[str]:
    """Command of a C compiler that compiles for this machine.

    Raises:
        _NoBinary: if there is none.
    """
    words = shlex.split(os.environ.get("CC", ""), posix=os.name != "nt")
    asked = [word.strip('"') for word in words]  # Windows keeps its backslashes, and the marks
    for command in [asked] if asked else [[name] for name in COMPILERS]:
        found = find_program(command[0])
        if found is None:
            continue
        about = subprocess.run([found, "-dumpmachine"], capture_output=True, text=True, check=False)
        if _machine(about.stdout.partition("-")[0]) == _machine(platform.machine()):
            return [found, *command[1:]]
    raise _NoBinary("no C compiler for this machine was found")


def compile_library(texts: Mapping[str, str], identifier: str) -> bytes:
    """Compile the sources of an FMU to a shared library.

    Raises:
        _NoBinary: if there is no compiler, or if it fails.
    """
    command = find_compiler()
    with tempfile.TemporaryDirectory(prefix="axode-fmu-") as folder:
        for name, text in texts.items():
            Path(folder, name).write_text(text, "utf-8")
        sources = [name for name in texts if name.endswith(".c")]
        target = f"{identifier}{_ending()}"
        strip = [] if platform.system() == "Darwin" else ["-s"]
        every = [*command, *FLAGS, *strip, *sources, "-o", target, "-lm"]
        done = subprocess.run(every, cwd=folder, capture_output=True, text=True, check=False)
        made = Path(folder, target)
        if done.returncode or not made.exists():
            said = next((line for line in done.stderr.splitlines() if "error" in line), "no reason")
            raise _NoBinary(f"{command[0]} failed: {said}")
        return made.read_bytes()


def _machine(name: str) -> str:
    """Name of a processor as FMI 3 writes it."""
    name = name.lower()
    return {"amd64": "x86_64", "arm64": "aarch64", "i686": "x86", "i386": "x86"}.get(name, name)


def _platform(version: str) -> str:
    """Folder of this machine's binaries."""
    machine = _machine(platform.machine())
    system = {"Linux": "linux", "Darwin": "darwin", "Windows": "windows"}.get(
        platform.system(), platform.system().lower()
    )
    older = {
        ("x86_64", "linux"): "linux64",
        ("x86_64", "windows"): "win64",
        ("x86_64", "darwin"): "darwin64",
        ("aarch64", "darwin"): "darwin64",
    }
    name = f"{machine}-{system}"
    return older.get((machine, system), name) if version == "2.0" else name


def _ending() -> str:
    return {"Windows": ".dll", "Darwin": ".dylib"}.get(platform.system(), ".so")


# the archive -------------------------------------------------------------------------------------


def _archive(members: Mapping[str, bytes]) -> bytes:
    """Archive of some files, the same bytes for the same files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED, 9)
    return buffer.getvalue()


def _tool() -> str:
    return f"Axode {sys.modules['axode'].__version__}"


def _page(description: FmuDescription, version: str) -> str:
    """Documentation: a table of the variables."""
    rows = "\n".join(
        f"<tr><td>{html.escape(v.name)}</td><td>{html.escape(v.unit)}</td>"
        f"<td>{v.causality}, {v.variability}</td>"
        f"<td>{'' if v.start is None else f'{v.start:.6g}'}</td>"
        f"<td>{html.escape(v.description)}</td></tr>"
        for v in description.variables
    )
    title = html.escape(description.name)
    about = f"<p>{html.escape(description.about)}</p>\n" if description.about else ""
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"</head><body>\n<h1>{title}</h1>\n{about}"
        f"<p>FMI {version}, model exchange and co-simulation, "
        f"written by {description.tool}. Co-simulation integrates by the classical Runge-Kutta "
        "method, in equal steps that are no longer than <code>internal_step</code> and are divided "
        "where prescribed motions switch and where a law takes samples, with inputs that are "
        "constant during a communication step.</p>\n"
        "<table><tr><th>variable</th><th>unit</th><th>kind</th><th>start</th><th></th></tr>\n"
        f"{rows}\n</table>\n</body></html>\n"
    )
