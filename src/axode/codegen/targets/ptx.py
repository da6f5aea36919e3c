"""Programs and tapes as PTX, which the driver of any NVIDIA GPU turns into its own code."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm

from axode.codegen.ir import FORMATS
from axode.codegen.lowering.gpu_kernel import sums_up, thread_module
from axode.codegen.tape.program import ENTRY, Evaluate, Program
from axode.codegen.tape.rewriting import inline_constants
from axode.codegen.tape.tape import Tape
from axode.codegen.targets.jit import LOCK, cache_key, find_program
from axode.disk.object_cache import ObjectCache, cache_directory
from axode.errors import InvalidArgument, UnknownName, shortened

FORMAT = 3
CAPABILITIES = ("7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "12.0")
KIND = "ptx"  # kind of cached data
PATIENCE = 120  # [s] for the assembler to count the registers of a kernel


@dataclass(frozen=True)
class Kernels:
    """PTX of programs and what their caller must know.

    Attributes:
        ptx: The text that a driver loads.
        header: Capability, precision, and by the kernels' names their entry, the sizes of their
            buffers and the widths of their tables, in JSON's own types.
    """

    ptx: str
    header: dict[str, Any]

    def __repr__(self) -> str:
        h = self.header
        lines = [f"Kernels for compute capability {h['capability']} and newer, {h['precision']}"]
        for name, known in h["kernels"].items():
            line = f"  {name}: {known['operations']} operations"
            if "registers" in known:
                line += f", {known['registers']} registers, {known['spilled_bytes']} bytes spilled"
            lines.append(line)
        return "\n".join(lines)

    def export(self, path: str | Path) -> tuple[Path, Path]:
        """Write `x.ptx` and `x.json`; `axode.runtime.cuda` loads them with NumPy and CuPy alone."""
        from axode.disk.atomic import write_atomically

        place = Path(path)
        if place.suffix != ".ptx":
            raise InvalidArgument(f"a kernel is written to a .ptx file, got '{place.name}'")
        text = place.with_suffix(".json")
        write_atomically(place, self.ptx.encode())
        write_atomically(text, json.dumps(self.header, indent=1).encode())
        return place, text

    def assemble(self) -> Kernels:
        """Add registers and spills, where NVIDIA's assembler ptxas is installed.

        Raises:
            InvalidArgument: if it refuses the text.
        """
        found = _resources(self.ptx, self.header["capability"])
        kernels = {
            name: known | found.get(known["entry"], {})
            for name, known in self.header["kernels"].items()
        }
        return replace(self, header=self.header | {"kernels": kernels})


def map_program(tape: Tape) -> Program:
    """Return a program that evaluates a tape once per run."""
    names = [port.name for port in tape.inputs]
    outputs = {f"out.{port.name}": port.size for port in tape.outputs}
    given = {port.name: port.size for port in tape.inputs}
    call = Evaluate(tape, (*names, *outputs))
    return Program(tape.name, state=outputs, given=given, tables={}, operations=(call,))


def kernel(program: Program, capability: str = "7.5", precision: str = "float64") -> Kernels:
    """One program as PTX, from the object cache if it is there; see `kernels`."""
    check_precision(precision)
    identity = f"{program.name} {program.digest} {capability} {precision}"

    def make() -> bytes:
        made = kernels({program.name: program}, capability, precision)
        return json.dumps([made.ptx, made.header]).encode()

    return Kernels(*json.loads(keep(identity, make)))


def keep(identity: str, make: Callable[[], bytes]) -> bytes:
    """Read bytes from the object cache, or make them and keep them there unless they are empty.

    Args:
        identity: Names them uniquely.
        make: Makes them.
    """
    cache, key = ObjectCache(cache_directory()), cache_key(f"{KIND} {FORMAT} {identity}")
    found = cache.read(key)
    if found is None:
        found = make()
        if found:
            cache.write(key, found)
    return found


def kernels(
    programs: Mapping[str, Program],
    capability: str = "7.5",
    precision: str = "float64",
    about: Mapping[str, Any] | None = None,
) -> Kernels:
    """Programs as PTX for one generation of GPUs and all later ones.

    Args:
        programs: What one thread does, by name.
        capability: Oldest compute capability it must run on.
        precision: Format of arrays and arithmetic, "float64" or "float32".
        about: Further entries of the header.
    """
    if capability not in CAPABILITIES:
        known = ", ".join(CAPABILITIES)
        raise InvalidArgument(f"capability must be one of {known}, got {shortened(capability)}")
    number = FORMATS[check_precision(precision)]
    programs = {name: inline_constants(program) for name, program in programs.items()}
    entries = {_entry(name, place): name for place, name in enumerate(programs)}
    ir = thread_module({e: programs[name] for e, name in entries.items()}, number, host=False)
    ptx = _emit(ir, capability)
    version = re.search(r"\.version (\d+\.\d+)", ptx)
    header = {
        "format": FORMAT,
        "capability": capability,
        "precision": precision,
        "ptx": version[1] if version else "",
        **(about or {}),
        "kernels": {name: _describe(programs[name], entry) for entry, name in entries.items()},
    }
    return Kernels(ptx, header)


def check_precision(precision: str) -> str:
    """A precision that kernels can have."""
    if precision not in FORMATS:
        raise UnknownName("axode", "precision", precision, FORMATS)
    return precision


def _entry(name: str, place: int) -> str:
    """A name that PTX accepts; no two are the same."""
    return f"k{place}_{re.sub(r'[^A-Za-z0-9_]', '_', name)}"


def _describe(program: Program, entry: str) -> dict[str, Any]:
    """Describe one kernel for its caller."""
    made: dict[str, Any] = {
        "entry": entry,
        "state": program.state,
        "given": {name: len(program.varying(name)) for name in program.given},
        "tables": program.tables,
        "operations": sum(tape.n_operations for tape in program.tapes),
        "sums_up": sums_up(program),
    }
    (first, *others) = program.operations
    if isinstance(first, Evaluate) and not others and len(first.tape.outputs) == 1:
        made["shape"] = list(first.tape.outputs[0].shape)
    return made


def closest_capability(own: str) -> str:
    """The newest capability that a GPU understands.

    Raises:
        InvalidArgument: for GPUs older than all of them.
    """
    known = [c for c in CAPABILITIES if float(c) <= float(own)]
    if not known:
        raise InvalidArgument(f"compute capability {own} is older than {CAPABILITIES[0]}")
    return known[-1]


def host_module(program: Program, precision: str = "float64") -> str:
    """Write the kernel for the CPU: ``void rollout(ptr table, i64 count, i64 i)``."""
    return thread_module({ENTRY: program}, FORMATS[check_precision(precision)], host=True)


def _emit(ir: str, capability: str) -> str:
    with LOCK:
        return _emit_alone(ir, capability)


def _emit_alone(ir: str, capability: str) -> str:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple("nvptx64-nvidia-cuda")
    machine = target.create_target_machine(cpu=f"sm_{capability.replace('.', '')}", opt=3)
    module = llvm.parse_assembly(ir, llvm.create_context())
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return str(machine.emit_assembly(module))


_OF_ONE = re.compile(
    r"Function properties for (\w+)\s+\d+ bytes stack frame, (\d+) bytes spill stores, "
    r"(\d+) bytes spill loads\s+(?:ptxas )?info\s+: Used (\d+) registers"
)


def _resources(ptx: str, capability: str) -> dict[str, dict[str, int]]:
    """Registers and spilled bytes per thread of every entry; nothing without an assembler."""
    assembler = find_program("ptxas")
    if assembler is None:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "kernels.ptx")
        source.write_text(ptx, "utf-8")
        command = [
            assembler,
            "-v",
            f"-arch=sm_{capability.replace('.', '')}",
            str(source),
            "-o",
            str(source.with_suffix(".cubin")),
        ]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            return {}
    if done.returncode:
        raise InvalidArgument(f"ptxas refuses the kernels: {done.stderr.strip()[:500]}")
    return {
        entry: {"registers": int(registers), "spilled_bytes": int(stores)}
        for entry, stores, _, registers in _OF_ONE.findall(done.stdout + done.stderr)
    }
