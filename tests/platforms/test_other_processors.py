"""Machine code for other processors and systems, compiled here and read, not run.

It is run by `make test-emulated` and, on the systems themselves, by the workflow.
"""

from __future__ import annotations

import platform as machine
import re

import llvmlite.binding as llvm
import numpy as np
import pytest

from axode.codegen import host
from axode.codegen.lowering import batch_loop as kernel
from axode.codegen.tape.tape import Tape
from axode.codegen.targets import fastcall, jit
from axode.codegen.targets.cpu import CompiledFunction
from axode.codegen.targets.direct_call import _direct_code, _step_code
from tests.targets import functions
from tests.targets.agreement import samples

LINUX = ("aarch64-unknown-linux-gnu", "neoverse-n1")
APPLE = ("arm64-apple-darwin23.0.0", "apple-m1")
WINDOWS = ("x86_64-pc-windows-msvc", "haswell")
INTEL_MAC = ("x86_64-apple-darwin23.0.0", "haswell")
PROCESSOR = machine.machine()
PLATFORMS = (LINUX, APPLE, WINDOWS, INTEL_MAC)
MAGIC = {
    LINUX: b"\x7fELF",
    APPLE: b"\xcf\xfa\xed\xfe",
    WINDOWS: b"d\x86",
    INTEL_MAC: b"\xcf\xfa\xed\xfe",
}
every = pytest.mark.parametrize("platform", PLATFORMS, ids=lambda one: one[0])


def compiled(platform: tuple[str, str], ir: str) -> tuple[bytes, str]:
    """Object code and assembly, with the options that the platform itself would use."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    relocation, reach = jit.code_model(platform[0])
    machine = llvm.Target.from_triple(platform[0]).create_target_machine(
        cpu=platform[1], opt=jit.EFFORT, reloc=relocation, codemodel=reach
    )
    return machine.emit_object(llvm.parse_assembly(ir)), machine.emit_assembly(
        llvm.parse_assembly(ir)
    )


def kernel_ir(lanes: int) -> str:
    return kernel.module(Tape.from_casadi(functions.every_operation()), lanes)


def unresolved(assembly: str) -> set[str]:
    """Symbols that are called or whose address is taken, and that are not defined."""
    name = r"([A-Za-z_.$][\w.$]*)"
    used = re.findall(rf"^\s+(?:bl|b|call[ql]?|jmp)\s+{name}(?:@PLT)?\s*$", assembly, re.M)
    used += re.findall(rf"movabsq\s+\${name}", assembly)
    used += re.findall(rf"{name}@(?:GOTPAGE|GOTPCREL|PAGE)\b", assembly)
    used += re.findall(rf"#:abs_g\d(?:_nc)?:{name}", assembly)
    defined = set(re.findall(r"^\s*([^\s:#]+):", assembly, re.M))
    shared = ("__real", "__xmm", "__ymm")  # constants of COFF, defined in every object
    return {symbol for symbol in used if symbol not in defined and not symbol.startswith(shared)}


def test_it_sees_what_is_missing():
    assert unresolved("f:\n\tcallq\tsin\n\tbl\tcos\n\tbl\tf\n\tmovabsq\t$tan, %rax") == {
        "sin",
        "cos",
        "tan",
    }


@every
@pytest.mark.parametrize("lanes", [1, 2, 4])
def test_kernels_call_nothing(platform, lanes):
    """Neither mathematics of a C library nor helpers of a compiler."""
    code, assembly = compiled(platform, kernel_ir(lanes))
    assert code.startswith(MAGIC[platform])
    prefix = "_" if "darwin" in platform[0] else ""  # as Apple's linker expects of C
    assert re.search(rf"^{prefix}{kernel.ENTRY}:", assembly, re.M)
    assert not unresolved(assembly)
    assert "__chkstk" not in assembly  # frames stay below a page of Windows


@every
def test_functions_of_python_are_compiled(platform):
    for ir in (fastcall._trampoline(), _direct_code(), _step_code()):
        code, assembly = compiled(platform, ir)
        assert code.startswith(MAGIC[platform]) and not unresolved(assembly)
        assert ".seh_" not in assembly  # no tables of exceptions


@pytest.mark.parametrize(
    ("platform", "lanes", "registers"),
    [
        (LINUX, 2, r"\bfmla\s+v\d+\.2d"),
        (APPLE, 2, r"\bfmla\.2d"),
        (WINDOWS, 4, r"\bvfmadd\d+pd\s.*%ymm"),
    ],
    ids=["neon", "apple", "avx2"],
)
def test_batches_fill_vector_registers(platform, lanes, registers):
    _, assembly = compiled(platform, kernel_ir(lanes))
    assert len(re.findall(registers, assembly)) > 50


TABLE = """
@table = internal constant [4 x double] [double 1.0, double 2.0, double 3.0, double 4.5]
define double @f(i64 %k) {
  %p = getelementptr double, ptr @table, i64 %k
  %x = load double, ptr %p
  ret double %x
}
"""


def test_code_for_arm_reaches_tables_wherever_the_linker_puts_them():
    """By an address beside the code, or by all 64 bits of it; a page of `adrp` is within 4 GiB."""
    _, assembly = compiled(APPLE, TABLE)
    assert re.findall(r"adrp\s+x\d+, (\S+)", assembly) == ["_table@GOTPAGE"]
    _, assembly = compiled(LINUX, TABLE)
    assert "#:abs_g3:table" in assembly and "adrp" not in assembly


@pytest.mark.skipif(PROCESSOR != "aarch64", reason="runs where code for ARM runs")
@pytest.mark.parametrize("lanes", [1, 2, 4])
def test_machine_code_for_apple_runs_with_the_same_bits(monkeypatch, lanes):
    """Objects in Mach-O, linked by the linker that Python on macOS has, and called."""
    tape = Tape.from_casadi(functions.every_operation())
    arrays = samples(tape, 7)
    own = CompiledFunction(tape, lanes=lanes)(*arrays)
    monkeypatch.setenv("AXODE_CACHE", "off")
    this = host.host()
    there = host.Host(APPLE[0], this.cpu, this.features, this.lanes)
    monkeypatch.setattr(jit, "host", lambda: there)
    for kept in (jit._target_machine, jit._engine):
        kept.cache_clear()
    try:
        made = CompiledFunction(tape, lanes=lanes)(*arrays)
    finally:
        for kept in (jit._target_machine, jit._engine):
            kept.cache_clear()
    for one, other in zip(made, own, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("features", "lanes"),
    [({"neon": True, "sve": False}, 2), ({"avx": True}, 4), ({"avx": True, "avx512f": True}, 8)],
)
def test_lanes_are_those_of_the_processor(monkeypatch, features, lanes):
    asked = llvm.get_host_cpu_features()
    monkeypatch.setattr(type(asked), "flatten", lambda self: "")
    asked.clear()
    asked.update(features)
    monkeypatch.setattr(llvm, "get_host_cpu_features", lambda: asked)
    assert host.host.__wrapped__().lanes == lanes


def test_objects_of_other_systems_are_not_taken_from_the_cache(monkeypatch):
    keys = set()
    for triple, cpu in PLATFORMS:
        monkeypatch.setattr(jit, "host", lambda t=triple, c=cpu: host.Host(t, c, "", 2))
        keys.add(jit.cache_key("same"))
    assert len(keys) == len(PLATFORMS)
