"""Build exported projects for other processors and run them in QEMU."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import axode as ax
from axode.codegen.tape.rounding_bounds import round_numbers
from axode.codegen.targets.c import NUMBERS
from axode.exports.c_project import sample_arguments
from axode.model.model_parts import function_tape

HERE = Path(__file__).parent
ARM = "arm-none-eabi-gcc"
CPU = ("-mcpu=cortex-m4", "-mthumb", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard")
FLAGS = ("-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", "-pedantic")
BOARD = (
    *("qemu-system-arm", "-M", "mps2-an386", "-nographic", "-monitor", "none", "-serial", "none"),
    *("-semihosting-config", "enable=on,target=native", "-icount", "shift=0", "-kernel"),
)
AARCH64 = ("aarch64-linux-gnu-gcc", "qemu-aarch64")
SAMPLES = 4
BUDGET = 400_000_000  # instructions of a count: SysTick has 24 bits


def has_tools(*names: str) -> bool:
    """Check whether all of some programs are installed."""
    return all(shutil.which(name) for name in names)


def run_on_board(folder: Path, sources: Sequence[Path], name: str) -> str:
    """Compile some sources with those of a project for a Cortex-M4F; return what they print."""
    program = folder / f"{name}.elf"
    every = [*sources, HERE / "startup.c"]
    link = ("-nostartfiles", "--specs=rdimon.specs", f"-T{HERE / 'memory.ld'}")
    library = _objects(folder)
    command = [ARM, *CPU, "-O2", f"-I{folder / 'include'}", f"-I{HERE}", *every, *library, *link]
    subprocess.run([*command, "-lm", "-o", program], check=True)
    done = subprocess.run(
        [*BOARD, program], capture_output=True, text=True, check=False, timeout=600
    )
    if done.returncode:
        raise RuntimeError(f"{program} returned {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def _objects(folder: Path) -> list[Path]:
    """Object files of a project's library for the board, compiled once."""
    made = []
    for source in sorted((folder / "src").glob("*.c")):
        target = folder / f"{source.stem}.o"
        if not target.exists():
            command = [ARM, *CPU, *FLAGS, f"-I{folder / 'include'}", "-c", source, "-o", target]
            subprocess.run(command, check=True)
        made.append(target)
    return made


def run_on_aarch64(folder: Path) -> str:
    """Compile and run the self-test of a project for aarch64, where products are fused."""
    program = folder / "aarch64"
    sources = [*(folder / "src").glob("*.c"), folder / "tests" / "self_test.c"]
    flags = [flag for flag in FLAGS if flag != "-std=c99"] + ["-std=c99", "-ffp-contract=fast"]
    command = [AARCH64[0], *flags, "-static", f"-I{folder / 'include'}", *sources]
    subprocess.run([*command, "-lm", "-o", program], check=True)
    done = subprocess.run([AARCH64[1], program], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the self-test fails on aarch64:\n{done.stdout}")
    return done.stdout


@dataclass(frozen=True)
class Cost:
    """What a function takes on the board.

    Attributes:
        instructions: Instructions per call, the mean of some states.
        stack: Bytes of stack, with those of the mathematical library.
        code: Bytes of code, without the mathematical library and its constants elsewhere.
    """

    instructions: int
    stack: int
    code: int


def costs(
    folder: Path, model: ax.Model, functions: Sequence[str], precision: str
) -> dict[str, Cost]:
    """Count instructions, stack and code of the functions of a project and of its step."""
    source = folder / "count.c"
    source.write_text(_program(folder.name, model, functions, precision))
    lines = [line.split() for line in run_on_board(folder, [source], "count").splitlines()]
    sizes = _code_sizes(folder)
    return {
        name: Cost(int(instructions), int(stack), sizes[name])
        for name, instructions, stack in lines
    }


def _code_sizes(folder: Path) -> dict[str, int]:
    """Bytes of each function; the step with everything in its file."""
    found: dict[str, int] = {}
    for target in _objects(folder):
        listing = subprocess.run(
            ["arm-none-eabi-nm", "-S", "--defined-only", target],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        sizes = re.findall(r"^\w+ (\w+) [tTrR] (\S+)$", listing, re.M)
        inside = {name: int(size, 16) for size, name in sizes}
        if target.stem.endswith("_step"):
            found["step"] = sum(inside.values())
        else:
            found |= {name.removeprefix(f"{folder.name}_"): size for name, size in inside.items()}
    return found


def _program(name: str, model: ax.Model, functions: Sequence[str], precision: str) -> str:
    """A program that counts calls at some states."""
    numbers = NUMBERS[precision]
    given = sample_arguments(model, SAMPLES)
    texts, mains = [f'#include "{name}.h"', '#include "count.h"', "#include <string.h>"], []
    for array in ("q", "nu", "nu_dot", "u"):
        values = round_numbers(given[array], precision)
        rows = ", ".join(
            "{" + (", ".join(map(numbers.literal, row)) or "0") + "}" for row in values.tolist()
        )
        width = max(1, values.shape[1])
        texts.append(f"static const {numbers.type} {array}[{SAMPLES}][{width}] = {{{rows}}};")
    texts.append(f"static {numbers.type} out[4096], x[64], v[64];")
    for function in (*functions, "step"):
        if function == "step":
            ports = [port.name for port in function_tape(model, "state_rate").inputs][2:]
            n_q, n_nu = len(model.coordinates), len(model.independent)
            moved = f"memcpy(x, q[s], {n_q} * sizeof *x); memcpy(v, nu[s], {n_nu} * sizeof *v);"
            passed = ", ".join(["x", "v", *(f"{port}[s]" for port in ports), numbers.literal(1e-3)])
            call, idle = f'{moved} if ({name}_step({passed})) printf("step failed ");', moved
            size = 5 * model.operations("state_rate")
        else:
            ports = [port.name for port in function_tape(model, function).inputs]
            passed = ", ".join([*(f"{port}[s]" for port in ports), "out"])
            call, idle = f"{name}_{function}({passed});", "(void)s;"
            size = model.operations(function)
        per_call = (150 if precision == "float64" else 20) * size + 1000
        turns = int(np.clip(BUDGET // (SAMPLES * per_call), 1, 200))
        texts.append(f"static void call_{function}(int s) {{ {call} }}")
        texts.append(f"static void idle_{function}(int s) {{ {idle} }}")
        mains.append(
            f'    count("{function}", call_{function}, idle_{function}, {SAMPLES}, {turns});'
        )
    return "\n".join([*texts, "int main(void)", "{", *mains, "    return 0;", "}\n"])
