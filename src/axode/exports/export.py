"""Export of models to C, CMake projects, PTX, WebAssembly, FMUs or model files."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from axode.errors import InvalidArgument
from axode.model.model_parts import facts_of, function_tape, library_of, model_on_cpu, require_ideal
from axode.names import as_names

if TYPE_CHECKING:
    from axode.model.model import Model

LAWS = (".c", "/", ".fmu")  # endings of files that a law can be compiled into
SUFFIXES = {
    ".axm": "Axode's own file",
    ".c": "C99 and its header",
    ".ptx": "kernels for a GPU",
    ".fmu": "FMI 2 or 3",
    ".wasm": "WebAssembly and its JavaScript",
    ".tgz": "the same as a package of npm",
    "/": "a CMake project of C99, in a folder",
}


def export_model(
    model: Model,
    path: str | PathLike[str],
    functions: Sequence[str] | None,
    rollout: str | None,
    input: Any,
    capability: str,
    precision: str | None,
    prefix: str | None,
    unit: Mapping[str, Any],
) -> tuple[Path, ...]:
    """Write the files that `Model.export` documents; `unit` has the arguments of FMUs."""
    place = Path(path)
    ending = "/" if is_folder(path) else place.suffix
    mistaken = format_as_name(place)
    if mistaken and not os.fspath(path).endswith(("/", os.sep)):
        raise InvalidArgument(mistaken)
    if ending not in SUFFIXES:
        known = ", ".join(f"{suffix} ({what})" for suffix, what in SUFFIXES.items())
        raise InvalidArgument(f"cannot export '{place.name}'; endings are {known}")
    if rollout is not None and ending != ".ptx":
        raise InvalidArgument(f"rollout: only a .ptx file holds whole runs, not '{place.name}'")
    if input is not None and ending in LAWS:
        return _under_law(model, path, functions, input, precision, prefix, unit)
    if input is not None and rollout is None:
        where = "with rollout='rk4'" if ending == ".ptx" else "in a .ptx file with rollout='rk4'"
        raise InvalidArgument(
            f"input: whole runs under an input are written {where}; '{place.name}' holds the "
            "mechanism, whose inputs are given where it is used.\n  Remedy: leave input out, and "
            "compute the law there; axode.page writes a page that runs under a law"
        )
    if prefix is not None and ending not in (".c", "/"):
        raise InvalidArgument(f"prefix: only C has names to begin, not '{place.name}'")
    if precision is not None and ending not in (".c", "/", ".ptx"):
        raise InvalidArgument(f"precision: only C and .ptx files have one, not '{place.name}'")
    for name, value in unit.items():
        if value is not None and ending != ".fmu":
            raise InvalidArgument(f"{name}: only an .fmu file takes it, not '{place.name}'")
    if ending != ".axm" and (functions is None or rollout is not None):
        require_ideal(f"export to '{place.name}'", model)
    if ending in (".fmu", "/"):
        from axode.problems.steps.compiled import check_exported_motion

        check_exported_motion(model)
    if ending == ".fmu":
        if functions is not None:
            raise InvalidArgument("functions: an .fmu file has outputs instead: outputs=[...]")
        return (_fmu_file(model, place, **unit),)
    if ending == ".axm":
        model.save(place, functions)
        return (place,)
    if functions is None:
        functions = ("forward_dynamics",)
    functions = as_names(functions)
    if ending in (".wasm", ".tgz"):
        return _web_files(model, place, functions)
    if ending in (".c", "/"):
        return _c_files(model, place, functions, prefix, precision or "float64", ending == "/")
    return _kernel_files(model, place, functions, rollout, input, capability, precision)


def _under_law(
    model: Model,
    path: str | PathLike[str],
    functions: Sequence[str] | None,
    law: Any,
    precision: str | None,
    prefix: str | None,
    unit: Mapping[str, Any],
) -> tuple[Path, ...]:
    """Write the files of a mechanism under a law, which is compiled in."""
    from axode.exports.law_model import LawModel
    from axode.problems.inputs.laws import Law
    from axode.problems.simulate.scenario import Scenario

    if functions is None:
        functions = None if str(path).endswith(".fmu") else ("state_rate",)
    made, own = LawModel(model_on_cpu(model), law), dict(unit)
    if str(path).endswith(".fmu"):
        begun = Scenario(model, 1.0, input=law, start=own["start"]).starts
        nu, remembered = begun.nu[0].copy(), law.memory if isinstance(law, Law) else ()
        for place in begun.fresh:  # before the first samples, which the file takes
            nu[place] = remembered[place - len(nu)].start
        own["start"] = begun.q[0], nu, begun.fresh
    return export_model(made, path, functions, None, None, "7.5", precision, prefix, own)


def format_as_name(place: Path, endings: Collection[str] = SUFFIXES) -> str:
    """Return what is wrong with a name that is an ending alone, for which there is no folder."""
    ending = f".{place.name.lower()}"
    if ending not in endings or place.is_dir():
        return ""
    named = place.with_name(f"model{ending}")
    return f"'{place.name}' is the ending of a file; name it {named}, or make the folder first"


def is_folder(path: str | PathLike[str]) -> bool:
    """Check whether a path means a folder: it ends in a slash, has no ending, or is one."""
    text = os.fspath(path)
    return text.endswith(("/", os.sep)) or not Path(text).suffix or Path(text).is_dir()


def _c_files(
    model: Model,
    place: Path,
    functions: Sequence[str],
    prefix: str | None,
    precision: str,
    project: bool,
) -> tuple[Path, ...]:
    from axode.codegen.targets.c import HeaderText, c_library
    from axode.disk.atomic import write_atomically

    entries = {
        "q": model.coordinates,
        "nu": model.independent,
        "u": model.inputs,
        "p": () if facts_of(model).fixed else tuple(model.parameters),
    }
    if project:
        from axode.exports.c_project import write_project

        return write_project(model, place, functions, prefix, precision, entries)
    tapes = [function_tape(model, name) for name in functions]
    header, source = c_library(
        place.stem, tapes, HeaderText(model.name, entries), prefix, precision
    )
    write_atomically(place, source.encode())
    write_atomically(place.with_suffix(".h"), header.encode())
    return place, place.with_suffix(".h")


def _web_files(model: Model, place: Path, functions: Sequence[str]) -> tuple[Path, ...]:
    from axode.disk.atomic import write_atomically
    from axode.exports.web_module import javascript, npm_package, web_module
    from axode.problems.steps.compiled import rollout_program

    data = web_module(model, {"advance": rollout_program(model, "rk4", None)}, functions)
    if place.suffix == ".tgz":
        write_atomically(place, npm_package(model, place.stem, data))
        return (place,)
    write_atomically(place, data)
    beside = {place.with_name(name): text for name, text in javascript(place.stem).items()}
    for path, text in beside.items():
        write_atomically(path, text.encode())
    return place, *beside


def _fmu_file(
    model: Model,
    place: Path,
    fmi: str | None,
    outputs: Sequence[str] | None,
    start: Any,
    step: float | None,
) -> Path:
    from axode.exports.fmu import FmuStart, write_fmu
    from axode.exports.law_model import LawModel
    from axode.problems.runs.settings import DEFAULT_STEP

    q, nu, p = model.home, np.zeros(len(model.independent)), model.parameter_vector()
    fresh: tuple[int, ...] = ()
    if isinstance(model, LawModel):  # a start with what the law remembers
        q, nu, fresh = start
    elif start is not None:
        from axode.problems.assemble.assemble import assemble

        state = assemble(model_on_cpu(model), start)
        q, nu = state.q, state.nu
    begin = FmuStart(q, nu, p, fresh)
    return write_fmu(
        model, place, begin, fmi or "2.0", outputs, DEFAULT_STEP if step is None else step
    )


def _kernel_files(
    model: Model,
    place: Path,
    functions: Sequence[str],
    rollout: str | None,
    input: Any,
    capability: str,
    precision: str | None,
) -> tuple[Path, ...]:
    from axode.codegen.targets.ptx import kernels, map_program

    numbers = precision or library_of(model).precision
    programs = {name: map_program(function_tape(model, name)) for name in functions}
    if rollout is not None:
        from axode.problems.steps.compiled import rollout_program

        single = numbers == "float32"
        programs[rollout] = rollout_program(model, rollout, input, single=single)
    facts = facts_of(model)
    about = {
        "model": {
            "name": model.name,
            "coordinates": list(model.coordinates),
            "independent": list(model.independent),
            "inputs": list(model.inputs),
            "parameters": {} if facts.fixed else dict(facts.parameters),
            "home": list(facts.home),
        }
    }
    made = kernels(programs, capability, numbers, about)
    return made.assemble().export(place)
