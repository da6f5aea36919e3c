"""C99 as a small CMake project: library, self-test, and what the arrays hold."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from axode.codegen.tape.operations import Array
from axode.codegen.tape.rounding_bounds import RoundedSamples, evaluate_rounded, rounding_bounds
from axode.codegen.tape.tape import Port, Tape
from axode.codegen.targets.c import (
    NUMBERS,
    FunctionCheck,
    HeaderText,
    c_identifier,
    c_library,
    check_prefix,
    check_samples,
    check_stem,
    check_tape,
    self_test,
)
from axode.disk.atomic import write_atomically
from axode.errors import FileError, InvalidArgument
from axode.exports.c_step import CORE, CStep
from axode.model.model_parts import facts_of, function_tape
from axode.numerics.tolerances import CLOSED

if TYPE_CHECKING:
    from axode.model.model import Model

STATES = 256  # at which rounding is bounded
STEP_STATES = 32  # the same of whole steps, whose tapes are long
TESTED_STATES = 8
TESTED_PART = 0.9  # of the states, in the order of their conditioning
FRAME = 256  # bytes of a frame besides numbers: saved registers, addresses, alignment
MARK = "# Written by Axode."  # first line of the CMake project
CMAKE_TARGETS = {"all", "clean", "depend", "edit_cache", "help", "install", "package", "test"}

SPREADS = (0.5, 0.2, 0.05, 0.01, 0.0)  # of coordinates about home [rad, or lengths of the model]
FARTHEST = 2.5  # from home, in the same units
CLOSING_STEPS = 12
DRAWS = 2  # per state that is wanted


@dataclass(frozen=True)
class Rounding:
    """Relative errors of a function at random states, of the largest entry of its result.

    Attributes:
        states: How many states.
        bound: Largest first-order bound of the rounding errors.
        usual_bound: Bound that 99 % of the states keep.
        error: Largest error that occurred here, in the same precision; None in double precision.
        usual_error: Error that 99 % of the states keep.
    """

    states: int
    bound: float
    usual_bound: float
    error: float | None = None
    usual_error: float | None = None

    @property
    def lines(self) -> list[str]:
        """Text for a comment."""
        made = [
            f"Rounding at {self.states} random states, by the largest entry: at most"
            f" {self.bound:.1e}, {self.usual_bound:.1e} at 99 %."
        ]
        if self.error is not None:
            made.append(f"Found there: {self.error:.1e}, {self.usual_error:.1e} at 99 %.")
        return made


def measure_rounding(tape: Tape, samples: RoundedSamples, precision: str) -> Rounding:
    """Summarize bounds of rounding errors, and find the errors themselves in single precision.

    Args:
        tape: What is computed.
        samples: Its results at some states, with their bounds.
        precision: "float64" or "float32".
    """
    bound = samples.relative(samples.bounds)
    made = Rounding(len(bound), float(bound.max(initial=0.0)), _usual(bound))
    if precision == "float64":
        return made
    found = evaluate_rounded(tape, samples.inputs, precision)
    errors = [np.abs(a - b) for a, b in zip(found, samples.results, strict=True)]
    error = samples.relative(errors)
    return replace(made, error=float(error.max(initial=0.0)), usual_error=_usual(error))


def _usual(errors: Array) -> float:
    return float(np.sort(errors)[int(0.99 * (len(errors) - 1))])


def write_project(
    model: Model,
    folder: Path,
    functions: Sequence[str],
    prefix: str | None,
    precision: str,
    entries: Mapping[str, Sequence[str]],
) -> tuple[Path, ...]:
    """Write a folder with a CMake project; return its files.

    Args:
        model: What it computes.
        folder: Where; its name is that of the library.
        functions: Functions of the model; a step comes besides.
        prefix: Prefix of names in C; the library's name unless given.
        precision: "float64" or "float32".
        entries: Names in the arrays.
    """
    name = _library_name(folder)
    listing = folder / "CMakeLists.txt"
    if listing.exists() and not listing.read_text("utf-8", "replace").startswith(MARK):
        raise FileError(
            f"cannot write '{folder}': it has a CMakeLists.txt that Axode did not write; choose "
            "another folder"
        )
    before = check_prefix(f"{name}_" if prefix is None else prefix)
    if "step" in functions:
        raise InvalidArgument(
            f"functions: the project has a step of its own, {before}step, which is divided where "
            "motions switch; leave 'step' out, or write it to a .c file"
        )
    tapes = [function_tape(model, function) for function in functions]
    step = CStep(model, before, precision)
    rounding, checks = _checks(model, tapes, step, before)
    notes = {
        tape.name: [_stack(_stack_bytes(tape, precision)), *rounding[tape.name].lines]
        for tape in tapes
    }
    deepest = max(_stack_bytes(tape, precision) for tape in step.stack_tapes)
    arrays = NUMBERS[precision].size * step.stack_numbers
    stack = _stack(deepest + arrays + 3 * FRAME)
    further = step.declarations([stack, *rounding["step"].lines])
    units = _with_units(model, entries)
    described = HeaderText(model.name, units, notes, further)
    header, source = c_library(name, tapes, described, before, precision)
    texts = {
        "CMakeLists.txt": _fill("c_project_cmake.txt", name=name, UPPER=name.upper()),
        "README.md": _readme(model, name, step, units, rounding, checks),
        f"include/{name}.h": header,
        f"src/{name}.c": source,
        f"src/{name}_step.c": step.source(name),
        f"src/{CORE}": step.core,
        "tests/self_test.c": self_test(name, checks, NUMBERS[precision]),
    }
    for file, text in texts.items():
        place = folder / file
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"cannot write '{place}': {error.strerror}") from error
        write_atomically(place, text.encode(), follow=False)
    return tuple(folder / file for file in texts)


def _library_name(folder: Path) -> str:
    """Name of the library: a C identifier, and a target that CMake does not have already."""
    stem = folder.resolve().name
    check_stem(stem)
    name = c_identifier(stem, set())
    return f"{name}_model" if name in CMAKE_TARGETS else name


def _checks(
    model: Model, tapes: Sequence[Tape], step: CStep, prefix: str
) -> tuple[dict[str, Rounding], list[FunctionCheck]]:
    """Rounding errors of all functions, and what the self-test checks."""
    arguments = sample_arguments(model, STATES)
    few = {name: array[:STEP_STATES] for name, array in arguments.items()}
    every = [(tape, [_values(port, arguments) for port in tape.inputs], ()) for tape in tapes]
    rounding: dict[str, Rounding] = {}
    checks: list[FunctionCheck] = []
    taken: set[str] = set()
    for tape, arrays, statements in [*every, (step.tape, step.samples(few), step.check_statements)]:
        name = c_identifier(prefix + tape.name, taken)
        if not arrays:
            rounding[tape.name] = Rounding(0, 0.0, 0.0)
            checks.append(check_tape(tape, name, step.precision))
            continue
        samples = rounding_bounds(tape, arrays, step.precision)
        rounding[tape.name] = measure_rounding(tape, samples, step.precision)
        checks.append(
            check_samples(
                name, samples, step.precision, TESTED_STATES, TESTED_PART, tuple(statements)
            )
        )
    return rounding, checks


def _values(port: Port, known: Mapping[str, Array]) -> Array:
    """Values of an argument at the sampled states; any for weights and directions."""
    if port.name in known:
        return known[port.name]
    return np.random.default_rng(port.size).normal(size=(STATES, *port.shape))


def _fill(file: str, **values: str) -> str:
    """Text of a file of this package, every @name@ in it replaced by its value."""
    text = (files("axode.exports") / file).read_text("utf-8")
    return re.sub("@([A-Za-z]+)@", lambda found: values[found[1]], text)


def _stack_bytes(tape: Tape, precision: str) -> int:
    """Bytes of a frame in which every value has a place, as without optimization."""
    pointers = 8 * (len(tape.inputs) + len(tape.outputs))
    return NUMBERS[precision].size * len(tape.kinds) + pointers + FRAME


def _stack(size: int) -> str:
    return f"Stack: at most {size} bytes, and what math.h takes."


def _with_units(model: Model, entries: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Names with their units, and parameters with their defaults."""
    facts = facts_of(model)
    speeds = dict(zip(facts.speeds, facts.speed_units, strict=True))
    units = {
        "q": facts.coordinate_units,
        "nu": [speeds.get(name, "") for name in facts.independent],  # a memory has none
        "u": facts.input_units,
    }
    made = {
        array: [
            f"{name} [{unit}]" if unit else name
            for name, unit in zip(entries[array], given, strict=True)
        ]
        for array, given in units.items()
    }
    defaults = model.parameters
    return made | {"p": [f"{name}, default {float(defaults[name])!r}" for name in entries["p"]]}


