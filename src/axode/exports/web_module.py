"""Models as WebAssembly: a module, and the JavaScript that gives its numbers their names."""

from __future__ import annotations

import io
import json
import re
import tarfile
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from axode.codegen.tape.program import Program
from axode.codegen.tape.rewriting import fuse
from axode.codegen.targets.wasm import WasmModule
from axode.model.model_parts import facts_of, function_tape
from axode.model.parameter_checks import FAULTS, parameter_checks
from axode.numerics.tolerances import RANK

if TYPE_CHECKING:
    from axode.model.model import Model

SHARED = ("q", "nu", "u", "p", "t", "w")  # arrays that steps and functions have in common
FORCES = ("contact_forces", "multipliers")
COMPUTED = ("joint_speeds", "measures", "energy", *FORCES)


def web_module(
    model: Model,
    programs: Mapping[str, Program],
    functions: Sequence[str] = (),
    *,
    longest: int | None = None,
) -> bytes:
    """Make a module of a model.

    It holds the steps, the signals, the poses of the bodies, and the functions named.

    Args:
        model: What it computes.
        programs: Its steps, of fixed length, by name: "advance" for given inputs.
        functions: Further functions of the model.
        longest: Operations of a function of forces; longer ones are left out. All unless given.
    """
    own = _own_functions(model, longest)
    module = WasmModule()
    for name, program in programs.items():
        module.add_program(name, fuse(program), {name: name for name in SHARED}, {"out": 1})
    for function in dict.fromkeys((*own, *functions)):
        tape = function_tape(model, function)
        inputs = [port.name for port in tape.inputs]
        outputs = [_output(function, port.name, len(tape.outputs)) for port in tape.outputs]
        module.add_tape(function, tape, [*inputs, *outputs])
    checks = parameter_checks(model)
    if checks is not None:
        module.add_tape(FAULTS, checks.tape, ["p", FAULTS])
    return module.to_bytes({"model": _about(model, own), "version": 1})


def _output(function: str, port: str, count: int) -> str:
    return function if count == 1 else f"{function}.{port}"


def _own_functions(model: Model, longest: int | None) -> list[str]:
    """Functions that every module has: signals, poses and the closing of loops."""
    used = {signal.function for signal in model.signals}
    found = [name for name in COMPUTED if name in used]
    found.append("poses")
    if facts_of(model).residual_rows or facts_of(model).quaternions:
        found.append("projection")
    if longest is not None:
        found = [n for n in found if n not in FORCES or model.operations(n) <= longest]
    return [name for name in found if all(port.size for port in function_tape(model, name).outputs)]


def _about(model: Model, own: Sequence[str]) -> dict[str, Any]:
    """Names, units and start values, for the caller."""
    facts = facts_of(model)
    functions = {"q", "nu", "u", *own}
    units = {signal.name: signal.unit for signal in model.signals}
    return {
        "name": model.name,
        "coordinates": list(model.coordinates),
        "speeds": list(model.independent),
        "inputs": list(model.inputs),
        "motors": facts.motors,
        "limits": list(facts.limits),
        "units": {
            name: units.get(name, "")
            for name in (*model.coordinates, *model.independent, *model.inputs)
        },
        "parameters": {} if facts.fixed else dict(facts.parameters),
        "home": list(facts.home),
        "bodies": list(model.bodies),
        "contacts": list(model.contacts),
        "least_pivot": RANK,
        "checks": list(facts.parameter_checks),
        "signals": [
            {"name": s.name, "unit": s.unit, "kind": s.kind, "array": s.function, "place": s.index}
            for s in model.signals
            if s.function in functions
        ],
    }


# JavaScript ------------------------------------------------------------------------------------


def script() -> str:
    """The JavaScript around a module, without the file that it loads."""
    return _file("web_module.js")


def javascript(stem: str) -> dict[str, str]:
    """Texts of the files beside `stem`.wasm, by name."""
    body = script().replace("MODULE_FILE", json.dumps(f"./{stem}.wasm"))
    return {f"{stem}.js": body, f"{stem}.d.ts": _file("web_module.d.ts")}


def npm_package(model: Model, stem: str, data: bytes) -> bytes:
    """A package of npm: a compressed archive of the module, its JavaScript and its description."""
    name = re.sub(r"[^a-z0-9._-]+", "-", stem.lower()).strip("-._") or "robot"
    description = {
        "name": name,
        "version": "1.0.0",
        "description": f"{model.name}: equations of motion and steps, made by Axode",
        "type": "module",
        "main": f"./{stem}.js",
        "types": f"./{stem}.d.ts",
        "exports": {".": {"types": f"./{stem}.d.ts", "default": f"./{stem}.js"}},
        "files": [f"{stem}.js", f"{stem}.d.ts", f"{stem}.wasm"],
        "sideEffects": False,
    }
    texts = {"package.json": json.dumps(description, indent=2) + "\n", **javascript(stem)}
    members = {name: text.encode() for name, text in texts.items()} | {f"{stem}.wasm": data}
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz", compresslevel=9) as archive:
        for member, content in members.items():
            entry = tarfile.TarInfo(f"package/{member}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


def _file(name: str) -> str:
    return files("axode.exports").joinpath(name).read_text(encoding="utf-8")