def _readme(
    model: Model,
    name: str,
    step: CStep,
    entries: Mapping[str, Sequence[str]],
    rounding: Mapping[str, Rounding],
    checks: Sequence[FunctionCheck],
) -> str:
    real = NUMBERS[step.precision].type
    arrays = [
        f"- `{array}[{place}]`: {entry}"
        for array, names in entries.items()
        for place, entry in enumerate(names)
    ]
    table = [
        f"| `{check.name}` | {r.bound:.1e} | {r.usual_bound:.1e} |"
        + (f" {r.error:.1e} | {r.usual_error:.1e} |" if r.error is not None else " | |")
        for check, r in zip(checks, rounding.values(), strict=True)
    ]
    return _fill(
        "c_project_readme.md",
        title=model.name,
        name=name,
        UPPER=name.upper(),
        real=real,
        entries="\n".join(arrays),
        table="\n".join(table),
        states=str(STATES),
        few=str(STEP_STATES),
        tested=str(TESTED_STATES),
        signature=step.call,
        held=", with inputs that are held during the step" if model.inputs else "",
        first=f"\n`{step.sampling}` takes the samples of the law at the start: call it once before."
        if step.sampling
        else "",
    )


# states to test at -------------------------------------------------------------------------------


def sample_arguments(model: Model, count: int, seed: int = 0) -> dict[str, Array]:
    """Arguments of a model's functions at random consistent states, by name.

    Coordinates are drawn about home and brought onto the constraints; where few draws close, they
    are drawn nearer to home. Speeds, accelerations and inputs are normal, parameters the defaults.

    Args:
        model: The model.
        count: How many states.
        seed: Seed of the random numbers.
    """
    rng = np.random.default_rng(seed)
    facts = facts_of(model)
    n_nu = len(facts.independent)
    units = {signal.name: signal.unit for signal in model.signals}
    speeds = np.array([facts.length if units[n] == "m/s" else 1.0 for n in facts.independent])
    return {
        "t": np.zeros((count, 1)),
        "q": _closed_coordinates(model, units, count, rng),
        "nu": speeds * rng.normal(size=(count, n_nu)),
        "nu_dot": speeds * rng.normal(size=(count, n_nu)),
        "u": rng.normal(size=(count, len(facts.inputs))),
        "weights": np.ones((count, facts.motors)),
        "p": np.broadcast_to(model.parameter_vector(), (count, len(facts.parameters))),
    }


def _closed_coordinates(
    model: Model, units: dict[str, str], count: int, rng: np.random.Generator
) -> Array:
    home = np.asarray(model.home)
    facts = facts_of(model)
    scales = np.array([facts.length if units[n] == "m" else 1.0 for n in facts.coordinates])
    lengths = np.array([facts.length if unit == "m" else 1.0 for unit in facts.residual_units])
    projection, residual = function_tape(model, "projection"), function_tape(model, "residual")
    found = home[np.newaxis]
    for spread in SPREADS:
        q = home + spread * scales * rng.normal(size=(DRAWS * count, len(home)))
        for _ in range(CLOSING_STEPS if projection.n_operations else 0):
            q = _call(model, projection, q)
            with np.errstate(invalid="ignore"):
                q = q[(np.abs(q - home) <= FARTHEST * scales).all(1)]
        closed = (np.abs(_call(model, residual, q)) <= CLOSED * lengths).all(1)
        found = q[closed]
        if len(found) >= count:
            break
    return np.resize(found, (count, len(home)))


def _call(model: Model, tape: Tape, q: Array) -> Array:
    given = {"q": q, "t": np.zeros(1), "p": model.parameter_vector()}
    result = tape.evaluate(*(given[port.name] for port in tape.inputs))[0]
    return np.broadcast_to(result, (len(q), *result.shape[-1:]))
